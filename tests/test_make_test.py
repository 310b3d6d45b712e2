"""A run as a test: it passes as long as today's code takes the recorded course, and names where it does not."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.servers import Reply, scripted_server
from tests.shelves import QUESTION, environment, opened, workbench
from tests.test_capsule import FIVE, first, model, rewritten, shelf  # noqa: F401 - a fixture
from workbench.errors import CapsuleError, Divergence, RunError
from workbench.session import Workbench

CHINESE = "李安导演的电影《Film 7》讲了什么？"


@pytest.fixture(scope="module")
def made(shelf, tmp_path_factory) -> Path:  # noqa: F811
    """A folder with the tests of an English run, a Chinese one, one with decisions, and one that a model worded."""
    folder, tests = tmp_path_factory.mktemp("made") / "workspace", tmp_path_factory.mktemp("tests")
    shutil.copytree(shelf, folder)
    with opened(folder) as wb:
        wb.ask(CHINESE, kb="film")
        for name, message in (("english", QUESTION), ("chinese", CHINESE), ("five", FIVE)):
            wb.make_test(first(wb, message).run_id, tests / f"test_{name}.py")
    with (
        scripted_server(Reply(["Ang Lee ", "made it [1]."])) as server,
        Workbench.open(folder, model(server.url)) as wb,
    ):
        run = wb.ask("Who directed Film 8?", kb="film")
        wb.make_test(run.run_id, tests / "test_model.py")
    return tests


def ran(tests: Path, change: str = "") -> subprocess.CompletedProcess[str]:
    """Pytest over a folder in a process of its own, with today's code changed in one place."""
    command = "import sys, pytest\n" + change + "\nsys.exit(pytest.main(['-q', '-p', 'no:cacheprovider', sys.argv[1]]))"
    told = {name: value for name, value in environment().items() if not name.startswith("PYTEST")}
    return subprocess.run(
        [sys.executable, "-c", command, str(tests)], capture_output=True, text=True, env=told, cwd=tests, timeout=200
    )


def test_they_pass_and_are_clean_and_short(made):
    done = ran(made)
    assert done.returncode == 0 and "4 passed" in done.stdout, done.stdout
    for command in (["check", "--isolated"], ["format", "--check", "--isolated", "--line-length", "120"]):
        subprocess.run([sys.executable, "-m", "ruff", *command, str(made)], check=True, capture_output=True)
    text = (made / "test_chinese.py").read_text(encoding="utf-8")
    assert f"# {CHINESE}\n" in text and text.count("\n") < 25


CHANGES = {
    "router": (
        "import workbench.graphs.route as r\nold = r._with_worker\n"
        "def changed(route, name):\n    found = old(route, name)\n"
        "    return r.Route({**found.decision, 'query_intent': 'compare'}, found.kb_prefixes)\n"
        "r._with_worker = changed",
        "route 'decision': input.query_intent",
    ),
    "planner": (
        "import workbench.graphs.plan as p\np.drafts_for = lambda ask, *_: [ask.search()]",
        "plan 'versions'",
    ),
    "reflector": (
        "import workbench.graphs.reflect as r\nold = r.propose\n"
        "r.propose = lambda *a, **k: {**old(*a, **k), 'should_continue': False, 'stop_reason': 'budget_exhausted'}",
        "reflection 'judgements'",
    ),
    "merger": (
        "import workbench.graphs.merge as m\nold = m.merge\n"
        "def changed(*a, **k):\n    merged = old(*a, **k)\n"
        "    return {**merged, 'retrieval_results': merged['retrieval_results'][::-1]}\n"
        "m.merge = changed",
        "evidence 'merged'",
    ),
    "dispatcher": (
        "import workbench.graphs.retrieval as d\nold = d.next_wave\n"
        "d.next_wave = lambda *a: [s for s in old(*a) if 'hybrid' not in s.tool]",
        "knowledge 'film.matches'",  # a step that is left out shows in the evidence that the reflector judges
    ),
    "writer": (
        "import workbench.graphs.generate as n\nold = n.offline\n"
        "n.offline = lambda *a: n.Answer('Nobody knows [1].', old(*a).citations)",
        "answer 'text'",
    ),
}


