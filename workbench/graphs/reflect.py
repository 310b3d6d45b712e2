"""After each pass: is the evidence enough, and what would help? Rules or a model propose, a reviewer decides."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Literal, NamedTuple, cast

from langgraph.runtime import Runtime
from pydantic import BaseModel, Field, create_model

from workbench.errors import ModelError
from workbench.extensions import call_node, required
from workbench.graphs.merge import collect, current_evidence
from workbench.graphs.needs import (
    Entry,
    Ledger,
    Supply,
    binding,
    fill,
    is_enough,
    is_low,
    is_settled,
    passage_for,
    read_needs,
    read_supply,
    settle,
    signals,
    thresholds,
)
from workbench.graphs.plan import FIRST_SEARCH, SEARCH, searched_text
from workbench.graphs.planner import make_steps, step_form
from workbench.graphs.roles import ModelForm, ask_model, budget_spent
from workbench.graphs.route import AGENT_TYPES, is_driven
from workbench.graphs.slots import (
    NONE,
    READ,
    described,
    left,
    numbered,
    offered,
    read_window,
    steps_text,
    totals_by_step,
    window_text,
)
from workbench.knowledge.dated import dated_bases
from workbench.language.answer import judge
from workbench.plans import (
    ENDED_WELL,
    WIDE_TOP_K,
    Plan,
    PlanBudget,
    PlanStep,
    call_key,
    calls,
    fresh_id,
    last_records,
    work_seconds,
)
from workbench.ports import Bases, Context, KnowledgeBase, call_reflector
from workbench.records.proposals import MET, last_needs
from workbench.settings import BY_MODEL, RULES
from workbench.state import (
    Data,
    Evidence,
    ExecutionRecord,
    Json,
    Reflection,
    RetrievalState,
    StopReason,
    unique,
    without_empty,
)
from workbench.text import detect_language, fold, to_json
from workbench.tools.registry import check, condition_faults, require
from workbench.views.labels import Labels, needs_sentence

SIMPLER = {
    "global_search": ("local_search", "naive_search"),
    "discover": ("local_search", "naive_search"),
    "hybrid_search": ("naive_search", "keyword_search"),
    "naive_search": ("keyword_search",),
    "keyword_search": (),
}
"""Tool -> simpler ones, in order. Any other tool degrades to ``naive_search``."""
LADDER = (SEARCH, *SIMPLER[SEARCH])
"""What a retry without a model asks, wider: the first that was not asked so."""
FALLBACK = PlanBudget(timeout_s=10, top_k=30)
AGAIN = PlanBudget()
WIDER = PlanBudget(top_k=WIDE_TOP_K)


class Pass(NamedTuple):
    """What there is after a pass."""

    state: RetrievalState
    context: Context
    plan: Plan
    bases: Bases
    evidence: Evidence

    @classmethod
    def read(cls, state: RetrievalState, context: Context) -> Pass:
        """Return what there is now."""
        bases = dated_bases(context, state)
        evidence = current_evidence(state, context)
        return cls(state, context, Plan.load(state["plan"]), bases, evidence)

    @property
    def base(self) -> KnowledgeBase:
        """Return the base of the best evidence."""
        name = self.evidence[0]["metadata"].get("kb_prefix") if self.evidence else ""
        return next((base for base in self.bases if base.name == name), self.bases[0])

    @property
    def label(self) -> str:
        """Return a label as ``"pass 2"``."""
        return f"pass {self.state['iteration']}"


async def reflector(state: RetrievalState, runtime: Runtime[Context]) -> Json:
    """Judge the evidence of all passes so far, and propose what to do next."""
    context = runtime.context
    query = state["query"]
    decision = state["route_decision"]
    now = Pass.read(state, context)
    supply = read_supply(decision, now.bases)
    seen = _signals(now, supply)
    if spent := budget_spent(context):
        seen["spent"] = spent
    driven = is_driven(state)
    first = bool(now.plan.metadata.get(FIRST_SEARCH))
    one_step = not driven and state.get("resolved_agent_type", "") not in ("", AGENT_TYPES[0])
    words = searched_text(query, decision) or query
    proposal = Proposal(
        words, now.plan, seen, state["records"], context.tools, state["activated"]
    )
    reflection = None
    if driven or ("reflector" in context.models and not one_step and not first):
        reflect = required("nodes", "next_turn", "agent") if driven else reflected_by_model
        reflection, refused = await reflect(now, proposal)
        seen |= {"model_refused": refused} if refused else {}
    if reflection is None:
        proposal.seen = seen
        await _prepare(proposal, now, supply, one_step)
        reflection = propose(proposal, context.settings.max_iterations, one_step)
    if first:
        share = f"{seen.get('probability', 0):.0%}"
        reflection["reasoning"] += " " + proposal.say("reflect_first", share=share)
    if "reflector" in context.parts:
        own: Any = await call_reflector(context, query, now.evidence, reflection)
        reflection = cast(Reflection, own)
    steps = map(PlanStep.model_validate, reflection["next_steps"])
    require(now.plan.adding(*steps), context.tools)
    return {"reflections": [reflection]}


def answers_enough(state: RetrievalState, context: Context) -> bool:
    """Check whether what was found answers, with the fitted probability, by the rules alone."""
    now = Pass.read(state, context)
    return is_enough(_signals(now, read_supply(state["route_decision"], now.bases)))


def _signals(now: Pass, supply: Supply) -> Json:
    """Return the signals with the ledger among them."""
    state = now.state
    settings = now.context.settings
    decision = now.state["route_decision"]
    records = state["records"]
    judgement = None
    if "question" in decision:
        merged = now.evidence[: settings.merge_max_results]
        message = state.get("message", "")
        history = state.get("history", [])
        judgement = judge(decision["question"], merged, now.bases, message, history)
    limits = thresholds(supply.intent, state.get("thresholds"), supply)
    remaining = settings.time_budget_s - work_seconds(records)
    seen = signals(
        supply, now.evidence, records, limits, state["iteration"], remaining, judgement
    )
    if judgement is None:
        return seen
    needs = read_needs(state["query"], decision)
    texts = [need.text for need in needs]
    criteria = now.plan.acceptance_criteria or texts
    own = now.plan.metadata.get("planner") not in (RULES, BY_MODEL)
    verdicts = {text: "open" for text in criteria if own and text not in texts} | state.get(
        "needs", {}
    )
    ledger = Ledger(supply, seen, judgement, now.evidence, [now.base, *now.bases])
    return settle(seen, fill(ledger, criteria, needs, verdicts), needs)


async def _prepare(proposal: Proposal, now: Pass, supply: Supply, one_step: bool) -> None:
    """Give the rules what they may propose: names to add, an outside source, a model's words."""
    state = now.state
    context = now.context
    seen = proposal.seen
    proposal.writings = unique(writing for entity in supply.linked for writing in entity.writings)
    if is_enough(seen) or one_step:
        return
    proposal.enrich = call_node("can_enrich", False, state, context)
    rewritten = any(
        reflection["rewrite_query"]
        for reflection in state["reflections"]
        if reflection["current_iteration"] < seen["iteration"]
    )
    if "rewriter" in context.models and proposal.is_poor() and not rewritten:
        proposal.rewritten, note = await rewritten_by_model(
            context, state["query"], proposal.writings, now.label
        )
        seen |= {"rewrite_note": note} if note else {}


