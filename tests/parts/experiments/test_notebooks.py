"""Notebooks with parameters: checked at every door, executed in warm kernels that share nothing, and scheduled."""

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

import httpx
import nbformat
import pytest
import yaml

from tests import forked
from tests.parts.experiments.test_experiments import place, wb  # noqa: F401, fixtures
from tests.servers import free_port, until
from workbench.errors import WorkbenchError
from workbench.parts.experiments import notebook
from workbench.parts.experiments.notebook import parameters, result, results
from workbench.session import Workbench

NAMES = ("ask", "fusion", "memory", "prompts", "reflect_policy", "report", "retrieval_quality", "your_graph")
IMPORT = "from workbench.parts.experiments.notebook import parameters, result"


def new_notebook(folder: Path, body: str = "result('double', 2 * top_k)", declared: str = "") -> Path:
    cell = declared or "top_k: int = 8\nnames: list[str] = []"
    cells = [
        nbformat.v4.new_code_cell(cell, metadata={"tags": ["parameters"]}),
        nbformat.v4.new_code_cell(f"{IMPORT}\nparameters(globals())\n{body}"),
    ]
    path = folder / "one.ipynb"
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    nbformat.write(nbformat.v4.new_notebook(cells=cells, metadata=kernel), path)
    return path


def test_parameters_and_results_of_a_notebook_are_checked(tmp_path: Path) -> None:
    path = new_notebook(tmp_path)
    assert notebook.checked(path, {"names": '["a"]', "top_k": "3"}) == {"names": ["a"], "top_k": 3}
    with pytest.raises(WorkbenchError, match=r"no parameter 'topk'. Known: top_k: int, names: list\[str\]"):
        notebook.checked(path, {"topk": 3})
    for wrong in ("many", True, 2.5, None, [3]):
        with pytest.raises(WorkbenchError, match=r"top_k is .*, but input should be a valid integer"):
            notebook.checked(path, {"top_k": wrong})
    for wrong in ("a", '{"a": 1}', [1]):
        with pytest.raises(WorkbenchError, match="names is "):
            notebook.checked(path, {"names": wrong})
    with pytest.raises(WorkbenchError, match="'x' cannot be kept as JSON"):
        result("x", float("nan"))
    with pytest.raises(WorkbenchError, match="cannot be read"):
        results(tmp_path / "n.ipynb")
    (tmp_path / "n.ipynb").write_text("not json")
    with pytest.raises(WorkbenchError, match="cannot be read"):
        results(tmp_path / "n.ipynb")


@pytest.mark.parametrize(
    ("cells", "values", "message"),
    [
        (["top_k: int = 8", "# Parameters\ntop_k = 4"], {"top_k": 4}, ""),
        (["top_k: int = 8", "# Parameters\ntopk = 4"], {"top_k": 8, "topk": 4}, "no parameter 'topk'"),
        (["top_k: int = 'many'"], {"top_k": "many"}, "top_k is 'many'"),
        (["top_k: int = 8", "print(top_k)", "x = 3"], {"top_k": 8, "x": 3}, ""),
    ],
)
def test_what_papermill_or_a_person_put_into_a_notebook_is_checked(cells, values, message):
    names = {"In": ["", *cells, "parameters(globals())"], **values}
    if message:
        with pytest.raises(WorkbenchError, match=message):
            parameters(names)
    else:
        assert parameters(names) == {"top_k": values["top_k"]}


def test_paths_are_the_workspaces_wherever_a_notebook_starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "project" / ".workbench").mkdir(parents=True)
    (tmp_path / "project" / "data.jsonl").touch()
    (tmp_path / "project" / "experiments").mkdir()
    cell = 'workspace: str = ".workbench"\ncorpus: str = "data.jsonl"'
    given = {"In": [cell], "corpus": "data.jsonl"}
    project = tmp_path / "project"
    for folder, workspace in (
        (project, ".workbench"), (project / "experiments", ".workbench"), (tmp_path, str(project / ".workbench")),
    ):  # fmt: skip
        monkeypatch.chdir(folder)
        values = parameters({**given, "workspace": workspace}, paths=["corpus"])
        assert values == {"workspace": str(project / ".workbench"), "corpus": str(project / "data.jsonl")}
    with pytest.raises(WorkbenchError, match=r"corpus is 'none.jsonl', and there is no such file in .*project"):
        parameters({**given, "workspace": str(project / ".workbench"), "corpus": "none.jsonl"}, paths=["corpus"])


