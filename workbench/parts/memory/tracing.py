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
from workbench.parts.memory.remembered import Memory
from workbench.parts.memory.store import SqlConversations
from workbench.records.tape import Effect, unpacked
from workbench.runs.workers import Work
from workbench.text import CJK, STOP_WORDS, fold, sentences, terms

_SHORTEST, _QUOTED = 10, 250
"""Characters of a sentence that tells where it came from, a Chinese one counts double; how much a quotation keeps."""
_TOGETHER = ("id", "user_message_id", "assistant_message_id")
_SETS = ("memories", "messages", "summaries", "conversations", "runs", "saying", "feedback")


@dataclass
class Found:
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
        """As JSON."""
        return json.dumps({**{name: sorted(getattr(self, name)) for name in _SETS}, "places": self.places})

    def add(self, noted: str) -> None:
        """What ``dumps`` gave, too."""
        told = json.loads(noted)
        for name in _SETS:
            getattr(self, name).update(told[name])
        for conversation, place in told["places"].items():
            self.place(conversation, place)

    def place(self, conversation: str, place: int) -> None:
        """A message of the conversation belongs to it, and stands there."""
        self.places[conversation] = min(place, self.places.get(conversation, place))

    def size(self) -> int:
        """Grows until everything is found."""
        return sum(len(getattr(self, name)) for name in (*_SETS, "places"))


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
        """Whether one of these has one of them."""
        return any(pattern.search(folded) for folded in map(fold, texts) for pattern in self._patterns.values())


@dataclass(frozen=True)
class Had:
    """What a run was given of memory: ids of memories, messages, episodes and summaries; conversations; earlier runs;
    and of how many messages from the beginning of a conversation it had the words."""

    ids: frozenset[str]
    conversations: frozenset[str]
    covered: Mapping[str, int]
    told: bool = False
    """Whether it is known what it was given: a run that has just begun may have read it, and not written that down."""
    runs: frozenset[str] = frozenset()

    def by_id(self, found: Found) -> bool:
        """Return True if it had any of this, by ids that are never used again."""
        summed = self.ids & found.summaries and self._covers(found)
        return bool(self.ids & (found.memories | found.messages) or self.runs & found.runs or summed)

    def of(self, found: Found) -> bool:
        """Return True if it had any of this, by ids or by the place in a conversation."""
        if self.by_id(found) or self.conversations & found.conversations:
            return True
        return self._covers(found)

    def _covers(self, found: Found) -> bool:
        """Return True if a summary that it had was made of one of the messages too."""
        return any(count > found.places.get(one, count) for one, count in self.covered.items())


def had(row: Mapping[str, Any], effects: Sequence[Effect], state: Mapping[str, Any]) -> Had:
    """By a run's tape, or by its state where the tape does not say."""
    of = str(row["conversation_id"])
    ids = {str(one["id"]) for one in state.get("remembered") or []}
    conversations, covered, told = set[str](), dict[str, int](), _recalled(effects) or "remembered" in state
    if any(one["part"] == "summary" for one in state.get("remembered") or []):
        covered[of] = 1 << 62
    runs = set[str]()
    for effect in effects:
        if effect.kind != "memory":
            continue
        if effect.name == "report":
            runs |= {str(effect.value["run_id"])} if effect.value else set()
        if effect.name not in ("recall", "list_messages"):
            continue
        given = effect.value if effect.name == "recall" else {"messages": effect.value}
        for one in [r for part in ("memories", "episodes", "messages") for r in given.get(part) or []]:
            ids |= {str(one["id"]), str(one.get("user_message_id") or one["id"])}
            conversations.add(str(one["conversation_id"]))
        if summary := given.get("summary"):
            ids.add(str(summary["id"]))
            where = str(summary["conversation_id"])
            covered[where] = max(covered.get(where, 0), int(summary["covered_message_count"]))
    return Had(frozenset(ids), frozenset(conversations), covered, told, frozenset(runs))


@dataclass(frozen=True)
class Candidate:
    """A run, in the workspace or in a capsule, that may have it.

    Attributes:
        row: of the run.
        had: what it was given of memory.
        sources: the runs that it was made from, or brought in as.
        typed: texts that a person wrote there.
        file: the capsule.
    """

    row: Mapping[str, Any]
    had: Had
    sources: frozenset[str]
    typed: Sequence[str] = ()
    file: Path | None = None

    @property
    def run_id(self) -> str:
        """Of the run."""
        return str(self.row["run_id"])

    @property
    def messages(self) -> set[str]:
        """The ids that its question and its answer have."""
        of, roles = self.row["conversation_id"], ("user", "assistant")
        return {SqlConversations.message_id(of, f"{self.run_id}:{role}") for role in roles}

    @property
    def said(self) -> list[str]:
        """What was asked and answered."""
        return [str(self.row["message"]), str((self.row["result"] or {}).get("answer", ""))]

    @property
    def texts(self) -> list[str]:
        """With what was edited and typed."""
        return [*self.said, *strings(self.row["options"]), *self.typed]


