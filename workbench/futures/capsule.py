"""A run in a zip file: all that is stored of it as JSON, and a page to read.

A capsule is never unpacked to a path, and nothing in it is executed: one member is read by its name, up to a limit, and
its types are checked before anything is stored.
"""

from __future__ import annotations

import json
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterable
from html import escape
from io import BytesIO
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, TypeAdapter, ValidationError
from typing_extensions import TypedDict

from workbench.errors import CapsuleError, PlanError, first_fault, reason
from workbench.models.wire import secrets
from workbench.plans import Plan
from workbench.records.store import ENDED, RunStore, new_run_id
from workbench.records.tape import Effect
from workbench.records.writing import write_file
from workbench.settings import Settings
from workbench.state import ConversationState, Decision, ExecutionRecord, Json, RetrievalResult
from workbench.text import to_json, visible
from workbench.views.labels import labels_for
from workbench.views.outline import run_html

CONTENTS, PAGE = "run.json", "run.html"
LIMIT = 128 * 2**20
"""Bytes of a capsule, and of what is read from it."""

_STATE = "query kb_prefix route_decision reflections merged stop_reason answer citations"
_AT_ITS_END = _STATE.split()
_BROKEN = (
    OSError,
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    EOFError,
    RuntimeError,
    ValueError,
    LookupError,
    TypeError,
    AttributeError,
    ArithmeticError,
    PlanError,
)
"""What reading a damaged or hostile file raises."""


class _Options(TypedDict, total=False):
    kb: list[str]
    review: list[str]
    session: str
    user: str
    incognito: Literal[False]
    settings: Json
    decisions: list[Json]


class _Row(TypedDict):
    run_id: Annotated[str, Field(pattern=r"^\w[\w.-]{0,63}$")]
    conversation_id: str
    user_id: str
    session_id: str
    message: str
    options: _Options
    status: Literal["done", "failed", "cancelled"]
    error: str | None
    result: ConversationState | None
    created_at: str
    ended_at: str | None
    graph: str


class _Plan(TypedDict):
    version: int
    author: str
    reason: str
    plan: Json


class _Results(TypedDict):
    results: list[RetrievalResult]


class _Body(TypedDict):
    ref: str
    body: _Results


class _Event(TypedDict):
    key: str
    event: Json


class _Record(TypedDict):
    step_id: str
    attempt: int
    record: ExecutionRecord


class _Page(TypedDict):
    page: str
    effects: list[Effect]


class _Decision(TypedDict):
    review_id: str
    decision: Decision


class Contents(TypedDict):
    """The contents of any capsule, but for what people answered."""

    run: _Row
    plans: list[_Plan]
    records: list[_Record]
    bodies: list[_Body]
    events: list[_Event]
    tapes: list[_Page]


class _Contents(Contents):
    decisions: list[_Decision]


def exported(run: Any, path: Path, settings: Settings) -> Path:
    """Write the capsule of a run (``Workbench.export``)."""
    return write_file(path, capsule(run, settings), kind=CapsuleError)


def capsule(run: Any, settings: Settings) -> bytes:
    """Return the bytes of a run's capsule, which holds no secret of these settings; the same run gives the same bytes.

    Raises:
        CapsuleError: the run has not ended, or leaves nothing behind.
    """
    contents = redacted(capsule_contents(run), secrets(settings))
    message = contents["run"]["message"]
    body = run_html(redacted(run.to_dict(), secrets(settings)))
    title = escape(visible(message))
    language = labels_for(message).html_lang
    page = f'<!doctype html>\n<html lang="{language}"><meta charset="utf-8"><title>{title}</title>\n{body}\n</html>\n'
    texts = {CONTENTS: json.dumps(contents, ensure_ascii=False, indent=1), PAGE: page}
    packed = BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name, text in texts.items():
            entry = zipfile.ZipInfo(name)  # dated 1980: the bytes do not depend on the clock
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, text, zipfile.ZIP_DEFLATED)
    return packed.getvalue()


def capsule_contents(run: Any) -> Json:
    """Return everything that is stored of a run that has ended.

    Raises:
        CapsuleError: it has not, or leaves nothing behind.
    """
    if run.status not in ENDED:
        raise CapsuleError(
            f"Run {run.run_id} is {run.status}: only what has ended can be sealed. Answer or resume it, or cancel it."
        )
    contents = run._store.contents(run.run_id)
    contents["run"]["status"] = run.status
    if contents["run"]["options"].get("incognito"):
        raise CapsuleError(f"Run {run.run_id} is incognito: nothing of it is to be kept.")
    # its checkpoint does not travel
    if contents["run"]["result"] is None and run.status == "cancelled":
        state = run.state
        contents["run"]["result"] = {name: state[name] for name in _AT_ITS_END if state.get(name)}
    return contents


def imported(
    path: Path, store: RunStore, run: Callable[[str], Any], settings: Settings, as_new: bool
) -> str:
    """Store the run of a capsule (``Workbench.import_capsule``), and return its id."""
    contents = read(path)
    if graph := contents["run"]["graph"]:
        raise CapsuleError(
            f"{path} holds a run of the graph {graph!r}: read it by wb.record(graph).read_capsule(path)."
        )
    run_id = new_run_id() if as_new else contents["run"]["run_id"]
    if store.bring(run_id, contents):
        return run_id
    if redacted(capsule_contents(run(run_id)), secrets(settings)) != contents:
        raise CapsuleError(
            f"{path} holds a run {run_id}, and another one of that id is here. Nothing was brought in; --as-new "
            "(as_new=True) brings it in under a new id."
        )
    return run_id


def _plans_and_effects(contents: Json) -> list[Any]:
    effects = (effect for page in contents["tapes"] for effect in page["effects"])
    return [
        [Plan.load(row["plan"]) for row in contents["plans"]],
        [Effect(**effect) for effect in effects],
    ]


def read(
    path: Path, kind: Any = _Contents, check: Callable[[Json], object] = _plans_and_effects
) -> Json:
    """Return what a capsule holds, its types checked.

    Args:
        path: the file.
        kind: a ``Contents``.
        check: looks further; it raises what reading a hostile value raises.

    Raises:
        CapsuleError: says what is wrong with it, in one line.
    """
    try:
        if path.stat().st_size > LIMIT:
            raise ValueError(f"it is larger than {LIMIT:,} bytes")
        with zipfile.ZipFile(path) as archive, archive.open(CONTENTS) as file:
            content = file.read(LIMIT + 1)  # a size in a header may lie
        if len(content) > LIMIT:
            raise ValueError(f"it unpacks to more than {LIMIT:,} bytes")
        contents = json.loads(content)
        # SQLite stores no half characters
        text = json.dumps(contents, ensure_ascii=False, allow_nan=False).encode()
        TypeAdapter(kind).validate_json(text, strict=True)
        check(contents)
    except _BROKEN as error:
        why = first_fault(error) if isinstance(error, ValidationError) else reason(error)
        raise CapsuleError(f"{path} is refused: {why}. Nothing was brought in.") from None
    return contents


def redacted(value: Any, hidden: Iterable[str]) -> Any:
    """Return a JSON value without any of these texts.

    >>> redacted({"said": ["the key is planted-key"]}, ["planted-key"])
    {'said': ['the key is [secret]']}
    """
    text = to_json(value)
    for secret in hidden:
        text = text.replace(to_json(secret)[1:-1], "[secret]")
    return json.loads(text)
