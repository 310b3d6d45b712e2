"""What schedules: cron, by the lines of the how-to, and JupyterLab's scheduler where it is installed."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from workbench.experiments import results

Api = Callable[..., Any]


@pytest.fixture
def api(tmp_path: Path, project: Path) -> Iterator[Api]:
    """A Jupyter server with the scheduler over a folder that has our notebook in it."""
    pytest.importorskip("jupyter_scheduler", reason="make apart installs it")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    (tmp_path / "ask.ipynb").write_bytes((project / "experiments" / "ask.ipynb").read_bytes())
    command = [
        sys.executable, "-m", "jupyter_server", "--allow-root", f"--port={port}", "--IdentityProvider.token=secret",
        f"--ServerApp.root_dir={tmp_path}", "--ServerApp.jpserver_extensions={'jupyter_scheduler': True}",
        f"--SchedulerApp.db_url=sqlite:///{tmp_path / 'jobs.sqlite'}",
    ]  # fmt: skip
    environment = {**os.environ, "JUPYTER_DATA_DIR": str(tmp_path / "jupyter")}
    server = subprocess.Popen(command, cwd=tmp_path, env=environment)

    def call(path: str, body: Any = None) -> Any:
        request = urllib.request.Request(
            f"http://127.0.0.1:{port}/scheduler/{path}",
            json.dumps(body).encode() if body else None,
            {"Authorization": "token secret", "Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=30) as response:
            return json.loads(response.read() or "null")

    try:
        until(lambda: _answers(call))
        yield call
    finally:
        server.terminate()
        server.wait(30)


def _answers(call: Api) -> bool:
    try:
        call("config")
    except urllib.error.URLError:
        return False
    return True


def until(is_so: Callable[[], Any], seconds: float = 180) -> Any:
    end = time.monotonic() + seconds
    while not (value := is_so()):
        assert time.monotonic() < end
        time.sleep(0.2)
    return value


@pytest.mark.slow
def test_a_job_of_the_scheduler_runs_a_notebook_with_parameters(
    api: Api, workspace: Path, project: Path, tmp_path: Path
) -> None:
    job = {
        "name": "nightly",
        "input_uri": "ask.ipynb",
        "runtime_environment_name": "python3",
        "output_formats": ["ipynb"],
        "parameters": {  # each is Python that the scheduler writes into a cell
            "workspace": repr(str(workspace)), "corpus": repr(str(project / "data" / "films.jsonl")),
            "max_iterations": "1",
        },
    }  # fmt: skip

    def run(**changes: Any) -> Any:
        """Wait for the end of a job, and return it with the notebook that it left."""
        parameters = {**job["parameters"], **changes}  # type: ignore[dict-item]
        number = api("jobs", {**job, "parameters": parameters})["job_id"]
        ended = until(lambda: (row := api(f"jobs/{number}"))["status"] in ("COMPLETED", "FAILED") and row)
        api(f"jobs/{number}/download_files")
        (output,) = until(
            lambda: [p for p in (tmp_path / "jobs").rglob("*.ipynb") if number in str(p) and "ask-" in p.name]
        )
        return ended, output

    ended, output = run()
    assert ended["status"] == "COMPLETED", ended["status_message"]
    found = results(output)
    assert found["status"] == "done" and found["titles"] and found["iterations"] == 1
    ended, _ = run(top_k="1")  # which the notebook does not declare
    assert ended["status"] == "FAILED" and "no parameter 'top_k'. Known: experiment: str" in ended["status_message"]


@pytest.mark.slow
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
