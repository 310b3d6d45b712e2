"""The saver of a workspace: what a run costs it, and a file that another process holds."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from experiments.pairs import idle
from workbench.session import Workbench


def test_a_run_with_nothing_to_do_is_few_transactions_and_wakes_hardly_a_thread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Counted, since a time is another on every machine: what is added here, every run pays."""
    with Workbench.open(tmp_path / "ws") as wb:
        ask, said, woken = idle(wb, tmp_path), list[str](), list[str]()
        ask("first")
        loop, wake = wb._work.loop._loop, wb._work.loop._loop.call_soon_threadsafe

        def counted(*given, **named):
            woken.extend([] if threading.current_thread() is wb._work.loop._thread else [repr(given[0])])
            return wake(*given, **named)

        monkeypatch.setattr(loop, "call_soon_threadsafe", counted)
        for connection in (wb._work.durable.runs._db.conn, wb._work.durable.saver.conn):
            connection.set_trace_callback(said.append)
        ask("second")
        assert 40 < len([sql for sql in said if sql.startswith(("BEGIN", "SAVEPOINT"))]) <= 75
        assert len(woken) <= 14, woken


def test_a_file_that_another_process_holds_does_not_hold_up_the_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Workbench.open(tmp_path / "ws") as wb, ThreadPoolExecutor(1) as pool:
        ask, refused = idle(wb, tmp_path), threading.Event()
        ask("first")
        saver = wb._work.durable.graph.checkpointer
        put = saver.put

        def held(*given):
            try:
                return put(*given)
            except sqlite3.OperationalError:
                refused.set()
                raise

        monkeypatch.setattr(saver, "put", held)
        with closing(sqlite3.connect(tmp_path / "ws" / "checkpoints.db", isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            second = pool.submit(ask, "second")
            assert refused.wait(10)
            assert wb._work.loop.call(asyncio.sleep(0, "free")) == "free" and not second.done()
            other.execute("ROLLBACK")
        assert second.result(30).status == "done"
