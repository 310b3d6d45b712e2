"""After each pass: is the evidence enough, and what would mend it? Rules propose, a reviewer decides."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, cast

from langgraph.runtime import Runtime
from pydantic import BaseModel, ConfigDict, Field

from workbench.errors import Divergence, KnowledgeError, PlanError
from workbench.graphs.completeness import FIRST, LEAST, incomplete, promise
from workbench.graphs.ledger import heeded, ledger, needs, settled, steered
from workbench.graphs.merge import HOP, distinct, gather
from workbench.graphs.model_reflect import graded, judged_by_model
from workbench.graphs.rewrite import rewritten
from workbench.graphs.roles import NONE, budget_spent, expected, say
from workbench.graphs.route import AGENT_TYPES
from workbench.graphs.sufficiency import (
    Need,
    is_enough,
    lacking,
    low_score,
    need,
    open_needs,
    set_here,
    signals,
    thresholds,
)
from workbench.knowledge.dated import dated_bases
from workbench.language.judging import judged
from workbench.plans import ENDED_WELL, Plan, PlanBudget, PlanStep, canonical_json, fresh_id, last_records, work_seconds
from workbench.ports import Context, KnowledgeBase, proposed
from workbench.records.proposals import MET
from workbench.state import ExecutionRecord, Reflection, RetrievalResult, RetrievalState, StopReason
from workbench.text import fold, language_of
from workbench.tools.next_hop import SubQuestion, sub_questions
from workbench.tools.registry import check


@dataclass(frozen=True)
class Reasons:
    """The sentences of a reflection, Chinese or English."""

    zh: bool

    @classmethod
    def for_question(cls, query: str) -> Reasons:
        """In the language of the question."""
        return cls(language_of(query) == "zh")

    def _say(self, zh: str, en: str) -> str:
        return zh if self.zh else en

    def _list(self, names: Iterable[str]) -> str:
        return self._say("、", ", ").join(names)

    def activating(self, steps: list[str]) -> str:
        """Conditional steps of the plan are woken."""
        names = self._list(steps)
        return self._say(f"启用备用步骤 {names}", f"the conditional step {names} is activated")

    def adding(self, tool: str) -> str:
        """One more tool is asked."""
        return self._say(f"补充 {tool}", f"{tool} is added")

    def rewriting(self, query: str) -> str:
        """The question is said again."""
        return self._say(f"改写为“{query}”再检索", f"the query is said again as {query!r}")

    def hopping(self, hop: SubQuestion) -> str:
        """What a sub-question is for."""
        return self._say(
            f"由《{hop.title}》提到的“{hop.name}”继续查找",
            f"Go on from {hop.title!r} to {hop.name!r}, which it brings in",
        )

    def asking(self, query: str) -> str:
        """A sub-question."""
        return self._say(f"追问“{query}”", f"{query!r} is asked")

    def looking_for(self, names: list[str]) -> str:
        """A targeted search."""
        joined = self._list(names)
        return self._say(f"定向检索 {joined}", f"a targeted search looks for {joined}")

    def needed(self, need: str) -> str:
        """What a search for an open need is for."""
        return self._say(f"查找尚缺的：{need}", f"Find what is still needed: {need}")

    def more_candidates(self, seen: Mapping[str, Any]) -> str:
        """A recommendation has too few to choose from."""
        return self._say("再找更多候选", "more candidates are looked for")

    def degrading(self, tool: str, simpler: str) -> str:
        """A simpler tool takes the place of one that failed."""
        return self._say(f"{tool} 失败，降级为 {simpler}", f"{tool} did not end well, so {simpler} takes its place")

    def of_model(self, words: str, seen: Mapping[str, Any], stop: StopReason | None, actions: list[str]) -> str:
        """What a model says, what was not followed of it, and what follows."""
        lost = seen.get("overruled", [])
        told = [words.rstrip("。. ")] if words else []
        told += [self._say(f"未采纳：{self._list(lost)}", f"not followed: {self._list(lost)}")] if lost else []
        then = self._say("；", "; ").join(actions) if stop is None else self._ends(stop)
        facts = self._say("；", "; ").join(told) or self._say("模型已判断", "The model has judged")
        return self._say(f"{facts}。{then}。", f"{facts}. {then[:1].upper()}{then[1:]}.")

    def conclusion(self, seen: Mapping[str, Any], stop: StopReason | None, actions: list[str]) -> str:
        """What was seen, with its numbers, and what follows."""
        facts = self._say("；", "; ").join(self._facts(seen))
        then = self._say("；", "; ").join(actions) if stop is None else self._ends(stop)
        return self._say(f"{facts}。{then}。", f"{facts}. {then[:1].upper()}{then[1:]}.")

    def _facts(self, seen: Mapping[str, Any]) -> Iterable[str]:
        enough, count, top = seen["thresholds"], seen["evidence_count"], seen["top_score"]
        least, score = enough["min_evidence"], enough["min_top_score"]
        yield self._say(f"证据 {count} 条（至少 {least:g}）", f"{count} pieces of evidence (at least {least:g})")
        yield self._say(f"最高分 {top:.2f}（至少 {score:.2f}）", f"top score {top:.2f} (at least {score:.2f})")
        for thing in seen["coverage"]:
            if thing["found"] < thing["needed"]:
                yield self._say(
                    f"《{thing['name']}》只有 {thing['found']} 条，需要 {thing['needed']} 条",
                    f"{thing['name']} has {thing['found']} of {thing['needed']}",
                )
        if seen["unknown"]:
            names = self._list(seen["unknown"])
            yield self._say(f"知识库里没有 {names}", f"the knowledge base never names {names}")
        if seen.get("missing_fields"):
            lost = [self._say(f"《{t}》的{field}", f"the {field} of {t}") for t, field in seen["missing_fields"]]
            yield self._say(f"没有找到{self._list(lost)}", f"nothing says {self._list(lost)}")
        elif seen.get("answered") is False:
            yield self._say("没有句子回答这个问题", "no sentence answers the question")
        if "incomplete" in seen:
            share, most = seen["incomplete"], enough["max_incomplete"]
            yield self._say(
                f"前五篇缺少所需段落的可能性 {share:.0%}（至多 {most:.0%}）",
                f"a chance of {share:.0%} that a passage is missing among the first five (at most {most:.0%})",
            )
        if seen.get("needs"):
            lost = [entry["need"] for entry in seen["needs"] if not settled(entry) and entry["met"] < MET]
            met = sum(entry["met"] >= MET or entry["said"] == "confirmed" for entry in seen["needs"])
            rest = self._say(f"，未满足：{self._list(lost)}", f", not met: {self._list(lost)}") if lost else ""
            yield self._say(
                f"{len(seen['needs'])} 项所需中已满足 {met} 项{rest}",
                f"{met} of {len(seen['needs'])} needs are met{rest}",
            )
        if "promise" in seen:
            chance = seen["promise"]
            zh, en = f"继续追问补上的可能性 {chance:.0%}", f"a chance of {chance:.0%} that asking further brings it in"
            if chance < LEAST:
                zh, en = (
                    f"继续追问预计无差别（{chance:.0%}）",
                    f"asking further makes no difference, likely ({chance:.0%})",
                )
            yield self._say(zh, en)
        if "candidates" in seen:
            least = enough["min_candidates"]
            yield self._say(
                f"候选 {seen['candidates']} 个（至少 {least:g}）",
                f"{seen['candidates']} candidates (at least {least:g})",
            )
        if seen.get("spent"):
            yield str(seen["spent"]).rstrip(".")
        if seen.get("model_refused"):
            why = seen["model_refused"][-1].rstrip(".")
            yield self._say(f"模型的判断无法采用（{why}）", f"the model's judgement cannot be used ({why})")
        if "holding" in seen:
            yield self._say(f"符合条件的有 {seen['holding']} 个", f"{seen['holding']} documents hold the conditions")
        for kind, zh, en in (("timeouts", "超时", "timed out"), ("failures", "失败", "failed")):
            if seen[kind]:
                yield self._say(f"{self._list(seen[kind])} {zh}", f"{self._list(seen[kind])} {en}")

    def _ends(self, stop: StopReason) -> str:
        zh, en = {
            "quality_satisfied": ("证据足够", "this is enough"),
            "max_iterations_reached": ("轮次已用完", "the passes are used up"),
            "budget_exhausted": ("预算已用完", "the budget is used up"),
            "no_further_action": ("没有别的可试", "nothing is left to try"),
            "error": ("所有步骤都失败了", "every step failed"),
            "stopped_by_reviewer": ("由审阅者停止", "stopped by the reviewer"),
        }[stop]
        return self._say(zh, en)


SIMPLER = {
    "global_search": ("local_search", "naive_search"),
    "discover": ("local_search", "naive_search"),
    "hybrid_search": ("naive_search", "keyword_search"),
    "local_search": ("naive_search",),
    "naive_search": ("keyword_search",),
    "keyword_search": (),
}
"""Tool -> simpler ones, in order. Any other tool degrades to ``naive_search``."""

FALLBACK = PlanBudget(timeout_s=10, top_k=30)
AGAIN = PlanBudget()
HOPS = PlanBudget(timeout_s=10, top_k=20)
BETTER = 0.02
"""By how much a rewritten query must have raised the top score for another rewriting to be worth a pass."""


@dataclass
class Proposal:
    """What the rules want done next, each with its reason; ``steps`` never repeat a call."""

    plan: Plan
    tools: Collection[str]
    done: set[tuple[str, str]]
    steps: list[PlanStep] = field(default_factory=list)
    activate: list[str] = field(default_factory=list)
    rewrite_query: str = ""
    reasons: list[str] = field(default_factory=list)

    def add(self, tool: str, objective: str, budget: PlanBudget, **tool_input: Any) -> bool:
        """Propose a call, unless the tool is not there or has had this input; says whether it is proposed."""
        call = call_of(tool, tool_input)
        if tool not in self.tools or call in self.done:
            return False
        self.done.add(call)
        step_id = fresh_id(self.plan.adding(*self.steps), f"more_{tool.removesuffix('_search')}")
        self.steps.append(
            PlanStep(step_id=step_id, objective=objective, tool=tool, tool_input=tool_input, budget=budget)
        )
        return True

    def __bool__(self) -> bool:
        return bool(self.steps or self.activate)


class Rewritten(BaseModel):
    """What the rewriter's model fills in."""

    model_config = ConfigDict(extra="forbid")

    query: str = Field(min_length=1, max_length=300)


