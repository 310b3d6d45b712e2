"""What may be asked: a message and its options, checked before anything is written down."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from inspect import Parameter, signature
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SecretStr,
    ValidationInfo,
)

from workbench.errors import RunError, UnknownKnowledge, refusing, shown
from workbench.extensions import required
from workbench.models.wire import hidden
from workbench.plans import Plan, unkeepable
from workbench.runs.calls import own_prompts
from workbench.settings import Settings, all_settings, merge_settings, models_by_role
from workbench.state import (
    REPORT_POINTS,
    REVIEW_POINTS,
    Data,
    Json,
    pick,
    unique,
    without_empty,
    without_none,
)
from workbench.text import clean, iso
from workbench.tools.registry import require

LONGEST_MESSAGE = 4_000
"""How long a question may be, in characters."""
LONGEST_NAME = 200
"""How long the name of a session or a user may be, in characters."""


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


def checked_points(review: Any, points: Sequence[str] = REVIEW_POINTS) -> list[str]:
    """Review points, in the order in which a run meets them; ``points`` are all that it has.

    >>> checked_points({"reflect", "plan"}), checked_points(True), checked_points(None)
    (['plan', 'reflect'], ['plan', 'step', 'reflect'], [])
    >>> checked_points(["last", "first"], ("first", "last"))
    ['first', 'last']

    Raises:
        RunError: one is not a review point.
    """
    if not review:
        return []
    every = review is True or review == "all"
    wanted = points if every else _several("review", review, "a review point")
    for point in wanted:
        if point not in points:
            raise RunError(f"Unknown review point {shown(point)}. Known: {', '.join(points)}.")
    return [point for point in points if point in wanted]


def _several(option: str, value: Any, what: str) -> list[str]:
    """Return one string or several as a list."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, bytes | Mapping) or not isinstance(value, Iterable):
        raise RunError(f"{option} is {shown(value)}. Give {what}, or a list of several.")
    items = list(value)
    for item in items:
        if not isinstance(item, str):
            raise RunError(f"{option} holds {shown(item)}. Give {what}, or a list of several.")
    return items


def _bases(kb: Any, info: ValidationInfo) -> list[str]:
    names = _several("kb", kb, "the name of a knowledge base")
    bases = _from_context(info, "bases")
    for name in names:
        if name not in ("", "general") and name not in bases:
            raise UnknownKnowledge(name, sorted(bases))
    return unique(names)


def _points(review: Any, info: ValidationInfo) -> list[str]:
    return checked_points(
        review, REVIEW_POINTS if info.data.get("report") is None else REPORT_POINTS
    )


def _printable(name: str, info: ValidationInfo) -> str:
    if any(unicodedata.category(sign) in ("Cc", "Zl", "Zp") for sign in name):
        raise RunError(
            f"{info.field_name} is {shown(name)}, "
            "with a line break or another sign that is not printed. Leave it out."
        )
    return clean(name)


Name = Annotated[str, Field(strict=True, max_length=LONGEST_NAME), AfterValidator(_printable)]


def _worker(value: Any, info: ValidationInfo) -> str:
    if not isinstance(value, str | list | tuple) or not all(
        isinstance(name, str) for name in value
    ):
        raise RunError(
            f"worker is {shown(value)}. Give a name, as 'papers:graph_agent:retrieve_only', or several."
        )
    names = clean(value if isinstance(value, str) else ",".join(value))
    bases = _from_context(info, "bases")
    if names:
        from workbench.graphs.route import TOOL_AGENT, parse_worker_names

        try:
            workers = parse_worker_names(names)
        except ValueError as error:
            raise RunError(str(error)) from None
        for base, _, _ in workers:
            if base and base not in bases:
                raise UnknownKnowledge(base, sorted(bases))
        if len({agent_type == TOOL_AGENT for _, agent_type, _ in workers}) > 1:
            raise RunError(
                f"worker is {shown(names)}. A {TOOL_AGENT} works alone: it calls the tools of the others."
            )
    return names


def read_plan(value: Any) -> Plan:
    """Return a plan or its JSON as a plan.

    Raises:
        RunError: it is no plan; it names the field.
    """
    with refusing("plan"):
        return value if isinstance(value, Plan) else Plan.load(value)


def _plan(value: Any, info: ValidationInfo) -> Json:
    return require(read_plan(value), _from_context(info, "tools")).dump()


def _report(value: Any, info: ValidationInfo) -> Json:
    asked_for = required("nodes", "options", "reports")
    settings = _from_context(info, "settings").with_changes(info.data.get("settings", {}))
    return dict(asked_for(settings, value))


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
    if value == {}:
        return {}
    from workbench.graphs.review import Thresholds

    with refusing("thresholds"):
        return Thresholds.model_validate(value).model_dump(exclude_none=True)


def checked_settings(settings: Data) -> Json:
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
    return pick(loaded, *settings)


def _decisions(value: Any) -> list[Any]:
    if not isinstance(value, Iterable) or isinstance(value, str | Mapping):
        raise RunError(
            f"decisions is {shown(value)}. Give a list of decisions, as `run.decisions` has them."
        )
    rows = list(value)
    for number, row in enumerate(rows, 1):
        if fault := unkeepable(row):
            raise RunError(f"Decision {number} cannot be kept: {fault}.")
        names = ("point", "action")
        missing = [n for n in names if not isinstance(row, Mapping) or n not in row]
        if missing:
            raise RunError(
                f'Decision {number} is {shown(row)}, without {missing[0]!r}. One looks like {{"point": "plan", '
                '"action": "approve"}.'
            )
    return rows


