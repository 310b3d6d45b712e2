"""The family of a run: what it was made from, and what was made of that, each with what was changed."""

from __future__ import annotations

from workbench.plans import Plan
from workbench.records.tape import begun
from workbench.runs.stored import Recording, snapshot
from workbench.settings import flatten_settings
from workbench.state import Json, drop
from workbench.text import unmarked
from workbench.views.plan import titled_diff, words_asked


def family(run: Recording) -> list[Json]:
    """Return a line (``wb.runs.lines``) per run of a family, oldest first; of a run without relatives only its own."""
    [line] = run._work.lines([run.run_id])
    root = [run.run_id, *line["origins"]][-1]
    return [
        *run._work.lines([root]),
        *reversed(run._workspace.runs.lines(100, origin=root)),
    ]


def details(run: Recording, origin: str) -> Json:
    """Return what a run has cost (``wb.runs.costs``), and how it differs from the one that it was made from.

    ``changes`` are those of ``fork_changes``; ``answer_changed`` is None while there is none to compare, and
    ``first_change`` its first line that the other answer lacks; other numbers of the same passages are no change.
    """
    pair = _with_origin(run, origin)
    answers = [unmarked(each.answer).splitlines() for each in pair]
    before, after = answers or ([], [])
    differs = {*before} != {*after} if before and after else None
    first = next((line for line in after if line not in before), "")
    costs = run._workspace.runs.costs(run.run_id)
    changed = changes(*pair) if pair else None
    return costs | {"changes": changed, "answer_changed": differs, "first_change": first}


def fork_changes(run: Recording, origin: str | None) -> Json | None:
    """Return the ``changes`` of a fork; None for a run of its own or of a recorded graph, and without the origin."""
    pair = _with_origin(run, origin)
    return changes(*pair) if pair else None


def _with_origin(run: Recording, origin: str | None) -> list[Recording]:
    """Return a fork after its origin, each read once; nothing where there are no ``changes``."""
    if not origin or run.row["graph"] or origin not in run._workspace.runs:
        return []
    return [snapshot(run, origin), snapshot(run)]


def changes(origin: Recording, fork: Recording) -> Json:
    """Return what was edited for a fork, by the name of the edit: what it was, and what it is.

    A ``plan`` is as ``titled_diff`` has it, against the version that it is most like; a ``decision`` is the review
    point and what the fork decided there, None where it has not.
    """
    after = fork.options
    changed: Json = {
        name: [origin.options.get(name) or {}, after.get(name)]
        for name in after.get("edited", [])
    }
    if "query" in changed:
        changed["query"] = [origin.message, fork.message]
    if "settings" in changed:
        saved = [begun(run.tape()).get("settings", {}) for run in (origin, fork)]
        changed["settings"] = [flatten_settings(settings) for settings in saved]
    if "plan" in changed and "at" not in changed:
        plan = Plan.load(after["plan"])
        words = words_asked(origin.state)
        versions = (titled_diff(version["plan"], plan, words) for version in origin.plans)
        changed["plan"] = min(versions, key=lambda diff: len(str(diff)), default={})
    if {"at", "decision"} & changed.keys():
        number = len(after["decisions"]) - bool({"plan", "decision"} & changed.keys())
        decided = fork.decisions[number:]
        places = [decision["review_id"] for decision in (*decided, *origin.decisions[number:])]
        decision = [next(iter(places), ""), next(iter(decided), None)]
        changed = {**drop(changed, "at", "plan", "decision"), "decision": decision}
    return changed
