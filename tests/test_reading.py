"""Reading questions over any schema: conditions, order, count, what is asked, and what is not understood."""

from __future__ import annotations

import json
from typing import Any

import pytest

from workbench.knowledge.library import Library
from workbench.language.reading import read
from workbench.settings import Settings

LAB = [
    ("apollo", "Apollo", "2024-03-05", "Mara Velden", "finished", 120000, 0.913, ["retrieval", "support"]),
    ("borealis", "Borealis", "2024-06-18", "Jon Ekberg", "running", 80000, 0.874, ["retrieval"]),
    ("cygnus", "Cygnus", "2023-11-02", "Mara Velden", "cancelled", 45000, 0.5, ["speech"]),
    ("draco", "Draco", "2024-09-30", "Lin Qiao", "running", 210000, 0.802, ["ranking", "retrieval"]),
    ("eridan", "Eridan", "2022-01-10", "Jon Ekberg", "finished", 30000, 0.7, ["speech"]),
    ("fornax", "Fornax", "2021-07-01", "Lin Qiao", "finished", 64000, 0.66, ["ranking"]),
]
STAFF = [
    ("e1", "张伟", "研发部", "工程师", "2021-03-15", 35),
    ("e2", "李娜", "研发部", "经理", "2018-07-01", 60),
    ("e3", "王芳", "市场部", "专员", "2022-11-20", 22),
    ("e4", "陈晨", "财务部", "专员", "2020-05-06", 28),
    ("e5", "赵敏", "市场部", "经理", "2019-01-01", 55),
]
VOCABULARY = """
[documents]
en = ["project", "projects"]
zh = ["项目"]

[fields.budget]
names = { en = ["budget", "cost"], zh = ["预算"] }
unit = "EUR"

[fields.date]
names = { en = ["date", "started", "begun"], zh = ["日期", "启动"] }

[fields.author]
names = { en = ["author", "led by", "leads", "leader"], zh = ["负责人", "负责"] }

[fields.status]
names = { en = ["status"], zh = ["状态"] }

[values.status.finished]
zh = ["已完成", "完成"]

[values.status.running]
zh = ["进行中"]
"""


@pytest.fixture(scope="module")
def bases(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("reading")
    keys = ("id", "title", "date", "author", "status", "budget", "accuracy", "topics")
    lab = [dict(zip(keys, row, strict=True), text=f"{row[1]} is a project on {row[7][0]}.") for row in LAB]
    staff_keys = ("id", "title", "部门", "职位", "入职日期", "年薪")
    staff = [dict(zip(staff_keys, row, strict=True), text=f"{row[1]}在{row[2]}工作。") for row in STAFF]
    for name, rows in (("lab", lab), ("staff", staff)):
        lines = "\n".join(json.dumps(row, ensure_ascii=False) for row in rows)
        (folder / f"{name}.jsonl").write_text(lines, encoding="utf-8")
    (folder / "lab.vocabulary.toml").write_text(VOCABULARY, encoding="utf-8")
    library = Library(folder / "kb", Settings.load(embedding_model="hashing", names="rules", rerank_model="none"))
    for name in ("lab", "staff"):
        library.add(name, [folder / f"{name}.jsonl"])
    yield {name: library.get(name) for name in ("lab", "staff")}
    library.close()


def conditions(question: str, base: Any) -> list[tuple[str, str, Any]]:
    return [(c["field"], c["op"], c["value"]) for c in read(question, [base])["conditions"]]


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("Which projects are finished?", [("status", "eq", "finished")]),
        ("List the running projects led by Lin Qiao", [("status", "eq", "running"), ("author", "eq", "Lin Qiao")]),
        ("projects with a budget over 100,000", [("budget", "gt", 100000)]),
        ("projects with an accuracy of at least 0.8", [("accuracy", "ge", 0.8)]),
        ("projects between 50,000 and 90,000 EUR", [("budget", "between", [50000, 90000])]),
        ("Which projects started after May 2024?", [("date", "gt", "2024-05")]),
        ("projects started before 2023", [("date", "lt", "2023")]),
        ("projects on 18 June 2024", [("date", "eq", "2024-06-18")]),
        ("projects by Mara Velden or Jon Ekberg", [("author", "in", ["Mara Velden", "Jon Ekberg"])]),
        ("哪些项目已完成？", [("status", "eq", "finished")]),
        ("预算超过10万的项目有哪些？", [("budget", "gt", 100000)]),
        ("2024年启动的项目", [("date", "eq", "2024")]),
        ("Lin Qiao负责的项目有哪些？", [("author", "eq", "Lin Qiao")]),
        ("What did Lin Qiao lead after 2023?", [("author", "eq", "Lin Qiao"), ("date", "gt", "2023")]),
        ("Why did the retrieval of 1905 fail?", []),
        ("王家明负责过哪些项目？", [("author", "eq", "王家明")]),  # nobody's name is a name
        ("Which projects did Mara Ekberg lead?", [("author", "eq", "Mara Ekberg")]),  # and no other Mara's
    ],
)
def test_conditions(bases: Any, question: str, expected: list[Any]) -> None:
    assert sorted(conditions(question, bases["lab"]), key=repr) == sorted(expected, key=repr)


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("研发部有哪些人？", [("部门", "eq", "研发部")]),
        ("谁不在研发部？", [("部门", "ne", "研发部")]),
        ("除了市场部，还有哪些员工？", [("部门", "ne", "市场部")]),
        ("年薪超过30的有谁？", [("年薪", "gt", 30)]),
        ("年薪不超过30的员工有哪些", [("年薪", "le", 30)]),
        ("2019年以前入职的员工有哪些？", [("入职日期", "lt", "2019")]),
        ("Who is in 研发部?", [("部门", "eq", "研发部")]),
        (
            "Which employees of the research department joined before 2020?",
            [("入职日期", "lt", "2020"), ("部门", "eq", "研发部")],
        ),
    ],
)
def test_conditions_over_chinese_fields(bases: Any, question: str, expected: list[Any]) -> None:
    assert conditions(question, bases["staff"]) == expected


