"""The past of a run: every checkpoint of its graph and of the graphs inside it, and what changed in each."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypedDict

from workbench.errors import RunError
from workbench.state import Data, Decision, Json
from workbench.views.blocks import Block
from workbench.views.labels import labels_for
from workbench.views.past import past_blocks
from workbench.views.render import Shown

_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}(?:-[0-9a-f]{4}-[0-9a-f]{12})?")
_BRIEF = 160
_KEYS: Mapping[str, Callable[[Data], str]] = {
    "records": lambda record: f"{record['step_id']}/{record['attempt']}",
    "reflections": lambda reflection: str(reflection["current_iteration"]),
    "decisions": lambda decision: str(decision["review_id"]),
    "steps": lambda step: str(step["step_id"]),
}
"""What tells the entries of a list apart, as the state's reducers do."""


class Change(TypedDict, total=False):
    """What became of one key of the state.

    ``before`` and ``after`` are brief texts; lists whose entries have keys name those that were ``added``, ``changed``
    and ``removed``: records as ``step_id/attempt``, decisions by ``review_id``, reflections by number, a plan by step.
    """

    key: str
    before: str
    after: str
    added: list[str]
    changed: list[str]
    removed: list[str]


@dataclass(frozen=True)
class Checkpoint:
    """One point at which the run stood still long enough to be kept.

    Attributes:
        id: names it; ``Run.fork(at=id)`` takes it.
        graph: ``conversation`` (the parent), ``route`` or ``retrieval`` (its children).
        step: its number within that graph; -1 is the input.
        at: when, UTC, ISO 8601.
        ran: the nodes that led here, one entry a task.
        next: the nodes that come next; empty at the end of a graph.
        asks: the review point at which a person is asked next, as ``1-reflect``; None for none.
        decided: how many decisions were made before it.
        changes: what changed since the one before it in the same graph; None when that one was let go by `gc`.
        values: the whole state as it stood.
    """

    id: str
    graph: str
    step: int
    at: str
    ran: tuple[str, ...]
    next: tuple[str, ...]
    asks: str | None
    decided: int
    changes: tuple[Change, ...] | None
    values: Json = field(repr=False, compare=False)

    def to_dict(self) -> Json:
        """As JSON, without the values."""
        names = ("id", "graph", "step", "at", "ran", "next", "asks", "decided", "changes")
        return json.loads(json.dumps({name: getattr(self, name) for name in names}))


class Past(list[Checkpoint], Shown):
    """The checkpoints of a run, oldest first; as a cell's last expression they can be looked at and forked from.

    Attributes:
        run: whose they are.
    """

    def __init__(self, found: Iterable[Checkpoint], run: Any):
        super().__init__(found)
        self.run, self.message = run, run.message

    def find(self, checkpoint_id: str) -> Checkpoint:
        """Return the checkpoint of that id, or whose id alone begins so.

        Raises:
            RunError: there is none.
        """
        return named(self.run.run_id, self, checkpoint_id)

    def blocks(self) -> list[Block]:
        """As a table."""
        rows = [one.to_dict() for one in self]
        return past_blocks(self.run.to_dict(), rows, labels_for(self.message))


_PRUNED = "`workbench gc` lets the checkpoints of finished runs go. Its plans, records, decisions and answer are kept; "
_PRUNED += "`fork` takes a review point, as at='0-plan'."


def is_checkpoint_id(at: object) -> bool:
    """Return whether this names a checkpoint, not a review point.

    >>> is_checkpoint_id("1f1e61e9-97d6-6783-8006-e12ef8231a3a"), is_checkpoint_id("1-reflect")
    (True, False)
    """
    return isinstance(at, str) and _ID.fullmatch(at) is not None


def checkpoints(found: Sequence[Any]) -> list[Checkpoint]:
    """Return LangGraph's checkpoints of a run, in all its graphs, oldest first, as ours."""
    known = {_id(one): one for one in found}
    above = {_above(one) for one in found}
    return [_checkpoint(one, known, _id(one) in above) for one in found]


def pruned(run_id: str) -> RunError:
    """Return the error of a run whose checkpoints were let go."""
    return RunError(f"The checkpoints of run {run_id} are gone: {_PRUNED}")


def folded(found: Sequence[Checkpoint]) -> list[Json]:
    """Return the checkpoints of a run that has ended as JSON, with their values."""
    return [{**one.to_dict(), "values": json.loads(json.dumps(one.values, default=str))} for one in found]


def unfolded(rows: Sequence[Data]) -> list[Checkpoint]:
    """Return the checkpoints that were folded."""

    def as_tuple(value: Any) -> Any:
        return tuple(value) if isinstance(value, list) else value

    return [Checkpoint(**{name: as_tuple(value) for name, value in row.items()}) for row in rows]


