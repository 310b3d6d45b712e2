"""What a run had of memory: of which parts its prompt is made, and which memory stood behind which sentence.

Blame is read off the texts, no model is asked: a sentence that quotes what was remembered, or shares words with it that
neither the evidence nor the question has, probably comes from there; a preference that became a condition stands behind
the whole answer. It says *probably*: a fork without the memory shows what it really changed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypedDict, cast

from workbench.language.citing import marked_sentences
from workbench.records.tape import estimated_tokens
from workbench.settings import Settings
from workbench.text import content_stems, fold, language_of, simplified
from workbench.views.memory import Rows, blame_blocks, prompt_blocks

if TYPE_CHECKING:
    from workbench.runs.recording import Recording

_QUOTED = re.compile(r"[“\"「]([^”\"」]{4,})[”\"」]")
_MARKS = re.compile(r"\s?\[\d+\]")
_SHARED, _LEAST, _MOST = 2, 0.25, 2
"""Own words of a sentence that a memory has at least; their share of the sentence's; memories that are told of it."""


class Part(TypedDict):
    """A part of a prompt, or what was left out of it.

    Attributes:
        part: ``system``, ``core``, ``summary``, ``episode``, ``evidence``, ``history`` or ``question``.
        id: of the memory, the episode or the message; of the others their name.
        tokens: about how many.
        kept: whether it stands in the prompt; else ``why`` not: ``budget``, ``enough``, ``left_out`` or ``struck``.
        at: when it was said or noted.
        author: who noted it: ``rules``, ``person``, or a model.
        session: the conversation in which it was said; ``turn`` which of its questions, from 1.
    """

    part: str
    id: str
    text: str
    tokens: int
    kept: bool
    why: str
    at: str
    author: str
    session: str
    turn: int | None


class Blamed(TypedDict):
    """That a memory probably stood behind a sentence: ``quoted`` there, its ``words`` there, or ``obeyed``.

    ``sentence`` is empty where it stood behind the whole answer, ``share`` is that of the sentence's words.
    """

    sentence: str
    how: str
    share: float
    part: str
    id: str
    text: str
    at: str
    session: str
    turn: int | None


def prompt_parts(run: Recording) -> Rows:
    """Of which parts the writer's prompt is made, in their order, and what of memory was left out of it, with why.

    Where no model writes it is what one would be sent. Tokens are estimated (``records.tape.estimated_tokens``).
    """
    from workbench.graphs.roles import told_evidence

    language = language_of(run.message)
    prompt = run.prompts.of("writer", "zh" if language == "zh" else "en")
    most = (run.begun.get("settings") or {}).get("merge_max_characters") or Settings.model_fields[
        "merge_max_characters"
    ].default
    frame = re.sub(r"\$\{?\w+\}?", "", prompt.user)
    shown = told_evidence(run.evidence, int(most)) if run.evidence else ""
    struck = run._values().get("struck") or []
    remembered = [{**p, "kept": False, "why": "struck"} if p["id"] in struck else p for p in run.remembered]
    known, sources = _known(run), _Sources(run)
    of_memory = [_part(one, known, sources) for one in remembered]
    parts = [_own("system", f"{prompt.system}\n{frame}"), *(p for p in of_memory if p["part"] != "history")]
    parts += [_own("evidence", shown)] if shown else []
    parts += [*(p for p in of_memory if p["part"] == "history"), _own("question", run.message)]
    return Rows(parts, run.message, prompt_blocks)


def blame(run: Recording) -> Rows:
    """Which memory, from which turn, probably stood behind which sentence of the answer."""
    from workbench.graphs.roles import told_evidence

    known, sources = _known(run), _Sources(run)
    parts = [_part(one, known, sources) for one in run.remembered if one["why"] != "left_out"]
    of = {part["id"]: part for part in parts}
    rows = list[Blamed]()
    for one in run.obeyed:
        memory_id = one["memory_id"]
        now: Any = {**_own("core", one["told"]), "id": memory_id, **sources.of_run()}  # said in this very message
        part = of.get(memory_id) or now
        rows.append(_blamed("", "obeyed", 1.0, part))
    texts = {n: told_evidence([piece], 1) for n, piece in enumerate(run.evidence, 1)}
    asked = _words(run.message)
    stated = [one["sentence"] for one in run.support]  # without what is said there of their sources
    for sentence in stated or marked_sentences(run.answer):
        rows += _behind(sentence, parts, texts, asked)
    return Rows(rows, run.message, blame_blocks)


