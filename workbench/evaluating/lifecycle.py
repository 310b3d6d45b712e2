"""A card of what becomes of memories: conversations whose truth is known by construction, asked about; nobody judges.

    {"kinds": {kind: {"n", "right", "share", "low", "high", "window", "summary", "aim", "by"}}, "summaries", ...}

``retention``: said in turn 1, asked for after the last turn. ``update``: said to have changed; ``contradiction``: said
otherwise, as if it had always been so: the newest has to lead, nothing older may be held to be so, and of a
contradiction both have to be seen. ``abstention``: never said, which the answer has to say. ``forgetting``: forgotten
for good, then asked for. ``scope``: asked by somebody else, in another conversation, and after it was said incognito.
``freshness``: the last of three goals, or of three values.

Beside each stands what the same reader makes of the last messages alone, and of the summary alone. Shares of right
ones in percent, with Wilson's 95 %. The sentences (``lifecycle.toml``) were written without a look at the rules that
read them; a quarter of them is reserved.
"""

from __future__ import annotations

import random
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any, NamedTuple

from workbench.evaluating.asking import Told
from workbench.evaluating.statistics import percent, wilson
from workbench.graphs.remember import RULES, bring_up, summary_text
from workbench.graphs.said_before import from_conversation
from workbench.language.summarizing import loads
from workbench.memory.remembered import core_of
from workbench.state import Asked

AIMS = {
    **{"retention": 90, "update": 95, "contradiction": 95, "abstention": None, "forgetting": 100, "scope": 100},
    "freshness": None,
}
SUMMARIES = {"faithfulness": 90, "recall": 85}
SPLITS = ("open", "reserved")
LANGUAGES = ("en", "zh")
TURNS = 100
_MADE_OF = tomllib.loads(files("workbench.evaluating").joinpath("lifecycle.toml").read_text(encoding="utf-8"))
_QUARTER = 4
_FACTS = ("retention", "forgetting", "scope", "incognito")
_CHANGING = ("update", "contradiction", "abstention", "freshness")


class Item(NamedTuple):
    """What is said in a conversation of one thing, in that order; and what shows that an answer holds it."""

    about: str
    said: list[str]
    marks: list[str]


@dataclass
class Planted:
    """A conversation that is to be held: what is said in which turn, and what it is asked afterwards."""

    name: str
    language: str
    split: str
    items: dict[str, Item]
    turns: list[tuple[str, str] | tuple[str, int]]
    asks: dict[str, str]
    ids: dict[tuple[str, int], str] = field(default_factory=dict)


class Mark(NamedTuple):
    """One question: whether it was right by each method, and where."""

    kind: str
    language: str
    split: str
    right: dict[str, bool]
    what: str
    answer: str


def conversations(rounds: int = 1, turns: int = TURNS, splits: Sequence[str] = SPLITS) -> Iterator[Planted]:
    """The conversations, drawn: a dozen of each language a round, and four of what is reserved."""
    for language in LANGUAGES:
        for split in splits:
            for number in range(rounds * (len(_part(language, "update", split)))):
                yield _planted(language, split, number, turns)


def _part(language: str, kind: str, split: str) -> list[Any]:
    rows = _MADE_OF[language][kind]
    cut = len(rows) - len(rows) // _QUARTER
    return rows[cut:] if split == "reserved" else rows[:cut]


def _planted(language: str, split: str, number: int, turns: int) -> Planted:
    draw, items = random.Random(f"{language} {split} {number}"), {}
    facts = _part(language, "fact", split)
    for place, kind in enumerate(_FACTS):
        items[kind] = _item(facts[(number + place) % len(facts)], draw)
    for place, kind in enumerate(_CHANGING):
        rows = _part(language, kind, split)
        items[kind] = _item(rows[(number + place) % len(rows)], draw)
    said = [(kind, n) for kind in items if kind not in ("retention", "incognito") for n in range(len(items[kind].said))]
    draw.shuffle(said)
    order = sorted(said, key=lambda one: one[1])  # what is later of one thing is said later
    slots: dict[int, tuple[str, int]] = {
        0: ("retention", 0),
        **dict(zip(sorted(draw.sample(range(1, turns), len(order))), order, strict=True)),
    }
    filler, names = _MADE_OF[language]["filler"], _MADE_OF[language]["names"]
    told: list[Any] = []
    for turn in range(turns):
        given = {"w": draw.choice(names), "n": draw.randint(2, 1990)}
        told.append(slots.get(turn) or tuple(text.format(**given) for text in draw.choice(filler)))
    asks = {kind: draw.choice(_part(language, "ask", split)).format(about=item.about) for kind, item in items.items()}
    return Planted(f"{language}-{split}-{number}", language, split, items, told, asks)


