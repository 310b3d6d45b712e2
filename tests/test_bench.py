"""The bench without a browser: what is pressed, what becomes of the run in the store, what is shown beside it."""

import re
import sys
import time
from collections.abc import Callable
from html import unescape
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markupsafe import Markup

from tests import forked
from workbench.errors import WorkbenchError
from workbench.graphs.reviewers import answer
from workbench.plans import Plan, PlanStep
from workbench.records.proposals import VERDICTS
from workbench.runs.asking import LONGEST_MESSAGE
from workbench.runs.family import details
from workbench.runs.run import Run
from workbench.runs.stored import found_pieces, origin_of
from workbench.session import Workbench
from workbench.views.blocks import Table
from workbench.views.comparison import _text, beside
from workbench.views.drawing import STYLE
from workbench.views.labels import Labels
from workbench.views.run import answer as drawn_answer
from workbench.views.run import head
from workbench.views.runs import runs_table
from workbench.widgets.bench import Bench
from workbench.widgets.follow import Now
from workbench.widgets.futures import Decisions
from workbench.widgets.review import Review
from workbench.widgets.runs import RunTable

QUESTION = "Compare The Wedding Banquet and Eat Drink Man Woman"
SECONDS = 60


def text(pick: Any) -> str:
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", pick.picture.html)).split())


def ask(bench: Bench, message: str = QUESTION, review: tuple[str, ...] = ("reflect",)) -> Bench:
    bench.ask.message.value = message
    for point, box in bench.ask.points.items():
        box.value = point in review
    bench.ask.submit()
    return bench.wait(SECONDS)


def shown(widget: Any) -> bool:
    return widget.layout.display != "none"


@pytest.fixture
def bench(wb: Workbench) -> Bench:
    return wb.bench(kb="film")


def test_an_empty_bench_asks(bench: Bench) -> None:
    assert "Ask a question" in text(bench.head) and shown(bench.ask.region)
    assert not shown(bench.working.evidence) and bench.ask.kb.value == "film"
    assert len(bench.ask.examples.children) == 2
    bench.ask.examples.children[0].click()
    assert bench.ask.message.value.startswith("Compare ")
    bench.ask.message.value = "   "
    bench.ask.submit()
    assert bench.run is None


def test_a_model_and_its_effort_are_chosen_for_each_role(wb: Workbench, bench: Bench) -> None:
    form = bench.ask
    assert form.effort.disabled  # an effort is that of a model
    form.model.value = "rules"
    form.role.value = "writer"
    assert (form.model.value, form.effort.value) == ("", "") and form.effort.disabled
    form.model.value, form.effort.value = "openai:m", "high"
    form.role.value = "all"
    assert (form.model.value, form.effort.value) == ("rules", "")
    assert form.models == {"all": "rules", "writer": "openai:m?effort=high"}
    form.role.value = "writer"
    assert (form.model.value, form.effort.value) == ("openai:m", "high")
    form.model.value = ""
    assert form.models == {"all": "rules"}
    ask(bench, review=())
    settings = bench.run.options["settings"]
    assert set(settings["models"].values()) == {"rules"} and not bench.run.calls()


def test_a_bench_keeps_a_conversation_of_its_own(wb: Workbench, bench: Bench) -> None:
    wb.ask("Who directed Inception?", kb="film", review="plan")
    assert wb.bench(kb="film").run_id == "", "what is asked elsewhere is no business of a bench"
    first = ask(bench, "Who directed The Wedding Banquet?", ()).run
    bench.head.press("new_question")
    again = ask(bench, "When was it released?", ())
    assert again.run.session_id == first.session_id and "The Wedding Banquet" in again.run.query
    assert f"Read as: {again.run.query}" in text(again.head)
    assert not wb.bench(kb="film").follows_up(), "another bench has another conversation"


DYING = """
from workbench import Workbench; import os, sys
wb = Workbench.open(sys.argv[1])
@wb.tools.tool(name="slow", description="slow", intents=["compare"])
async def slow(query: str) -> list[str]:
    os._exit(9)
wb.ask(sys.argv[2], kb="film", session="bench film")
"""


