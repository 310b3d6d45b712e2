"""A workspace that an earlier version wrote opens, shows, goes on and answers; one of a later version is refused."""

from __future__ import annotations

import json
import sqlite3
import zipfile
from pathlib import Path

import pytest

from tests.shelves import opened, workbench
from workbench.errors import KnowledgeError, WorkspaceError

FIXTURES = Path(__file__).resolve().parent / "fixtures"
VERSIONS = sorted(path.stem.removeprefix("workspace-") for path in FIXTURES.glob("workspace-*.zip"))


@pytest.fixture(params=VERSIONS)
def older(request, tmp_path) -> Path:
    with zipfile.ZipFile(FIXTURES / f"workspace-{request.param}.zip") as packed:
        packed.extractall(tmp_path / "workspace")
    return tmp_path / "workspace"


def expected(folder: Path) -> dict[str, dict[str, str]]:
    return json.loads((folder / "expected.json").read_text(encoding="utf-8"))


def test_there_is_one_and_it_is_small():
    assert "8ed6328" in VERSIONS
    assert all((FIXTURES / f"workspace-{version}.zip").stat().st_size < 300_000 for version in VERSIONS)


def test_runs_show_go_on_and_answer_as_that_version_did(older):
    ids, answers = expected(older)["runs"], expected(older)["answers"]
    with opened(older) as wb:
        assert {how: wb.run(run_id).status for how, run_id in ids.items()} == {how: how for how in ids}
        assert wb.run(ids["done"]).answer == answers["done"]
        assert wb.run(ids["done"]).to_dict()["citations"]
        assert "饮食男女" in answers["interrupted"] and "饮食男女" in wb.run(ids["interrupted"]).resume().answer
        assert wb.run(ids["paused"]).review["point"] == "reflect"
        assert "Edward Yang" in answers["paused"] and "Edward Yang" in wb.run(ids["paused"]).approve().answer


def test_its_index_answers_and_takes_more(older, tmp_path):
    with opened(older) as wb:
        base = wb.knowledge.get("shelf")
        assert base.counts()["documents"] == 4
        assert wb.ask("《喜宴》是哪一年的？", kb="shelf").answer == "《喜宴》：年份为 1993 [1]。"
        more = {"id": "more", "title": "Crouching Tiger", "type": "Film", "year": 2000, "directors": ["Ang Lee"]}
        (tmp_path / "more.jsonl").write_text(json.dumps({**more, "overview": "Crouching Tiger is a film."}) + "\n")
        assert wb.add_knowledge("shelf", [tmp_path / "more.jsonl"]).added == 1
        assert wb.ask("Who directed Crouching Tiger?", kb="shelf").answer.startswith(
            "Crouching Tiger: directors Ang Lee"
        )
        assert wb.rebuild_knowledge("shelf").added == 5, "also without the files, whose paths nobody had noted"


def test_it_can_be_pruned_and_examined(older):
    assert workbench(older, "doctor").returncode == 0
    with opened(older) as wb:
        wb.gc(yes=True)
        ids = expected(older)["runs"]
        assert wb.run(ids["paused"]).approve().status == "done"


NEWER = {
    "workbench.db": "INSERT INTO run_migrations VALUES (99)",
    "conversations": "INSERT INTO conversation_migrations VALUES (99, 'later', '')",
    "knowledge/shelf/index.db": "PRAGMA user_version = 99",
}


@pytest.mark.parametrize("what", NEWER)
def test_what_a_later_version_wrote_is_refused_and_left_as_it_is(older, what):
    path = older / (what if what.endswith(".db") else "workbench.db")
    connection = sqlite3.connect(path)
    connection.execute(NEWER[what])
    connection.commit()
    connection.close()
    before = path.read_bytes()
    done = workbench(older, "kb", "list")
    assert done.returncode == 1 and "Traceback" not in done.stderr
    assert "pgrade" in done.stderr and "99" in done.stderr
    with pytest.raises((WorkspaceError, KnowledgeError), match="99"), opened(older) as wb:
        wb.knowledge.get("shelf")
    assert path.read_bytes() == before
    if what.endswith("index.db"):
        with opened(older) as wb:
            assert wb.run(expected(older)["runs"]["done"]).answer, "the runs do not need the index"


def test_a_worker_of_one_part_is_the_base_that_it_was(older):
    """``film`` alone was a knowledge base; today one part is an agent type."""
    run_id = expected(older)["runs"]["done"]
    with sqlite3.connect(older / "workbench.db") as file:
        (kept,) = file.execute("SELECT options FROM runs WHERE run_id = ?", (run_id,)).fetchone()
        with opened(older) as wb:
            base = wb.knowledge.names()[0]
        told = json.dumps({**json.loads(kept), "kb": [], "worker": base})
        file.execute("UPDATE runs SET options = ? WHERE run_id = ?", (told, run_id))
    with opened(older) as wb:
        fork = wb.run(run_id).fork(query=f"{wb.run(run_id).message} now")
        assert fork.status == "done" and fork.kb_prefix == base, fork.error
