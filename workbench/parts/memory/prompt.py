"""What a run had of memory: of which parts its prompt is made, and what was left out of it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from workbench.parts.memory.service import find_store
from workbench.parts.memory.views import Rows, prompt_blocks
from workbench.records.tape import begun, estimated_tokens
from workbench.runs.recording import prompts_of, recorded
from workbench.settings import Settings
from workbench.state import Data, Json
from workbench.text import detect_language

if TYPE_CHECKING:
    from workbench.runs.recording import Recording

Row = Json


def prompt_parts(run: Recording) -> Rows:
    """Return the parts of the writer's prompt in their order, and what of memory was left out of it, with why.

    Where no model writes it is what one would be sent. A row has ``part`` (``system``, ``core``, ``summary``,
    ``episode``, ``evidence``, ``history`` or ``question``), ``id``, ``text``, ``tokens`` (``estimated_tokens``),
    ``kept``, ``why`` not (``budget``, ``enough``, ``left_out`` or ``struck``), ``at``, ``author``, and the ``session``
    and ``turn`` in which it was said.
    """
    from workbench.graphs.roles import evidence_text

    run = recorded(run)
    prompt = prompts_of(run).for_language("writer", "zh" if detect_language(run.message) == "zh" else "en")
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
    store = find_store(run._workspace, run.run_id)
    for entry in run.state.get("remembered", []):
        row: Data = rows.get(entry["id"], {})
        own = entry["id"] if entry["part"] == "history" else ""
        message_id = own or row.get("message_id") or row.get("user_message_id") or ""
        part = {name: value for name, value in entry.items() if name != "score"}
        where = store.source(str(message_id))
        yield {**part, "author": str(row.get("author", "")), "session": where["session"], "turn": where["turn"]}