# --- The rules ---


@dataclass
class Proposal:
    """What to do next, each step with its reason; no step repeats a call."""

    query: str
    plan: Plan
    seen: Json  # ``signals(...)``
    records: Sequence[ExecutionRecord]
    tools: Collection[str]
    activated: Collection[str] = ()  # conditional steps that an earlier pass woke
    rewritten: str = ""  # the question in a model's words
    writings: Sequence[str] = ()  # of the names in the question
    enrich: bool = False  # whether a source outside can be asked

    def __post_init__(self) -> None:
        self.say = Labels(detect_language(self.query))
        self.last = last_records(self.records)
        self.done = calls(self.plan, self.records, self.activated)
        self.steps = list[PlanStep]()
        self.activate = list[str]()
        self.reasons = list[str]()
        self.rewrite_query = ""

    def conclude(self, enough: bool, max_iterations: int, facts: Sequence[str]) -> Reflection:
        """Return the reflection: it stops where it is enough, something is used up, or there is no step."""
        stop: StopReason | None = None
        if enough:
            stop = "quality_satisfied"
        elif self.seen["time_left_s"] <= 0 or self.seen.get("spent"):
            stop = "budget_exhausted"
        elif self.seen["iteration"] >= max_iterations:
            stop = "max_iterations_reached"
        elif not (self.steps or self.activate):
            ran_well = any(record["status"] in ENDED_WELL for record in self.last.values())
            stop = "no_further_action" if ran_well or not self.last else "error"
        end = "reflect_all_failed" if stop == "error" else stop
        semicolon = self.say("semicolon")
        then = self.say(end) if end else semicolon.join(self.reasons)
        return Reflection(
            current_iteration=self.seen["iteration"],
            max_iterations=max_iterations,
            remaining_budget=self.seen["time_left_s"],
            should_continue=stop is None,
            next_steps=[] if stop else [step.model_dump(mode="json") for step in self.steps],
            activate=[] if stop else self.activate,
            rewrite_query="" if stop else self.rewrite_query,
            stop_reason=stop,
            reasoning=self.say(
                "reflect_sentence",
                facts=semicolon.join(facts),
                then=f"{then[:1].upper()}{then[1:]}",
            ),
            signals=dict(self.seen),
        )

    def add(
        self, tool: str, reason: str, budget: PlanBudget, objective: str = "", **tool_input: Any
    ) -> bool:
        """Propose a call unless the tool is not there or had this input; return whether it is proposed."""
        call = call_key(tool, tool_input)
        if tool not in self.tools or call in self.done:
            return False
        self.done.add(call)
        step_id = fresh_id(self.plan.adding(*self.steps), f"more_{tool.removesuffix('_search')}")
        what = objective or str(tool_input["query"])
        self.steps.append(
            PlanStep(
                step_id=step_id, objective=what, tool=tool, tool_input=tool_input, budget=budget
            )
        )
        self.reasons.append(reason)
        return True

    def is_done(self, step: PlanStep) -> bool:
        """Check whether a step's call was made already, or will be."""
        return call_key(step.tool, step.tool_input) in self.done

    def search(self, tool: str, reason: str, budget: PlanBudget, query: str) -> bool:
        """Propose a plain search; return whether it is proposed."""
        return self.add(tool, reason, budget, query=query, top_k=budget.top_k)

    def search_for(
        self, names: Sequence[str], tool: str = "local_search", objective: str = "", **more: Any
    ) -> None:
        """Propose a targeted search."""
        reason = self.say("reflect_look_for", names=self.say("comma").join(names))
        self.add(tool, reason, AGAIN, objective, **{"query": ", ".join(names), **more})

    def more_evidence(self) -> None:
        """Activate the conditional steps where there is too little evidence, else search by meaning."""
        short = self.seen["evidence_count"] < max(1, self.seen["thresholds"]["min_evidence"])
        if not short and not any(entry["kind"] == "count" for entry in binding(self.seen)):
            return
        begun = {*self.activated, *self.last}
        asleep = [
            s
            for s in self.plan.steps
            if s.condition == "if_insufficient" and s.step_id not in begun
        ]
        if not asleep:
            self.search(
                "naive_search", self.say("reflect_add", tool="naive_search"), FALLBACK, self.query
            )
            return
        self.activate += [step.step_id for step in asleep]
        self.done |= {call_key(step.tool, step.tool_input) for step in asleep}
        self.reasons.append(
            self.say("reflect_activate", steps=self.say("comma").join(self.activate))
        )

    def again(self) -> None:
        """Search for the question in a model's words where the scores are too low."""
        query = self.rewritten
        tool = SEARCH if SEARCH in self.tools else "naive_search"
        if (
            query
            and self.is_poor()
            and self.search(tool, self.say("reflect_rewrite", query=query), AGAIN, query)
        ):
            self.rewrite_query = query

    def wider(self) -> None:
        """Search once for the same words wider, with every writing of the names, where nothing else is left."""
        if self.steps or self.activate or self.seen["iteration"] > 1 or not self.is_poor():
            return
        failed = {self.last[step_id]["tool"] for step_id in self.seen["failures"]}
        query = " ".join(
            [self.query, *(w for w in self.writings if fold(w) not in fold(self.query))]
        )
        for tool in LADDER:
            reason = self.say("reflect_wider", tool=tool, query=query)
            if tool not in failed and self.search(tool, reason, WIDER, query):
                return

    def is_poor(self) -> bool:
        """Check whether the best score is too low, or a name is in no document."""
        return is_low(self.seen) or bool(self.seen["unknown"])

    def missing(self) -> None:
        """Search for missing names, fields of a thing, and candidates."""
        if self.seen["missing"]:
            self.search_for(self.seen["missing"], entities=self.seen["missing"])
        words = dict[str, list[str]]()
        for title, field in self.seen.get("missing_fields", []):
            words.setdefault(title, [title]).append(field)
        for title, parts in words.items():
            self.search_for([" ".join(parts)], entities=[title])
        if words and self.enrich:
            self.add(
                "enrichment",
                self.say("reflect_enrich"),
                AGAIN,
                query=self.query,
                names=list(words),
            )
        if self.seen.get("candidates", 0) < self.seen["thresholds"].get("min_candidates", 0):
            self.add(
                "global_search", self.say("reflect_more_candidates"), AGAIN, query=self.query
            )

    def open_needs(self) -> None:
        """Search for what a person insists on, or a model found nowhere."""
        entries = self.seen.get("needs", [])
        names = [
            entry["need"]
            for entry in entries
            if entry["kind"] == "name" and not is_settled(entry)
        ]
        for need in [entry["need"] for entry in binding(self.seen) if entry["kind"] != "count"]:
            query = " ".join([need, *(name for name in names if fold(name) not in fold(need))])
            self.search_for(
                [need],
                SEARCH,
                self.say("reflect_need", need=need),
                query=query,
                top_k=AGAIN.top_k,
            )

    def simpler_tools(self) -> None:
        """Replace what timed out or failed by a simpler tool."""
        for step_id in [*self.seen["timeouts"], *self.seen["failures"]]:
            tool = self.last[step_id]["tool"]
            query = str(self.last[step_id]["raw_input"].get("query") or self.query)
            for simpler in SIMPLER.get(tool, ("naive_search",)):
                reason = self.say("reflect_degrade", tool=tool, simpler=simpler)
                if self.search(simpler, reason, FALLBACK, query):
                    break


