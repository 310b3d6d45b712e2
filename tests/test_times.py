"""Facts in time: what texts say of one time, what is seen as of a date, and what was known by then."""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench import Workbench
from workbench.cli import main
from workbench.errors import RunError
from workbench.knowledge import times
from workbench.knowledge.as_of import AsOf
from workbench.knowledge.times import Times, after, as_seen, asked_as_of, clauses, read_facts, settled
from workbench.text import dates
from workbench.tools.registry import ToolRegistry, read_input
from workbench.tools.tool import StepLog

OBSERVATORY = """# Veldt Observatory

The Veldt Observatory watches meteors. In 1994 Ruth Amsel became director of the Veldt Observatory.

Ruth Amsel was succeeded by Otto Brandt in 2002.
Since March 2011, Nina Calder has been director of the Veldt Observatory.

The Veldt Observatory moved to Copper Hill in 1999. From 2015 to 2020 the fee of the Veldt Observatory was 12 euros.
"""
THEATRE = """# 云台剧院

云台剧院演出地方戏。周海自1996年起任云台剧院院长，2004年改由方敏接任。2013年，陆川接替方敏任云台剧院院长。

云台剧院票价2000年为20元，2009年调整为35元。
"""
WHO, WHO_ZH, PRICE_ZH = (
    "Who is the director of the Veldt Observatory?",
    "云台剧院的院长是谁？",
    "云台剧院的票价是多少？",
)
LATER = {"Otto Brandt": "2002", "Nina Calder": "2011-03", "方敏": "2004", "陆川": "2013", "35元": "2009"}


@pytest.fixture(scope="module")
def wb(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workbench]:
    folder = tmp_path_factory.mktemp("times")
    (folder / "observatory.md").write_text(OBSERVATORY, encoding="utf-8")
    (folder / "theatre.md").write_text(THEATRE, encoding="utf-8")
    with Workbench.open(folder / "ws") as wb:
        wb.add_knowledge("dated", [folder / "observatory.md", folder / "theatre.md"])
        yield wb


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("Ann led the Alder Trust until 2005.", ("head", "Ann", "", "2005")),
        ("From 1998 to 2005 Ann was chair of the Alder Trust.", ("chair", "Ann", "1998", "2005")),
        ("Ann has been chair of the Alder Trust since March 2010.", ("chair", "Ann", "2010-03", "")),
        ("The fee of the Alder Trust was raised from 3 to 4 euros in 2001.", ("fee", "4 euros", "2001", "")),
        ("The Alder Trust moved to Elm Road on 3 May 2001.", ("place", "Elm Road", "2001-05-03", "")),
        ("林立自2001年5月起任青木学院院长。", ("院长", "林立", "2001-05", "")),
        ("林立1998年至2005年任青木学院院长。", ("院长", "林立", "1998", "2005")),
        ("青木学院2010年迁至新城路8号。", ("地址", "新城路8号", "2010", "")),
    ],
)
def test_a_sentence_is_read_with_its_times(sentence: str, expected: tuple[str, ...]) -> None:
    (fact,) = read_facts("青木学院" if "青" in sentence else "Alder Trust", sentence, Times(), {})
    assert (fact["attribute"].split()[0], fact["value"], fact["valid_from"], fact["valid_to"]) == expected


def test_who_came_after_whom_is_read_in_both_languages() -> None:
    told = "Ann became head of the Alder Trust in 1998. Ann was succeeded by Bo in 2005."
    facts = settled(read_facts("Alder Trust", told, Times(), {}))
    assert [(f["value"], f["valid_from"], f["valid_to"], f["holds"]) for f in facts] == [
        ("Ann", "1998", "2005", False),
        ("Bo", "2005", "", True),
    ]
    told = "林立曾任青木学院院长至2003年，后改由王平接任。"
    facts = settled(read_facts("青木学院", told, Times(), {}))
    assert [(f["value"], f["valid_from"], f["valid_to"]) for f in facts] == [("林立", "", "2003"), ("王平", "2003", "")]


