"""Kills -9 over recorded graphs of every kind, and a long life in one process."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.parts.record.graphs import KINDS
from tests.parts.record.test_record import _answer, finished
from tests.soak import growing
from tests.storm import Scenario, Storm
from workbench.parts.record.digests import plain
from workbench.session import Workbench

# by chance it goes another way; its own store dies with the process; packages that need not be here
NAMES = [name for name in KINDS if not any(word in name for word in ("routed", "store", "langgraph"))]


def without_ids(state: Any) -> Any:
    """Drop the ids of messages and tool calls, which are of their run."""
    if isinstance(state, dict):
        return {key: without_ids(value) for key, value in state.items() if key not in ("id", "tool_call_id")}
    return [without_ids(value) for value in state] if isinstance(state, list) else state


class Graph(Scenario):
    """A run of the graph of this name, with its answers."""

    appends = False

    def work(self, wb: Workbench, tell: Any) -> None:
        kind = KINDS[self.name]
        agent = wb.record(kind.build(), self.name)
        run = agent.runs()[0] if agent.runs() else agent.ask(kind.given, **kind.options)
        while run.status != "done":
            if run.status != "paused":
                run.resume()
            else:
                _answer(run, kind.answers[len(run.decisions)]) if run.questions else run.answer(None)

    def look(self, wb: Workbench) -> dict[str, Any]:
        [run] = wb.record(KINDS[self.name].build(), self.name).runs()
        ended = sorted(
            [e.kind, e.at] for e in run.effects if e.outcome == "value" and e.kind in ("node", "model", "tool")
        )
        replayed = plain(run.replay().state) == plain(run.state)
        return {"state": without_ids(json.loads(json.dumps(plain(run.state)))), "ended": ended, "replayed": replayed}


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.few(2)
def test_kills_at_any_moment_lose_double_and_repeat_nothing(tmp_path: Path, name: str) -> None:
    assert Storm(Graph(name), tmp_path / "storm").trials(3) == []


@pytest.mark.full
def test_memory_is_flat_over_3000_runs(tmp_path: Path) -> None:
    names = ("plain", "react", "map_reduce", "subgraph_called", "tasks", "with_memory")
    with Workbench.open(tmp_path) as wb:
        agents = {name: wb.record(KINDS[name].build(), name) for name in names}

        def work(number: int) -> None:
            name = names[number % len(names)]
            run = finished(agents[name], KINDS[name])
            if number % 10 == 0:
                run.replay()

        assert growing(tmp_path, work, 3000) == []
