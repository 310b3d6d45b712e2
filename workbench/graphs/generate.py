"""The node that answers: cited sentences from the evidence, by the offline writer or streamed from a chat model.

It also holds what the writer's prompt is filled in with, and what is said where nothing was searched or found.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from langgraph.runtime import Runtime

from workbench.errors import ModelError
from workbench.events import progress, token
from workbench.graphs.check import supported, with_marks
from workbench.graphs.memory_answer import acknowledge, answer_from_memory
from workbench.graphs.recall import told_core, told_episode
from workbench.graphs.roles import NONE, accounted, budget_spent, told_evidence
from workbench.knowledge.dated import DatedBase, dated_bases, dates_asked
from workbench.language.answer import judge, write
from workbench.language.citing import cite
from workbench.models.chat import Limits, server_of, stream_text, usage_of
from workbench.models.thinking import Thinking
from workbench.plans import ENDED_WELL
from workbench.ports import Context, written
from workbench.state import Citation, ConversationState, Data, ExecutionRecord, Json, RetrievalResult
from workbench.text import clean, language_of, visible


def messages(state: Data, context: Context) -> list[list[str]]:
    """The messages for the writer's model, ``[kind, text]``; the current message is there once, as the last."""
    earlier = list(state.get("history") or [])
    parts = [part for part in state.get("remembered") or [] if part["part"] == "history"]
    window = sum(part["kept"] for part in parts) if parts else context.settings.history_window
    if earlier and earlier[-1]["role"] == "user" and earlier[-1]["content"] == state["message"]:
        earlier.pop()  # whoever filled the history had already stored the question
    zh = language_of(state["message"]) == "zh"
    slots = {
        "question": asked(state),
        "memory": memory(state, zh) or NONE,
        "totals": totals(state, context, zh),
        "evidence": told_evidence(found(state), context.settings.merge_max_characters) or _NOTHING[zh],
    }
    system, question = context.prompts.of("writer", "zh" if zh else "en").messages(slots)
    told = [
        ["human" if m["role"] == "user" else "ai", clean(m["content"])] for m in (earlier[-window:] if window else [])
    ]
    return [system, *told, question]


_NOTHING = ("(nothing was found)", "（没有找到任何内容）")
_KNOWN = (
    ("What is known of the person", "【用户长期记忆】"),
    ("The conversation so far, in short", "【对话背景】"),
    ("Earlier exchanges that may matter", "【相关历史】"),
)


def memory(state: Data, zh: bool) -> str:
    """What is remembered, in the order of the contract; "" for nothing."""
    core = state.get("memory_context")
    if struck := state.get("struck"):  # what is not to count is not told either
        kept = {part["id"] for part in state.get("remembered") or [] if part["kept"]} - set(struck)
        core = told_core([m for m in state.get("known") or [] if m["id"] in kept], zh)
    remembered = (
        core,
        state.get("conversation_summary"),
        episodes(state.get("episodic_memory") or [], state["message"]),
    )
    colon = "" if zh else ":"
    told = [f"{heading[zh]}{colon}\n{clean(text)}" for heading, text in zip(_KNOWN, remembered, strict=True) if text]
    return "\n\n".join(told)


def totals(state: Data, context: Context, zh: bool) -> str:
    """What the whole corpus counts, beside the evidence: how many documents hold, and of each kind."""
    question = state.get("route_decision", {}).get("question")
    bases = dated_bases(context, state) if state.get("kb_prefixes") else []
    if not question or not bases or not state.get("use_retrieval", True):
        return "无" if zh else "none"
    documents = sum(base.counts()["documents"] for base in bases)
    parts = [f"{documents} 篇文档" if zh else f"{documents} documents in all"]
    if question["conditions"]:
        holding = sum(len(base.select(question["conditions"])) for base in bases)
        understood = ("；" if zh else "; ").join(question["understood"])
        parts.append(f"{holding} 篇符合条件（{understood}）" if zh else f"{holding} hold the conditions ({understood})")
    if question["group"]:
        counts = [pair for base in bases for pair in base.tally(question["group"], question["conditions"])]
        parts.append(", ".join(f"{value}: {count}" for value, count in counts[:_COUNTS]))
    return "; ".join(parts)


_COUNTS = 40


def episodes(found: Sequence[Data], message: str, most: int = 2) -> str:
    """At most two earlier exchanges, one a line."""
    return "\n".join(told_episode(episode, message) for episode in found[:most])


