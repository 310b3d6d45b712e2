"""Asking as of a date: a filter over typed fields, which acts only where a date is asked."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from workbench import Workbench
from workbench.cli import main
from workbench.errors import RunError
from workbench.knowledge.dated import dated, question_dates

ROWS = [
    {
        "id": "amsel", "title": "Head: Amsel", "text": "Ruth Amsel heads the mill.", "valid_from": "1994",
        "valid_to": "2001", "kiln": "east",
    },
    {"id": "brandt", "title": "Head: Brandt", "text": "Otto Brandt heads the mill.", "valid_from": "2002"},
    {"id": "mill", "title": "The mill", "text": "The mill has two stones and grinds rye."},
    {"id": "calder", "title": "Head: Calder", "text": "Nina Calder heads the mill.", "valid_from": "2011-03-01"},
]  # fmt: skip
for row in ROWS[:2]:
    row["known_since"] = "2020-05-01"
QUESTION = "Who heads the mill?"


@pytest.fixture(scope="module")
def wb(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workbench]:
    folder = tmp_path_factory.mktemp("dated")
    (folder / "heads.jsonl").write_text("\n".join(map(json.dumps, ROWS)), encoding="utf-8")
    with Workbench.open(folder / "ws", embedding_model="hashing", rerank_model="none") as wb:
        wb.add_knowledge("heads", [folder / "heads.jsonl"])
        yield wb


def documents(run: Any) -> set[str]:
    assert run.status == "done", run.error
    results = run.state["merged"]["retrieval_results"]
    return {doc_id for result in results if (doc_id := result["metadata"].get("doc_id"))}


@pytest.mark.parametrize(
    ("as_of", "known", "hidden"),
    [
        ("1990", "", {"amsel", "brandt", "calder"}), ("2001", "", {"brandt", "calder"}),
        ("2001-06", "", {"brandt", "calder"}), ("2002", "", {"amsel", "calder"}), ("2011", "", {"amsel"}),
        ("2011-02", "", {"amsel", "calder"}), ("", "2019", {"amsel", "brandt"}), ("", "2020-05", set()),
        ("2011", "2019", {"amsel", "brandt"}),
    ],
)  # fmt: skip
def test_documents_are_left_out_by_their_typed_dates(wb: Workbench, as_of: str, known: str, hidden: set[str]) -> None:
    base = dated(wb.knowledge.get("heads"), (as_of, known))
    left = {row["id"] for row in ROWS} - hidden
    assert base.hidden == hidden and set(base.select()) == left and base.about()["counts"]["documents"] == len(left)  # type: ignore[attr-defined]
    searches = (base.search("words", "heads mill", 2), base.search("meaning", "heads mill", 2))
    for hits in searches:
        assert len(hits) == min(2, len(left)) and {chunk_id.split("#")[0] for chunk_id, _ in hits} <= left
    values = dict(base.select(count="valid_from"))
    assert set(values) == {str(row["valid_from"]) for row in ROWS if row["id"] in left and "valid_from" in row}


def test_nothing_is_left_out_where_nobody_asks(wb: Workbench) -> None:
    base = wb.knowledge.get("heads")
    assert dated(base, question_dates({})) is base
    run = wb.ask(QUESTION, kb="heads")
    assert documents(run) == {row["id"] for row in ROWS} and "as_of" not in run.to_dict()
    assert "as_of" not in run.to_dict() and "Asked as of" not in run.answer


def test_a_run_sees_what_held_says_so_and_is_replayed_and_forked(wb: Workbench) -> None:
    run = wb.ask(QUESTION, kb="heads", as_of="March 2003")
    assert documents(run) == {"brandt", "mill"} and run.to_dict()["as_of"] == ["2003-03", ""]
    assert run.to_dict()["as_of"] == ["2003-03", ""]
    assert "Otto Brandt" in run.answer and "Nina" not in run.answer
    assert run.answer.endswith(
        "(Asked as of 2003-03: 2 documents are left out by date; documents without a date are kept.)"
    )
    assert wb.replay(run.run_id).answer == run.answer
    later = run.fork(as_of="2012").wait()
    assert documents(later) == {"brandt", "calder", "mill"} and later.to_dict()["as_of"] == ["2012", ""]
    assert documents(run.fork(query="What grinds rye in the mill?").wait()) == {"brandt", "mill"}
    with pytest.raises(RunError, match="no date"):
        wb.ask(QUESTION, as_of="someday")


def test_chinese_is_told_in_chinese(wb: Workbench) -> None:
    answer = wb.ask("谁是 mill 的 head？", kb="heads", known="2019").answer
    assert "没有日期的文档都保留" in answer


def test_the_date_of_the_question_counts_where_no_option_is_given() -> None:
    decision = {"question": {"date_asked": "2003"}}
    assert question_dates({"route_decision": decision}) == ["2003", ""]
    assert question_dates({"route_decision": decision, "dates": ["1999", "2020"]}) == ["1999", "2020"]


def test_one_date_field_says_when_a_document_begins(tmp_path: Path) -> None:
    rows = [
        {"id": str(y), "title": f"News {y}", "text": f"It rained in {y}.", "published": f"{y}-05-01"}
        for y in (2001, 2009)
    ]
    (tmp_path / "news.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    with Workbench.open(tmp_path / "ws", embedding_model="hashing", rerank_model="none") as wb:
        wb.add_knowledge("news", [tmp_path / "news.jsonl"])
        base = wb.knowledge.get("news")
        assert dated(base, ("2005", "")).select() == ["2001"] == dated(base, ("", "2005")).select()


def test_the_command_lists_typed_facts(wb: Workbench) -> None:
    command = ["kb", "facts", "heads", "--as-of", "1999", "--workspace", str(wb.path)]
    (fact,) = json.loads(CliRunner().invoke(main, [*command, "--json"]).stdout)["facts"]
    told = {"document": "Head: Amsel", "doc_id": "amsel", "field": "kiln", "value": "east"}
    assert fact == {**told, "valid_from": "1994", "valid_to": "2001", "known_since": "2020-05-01"}
    assert "east" in CliRunner().invoke(main, command).stdout
    answer = CliRunner().invoke(main, ["ask", QUESTION, "--as-of", "2005", "--json", "--workspace", str(wb.path)])
    assert json.loads(answer.stdout)["as_of"] == ["2005", ""]