def test_a_run_whose_process_died_is_gone_on_with(workspace: Path) -> None:
    assert forked.run([sys.executable, "-c", DYING, str(workspace), QUESTION], timeout=120).returncode == 9
    with Workbench.open(workspace) as wb:

        @wb.tools.tool(name="slow", description="slow", intents=["compare"])
        async def slow(query: str) -> list[str]:
            return ["It was shot in Taipei."]

        bench = wb.bench(kb="film")
        assert bench.run.status == "interrupted" and "Resume" in text(bench.head)
        finished = {record["step_id"]: record["started_at"] for record in bench.run.records}
        bench.head.press("resume")
        bench.wait(SECONDS)
        assert bench.run.status == "done"
        assert finished.items() <= {r["step_id"]: r["started_at"] for r in bench.run.records}.items()


def test_an_edited_plan_of_a_finished_run_becomes_a_fork(bench: Bench) -> None:
    run = ask(bench, review=()).run
    editor = bench.working.editor
    plan = Plan.load(editor.plan)
    mine = PlanStep(step_id="mine", objective="fathers", tool="keyword_search", tool_input={"query": "father"})
    editor._edit(plan.adding(mine))
    assert shown(bench.working.fork_bar) and "Fork with 1 edit" in text(bench.working.fork_bar)
    bench.working.fork_bar.press("fork")
    bench.wait(SECONDS)
    fork = bench.run
    assert origin_of(fork) == run.run_id and fork.plan.step("mine")
    assert fork.to_dict()["figures"]["saved_calls"] == len(plan.steps)


def comes(true: Callable[[], Any]) -> bool:
    until = time.monotonic() + SECONDS
    while not true() and time.monotonic() < until:
        time.sleep(0.02)
    return bool(true())


def test_a_bench_follows_its_run_whoever_moves_it(workspace: Path) -> None:
    with Workbench.open(workspace) as wb, Workbench.open(workspace) as elsewhere:
        run = wb.ask(QUESTION, kb="film", review=["plan", "reflect"])
        bench = wb.bench(run)
        review = bench.working.review
        elsewhere.run(run.run_id).approve()  # as another process does
        assert comes(lambda: "waiting for you · reflect" in text(bench.head) and shown(review.dock))
        wb.run(run.run_id).approve()  # as another cell does
        assert comes(lambda: not shown(review.dock) and run.answer[2:30] in text(bench.working.answer))
        gone = wb.ask(QUESTION, kb="film", review=["plan"])
        bench.put(gone)
        elsewhere.runs.remove(gone.run_id)
        assert comes(lambda: "This run is gone" in text(bench.head) and not shown(bench.working.dock))


def test_a_bench_goes_on_with_a_run_that_was_answered_before_its_pause_was_shown(wb, monkeypatch):
    ended, answered = Bench._ended, []

    def late(bench: Bench, now: Now, fault: WorkbenchError | None) -> None:
        if not answered and bench.run and bench.run.status == "paused":
            answered.append(bench.run.answer_review(answer("approve"), wait=False))
        ended(bench, now, fault)

    monkeypatch.setattr(Bench, "_ended", late)
    bench = ask(wb.bench(kb="film"), review=("reflect",))
    assert comes(lambda: answered and answered[0].answer and answered[0].answer[2:30] in text(bench.working.answer))
    assert not shown(bench.working.review.dock)


def test_a_note_and_the_language_survive_a_restart_and_a_new_conversation_begins_with_nothing(wb: Workbench) -> None:
    first = ask(wb.bench(kb="film", lang="zh"), QUESTION)
    first.working.review.note.value = "太少"
    assert wb.bench(kb="film", session="another").run_id == ""
    again = wb.bench(kb="film")
    assert again.run_id == first.run_id and again.labels.language == "zh"
    assert again.working.review.note.value == "太少"
    again.working.review.submit()
    again.wait(SECONDS)
    assert again.run.decisions[0]["note"] == "太少"
    again.head.press("new_question")
    assert again.ask.message.placeholder == again.labels("follow_up")
    again.head.press("new_conversation")
    assert again.ask.message.placeholder != again.labels("follow_up")
    assert ask(again, QUESTION).run.session_id != first.run.session_id


def test_what_is_refused_is_told_and_changes_nothing(bench: Bench, wb: Workbench) -> None:
    ask(bench, "x" * (LONGEST_MESSAGE + 1))
    assert bench.run is None and "characters" in text(bench.head)
    bench.working.turns.press("open", "no-such-run")
    assert "no-such-run" in text(bench.head)
    ask(bench)
    wb.close()
    bench._refreshed(None)
    assert "closed" in text(bench.head)


