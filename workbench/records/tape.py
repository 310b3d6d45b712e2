"""The tape of a run: every effect under the content that determines it, so that another run may take it from there.

An effect is a call of a tool, a model, a planner or a handler, a read of a knowledge base or of the conversation, the
settings and the clock at the beginning. Its key is a digest of kind, name, version and canonical input; a tool's input
holds the keys of the steps before it, so a changed step changes whatever depends on it and nothing else.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import threading
import zlib
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any, Literal, Protocol

from workbench.errors import Divergence, RunError
from workbench.plans import Plan, PlanStep, canonical_json
from workbench.state import Data, ExecutionRecord, Json
from workbench.text import without_secrets

_WIDE = (("\u3000", "\u9fff"), ("\uac00", "\ud7af"), ("\uf900", "\ufaff"), ("\uff00", "\uffef"))


def estimated_tokens(value: Any) -> int:
    """About how many tokens a text is: three for five Chinese characters, one for four of other scripts.

    >>> estimated_tokens("茶馆哪一年出版"), estimated_tokens(["When was ", "it released"])
    (5, 5)
    """
    wide, narrow = _characters(value)
    return math.ceil(0.6 * wide + 0.25 * narrow)


def _characters(value: Any) -> tuple[int, int]:
    if isinstance(value, str):
        wide = sum(any(first <= c <= last for first, last in _WIDE) for c in value)
        return wide, len(value) - wide
    inside = value.values() if isinstance(value, Mapping) else value if isinstance(value, (list, tuple)) else ()
    wides, narrows = zip(*map(_characters, inside), strict=True) if inside else ((), ())
    return sum(wides), sum(narrows)


PARTS = ("plan", "evidence", "decisions", "merged", "answer")
_OF_ONE_RUN = re.compile(
    r"(?:run|plan|review|session|user|conversation|request|message|user_message|thread|interrupt)_id|raw_output_ref|"
    r".*_ms|.*_at|timestamp|remaining_budget|remaining_s|time_left_s|time"
)


def canonical(document: Data) -> bytes:
    """Canonical JSON of a run's plan, evidence, decisions, merged and answer, for comparing runs.

    Ids of the run, times and durations are left out; scores have six digits; evidence of equal score stands by id.

    >>> piece = {"result_id": "b", "score": 0.5}
    >>> one = {"plan": {"plan_id": "a1", "steps": []}, "answer": "1993 [1]", "evidence": [piece]}
    >>> two = {**one, "evidence": [{**piece, "score": 0.50000004}], "run_id": "another", "log": []}
    >>> canonical(one) == canonical(two)
    True
    >>> canonical(one).decode()
    '{"answer":"1993 [1]","evidence":[{"result_id":"b","score":0.5}],"plan":{"steps":[]}}'
    """
    return canonical_json({name: comparable(document[name]) for name in PARTS if name in document}).encode()


def comparable(value: Any) -> Any:
    """Return a value as two runs may share it: no ids, no times, scores to six digits, evidence by score and id."""
    if isinstance(value, Mapping):
        return {name: comparable(inner) for name, inner in value.items() if not _OF_ONE_RUN.fullmatch(name)}
    if isinstance(value, (list, tuple)):
        items = [comparable(inner) for inner in value]
        scored = items and all(isinstance(i, dict) and "score" in i and "result_id" in i for i in items)
        return sorted(items, key=lambda i: (-i["score"], i["result_id"])) if scored else items
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError(f"{value} has no JSON form: a run's document holds finite numbers only.")
        return round(value, 6) + 0.0  # no negative zero
    return value


FULL = "full"
"""Name of the effect that says that a tape ends before its run."""
Mode = Literal["live", "fork", "replay", "regression"]
FROM_TAPE: tuple[Mode, ...] = ("replay", "regression")
"""Modes in which what the tape does not know is a divergence."""
RULES = "rules"
"""The name of the planner that follows rules."""


@dataclass(frozen=True)
class Effect:
    """One effect of a run: a call outside of it, and the result.

    Attributes:
        kind: ``tool``, ``model``, ``plan``, ``handler``, ``knowledge``, ``memory`` or ``begin``.
        name: of the tool, model, method.
        version: of the tool, and the fingerprint of the knowledge base.
        arguments: the input, as JSON.
        value: what came back, as JSON; of a tool ``{"record", "body"}``.
        seconds: how long it took when it was made.
        tokens: what a model read and wrote.
        replayed: taken from another run's tape.
        counted: the tokens are its server's own count, no estimate.
    """

    kind: str
    name: str
    version: str
    arguments: Any
    value: Any
    seconds: float = 0.0
    tokens: int = 0
    replayed: bool = False
    counted: bool = False

    @cached_property
    def key(self) -> str:
        """32 hex digits."""
        return effect_key(self.kind, self.name, self.version, self.arguments)


_PARTS = tuple(part.name for part in fields(Effect))


def effect_key(kind: str, name: str, version: str, arguments: Any) -> str:
    """Return the content address of an effect.

    >>> key = effect_key("tool", "naive_search", "1", {"b": 1, "a": 2})
    >>> key == effect_key("tool", "naive_search", "1", {"a": 2, "b": 1})
    True
    """
    return hashlib.sha256(canonical_json([kind, name, version, arguments]).encode()).hexdigest()[:32]


class TapeStore(Protocol):
    """The storage of tapes: pages of effects by run."""

    def save_page(self, run_id: str, page: str, effects: bytes) -> None:
        """Keep a page, once."""

    def pages(self, run_id: str) -> list[bytes]:
        """Return every page of a run, oldest first."""

    def records(self, run_id: str) -> list[ExecutionRecord]:
        """Return what each attempt at each step did."""

    def body(self, run_id: str, ref: str) -> Json:
        """Return what an attempt found."""


class Tape:
    """Records the effects of one run, and answers them from other runs' tapes as far as its mode allows.

    ``live`` answers nothing. ``fork`` answers what it has, the rest is done. ``replay`` answers everything, and what it
    has not is a ``Divergence``: no network, no model, no clock. ``regression`` asks models again.

    Args:
        store: keeps the pages.
        run_id: whose tape it is.
        mode: see above.
        sources: runs whose tapes answer; of two that know the same key the first one does.
        replies: edited replies of models, by the key of the call.
        limit: bytes that its pages may have; a full tape is marked, and records nothing more.
    """

    def __init__(
        self,
        store: TapeStore,
        run_id: str,
        mode: Mode = "live",
        sources: Iterable[str] = (),
        limit: int = 1 << 25,
        replies: Mapping[str, str] = MappingProxyType({}),
    ):
        self.run_id, self.mode, self._store = run_id, mode, store
        self._left = limit - sum(map(len, store.pages(run_id)))
        self._lock, self._fresh = threading.Lock(), list[Effect]()
        self._calls: dict[str, Effect] | None = None
        self.sources = tuple(sources)
        self.known: dict[str, Effect] = {}
        self._twins: dict[str, dict[str, Effect]] = {}
        # The last source first, so that the first one wins where two know the same key.
        for source in reversed(self.sources):
            effects = read(store, source)
            self.known |= {effect.key: effect for effect in effects}
            self._twins |= twins(effects)
        for key in replies.keys() & self.known.keys():
            self.known[key] = with_reply(self.known[key], replies[key])

    def find(self, kind: str, name: str, version: str, arguments: Any, step_id: str = "") -> Effect | None:
        """Return the recorded effect, if this mode answers from the tape.

        Of a call that several steps made, the one of ``step_id`` answers: a tool may say something else each time.

        Raises:
            Divergence: the mode must answer and cannot.
        """
        if self.mode == "live" or (self.mode == "regression" and kind == "model"):
            return None
        key = effect_key(kind, name, version, arguments)
        effect = self._twins.get(key, {}).get(step_id) or self.known.get(key)
        if effect is None and self.mode != "fork":
            raise divergence(kind, name, version, arguments, self.known.values())
        return effect

    def keep(self, effect: Effect) -> None:
        """Record an effect; it is durable with the next ``flush``."""
        with self._lock:
            self._fresh.append(effect)
            if effect.kind == "model" and self._calls is not None:
                self._calls[effect.key] = effect

    def calls(self) -> list[Effect]:
        """Return the calls of models that this run has made so far, or has from another tape."""
        with self._lock:
            # Pages are unpacked once; from then on `keep` adds each new call under the same lock.
            if self._calls is None:
                effects = [effect for page in self._store.pages(self.run_id) for effect in unpacked(page)]
                self._calls = {effect.key: effect for effect in [*effects, *self._fresh] if effect.kind == "model"}
            return list(self._calls.values())

    def effect(self, kind: str, name: str, arguments: Any, compute: Callable[[], Any], version: str = "") -> Any:
        """Return the effect's value: from the tape, or computed and recorded."""
        recorded = self.find(kind, name, version, arguments)
        value = masked(compute()) if recorded is None else recorded.value
        self.keep(Effect(kind, name, version, arguments, value, replayed=recorded is not None))
        return value

    async def aeffect(
        self,
        kind: str,
        name: str,
        arguments: Any,
        compute: Callable[[], Awaitable[Any]],
        *,
        clock: Callable[[], float],
        version: str = "",
    ) -> Effect:
        """As ``effect``, awaited; gives the whole effect."""
        recorded = self.find(kind, name, version, arguments)
        if recorded is None:
            began = clock()
            # Masked before anything sees it: the run must continue with the same value that a replay will read.
            value = masked(await compute())
            seconds, tokens = round(clock() - began, 6), 0
            usage = value.get("usage") if kind == "model" and isinstance(value, Mapping) else None
            if kind == "model":
                tokens = usage["input"] + usage["output"] if usage else estimated_tokens([arguments, value])
            effect = Effect(kind, name, version, arguments, value, seconds, tokens, counted=bool(usage))
        else:
            effect = replace(recorded, replayed=True)
        self.keep(effect)
        return effect

    def flush(self, page: str, *, once: bool = False) -> None:
        """Make what was recorded durable, under a name that the run determines.

        A node that runs again after a kill adds what came otherwise this time, and of one key the later effect counts;
        with ``once`` the first page of the name is the only one.
        """
        # Swapped under the lock, written outside it: tools on other threads keep effects meanwhile.
        with self._lock:
            fresh, self._fresh = self._fresh, []
        if fresh:
            effects = packed(fresh)
            self._left -= len(effects)
            # A full tape gets one marker in place of the page: a replay can tell a cut tape from a short run.
            if self._left < 0:
                page, once, effects = FULL, True, packed([Effect("begin", FULL, "", {}, None)])
            # The digest keeps apart what two executions of one task recorded; equal pages have equal names, and the
            # store ignores a name that it has, so a node that runs again after a crash adds nothing twice.
            name = page if once else f"{page} {hashlib.sha256(effects).hexdigest()[:8]}"
            self._store.save_page(self.run_id, name, effects)


