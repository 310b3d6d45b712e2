"""Dates and numbers: read in questions, and by which documents are left out."""

import json
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.blind import rows
from tests.cases import tables
from tests.shelves import CORPORA, jsonl, workbench
from workbench import Workbench
from workbench.errors import RunError
from workbench.knowledge.dated import dated, question_dates
from workbench.language.dates_and_numbers import convert, read_dates, read_limit, read_numbers
from workbench.text import amount

TODAY = "2026-11-25"
CASES = tables("dates_and_numbers")
VALUES: list[tuple[Any, Any]] = [(7, (7.0, "")), (True, None), (None, None)]
VALUES += [(value, (float(number), unit) if number else None) for value, number, unit in CASES["typed"]]

READ = [
    (kind, row[0], row[1] if len(row) == 3 else row[0], row[-1], unclear)
    for kind in ("date", "number")
    for unclear in (False, True)
    for row in CASES[f"{'unclear_' * unclear}{kind}s"]
]


def spans(kind: str, text: str, today: str = TODAY) -> list[Any]:
    return [*(read_dates(text, today) if kind == "date" else read_numbers(text))]


@pytest.mark.parametrize(("kind", "question", "words", "value", "unclear"), READ)
def test_what_is_certain_is_read_and_what_may_be_another_is_unclear(kind, question, words, value, unclear) -> None:
    (span,) = spans(kind, question)
    bounds = [span.low] if span.low == span.high else [span.low, span.high]
    texts = [bound if isinstance(bound, str) else f"{bound:.12g}" for bound in bounds if bound not in (None, "")]
    read = " ".join([span.op, *texts, getattr(span, "unit", "")]).strip()
    assert (question[span.start : span.end], read, span.unclear) == (words, value, unclear)


@pytest.mark.parametrize("kind", ["date", "number"])
def test_what_only_looks_like_one_is_left(kind: str) -> None:
    assert [case for (case,) in CASES[f"not_{kind}s"] if spans(kind, case)] == []


@pytest.mark.parametrize(("question", "limit"), CASES["limits"])
def test_how_many_are_asked_for(question: str, limit: str) -> None:
    assert (read_limit(question) or (None,))[-1] == (int(limit) if limit else None)


@pytest.mark.parametrize(("value", "number"), VALUES)
def test_a_typed_value_is_read(value: object, number: tuple[float, str] | None) -> None:
    assert amount(value) == number


def test_units_of_one_kind_are_converted() -> None:
    pairs = ("kg", "g"), ("GB", "MB"), ("hours", "min"), ("公里", "m"), ("s", "h")
    assert [convert(2, *units) for units in pairs] == [2000, 2000, 120, 2000, 2 / 3600]
    assert {convert(2, *units) for units in (("kg", "km"), ("usd", "eur"), ("", ""), ("films", "kg"))} == {None}


def test_without_a_day_what_is_relative_is_unclear_and_two_dates_are_two() -> None:
    for question in ("last month", "近三年", "去年", "three years ago", "in the last week", "3月到5月"):
        (span,) = read_dates(question)
        assert (span.low, span.high, span.unclear) == ("", "", True)
    assert [span.low for span in read_dates("in 2019, 2020 and 2021")] == ["2019", "2020", "2021"]
    assert [span.op for span in read_dates("after 2010 and before 2015")] == ["gt", "lt"]


PIECES = [row[1] for row in READ] + [*"年月日前万十-+,.'()$\"《 \ue000∼⊢≈é一", "to", "and the", "İ", "K", "½", "半年"]


@given(
    st.one_of(st.text(), st.lists(st.sampled_from(PIECES), max_size=8).map("".join)),
    st.sampled_from(["", TODAY, "2024-02-29"]),
)
def test_any_text_is_read_and_spans_are_within(text: str, today: str) -> None:
    for kind in ("date", "number"):
        end = 0
        for span in spans(kind, text, today):
            assert end <= span.start < span.end <= len(text)
            assert span.unclear or span.low not in (None, "") or span.high not in (None, "")
            end = span.end
    assert read_limit(text) is None or text
    amount(text)


