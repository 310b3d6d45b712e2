"""Kills -9 over recorded graphs of every kind, and a long life in one process."""

from __future__ import annotations

import json
import random
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests import forked
from tests.parts.record.graphs import KINDS
from tests.parts.record.test_record import finished
from tests.soak import growing
from workbench.parts.record.digests import plain
from workbench.session import Workbench

ONCE = ("node", "model", "tool")
"""What a run has once at each place: a node that runs again after a kill takes its calls from its own tape."""
LIFE = """
import json, os, signal, sys, threading
from tests.parts.record.graphs import KINDS
from tests.parts.record.test_record import _answer
from workbench.parts.record.effects import Recorder
from workbench.parts.record.digests import plain
from workbench.session import Workbench

folder, name, delay = sys.argv[1:]
kind, keep = KINDS[name], Recorder.keep

def told(self, effect):
    keep(self, effect)
    with open(f"{folder}/kept", "a") as file:
        file.write(json.dumps([name, effect.kind, effect.outcome, effect.at]) + "\\n")

Recorder.keep = told
with Workbench.open(folder) as wb:
    agent = wb.record(kind.build(), name)
    if float(delay):
        threading.Timer(float(delay), os.kill, [os.getpid(), signal.SIGKILL]).start()
    run = agent.runs()[0] if agent.runs() else agent.ask(kind.given, **kind.options)
    while run.status != "done":
        if run.status != "paused":
            run.resume()
        elif run.questions:
            _answer(run, kind.answers[len(run.decisions)])
        else:
            run.answer(None)
    print(json.dumps(plain(run.state)))
    sys.stdout.flush()
    os._exit(0)
"""


def killed(folder: Path, name: str, chance: random.Random) -> tuple[int, Any]:
    """Carry a run on under kills until it ends; return their number and its state."""
    for kills in range(12):
        delay = chance.uniform(0.001, 0.02) if kills < 11 else 0.0
        command = [sys.executable, "-c", LIFE, str(folder), name, str(delay)]
        life = forked.run(command, capture_output=True, text=True, check=False)
        if life.returncode == 0:
            return kills, json.loads(life.stdout)
        assert life.returncode == -9, life.stderr
    raise AssertionError("it never ends")


def without_ids(state: Any) -> Any:
    """Drop the ids of messages and tool calls, which are of their run."""
    if isinstance(state, dict):
        return {key: without_ids(value) for key, value in state.items() if key not in ("id", "tool_call_id")}
    return [without_ids(value) for value in state] if isinstance(state, list) else state


@pytest.mark.full
@pytest.mark.parametrize("seed", range(4))
def test_kills_at_any_moment_lose_double_and_repeat_nothing(tmp_path: Path, seed: int) -> None:
    chance, kills = random.Random(seed), 0
    for name, kind in KINDS.items():
        # by chance it goes another way; its own store dies with the process; packages that need not be here
        if any(word in name for word in ("routed", "store", "langgraph")):
            continue
        folder = tmp_path / name
        folder.mkdir()
        more, state = killed(folder, name, chance)
        kills += more
        with Workbench.open(tmp_path / "calm") as wb:
            calm = finished(wb.record(kind.build(), f"{name} {seed}"), kind)
            assert without_ids(state) == without_ids(json.loads(json.dumps(plain(calm.state)))) or "memory" in name, (
                name
            )
        told = [tuple(json.loads(line)) for line in (folder / "kept").read_text().splitlines()]
        with Workbench.open(folder) as wb:
            [run] = wb.record(kind.build(), name).runs()
            stored = Counter((name, e.kind, e.outcome, e.at) for e in run.effects)
            assert set(told) <= set(stored), "lost"
            ended = [n for (_, kind, outcome, _), n in stored.items() if outcome == "value" and kind in ONCE]
            assert max(ended) == 1, "doubled"
            assert plain(run.replay().state) == plain(run.state)
    assert kills >= 25, kills


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
