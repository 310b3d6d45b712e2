"""Rankings measured: what reaches a tool, what a rank is, which numbers come out, how the command line says them."""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from workbench import Workbench
from workbench.cli import main
from workbench.errors import CorpusError, MissingExtra, UnknownTool
from workbench.evaluating.rankings import Narrowed, asked_of, chosen, documents_by, read_rows
from workbench.evaluating.retrieval import eval_retrieval
from workbench.evaluating.statistics import Bootstrap, means, scores_of
from workbench.testing import MemoryKnowledge

TURNS = [
    ("a1", "a", "Ann: I adopted a grey cat from the shelter."),
    ("a2", "a", "Bob: What is the name of your cat?"),
    ("a3", "a", "Ann: The cat is called Misty, after the weather."),
    ("b1", "b", "Cid: My cat Tiger sleeps on the piano."),
    ("b2", "b", "Dan: 我的猫叫小花，它喜欢钢琴。"),
    ("b3", "b", "Cid: We moved to Lisbon in 2019."),
]
ROWS = [
    {
        "id": "q1",
        "conv": "a",
        "question": "What is the cat of Ann called?",
        "gold": ["a3", "a1"],
        "hops": 2,
        "type": "x",
    },
    {"id": "q2", "conv": "b", "question": "Where does the cat sleep?", "gold": "b1", "hops": 1, "type": "y"},
    {"id": "q3", "conv": "b", "question": "钢琴和猫", "gold": ["b2"], "hops": 1, "type": "y"},
]
QUESTIONS = [row["question"] for row in ROWS]