async def _said_again(
    query: str,
    aliases: Sequence[str],
    evidence: Sequence[RetrievalResult],
    bases: Sequence[KnowledgeBase],
    context: Context,
    at: str,
) -> tuple[str, str]:
    """The query rewritten, by the model where there is one, and a note."""
    works = [word for base in bases for word in base.nouns().get("en", ())]
    plain = rewritten(query, aliases, evidence, lambda term: _rarity(bases, term), works)
    if "rewriter" not in context.models:
        return plain, ""
    if (older := context.tape.older("rewrite")) is not None:
        return older[0], older[1]
    slots = {"question": query, "names": ", ".join(aliases) or NONE}
    said = await say(context, "rewriter", Rewritten, slots, question=query, at=at)
    if said.form is None:
        return plain, f"the model did not rewrite ({said.refused[-1]})"
    return " ".join(said.form.query.split()), ""


async def reflector(state: RetrievalState, runtime: Runtime[Context]) -> dict[str, Any]:
    """Judge the evidence of all passes so far, and propose what to do next."""
    context, decision, query = runtime.context, state["route_decision"], state["query"]
    records, plan = state.get("records", []), Plan.load(state["plan"])
    bases = dated_bases(context, state)
    evidence = distinct(gather(records, context.runs, state.get("run_id", "")))
    wanted = need(decision, bases)
    remaining = context.settings.time_budget_s - work_seconds(records)
    enough = thresholds(wanted.intent, set_here(state.get("thresholds"), context.settings), wanted)
    judgement = judged(decision["question"], evidence, bases) if "question" in decision else None
    seen = signals(wanted, evidence, records, enough, state["iteration"], remaining, judgement)
    base, asked, at = _most_of(evidence, bases), query, f"pass {state['iteration']}"
    plain = evidence and not any(r["metadata"].get("fields") for r in evidence[:FIRST])
    with suppress(KnowledgeError, Divergence):  # a tape of before this was looked at: it is not judged anew
        known, said = needs(query, decision, bases), state.get("needs", {})
        criteria = plan.acceptance_criteria or [one.text for one in known]
        entries = ledger(criteria, known, wanted, seen, evidence, base, said)
        seen, asked = heeded(seen, entries, known) | {"needs": entries}, steered(query, entries)
    if "grader" in context.models and seen.get("needs"):
        seen["needs"], refused = await graded(context, query, seen["needs"], evidence, at)
        seen |= {"grader_refused": refused} if refused else {}
    if plain and wanted.intent not in ("list", "recommend"):
        with suppress(KnowledgeError, Divergence):
            seen["incomplete"] = incomplete(asked, evidence, base) if asked else 0.0
    one_step = state.get("resolved_agent_type", "") not in ("", AGENT_TYPES[0])
    if spent := budget_spent(context):
        seen["spent"] = spent
    reflection, refused = await _model_says(state, context, plan, seen, evidence, bases, one_step)
    if reflection is None:
        hops = []
        if lacking(seen) and not one_step:
            hops = sub_questions(asked, evidence, base)
            seen["promise"] = promise(seen["incomplete"], hops)
            hops = hops if seen["promise"] >= LEAST or enough["max_incomplete"] == 0 else []
        earlier = [r for r in state.get("reflections", []) if r["current_iteration"] < state["iteration"]]
        again = ""
        hopeful = "rewriter" in context.models or other_words_may_find(evidence, bases)
        if not is_enough(seen) and worth_rewriting(seen, earlier) and hopeful:
            again, note = await _said_again(query, _aliases(wanted, bases), evidence, bases, context, at)
            seen |= {"rewrite_note": note} if note else {}
        reflection = propose(
            query,
            plan,
            seen | ({"model_refused": refused} if refused else {}),
            records,
            tools=list(context.tools),
            rewritten=again,
            activated=state.get("activated", []),
            hops=hops,
            prefix=base.name if len(bases) > 1 else "",
            max_iterations=context.settings.max_iterations,
            one_step=one_step,
        )
    if "reflector" in context.parts:
        reflection = cast(Reflection, await proposed(context, query, evidence, reflection))
    problems = check(plan.adding(*map(PlanStep.model_validate, reflection["next_steps"])), context.tools)
    if problems:
        raise PlanError(problems)
    change: dict[str, Any] = {"reflections": [reflection]}
    if "reflect" in state.get("review", []):
        how, steps = "on" if reflection["should_continue"] else "stop", reflection["next_steps"]
        point = f"reflect {state['iteration']} {how}"
        change |= expected(context, point, len(steps) + len(reflection["activate"]))
    return change


