"""Runs beside one another: what an edit changed, what only seems to come from it, and that nothing else is touched."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests import handmade
from tests.test_hostile import read
from workbench.cli import main
from workbench.errors import RunError, UnknownRun
from workbench.futures.compare import compared
from workbench.records.store import TABLES
from workbench.session import Workbench
from workbench.views.comparison import LETTERS

ENGLISH, CHINESE = "Recommend comedies directed by Ang Lee", "对比《喜宴》和《饮食男女》的风格"
HOSTILE = "<script>alert(1)</script>\" onload='x' \x1b[2J \u202egnp.exe"


def done(wb: Workbench, question: str, **options):
    run = wb.ask(question, kb="film", **options)
    while run.status == "paused":
        run.approve()
    return run


def rows_of(workspace: Path, run_id: str) -> dict[str, list]:
    with sqlite3.connect(workspace / "workbench.db") as db:
        return {
            t: db.execute(f"SELECT * FROM {t} WHERE run_id = ? ORDER BY rowid", (run_id,)).fetchall() for t in TABLES
        }


def test_a_run_beside_itself_and_its_replay_shows_nothing(wb: Workbench) -> None:
    run = done(wb, ENGLISH, review=["plan", "reflect"])
    for other in (run, wb.replay(run.run_id)):
        found = wb.compare(run, other)
        assert found.parts is None and found.caveats == []
        assert all(not change for diff in found.plan for change in diff.values())
        assert {change for piece in found.evidence for change in piece["changes"]} == {"same"}
        assert {change for claim in found.claims for change in claim["changes"]} == {"shared"}
        assert all(row["same"] for row in [*found.steps, *found.decisions])
        assert "No difference" in str(found) and f"Evidence · {len(found.evidence)} the same" in str(found)
        assert "= shared" in str(found), "an answer is shown whole"


def test_approve_beside_reject_at_reflect(wb: Workbench) -> None:
    run = wb.ask(ENGLISH, kb="film", review=["reflect"], thresholds={"min_evidence": 60})
    fork = run.fork(at="0-reflect")
    assert run.review["action_requests"][0]["args"]["should_continue"]
    run.approve()
    while run.status == "paused":
        run.approve()
    fork.reject(note="enough")
    found = wb.compare(run, fork.run_id)
    assert (found.parts["where"], found.parts["name"]) == ("decision", "0-reflect")
    assert [side["action"] for side in found.decisions[0]["sides"]] == ["approve", "reject"]
    assert found.decisions[0]["sides"][1]["note"] == "enough"
    assert found.caveats == []
    more = [row["step_id"] for row in found.steps if row["sides"][1] is None]
    lost = [piece for piece in found.evidence if piece["changes"] == ["lost"]]
    assert more and lost and not [piece for piece in found.evidence if piece["changes"] == ["gained"]]
    for piece in lost:  # what the stop cost was brought by the steps that it kept from running
        assert {by["step_id"] for by in piece["sides"][0]["found_by"]} <= set(more)
    assert found.cost[1]["calls"] == 0 < found.cost[1]["saved_calls"]
    text = str(found)
    assert "They first differ in decision 1 · reflect" in text and "stopped here (you)" in text
    for word in ("better", "worse", "winner", "best"):
        assert word not in text.lower()


def test_one_edited_step(wb: Workbench) -> None:
    run = done(wb, CHINESE)
    step = run.plan.steps[0]
    fork = run.fork(plan=run.plans[0]["plan"].replace(step.step_id, tool_input={"query": "卧虎藏龙"}))
    found = wb.compare(run, fork)
    assert (found.parts["where"], found.caveats) == ("plan", [])
    assert found.plan == [run.plan.diff(fork.plan)]
    assert set(found.plan[0]["changed"]) == {step.step_id}
    same = {row["step_id"]: row["same"] for row in found.steps}
    assert not same[step.step_id] and same[run.plan.steps[1].step_id]
    gained = [piece for piece in found.evidence if piece["changes"] == ["gained"]]
    assert gained
    for piece in gained:
        found_by = piece["sides"][1]["found_by"]
        assert found_by and all(by["tool"] and by["rank"] >= 1 and 0 <= by["score"] <= 1 for by in found_by)
    moved = [piece for piece in found.evidence if piece["changes"] == ["moved"]]
    for piece in moved:
        one, two = piece["sides"]
        assert (one["rank"], one["score"]) != (two["rank"], two["score"])
    assert "最先出现的不同：第一版计划" in str(found) and 'lang="zh-Hans"' in found._repr_html_()


def test_what_else_differs_is_said(wb: Workbench, workspace: Path) -> None:
    run = done(wb, ENGLISH)
    fork = run.fork(settings={"max_iterations": 1}, query=CHINESE)
    found = wb.compare(run, fork)
    assert {(c["what"], c["name"]) for c in found.caveats} == {("settings", "max_iterations"), ("question", "")}
    assert found.parts["where"] == "question"
    assert "max_iterations differs · A 3 · B 1" in str(found)
    paused = wb.ask(ENGLISH, kb="film", review=["reflect"])
    assert [(c["what"], c["name"]) for c in wb.compare(run, paused).caveats] == [("unfinished", "B")]


def test_another_state_of_the_knowledge_base_is_said(tmp_path: Path) -> None:
    corpus = tmp_path / "notes.md"
    with Workbench.open(tmp_path / "ws", embedding_model="hashing") as wb:
        corpus.write_text("# Tea\n\nTea grows in Fujian. It likes rain.\n")
        wb.add_knowledge("notes", [corpus])
        one = wb.ask("Where does tea grow?", kb="notes")
        corpus.write_text("# Tea\n\nTea grows in Yunnan. It likes rain.\n")
        wb.add_knowledge("notes", [corpus])
        two = wb.ask("Where does tea grow?", kb="notes", session="other")
        found = wb.compare(one, two)
    assert [(c["what"], c["name"]) for c in found.caveats] == [("knowledge", "notes")]
    assert (found.parts["where"], found.parts["name"]) == ("knowledge", "notes")
    assert "the content of the knowledge base notes differs" in str(found)
    assert any(piece["text_differs"] for piece in found.evidence)


def test_two_to_four_runs(wb: Workbench) -> None:
    run = done(wb, CHINESE)
    with pytest.raises(RunError, match="this is 1"):
        wb.compare(run)
    with pytest.raises(RunError, match="this is 5"):
        wb.compare(run, run, run, run, run)
    with pytest.raises(UnknownRun):
        wb.compare(run, "nobody")
    step = run.plan.steps[0]
    forks = [run.fork(plan=run.plans[0]["plan"].without(s.step_id)) for s in run.plan.steps[:2]]
    found = wb.compare(run, *forks, run)
    frame = found.to_frame()
    assert len(found.runs) == 4 == len(LETTERS)
    assert [f"change_{letter}" for letter in "BCD"] == [c for c in frame.columns if c.startswith("change_")]
    assert set(frame["change_D"]) <= {"same", ""}
    assert step.step_id in found.plan[0]["removed"]
    assert json.loads(json.dumps(found.to_dict())) == found.to_dict()


def hostile_run(**changes):
    run = handmade.run(**changes)
    run.options, run.query, run.state["kb_prefix"] = {}, HOSTILE, "film"
    run.message, run.run_id = f"{HOSTILE} {changes.get('n', '')}", HOSTILE
    run.plans, run.evidence = [{"plan": run.plan}], run.state["merged"]["retrieval_results"]
    run.tape, run._results_by_step = list, dict
    for piece in run.evidence:
        piece["metadata"]["title"] = HOSTILE
    for decision in run.decisions:
        decision["note"] = decision["who"] = HOSTILE
    return run


def test_hostile_text_stays_text() -> None:
    one, two = hostile_run(), hostile_run()
    two.answer = f"{HOSTILE}. {one.answer}"
    two.plan = two.plans[0]["plan"] = two.plans[0]["plan"].replace("step_2_compare", objective=HOSTILE)
    two.evidence = two.evidence[1:]
    found = compared([one, two])
    page, text = found._repr_html_(), str(found)
    tags = read(page)
    assert not tags.tags & {"script", "img", "iframe"} and not {a for a in tags.attributes if a.startswith("on")}
    assert "&lt;script&gt;" in page and "\x1b" not in page + text and "\u202e" not in page + text
    assert [c for c in found.caveats if c["what"] == "no_tape"]


def test_a_fork_never_changes_its_original(wb: Workbench, workspace: Path) -> None:
    run = done(wb, CHINESE, review=["plan", "reflect"])
    wb._work.loop.settle(10)  # its checkpoints go once it has ended
    before = rows_of(workspace, run.run_id)
    step = run.plan.steps[0]
    forks = [
        run.fork(plan=run.plans[0]["plan"].replace(step.step_id, objective="别的"), mismatch="rules", rest="rules"),
        run.fork(decision={"action": "reject"}, at="1-reflect"),
        run.fork(settings={"max_iterations": 1}, mismatch="rules", rest="rules"),
        run.fork(at="1-reflect").approve(),
    ]
    assert [fork.status for fork in forks] == ["done"] * 4
    wb.compare(run, *forks[:3])
    assert rows_of(workspace, run.run_id) == before


def test_the_commands(workspace: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("WORKBENCH_WORKSPACE", str(workspace))

    def cli(*words: str, code: int = 0) -> str:
        finished = CliRunner().invoke(main, words)
        assert finished.exit_code == code, finished.output
        return finished.stdout if code in (0, 3) else finished.stderr

    first = json.loads(cli("ask", ENGLISH, "--kb", "film", "--review", "reflect", "--json", code=3))["run_id"]
    cli("resume", first, "--approve")
    plan = json.loads(cli("show", first, "--json"))["plan"]
    forked = json.loads(cli("fork", first, "--decision", "reject", "--set", "max_iterations=2", "--json"))
    assert forked["decisions"][-1]["action"] == "reject"
    second = forked["run_id"]
    compared = json.loads(cli("compare", first, second, "--json"))
    assert compared["parts"]["where"] == "settings" and [r["run_id"] for r in compared["runs"]] == [first, second]
    assert "max_iterations" in cli("compare", first, second)
    assert [run["run_id"] for run in json.loads(cli("runs", first, "--json"))["runs"]] == [second]
    assert "decision, settings" in " ".join(cli("runs", first).split())
    assert json.loads(cli("fork", first, "--at", "0-reflect", "--json", code=3))["review"]["review_id"] == "0-reflect"
    place = f"{plan['steps'][0]['step_id']}/1"
    by_hand = json.loads(cli("fork", first, "--at", place, "--result", "Memento, by hand.", "--json", code=3))
    assert by_hand["records"][0]["output_summary"]["evidence_count"] == 1
    plan["steps"][0]["objective"] = "other words"
    file = tmp_path / "plan.json"
    file.write_text(json.dumps(plan))
    forked = json.loads(cli("fork", first, "--plan", str(file), "--json"))
    assert forked["plan"]["steps"][0]["objective"] == "other words"
    decided = tmp_path / "decision.json"
    decided.write_text(json.dumps({"action": "reject", "note": "from a file"}))
    assert (
        json.loads(cli("fork", first, "--decision", str(decided), "--json"))["decisions"][-1]["note"] == "from a file"
    )
    for words, said in (
        (("fork", first, "--decision", "perhaps"), "neither approve nor reject"),
        (("fork", first, "--set", "max_iterations"), "Write it as field=value"),
        (("export", first, str(tmp_path / "run.tar")), "must end in .zip"),
    ):
        assert said in cli(*words, code=2)
    asked_nobody = json.loads(cli("ask", ENGLISH, "--kb", "film", "--json"))["run_id"]
    paused = json.loads(cli("fork", asked_nobody, "--review", "plan,reflect", "--json", code=3))
    assert paused["review"]["point"] == "plan"
    assert "No review point" in cli("fork", first, "--at", "9-plan", code=1)
