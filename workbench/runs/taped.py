"""The ports of a run: its settings, who answers in place of a person, and every read of the world over its tape.

A run of its own works with what the workspace has. One that was made from another (a fork, a replay) works with the
settings of that run, its tape, and its recorded decisions; all of it follows from the row, so it can be resumed.
"""

from __future__ import annotations

import inspect
import json
import platform
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import cache, partial
from importlib.metadata import version
from itertools import count
from typing import Any, NoReturn

from pydantic import SecretStr, create_model

from workbench.errors import KnowledgeError, RunError
from workbench.graphs.reviewers import ReplayReviewer, Reviewer
from workbench.ports import (
    Context,
    Conversations,
    KnowledgeBase,
    KnowledgeBases,
    NoMemory,
    Planner,
    Remembering,
    Tool,
)
from workbench.records.prompts import Prompts
from workbench.records.store import RunRow, RunStore
from workbench.records.tape import Effect, Tape, begun, read
from workbench.settings import ROLES, RULES, Settings, merge_settings
from workbench.state import Data, Json, without_empty
from workbench.text import detect_language
from workbench.tools.registry import BUILT_IN
from workbench.tools.tool import FunctionTool
from workbench.views.markup import cut

READS = {name for name in vars(KnowledgeBase) if not name.startswith("_")}
READS -= {"warm", "reading", "fingerprint", "enricher"}
"""What a tape keeps of a knowledge base: every read of its port."""


def taped(context: Context, tape: Tape) -> Context:
    """Return the context with every port that reads the world over this tape."""
    return replace(
        context,
        tape=tape,
        knowledge=TapedBases(context.knowledge, tape),
        corpora=context.knowledge,
        conversations=TapedConversations(context.conversations, tape),
        memory=TapedMemory(context.memory, tape),
        clock=context.clock if tape.mode != "replay" else StillClock(begun(tape.known)["clock"]),
    )


class StillClock:
    """A clock that reads no clock: it begins where the recorded run began, and each look is a microsecond later."""

    def __init__(self, began: str):
        self._began = datetime.fromisoformat(began)
        self._looks = count(1)

    def now(self) -> datetime:
        """Return the recorded beginning, and a little more at every look."""
        return self._began + timedelta(microseconds=next(self._looks))

    def monotonic(self) -> float:
        """Seconds since the beginning: the looks so far, each a microsecond."""
        return next(self._looks) / 1e6


class TapedBases:
    """The knowledge bases of a run."""

    def __init__(self, real: KnowledgeBases, tape: Tape):
        self.real = real
        self._tape = tape
        self._opened = cache(lambda name: TapedBase(name, real, tape))

    def names(self) -> list[str]:
        """Known names, sorted; those of the recorded run in a replay."""
        if self._tape.mode == "fork" and (known_here := self.real.names()):
            self._tape.keep(Effect("knowledge", "names", {}, known_here))
            return known_here
        return self._tape.effect_value("knowledge", "names", {}, self.real.names)

    def get(self, name: str) -> KnowledgeBase:
        """Return the knowledge base of that name; one that is only on the tape is only as much as the tape says.

        Raises:
            UnknownKnowledge: neither here nor on the tape.
        """
        return self._opened(name)


class TapedBase:
    """One knowledge base: each read is an effect under the base's fingerprint."""

    def __init__(self, name: str, bases: KnowledgeBases, tape: Tape):
        self.name = name
        self._real = partial(bases.get, name)
        self._tape = tape
        self._known: dict[tuple[str, str], Any] = {}
        self._here = tape.mode != "replay" and name in bases.names()
        self._fingerprint: str = self._of_documents()

    def _of_documents(self) -> str:
        name = f"{self.name}.fingerprint"
        if not self._here:
            return self._tape.effect_value(
                "knowledge", name, {}, lambda: self._real().fingerprint()
            )
        fingerprint = self._real().fingerprint()
        self._tape.keep(Effect("knowledge", name, {}, fingerprint))
        return fingerprint

    def fingerprint(self) -> str:
        """Of the documents, as this run sees them."""
        return self._fingerprint

    def warm(self) -> None:
        """Load what is slow to load, where there is something to load."""
        if self._here:
            self._real().warm()

    def reading(self) -> AbstractContextManager[None]:
        """Hold one generation for a whole block of reads."""
        return self._real().reading() if self._here else nullcontext()

    def __getattr__(self, method: str) -> Any:
        if method not in READS:
            raise AttributeError(f"A knowledge base has no {method!r}.")

        def read(*arguments: Any, **options: Any) -> Any:
            if options:  # the tape knows arguments by their places
                bound = inspect.signature(getattr(KnowledgeBase, method)).bind(
                    self, *arguments, **options
                )
                bound.apply_defaults()
                arguments = bound.args[1:]
            # Sets have no order: sorted, equal calls have equal keys on the tape.
            plain = [sorted(a) if isinstance(a, (set, frozenset)) else a for a in arguments]
            place = (method, json.dumps(plain, sort_keys=True, ensure_ascii=False))
            if place not in self._known:
                self._known[place] = self._read(method, plain)
            return self._known[place]

        return read

    def _read(self, method: str, arguments: Sequence[Any]) -> Any:
        name = f"{self.name}.{method}"
        parts = {"version": self._fingerprint, "input": arguments}
        if not self._here:
            effect = self._tape.take(Effect("knowledge", name, parts, None))
            if effect is None:
                raise KnowledgeError(
                    f"{self.name!r} is not in this workspace, and the tape has no {method} of {cut(arguments, 80)}. "
                    f"Add the corpus: workbench kb add {self.name} PATH..."
                )
            return effect.value
        value = getattr(self._real(), method)(*arguments)
        self._tape.keep(Effect("knowledge", name, parts, value))
        return value


