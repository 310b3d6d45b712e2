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
import time
import zlib
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from itertools import chain
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

from workbench.errors import Divergence
from workbench.plans import Plan, PlanStep, canonical_json
from workbench.state import Data, ExecutionRecord, Json, Records, without_empty
from workbench.text import text_digest, to_json, without_secrets

if TYPE_CHECKING:
    from workbench.records.store import RunStore

_WIDE = (("\u3000", "\u9fff"), ("\uac00", "\ud7af"), ("\uf900", "\ufaff"), ("\uff00", "\uffef"))


def estimated_tokens(value: Any) -> int:
    """About how many tokens a text is: three for five Chinese characters, one for four of other scripts.

    >>> estimated_tokens("茶馆哪一年出版"), estimated_tokens(["When was ", "it released"])
    (5, 5)
    """
    text = _text(value)
    wide = sum(any(first <= c <= last for first, last in _WIDE) for c in text)
    return math.ceil(0.6 * wide + 0.25 * (len(text) - wide))


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    inside = value.values() if isinstance(value, Mapping) else value
    if not isinstance(value, (Mapping, list, tuple)):
        inside = ()
    return "".join(map(_text, inside))


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
    return canonical_json(
        {name: comparable(document[name]) for name in PARTS if name in document}
    ).encode()


def comparable(value: Any) -> Any:
    """Return a value as two runs may share it: no ids, no times, scores to six digits, evidence by score and id."""
    if isinstance(value, Mapping):
        return {
            name: comparable(inner)
            for name, inner in value.items()
            if not _OF_ONE_RUN.fullmatch(name)
        }
    if isinstance(value, (list, tuple)):
        items = [comparable(inner) for inner in value]
        scored = items and all(
            isinstance(i, dict) and "score" in i and "result_id" in i for i in items
        )
        return sorted(items, key=lambda i: (-i["score"], i["result_id"])) if scored else items
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError(
                f"{value} has no JSON form: a run's document holds finite numbers only."
            )
        return round(value, 6) + 0.0  # no negative zero
    return value


Mode = Literal["live", "fork", "replay"]


@dataclass(frozen=True)
class Effect:
    """One effect of a run: a call outside of it, or the execution of a node, and the result.

    Attributes:
        kind: ``tool``, ``model``, ``plan``, ``handler``, ``knowledge``, ``memory`` or ``begin``; of a recorded graph
            also ``node``, ``edge``, ``task`` and ``call``.
        name: of the tool, model, method, node or function.
        parts: everything that it depends on, as JSON: ``version`` of the tool, the knowledge base or the code, and
            ``input``; of a recorded graph, digests of them and of ``config``, ``context``, ``answers``.
        value: what came back, as JSON; of a tool ``{"record", "body"}``; of a node that asked a person its questions.
        seconds: how long it took when it was made.
        tokens: what a model read and wrote.
        replayed: taken from another run's tape.
        counted: the tokens are its server's own count, no estimate.
        at: where in the run: a step of the plan; of a recorded graph ``"tools/2"``, the second execution of the node
            ``tools``, or ``"tools/2:search/1"``, a call in it.
        task: of a node, LangGraph's id of its task.
        outcome: ``value``; ``interrupt`` when a node asked a person; ``called`` when a graph that it called did.
        reads: digests of the state's fields that a node read, by name; under "" that of a state that is no dict.
        input: what it was given, to look at, where ``parts`` has only a digest.
        started_at: seconds since the epoch.
        edited: put in its place by hand.
    """

    kind: str
    name: str
    parts: Data
    value: Any
    seconds: float = 0.0
    tokens: int = 0
    replayed: bool = False
    counted: bool = False
    at: str = ""
    task: str = ""
    outcome: str = "value"
    reads: Mapping[str, str] | None = None
    input: Any = None
    started_at: float = 0.0
    edited: bool = False

    @cached_property
    def key(self) -> str:
        """32 hex digits."""
        return effect_key(self.kind, self.name, self.parts)

    @property
    def source(self) -> str:
        """``executed`` by its run; else from the ``tape`` of another, or ``edited``."""
        if self.edited:
            return "edited"
        return "tape" if self.replayed else "executed"


def effect_key(kind: str, name: str, parts: Data) -> str:
    """Return the content address of an effect: two with the same key depend on the same, and may replace each other.

    An empty part is none.

    >>> one, two = {"input": {"b": 1, "a": 2}}, {"input": {"a": 2, "b": 1}, "version": ""}
    >>> effect_key("tool", "naive_search", one) == effect_key("tool", "naive_search", two)
    True
    """
    filled = without_empty(parts)
    return text_digest(canonical_json([kind, name, filled]), 32)


