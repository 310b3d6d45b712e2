"""A run in a file: sealed, brought into another workspace, and made into a test for pytest.

What comes in is checked against the types of what a workspace keeps before anything is written; ``capsule_file.py`` has
the zip and what it says of itself.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Annotated, Any, Literal, NotRequired, Required

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError
from typing_extensions import TypedDict

from workbench.errors import CapsuleError, PlanError, RunError
from workbench.futures.capsule_file import MANIFEST, described, lines, loaded, opened, pretty, sealed, taped
from workbench.graphs.reviewers import Mismatch
from workbench.models.wire import secrets
from workbench.plans import Plan
from workbench.records.document import run_document
from workbench.records.prompts import PromptTexts
from workbench.records.store import RunStore, new_run_id
from workbench.records.tape import begun, require_whole
from workbench.records.writing import write_file
from workbench.runs.recording import Recording
from workbench.settings import Settings
from workbench.state import ConversationState, Decision, ExecutionRecord, RetrievalResult
from workbench.views.render import run_html

PARTS = ("run", "plans", "records", "bodies", "decisions", "events", "tape")
"""What is kept of a run, a file each; the other files of a capsule are made of these."""
ENDED = ("done", "failed", "cancelled")
_HIDDEN = "[secret]"
_AT_ITS_END = ("query", "kb_prefix", "route_decision", "reflections", "merged", "stop_reason", "answer", "citations")


def exported(run: Recording, path: Path, settings: Settings) -> Path:
    """See ``Workbench.export``."""
    write_file(path, capsule(run, settings), kind=CapsuleError)
    return path


def capsule(run: Recording, settings: Settings) -> bytes:
    """The bytes of a run's capsule, in which no secret of these settings stands.

    Raises:
        CapsuleError: the run has not ended, or leaves nothing behind.
    """
    contents = redacted(contents_of(run), secrets(settings))
    document = document_of(contents)
    files = {file_of(part): pretty(contents["run"]) if part == "run" else lines(contents[part]) for part in PARTS}
    files |= described(contents, document, files)
    return sealed(files, {"run_id": run.run_id, "versions": begun(taped(contents)).get("versions", {})})


def contents_of(run: Recording) -> dict[str, Any]:
    """Everything that is kept of a run that has ended.

    Raises:
        CapsuleError: it has not, or leaves nothing behind.
    """
    if run.status not in ENDED:
        raise CapsuleError(
            f"Run {run.run_id} is {run.status}: only what has ended can be sealed. Answer or resume it, or cancel it."
        )
    contents = run.contents()
    contents["run"]["status"] = run.status
    if contents["run"]["options"]["incognito"]:
        raise CapsuleError(f"Run {run.run_id} is incognito: nothing of it is to be kept.")
    if contents["run"]["result"] is None and run.status == "cancelled":  # its checkpoint stays here: what it says goes
        contents["run"]["result"] = {name: getattr(run, name) for name in _AT_ITS_END if getattr(run, name)}
    return contents


def imported(path: Path, store: RunStore, run: Callable[[str], Recording], settings: Settings, as_new: bool) -> str:
    """See ``Workbench.import_capsule``: the run's id."""
    contents = read(path)
    run_id = new_run_id() if as_new else contents["run"]["run_id"]
    if store.bring(run_id, contents):
        return run_id
    if redacted(contents_of(run(run_id)), secrets(settings)) != contents:
        raise CapsuleError(
            f"{path} holds a run {run_id}, and another one of that id is here. Nothing was brought in; --as-new "
            "(as_new=True) brings it in under a new id."
        )
    return run_id


