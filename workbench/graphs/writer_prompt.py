"""The prompt of the writer's model: the messages, what the search concluded and counted, and the evidence by number."""

from __future__ import annotations

from workbench.extensions import call_node
from workbench.graphs.slots import NONE, counts_by_step, evidence_text, totals_by_step
from workbench.ports import Context
from workbench.records.proposals import MET
from workbench.state import Data, RetrievalResult
from workbench.text import clean, detect_language
from workbench.tools.evidence import passage_id
from workbench.views.labels import Labels


def messages(state: Data, context: Context) -> list[list[str]]:
    """Return the messages for the writer's model, ``[kind, text]``; the current message is there once, as the last."""
    earlier = list(state.get("history") or [])
    message = state["message"]
    parts = [part["kept"] for part in state.get("remembered") or [] if part["part"] == "history"]
    window = sum(parts) if parts else context.settings.history_window
    if earlier and earlier[-1]["role"] == "user" and earlier[-1]["content"] == message:
        earlier.pop()  # whoever filled the history had already stored the question
    language = detect_language(message)
    query = clean(state.get("query") or "")
    text = clean(message)
    if query not in ("", text):
        text += f"\n(That is: {query})"
    slots = {
        "question": text,
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
        for entry in judged(state).get("needs", [])
        for result_id in entry["by"]
        if entry["met"] >= MET
    }
    met |= {piece["result_id"] for piece in evidence if met and piece["metadata"].get("pinned")}
    pieces = {n: piece for n, piece in enumerate(evidence, 1) if piece["score"] > 0}
    first = [n for n in pieces if pieces[n]["result_id"] in met]
    rest = [n for n in pieces if n not in first]
    # a model found what it needs: it reads the next three too, and what is not quite unlikely
    if met:
        rest = [*rest[:3], *(n for n in rest[3:] if pieces[n]["score"] >= 0.1)]
    numbers = [*first, *rest]
    limit = context.settings.merge_max_characters
    return evidence_text([pieces[n] for n in numbers], limit, numbers)


def findings(state: Data) -> str:
    """Return what the search concluded: each need with the pieces that met it, and the last judgement."""
    places = {piece["result_id"]: n for n, piece in enumerate(merged_evidence(state), 1)}
    lines = []
    signals = judged(state)
    if conclusion := str(signals.get("conclusion") or ""):
        return with_numbers(conclusion, state)
    for entry in signals.get("needs", []):
        by = " ".join(
            f"[{places[result_id]}]" for result_id in entry["by"] if result_id in places
        )
        met = f"met by {by}" if by else "met"
        lines.append(f"- {entry['need']}: {met if entry['met'] >= MET else 'not found'}")
    if lines:
        lines.append(str(state["reflections"][-1]["reasoning"]))
    return "\n".join(lines) or NONE


def judged(state: Data) -> Data:
    """Return the signals of the last reflection where a model made it; the rules' own are for their writer."""
    reflections = state.get("reflections") or []
    signals = reflections[-1]["signals"] if reflections else {}
    return signals if "judge" in signals else {}


def with_numbers(text: str, state: Data) -> str:
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


def merged_evidence(state: Data) -> list[RetrievalResult]:
    """Return the merged evidence, in the order of its numbers."""
    return (state.get("merged") or {}).get("retrieval_results") or []
