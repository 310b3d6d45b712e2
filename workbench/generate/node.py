"""The graph's node: evidence and memory -> a cited answer, written offline or streamed from the chat model."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

from langgraph.runtime import Runtime

from workbench.context import Context, KnowledgeBase
from workbench.errors import ModelError
from workbench.events import progress, token
from workbench.generate.citations import cite
from workbench.generate.compose import Answer, compose
from workbench.generate.evidence import Evidence, evidence_of
from workbench.generate.prompt import messages
from workbench.generate.question import Question, asked
from workbench.generate.silence import failed, greeting, stopped
from workbench.generate.voice import Voice, is_chinese
from workbench.models.chat import Limits, server_of, stream_text
from workbench.parts import written
from workbench.plans import ENDED_WELL
from workbench.question.language import patterns
from workbench.question.names import Named, names_in
from workbench.question.reading import themes
from workbench.state import ConversationState, RetrievalResult, RouteDecision
from workbench.text import language_of, visible


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
    voice = Voice(language_of(state["message"]))
    if not state.get("use_retrieval", True):
        return None if context.chat else greeting(voice, context.knowledge.names(), state["message"])
    if found(state):
        return None
    if state.get("stop_reason") == "stopped_by_reviewer":
        return stopped(voice)
    tried = [r for r in state.get("records", []) if r["status"] != "skipped"]
    if tried and not any(r["status"] in ENDED_WELL for r in tried):
        return failed(voice, tried)
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
    decision, query = state["route_decision"], state.get("query") or state["message"]
    names = names_in(query, bases)
    question = asked(
        query,
        decision["query_intent"],
        decision["filters"],
        names,
        {name["entity_id"]: document_about(name, bases) for name in names if name["entity_id"]},
        themes(query, names),
        language_of(state["message"]),
    )
    if patterns("followups.txt")["more"].search(state["message"]):
        question = replace(question, again=True)
    told = "\n".join(message["content"] for message in state.get("history") or [])
    evidence = evidence_of(found(state), weight_in(bases), totals(question, decision, bases))
    return compose(question, evidence.results, evidence=evidence, called=chinese_names(bases), told=told)


def document_about(name: Named, bases: Sequence[KnowledgeBase]) -> str | None:
    """The document that is about what a name names."""
    entities = [e for base in bases if base.name in name["bases"] and (e := base.entity(name["entity_id"]))]
    return entities[0]["doc_id"] if entities else None


def weight_in(bases: Sequence[KnowledgeBase]) -> Callable[[str], float]:
    """How much a term says, in the knowledge base where it says most."""

    @cache
    def weight(term: str) -> float:
        return max((base.term_weight(term) for base in bases), default=0.0)

    return weight


def totals(question: Question, decision: RouteDecision, bases: Sequence[KnowledgeBase]) -> dict[str, int]:
    """How many documents the filters fit, and how many there are of each person by role, found or not."""
    filters, found = decision["filters"], dict[str, int]()
    people = [s.name for s in question.subjects if s.is_person]
    if filters:
        found[""] = sum(len(base.select(filters)) for base in bases)
    elif not people:
        found[""] = sum(base.counts()["documents"] for base in bases)
    for person in people:
        found[f"{person}/directors"] = sum(len(base.select({"director": person})) for base in bases)
        found[f"{person}/cast"] = sum(len(base.select({"cast": person})) for base in bases)
    return found


def chinese_names(bases: Sequence[KnowledgeBase]) -> Callable[[str], str]:
    """The Chinese name of a title or a person where a knowledge base has one."""

    @cache
    def called(name: str) -> str:
        for base in bases:
            entity = base.find_entity(name)
            if entity:
                return next((alias for alias in entity["aliases"] if is_chinese(alias)), name)
        return name

    return called


__all__ = ["Evidence", "generate"]