class Tape:
    """The effects of one run: it writes them, and looks them up in those of the runs that it was made from.

    ``live`` answers nothing. ``fork`` answers what it has, the rest is done. ``replay`` answers everything, and what it
    has not is a ``Divergence``: no network, no model, no clock.

    Args:
        store: keeps the pages; without one nothing is recorded, as for retrieve-only agents and custom graphs.
        run_id: whose tape it is.
        mode: see above.
        sources: the effects of each run that answers; of two that know the same key the first one does, and in one run
            the later.
        results: values that were put in place by hand, as ``result_name`` names their effects.
    """

    def __init__(
        self,
        store: RunStore | None = None,
        run_id: str = "",
        mode: Mode = "live",
        sources: Iterable[Iterable[Effect]] = (),
        results: Data = MappingProxyType({}),
    ):
        self.run_id = run_id
        self.mode = mode
        self.results = results
        self._store = store
        self._lock = threading.Lock()
        self._fresh = list[Effect]()
        self._by_key: dict[str, list[Effect]] = defaultdict(list)
        sources = [list(effects) for effects in sources]
        pairs = [(result_name(e), e) for e in chain(*sources)] if results else []
        by_hand = [with_value(e, results[name]) for name, e in pairs if name in results]
        for effects in (by_hand, *sources):
            latest = {(effect.key, effect.at): effect for effect in effects}
            for (key, _), effect in latest.items():
                self._by_key[key].append(effect)

    @property
    def known(self) -> list[Effect]:
        """Return one effect for each key."""
        return [effects[0] for effects in self._by_key.values()]

    def look_up(self, kind: str, name: str, parts: Data, at: str = "") -> list[Effect]:
        """Return the recorded effects of this key, the one at the same place first: each call may give something else.

        A live run that continues after a kill has its own alone: an equal call elsewhere is still to be made.
        """
        effects = sorted(
            self._by_key.get(effect_key(kind, name, parts), ()),
            key=lambda effect: effect.at != at,
        )
        return (
            [effect for effect in effects if effect.at == at] if self.mode == "live" else effects
        )

    def find(self, kind: str, name: str, parts: Data, at: str = "") -> Effect | None:
        """Return the recorded effect, if this mode answers from the tape.

        Raises:
            Divergence: the mode must answer and cannot.
        """
        effect = next(iter(self.look_up(kind, name, parts, at)), None)
        if effect is None and self.mode == "replay":
            raise divergence(kind, name, parts, self.known)
        return effect

    def marked(self, tool: str, parts: Json, at: str) -> Json:
        """Return what a tool's call depends on; where its result is put in place by hand, with the digest of that."""
        value = self.results.get(f"{effect_key('tool', tool, parts)} {at}")
        return parts if value is None else {**parts, EDITED: digest(value)}

    def keep(self, effect: Effect) -> None:
        """Record an effect; it is durable with the next ``flush``."""
        if self._store is None:
            return
        with self._lock:
            if effect.kind == "model":
                self._calls[effect.key] = effect
            self._fresh.append(effect)

    def calls(self) -> list[Effect]:
        """Return the calls of models that this run has made so far, or has from another tape."""
        with self._lock:
            return list(self._calls.values())

    @cached_property
    def _calls(self) -> dict[str, Effect]:
        """Of a run that continues, those of its pages; ``keep`` adds each new call under the same lock."""
        pages = self._store.pages(self.run_id) if self._store else ()
        effects = chain(*map(unpacked, pages))
        return {effect.key: effect for effect in effects if effect.kind == "model"}

    def take(self, wanted: Effect) -> Effect | None:
        """Return what the tape has for an effect without a value, and keep it; None where it has nothing."""
        recorded = self.find(wanted.kind, wanted.name, wanted.parts, wanted.at)
        return recorded and self.keep_recorded(recorded, wanted.at)

    def keep_recorded(self, effect: Effect, at: str = "", task: str = "") -> Effect:
        """Keep an effect of another tape as one of this run, at its place here."""
        effect = replace(effect, at=at, task=task, replayed=True)
        self.keep(effect)
        return effect

    def effect_value(
        self, kind: str, name: str, arguments: Any, compute: Callable[[], Any]
    ) -> Any:
        """Return the effect's value: from the tape, or computed and recorded."""
        wanted = Effect(kind, name, {"input": arguments}, None)
        effect = self.take(wanted)
        if effect is None:
            effect = replace(wanted, value=masked(compute()))
            self.keep(effect)
        return effect.value

    async def effect(
        self,
        kind: str,
        name: str,
        arguments: Any,
        compute: Callable[[], Awaitable[Any]],
        version: str = "",
    ) -> Effect:
        """Return the whole effect, its value from the tape or from ``compute``, awaited."""
        wanted = Effect(kind, name, {"version": version, "input": arguments}, None)
        if taken := self.take(wanted):
            return taken
        began = time.perf_counter()
        # Masked before anything sees it: the run must continue with the same value that a replay will read.
        value = masked(await compute())
        seconds = round(time.perf_counter() - began, 6)
        usage = value.get("usage") if kind == "model" and isinstance(value, Mapping) else None
        tokens = estimated_tokens([arguments, value]) if kind == "model" else 0
        if usage:
            tokens = usage["input"] + usage["output"]
        effect = replace(wanted, value=value, seconds=seconds, tokens=tokens, counted=bool(usage))
        self.keep(effect)
        return effect

    def flush(self, page: str, *, once: bool = False) -> None:
        """Make what was recorded durable: see ``write``."""
        # Swapped under the lock, written outside it: tools on other threads keep effects meanwhile.
        with self._lock:
            fresh = self._fresh
            self._fresh = []
        self.write(page, fresh, once=once)

    def write(self, page: str, effects: Sequence[Effect], *, once: bool = False) -> None:
        """Make effects durable, under a name that the run determines.

        A node that runs again after a kill adds what came otherwise this time, and of one key the later effect counts:
        a digest in the name keeps the two apart, and the store ignores a page that it has. With ``once`` the first page
        of the name is the only one.
        """
        if effects and self._store:
            content = packed(effects)
            name = page if once else f"{page} {hashlib.sha256(content).hexdigest()[:8]}"
            self._store.save_page(self.run_id, name, content)


