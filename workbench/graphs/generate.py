"""The node that answers: cited sentences from the evidence, by the offline writer or streamed from a chat model.

It also holds what the writer's prompt is filled in with, and what is said where nothing was searched or found.

An answer is checked against its sources, and what fails is marked. Rules check every statement first. Where the
checker's model checks too, its verdict counts, but for an address that no source has,
and what the rules missed is shown with it.
"""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import Collection, Iterator, Sequence
from itertools import chain, pairwise
from typing import Any, Literal, NamedTuple

from langgraph.runtime import Runtime
from pydantic import Field

from workbench.errors import Divergence, KnowledgeError, ModelError
from workbench.events import progress, token
from workbench.extensions import call_node, required
from workbench.graphs.roles import ModelForm, accounted, ask_model, budget_spent
from workbench.graphs.route import only_noted
from workbench.graphs.slots import NONE, counts_by_step, evidence_text, numbered, totals_by_step
from workbench.knowledge.dated import PartialBase, dated_bases, question_dates
from workbench.language.answer import judge, write
from workbench.language.citing import (
    ADDRESS,
    Support,
    checked,
    cite,
    cited,
    is_refusal,
    marked_sentences,
)
from workbench.language.dates_and_numbers import read_numbers
from workbench.language.quoting import parts as quotations
from workbench.language.words import field_words, value_texts
from workbench.models.chat import Limits, server_name, stream_text, token_usage
from workbench.models.thinking import Thinking
from workbench.plans import ENDED_WELL
from workbench.ports import Context, KnowledgeBase, call_writer
from workbench.records.proposals import MET
from workbench.state import (
    Citation,
    ConversationState,
    Data,
    Evidence,
    Json,
    RetrievalResult,
    Supported,
)
from workbench.text import CJK, clean, detect_language, visible
from workbench.tools.evidence import passage_id
from workbench.views.labels import Labels


def messages(state: Data, context: Context) -> list[list[str]]:
    """Return the messages for the writer's model, ``[kind, text]``; the current message is there once, as the last."""
    earlier = list(state.get("history") or [])
    message = state["message"]
    parts = [part for part in state.get("remembered") or [] if part["part"] == "history"]
    window = sum(part["kept"] for part in parts) if parts else context.settings.history_window
    if earlier and earlier[-1]["role"] == "user" and earlier[-1]["content"] == message:
        earlier.pop()  # whoever filled the history had already stored the question
    language = detect_language(message)
    query = clean(state.get("query") or "")
    slots = {
        "question": clean(message)
        + (f"\n(That is: {query})" if query and query != clean(message) else ""),
        "memory": str(call_node("prompt", "", state, language)) or NONE,
        "totals": "; ".join(totals(state, context)) or NONE,
        "findings": findings(state),
        "evidence": written_from(state, context) or Labels(language)("prompt_nothing"),
    }
    system, question = context.prompts.for_language("writer", language).messages(slots)
    before = earlier[-window:] if window else []
    return [
        system,
        *(["human" if m["role"] == "user" else "ai", clean(m["content"])] for m in before),
        question,
    ]


def written_from(state: Data, context: Context) -> str:
    """Return the evidence for the writer under its numbers: first what met a need or is pinned, nothing of score 0."""
    evidence = merged_evidence(state)
    met = {
        result_id
        for entry in _judged(state).get("needs", [])
        for result_id in entry["by"]
        if entry["met"] >= MET
    }
    met |= {piece["result_id"] for piece in evidence if met and piece["metadata"].get("pinned")}
    numbers = [n for n, piece in enumerate(evidence, 1) if piece["score"] > 0]
    # stable: the rest stays in its order
    numbers.sort(key=lambda n: evidence[n - 1]["result_id"] not in met)
    if met:  # a model found what it needs: of the rest only what is likely, or comes first
        # it reads the next three too, and each that is not quite unlikely
        always = len([n for n in numbers if evidence[n - 1]["result_id"] in met]) + 3
        numbers = [
            n
            for place, n in enumerate(numbers)
            if place < always or evidence[n - 1]["score"] >= 0.1
        ]
    pieces = [evidence[n - 1] for n in numbers]
    return evidence_text(pieces, context.settings.merge_max_characters, numbers)


