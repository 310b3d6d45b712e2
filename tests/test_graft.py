"""Branches merged into one run: evidence of both with where it came from, conflicts shown, the branches untouched."""

from __future__ import annotations

import random

import pytest

from workbench import Plan, PlanStep
from workbench.errors import GraftConflict, RunError
from workbench.futures.graft import Joined, signatures
from workbench.futures.replay import whole
from workbench.records.tape import canonical

COMPARE = {"zh": "比较《喜宴》和《饮食男女》", "en": "Compare The Wedding Banquet and Eat Drink Man Woman"}
LEFT, RIGHT = "step_0_wedding_banquet", "step_1_eat_drink_man_woman"


def same(one, two) -> bool:
    return canonical(whole(one)) == canonical(whole(two))


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
    assert made.status == "done" and not calls and made.anew == ["step_2_naive"]
    texts = {piece["evidence"] for piece in made.evidence}
    assert {"the banquet was looked up.", "the dinner was looked up."} <= texts
    came = {row["title"]: row for row in made.provenance() if row["tool"] == "look"}
    assert (came["the banquet"]["from_run"], came["the banquet"]["from_step"]) == (one.run_id, LEFT)
    assert (came["the dinner"]["from_run"], came["the dinner"]["from_step"]) == (two.run_id, RIGHT)
    assert {row["result_id"] for row in made.provenance()} == {piece["result_id"] for piece in made.evidence}
    assert before == [run.to_dict() for run in (base, one, two)]
    assert made.origin == base.run_id and made.answer
    again = wb.replay(made.run_id)
    assert same(again, made) and again.origin == made.run_id
    html = made._repr_mimebundle_()["text/html"]
    assert one.run_id in html and two.run_id in html and two.run_id in str(made)


def test_what_both_edited_stays_twice_and_the_conflict_is_shown(wb, calls):
    base = wb.ask(COMPARE["en"], kb="film")
    one = base.fork(plan=looking(base.plan, LEFT, "one"))
    two = base.fork(plan=looking(base.plan, LEFT, "two"))
    calls.clear()
    made = one.graft(two, [LEFT])
    assert not calls and {"one was looked up.", "two was looked up."} <= {p["evidence"] for p in made.evidence}
    [clash] = made.conflicts
    assert (clash["kind"], clash["where"], clash["how"], clash["as"]) == (
        "step",
        LEFT,
        "both",
        "step_3_wedding_banquet",
    )
    said = {run: values["tool_input"] for run, values in clash["values"].items()}
    assert said == {one.run_id: {"query": "one"}, two.run_id: {"query": "two"}}
    assert LEFT in str(made) and two.run_id in str(made)
    alone = one.graft(two, [LEFT], prefer=two.run_id)
    assert "one was looked up." not in {p["evidence"] for p in alone.evidence}
    assert alone.conflicts[0]["how"] == "replaced"


def test_a_step_brings_what_it_depends_on_under_an_id_of_its_own(wb, calls):
    _, one, two = branches(wb, COMPARE["en"])
    calls.clear()
    made = one.graft(two, ["step_2_naive"])
    assert not calls and not made.anew  # the renamed steps are the same calls
    plan = made.plan
    taken = next(i for i, s in made.steps.items() if s == {"run_id": two.run_id, "step_id": "step_2_naive"})
    brought = next(i for i, s in made.steps.items() if s == {"run_id": two.run_id, "step_id": RIGHT})
    assert brought in plan.step(taken).depends_on and brought != RIGHT


def test_a_graft_of_a_run_with_itself_is_that_run(wb):
    for message, review in ((COMPARE["en"], None), (COMPARE["zh"], {"reflect"}), ("Who directed Hulk?", {"plan"})):
        run = wb.ask(message, kb="film", review=review)
        while run.status == "paused":
            run.approve()
        for steps in (None, [run.plan.steps[-1].step_id], [run.plan.steps[0].step_id]):
            made = run.graft(run, steps)
            assert same(made, run) and not made.conflicts and not made.anew


