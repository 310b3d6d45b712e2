"""Runs beside one another: what an edit changed, and each figure one number wherever it stands."""

import json
import re
import sqlite3
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests.servers import Reply, only, scripted_server
from tests.shelves import fill
from workbench.cli import main
from workbench.errors import RunError, UnknownRun
from workbench.records.store import TABLES
from workbench.records.timeline import bars, busy_ms, span_ms
from workbench.runs.run import Run
from workbench.runs.stored import found_pieces
from workbench.session import Workbench
from workbench.views.comparison import LETTERS
from workbench.views.labels import Labels, duration_text, labels_for, milliseconds, phase_name, savings_text
from workbench.views.outline import run_html
from workbench.views.run import evidence, head

ENGLISH, CHINESE = "Recommend comedies directed by Ang Lee", "对比《喜宴》和《饮食男女》的风格"


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
        assert "No difference" in str(found)
        assert run.answer.split(" [")[0][2:40] in str(found), "an answer is shown whole"
        found.caveats.append({"what": "tools", "name": "", "values": [["discover"], []]})  # that no step has used
        assert "No difference" in str(found) and "discover" in str(found)


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
    more = [row["step_id"] for row in found.steps if row["sides"][1] is None]
    lost = [piece for piece in found.evidence if piece["changes"] == ["lost"]]
    assert more and lost and not [piece for piece in found.evidence if piece["changes"] == ["gained"]]
    for piece in lost:  # what the stop cost was brought by the steps that it kept from running
        assert {by["step_id"] for by in piece["sides"][0]["found_by"]} <= set(more)
    assert found.cost[1]["calls"] == 0 < found.cost[1]["saved_calls"]
    text = str(found)
    assert "They first differ in decision 1 · reflect" in text and "answered now (you)" in text
    # what the steps did to the context is counted in the recorded runs
    ids = [{by["step_id"] for by in piece["sides"][0]["found_by"]} for piece in found.evidence if piece["sides"][0]]
    step = f"step of A, {found.titles[more[0]]}," if len(more) == 1 else f"{len(more)} extra steps of A"
    added = sum(each <= {*more} for each in ids)
    assert f"{step} added {added} passages to the context" in " ".join(text.split())
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
    assert step.step_id not in str(found), "steps are called by their titles"
    gained = [piece for piece in found.evidence if piece["changes"] == ["gained"]]
    assert gained
    for piece in gained:
        found_by = piece["sides"][1]["found_by"]
        assert found_by and all(by["tool"] and by["rank"] >= 1 and 0 <= by["score"] <= 1 for by in found_by)
    assert "最先出现的不同：第一版计划" in str(found) and 'lang="zh-Hans"' in found._repr_html_()


def test_what_else_differs_is_said(wb: Workbench, workspace: Path) -> None:
    run = done(wb, ENGLISH)
    fork = run.fork(settings={"max_iterations": 1}, query=CHINESE)
    found = wb.compare(run, fork)
    assert {(c["what"], c["name"]) for c in found.caveats} == {("settings", "max_iterations"), ("question", "")}
    assert found.parts["where"] == "question"
    assert "“Passes, at most” differs: A 3" in str(found)
    only = [[row["text"] for row in found.claims if not row["sides"][n]] for n in (1, 0)]
    table = next(block for block in found.blocks() if getattr(block, "title", "").startswith("Answers"))
    for (sign, left, right), a, b in zip(table.rows, *only, strict=False):
        assert sign == "~ differs" and left.startswith(a) and right.startswith(b), "the answers stand side by side"
    paused = wb.ask(ENGLISH, kb="film", review=["reflect"])
    assert [(c["what"], c["name"]) for c in wb.compare(run, paused).caveats] == [("unfinished", "B")]


def test_another_state_of_the_knowledge_base_is_said(tmp_path: Path) -> None:
    with Workbench.open(tmp_path / "ws", embedding_model="hashing") as wb:
        fill(wb, {"Tea": "Tea grows in Fujian. It likes rain."})
        one = wb.ask("Where does tea grow?", kb="notes")
        fill(wb, {"Tea": "Tea grows in Yunnan. It likes rain."})
        found = wb.compare(one, wb.ask("Where does tea grow?", kb="notes", session="other"))
    assert [(c["what"], c["name"]) for c in found.caveats] == [("knowledge", "notes")]
    assert (found.parts["where"], found.parts["name"]) == ("knowledge", "notes")
    assert any(piece["text_differs"] for piece in found.evidence)


