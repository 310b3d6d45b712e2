"""What a run had of memory: of which parts its prompt is made, and what was left out of it."""

from __future__ import annotations

import re

from workbench.parts.memory.service import find_store
from workbench.parts.memory.views import Rows, prompt_blocks
from workbench.records.tape import begun, estimated_tokens
from workbench.runs.stored import Recording, prompts_of, snapshot
from workbench.settings import Settings
from workbench.state import Json
from workbench.text import detect_language


def prompt_parts(run: Recording) -> Rows:
    """Return the parts of the writer's prompt in their order, and what of memory was left out of it, with why.

    Where no model writes it is what one would be sent. A row has ``part`` (``system``, ``core``, ``summary``,
    ``episode``, ``evidence``, ``history`` or ``question``), ``id``, ``text``, ``tokens`` (``estimated_tokens``),
    ``kept``, ``why`` not (``budget``, ``enough`` or ``left_out``), ``sent`` (to a model), ``at``, ``author``, and the
    ``session`` and ``turn`` in which it was said. What was recalled has its ``content``; the ``conditions`` that it
    became; whether it is ``quoted`` in the answer, and ``unused``: the rules, which alone worked, did neither.
    """
    from workbench.graphs.slots import evidence_text

    run = snapshot(run)
    prompt = prompts_of(run).for_language(
        "writer", "zh" if detect_language(run.message) == "zh" else "en"
    )
    default = Settings.model_fields["merge_max_characters"].default
    limit = (begun(run.tape()).get("settings") or {}).get("merge_max_characters") or default
    frame = re.sub(r"\$\{?\w+\}?", "", prompt.user)
    store = find_store(run._workspace, run.run_id)
    recalled = [
        {**part, **store.source(part["message_id"])} for part in run.state.get("remembered", [])
    ]
    calls = run.calls()
    question = (run.state.get("route_decision") or {}).get("question") or {}
    quoted = (run.state.get("recalls") or {}).get("notes") or ()
    by_rules = not calls and "report" not in run.options
    for part in recalled:
        part["conditions"] = question.get("preferences", {}).get(part["id"], [])
        part["quoted"] = part["id"] in quoted
        used = part["conditions"] or part["quoted"]
        part["unused"] = by_rules and part["part"] == "core" and not used
    sent = any(call["role"] == "writer" for call in calls)
    parts = [
        _part("system", f"{prompt.system}\n{frame}"),
        *(p for p in recalled if p["part"] != "history"),
    ]
    if run.evidence:
        parts.append(_part("evidence", evidence_text(run.evidence, int(limit))))
    parts += [*(p for p in recalled if p["part"] == "history"), _part("question", run.message)]
    return Rows([{**part, "sent": sent} for part in parts], run.message, prompt_blocks)


def _part(name: str, text: str) -> Json:
    """Return a part that is not of memory."""
    return {
        "part": name,
        "id": name,
        "text": text,
        "tokens": estimated_tokens(text),
        "kept": True,
        "why": "",
        "at": "",
        "author": "",
        "session": "",
        "turn": None,
    }