def read(path: Path) -> dict[str, Any]:
    """What a capsule holds, checked: the types of what is kept, and that it can be shown.

    Raises:
        CapsuleError: says what is wrong with it, in one line.
    """
    files = opened(path)
    parts = {part: file_of(part) for part in PARTS}
    missing = [name for name in parts.values() if name not in files]
    if missing:
        raise CapsuleError(f"{path} is refused: it has no {missing[0]}. Nothing was brought in.")
    contents: dict[str, Any] = {}
    for part, name in parts.items():
        rows = [
            loaded(line, name, path) for line in (files[name].split(b"\n") if part != "run" else [files[name]]) if line
        ]
        contents[part] = rows if part != "run" else rows[0]
    try:
        return _checked(contents, loaded(files[MANIFEST], MANIFEST, path)["run_id"])
    except (ValidationError, PlanError, LookupError, TypeError, ValueError, AttributeError) as error:
        raise CapsuleError(
            f"{path} is refused: it holds no run that can be shown ({_reason(error)}). Nothing was brought in."
        ) from None


class _Tape(TypedDict):
    mode: Literal["live", "fork", "replay", "regression", "check"]
    sources: list[str]


class _Asked(TypedDict, total=False):
    """What is wanted of a report."""

    __pydantic_config__ = ConfigDict(extra="forbid")  # type: ignore[misc]

    type: Required[str]
    style: Required[str]
    assumptions: Required[list[str]]
    cached: Required[bool]


class _Report(TypedDict, total=False):
    """What a report's run keeps of it, as it is read here."""

    report_id: str
    fingerprint: str
    final_report: str
    type: str
    style: str
    assumptions: list[str]
    references: list[str]
    numbers: dict[str, int]
    evidence: list[tuple[str, str]]
    consistency: dict[str, Any]


class _Options(TypedDict, total=False):
    kb: Required[list[str]]
    review: Required[list[str]]
    session: Required[str]
    user: Required[str]
    worker: Required[str]
    thresholds: Required[dict[str, float]]
    needs: dict[str, str]
    incognito: Required[Literal[False]]
    debug: Required[bool]
    tape: _Tape
    settings: dict[str, Any]
    prompts: dict[str, PromptTexts]
    replies: dict[str, str]
    plan: dict[str, Any]
    report: _Asked
    decisions: list[dict[str, Any]]
    mismatch: Mismatch
    rest: Mismatch


class _Row(TypedDict):
    __pydantic_config__ = ConfigDict(extra="forbid")  # type: ignore[misc]

    run_id: Annotated[str, Field(pattern=r"^\w[\w.-]{0,63}$")]
    conversation_id: str
    user_id: str
    session_id: str
    message: str
    options: _Options
    status: Literal["done", "failed", "cancelled"]
    error: str | None
    result: ConversationState | None
    created_at: datetime
    ended_at: datetime | None


class _PlanRow(TypedDict):
    version: Annotated[int, Field(ge=0, le=10**9)]
    author: str
    reason: str
    plan: dict[str, Any]


class _Results(TypedDict):
    results: list[RetrievalResult]
    output: dict[str, Any]


class _Body(TypedDict):
    ref: str
    body: _Results


class _Event(TypedDict):
    key: str
    event: dict[str, Any]


class _Effect(TypedDict):
    __pydantic_config__ = ConfigDict(extra="forbid")  # type: ignore[misc]

    page: str
    kind: str
    name: str
    version: str
    given: Any
    value: Any
    seconds: float
    tokens: int
    replayed: bool
    counted: NotRequired[bool]


class _Summary(TypedDict):
    evidence_count: int
    context_length: int
    top_score: float


class _Side(TypedDict):
    name: str
    found: int
    needed: int


class _Signals(TypedDict):
    evidence_count: int
    top_score: float
    thresholds: dict[str, float]
    coverage: list[_Side]
    missing: list[str]
    timeouts: list[str]
    failures: list[str]
    iteration: int
    time_left_s: float


class _Log(TypedDict):
    node: str
    node_type: str
    duration_ms: float
    timestamp: datetime


_BEGUN: Mapping[str, Any] = {
    "clock": datetime,
    "handlers": list[str],
    "ids": dict[str, str],
    "tools": dict[str, dict[str, Any] | None],
    "parts": list[str],
    "prompts": dict[str, PromptTexts],
    "unsearched": list[str],
    "versions": dict[str, str],
}
"""What the first effects of a tape hold, by name; ``settings`` are those of ``Settings``."""


