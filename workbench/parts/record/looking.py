"""How a recorded run is looked at: graph, timeline, documents that it found, and what is not on the tape."""

from __future__ import annotations

import json
import os
import types
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import chain
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from langchain_core.documents import Document

from workbench.parts.record import langgraph_copy
from workbench.parts.record.digests import digest, leaves, plain
from workbench.parts.record.effects import questions
from workbench.records.tape import EDITED, Effect
from workbench.runs.calls import Calls, make_call
from workbench.state import Data, Json, RetrievalResult, pick
from workbench.text import own_table, to_json
from workbench.tools.evidence import make_evidence
from workbench.views.blocks import Block, Column, Lines, clipped, one_line
from workbench.views.labels import Labels
from workbench.views.markup import cut

if TYPE_CHECKING:
    import pandas

    from workbench.parts.record.agent import GraphRun
    from workbench.views.drawing import Drawing


_OUTSIDE = own_table(__file__)


def dag(run: GraphRun) -> Drawing:
    """Draw the graph with its subgraphs, and where the run went in it."""
    from workbench.views.graph import graph, walked

    drawable = run.agent._copy.get_graph(xray=True)
    log = _log(run.effects)
    status = run.status
    current = [log[-1]["node"]] if log and status != "done" else []
    return graph(walked(drawable, log, status, current), f"{run.agent.name} {run.run_id}")


def timeline(run: GraphRun) -> Drawing:
    """Draw when nodes ran, and the calls inside them."""
    from workbench.views.timeline import when

    effects = run.effects
    records: Any = [
        _as_step_record(effect, 1) for effect in effects if effect.kind not in ("node", "edge")
    ]
    return when(_log(effects), records, run.decisions)


def _log(effects: Iterable[Effect]) -> list[Json]:
    return [
        {
            "node": e.name.rpartition(".")[2],
            "node_type": "node",
            "timestamp": _moment(e),
            "duration_ms": 1000 * e.seconds,
        }
        for e in effects
        if e.kind == "node"
    ]


def as_workspace_run(run: GraphRun, runs: Sequence[Any] = ()) -> Any:
    """Return a run in the shape of the workspace's own runs: each effect is the record of a step.

    Args:
        run: the run.
        runs: those that it is compared with; places are in the order in which the first of them came there.
    """
    effects = run.effects
    last = {effect.at: effect for effect in effects}  # where a node asked, what came of it
    lists = [each.effects for each in runs if hasattr(each, "effects")]
    places = dict.fromkeys(effect.at for effect in chain(*lists, effects))
    order = {at: number for number, at in enumerate(places, 1)}
    results = {at: list(_pieces(effect)) for at, effect in last.items()}
    records = [
        _as_step_record(effect, order[at], len(results[at])) for at, effect in last.items()
    ]
    row = run.row
    begun = {
        "settings": {"config": row["options"]["config"]},
        "versions": {effect.name: effect.parts.get("version") for effect in last.values()},
    }
    tape = [Effect("begin", name, {}, value) for name, value in begun.items()]
    for effect, record in zip(last.values(), records, strict=True):
        value = {"record": record, "body": {"results": results[effect.at]}}
        tape.append(replace(effect, value=value, kind="tool", counted=True))
    evidence = run.evidence
    return SimpleNamespace(
        **pick(row, "run_id", "message", "session_id", "error", "options"),
        **{name: [] for name in ("plans", "reflections", "citations")},
        status=run.status,
        review=run.review,
        row=row,
        query=row["message"],
        answer="\n".join(state_lines(run.state)),
        state={"merged": {"retrieval_results": evidence}} if evidence else {},
        plan=None,
        decisions=[_decision(run, order[at], at, *answer) for at, *answer in answered(run)],
        calls=lambda: calls(run),
        records=records,
        evidence=evidence,
        log=_log(effect for effect in last.values() if not effect.replayed),
        tape=lambda: tape,
        _results_by_step=lambda: results,
    )


def answered(run: GraphRun) -> list[tuple[str, Any, Any]]:
    """Return each question that was answered: the place that asked, LangGraph's pause, and the decision."""
    pauses = {name: (at, pause) for at, name, pause, _ in questions(run.effects)}
    return [(*pauses[d["review_id"]], d) for d in run.decisions if d["review_id"] in pauses]