def _behind(sentence: str, parts: Sequence[Part], texts: Mapping[int, str], asked: frozenset[str]) -> list[Blamed]:
    """The memories that a sentence quotes, or with which it shares words that nothing else has."""
    bare = _MARKS.sub("", sentence).strip()
    cited = [texts[int(n)] for n in re.findall(r"\[(\d+)\]", sentence) if int(n) in texts]
    quotes = [fold(q).strip("… ") for q in _QUOTED.findall(bare)]
    words = _words(bare)
    own = words - asked - _words("\n".join(cited or texts.values()))
    found = list[tuple[float, int, str, Part]]()
    for number, part in enumerate(parts):
        said, shared = fold(part["text"]), own & _words(part["text"])
        share = len(shared) / len(words) if words else 0.0
        if any(quote in said for quote in quotes):
            found.append((-1.0, number, "quoted", part))
        elif len(shared) >= _SHARED and share >= _LEAST:
            found.append((-share, number, "words", part))
    found.sort(key=lambda one: one[:2])
    told = [one for one in found if one[2] == found[0][2]][:_MOST]  # beside what is quoted, shared words say nothing
    return [_blamed(sentence, how, -share, part) for share, _, how, part in told]


def _blamed(sentence: str, how: str, share: float, part: Part) -> Blamed:
    told: Any = {name: part[name] for name in ("part", "id", "text", "at", "session", "turn")}
    return cast(Blamed, {"sentence": sentence, "how": how, "share": round(share, 3), **told})


def _words(text: str) -> frozenset[str]:
    return content_stems(simplified(text))


def _own(name: str, text: str) -> Part:
    """A part that is none of memory."""
    told: Any = {"part": name, "id": name, "text": text, "tokens": estimated_tokens(text), "kept": True, "why": ""}
    return cast(Part, {**told, "at": "", "author": "", "session": "", "turn": None})


def _part(one: Mapping[str, Any], known: Mapping[str, Mapping[str, Any]], sources: _Sources) -> Part:
    row = known.get(one["id"], {})
    message_id = one["id"] if one["part"] == "history" else row.get("message_id") or row.get("user_message_id") or ""
    told: Any = {name: one[name] for name in ("part", "id", "text", "tokens", "kept", "why", "at")}
    return cast(Part, {**told, "author": str(row.get("author", "")), **sources.of(str(message_id))})


def _known(run: Recording) -> dict[str, Mapping[str, Any]]:
    """Memories, episodes and the summary as the run recalled them, by id."""
    recalled = next((e.value for e in run.tape() if (e.kind, e.name) == ("memory", "recall")), None) or {}
    summary = recalled.get("summary")
    rows = [
        *recalled.get("memories", ()),
        *recalled.get("episodes", ()),
        *([{**summary, "id": "summary"}] if summary else []),
    ]
    return {str(row["id"]): row for row in rows}


class _Sources:
    """Where messages stand: in which conversation, as which turn."""

    def __init__(self, run: Recording):
        self._run, self._store = run, run._work.driver(run.run_id).conversations

    def of(self, message_id: str) -> Any:
        """``session`` and ``turn`` of a message; nothing where there is none, or none any more."""
        row = self._store.source(message_id) if message_id else None
        return {"session": row["session_id"] if row else "", "turn": int(row["turn"]) if row else None}

    def of_run(self) -> Any:
        """Those of the run's own question."""
        return self.of(self._store.message_id(self._run.conversation_id, f"{self._run.run_id}:user"))