class TapedConversations:
    """The conversations of a run: what was said before is read once, and is part of the tape."""

    def __init__(self, real: Conversations, tape: Tape):
        self._real = real
        self._tape = tape

    def list_messages(
        self, conversation_id: str, limit: int | None = None, before: str | None = None
    ) -> list[Json]:
        """Return the newest messages before the run's own, oldest first."""
        # in a conversation of its own, in which nothing was said
        forked = self._tape.mode == "fork"
        return self._tape.effect_value(
            "memory",
            "list_messages",
            {"limit": limit},
            lambda: (
                [] if forked else self._real.list_messages(conversation_id, limit, before=before)
            ),
        )

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)


class TapedMemory:
    """The memory of a user and a conversation, read once and recorded on the tape.

    A fork knows what its origin knew; a run from before anything was remembered knows nothing.
    """

    def __init__(self, real: Remembering, tape: Tape):
        self._real = real
        self._tape = tape

    def recall(
        self, message: str, *, user_id: str, conversation_id: str, before: str | None = None
    ) -> Json:
        """Return the memories of the store, or those on the tape."""
        whose: Json = {"user_id": user_id, "conversation_id": conversation_id, "before": before}
        if self._tape.mode == "live":
            question = {"message": message}
            return dict(
                self._tape.effect_value(
                    "memory", "recall", question, lambda: self._real.recall(message, **whose)
                )
            )
        recorded = next(
            (e for e in self._tape.known if (e.kind, e.name) == ("memory", "recall")), None
        )
        if recorded is None:
            return NoMemory().recall(message, **whose)
        parts = {**recorded.parts, "input": {"message": message}}  # it may ask something else
        self._tape.keep_recorded(replace(recorded, parts=parts))
        return dict(recorded.value)

    def remember(self, user_id: str, section: str, content: str, **about: Any) -> str:
        """Kept by a run of its own alone."""
        if self._tape.mode == "live":
            return self._real.remember(user_id, section, content, **about)
        return ""


_OUTSIDE = re.compile(r".*_(?:url|path|endpoint)|lang|prices|vector_store")
"""Settings of where servers and files are, and how things are shown: none of it decides what a run does."""


@dataclass(frozen=True)
class RecordedModel:
    """Stands where a chat model or a planner was, in a replay: whatever it said is on the tape."""

    name: str