@pytest.mark.slow
def test_stock_papermill_refuses_what_the_notebook_does_not_declare(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "papermill", "--no-progress-bar", str(new_notebook(tmp_path))]
    done = subprocess.run([*command, str(tmp_path / "o.ipynb"), "-y", "topk: 4"], capture_output=True, text=True)
    assert done.returncode == 1 and "no parameter 'topk'. Known: top_k: int" in done.stderr


def sweep(path: Path, **changes: Any) -> dict[str, Any]:
    return {"name": "notebooks", "notebook": str(path), "grid": {"top_k": [2, 3]}, "measure": "double", **changes}


def test_a_sweep_over_a_notebook_keeps_a_failing_one_with_its_error(place: Path, wb: Workbench) -> None:  # noqa: F811
    path = new_notebook(place, "result('double', 2 * top_k)\nassert top_k < 3, 'too many'")
    frame = wb.experiments.run(sweep(path)).to_frame()
    with pytest.raises(WorkbenchError, match=r"grid.topk: .* has no parameter 'topk'"):
        wb.experiments.run(sweep(path, grid={"topk": [1]}))
    assert list(frame["status"]) == ["done", "failed"] and list(frame["double"]) == [4, 6]
    assert frame["error"][1] == "AssertionError: too many" and Path(frame["run_id"][1]).is_file()
    assert json.loads(Path(frame["run_id"][1]).read_text())["cells"]


ISOLATED = """
import os, random, sys
import numpy
result("clean", float("leak" not in globals() and "LEAK" not in os.environ and "wave" not in sys.modules))
result("here", float(os.getcwd() == HOME))
result("random", random.random() + numpy.random.random())
import wave
leak = os.environ["LEAK"] = "yes"
random.seed(1), numpy.random.seed(1)
os.chdir("/")
if top_k == 3 and not os.path.exists(HOME + "/died"):
    open(HOME + "/died", "w").close()
    os.kill(os.getpid(), 9)
"""


def test_warm_kernels_share_nothing_and_one_that_dies_is_started_again(place: Path, wb: Workbench) -> None:  # noqa: F811
    path = new_notebook(place, f"HOME = {str(place)!r}\n{ISOLATED}")
    done = wb.experiments.run(sweep(path, name="isolated", grid={"top_k": [1, 2, 3]}, repeats=2))
    frame = done.to_frame()
    assert set(frame["status"]) == {"done"} and set(frame["clean"]) == set(frame["here"]) == {1.0}
    assert frame["random"].nunique() == 6


def test_a_runner_that_is_killed_takes_its_kernels_along_and_is_continued(place: Path, wb: Workbench) -> None:  # noqa: F811
    waits = f"top_k == 2 and os.path.exists({str(place / 'slow')!r}) and time.sleep(300)"
    tells = f"open({str(place / 'pid')!r}, 'w').write(str(os.getpid()))"
    path = new_notebook(place, f"import os, time\n{tells}\n{waits}\nresult('double', 2)")
    (place / "slow").touch()
    script = f"""
from workbench.session import Workbench
with Workbench.open({str(place / "w")!r}, embedding_model="hashing") as wb:
    wb.experiments.run({sweep(path, name="runner", grid={"top_k": [1, 2]})!r})
"""
    runner = forked.Popen([sys.executable, "-c", script])

    def begun() -> bool:
        known = "runner" in [experiment.name for experiment in wb.experiments]
        return known and wb.experiments.get("runner").status()["done"] == 1 and (place / "pid").exists()

    until(begun, 180)  # a busy machine starts a runner and a kernel in a minute
    time.sleep(1)
    kernel = int((place / "pid").read_text())
    runner.send_signal(signal.SIGKILL)
    runner.wait()
    (place / "slow").unlink()
    done = wb.experiments.run(sweep(path, name="runner", grid={"top_k": [1, 2]}))
    assert done.status()["done"] == 2 == len(done.to_frame())
    until(lambda: not Path(f"/proc/{kernel}").exists())