def findings(state: Data) -> str:
    """Return what the search concluded: each need with the pieces that met it, and the last judgement."""
    places = {piece["result_id"]: n for n, piece in enumerate(merged_evidence(state), 1)}
    lines = []
    if conclusion := str(_judged(state).get("conclusion") or ""):
        return _with_numbers(conclusion, state)
    for entry in _judged(state).get("needs", []):
        by = " ".join(
            f"[{places[result_id]}]" for result_id in entry["by"] if result_id in places
        )
        met = f"met by {by}" if by else "met"
        lines.append(f"- {entry['need']}: {met if entry['met'] >= MET else 'not found'}")
    if lines:
        lines.append(str(state["reflections"][-1]["reasoning"]))
    return "\n".join(lines) or NONE


def _judged(state: Data) -> Data:
    """Return the signals of the last reflection where a model made it; the rules' own are for their writer."""
    reflections = state.get("reflections") or []
    signals = reflections[-1]["signals"] if reflections else {}
    return signals if "judge" in signals else {}


def _with_numbers(text: str, state: Data) -> str:
    """Return what an agent says, with numbers of the evidence in place of ids."""
    ids = {passage_id(piece): n for n, piece in enumerate(merged_evidence(state), 1)}
    for name in sorted(ids, key=len, reverse=True):
        text = text.replace(name, str(ids[name]))
    return text


def totals(state: Data, context: Context) -> list[str]:
    """Return how many documents hold for each search by fields that ran, be it a model's or the rules'."""
    by_step = totals_by_step(state, context)
    return [
        f"{by_step[step_id]} ({conditions})"
        for step_id, (conditions, _) in counts_by_step(state, context).items()
    ]


def total_numbers(state: Data, context: Context) -> set[float]:
    """Return the numbers of ``totals``: an answer may state them without a source."""
    outputs = [output for _, output in counts_by_step(state, context).values()]
    return {
        float(n)
        for output in outputs
        for n in (output.get("total"), *output.get("counts", {}).values())
        if n
    }


# --- What is said where no evidence is looked at: to a greeting, and when a search was stopped or failed ---


def greeting(say: Labels, bases: Sequence[str]) -> str:
    """Return a reply that fits a greeting, thanks and a farewell: which knowledge bases can be asked."""
    return say("reply_from" if bases else "reply_no_base", names=say("comma").join(bases))


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
    conclusion = "" if by_model else str(_judged(state).get("conclusion") or "")
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
        answer = _cited(_with_numbers(conclusion, state), evidence)
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
        return greeting(say, context.knowledge.names())
    if merged_evidence(state):
        return None
    if state.get("stop_reason") == "stopped_by_reviewer":
        return say("reply_stopped")
    tried = [r for r in state.get("records", []) if r["status"] != "skipped"]
    # that says nothing of the corpus
    if tried and not any(r["status"] in ENDED_WELL for r in tried):
        why = dict.fromkeys(f"{r['tool']}: {r['error'] or r['status']}" for r in tried)
        return say("reply_failed", why="; ".join(why))
    return None


def merged_evidence(state: Data) -> list[RetrievalResult]:
    """Return the merged evidence, in the order of its numbers."""
    return (state.get("merged") or {}).get("retrieval_results") or []


async def streamed(state: ConversationState, runtime: Runtime[Context]) -> Answer:
    """Let the writer's model answer, chunk by chunk as it sends them."""
    context = runtime.context
    text, citations, unknown = cite(
        "".join(await _spoken(state, runtime)), merged_evidence(state)
    )
    if not text.strip():
        server = server_name(context.models["writer"])
        raise ModelError(
            f"The chat model at {server} answered with nothing. Ask again, or use another."
        )
    if unknown:
        numbers = ", ".join(f"[{n}]" for n in unknown)
        runtime.stream_writer(
            progress(
                "generation", total=1, note=f"citations of no evidence were removed: {numbers}"
            )
        )
    return Answer(text.strip(), citations)


async def _spoken(state: ConversationState, runtime: Runtime[Context]) -> list[str]:
    """Return the model's chunks, each sent on as it comes."""
    context = runtime.context
    prompt = messages(state, context)
    usage: list[dict[str, int]] = []

    def heard(chunk: Any) -> None:
        usage.extend(filter(None, [token_usage(chunk)]))

    async def write() -> Json:
        chunks = []
        thinking = Thinking()
        prompt_messages = [tuple(message) for message in prompt]
        async for chunk in stream_text(
            context.models["writer"],
            prompt_messages,
            Limits.from_settings(context.settings),
            heard,
            thinking,
        ):
            chunks.append(visible(chunk))
            runtime.stream_writer(token(chunks[-1]))
        if thinking.prefilled:  # what came before the closing tag was no answer
            chunks = [visible(thinking.said)]
        own = context.prompts.for_language("writer", detect_language(state["message"]))
        tokens = usage[-1] if usage else None
        thought = visible(thinking.thought)
        return {"chunks": chunks, **accounted(context, "writer", own, tokens, thought)}

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