@pytest.fixture(scope="module")
def asked(shared_wb: Workbench) -> Run:
    """A run that went on at its reflection, with a note."""
    run = shared_wb.ask(QUESTION, kb="film", review=["reflect"]).respond("the father", note="he is the point")
    while run.status == "paused":
        run.approve()
    return run


@pytest.fixture(scope="module")
def stopped(asked: Run) -> Run:
    return asked.fork(at="0-reflect", decision={"action": "reject"})


def test_decisions_are_listed_and_each_is_made_again_in_a_fork(asked: Run) -> None:
    past = Decisions(Labels("en"))
    past.show(asked.to_dict())
    said = text(past.region)
    assert "1 · reflect" in said and "responded by you “the father” “he is the point”" in said
    shown = drawn_answer(asked.to_dict() | {"pieces": found_pieces(asked)}, Labels("en")).html
    more = len(asked.records) - len([r for r in asked.records if r["iteration"] == 1])
    assert more and f"You asked: “the father” · {more} more step" in shown
    past.region.press("fork", "0-reflect")
    assert past.request == {"edits": {"at": "0-reflect"}, "n": 1}
    fork = asked.fork(**past.request["edits"], wait=False).wait()
    assert (fork.status, fork.review["review_id"]) == ("paused", "0-reflect")
    assert all(record.get("replayed") for record in fork.records)


def test_a_run_that_nobody_was_asked_in_is_forked_to_decide_and_one_stopped_at_its_plan_says_so(shared_wb: Workbench):
    plain, stopped = shared_wb.ask(QUESTION, kb="film"), shared_wb.ask(QUESTION, kb="film", review=["plan"]).reject()
    past = Decisions(Labels("en"))
    past.show(plain.to_dict())
    past.region.press("fork")
    fork = plain.fork(**past.request["edits"], wait=False).wait()
    assert (fork.status, fork.review["point"]) == ("paused", "plan")
    heads = [Markup(head(run.to_dict(), Labels("en")).html).striptags() for run in (plain, stopped)]
    assert ["stopped early" in words for words in heads] == [False, True]
    assert ["done" in words for words in heads] == [True, False]
    decided = {line["run_id"]: line["decided"] for line in shared_wb.runs.lines(3)}
    assert (decided[plain.run_id], decided[stopped.run_id]) == ("", "reject")
    complete = shared_wb.ask(QUESTION, kb="film", review=["reflect"]).reject()
    early = {line["run_id"]: line["stopped"] for line in shared_wb.runs.lines(4)}
    assert [bool(early[run.run_id]) for run in (plain, stopped, complete)] == [False, True, False]
    shown = plain.evidence._repr_mimebundle_()
    assert plain.evidence == list(plain.evidence) and "The Wedding Banquet" in shown["text/plain"]
    assert "result_id" not in str(shown) and "<td" in shown["text/html"]


def test_a_run_without_a_fork_is_compared_with_one_of_the_last_runs(shared_wb: Workbench, stopped: Run) -> None:
    run = shared_wb.ask("Which films did Ang Lee direct?", kb="film")
    page = shared_wb.bench(run)
    assert "What the answer rests on" in run.knowledge().markup
    page.view = "compare"
    compared = page.futures.compared
    assert f'data-do="with" data-of="{stopped.run_id}"' in compared.html and run.run_id not in text(compared)
    compared.press("with", stopped.run_id)
    assert "They first differ" in text(compared) and stopped.run_id in text(compared)
    assert "No model was asked" in run.calls()._repr_html_()


