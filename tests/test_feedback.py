"""What people think of answers: kept with the answer, one verdict a person, read back as labels."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from workbench.cli import main
from workbench.errors import RunError
from workbench.session import Workbench

CORE = {"embedding_model": "hashing", "rerank_model": "none"}
QUESTION = "When was the Aldermoor kiln built?"


@pytest.fixture
def wb(tmp_path: Path) -> Iterator[Workbench]:
    (tmp_path / "kiln.md").write_text("# Kiln\n\nThe Aldermoor kiln was built in 1993.\n", encoding="utf-8")
    with Workbench.open(tmp_path / "w", **CORE) as opened:
        opened.add_knowledge("notes", [tmp_path / "kiln.md"])
        yield opened


@pytest.fixture
def run(wb: Workbench) -> Any:
    return wb.ask(QUESTION, kb="notes", session="kilns", user="ann")


def test_each_person_has_one_verdict_and_the_newest_holds(wb, run) -> None:
    assert wb.feedback(run=run.run_id) == [] == wb.feedback()
    run.feedback(True, "zuerst\x00", arm="a").feedback(False, "too short", who="bob", hard=3, seen=None)
    assert run.feedback(False, "短", arm="b") is run
    bob, ann = wb.feedback(run=run.run_id)
    assert (bob["who"], bob["good"], bob["note"], bob["labels"]) == (
        "bob",
        False,
        "too short",
        {"hard": 3, "seen": None},
    )
    assert (ann["who"], ann["good"], ann["note"], ann["labels"]) == ("ann", False, "短", {"arm": "b"})
    assert (ann["run_id"], ann["question"], ann["agent_type"]) == (run.run_id, QUESTION, "fusion_agent")
    assert (ann["user_id"], ann["session_id"], ann["message_id"]) == (
        "ann",
        "kilns",
        wb.messages("kilns", "ann")[-1]["id"],
    )
    assert ann["when"] > bob["when"]
    run.feedback(None)
    assert [one["who"] for one in wb.feedback(run=run.run_id)] == ["bob"]


def test_it_is_a_table_with_a_column_for_each_label(wb, run) -> None:
    run.feedback(True, "<b>", arm="a")
    wb.ask("hello", user="bob").feedback(False, topic="talk")
    table = wb.feedback().to_frame()
    assert list(table["good"]) == [True, False] and list(table["arm"].dropna()) == ["a"]
    assert list(table["agent_type"]) == ["fusion_agent", ""] and list(table["topic"].dropna()) == ["talk"]
    assert "&lt;b&gt;" in wb.feedback()._repr_html_() and "<b>" not in wb.feedback()._repr_html_()
    assert [one["user_id"] for one in wb.feedback(user="bob")] == ["bob"]
    assert wb.feedback(run=run.run_id) == wb.feedback(session="kilns") == wb.feedback(run=run.run_id) != []
    assert list(wb.feedback(user="eve").to_frame().columns)[:3] == ["run_id", "good", "note"]


def test_ratings_are_counted_by_kind_of_answer_and_agent(wb, run, tmp_path) -> None:
    run.feedback(True).feedback(False, who="bob")
    wb.ask(QUESTION, kb="notes", worker="notes:naive_rag_agent").feedback(True)
    ratings = wb.feedback().ratings()
    by_agent = {row["agent_type"]: row for row in ratings}
    kind = run.state["answer_kind"]
    assert by_agent["fusion_agent"] == {"answer_kind": kind, "agent_type": "fusion_agent", "good": 1, "bad": 1} and kind
    assert (by_agent["naive_rag_agent"]["good"], by_agent["naive_rag_agent"]["bad"]) == (1, 0)
    told = CliRunner().invoke(main, ["feedback", "--workspace", str(tmp_path / "w"), "--json"])
    assert json.loads(told.output)["ratings"] == ratings


def test_a_fork_and_a_replay_are_judged_apart_from_their_origin(wb, run) -> None:
    run.feedback(True)
    fork, replay = run.fork(), wb.replay(run.run_id)
    assert wb.feedback(run=fork.run_id) == wb.feedback(run=replay.run_id) == []
    fork.feedback(False, "the fork")
    assert [one["good"] for one in wb.feedback(run=run.run_id)] == [True]
    assert [(one["run_id"], one["session_id"]) for one in wb.feedback(run=fork.run_id)] == [
        (fork.run_id, fork.session_id)
    ]
    assert len(wb.feedback()) == 2 and len(wb.feedback(session="kilns")) == 1


def test_it_goes_with_the_conversation_and_outlives_the_run(wb, run) -> None:
    run.feedback(True)
    wb.runs.remove(run.run_id)
    assert [one["question"] for one in wb.feedback()] == [QUESTION]
    wb.clear("kilns", "ann")
    assert wb.feedback() == []


def test_where_there_is_no_answer_nothing_is_kept(wb, run, tmp_path) -> None:
    paused = wb.ask(QUESTION, kb="notes", review="plan")
    secret = wb.ask(QUESTION, kb="notes", incognito=True)
    capsule = wb.export(run.run_id, tmp_path / "run.zip")
    with Workbench.open(tmp_path / "other", **CORE) as other:
        brought = other.import_capsule(capsule)
        with pytest.raises(RunError, match=r"no answer in a conversation here.*brought from another workspace"):
            brought.feedback(True)
    wb.clear("kilns", "ann")
    for judged, said in ((paused, "is paused"), (secret, "incognito"), (run, "that was cleared")):
        with pytest.raises(RunError, match=said):
            judged.feedback(True)
    assert wb.feedback() == []


def test_what_does_not_fit_is_refused(wb, run) -> None:
    for given, said in (
        ({"good": "yes"}, "good is 'yes'. Give True, False, or None"),
        ({"note": 7}, "note is 7. Give text"),
        ({"note": "x" * 4_001}, "note has 4,001 characters; 4,000"),
        ({"question": "x"}, "cannot be called 'question'"),
        ({"arm": [1]}, r"label 'arm' is \[1\]"),
        ({"arm": float("nan")}, "label 'arm' is nan"),
        ({f"l{n}": n for n in range(51)}, "51 labels; 50"),
    ):
        with pytest.raises(RunError, match=said):
            run.feedback(**{"good": True, **given})
    assert wb.feedback(run=run.run_id) == []


def test_in_the_terminal(wb, run) -> None:
    def cli(*words: str) -> Any:
        return CliRunner().invoke(main, ["feedback", *words, "--workspace", str(wb.path)])

    assert "Nothing was said yet" in cli().stderr
    kept = json.loads(cli(run.run_id, "--bad", "--note", "太短\x1b[2J", "--json").stdout)["feedback"]
    assert [one["good"] for one in kept] == [False]
    shown = cli()
    assert shown.exit_code == 0 and run.run_id in shown.stdout and "太短" in shown.stdout and "\x1b" not in shown.stdout
    assert (
        json.loads(cli("--json").stdout)["feedback"] == kept == json.loads(cli(run.run_id, "--json").stdout)["feedback"]
    )
    for wrong in (["--good"], [run.run_id, "--good", "--withdraw"], [run.run_id, "--note", "x"]):
        assert cli(*wrong).exit_code == 2
    assert "Unknown run 'nobody'" in cli("nobody", "--good").stderr
    assert cli(run.run_id, "--withdraw").exit_code == 0 and wb.feedback(run=run.run_id) == []
