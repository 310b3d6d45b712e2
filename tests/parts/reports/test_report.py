"""A report: planned and searched as any question, written section by section, every sentence with its source."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.harbour import harbour
from tests.shelves import environment, workbench
from workbench.errors import WorkbenchError
from workbench.language.support import statements
from workbench.parts.reports import kinds
from workbench.parts.reports.kinds import ReportType, register_report_type
from workbench.plans import Plan, PlanStep
from workbench.runs.recording import live_steps
from workbench.runs.run import Run
from workbench.session import Workbench

FULL = {**environment(), "WORKBENCH_EMBEDDING_MODEL": "auto"}
EN, ZH = "The films of Ang Lee: families, food and exile", "李安的电影：家庭与传统"


def body(text: str) -> str:
    """The sections of a report, without what stands behind them."""
    return re.split(r"\n## (?:References|参考文献)", text)[0]


@pytest.fixture
def shelf(tmp_path: Path) -> Path:
    return harbour(tmp_path / "harbour")


@pytest.fixture(scope="module")
def english(shared_wb: Workbench) -> Run:
    """Return a report that several tests read."""
    return shared_wb.report(EN, kb="film")


@pytest.mark.parametrize(("topic", "wanted"), [(EN, ["Families", "Food", "Exile"]), (ZH, ["家庭", "传统"])])
def test_every_sentence_has_a_source_that_is_there_and_says_so(shared_wb, english, topic, wanted):
    run = english if topic == EN else shared_wb.report(topic, kb="film")
    report, told = run.report, run.report.to_dict()
    assert report.status == told["status"] == "completed"
    assert [one["title"] for one in report.sections][: len(wanted)] == wanted
    pieces = {r["result_id"]: r for r in run.evidence}
    for section in report.sections:
        assert set(section["evidence_ids"]) <= pieces.keys()
        for claim in section["claims"]:
            assert claim["verdict"] == "supported" and set(claim["evidence_ids"]) <= pieces.keys()
    said = [s for section in report.sections for s in statements(section["text"])]
    assert len(said) > 10 and all(re.search(r"\[\d+\]", s) for s in said)
    marks = {int(n) for n in re.findall(r"\[(\d+)\]", body(report.text))}
    references = told["report"]["references"].splitlines()
    assert marks == {int(re.match(r"\[(\d+)\]", line)[1]) for line in references}  # type: ignore[index]
    by_place = {c["n"]: c["result_id"] for c in run.citations}
    assert set(by_place) == marks and set(by_place.values()) <= pieces.keys()


def test_all_that_hold_the_conditions_are_used_and_nothing_is_said_twice(english):
    run = english
    directed = {
        r["metadata"]["doc_id"]
        for r in run.evidence
        if "Ang Lee" in r["metadata"].get("fields", {}).get("directors", [])
    }
    used = {i for section in run.report.sections for i in section["evidence_ids"]}
    assert {r["metadata"]["doc_id"] for r in run.evidence if r["result_id"] in used} >= directed
    assert len(directed) == 13
    said = [claim["text"] for section in run.report.sections for claim in section["claims"]]
    assert len(said) == len(set(said))
    assert "The corpus says nothing on “Exile”." in run.report.text
    assert "Nothing was found on: Exile." in run.report.text
    assert [step.step_id for step in run.plan.steps][-3:] == ["step_2_families", "step_3_food", "step_4_exile"]
    families, food, exile, others = run.report.chapters[0]["text"].splitlines()
    assert "family" in families and "Eat Drink Man Woman [" in food, "a name alone says nothing of food"
    assert "the corpus says nothing on it" in exile and "directed by" not in others


def test_the_result_has_the_names_of_the_requirement(wb):
    run = wb.report(EN, kb="film", assumptions=["Only films count."], report_type="short", style="bibtex")
    told = json.loads(json.dumps(run.report.to_dict()))
    expected = {"status", "response", "planner", "execution_records", "report", "report_context", "errors", "metrics"}
    assert expected <= told.keys()
    spec = told["planner"]["plan_spec"]
    assert spec["assumptions"].count("Only films count.") == 1
    assert {"task_id", "task_type", "description", "status"} <= spec["task_graph"]["nodes"][0].keys()
    assert {task["status"] for task in spec["task_graph"]["nodes"]} == {"success"}
    record = told["execution_records"][0]
    assert record["tool_calls"][0]["tool"] == record["worker_type"] and record["reflection"]["reasoning"]
    assert told["input"] == EN and [one["role"] for one in told["messages"]] == ["user", "assistant"]
    assert told["execution_context"]["current_task_id"] is None
    assert told["execution_context"]["reflection_retry_counts"] == {}
    assert told["planner"]["plan_context"]["domain_context"] == "film"
    assert record["evidence"] and record["metadata"]["latency_seconds"] >= 0
    assert told["report_id"] == f"{spec['plan_id']}:{spec['version']}:short"
    assert told["report"]["outline"]["sections"][0].keys() >= {"title", "summary", "evidence_ids"}
    assert {"planning_seconds", "execution_seconds", "reporting_seconds"} <= told["metrics"].keys()
    assert "@misc{" in told["response"] and "## Conclusion" not in told["response"]


def test_a_second_report_takes_over_what_its_evidence_did_not_change(wb, shelf):
    wb.add_knowledge("harbour", [shelf])
    topic = "The harbour: bridge, ferry, fish"
    first = wb.report(topic, kb="harbour").report
    again = wb.report(topic, kb="harbour").report
    assert again.cache_hit and again.text == first.text and again.metrics["sections_written"] == 0
    assert not wb.report(topic, kb="harbour", cached=False).report.cache_hit
    changed = (shelf / "ferry.md").read_text(encoding="utf-8").replace("four times", "six times")
    (shelf / "ferry.md").write_text(changed, encoding="utf-8")
    wb.add_knowledge("harbour", [shelf])
    third = wb.report(topic, kb="harbour").report
    assert not third.cache_hit and "six times" in third.text and "four times" not in third.text
    fresh = {one["section_id"] for one in third.sections if not one["reused"]}
    old, new = ({s["section_id"]: s["text"] for s in one.sections} for one in (first, third))
    assert fresh == {i for i in old if "four times" in old[i]} and third.metrics["sections_written"] == len(fresh)
    assert all(old[i] == new[i] for i in old if i not in fresh)


def test_another_person_s_report_is_not_taken_over(shared_wb, english):
    assert english.report.text
    assert not shared_wb.report(EN, kb="film", user="bob").report.cache_hit


def test_what_the_corpus_does_not_know_is_said_and_not_written(wb, shelf):
    wb.add_knowledge("harbour", [shelf])
    report = wb.report("Quantum chromodynamics", kb="harbour").report
    assert report.sections == [] and "Nothing here clearly answers this" in report.text


def test_a_person_decides_at_the_outline_and_a_replay_repeats_it(wb):
    run = wb.report("Ang Lee's films: war, food", kb="film", review={"outline"})
    proposed = run.review["action_requests"][0]["args"]
    assert run.review["point"] == "outline"
    with pytest.raises(WorkbenchError, match="not a piece of the evidence"):
        run.edit(sections=[{**proposed["sections"][0], "evidence_ids": ["nowhere"]}])
    war, food, _ = proposed["sections"]
    run.edit(sections=[{**food, "title": "At table"}, war], title="Two of his subjects")
    assert run.status == "done" and run.report.title == "Two of his subjects"
    assert [s["title"] for s in run.report.sections] == ["At table", "War"]
    assert wb.replay(run.run_id).report.text == run.report.text


def test_a_report_that_is_rejected_before_its_plan_is_not_written_and_says_so(shared_wb):
    run = shared_wb.report("Everything, please.", kb="film", review={"clarify"})
    run.reject()
    assert run.status == "done" and run.report.status == "partial"
    assert not run.report.sections and not run.report.text and not run.records
    assert run.answer.startswith("The reviewer stopped the search")


def test_a_fork_at_the_outline_writes_only_what_it_changes(wb):
    run = wb.report("Ang Lee's films: war, food", kb="film", review={"outline"})
    run.approve()
    fork = run.fork(at=run.decisions[0]["review_id"])
    fork.wait()
    first = fork.review["action_requests"][0]["args"]["sections"]
    fork.edit(sections=first[:1])
    assert fork.status == "done" and [s["title"] for s in fork.report.sections] == ["War"]
    assert live_steps(fork) == []


def test_a_kind_of_one_s_own_is_a_few_lines(wb):
    register_report_type(ReportType("brief", statements=2, parts=frozenset(), wanted=("war", "family")))
    try:
        report = wb.report("The films of Ang Lee", kb="film", report_type="brief").report
        assert [s["title"] for s in report.sections][:2] == ["War", "Family"]
        assert "## Introduction" not in report.text and "## Appendix" not in report.text
    finally:
        kinds._TYPES.pop("brief")


def test_what_cannot_be_asked_is_said_before_anything_begins(shared_wb):
    wb = shared_wb
    with pytest.raises(WorkbenchError, match="Unknown review point"):
        wb.ask(EN, kb="film", review={"outline"})
    with pytest.raises(WorkbenchError, match="writes no report"):
        wb.ask("Who directed Hulk?", kb="film").report  # noqa: B018
    assert wb.ask("Who directed Hulk?", kb="film", review=None).status == "done"


def test_the_terminal_writes_a_file_and_reads_it_again(workspace, tmp_path):
    wanted = (ZH, "--kb", "film", "--type", "short")
    done = workbench(workspace, "report", *wanted, "-o", str(tmp_path / "r.md"), env=FULL)
    assert done.returncode == 0, done.stderr
    text = (tmp_path / "r.md").read_text(encoding="utf-8")
    assert text.startswith("# 李安的电影") and "## 参考文献" in text
    wrong = workbench(workspace, "report", ZH, "--kb", "film", "-o", str(tmp_path / "r.docx"), env=FULL)
    assert wrong.returncode != 0 and "not a form of a report" in wrong.stderr


@pytest.mark.parametrize("strict", [True, False])
def test_a_signal_that_is_not_strict_runs_what_can_run(wb, strict):
    @wb.register("planner")
    async def planner(query, decision, knowledge, tools) -> Plan:
        said = [("s0", "hybrid_search", []), ("s1", "no_such_tool", []), ("s2", "naive_search", ["s1"])]
        steps = [
            PlanStep(step_id=i, objective="", tool=tool, tool_input={"query": query}, depends_on=before)
            for i, tool, before in said
        ]
        return Plan(problem_statement=query, steps=steps)

    asked = {"kb": "film", "settings": {"strict_plan_signal": strict}}
    run = wb.report("Hulk", **asked)
    if strict:
        assert run.report.status == "failed" and "no_such_tool" in str(run.error)
    else:
        assert run.report.status == "completed" and [s.step_id for s in run.plan.steps] == ["s0"]
        assert run.report.to_dict()["planner"]["signal"]["execution_sequence"] == ["s0"]
