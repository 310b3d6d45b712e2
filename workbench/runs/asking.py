"""What may be asked: a message and its options, checked before anything is written down; and many questions at once."""

from __future__ import annotations

import asyncio
import itertools
import unicodedata
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from inspect import signature
from typing import TYPE_CHECKING, Any, TypedDict

from pydantic import ValidationError

from workbench.errors import RunError, UnknownKnowledge, shown
from workbench.graphs.reviewers import Reviewer
from workbench.plans import Plan, unkeepable
from workbench.records.spending import spent
from workbench.runs.fork import dates_of
from workbench.runs.run import Run
from workbench.state import REVIEW_POINTS
from workbench.text import clean

if TYPE_CHECKING:
    import pandas


class Options(TypedDict, total=False):
    """What ``Workbench.start`` takes beside the message, for whatever hands it on."""

    kb: str | Sequence[str] | None
    review: bool | str | Iterable[str] | None
    session: str | None
    user: str
    worker: str | Sequence[str]
    thresholds: Mapping[str, float] | None
    as_of: str
    known: str
    reviewer: Reviewer | None
    decisions: Iterable[Mapping[str, Any]] | None
    models: Mapping[str, Any] | None
    prompts: Mapping[str, Any] | None
    plan: Plan | Mapping[str, Any] | None
    settings: Mapping[str, Any] | None
    incognito: bool
    debug: bool
    report: Mapping[str, Any] | None


def shows(start: Callable[..., Any], *doors: Callable[..., Any]) -> None:
    """Let doors that hand their options on show them, as ``start`` has them, to completion and help."""
    taken = [p for p in signature(start).parameters.values() if p.kind is p.KEYWORD_ONLY]
    for door in doors:
        own = signature(door)
        kept = [p for p in own.parameters.values() if p.kind is not p.VAR_KEYWORD]
        door.__signature__ = own.replace(parameters=[*kept, *taken])  # type: ignore[attr-defined]


LONGEST_NAME = 200
"""How long the name of a session or a user may be, in characters."""


def message_of(message: Any, longest: int) -> str:
    """The message as every store takes it.

    Raises:
        RunError: it is no text, says nothing, or is longer than ``longest`` characters.
    """
    if not isinstance(message, str):
        raise RunError(f"The message is {shown(message)}, not text. Ask with a string.")
    if len(message) > longest:
        raise RunError(
            f"The message has {len(message):,} characters; a question may have {longest:,}. Ask something shorter, and "
            "bring long texts in with `workbench kb add` (or raise WORKBENCH_MAX_MESSAGE_CHARACTERS)."
        )
    cleaned = clean(message)
    if not cleaned.strip():
        raise RunError("The message is empty. Ask something.")
    return cleaned


def options_of(
    *,
    kb: Any,
    review: Any,
    session: Any,
    user: Any,
    worker: Any,
    thresholds: Any,
    known: Iterable[str],
    dates: tuple[Any, Any] = ("", ""),
    points: Sequence[str] = REVIEW_POINTS,
    **flags: Any,
) -> dict[str, Any]:
    """The options of a run as the graph begins with them.

    Raises:
        UnknownKnowledge: lists the known ones.
        RunError: an option has another type or value than it may have.
    """
    names = sorted(known)
    return {
        "kb": _bases(kb, names),
        "review": points_of(review, points),
        "session": _name("session", session),
        "user": _name("user", user),
        "worker": _worker(worker, names),
        "thresholds": _thresholds(thresholds),
        **dates_of(*dates),
        **{name: bool(value) for name, value in flags.items()},
    }