_SENTENCES, _VALUES = 40, 30
MARKS = {
    "unsupported": (" (not in its sources)", "（来源中没有依据）"),
    "unjudged": (" (not all in its sources)", "（来源中不全有）"),
    "uncited": (" (without a source)", "（未注明出处）"),
}
"""Verdict -> what stands behind a sentence in an answer, in English and in Chinese."""


class Checked(ModelForm):
    """The checker's verdict on one sentence."""

    sentence: int = Field(ge=1, le=_SENTENCES)
    verdict: Literal["supported", "partly", "unsupported"]


class CheckedAll(ModelForm):
    """The form of the checker."""

    sentences: list[Checked] = Field(max_length=_SENTENCES)


async def supported(
    context: Context, text: str, evidence: Evidence, question: str, counts: Collection[float] = ()
) -> list[Supported]:
    """Return every statement of an answer with its verdict; one that only states ``counts`` needs no source."""
    statements = [_counted(each, counts) for each in _by_rules(context, text, evidence)]
    numbers = {*range(1, len(evidence) + 1)}
    cited = [each for each in statements if each.cited and {*each.cited} <= numbers]
    # a sentence without a source may have that of the next one
    led = [
        sentence._replace(cited=after.cited)
        for sentence, after in pairwise(statements)
        if not sentence.cited and after in cited
    ]
    # a model also judges what cites nothing: it may say what is not said, or what the passages of others say
    uncited = [
        each
        for each in statements
        if each.verdict == "uncited" and each.sentence not in {s.sentence for s in led}
    ]
    citing = [*cited, *led, *uncited] if cited else []
    checks = "checker" in context.models and citing
    verdicts = (await verdicts_by_model(context, citing, evidence, question))[0] if checks else {}
    checker = context.settings.role_model("checker") if verdicts else ""
    return [
        _combined(each, verdicts.get(each.sentence, ""), checker, evidence) for each in statements
    ]


def _counted(statement: Support, counts: Collection[float]) -> Support:
    """Return a statement without a source as supported, where each of its numbers was counted in the corpus."""
    numbers = (
        read_numbers(statement.sentence) if statement.verdict == "uncited" and counts else []
    )
    if not numbers or not all(
        number.low == number.high and number.low in counts for number in numbers
    ):
        return statement
    return statement._replace(verdict="supported")


def _by_rules(context: Context, text: str, evidence: Evidence) -> list[Support]:
    numbers = cited(text)
    pieces = {n: result for n, result in enumerate(evidence, 1) if n in numbers}
    try:
        sources = {n: source_text(r, _base(r, context)) for n, r in pieces.items()}
    except (Divergence, KnowledgeError):  # a replay without the base
        sources = {n: source_text(r, None) for n, r in pieces.items()}
    return checked(text, sources)


def _groups(
    statements: Sequence[Support], evidence: Evidence, limit: int
) -> Iterator[list[Support]]:
    """Yield statements that are checked together: as many as fit a form, and whose sources fit a prompt."""
    group = list[Support]()
    cited = set[int]()
    for statement in statements:
        pieces = [evidence[n - 1] for n in sorted(cited | {*statement.cited})]
        if group and (
            len(group) == _SENTENCES or len(evidence_text(pieces, sys.maxsize)) > limit
        ):
            yield group
            group = []
            cited = set()
        group = [*group, statement]
        cited = cited | {*statement.cited}
    yield group


async def verdicts_by_model(
    context: Context, statements: Sequence[Support], evidence: Evidence, question: str
) -> tuple[dict[str, str], list[str]]:
    """Return the verdicts of the checker's model by sentence, and what was wrong where it gave none."""
    groups = _groups(statements, evidence, context.settings.merge_max_characters)
    calls = (_by_model(context, group, evidence, question) for group in groups)
    replies = await asyncio.gather(*calls)
    verdicts = {
        sentence: verdict
        for by_sentence, _ in replies
        for sentence, verdict in by_sentence.items()
    }
    return verdicts, [
        fault for by_sentence, faults in replies if not by_sentence for fault in faults
    ]