class _Contents(TypedDict):
    run: _Row
    plans: list[_PlanRow]
    records: list[ExecutionRecord]
    bodies: list[_Body]
    decisions: list[Decision]
    events: list[_Event]
    tape: list[_Effect]


def _checked(contents: dict[str, Any], run_id: str) -> dict[str, Any]:
    TypeAdapter(_Contents).validate_json(json.dumps(contents), strict=True)
    row = contents["run"]
    for where, value, kind in _inside(contents):
        try:
            TypeAdapter(kind).validate_json(json.dumps(value), strict=True)
        except ValidationError as error:
            raise ValueError(_reason(error, where)) from None
    if row["run_id"] != run_id:
        raise ValueError("its manifest names another run")
    for plan in contents["plans"]:
        Plan.load(plan["plan"])
    keys = {
        "plans": [p["version"] for p in contents["plans"]],
        "records": [(r["step_id"], r["attempt"]) for r in contents["records"]],
        "bodies": [b["ref"] for b in contents["bodies"]],
        "decisions": [d["review_id"] for d in contents["decisions"]],
        "events": [e["key"] for e in contents["events"]],
    }
    for part, given in keys.items():
        if len(given) != len(set(given)):
            raise ValueError(f"{file_of(part)} has a line twice")
    bodies, refs = set(keys["bodies"]), {r["raw_output_ref"] for r in contents["records"]} - {None}
    if bodies != refs:
        raise ValueError("its records and bodies do not fit together")
    run_html(document_of(contents))
    return contents


