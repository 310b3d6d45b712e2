"""The past of a run: every checkpoint of its graph and of the graphs inside it, and what changed in each."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, TypedDict

from workbench.errors import RunError
from workbench.state import Data, Decision, Json
from workbench.views.blocks import Block
from workbench.views.labels import labels_for
from workbench.views.markup import cut
from workbench.views.past import past_blocks
from workbench.views.render import Shown

_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}(?:-[0-9a-f]{4}-[0-9a-f]{12})?")
_LONGEST = 1_200
_KEYS: Mapping[str, Callable[[Data], str]] = {
    "records": lambda record: f"{record['step_id']}/{record['attempt']}",
    "reflections": lambda reflection: str(reflection["current_iteration"]),
    "decisions": lambda decision: str(decision["review_id"]),
    "steps": lambda step: str(step["step_id"]),
}
"""What tells the entries of a list apart, as the state's reducers do."""


class Change(TypedDict, total=False):
    """The change of one key of the state.

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
    """A stored checkpoint of a run.

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
        values: the state as it stood, each value as a text of at most ``_LONGEST`` characters.
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
    values: dict[str, str] = field(repr=False)

    def to_dict(self) -> Json:
        """Return the fields as JSON, without the values."""
        fields = asdict(self)
        del fields["values"]
        return json.loads(json.dumps(fields))


class Past(list[Checkpoint], Shown):
    """The checkpoints of a run, oldest first; as a cell's last expression they can be looked at and forked from.

    Attributes:
        run: whose they are.
    """

    def __init__(self, checkpoints: Iterable[Checkpoint], run: Any):
        super().__init__(checkpoints)
        self.run, self.message = run, run.message

    def find(self, checkpoint_id: str) -> Checkpoint:
        """Return the checkpoint of that id, or whose id alone begins so.

        Raises:
            RunError: there is none.
        """
        return find_checkpoint(self.run.run_id, self, checkpoint_id)

    def blocks(self) -> list[Block]:
        """Return a table."""
        rows = [checkpoint.to_dict() for checkpoint in self]
        return past_blocks(self.run.to_dict(), rows, labels_for(self.message))


_PRUNED = "`workbench gc` lets the checkpoints of finished runs go. Its plans, records, decisions and answer are kept; "
_PRUNED += "`fork` takes a review point, as at='0-plan'."


def is_checkpoint_id(at: object) -> bool:
    """Return whether this names a checkpoint, not a review point.

    >>> is_checkpoint_id("1f1e61e9-97d6-6783-8006-e12ef8231a3a"), is_checkpoint_id("1-reflect")
    (True, False)
    """
    return isinstance(at, str) and _ID.fullmatch(at) is not None


def checkpoints(tuples: Sequence[Any]) -> list[Checkpoint]:
    """Return LangGraph's checkpoints of a run, in all its graphs, oldest first, as ours."""
    by_id = {_id(checkpoint): checkpoint for checkpoint in tuples}
    above = {_above(checkpoint) for checkpoint in tuples}
    return [_checkpoint(checkpoint, by_id, _id(checkpoint) in above) for checkpoint in tuples]


def pruned(run_id: str) -> RunError:
    """Return the error of a run whose checkpoints were let go."""
    return RunError(f"The checkpoints of run {run_id} are gone: {_PRUNED}")


def from_rows(rows: Sequence[Data]) -> list[Checkpoint]:
    """Return the checkpoints that the store keeps of a run that has ended."""

    def as_tuple(value: Any) -> Any:
        return tuple(value) if isinstance(value, list) else value

    return [Checkpoint(**{name: as_tuple(value) for name, value in row.items()}) for row in rows]


def find_checkpoint(run_id: str, past: Sequence[Checkpoint], checkpoint_id: str) -> Checkpoint:
    """Return the one of that id, or whose id alone begins so.

    Raises:
        RunError: there is none.
    """
    matching = [checkpoint for checkpoint in past if checkpoint.id.startswith(checkpoint_id)]
    if len(matching) == 1:
        return matching[0]
    newest = ", ".join(checkpoint.id for checkpoint in past[-3:]) or "none yet"
    raise RunError(f"No checkpoint {checkpoint_id!r} in run {run_id}. It has {len(past)}; the last: {newest}.")


def review_after(checkpoint: Checkpoint, decisions: Sequence[Decision], pending: Data | None) -> str:
    """Return the review point that comes after a checkpoint: what was decided before it holds.

    Only its number when nothing was decided or is asked there.
    """
    if checkpoint.decided < len(decisions):
        return decisions[checkpoint.decided]["review_id"]
    return str(pending["review_id"]) if pending else str(checkpoint.decided)


def _checkpoint(checkpoint: Any, by_id: Data, entered: bool) -> Checkpoint:
    """``entered``: a child graph began from here, so what is asked is asked in there."""
    parent_id = checkpoint.parent_config["configurable"]["checkpoint_id"] if checkpoint.parent_config else None
    parent, values = by_id.get(parent_id or ""), _values(checkpoint)
    before = parent if parent_id else by_id.get(_above(checkpoint) or "")
    return Checkpoint(
        id=_id(checkpoint),
        graph=checkpoint.config["configurable"]["checkpoint_ns"].split("|")[-1].split(":")[0] or "conversation",
        step=checkpoint.metadata["step"],
        at=checkpoint.checkpoint["ts"],
        ran=tuple(n for n in _next(parent) if n != "__start__") if parent else (),
        next=_next(checkpoint),
        asks=None if entered else _asks(checkpoint),
        decided=len(values.get("decisions") or []),
        changes=None if parent_id and not parent else tuple(_changes(_values(before) if before else {}, values)),
        values={name: cut(value, _LONGEST) for name, value in values.items()},
    )


def _id(checkpoint: Any) -> str:
    return str(checkpoint.config["configurable"]["checkpoint_id"])


def _above(checkpoint: Any) -> str | None:
    """Return the parent graph's checkpoint from which a child graph began."""
    return next(iter(checkpoint.metadata.get("parents", {}).values()), None)


def _values(checkpoint: Any) -> Json:
    """Return the state's own keys; before the first node they are what the graph was given."""
    channels = checkpoint.checkpoint["channel_values"]
    first_input = channels.get("__start__")
    values = first_input if isinstance(first_input, Mapping) else channels
    return {k: v for k, v in values.items() if not k.startswith(("__", "branch:"))}


def _next(checkpoint: Any) -> tuple[str, ...]:
    """Return the nodes that run after this checkpoint: targets of an edge, and of a ``Send``."""
    channels = checkpoint.checkpoint["channel_values"]
    edges = sorted(name.removeprefix("branch:to:") for name in channels if name.startswith("branch:to:"))
    sent = [packet.node for packet in channels.get("__pregel_tasks") or []]
    return (*(["__start__"] if "__start__" in channels else []), *edges, *sent)


def _asks(checkpoint: Any) -> str | None:
    for _, channel, value in checkpoint.pending_writes or []:
        if channel == "__interrupt__" and value and isinstance(value[0].value, Mapping):
            return value[0].value.get("review_id")
    return None


def _changes(before: Data, after: Data) -> Iterable[Change]:
    """Return one entry per changed key.

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
    return cut(value, 160)