async def _by_model(
    context: Context, group: Sequence[Support], evidence: Evidence, question: str
) -> tuple[dict[str, str], list[str]]:
    cited = sorted({n for statement in group for n in statement.cited})
    lines = [
        f"{each.sentence} (cites {', '.join(map(str, each.cited)) or 'nothing'})"
        for each in group
    ]
    slots = {
        "sentences": numbered(lines),
        "evidence": evidence_text(
            [evidence[n - 1] for n in cited], context.settings.merge_max_characters, cited
        ),
    }
    reply = await ask_model(context, "checker", CheckedAll, slots, question=question)
    checked_sentences = reply.form.sentences if reply.form else []
    verdicts = {
        group[each.sentence - 1].sentence: each.verdict
        for each in checked_sentences
        if each.sentence <= len(group)
    }
    return verdicts, reply.refused


def _combined(support: Support, verdict: str, judge: str, evidence: Evidence) -> Supported:
    """Return a model's verdict where there is one, with what the rules missed.

    An address that no source has fails, and so does a quotation in the language of its sources that none of them has.
    """
    final: Any = support.verdict
    by = support.by
    if verdict and (final != "uncited" or verdict != "unsupported"):
        sources = [evidence[n - 1]["evidence"] for n in support.cited if n <= len(evidence)]
        translated = not any(
            bool(CJK.search(text)) == bool(CJK.search(support.sentence)) for text in sources
        )
        quoted = "“" in support.why and not translated
        final = "unsupported" if quoted or ADDRESS.search(support.why) else verdict
        by = support.cited if final == "supported" else by
    return Supported(
        sentence=support.sentence,
        verdict=final,
        cited=support.cited,
        by=list(by),
        why=support.why,
        judge=judge if verdict else "",
    )


def _base(result: RetrievalResult, context: Context) -> KnowledgeBase | None:
    name = result["metadata"].get("kb_prefix") or ""
    return context.knowledge.get(name) if name in context.knowledge.names() else None


def source_text(result: RetrievalResult, base: KnowledgeBase | None) -> str:
    """Return the title of a piece of evidence, its text, also in the form that is quoted, and its typed fields.

    Each field has all words for it, each value all its writings.
    """
    metadata = result["metadata"]
    title = str(metadata.get("title") or "")
    heading = " / ".join(_writings(title, base)) if title else ""
    plain = [text for _, text in quotations(result["evidence"], title)]
    fields = {field["name"]: field for field in (base.about()["fields"] if base else ())}
    lines = []
    for name, content in (metadata.get("fields") or {}).items():
        field = fields.get(name)
        lines += [name, *(field_words(field) if field else ())]
        for value in value_texts(content)[:_VALUES]:
            texts = field["values_called"].get(value, {}).values() if field else ()
            lines += [*_writings(value, base), *chain(*texts)]
    return "\n".join([heading, *plain, result["evidence"], *lines]).strip()


def _writings(name: str, base: KnowledgeBase | None) -> list[str]:
    """Return a name and the other ways in which the knowledge base writes it."""
    entity = base.entity(name) if base else None
    return list(dict.fromkeys([name, *(entity["aliases"] if entity else [])]))


def with_marks(text: str, support: Sequence[Supported], language: str) -> str:
    """Return the answer with a mark behind each statement that its sources do not support.

    >>> one = Supported(sentence="It is green.", verdict="uncited", cited=[], by=[], why="", judge="")
    >>> with_marks("It is green. Why?", [one], "en")
    'It is green (without a source). Why?'
    """
    verdicts = {each["sentence"]: each["verdict"] for each in support}
    marked = ""
    at = 0
    # each at its place: one may be repeated, or be a part of another
    for sentence in marked_sentences(text):
        match = re.compile(r"\s*".join(map(re.escape, sentence.split()))).search(text, at)
        if not match:
            continue
        end = match.end()
        mark = MARKS.get(verdicts.get(sentence, ""))
        if mark and not is_refusal(sentence):
            end -= len(sentence) - len(re.sub(r"[.!?。！？；]$", "", sentence))
            marked = f"{marked}{text[at:end]}{mark[language == 'zh']}"
            at = end
        marked = marked + text[at : match.end()]
        at = match.end()
    return marked + text[at:]
