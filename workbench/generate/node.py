"""The graph's node: evidence and memory -> a cited answer, written offline or streamed from the chat model."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

from langgraph.runtime import Runtime

from workbench.context import Context, KnowledgeBase
from workbench.errors import ModelError
from workbench.events import progress, token
from workbench.generate.prompt import messages
from workbench.generate.silence import failed, greeting, stopped
from workbench.language.citations import cite
from workbench.language.judging import judged
from workbench.language.reading import read
from workbench.language.writing import Known, write
from workbench.models.chat import Limits, server_of, stream_text
from workbench.parts import written
from workbench.plans import ENDED_WELL
from workbench.state import Citation, ConversationState, Reading, RetrievalResult
from workbench.text import CJK, language_of, visible


class Answer(NamedTuple):
    """A cited answer: ``[n]`` in the text is the n-th piece of the merged evidence."""

    text: str
    citations: list[Citation]


async def generate(state: ConversationState, runtime: Runtime[Context]) -> dict[str, Any]:
    """Write the answer. Its ``[n]`` are places in ``merged.retrieval_results``, counted from 1."""
    context, began = runtime.context, runtime.context.clock.monotonic()
    runtime.stream_writer(progress("generation", total=1))
    short = without_evidence(state, context)
    if short is not None:
        answer = Answer(short, [])
    elif "writer" in context.parts:
        text = await written(context, state.get("query") or state["message"], found(state))
        text, citations, _ = cite(text, found(state))
        answer = Answer(text.strip(), citations)
    elif context.chat is not None:
        answer = await streamed(state, runtime)
    else:
        answer = offline(state, context)
    runtime.stream_writer(progress("generation", completed=1, total=1))
    spent = round((context.clock.monotonic() - began) * 1000, 3)
    # Documents and models may write what steers a terminal; people print answers.
    return {"answer": visible(answer.text), "citations": answer.citations, "generation_ms": spent, "partial": False}


def without_evidence(state: Mapping[str, Any], context: Context) -> str | None:
    """What there is to say before any evidence is looked at; None when the question is to be answered.

    A chat model answers a greeting itself; that nothing was found for a reason of its own it is not left to guess.
    """
    zh = language_of(state["message"]) == "zh"
    if not state.get("use_retrieval", True):
        if context.chat:
            return None
        names = context.knowledge.names()
        example = next(iter(context.knowledge.get(names[0]).notable(1)), "") if names else ""
        return greeting(zh, names, state["message"], example)
    if found(state):
        return None
    if state.get("stop_reason") == "stopped_by_reviewer":
        return stopped(zh)
    tried = [r for r in state.get("records", []) if r["status"] != "skipped"]
    if tried and not any(r["status"] in ENDED_WELL for r in tried):
        return failed(zh, tried)
    return None


def found(state: Mapping[str, Any]) -> list[RetrievalResult]:
    """The merged evidence, in the order of its numbers."""
    return (state.get("merged") or {}).get("retrieval_results") or []


async def streamed(state: ConversationState, runtime: Runtime[Context]) -> Answer:
    """Let the chat model answer, chunk by chunk as it sends them."""
    context, prompt = runtime.context, messages(state, runtime.context.settings.history_window)
    chat = context.chat
    assert chat is not None

    async def write() -> list[str]:
        chunks: list[str] = []
        async for chunk in stream_text(chat, prompt, Limits.of(context.settings)):
            chunks.append(visible(chunk))
            runtime.stream_writer(token(chunks[-1]))
        return chunks

    asked = {"model": context.settings.chat_model, "messages": [[m.type, m.content] for m in prompt]}
    written = await context.tape.aeffect("model", "answer", asked, write, clock=context.clock.monotonic)
    for chunk in written.value if written.replayed else ():
        runtime.stream_writer(token(chunk))
    text, citations, unknown = cite("".join(written.value), found(state))
    if not text.strip():
        raise ModelError(f"The chat model at {server_of(chat)} answered with nothing. Ask again, or use another.")
    if unknown:
        numbers = ", ".join(f"[{n}]" for n in unknown)
        runtime.stream_writer(progress("generation", total=1, note=f"citations of no evidence were removed: {numbers}"))
    return Answer(text.strip(), citations)


def offline(state: Mapping[str, Any], context: Context) -> Answer:
    """Write the answer here."""
    bases = context.bases(state.get("kb_prefixes") or [state["kb_prefix"]])
    older = "reading" not in state["route_decision"]  # a run that began in an older version goes on in this one
    reading = read(state["query"], bases) if older else state["route_decision"]["reading"]
    results = found(state)
    return Answer(*write(reading, results, judged(reading, results, bases), known(reading, bases)))


def known(reading: Reading, bases: Sequence[KnowledgeBase]) -> Known:
    """What the bases say beside the evidence: how many documents hold, counts, who is in which field."""
    schema = list({field["name"]: field for base in bases for field in base.schema()}.values())
    counts: dict[str, int] = {}
    by_field: dict[str, dict[str, list[str]]] = {}
    for base in bases:
        for value, count in base.tally(reading["group"], reading["conditions"]) if reading["group"] else ():
            counts[value] = counts.get(value, 0) + count
        for name in reading["names"]:
            for field in base.schema() if not name["doc_id"] else ():
                if field["type"] in ("name", "category"):
                    held = base.select([{"field": field["name"], "op": "eq", "value": name["name"]}])
                    if held:
                        by_field.setdefault(name["name"], {}).setdefault(field["name"], []).extend(held)
    return Known(
        schema=schema,
        nouns=next((base.nouns() for base in bases if base.nouns().get("en") or base.nouns().get("zh")), {}),
        total=sum(len(base.select(reading["conditions"])) for base in bases) if reading["conditions"] else 0,
        documents=sum(base.counts()["documents"] for base in bases),
        counts=sorted(counts.items(), key=lambda pair: (-pair[1], pair[0])),
        by_field=by_field,
        called=chinese_names(bases),
    )


def chinese_names(bases: Sequence[KnowledgeBase]) -> Callable[[str], str]:
    """The Chinese name of a title or a person where a knowledge base has one."""

    @cache
    def called(name: str) -> str:
        for base in bases:
            entity = base.find_entity(name)
            if entity:
                return next((alias for alias in entity["aliases"] if CJK.search(alias)), name)
        return name

    return called