def run_context(
    row: RunRow,
    context: Context,
    store: RunStore,
    models_for: Callable[[Settings], Data],
    planner_for: Callable[[Settings], Planner],
) -> Context:
    """Return the context with the settings, models and prompts of this run, over its tape.

    Raises:
        SettingsError: the run works with a chat model that cannot be opened here.
    """
    options = row["options"]
    spec = options.get("tape") or {"mode": "live", "sources": []}
    sources = [read(store, source) for source in spec["sources"]]
    tape = Tape(store, row["run_id"], spec["mode"], sources, options.get("results", {}))
    begin = begun(tape.known)
    changes = merge_settings(begin.get("settings", {}), options.get("settings", {}))
    fields = type(context.settings).model_fields
    settings = context.settings.with_changes({n: v for n, v in changes.items() if n in fields})
    prompts = Prompts(saved={**begin.get("prompts", {}), **options.get("prompts", {})})
    day = str(begin.get("clock", row["created_at"]))[:10]
    context = replace(context, settings=settings, prompts=prompts, today=day)
    if tape.mode == "replay":
        context = _sealed(context, tape, begin)
    else:
        context = replace(context, models=models_for(settings), planner=planner_for(settings))
    # whole: a later version of the package has others
    used = [prompts.for_language(r, detect_language(row["message"])) for r in context.models]
    optional = {
        "prompts": {prompt.name: prompt.dump() for prompt in used},
        "unsearched": sorted(context.unsearched),
        "parts": sorted(context.parts),
    }
    beginning = {
        "settings": public(settings),
        "clock": row["created_at"],
        "handlers": sorted(context.handlers),
        "ids": {"run_id": row["run_id"], "conversation_id": row["conversation_id"]},
        "tools": described(context.tools),
        "versions": versions(),
        **without_empty(optional),
    }
    for name, value in beginning.items():
        tape.keep(Effect("begin", name, {}, value, replayed=begin.get(name) == value))
    tape.flush("begin", once=True)
    return taped(context, tape)


def public(settings: Settings) -> Json:
    """Return the settings as a tape holds them: no secrets, no addresses, no language of labels."""
    names = {
        name
        for name in type(settings).model_fields
        if not (_OUTSIDE.fullmatch(name) or isinstance(getattr(settings, name), SecretStr))
    }
    return settings.model_dump(mode="json", include=names)


@cache
def versions() -> dict[str, str]:
    """With what a run is made."""
    return {
        "workbench": version("workbench"),
        "python": platform.python_version(),
        "langgraph": version("langgraph"),
    }


def reviewer_of_run(store: RunStore, run_id: str) -> Reviewer | None:
    """Return who answers for a run that was made from another: its recorded decisions that are still to come."""
    options = store.get(run_id)["options"]
    if "decisions" not in options:
        return None
    answered = len(store.decisions(run_id))
    return ReplayReviewer(
        options["decisions"][answered:],
        mismatch=options.get("mismatch", "ask"),
        rest=options.get("rest", "ask"),
    )


def described(tools: Mapping[str, Tool]) -> Json:
    """Return the tools of a run by name; of custom ones as much as a replay needs where they are not registered."""
    return {
        name: None
        if name in BUILT_IN
        else {
            "description": tool.description,
            "parallel": tool.parallel,
            "intents": sorted(tool.intents),
            "inputs": {n: f.is_required() for n, f in tool.input_schema.model_fields.items()},
            "outputs": list(tool.output_schema.model_fields),
        }
        for name, tool in tools.items()
    }


def _sealed(context: Context, tape: Tape, begin: Data) -> Context:
    """Return the context of a replay, every port that could answer replaced by a stand-in."""
    names = {role: context.settings.role_model(role) for role in ROLES}
    models: Any = {role: RecordedModel(name) for role, name in names.items() if name}
    planner: Any = RecordedModel(next((e.name for e in tape.known if e.kind == "plan"), RULES))
    tools = begin.get("tools")
    return replace(
        context,
        models=models,
        planner=planner,
        handlers=dict.fromkeys(begin.get("handlers", []), _answers),
        unsearched=frozenset(begin.get("unsearched", [])),
        parts=dict.fromkeys(begin.get("parts", []), _answers),
        tools=context.tools if tools is None else _tools(context.tools, tools),
    )


def _tools(registered: Mapping[str, Tool], recorded: Data) -> dict[str, Tool]:
    """Return the tools of the recording: ours, and stand-ins for others."""
    return {
        name: registered[name]
        if name in registered and description is None
        else _stand_in(name, description or {})
        for name, description in recorded.items()
    }


def _stand_in(name: str, description: Data) -> Tool:
    inputs: Json = {
        n: (Any, ... if needed else None) for n, needed in description.get("inputs", {}).items()
    }
    outputs: Json = dict.fromkeys(description.get("outputs", []), (Any, None))
    return FunctionTool(
        name=name,
        description=description.get("description", ""),
        input_schema=create_model(f"{name}_input", **inputs),
        output_schema=create_model(f"{name}_output", **outputs),
        function=lambda *_: _on_tape(f"A call of {name}"),
        parallel=description.get("parallel", True),
        intents=frozenset(description.get("intents", [])),
    )


async def _answers(*_: Any) -> NoReturn:
    _on_tape("An answer")


def _on_tape(what: str) -> NoReturn:
    raise RunError(f"{what} is on the tape, and was asked for all the same.")
