"""Every error of the workbench: it names what is wrong, what exists, and the fix.

WorkbenchError
├── SettingsError          a setting has a value that is not allowed
├── WorkspaceError         the folder cannot be a workspace, or is of a newer version
│   ├── WorkspaceBusy      another living process holds what is needed
│   └── WorkspaceFull      there is no room to write
├── KnowledgeError         a knowledge base cannot be read or written
│   ├── UnknownKnowledge   no knowledge base of that name
│   ├── UnfitCondition     a condition does not fit the field that it is on
│   └── CorpusError        a file cannot be loaded as a corpus
├── ToolError              a tool cannot be registered, or gave or was given what it must not
│   └── UnknownTool        no tool of that name (also a KeyError: a registry is a Mapping)
├── PlanError              a plan is not valid; carries every problem
├── RunError               a run cannot do what was asked of it
│   ├── UnknownRun         no run of that id
│   ├── NotPaused          an answer was given where nothing waits
│   ├── InvalidAnswer      the answer does not fit the question; the run stays paused
│   └── Divergence         a replay asked for something that the tape does not have
│       └── DecisionDiffers  a recorded decision was made on another proposal; the run stays paused
├── CapsuleError           a run cannot be sealed in a file, or a file is not a sealed run
├── ModelError             a model or its server failed
└── MissingExtra           an optional library is not installed (also an ImportError)
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from reprlib import Repr
from typing import Any

_SHORT = Repr()
_SHORT.maxstring = _SHORT.maxother = _SHORT.maxlong = 100


def shown(value: Any) -> str:
    """Return a value in Python's notation; a long one is cut in its middle.

    >>> shown("茶馆"), len(shown("a" * 1000))
    ("'茶馆'", 100)
    """
    try:
        return _SHORT.repr(value)
    except ValueError:  # Python writes no whole number of more than 4,300 digits
        return f"{type(value).__name__} that is too long to write"


class WorkbenchError(Exception):
    """The root: catch this to catch everything that the workbench raises on purpose."""


class SettingsError(WorkbenchError):
    """A setting has a value that is not allowed."""


class WorkspaceError(WorkbenchError):
    """The folder cannot be used as a workspace."""


class WorkspaceBusy(WorkspaceError):
    """Another living process holds what is needed."""


class WorkspaceFull(WorkspaceError):
    """There is no room to write; what was stored before is kept."""


class KnowledgeError(WorkbenchError):
    """A knowledge base cannot be read or written."""


class UnknownKnowledge(KnowledgeError):
    """No knowledge base of that name."""

    def __init__(self, name: str, names: Iterable[str]):
        self.name = name
        super().__init__(
            f"Unknown knowledge base {shown(name)}. Known: {', '.join(sorted(names)) or 'none yet'}. "
            "Add one with `workbench kb add NAME PATH...`."
        )


class UnfitCondition(KnowledgeError):
    """A condition has an operator or a value that does not fit its field."""


class CorpusError(KnowledgeError):
    """A file cannot be loaded as a corpus."""


class ToolError(WorkbenchError):
    """A tool cannot be registered, or gave or was given what it must not."""


class UnknownTool(ToolError, KeyError):
    """No tool of that name."""

    __str__ = Exception.__str__  # a KeyError would show the message in quotes

    def __init__(self, name: str, tools: Iterable[str]):
        self.name = name
        names = sorted(tools)
        close = (
            get_close_matches(name, names, n=1)
            if isinstance(name, str) and len(name) < 100
            else []
        )
        hint = f" Did you mean {close[0]!r}?" if close else ""
        super().__init__(f"Unknown tool {shown(name)}.{hint} Known: {', '.join(names)}.")


class PlanError(WorkbenchError):
    """A plan is not valid.

    Attributes:
        problems: one dict per problem, ``{"step_id", "field", "message", "fix", "kind", "values"}``.
    """

    def __init__(self, problems: list[dict[str, Any]]):
        self.problems = problems
        super().__init__("\n".join(f"{p['message']} {p['fix']}" for p in problems))


class RunError(WorkbenchError):
    """A run cannot do what was asked of it."""


class UnknownRun(RunError):
    """No run of that id."""

    def __init__(self, run_id: str, newest_ids: Iterable[str] = ()):
        recent = ", ".join(newest_ids)
        newest = f"The newest: {recent}." if recent else "There is no run yet."
        super().__init__(f"Unknown run {shown(run_id)}. {newest}")


class NotPaused(RunError):
    """An answer was given to a run that does not wait for one."""


class Divergence(RunError):
    """A replay asked for something that the tape does not have.

    Attributes:
        kind: of the effect: ``tool``, ``model``, ``plan``, ``knowledge``, ``memory``, ``decision``, ``result``...
        name: of the tool, model, method or review point; where, of a node of a recorded graph (``"tools/2"``).
        expected: what the nearest on the tape depends on, ``{"version", "input"}``, of a node ``config``, ``context``,
            ``answers`` and ``state`` too; None when it has none of that name.
        got: what was asked, in the same shape.
        differs: which parts of the input are not the same.
    """

    def __init__(self, kind: str, name: str, expected: Any, got: Any, differs: list[str]):
        self.kind = kind
        self.name = name
        self.expected = expected
        self.got = got
        self.differs = differs
        parts = [*differs[:5], f"and {len(differs) - 5} more"] if len(differs) > 6 else differs
        super().__init__(
            f"The replay diverges at {kind} {name!r}: {', '.join(parts)}.\n"
            f"Expected {_brief(_parts(expected, differs))}, got {_brief(_parts(got, differs))}."
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as JSON."""
        return {
            name: getattr(self, name) for name in ("kind", "name", "expected", "got", "differs")
        }


