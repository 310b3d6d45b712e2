"""A new run made from another: what is edited, what of the recording still holds, and what it will cost.

A fork begins at START with the same message, settings and history. Its tape answers whatever the edit does not touch,
so only what depends on the edit is done again; the run that it came from never changes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from itertools import dropwhile
from typing import Any, NotRequired, TypedDict

from pydantic import SecretStr

from workbench.errors import RunError, UnknownKnowledge, refusing, shown
from workbench.graphs.reviewers import repeat_answer
from workbench.knowledge.dated import dated
from workbench.models.wire import hidden
from workbench.plans import Plan
from workbench.records.store import ENDED, RunRow
from workbench.records.tape import answered, begun, read
from workbench.runs.stored import Recording, asked_dates, snapshot, tape_sources
from workbench.settings import (
    Settings,
    all_settings,
    flatten_settings,
    merge_settings,
    models_by_role,
)
from workbench.state import Data, Decision, Json, without_none
from workbench.text import clean, iso, unmarked
from workbench.views.plan import titled_diff, words_asked

LONGEST_MESSAGE = 4_000
"""How long a question may be, in characters."""
_MERGED = ("thresholds", "needs", "pieces", "prompts", "results")
"""Edits that are mappings, whose entries take the place of the origin's."""
_LISTS = ("review", "without")
_EDITED = ("plan", "decision", "query", "settings", "at", "answers", "graft", *_LISTS, *_MERGED)
_EDITS = (*_EDITED, "as_of", "known", "mode", "sources", "mismatch", "rest")


def checked_message(message: Any) -> str:
    """Return the message as every store takes it.

    Raises:
        RunError: it is no text, says nothing, or is longer than ``LONGEST_MESSAGE`` characters.
    """
    if not isinstance(message, str):
        raise RunError(f"The message is {shown(message)}, not text. Ask with a string.")
    if len(message) > LONGEST_MESSAGE:
        raise RunError(
            f"The message has {len(message):,} characters; a question may have {LONGEST_MESSAGE:,}. Ask something "
            "shorter, and bring long texts in with `workbench kb add`."
        )
    cleaned = clean(message)
    if not cleaned.strip():
        raise RunError("The message is empty. Ask something.")
    return cleaned


def forked(
    row: RunRow, decisions: Sequence[Decision], new_id: str, edits: Data
) -> tuple[str, Json]:
    """Return the message and the options of a run that is made from another.

    Edits are:

    - ``plan``: takes the place of the first plan; with ``at`` of a plan or step review, of the plan decided on there.
    - ``decision``: ``{"action", "edits"?, "message"?, "note"?}``, in place of the recorded one at ``at``.
    - ``query``: takes the place of the message.
    - ``settings``: single settings that differ.
    - ``at``: a ``review_id``, as ``1-reflect``; the last one when only ``decision`` is given. What was decided before
      it is decided again, what came after it is asked again; so is it itself, when nothing is given in its place.
    - ``mode``: of the tape.
    - ``sources``: other runs whose tapes answer too, after this run's; with this one among them, in their order.
    - ``review``: review points, when not the same.
    - ``mismatch``: for a recorded decision whose proposal has changed: ``ask``, ``stop`` or ``rules``.
    - ``rest``: who answers after the last recorded decision: ``ask`` or ``rules``.
    - ``without``: ids of memories that are not recalled, by which everything may change.
    - ``thresholds``: ``min_evidence`` and ``min_top_score``, when not the same.
    - ``needs``: what is said of needs, when not the same.
    - ``pieces``: marks of pieces of evidence, ``pinned`` or ``struck``, by their keys.
    - ``graft``: what the new run is put together from, which is kept with it.
    - ``prompts``: those that differ, as JSON, by name.
    - ``results``: what is put in place by hand, by ``result_name`` of the effects.
    - ``as_of``, ``known``: the dates of what is true and known, when not the same.
    - ``answers``: decisions in place of the recorded ones, in the order in which they are asked for.

    Args:
        row: the run it is made from.
        decisions: that run's.
        new_id: of the new run.
        edits: see above; None is none.

    Raises:
        RunError: there is no such edit or review point, or a setting is not one, or is a secret.
    """
    edits = without_none(edits)
    if "thresholds" in edits:
        edits["thresholds"] = checked_thresholds(edits["thresholds"])
    if unknown := [name for name in edits if name not in _EDITS]:
        raise RunError(f"Unknown edit {shown(unknown[0])}. Known: {', '.join(_EDITS)}.")
    origin = row["options"]
    mode = edits.get("mode", "fork")
    sources = edits.get("sources", ())
    own = [] if row["run_id"] in sources else [row["run_id"]]
    options = {
        **origin,
        "debug": False,
        "incognito": False,
        "session": f"{origin['session']} ({mode} {new_id})"[:200],
        "tape": {"mode": mode, "sources": [*own, *sources]},
        "settings": merge_settings(
            origin.get("settings", {}), checked(edits.get("settings", {}))
        ),
    }
    options.pop("graft", None)  # what is made of a graft is no graft
    options |= {name: list(edits[name]) for name in _LISTS if name in edits}
    options |= {
        name: {**origin.get(name, {}), **edits[name]} for name in _MERGED if name in edits
    }
    dates = [iso_date(name, edits.get(name)) for name in ("as_of", "known")]
    options["edited"] = [name for name in _EDITED if edits.get(name)]
    if any(dates):
        options["dates"] = dates
        options["edited"].append("dates")
    if "graft" in edits:
        options["graft"] = dict(edits["graft"])
    decided = [dict(d) for d in edits.get("answers", decisions)]
    at = edits.get("at")
    decision = edits.get("decision")
    if at is not None and not decided and not options["review"]:
        raise RunError(
            f"Run {row['run_id']} has no review point. Name one for the new run: review=['reflect']."
        )
    if (plan := edits.get("plan")) is not None:
        plan = (plan if isinstance(plan, Plan) else Plan.load(plan)).dump()
        if at is None:
            options["plan"] = plan
        else:
            decision = {"action": "edit", "edits": {"plan": plan}}
    if decision is not None:
        decided = _decided(decided, decision, at)
    elif at is not None:
        decided = decided[: _place(decided, at)[0]]
    how = {name: edits.get(name, "ask") for name in ("mismatch", "rest")}
    query = checked_message(edits["query"]) if "query" in edits else row["message"]
    return query, {**options, "decisions": decided, **how}


