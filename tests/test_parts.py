"""Parts hang on the spine: each can be taken away, each is known alone, and others can bring their own."""

from __future__ import annotations

import json
import shutil
import sys
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest

from tests import forked
from tests.shelves import CORE, PROJECT
from workbench import extensions
from workbench.extensions import BUILT_IN, Part
from workbench.session import Workbench
from workbench.settings import all_settings

# What was loaded of the package goes; the libraries stay.
FRESH = """
import sys
for name in [name for name in sys.modules if name.partition(".")[0] in ("workbench", "tests")]:
    del sys.modules[name]
sys.path.insert(0, sys.argv.pop(1))
import workbench
assert workbench.__file__.startswith(sys.path[0])
"""
ASKED = """
import json, sys
from workbench.session import Workbench
from workbench.settings import all_settings

folder, options, names = sys.argv[1], json.loads(sys.argv[2]), json.loads(sys.argv[3])
with Workbench.open(folder + "/w", **options) as wb:
    wb.add_knowledge("mills", [folder + "/mill.md"], progress=lambda *_: None)
    first = wb.ask("I like tea.", kb="mills", session="s")
    run = wb.ask("Who built Moss Mill?", kb="mills", session="s")
    refused = {}
    for name in names:
        try:
            getattr(wb if hasattr(type(wb), name) or name in ("memory", "report", "fusion", "canvas") else run, name)
        except AttributeError as error:
            refused[name] = str(error)
    histories = [event["history"] for event in run.events() if "history" in event]
    print(json.dumps({
        "status": [first.status, run.status],
        "answer": run.answer,
        "refused": refused,
        "history": histories,
        "messages": len(wb.messages("s")),
        "remembered": [part["part"] for part in run.state["remembered"]],
        "settings": list(all_settings().model_fields),
    }))
"""


def without(names: set[str], folder: Path) -> Path:
    """Copy the package without these parts."""

    def left_out(place: str, found: list[str]) -> set[str]:
        return names & set(found) if Path(place).name == "parts" else set()

    shutil.copytree(PROJECT / "workbench", folder / "workbench", ignore=left_out)
    return folder


def run_with(package: Path, code: str, *given: str) -> Any:
    """Run code in a process that imports this copy of the package; return what it prints."""
    done = forked.run(
        [sys.executable, "-c", FRESH + code, str(package), *given],
        cwd=package,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("name", BUILT_IN)
def test_a_workbench_without_a_part_answers_and_says_what_is_missing(name: str, tmp_path: Path) -> None:
    package = without({name}, tmp_path)
    (tmp_path / "mill.md").write_text("# Moss Mill\n\nMoss Mill was built in 1821 by Ann Lee.\n", encoding="utf-8")
    attributes = BUILT_IN[name]
    told = run_with(package, ASKED, str(tmp_path), json.dumps(CORE), json.dumps(attributes))
    assert told["status"] == ["done", "done"] and "Ann Lee" in told["answer"] and told["messages"] == 4
    assert list(told["refused"]) == list(attributes)
    path = extensions.parts()[name].settings
    own = extensions.load(f"workbench.parts.{name}.{path}").model_fields if path else {}
    assert set(told["settings"]) == set(all_settings().model_fields) - set(own)
    assert all(f"the part {name!r}, which is not installed" in message for message in told["refused"].values())
    if name == "memory":
        assert told["remembered"] == [] and "which is not installed" in told["history"][0]["note"]


ALONE = """
import json
from importlib import import_module
from workbench import extensions
from workbench.cli import main
kinds = ("nodes", "tools", "workbench", "run", "commands", "services", "sources", "stores")
for kind in kinds:
    for path in extensions.paths(kind).values():
        extensions.load(path)
print(json.dumps([list(extensions.parts()), main.list_commands(None)]))
"""


@pytest.mark.parametrize("name", BUILT_IN)
def test_a_part_is_imported_alone(name: str, tmp_path: Path) -> None:
    parts, commands = run_with(without(set(BUILT_IN) - {name}, tmp_path), ALONE)
    [part] = [extensions.parts()[one] for one in parts]
    assert part.name == name and set(part.commands) <= set(commands)


def test_a_distribution_brings_a_part_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    own = Part("own", "tests", workbench={"answer_to_all": "test_parts:answer_to_all"})
    monkeypatch.setattr(EntryPoint, "load", lambda self: own)
    monkeypatch.setattr(extensions, "entry_points", lambda group: [EntryPoint("own", "tests:own", group)])
    extensions.parts.cache_clear()
    try:
        assert "own" in extensions.parts() and extensions.paths("workbench")["answer_to_all"]
        assert extensions.load("tests.test_parts:answer_to_all").__get__("a workspace")() == ("a workspace", 42)
    finally:
        monkeypatch.undo()
        extensions.parts.cache_clear()


def answer_to_all(wb: Any) -> tuple[Any, int]:
    return wb, 42


def test_a_run_that_needs_a_part_which_is_gone_names_it_and_resumes_when_it_is_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mill.md").write_text("# Moss Mill\n\nMoss Mill was built in 1821 by Ann Lee.\n", encoding="utf-8")
    with Workbench.open(tmp_path / "w", **CORE) as wb:
        wb.add_knowledge("mills", [tmp_path / "mill.md"])
        run = wb.ask("I like tea. Who built Moss Mill?", kb="mills", review={"plan"})
        assert run.status == "paused"
        here = extensions.parts()
        with monkeypatch.context() as gone:
            gone.setattr(extensions, "parts", lambda: {name: part for name, part in here.items() if name != "memory"})
            run.approve()
            assert run.status in ("failed", "interrupted") and "the part 'memory', which is not installed" in run.error
        assert run.resume().status == "done" and "Ann Lee" in run.answer