def strings(value: Any) -> Iterator[str]:
    """Every text in a JSON value.

    >>> list(strings({"a": ["b", 1, {"c": "d"}]}))
    ['b', 'd']
    """
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        yield from strings(list(value.values()))
    elif isinstance(value, list):
        for one in value:
            yield from strings(one)


def kept(work: Work, user: str) -> Iterator[Candidate]:
    """The runs of a person in the workspace, without those that another process removes meanwhile."""
    runs = work.durable.runs
    for row in runs.newest(-1, user_id=user):
        effects = [effect for page in runs.pages(row["run_id"]) for effect in unpacked(page)]
        try:
            state = {} if _recalled(effects) else row["result"] or work.values(row["run_id"])
        except UnknownRun:
            continue
        made = _sources(row, effects)
        typed = [*strings([dict(d) for d in runs.decisions(row["run_id"])]), *runs.drafts(row["run_id"])]
        yield Candidate(row, had(row, effects, state), made, typed)


def sealed(path: Path, user: str) -> Iterator[Candidate]:
    """The runs of a person in capsules, anywhere in the folder."""
    for file in own_files(path):
        if not zipfile.is_zipfile(file):
            continue
        with suppress(CapsuleError):
            contents = read(file)
            row = contents["run"]
            effects = [Effect(**{n: v for n, v in line.items() if n != "page"}) for line in contents["tape"]]
            state = {} if _recalled(effects) else row["result"] or {}
            if row["user_id"] == user:
                yield Candidate(row, had(row, effects, state), _sources(row, effects), (), file)


def _sources(row: Mapping[str, Any], effects: Iterable[Effect]) -> frozenset[str]:
    """The runs that a run was made from, by its options, or brought in as, by its tape."""
    own = {str(e.value["run_id"]) for e in effects if (e.kind, e.name) == ("begin", "ids")}
    return frozenset({*(row["options"].get("tape") or {}).get("sources", ()), *own} - {row["run_id"]})


def _recalled(effects: Iterable[Effect]) -> bool:
    """Whether a tape says what was recalled; one that was pruned, or grew too long, does not."""
    return any((effect.kind, effect.name) == ("memory", "recall") for effect in effects)


def own_files(path: Path) -> Iterator[Path]:
    """The files in a workspace that are no database, and of no knowledge base."""
    for file in sorted(path.rglob("*")):
        inside = file.relative_to(path).parts
        if inside[0] not in ("knowledge", "leases") and ".db" not in file.name and file.is_file():
            yield file