def test_the_family_of_a_run_is_a_tree_that_says_what_was_changed(shared_wb: Workbench, asked: Run) -> None:
    plan, rules = asked.plans[0]["plan"], {"mismatch": "rules", "rest": "rules"}
    edited = asked.fork(plan=plan.replace(plan.steps[0].step_id, top_k=3), **rules)
    once = edited.fork(settings={"max_iterations": 1}, **rules)
    stopped = asked.fork(at="0-reflect", decision={"action": "reject", "note": "enough <b>"})
    marked = asked.fork(pieces={1: "struck"}, thresholds={"min_evidence": 2}, **rules)
    page = shared_wb.bench(once)
    page.view = "compare"
    tree, _, comparison = page.futures.compared.picture.html.partition("wb-worked")
    assert re.findall('aria-level="1"', tree) == ['aria-level="1"'] and f'data-key="{asked.run_id}"' in tree
    rows = re.split("<li ", tree)
    told = {
        run: [Markup(row).striptags() for row in rows if f'data-key="{run.run_id}"' in row]
        for run in (edited, once, stopped, marked)
    }
    assert (
        "“The Wedding Banquet”: Top k: 50 → 3" in told[edited][0] and 'aria-level="2"' in tree.split(edited.run_id)[0]
    )
    assert "Passes, at most: 3 → 1" in told[once][0] and "you are here" in told[once][0]
    assert "nswered now · “enough &lt;b&gt;” (decision 1 · reflect)" in told[stopped][0].replace("<b>", "&lt;b&gt;")
    assert "evidence: 1 struck out" in told[marked][0] and "Minimum evidence, pieces: 2" in told[marked][0]
    assert "<b>”" not in tree and not {edited.run_id, once.run_id} & {*comparison.split()}, "the tree names them"
    page.futures.compared.press("choose", stopped.run_id)
    assert page.run_id == stopped.run_id


def test_a_chosen_node_step_or_entity_shows_what_it_is_about(shared_wb: Workbench, asked: Run) -> None:
    page = shared_wb.bench(asked)
    page.working.timeline.press("choose", "executor")
    assert "director = same" in text(page.working.answer), "a row of equal values"
    said = text(page.working.node)
    executed = [entry for entry in asked.log if entry["node"] == "executor"]
    assert said.startswith("execute 1.") and f" {len(executed)}. " in said and "kb_prefix film" in said
    record = asked.records[0]
    lanes = page.working.timeline.picture.rows
    step = f"{record['step_id']}/1"
    assert [*lanes].index(step) == [*lanes].index("executor") + 1 and "padding-left:28px" in lanes[step], "nested"
    inside = [row["name"] for row in asked.timeline().data if row["kind"] == "sub_step" and row["inside"] == "executor"]
    assert inside and '<text x="36"' in asked.timeline().markup
    assert all(word in text(page.working.path) for word in ("the nodes of the graph that ran", "retrieval", "execute"))
    page.working.timeline.press("choose", step)
    said = text(page.working.node)
    assert record["tool"] in said and f"top_k {record['raw_input']['top_k']}" in said
    assert all(f"{sub['name']} " in said for sub in record["sub_steps"]) and "evidence_count" in said
    page.view = "knowledge"
    shown = page.futures.knowledge.picture.html
    key = next(key for key in re.findall(r'data-key="([^"]+)" role="option"', shown) if "ang lee" in key)
    assert "Pushing Hands" not in shown
    page.futures.knowledge.press("nearby")
    assert "Pushing Hands" in page.futures.knowledge.picture.html
    page.futures.knowledge.press("nearby")
    page.futures.knowledge.press("choose", key)
    said = text(page.futures.entity)
    assert "The Wedding Banquet director → Ang Lee" in said and "[1] The Wedding Banquet cited" in said
    page = shared_wb.bench(asked, lang="zh")
    page.view = "knowledge"
    page.futures.knowledge.press("choose", key)
    said, _, _ = text(page.futures.entity).partition("证据中")
    assert said.startswith("李安 人物 · Ang Lee") and "喜宴 导演 → 李安" in said
    assert 'role="option"' not in asked.knowledge().markup, "on a page nothing can be chosen"
    page = shared_wb.bench(shared_wb.ask("Which drama films did Ang Lee direct?", kb="film"), lang="zh")
    assert "类型是剧情 · 导演是李安" in text(page.working.timeline), "conditions are in the reader's words"
    assert "请重新运行" in page._static_form()["text/html"]


def test_each_line_of_an_answer_says_how_far_it_is_found_and_in_what(asked: Run) -> None:
    document = asked.to_dict()
    first, *rest = document["support"]
    told = {**document, "support": [{**first, "verdict": "unsupported"}, *rest]}
    lines = re.split('<div class="wb-claim(?: wb-bullet)?">', drawn_answer(told, Labels("en")).html)[1:]
    doubtful = [Markup(line).striptags() for line in lines if "not found" in line]
    assert len(doubtful) == 1 and first["sentence"].removeprefix("- ")[:30] in doubtful[0]
    cited = document["citations"][0]
    assert f"[{cited['n']}] {cited['source']['title']}</button>" in lines[0] and 'data-do="evidence"' in lines[0]


