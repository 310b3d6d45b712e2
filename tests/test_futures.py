"""What is made of runs: branches merged into one, what a run would have been, and a list of all that was made."""

from __future__ import annotations

import pytest

from workbench import Plan
from workbench.errors import RunError
from workbench.futures.replay import full_document
from workbench.records.tape import canonical
from workbench.runs.recording import found_pieces, live_steps, origin_of
from workbench.session import Workbench

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
    assert origin_of(made) == base.run_id and made.answer and same(wb.replay(made.run_id), made)
    assert {origin["run_id"] for origin in origins(made).values()} == {base.run_id, one.run_id, two.run_id}


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
    assert not calls and not [r["step_id"] for r in made.records if not r.get("replayed")]
    plan = made.plan
    taken = next(i for i, s in origins(made).items() if s == {"run_id": two.run_id, "step_id": "step_2_naive"})
    brought = next(i for i, s in origins(made).items() if s == {"run_id": two.run_id, "step_id": RIGHT})
    assert brought in plan.step(taken).depends_on and brought != RIGHT


def test_a_graft_of_a_run_with_itself_is_that_run(wb):
    run = wb.ask(COMPARE["zh"], kb="film", review={"reflect"})
    while run.status == "paused":
        run.approve()
    for steps in ([*run.plan.by_id()], [run.plan.steps[-1].step_id]):
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
        assert text in {p["evidence"] for p in made.evidence}
        assert not [r["step_id"] for r in made.records if not r.get("replayed")]
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


def test_a_stop_is_played_on_and_what_ran_is_said(wb):
    run = wb.ask(COMPARE["zh"], kb="film")
    before = run.to_dict()
    found = wb.runs.what_if(run, gold={"mv26628"})
    [point] = found
    assert point["recorded"] == "stop" and point["stop"] == run.run_id
    more, before_it = ({p["result_id"] for p in found_pieces(r)} for r in (wb.run(point["go_on"]), run))
    assert set(point["pieces"]) == more - before_it and point["recall"] == 0.0
    assert len(point["live"]) == 1 and point["seconds"] > 0
    assert run.to_dict() == before
    assert len(found.to_frame()) == 1 and point["live"][0] in found._repr_html_()


def test_every_pass_that_went_on_is_stopped_from_the_tape_alone(wb):
    run = wb.ask("Who directed The Zorgon Chronicles?", kb="film")
    assert len(run.reflections) > 1, "the question was to need more than one pass"
    found = wb.runs.what_if(run)
    assert [p["iteration"] for p in found] == [r["current_iteration"] for r in run.reflections]
    went = [p for p in found if p["recorded"] == "go_on"]
    assert went and all(not p["live"] and p["go_on"] == run.run_id and p["seconds"] > 0 for p in went)


def test_a_run_with_reviews_is_played_otherwise_at_its_own_points(wb):
    run = wb.ask(COMPARE["en"], kb="film", review={"plan", "reflect"}).approve()
    run.edit(should_continue=True)
    while run.status == "paused":
        run.approve()
    found = wb.runs.what_if(run)
    assert found[0]["recorded"] == "go_on"
    assert len(found) == sum(d["point"] == "reflect" for d in run.decisions)
    stopped = wb.run(found[0]["stop"])
    assert stopped.state["stop_reason"] == "stopped_by_reviewer" and len(stopped.reflections) == 1


def test_every_run_with_what_it_was_made_from_and_what_was_edited(wb: Workbench) -> None:
    run = wb.ask(COMPARE["zh"], kb="film", review=["plan", "reflect"]).approve()
    run.approve()
    step = run.plan.steps[1].step_id
    rules = {"mismatch": "rules", "rest": "rules"}
    made = {
        run.fork(plan=run.plans[0]["plan"].replace(step, objective="别的"), **rules): "plan",
        run.fork(decision={"action": "reject"}, at="1-reflect"): "decision, at",
        run.fork(at="0-plan"): "at",
        run.fork(
            settings={"max_iterations": 1}, query="Recommend comedies directed by Ang Lee", **rules
        ): "query, settings",
        wb.replay(run.run_id): "",
    }
    rows = {row["run_id"]: row["edited"] for row in wb.runs.lines(origin=run.run_id)}
    assert rows == {fork.run_id: edited for fork, edited in made.items()}
    assert {row["run_id"]: row["answer"] for row in wb.runs.lines()}[run.run_id] == run.answer.splitlines()[0][:200]
    again = wb.replay(next(iter(made)).run_id)
    assert again.run_id in {row["run_id"] for row in wb.runs.lines(origin=run.run_id)}, "what was made of what was made"
    assert wb.runs.to_frame().set_index("run_id").loc[next(iter(made)).run_id, "origin"] == run.run_id
