"""The parameterised notebook under plain papermill, and what it found, by name."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys

import nbformat
import pytest

from workbench.errors import WorkbenchError
from workbench.experiments import result, results


def documented(project, name: str) -> list[str]:
    """The command in the notebook's first cell, as a shell takes it apart."""
    cells = json.loads((project / "experiments" / f"{name}.ipynb").read_text(encoding="utf-8"))["cells"]
    command = shlex.split(re.search(r"`(papermill .+?)` runs it", "".join(cells[0]["source"]))[1])
    assert command[:3] == ["papermill", f"experiments/{name}.ipynb", "out.ipynb"]
    return command[3:]


def papermill(project, workspace, out, *parameters: str, name: str = "ask") -> subprocess.CompletedProcess:
    """The documented command, with its parameters and these."""
    command = [sys.executable, "-m", "papermill", f"experiments/{name}.ipynb", str(out), "--log-output"]
    given = ["-p", "workspace", str(workspace), "-p", "corpus", str(project / "data" / "films.jsonl")]
    more = [*documented(project, name), *given, *parameters]
    return subprocess.run([*command, *more], capture_output=True, text=True, cwd=project)


@pytest.mark.slow
def test_the_notebook_runs_with_other_parameters_and_recorded_decisions(project, workspace, tmp_path):
    out = tmp_path / "out.ipynb"
    done = papermill(
        project,
        workspace,
        out,
        *("-p", "question", "喜宴哪一年上映？"),
        *("-y", "decisions: [{point: plan, action: approve}, {point: reflect, action: reject}]"),
        *("-y", "thresholds: {min_evidence: 2}"),
    )
    assert done.returncode == 0, done.stderr[-2000:]
    found = results(out)
    assert found["status"] == "done" and "1993" in found["answer"]
    assert found["decisions"] == ["approve", "reject"] and found["stop_reason"] == "stopped_by_reviewer"
    assert found["titles"][0] == "The Wedding Banquet" and found["iterations"] == 1


@pytest.mark.full
def test_a_report_with_other_parameters_and_a_section_more(project, workspace, tmp_path):
    out = tmp_path / "out.ipynb"
    done = papermill(
        project,
        workspace,
        out,
        *("-p", "topic", "李安的电影：家庭与战争", "-p", "report_type", "short"),
        *("-y", "decisions: [{point: outline, action: respond, message: 传统}]"),
        name="report",
    )
    assert done.returncode == 0, done.stderr[-2000:]
    found = results(out)
    assert found["row"]["status"] == "completed" and found["row"]["supported"] == found["row"]["statements"] > 5
    assert found["outline"] == ["家庭", "战争", "其余电影", "传统"] and found["decisions"] == ["respond", "approve"]
    assert found["report"].count("\n[") == found["row"]["references"]


def test_results_of_a_file_that_is_no_notebook(tmp_path):
    path = tmp_path / "x.ipynb"
    with pytest.raises(WorkbenchError, match="cannot be read"):
        results(path)
    path.write_text("not json")
    with pytest.raises(WorkbenchError, match="cannot be read"):
        results(path)


def test_a_result_must_be_plain_and_the_last_of_a_name_counts(tmp_path):
    with pytest.raises(WorkbenchError, match="'x' cannot be kept as JSON"):
        result("x", float("nan"))
    outputs = [
        nbformat.v4.new_output("display_data", {"application/json": n}, metadata={"workbench": {"name": "n"}})
        for n in (1, 2)
    ]
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("", outputs=outputs)])
    nbformat.write(book, tmp_path / "n.ipynb")
    assert results(tmp_path / "n.ipynb") == {"n": 2}