NEGATED = [
    ("Which projects are not finished?", "status", "finished"),
    ("Which projects aren't running?", "status", "running"),
    ("List projects that have not been cancelled", "status", "cancelled"),
    ("projects other than finished ones", "status", "finished"),
    ("all projects except the running ones", "status", "running"),
    ("projects not led by Lin Qiao", "author", "Lin Qiao"),
    ("projects outside speech", "topics", "speech"),
    ("documents that are not by Mara Velden", "author", "Mara Velden"),
    ("I don't like cancelled projects. Show me others.", "status", "cancelled"),
    ("projects without speech", "topics", "speech"),
    ("哪些项目不是已完成的？", "status", "finished"),
    ("除了进行中的，还有哪些项目？", "status", "running"),
    ("不要已完成的项目", "status", "finished"),
    ("列出不由Lin Qiao负责的项目", "author", "Lin Qiao"),
]


@pytest.mark.parametrize(("question", "field", "value"), NEGATED)
def test_what_is_negated_is_never_turned_round(bases: Any, question: str, field: str, value: str) -> None:
    read_as = conditions(question, bases["lab"])
    assert (field, "eq", value) not in read_as
    assert (field, "ne", value) in read_as or (field, "not_in", [value]) in read_as, read_as


@pytest.mark.parametrize(
    ("question", "sort", "limit"),
    [
        ("Which project has the highest accuracy?", ("accuracy", True), 1),
        ("the three newest projects", ("date", True), 3),
        ("What is the earliest project?", ("date", False), 1),
        ("Which of Mara Velden's projects is the oldest?", ("date", False), 1),
        ("the cheapest project", ("budget", False), 1),
        ("预算最高的项目是哪个？", ("budget", True), 1),
        ("最新的两个项目", ("date", True), 2),
    ],
)
def test_order(bases: Any, question: str, sort: tuple[str, bool], limit: int) -> None:
    reading = read(question, [bases["lab"]])
    assert reading["sort"] and (reading["sort"]["field"], reading["sort"]["descending"]) == sort
    assert reading["limit"] == limit


@pytest.mark.parametrize(
    ("question", "group"),
    [("How many projects are running?", ""), ("How many projects per author?", "author"), ("有多少个项目？", "")],
)
def test_counts(bases: Any, question: str, group: str) -> None:
    reading = read(question, [bases["lab"]])
    assert (reading["count"], reading["group"], reading["answer_type"]) == (True, group, "number")


@pytest.mark.parametrize(
    ("question", "asked", "name"),
    [
        ("What is the budget of Apollo?", ["budget"], "Apollo"),
        ("Who leads Draco?", ["author"], "Draco"),
        ("When was Cygnus started?", ["date"], "Cygnus"),
        ("Apollo的预算是多少？", ["budget"], "Apollo"),
        ("谁负责Draco？", ["author"], "Draco"),
    ],
)
def test_fields_asked_of_a_name(bases: Any, question: str, asked: list[str], name: str) -> None:
    reading = read(question, [bases["lab"]])
    assert (reading["fields"], [n["name"] for n in reading["names"]]) == (asked, [name])
    assert reading["conditions"] == []


def test_what_was_read_is_said_and_what_was_not(bases: Any) -> None:
    reading = read("projects that are not finished, the three most colourful", [bases["lab"]])
    assert "status is not finished" in reading["understood"]
    assert read("哪些项目不是已完成的？", [bases["lab"]])["understood"] == ["状态不是已完成"]
    assert read("projects longer than 3 hours", [bases["lab"]])["not_applied"] == ["longer than 3 hours"]
    assert read("projects longer than 3 hours", [bases["lab"]])["conditions"] == []


def test_how_long_is_what_is_asked_and_no_word_to_look_for(bases: Any) -> None:
    assert "long" not in read("How long did the kiln burn?", [bases["lab"]])["words"]
    assert not any("多久" in word for word in read("窑烧了多久？", [bases["lab"]])["words"])


@pytest.mark.parametrize("said", ["I'm looking for a project about speech", "I am searching for some running project"])
def test_who_looks_for_some_thing_wants_recommendations(bases: Any, said: str) -> None:
    assert read(said, [bases["lab"]])["intent"] == "recommend"
    assert read("Who is looking for a project about speech?", [bases["lab"]])["intent"] != "recommend"


def test_a_theme_is_no_condition(bases: Any) -> None:
    reading = read("What do we know about retrieval?", [bases["lab"]])
    assert (reading["conditions"], reading["words"]) == ([], ["retrieval"])