def documented(project: Path, name: str) -> list[str]:
    """The command in the notebook's first cell, as a shell takes it apart."""
    cells = json.loads((project / "experiments" / f"{name}.ipynb").read_text(encoding="utf-8"))["cells"]
    found = re.search(r"`(papermill .+?)` runs it", "".join(cells[0]["source"]))
    assert found
    command = shlex.split(found[1])
    assert command[:3] == ["papermill", f"experiments/{name}.ipynb", "out.ipynb"]
    return command[3:]


def test_every_notebook_is_typed_and_documents_a_command_that_fits(project: Path) -> None:
    assert {path.stem for path in (project / "experiments").glob("*.ipynb")} == set(NAMES)
    for name in NAMES:
        known, words = notebook.parameters_of(project / "experiments" / f"{name}.ipynb"), documented(project, name)
        assert known["experiment"].default == name and known["workspace"].default == ".workbench"
        values = dict(pair for n, word in enumerate(words) if word == "-p" for pair in [words[n + 1 : n + 3]])
        for word in (words[n + 1] for n, word in enumerate(words) if word == "-y"):
            values |= yaml.safe_load(word)
        assert values and notebook.checked(project / "experiments" / f"{name}.ipynb", values).keys() <= known.keys()


FINDS = {
    "ask": lambda found: found["status"] == "done" and found["titles"],
    "fusion": lambda found: [row["strategy"] for row in found["table"]] == ["rrf", "rrf"],
    "memory": lambda found: found["right"] > 0,
    "prompts": lambda found: len(found["table"]) == 2 and found["table"][1]["again"],
    "reflect_policy": lambda found: found["reflections"] >= 1 and len(found["table"]) == 1,
    "report": lambda found: found["row"]["status"] == "completed",
    "retrieval_quality": lambda found: found["questions"] == 4 and found["recall"] > 0.5,
    "your_graph": lambda found: found["replayed_equal"] and found["executed"] >= 1,
}


@pytest.mark.full
@pytest.mark.parametrize("name", NAMES)
def test_a_notebook_runs_as_documented_from_elsewhere_and_its_runs_have_its_name(name, project, workspace, tmp_path):
    command = [sys.executable, "-m", "papermill", str(project / "experiments" / f"{name}.ipynb"), "out.ipynb"]
    given = ["-p", "workspace", str(workspace), "-p", "corpus", str(project / "data" / "films.jsonl")]
    if "questions" in notebook.parameters_of(project / "experiments" / f"{name}.ipynb"):
        given += ["-p", "questions", str(project / "experiments" / "film_questions.jsonl")]
    environment = {**os.environ, "PYTHONPATH": str(project)}
    done = subprocess.run(
        [*command, *documented(project, name), *given], capture_output=True, text=True, cwd=tmp_path, env=environment
    )
    assert done.returncode == 0, done.stderr[-2000:]
    found = results(tmp_path / "out.ipynb")
    assert FINDS[name](found), found


def test_papermill_runs_a_notebook_with_other_parameters_and_recorded_decisions(project, workspace, tmp_path):
    given = ["-p", "workspace", str(workspace), "-p", "question", "喜宴哪一年上映？"]
    given += ["-y", "thresholds: {min_evidence: 2}", "-y"]
    given += ["decisions: [{point: plan, action: approve}, {point: reflect, action: reject}]"]
    command = [sys.executable, "-m", "papermill", "experiments/ask.ipynb", str(tmp_path / "out.ipynb")]
    done = subprocess.run([*command, *documented(project, "ask"), *given], capture_output=True, text=True, cwd=project)
    assert done.returncode == 0, done.stderr[-2000:]
    found = results(tmp_path / "out.ipynb")
    assert found["status"] == "done" and "1993" in found["answer"] and found["iterations"] == 1
    assert found["decisions"] == ["approve", "reject"] and found["stop_reason"] == "stopped_by_reviewer"


