"""Dates in questions: what is read, with which words, and what is said to be unclear."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench.language.dates import read_dates

TODAY = "2026-11-25"

CLEAR = """
in 2021 | in 2021 | eq 2021
the year 2020 | 2020 | eq 2020
before the end of 2019 | before the end of 2019 | le 2019
before 2019 | before 2019 | lt 2019
films before the 1990s | before the 1990s | lt 1990
films after the 1990s | after the 1990s | gt 1999
pre-2000 films | pre-2000 | lt 2000
papers since 2019 with over 2000 citations | since 2019 | ge 2019
films from 2019 | from 2019 | eq 2019
from 2019 onwards | from 2019 onwards | ge 2019
2019 to present | 2019 to present | ge 2019
2021 or later | 2021 or later | ge 2021
not before 2019 | not before 2019 | ge 2019
since the beginning of last year | since the beginning of last year | ge 2025
after March 2020 | after March 2020 | gt 2020-03
events after 1 May 2024 | after 1 May 2024 | gt 2024-05-01
events in June 2024 | in June 2024 | eq 2024-06
until May 2021 | until May 2021 | le 2021-05
by May 2021 | by May 2021 | le 2021-05
no later than June 2020 | no later than June 2020 | le 2020-06
2010 and earlier | 2010 and earlier | le 2010
between March and May 2021 | between March and May 2021 | between 2021-03 2021-05
from 3 to 5 May 2021 | from 3 to 5 May 2021 | between 2021-05-03 2021-05-05
May 3-5, 2021 | May 3-5, 2021 | between 2021-05-03 2021-05-05
between 1 June and 3 July 2020 | between 1 June and 3 July 2020 | between 2020-06-01 2020-07-03
Nov to Feb 2021 | Nov to Feb 2021 | between 2020-11 2021-02
2019-2021 | 2019-2021 | between 2019 2021
the team of 2015–18 | of 2015–18 | between 2015 2018
on 2021-03-05 | on 2021-03-05 | eq 2021-03-05
5th of May, 2021 | 5th of May, 2021 | eq 2021-05-05
17.03.2024 | 17.03.2024 | eq 2024-03-17
17/06/2024 | 17/06/2024 | eq 2024-06-17
03.04.2021 | 03.04.2021 | eq 2021-04-03
03/2021 | 03/2021 | eq 2021-03
the 1990s | the 1990s | between 1990 1999
the nineties | the nineties | between 1990 1999
the '90s | the '90s | between 1990 1999
in the 20th century | in the 20th century | between 1901 2000
first half of 2020 | first half of 2020 | between 2020-01 2020-06
Q3 2021 | Q3 2021 | between 2021-07 2021-09
the third quarter of 2021 | the third quarter of 2021 | between 2021-07 2021-09
the last quarter of 2020 | the last quarter of 2020 | between 2020-10 2020-12
in summer 2020 | in summer 2020 | between 2020-06 2020-08
last month | last month | eq 2026-10
last year's papers | last year's | eq 2025
this year | this year | eq 2026
until yesterday | until yesterday | le 2026-11-24
last week | last week | between 2026-11-16 2026-11-22
last quarter | last quarter | between 2026-07 2026-09
in the second half of last year | in the second half of last year | between 2025-07 2025-12
March of last year | March of last year | eq 2025-03
in the last three years | in the last three years | between 2023-11-25 2026-11-25
past 6 months | past 6 months | between 2026-05-25 2026-11-25
over the past two decades | over the past two decades | between 2006-11-25 2026-11-25
three years ago | three years ago | eq 2023
as of 2003 | as of 2003 | as_of 2003
二〇一五年 | 二〇一五年 | eq 2015
2021 年 3 月 | 2021 年 3 月 | eq 2021-03
２０２１年的论文 | ２０２１年 | eq 2021
2019年之前的论文 | 2019年之前 | lt 2019
2019年底之前 | 2019年底之前 | le 2019
2015年以来 | 2015年以来 | ge 2015
2015年起 | 2015年起 | ge 2015
2020年以后 | 2020年以后 | gt 2020
不晚于2021年5月 | 不晚于2021年5月 | le 2021-05
2021年3月至5月 | 2021年3月至5月 | between 2021-03 2021-05
2021年3-5月 | 2021年3-5月 | between 2021-03 2021-05
2021年3月5日至8日 | 2021年3月5日至8日 | between 2021-03-05 2021-03-08
2019年到2021年之间发表的论文 | 2019年到2021年之间 | between 2019 2021
在2019年和2021年之间 | 在2019年和2021年之间 | between 2019 2021
90年代的电影 | 90年代 | between 1990 1999
上世纪90年代 | 上世纪90年代 | between 1990 1999
二十世纪九十年代 | 二十世纪九十年代 | between 1990 1999
2021年第三季度 | 2021年第三季度 | between 2021-07 2021-09
2020年夏天 | 2020年夏天 | between 2020-06 2020-08
近三年 | 近三年 | between 2023-11-25 2026-11-25
最近两个月 | 最近两个月 | between 2026-09-25 2026-11-25
近半年 | 近半年 | between 2026-05-25 2026-11-25
去年 | 去年 | eq 2025
去年3月 | 去年3月 | eq 2025-03
上个月 | 上个月 | eq 2026-10
今年上半年 | 今年上半年 | between 2026-01 2026-06
本季度 | 本季度 | between 2026-10 2026-12
去年到今年 | 去年到今年 | between 2025 2026
三年前 | 三年前 | eq 2023
截至2003年 | 截至2003年 | as_of 2003
截至去年底 | 截至去年底 | as_of 2025
"""
UNCLEAR = """
the early 2010s | the early 2010s | between 2010 2019
late 2019 | late 2019 | eq 2019
2021年初 | 2021年初 | eq 2021
around 2010 | around 2010 | eq 2010
the 20s | the 20s | between 2020 2029
in March | in March | eq 2026-03
by August | by August | le 2026-08
on May 3 | on May 3 | eq 2026-05-03
3月到5月 | 3月到5月 | between 2026-03 2026-05
5月1日 | 5月1日 | eq 2026-05-01
in Q3 | in Q3 | between 2026-07 2026-09
2021 to 2019 | 2021 to 2019 | between 2021 2019
03/04/2021 | 03/04/2021 | eq
winter 2020 | winter 2020 | eq
last Friday | last Friday | eq
last summer | last summer | eq
in recent years | in recent years | eq
a few years ago | a few years ago | eq
the first three months of 2020 | the first three months of 2020 | eq
近年来 | 近年来 | eq
几年前 | 几年前 | eq
上周三 | 上周三 | eq
"""
NOT_DATES = [
    "the turn of the century",
    "2001 people",
    "over 2000 citations",
    "at least 1999",
    "2000 words",
    "$2000",
    "2000元",
    "2,000",
    '"2012" by Emmerich',
    "《2012》",
    "people in their 90s",
    "May I ask?",
    "Theresa May",
    "March on Washington",
    "the first half of the film",
    "最近的电影",
    "五月天的歌",
    "GPT-4",
    "1,200 EUR",
    "chapter 3",
]


def rows(table: str) -> list[list[str]]:
    return [[cell.strip() for cell in row.split("|")] for row in table.strip().splitlines()]


def read(question: str, today: str) -> tuple[str, str, bool]:
    (span,) = read_dates(question, today)
    bounds = [span.low] if span.low == span.high else [span.low, span.high]
    return question[span.start : span.end], " ".join([span.op, *filter(None, bounds)]), span.unclear


@pytest.mark.parametrize(("question", "words", "date"), rows(CLEAR))
def test_a_date_is_read(question: str, words: str, date: str) -> None:
    assert read(question, TODAY) == (words, date, False)


@pytest.mark.parametrize(("question", "words", "date"), rows(UNCLEAR))
def test_a_date_that_may_be_another_is_unclear(question: str, words: str, date: str) -> None:
    assert read(question, TODAY) == (words, date, True)


@pytest.mark.parametrize("question", NOT_DATES)
def test_what_only_looks_like_a_date_is_left(question: str) -> None:
    assert read_dates(question, TODAY) == []


@pytest.mark.parametrize(
    "question", ["last month", "近三年", "去年", "three years ago", "in the last week", "3月到5月"]
)
def test_without_a_day_what_is_relative_is_unclear(question: str) -> None:
    (span,) = read_dates(question)
    assert (span.low, span.high, span.unclear) == ("", "", True)


def test_two_dates_are_two() -> None:
    assert [span.low for span in read_dates("in 2019, 2020 and 2021")] == ["2019", "2020", "2021"]
    assert [span.op for span in read_dates("after 2010 and before 2015")] == ["gt", "lt"]


PIECES = [question for question, *_ in rows(CLEAR + UNCLEAR)]
PIECES += [
    *"年月日前-,.'\"《 \ue000∼⊢é一",
    "to",
    "and the",
    "İ",
    "半年",
]


@settings(max_examples=60, deadline=None)
@given(
    st.one_of(st.text(), st.lists(st.sampled_from(PIECES), max_size=8).map("".join)),
    st.sampled_from(["", TODAY, "2024-02-29"]),
)
def test_any_text_is_read_and_spans_are_within(text: str, today: str) -> None:
    end = 0
    for span in read_dates(text, today):
        assert end <= span.start < span.end <= len(text)
        assert span.unclear or span.low or span.high
        end = span.end


@pytest.mark.parametrize("piece", ["in 2021 ", "9", "三", "《", "the last few ", "May 3-5, ", "年", " to ", "not "])
def test_a_long_text_takes_linear_time(piece: str) -> None:
    begin = time.perf_counter()
    read_dates((piece * 3000)[:3000], TODAY)
    assert time.perf_counter() - begin < 1.5
