"""Questions read over five corpora, against readings that were written before the reader: none asks its opposite."""

import json
from collections.abc import Iterator, Mapping
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.cases import HERE, tables
from tests.shelves import jsonl
from workbench.knowledge.library import Library
from workbench.language.followup import standalone
from workbench.language.question import read
from workbench.ports import KnowledgeBase
from workbench.session import Workbench
from workbench.settings import Settings
from workbench.state import Condition, Question

SAVED = json.loads((Path(__file__).parent / "saved" / "readings.json").read_text("utf-8"))
QUESTIONS = SAVED["questions"]
"""Those that are ``exact`` are read whole; of the others a part is not applied, and nothing is turned round."""


@pytest.fixture(scope="module")
def bases(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, KnowledgeBase]]:
    folder = tmp_path_factory.mktemp("readings")
    library = Library(folder / "kb", Settings.load(embedding_model="hashing", rerank_model="none"))
    for name, corpus in SAVED["corpora"].items():
        (folder / f"{name}.vocabulary.toml").write_text(corpus["vocabulary"], "utf-8")
        library.add(name, [jsonl(folder / f"{name}.jsonl", corpus["documents"])])
    yield {name: library.get(name) for name in SAVED["corpora"]}
    library.close()


def test_what_is_certain_is_read(bases: dict[str, KnowledgeBase]) -> None:
    exact = [gold for gold in QUESTIONS if gold["exact"]]
    wrong = {g["question"]: w for g in exact if (w := differences(read(g["question"], [bases[g["base"]]]), g))}
    assert len(exact) > 140 and wrong == {}


def test_no_negation_is_read_as_its_opposite(bases: dict[str, KnowledgeBase]) -> None:
    assert sum(bool(gold.get("negation")) for gold in QUESTIONS) >= 40
    assert [g["question"] for g in QUESTIONS if turned(read(g["question"], [bases[g["base"]]]), g)] == []


def differences(read: Question, gold: Mapping[str, Any]) -> dict[str, Any]:
    """What was read otherwise than the gold has it: key -> (read, gold)."""
    pairs: dict[str, tuple[Any, Any]] = {}
    pairs |= {"conditions": (plain(read["conditions"]), plain(gold["conditions"]))}
    pairs["count"], pairs["limit"], pairs["asked"] = (read["count"], False), (read["limit"], None), (read["fields"], [])
    pairs["sort"] = (list(read["sort"].values()) if read["sort"] else None, None)
    pairs["names"] = ([name["name"] for name in read["names"]], None)
    pairs["intent"], pairs["words"] = (read["intent"], None), (read["words"], None)
    found: dict[str, tuple[Any, Any]] = {
        key: (had, gold.get(key, wanted) if key != "conditions" else wanted) for key, (had, wanted) in pairs.items()
    }
    for key in ("names", "intent", "words", *(("limit", "sort", "asked") if gold.get("loose") else ())):
        if key not in gold:
            del found[key]
    found["said"] = (bool(read["not_applied"]), True) if gold.get("said") else (True, True)
    return {key: pair for key, pair in found.items() if pair[0] != pair[1]}


def plain(conditions: list[Condition]) -> list[str]:
    """Conditions so that two ways to say one are equal."""
    told = set()
    bounds = {(one["field"], one["op"]): one["value"] for one in conditions if one["op"] in ("ge", "le")}
    for one in conditions:
        field, op, value = one["field"], one["op"], one["value"]
        if op in ("ge", "le") and (field, "ge") in bounds and (field, "le") in bounds:
            op, value = "between", [bounds[field, "ge"], bounds[field, "le"]]
        values = [float(v) if isinstance(v, int | float) and not isinstance(v, bool) else v for v in listed(value)]
        if op == "not_in":
            told |= {f"{field} ne {v}" for v in values}
        elif op == "in" and len(values) == 1:
            told.add(f"{field} eq {values[0]}")
        else:
            told.add(f"{field} {op} {' '.join(map(str, sorted(values) if op == 'in' else values))}")
    return sorted(told)


