"""Reflecting with a chat model: which passages meet which need, whether to go on, with what, and in which words.

What a model says is bounded by what is seen without it: no evidence, or an asked field that nothing says, is never
enough; a need is met only by a passage that there is; a search that was made is not made again; passes, time and money
end a run whatever the model wants. ``signals["overruled"]`` says in so many words what was not followed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel, Field, create_model

from workbench.graphs.cards import described, offered, told_evidence, told_steps
from workbench.graphs.merge import first_documents
from workbench.graphs.model_plan import step_form, steps_of
from workbench.graphs.needs import Entry, is_settled
from workbench.graphs.roles import NONE, ModelForm, left, numbered, say
from workbench.plans import Plan, PlanStep, work_seconds
from workbench.ports import Context
from workbench.state import Evidence, Reflection, RetrievalResult
from workbench.tools.registry import check

if TYPE_CHECKING:
    from workbench.graphs.reflect import Pass, Proposal

READ = 10
"""Passages that a model is shown; the first of each document come first."""
STEPS = 3
"""Steps that one reflection may add."""
_TOLD = ("evidence_count", "top_score", "unknown", "missing", "missing_fields", "probability", "failures", "timeouts")


class Grade(ModelForm):
    """The passages that meet one need, by number."""

    need: int = Field(ge=1, le=20)
    passages: list[int] = Field(default_factory=list, max_length=READ)


class Grades(ModelForm):
    """What the grader fills in."""

    grades: list[Grade] = Field(max_length=20)


class Verdict(Grade):
    """What the reflector says of one need."""

    verdict: Literal["met", "contradicted", "missing"]


class Rewritten(ModelForm):
    """What the rewriter fills in."""

    query: str = Field(min_length=1, max_length=300)


async def rewritten_by_model(context: Context, query: str, writings: Sequence[str], at: str) -> tuple[str, str]:
    """Return the question in the rewriter's words, or "" and a note that says why not."""
    slots = {"question": query, "names": ", ".join(writings) or NONE}
    said = await say(context, "rewriter", Rewritten, slots, question=query, at=at)
    if said.form is None:
        return "", f"the model did not rewrite ({said.refused[-1]})"
    return " ".join(said.form.query.split()), ""


def shown_to(evidence: Evidence) -> list[RetrievalResult]:
    """The passages that a model is shown: of the first documents one each, then the others."""
    first = first_documents(evidence)
    ids = {result["result_id"] for result in first}
    return [*first, *(r for r in evidence if r["result_id"] not in ids)][:READ]


async def graded(
    context: Context, query: str, entries: Sequence[Entry], evidence: Evidence, at: str
) -> tuple[list[Entry], list[str]]:
    """The ledger as the grader's model reads the evidence, or as it was, and why."""
    passages = shown_to(evidence)
    asked = [n for n, entry in enumerate(entries) if not is_settled(entry)]
    if not passages or not asked:
        return list(entries), []
    slots = {
        "question": query,
        "needs": numbered([entries[n]["need"] for n in asked]),
        "evidence": told_evidence(passages, context.settings.merge_max_characters),
    }
    said = await say(context, "grader", Grades, slots, question=query, at=at)
    if said.form is None:
        return list(entries), said.refused
    return _met(entries, asked, said.form.grades, passages), invented(said.form.grades, asked, passages)


def invented(grades: Iterable[Any], asked: Sequence[int], passages: Evidence) -> list[str]:
    """The needs and passages that a model names and that there are not."""
    told = [f"need {g.need}: there are {len(asked)}" for g in grades if g.need > len(asked)]
    numbers = {n for g in grades for n in g.passages if not 1 <= n <= len(passages)}
    return told + [f"passage [{n}]: there are {len(passages)}" for n in sorted(numbers)]


def _met(entries: Sequence[Entry], asked: Sequence[int], grades: Iterable[Any], passages: Evidence) -> list[Entry]:
    """The ledger with what was said of it: met by passages that there are, contradicted by them, or by none."""
    now = [Entry(**entry) for entry in entries]
    for grade in grades:
        if grade.need > len(asked):
            continue
        by = [passages[n - 1] for n in dict.fromkeys(grade.passages) if 1 <= n <= len(passages)]
        entry, verdict = now[asked[grade.need - 1]], getattr(grade, "verdict", "met")
        met = bool(by) and verdict == "met"
        entry["met"], entry["verdict"] = float(met), verdict if by else "missing"
        entry["by"] = [result["result_id"] for result in by]
        entry["title"] = str(by[0]["metadata"].get("title") or "") if by else ""
    return now


