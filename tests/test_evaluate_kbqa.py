"""Questions over triples, from the file to the table: the graph that triples make, and answers scored."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from pydantic import Field

from workbench import Workbench
from workbench.cli import main
from workbench.errors import CorpusError, ToolError
from workbench.evaluating.bench import eval_kbqa
from workbench.evaluating.kbqa import f1
from workbench.tools.tool import Found, FunctionTool, Search

TRIPLES = """
Tampopo\tdirected_by\tJuzo Itami
Tampopo\thas_tags\tramen
A Taxing Woman\tdirected_by\tJuzo Itami
Dandelion\tsequel_of\tTampopo
Dandelion\tdirected_by\t伊丹
tampopo\thas_tags\tlower case is another head
"""
ROWS = [
    {"id": "1", "hops": 1, "question": "who directed Tampopo", "topic_entity": "Tampopo", "answers": ["Juzo Itami"]},
    {
        "id": "2",
        "hops": 2,
        "question": "films by the director of Tampopo",
        "topic_entity": "Tampopo",
        "answers": ["X", "Y"],
    },
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("triples")
    (folder / "kb.tsv").write_text(TRIPLES.strip(), encoding="utf-8")
    (folder / "q.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS), encoding="utf-8")
    with Workbench.open(folder / "ws", embedding_model="hashing", names="rules") as wb:
        report = wb.add_knowledge("films", [folder / "kb.tsv"])
        assert (report.added, report.problems) == (4, [])
    return folder


@pytest.fixture
def wb(folder: Path):
    with Workbench.open(folder / "ws", embedding_model="hashing", names="rules") as opened:
        yield opened


def answering(wb: Workbench, **given: Any) -> list[dict[str, Any]]:
    """A tool that answers what it is told to, and remembers what it was asked."""
    seen: list[dict[str, Any]] = []

    class Input(Search):
        entities: list[str] = Field(default_factory=list)

    def answer(tool_input: Input, knowledge: Any, log: Any) -> Found:
        seen.append(tool_input.model_dump())
        return Found(**given)

    wb.tools.register(FunctionTool("answering", "Answers", Input, Found, answer))
    return seen


def test_every_triple_is_a_relation_of_its_own_name(wb) -> None:
    graph = wb.knowledge.get("films").graph()
    told = {(graph.nodes[a]["name"], edge["type"], graph.nodes[b]["name"]) for a, b, edge in graph.edges(data=True)}
    assert told == {tuple(line.split("\t")) for line in TRIPLES.strip().split("\n")}


def test_a_tail_that_is_a_head_is_that_head(wb) -> None:
    base = wb.knowledge.get("films")
    (sequel,) = [r for r in base.relations_of("doc:Dandelion") if r["type"] == "sequel_of"]
    assert sequel["target"] == "doc:Tampopo" and sequel["sentence"] == "Dandelion — sequel of: Tampopo"
    assert base.find_entity("juzo itami")["type"] == "Person"
    assert base.mentions_of("node:juzo itami") == ["A Taxing Woman#0", "Tampopo#0"]
    assert base.select([{"field": "directed_by", "op": "eq", "value": "Juzo Itami"}]) == ["A Taxing Woman", "Tampopo"]
    assert base.keyword_search("ramen", 1)[0][0] == "Tampopo#0"


def test_added_again_nothing_changes(wb, folder) -> None:
    report = wb.add_knowledge("films", [folder / "kb.tsv"])
    assert (report.added, report.changed, report.deleted, report.unchanged) == (0, 0, 0, 4)


def test_a_head_with_more_tails_than_a_passage_holds(tmp_path) -> None:
    lines = "".join(f"hub\tlinks_to\tplace {n:04}\n" for n in range(500))
    (tmp_path / "kb.tsv").write_text(lines, encoding="utf-8")
    with Workbench.open(tmp_path / "ws", embedding_model="hashing", names="rules") as wb:
        wb.add_knowledge("hub", [tmp_path / "kb.tsv"])
        base = wb.knowledge.get("hub")
        found = {r["target"]: r["chunk_id"] for r in base.relations_of("doc:hub")}
        texts = {p["chunk_id"]: p["text"] for p in base.passages_of(["hub"])}
    assert len(found) == 500 and len(texts) > 3
    assert all(f"place {n:04}" in texts[found[f"node:place {n:04}"]] for n in range(500))


def test_hits_f1_and_hops(wb, folder) -> None:
    seen = answering(wb, entities=["Tampopo", "juzo ITAMI", "X"])
    table = eval_kbqa(wb, "films", folder / "q.jsonl", tools=["answering"])
    line = table["tools"]["answering"]
    assert list(table["tools"]) == ["answering", "local_search"] and table["topic"] == "asked"
    assert (line["Hits@1"], line["F1"]) == (50.0, 58.33)  # what the question names is no answer
    assert (line["by"]["hops"]["1"]["Hits@1"], line["by"]["hops"]["2"]["Hits@1"]) == (100.0, 0.0)
    assert [call["entities"] for call in seen] == [[], []]
    assert not [call for call in seen if set(call) - {"query", "top_k", "kb_prefix", "entities"}]
    assert table["paired"][0]["against"] == "answering"
    assert table["tools"]["local_search"]["answered"] == 100.0


def test_the_topic_is_given_only_when_asked_for(wb, folder) -> None:
    seen = answering(wb, entities=[])
    table = eval_kbqa(wb, "films", folder / "q.jsonl", tools=["answering"], topic="given")
    assert [call["entities"] for call in seen] == [["Tampopo"], ["Tampopo"]]
    assert (table["topic"], table["tools"]["answering"]["answered"]) == ("given", 0.0)
    with pytest.raises(ToolError, match="takes no `entities`"):
        eval_kbqa(wb, "films", folder / "q.jsonl", tools=["keyword_search"], topic="given")
    with pytest.raises(CorpusError, match="has names None"):
        eval_kbqa(wb, "films", folder / "q.jsonl", answers="names")


def test_f1_of_lists() -> None:
    assert f1(["a", "b"], ["b", "a"]) == 1.0 and f1(["a"], ["b"]) == 0.0 and f1(["a"], ["a", "b", "c"]) == 0.5


def test_the_command(folder) -> None:
    words = ["eval", "kbqa", "--workspace", str(folder / "ws"), "--kb", "films", "--questions", str(folder / "q.jsonl")]
    runner = CliRunner(env={"WORKBENCH_EMBEDDING_MODEL": "hashing"})
    table = json.loads(runner.invoke(main, [*words, "--topic", "given", "--json"]).stdout)
    assert table["questions"] == 2 and {"Hits@1", "F1"} <= set(table["tools"]["local_search"])
    shown = runner.invoke(main, words).stdout.splitlines()
    assert shown[0].startswith("films: 2 questions, topic asked") and shown[2].startswith("local_search")