def test_other_questions_and_settings_need_a_choice(wb):
    one = wb.ask(COMPARE["zh"], kb="film", session="a")
    two = wb.ask("Compare The Wedding Banquet and Hulk", kb="film", session="b")
    with pytest.raises(GraftConflict, match="question query") as refused:
        wb.graft({LEFT: one, "step_1_hulk": two})
    assert refused.value.conflicts[0]["values"] == {one.run_id: one.query, two.run_id: two.query}
    made = wb.graft({LEFT: one, "step_1_hulk": two}, prefer=two.run_id)
    assert made.message == two.message and made.base == two.run_id
    other = one.fork(settings={"max_iterations": 1})
    settings = [c for c in one.graft(other, [LEFT]).conflicts if c["kind"] == "settings"]
    assert [(c["where"], c["how"]) for c in settings] == [("max_iterations", "base")]


def test_one_call_with_two_outcomes_is_shown_and_the_preferred_one_holds(wb):
    said = iter(["first", "second"])

    @wb.tools.tool(name="moody", description="says something else each time")
    async def moody(query: str) -> list[dict]:
        text = next(said)
        return [{"id": "mood", "text": f"the {text} mood", "metadata": {"doc_id": "m", "fields": {"year": len(text)}}}]

    base = wb.ask(COMPARE["en"], kb="film")
    plan = base.plan.replace(LEFT, tool="moody", tool_input={"query": "mood"})
    one, two = base.fork(plan=plan), base.fork(plan=plan)
    with pytest.raises(GraftConflict) as refused:
        one.graft(two, [LEFT])
    assert "tape" in {c["kind"] for c in refused.value.conflicts}
    assert one.run_id in str(refused.value) and two.run_id in str(refused.value)
    for prefer, text in ((one, "the first mood"), (two, "the second mood")):
        made = one.graft(two, [LEFT], prefer=prefer.run_id)
        assert text in {p["evidence"] for p in made.evidence} and not made.anew
        assert {c["how"] for c in made.conflicts} == {"preferred"}


def test_two_texts_of_one_piece_need_a_choice(wb):
    @wb.tools.tool(name="year", description="says a year")
    async def year(query: str) -> list[dict]:
        return [{"id": "x#0", "text": f"It is of {query}.", "metadata": {"doc_id": "x", "title": "X"}}]

    base = wb.ask(COMPARE["en"], kb="film")
    one = base.fork(plan=base.plan.replace(LEFT, tool="year", tool_input={"query": "1993"}))
    two = base.fork(plan=base.plan.replace(RIGHT, tool="year", tool_input={"query": "1994"}))
    with pytest.raises(GraftConflict) as refused:
        wb.graft({LEFT: one, RIGHT: two}, base=base)
    kinds = {c["kind"]: sorted(map(str, c["values"].values())) for c in refused.value.conflicts}
    assert kinds["text"] == ["It is of 1993.", "It is of 1994."]
    made = wb.graft({LEFT: one, RIGHT: two}, base=base, prefer=two.run_id)
    texts = {p["evidence"] for p in made.evidence}
    assert "It is of 1994." in texts and "It is of 1993." not in texts
    assert not made.anew or made.anew == ["step_2_naive"]


def test_what_cannot_be_grafted_is_said(wb):
    run = wb.ask(COMPARE["en"], kb="film")
    hello = wb.ask("Hello!")
    for steps, options, said in (
        ({}, {}, "Name the steps"),
        ({"step_9": run}, {}, "has no step 'step_9'"),
        ({LEFT: run}, {"prefer": "nobody"}, "is none of the runs"),
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
        edited = rng.random() < 0.5
        joined = Joined("base", plans, wanted, lambda run_id, step_id, edited=edited: not edited)
        there = set(signatures(joined.plan).values())  # refuses a cycle and unknown ids
        assert {signatures(plans[name])[step_id] for name, step_id in wanted} <= there
        assert not edited or set(signatures(plans["base"]).values()) <= there
        assert set(joined.origins) == set(joined.plan.by_id())
