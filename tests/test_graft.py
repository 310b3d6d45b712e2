"""Branches merged into one run: evidence of both with where it came from, the branches untouched."""

from __future__ import annotations

import random

import pytest

from workbench import Plan, PlanStep
from workbench.errors import RunError
from workbench.futures.graft import Joined, signatures
from workbench.futures.replay import full_document
from workbench.records.tape import canonical
from workbench.runs.recording import live_steps, origin_of

COMPARE = {"zh": "比较《喜宴》和《饮食男女》", "en": "Compare The Wedding Banquet and Eat Drink Man Woman"}
LEFT, RIGHT = "step_0_wedding_banquet", "step_1_eat_drink_man_woman"


def same(one, two) -> bool:
    return canonical(full_document(one)) == canonical(full_document(two))


def origins(made) -> dict:
    return made.options["graft"]["steps"]


def looking(base: Plan, step_id: str, query: str) -> Plan:
    return base.replace(step_id, tool="look", tool_input={"query": query})


def branches(wb, message: str):
    base = wb.ask(message, kb="film")
    one = base.fork(plan=looking(base.plan, LEFT, "the banquet"))
    two = base.fork(plan=looking(base.plan, RIGHT, "the dinner"))
    assert (one.status, two.status) == ("done", "done"), (one.error, two.error)
    return base, one, two


@pytest.mark.parametrize("language", COMPARE)
def test_evidence_of_both_branches_each_with_where_it_came_from(wb, calls, language):
    base, one, two = branches(wb, COMPARE[language])
    before = [run.to_dict() for run in (base, one, two)]
    calls.clear()
    made = wb.graft({LEFT: one, RIGHT: two}, base=base)
    assert made.status == "done" and not calls and live_steps(made) == ["step_2_naive"]
    texts = {piece["evidence"] for piece in made.evidence}
    assert {"the banquet was looked up.", "the dinner was looked up."} <= texts
    assert {"run_id": one.run_id, "step_id": LEFT} in origins(made).values()
    assert {"run_id": two.run_id, "step_id": RIGHT} in origins(made).values()
    assert before == [run.to_dict() for run in (base, one, two)]
    assert origin_of(made) == base.run_id and made.answer
    again = wb.replay(made.run_id)
    assert same(again, made) and origin_of(again) == made.run_id
    assert {origin["run_id"] for origin in origins(made).values()} == {
        base.run_id,
        one.run_id,
        two.run_id,
    }


def test_a_wanted_step_replaces_that_of_the_base(wb, calls):
    base = wb.ask(COMPARE["en"], kb="film")
    one = base.fork(plan=looking(base.plan, LEFT, "one"))
    two = base.fork(plan=looking(base.plan, LEFT, "two"))
    calls.clear()
    made = wb.graft({LEFT: two}, base=one)
    texts = {p["evidence"] for p in made.evidence}
    assert not calls and "two was looked up." in texts and "one was looked up." not in texts
    both = wb.graft({LEFT: [one, two]}, base=base)
    assert not calls and {"one was looked up.", "two was looked up."} <= {p["evidence"] for p in both.evidence}


def test_a_step_brings_what_it_depends_on_under_an_id_of_its_own(wb, calls):
    _, one, two = branches(wb, COMPARE["en"])
    calls.clear()
    made = wb.graft({"step_2_naive": two}, base=one)
    assert not calls and not [
        r["step_id"] for r in made.records if not r.get("replayed")
    ]  # the renamed steps are the same calls
    plan = made.plan
    taken = next(i for i, s in origins(made).items() if s == {"run_id": two.run_id, "step_id": "step_2_naive"})
    brought = next(i for i, s in origins(made).items() if s == {"run_id": two.run_id, "step_id": RIGHT})
    assert brought in plan.step(taken).depends_on and brought != RIGHT


def test_a_graft_of_a_run_with_itself_is_that_run(wb):
    for message, review in ((COMPARE["en"], None), (COMPARE["zh"], {"reflect"}), ("Who directed Hulk?", {"plan"})):
        run = wb.ask(message, kb="film", review=review)
        while run.status == "paused":
            run.approve()
        for steps in ([*run.plan.by_id()], [run.plan.steps[-1].step_id], [run.plan.steps[0].step_id]):
            made = wb.graft(dict.fromkeys(steps, run))
            assert same(made, run) and not live_steps(made)


def test_of_one_call_with_two_outcomes_that_of_the_base_holds(wb):
    said = iter(["first", "second"])

    @wb.tools.tool(name="moody", description="says something else each time")
    async def moody(query: str) -> list[dict]:
        text = next(said)
        return [{"id": "mood", "text": f"the {text} mood", "metadata": {"doc_id": "m", "fields": {"year": len(text)}}}]

    base = wb.ask(COMPARE["en"], kb="film")
    plan = base.plan.replace(LEFT, tool="moody", tool_input={"query": "mood"})
    one, two = base.fork(plan=plan), base.fork(plan=plan)
    for ground, other, text in ((one, two, "the first mood"), (two, one, "the second mood")):
        made = wb.graft({LEFT: other}, base=ground)
        assert text in {p["evidence"] for p in made.evidence} and not [
            r["step_id"] for r in made.records if not r.get("replayed")
        ]
        assert {origin["run_id"] for origin in origins(made).values()} == {ground.run_id}


def test_what_cannot_be_grafted_is_said(wb):
    run = wb.ask(COMPARE["en"], kb="film")
    hello = wb.ask("Hello!")
    for steps, options, said in (
        ({}, {}, "Name the steps"),
        ({"step_9": run}, {}, "has no step 'step_9'"),
        ({LEFT: hello}, {}, "has no plan"),
        ({LEFT: "nobody"}, {}, "Unknown run"),
    ):
        with pytest.raises(RunError, match=said):
            wb.graft(steps, **options)


def test_joined_plans_hold_every_wanted_step_whatever_the_branches_call_theirs():
    """Random plans: the joined one is valid, and each wanted step in it is what it was, with what it depends on."""
    rng = random.Random(7)

    def plan() -> Plan:
        steps: list[PlanStep] = []
        for number in range(rng.randint(1, 6)):
            before = [s.step_id for s in steps if rng.random() < 0.4]
            query = rng.choice("abc")
            steps.append(
                PlanStep(step_id=f"s{number}", objective="", tool="t", tool_input={"q": query}, depends_on=before)
            )
        return Plan(steps=steps)

    for _ in range(300):
        plans = {name: plan() for name in ("base", "one", "two")}
        wanted = [(n, step.step_id) for n in ("one", "two") for step in plans[n].steps if rng.random() < 0.5]
        joined = Joined("base", plans, wanted)
        there = set(signatures(joined.plan).values())  # refuses a cycle and unknown ids
        assert {signatures(plans[name])[step_id] for name, step_id in wanted} <= there
        assert set(joined.origins) == set(joined.plan.by_id())
