"""What a run had of memory: of which parts its prompt is made, and which memory stood behind which sentence.

Blame is read off the texts, no model is asked: a sentence that quotes what was remembered, or shares words with it that
neither the evidence nor the question has, probably comes from there; a preference that became a condition stands behind
the whole answer. It says *probably*: a fork without the memory shows what it really changed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from workbench.language.citing import marked_sentences
from workbench.parts.memory.service import find_store
from workbench.parts.memory.views import Rows, blame_blocks, prompt_blocks
from workbench.records.conversations import SqlConversations
from workbench.records.tape import begun, estimated_tokens
from workbench.settings import Settings
from workbench.state import Data, Json
from workbench.text import content_stems, detect_language, fold, simplified

if TYPE_CHECKING:
    from workbench.runs.recording import Recording

Row = Json
_QUOTED = re.compile(r"[“\"「]([^”\"」]{4,})[”\"」]")
_MARKS = re.compile(r"\s?\[\d+\]")
_SHARED, _MIN_SHARE, _LIMIT = 2, 0.25, 2
"""Own words of a sentence that a memory has at least; their share of the sentence's; memories named for it."""


def prompt_parts(run: Recording) -> Rows:
    """Return the parts of the writer's prompt in their order, and what of memory was left out of it, with why.

    Where no model writes it is what one would be sent. A row has ``part`` (``system``, ``core``, ``summary``,
    ``episode``, ``evidence``, ``history`` or ``question``), ``id``, ``text``, ``tokens`` (``estimated_tokens``),
    ``kept``, ``why`` not (``budget``, ``enough``, ``left_out`` or ``struck``), ``at``, ``author``, and the ``session``
    and ``turn`` in which it was said.
    """
    from workbench.graphs.roles import evidence_text

    run = run.recording()
    prompt = run.prompts.for_language("writer", "zh" if detect_language(run.message) == "zh" else "en")
    default = Settings.model_fields["merge_max_characters"].default
    limit = (begun(run.tape()).get("settings") or {}).get("merge_max_characters") or default
    frame = re.sub(r"\$\{?\w+\}?", "", prompt.user)
    struck = run.state.get("struck") or []
    recalled = [{**p, "kept": False, "why": "struck"} if p["id"] in struck else p for p in _recalled(run)]
    parts = [_part("system", f"{prompt.system}\n{frame}"), *(p for p in recalled if p["part"] != "history")]
    if run.evidence:
        parts.append(_part("evidence", evidence_text(run.evidence, int(limit))))
    parts += [*(p for p in recalled if p["part"] == "history"), _part("question", run.message)]
    return Rows(parts, run.message, prompt_blocks)


def blame(run: Recording) -> Rows:
    """Return which memory probably stood behind which sentence of the answer.

    A row has the ``sentence`` ("" for the whole answer), ``how`` (``quoted`` there, its ``words`` there, or
    ``obeyed``), the ``share`` of the sentence's words, and ``part``, ``id``, ``text``, ``at``, ``session`` and ``turn``
    of the memory.
    """
    from workbench.graphs.roles import evidence_text

    run = run.recording()
    recalled = [part for part in _recalled(run) if part["why"] != "left_out"]
    by_id = {part["id"]: part for part in recalled}
    rows = list[Row]()
    for entry in run.applied_preferences:
        memory = by_id.get(entry["memory_id"])
        if memory is None:  # said in this very message
            own = SqlConversations.message_id(run.row["conversation_id"], f"{run.run_id}:user")
            memory = {**_part("core", entry["told"]), "id": entry["memory_id"], **_source(run, own)}
        rows.append(_blamed("", "obeyed", 1.0, memory))
    evidence = {str(n): evidence_text([piece], 1) for n, piece in enumerate(run.evidence, 1)}
    stated = [entry["sentence"] for entry in run.support]  # without what is said there of their sources
    for sentence in stated or marked_sentences(run.answer):
        cited = [evidence[n] for n in re.findall(r"\[(\d+)\]", sentence) if n in evidence]
        other_words = _words("\n".join([run.message, *(cited or evidence.values())]))
        rows += _behind(sentence, recalled, other_words)
    return Rows(rows, run.message, blame_blocks)


def _behind(sentence: str, recalled: Sequence[Row], other_words: frozenset[str]) -> list[Row]:
    """Return the memories that a sentence quotes, else those with which it shares words that nothing else has."""
    bare = _MARKS.sub("", sentence).strip()
    quotes = [fold(quote).strip("… ") for quote in _QUOTED.findall(bare)]
    quoted = [part for part in recalled if any(quote in fold(part["text"]) for quote in quotes)]
    if quoted:
        return [_blamed(sentence, "quoted", 1.0, part) for part in quoted[:_LIMIT]]
    words = _words(bare)
    shared = [(len((words - other_words) & _words(part["text"])), part) for part in recalled]
    shared = [(n, part) for n, part in shared if n >= _SHARED and n / len(words) >= _MIN_SHARE]
    shared.sort(key=lambda pair: -pair[0])
    return [_blamed(sentence, "words", n / len(words), part) for n, part in shared[:_LIMIT]]


def _blamed(sentence: str, how: str, share: float, part: Row) -> Row:
    of_part = {name: part[name] for name in ("part", "id", "text", "at", "session", "turn")}
    return {"sentence": sentence, "how": how, "share": round(share, 3), **of_part}


def _words(text: str) -> frozenset[str]:
    return content_stems(simplified(text))


def _part(name: str, text: str) -> Row:
    """Return a part that is not of memory."""
    row = {"part": name, "id": name, "text": text, "tokens": estimated_tokens(text), "kept": True, "why": ""}
    return {**row, "at": "", "author": "", "session": "", "turn": None}


def _recalled(run: Recording) -> Iterator[Row]:
    """Yield what was recalled, with who noted it and where it was said."""
    tape = next((e.value for e in run.tape() if (e.kind, e.name) == ("memory", "recall")), None) or {}
    rows = {str(row["id"]): row for row in (*tape.get("memories", ()), *tape.get("episodes", ()))}
    if summary := tape.get("summary"):
        rows["summary"] = summary
    for entry in run.state.get("remembered", []):
        row: Data = rows.get(entry["id"], {})
        own = entry["id"] if entry["part"] == "history" else ""
        message_id = own or row.get("message_id") or row.get("user_message_id") or ""
        part = {name: value for name, value in entry.items() if name != "score"}
        yield {**part, "author": str(row.get("author", "")), **_source(run, str(message_id))}


def _source(run: Recording, message_id: str) -> Row:
    """Return ``session`` and ``turn`` of a message; nothing where there is none, or none any more."""
    row = find_store(run.workspace, run.run_id).source(message_id) if message_id else None
    return {"session": row["session_id"] if row else "", "turn": int(row["turn"]) if row else None}