def test_two_to_four_runs(wb: Workbench) -> None:
    run = done(wb, CHINESE)
    for count in (1, 5):
        with pytest.raises(RunError, match=f"this is {count}"):
            wb.compare(*[run] * count)
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
    assert "“Passes, at most”: A 3 · B 2" in cli("compare", first, second)
    assert [run["run_id"] for run in json.loads(cli("runs", first, "--json"))["runs"]] == [second]
    listed = " ".join(cli("runs", first).split())
    assert "Passes, at most: 3 → 2" in listed and "answered now" in listed
    assert json.loads(cli("fork", first, "--at", "0-reflect", "--json", code=3))["review"]["review_id"] == "0-reflect"
    place = f"{plan['steps'][0]['step_id']}/1"
    by_hand = json.loads(cli("fork", first, "--at", place, "--result", "Memento, by hand.", "--json", code=3))
    assert by_hand["records"][0]["output_summary"]["evidence_count"] == 1
    plan["steps"][0]["objective"] = "other words"
    (tmp_path / "plan.json").write_text(json.dumps(plan))
    (tmp_path / "decision.json").write_text(json.dumps({"action": "reject", "note": "from a file"}))
    forked = json.loads(cli("fork", first, "--plan", str(tmp_path / "plan.json"), "--json"))
    assert forked["plan"]["steps"][0]["objective"] == "other words"
    forked = json.loads(cli("fork", first, "--decision", str(tmp_path / "decision.json"), "--json"))
    assert forked["decisions"][-1]["note"] == "from a file"
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


QUESTION = "Compare The Wedding Banquet and Eat Drink Man Woman"


def words(html: str) -> str:
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", html)).split())


def agrees(wb: Workbench, run: Run) -> dict[str, Any]:
    """The figures of a run that is done, after every place that shows one of them was seen to show the same."""
    document, labels = run.to_dict(), labels_for(run.message)
    told, evidence_of = document["figures"], found_pieces(run)
    seen = bars(document["log"], document["records"], document["decisions"])
    spans = {name: milliseconds(1000 * seconds) for name, seconds in told["phases"].items()}
    assert sum(told["phases"].values()) == pytest.approx(told["total_s"], abs=1e-5)
    drawn = {name: sum(b.duration_ms for b in seen if b.kind == "phase" and b.name == name) for name in spans}
    assert drawn == pytest.approx({name: 1000 * seconds for name, seconds in told["phases"].items()}, abs=0.1)
    if not told["saved_calls"]:
        assert 1000 * told["total_s"] == pytest.approx(span_ms(seen), abs=0.1)
        assert 1000 * told["phases"]["retrieval"] >= busy_ms(b for b in seen if b.kind == "step")
    took, saved = duration_text(told, labels), savings_text(told, labels) if told["saved_calls"] else ""
    shown = CliRunner().invoke(main, ["show", run.run_id, "--workspace", str(wb.path)], catch_exceptions=False).output
    places = {
        "head": words(head(document, labels).html),
        "page": words(run_html(document)),
        "terminal": " ".join(shown.split()),
    }
    compared = " ".join(str(wb.compare(run, run)).split())
    rows = {"Time without reuse" if told["saved_s"] else "Time": 1000 * (told["total_s"] + told["saved_s"])}
    rows["Time reused"] = 1000 * told["saved_s"]
    rows |= {phase_name(name, Labels("en")).capitalize(): 1000 * told["phases"][name] for name in spans}
    for word, span in rows.items():
        assert not span or f"{word} {milliseconds(span)} {milliseconds(span)} =" in compared, word
    assert [name for name, text in places.items() if took not in text or saved not in text] == []
    title = unescape(head(document, labels).html)
    assert all(f"{phase_name(name, labels)} {span}" in title for name, span in spans.items())
    beside, statistics = wb.compare(run, run).to_dict()["cost"][0], run.state["merged"]["statistics"]
    assert {name: beside[name] for name in told} == told
    assert told["found"] == len(evidence_of) == statistics["total_retrieved"]
    assert told["evidence"] == sum(p["why"] != "duplicate" for p in evidence_of) == statistics["after_dedup"]
    assert told["in_prompt"] == statistics["used"] == sum(p["in_prompt"] for p in evidence_of)
    assert told["cited"] == sum(p["fate"] == "cited" for p in evidence_of)
    counted = [f"{told[n]} {word}" for n, word in (("found", "returned"), ("evidence", "distinct"))]
    counts = " · ".join([*counted, f"{told['in_prompt']} in the context", f"{told['cited']} cited"])
    assert [name for name, text in places.items() if counts not in text] == []
    return told