def points_of(review: Any, points: Sequence[str] = REVIEW_POINTS) -> list[str]:
    """Review points, in the order in which a run meets them; ``points`` are all that it has.

    >>> points_of({"reflect", "plan"}), points_of(True), points_of(None)
    (['plan', 'reflect'], ['plan', 'step', 'reflect'], [])
    >>> points_of(["last", "first"], ("first", "last"))
    ['first', 'last']

    Raises:
        RunError: one is not a review point.
    """
    if not review:
        return []
    asked = points if review is True or review == "all" else _several("review", review, "a review point")
    for point in asked:
        if point not in points:
            raise RunError(f"Unknown review point {shown(point)}. Known: {', '.join(points)}.")
    return [point for point in points if point in asked]


def recorded(decisions: Any) -> list[Mapping[str, Any]]:
    """Recorded answers: each names its review point and what was done there.

    Raises:
        RunError: one is no such answer.
    """
    rows = list(decisions) if isinstance(decisions, Iterable) and not isinstance(decisions, str | Mapping) else None
    if rows is None:
        raise RunError(f"decisions is {shown(decisions)}. Give a list of decisions, as `run.decisions` has them.")
    for number, row in enumerate(rows, 1):
        if fault := unkeepable(row):
            raise RunError(f"Decision {number} cannot be kept: {fault}.")
        missing = [name for name in ("point", "action") if not isinstance(row, Mapping) or name not in row]
        if missing:
            raise RunError(
                f'Decision {number} is {shown(row)}, without {missing[0]!r}. One looks like {{"point": "plan", '
                '"action": "approve"}.'
            )
    return rows


def count_of(limit: Any) -> int:
    """How many are wanted.

    Raises:
        RunError: it is no whole number of 1 or more.
    """
    if isinstance(limit, bool) or not isinstance(limit, int) or limit < 1:
        raise RunError(f"limit is {shown(limit)}. Give a whole number of 1 or more.")
    return min(limit, 2**31)


def reviewer_of(reviewer: Any) -> Callable[..., Any] | None:
    """Who answers in place of a person, if anybody.

    Raises:
        RunError: it cannot be called.
    """
    if reviewer is not None and not callable(reviewer):
        raise RunError(f"reviewer is {shown(reviewer)}. Give an object that is called with a request, or None.")
    return reviewer


def _bases(kb: Any, known: list[str]) -> list[str]:
    names = [] if kb is None else _several("kb", kb, "the name of a knowledge base")
    for name in names:
        if name not in ("", "general") and name not in known:
            raise UnknownKnowledge(name, known)
    return list(dict.fromkeys(names))