def _decision(run: GraphRun, place: int, at: str, pause: Any, decision: Json) -> Json:
    answer = run.agent.load_text(decision["answer"])
    reply: Json = {"type": "respond", "message": as_text(answer)}
    match answer:  # as LangChain's middleware has it
        case {"decisions": [{"type": str()} as first, *_]}:
            reply = dict(first)
    return {
        "review_id": at,
        "point": at,
        "iteration": place,
        "action": reply["type"],
        "proposal": {"reasoning": cut(as_text(pause.value), 400), "name": decision["review_id"]},
        "edits": reply.get("edited_action", {}).get("args", {}),
        "message": reply.get("message", ""),
        "note": "",
        "who": decision["who"],
        "decided_at": decision["decided_at"],
    }


def calls(run: GraphRun) -> Calls:
    """Return the calls of chat models: what each saw, what it said, and its tokens."""
    return Calls(_call(effect) for effect in run.effects if effect.kind == "model")


def _call(effect: Effect) -> Any:
    reply = effect.value[0] if isinstance(effect.value, list) else effect.value
    node = effect.at.rpartition(":")[0]
    usage = getattr(reply, "usage_metadata", None) or {"output_tokens": effect.tokens or None}
    counts = {name: usage.get(f"{name}_tokens") for name in ("input", "output")}
    value = {"text": _message_line(plain(reply)), "usage": counts}
    try:
        prompt = [message["kwargs"] for message in json.loads(effect.input)]
    except (TypeError, ValueError, LookupError):  # of another tool
        prompt = [{"type": "prompt", "content": effect.input}]
    messages = [(message.get("type"), as_text(message.get("content"))) for message in prompt]
    model = getattr(reply, "response_metadata", {}).get("model_name")
    parts = {"input": {"messages": messages, "model": model}}
    return make_call(
        effect.at, replace(effect, name=node.rpartition("/")[0], parts=parts, value=value)
    )


def state_lines(state: Any) -> list[str]:
    """Return a state as lines of text: a field each, or a message each."""
    state = plain(state)
    fields = dict(state) if isinstance(state, dict) else {"": state}
    messages = fields.pop("messages", [])
    lines = [
        _message_line(message)
        for message in (messages if isinstance(messages, list) else [messages])
    ]
    return lines + [
        f"{name}: {as_text(value)}" if name else as_text(value) for name, value in fields.items()
    ]


def first_text(state: Any, *names: str) -> str:
    """Return the text of the last message, or of the first of these fields; of another state all that it says."""
    fields = state if isinstance(state, Mapping) else {names[-1]: state}
    messages = fields.get("messages")
    if isinstance(messages, list) and messages:
        return str(getattr(messages[-1], "text", "") or _message_line(plain(messages[-1])))
    text = next(filter(None, map(fields.get, names)), None) or " · ".join(state_lines(fields))
    return text if isinstance(text, str) else as_text(text)


def _message_line(message: Any) -> str:
    if not isinstance(message, dict) or "content" not in message:
        return as_text(message)
    kind = message.get("type") or message.get("role")
    return f"{kind}: {as_text(message['content'] or message.get('tool_calls') or '')}"


def as_text(value: Any) -> str:
    """Return a value as one line of text."""
    return one_line(value if isinstance(value, str) else to_json(plain(value)))


def shown_value(effect: Effect) -> Any:
    """Return what came of an effect as JSON; of a node that asked, its questions."""
    is_value = effect.outcome == "value"
    return plain(effect.value if is_value else [pause.value for *_, pause in effect.value])


def _as_step_record(effect: Effect, place: int, evidence: int = 0) -> Json:
    return {
        "step_id": effect.at,
        "attempt": 1,
        "iteration": place,
        "tool": effect.name,
        "raw_input": {},
        "status": "success" if effect.outcome == "value" else "partial",
        "error": None,
        "started_at": _moment(effect),
        "duration_ms": 1000 * effect.seconds,
        "output_summary": {"evidence_count": evidence, "text": as_text(shown_value(effect))},
        "raw_output_ref": "",
        "sub_steps": [],
        "replayed": effect.replayed,
        "effect": {
            "input": {"value": digest(effect.value)},
            **({EDITED: True} if effect.edited else {}),
        },
    }


def _moment(effect: Effect) -> str:
    return datetime.fromtimestamp(effect.started_at, UTC).isoformat()


# documents