class Trace:
    """What a person has here, and what of it belongs to what was named.

    Args:
        memories: of the person, the ended ones too, oldest first.
        said: the messages of each conversation, in order.
        exchanges: the ids of each episode and of its messages.
        candidates: the person's runs.
        versions: a memory was named: the versions that it replaced and everything that says it verbatim belong to it.
            Otherwise what was noted of the messages does.
    """

    def __init__(
        self,
        memories: Sequence[Memory],
        said: Mapping[str, Sequence[Mapping[str, Any]]],
        exchanges: Sequence[Mapping[str, str]],
        candidates: Sequence[Candidate],
        versions: bool,
    ):
        self._memories, self._said, self._exchanges = memories, said, exchanges
        self._candidates, self._versions = candidates, versions
        self.words = Words()
        """What is looked for in everything that the person said or was told."""
        self._about, self._told = _Traces(), _Traces()
        """What a run that had it speaks of: a memory; and in its answer alone, what the person said otherwise."""
        self._answers = Words()
        """What is quoted where was asked what was said."""
        self._of_no_run = list(_of_no_run(said, exchanges, {c.run_id for c in candidates if c.file is None}))

    def follow(self, found: Found) -> None:
        """Add the runs, with their exchanges, that were given any of this meanwhile.

        By ids alone: its words are gone, and the name of a session may be used again for another conversation.
        """
        size = -1
        while size != (size := found.size()):
            for candidate in self._candidates:
                made = candidate.sources & found.runs or candidate.had.by_id(found)
                if made and candidate.run_id not in found.runs:
                    found.runs.add(candidate.run_id)
                    found.messages |= candidate.messages
            for one in self._exchanges:
                if not found.messages.isdisjoint(together := {one[name] for name in _TOGETHER}):
                    found.messages |= together

    def widen(self, found: Found) -> None:
        """Add everything that belongs to it."""
        size = -1
        while size != (size := found.size()):
            self._memory(found)
            for one in self._exchanges:
                if not found.messages.isdisjoint(together := {one[name] for name in _TOGETHER}):
                    found.messages |= together
            for conversation, messages in self._said.items():
                self._messages(found, conversation, messages)
            for candidate in self._candidates:
                self._run(found, candidate)
            for asked, answer in self._of_no_run:
                if self._tells(
                    asked["content"], answer["content"], json.dumps(answer["citations"], ensure_ascii=False)
                ):
                    found.messages |= {asked["id"], answer["id"]}

    def _memory(self, found: Found) -> None:
        by_id = {m["id"]: m for m in self._memories}
        for m in reversed(self._memories):
            if not self._versions:
                said = m["message_id"] in found.messages or m["conversation_id"] in found.conversations
                found.memories |= {m["id"]} if said else set()
            elif m["id"] in found.memories or _version(m, by_id, found) or self.words.within([m["content"]]):
                found.memories.add(m["id"])
                found.messages |= {m["message_id"]} - {""}
                self.words.add([m["content"]])
                self._about.words.add([m["about"]])
                self._about.rare |= rare(m["content"], m["about"])

    def _messages(self, found: Found, conversation: str, messages: Sequence[Mapping[str, Any]]) -> None:
        noted = {m["message_id"] for m in self._memories if m["id"] in found.memories}
        for place, message in enumerate(messages):
            whole = conversation in found.conversations
            if whole or (self._versions and self.words.within([message["content"]])):
                found.messages.add(message["id"])
            if message["id"] in found.messages:
                found.place(conversation, place)
                if self._versions and message["id"] not in noted:
                    continue
                told = [one[:_QUOTED] for one in sentences(message["content"]) if _telling(one)]
                if message["role"] == "user":
                    self._told.words.add(told)
                    self._told.rare |= rare(message["content"])
                else:
                    self._answers.add(told)

    def _run(self, found: Found, candidate: Candidate) -> None:
        one, conversation = candidate.run_id, str(candidate.row["conversation_id"])
        made = bool(candidate.sources & found.saying)
        said = conversation in found.conversations or bool(candidate.messages & found.messages)
        if made or said or (self._versions and self.words.within(candidate.said)):
            if made and found.conversations:
                found.conversations.add(conversation)
            found.runs.add(one)
            found.saying.add(one)
            found.messages |= candidate.messages
        elif candidate.had.of(found) or candidate.sources & found.runs or self.words.within(candidate.texts):
            found.runs.add(one)
            if self._speaks(candidate):
                found.messages |= candidate.messages

    def _speaks(self, candidate: Candidate) -> bool:
        """Whether the exchange of a run that had it speaks of it."""
        result = candidate.row["result"] or {}
        evidence = (result.get("merged") or {}).get("context", "")
        asked, answered = candidate.said
        if result.get("recalls") and self._answers.within([answered]):
            return True
        return self._about.within(f"{asked}\n{answered}", evidence) or self._told.within(
            answered, f"{asked} {evidence}"
        )

    def _tells(self, asked: str, answered: str, evidence: str) -> bool:
        """Whether an answer of a run that is gone has of it what neither its question nor its sources have."""
        known = f"{asked} {evidence}"
        new = not self._about.words.within([asked]) and self._about.within(answered, known)
        return new or self._told.within(answered, known)


def _of_no_run(
    said: Mapping[str, Sequence[Mapping[str, Any]]], exchanges: Iterable[Mapping[str, str]], runs: set[str]
) -> Iterator[tuple[Mapping[str, Any], Mapping[str, Any]]]:
    """The questions and answers of which the runs are gone, so that no tape says what they had."""
    by_id = {message["id"]: message for messages in said.values() for message in messages}
    for one in exchanges:
        asked, answer = by_id.get(one["user_message_id"]), by_id.get(one["assistant_message_id"])
        if asked and answer and (answer["debug"] or {}).get("run_id") not in runs:
            yield asked, answer


@dataclass
class _Traces:
    """Words, and rare ones that tell only where nothing else accounts for them."""

    words: Words = field(default_factory=Words)
    rare: set[str] = field(default_factory=set)

    def within(self, text: str, otherwise: str) -> bool:
        said, known = fold(text), fold(otherwise)
        found = {word for word in self.rare if word in said and word not in known}
        return self.words.within([text]) or any(not word.isascii() or word in terms(said) for word in found)


def rare(text: str, about: str = "") -> set[str]:
    """The words of a text that are not everybody's; of Chinese, three characters each of what it is about.

    >>> sorted(rare("My cat is called Zqbiscuit")), rare("我的猫叫紫琥珀", "紫琥珀")
    (['zqbiscuit'], {'紫琥珀'})
    """
    words = {word for word in terms(text) if word.isascii() and len(word) > 2 and not word.isdigit()}
    signs = fold(about)
    threes = {signs[n : n + 3] for n in range(len(signs) - 2)}
    return words - ordinary_words() - STOP_WORDS | {three for three in threes if all(map(CJK.fullmatch, three))}


def _version(m: Memory, by_id: Mapping[str, Memory], found: Found) -> bool:
    """Whether one that was found has replaced it; an aim takes the place of another without being it."""
    later = by_id.get(m["replaced_by"])
    if later is None or later["id"] not in found.memories:
        return False
    return m["section"] != "current_intent" or fold(m["about"]) == fold(later["about"])


def _telling(sentence: str) -> bool:
    return len(sentence) + sum(not c.isascii() for c in sentence) >= _SHORTEST