def reply_text(effect: Effect) -> str:
    """Return what a model said in a call, whole.

    >>> reply_text(Effect("model", "writer", {}, {"chunks": ["In ", "1993."]}))
    'In 1993.'
    """
    value = effect.value
    if isinstance(value, Mapping):
        return str(
            value.get("text") or "".join(value.get("chunks") or ()) or value.get("error") or ""
        )
    return "".join(map(str, value)) if isinstance(value, list) else str(value)


EDITED = "edited"
"""Of a tool's call the digest of a result that was put in place by hand: what depends on it runs again."""


def unedited_key(effect: Effect) -> str:
    """Return the key of an effect, whatever was put in its place by hand."""
    if EDITED in effect.parts:
        return effect_key(effect.kind, effect.name, {**effect.parts, EDITED: ""})
    return effect.key


def result_name(effect: Effect) -> str:
    """Return the name under which a run has what takes an effect's place: of equal calls each step has its own."""
    return f"{unedited_key(effect)} {effect.at}"


def with_value(effect: Effect, value: Any) -> Effect:
    """Return the effect, as if this had come back."""
    parts = {**effect.parts, EDITED: digest(value)} if effect.kind == "tool" else effect.parts
    return replace(effect, parts=parts, value=value, edited=True)


def digest(value: Any) -> str:
    """Return 16 hex digits of a value's canonical JSON."""
    return text_digest(canonical_json(value), 16)


def places(effects: Iterable[Effect]) -> dict[str, Effect]:
    """Return what can be put in place by hand, by its place.

    ``step_1/2`` is the second attempt at a step, ``writer/1`` the first call of that name. What a knowledge base was
    asked belongs to the call of the tool that asked it.
    """
    numbers = Counter[str]()
    at = {}
    by_place = {}
    for effect in effects:
        if effect.kind == "tool":
            by_place[f"{effect.at}/{effect.value['record']['attempt']}"] = effect
        elif effect.kind in ("model", "plan", "handler", "memory"):
            if effect.key not in at:  # else a node ran again, and the later call counts
                numbers[effect.name] += 1
                at[effect.key] = f"{effect.name}/{numbers[effect.name]}"
            by_place[at[effect.key]] = effect
    return by_place


def begun(effects: Iterable[Effect]) -> Json:
    """Return what a run began with, by name: settings, clock, ids, tools, versions; empty without a tape."""
    return {effect.name: effect.value for effect in effects if effect.kind == "begin"}


def fingerprints(effects: Iterable[Effect]) -> dict[str, str]:
    """Return the fingerprint of each knowledge base as the run saw it, by its name."""
    read = (
        effect
        for effect in effects
        if effect.kind == "knowledge" and effect.name.endswith(".fingerprint")
    )
    return {effect.name.removesuffix(".fingerprint"): str(effect.value) for effect in read}


def read(store: RunStore, run_id: str) -> list[Effect]:
    """Return every effect of a run: its pages in the order in which they were kept, then the calls of tools.

    A tool's effect is its record and its body, which are kept anyway; the tape repeats neither.
    """
    return [
        *(effect for page in store.pages(run_id) for effect in unpacked(page)),
        *_tool_calls(store, run_id),
    ]


