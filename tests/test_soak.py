"""A short slice of the soak: after warming up, a process holds no more threads, handles and sockets than before."""

from __future__ import annotations

import random

import pytest

from tests import soak
from tests.counting import endless


@pytest.mark.full
def test_threads_handles_and_sockets_stay(wb):
    endless(wb)
    soak.soak(wb, 16, 16, 1, lambda line: None)
    before = dict(soak.held(wb.path))
    curves, ended = soak.soak(wb, 60, 20, 2, lambda line: None)
    after = dict(soak.held(wb.path))
    for name in ("threads", "handles", "sockets"):
        # A pool makes its last threads, each with its connections, when it first needs them; a leak is one a run.
        assert after[name] <= before[name] + 5, (name, before, after)
    assert {kind for kind, _ in ended} == set(soak.KINDS) and ended["plain", "done"] > 20
    assert len(wb._work._live) <= 60 and {curve.name for curve in curves} >= set(soak.BOUNDS)


def test_what_leaves_nothing_is_forgotten_in_time(wb, monkeypatch):
    monkeypatch.setattr("workbench.runs.workers.RUNS_IN_MEMORY", 5)
    first = wb.ask("Hello!", incognito=True)
    for number in range(8):
        soak.one(wb, "incognito", number, random.Random(number)) if number < 2 else wb.ask("Hello!", incognito=True)
    private = wb._work._private
    wb._work.loop.settle(10)
    assert len(private.runs.ids(1000)) <= 7 and not private.runs.has(first.run_id)
    threads = private._graph.checkpointer.conn.execute("SELECT count(DISTINCT thread_id) FROM checkpoints")
    assert threads.fetchone()[0] <= 7
