"""What of the retrieval graph is measured: its parts, its rounds of reflection, and what its scores say."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests.test_benchmarks import QUESTIONS, TEXTS
from workbench import Workbench
from workbench.cli import main
from workbench.errors import ToolError
from workbench.evaluating import calibration, reflection
from workbench.evaluating.bench import eval_calibration, eval_reflection, eval_retrieval, eval_together
from workbench.evaluating.calibration import reliability, rows_of
from workbench.evaluating.rankings import WITHOUT, Asked, Found, ranker, without
from workbench.views.figures import reliability as drawn


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("measured")
    corpus = [{"id": i, "title": title, "text": text} for i, (title, text) in TEXTS.items()]
    asked = [{"id": f"q{n}", "question": text, "gold": gold} for n, (text, gold) in enumerate(QUESTIONS)]
    for name, rows in (("corpus.jsonl", corpus), ("questions.jsonl", asked)):
        text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        (folder / name).write_text(text, encoding="utf-8")
    with Workbench.open(folder / "ws", embedding_model="hashing", names="rules") as wb:
        wb.add_knowledge("small", [folder / "corpus.jsonl"])
    return folder


@pytest.fixture
def wb(folder: Path):
    with Workbench.open(folder / "ws", embedding_model="hashing", names="rules") as opened:
        yield opened


def told(table: dict[str, Any]) -> dict[str, Any]:
    """Without times, and without intervals, which are wider in a table of more lines."""
    beside = ("ms", "against")
    return json.loads(json.dumps(table), object_hook=lambda held: {k: v for k, v in held.items() if k not in beside})


def test_each_row_differs_from_the_whole_in_one_setting(wb) -> None:
    context = wb.ports()
    for part, settings in WITHOUT.items():
        left = without(part, context).settings.model_dump()
        own = context.settings.model_dump()
        assert {name for name in own if own[name] != left[name]} == set(settings) and len(settings) == 1
    with pytest.raises(ToolError, match=r"no part 'hope'.*plan, reflect, merge"):
        without("hope", context)


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
    context, asked = wb.ports(), Asked("q", QUESTIONS[0][0])

    def found(name: str, ports: Any) -> Found:
        return asyncio.run(ranker(name, ports)(asked, wb.knowledge.get("small")))

    one = found("fusion_agent", without("plan", without("reflect", context)))
    assert (one.steps, one.passes) == (1, 1)
    assert one.documents == found("hybrid_search", context).documents
    assert [said for _, said in one.said] == sorted((said for _, said in one.said), reverse=True)


def test_rounds_of_reflection(wb, folder) -> None:
    table = eval_reflection(wb, "small", folder / "questions.jsonl", passes=2, cuts=(1, 2))
    first, second = table["rounds"]
    assert (first["passes"], first["went_on"], second["passes"]) == (1, len(QUESTIONS), 2)
    assert "against" not in first and second["gained"] + second["lost"] <= second["went_on"]
    assert second["against"]["difference"] == pytest.approx(second["R@2"] - first["R@2"], abs=0.02)
    assert second["steps"] >= first["steps"]
    shown = reflection.table_text(table).splitlines()
    assert shown[0] == "small: 4 questions to fusion_agent, in percent"
    assert f"{second['gained']} better, {second['lost']} worse" in shown[3]
    judged = table["judged"]
    assert judged["asked"] == len(QUESTIONS) and judged["at"] == 2
    told = next(place for place, line in enumerate(shown) if line.startswith("a document is missing, of 4: "))
    assert "by the top score: AUC" in shown[told + 1] and [*table["policies"]] == ["always", "right title"]
    assert table["policies"]["right title"]["R@2"] >= first["R@2"] and shown[4] == "always"


def test_a_row_of_each_question(wb, folder) -> None:
    table = eval_reflection(wb, "small", folder / "questions.jsonl", passes=2, cuts=(1, 2))
    rows = table["rows"]
    assert [row["id"] for row in rows] == ["q0", "q1", "q2", "q3"]
    assert all(len(row["passes"]) == 2 and row["lacks"] == (row["passes"][0] < 1) for row in rows)
    assert sum(row["lacks"] for row in rows) == table["judged"]["incomplete"]["2"]


def test_what_people_decided_stands_in_the_same_table(wb, folder) -> None:
    question = QUESTIONS[0][0]
    run = wb.ask(question, kb="small", review=["reflect"])
    run.reject()
    wb.ask(QUESTIONS[1][0], kb="small", review=["reflect"])  # waits: nobody has decided
    people = reflection.decided_by_people(wb.runs(), "small")
    assert list(people) == [question] and not reflection.decided_by_people(wb.runs(), "other")
    table = eval_reflection(wb, "small", folder / "questions.jsonl", passes=1, decided=True)
    assert next(iter(set(table["policies"]) - {"always", "right title"})) == "people, 1 of 4"


def test_one_asking_gives_the_tables_of_three(wb, folder) -> None:
    questions = folder / "questions.jsonl"
    all_of = eval_together(wb, "small", questions, tools=["hybrid_search"])
    alone = eval_retrieval(wb, "small", questions, tools=["fusion_agent", "hybrid_search"], parts=list(WITHOUT))
    assert told(all_of["retrieval"]) == {name: value for name, value in told(alone).items() if name != "models"}
    rounds = eval_reflection(wb, "small", questions, cuts=(1, 2, 5, 10))["rounds"]
    assert told(all_of["reflection"])["rounds"] == told({"rounds": rounds})["rounds"]
    tools = eval_calibration(wb, "small", questions, tools=["fusion_agent", "hybrid_search"])["tools"]
    assert all_of["calibration"]["tools"] == tools


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

    found = eval_calibration(wb, "small", folder / "questions.jsonl", tools=["sure"])["tools"]["sure"]
    assert (found["findings"], found["said"], found["right"]) == (8, 0.6, 0.25)
    assert (found["first"]["said"], found["first"]["right"], found["first"]["ECE"]) == (0.9, 0.25, 0.65)


def test_the_diagram_carries_its_rows_and_speaks_both_languages(wb, folder) -> None:
    table = eval_calibration(wb, "small", folder / "questions.jsonl", tools=["hybrid_search", "keyword_search"])
    rows = rows_of(table)
    for language, word in (("en", "stated"), ("zh", "概率")):
        figure = drawn(rows, language=language)
        assert len(figure.data) == 2 and word in figure.layout.xaxis.title.text
        assert figure.to_frame().to_dict("records") == rows
    assert figure.data[0].marker.symbol != figure.data[1].marker.symbol
    hostile = drawn([{**rows[0], "tool": "<b>$x$</b>"}])
    assert "<b>$" not in hostile.to_json() and drawn([]).data == ()
    assert len(rows_of(table, "first")) <= len(rows) and "hybrid_search" in calibration.table_text(table)


def test_the_commands(folder, tmp_path) -> None:
    place = ["--workspace", str(folder / "ws"), "--kb", "small", "--questions", str(folder / "questions.jsonl")]
    runner = CliRunner(env={"WORKBENCH_EMBEDDING_MODEL": "hashing", "WORKBENCH_NAMES": "rules"})

    def said(*words: str) -> str:
        done = runner.invoke(main, ["eval", words[0], *place, *words[1:]])
        assert done.exit_code == 0, done.output
        return done.stdout

    shown = said("retrieval", "--tool", "fusion_agent", "--without", "plan")
    assert "fusion_agent without plan" in shown and "without merge" not in shown
    assert json.loads(said("reflection", "--passes", "2", "--json"))["rounds"][1]["passes"] == 2
    assert said("reflection", "--passes", "1").splitlines()[1].startswith("passes")
    plot = tmp_path / "plot.html"
    assert "hybrid_search" in said("calibration", "--tool", "hybrid_search", "--plot", str(plot), "--lang", "zh")
    page = plot.read_text(encoding="utf-8")
    assert "hybrid_search" in page and 'src="http' not in page
    assert runner.invoke(main, ["eval", "retrieval", *place, "--tool", "fusion_agent", "--without", "x"]).exit_code == 1