def propose(proposal: Proposal, max_iterations: int, one_step: bool = False) -> Reflection:
    """Apply the rules in order; each one that holds adds what has not been tried yet.

    ``one_step`` marks an agent that is one tool on purpose: it is judged, and never extended.
    """
    enough = is_enough(proposal.seen)
    # no search says what a person meant
    if not (enough or one_step or proposal.seen.get("kind") == "asks"):
        proposal.more_evidence()
        proposal.again()
        proposal.missing()
        proposal.open_needs()
        proposal.simpler_tools()
        proposal.wider()
    return proposal.conclude(enough, max_iterations, list(_facts(proposal.seen, proposal.say)))


# --- The reasons, in the language of the question ---


MEASURES = (
    ("evidence_count", "min_evidence", "g"),
    ("top_score", "min_top_score", ".2f"),
    ("probability", "min_probability", ".2f"),
    ("candidates", "min_candidates", "g"),
)
"""Signal, the threshold that it is held against, and how both are written."""


def _facts(seen: Data, say: Labels) -> Iterable[str]:
    limits = seen["thresholds"]
    comma = say("comma").join
    for signal, limit, digits in MEASURES:
        if signal in seen:
            yield say(
                f"reflect_{signal}",
                n=f"{seen[signal]:{digits}}",
                least=f"{limits[limit]:{digits}}",
            )
    for side in seen["coverage"]:
        if side["found"] < side["needed"]:
            yield say("reflect_side", name=side["name"], n=side["found"], m=side["needed"])
    if seen["unknown"]:
        yield say("reflect_unknown", names=comma(seen["unknown"]))
    if needs := seen.get("needs"):
        yield needs_sentence(needs, say)
    if "holding" in seen:
        yield say("reflect_holding", n=seen["holding"])
    if seen.get("spent"):
        yield str(seen["spent"]).rstrip(".")
    if seen.get("model_refused"):
        yield say("reflect_refused", why=seen["model_refused"][-1].rstrip("."))
    for kind in ("timeouts", "failures"):
        if seen[kind]:
            yield say(f"reflect_{kind}", steps=comma(seen[kind]))


