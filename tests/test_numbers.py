"""Numbers, limits and units in questions and typed fields."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench.language.numbers import convert, read_limit, read_numbers
from workbench.text import amount

CLEAR = """
at least 5 | at least 5 | ge 5
at most 1,200 | at most 1,200 | le 1200
more than 1.200,5 EUR | more than 1.200,5 EUR | gt 1200.5 EUR
under 1 200 km | under 1 200 km | lt 1200 km
over 1'200 | over 1'200 | gt 1200
exactly 12 | exactly 12 | eq 12
between 3 and 5 | between 3 and 5 | between 3 5
films of 3-5 hours | of 3-5 hours | between 3 5 hours
up to 10 | up to 10 | le 10
no more than 7 | no more than 7 | le 7
no fewer than 7 | no fewer than 7 | ge 7
2,000 or more | 2,000 or more | ge 2000
5 kg or less | 5 kg or less | le 5 kg
10+ | 10+ | ge 10
cost >= 30 | >= 30 | ge 30
older than 30 | older than 30 | gt 30
Which grants cost more than 2,000 EUR? | more than 2,000 EUR | gt 2000 EUR
the cost is 12,000 | is 12,000 | eq 12000
12,00,000 | 12,00,000 | eq 1200000
1.200.000 | 1.200.000 | eq 1200000
-5 °C | -5 °C | eq -5 °C
−5 | −5 | eq -5
1e3 | 1e3 | eq 1000
3.5k | 3.5k | eq 3500
1.2 million | 1.2 million | eq 1200000
$5m | $5m | eq 5000000 $
€1,200 | €1,200 | eq 1200 €
5m | 5m | eq 5 m
3.5 GB | 3.5 GB | eq 3.5 GB
98% | 98% | eq 98 %
rated 3.5 to 4.5 | 3.5 to 4.5 | between 3.5 4.5
5 million to 8 million | 5 million to 8 million | between 5000000 8000000
twelve people | twelve people | eq 12 people
one hour | one hour | eq 1 hour
in 2021 over 2000 people | over 2000 people | gt 2000 people
不超过10个 | 不超过10个 | le 10
至少三个作者 | 至少三个 | ge 3
10个以上 | 10个以上 | ge 10
10人以下 | 10人以下 | le 10 人
90分钟以内 | 90分钟以内 | le 90 分钟
超过5万元 | 超过5万元 | gt 50000 元
不到一百万 | 不到一百万 | lt 1000000
3到5 | 3到5 | between 3 5
5到8万元 | 5到8万元 | between 50000 80000 元
五到十分钟 | 五到十分钟 | between 5 10 分钟
超过一千二百米 | 超过一千二百米 | gt 1200 米
长于两小时 | 长于两小时 | gt 2 小时
3亿 | 3亿 | eq 300000000
介于3和5之间 | 介于3和5之间 | between 3 5
"""
UNCLEAR = """
(300) | (300) | eq -300
1.200 | 1.200 | eq 1.2
1,5 km | 1,5 km | eq 1.5 km
about 20 | about 20 | eq 20
20左右 | 20左右 | eq 20
大约100页 | 大约100页 | eq 100 页
between 5 and 3 | between 5 and 3 | between 5 3
"""
NOT_NUMBERS = [
    "in 2021",
    "the last three years",
    "GPT-4",
    "v2.0",
    "chapter 3",
    "10:30",
    "3/4",
    "19th",
    "5G",
    "which one",
    "一部电影",
    "第三章",
    "统一",
    "the three largest grants by amount",
    "top 3",
    "03/04/2024",
    "17.06.2024",
    "the 1990s",
    "《1984》",
]
LIMITS = """
top 3 | 3
three papers | 3
the three largest grants by amount | 3
Which three grants have the lowest amount? | 3
Which two grants have the highest amount? | 2
the largest three | 3
the 5 most cited | 5
recommend 5 films | 5
list ten papers | 10
the first 3 chapters | 3
前五 | 5
前10名 | 10
推荐三部电影 | 3
最大的三个 | 3
最贵的5部 | 5
三个最大的项目 | 3
哪三部 | 3
Which grant has the highest amount? |
at least 5 |
at most 3 authors |
papers with three authors |
the last three years |
films of 90 minutes |
3 km race |
give me two or three |
How many? |
前三年 |
推荐几部 |
"""
VALUES: list[tuple[object, tuple[float, str] | None]] = [
    ("1,200", (1200.0, "")), ("12,000", (12000.0, "")), ("1.200,50 €", (1200.5, "€")), ("1 200", (1200.0, "")),
    ("1'200 CHF", (1200.0, "CHF")), ("(300)", (-300.0, "")), ("−5", (-5.0, "")), ("~3.5k", (3500.0, "")),
    ("35 万元", (350000.0, "元")), ("2 億", (2e8, "")), ("98.5%", (98.5, "%")), ("8/10", (8.0, "/10")), (7, (7.0, "")),
    ("03/04/2024", None), ("17.06.2024", None), ("v2.0", None), ("(300", None), ("3-5", None),
    (True, None), (None, None),
]  # fmt: skip


def rows(table: str) -> list[list[str]]:
    return [[cell.strip() for cell in row.split("|")] for row in table.strip().splitlines()]


def read(question: str) -> tuple[str, str, bool]:
    (span,) = read_numbers(question)
    bounds = [span.low] if span.low == span.high else [span.low, span.high]
    numbers = [f"{bound:.12g}" for bound in bounds if bound is not None]
    return question[span.start : span.end], " ".join([span.op, *numbers, span.unit]).strip(), span.unclear


@pytest.mark.parametrize(("question", "words", "number"), rows(CLEAR))
def test_a_number_is_read(question: str, words: str, number: str) -> None:
    assert read(question) == (words, number, False)


@pytest.mark.parametrize(("question", "words", "number"), rows(UNCLEAR))
def test_a_number_that_may_be_another_is_unclear(question: str, words: str, number: str) -> None:
    assert read(question) == (words, number, True)


@pytest.mark.parametrize("question", NOT_NUMBERS)
def test_what_only_looks_like_a_number_is_left(question: str) -> None:
    assert read_numbers(question) == []


@pytest.mark.parametrize(("question", "limit"), rows(LIMITS))
def test_how_many_are_asked_for(question: str, limit: str) -> None:
    assert read_limit(question) == (int(limit) if limit else None)


@pytest.mark.parametrize(("value", "number"), VALUES)
def test_a_typed_value_is_read(value: object, number: tuple[float, str] | None) -> None:
    assert amount(value) == number


def test_units_of_one_kind_are_converted() -> None:
    pairs = ("kg", "g"), ("GB", "MB"), ("hours", "min"), ("公里", "m"), ("s", "h")
    assert [convert(2, *units) for units in pairs] == [2000, 2000, 120, 2000, 2 / 3600]
    assert convert(2, "kg", "km") is convert(2, "usd", "eur") is convert(2, "", "") is convert(2, "films", "kg") is None


PIECES = [question for question, *_ in rows(CLEAR + UNCLEAR + LIMITS)]
PIECES += [*"万十-+,.()$《 \ue000≈é一", "to", "and", "K", "½"]


@settings(max_examples=60, deadline=None)
@given(st.one_of(st.text(), st.lists(st.sampled_from(PIECES), max_size=8).map("".join)))
def test_any_text_is_read_and_spans_are_within(text: str) -> None:
    end = 0
    for span in read_numbers(text):
        assert end <= span.start < span.end <= len(text)
        assert span.low is not None or span.high is not None
        end = span.end
    assert read_limit(text) is None or text
    amount(text)


@pytest.mark.parametrize("piece", ["9", "1,", "三", ".1", "at least ", "5 km to ", "'200", "(", "前"])
def test_a_long_text_takes_linear_time(piece: str) -> None:
    begin = time.perf_counter()
    read_numbers((piece * 3000)[:3000])
    amount((piece * 3000)[:3000])
    assert time.perf_counter() - begin < 1.5
