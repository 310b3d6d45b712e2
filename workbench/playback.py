"""What a run works with, by its row: its settings, its tape, and who answers in place of a person.

A run of its own works with what the workspace has. One that was made from another (a fork, a replay) works with the
settings of that run, its tape, and its recorded decisions; all of it follows from the row, so it can be resumed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NoReturn

from pydantic import SecretStr

from workbench.context import Context, Planner
from workbench.errors import RunError
from workbench.reviewers import ReplayReviewer, Reviewer
from workbench.runs import RunRow, RunStore
from workbench.settings import Settings
from workbench.tape import Effect, Tape
from workbench.taped import taped

_CONNECTIONS = ("chat_base_url", "embedding_base_url")


@dataclass(frozen=True)
class RecordedModel:
    """Stands where a chat model was, in a replay: whatever it said is on the tape."""

    name: str


def context_of(row: RunRow, ports: Context, store: RunStore, planner_for: Callable[[Settings], Planner]) -> Context:
    """The ports of this run, over its tape."""
    spec = row["options"].get("tape") or {"mode": "live", "sources": []}
    tape = Tape(store, row["run_id"], spec["mode"], spec["sources"])
    begin = {e.name: e.value for e in tape.known.values() if e.kind == "begin"}
    settings = _settings(ports.settings, begin.get("settings", {}), row["options"].get("settings", {}))
    context = replace(ports, settings=settings, planner=planner_for(settings))
    if tape.mode == "replay":
        chat: Any = RecordedModel(settings.chat_model) if settings.chat_model else None
        context = replace(context, chat=chat, handlers=dict.fromkeys(begin.get("handlers", []), _on_tape))
    for name, value in (
        ("settings", public(settings)),
        ("clock", row["created_at"]),
        ("handlers", sorted(context.handlers)),
        ("ids", {"run_id": row["run_id"], "conversation_id": row["conversation_id"]}),
    ):
        tape.keep(Effect("begin", name, "", {}, value, replayed=name in begin and begin[name] == value))
    tape.flush("begin")
    return taped(context, tape)


def public(settings: Settings) -> dict[str, Any]:
    """The settings as a tape holds them: nothing secret, and no addresses, which may hold a password too."""
    fields = {n for n in type(settings).model_fields if not isinstance(getattr(settings, n), SecretStr)}
    return settings.model_dump(mode="json", include=fields - set(_CONNECTIONS))


def reviewer_of_run(store: RunStore, run_id: str) -> Reviewer | None:
    """Who answers for a run that was made from another: its recorded decisions that are still to come."""
    options = store.get(run_id)["options"]
    if "decisions" not in options:
        return None
    given = len(store.decisions(run_id))
    return ReplayReviewer(
        options["decisions"][given:], mismatch=options.get("mismatch", "ask"), rest=options.get("rest", "ask")
    )


def _settings(here: Settings, recorded: Mapping[str, Any], edited: Mapping[str, Any]) -> Settings:
    known = type(here).model_fields
    return here.model_copy(update={n: v for n, v in {**recorded, **edited}.items() if n in known})


async def _on_tape(state: Mapping[str, Any], context: Any) -> NoReturn:
    raise RunError("A recorded answer is on the tape, and was asked of its handler all the same.")
