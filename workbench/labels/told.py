"""Edits in a few words: what a person changed at a review point, on one line."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from workbench.plan_edits import edit_of

if TYPE_CHECKING:
    from workbench.labels import Labels

_SIGNS = (("added", "+"), ("changed", "~"), ("removed", "−"))


def plan_edit_told(edit: Mapping[str, Sequence[str]]) -> str:
    """Which steps an edit adds, changes and takes out.

    >>> plan_edit_told({"added": ["step_3"], "changed": ["step_0"], "removed": []})
    '+step_3 ~step_0'
    """
    return " ".join(f"{sign}{name}" for kind, sign in _SIGNS for name in edit[kind])


def edits_told(edits: Mapping[str, Any], proposal: Mapping[str, Any], labels: Labels) -> list[str]:
    """Each edit as a name and what it became; a plan by its steps beside the plan that was proposed.

    Args:
        edits: of a decision.
        proposal: what it was an answer to.
        labels: the words.
    """
    return [f"{name}{labels('colon')}{_value(name, value, proposal)}" for name, value in edits.items()]


def _value(name: str, value: Any, proposal: Mapping[str, Any]) -> str:
    if name == "plan" and isinstance(value, Mapping):
        return plan_edit_told(edit_of(proposal.get("plan"), value))
    if name == "next_steps" and isinstance(value, list):
        return " ".join(f"+{step['step_id']}" for step in value)
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True)