class NoTape(Tape):
    """A tape that records nothing: for retrieve-only agents, and custom graphs."""

    def __init__(self) -> None:
        self.mode, self.known = "live", {}

    def keep(self, effect: Effect) -> None:
        """Drop the effect."""

    def calls(self) -> list[Effect]:
        """Return no calls."""
        return []

    def flush(self, page: str, *, once: bool = False) -> None:
        """Do nothing."""


def reply_text(effect: Effect) -> str:
    """Return what a model said in a call, whole.

    >>> reply_text(Effect("model", "writer", "", {}, {"chunks": ["In ", "1993."]}))
    'In 1993.'
    """
    value = effect.value
    if isinstance(value, Mapping):
        return str(value.get("text") or "".join(value.get("chunks") or ()) or value.get("error") or "")
    return "".join(map(str, value)) if isinstance(value, list) else str(value)


def with_reply(effect: Effect, text: str) -> Effect:
    """Return the call, as if the model had said this."""
    value = {name: reply for name, reply in effect.value.items() if name != "error"}
    reply: Any = {"chunks": [text]} if "chunks" in value else {"text": text}
    return replace(effect, value={**value, **reply, "edited": True})


def require_whole(run_id: str, effects: Iterable[Effect]) -> None:
    """Refuse a tape from which a run cannot be made again.

    Raises:
        RunError: there is none, or it was too long to be kept.
    """
    begun = {effect.name for effect in effects if effect.kind == "begin"}
    if not begun:
        raise RunError(f"Run {run_id} has no tape: it was pruned.")
    if FULL in begun:
        raise RunError(
            f"The tape of run {run_id} is not whole: it grew over WORKBENCH_TAPE_MB. Raise it and ask again."
        )


