"""The tools over a small film corpus, in English and Chinese."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.shelf import VOCABULARY, where
from workbench.knowledge.library import Library
from workbench.settings import Settings
from workbench.tools import evidence
from workbench.tools.registry import StepLog, ToolRegistry, read_input
from workbench.tools.scoring import MODELS, probability

FILMS = Path(__file__).parent.parent / "data" / "films.jsonl"
KNOWN = {"Ang Lee", "Christopher Nolan", "Wes Anderson", "Guillermo del Toro"}
TOOLS = ToolRegistry()


@pytest.fixture(scope="session")
def film(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    folder = tmp_path_factory.mktemp("tools")
    films = [json.loads(line) for line in FILMS.read_text(encoding="utf-8").splitlines()]
    kept = [f for place, f in enumerate(films) if KNOWN & set(f["directors"]) or place % 8 == 0]
    (folder / "films.jsonl").write_text("".join(json.dumps(f, ensure_ascii=False) + "\n" for f in kept), "utf-8")
    library = Library(folder / "kb", Settings.load(embedding_model="hashing"))
    library.add("film", [folder / "films.jsonl"], vocabulary=VOCABULARY)
    yield library.get("film")
    library.close()


def call(name: str, film: Any, query: str, **values: Any) -> Any:
    tool = TOOLS[name]
    return asyncio.run(tool(read_input(tool, {"query": query, **values}), film, StepLog()))


def titles(output: Any) -> list[str]:
    return evidence.titles(output.results)


def fields(output: Any, name: str) -> list[Any]:
    return [r["metadata"]["fields"].get(name) for r in output.results]


@pytest.mark.parametrize("name", ["naive_search", "keyword_search", "local_search", "global_search", "hybrid_search"])
@pytest.mark.parametrize("query", ["Who directed Inception?", "《盗梦空间》是谁导演的？"])
def test_every_result_has_the_shape_of_the_contract(film, name, query):
    output = call(name, film, query, top_k=7)
    assert 0 < len(output.results) <= 7
    assert [r["metadata"]["rank"] for r in output.results] == list(range(1, len(output.results) + 1))
    keys = [(-r["score"], r["result_id"]) for r in output.results]
    assert keys == sorted(keys) and len({r["result_id"] for r in output.results}) == len(output.results)
    for result in output.results:
        assert 0 <= result["score"] <= 1 and round(result["score"], 6) == result["score"]
        assert result["result_id"] == f"{result['granularity']}:{result['source_id']}"
        assert result["evidence"].strip()
        assert result["metadata"]["tools"] == [name] and result["metadata"]["kb_prefix"] == "film"
        if result["source_type"] == "chunk":
            assert result["metadata"].keys() >= {"doc_id", "title", "url", "licence", "position", "fields", "signals"}
            assert result["source_id"] == f"{result['metadata']['doc_id']}#{result['metadata']['position']}"
    json.dumps(output.model_dump(mode="json"))


@pytest.mark.parametrize("name", [name for name in TOOLS if "query" in TOOLS[name].input_schema.model_fields])
def test_the_same_question_gives_the_same_bytes(film, name):
    first, again = (call(name, film, "推荐几部类似《喜宴》的电影").model_dump_json() for _ in range(2))
    assert first == again


SEARCHES = ["naive_search", "keyword_search", "local_search", "global_search", "hybrid_search", "chain_exploration"]


@pytest.mark.parametrize("name", SEARCHES)
def test_text_and_conditions_in_one_search(film, name):
    output = call(name, film, "films of Ang Lee and Christopher Nolan", conditions=where("year >= 2010"))
    years = [result["metadata"].get("fields", {}).get("year") for result in output.results]
    assert [year for year in years if year] and all(str(year) >= "2010" for year in years if year)
    assert call(name, film, "films of Ang Lee", conditions=where("year >= 2090")).results == []


def test_names_given_by_an_earlier_step_are_looked_up_too(film):
    output = call("hybrid_search", film, "works", entities=["李安", "nobody at all"])
    assert output.entities == ["Ang Lee"]
    assert sum("Ang Lee" in directors for directors in fields(output, "directors")[:8]) >= 7


def test_what_the_query_names_is_no_candidate(film):
    for name in ("hybrid_search", "global_search", "naive_search"):
        output = call(name, film, "films similar to The Wedding Banquet")
        assert "The Wedding Banquet" not in output.candidates and len(output.candidates) > 5, name


def test_local_search_tells_what_the_graph_knows(film):
    output = call("local_search", film, "李安是谁？")
    kinds = {
        kind: [r for r in output.results if r["source_type"] == kind] for kind in ("entity", "relationship", "chunk")
    }
    [card] = kinds["entity"]
    assert card["evidence"].startswith("Ang Lee (Person; 李安): ") and "The Wedding Banquet" in card["evidence"]
    assert card["granularity"] == "low_level" and card["source_id"] == "person:ang lee"
    assert output.results[0] is not None and len(kinds["relationship"]) > 3 and len(kinds["chunk"]) > 3
    assert all(r["granularity"] == "high_level" and r["metadata"]["doc_id"] for r in kinds["relationship"])
    assert output.entities[0] == "Ang Lee" and "Eat Drink Man Woman" in output.entities


def test_global_search_ranks_the_candidates_given_and_no_others(film):
    output = call("global_search", film, "rival stage magicians", candidates=["Hulk", "致命魔术", "No Such Film"])
    assert output.candidates == ["The Prestige", "Hulk"]


def test_discover_holds_every_condition_newest_first(film):
    output = call("discover", film, "", conditions=where("directors = 诺兰", "year >= 2006"))
    years = fields(output, "year")
    assert len(years) > 5 and years == sorted(years, reverse=True) and min(years) >= 2006
    assert all("Christopher Nolan" in d for d in fields(output, "directors"))
    assert output.candidates == titles(output) and output.results[0]["score"] > 0.7


@pytest.mark.parametrize("tool", list(MODELS))
def test_more_of_a_signal_never_lowers_a_probability(tool):
    for name in MODELS[tool].weights:
        scores = [probability(tool, {name: value / 4}) for value in range(5)]
        assert scores == sorted(scores), name
        assert all(0 < score < 1 for score in scores)
