"""Ask the person at the terminal what a run asks: approve, edit, stop here, respond, or leave it waiting."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from workbench.cli.page import Page

if TYPE_CHECKING:
    from workbench.labels import Labels
    from workbench.run import Run

KEYS = {"a": "approve", "e": "edit", "s": "reject", "r": "respond", "q": "leave"}
EDITABLE = {
    "plan": ("plan", "query", "thresholds"),
    "step": ("plan", "query", "thresholds"),
    "reflect": ("next_steps", "activate", "rewrite_query", "should_continue", "thresholds"),
}
"""Review point -> what can be changed there; fields that the proposal does not hold begin empty."""
EMPTY: Mapping[str, Any] = {"query": "", "thresholds": {}}


def decide(page: Page, run: Run) -> dict[str, Any] | None:
    """The person's answer in the middleware's shape; None when the run is left waiting."""
    from workbench.labels import labels_for
    from workbench.reviewers import answer
    from workbench.show import outline

    request, labels = run.review, labels_for(run.message)
    if request is None:
        return None
    page.show(outline(run.to_dict(), ("plan", "reflections", "review")), page.err)
    try:
        while True:
            action = _choose(page, labels)
            if action == "leave":
                return None
            edits, message = None, ""
            if action == "edit":
                edits = edited(page, request, labels)
                if not edits:
                    page.say(labels("nothing_changed"), "yellow")
                    continue
            if action == "respond":
                message = click.prompt(labels("your_words"), prompt_suffix=" ", err=True)
            note = click.prompt(labels("why"), default="", show_default=False, prompt_suffix=" ", err=True)
            return answer(action, point=request["point"], edits=edits, message=message, note=note)
    except click.Abort:  # Ctrl-C or the end of the input: the run waits as before
        page.say("")
        return None


def _choose(page: Page, labels: Labels) -> str:
    """One letter, asked for until it is one of ours."""
    choices = "  ".join(f"[{key}] {labels(action)}" for key, action in KEYS.items())
    while True:
        page.say(choices, "bold")
        given = click.prompt(">", prompt_suffix=" ", err=True).strip().lower()
        if given in KEYS:
            return KEYS[given]
        if given in KEYS.values():
            return given
        page.say(labels("choose_one", keys=", ".join(KEYS)), "yellow")


def edited(page: Page, request: Mapping[str, Any], labels: Labels) -> dict[str, Any]:
    """What the person changed in the proposal, with their editor; broken JSON is explained and opened again."""
    from workbench.text import visible_json

    proposal = request["action_requests"][0]["args"]
    before = {name: proposal.get(name, EMPTY.get(name)) for name in EDITABLE[request["point"]]}
    text: str | None = visible_json(json.dumps(before, ensure_ascii=False, indent=2)) + "\n"
    while True:
        text = click.edit(text, extension=".json", require_save=True)
        if text is None:
            return {}
        try:
            return changes(before, text)
        except ValueError as error:
            page.say(str(error), "red")
            if not click.confirm(labels("edit_again"), default=True, err=True):
                return {}


def changes(before: Mapping[str, Any], text: str) -> dict[str, Any]:
    """The fields of a JSON object that are not as they were.

    Raises:
        ValueError: says where the JSON breaks, or which field cannot be changed here.

    >>> changes({"query": "", "thresholds": {}}, '{"query": "only comedies", "thresholds": {}}')
    {'query': 'only comedies'}
    """
    try:
        after = json.loads(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"This is not JSON: line {error.lineno}, column {error.colno}: {error.msg}.") from None
    except (ValueError, RecursionError) as error:
        raise ValueError(f"This cannot be used: {error}.") from None
    if not isinstance(after, dict):
        raise ValueError('An edit is a JSON object: {"query": "..."}.')
    unknown = sorted(set(after) - set(before))
    if unknown:
        raise ValueError(f"{unknown[0]!r} cannot be changed here. Known: {', '.join(before)}.")
    return {name: value for name, value in after.items() if value != before[name]}
