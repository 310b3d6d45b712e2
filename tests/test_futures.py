"""What is made of runs: replays and forks to the same bytes, branches merged into one, what a run would have been."""

import json
from collections import Counter

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from langchain_core.documents import Document

from tests.shelves import fill
from workbench.errors import Divergence, RunError, SettingsError
from workbench.futures.replay import full_document
from workbench.plans import Plan, PlanStep
from workbench.records.tape import canonical
from workbench.runs.stored import found_pieces, live_steps, origin_of
from workbench.session import Workbench

TEXTS = {
    "a": "The Wedding Banquet is a 1993 film by Ang Lee.",
    "b": "《喜宴》是李安 1993 年的电影。",
    "c": "Memento is a 2000 film by Christopher Nolan about memory.",
}


def same(one, two) -> bool:
    return canonical(full_document(one)) == canonical(full_document(two))


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """A workspace with three documents, tools that count their calls, and a planner that gives what it is told."""
    settings = {"embedding_model": "hashing", "rerank_model": "none", "max_iterations": 1}
    with Workbench.open(tmp_path_factory.mktemp("small"), **settings) as wb:
        fill(wb, TEXTS)
        yield Bench(wb)


class Bench:
    def __init__(self, wb: Workbench):
        self.wb, self.calls, self.plan = wb, Counter[str](), Plan(steps=[])

        @wb.tools.tool(name="find", description="finds what the query says")
        async def find(query: str, also: list[str] | None = None) -> list[str]:
            self.calls[query] += 1
            return [f"{query} was found.", *(f"{query} with {name}." for name in also or ())]

        @wb.register("planner")
        async def given_plan(query, decision, knowledge, tools) -> Plan:
            return self.plan

    def ask(self, plan: Plan, **options):
        self.plan = plan
        run = self.wb.ask("What is known of Memento?", kb="notes", **options)
        assert run.status == "done", run.error
        self.calls.clear()
        return run


def step(name: str, *depends_on: str, query: str = "") -> PlanStep:
    call = {"tool": "find", "tool_input": {"query": query or name}}
    return PlanStep(step_id=name, objective=name, depends_on=list(depends_on), **call)


SIX = Plan(steps=[step("s0"), step("s1"), step("s2", "s0"), step("s3", "s0", "s1"), step("s4", "s3"), step("s5", "s1")])


@pytest.mark.parametrize(("told", "changed"), [("clock", None), ("watch", "s2")])
def test_two_steps_with_one_call_keep_what_each_was_told(small, told, changed):
    said = []

    @small.wb.tools.tool(name=told, description="says something else each time")
    def clock(query: str) -> list[str]:
        said.append(query)
        if len(said) == 1:
            raise ValueError("not yet")
        return [f"Memento, number {len(said)}"]

    twins = [step(name).model_copy(update={"tool": told, "tool_input": {"query": "q"}}) for name in ("s0", "s1")]
    twins = [twin.model_copy(update={"budget": twin.budget.model_copy(update={"max_retries": 0})}) for twin in twins]
    run = small.ask(Plan(steps=[*twins, step("s2", "s1")], execution_mode="sequential"))
    again = run.fork(plan=run.plan.replace(changed, objective="else")) if changed else small.wb.replay(run.run_id)
    ends = [[(r["step_id"], r["status"]) for r in one.records] for one in (run, again)]
    assert ends[0] == ends[1] == [("s0", "failed"), ("s1", "success"), ("s2", "success")]
    assert len(said) == 2 and [r["evidence"] for r in run.evidence] == [r["evidence"] for r in again.evidence]


