"""Parts of one's own over a small corpus: each changes what it should, is recorded, and can be taken away again."""

from __future__ import annotations

import inspect
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.language_models import FakeListChatModel
from pydantic import SecretStr

from tests.servers import only
from workbench.errors import RunError, SettingsError, WorkbenchError
from workbench.graphs.reviewers import RuleReviewer, answer
from workbench.session import Workbench

QUESTION = "Which kiln fires the blue glaze?"
KEY = "sk-never-shown"


class Potter(FakeListChatModel):
    api_token: SecretStr = SecretStr(KEY)


@pytest.fixture
def notes(tmp_path):
    file = tmp_path / "notes.md"
    file.write_text(
        "# Kilns\n\nThe east kiln fires the blue glaze at 1240 degrees.\n\n# Wheels\n\nThe old wheel has a slow motor."
    )
    return file


@pytest.fixture
def wb(tmp_path, notes):
    with Workbench.open(tmp_path / "ws", embedding_model="hashing", names="rules") as opened:
        opened.add_knowledge("studio", [notes])
        yield opened


def test_parts_of_ones_own_are_used_recorded_and_undone(wb):
    plain = wb.ask(QUESTION, kb="studio")

    async def enough(query, evidence, proposal):
        return {"should_continue": False, "reasoning": f"{len(evidence)} is plenty"}

    async def last_first(query, evidence):
        return evidence[::-1]

    async def short(query, evidence):
        return f"Look at {evidence[0]['metadata']['title']} [1]."

    calls = []

    def by_length(query, texts):
        calls.append(len(texts))
        return [float(len(text)) for text in texts]

    for part, given in (("reflector", enough), ("merger", last_first), ("writer", short), ("reranker", by_length)):
        assert wb.register(part, given) is given
    run = wb.ask(QUESTION, kb="studio")
    assert run.reflections[-1]["reasoning"].endswith("is plenty") and calls
    scores = [piece["score"] for piece in run.evidence]
    assert scores == sorted(scores) and run.merged["context"].startswith("[1]")
    assert run.answer.startswith("Look at") and run.citations[0]["result_id"] == run.evidence[0]["result_id"]
    for part in ("reflector", "merger", "writer", "reranker"):
        wb.register(part, None)
    assert wb.replay(run.run_id).answer == run.answer, "a replay takes what the parts said from the tape"
    assert wb.ask(QUESTION, kb="studio").answer == plain.answer


def test_a_part_that_cannot_work_is_refused_and_one_that_fails_is_named(wb):
    async def empty(query, evidence):
        return ""

    with pytest.raises(WorkbenchError, match=r"async def merger\(query, evidence\)"):
        wb.register("merger", lambda query, evidence: evidence)
    with pytest.raises(WorkbenchError, match="Known: planner, reflector"):
        wb.register("poet", empty)
    wb.register("writer", empty)
    run = wb.ask(QUESTION, kb="studio")
    assert run.status == "failed" and "The writer gave" in repr(run) and "The writer gave" in str(run)
    assert "The writer gave" in run._repr_mimebundle_()["text/html"]


def test_models_may_be_objects_whose_keys_are_never_written(tmp_path, notes):
    place, chat, vectors = (
        tmp_path / "own",
        Potter(responses=["The east kiln [1]."]),
        DeterministicFakeEmbedding(size=16),
    )
    with Workbench.open(place, chat_model=chat, embedding_model=vectors, names="rules", **only("writer")) as own:
        own.add_knowledge("studio", [notes])
        run = own.ask(QUESTION, kb="studio")
        assert run.answer == "The east kiln [1]." and own.settings.chat_model == "langchain:Potter"
        assert own.replay(run.run_id).answer == run.answer
    assert not [file for file in place.rglob("*") if file.is_file() and KEY.encode() in file.read_bytes()]
    with pytest.raises(SettingsError, match="LangChain chat model"):
        Workbench.open(place, chat_model=object())
    reopened = f"from workbench import Workbench; Workbench.open({str(place)!r}).knowledge.get('studio')"
    done = subprocess.run([sys.executable, "-c", reopened], capture_output=True, text=True)
    assert "Give it again: Workbench.open(..., embedding_model=OBJECT)" in done.stderr


def test_a_reviewer_may_be_async_sees_the_evidence_and_holds_up_nobody(wb):
    seen, go = [], threading.Event()

    async def judge(request):
        seen.append([piece["metadata"]["title"] for piece in request["evidence"]])
        return answer("approve", who="judge")

    run = wb.ask(QUESTION, kb="studio", review="reflect", reviewer=judge)
    assert run.status == "done" and run.decisions[0]["who"] == "judge" and seen[0]

    def slow(request):
        assert go.wait(30)
        return RuleReviewer()(request)

    waiting = [wb.start(QUESTION, kb="studio", review="reflect", reviewer=slow) for _ in range(8)]
    assert wb.ask(QUESTION, kb="studio").status == "done"
    go.set()
    assert {one.wait().status for one in waiting} == {"done"}


def test_options_are_shown_and_many_runs_are_a_table(wb):
    taken = inspect.signature(wb.start).parameters
    for door in (wb.ask, wb.aask, wb.map, wb.amap, wb.astream):
        shown = inspect.signature(door).parameters
        assert set(taken) - {"message"} <= set(shown) and "options" not in shown
    told = []
    runs = wb.map([QUESTION, ""], kb="studio", return_exceptions=True, progress=lambda *how: told.append(how))
    assert (
        isinstance(runs, list) and isinstance(runs[1], RunError) and sorted(told) == [("asked", 1, 2), ("asked", 2, 2)]
    )
    frame = runs.to_frame()
    assert list(frame["status"]) == ["done", "refused"] and "The message is empty" in frame["error"][1]
    assert "<td>done</td>" in runs._repr_html_()


def test_type_checkers_know_the_options(tmp_path):
    asked = tmp_path / "asked.py"
    asked.write_text("from workbench import Workbench\ndef f(wb: Workbench) -> None:\n    wb.ask('x', sesion='a')\n")
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--follow-imports=silent", str(asked)],
        capture_output=True,
        text=True,
        cwd=Path(__file__).parent.parent,
    )
    assert 'Unexpected keyword argument "sesion"' in done.stdout
