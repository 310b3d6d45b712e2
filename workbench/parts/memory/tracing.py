"""Who had something that was said or remembered: memories, messages and runs that belong together, by ids and tapes."""

from __future__ import annotations

import json
import re
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from workbench.errors import CapsuleError, UnknownRun
from workbench.futures.capsule import read
from workbench.knowledge.names.surfaces import ordinary_words
from workbench.parts.memory.store import Memory, MemoryStore
from workbench.records.conversations import SqlConversations
from workbench.records.tape import Effect, unpacked
from workbench.runs.workers import Work
from workbench.state import Data
from workbench.text import CJK, STOP_WORDS, fold, sentences, terms

_SHORTEST, _QUOTED = 10, 250
"""Characters of a sentence that tells where it came from, a Chinese one counts double; how much a quotation keeps."""
_ALL = 1 << 62


@dataclass
class TraceIds:
    """What belongs together, by ids alone.

    Attributes:
        memories: ids of memories.
        messages: ids of messages and of the episodes that they are.
        summaries: ids of summaries.
        conversations: those that go whole.
        runs: those that said it, were made from such a run, or had it.
        saying: those of the runs of which the question and the answer go too.
        feedback: ids of verdicts.
        places: by conversation the place of the first of the messages: what is summed up behind it has it.
    """

    memories: set[str] = field(default_factory=set)
    messages: set[str] = field(default_factory=set)
    summaries: set[str] = field(default_factory=set)
    conversations: set[str] = field(default_factory=set)
    runs: set[str] = field(default_factory=set)
    saying: set[str] = field(default_factory=set)
    feedback: set[str] = field(default_factory=set)
    places: dict[str, int] = field(default_factory=dict)

    def dumps(self) -> str:
        """Return it as JSON."""
        return json.dumps(vars(self), default=sorted)

    def add(self, note: str) -> None:
        """Add what ``dumps`` returned; to an empty one."""
        for name, ids in json.loads(note).items():
            getattr(self, name).update(ids)

    def place(self, conversation: str, place: int) -> None:
        """Add the place of a message in a conversation."""
        self.places[conversation] = min(place, self.places.get(conversation, place))

    def size(self) -> int:
        """Return a number that grows until everything is found."""
        return sum(map(len, vars(self).values()))


class Words:
    """Texts to be found in others, whatever their case and marks, and never inside a longer word.

    >>> words = Words(["No brass bands.", ""])
    >>> words.within(["He said: no  brass bands!"]), words.within(["no brass bandstand"])
    (True, False)
    """

    def __init__(self, texts: Iterable[str] = ()):
        self._patterns: dict[str, re.Pattern[str]] = {}
        self.add(texts)

    def add(self, texts: Iterable[str]) -> None:
        """Look for these too."""
        for text in texts:
            bare = fold(text).strip(" .,;:!?'\"“”。，；：！？")
            if bare and bare not in self._patterns:
                edges = ("(?<![a-z0-9])" * bare[0].isascii(), "(?![a-z0-9])" * bare[-1].isascii())
                self._patterns[bare] = re.compile(f"{edges[0]}{re.escape(bare)}{edges[1]}")

    def within(self, texts: Iterable[str]) -> bool:
        """Return True if one of the texts has one of these."""
        return any(pattern.search(folded) for folded in map(fold, texts) for pattern in self._patterns.values())

    def beyond(self, text: str, context: str) -> bool:
        """Return True if a text has one of these that ``known`` does not account for.

        >>> words = Words(["opera"])
        >>> words.beyond("You said opera.", "Which opera?"), words.beyond("You said opera.", "Which?")
        (False, True)
        """
        folded, context = fold(text), fold(context)
        return any(pattern.search(folded) and not pattern.search(context) for pattern in self._patterns.values())


