"""What a run had of memory: of which parts its prompt is made, and what was left out of it."""

from __future__ import annotations

import re

from workbench.parts.memory.recall import prompt_part
from workbench.parts.memory.service import find_store
from workbench.parts.memory.views import Rows, prompt_blocks
from workbench.records.tape import begun
from workbench.runs.stored import Recording, prompts_of, snapshot
from workbench.settings import Settings
from workbench.state import Remembered
from workbench.text import detect_language


def prompt_parts(run: Recording) -> Rows:
    """Return the parts of the writer's prompt in their order, and what of memory was left out of it, with why.

    Where no model writes it is what one would be sent. A row has ``part`` (``system``, ``core``, ``summary``,
    ``episode``, ``evidence``, ``history`` or ``question``), ``id``, ``text``, ``tokens`` (``estimated_tokens``),
    ``kept``, ``why`` not (``budget``, ``enough`` or ``left_out``), ``sent`` (to a model), ``at``, ``author``, and the
    ``session`` and ``turn`` in which it was said, its ``content``, the ``conditions`` that it became, how many
    documents they ``left_out``, whether it is ``quoted`` in the answer, and ``unused``: the rules, which alone worked,
    did neither.
    """
    from workbench.graphs.slots import evidence_text

    run = snapshot(run)
    prompt = prompts_of(run).for_language("writer", detect_language(run.message))
    default = Settings.model_fields["merge_max_characters"].default
    limit = (begun(run.tape()).get("settings") or {}).get("merge_max_characters") or default
    frame = re.sub(r"\$\{?\w+\}?", "", prompt.user)
    store = find_store(run._workspace, run.run_id)
    calls = run.calls()
    question = (run.state.get("route_decision") or {}).get("question") or {}
    quoted = (run.state.get("recalls") or {}).get("notes") or ()
    by_rules = not calls and "report" not in run.options
    sent = any(call["role"] == "writer" for call in calls)
    recalled = run.state.get("remembered", [])
    parts = [
        _part("system", f"{prompt.system}\n{frame}"),
        *(part for part in recalled if part["part"] != "history"),
    ]
    if run.evidence:
        parts.append(_part("evidence", evidence_text(run.evidence, int(limit))))
    parts += [part for part in recalled if part["part"] == "history"]
    rows = []
    for part in [*parts, _part("question", run.message)]:
        row = {**part, **store.source(part["message_id"]), "sent": sent}
        row["conditions"] = question.get("preferences", {}).get(part["id"], [])
        row["left_out"] = question.get("left_out", {}).get(part["id"])
        row["quoted"] = part["id"] in quoted
        used = row["conditions"] or row["quoted"]
        row["unused"] = by_rules and part["part"] == "core" and not used
        rows.append(row)
    return Rows(rows, run.message, prompt_blocks)


def _part(name: str, text: str) -> Remembered:
    """Return a part that is not of memory."""
    return prompt_part(name, text, {"id": name, "created_at": ""})
