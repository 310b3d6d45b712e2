"""What of the retrieval graph is measured: its parts, its rounds of reflection, and what its scores say."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from workbench import Workbench
from workbench.cli import main
from workbench.errors import ToolError
from workbench.parts.evaluate.rankers import WITHOUT, RankResult, ranker, without
from workbench.parts.evaluate.retrieval import eval_retrieval, reliability

TEXTS = {
    "ride": ("Ride with the Devil", "Ride with the Devil is a 1999 western directed by Ang Lee."),
    "lee": ("Ang Lee", "Ang Lee was born in Pingtung in Taiwan."),
    "pingtung": ("Pingtung", "Pingtung is a county in the south of Taiwan."),
    "heat": ("Heat", "Heat is a 1995 film directed by Michael Mann."),
    "mann": ("Michael Mann", "Michael Mann was born in Chicago in the United States."),
    "chicago": ("Chicago", "Chicago is a city on Lake Michigan."),
    "喜宴": ("喜宴", "《喜宴》是李安执导的1993年电影。"),
    "李安": ("李安", "李安出生于台湾屏东。"),
}
QUESTIONS = [
    ("Where was the director of Ride with the Devil born?", ["ride", "lee"]),
    ("Where was the director of Heat born?", ["heat", "mann"]),
    ("Which city lies on Lake Michigan?", ["chicago"]),
    ("《喜宴》的导演出生在哪里？", ["喜宴", "李安"]),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("measured")
    corpus = [{"id": i, "title": title, "text": text} for i, (title, text) in TEXTS.items()]
    asked = [{"id": f"q{n}", "question": text, "gold": gold} for n, (text, gold) in enumerate(QUESTIONS)]
    for name, rows in (("corpus.jsonl", corpus), ("questions.jsonl", asked)):
        text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        (folder / name).write_text(text, encoding="utf-8")
    with Workbench.open(folder / "ws", embedding_model="hashing") as wb:
        wb.add_knowledge("small", [folder / "corpus.jsonl"])
    return folder


@pytest.fixture
def wb(folder: Path):
    with Workbench.open(folder / "ws", embedding_model="hashing") as opened:
        yield opened


def test_the_parts_are_left_out_in_the_table(wb, folder) -> None:
    table = eval_retrieval(wb, "small", folder / "questions.jsonl", tools=["fusion_agent"], parts=list(WITHOUT))
    agents = [f"fusion_agent without {part}" for part in WITHOUT]
    assert list(table["tools"]) == ["fusion_agent", *agents, "bm25", "dense", "rrf"]
    assert [row["tool"] for row in table["paired"]] == [*agents, "bm25", "dense", "rrf"]
    assert table["tools"]["fusion_agent without reflect"]["passes"] == 1
    assert table["tools"]["fusion_agent"]["passes"] >= 1 and "steps" not in table["tools"]["bm25"]
    with pytest.raises(ToolError, match="no part 'answer'"):
        eval_retrieval(wb, "small", folder / "questions.jsonl", tools=["fusion_agent"], parts=["answer"])


def test_without_a_plan_there_is_one_search_whatever_is_asked(wb) -> None:
    context = wb.ports()

    def found(name: str, ports: Any) -> RankResult:
        return asyncio.run(ranker(name, ports)(QUESTIONS[0][0], wb.knowledge.get("small")))

    one = found("fusion_agent", without("plan", without("reflect", context)))
    assert (one.steps, one.passes) == (1, 1)
    assert one.documents == found("hybrid_search", context).documents
    assert [score for _, score in one.scores] == sorted((score for _, score in one.scores), reverse=True)


def test_an_honest_score_has_no_error_and_a_boast_has_all_of_it() -> None:
    honest = reliability([(0.25, n % 4 == 0) for n in range(100)])
    boast = reliability([(0.95, n % 4 == 0) for n in range(100)])
    assert honest["ECE"] == 0 and boast["ECE"] == pytest.approx(0.7)
    assert [(one["low"], one["findings"]) for one in boast["bins"]] == [(0.9, 100)]
    assert reliability([(1.0, True)])["bins"][0]["low"] == 0.9
    assert reliability([])["bins"] == []


def test_what_scores_say_is_held_against_the_gold_documents(wb, folder) -> None:
    @wb.tools.tool(description="Sure of itself")
    def sure(query: str, top_k: int = 10) -> list[Any]:
        return [{"text": i, "id": f"{i}#0", "doc_id": i, "score": s} for i, s in (("ride", 0.9), ("heat", 0.3))]

    found = eval_retrieval(wb, "small", folder / "questions.jsonl", tools=["sure"])["tools"]["sure"]["calibration"]
    assert (found["findings"], found["said"], found["right"]) == (8, 0.6, 0.25)
    assert (found["first"]["said"], found["first"]["right"], found["first"]["ECE"]) == (0.9, 0.25, 0.65)


def test_the_commands(folder) -> None:
    place = ["--workspace", str(folder / "ws"), "--kb", "small", "--questions", str(folder / "questions.jsonl")]
    runner = CliRunner(env={"WORKBENCH_EMBEDDING_MODEL": "hashing"})

    def said(*words: str) -> str:
        done = runner.invoke(main, ["eval", words[0], *place, *words[1:]])
        assert done.exit_code == 0, done.output
        return done.stdout

    shown = said("retrieval", "--tool", "fusion_agent", "--without", "plan")
    assert "fusion_agent without plan" in shown and "without merge" not in shown
    assert runner.invoke(main, ["eval", "retrieval", *place, "--tool", "fusion_agent", "--without", "x"]).exit_code == 1