async def _model_says(
    state: RetrievalState,
    context: Context,
    plan: Plan,
    seen: Mapping[str, Any],
    evidence: Sequence[RetrievalResult],
    bases: Sequence[KnowledgeBase],
    one_step: bool,
) -> tuple[Reflection | None, list[str]]:
    """What the reflector's model makes of it; None where there is none, or where the rules must say what to do."""
    if "reflector" not in context.models or one_step:
        return None, []
    query, records, most = state["query"], state.get("records", []), context.settings.max_iterations
    done = calls(plan, records, state.get("activated", []))
    said, refused = await judged_by_model(
        context,
        query,
        plan,
        seen.get("needs", []),
        seen,
        evidence,
        records,
        bases,
        lambda step: call_of(step.tool, step.tool_input) in done,
    )
    if said is None:
        return None, refused
    told = {**seen, "needs": said.entries, "judge": context.settings.model_of("reflector")}
    told |= {"overruled": said.overruled} if said.overruled else {}
    stop: StopReason | None = None
    if said.enough:
        stop = "quality_satisfied"
    elif seen["time_left_s"] <= 0 or seen.get("spent"):
        stop = "budget_exhausted"
    elif seen["iteration"] >= most:
        stop = "max_iterations_reached"
    elif not said.steps:
        return None, [*refused, *said.overruled, "it named no step that can be run, so the rules say what to do"]
    say_so = Reasons.for_question(query)
    actions = [say_so.asking(str(step.tool_input.get("query") or step.objective)) for step in said.steps]
    return Reflection(
        current_iteration=seen["iteration"],
        max_iterations=most,
        remaining_budget=seen["time_left_s"],
        should_continue=stop is None,
        next_steps=[step.model_dump(mode="json") for step in said.steps] if stop is None else [],
        activate=[],
        rewrite_query="",
        stop_reason=stop,
        reasoning=say_so.of_model(said.reasoning, told, stop, actions),
        signals=told,
    ), refused