def test_a_table_in_an_answer_is_drawn_as_one_with_a_sign_for_each_row(asked: Run) -> None:
    document = asked.to_dict()
    row = next(claim for claim in document["support"] if claim["sentence"].startswith("| year"))
    rest = [claim for claim in document["support"] if claim is not row]
    told = {**document, "support": [*rest, {**row, "verdict": "unsupported"}]}
    drawn = re.split("<tr>", drawn_answer(told, Labels("en")).html)[1:]
    cells = [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", line) for line in drawn]
    assert [Markup(cell).striptags() for cell in cells[0]] == ["", "", "The Wedding Banquet", "Eat Drink Man Woman"]
    doubtful = [Markup(line[0]).striptags() for line in cells if "not found" in line[0]]
    assert len(doubtful) == 1 and "year" in doubtful[0]
    assert [cell.count('data-do="evidence"') for cell in cells[-1]] == [0, 0, 1, 1]


@pytest.mark.parametrize("block", STYLE.split("}")[:2])
def test_shares_of_the_time_can_be_told_apart_in_both_themes(block: str) -> None:
    def light(colour: str) -> float:
        parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [p / 12.92 if p <= 0.03928 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
        return sum(share * part for share, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True)) + 0.05

    shares = [light(c) for c in re.findall(r"--wb-share-\w+: (#\w+)", block)]
    steps = [max(pair) / min(pair) for pair in pairwise(shares)]
    assert len(steps) == 3 and min(steps) > 1.2
    assert "--wb-ground" in block or shares[0] / light("#212121") > 1.2, "the least share is seen too"


def test_what_differs_is_compared_before_what_is_the_same(shared_wb: Workbench, asked: Run, stopped: Run) -> None:
    document = shared_wb.compare(asked, stopped).to_dict()
    document["claims"] = [{**row, "changes": ["shared"]} for row in document["claims"]]
    tables = [block for block in beside(document, Labels("en")) if isinstance(block, Table)]
    kinds = [table.title.partition(" · ")[0] for table in tables]
    assert kinds[:2] == ["Answers", "Evidence in the context"] and not tables[0].opened, "the same answer is folded"
    assert ("director = same", "Ang Lee [1]", "Ang Lee [2]") in tables[0].inside[1].rows
    assert kinds[-1] == "Metrics", "what a run took is no reason"
    plan = asked.plans[0]["plan"]
    edited = plan.replace(plan.steps[0].step_id, objective="another")
    side = {"action": "edit", "who": "person", "message": "", "note": "", "edits": {"plan": edited.dump()}}
    assert "edited (you) · “The Wedding Banquet”: Objective: Find what" in _text(
        "side_decisions", Labels("en"), side={**side, "proposal": {"plan": plan.dump()}}, row={}
    )


_met = st.sampled_from([0.0, 0.4, 0.5, 1.0])
_kinds = st.sampled_from(["name", "words", "answer"])
_needs = st.lists(st.tuples(_kinds, _met, st.sampled_from(["", *VERDICTS])), max_size=4)


@given(
    _needs,
    st.lists(st.sampled_from(["the fathers", "<b>", "need 0", " "]), max_size=3),
    st.sampled_from(["plan", "next_steps"]),
)
@example([("name", 1.0, "")] * 3, ["the fathers"], "plan")
def test_what_is_announced_of_needs_is_what_is_shown(
    asked: Run, found: list[tuple[str, float, str]], wishes: list[str], edited: str
) -> None:
    labels = Labels("en")
    needs = [
        {"need": f"need {n}", "kind": kind, "met": met, "said": said, "by": [], "title": "", "quote": ""}
        for n, (kind, met, said) in enumerate(found)
    ]
    steps = [{"objective": wish} for wish in wishes]
    edits = {"plan": {"steps": steps}} if edited == "plan" else {"next_steps": steps}
    decided = {**asked.decisions[0], "edits": edits, "proposal": {"plan": {"steps": []}}, "action": "edit"}
    done = asked.to_dict()
    reflection = {**done["reflections"][-1], "signals": {**done["reflections"][-1]["signals"], "needs": needs}}
    document = {**done, "reflections": [reflection], "decisions": [decided]}
    args_schema = {"properties": {"needs": {"type": "object"}}}
    review = {
        "point": "reflect",
        "action_requests": [{"name": "reflect", "args": {**reflection, "should_continue": False}}],
        "review_configs": [{"args_schema": args_schema}],
    }
    panel = Review(labels)
    panel.show({**document, "status": "paused", "review": review})
    fields = panel._form.needs.fields  # type: ignore[union-attr]
    rows = {name: Markup(field.box.children[0].value).striptags() for name, field in fields.items() if name}
    asked_for = {wish.strip() for wish in wishes if wish.strip()} - {need["need"] for need in needs}
    assert {*rows} == {need["need"] for need in needs} | asked_for
    settled = [row[0] in "✓●" for row in rows.values()]
    assert settled == sorted(settled), "what is open comes first"
    bar, drawn = (
        text(panel.band),
        " ".join(unescape(re.sub(r"<[^>]+>", " ", drawn_answer(document, labels).html)).split()),
    )
    for words, count in (
        (r"(\d+) of \d+ needs? met", sum(bool(re.match(r"\S (met|likely|confirmed)", row)) for row in rows.values())),
        (r"\d+ of (\d+) needs? met", len(rows) - sum("✓ not needed" in row for row in rows.values())),
        (r"(\d+) not judged", len(asked_for)),
    ):
        shown_counts = [int(n) for page in (bar, drawn) for n in re.findall(words, page)]
        assert shown_counts == [count] * 2 or (not count and not shown_counts)
    for wish in asked_for:
        assert "○ not judged" in rows[wish] and f"{wish} Ask next not judged" in drawn
        options = [option for option, _ in fields[wish].control.widget.options]
        assert options == ["not judged", "still needed", "confirmed", "not needed"]
    assert ("✓" in bar) <= (not asked_for), "it is green where nothing is left"


def test_runs_are_searched_sorted_marked_and_acted_on(shared_wb: Workbench, asked: Run, stopped: Run) -> None:
    runs = RunTable(Labels("en"), shared_wb)
    runs.show(asked.run_id)
    assert {asked.run_id, stopped.run_id} <= set(runs.table.picture.rows) and runs.marked == [asked.run_id]
    places, fork = [*runs.table.picture.rows], runs.table.picture.rows[stopped.run_id]
    assert places.index(asked.run_id) < places.index(stopped.run_id), "a fork stands below its origin, though newer"
    told = details(stopped, asked.run_id)
    second = told["first_change"].strip("-| ")[:60] if told["answer_changed"] else "= same answer"
    assert "forked from" not in fork and Markup.escape(second) in fork, "no answer is shown twice"
    name = "answered now (decision 1 · reflect)"
    page = shared_wb.bench(stopped)
    head, page.view = text(page.head), "compare"
    waits = asked.fork(at="0-reflect")
    boxes = (fork, shared_wb.runs.lines(text=stopped.run_id)._repr_html_(), head, text(page.futures.compared))
    assert [name in box for box in boxes] == [True] * 4 and str(shared_wb.compare(asked, stopped)).count(name) == 1
    assert "to be decided again (decision 1 · reflect)" in text(shared_wb.inbox().list)
    shared_wb.runs.remove(waits.run_id)
    assert "Compare: mark one more" in text(runs.table)
    runs.table.press("mark", stopped.run_id)
    runs.table.press("compare")
    assert runs.request == {"do": "compare", "runs": [asked.run_id, stopped.run_id], "n": 1}
    runs.table.press("mark", stopped.run_id)
    heads = ("Took", "Model", "Tokens", "Cost", "Needs", "Sentences found")
    assert [h for h in heads if h in text(runs.table)] == ["Took", "Needs", "Sentences found"]  # no model was asked
    asked.feedback(False)
    runs.show(asked.run_id)
    runs.filters["rated"].value = "feedback_bad"
    assert "✗ Bad" in runs.table.picture.rows[asked.run_id] and len(runs.table.picture.rows) == 1
    asked.feedback(None)
    runs.table.press("clear")
    assert asked.answer.splitlines()[0][2:42] in text(runs.table)
    [row] = shared_wb.runs.lines(text=asked.run_id)
    twins = [{**row, "run_id": "twin", "created_at": "2999-01-01"}, row]
    costs = dict.fromkeys(("twin", asked.run_id), details(asked, ""))
    costs["twin"] = {
        "changes": None,
        "seconds": 2.5,
        "saved_seconds": 0.25,
        "model": "ollama:tiny",
        "tokens": 1234,
        "money": 0.5,
        "needs": 3,
        "needs_met": 2,
        "needs_unjudged": 1,
        **{"calls": 4, "saved_calls": 3, "cited": 2, "score": None},
    }
    look = {"total": 2, "page": 0, "sort": ("created_at", True), "marked": ()}
    look |= {"compared": {}, "partner": "", "here": "", "rated": {}, "narrowed": False, "hidden": 0}
    table = runs_table(twins, Labels("en"), costs, **look).html
    assert all(head in table for head in heads) and all(
        fact in table for fact in ("2.50 s", "250 ms reused", "tiny", "1,234", "0.5000", "2 of 3", "–")
    )
    runs.table.press("mark", stopped.run_id)
    marked = [runs.table.picture.rows[run.run_id] for run in (asked, stopped)]
    assert [f">{letter}</button>" in row for letter, row in zip("AB", marked, strict=True)] == [True] * 2, "older first"
    runs.table.press("compare")
    assert runs.request == {"do": "compare", "runs": [asked.run_id, stopped.run_id], "n": 2}
    runs.table.press("choose", stopped.run_id)
    assert runs.request == {"do": "open", "runs": [stopped.run_id], "n": 3}
    runs.table.press("tags:fathers, draft")
    runs.table.press("note:look again")
    found = ({"tag": "draft"}, {"text": "look again"})
    tagged, noted = ({run.run_id for run in shared_wb.runs.find(**by)} for by in found)
    assert tagged == noted == {asked.run_id, stopped.run_id}
    runs.search.value = "no such words"
    assert not runs.table.picture.rows and "No runs fit" in text(runs.table)
    runs.search.value, runs.filters["tag"].value = "", "draft"
    assert set(runs.table.picture.rows) == {asked.run_id, stopped.run_id}
    runs.table.press("clear")
    runs.table.press("sort:title")
    titles = [shared_wb.runs.lines(text=run_id)[0]["title"] for run_id in runs.table.picture.rows]
    assert titles == sorted(titles, key=str.casefold)
    runs.table.press("sort:seconds")
    took = [shared_wb.runs.costs(run_id)["seconds"] for run_id in runs.table.picture.rows]
    assert took == sorted(took, reverse=True) and shared_wb.runs.lines(text=asked.run_id)[0]["seconds"] in took
    runs.table.press("export")
    assert (shared_wb.path / "exports" / f"{asked.run_id}.zip").is_file() and "2 runs exported" in runs.message.value
    gone = stopped.fork()
    runs.show(asked.run_id)
    for marked in (*runs.marked, gone.run_id):
        runs.table.press("mark", marked)
    assert "Delete 1…" in text(runs.table) and "Delete 1 run with all" in text(runs.table)
    runs.table.press("delete")
    assert gone.run_id not in shared_wb.runs and gone.run_id not in runs.table.picture.rows and not runs.marked


def test_the_examples_are_about_what_goes_together(shared_wb: Workbench) -> None:
    compare, about = [button.tooltip for button in shared_wb.bench(kb="film", session="e").ask.examples.children]
    king, ring = (f"The Lord of the Rings: The {name}" for name in ("Return of the King", "Fellowship of the Ring"))
    assert (compare, about) == (f"Compare {king} and {ring}", f"What is {ring} about?")


def test_the_table_of_runs_is_a_frame_too(shared_wb: Workbench, asked: Run) -> None:
    shared_wb.runs.annotate(asked.run_id, title="Fathers")
    frame = shared_wb.runs.to_frame(text="Fathers").set_index("run_id")
    assert frame.loc[asked.run_id, "title"] == "Fathers" and frame.loc[asked.run_id, "message"] == QUESTION
    assert {"answer", "status", "kb", "model", "tokens", "money", "needs_met", "tags", "note"} <= set(frame)
    assert frame.loc[asked.run_id, "answer"] == asked.answer.splitlines()[0][:200]
    shared_wb.runs.annotate(asked.run_id, title="")
    assert shared_wb.runs.lines(text=asked.run_id)[0]["title"] == QUESTION