def _several(option: str, value: Any, what: str) -> list[str]:
    """One string or several, as a list."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, bytes | Mapping) or not isinstance(value, Iterable):
        raise RunError(f"{option} is {shown(value)}. Give {what}, or a list of several.")
    found = list(value)
    for item in found:
        if not isinstance(item, str):
            raise RunError(f"{option} holds {shown(item)}. Give {what}, or a list of several.")
    return found


def _name(option: str, value: Any) -> str:
    if not isinstance(value, str):
        raise RunError(f"{option} is {shown(value)}. Give a name as text.")
    if len(value) > LONGEST_NAME:
        raise RunError(f"{option} has {len(value):,} characters. Give a name of at most {LONGEST_NAME}.")
    if any(unicodedata.category(sign) in ("Cc", "Zl", "Zp") for sign in value):
        raise RunError(
            f"{option} is {shown(value)}, with a line break or another sign that is not printed. Leave it out."
        )
    return clean(value)


def _worker(value: Any, known: list[str]) -> str:
    if not isinstance(value, str | list | tuple) or not all(isinstance(name, str) for name in value):
        raise RunError(f"worker is {shown(value)}. Give a name, as 'papers:graph_agent:retrieve_only', or several.")
    names = clean(value if isinstance(value, str) else ",".join(value))
    if names:
        from workbench.graphs.route import AGENT_TYPES, read_workers

        try:
            workers = read_workers(names)
        except ValueError as error:
            raise RunError(str(error)) from None
        for base, agent_type, _ in workers:
            if agent_type and agent_type not in AGENT_TYPES:
                raise RunError(
                    f"worker is {shown(agent_type)}, which is no agent type. Known: {', '.join(AGENT_TYPES)}. "
                    "A knowledge base is named with its agent, as 'papers:graph_agent', or by kb=."
                )
            if base and base not in known:
                raise UnknownKnowledge(base, known)
    return names


def plan_of(value: Any) -> Plan:
    """A plan, or the JSON form of one.

    Raises:
        RunError: it is neither.
    """
    try:
        return value if isinstance(value, Plan) else Plan.load(value)
    except ValidationError as error:
        fault = error.errors()[0]
        where = ".".join(["plan", *map(str, fault["loc"])])
        raise RunError(f"{where} cannot be {shown(fault['input'])}: {fault['msg'].rstrip('.')}.") from None


def _thresholds(value: Any) -> dict[str, float]:
    if value is None or value == {}:
        return {}
    from workbench.graphs.review import Thresholds

    try:
        return Thresholds.model_validate(value).model_dump(exclude_none=True)
    except ValidationError as error:
        fault = error.errors()[0]
        where = ".".join(["thresholds", *map(str, fault["loc"])])
        if fault["type"] == "refused":
            raise RunError(f"{where}: {fault['msg']}") from None
        raise RunError(f"{where} cannot be {shown(fault['input'])}: {fault['msg'].rstrip('.')}.") from None


class Runs(list[Any]):
    """What ``map`` gives: a run for each question, or the error with which it could not begin."""

    def __init__(self, found: Any = (), questions: Any = ()):
        super().__init__(found)
        self._questions = list(questions)

    def to_frame(self) -> pandas.DataFrame:
        """One row a question: what was asked, how it ended, the answer, why one failed, what models took."""
        import pandas

        return pandas.DataFrame([self._row(place, one) for place, one in enumerate(self)], columns=list(_COLUMNS))

    def _row(self, place: int, one: Any) -> dict[str, Any]:
        if isinstance(one, Run):
            run = one.recording()
            told = {name: getattr(run, name) for name in ("message", "run_id", "status", "answer", "error")}
            seconds, took = run.to_dict()["figures"]["total_s"], spent(e for e in run.tape() if e.kind == "model")
            cost = {"calls": took.calls, "tokens": took.tokens, "money": took.money}
            return {**told, "kb": run.kb_prefix, "evidence": len(run.evidence), "seconds": seconds, **cost}
        asked = self._questions[place] if len(self._questions) == len(self) else ""
        return {"message": asked, "status": "refused", "error": f"{type(one).__name__}: {one}"}

    def _repr_html_(self) -> str:
        frame = self.to_frame().drop(columns="seconds")  # a cell that is executed again shows the same
        return str(frame.to_html(index=False))


async def asked_each(
    ask: Callable[..., Awaitable[Run]],
    questions: Sequence[str],
    return_exceptions: bool,
    progress: Callable[[str, int, int], None] | None,
    options: Mapping[str, Any],
) -> Runs:
    """Ask them, ``AT_ONCE`` at a time, and tell how many have ended."""
    slots, done = asyncio.Semaphore(AT_ONCE), itertools.count(1)
    tell = progress or (lambda *_: None)

    async def one(message: str) -> Run:
        async with slots:
            try:
                return await ask(message, **options)
            finally:
                tell("asked", next(done), len(questions))

    ended = Runs(await asyncio.gather(*map(one, questions), return_exceptions=True), questions)
    refused = next((one for one in ended if isinstance(one, BaseException)), None)
    if refused is not None and not (return_exceptions and isinstance(refused, Exception)):
        kept = ", ".join(one.run_id for one in ended if isinstance(one, Run))
        refused.add_note(f"The other runs of this map: {kept or 'none'}. return_exceptions=True gives them back.")
        raise refused
    return ended


AT_ONCE = 10
_COLUMNS = ("message", "run_id", "status", "kb", "answer", "error", "evidence", "seconds", "calls", "tokens", "money")