def propose(
    query: str,
    plan: Plan,
    seen: Mapping[str, Any],
    records: Iterable[ExecutionRecord],
    *,
    tools: Collection[str],
    rewritten: str = "",
    activated: Iterable[str] = (),
    max_iterations: int = 3,
    one_step: bool = False,
    hops: Sequence[SubQuestion] = (),
    prefix: str = "",
) -> Reflection:
    """The rules, in order; every one that holds adds what has not been tried yet.

    Args:
        query: the question.
        plan: the plan so far.
        seen: ``signals(...)``.
        records: what ran.
        tools: names of the tools that there are.
        rewritten: the question said again, ``""`` when that is not worth a try.
        activated: conditional steps that an earlier pass woke.
        max_iterations: passes at most.
        one_step: an agent that is one tool on purpose: it is judged, and never extended.
        hops: what the evidence leaves of the question, asked of the names that it brings in.
        prefix: the knowledge base to ask, where there are several.
    """
    records = list(records)
    say = Reasons.for_question(query)
    proposal = Proposal(plan, tools, calls(plan, records, activated))
    stop: StopReason | None = None
    if is_enough(seen):
        stop = "quality_satisfied"
    elif seen["time_left_s"] <= 0 or seen.get("spent"):
        stop = "budget_exhausted"
    elif seen["iteration"] >= max_iterations:
        stop = "max_iterations_reached"
    elif not one_step:
        _too_little(proposal, query, seen, activated, records, say)
        _too_low(proposal, seen, rewritten, say)
        _missing(proposal, query, seen, say)
        _open_needs(proposal, query, seen, say)
        _next_hops(proposal, query, seen, hops, prefix, say)
        _degrade(proposal, query, seen, records, say)
    if stop is None and not proposal:
        nothing_ran = bool(records) and not any(r["status"] in ENDED_WELL for r in last_records(records).values())
        stop = "error" if nothing_ran else "no_further_action"
    return Reflection(
        current_iteration=seen["iteration"],
        max_iterations=max_iterations,
        remaining_budget=seen["time_left_s"],
        should_continue=stop is None,
        next_steps=[step.model_dump(mode="json") for step in proposal.steps],
        activate=proposal.activate,
        rewrite_query=proposal.rewrite_query,
        stop_reason=stop,
        reasoning=say.conclusion(seen, stop, proposal.reasons),
        signals=dict(seen),
    )