def begun(effects: Iterable[Effect]) -> Json:
    """Return what a run began with, by name: settings, clock, ids, tools, versions; empty without a tape."""
    return {effect.name: effect.value for effect in effects if effect.kind == "begin"}


def fingerprints(effects: Iterable[Effect]) -> dict[str, str]:
    """Return the fingerprint of each knowledge base as the run saw it, by its name."""
    read = (effect for effect in effects if effect.kind == "knowledge" and effect.name.endswith(".fingerprint"))
    return {effect.name.removesuffix(".fingerprint"): str(effect.value) for effect in read}


def read(store: TapeStore, run_id: str) -> list[Effect]:
    """Return every effect of a run: its pages in the order in which they were kept, then the calls of tools.

    A tool's effect is its record and its body, which are kept anyway; the tape repeats neither.
    """
    return [*(effect for page in store.pages(run_id) for effect in unpacked(page)), *_tool_calls(store, run_id)]


def _tool_calls(store: TapeStore, run_id: str) -> Iterator[Effect]:
    for record in store.records(run_id):
        if "effect" in record:
            ref, effect = record["raw_output_ref"], record["effect"]
            value = {"record": record, "body": store.body(run_id, ref) if ref else None}
            replayed, seconds = record.get("replayed", False), record["duration_ms"] / 1000
            yield Effect("tool", record["tool"], effect["version"], effect["given"], value, seconds, 0, replayed)


