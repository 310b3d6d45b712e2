"""Edits in words: of a plan, of a decision."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from workbench.plans import Plan
from workbench.state import Data
from workbench.views.labels import Labels
from workbench.views.markup import cut, draw, step_name
from workbench.views.plan import item_text, titled_diff

_TITLES = ("form", "input", "field", "role", "setting")
"""The beginnings of the labels of fields: of a step, of its tool, of an answer; the model of a role, and settings."""


def fork_name(changes: Data | None, labels: Labels) -> str:
    """Return what was changed for a fork (``family.changes``), its name wherever it is shown; empty without any."""
    words = {"plan": plan_change_texts, "decision": decision_texts, "fields": field_changes}
    return draw("parts.fork_name", labels, changes=changes, words=words).striptags()


def decision_texts(decision: Data, labels: Labels) -> list[str]:
    """Return the edits of a decision, and what was said with it."""
    quoted = [f"“{text}”" for text in (decision["message"], decision["note"]) if text]
    return [*edit_texts(decision["edits"], decision["proposal"], labels), *quoted]


def edit_texts(edits: Data, proposal: Data, labels: Labels) -> list[str]:
    """Return each edit as a name and its value; a plan by its differences to the proposed one.

    Args:
        edits: of a decision.
        proposal: of the decision.
        labels: the words.
    """
    texts = {name: _edit_value(name, value, proposal, labels) for name, value in edits.items()}
    return [
        text if name == "plan" else f"{labels.get(f'edited_{name}', name)}{labels('colon')}{text}"
        for name, text in texts.items()
    ]


def _edit_value(name: str, value: Any, proposal: Data, labels: Labels) -> str:
    if name == "plan" and proposal.get("plan"):
        plans = Plan.load(proposal["plan"]), Plan.load(value)
        return labels("semicolon").join(plan_change_texts(titled_diff(*plans), labels))
    if isinstance(value, list) and all(isinstance(item, Mapping) for item in value):
        return " · ".join(str(item.get("title", item.get("step_id"))) for item in value)
    if isinstance(value, bool):
        return labels("form_yes" if value else "form_no")
    if isinstance(value, Mapping):
        return labels("comma").join(
            f"{field_title(key, labels)} = {labels.get(f'need_{each}', cut(each))}"
            for key, each in value.items()
        )
    return cut(value, 1000)


def plan_change_texts(changes: Data, labels: Labels) -> Iterator[str]:
    """Yield one text per changed step of ``titled_diff``."""
    titles = changes["titles"]
    for kind, sign in (("added", "+"), ("removed", "−")):
        for step_id in changes.get(kind, ()):
            yield f"{sign} {titles[step_id]}"
    for step_id, fields in changes.get("changed", {}).items():
        lines = labels("comma").join(field_changes(fields, labels, titles))
        yield f"{titles[step_id]}{labels('colon')}{lines}"


def field_changes(
    fields: Mapping[str, Sequence[Any]], labels: Labels, titles: Mapping[str, str] = {}
) -> Iterator[str]:
    """Yield one line per changed field of a step; only the differing part of its budget and its tool's input."""
    for name, (old, new) in fields.items():
        pairs = {name: (old, new)}
        if isinstance(old, Mapping) and isinstance(new, Mapping):
            pairs = {key: (old.get(key), new.get(key)) for key in dict.fromkeys([*old, *new])}
        for key, (before, after) in pairs.items():
            if before != after:
                title = field_title(key, labels)
                old = "" if before is None else f"{_brief(before, labels, titles)} → "
                yield step_name(f"{title}{labels('colon')}{old}{_brief(after, labels, titles)}")


def field_title(name: str, labels: Labels) -> str:
    """Return the name of a field or of a setting in words."""
    words = (f"{kind}_{name.removeprefix('models.')}" for kind in _TITLES)
    return next((labels(word) for word in words if labels.get(word, "")), name)


def _brief(value: Any, labels: Labels, titles: Mapping[str, str]) -> str:
    if value in (None, [], ""):
        return labels("plan_nothing")
    if isinstance(value, list):
        items = map(item_text, value)
        value = labels("comma").join(titles.get(item, item) for item in items)
    return cut(value)