# --- The reflector and the rewriter as chat models ---
#
# A reply is limited by what the rules see: without evidence, or with an asked field that nothing says, it is never
# enough; only passages that exist meet a need; no search is made twice; passes, time and money end a run.
# ``signals["overruled"]`` lists what was not followed.

STEPS = 3
"""Most steps of one reflection."""
_SHOWN = ("unknown", "missing", "missing_fields", "failures", "timeouts")


class Verdict(ModelForm):
    """The verdict on one need, and the passages that decide it, by number."""

    need: int = Field(ge=1, le=20)
    passages: list[int] = Field(default_factory=list, max_length=READ)
    verdict: Literal["met", "contradicted", "missing"]


class Rewritten(ModelForm):
    """The form of the rewriter."""

    query: str = Field(min_length=1, max_length=300)


async def rewritten_by_model(
    context: Context, query: str, writings: Sequence[str], at: str
) -> tuple[str, str]:
    """Return the question in the rewriter's words, or "" and a note that says why not."""
    slots = {"question": query, "names": ", ".join(writings) or NONE}
    reply = await ask_model(context, "rewriter", Rewritten, slots, question=query, at=at)
    if reply.form is None:
        return "", f"the model did not rewrite ({reply.refused[-1]})"
    return " ".join(reply.form.query.split()), ""


