"""Dates and numbers: read in questions, and by which documents are left out."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from workbench import Workbench
from workbench.cli import main
from workbench.errors import RunError
from workbench.knowledge.dated import dated, question_dates
from workbench.language.dates_and_numbers import convert, read_dates, read_limit, read_numbers
from workbench.text import amount

TODAY = "2026-11-25"
# Question, the words of the date or number where they are not all of it, and what is read.
DATES = """
in 2021 | eq 2021; the year 2020 | 2020 | eq 2020; before the end of 2019 | le 2019; before 2019 | lt 2019
films before the 1990s | before the 1990s | lt 1990; films after the 1990s | after the 1990s | gt 1999
pre-2000 films | pre-2000 | lt 2000; papers since 2019 with over 2000 citations | since 2019 | ge 2019
films from 2019 | from 2019 | eq 2019; from 2019 onwards | ge 2019; 2019 to present | ge 2019
2021 or later | ge 2021; not before 2019 | ge 2019; since the beginning of last year | ge 2025
after March 2020 | gt 2020-03; events after 1 May 2024 | after 1 May 2024 | gt 2024-05-01
events in June 2024 | in June 2024 | eq 2024-06; until May 2021 | le 2021-05; by May 2021 | le 2021-05
no later than June 2020 | le 2020-06; 2010 and earlier | le 2010
between March and May 2021 | between 2021-03 2021-05; from 3 to 5 May 2021 | between 2021-05-03 2021-05-05
May 3-5, 2021 | between 2021-05-03 2021-05-05; between 1 June and 3 July 2020 | between 2020-06-01 2020-07-03
Nov to Feb 2021 | between 2020-11 2021-02; 2019-2021 | between 2019 2021
the team of 2015–18 | of 2015–18 | between 2015 2018; on 2021-03-05 | eq 2021-03-05
5th of May, 2021 | eq 2021-05-05; 17.03.2024 | eq 2024-03-17; 17/06/2024 | eq 2024-06-17; 03.04.2021 | eq 2021-04-03
03/2021 | eq 2021-03; the 1990s | between 1990 1999; the nineties | between 1990 1999; the '90s | between 1990 1999
in the 20th century | between 1901 2000; first half of 2020 | between 2020-01 2020-06
Q3 2021 | between 2021-07 2021-09; the third quarter of 2021 | between 2021-07 2021-09
the last quarter of 2020 | between 2020-10 2020-12; in summer 2020 | between 2020-06 2020-08
last month | eq 2026-10; last year's papers | last year's | eq 2025; this year | eq 2026
until yesterday | le 2026-11-24; last week | between 2026-11-16 2026-11-22; last quarter | between 2026-07 2026-09
in the second half of last year | between 2025-07 2025-12; March of last year | eq 2025-03
in the last three years | between 2023-11-25 2026-11-25; past 6 months | between 2026-05-25 2026-11-25
over the past two decades | between 2006-11-25 2026-11-25; three years ago | eq 2023; as of 2003 | as_of 2003
二〇一五年 | eq 2015; 2021 年 3 月 | eq 2021-03; ２０２１年的论文 | ２０２１年 | eq 2021
2019年之前的论文 | 2019年之前 | lt 2019; 2019年底之前 | le 2019; 2015年以来 | ge 2015; 2015年起 | ge 2015
2020年以后 | gt 2020; 不晚于2021年5月 | le 2021-05; 2021年3月至5月 | between 2021-03 2021-05
2021年3-5月 | between 2021-03 2021-05; 2021年3月5日至8日 | between 2021-03-05 2021-03-08
2019年到2021年之间发表的论文 | 2019年到2021年之间 | between 2019 2021; 在2019年和2021年之间 | between 2019 2021
90年代的电影 | 90年代 | between 1990 1999; 上世纪90年代 | between 1990 1999; 二十世纪九十年代 | between 1990 1999
2021年第三季度 | between 2021-07 2021-09; 2020年夏天 | between 2020-06 2020-08
近三年 | between 2023-11-25 2026-11-25; 最近两个月 | between 2026-09-25 2026-11-25
近半年 | between 2026-05-25 2026-11-25; 去年 | eq 2025; 去年3月 | eq 2025-03; 上个月 | eq 2026-10
今年上半年 | between 2026-01 2026-06; 本季度 | between 2026-10 2026-12; 去年到今年 | between 2025 2026
三年前 | eq 2023; 截至2003年 | as_of 2003; 截至去年底 | as_of 2025
"""
UNCLEAR_DATES = """
the early 2010s | between 2010 2019; late 2019 | eq 2019; 2021年初 | eq 2021; around 2010 | eq 2010
the 20s | between 2020 2029; in March | eq 2026-03; by August | le 2026-08; on May 3 | eq 2026-05-03
3月到5月 | between 2026-03 2026-05; 5月1日 | eq 2026-05-01; in Q3 | between 2026-07 2026-09
2021 to 2019 | between 2021 2019; 03/04/2021 | eq; winter 2020 | eq; last Friday | eq; last summer | eq
in recent years | eq; a few years ago | eq; the first three months of 2020 | eq; 近年来 | eq; 几年前 | eq
上周三 | eq
"""
NOT_DATES = """
the turn of the century; 2001 people; over 2000 citations; at least 1999; 2000 words; $2000; 2000元; 2,000
"2012" by Emmerich; 《2012》; people in their 90s; May I ask?; Theresa May; March on Washington
the first half of the film; 最近的电影; 五月天的歌; GPT-4; 1,200 EUR; chapter 3
"""
NUMBERS = """
at least 5 | ge 5; at most 1,200 | le 1200; more than 1.200,5 EUR | gt 1200.5 EUR; under 1 200 km | lt 1200 km
over 1'200 | gt 1200; exactly 12 | eq 12; between 3 and 5 | between 3 5
films of 3-5 hours | of 3-5 hours | between 3 5 hours; up to 10 | le 10; no more than 7 | le 7
no fewer than 7 | ge 7; 2,000 or more | ge 2000; 5 kg or less | le 5 kg; 10+ | ge 10; cost >= 30 | >= 30 | ge 30
older than 30 | gt 30; Which grants cost more than 2,000 EUR? | more than 2,000 EUR | gt 2000 EUR
the cost is 12,000 | is 12,000 | eq 12000; 12,00,000 | eq 1200000; 1.200.000 | eq 1200000; -5 °C | eq -5 °C
−5 | eq -5; 1e3 | eq 1000; 3.5k | eq 3500; 1.2 million | eq 1200000; $5m | eq 5000000 $; €1,200 | eq 1200 €
5m | eq 5 m; 3.5 GB | eq 3.5 GB; 98% | eq 98 %; rated 3.5 to 4.5 | 3.5 to 4.5 | between 3.5 4.5
5 million to 8 million | between 5000000 8000000; twelve people | eq 12 people; one hour | eq 1 hour
in 2021 over 2000 people | over 2000 people | gt 2000 people; 不超过10个 | le 10; 至少三个作者 | 至少三个 | ge 3
10个以上 | ge 10; 10人以下 | le 10 人; 90分钟以内 | le 90 分钟; 超过5万元 | gt 50000 元; 不到一百万 | lt 1000000
3到5 | between 3 5; 5到8万元 | between 50000 80000 元; 五到十分钟 | between 5 10 分钟; 超过一千二百米 | gt 1200 米
长于两小时 | gt 2 小时; 3亿 | eq 300000000; 介于3和5之间 | between 3 5
"""
UNCLEAR_NUMBERS = """
(300) | eq -300; 1.200 | eq 1.2; 1,5 km | eq 1.5 km; about 20 | eq 20; 20左右 | eq 20; 大约100页 | eq 100 页
between 5 and 3 | between 5 3
"""
NOT_NUMBERS = """
in 2021; the last three years; GPT-4; v2.0; chapter 3; 10:30; 3/4; 19th; 5G; which one; 一部电影; 第三章; 统一
the three largest grants by amount; top 3; 03/04/2024; 17.06.2024; the 1990s; 《1984》
"""
LIMITS = """
top 3 | 3; three papers | 3; the three largest grants by amount | 3; Which three grants have the lowest amount? | 3
Which two grants have the highest amount? | 2; the largest three | 3; the 5 most cited | 5; recommend 5 films | 5
list ten papers | 10; the first 3 chapters | 3; 前五 | 5; 前10名 | 10; 推荐三部电影 | 3; 最大的三个 | 3
最贵的5部 | 5; 三个最大的项目 | 3; 哪三部 | 3; Which grant has the highest amount? |; at least 5 |
at most 3 authors |; papers with three authors |; the last three years |; films of 90 minutes |; 3 km race |
give me two or three |; How many? |; 前三年 |; 推荐几部 |
"""
VALUES: list[tuple[object, tuple[float, str] | None]] = [
    ("1,200", (1200.0, "")), ("12,000", (12000.0, "")), ("1.200,50 €", (1200.5, "€")), ("1 200", (1200.0, "")),
    ("1'200 CHF", (1200.0, "CHF")), ("(300)", (-300.0, "")), ("−5", (-5.0, "")), ("~3.5k", (3500.0, "")),
    ("35 万元", (350000.0, "元")), ("2 億", (2e8, "")), ("98.5%", (98.5, "%")), ("8/10", (8.0, "/10")), (7, (7.0, "")),
    ("03/04/2024", None), ("17.06.2024", None), ("v2.0", None), ("(300", None), ("3-5", None),
    (True, None), (None, None),
]  # fmt: skip


def cases(table: str) -> list[list[str]]:
    return [
        [cell.strip() for cell in case.split("|")] for line in table.strip().splitlines() for case in line.split(";")
    ]


READ = [
    (kind, row[0], row[1] if len(row) == 3 else row[0], row[-1], unclear)
    for kind, table, unclear in (
        ("date", DATES, False),
        ("date", UNCLEAR_DATES, True),
        ("number", NUMBERS, False),
        ("number", UNCLEAR_NUMBERS, True),
    )
    for row in cases(table)
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


@pytest.mark.parametrize(("kind", "table"), [("date", NOT_DATES), ("number", NOT_NUMBERS)])
def test_what_only_looks_like_one_is_left(kind: str, table: str) -> None:
    assert [case for (case,) in cases(table) if spans(kind, case)] == []


@pytest.mark.parametrize(("question", "limit"), cases(LIMITS))
def test_how_many_are_asked_for(question: str, limit: str) -> None:
    assert read_limit(question) == (int(limit) if limit else None)


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
    (tmp_path / "news.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
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