def _item(row: Mapping[str, Any], draw: random.Random) -> Item:
    given = dict(zip("abc", draw.sample(row["v"], len(row["v"])), strict=False)) if "v" in row else {}
    given |= {"x": draw.choice(row["x"])} if "x" in row else {}
    marks = row.get("mark") or [f"{{{'abc'[n]}}}" for n in range(len(row["said"]))]
    return Item(
        row["about"].format(**given), *([text.format(**given) for text in part] for part in (row["said"], marks))
    )


def lifecycle(
    wb: Any,
    forget: Callable[..., Any],
    *,
    rounds: int = 1,
    turns: int = TURNS,
    splits: Sequence[str] = SPLITS,
    told: Told | None = None,
) -> dict[str, Any]:
    """Hold the conversations in an open workspace, ask, and give the card of the module's docstring.

    Args:
        wb: open, empty, and with core memory on.
        forget: ``maintenance.forgetting.forget``.
        rounds: how often every sentence is used, with other things drawn.
        turns: of a conversation.
        splits: which sentences.
        told: hears of progress.
    """
    planted = list(conversations(rounds, turns, splits))
    marks, summed = list[Mark](), dict.fromkeys(("kept", "planted", "foreign", "sentences"), 0)
    for number, one in enumerate(planted, start=1):
        marks += _held(wb, forget, one, summed)
        if told:
            told("conversations", number, len(planted))
    return card(marks, summed, len(planted), turns)


def card(marks: Sequence[Mark], summed: Mapping[str, int], count: int, turns: int) -> dict[str, Any]:
    """The table over what was right."""
    made: dict[str, Any] = {"conversations": count, "turns": turns, "kinds": {}}
    for kind, aim in AIMS.items():
        some = [m for m in marks if m.kind == kind]
        if not some:
            continue
        by = {part: [m for m in some if part in (m.language, m.split)] for part in (*LANGUAGES, *SPLITS)}
        made["kinds"][kind] = {
            **_share([m.right["ours"] for m in some]),
            **{name: percent(sum(m.right[name] for m in some) / len(some)) for name in ("window", "summary")},
            "aim": aim,
            "by": {part: _share([m.right["ours"] for m in rows]) for part, rows in by.items() if rows},
        }
    right = {
        "faithfulness": (summed["sentences"] - summed["foreign"], summed["sentences"]),
        "recall": (summed["kept"], summed["planted"]),
    }
    made["summaries"] = {
        name: {"n": n, "right": k, "share": percent(k / max(n, 1)), **_interval(k, n), "aim": SUMMARIES[name]}
        for name, (k, n) in right.items()
    }
    made["wrong"] = [
        {"kind": m.kind, "language": m.language, "question": m.what, "answer": m.answer}
        for m in marks
        if not m.right["ours"] and m.split == "open"
    ]
    return made


def _share(right: Sequence[bool]) -> dict[str, Any]:
    return {
        "n": len(right),
        "right": sum(right),
        "share": percent(sum(right) / len(right)),
        **_interval(sum(right), len(right)),
    }


def _interval(right: int, asked: int) -> dict[str, float]:
    low, high = wilson(right, asked)
    return {"low": percent(low), "high": percent(high)}


# --- One conversation ---


def _held(wb: Any, forget: Callable[..., Any], one: Planted, summed: dict[str, int]) -> list[Mark]:
    """Hold it, sum it up, and ask."""
    context = wb.ports()
    store = context.conversations
    wb.ask(one.items["incognito"].said[0], kb="general", user=one.name, session="main", incognito=True)
    for turn in one.turns:
        conversation = store.get_or_create_conversation_id(one.name, "main")
        if isinstance(turn[1], int):
            wb.ask(one.items[turn[0]].said[turn[1]], kb="general", user=one.name, session="main")
            one.ids[turn] = store.list_messages(conversation, 2)[0]["id"]
        else:
            asked = store.append_message(conversation, "user", turn[0])
            store.append_message(conversation, "assistant", turn[1], answers=asked)
    context.memory.embed(conversation)
    wb.call(bring_up(context, store, conversation))
    _count(summed, one, context.memory.recall("", user_id=one.name, conversation_id=conversation)["summary"], store)
    here = _Here(wb, one, conversation)
    found = [here.ask(kind) for kind in ("retention", "update", "contradiction", "abstention", "freshness")]
    found += here.scope()
    return [*found, here.forgetting(forget)]