def evidence(run: GraphRun) -> list[RetrievalResult]:
    """Return LangChain documents that tools and nodes gave, in the order in which they came, each once.

    The id is the document's own, its metadata's ``id`` or ``source``, or a digest of its text; the score is its
    metadata's ``score`` or ``relevance_score``, 0 where there is none.
    """
    results: dict[str, RetrievalResult] = {}
    for result in chain.from_iterable(map(_pieces, run.effects)):
        results.setdefault(result["result_id"], result)
    return list(results.values())


def _pieces(effect: Effect) -> Iterator[RetrievalResult]:
    for document in leaves(effect.value):
        if not isinstance(document, Document):
            continue
        metadata = dict(document.metadata)
        source = str(
            document.id
            or metadata.get("id")
            or metadata.get("source")
            or digest(document.page_content)
        )
        score = float(metadata.get("score") or metadata.get("relevance_score") or 0.0)
        piece = make_evidence(
            source, document.page_content, score, effect.name, "", doc_id=source
        )
        yield {
            **piece,
            "result_id": source,
            "score": score,
            "metadata": {**piece["metadata"], **metadata, "at": effect.at},
        }


# what is not on the tape


def unrecorded(run: GraphRun) -> pandas.DataFrame:
    """Return for each node what its code reads besides the state that is not on the tape, and its share of the run.

    It is read off the code: names of modules for clock, chance, environment, files and network. A node is ``opaque``
    where it reads such a thing and none of its calls is on the tape: a fork takes it whole, or executes it whole.
    ``time`` and ``bytes`` are its shares of the time of all nodes, and of what they gave.
    """
    import pandas

    effects = run.effects
    called = {effect.at.partition(":")[0] for effect in effects if effect.kind != "node"}
    own = [effect for effect in effects if effect.kind == "node"]
    rows = []
    for node in langgraph_copy.nodes(run.agent._copy):
        runs = [effect for effect in own if effect.name == node.path]
        reads = sorted(set(_outside_reads(langgraph_copy.reachable(node.runnable))))
        opaque = bool(reads) and called.isdisjoint(effect.at for effect in runs)
        size = sum(len(json.dumps(plain(effect.value))) for effect in runs)
        rows.append([node.path, reads, opaque, sum(effect.seconds for effect in runs), size])
    frame = pandas.DataFrame(rows, columns=["node", "reads", "opaque", "time", "bytes"])
    sums = frame[["time", "bytes"]]
    frame[["time", "bytes"]] = (sums / sums.sum()).fillna(0).round(3)
    return frame


def on_tape(run: GraphRun) -> Json | None:
    """Return the shares of the run's time and bytes in nodes that are not opaque; None where its graph is not here."""
    if run.agent.graph is None:
        return None
    opaque = unrecorded(run).query("opaque")
    return {name: round(1 - float(opaque[name].sum()), 3) for name in ("time", "bytes")}


def _outside_reads(values: Iterable[Any]) -> Iterator[str]:
    for function in values:
        if not isinstance(function, types.FunctionType):
            continue
        for name in function.__code__.co_names:
            if name == "open" and name not in function.__globals__:
                yield "files"
            target = function.__globals__.get(name)
            module = (
                target
                if isinstance(target, types.ModuleType)
                else getattr(target, "__module__", None)
            )
            top = str(getattr(module, "__name__", module) or "").partition(".")[0]
            if target is os.environ:
                yield "environment"
            yield from (what for what, modules in _OUTSIDE.items() if top in modules)


def _effects(document: Data, labels: Labels) -> Iterator[Block]:
    heads = [
        Column(labels(f"record_{name}"), whole=name == "at")
        for name in ("at", "kind", "source", "value")
    ]
    rows = [
        [e["at"], e["kind"], labels(f"record_{e['source']}"), as_text(e["value"])]
        for e in document["effects"]
    ]
    shares = {name: f"{100 * share:.0f}" for name, share in (document["on_tape"] or {}).items()}
    yield clipped(
        labels("record_effects"),
        heads,
        rows,
        notes=[labels("record_on_tape", **shares)] if shares else [],
    )


def _state(document: Data, labels: Labels) -> Iterator[Block]:
    yield Lines(
        [cut(line, 4000) for line in state_lines(document["state"])],
        heading=labels("record_state"),
    )


PARTS = {"plan": _effects, "answer": _state}
"""What a recorded run shows in place of a plan and an answer."""