def lines(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("measured")
    turns = [{"id": i, "conv": conv, "title": i, "text": text} for i, conv, text in TURNS]
    with Workbench.open(folder / "ws", embedding_model="hashing", names="rules") as wb:
        wb.add_knowledge("talk", [lines(folder / "turns.jsonl", turns)])
    lines(folder / "questions.jsonl", ROWS)
    return folder


@pytest.fixture
def wb(folder: Path):
    with Workbench.open(folder / "ws", embedding_model="hashing", names="rules") as opened:
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
    assert [(row["tool"], row["against"]) for row in table["paired"]] == [
        (name, "keyword_search") for name in ("bm25", "dense", "rrf")
    ]
    again = eval_retrieval(wb, "talk", folder / "questions.jsonl", tools=["keyword_search"])
    assert without_ms(again) == without_ms(table)


def spied(wb: Workbench, answer: Any = ()) -> list[dict[str, Any]]:
    seen: list[dict[str, Any]] = []

    @wb.tools.tool(description="Remembers what it was asked")
    def spy(query: str, knowledge, top_k: int = 10) -> list[Any]:
        seen.append({"query": query, "top_k": top_k, "within": sorted(knowledge.select())})
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
    for method in ("keyword_search", "vector_search", "link", "find_entity", "rerank"):
        real = getattr(base, method)
        monkeypatch.setattr(base, method, lambda said, *a, real=real: (asked.append(said), real(said, *a))[1])
    clean = eval_retrieval(wb, "talk", lines(tmp_path / "clean.jsonl", ROWS), tools=[tool])
    bad = eval_retrieval(wb, "talk", lines(tmp_path / "bad.jsonl", [{**r, **poison} for r in ROWS]), tools=[tool])
    assert asked and not [said for said in asked if "POISON" in said]
    assert not [call for call in seen if "POISON" in str(call)]
    assert {name: line["R@5"] for name, line in bad["tools"].items()} == {
        name: line["R@5"] for name, line in clean["tools"].items()
    }
    if tool == "spy":
        assert [call["query"] for call in seen] == QUESTIONS * 2


def test_what_may_be_known_of_a_question() -> None:
    assert vars(asked_of(ROWS[0])) == {"id": "q1", "question": QUESTIONS[0], "conv": "a"}


def test_a_question_of_a_conversation_is_asked_within_it(wb, folder, tmp_path) -> None:
    seen = spied(wb)
    eval_retrieval(wb, "talk", folder / "questions.jsonl", tools=["spy"])
    assert [call["within"] for call in seen] == [["a1", "a2", "a3"], ["b1", "b2", "b3"], ["b1", "b2", "b3"]]
    seen.clear()
    eval_retrieval(wb, "talk", folder / "questions.jsonl", tools=["spy"], docs={"conv": "conv"}, limit=1)
    eval_retrieval(wb, "talk", folder / "questions.jsonl", tools=["spy"], docs={"conv": "b"}, where={"hops": "1"})
    assert [call["within"] for call in seen] == [["a1", "a2", "a3"], *[["b1", "b2", "b3"]] * 2]
    with pytest.raises(CorpusError, match="conv=c"):
        eval_retrieval(wb, "talk", folder / "questions.jsonl", docs={"conv": "c"})


def test_nothing_from_outside_a_narrowed_base(wb) -> None:
    whole = wb.knowledge.get("talk")
    assert documents_by(whole, "conv") == {"a": {"a1", "a2", "a3"}, "b": {"b1", "b2", "b3"}}
    part = Narrowed(whole, {"b1", "b2", "b3"})
    for hits in (part.keyword_search("cat", 2), part.vector_search("cat", 3)):
        assert hits and all(chunk_id.startswith("b") for chunk_id, _ in hits)
    assert part.vector_search("cat", 2) == part.vector_search("cat", 3)[:2]
    assert part.keyword_search("Misty", 5) == []
    assert [p["doc_id"] for p in part.passages(["a1#0", "b1#0"])] == ["b1"]
    assert [p["doc_id"] for p in part.passages_of(["b2", "a1"])] == ["b2"]
    assert part.select() == ["b1", "b2", "b3"]
    assert part.entity("doc:a1") is None and part.entity("doc:b1")["doc_id"] == "b1"
    assert part.mentions_of("doc:a1") == [] and part.mentions_of("doc:b1") == ["b1#0"]
    inside = {r["chunk_id"] for e in ("doc:b1", "doc:a1") for r in part.relations_of(e)}
    assert inside <= {"b1#0", "b2#0", "b3#0"}
    assert part.fingerprint() not in (whole.fingerprint(), Narrowed(whole, {"b1"}).fingerprint())
    assert part.fingerprint() == Narrowed(whole, ["b3", "b2", "b1"]).fingerprint()


def test_what_a_tool_finds_elsewhere_has_no_rank(wb, folder) -> None:
    spied(wb, [{"text": i, "id": f"{i}#0", "doc_id": i} for i, _, _ in reversed(TURNS)])
    found = eval_retrieval(wb, "talk", folder / "questions.jsonl", tools=["spy"], cuts=[1], limit=1)["tools"]["spy"]
    assert (found["R@1"], found["MRR"]) == (50.0, 100.0)


def test_a_narrowed_base_asks_for_more_until_it_has_enough() -> None:
    texts = {f"x{n:03}": "cat" for n in range(200)} | {"y1": "cat", "y2": "cat"}
    assert [i for i, _ in Narrowed(MemoryKnowledge("k", texts), ["y1", "y2"]).keyword_search("cat", 2)] == [
        "y1#0",
        "y2#0",
    ]


def test_rank_is_the_first_appearance_of_a_document(wb, folder) -> None:
    pieces = [
        {"text": "no document", "id": "x", "doc_id": ""},
        {"text": "one", "id": "a1#0", "doc_id": "a1", "score": 0.9},
        {"text": "again", "id": "a1#1", "doc_id": "a1", "score": 0.8},
        {"text": "two", "id": "a3#0", "doc_id": "a3", "score": 0.7},
    ]
    spied(wb, pieces)
    found = eval_retrieval(wb, "talk", folder / "questions.jsonl", tools=["spy"], cuts=[1, 2], limit=1)["tools"]["spy"]
    assert (found["R@1"], found["R@2"], found["all@1"], found["all@2"]) == (50.0, 100.0, 0.0, 100.0)


def test_a_cut_context_shortens_no_ranking(folder) -> None:
    def found(**settings: Any) -> dict[str, Any]:
        with Workbench.open(folder / "ws", embedding_model="hashing", names="rules", **settings) as wb:
            return eval_retrieval(wb, "talk", folder / "questions.jsonl", tools=["fusion_agent"])

    cut, whole = found(merge_max_characters=100), found()
    assert whole["tools"]["fusion_agent"]["R@5"] > 0 and "failed" not in whole["tools"]["fusion_agent"]
    assert without_ms(cut) == without_ms(whole)


def test_a_tool_that_fails_found_nothing_and_the_table_says_so(wb, folder) -> None:
    @wb.tools.tool(description="Fails")
    def broken(query: str, top_k: int = 10) -> list[str]:
        raise OSError("no such disk")

    found = eval_retrieval(wb, "talk", folder / "questions.jsonl", tools=["broken"])["tools"]["broken"]
    assert (found["R@5"], found["failed"]) == (0.0, 3)
    assert found["failures"][0] == "q1: OSError: no such disk"


def test_what_cannot_be_measured_is_said(wb, folder, tmp_path) -> None:
    with pytest.raises(UnknownTool, match="keyword_search"):
        eval_retrieval(wb, "talk", folder / "questions.jsonl", tools=["keyword"])
    with pytest.raises(CorpusError, match=r"'q1' has gold_en None.*Its fields: id, conv"):
        eval_retrieval(wb, "talk", folder / "questions.jsonl", gold="gold_en")
    with pytest.raises(CorpusError, match="holds none of the gold documents, such as 'elsewhere'"):
        eval_retrieval(wb, "talk", lines(tmp_path / "q.jsonl", [{**ROWS[0], "gold": ["elsewhere"]}]))
    with pytest.raises(CorpusError, match="Two questions have the id 'q1'"):
        eval_retrieval(wb, "talk", lines(tmp_path / "q.jsonl", [ROWS[0], ROWS[0]]))
    with pytest.raises(CorpusError, match=r"No question is left.*hops is one of 1, 2"):
        chosen(ROWS, {"hops": "9"}, None)
    with pytest.raises(CorpusError, match=r"q.jsonl:2.*'question'"):
        read_rows(lines(tmp_path / "q.jsonl", [ROWS[0], {"id": "x", "question": 7}]), "id", "question")
    some = eval_retrieval(wb, "talk", lines(tmp_path / "q.jsonl", [{**ROWS[0], "gold": ["a1", "gone"]}]))
    assert some["gold_not_in_base"] == 1 and some["tools"]["bm25"]["R@10"] == 50.0


def test_without_the_library_the_error_ends_with_the_install_line(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "ir_measures", None)
    with pytest.raises(MissingExtra, match=r"pip install 'workbench\[eval\]'$"):
        scores_of({"q": ["a"]}, {"q": ["a"]}, [1])


def test_measures_by_hand() -> None:
    gold = {"1": ["a"], "2": ["b", "c"], "3": ["d"]}
    found = scores_of(gold, {"1": ["x", "a"], "2": [*"vwxyzc", "b"], "3": []}, [1, 5])
    assert found["MRR"] == {"1": 0.5, "2": pytest.approx(1 / 6), "3": 0.0}
    assert found["R@1"] == {"1": 0.0, "2": 0.0, "3": 0.0} and found["R@5"] == {"1": 1.0, "2": 0.0, "3": 0.0}
    assert found["all@5"] == {"1": 1.0, "2": 0.0, "3": 0.0}
    assert means(found, ["1", "3"])["R@5"] == 50.0
    many = [f"d{n:02}" for n in range(60)]  # as ordered, not as named
    assert scores_of({"q": ["d00"]}, {"q": many[::-1]}, [59])["R@59"]["q"] == 0.0


def test_the_bootstrap_is_paired_and_the_same_twice() -> None:
    ids = [str(n) for n in range(200)]
    low = {"R@5": {i: float(int(i) % 2) for i in ids}}
    high = {"R@5": {i: low["R@5"][i] if int(i) % 10 else 1.0 for i in ids}}
    found = Bootstrap(ids).compare(high, low)["R@5"]
    assert found == Bootstrap(ids).compare(high, low)["R@5"]
    assert found["difference"] == 10.0 and 5 < found["low"] < 10 < found["high"] < 15 and found["p"] == 0
    unpaired = Bootstrap(ids).interval(high)["R@5"]
    assert found["high"] - found["low"] < unpaired[1] - unpaired[0]
    same = Bootstrap(ids).compare(low, low)["R@5"]
    assert (same["difference"], same["p"]) == (0.0, 1.0) and same["high"] == -same["low"] == pytest.approx(
        1.83, abs=0.01
    )
    every = {"R@5": dict.fromkeys(ids, 1.0)}
    assert Bootstrap(ids).interval(every)["R@5"] == [pytest.approx(98.12, abs=0.01), 100.0], (
        "all right is not surely all"
    )


def test_a_table_of_equal_tools_seldom_tells_them_apart() -> None:
    """Ten tools that differ by chance alone, sixty questions, 120 tables."""
    drawn = random.Random(3)
    ids, false, alone = [str(n) for n in range(60)], 0, 0
    for _ in range(120):
        first, *others = ({"R@5": {i: float(drawn.random() < 0.7) for i in ids}} for _ in range(10))
        together, single = Bootstrap(ids, family=len(others)), Bootstrap(ids)
        false += any((d := together.compare(one, first)["R@5"])["low"] > 0 or d["high"] < 0 for one in others)
        alone += any((d := single.compare(one, first)["R@5"])["low"] > 0 or d["high"] < 0 for one in others)
    assert false / 120 <= 0.1 < alone / 120, (false, alone)


def test_the_command(folder) -> None:
    words = ["eval", "retrieval", "--workspace", str(folder / "ws"), "--kb", "talk"]
    words += ["--questions", str(folder / "questions.jsonl"), "--tool", "keyword_search", "--k", "5,2"]
    runner = CliRunner(env={"WORKBENCH_EMBEDDING_MODEL": "hashing"})
    table = json.loads(runner.invoke(main, [*words, "--where", "hops=1", "--json"]).stdout)
    assert (
        table["questions"] == 2
        and {"R@2", "all@5"} <= set(table["tools"]["rrf"])
        and "R@1" not in table["tools"]["rrf"]
    )
    shown = runner.invoke(main, words).stdout.splitlines()
    assert shown[0] == "talk: 3 questions, in percent"
    assert [line.split()[0] for line in shown[2:6]] == ["keyword_search", "bm25", "dense", "rrf"]
    assert "[" in shown[2] and shown[6].startswith("bm25 against keyword_search: ")
    for wrong in (["--where", "hops"], ["--k", "0"], ["--k", "a"]):
        assert runner.invoke(main, [*words, *wrong]).exit_code == 2