def listed(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else [value]


def turned(read: Question, gold: Mapping[str, Any]) -> bool:
    """Whether a value that is refused is asked for, or one that is asked for is refused."""

    def values(conditions: list[Condition], *ops: str) -> set[tuple[str, str]]:
        return {(c["field"], str(v)) for c in conditions if c["op"] in ops for v in listed(c["value"])}

    yes, no = ("eq", "in", "contains"), ("ne", "not_in")
    had, wanted = read["conditions"], gold["conditions"]
    crossed = values(had, *yes) & values(wanted, *no) | values(had, *no) & values(wanted, *yes)
    turns = {"gt": ("lt", "le"), "ge": ("lt", "le"), "lt": ("gt", "ge"), "le": ("gt", "ge")}
    against = {(one["field"], op) for one in wanted for op in turns.get(one["op"], ())}
    missing = {one["field"] for one in wanted if one["op"] == "exists" and not one["value"]}
    return bool(
        crossed
        or against & {(one["field"], one["op"]) for one in had}
        or any(one["field"] in missing and one["op"] not in ("exists",) for one in had)
        or any(one["field"] in missing and one["op"] == "exists" and one["value"] for one in had)
    )


TODAY = date.today()
MONTH_AGO = (TODAY.replace(day=1) - timedelta(days=1)).isoformat()
CASES = tables("readings", end="\n")


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workbench]:
    folder = tmp_path_factory.mktemp("door")
    settings = {"embedding_model": "hashing", "rerank_model": "none"}
    with Workbench.open(folder / "workspace", **settings) as wb:
        for file in (HERE / "readings").rglob("*.*"):
            (place := folder / file.relative_to(HERE / "readings")).parent.mkdir(parents=True, exist_ok=True)
            text = file.read_text("utf-8").replace("{month_ago}", MONTH_AGO).replace("{year}", MONTH_AGO[:4])
            place.write_text(text, "utf-8")
        for base in sorted({base for base, *_ in CASES["door"]}):
            wb.add_knowledge(base, [folder / base])
        yield wb


@pytest.mark.parametrize(("base", "question", "holds", "lacks"), CASES["door"])
def test_what_is_asked_is_applied_or_said(opened: Workbench, base: str, question: str, holds: str, lacks: str) -> None:
    answer = opened.ask(question, kb=base, user=question).answer
    answer = answer.replace("Not applied", "not applied")
    assert [part for part in holds.split(" & ") if part not in answer] == [], answer
    assert [part for part in lacks.split(" & ") if part and part in answer] == [], answer


def said(*turns: str) -> list[dict[str, str]]:
    return [{"role": ("user", "assistant")[i % 2], "content": text} for i, text in enumerate(turns)]


def test_what_leans_is_asked_with_what_it_leans_on_and_what_stands_alone_is_left_alone(shelf):
    histories = {name: said(*turns) for name, *turns in CASES["conversations"]}
    rows = [*CASES["leaning"], *([name, message, message] for name, message in CASES["alone"])]
    found = [[name, message, standalone(message, histories[name], [shelf.get("film")])] for name, message, _ in rows]
    assert found == rows
    no_names = said("Is any of it partly oxidised?", "Oolong tea is.")
    rarest = "How does it work? (partly, oxidised)"
    assert standalone("How does it work?", no_names, [shelf.get("essays")]) == rarest


def test_more_of_a_list_is_what_was_not_listed(wb: Any, tmp_path: Path) -> None:
    rows = [{"id": str(n), "title": f"Mill {n}", "text": f"Mill {n} is in Tarn.", "kind": "mill"} for n in range(20)]
    wb.add_knowledge("mills", [jsonl(tmp_path / "mills.jsonl", rows)])
    answers = [wb.ask(text, kb="mills", session="one").answer for text in ("Recommend a few mills", "Any others?")]
    first, more = ({line.partition(" [")[0] for line in answer.splitlines()[1:]} for answer in answers)
    assert len(first) == len(more) == 8 and not first & more