def _inside(contents: Mapping[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    """What the state carries as plain data, and what a replay begins with: place, value and type of each."""
    yield from _settings("run.options.settings", contents["run"]["options"].get("settings", {}))
    yield "run.result.report", (contents["run"]["result"] or {}).get("report", {}), _Report
    for number, reflection in enumerate((contents["run"]["result"] or {}).get("reflections", [])):
        yield f"run.result.reflections.{number}.signals", reflection["signals"], _Signals
    for number, record in enumerate(contents["records"]):
        yield f"records.{number}.output_summary", record["output_summary"], _Summary
        yield f"records.{number}.started_at", record["started_at"], datetime | Literal[""]
    for number, line in enumerate(contents["events"]):
        if "execution_log" in line["event"]:
            yield f"events.{number}.execution_log", line["event"]["execution_log"], _Log
    for effect in contents["tape"]:
        if effect["kind"] == "begin" and effect["name"] == "settings":
            yield from _settings("tape.begin.settings", effect["value"])
        elif effect["kind"] == "begin" and effect["name"] in _BEGUN:
            yield f"tape.begin.{effect['name']}", effect["value"], _BEGUN[effect["name"]]


def _settings(where: str, given: Any) -> Iterator[tuple[str, Any, Any]]:
    yield where, given, dict[str, Any]
    for name, value in given.items():
        if field := Settings.model_fields.get(name):
            yield f"{where}.{name}", value, Annotated[field.annotation, name, *field.metadata]


def document_of(contents: Mapping[str, Any]) -> dict[str, Any]:
    """The document of a sealed run, as ``Run.to_dict`` gives it once it is here."""
    row, result = contents["run"], contents["run"]["result"] or {}
    log = [line["event"]["execution_log"] for line in contents["events"] if "execution_log" in line["event"]]
    plan = Plan.load(contents["plans"][-1]["plan"]) if contents["plans"] else None
    names = ("answer", "citations", "support", "stop_reason", "route_decision", "reflections", "merged")
    given = {
        **{name: row[name] for name in ("run_id", "status", "message", "session_id", "user_id", "error")},
        **{name: result.get(name) for name in names},
        **{name: contents[name] for name in ("records", "decisions")},
        **{"holder": None, "review": None, "plan": plan, "log": log},
        "query": result.get("query") or row["message"],
        "statistics": (result.get("merged") or {}).get("statistics"),
    }
    return run_document(SimpleNamespace(**given))


def file_of(part: str) -> str:
    """The file of one part of a run.

    >>> file_of("run"), file_of("tape")
    ('run.json', 'tape.jsonl')
    """
    return "run.json" if part == "run" else f"{part}.jsonl"


def redacted(value: Any, hidden: Iterable[str]) -> Any:
    """A JSON value in which none of these texts stands.

    >>> redacted({"said": ["the key is planted-key"]}, ["planted-key"])
    {'said': ['the key is [secret]']}
    """
    text = json.dumps(value, ensure_ascii=False)
    spelled = [json.dumps(secret, ensure_ascii=False)[1:-1] for secret in hidden]
    if not any(secret in text for secret in spelled):
        return value
    for secret in spelled:
        text = text.replace(secret, _HIDDEN)
    return json.loads(text)


def _reason(error: Exception, where: str = "") -> str:
    if isinstance(error, ValidationError):
        fault = error.errors()[0]
        return f"{'.'.join([*([where] if where else []), *map(str, fault['loc'])])}: {fault['msg']}"
    return " ".join(str(error).split())[:200] or type(error).__name__


_TEXT = '''"""Made by `workbench make-test`: fails when a recorded run takes another course with today's workbench.

It is run again from its tape, without corpus, network and models. Route, plans, steps, judgements, decisions, evidence
and cited sources must come out the same; what a model words is free. The capsule beside this file is a zip.
"""

from pathlib import Path

from workbench import Workbench

CAPSULE = Path(__file__).with_name({capsule})
QUESTION = {question}


def test_{name}(tmp_path: Path) -> None:
    with Workbench.open(tmp_path / "workspace") as wb:
        run = wb.import_capsule(CAPSULE)
        assert run.message.startswith(QUESTION)
        wb.replay(run.run_id, mode="check", corpus="tape")
'''


_LONGEST = 48
"""Of the question in the file, in characters; a Chinese one is two columns wide."""


def written_as_test(run: Recording, path: Path, settings: Settings) -> Path:
    """See ``Workbench.make_test``."""
    if run.status != "done":
        raise RunError(f"Run {run.run_id} is {run.status}: only a run that is done can be made into a test.")
    require_whole(run.run_id, run.tape())
    if path.suffix != ".py":
        raise CapsuleError(f"{path} is not a Python file. Name one, as tests/test_{run.run_id}.py.")
    sealed, beside = capsule(run, settings), path.with_suffix(".zip")
    write_file(beside, sealed, kind=CapsuleError)
    write_file(path, text_of(path.stem, beside.name, run.message).encode(), kind=CapsuleError)
    return path


def text_of(stem: str, capsule: str, question: str) -> str:
    """The file, as a formatter leaves it.

    >>> lines = text_of("test_a-b", "test_a-b.zip", "茶馆哪一年出版？").splitlines()
    >>> print(lines[11], lines[14], sep="\\n")
    QUESTION = "茶馆哪一年出版？"
    def test_a_b(tmp_path: Path) -> None:
    """
    name = re.sub(r"\W", "_", stem).removeprefix("test_") or "run"
    return _TEXT.format(capsule=literal(capsule), question=literal(_begin(question)), name=name)


def literal(text: str) -> str:
    """A text as Python source, in double quotes where that needs no escape; what cannot be seen is spelled out.

    >>> print(literal("It's"), literal('say "yes"'), literal("\u202egnp"))
    "It's" 'say "yes"' "\\u202egnp"
    """
    written = repr(text)
    return written if '"' in text or written[0] == '"' else f'"{written[1:-1]}"'


def _begin(question: str) -> str:
    """As much of a question as fits into a line, without a second kind of quotes."""
    if "'" in question and '"' in question:
        question = question[: question.index('"')]
    while len(literal(question)) > _LONGEST:
        question = question[:-1]
    return question