def asked(state: Data) -> str:
    """The message, and what it means by itself when it is a follow-up."""
    message, query = clean(state["message"]), clean(state.get("query") or "")
    return message if not query or query == message else f"{message}\n(That is: {query})"


# --- What is said where no evidence is looked at: to a greeting, and when a search was stopped or failed ---

_THANKS = re.compile(r"\b(?:thank|thanks|thx|ty|cheers|appreciated)\b|谢|辛苦", re.IGNORECASE)
_PARTING = re.compile(
    r"\b(?:bye|goodbye|see (?:you|ya)|farewell|good night|take care)\b|再见|拜拜|回头见|明天见|晚安", re.IGNORECASE
)


def stopped(zh: bool) -> str:
    """A reviewer stopped the search before it found anything."""
    if zh:
        return "审阅者停止了检索，此前没有找到任何证据，因此无法回答。"
    return "The reviewer stopped the search, and nothing had been found by then: there is no evidence to answer from."


def failed(zh: bool, records: Sequence[ExecutionRecord]) -> str:
    """Every search failed: that says nothing of the corpus."""
    what = "; ".join(dict.fromkeys(f"{r['tool']}: {r['error'] or r['status']}" for r in records))
    if zh:
        return f"检索失败，因此无法判断资料库里有没有答案（{what}）。"
    return f"The search failed, so this is no statement about the corpus ({what})."


def greeting(zh: bool, bases: Sequence[str], message: str = "", example: str = "…") -> str:
    """A short reply to what is no question: what can be asked, with an example.

    >>> greeting(False, ["lab"], "Thanks!", "Apollo")[:60]
    'You are welcome. I answer questions from the knowledge base '
    """
    if _PARTING.search(message):
        return "再见！" if zh else "Goodbye!"
    lead = ("不客气。" if zh else "You are welcome. ") if _THANKS.search(message) else ("你好！" if zh else "Hello! ")
    if zh and not bases:
        return lead + "目前还没有知识库可以用来回答，请先添加：`workbench kb add NAME PATH...`。"
    if not bases:
        return lead + "There is no knowledge base to answer from yet: add one with `workbench kb add NAME PATH...`."
    if zh:
        return f"{lead}我根据知识库 {'、'.join(bases)} 回答问题，并注明出处。例如：“关于《{example}》有哪些内容？”"
    base, names = "knowledge base" if len(bases) == 1 else "knowledge bases", ", ".join(bases)
    return (
        f"{lead}I answer questions from the {base} {names}, with sources: for example, “What is said about {example}?”"
    )


class Answer(NamedTuple):
    """A cited answer: ``[n]`` in the text is the n-th piece of the merged evidence."""

    text: str
    citations: list[Citation]
    kind: str = ""


async def generate(state: ConversationState, runtime: Runtime[Context]) -> Json:
    """Write the answer. Its ``[n]`` are places in ``merged.retrieval_results``, counted from 1."""
    context, began = runtime.context, runtime.context.clock.monotonic()
    runtime.stream_writer(progress("generation", total=1))
    short, spoken = without_evidence(state, context), False
    if short is not None:
        answer = Answer(short, [])
    elif "writer" in context.parts:
        text = await written(context, state.get("query") or state["message"], found(state))
        text, citations, _ = cite(text, found(state))
        answer = Answer(text.strip(), citations)
    elif "writer" in context.models and not (over := budget_spent(context)):
        answer, spoken = await streamed(state, runtime), True
    else:
        if "writer" in context.models:
            runtime.stream_writer(progress("generation", total=1, note=f"the rules write the answer: {over}"))
        answer = offline(state, context)
    support = await supported(context, answer.text, found(state), state["message"]) if found(state) else []
    if spoken and support:
        answer = answer._replace(text=with_marks(answer.text, support))
    if short is None and state.get("use_retrieval", True):
        answer = answer._replace(text=answer.text + dates_note(state, context))
    if short is None and state.get("noted") and "writer" not in context.models:
        note = acknowledge(state["noted"], language_of(state["message"]) == "zh", state.get("user_id") or "default")
        answer = answer._replace(text=f"{answer.text}\n\n{note}")
    runtime.stream_writer(progress("generation", completed=1, total=1))
    spent = round((context.clock.monotonic() - began) * 1000, 3)
    # Documents and models may write what steers a terminal; people print answers.
    change = {"answer": visible(answer.text), "citations": answer.citations, "support": support}
    change |= {"answer_kind": answer.kind}
    return {**change, "generation_ms": spent, "partial": False}