def _too_little(
    proposal: Proposal,
    query: str,
    seen: Mapping[str, Any],
    activated: Iterable[str],
    records: Iterable[ExecutionRecord],
    say: Reasons,
) -> None:
    if seen["evidence_count"] >= max(1, seen["thresholds"]["min_evidence"]):
        return
    begun = {*activated, *last_records(records)}
    asleep = [s for s in proposal.plan.steps if s.condition == "if_insufficient" and s.step_id not in begun]
    if asleep:
        proposal.activate += [step.step_id for step in asleep]
        proposal.done |= {call_of(step.tool, step.tool_input) for step in asleep}
        proposal.reasons.append(say.activating(proposal.activate))
    elif proposal.add("naive_search", query, FALLBACK, query=query, top_k=FALLBACK.top_k):
        proposal.reasons.append(say.adding("naive_search"))


def _too_low(proposal: Proposal, seen: Mapping[str, Any], rewritten: str, say: Reasons) -> None:
    if not rewritten or not (low_score(seen) or seen["unknown"]):
        return
    tool = next((name for name in ("hybrid_search", "naive_search") if name in proposal.tools), "")
    if proposal.add(tool, rewritten, AGAIN, query=rewritten, top_k=AGAIN.top_k):
        proposal.rewrite_query = rewritten
        proposal.reasons.append(say.rewriting(rewritten))


def _missing(proposal: Proposal, query: str, seen: Mapping[str, Any], say: Reasons) -> None:
    names = list(seen["missing"])
    if names and proposal.add("local_search", ", ".join(names), AGAIN, query=", ".join(names), entities=names):
        proposal.reasons.append(say.looking_for(names))
    fields = [f"{title} {field}" for title, field in seen.get("missing_fields", [])]
    if fields and proposal.add(
        "naive_search", "; ".join(fields), AGAIN, query=" ".join([query, *fields]), top_k=AGAIN.top_k
    ):
        proposal.reasons.append(say.looking_for(fields))
    short = seen["thresholds"].get("min_candidates", 0) - seen.get("candidates", 0)
    if short > 0 and proposal.add("global_search", query, AGAIN, query=query):
        proposal.reasons.append(say.more_candidates(seen))


def _open_needs(proposal: Proposal, query: str, seen: Mapping[str, Any], say: Reasons) -> None:
    names = [entry["need"] for entry in seen.get("needs", []) if entry["kind"] == "name"]
    for lost in open_needs(seen):
        asked = " ".join([lost, *(name for name in names if fold(name) not in fold(lost))])
        if proposal.add("hybrid_search", say.needed(lost), AGAIN, query=asked, top_k=AGAIN.top_k):
            proposal.reasons.append(say.looking_for([lost]))


