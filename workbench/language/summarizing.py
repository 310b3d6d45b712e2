"""A conversation in short, without a model: sentences of it, chosen; each can be found in a message.

What the person wants and is like, what was found, and what is open. A summary goes on from an older one and keeps its
size: of too much, what is worth least is dropped, by what it is, how new it is and how often it was spoken of again.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from typing import Any, Literal

from workbench.language.judging import stems
from workbench.language.quoting import bare
from workbench.language.question import is_small_talk
from workbench.language.statements import Statement, asks, phrase, read_statements, same_thing
from workbench.text import CJK, STOP_WORDS, fold, sentences

Part = Literal["needs", "found", "open"]
MOST = 590
"""Characters of a summary as it is read: 160 tokens. A Chinese one counts as 2.4, which is what it costs."""
_POOL = 3
"""As many times as much is kept to choose from when the conversation goes on."""
_ANSWER = 2
"""Sentences of an answer that are kept at most."""
_WORTH = {"statement": 3.0, "intent": 3.0, "unanswered": 2.4, "told": 2.2, "answer": 1.0, "said": 0.8, "question": 0.6}
_OF_PERSON = ("statement", "intent", "told", "said")
_OWN = re.compile(r"\b(?:i|me|my|mine|we|us|our|ours)\b|[我咱]", re.IGNORECASE)
"""What is of the person themselves, whatever it says: an answer can be found again, and this cannot."""
_SHARED = 2
"""Rare words that a message has in common with a sentence of which it speaks again."""
_HALF = 60
"""Messages after which newness counts for half."""

_HEADS = {
    "en": {"needs": "What the person wants and is like", "found": "What was found", "open": "Still open"},
    "zh": {"needs": "用户的需求与情况", "found": "已经查明", "open": "尚待解决"},
}


@dataclass(frozen=True)
class Item:
    """A sentence of the conversation: where it was said, what it is, how often it was spoken of again."""

    text: str
    turn: int
    kind: str
    signal: float = 0.0
    again: int = 0
    statement: Statement | None = None

    def worth(self, now: int) -> float:
        """How much would be lost without it."""
        return _WORTH[self.kind] + self.signal + 0.8 * math.log1p(self.again) + 0.5 ** (1 + (now - self.turn) / _HALF)


@dataclass(frozen=True)
class Summary:
    """What is kept of a conversation, and of how many messages."""

    needs: tuple[Item, ...] = ()
    found: tuple[Item, ...] = ()
    open: tuple[Item, ...] = ()
    covered: int = 0
    most: int = MOST

    def text(self, language: str, known: Sequence[str] = ()) -> str:
        """As it is read: under headings in English or Chinese, in the order in which it was said; without the known."""
        beside = fold("\n".join(known))
        heads, chosen = _HEADS["zh" if language == "zh" else "en"], set(self._chosen())
        chosen = {item for item in chosen if fold(item.text).strip(" .。") not in beside}
        told = []
        for part in ("needs", "found", "open"):
            items: tuple[Item, ...] = getattr(self, part)
            lines = [f"- {item.text}" for item in items if item in chosen]
            told += [f"{heads[part]}{'：' if language == 'zh' else ':'}", *lines] if lines else []
        return "\n".join(told)

    def sentences(self) -> list[str]:
        """What ``text`` tells, without headings."""
        chosen = set(self._chosen())
        return [item.text for item in self._all() if item in chosen]

    def dumps(self) -> str:
        """As text, to be stored."""
        return json.dumps(asdict(self), ensure_ascii=False)

    def _all(self) -> list[Item]:
        return [*self.needs, *self.found, *self.open]

    def _chosen(self) -> list[Item]:
        return _within(self._all(), self.most, self.covered)


def loads(text: str) -> Summary:
    """A summary that was stored; ValueError where the text is none."""
    try:
        given = json.loads(text)
        parts = {part: tuple(map(_item, given[part])) for part in ("needs", "found", "open")}
        return Summary(**parts, covered=int(given["covered"]), most=int(given["most"]))
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"This is no summary: {error!r}. Make it anew from the messages.") from error


def _item(given: Mapping[str, Any]) -> Item:
    said = given["statement"]
    return Item(**{**given, "statement": Statement(**said) if said else None})


def summarized(messages: Iterable[Mapping[str, Any]], old: Summary | None = None, most: int = MOST) -> Summary:
    """The summary of a conversation, or an older one continued with the messages after it.

    Args:
        messages: oldest first, each with ``role`` (``user`` or ``assistant``) and ``content``.
        old: the summary of all messages before these.
        most: characters of its text, at most, without the headings.

    >>> asked = [{"role": "user", "content": "I don't like brass bands. Who wrote Emma?"},
    ...          {"role": "assistant", "content": "Jane Austen wrote Emma in 1815."}]
    >>> print(summarized(asked).text("en"))
    What the person wants and is like:
    - I don't like brass bands
    - Who wrote Emma?
    What was found:
    - Jane Austen wrote Emma in 1815.
    """
    kept = _Kept(old or Summary())
    for message in messages:
        kept.hear(str(message["role"]), str(message["content"]))
    return kept.summary(most)


class _Kept:
    """What is kept so far: every item with the part where it stands."""

    def __init__(self, old: Summary):
        self.now = old.covered
        self.items: list[tuple[Part, Item]] = [
            *(("needs", item) for item in old.needs),
            *(("found", item) for item in old.found),
            *(("open", item) for item in old.open),
        ]

    def summary(self, most: int) -> Summary:
        pool = set(_within([item for _, item in self.items], _POOL * most, self.now))
        parts = {
            part: tuple(sorted((i for p, i in self.items if p == part and i in pool), key=lambda i: i.turn))
            for part in ("needs", "found", "open")
        }
        return Summary(**parts, covered=self.now, most=most)

    def hear(self, role: str, content: str) -> None:
        """One more message."""
        self.now += 1
        if is_small_talk(content):
            return
        if role == "assistant":
            self._answered(content)
        elif role == "user":
            self._refer(content)
            self._said(content)

    def _refer(self, content: str) -> None:
        """What the person speaks of again: by words that few of the kept sentences have."""
        said = _content(content)
        holding = Counter(word for _, item in self.items for word in _content(item.text) & said)
        rare = {word for word, n in holding.items() if n <= max(2, len(self.items) // 20)}
        for k, (part, item) in enumerate(self.items):
            if len(_content(item.text) & rare) >= _SHARED:
                self.items[k] = part, replace(item, again=item.again + 1)

    def _add(self, part: Part, item: Item) -> None:
        """Once: what is said again takes the place of the older."""
        again = [i for _, i in self.items if fold(i.text) == fold(item.text)]
        self.items = [(p, i) for p, i in self.items if i not in again]
        self.items.append((part, replace(item, again=item.again + sum(i.again for i in again))))

    def _said(self, content: str) -> None:
        before = [i for _, i in self.items if i.kind in _OF_PERSON]
        read = read_statements(content, [i.text for i in before])
        if phrase("summary", "done").search(content):
            self.items = [
                (p, i) for p, i in self.items if i.kind != "intent" or not _content(i.text) & _content(content)
            ]
        for statement in read.statements:
            self._state(statement, content)
        stated = " ".join(s.text for s in read.statements)
        for sentence in sentences(content):
            asked = asks(sentence)
            if (
                read.recalls
                or phrase("summary", "chat").match(sentence)
                or fold(sentence.strip(" .。!！")) in fold(stated)
                or len(sentence) > 400
            ):
                continue
            if any(fold(s.text) in fold(sentence) for s in read.statements):
                sentence = read.rest if asked and read.rest in content else ""
            if sentence and len(_content(sentence)) > (0 if asked else 2):
                kind = (
                    "question"
                    if asked
                    else "told"
                    if _OWN.search(sentence)
                    or phrase("summary", "name").search(sentence)
                    or phrase("summary", "number").search(sentence)
                    else "said"
                )
                self._add("needs", Item(sentence, self.now, kind, _signal(sentence)))

    def _state(self, statement: Statement, content: str) -> None:
        gone = [i for _, i in self.items if _replaced(statement, i)]
        text = (
            statement.text
            if statement.text in content
            else next((s for s in sentences(content) if fold(statement.about)[:12] in fold(s)), content.strip())
        )
        alone = statement.attribute or statement.polarity or (gone and _content(text) & _content(gone[-1].text))
        if statement.kind == "correction" and gone and not alone:
            text = f"{gone[-1].text} → {text}"  # what it corrects, without which it says nothing
        self.items = [(p, i) for p, i in self.items if i not in gone]
        intent = statement.kind == "intent"
        item = Item(text, self.now, "intent" if intent else "statement", 0.0, sum(i.again for i in gone), statement)
        self._add("open" if intent else "needs", item)

    def _answered(self, content: str) -> None:
        asked = next((i for p, i in reversed(self.items) if i.kind in ("question", "unanswered")), None)
        asked = asked if asked and asked.turn == self.now - 1 else None
        told = [bare(sentence) for sentence in sentences(content)]
        told = [t for t in told if t in content or any(t in s for s in sentences(content))]
        told = [
            t
            for t in told
            if 8 <= len(t) <= 300 and not phrase("summary", "chat").match(t) and not re.search(r"[?？]\W*$", t)
        ]
        refused = [t for t in told if phrase("summary", "refused").search(t)]
        if asked:
            self.items = [(p, i) for p, i in self.items if i is not asked]
            unanswered = bool(refused) and len(refused) >= len(told) - 1
            kept: tuple[Part, str] = ("open", "unanswered") if unanswered else ("needs", "question")
            self._add(kept[0], replace(asked, kind=kept[1]))
        wanted = _content(asked.text) if asked else frozenset()
        answers = [t for t in told if t not in refused]
        ranked = sorted(
            range(len(answers)),
            key=lambda k: (-_signal(answers[k]) - 0.3 * len(_content(answers[k]) & wanted) + 0.1 * k, k),
        )
        for k in sorted(ranked[:_ANSWER]):
            if len(_content(answers[k])) > 1:
                self._add("found", Item(answers[k], self.now, "answer", _signal(answers[k]) - 0.2 * ranked.index(k)))


def _replaced(new: Statement, old: Item) -> bool:
    if old.statement and same_thing(new, old.statement):
        return True
    if new.kind != "correction" or not new.replaces or old.kind not in _OF_PERSON:
        return False
    known, text = fold(new.replaces).strip(" .。!！"), fold(old.text)
    return known in text or fold(old.text).strip(" .。!！") in known


def _signal(sentence: str) -> float:
    """How much a sentence says: names and numbers, by its length."""
    names, numbers = (
        len(set(phrase("summary", "name").findall(sentence))),
        len(phrase("summary", "number").findall(sentence)),
    )
    return 0.25 * min(names, 2) + (0.3 if numbers else 0) + 0.02 * min(len(_content(sentence)), 10)


@lru_cache(maxsize=8192)
def _content(text: str) -> frozenset[str]:
    low = re.sub(r"[我你他她们的了是在不有也就都吗呢]", " ", fold(text))
    return frozenset(
        s for word in re.findall(r"[^\W_]+", low) if word not in STOP_WORDS for s in stems(word) if len(s) > 1
    )


def _size(text: str) -> int:
    """Characters, as ``MOST`` counts them."""
    return len(text) + 7 * len(CJK.findall(text)) // 5


def _within(items: Sequence[Item], most: int, now: int) -> list[Item]:
    """The items worth most that fit, in their order."""
    left, kept = most, []
    for item in sorted(items, key=lambda i: (-i.worth(now), i.turn, i.text)):
        if (size := _size(item.text)) <= left:
            kept.append(item)
            left -= size
    return [item for item in items if item in kept]