def _count(summed: dict[str, int], one: Planted, summary: Mapping[str, Any], store: Any) -> None:
    """What the summary kept of what was said last of each thing, and what it says that nobody said."""
    text = summary_text(summary, one.items["retention"].said[0])
    for kind, item in one.items.items():
        if kind != "incognito":
            summed["planted"] += 1
            summed["kept"] += _holds(text, item.marks[-1])
    if summary["author"] == RULES:
        said = "\n".join(m["content"] for m in store.list_messages(summary["conversation_id"]))
        told = [s for line in loads(summary["summary"]).sentences() for s in line.split(" → ")]
        summed["sentences"] += len(told)
        summed["foreign"] += sum(sentence not in said for sentence in told)


def _holds(text: str, mark: str) -> bool:
    """Whether a text holds it, and not as a part of a longer number or word.

    >>> _holds("coach 26 of it", "26"), _holds("coach 126 of it", "26")
    (True, False)
    """
    return bool(re.search(rf"(?<![0-9a-z]){re.escape(mark)}(?![0-9a-z])", text, re.IGNORECASE))


def _quotes(answer: str) -> list[str]:
    return re.findall(r"“(.+?)”$", answer, re.MULTILINE)


class _Here:
    """A conversation that was held, and is asked about."""

    def __init__(self, wb: Any, one: Planted, conversation: str):
        self._wb, self._one, self._conversation = wb, one, conversation
        self._context, self._zh = wb.ports(), one.language == "zh"
        self._said = [m["content"] for m in self._context.conversations.list_messages(conversation)]
        self._others = self._without_memory()

    def _without_memory(self) -> dict[str, dict[str, Any]]:
        """What the last messages alone, and the summary alone, would give to read."""
        settings, memory = self._context.settings, self._context.memory
        window = self._context.conversations.list_messages(self._conversation, settings.history_window)
        summary = memory.recall("", user_id="", conversation_id=self._conversation)["summary"]
        lines = [line.removeprefix("- ") for line in summary_text(summary, self._said[0]).splitlines()]
        told = [{"role": "user", "created_at": summary["updated_at"], "content": line} for line in lines]
        return {"window": {"history": window}, "summary": {"history": told}}

    def _asked(self, kind: str, user: str = "", session: str = "main") -> Any:
        return self._wb.ask(self._one.asks[kind], kb="general", user=user or self._one.name, session=session)

    def _mark(self, kind: str, right: Callable[[str], bool], ours: bool, what: str, answer: str) -> Mark:
        about = self._one.items[kind].about
        given = {
            name: from_conversation(Asked(about=about, whose="user", which=""), state, self._zh)
            for name, state in self._others.items()
        }
        others = {name: right(text) for name, text in given.items()}
        return Mark(kind, self._one.language, self._one.split, {"ours": ours, **others}, what, answer)

    def ask(self, kind: str) -> Mark:
        """One of the kinds that is asked in the conversation itself."""
        item = self._one.items[kind]
        if not item.about:
            return self._intent(kind, item)
        right: dict[str, Callable[[str], bool]] = {"retention": self._found(item), "abstention": self._abstained}
        judge = right.get(kind, self._leads(item))
        run = self._asked(kind)
        ours = judge(run.answer)
        if kind in ("update", "contradiction"):
            ours = ours and not self._stale(kind, item)
        if kind == "contradiction":
            ours = ours and self._both(run.answer, item)
        return self._mark(kind, judge, ours, self._one.asks[kind], run.answer)

    def _found(self, item: Item) -> Callable[[str], bool]:
        return lambda answer: any(_holds(quote, item.marks[0]) for quote in _quotes(answer))

    def _leads(self, item: Item) -> Callable[[str], bool]:
        return lambda answer: any(_holds(quote, item.marks[-1]) for quote in _quotes(answer)[:1])

    def _abstained(self, answer: str) -> bool:
        """Whether it says that nothing is there, and nothing else."""
        told = [*re.findall("“(.+)”", answer), ""]
        return any(answer == from_conversation(Asked(about=a, whose="", which=""), {}, self._zh) for a in told)

    def _memories(self, ended: bool = False) -> list[Any]:
        store = self._context.conversations
        return store.memories(self._one.name, ended=ended)

    def _stale(self, kind: str, item: Item) -> bool:
        """Whether something older than the last is held to be so."""
        older = {self._one.ids[kind, n] for n in range(len(item.said) - 1)}
        return any(memory["message_id"] in older for memory in self._memories())

    def _both(self, answer: str, item: Item) -> bool:
        told = [*_quotes(answer), *(memory["content"] for memory in self._memories(ended=True))]
        return all(any(_holds(text, mark) for text in told) for mark in item.marks)

    def _intent(self, kind: str, item: Item) -> Mark:
        """The goal that core memory holds; the others: whether they hold the last one and none before it."""

        def right(text: str) -> bool:
            return _holds(text, item.marks[-1]) and not any(_holds(text, mark) for mark in item.marks[:-1])

        held = core_of(self._memories())["human"]["current_intent"]
        others = {name: right("\n".join(m["content"] for m in s["history"])) for name, s in self._others.items()}
        what = " / ".join(item.said)
        return Mark(kind, self._one.language, self._one.split, {"ours": right(held), **others}, what, held)

    def scope(self) -> list[Mark]:
        """Asked by somebody else, in another conversation, and what was said incognito."""
        found = []
        for kind, user, session in (("scope", "else", "main"), ("scope", "", "other"), ("incognito", "", "main")):
            item = self._one.items[kind]
            run = self._asked(kind, f"{self._one.name}-{user}" if user else "", session)
            core = () if session == "other" else ("core",)  # what is known of a person is theirs in every conversation
            parts = [p["text"] for p in run.remembered if p["part"] in ("summary", "episode", "history", *core)]
            parts = [text for text in parts if text != self._one.asks[kind]]
            ours = not any(_holds(text, item.marks[0]) for text in (run.answer, *parts))
            mark = Mark("scope", self._one.language, self._one.split, {"ours": ours}, self._one.asks[kind], run.answer)
            found.append(mark._replace(right={"ours": ours, "window": True, "summary": True}))
        return found

    def forgetting(self, forget: Callable[..., Any]) -> Mark:
        """Forget the exchange, and ask."""
        kind = "forgetting"
        item, store = self._one.items[kind], self._context.conversations
        forget(self._wb, message=self._one.ids[kind, 0], user=self._one.name)
        run = self._asked(kind)
        summary = self._context.memory.recall("", user_id="", conversation_id=self._conversation)["summary"]
        left = [m["content"] for m in (*self._memories(ended=True), *store.list_messages(self._conversation))]
        left += [run.answer, summary["summary"] if summary else "", *(p["text"] for p in run.remembered)]
        ours = not any(_holds(text, item.marks[0]) for text in left)
        others = {name: not self._found(item)(self._read(item, state)) for name, state in self._others.items()}
        return Mark(
            kind, self._one.language, self._one.split, {"ours": ours, **others}, self._one.asks[kind], run.answer
        )

    def _read(self, item: Item, state: Mapping[str, Any]) -> str:
        return from_conversation(Asked(about=item.about, whose="user", which=""), state, self._zh)


def card_text(made: Mapping[str, Any]) -> str:
    """The card for people."""
    lines = [f"{made['conversations']} conversations of {made['turns']} turns, asked afterwards; right, in percent"]
    head = [f"{'':<16}{'n':>5}{'right':>8}{'95 %':>16}{'aim':>6}{'window':>9}{'summary':>9}"]
    parts = (*LANGUAGES, *SPLITS)
    lines += [head[0] + "".join(f"{part:>10}" for part in parts)]
    for kind, row in made["kinds"].items():
        by = "".join(f"{row['by'][part]['share']:>10.1f}" if part in row["by"] else f"{'-':>10}" for part in parts)
        lines.append(f"{kind:<16}{_cells(row)}{row['window']:>9.1f}{row['summary']:>9.1f}{by}")
    lines.append("\nsummaries")
    lines += [f"{name:<16}{_cells(row)}" for name, row in made["summaries"].items()]
    return "\n".join(lines)


def _cells(row: Mapping[str, Any]) -> str:
    aim = "-" if row["aim"] is None else row["aim"]
    return f"{row['n']:>5}{row['share']:>8.1f}{row['low']:>8.1f} to {row['high']:>4.1f}{aim:>6}"