def dates_note(state: Data, context: Context) -> str:
    """Return as of which dates the answer is, and what became of documents without a date; "" where none is asked."""
    as_of, known = dates_asked(state)
    if not as_of and not known:
        return ""
    bases = dated_bases(context, state)
    hidden = sum(len(base.hidden) for base in bases if isinstance(base, DatedBase))
    if language_of(state["message"]) == "zh":
        dates = "，".join([*([f"截至 {as_of}"] if as_of else []), *([f"当时已知：{known}"] if known else [])])
        return f"\n\n（{dates}。按日期略去 {hidden} 篇文档；没有日期的文档都保留。）"
    dates = ", ".join([*([f"as of {as_of}"] if as_of else []), *([f"known by {known}"] if known else [])])
    left_out = "1 document is" if hidden == 1 else f"{hidden} documents are"
    return f"\n\n(Asked {dates}: {left_out} left out by date; documents without a date are kept.)"


def without_evidence(state: Data, context: Context) -> str | None:
    """What there is to say before any evidence is looked at; None when the question is to be answered.

    A chat model answers a greeting itself; that nothing was found for a reason of its own it is not left to guess.
    """
    zh = language_of(state["message"]) == "zh"
    if (state.get("report") or {}).get("stopped"):
        return stopped(zh)
    if not state.get("use_retrieval", True):
        if (noted := state.get("noted")) and not state.get("to_search"):  # no model is left to claim that it is kept
            return acknowledge(noted, zh, state.get("user_id") or "default")
        if "writer" in context.models:
            return None
        if asked := state.get("recalls"):
            return answer_from_memory(asked, state, zh)
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


def found(state: Data) -> list[RetrievalResult]:
    """The merged evidence, in the order of its numbers."""
    return (state.get("merged") or {}).get("retrieval_results") or []


async def streamed(state: ConversationState, runtime: Runtime[Context]) -> Answer:
    """Let the writer's model answer, chunk by chunk as it sends them."""
    context = runtime.context
    text, citations, unknown = cite("".join(await _spoken(state, runtime)), found(state))
    if not text.strip():
        server = server_of(context.models["writer"])
        raise ModelError(f"The chat model at {server} answered with nothing. Ask again, or use another.")
    if unknown:
        numbers = ", ".join(f"[{n}]" for n in unknown)
        runtime.stream_writer(progress("generation", total=1, note=f"citations of no evidence were removed: {numbers}"))
    return Answer(text.strip(), citations)


async def _spoken(state: ConversationState, runtime: Runtime[Context]) -> list[str]:
    """The model's chunks, each sent on as it comes."""
    context, prompt = runtime.context, messages(state, runtime.context)
    usage: list[dict[str, int]] = []

    def heard(chunk: Any) -> None:
        usage.extend(filter(None, [usage_of(chunk)]))

    async def write() -> Json:
        chunks, thinking = list[str](), Thinking()
        told = [tuple(message) for message in prompt]
        async for chunk in stream_text(context.models["writer"], told, Limits.of(context.settings), heard, thinking):
            chunks.append(visible(chunk))
            runtime.stream_writer(token(chunks[-1]))
        if thinking.prefilled:  # what came before the closing tag was no answer
            chunks = [visible(thinking.said)]
        own = context.prompts.of("writer", language_of(state["message"]))
        thought = {"thought": visible(thinking.thought)} if thinking.thought else {}
        return {"chunks": chunks, **thought, **accounted(context, "writer", own, usage[-1] if usage else None)}

    asked = {"model": context.settings.model_of("writer"), "messages": prompt}
    written = await context.tape.aeffect("model", "writer", asked, write, clock=context.clock.monotonic)
    for chunk in written.value["chunks"] if written.replayed else ():
        runtime.stream_writer(token(chunk))
    return list(written.value["chunks"])


def offline(state: Data, context: Context) -> Answer:
    """Write the answer without a model."""
    bases = dated_bases(context, state)
    question, results = state["route_decision"]["question"], found(state)
    judgement = judge(question, results, bases, state["message"], state.get("history", []))
    return Answer(*write(judgement, question, results), judgement.kind)
