"""What is made of runs: branches merged into one, what a run would have been, and the tree of all that was made."""

from __future__ import annotations

import json
import random

import pytest

from workbench import Plan, PlanStep
from workbench.errors import RunError, UnknownRun
from workbench.futures.graft import Joined, signatures
from workbench.futures.replay import full_document
from workbench.futures.tree import tree
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


UNKNOWN = "Who directed The Zorgon Chronicles?"


@pytest.mark.parametrize("message", [COMPARE["zh"], "When was The Wedding Banquet released?"])
def test_a_stop_is_played_on_and_what_ran_is_said(wb, message):
    run = wb.ask(message, kb="film")
    before = run.to_dict()
    found = wb.runs.what_if(run, gold={"mv26628"})
    [point] = found
    assert point["recorded"] == "stop" and point["stop"] == run.run_id
    more, before_it = ({p["result_id"] for p in found_pieces(r)} for r in (wb.run(point["go_on"]), run))
    assert set(point["pieces"]) == more - before_it and point["recall"] == 0.0
    assert point["calls"] == len(point["live"]) == 1 and point["seconds"] > 0
    assert run.to_dict() == before
    assert len(found.to_frame()) == 1 and point["live"][0] in found._repr_html_()


def test_where_the_rules_know_nothing_more_to_do_it_is_said(wb):
    found = wb.runs.what_if(wb.ask(COMPARE["en"], kb="film"))
    [point] = found
    assert point["go_on"] is None and not point["pieces"] and len(found.to_frame()) == 1


def test_every_pass_that_went_on_is_stopped_from_the_tape_alone(wb):
    run = wb.ask(UNKNOWN, kb="film")
    assert len(run.reflections) > 1, "the question was to need more than one pass"
    found = wb.runs.what_if(run)
    assert [p["iteration"] for p in found] == [r["current_iteration"] for r in run.reflections]
    went = [p for p in found if p["recorded"] == "go_on"]
    assert went and all(not p["live"] and p["go_on"] == run.run_id and p["calls"] > 0 for p in went)


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


ENGLISH, CHINESE = "Recommend comedies directed by Ang Lee", "对比《喜宴》和《饮食男女》的风格"


def row(run_id: str, sources: tuple[str, ...] = (), message: str = "Who?", **more) -> dict:
    options = {"review": [], **({"tape": {"mode": "fork", "sources": list(sources)}} if sources else {})}
    return {
        **{"run_id": run_id, "message": message, "status": "done", "created_at": "2026-11-22T00:00:00+00:00"},
        **{"options": {**options, **more}, "steps": None, "calls": None, "decided": 0, "plan": None},
    }


def test_every_run_with_what_was_edited_in_it(wb: Workbench) -> None:
    run = wb.ask(CHINESE, kb="film", review=["plan", "reflect"]).approve()
    run.approve()
    assert run.status == "done"
    step = run.plan.steps[1].step_id
    plan = run.fork(plan=run.plans[0]["plan"].replace(step, objective="别的"), mismatch="rules", rest="rules")
    decision = run.fork(decision={"action": "reject"}, at="1-reflect")
    asked = run.fork(at="0-plan")
    settings = run.fork(settings={"max_iterations": 1}, query=ENGLISH, mismatch="rules", rest="rules")
    again = wb.replay(run.run_id)
    below = decision.fork(review=[])
    other = wb.ask(ENGLISH, kb="film")
    found = wb.runs.tree()
    nodes = {node["run_id"]: node for node in found.nodes}
    assert [(n["run_id"], n["depth"]) for n in found.nodes] == [
        *((other.run_id, 0), (run.run_id, 0), (plan.run_id, 1), (decision.run_id, 1), (below.run_id, 2)),
        *((asked.run_id, 1), (settings.run_id, 1), (again.run_id, 1)),
    ]
    edits = {name: nodes[one.run_id]["edits"] for name, one in
             {"plan": plan, "decision": decision, "asked": asked, "settings": settings, "again": again, "below": below,
              "run": run}.items()}  # fmt: skip
    assert edits == {
        "plan": [{"what": "plan", "added": [], "removed": [], "changed": [step]}],
        "decision": [{"what": "decision", "at": "1-reflect", "action": "reject", "fields": []}],
        "asked": [{"what": "asked_anew", "at": "0"}],
        "settings": [{"what": "query", "query": ENGLISH}, {"what": "settings", "settings": {"max_iterations": 1}}],
        "again": [],
        "below": [{"what": "review", "review": []}],
        "run": [],
    }
    assert nodes[asked.run_id]["status"] == "paused" and nodes[again.run_id]["mode"] == "replay"
    for one in (plan, decision, again):
        saved = nodes[one.run_id]["saved"]
        assert saved["saved_calls"] == one.to_dict()["figures"]["saved_calls"] > 0
        assert saved["saved_s"] == one.to_dict()["figures"]["saved_s"]
    only = wb.runs.tree(below)
    assert (only.here, {n["run_id"] for n in only.nodes}) == (below.run_id, set(nodes) - {other.run_id})
    assert wb.runs.tree(run.run_id).nodes == only.nodes
    assert "重新询问" in str(only) and "决定 2（反思）：叫停" in str(only)
    assert json.loads(json.dumps(found.to_dict())) == found.to_dict()
    wb.runs.remove(decision.run_id)
    left = {n["run_id"]: n for n in wb.runs.tree().nodes}
    assert left[below.run_id]["depth"] == 0 and left[below.run_id]["gone"] == [decision.run_id]
    with pytest.raises(UnknownRun):
        wb.runs.tree("nobody")


def test_a_run_that_is_made_of_itself_is_shown_once() -> None:
    rows = [row("c", ("b",)), row("b", ("a", "x")), row("a", ("c",)), row("own", ("own",))]
    found = tree(rows, lambda _: "done")
    assert sorted(node["run_id"] for node in found.nodes) == ["a", "b", "c", "own"]
    (b,) = [node for node in found.nodes if node["run_id"] == "b"]
    assert (b["also"], b["gone"]) == (["x"], ["x"])


def test_a_long_chain_and_hostile_words() -> None:
    hostile = "<img src=x onerror=alert(1)> \x1b[2J\u202e"
    rows = [row(f"r{n}", (f"r{n - 1}",) if n else (), f"{hostile} {n}") for n in range(3000, -1, -1)]
    found = tree(rows, lambda _: "done", "r3000")
    assert [node["depth"] for node in found.nodes] == list(range(3001))
    page, text = found._repr_html_(), str(found)
    assert "<img" not in page and "\x1b" not in page + text and "\u202e" not in page + text
    assert "and 2801 more" in text
