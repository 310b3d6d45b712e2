"""The node that answers: cited sentences from the evidence, by the offline writer or streamed from a chat model.

It also holds what is said where nothing was searched or found.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from langgraph.runtime import Runtime

from workbench.errors import ModelError
from workbench.events import progress, token
from workbench.extensions import required
from workbench.graphs.answer_check import supported, with_marks
from workbench.graphs.roles import accounted, budget_spent
from workbench.graphs.route import only_noted
from workbench.graphs.writer_prompt import (
    judged,
    merged_evidence,
    messages,
    total_numbers,
    with_numbers,
)
from workbench.knowledge.dated import PartialBase, dated_bases, question_dates
from workbench.language.answer import judge, write
from workbench.language.citing import (
    cite,
)
from workbench.models.chat import Limits, server_name, stream_text, token_usage
from workbench.models.thinking import Thinking
from workbench.plans import ENDED_WELL
from workbench.ports import Context, call_writer
from workbench.state import (
    Citation,
    ConversationState,
    Data,
    Evidence,
    Json,
)
from workbench.text import detect_language, visible
from workbench.views.labels import Labels


class Answer(NamedTuple):
    """A cited answer: ``[n]`` in the text is the n-th piece of the merged evidence."""

    text: str
    citations: list[Citation]
    kind: str = ""


async def generate(state: ConversationState, runtime: Runtime[Context]) -> Json:
    """Write the answer. Its ``[n]`` are places in ``merged.retrieval_results``, counted from 1."""
    context = runtime.context
    began = context.clock.monotonic()
    runtime.stream_writer(progress("generation", total=1))
    message = state["message"]
    evidence = merged_evidence(state)
    short = without_evidence(state, context)
    by_model = "writer" in context.models
    over = budget_spent(context) if by_model else ""
    conclusion = "" if by_model else str(judged(state).get("conclusion") or "")
    spoken = False
    if short is not None:
        answer = Answer(short, [])
    elif "writer" in context.parts:
        text = await call_writer(context, state.get("query") or message, evidence)
        answer = _cited(text, evidence)
    elif by_model and not over:
        answer = await streamed(state, runtime)
        spoken = True
    elif conclusion:
        answer = _cited(with_numbers(conclusion, state), evidence)
        spoken = True
    else:
        if over:
            note = f"the rules write the answer: {over}"
            runtime.stream_writer(progress("generation", total=1, note=note))
        answer = offline(state, context)
    support = []
    if evidence:
        counts = total_numbers(state, context)
        support = await supported(context, answer.text, evidence, message, counts)
    text = answer.text
    if spoken and support and context.settings.bounds == "strict":
        text = with_marks(text, support, detect_language(message))
    if short is None and state.get("use_retrieval", True):
        text += dates_note(state, context)
    if short is None and state.get("noted") and not by_model:
        text = f"{text}\n\n{_acknowledged(state)}"
    runtime.stream_writer(progress("generation", completed=1, total=1))
    return {
        # Documents and models may write what steers a terminal; people print answers.
        "answer": visible(text),
        "citations": answer.citations,
        "support": support,
        "answer_kind": answer.kind,
        "generation_ms": round((context.clock.monotonic() - began) * 1000, 3),
        "partial": False,
    }


def _cited(text: str, evidence: Evidence) -> Answer:
    text, citations, _ = cite(text, evidence)
    return Answer(text.strip(), citations)


def _acknowledged(state: Data) -> str:
    """Return which notes of the message are kept, in its language."""
    language = detect_language(state["message"])
    acknowledge = required("nodes", "acknowledge", "memory")
    return str(acknowledge(state["noted"], language, state.get("user_id") or "default"))


def dates_note(state: Data, context: Context) -> str:
    """Return as of which dates the answer is, and what became of documents without a date; "" where none is asked."""
    as_of, known_date = question_dates(state)
    if not as_of and not known_date:
        return ""
    say = Labels(detect_language(state["message"]))
    hidden = sum(
        len(base.hidden) for base in dated_bases(context, state) if isinstance(base, PartialBase)
    )
    dates = [say("reply_as_of", date=as_of)] * bool(as_of)
    dates += [say("reply_known", date=known_date)] * bool(known_date)
    return "\n\n" + say("reply_dates", dates=say("semicolon").join(dates), n=hidden)


def without_evidence(state: Data, context: Context) -> str | None:
    """Return what there is to say before any evidence is looked at; None when the question is to be answered.

    A chat model answers a greeting itself; it is not left to guess why nothing was found.
    """
    say = Labels(detect_language(state["message"]))
    if (state.get("report") or {}).get("stopped"):
        return say("reply_stopped")
    if not state.get("use_retrieval", True):
        # no model is left to claim that it is kept
        if only_noted(state):
            return _acknowledged(state)
        if "writer" in context.models:
            return None
        if recalled := state.get("recalls"):
            return str(required("nodes", "answer", "memory")(recalled, state, say.language))
        bases = context.knowledge.names()
        return say("reply_from" if bases else "reply_no_base", names=say("comma").join(bases))
    if merged_evidence(state):
        return None
    if state.get("stop_reason") == "stopped_by_reviewer":
        return say("reply_stopped")
    tried = [r for r in state["records"] if r["status"] != "skipped"]
    # that says nothing of the corpus
    if tried and not any(r["status"] in ENDED_WELL for r in tried):
        why = dict.fromkeys(f"{r['tool']}: {r['error'] or r['status']}" for r in tried)
        return say("reply_failed", why="; ".join(why))
    return None


async def streamed(state: ConversationState, runtime: Runtime[Context]) -> Answer:
    """Let the writer's model answer, chunk by chunk as it sends them."""
    context = runtime.context
    chunks = await _spoken(state, runtime)
    text, citations, unknown = cite("".join(chunks), merged_evidence(state))
    if not text.strip():
        server = server_name(context.models["writer"])
        raise ModelError(
            f"The chat model at {server} answered with nothing. Ask again, or use another."
        )
    if unknown:
        numbers = ", ".join(f"[{n}]" for n in unknown)
        note = f"citations of no evidence were removed: {numbers}"
        runtime.stream_writer(progress("generation", total=1, note=note))
    return Answer(text.strip(), citations)