@pytest.mark.parametrize("what", CHANGES)
def test_a_change_is_named_where_it_shows_first(made, tmp_path, what):
    change, says = CHANGES[what]
    folder = tmp_path / "one"
    folder.mkdir()
    for name in ("english", "chinese"):
        for suffix in (".py", ".zip"):
            shutil.copy(made / f"test_{name}{suffix}", folder)
    done = ran(folder, change)
    assert done.returncode == 1 and "2 failed" in done.stdout, done.stdout
    assert done.stdout.count(f"The replay diverges at {says}") >= 2, done.stdout
    assert "Expected" in done.stdout


def answers(words: str):
    def change(contents):
        for effect in contents["tape"]:
            if (effect["kind"], effect["name"]) == ("model", "answer"):
                effect["value"] = [words]

    return change


def test_what_a_model_words_is_free(made, tmp_path):
    rewritten(made / "test_model.zip", tmp_path / "test_model.zip", answers("Somebody else did, as [2] says."))
    shutil.copy(made / "test_model.py", tmp_path)
    assert ran(tmp_path).returncode == 0
    prompt = "import workbench.graphs.generate as p\nimport workbench.graphs.generate as n\nold = n.messages\n"
    assert ran(tmp_path, prompt + "n.messages = lambda *a: old(*a)[:-1] + old(*a)[-1:] * 2").returncode == 0


def test_changed_evidence_fails(made, tmp_path):
    def change(contents):
        contents["run"]["result"]["merged"]["retrieval_results"][0]["score"] = 0.123

    rewritten(made / "test_model.zip", tmp_path / "test_model.zip", change)
    shutil.copy(made / "test_model.py", tmp_path)
    done = ran(tmp_path)
    assert done.returncode == 1 and "diverges at evidence 'merged': input[0].score" in done.stdout, done.stdout


def test_a_decision_on_another_proposal_is_told(made, shelf, tmp_path, monkeypatch):  # noqa: F811
    folder = Path(shutil.copytree(shelf, tmp_path / "workspace"))
    from workbench.graphs import plan

    with opened(folder) as wb:
        monkeypatch.setattr(plan, "drafts_for", lambda ask, *_: [ask.search()])
        with pytest.raises(Divergence) as raised:
            wb.replay(first(wb, FIVE).run_id, "check")
        assert raised.value.kind in ("plan", "decision")


def test_it_writes_over_nothing_and_refuses_what_is_not_done(shelf, tmp_path):  # noqa: F811
    folder = Path(shutil.copytree(shelf, tmp_path / "workspace"))
    with opened(folder) as wb:
        run, path = first(wb), tmp_path / "test_x.py"
        path.write_text("mine")
        with pytest.raises(CapsuleError, match="is there already"):
            wb.make_test(run.run_id, path)
        assert path.read_text() == "mine"
        waiting = wb.ask(QUESTION, kb="film", review={"plan"})
        with pytest.raises(RunError, match="only a run that is done"):
            wb.make_test(waiting.run_id, tmp_path / "test_y.py")
    said = workbench(folder, "export", run.run_id, str(tmp_path / "test_z.py"), "--json")
    assert json.loads(said.stdout)["path"].endswith("test_z.py") and (tmp_path / "test_z.zip").exists()


@pytest.mark.parametrize("question", ["It's \"both\" 'kinds'", "\u202egnp.exe \\ \\n", 'say "yes"', "喜" * 200])
def test_any_question_makes_a_file_that_is_clean(question, tmp_path):
    from workbench.futures.capsule import test_source

    path = tmp_path / "test_x.py"
    path.write_text(test_source("test_x", question), encoding="utf-8")
    told: dict = {}
    exec(compile(path.read_text(encoding="utf-8"), str(path), "exec"), told)  # noqa: S102
    assert "test_x" in told and path.read_text(encoding="utf-8").count("\n") == 16
    for command in (["check", "--isolated", "--select", "E,F,I,W"], ["format", "--check", "--isolated"]):
        line = ["--line-length", "120"]
        subprocess.run([sys.executable, "-m", "ruff", *command, *line, str(path)], check=True, capture_output=True)