def _tool_calls(store: RunStore, run_id: str) -> Iterator[Effect]:
    for record in store.records(run_id):
        if "effect" in record:
            ref = record["raw_output_ref"]
            value = {"record": record, "body": store.body(run_id, ref) if ref else None}
            parts = call_parts(record["effect"])
            yield Effect(
                "tool",
                record["tool"],
                parts,
                value,
                record["duration_ms"] / 1000,
                replayed=record.get("replayed", False),
                at=record["step_id"],
                edited=EDITED in parts,
            )


def call_parts(effect: Data) -> Json:
    """Return what an attempt depends on; the time it was given is left out of its key."""
    return {name: effect[name] for name in ("version", "input", EDITED) if name in effect}


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
    records: Records,
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
    tools = [effect for effect in effects if effect.kind == "tool"]
    calls = {key: effect for effect in tools for key in (unedited_key(effect), effect.key)}
    last = {record["step_id"]: record for record in records}
    were = {
        effect.parts["input"]["kb"]: effect.parts["version"]
        for effect in reversed(calls.values())
    }
    upstream = dict[str, str]()
    ends = {}
    for step_id in plan.topological_order():
        step = plan.step(step_id)
        keys = []
        for attempt in range(step.budget.max_retries + 1, 0, -1):
            call = attempt_arguments(step, kb, attempt, upstream)
            version = {**were, **versions}.get(call["kb"], "")
            keys.append(effect_key("tool", step.tool, {"version": version, "input": call}))
        key = next((key for key in keys if key in calls), "")
        ends[step_id] = calls[key].value["record"]["status"] if key else ""
        key = calls[key].key if key else ""
        if not key and step_id in last and "effect" not in last[step_id]:
            key = key_of_record(last[step_id])
            ends[step_id] = key if key != "skipped" else ""  # it never started, and may now
        upstream[step_id] = key or keys[-1]
    return ends


def key_of_record(record: ExecutionRecord) -> str:
    """Return the key of the tool call that a record is of; how the step ended, when no tool was called."""
    effect = record.get("effect")
    return effect_key("tool", record["tool"], call_parts(effect)) if effect else record["status"]


def masked(value: Any) -> Any:
    """Return a JSON value without secrets that the process knows; chunks of a reply are looked at together.

    >>> from workbench.text import keep_secret
    >>> keep_secret("doctest-key-1")
    >>> masked({"chunks": ["Bearer doctest", "-key-1."]}), masked(["a doctest-key-1"]), masked(None)
    ({'chunks': ['Bearer [secret].']}, ['a [secret]'], None)
    """
    if isinstance(value, Mapping) and isinstance(chunks := value.get("chunks"), list):
        joined = "".join(map(str, chunks))
        return (
            value if (bare := without_secrets(joined)) == joined else {**value, "chunks": [bare]}
        )
    try:
        text = to_json(value)
    except (TypeError, ValueError):
        return value
    return value if (bare := without_secrets(text)) == text else json.loads(bare)


_FIELDS = fields(Effect)


def packed(effects: Iterable[Effect]) -> bytes:
    """Effects as bytes: compressed JSON of what is not as usual, nothing else."""
    rows = [
        {f.name: getattr(effect, f.name) for f in _FIELDS if getattr(effect, f.name) != f.default}
        for effect in effects
    ]
    text = json.dumps(rows, ensure_ascii=False, separators=(",", ":"))
    return zlib.compress(without_secrets(text).encode(), 1)


def unpacked(page: bytes) -> list[Effect]:
    """Return the effects of a page.

    >>> effect = Effect("memory", "list_messages", {"input": {"limit": 6}}, [])
    >>> unpacked(packed([effect])) == [effect]
    True
    """
    return [Effect(**row) for row in json.loads(zlib.decompress(page))]


def divergence(kind: str, name: str, parts: Data, effects: Iterable[Effect]) -> Divergence:
    """Return what was asked that the tape does not know, next to what is nearest of the same kind and name."""
    same = [effect for effect in effects if (effect.kind, effect.name) == (kind, name)]
    if not same:
        return Divergence(kind, name, None, parts, ["there is no such effect on the tape"])
    closest = min(same, key=lambda effect: (len(differences(effect.parts, parts)), effect.key))
    paths = [path.removeprefix(".") for path in differences(closest.parts, parts)]
    return Divergence(kind, name, closest.parts, parts, paths)


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
            p
            for i, (a, b) in enumerate(zip(first, second, strict=True))
            for p in differences(a, b, f"{path}[{i}]")
        ]
    return [] if first == second else [path]