def rare_words(text: str, about: str = "") -> set[str]:
    """Return the words of a text that are not everyone's; of Chinese, three characters each of what it is about.

    >>> sorted(rare_words("My cat is called Zqbiscuit")), rare_words("我的猫叫紫琥珀", "紫琥珀")
    (['zqbiscuit'], {'紫琥珀'})
    """
    words = {word for word in terms(text) if word.isascii() and len(word) > 2 and not word.isdigit()}
    signs = fold(about)
    threes = {signs[n : n + 3] for n in range(len(signs) - 2)}
    return words - ordinary_words() - STOP_WORDS | {three for three in threes if all(map(CJK.fullmatch, three))}


class Candidate:
    """A run, in the workspace or in a capsule, and what its tape says that it had of memory.

    Attributes:
        row: of the run.
        told: whether it is known what it had: a run that has just begun may have read it, and not written that down.
        sources: the runs that it was made from, or brought in as.
        file: the capsule.
    """

    def __init__(
        self,
        row: Data,
        effects: Sequence[Effect],
        state: Data,
        typed: Sequence[str] = (),
        file: Path | None = None,
    ):
        """``state``: of a run whose tape was pruned, or grew too long; ``typed``: texts that a person wrote there."""
        self.row, self.file, self._typed = row, file, typed
        self.run_id = str(row["run_id"])
        own = {str(e.value["run_id"]) for e in effects if (e.kind, e.name) == ("begin", "ids")}
        self.sources = frozenset({*(row["options"].get("tape") or {}).get("sources", ()), *own} - {self.run_id})
        recalled = state.get("remembered") or []
        self.told = _recalled(effects) or "remembered" in state
        self._ids, self._conversations, self._reports = {str(entry["id"]) for entry in recalled}, set[str](), set[str]()
        self._covered: dict[str, int] = {}
        """By conversation, of how many messages from its beginning a summary was read."""
        if any(entry["part"] == "summary" for entry in recalled):
            self._covered[str(row["conversation_id"])] = _ALL
        for effect in effects:
            if effect.kind == "memory":
                self._read(effect.name, effect.value)

    def _read(self, name: str, value: Any) -> None:
        if name == "report" and value:
            self._reports.add(str(value["run_id"]))
        recalled = value if name == "recall" else {"messages": value} if name == "list_messages" else {}
        for row in [row for part in ("memories", "episodes", "messages") for row in recalled.get(part) or []]:
            self._ids |= {str(row["id"]), str(row.get("user_message_id") or row["id"])}
            self._conversations.add(str(row["conversation_id"]))
        if summary := recalled.get("summary"):
            self._ids.add(str(summary["id"]))
            conversation_id, count = str(summary["conversation_id"]), int(summary["covered_message_count"])
            self._covered[conversation_id] = max(self._covered.get(conversation_id, 0), count)

    def had_by_id(self, traced: TraceIds) -> bool:
        """Return True if it had any of this, by ids that are never used again."""
        if self._ids & (traced.memories | traced.messages) or self._reports & traced.runs:
            return True
        return bool(self._ids & traced.summaries) and self._summary_covers(traced)

    def had(self, traced: TraceIds) -> bool:
        """Return True if it had any of this, by ids or by the place in a conversation."""
        return (
            self.had_by_id(traced) or bool(self._conversations & traced.conversations) or self._summary_covers(traced)
        )

    def _summary_covers(self, traced: TraceIds) -> bool:
        return any(count > traced.places.get(conversation, count) for conversation, count in self._covered.items())

    @property
    def messages(self) -> set[str]:
        """Return the ids that its question and its answer have."""
        return {
            SqlConversations.message_id(self.row["conversation_id"], f"{self.run_id}:{role}")
            for role in ("user", "assistant")
        }

    @property
    def dialogue(self) -> list[str]:
        """Return what was asked and answered."""
        return [str(self.row["message"]), str((self.row["result"] or {}).get("answer", ""))]

    @property
    def texts(self) -> list[str]:
        """With what was edited and typed."""
        return [*self.dialogue, *strings(self.row["options"]), *self._typed]