async def reflected_by_model(now: Pass, proposal: Proposal) -> tuple[Reflection | None, list[str]]:
    """Return the reflection of the reflector's model, bounded; None and why, where the rules must say what to do."""
    context, plan, seen, say_label = now.context, now.plan, proposal.seen, proposal.say
    entries, evidence, records = seen.get("needs", []), now.evidence, now.state.get("records", [])
    passages, asked = shown_to(evidence), [n for n, entry in enumerate(entries) if not is_settled(entry)]
    tools = offered(context.tools, now.bases)
    form = _form(step_form(tools, [base.name for base in now.bases]))
    slots = {
        "question": now.state["query"],
        "needs": numbered([f"{entries[n]['need']} (so far: {entries[n]['met']:.2f})" for n in asked]),
        "steps": told_steps(plan, records),
        "signals": json.dumps({n: seen[n] for n in _TOLD if n in seen}, ensure_ascii=False),
        "budget": left(context, context.settings.time_budget_s - work_seconds(records)),
        "tools": described(tools),
        "evidence": told_evidence(passages, context.settings.merge_max_characters),
        "most": str(STEPS),
    }
    said = await say(context, "reflector", form, slots, question=now.state["query"], at=now.label)
    if said.form is None:
        return None, said.refused
    steps, overruled = _allowed(said.form.steps, plan, len(now.bases) > 1, context, proposal.is_done)
    overruled += invented(said.form.needs, asked, passages)
    unsaid = [f"{field} of {title}" for title, field in seen.get("missing_fields", [])]
    enough = said.form.enough and bool(evidence) and not unsaid
    if said.form.enough and not enough:
        why = f"nothing says {', '.join(unsaid)}" if evidence else "there is no evidence"
        overruled = [f"enough: {why}", *overruled]
    judged = _met(entries, asked, said.form.needs, passages)
    proposal.seen = {**seen, "needs": judged, "judge": context.settings.model_of("reflector")}
    reasoning = said.form.reasoning.strip().rstrip("。. ")
    facts = [reasoning] if reasoning else []
    if overruled:
        proposal.seen |= {"overruled": overruled}
        facts.append(say_label("reflect_overruled", names=say_label("comma").join(overruled)))
    for step in [] if enough else steps:
        proposal.steps.append(step)
        proposal.reasons.append(say_label("reflect_ask", query=step.tool_input.get("query") or step.objective))
    facts = facts or [say_label("reflect_model")]
    reflection = proposal.conclude(enough, context.settings.max_iterations, facts)
    if reflection["stop_reason"] in ("no_further_action", "error"):
        return None, [*said.refused, *overruled, "it named no step that can be run, so the rules say what to do"]
    return reflection, said.refused


def _form(step: Any) -> type[BaseModel]:
    return create_model(
        "Reflected",
        __base__=ModelForm,
        needs=(list[Verdict], Field(default_factory=list, max_length=20)),
        enough=(bool, ...),
        steps=(list[step], Field(default_factory=list, max_length=STEPS)),
        reasoning=(str, Field("", max_length=600)),
    )


def _allowed(
    drafted: Sequence[Any], plan: Plan, several: bool, context: Context, made: Callable[[PlanStep], bool]
) -> tuple[list[PlanStep], list[str]]:
    """The steps that can run and were not made yet, each checked by itself; and why the others cannot."""
    kept: list[PlanStep] = []
    overruled: list[str] = []
    ids = {step.step_id for step in plan.steps}
    first = len(ids)
    while any(step_id.startswith(f"step_{first}_") for step_id in ids):
        first += 1
    for step in steps_of(drafted, several, context.tools, first):
        problems = check(plan.adding(*kept, step), context.tools)
        if problems:
            overruled.append(f"{step.tool} {step.tool_input.get('query', '')!r}: {problems[0]['message']}")
        elif made(step):
            overruled.append(f"{step.tool} {step.tool_input.get('query', '')!r}: it was made already")
        else:
            kept.append(step)
    return kept, overruled