SLOW = "in 2021 |9|三|《|the last few |May 3-5, |年| to |not |1,|.1|5 km to |'200|("


@pytest.mark.parametrize("piece", SLOW.split("|"))
def test_a_long_text_takes_linear_time(piece: str) -> None:
    begin, text = time.perf_counter(), (piece * 3000)[:3000]
    spans("date", text), spans("number", text), amount(text)
    assert time.perf_counter() - begin < 3


ROWS = rows(CORPORA / "heads.jsonl")
QUESTION = "Who heads the mill?"


@pytest.fixture(scope="module")
def wb(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workbench]:
    folder = tmp_path_factory.mktemp("dated")
    with Workbench.open(folder / "ws", embedding_model="hashing", rerank_model="none") as wb:
        wb.add_knowledge("heads", [CORPORA / "heads.jsonl"])
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
    for hits in (base.search("words", "heads mill", 2), base.search("meaning", "heads mill", 2)):
        assert len(hits) == min(2, len(left)) and {chunk_id.split("#")[0] for chunk_id, _ in hits} <= left
    values = dict(base.select(count="valid_from"))
    assert set(values) == {str(row["valid_from"]) for row in ROWS if row["id"] in left and "valid_from" in row}


def test_nothing_is_left_out_where_nobody_asks(wb: Workbench) -> None:
    base = wb.knowledge.get("heads")
    assert dated(base, question_dates({})) is base
    run = wb.ask(QUESTION, kb="heads")
    assert documents(run) == {row["id"] for row in ROWS}
    assert "as_of" not in run.to_dict() and "Asked as of" not in run.answer
    decision = {"question": {"date_asked": "2003"}}
    assert question_dates({"route_decision": decision}) == ["2003", ""]
    assert question_dates({"route_decision": decision, "dates": ["1999", "2020"]}) == ["1999", "2020"]


def test_a_run_sees_what_held_says_so_and_is_replayed_and_forked(wb: Workbench) -> None:
    run = wb.ask(QUESTION, kb="heads", as_of="March 2003")
    assert documents(run) == {"brandt", "mill"} and run.to_dict()["as_of"] == ["2003-03", ""]
    assert "Otto Brandt" in run.answer and "Nina" not in run.answer
    said = "(Asked as of 2003-03: 2 documents are left out by date; documents without a date are kept.)"
    assert run.answer.endswith(said)
    assert wb.replay(run.run_id).answer == run.answer
    later = run.fork(as_of="2012").wait()
    assert documents(later) == {"brandt", "calder", "mill"} and later.to_dict()["as_of"] == ["2012", ""]
    assert documents(run.fork(query="What grinds rye in the mill?").wait()) == {"brandt", "mill"}
    with pytest.raises(RunError, match="no date"):
        wb.ask(QUESTION, as_of="someday")
    assert "没有日期的文档都保留" in wb.ask("谁是 mill 的 head？", kb="heads", known="2019").answer


def test_one_date_field_says_when_a_document_begins(wb: Workbench, tmp_path: Path) -> None:
    rows = [{"id": str(y), "text": f"It rained in {y}.", "published": f"{y}-05-01"} for y in (2001, 2009)]
    wb.add_knowledge("news", [jsonl(tmp_path / "news.jsonl", rows)])
    base = wb.knowledge.get("news")
    assert dated(base, ("2005", "")).select() == ["2001"] == dated(base, ("", "2005")).select()


def test_the_command_lists_typed_facts(wb: Workbench) -> None:
    command = partial(workbench, wb.path, "kb", "facts", "heads", "--as-of", "1999")
    (fact,) = json.loads(command("--json").stdout)["facts"]
    told = {"document": "Head: Amsel", "doc_id": "amsel", "field": "kiln", "value": "east"}
    assert fact == {**told, "valid_from": "1994", "valid_to": "2001", "known_since": "2020-05-01"}
    assert "east" in command().stdout
    assert json.loads(workbench(wb.path, "ask", QUESTION, "--as-of", "2005", "--json").stdout)["as_of"] == ["2005", ""]