def twins(effects: Iterable[Effect]) -> dict[str, dict[str, Effect]]:
    """Return the calls of tools by key, and of one key by the step that made them."""
    calls: dict[str, dict[str, Effect]] = {}
    for effect in effects:
        if effect.kind == "tool":
            calls.setdefault(effect.key, {})[effect.value["record"]["step_id"]] = effect
    return calls


def attempt_arguments(step: PlanStep, kb: str, attempt: int, upstream: Mapping[str, str]) -> Json:
    """Return what an attempt at a step is given: its input and budget, and the calls before it.

    Steps are named by the keys of their calls, so that a step that has another id in another plan is the same call.

    Args:
        step: the step.
        kb: the knowledge base that it asks when its input names none.
        attempt: counted from 1.
        upstream: for each step before it, the key of its last call.

    >>> one = PlanStep(step_id="b", objective="", tool="t", tool_input={"names": {"$from": "a.names"}})
    >>> two = one.model_copy(update={"step_id": "z", "tool_input": {"names": {"$from": "y.names"}}})
    >>> attempt_arguments(one, "papers", 1, {"a": "0f"}) == attempt_arguments(two, "papers", 1, {"y": "0f"})
    True
    """
    return {
        "input": step.input_with(lambda source: upstream.get(source, "")),
        "kb": step.tool_input.get("kb_prefix") or kb,
        "budget": step.budget.model_dump(mode="json", exclude={"max_retries"}),
        "attempt": attempt,
        "upstream": sorted({upstream.get(name, "") for name in step.dependencies()}),
    }


def answered(
    plan: Plan,
    effects: Iterable[Effect],
    records: Iterable[ExecutionRecord],
    kb: str,
    versions: Mapping[str, str],
) -> dict[str, str]:
    """For each step of a plan, dependencies first, how these effects say that its call ended; empty where none does.

    Args:
        plan: the steps.
        effects: what is on the tapes.
        records: how steps ended that called no tool: skipped, or refused.
        kb: the knowledge base of steps that name none.
        versions: the fingerprints of knowledge bases as they are now; of others, what they were.
    """
    calls = {effect.key: effect for effect in effects if effect.kind == "tool"}
    last = {record["step_id"]: record for record in records}
    were = {effect.arguments["kb"]: effect.version for effect in reversed(calls.values())}
    upstream, ends = dict[str, str](), dict[str, str]()
    for step_id in plan.topological_order():
        step, keys = plan.step(step_id), []
        for attempt in range(step.budget.max_retries + 1, 0, -1):
            call = attempt_arguments(step, kb, attempt, upstream)
            keys.append(effect_key("tool", step.tool, {**were, **versions}.get(call["kb"], ""), call))
        key = next((key for key in keys if key in calls), "")
        ends[step_id] = calls[key].value["record"]["status"] if key else ""
        if not key and step_id in last and "effect" not in last[step_id]:
            key = key_of_record(last[step_id])
            ends[step_id] = key if key != "skipped" else ""  # it never started, and may now
        upstream[step_id] = key or keys[-1]
    return ends


