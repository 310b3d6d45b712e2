"""Retrieval measured by questions with gold documents: the table, what is left out, and measures by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from workbench import Workbench
from workbench.cli import main
from workbench.errors import CorpusError, ToolError, UnknownTool
from workbench.parts.evaluate.measures import means, score_rankings
from workbench.parts.evaluate.questions import choose, read_rows
from workbench.parts.evaluate.rankers import WITHOUT
from workbench.parts.evaluate.retrieval import eval_retrieval

TURNS = {
    "a1": "Ann: I adopted a grey cat from the shelter.", "a2": "Bob: What is the name of your cat?",
    "a3": "Ann: The cat is called Misty, after the weather.", "b1": "Cid: My cat Tiger sleeps on the piano.",
    "b2": "Dan: 我的猫叫小花，它喜欢钢琴。", "b3": "Cid: We moved to Lisbon in 2019.",
}  # fmt: skip
ROWS = [
    {"id": "q1", "question": "What is the cat of Ann called?", "gold": ["a3", "a1"], "hops": 2, "type": "x"},
    {"id": "q2", "question": "Where does the cat sleep?", "gold": "b1", "hops": 1, "type": "y"},
    {"id": "q3", "question": "钢琴和猫", "gold": ["b2"], "hops": 1, "type": "y"},
]  # fmt: skip
QUESTIONS = [row["question"] for row in ROWS]
TEXTS = {
    "ride": ("Ride with the Devil", "Ride with the Devil is a 1999 western directed by Ang Lee."),
    "lee": ("Ang Lee", "Ang Lee was born in Pingtung in Taiwan."),
    "heat": ("Heat", "Heat is a 1995 film directed by Michael Mann."),
    "mann": ("Michael Mann", "Michael Mann was born in Chicago in the United States."),
    "chicago": ("Chicago", "Chicago is a city on Lake Michigan."),
}
ASKED = [
    ("Where was the director of Ride with the Devil born?", ["ride", "lee"]),
    ("Where was the director of Heat born?", ["heat", "mann"]),
    ("Which city lies on Lake Michigan?", ["chicago"]),
    ("What is Lake Michigan?", ["chicago"]),
]


def lines(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("measured")
    turns = [{"id": i, "conv": i[0], "title": i, "text": text} for i, text in TURNS.items()]
    small = [{"id": i, "title": title, "text": text} for i, (title, text) in TEXTS.items()]
    with Workbench.open(folder / "ws", embedding_model="hashing") as wb:
        wb.add_knowledge("talk", [lines(folder / "turns.jsonl", turns)])
        wb.add_knowledge("small", [lines(folder / "texts.jsonl", small)])
    lines(folder / "questions.jsonl", ROWS)
    lines(folder / "small.jsonl", [{"id": q, "question": q, "gold": gold} for q, gold in ASKED])
    return folder


@pytest.fixture
def wb(folder: Path):
    with Workbench.open(folder / "ws", embedding_model="hashing") as opened:
        yield opened


def without_ms(table: dict[str, Any]) -> dict[str, Any]:
    return {**table, "tools": {n: {k: v for k, v in t.items() if k != "ms"} for n, t in table["tools"].items()}}


def test_the_table(wb, folder) -> None:
    table = eval_retrieval(wb, "talk", folder / "questions.jsonl", tools=["keyword_search"])
    assert (table["set"], table["questions"]) == ("talk", 3)
    assert list(table["tools"]) == ["keyword_search", "bm25", "dense", "rrf"]
    assert table["models"] == {"embedding_model": "hashing", "reranker": "none", "language_model": "none"}
    for line in table["tools"].values():
        assert {"R@1", "all@1", "R@5", "all@5", "MRR", "nDCG@10", "by", "ms", "ci"} <= set(line)
        assert {value: part["questions"] for value, part in line["by"]["hops"].items()} == {"1": 2, "2": 1}
        assert line["ci"]["R@5"][0] <= line["R@5"] <= line["ci"]["R@5"][1]
        assert line["ms"]["p50"] <= line["ms"]["p95"]
    paired = [(name, "keyword_search") for name in ("bm25", "dense", "rrf")]
    assert [(row["tool"], row["against"]) for row in table["paired"]] == paired
    again = eval_retrieval(wb, "talk", folder / "questions.jsonl", tools=["keyword_search"])
    assert without_ms(again) == without_ms(table)


def spied(wb: Workbench, answer: Any = ()) -> list[dict[str, Any]]:
    seen: list[dict[str, Any]] = []

    @wb.tools.tool(description="Remembers what it was asked")
    def spy(query: str, top_k: int = 10) -> list[Any]:
        seen.append({"query": query, "top_k": top_k})
        return list(answer)

    return seen


@pytest.mark.parametrize("tool", ["spy", "fusion_agent", "hybrid_search", "rrf"])
def test_annotations_reach_no_tool(wb, tmp_path, monkeypatch, tool) -> None:
    """Every annotation is poisoned, in the row and with the names of inputs; nothing of it is ever searched for."""
    seen = spied(wb)
    names = "answer type evidence decomposition topic_entity query entities kb_prefix"
    poison = dict.fromkeys(names.split(), "POISON cat piano Lisbon")
    asked: list[str] = []
    base = wb.knowledge.get("talk")
    for method in ("search", "link", "entity", "rerank"):
        real = getattr(base, method)
        monkeypatch.setattr(base, method, lambda *a, real=real: (asked.append(str(a)), real(*a))[1])
    clean = eval_retrieval(wb, "talk", lines(tmp_path / "clean.jsonl", ROWS), tools=[tool])
    bad = eval_retrieval(wb, "talk", lines(tmp_path / "bad.jsonl", [{**r, **poison} for r in ROWS]), tools=[tool])
    assert asked and not [said for said in asked if "POISON" in said]
    assert not [call for call in seen if "POISON" in str(call)]
    assert all(line["R@5"] == clean["tools"][name]["R@5"] for name, line in bad["tools"].items())
    if tool == "spy":
        assert [call["query"] for call in seen] == QUESTIONS * 2


def test_what_cannot_be_measured_is_said(wb, folder, tmp_path) -> None:
    with pytest.raises(UnknownTool, match="keyword_search"):
        eval_retrieval(wb, "talk", folder / "questions.jsonl", tools=["keyword"])
    with pytest.raises(CorpusError, match=r"'q1' has gold_en None.*Its fields: id, question"):
        eval_retrieval(wb, "talk", folder / "questions.jsonl", gold="gold_en")
    with pytest.raises(CorpusError, match="holds none of the gold documents, such as 'elsewhere'"):
        eval_retrieval(wb, "talk", lines(tmp_path / "q.jsonl", [{**ROWS[0], "gold": ["elsewhere"]}]))
    with pytest.raises(CorpusError, match="Two questions have the id 'q1'"):
        eval_retrieval(wb, "talk", lines(tmp_path / "q.jsonl", [ROWS[0], ROWS[0]]))
    with pytest.raises(CorpusError, match=r"No question is left.*hops is one of 1, 2"):
        choose(ROWS, {"hops": "9"})
    with pytest.raises(CorpusError, match=r"q.jsonl:2.*'question'"):
        read_rows(lines(tmp_path / "q.jsonl", [ROWS[0], {"id": "x", "question": 7}]), "id", "question")
    some = eval_retrieval(wb, "talk", lines(tmp_path / "q.jsonl", [{**ROWS[0], "gold": ["a1", "gone"]}]))
    assert some["gold_not_in_base"] == 1 and some["tools"]["bm25"]["R@10"] == 50.0


def test_the_parts_are_left_out_in_the_table(wb, folder) -> None:
    table = eval_retrieval(wb, "small", folder / "small.jsonl", tools=["fusion_agent"], parts=list(WITHOUT))
    agents = [f"fusion_agent without {part}" for part in WITHOUT]
    assert list(table["tools"]) == ["fusion_agent", *agents, "bm25", "dense", "rrf"]
    assert [row["tool"] for row in table["paired"]] == [*agents, "bm25", "dense", "rrf"]
    assert table["tools"]["fusion_agent without reflect"]["passes"] == 1
    assert table["tools"]["fusion_agent"]["passes"] >= 1 and "steps" not in table["tools"]["bm25"]
    with pytest.raises(ToolError, match="no part 'answer'"):
        eval_retrieval(wb, "small", folder / "small.jsonl", tools=["fusion_agent"], parts=["answer"])


def test_what_scores_say_is_held_against_the_gold_documents(wb, folder) -> None:
    @wb.tools.tool(description="Sure of itself")
    def sure(query: str, top_k: int = 10) -> list[Any]:
        return [{"text": i, "id": f"{i}#0", "doc_id": i, "score": s} for i, s in (("ride", 0.9), ("heat", 0.3))]

    found = eval_retrieval(wb, "small", folder / "small.jsonl", tools=["sure"])["tools"]["sure"]["calibration"]
    assert (found["findings"], found["said"], found["right"]) == (8, 0.6, 0.25)
    assert (found["first"]["said"], found["first"]["right"], found["first"]["ECE"]) == (0.9, 0.25, 0.65)


def test_the_command(folder) -> None:
    words = ["eval", "retrieval", "--workspace", str(folder / "ws"), "--kb", "talk"]
    words += ["--questions", str(folder / "questions.jsonl"), "--tool", "keyword_search", "--k", "5,2"]
    runner = CliRunner(env={"WORKBENCH_EMBEDDING_MODEL": "hashing"})
    table = json.loads(runner.invoke(main, [*words, "--where", "hops=1", "--json"]).stdout)
    assert table["questions"] == 2 and {"R@2", "all@5"} <= set(table["tools"]["rrf"])
    assert "R@1" not in table["tools"]["rrf"]
    shown = runner.invoke(main, words).stdout.splitlines()
    assert shown[0] == "talk: 3 questions, in percent"
    assert [line.split()[0] for line in shown[2:6]] == ["keyword_search", "bm25", "dense", "rrf"]
    assert "[" in shown[2] and any(line.startswith("bm25 against keyword_search: ") for line in shown)
    for wrong in (["--where", "hops"], ["--k", "0"], ["--k", "a"]):
        assert runner.invoke(main, [*words, *wrong]).exit_code == 2


def test_measures_by_hand() -> None:
    gold = {"1": ["a"], "2": ["b", "c"], "3": ["d"]}
    found = score_rankings(gold, {"1": ["x", "a"], "2": [*"vwxyzc", "b"], "3": []}, [1, 5])
    assert found["MRR"] == {"1": 0.5, "2": pytest.approx(1 / 6), "3": 0.0}
    assert found["R@1"] == {"1": 0.0, "2": 0.0, "3": 0.0} and found["R@5"] == {"1": 1.0, "2": 0.0, "3": 0.0}
    assert found["all@5"] == {"1": 1.0, "2": 0.0, "3": 0.0}
    assert means(found, ["1", "3"])["R@5"] == 50.0
    many = [f"d{n:02}" for n in range(60)]  # as ordered, not as named
    assert score_rankings({"q": ["d00"]}, {"q": many[::-1]}, [59])["R@59"]["q"] == 0.0
