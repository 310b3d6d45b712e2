"""A report killed with -9 at every node, each time in a process of its own: it goes on, and writes no section twice."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests import forked
from tests.harbour import TITLES, TOPIC, harbour, prompt_of, title_of, writes
from tests.servers import scripted_server
from tests.shelves import CORE, opened
from workbench.session import Workbench

KILLS = (
    "outliner before", "outliner behind", "review_outline paused", "review_outline behind",
    "section behind", "consistency behind", "assemble before", "assemble behind",
)  # fmt: skip
MORE = "herring"
SLOW = "Ferry"


def settings(url: str) -> dict[str, Any]:
    return {**CORE, "chat_base_url": url or "http://127.0.0.1:9/v1", "models": {"writer": "openai:m" if url else ""}}


def go_on(wb: Workbench) -> Any:
    """Begin the report, or go on with it: a section more is asked for at its outline, and the end is approved."""
    runs = wb.runs.list()
    run = runs[0] if runs else wb.report(TOPIC, kb="harbour", review={"outline"})
    if run.status == "interrupted":
        run.resume()
    elif runs and run.status == "paused":
        run.respond(MORE) if not run.decisions else run.approve()
    return run


def go_on_and_die(folder: str, url: str, calls: str, kill: str) -> None:
    """What the process does that is killed."""
    from workbench.parts.reports import graph as report

    node, when = kill.split()
    if when != "paused":
        real = getattr(report, node)

        async def dying(given: Any, runtime: Any) -> None:
            if when == "behind":
                change = await real(given, runtime)
            if node == "section":
                if given["section"]["title"] != SLOW:
                    return change
                await asyncio.sleep(1.5)  # the others are done and kept by then
            os.kill(os.getpid(), signal.SIGKILL)

        dying.__name__ = node  # a node of the graph is called as its function
        setattr(report, node, dying)
    noting(report, Path(calls))
    with Workbench.open(folder, **settings(url)) as wb:
        run = go_on(wb)
        while when != "paused" and run.status == "paused":
            go_on(wb)
        assert (run.status, when) == ("paused", "paused") and kill.startswith(f"review_{run.review['point']}")
        os.kill(os.getpid(), signal.SIGKILL)


def noting(report: Any, calls: Path, write: Any = setattr) -> None:
    """Each section that the rules write leaves a line."""
    text = report.section_text

    def noted(one: Any, *rest: Any) -> str:
        with calls.open("a") as file:
            file.write(f"{one['title']}\n")
        return str(text(one, *rest))

    write(report, "section_text", noted)


@pytest.fixture(scope="module")
def indexed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("report-kill")
    with opened(folder / "workspace") as wb:
        wb.add_knowledge("harbour", [harbour(folder / "harbour")])
    return folder / "workspace"


@pytest.mark.parametrize("writer", ["rules", pytest.param("model", marks=pytest.mark.full)])
def test_killed_at_every_node_it_reads_as_if_undisturbed(indexed, tmp_path, monkeypatch, writer):
    from workbench.parts.reports import graph as report

    for name in ("killed", "undisturbed"):
        shutil.copytree(indexed, tmp_path / name)
    calls = tmp_path / "calls"
    with scripted_server() as server:
        server.respond = writes
        url = server.url if writer == "model" else ""
        for kill in KILLS:
            killed = forked.call(go_on_and_die, str(tmp_path / "killed"), url, str(calls), kill)
            assert killed.wait() == -signal.SIGKILL, kill
        noting(report, calls, monkeypatch.setattr)
        with Workbench.open(tmp_path / "killed", **settings(url)) as wb:
            run = go_on(wb)
            assert (run.status, run.report.status) == ("done", "completed")
            assert [d["point"] for d in run.decisions] == ["outline", "outline"]
            text, steps = run.report.text, Counter(r["step_id"] for r in run.records)
        asked = Counter((prompt_of(r), title_of(r)) for r in server.requests)
        written = Counter(calls.read_text().split()) if calls.exists() else Counter()
        with Workbench.open(tmp_path / "undisturbed", **settings(url)) as wb:
            run = go_on(wb)
            while run.status == "paused":
                go_on(wb)
            assert run.report.text == text and Counter(r["step_id"] for r in run.records) == steps
    sections = {title: n for (name, title), n in asked.items() if name == "section"} if url else written
    assert sections == {**dict.fromkeys([*TITLES, "Herring"], 1), SLOW: 2}, "only the one that was at work"
    assert not (written if url else asked)
