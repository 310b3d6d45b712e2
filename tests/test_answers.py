"""How good answers are: the measures, ways beside one another, floor and ceiling, judges, and prompts compared."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests.servers import Reply, ScriptedServer, only, scripted_server
from tests.servers.roles import responder
from workbench.cli import main
from workbench.errors import WorkbenchError
from workbench.evaluating.answers import alpha, eval_answers, f1, normal, table_text
from workbench.language.support import checked
from workbench.session import Workbench

ROWS = [
    {"id": "1", "question": "When was the kiln built?", "answer": "1993", "gold": ["kiln.md"]},
    {"id": "2", "question": "Who built the kiln?", "answer": "Mei Lan", "gold": ["kiln.md"]},
    {"id": "3", "question": "《茶馆》是谁写的？", "answer": "老舍", "gold": ["茶馆.md"]},
    {"id": "4", "question": "Who painted the Mona Lisa?", "refuse": True},
]
TEXTS = {"kiln": "The kiln was built in 1993 by Mei Lan.", "茶馆": "《茶馆》由老舍写成。", "glaze": "A glaze has iron."}


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    with scripted_server(Reply(["It was built in 1993 [1]."])) as running:
        yield running


@pytest.fixture
def wb(tmp_path: Path, server: ScriptedServer) -> Iterator[Workbench]:
    folder = tmp_path / "notes"
    folder.mkdir()
    for name, text in TEXTS.items():
        (folder / f"{name}.md").write_text(f"# {name}\n\n{text}\n", encoding="utf-8")
    core = {"embedding_model": "hashing", "names": "rules", "rerank_model": "none"}
    told = {"chat_model": "openai:m", "chat_base_url": server.url, **core, **only("writer")}
    with Workbench.open(tmp_path / "w", **told) as opened:
        opened.add_knowledge("notes", [folder])
        yield opened


@pytest.fixture
def questions(tmp_path: Path) -> Path:
    path = tmp_path / "questions.jsonl"
    path.write_text("\n".join(json.dumps(row, ensure_ascii=False) for row in ROWS), encoding="utf-8")
    return path


def test_the_measures() -> None:
    assert normal("The Kiln!") == "kiln" and f1("老舍写的", "老舍") == pytest.approx(2 / 3)
    assert alpha([[True, True], [True, True]]) is None and alpha([[1, 1], [0, 0], [1, 1]]) == 1.0
    assert alpha([[True, False], [False, True]]) < 0


def test_ways_floor_and_ceiling_stand_beside_one_another(wb, questions, server) -> None:
    table = eval_answers(wb, "notes", questions)
    assert list(table["ways"]) == ["as set", "rules", "closed book", "gold evidence"]
    by = table["ways"]
    assert by["as set"]["holds"] == 25.0 and by["rules"]["holds"] == 75.0, "the model always says 1993"
    assert by["rules"]["refused"] == 25.0 and by["rules"]["wrongly refused"] == 0
    assert by["closed book"]["R@5"] == 0 and by["gold evidence"]["R@5"] == 75.0
    [paired] = table["paired"]
    assert (paired["way"], paired["against"], paired["holds"]["difference"]) == ("rules", "as set", 50.0)
    assert "as set" in table_text(table)


def test_judges_count_where_all_of_them_agree(wb, questions, server) -> None:
    def judged(text: str) -> dict[str, Any]:
        reference = text.partition("<reference>\n")[2].partition("\n</reference>")[0]
        answer = text.partition("<answer>\n")[2].partition("\n</answer>")[0]
        return {"correct": bool(reference) and reference in answer, "faithful": True, "reason": "as it says"}

    server.respond = responder(judge=judged, writer=lambda _: "It was built in 1993 [1].")
    table = eval_answers(wb, "notes", questions, judges=["openai:a", "openai:b"])
    of = table["judged"]["rules"]
    assert (of["correct"], of["correct agreed"], of["correct alpha"]) == (75.0, 4, 1.0)
    assert of["faithful"] == 100.0 and "alpha" in table_text(table)
    server.respond = responder(judge=lambda _: "I cannot say", writer=lambda _: "1993 [1].")
    assert eval_answers(wb, "notes", questions, judges=["openai:a"])["judged"]["rules"]["refused"] == 4
    with pytest.raises(WorkbenchError, match="one to 5"):
        eval_answers(wb, "notes", questions, judges=["openai:a"] * 6)


def test_two_versions_of_a_prompt_are_scored_on_the_same_questions(
    wb, questions, server, tmp_path, monkeypatch
) -> None:
    other = tmp_path / "brief.toml"
    other.write_text('version = 2\nsystem = "Be exact. $evidence"\nuser = "$question"\n', encoding="utf-8")
    server.respond = lambda request: Reply(
        ["Mei Lan built it in 1993 [1]." if "Be exact" in str(request["messages"][0]) else "No idea."]
    )
    wb.close()
    monkeypatch.setenv("WORKBENCH_WRITER_MODEL", "openai:m")
    monkeypatch.setenv("WORKBENCH_CHAT_BASE_URL", server.url)
    asked = ["--workspace", str(tmp_path / "w"), "--kb", "notes", "--questions", str(questions), "--with", str(other)]
    done = CliRunner().invoke(main, ["prompts", "test", "writer", *asked, "--json"])
    assert done.exit_code == 0, done.output
    [paired] = json.loads(done.stdout)["paired"]
    assert paired["way"] == "brief.toml" and paired["holds"]["difference"] == 50.0
    refused = CliRunner().invoke(main, ["prompts", "test", "planner", *asked])
    assert refused.exit_code == 1 and "WORKBENCH_PLANNER_MODEL" in refused.output


def test_prompts_are_listed_and_shown(tmp_path: Path) -> None:
    (tmp_path / "w" / "prompts").mkdir(parents=True)
    place = ["--workspace", str(tmp_path / "w")]
    shown = CliRunner().invoke(main, ["prompts", "show", "grader", *place])
    (tmp_path / "w" / "prompts" / "grader.en.toml").write_text(shown.stdout + "# mine\n", encoding="utf-8")
    listed = json.loads(CliRunner().invoke(main, ["prompts", "list", *place, "--json"]).stdout)["prompts"]
    own = [row for row in listed if row["source"] != "shipped"]
    assert len(listed) == 18 and [row["name"] for row in own] == ["grader.en"]
    assert "Known: router" in CliRunner().invoke(main, ["prompts", "show", "poet", *place]).output


@pytest.mark.parametrize(
    ("said", "verdict"),
    [
        ("The kiln was built in 1993 [1].", "supported"),
        ("The kiln was built in 1883 [1].", "unsupported"),
        ("The kiln was not built in 1993 [1].", "unsupported"),
        ("The kiln was built in 1993.", "uncited"),
        ("The kiln was built in 1993 [2].", "unsupported"),
        ("《茶馆》由老舍写成 [3]。", "supported"),
        ("《茶馆》不是老舍写成的 [3]。", "unsupported"),
        ("《茶馆》于1957年由老舍写成 [3]。", "unsupported"),
    ],
)
def test_a_statement_is_held_against_what_it_cites(said: str, verdict: str) -> None:
    sources = {n: f"{name}\n{text}" for n, (name, text) in enumerate(TEXTS.items(), 1)}
    sources = {1: sources[1], 2: sources[3], 3: sources[2]}
    [one] = checked(said, sources)
    assert one.verdict == verdict, one


def test_what_states_nothing_is_not_checked() -> None:
    assert not checked("The corpus does not say. What was it? These are:", {})
    assert not checked("资料库中没有提到。", {})
