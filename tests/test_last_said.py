"""What was last said of a question, by a date: no word of these subjects is known to it."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor

import pytest

from workbench import Workbench
from workbench.knowledge.as_of import AsOf
from workbench.knowledge.last_said import last_said
from workbench.knowledge.times import all_seen, times_of

WARDEN, WARDEN_ZH = "Who is the warden of Tolney Forest?", "托林林场的场长是谁？"
FARE, FARE_ZH = "What does a ferry ticket to Skell cost?", "去斯克岛的船票多少钱？"
SEAT = "Where is the seat of the Mellor Guild?"
CHRONICLE = "Wardens of Tolney Forest\n- 2011: Ida Brook\n- 2004: Paul Senn\n- 1998: Hal Orr"
TABLE = "托林林场历任场长\n\n| 年份 | 场长 |\n|---|---|\n| 1998年—2004年 | 周启明 |\n| 2004年至今 | 单怀德 |"


def asked(question: str, as_of: str, *texts: str, **fields: str) -> list[str]:
    """The values that are given of documents with these texts."""
    around = []
    for n, text in enumerate(texts):
        whole = {"title": "", "text": text, "doc_id": str(n), "chunk_id": f"{n}#0", "fields": fields}
        times = times_of(fields)
        seen = all_seen([text], as_of, times.since, times.now)[0]
        here = {**whole, "text": seen, "times": times._asdict()}
        around.append((here if seen else None, whole))
    held = " ".join(texts).lower()
    found = last_said(question, as_of, lambda _: around, lambda term: 1.0 if term in held else 2.0)
    return [fact["value"] for fact in found]


@pytest.mark.parametrize(
    ("question", "as_of", "right", "texts"),
    [
        (
            WARDEN,
            "2001",
            "Hal Orr",
            ("Hal Orr was warden of Tolney Forest from 1998; in 2004 Paul Senn followed him.",),
        ),
        (WARDEN, "2006", "Paul Senn", ("Hal Orr was warden of Tolney Forest from 1998; in 2004 Paul Senn took over.",)),
        (
            WARDEN,
            "2006",
            "Paul Senn",
            ("Warden of Tolney Forest since 1998, Hal Orr left in 2004, and Paul Senn came.",),
        ),
        (WARDEN, "2001", "Hal Orr", (CHRONICLE,)),
        (WARDEN, "2020", "Ida Brook", (CHRONICLE,)),
        (WARDEN_ZH, "2001", "周启明", (TABLE,)),
        (WARDEN_ZH, "2010", "单怀德", (TABLE,)),
        (
            WARDEN_ZH,
            "2010",
            "单怀德",
            ("1998年起，周启明任托林林场场长。", "2004年，单怀德接替周启明出任托林林场场长。"),
        ),
        (
            FARE,
            "2003",
            "7 crowns",
            ("A ferry ticket to Skell cost 7 crowns from 2001.", "In 2005 it rose to 9 crowns."),
        ),
        (FARE, "2007", "9 crowns", ("A ferry ticket to Skell cost 7 crowns from 2001. In 2005 it rose to 9 crowns.",)),
        (FARE_ZH, "2007", "9元", ("去斯克岛的船票2001年起7元，2005年涨到9元。",)),
        (SEAT, "2010", "Corn Row", ("In 2009 the seat of the Mellor Guild was moved from Salt Street to Corn Row.",)),
    ],
)
def test_the_value_is_what_is_new_in_the_last_statement(
    question: str, as_of: str, right: str, texts: tuple[str, ...]
) -> None:
    (value,) = asked(question, as_of, *texts)
    assert right in value
    others = {"Hal Orr", "Paul Senn", "Ida Brook", "周启明", "单怀德", "7 crowns", "9 crowns", "7元", "Salt Street"}
    assert not [other for other in others - {right} if other in value]


@pytest.mark.parametrize(
    "question", [WARDEN, WARDEN_ZH, "Why did Hal Orr leave?", "Compare the two.", "托林林场怎么走？"]
)
def test_nothing_is_given_before_it_began_or_where_nothing_like_it_is_asked(question: str) -> None:
    texts = ("Hal Orr has been warden of Tolney Forest since 1998.", "1998年起，周启明任托林林场场长。")
    assert asked(question, "1990", *texts) == []


def test_a_deputy_is_another_one() -> None:
    texts = ("Ida Brook has been deputy warden of Tolney Forest since 2015.", "Hal Orr was made warden of it in 1998.")
    assert asked(WARDEN, "2020", texts[0], texts[1].replace(" it ", " Tolney Forest ")) == ["Hal Orr"]
    assert asked("Who is the deputy warden of Tolney Forest?", "2020", *texts) == ["Ida Brook"]


def test_a_plan_gives_way_to_whoever_tells_of_it_later() -> None:
    plan = "Ida Brook is to be warden of Tolney Forest from 2006."
    assert "Ida Brook" in asked(WARDEN, "2008", plan, published="2005")[0]
    before = {"title": "", "doc_id": "0", "chunk_id": "0#0", "fields": {"published": "2005"}, "text": plan}
    later = {
        "title": "",
        "doc_id": "1",
        "chunk_id": "1#0",
        "fields": {"published": "2007"},
        "text": "Nothing came of it: Paul Senn has been warden of Tolney Forest since 2006.",
    }
    around = [({**one, "times": times_of(one["fields"])._asdict()}, one) for one in (before, later)]
    found = last_said(WARDEN, "2008", lambda _: around, lambda term: 1.0)
    assert [fact["value"] for fact in found] == ["Paul Senn"]


def test_what_had_ended_says_so_and_two_documents_that_disagree_are_both_given() -> None:
    text = "Hal Orr was warden of Tolney Forest from 1998 until 2004."
    whole = {"title": "", "text": text, "doc_id": "0", "chunk_id": "0#0", "fields": {}}
    (fact,) = last_said(WARDEN, "2010", lambda _: [(whole, whole)], lambda term: 1.0)
    assert (fact["valid_from"], fact["valid_to"], fact["holds"]) == ("1998", "2004", False)
    texts = [f"In 1998 {who} became warden of Tolney Forest." for who in ("Hal Orr", "Paul Senn")]
    assert {value[:4] for value in asked(WARDEN, "2003", *texts)} == {"Hal ", "Paul"}


def test_threads_that_ask_at_once_get_what_they_asked_for(tmp_path) -> None:
    lines = [f"In {1990 + n} Ada{n} Orr became warden of Forest{n}." for n in range(8)]
    (tmp_path / "notes.jsonl").write_text(
        "\n".join(json.dumps({"id": f"n{n}", "text": text}) for n, text in enumerate(lines)), encoding="utf-8"
    )
    with Workbench.open(tmp_path / "ws") as wb, ThreadPoolExecutor(8) as pool:
        wb.add_knowledge("notes", [tmp_path / "notes.jsonl"])
        base = AsOf(wb.knowledge.get("notes"), "2020")
        asked_of = [n % 8 for n in range(64)]
        told = pool.map(lambda n: base.facts_about(f"Who is the warden of Forest{n}?"), asked_of)
        assert [[fact["value"] for fact in facts] for facts in told] == [[f"Ada{n} Orr"] for n in asked_of]