def _judged(
    entries: Sequence[Entry], verdicts: Iterable[Verdict], passages: Evidence, say: Labels
) -> tuple[list[Entry], list[str]]:
    """Return the ledger by a model's verdicts, and what they name that does not exist.

    A verdict counts the open needs from 1; without a passage that exists the need is missing.
    """
    judged = [Entry(**entry) for entry in entries]
    invented = []
    needs = [entry for entry in judged if not is_settled(entry)]
    for verdict in verdicts:
        numbers = unique(verdict.passages)
        by = [passages[n - 1] for n in numbers if 1 <= n <= len(passages)]
        if verdict.need > len(needs):
            invented.append(say("over_need", n=verdict.need, m=len(needs)))
            continue
        entry = needs[verdict.need - 1]
        if len(by) < len(numbers):
            unknown = (f"[{n}]" for n in numbers if not 1 <= n <= len(passages))
            names = say("comma").join(unknown)
            fault = say("over_passage", need=entry["need"], names=names, m=len(passages))
            invented.append(fault)
        if entry["kind"] == "count" and entry["met"] >= MET:
            continue  # counted, and no passage says it
        if verdict.verdict == "met" and not by:
            invented.append(say("over_bare", need=entry["need"]))
        entry["met"] = float(bool(by) and verdict.verdict == "met")
        entry["verdict"] = verdict.verdict if by else "missing"
        entry["by"] = [result["result_id"] for result in by]
        entry["title"], entry["quote"] = passage_for(entry["need"], by)
    return judged, unique(invented)