IsoDate = Annotated[
    str, BeforeValidator(lambda value, info: iso_date(str(info.field_name), value))
]
ThresholdEdits = Annotated[dict[str, float], BeforeValidator(checked_thresholds)]
SettingsEdits = Annotated[Json, AfterValidator(checked_settings)]
_PROMPTS = BeforeValidator(lambda value, info: own_prompts(value, _from_context(info, "prompts")))


def _from_context(info: ValidationInfo, name: str) -> Any:
    return (info.context or {})[name]


class RunOptions(BaseModel):
    """The options of a question: their names, what each may be, and what is stored of them with the run.

    They are read with the workspace as pydantic's context: its ``settings``, ``bases``, ``tools`` and ``prompts``.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    kb: Annotated[list[str], BeforeValidator(_bases)] = []
    """The knowledge base, or several; without one the router chooses."""
    session: Name | None = None
    """The conversation that this continues, as ``run.session_id`` names it: its last messages are part of the question.
    None begins a new one, which has the id of the run."""
    user: Name = "default"
    """Whose conversation."""
    worker: Annotated[str, BeforeValidator(_worker)] = ""
    """``kb:agent:mode``, which then decides how is searched; several are asked in one run."""
    thresholds: ThresholdEdits = {}
    """``min_evidence`` and ``min_top_score`` in place of the intent's."""
    as_of: IsoDate = ""
    """The date as of which is asked, as "2003" or "2003-05-01": documents with a later ``valid_from`` (else a later
    date) or an earlier ``valid_to`` are left out. "" takes it from the question ("as of 2003")."""
    known: IsoDate = ""
    """The date by which documents are to have been known, by their ``known_since``."""
    reviewer: Callable[..., Any] | None = None
    """Answers at the review points in place of a person."""
    decisions: Annotated[list[Any] | None, BeforeValidator(_decisions)] = None
    """Recorded answers, given in their order; after the last one the run waits for a person."""
    models: Annotated[dict[str, str], BeforeValidator(models_by_role)] = {}
    """A chat model for each role that is to have another than the settings say, by its name or as a LangChain object;
    ``"rules"`` keeps its deterministic default, and ``"all"`` means every role."""
    prompts: Annotated[Json, _PROMPTS] = {}
    """Prompts for this run alone, as ``wb.prompts`` takes them."""
    plan: Annotated[Json | None, BeforeValidator(_plan)] = None
    """The first plan, in place of the planner's."""
    settings: SettingsEdits = {}
    """Single settings that differ for this run, as ``{"max_iterations": 1}``."""
    incognito: bool = False
    """Write nothing down; the run cannot be resumed elsewhere, and is forgotten 50 runs after its end."""
    debug: bool = False
    """Kept with the run as a flag; the debug events of every run are kept."""
    report: Annotated[Json | None, BeforeValidator(_report)] = None
    """What ``wb.report`` takes, as ``{"report_type": "short"}``, to have a report in place of an answer."""
    review: Annotated[list[str], BeforeValidator(_points)] = []
    """Where a person decides: ``plan``, ``step``, ``reflect``, several of them, or True for all."""

    @classmethod
    def read(cls, workspace: Any, options: Data) -> RunOptions:
        """Return the options as this workspace reads them; one that is None has its default.

        Raises:
            UnknownKnowledge: lists the known ones.
            RunError: an option is not one, or has another value than it may have: it says which, and what is allowed.
        """
        context = {"settings": workspace.settings, "bases": workspace.knowledge.names()}
        with refusing(options=cls.model_fields):
            return cls.model_validate(
                without_none(options),
                context={**context, "tools": workspace.tools, "prompts": workspace.prompts},
            )

    def stored(self, session: str) -> Json:
        """Return what is stored with the run, as JSON; ``session`` is its conversation unless it names one."""
        names = ("kb", "review", "user", "worker", "thresholds", "incognito", "debug")
        options = {name: getattr(self, name) for name in names}
        options["session"] = session if self.session is None else self.session
        more: Json = {"report": self.report, "plan": self.plan, "prompts": self.prompts}
        more |= {"settings": merge_settings(self.settings, {"models": self.models})}
        more |= {"dates": [self.as_of, self.known] if self.as_of or self.known else None}
        return options | without_empty(more)


def shows(*doors: Callable[..., Any]) -> None:
    """Let doors that take the options show them in completion and help."""
    parameters = [
        # its annotation is of what is stored
        Parameter(name, Parameter.KEYWORD_ONLY, default=field.default)
        for name, field in RunOptions.model_fields.items()
    ]
    text = "\n".join(
        f"            {name}: {field.description}"
        for name, field in RunOptions.model_fields.items()
    )
    for door in doors:
        signed = signature(door)
        first = [p for p in signed.parameters.values() if p.kind is not p.VAR_KEYWORD]
        door.__signature__ = signed.replace(parameters=[*first, *parameters])  # type: ignore[attr-defined]
        door.__doc__ = f"{door.__doc__}\n        Options:\n{text}\n"