@pytest.mark.parametrize(("changed", "again"), [("s0", "s0 s2 s3 s4"), ("s1", "s1 s3 s4 s5"), ("s5", "s5")])
def test_changing_one_of_six_steps_runs_it_and_what_depends_on_it(small, changed, again):
    run = small.ask(SIX)
    before, fork = small.wb.run(run.run_id).to_dict(), run.fork()
    assert fork.status == "done" and not small.calls and same(run, fork), "nothing changed: nothing runs"
    assert origin_of(fork) == run.run_id and all(record["replayed"] for record in fork.records)
    assert fork.to_dict()["figures"]["saved_calls"] == 6
    plan = run.plan.replace(changed, tool_input={"query": f"{changed} otherwise"})
    expected = {row["step_id"] for row in small.wb.runs.forecast(run, plan)["steps"] if not row["replayed"]}
    fork = run.fork(plan=plan)
    assert sum(small.calls.values()) == len(again.split()) and small.calls[f"{changed} otherwise"] == 1
    fresh = [record["step_id"] for record in fork.records if not record.get("replayed")]
    assert sorted(fresh) == again.split() == sorted(expected)
    assert same(fork, small.ask(plan))
    assert small.wb.run(run.run_id).to_dict() == before, "the original never changes"


@pytest.mark.parametrize(
    ("place", "result", "again"),
    [
        ("s0/1", "Memento is by hand.", "s2 s3 s4"),
        ("s3/1", ["Memento once.", Document("Memento twice.", id="c")], "s4"),
        ("s5/1", {"results": []}, ""),
    ],
)
def test_a_result_that_is_put_in_its_place_is_not_executed_and_what_depends_on_it_is(small, place, result, again):
    run = small.ask(SIX)
    before = small.wb.run(run.run_id).to_dict()
    fork = run.fork(at=place, result=result)
    assert sorted(small.calls) == again.split() and live_steps(fork) == again.split()
    [edited] = [record for record in fork.records if f"{record['step_id']}/{record['attempt']}" == place]
    count = len(result) if isinstance(result, list) else int(isinstance(result, str))
    assert edited["output_summary"]["evidence_count"] == count
    assert ("hand" in fork.evidence[0]["evidence"]) == isinstance(result, str)
    compared = small.wb.compare(run, fork)
    assert [s["step_id"] for s in compared.steps if s["sides"][1]["by_hand"]] == [place[:2]]
    assert "put in place by hand" in str(compared) and "put in place by hand" in str(fork)
    assert small.wb.runs.lines(1, origin=run.run_id)[0]["edited"] == "results"
    small.calls.clear()
    assert same(small.wb.replay(fork.run_id), fork) and not small.calls
    assert all(row["replayed"] for row in small.wb.runs.forecast(fork, fork.plan)["steps"])
    second = fork.fork(at=place, result="Memento again.")
    assert sorted(small.calls) == again.split() and "again" in second.evidence[0]["evidence"]
    assert small.wb.run(run.run_id).to_dict() == before, "the original never changes"


def test_a_result_that_does_not_fit_is_refused(small):
    run = small.ask(SIX)
    for at, result, why in [
        ("s9/1", "x", "no effect at 's9/1'. It has: .*s0/1"),
        ("s0/1", {"colour": "red"}, "has no output 'colour'"),
        ("s0/1", [{"score": "high"}], "The result of s0/1 does not fit"),
        ("s0/1", [7], "The result of s0/1 does not fit"),
    ]:
        with pytest.raises(RunError, match=why):
            run.fork(at=at, result=result)


def test_what_will_run_is_counted_as_it_will_run(small, tmp_path):
    run = small.ask(SIX.replace("s5", condition="held"))
    freed = small.wb.runs.forecast(run, run.plan.replace("s5", condition="always"))
    assert [row["step_id"] for row in freed["steps"] if row["runs"]] == ["s5"], "held back is not recorded"
    (tmp_path / "more.jsonl").write_text('{"id": "z", "title": "z", "text": "Insomnia is a film."}\n', encoding="utf-8")
    small.wb.add_knowledge("notes", [tmp_path / "more.jsonl"])
    fork = run.fork(review=["plan"])
    assert fork.review["ahead"] == ["s0", "s1", "s2", "s3", "s4"], "the tape is of other documents"
    small.calls.clear()
    fork.approve()
    assert sum(small.calls.values()) == 5
    small.plan = Plan(steps=SIX.steps[:3])
    more = small.wb.ask("What is known of Memento?", kb="notes", review=["plan", "reflect"]).approve()
    small.plan = SIX
    more.respond("and Insomnia")  # planned anew, with the steps that are done
    runs = {row["step_id"] for row in small.wb.runs.forecast(more, more.plan)["steps"] if row["runs"]}
    assert runs == {*more.review["ahead"]} and len(runs) == 3