def test_metadata_gives_times_to_what_a_document_says() -> None:
    fields = {"valid_from": "2001", "valid_to": "2004-06-01", "fee": 12, "known_since": "2002"}
    (fee, whole, chair) = read_facts("Alder", "Ann is chair of Alder.", Times("2001", "2004-06-01", "2002"), fields)
    assert (fee["attribute"], fee["value"], fee["valid_from"], fee["valid_to"]) == ("fee", "12", "2001", "2004-06-01")
    assert (whole["attribute"], whole["value"], whole["valid_to"]) == ("", "Ann is chair of Alder.", "2004-06-01")
    assert (chair["value"], chair["valid_to"], chair["known_since"]) == ("Ann", "2004-06-01", "2002")


@pytest.mark.parametrize(
    ("text", "as_of", "seen"),
    [
        ("Ann led it from 1998 until 2004, when Bo took over.", "2003", "Ann led it from 1998."),
        ("Ann led it from 1998 until 2004, when Bo took over.", "2004", None),
        ("In 2005 Bo came. He built a shed. Elms are tall.", "2003", ""),
        ("Ann came in 1999. In 2005 Bo came. He built a shed.\n\nElms are tall.", "2003", "Ann came in 1999."),
        (
            "Ann came in 1999. Two years later Bo came. Three years later Cy did.",
            "2002",
            "Ann came in 1999. Two years later Bo came.",
        ),
        ("Until 2011 it opened at 9; it now opens at 10.", "2010", ""),
        ("林立1998年任院长。两年后改由王平接任。次年由李强接任。", "2000", "林立1998年任院长。两年后改由王平接任。"),
        ("王平到2011年4月换了名字，后来叫爽柠。", "2010", ""),
        ("林立2001年任院长，2005年由王平接任。", "2003", "林立2001年任院长。"),
        ("1996年到2005年，九点开门；之后改为八点。", "2004", "1996年，九点开门；"),
        ("Bo leads it. Founded in 1990. Bo led it until 2009.", "2003", "Founded in 1990."),
        ("## 2001\nAnn.\n## 2005\nBo.", "2003", "## 2001\nAnn."),
        ("Nothing is dated here. It stays.", "1500", None),
    ],
)
def test_what_begins_later_is_struck_out(text: str, as_of: str, seen: str | None) -> None:
    assert as_seen(text, as_of) == (text if seen is None else seen)


_DATES = st.sampled_from(["1994", "1999", "2002", "2003-06", "2005-01-31", "2011", "2030"])
_SENTENCES = st.sampled_from(
    [
        "In {d} Ann came.",
        "Bo, who left in {d}, had led it since {e}.",
        "From {d} to {e} it was red, and then blue.",
        "王平{d}年任院长，{e}年由林立接任。",
        "Elms are tall.",
        "| {d} | Ann |",
        "Ann ({d}–{e}), Bo (since {e})",
    ]
)


@given(st.lists(st.tuples(_SENTENCES, _DATES, _DATES), max_size=6), _DATES)
@settings(max_examples=150, deadline=None)
def test_no_clause_from_after_the_date_is_left(told: list[tuple[str, str, str]], as_of: str) -> None:
    text = " ".join(sentence.format(d=d[:4], e=e[:4]) for sentence, d, e in told)
    seen = as_seen(text, as_of)
    assert not any(after(date, as_of) for _, _, date in dates(seen)), (text, seen)
    assert as_seen(seen, as_of) == seen