def test_every_figure_of_runs_and_forks_is_one_number_wherever_it_stands(wb: Workbench) -> None:
    parallel, paused = wb.ask(QUESTION, kb="film"), wb.ask(QUESTION, kb="film", review=["plan", "reflect"])
    while paused.status == "paused":
        paused.approve()
    told = agrees(wb, parallel)
    cited = next(piece for piece in found_pieces(parallel) if piece["fate"] == "cited")
    sentence = "It was directed by Ang Lee"
    chosen: Any = {"chosen": cited["key"], "sentence": f"- {sentence} [1]"}
    drawn = evidence([cited], told, Labels("en"), **chosen).rows[cited["key"]]
    assert "<mark>Ang Lee</mark>" in drawn and "Cited for" in drawn and f"“{sentence}”" in drawn
    assert told["calls"] == sum(r["status"] != "skipped" for r in parallel.records) > 1 and not told["saved_calls"]
    agrees(wb, paused)
    for fork in (paused.fork(decision={"action": "reject"}, at="1-reflect"), wb.replay(parallel.run_id)):
        made = agrees(wb, fork)
        assert made["calls"] == 0 < made["saved_calls"]
    assert made["saved_calls"] == told["calls"]
    assert 1000 * made["saved_s"] == pytest.approx(parallel.state["retrieval_ms"], abs=0.01)


@pytest.mark.parametrize("counted", [True, False], ids=["the server counts", "it does not"])
def test_tokens_are_the_servers_own_count_or_about(workspace: Path, opens: Any, counted: bool) -> None:
    chunks = ["The Wedding Banquet ", "is of 1993 [1]."]
    usage = {"prompt_tokens": 1290, "completion_tokens": 8, "total_tokens": 1298} if counted else None
    with scripted_server(Reply(chunks, usage=usage)) as server:
        model = {"chat_model": "openai:scripted", "chat_base_url": server.url, "chat_api_key": "k"}
        wb = opens(workspace, **model, **only("writer"))
        run = wb.ask(QUESTION, kb="film")
        assert run.answer == "".join(chunks) and agrees(wb, run)["cited"] == 1
        [effect] = [e for e in run.tape() if e.tokens]
        assert effect.counted == counted and (effect.tokens == 1298 or not counted)
        shown = f"Tokens{'' if counted else ', about'} {effect.tokens:,}"
        assert f"{shown} {effect.tokens:,} =" in " ".join(str(wb.compare(run, run)).split())
        assert wb.compare(run, run.fork()).cost[1]["saved_tokens"] == effect.tokens


def test_what_an_unfinished_run_has_not_reached_is_open(wb: Workbench) -> None:
    run = done(wb, QUESTION, review=["plan", "reflect"])
    for at in ("0-plan", "1-reflect"):
        found = wb.compare(run, run.fork(at=at))
        rows = [*found.claims, *found.evidence, *found.steps, *found.decisions]
        assert {"open"} <= {change for row in rows for change in row["changes"]} <= {"open", "same", "gained", "moved"}
        assert next(row["changes"] for row in found.decisions if row["sides"][1] is None) == ["open"]
        text = str(found)
        assert "An answer is still open" in text and "○ open" in text
        assert not [word for word in (" lost\n", "− lost", "removed", "~ changed", "B —") if word in text]
    assert "to be decided again" in text


def test_only_what_was_in_the_context_is_compared(wb: Workbench) -> None:
    run = done(wb, QUESTION)
    first = run.plans[0]["plan"]
    step = first.steps[0]
    fork = run.fork(plan=first.replace(step.step_id, top_k=3))
    found = wb.compare(run, fork)
    for side, each in enumerate((run, fork)):
        used = each.to_dict()["figures"]["in_prompt"]
        assert sum(row["sides"][side] is not None for row in found.evidence) == used < len(each.evidence)
    assert "Evidence in the context · " in str(found)
    assert [row["step_id"] for row in found.steps if not row["same"]] == [step.step_id], "the others found the same"