async def reflected_by_model(
    now: Pass, proposal: Proposal
) -> tuple[Reflection | None, list[str]]:
    """Return the reflection of the reflector's model, limited; None and why, where the rules must propose."""
    context = now.context
    seen = proposal.seen
    query = now.state["query"]
    entries = seen.get("needs", [])
    records = now.state["records"]
    tools = offered(context.tools, now.bases)
    needs = [entry["need"] for entry in entries if not is_settled(entry)]
    before = {
        entry["need"]: entry["by"]
        for entry in last_needs(now.state["reflections"])
        if entry["met"] >= MET
    }
    met = unique(chain(*before.values()))
    passages, groups = read_window(
        now.plan, collect(now.state, context), met, context.settings.reflector_window
    )
    slots = {
        "question": query,
        "needs": numbered([need + " (met so far)" * (need in before) for need in needs]),
        "steps": steps_text(now.plan, records, totals_by_step(now.state, context)),
        "signals": to_json(without_empty({name: seen.get(name) for name in _SHOWN})),
        "budget": left(context, context.settings.time_budget_s - work_seconds(records)),
        "tools": described(tools),
        "evidence": window_text(passages, groups, context.settings.merge_max_characters),
        "most": str(STEPS),
    }
    form_class = _form(step_form(tools, now.bases))
    reply = await ask_model(context, "reflector", form_class, slots, question=query, at=now.label)
    form = reply.form
    if form is None:
        return None, reply.refused
    say = proposal.say
    steps, overruled = _new_steps(form.steps, now, proposal)
    judged, invented = _judged(entries, form.needs, passages, say)
    overruled += invented
    unsaid = seen.get("missing_fields", [])
    strict = context.settings.bounds == "strict"
    enough = form.enough and (not strict or (bool(now.evidence) and not unsaid))
    if form.enough and not enough:
        fields = [say("field_of", field=field, title=title) for title, field in unsaid]
        lacking = "over_unsaid" if now.evidence else "over_no_evidence"
        overruled.insert(0, say(lacking, fields=say("comma").join(fields)))
    proposal.seen = {**seen, "needs": judged, "judge": context.settings.role_model("reflector")}
    facts = [form.reasoning.strip().rstrip("。. ") or say("reflect_model")]
    if overruled:
        proposal.seen["overruled"] = overruled
        facts.append(say("reflect_overruled", names=say("semicolon").join(overruled)))
    for step in [] if enough or form.stop else steps:
        proposal.steps.append(step)
        proposal.reasons.append(say("reflect_ask", query=_query(step) or step.objective))
    reflection = proposal.conclude(enough, context.settings.max_iterations, facts)
    if reflection["stop_reason"] in ("no_further_action", "error") and not form.stop:
        refused = [*reply.refused, *overruled, say("over_no_step")]
        if context.settings.on_failure == "raise":
            raise ModelError(f"The reflector's model cannot be followed: {'; '.join(refused)}.")
        return None, refused
    return reflection, reply.refused


def _form(step: Any) -> type[BaseModel]:
    return create_model(
        "Reflected",
        __base__=ModelForm,
        needs=(list[Verdict], Field(default_factory=list, max_length=20)),
        enough=(bool, ...),
        stop=(bool, False),
        steps=(list[step], Field(default_factory=list, max_length=STEPS)),
        reasoning=(str, Field("", max_length=600)),
    )


def _query(step: PlanStep) -> str:
    query = step.tool_input.get("query", "")
    return str(query.get("text", "") if isinstance(query, dict) else query)


def _new_steps(
    drafted: Sequence[Any], now: Pass, proposal: Proposal
) -> tuple[list[PlanStep], list[str]]:
    """Return the steps that can run and are new, and why the others cannot be taken."""
    steps = list[PlanStep]()
    overruled = []
    first = len(now.plan.steps)
    while any(step.step_id.startswith(f"step_{first}_") for step in now.plan.steps):
        first += 1
    for step in make_steps(drafted, first):
        problems = [p["message"] for p in check(now.plan.adding(*steps, step), now.context.tools)]
        problems += condition_faults(step.tool_input, now.bases)
        if problems or proposal.is_done(step):
            why = problems[:1]
            names = {"tool": step.tool, "query": _query(step)}
            fault = "over_step" if why else "over_again"
            overruled.append(proposal.say(fault, **names, why="".join(why)))
        else:
            steps.append(step)
    return steps, overruled