def iso_date(name: str, value: Any) -> str:
    """Return a date as ISO; "" where none is given.

    >>> iso_date("as_of", "March 2003"), iso_date("known", None)
    ('2003-03', '')

    Raises:
        RunError: it is no date.
    """
    date = iso(value)
    if value not in ("", None) and not date:
        raise RunError(
            f"{name} is {shown(value)}, which is no date. Give a year, a month or a day: '2003-05'."
        )
    return date


def checked_thresholds(value: Any) -> dict[str, float]:
    """Return thresholds in place of the intent's, of which each is optional.

    Raises:
        RunError: it is not one, or has no such value.
    """
    if value is None or value == {}:
        return {}
    from workbench.graphs.review import Thresholds

    with refusing("thresholds"):
        return Thresholds.model_validate(value).model_dump(exclude_none=True)


def _decided(decisions: list[Json], decision: Data, at: str | None) -> list[Json]:
    """Return the decisions before ``at``, and the new one there."""
    number, point = _place(decisions, at)
    repeat_answer({"point": point, **decision})  # refuses an invalid decision
    return [*decisions[:number], {"point": point, "who": "fork", **decision}]


def _place(decisions: list[Json], at: str | None) -> tuple[int, str]:
    """Return the number and the point of a review: of a decision, or of the next one.

    Raises:
        RunError: there is no such review point.
    """
    ids = [d["review_id"] for d in decisions]
    if at is None and not ids:
        raise RunError(
            "This run decided nothing that could be decided otherwise. Name the review point with `at`."
        )
    place = ids[-1] if at is None else at
    number, _, point = str(place).partition("-")
    if place not in ids and (number != str(len(ids)) or not point):
        raise RunError(
            f"No review point {place!r} in this run. It has: {', '.join(ids) or 'none'}."
        )
    return int(number), point


def checked(settings: Data) -> Json:
    """Return the edits of settings, as JSON.

    Raises:
        SettingsError: unknown, or a value that is not allowed.
        RunError: a secret, which is never written down with a run.
    """
    fields = all_settings().model_fields
    secret = [
        name
        for name, value in settings.items()
        if name in fields
        and (fields[name].annotation is SecretStr or ("://" in str(value) and hidden(str(value))))
    ]
    if secret:
        raise RunError(
            f"{secret[0]} is a secret and is not kept with a run. Set it where the workspace is opened."
        )
    loaded = Settings.load(**settings).model_dump(mode="json") if settings else {}
    # without those of the environment
    loaded["models"] = models_by_role(settings.get("models", {}))
    return {name: loaded[name] for name in settings}