STEPS = st.lists(st.tuples(st.sampled_from("abcde"), st.lists(st.integers(0, 5), max_size=2)), min_size=2, max_size=6)


@settings(max_examples=6, deadline=None, suppress_health_check=list(HealthCheck))
@given(drawn=STEPS, edit=st.tuples(st.integers(0, 5), st.sampled_from(["query", "drop", "add", "top_k"])))
def test_replay_and_edit_equal_a_fresh_run_of_the_edited_plan(small, drawn, edit):
    place, kind = edit
    steps = []
    for number, (query, wanted) in enumerate(drawn):  # each depends on earlier ones
        before = sorted({w % number for w in wanted}) if number else []
        steps.append(step(f"s{number}", *(f"s{b}" for b in before), query=f"{query}{number}"))
    plan = Plan(steps=steps)
    run = small.ask(plan)
    chosen = plan.steps[place % len(plan.steps)]
    if kind == "query":
        edited = plan.replace(chosen.step_id, tool_input={"query": "otherwise"})
    elif kind == "top_k":
        edited = plan.replace(chosen.step_id, budget={"top_k": 3})
    elif kind == "add":
        edited = plan.adding(step("more", chosen.step_id))
    else:
        last = plan.topological_order()[-1]
        edited = plan.without(last) if len(plan.steps) > 1 else plan
    fork = run.fork(plan=edited)
    touched = sum(small.calls.values())
    live = small.ask(edited)
    assert fork.status == "done" and same(fork, live)
    assert touched == sum(not record.get("replayed") for record in fork.records if record["status"] != "skipped")


def test_a_replay_needs_no_tool_no_planner_and_gives_the_same_bytes(wb):
    run = wb.ask("推荐几部类似《喜宴》的电影", kb="film")
    again = wb.replay(run.run_id)
    assert same(run, again)
    assert again.to_dict()["figures"]["saved_calls"] == len([r for r in run.records if r["status"] != "skipped"])
    assert {e.kind for e in again.tape() if not e.replayed} <= {"begin"}


def test_a_follow_up_remembers_what_was_said_and_its_fork_leaves_the_conversation_alone(wb):
    wb.ask("喜宴哪一年上映？", kb="film", session="s")
    run = wb.ask("它的导演还拍过哪些电影？", kb="film", session="s")
    messages = wb.ports().conversations
    conversation = messages.get_or_create_conversation_id("default", "s")
    before = messages.list_messages(conversation)
    assert same(run, wb.replay(run.run_id)) and same(run, run.fork())
    assert messages.list_messages(conversation) == before


def test_another_decision_and_what_came_before_it_is_decided_again(wb):
    run = wb.ask("推荐几部类似《喜宴》的电影", kb="film", review={"plan", "reflect"})
    run.approve(note="looks well").respond("要喜剧").approve().approve()
    assert run.status == "done"
    fork = run.fork(decision={"action": "reject", "note": "enough"}, at="1-reflect")
    assert fork.status == "done" and [d["action"] for d in fork.decisions] == ["approve", "reject"]
    assert fork.decisions[0]["note"] == "looks well" and fork.state["stop_reason"] == "stopped_by_reviewer"
    assert all(record.get("replayed") for record in fork.records if record["status"] != "skipped")
    other = run.fork(decision={"action": "respond", "message": "only dramas"}, at="1-reflect")
    assert other.status == "paused", "what came after it is asked anew"
    with pytest.raises(RunError, match="No review point '7-reflect'"):
        run.fork(decision={"action": "reject"}, at="7-reflect")