def named(run_id: str, found: Sequence[Checkpoint], checkpoint_id: str) -> Checkpoint:
    """Return the one of that id, or whose id alone begins so.

    Raises:
        RunError: there is none.
    """
    of = [one for one in found if one.id.startswith(checkpoint_id)]
    if len(of) == 1:
        return of[0]
    newest = ", ".join(one.id for one in found[-3:]) or "none yet"
    raise RunError(f"No checkpoint {checkpoint_id!r} in run {run_id}. It has {len(found)}; the last: {newest}.")


def review_after(one: Checkpoint, decisions: Sequence[Decision], pending: Data | None) -> str:
    """Return the review point that comes after a checkpoint: what was decided before it holds.

    Only its number when nothing was decided or is asked there.
    """
    if one.decided < len(decisions):
        return decisions[one.decided]["review_id"]
    return str(pending["review_id"]) if pending else str(one.decided)


def _checkpoint(one: Any, known: Data, entered: bool) -> Checkpoint:
    """``entered``: a child graph began from here, so what is asked is asked in there."""
    parent_id = one.parent_config["configurable"]["checkpoint_id"] if one.parent_config else None
    parent, values = known.get(parent_id or ""), _values(one)
    before = parent if parent_id else known.get(_above(one) or "")
    return Checkpoint(
        id=_id(one),
        graph=one.config["configurable"]["checkpoint_ns"].split("|")[-1].split(":")[0] or "conversation",
        step=one.metadata["step"],
        at=one.checkpoint["ts"],
        ran=tuple(n for n in _next(parent) if n != "__start__") if parent else (),
        next=_next(one),
        asks=None if entered else _asks(one),
        decided=len(values.get("decisions") or []),
        changes=None if parent_id and not parent else tuple(_changes(_values(before) if before else {}, values)),
        values=values,
    )


def _id(one: Any) -> str:
    return str(one.config["configurable"]["checkpoint_id"])


def _above(one: Any) -> str | None:
    """Return the parent graph's checkpoint from which a child graph began."""
    return next(iter(one.metadata.get("parents", {}).values()), None)


def _values(one: Any) -> Json:
    """Return the state's own keys; before the first node they are what the graph was given."""
    channels = one.checkpoint["channel_values"]
    given = channels.get("__start__")
    held = given if isinstance(given, Mapping) else channels
    return {k: v for k, v in held.items() if not k.startswith(("__", "branch:"))}


def _next(one: Any) -> tuple[str, ...]:
    """The nodes that run after this checkpoint: those that an edge leads to, and those that something was sent to."""
    channels = one.checkpoint["channel_values"]
    edges = sorted(name.removeprefix("branch:to:") for name in channels if name.startswith("branch:to:"))
    sent = [packet.node for packet in channels.get("__pregel_tasks") or []]
    return (*(["__start__"] if "__start__" in channels else []), *edges, *sent)


def _asks(one: Any) -> str | None:
    for _, channel, value in one.pending_writes or []:
        if channel == "__interrupt__" and value and isinstance(value[0].value, Mapping):
            return value[0].value.get("review_id")
    return None


def _changes(before: Data, after: Data) -> Iterable[Change]:
    """One entry for each key that is not as it was.

    A key that begins with nothing in it has not changed, nor has one of the parent that a child graph does not hold.
    """
    for key in after:
        old, new = before.get(key), after.get(key)
        if old == new or not (old or new):
            continue
        if key in _KEYS:
            yield Change(key=key, **_entries(key, old, new))
        elif key == "plan" and isinstance(new, Mapping):
            entries = _entries("steps", (old or {}).get("steps"), new["steps"])
            yield Change(key=key, before=_version(old), after=_version(new), **entries)
        else:
            yield Change(key=key, before=_brief(old), after=_brief(new))


def _entries(kind: str, old: Any, new: Any) -> Any:
    was, now = ({_KEYS[kind](entry): entry for entry in entries or []} for entries in (old, new))
    return {
        "added": [name for name in now if name not in was],
        "changed": [name for name in now if name in was and now[name] != was[name]],
        "removed": [name for name in was if name not in now],
    }


def _version(plan: Data | None) -> str:
    return str(plan["version"]) if plan else ""


def _brief(value: Any) -> str:
    """Return a value on one line, as JSON, cut where it is long; a merge by its counts."""
    if value is None:
        return ""
    if isinstance(value, Mapping) and "retrieval_results" in value:
        value = {"retrieval_results": len(value["retrieval_results"]), "context": len(value.get("context", ""))}
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True, default=str)
    return text if len(text) <= _BRIEF else f"{text[:_BRIEF]}… +{len(text) - _BRIEF}"