def _next_hops(
    proposal: Proposal, query: str, seen: Mapping[str, Any], hops: Iterable[SubQuestion], prefix: str, say: Reasons
) -> None:
    where = {"kb_prefix": prefix} if prefix else {}
    for hop in hops:
        if proposal.add(HOP, say.hopping(hop), HOPS, **hop.asked(query, seen["incomplete"]), **where):
            proposal.reasons.append(say.asking(hop.query))


def _degrade(
    proposal: Proposal, query: str, seen: Mapping[str, Any], records: Iterable[ExecutionRecord], say: Reasons
) -> None:
    last = last_records(records)
    for step_id in [*seen["timeouts"], *seen["failures"]]:
        tool = last[step_id]["tool"]
        asked = str(last[step_id]["raw_input"].get("query") or query)
        for simpler in SIMPLER.get(tool, ("naive_search",)):
            if proposal.add(simpler, asked, FALLBACK, query=asked, top_k=FALLBACK.top_k):
                proposal.reasons.append(say.degrading(tool, simpler))
                break


_BESIDE = ("top_k", "passage", "sentence", "doubt")
"""Inputs that do not make a call another one."""


def call_of(tool: str, tool_input: Mapping[str, Any]) -> tuple[str, str]:
    """What makes two calls the same: the tool and its input, whatever the spelling of the query and the ``top_k``.

    >>> call_of("naive_search", {"query": " 茶馆 ", "top_k": 30}) == call_of("naive_search", {"query": "茶馆"})
    True
    """
    told = {k: v for k, v in tool_input.items() if k not in _BESIDE and v not in (None, "", [], {})}
    if isinstance(told.get("query"), str):
        told["query"] = fold(told["query"])
    return tool, canonical_json(told)


def calls(plan: Plan, records: Iterable[ExecutionRecord], activated: Iterable[str] = ()) -> set[tuple[str, str]]:
    """Every call that was made, or will be without anybody's doing."""
    last, woken = last_records(records), set(activated)
    made = {call_of(r["tool"], r["raw_input"]) for r in last.values() if r["status"] != "skipped"}
    coming = [
        step
        for step in plan.steps
        if (step.step_id in last and last[step.step_id]["status"] != "skipped")
        or (step.step_id not in last and (step.condition == "always" or step.step_id in woken))
    ]
    return made | {call_of(step.tool, step.tool_input) for step in coming}


def worth_rewriting(seen: Mapping[str, Any], earlier: Sequence[Reflection]) -> bool:
    """Whether to say the question again: once always, a second time only when the first raised the top score.

    A question about what is not in the corpus would otherwise burn every pass on words that lead nowhere.
    """
    before = [r for r in earlier if r["rewrite_query"]]
    return not before or (not seen["unknown"] and seen["top_score"] >= before[-1]["signals"]["top_score"] + BETTER)


def other_words_may_find(evidence: Sequence[RetrievalResult], bases: Sequence[KnowledgeBase]) -> bool:
    """Whether other words for the question may find more: nothing is found, or documents have typed fields.

    So the rules say it again; a chat model's words were not measured, and it is asked wherever evidence is thin.
    Measured over plain texts (``workbench eval reflection``): of 183 public questions that were said again in the
    language of the texts none gained by it; across languages 5 of 363 gained and 5 lost.
    """
    return not evidence or any(base.schema() for base in bases)


def _most_of(evidence: Sequence[RetrievalResult], bases: Sequence[KnowledgeBase]) -> KnowledgeBase:
    """The base of the best evidence."""
    of = evidence[0]["metadata"].get("kb_prefix") if evidence else ""
    return next((base for base in bases if base.name == of), bases[0])


def _aliases(wanted: Need, bases: Sequence[KnowledgeBase]) -> list[str]:
    found: list[str] = []
    for thing in wanted.asked:
        entities = [entity for base in bases if (entity := base.find_entity(thing.name))]
        found += [thing.name, *(name for entity in entities for name in [entity["name"], *sorted(entity["aliases"])])]
    return list(dict.fromkeys(found))


def _rarity(bases: Sequence[KnowledgeBase], term: str) -> float:
    """0 for a term that every passage has, 1 for one that a single passage has."""
    return max((base.term_weight(term) / math.log(1 + base.counts()["passages"]) for base in bases), default=0.0)