def test_another_question_and_other_settings(wb):
    run = wb.ask("推荐几部类似《喜宴》的电影", kb="film")
    fewer = run.fork(settings={"merge_max_results": 5})
    assert len(fewer.evidence) == 5
    assert fewer.to_dict()["figures"]["saved_calls"] == len([r for r in fewer.records if r["status"] != "skipped"])
    asked = run.fork(query="Who directed Memento?")
    assert "Nolan" in asked.answer and origin_of(asked) == run.run_id and asked.to_dict()["figures"]["saved_calls"] == 0
    with pytest.raises(SettingsError, match="Unknown setting"):
        run.fork(settings={"no_such": 1})
    with pytest.raises(RunError, match=r"thresholds\.min_evidence cannot be -1"):
        run.fork(thresholds={"min_evidence": -1})
    with pytest.raises(RunError, match="The message is empty"):
        run.fork(query=" ")
    with pytest.raises(RunError, match="secret"):
        run.fork(settings={"chat_api_key": "sk"})


def test_a_fork_that_was_interrupted_goes_on_as_a_fork(small, tmp_path):
    run = small.ask(SIX)
    plan = run.plan.replace("s3", tool_input={"query": "slow"})
    fork = run.fork(plan=plan, review=["reflect"], wait=False)
    fork.cancel(resumable=True)
    small.wb.run(fork.run_id)
    if fork.status == "interrupted":
        fork.resume()
    assert fork.status == "paused"
    fork.approve()
    assert fork.status == "done" and fork.to_dict()["figures"]["saved_calls"] == 4


def test_a_replay_that_the_tape_does_not_fit_names_the_first_point(small):
    run = small.ask(SIX)
    store = small.wb.ports().runs
    record = store.record(run.run_id, "s3", 1)
    record["effect"]["input"]["input"] = {"query": "something else"}
    store.write("UPDATE records SET record = ? WHERE run_id = ? AND step_id = 's3'", (json.dumps(record), run.run_id))
    with pytest.raises(Divergence) as raised:
        small.wb.replay(run.run_id)
    assert (raised.value.kind, raised.value.name, raised.value.differs) == ("tool", "find", ["input.input.query"])
    assert raised.value.expected["input"]["input"] == {"query": "something else"}
    assert raised.value.got["input"]["input"] == {"query": "s3"}
    assert "input.input.query" in str(raised.value)
    failed = small.wb.runs.list(1)[0]
    told = [effect.value["differs"] for effect in failed.tape() if effect.kind == "divergence"]
    assert failed.status == "failed" and told == [["input.input.query"]]


def test_the_tape_alone_replays_after_a_document_has_changed(tmp_path):
    with Workbench.open(tmp_path / "w", embedding_model="hashing", rerank_model="none") as wb:
        fill(wb, TEXTS)
        run = wb.ask("What is Memento about?", kb="notes")
        fill(wb, {"c": "Memento is a film about forgetting."})
        assert same(run, wb.replay(run.run_id))
        assert "forgetting" in str(run.fork().evidence), "a fork reads the corpus that is here"


def test_what_cannot_be_replayed_says_why(wb):
    run = wb.ask("推荐几部类似《喜宴》的电影", kb="film", review={"reflect"})
    with pytest.raises(RunError, match="is paused"):
        wb.replay(run.run_id)
    private = wb.ask("Who directed Memento?", kb="film", incognito=True)
    with pytest.raises(RunError, match="incognito"):
        private.fork()


def test_tapes_can_be_let_go_and_what_the_runs_did_stays(small):
    run = small.ask(SIX)
    before = full_document(run)
    found = {freed["kind"]: freed for freed in small.wb.gc(tapes=True)}
    assert found["tapes of ended runs"]["bytes"] > 0 and same(run, small.wb.replay(run.run_id))
    small.wb.gc(tapes=True, yes=True)
    assert full_document(small.wb.run(run.run_id)) == before
    assert "no_tape" in {caveat["what"] for caveat in small.wb.compare(run, run).caveats}
    with pytest.raises(RunError, match="has no tape"):
        small.wb.replay(run.run_id)


