"""What a run works with, by its row: its settings, its tape, and who answers in place of a person.

A run of its own works with what the workspace has. One that was made from another (a fork, a replay) works with the
settings of that run, its tape, and its recorded decisions; all of it follows from the row, so it can be resumed.
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib.metadata import version
from typing import Any, NoReturn

from pydantic import SecretStr, create_model

from workbench.context import Context, Planner, Tool
from workbench.errors import RunError
from workbench.reviewers import ReplayReviewer, Reviewer
from workbench.runs import RunRow, RunStore
from workbench.settings import Settings
from workbench.tape import RULES, SEALED, Effect, Tape
from workbench.taped import taped
from workbench.tools.registry import BUILT_IN
from workbench.tools.tool import FunctionTool

_NOT_OF_A_RUN = (
    *("chat_base_url", "embedding_base_url", "tmdb_base_url", "lang"),
    *("postgres_host", "postgres_port", "postgres_user", "postgres_db"),
)
"""Where servers are and how things are shown: neither decides what a run does."""


@dataclass(frozen=True)
class RecordedModel:
    """Stands where a chat model was, in a replay: whatever it said is on the tape."""

    name: str


@dataclass(frozen=True)
class RecordedPlanner:
    """Stands where a planner was, in a replay: whatever it planned is on the tape."""

    name: str

    async def __call__(self, *_: Any) -> NoReturn:
        """Never: its plan is on the tape."""
        _on_tape(f"A plan of {self.name}")


def context_of(
    row: RunRow,
    ports: Context,
    store: RunStore,
    chat_for: Callable[[Settings], Any],
    planner_for: Callable[[Settings], Planner],
) -> Context:
    """The ports of this run, over its tape.

    Raises:
        SettingsError: the run works with a chat model that cannot be opened here.
    """
    spec = row["options"].get("tape") or {"mode": "live", "sources": []}
    tape = Tape(store, row["run_id"], spec["mode"], spec["sources"], int(ports.settings.tape_mb * 1e6))
    begin = {e.name: e.value for e in tape.known.values() if e.kind == "begin"}
    settings = _settings(ports.settings, begin.get("settings", {}), row["options"].get("settings", {}))
    context = replace(ports, settings=settings)
    if tape.mode in SEALED:
        context = _sealed(context, tape, begin)
    else:
        context = replace(context, chat=chat_for(settings), planner=planner_for(settings))
    for name, value in (
        ("settings", public(settings)),
        ("clock", row["created_at"]),
        ("handlers", sorted(context.handlers)),
        ("ids", {"run_id": row["run_id"], "conversation_id": row["conversation_id"]}),
        ("tools", described(context.tools)),
        ("versions", versions()),
        *([("unsearched", sorted(context.unsearched))] if context.unsearched else []),
        *([("parts", sorted(context.parts))] if context.parts else []),
    ):
        tape.keep(Effect("begin", name, "", {}, value, replayed=name in begin and begin[name] == value))
    tape.flush("begin", once=True)
    return taped(context, tape)


def public(settings: Settings) -> dict[str, Any]:
    """The settings as a tape holds them: nothing secret, no addresses, which may hold a
    password too, and no language of labels."""
    fields = {n for n in type(settings).model_fields if not isinstance(getattr(settings, n), SecretStr)}
    return settings.model_dump(mode="json", include=fields - set(_NOT_OF_A_RUN))


@cache
def versions() -> dict[str, str]:
    """With what a run is made."""
    return {
        "workbench": version("workbench"),
        "python": platform.python_version(),
        "langgraph": version("langgraph"),
    }


def reviewer_of_run(store: RunStore, run_id: str) -> Reviewer | None:
    """Who answers for a run that was made from another: its recorded decisions that are still to come."""
    options = store.get(run_id)["options"]
    if "decisions" not in options:
        return None
    given = len(store.decisions(run_id))
    return ReplayReviewer(
        options["decisions"][given:], mismatch=options.get("mismatch", "ask"), rest=options.get("rest", "ask")
    )


def described(tools: Mapping[str, Tool]) -> dict[str, Any]:
    """The tools of a run by name; of those of one's own as much as a replay needs where they are not registered."""
    return {name: None if name in BUILT_IN else _outside(tools[name]) for name in tools}


def _outside(tool: Tool) -> dict[str, Any]:
    return {
        "description": tool.description,
        "parallel": tool.parallel,
        "intents": sorted(tool.intents),
        "inputs": {name: field.is_required() for name, field in tool.input_schema.model_fields.items()},
        "outputs": list(tool.output_schema.model_fields),
    }


def _settings(here: Settings, recorded: Mapping[str, Any], edited: Mapping[str, Any]) -> Settings:
    known = type(here).model_fields
    return here.model_copy(update={n: v for n, v in {**recorded, **edited}.items() if n in known})


def _sealed(context: Context, tape: Tape, begin: Mapping[str, Any]) -> Context:
    """The ports of a replay: whoever could be asked is a stand-in, except the rules in a check."""
    from workbench.retrieval.plan import RulePlanner

    settings = context.settings
    chat: Any = RecordedModel(settings.chat_model) if settings.chat_model else None
    planner, tools = planned_by(tape.known.values()), begin.get("tools")
    by_rules = tape.mode == "check" and planner == RULES
    plans: Any = RulePlanner(settings) if by_rules else RecordedPlanner(planner)
    return replace(
        context,
        chat=chat,
        planner=plans,
        handlers=dict.fromkeys(begin.get("handlers", []), _answers),
        unsearched=frozenset(begin.get("unsearched", [])),
        parts=dict.fromkeys(begin.get("parts", []), _answers),
        tools=context.tools if tools is None else _tools(context.tools, tools, tape.mode == "check"),
    )


def planned_by(effects: Iterable[Effect]) -> str:
    """The name of the planner whose plan is on the tape."""
    return next((e.name for e in effects if e.kind == "plan" or (e.kind, e.name) == ("model", "llm")), RULES)


def _tools(here: Mapping[str, Tool], recorded: Mapping[str, Any], today: bool) -> dict[str, Tool]:
    """The tools of the recording: ours, and stand-ins for others; in a check the others too, where they are here."""
    return {
        name: here[name] if name in here and (told is None or today) else _stand_in(name, told or {})
        for name, told in recorded.items()
    }


def _stand_in(name: str, told: Mapping[str, Any]) -> Tool:
    inputs: dict[str, Any] = {n: (Any, ... if needed else None) for n, needed in told.get("inputs", {}).items()}
    outputs: dict[str, Any] = dict.fromkeys(told.get("outputs", []), (Any, None))
    return FunctionTool(
        name=name,
        description=told.get("description", ""),
        input_schema=create_model(f"{name}_input", **inputs),
        output_schema=create_model(f"{name}_output", **outputs),
        function=lambda *_: _on_tape(f"A call of {name}"),
        parallel=told.get("parallel", True),
        intents=frozenset(told.get("intents", [])),
    )


async def _answers(*_: Any) -> NoReturn:
    _on_tape("An answer")


def _on_tape(what: str) -> NoReturn:
    raise RunError(f"{what} is on the tape, and was asked for all the same.")