class DecisionDiffers(Divergence):
    """A recorded decision was made on another proposal than the one that is made now; the run stays paused."""


def _parts(value: Any, paths: list[str]) -> Any:
    """Return the parts of a value at a few paths; the whole value when a path leads nowhere.

    >>> _parts({"version": "1", "input": {"query": "茶馆", "k": [5, 6]}}, ["input.query", "input.k[1]"])
    {'input.query': '茶馆', 'input.k[1]': 6}
    """
    values = {}
    for path in paths[:3]:
        part = value
        for name, place in re.findall(r"([^.\[\]]+)|\[(\d+)\]", path):
            try:
                part = part[int(place)] if place else part[name]
            except (KeyError, IndexError, TypeError):
                return value
        values[path] = part
    return values


def _brief(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, sort_keys=True, default=str)
    return text if len(text) <= 300 else text[:297] + "..."


class InvalidAnswer(RunError):
    """The answer does not fit the review point; the run stays paused."""


class CapsuleError(WorkbenchError):
    """A run cannot be sealed in a file, or a file is not a sealed run; nothing was written."""


class ModelError(WorkbenchError):
    """A model or its server failed."""


class MissingExtra(WorkbenchError, ImportError):
    """An optional library is not installed; the message ends with the install line."""

    def __init__(self, what: str, extra: str):
        super().__init__(
            f"{what} needs a library that is not installed. pip install 'workbench[{extra}]'"
        )


@contextmanager
def needing(what: str, extra: str) -> Iterator[None]:
    """Say how a library is installed that cannot be imported in the block.

    Raises:
        MissingExtra: it cannot.
    """
    try:
        yield
    except ImportError:
        raise MissingExtra(what, extra) from None


def reason(error: BaseException | str) -> str:
    """Return what an error of a library says, in a line."""
    return " ".join(str(error).split())[:200] or type(error).__name__


def first_fault(error: Any) -> str:
    """Return the first thing that pydantic finds wrong: where, and what."""
    fault = error.errors()[0]
    return ": ".join(filter(None, [".".join(map(str, fault["loc"])), fault["msg"]]))


@contextmanager
def refusing(what: str = "", options: Iterable[str] = ()) -> Iterator[None]:
    """Raise what pydantic finds wrong with a value as a ``RunError`` that names place, value and known options."""
    from pydantic import ValidationError  # not before something is checked

    try:
        yield
    except ValidationError as error:
        fault = error.errors()[0]
        where = ".".join([*filter(None, [what]), *map(str, fault["loc"])])
        if fault["type"] == "extra_forbidden" and options:
            raise RunError(
                f"Unknown option {shown(where)}. Known: {', '.join(options)}."
            ) from None
        if fault["type"] == "refused":
            raise RunError(f"{where}: {fault['msg']}") from None
        raise RunError(
            f"{where} cannot be {shown(fault['input'])}: {fault['msg'].rstrip('.')}."
        ) from None