def strings(value: Any) -> Iterator[str]:
    """Yield every text in a JSON value.

    >>> list(strings({"a": ["b", 1, {"c": "d"}]}))
    ['b', 'd']
    """
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        yield from strings(list(value.values()))
    elif isinstance(value, list):
        for entry in value:
            yield from strings(entry)


def candidates(work: Work, path: Path, user: str) -> Iterator[Candidate]:
    """Yield the runs of a person in the workspace and in capsules anywhere in its folder.

    Those that another process removes meanwhile are left out.
    """
    runs = work.durable.runs
    for row in runs.newest(-1, user_id=user):
        effects = [effect for page in runs.pages(row["run_id"]) for effect in unpacked(page)]
        with suppress(UnknownRun):
            state = {} if _recalled(effects) else row["result"] or work.values(row["run_id"])
            typed = [*strings([dict(d) for d in runs.decisions(row["run_id"])]), *runs.drafts(row["run_id"])]
            yield Candidate(row, effects, state, typed)
    for file in filter(zipfile.is_zipfile, own_files(path)):
        with suppress(CapsuleError):
            contents = read(file)
            row = contents["run"]
            effects = [Effect(**{n: v for n, v in line.items() if n != "page"}) for line in contents["tape"]]
            if row["user_id"] == user:
                yield Candidate(row, effects, {} if _recalled(effects) else row["result"] or {}, (), file)


def _recalled(effects: Iterable[Effect]) -> bool:
    """Return True if a tape says what was recalled; one that was pruned, or grew too long, does not."""
    return any((effect.kind, effect.name) == ("memory", "recall") for effect in effects)


def own_files(path: Path) -> Iterator[Path]:
    """Yield the files in a workspace that are no database, and of no knowledge base."""
    for file in sorted(path.rglob("*")):
        inside = file.relative_to(path).parts
        if inside[0] not in ("knowledge", "leases") and ".db" not in file.name and file.is_file():
            yield file