async def _spoken(state: ConversationState, runtime: Runtime[Context]) -> list[str]:
    """Return the model's chunks, each sent on as it comes."""
    context = runtime.context
    prompt = messages(state, context)
    usage: dict[str, int] | None = None

    def heard(chunk: Any) -> None:
        nonlocal usage
        usage = token_usage(chunk) or usage

    async def write() -> Json:
        chunks = []
        thinking = Thinking()
        model = context.models["writer"]
        limits = Limits.from_settings(context.settings)
        async for chunk in stream_text(model, [*map(tuple, prompt)], limits, heard, thinking):
            chunks.append(visible(chunk))
            runtime.stream_writer(token(chunks[-1]))
        if thinking.prefilled:  # what came before the closing tag was no answer
            chunks = [visible(thinking.said)]
        own = context.prompts.for_language("writer", detect_language(state["message"]))
        thought = visible(thinking.thought)
        return {"chunks": chunks, **accounted(context, "writer", own, usage, thought)}

    args = {"model": context.settings.role_model("writer"), "messages": prompt}
    effect = await context.tape.effect("model", "writer", args, write)
    for chunk in effect.value["chunks"] if effect.replayed else ():
        runtime.stream_writer(token(chunk))
    return list(effect.value["chunks"])


def offline(state: Data, context: Context) -> Answer:
    """Write the answer without a model."""
    bases = dated_bases(context, state)
    question = state["route_decision"]["question"]
    results = merged_evidence(state)
    judgement = judge(question, results, bases, state["message"], state.get("history", []))
    return Answer(*write(judgement, question, results), judgement.kind)