class Forecast(TypedDict):
    """The forecast of a fork.

    ``steps`` has for each step of the plan ``{"step_id", "tool", "replayed", "runs", "p50_s", "p90_s"}``: the tape
    answers it, it runs again, or neither, where it waits to be activated. ``seconds`` is for the steps that run, along
    its critical path, at both quantiles; ``basis`` is how many past calls that rests on.
    ``tokens``, where models read what steps had found, is what that was, since they read again what is found again.
    """

    steps: list[Json]
    seconds: dict[str, float]
    basis: int
    tokens: NotRequired[int]


def forecast(run: Recording, plan: Plan, activated: Iterable[str] = ()) -> Forecast:
    """Return what a plan would take as the plan of this run: the steps that run, and their seconds (P50, P90).

    A run that has not ended continues with the plan, one that has is forked with it.

    Args:
        run: the run.
        plan: the plan.
        activated: conditional steps that will be woken, besides those that were.
    """
    sources = tape_sources(run.options)
    effects = [
        *run.tape(),
        *(effect for run_id in sources for effect in read(run._store, run_id)),
    ]
    versions = dict[str, str]()
    records = run.records
    state = run.state
    kb = state.get("kb_prefix", "")
    dates = asked_dates(run)
    for name in {
        kb,
        *(str(s.tool_input["kb_prefix"]) for s in plan.steps if s.tool_input.get("kb_prefix")),
    }:
        with suppress(UnknownKnowledge):  # then what the tape says of it holds
            versions[name] = dated(run._workspace.knowledge.get(name), dates).fingerprint()
    ended = () if run.status in ENDED else records
    taped = answered(plan, effects, records, kb, versions)
    starts = {
        step.step_id
        for step in plan.ahead(ended, [*state.get("activated", []), *activated], taped)
    }
    history = run._store.tool_seconds()
    rows = list[Json]()
    basis = 0
    for step_id, end in taped.items():
        tool = plan.step(step_id).tool
        runs = step_id in starts
        past = history.get(tool, ()) if runs else ()
        basis += len(past)
        p50, p90 = _quantiles(past)
        row = {"step_id": step_id, "tool": tool, "replayed": bool(end), "runs": runs}
        rows.append({**row, "p50_s": p50, "p90_s": p90})
    seconds = {}
    for name in ("p50", "p90"):
        taken = {row["step_id"]: row[f"{name}_s"] for row in rows}
        seconds[name] = round(sum(taken[step_id] for step_id in plan.critical_path(taken)), 3)
    estimate = Forecast(steps=rows, seconds=seconds, basis=basis)
    # what models read and wrote after the first step: for a reflection, for an answer
    later = dropwhile(lambda effect: effect.kind != "tool", effects)
    tokens = sum(effect.tokens for effect in later if effect.kind in ("model", "handler"))
    if tokens and basis:
        estimate["tokens"] = tokens
    return estimate


def _quantiles(seconds: Sequence[float]) -> tuple[float, float]:
    """Return the median and the ninth decile.

    >>> _quantiles([1.0]), _quantiles([]), _quantiles([1.0, 3.0, 2.0])
    ((1.0, 1.0), (0.0, 0.0), (2.0, 3.0))
    """
    rising = sorted(seconds) or [0.0]
    return round(rising[len(rising) // 2], 3), round(rising[int(0.9 * len(rising))], 3)


# --- The family of a run: what it was made from, and what was made of that, each with what was changed ---


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
        asked = words_asked(origin.state)
        versions = (titled_diff(version["plan"], plan, asked) for version in origin.plans)
        changed["plan"] = min(versions, key=lambda diff: len(str(diff)), default={})
    if {"at", "decision"} & changed.keys():
        number = len(after["decisions"]) - bool({"plan", "decision"} & changed.keys())
        decided = fork.decisions[number:]
        places = [decision["review_id"] for decision in (*decided, *origin.decisions[number:])]
        changed = {k: v for k, v in changed.items() if k not in ("at", "plan", "decision")}
        changed["decision"] = [next(iter(places), ""), next(iter(decided), None)]
    return changed