class Trace:
    """What a person has here, and what of it belongs to what was named.

    Args:
        store: what is said and remembered.
        user: of whom.
        runs: the person's runs.
        versions: a memory was named: the versions that it replaced and everything that says it verbatim belong to it.
            Otherwise what was noted of the messages does.
    """

    def __init__(self, store: MemoryStore, user: str, runs: Sequence[Candidate], versions: bool):
        self.memories = store.memories(user, ended=True)
        self.said = {entry: store.list_messages(entry) for entry in store.conversations(user)}
        self.exchanges = store.exchanges(user)
        self.runs, self._versions = runs, versions
        self.words = Words()
        """What is looked for in everything that the person said or was told."""
        self._marks, self._answers = Words(), Words()
        """What an exchange of a run that had it speaks of; what is quoted where was asked what was said."""

    def follow(self, traced: TraceIds) -> None:
        """Add the runs, with their exchanges, that were given any of this meanwhile.

        By ids alone: its words are gone, and the name of a session may be used again for another conversation.
        """
        size = -1
        while size != (size := traced.size()):
            for run in self.runs:
                if run.run_id not in traced.runs and (run.sources & traced.runs or run.had_by_id(traced)):
                    traced.runs.add(run.run_id)
                    traced.messages |= run.messages
            self._join_exchanges(traced)

    def widen(self, traced: TraceIds) -> None:
        """Add everything that belongs to it."""
        size, orphans = -1, list(self._exchanges_without_run())
        while size != (size := traced.size()):
            self._widen_memories(traced)
            self._join_exchanges(traced)
            for conversation, messages in self.said.items():
                self._widen_messages(traced, conversation, messages)
            for run in self.runs:
                self._widen_run(traced, run)
            for question, answer in orphans:
                context = f"{question['content']}\n{json.dumps(answer['citations'], ensure_ascii=False)}"
                if self._marks.beyond(answer["content"], context):
                    traced.messages |= {question["id"], answer["id"]}

    def _join_exchanges(self, traced: TraceIds) -> None:
        for exchange in self.exchanges:
            together = {exchange[name] for name in ("id", "user_message_id", "assistant_message_id")}
            if not traced.messages.isdisjoint(together):
                traced.messages |= together

    def _exchanges_without_run(self) -> Iterator[tuple[Data, Data]]:
        """Yield the questions and answers of which the runs are gone, so that no tape says what they had."""
        runs = {run.run_id for run in self.runs if run.file is None}
        by_id = {message["id"]: message for messages in self.said.values() for message in messages}
        for exchange in self.exchanges:
            question, answer = by_id.get(exchange["user_message_id"]), by_id.get(exchange["assistant_message_id"])
            if question and answer and (answer["debug"] or {}).get("run_id") not in runs:
                yield question, answer

    def _widen_memories(self, traced: TraceIds) -> None:
        by_id = {m["id"]: m for m in self.memories}
        for m in reversed(self.memories):
            if not self._versions:
                if m["message_id"] in traced.messages or m["conversation_id"] in traced.conversations:
                    traced.memories.add(m["id"])
            elif m["id"] in traced.memories or _is_version(m, by_id, traced) or self.words.within([m["content"]]):
                traced.memories.add(m["id"])
                traced.messages |= {m["message_id"]} - {""}
                self.words.add([m["content"]])
                self._marks.add([m["about"], *rare_words(m["content"], m["about"])])

    def _widen_messages(self, traced: TraceIds, conversation: str, messages: Sequence[Data]) -> None:
        noted = {m["message_id"] for m in self.memories if m["id"] in traced.memories}
        for place, message in enumerate(messages):
            text = message["content"]
            if conversation in traced.conversations or (self._versions and self.words.within([text])):
                traced.messages.add(message["id"])
            if message["id"] not in traced.messages:
                continue
            traced.place(conversation, place)
            if not self._versions or message["id"] in noted:
                telling = [sentence[:_QUOTED] for sentence in sentences(text) if _tells_its_source(sentence)]
                if message["role"] == "user":
                    self._marks.add([*telling, *rare_words(text)])
                else:
                    self._answers.add(telling)

    def _widen_run(self, traced: TraceIds, run: Candidate) -> None:
        conversation = str(run.row["conversation_id"])
        derived = bool(run.sources & traced.saying)
        is_target = conversation in traced.conversations or bool(run.messages & traced.messages)
        if derived or is_target or (self._versions and self.words.within(run.dialogue)):
            if derived and traced.conversations:
                traced.conversations.add(conversation)
            traced.saying.add(run.run_id)
            traced.runs.add(run.run_id)
            traced.messages |= run.messages
        elif run.had(traced) or run.sources & traced.runs or self.words.within(run.texts):
            traced.runs.add(run.run_id)
            if self._speaks(run):
                traced.messages |= run.messages

    def _speaks(self, run: Candidate) -> bool:
        """Return True if the exchange of a run that had it speaks of it: by more than its sources say.

        Of an exchange that is forgotten the answer alone counts: the person may well ask the same again.
        """
        result = run.row["result"] or {}
        question, answered = run.dialogue
        if result.get("recalls") and self._answers.within([answered]):
            return True
        evidence = (result.get("merged") or {}).get("context", "")
        if self._versions:
            return self._marks.beyond(f"{question}\n{answered}", evidence)
        return self._marks.beyond(answered, f"{question}\n{evidence}")


def _is_version(m: Memory, by_id: Mapping[str, Memory], traced: TraceIds) -> bool:
    """Return True if one that was found has replaced it; an aim takes the place of another without being it."""
    later = by_id.get(m["replaced_by"])
    if later is None or later["id"] not in traced.memories:
        return False
    return m["section"] != "current_intent" or fold(m["about"]) == fold(later["about"])


def _tells_its_source(sentence: str) -> bool:
    return len(sentence) + sum(not c.isascii() for c in sentence) >= _SHORTEST