@pytest.mark.slow
def test_a_job_of_the_scheduler_runs_a_notebook_with_parameters(workspace: Path, project: Path, tmp_path: Path) -> None:
    pytest.importorskip("jupyter_scheduler", reason="make apart installs it")
    (tmp_path / "ask.ipynb").write_bytes((project / "experiments" / "ask.ipynb").read_bytes())
    command = [
        sys.executable, "-m", "jupyter_server", "--allow-root", f"--port={(port := free_port())}",
        "--IdentityProvider.token=secret", f"--ServerApp.root_dir={tmp_path}",
        "--ServerApp.jpserver_extensions={'jupyter_scheduler': True}",
        f"--SchedulerApp.db_url=sqlite:///{tmp_path / 'jobs.sqlite'}",
    ]  # fmt: skip
    values = {"workspace": str(workspace), "corpus": str(project / "data" / "films.jsonl")}
    job = {
        "name": "nightly", "input_uri": "ask.ipynb", "runtime_environment_name": "python3", "output_formats": ["ipynb"],
        "parameters": {**{name: repr(value) for name, value in values.items()}, "max_iterations": "1"},
    }  # fmt: skip
    address = {"base_url": f"http://127.0.0.1:{port}/scheduler", "headers": {"Authorization": "token secret"}}
    environment = {**os.environ, "JUPYTER_DATA_DIR": str(tmp_path / "jupyter")}
    server = subprocess.Popen(command, cwd=tmp_path, env=environment)
    try:
        with httpx.Client(**address, timeout=30, trust_env=False) as client:

            def answers() -> bool:
                with suppress(httpx.TransportError):
                    return client.get("config").is_success
                return False

            until(answers, 180)
            number = client.post("jobs", json=job).json()["job_id"]
            ended = until(lambda: (row := client.get(f"jobs/{number}").json())["status"] in ENDED and row, 180)
            assert ended["status"] == "COMPLETED", ended["status_message"]
            client.get(f"jobs/{number}/download_files")
            [output] = until(lambda: [*(tmp_path / "jobs").rglob("ask-*.ipynb")])
            found = results(output)
            assert found["status"] == "done" and found["titles"] and found["iterations"] == 1
    finally:
        server.terminate()
        server.wait(30)


ENDED = ("COMPLETED", "FAILED")


@pytest.mark.full
def test_the_lines_of_the_crontab_run_as_cron_runs_them(workspace: Path, project: Path, tmp_path: Path) -> None:
    research, page = tmp_path / "research", (project / "docs" / "howto" / "schedule.md").read_text(encoding="utf-8")
    shutil.copytree(workspace, research / ".workbench")
    for name in ("experiments", "data", ".venv"):
        (research / name).symlink_to(project / name)
    environment = {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin", "PYTHONPATH": str(project)}
    lines = re.findall(r"^0 \d \* \* \* (.+)$", page, re.M)
    for line in lines:
        command = ["/bin/sh", "-c", line.replace("\\%", "%")]
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, [done.stderr, *(log.read_text() for log in research.glob("build/*.log"))]
    (notebook,) = research.glob("build/ask-*.ipynb")
    assert len(lines) == 2 and results(notebook)["status"] == "done"
    assert "max_iterations=1" in (research / "build" / "sweep.log").read_text()


@pytest.mark.parametrize("name", NAMES)
def test_what_a_notebook_imports_is_there(project: Path, name: str) -> None:
    text = (project / "experiments" / f"{name}.ipynb").read_text(encoding="utf-8")
    imports = re.findall(r'"from (workbench[\w.]*) import ([\w, ]+)', text)
    assert imports
    for module, names in imports:
        assert not {*names.split(", ")} - {*dir(import_module(module))}, module