def texts_in(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        yield from (t for one in value.values() for t in texts_in(one))
    elif isinstance(value, list | tuple | set | frozenset):
        yield from (t for one in value for t in texts_in(one))


# How a statement begins, in the words of both languages: "{v}" begins at {d} (or {e} later than {d}, or {n} years on).
DATED = {
    "In {d} {v} became head of the Alder Trust.": "d",
    "{v} has led the Alder Trust since {d}.": "d",
    "From {d} to {e} {v} was head of the Alder Trust.": "d",
    "{v}, who had been abroad, was elected head in {d}.": "d",
    "Nobody led it until {d}, when {v} took over.": "d",
    "Between {d} and {e} the Alder Trust was led by {v}.": "d",
    "The head was Ann Gray until {d}; {v} now leads it.": "d",
    "## {d}\n\n{v} came.": "d",
    "Two years later {v} took over.": "2",
    "The following year it passed to {v}.": "1",
    "A year later {v} took over.": "1",
    "Twelve years later it went to {v}.": "12",
    "十二年后由{v}接任。": "12",
    "Then {v} had it, because of the lectures.": "0",
    "{v} still leads the Alder Trust.": "0",
    "It is currently led by {v}.": "now",
    "The board intends to make {v} head.": "now",
    "{d}年，{v}任桤木会会长。": "d",
    "{v}自{d}年起任桤木会会长。": "d",
    "{d}年至{e}年，桤木会由{v}领导。": "d",
    "会长一职空缺，直到{d}年{v}到任。": "d",
    "林立任会长至{d}年，此后由{v}接任。": "d",
    "到{d}年换了人，名字也换成了{v}。": "d",
    "两年后改由{v}接任。": "2",
    "次年{v}继任。": "1",
    "随后由{v}担任会长。": "0",
    "目前会长是{v}。": "now",
    "理事会拟由{v}任会长。": "now",
}
FREE = ("Elms are tall.", "It rains in Alder.", "桤木会每周三开会。", "树很高。")
ASKED = ("Who is the head of the Alder Trust?", "桤木会的会长是谁？")
_STATEMENTS = st.lists(
    st.tuples(st.sampled_from([*DATED, *FREE]), st.integers(1990, 2020), st.integers(1, 9)), min_size=1, max_size=6
)
_DOCUMENTS = st.lists(
    st.tuples(_STATEMENTS, st.sampled_from(["", "published", "valid_from", "title"]), st.integers(1990, 2020)),
    min_size=1,
    max_size=5,
)


def written(told: list[Any], place: int, kind: str, year: int, begins: dict[str, int]) -> dict[str, str]:
    """A document of these statements; ``begins`` gets from when on each of its values holds."""
    since, lines = year if kind else 0, []
    prior = since
    for n, (sentence, at, more) in enumerate(told):
        value = (
            f"Zor{'abcdef'[n]}{'uvwxy'[place]} Quin"
            if sentence.isascii()
            else f"祁{'甲乙丙丁戊己'[n]}{'春夏秋冬闰'[place]}"
        )
        lines.append(sentence.format(v=value, d=at, e=at + more))
        when = DATED.get(sentence, "")
        own = {"d": at, "now": since or 9999}.get(when, prior + int(when) if when.isdecimal() and prior else 0)
        if own:
            begins[value] = own
        prior = own if when not in ("", "now") and own else prior
        prior = at + more if "{e}" in sentence else prior
    title = f"Note {place}" + (f", {year}" if kind == "title" else "")
    given = {kind: str(year)} if kind in ("published", "valid_from") else {}
    return {"id": f"n{place}", "title": title, "text": " ".join(lines).replace(" ## ", "\n\n## "), **given}


def everything(base: AsOf, names: list[str]) -> Iterator[Any]:
    """What every method and every tool gives: of the text that is asked about, nothing."""
    documents = base._base.select()
    chunks = [p["chunk_id"] for p in base._base.passages_of(documents)]
    yield from (base.passages(chunks), base.passages_of(documents), base.facts(), base.communities(), base.schema())
    yield from (base.notable(9), base.select(), base.values_in(" ".join(names)), base.ways.links_from(chunks))
    yield from (base.ways.shared(chunks, 99), [base.tally(field["name"]) for field in base.schema()])
    yield [base.ways.links_to(one, chunks) for one in documents]
    for node in base._base.graph():
        yield from (base.entity(node), base.relations_of(node), base.communities_of([node]))
        yield base.passages(base.mentions_of(node))
    yield [*base.graph().nodes(data=True)] + [data for *_, data in base.graph().edges(data=True)]
    yield [base.find_entity(name) for name in names]
    for query in ASKED:
        hits = [*base.keyword_search(query, 9), *base.vector_search(query, 9)]
        yield from (base.facts_about(query), base.passages([chunk_id for chunk_id, _ in hits]))
        for tool in ToolRegistry().values():
            yield asyncio.run(tool(read_input(tool, {"query": query}), base, StepLog())).model_dump()


@given(_DOCUMENTS, st.lists(st.integers(1988, 2024), min_size=2, max_size=2))
@settings(max_examples=6, deadline=None)
def test_nothing_that_begins_later_comes_back_from_anywhere(documents: list[Any], asked: list[int]) -> None:
    begins: dict[str, int] = {}
    rows = [written(told, n, kind, year, begins) for n, (told, kind, year) in enumerate(documents)]
    with tempfile.TemporaryDirectory() as folder, Workbench.open(Path(folder) / "ws") as wb:
        (Path(folder) / "notes.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
        wb.add_knowledge("notes", [Path(folder) / "notes.jsonl"])
        for year in asked:
            base = AsOf(wb.knowledge.get("notes"), str(year))
            for given_back in everything(base, [*begins]):
                for text in texts_in(given_back):
                    late = [(value, at, text) for value, at in begins.items() if at > year and value in text]
                    assert not late, (year, rows)


@given(_DOCUMENTS, st.integers(1988, 2024))
@settings(max_examples=300, deadline=None)
def test_no_text_tells_what_begins_later(documents: list[Any], year: int) -> None:
    for n, (told, kind, at) in enumerate(documents):
        begins: dict[str, int] = {}
        row = written(told, n, kind, at, begins)
        seen = as_seen(row["text"], str(year), str(at) if kind else "", str(at) if kind else "")
        assert not [(value, one) for value, one in begins.items() if one > year and value in seen], (row, seen)


@pytest.mark.parametrize("as_of", ["1995", "1997", "2003", "2006", "2012"])
def test_no_tool_and_no_method_sees_what_is_later(wb: Workbench, as_of: str) -> None:
    base = AsOf(wb.knowledge.get("dated"), as_of)
    chunks = [p["chunk_id"] for p in wb.knowledge.get("dated").passages_of(base.select())]
    told: list[Any] = [base.passages(chunks), base.facts(), base.communities(), base.ways.links_from(chunks)]
    told += [base.ways.shared(chunks, 10), [base.relations_of(m["entity_id"]) for m in base.link(f"{WHO} {WHO_ZH}")]]
    told += [[data.get("sentence") for *_, data in base.graph().edges(data=True)]]
    for query in (WHO, WHO_ZH, PRICE_ZH):
        told += [base.facts_about(query), base.passages([i for i, _ in base.keyword_search(query, 5)])]
        told += [base.passages([i for i, _ in base.vector_search(query, 5)])]
        for tool in ToolRegistry().values():
            if tool.name in ("naive_search", "keyword_search", "local_search", "hybrid_search", "temporal_search"):
                found = tool.function(read_input(tool, {"query": query}), base, StepLog())  # type: ignore[attr-defined]
                told.append([one["evidence"] for one in found.model_dump()["results"]])
    later = [
        (value, text) for text in texts_in(told) for value, at in LATER.items() if after(at, as_of) and value in text
    ]
    assert not later
    assert len(list(texts_in(told))) > 3


@pytest.mark.parametrize(
    ("question", "as_of", "right"),
    [
        (WHO, "1997", "Ruth Amsel"),
        (WHO, "2005", "Otto Brandt"),
        (WHO, "", "Nina Calder"),
        (f"As of 2005: {WHO}", "", "Otto Brandt"),
        (WHO_ZH, "2000", "周海"),
        (WHO_ZH, "2010", "方敏"),
        (f"截至2003年，{WHO_ZH}", "", "周海"),
        (WHO_ZH, "", "陆川"),
        (PRICE_ZH, "2005", "20 元"),
        (PRICE_ZH, "2012", "35 元"),
    ],
)
def test_the_answer_is_what_held_then(wb: Workbench, question: str, as_of: str, right: str) -> None:
    run = wb.ask(question, as_of=as_of)
    people = {"Ruth Amsel", "Otto Brandt", "Nina Calder", "周海", "方敏", "陆川", "20 元", "35 元"}
    assert {name for name in people if name in str(run.answer)} == {right}
    assert run.as_of[0] == (as_of or asked_as_of(question)[0] or run.created_at[:10])
    assert run.to_dict()["as_of"] == run.as_of
    assert run.as_of[0] in run._repr_html_() if hasattr(run, "_repr_html_") else True


def test_a_base_without_times_has_no_date_in_play(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.md").write_text("# Elm\n\nThe elm is a tall tree.", encoding="utf-8")
    with Workbench.open(tmp_path / "ws") as wb:
        wb.add_knowledge("trees", [tmp_path / "a.md"])
        with monkeypatch.context() as patched:
            patched.delattr(times, "kept")  # a question of no date reads no facts: it has to cost nothing
            run = wb.ask("What is the elm?")
        assert run.as_of == [] and not wb.knowledge.get("trees").superseding
        assert "as_of" not in run.to_dict()
        assert not any(step.tool == "temporal_search" for step in run.plan.steps)
        found = wb.ask("What is the elm?", as_of="1900")
        assert found.answer == run.answer


def test_last_months_run_sees_last_months_facts(tmp_path: Path) -> None:
    def write(name: str, since: str, who: str, began: str) -> None:
        told = f"---\nknown_since: {since}\n---\n# Alder Trust\n\nIn {began} {who} became chair of the Alder Trust.\n"
        (tmp_path / "notes" / name).write_text(told, encoding="utf-8")

    (tmp_path / "notes").mkdir()
    for tree in ("elm", "oak", "ash", "fir", "yew"):
        (tmp_path / "notes" / f"{tree}.md").write_text(f"# {tree}\n\nThe {tree} is a tree.", encoding="utf-8")
    question = "Who is chair of the Alder Trust?"
    write("a.md", "2026-09-01", "Ann Oram", "1998")
    with Workbench.open(tmp_path / "ws") as wb:
        wb.add_knowledge("notes", [tmp_path / "notes"])
        then = wb.ask(question, as_of="2026-10-24")
        write("b.md", "2026-11-01", "Bo Lunt", "2005")
        wb.add_knowledge("notes", [tmp_path / "notes"])
        assert wb.replay(then.run_id, corpus="tape").answer == then.answer
        assert "Ann Oram" in str(then.answer)
        assert "Ann Oram" in str(wb.ask(question, known="2026-10-24").answer)
        now = wb.ask(question)
        assert "Bo Lunt" in str(now.answer)
        assert "Ann Oram" not in str(now.answer)
        assert "Ann Oram" in str(now.fork(as_of="2001").answer)


def test_contradictions_are_kept_and_listed_by_source(tmp_path: Path) -> None:
    for name, who in (("a", "Ann Oram"), ("b", "Bo Lunt")):
        (tmp_path / f"{name}.md").write_text(f"# Note {name}\n\nIn 1998 {who} became chair of the Alder Trust.\n")
    with Workbench.open(tmp_path / "ws") as wb:
        wb.add_knowledge("notes", [tmp_path / "a.md", tmp_path / "b.md"])
        ((one, other),) = wb.knowledge.get("notes").contradictions("2003")
        assert {one["value"], other["value"]} == {"Ann Oram", "Bo Lunt"}
        assert one["doc_id"] != other["doc_id"]
        answer = str(wb.ask("Who is chair of the Alder Trust?", as_of="2003").answer)
        assert "Ann Oram" in answer
        assert "Bo Lunt" in answer
    command = ["kb", "facts", "notes", "--as-of", "2003", "--contradictions", "--workspace", str(tmp_path / "ws")]
    told = CliRunner().invoke(main, [*command, "--json"])
    assert len(json.loads(told.stdout)["facts"]) == 2
    assert "Bo Lunt" in CliRunner().invoke(main, command).stdout


def test_the_switch_is_on_the_command_line_and_refuses_what_is_no_date(wb: Workbench) -> None:
    told = CliRunner().invoke(main, ["ask", WHO, "--as-of", "2005", "--json", "--workspace", str(wb.path)])
    document = json.loads(told.stdout)
    assert document["as_of"] == ["2005", ""]
    assert "Otto Brandt" in document["answer"]
    assert [one["verdict"] for one in document["support"]] != ["unsupported"], "the date that was asked is no claim"
    with pytest.raises(RunError, match="as_of is 'someday', which is no date"):
        wb.ask(WHO, as_of="someday")


def test_a_base_from_before_facts_had_times_is_read_when_it_is_opened(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text(OBSERVATORY, encoding="utf-8")
    with Workbench.open(tmp_path / "ws") as wb:
        wb.add_knowledge("dated", [tmp_path / "a.md"])
        facts = wb.knowledge.get("dated").facts()
        index = wb.knowledge.get("dated")._index
        index.rows("DELETE FROM timed")
        index.rows("DELETE FROM meta WHERE key = 'superseding'")
    with Workbench.open(tmp_path / "ws") as wb:
        assert wb.knowledge.get("dated").facts() == facts != []


def test_clauses_share_a_date_that_stands_before_them() -> None:
    assert [(one.bare, one.begin) for one in clauses("In 2001, Ann became chair.")] == [("Ann became chair", "2001")]
