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


def test_a_file_that_another_process_holds_does_not_hold_up_the_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Workbench.open(tmp_path / "ws") as wb, ThreadPoolExecutor(1) as pool:
        ask, refused = idle(wb, tmp_path), threading.Event()
        ask("first")
        saver = wb._work.loop.call(wb._work.durable.graph()).checkpointer
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