def key_of_record(record: ExecutionRecord) -> str:
    """Return the key of the tool call that a record is of; how the step ended, when no tool was called."""
    effect = record.get("effect")
    return effect_key("tool", record["tool"], effect["version"], effect["given"]) if effect else record["status"]


def masked(value: Any) -> Any:
    """Return a JSON value without secrets that the process knows; chunks of a reply are looked at together.

    >>> from workbench.text import keep_secret
    >>> keep_secret("doctest-key-1")
    >>> masked({"chunks": ["Bearer doctest", "-key-1."]}), masked(["a doctest-key-1"]), masked(None)
    ({'chunks': ['Bearer [secret].']}, ['a [secret]'], None)
    """
    if isinstance(value, Mapping) and isinstance(chunks := value.get("chunks"), list):
        joined = "".join(map(str, chunks))
        return value if (bare := without_secrets(joined)) == joined else {**value, "chunks": [bare]}
    try:
        text = json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError):
        return value
    return value if (bare := without_secrets(text)) == text else json.loads(bare)


def packed(effects: Iterable[Effect]) -> bytes:
    """Effects as bytes: compressed JSON, nothing else."""
    rows = [{name: getattr(effect, name) for name in _PARTS} for effect in effects]
    text = json.dumps(rows, ensure_ascii=False, separators=(",", ":"))
    return zlib.compress(without_secrets(text).encode(), 1)


def unpacked(page: bytes) -> list[Effect]:
    """Return the effects of a page.

    >>> effect = Effect("memory", "list_messages", "", {"limit": 6}, [])
    >>> unpacked(packed([effect])) == [effect]
    True
    """
    return [Effect(**row) for row in json.loads(zlib.decompress(page))]


def nearest(kind: str, name: str, version: str, arguments: Any, effects: Iterable[Effect]) -> Effect | None:
    """Return the effect of the same kind and name whose input differs the least."""
    same = [effect for effect in effects if (effect.kind, effect.name) == (kind, name)]
    return min(same, key=lambda e: (len(differing(e, version, arguments)), e.key), default=None)


def divergence(kind: str, name: str, version: str, arguments: Any, effects: Iterable[Effect]) -> Divergence:
    """Return what was asked that the tape does not know, next to what it knows of the same kind and name."""
    closest = nearest(kind, name, version, arguments, effects)
    return Divergence(
        kind=kind,
        name=name,
        expected=None if closest is None else {"version": closest.version, "input": closest.arguments},
        got={"version": version, "input": arguments},
        differs=["there is no such effect on the tape"] if closest is None else differing(closest, version, arguments),
    )


def differing(effect: Effect, version: str, arguments: Any) -> list[str]:
    """Return the parts of an effect's key that are not the same: ``version``, or paths into the input."""
    parts = ["version"] if effect.version != version else []
    return parts + [f"input{path}" for path in differences(effect.arguments, arguments)]


def differences(first: Any, second: Any, path: str = "") -> list[str]:
    """Return where two JSON values differ.

    >>> differences({"query": "a", "k": [1, 2]}, {"query": "b", "k": [1, 3]})
    ['.k[1]', '.query']
    """
    if isinstance(first, Mapping) and isinstance(second, Mapping):
        names = sorted({*first, *second})
        return [p for n in names for p in differences(first.get(n), second.get(n), f"{path}.{n}")]
    if isinstance(first, list) and isinstance(second, list) and len(first) == len(second):
        return [
            p for i, (a, b) in enumerate(zip(first, second, strict=True)) for p in differences(a, b, f"{path}[{i}]")
        ]
    return [] if first == second else [path]