def test_a_piece_of_evidence_is_struck_out_or_pinned_in_a_fork(wb):
    run = wb.ask("Compare The Wedding Banquet and Eat Drink Man Woman", kb="film", session="pieces")
    first, third = run.evidence[0]["result_id"], run.evidence[2]["result_id"]
    fork = run.fork(pieces={1: "struck", 3: "pinned"})
    found = {piece["result_id"]: piece for piece in found_pieces(fork) if piece["why"] != "duplicate"}
    assert fork.status == "done" and fork.evidence[0]["result_id"] == third
    assert found[third]["n"] == 1 and found[third]["mark"] == "pinned"
    assert found[first]["n"] is None and found[first]["why"] == "struck"
    assert first not in {citation["result_id"] for citation in fork.citations}
    again = fork.fork(pieces={found[first]["key"]: ""})
    assert first in {piece["result_id"] for piece in again.evidence} and again.evidence[0]["result_id"] == third
    for wrong in ({999: "struck"}, {1: "loved"}):
        with pytest.raises(RunError):
            run.fork(pieces=wrong)


def test_a_strike_is_a_decision_at_a_reflection_and_the_rest_is_judged_again(wb):
    paused = wb.start("Compare The Wedding Banquet and Eat Drink Man Woman", kb="film", review=["reflect"]).wait()
    key = found_pieces(paused)[0]["key"]
    paused.edit(pieces={key: "struck"})
    assert paused.status == "paused" and paused.decisions[-1]["edits"] == {"pieces": {key: "struck"}}
    assert {piece["key"]: piece["why"] for piece in found_pieces(paused)}[key] == "struck"
    while paused.status == "paused":
        paused.approve()
    assert key not in {piece["key"] for piece in found_pieces(paused) if piece["n"]}
    paused.feedback(False, piece=key).feedback(True)
    assert [verdict["good"] for verdict in wb.feedback(run=paused.run_id).on_answers()] == [True]
    assert {verdict["labels"].get("piece"): verdict["good"] for verdict in wb.feedback(run=paused.run_id)}[key] is False


COMPARE = {"zh": "比较《喜宴》和《饮食男女》", "en": "Compare The Wedding Banquet and Eat Drink Man Woman"}
LEFT, RIGHT = "step_0_wedding_banquet", "step_1_eat_drink_man_woman"


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
    found = run.what_if(gold={"mv26628"})
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
    found = run.what_if()
    assert [p["iteration"] for p in found] == [r["current_iteration"] for r in run.reflections]
    went = [p for p in found if p["recorded"] == "go_on"]
    assert went and all(not p["live"] and p["go_on"] == run.run_id and p["seconds"] > 0 for p in went)


def test_a_run_with_reviews_is_played_otherwise_at_its_own_points(wb):
    run = wb.ask(COMPARE["en"], kb="film", review={"plan", "reflect"}).approve()
    run.edit(should_continue=True)
    while run.status == "paused":
        run.approve()
    found = run.what_if()
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
    table = wb.runs.lines(text=run.message)._repr_html_()
    assert table.count(f"<b>{run.message}") == 1 and "→ 别的" in table, "a fork stands under its origin, by its change"
    assert f"<b>{run.message}</b> ↳ " in wb.runs.lines(origin=run.run_id)._repr_html_()
    assert run.row["created_at"][:16].replace("T", " ") + "<" in table
    again = wb.replay(next(iter(made)).run_id)
    assert again.run_id in {row["run_id"] for row in wb.runs.lines(origin=run.run_id)}, "what was made of what was made"
    assert wb.runs.to_frame().set_index("run_id").loc[next(iter(made)).run_id, "origin"] == run.run_id
