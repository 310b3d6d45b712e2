"""Adding is watched, is stopped only where nothing is lost, and holds as many documents as it may."""

from __future__ import annotations

import gc
import json
import queue
import time

import pytest

from tests.forked import kernels
from tests.shelves import CORE, environment
from workbench.knowledge.adding.spool import MANY
from workbench.knowledge.library import Library
from workbench.knowledge.names.entities import Source
from workbench.knowledge.reading.corpus import Document
from workbench.settings import Settings
from workbench.widgets import indexing

OPEN = """
from workbench.session import Workbench
wb = Workbench.open({folder!r})
wb.add_knowledge("hills", [{few!r}]).added
"""
ADD = "wb.add_knowledge('hills', [{many!r}]).added"
LOOK = "print(wb.knowledge.get('hills').about()['counts']['documents'], wb.knowledge.get('hills').fingerprint())"


def write(path, documents):
    rows = ({"id": f"d{n}", "title": f"Hill {n}", "text": f"Hill {n} has {n} sheep."} for n in range(documents))
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


@pytest.fixture
def kernel(tmp_path, monkeypatch):
    from jupyter_client.manager import start_new_kernel

    monkeypatch.setenv("JUPYTER_PATH", str(kernels(tmp_path / "jupyter")))
    manager, client = start_new_kernel(kernel_name="python3", env=environment())
    yield manager, client
    client.stop_channels()
    manager.shutdown_kernel(now=True)


def run(client, code, stop=None):
    """The messages of one cell to its end; ``stop`` is called once, when the bar was displayed and has moved."""
    asked, said, deadline = client.execute(code), [], time.monotonic() + 120
    while time.monotonic() < deadline:
        try:
            message = client.get_iopub_msg(timeout=5)
        except queue.Empty:
            continue
        if message["parent_header"].get("msg_id") != asked:
            continue
        said.append((message["msg_type"], message["content"]))
        if stop and len(views(said)) and message["msg_type"] == "update_display_data":
            stop, _ = None, stop()
        if message["msg_type"] == "status" and message["content"]["execution_state"] == "idle":
            return said
    raise AssertionError("the cell did not end")


def views(said):
    return [c["data"] for kind, c in said if kind == "display_data"]


def lines(said):
    return [c["data"].get("text/plain") for kind, c in said if kind == "update_display_data"]


def printed(said):
    return "".join(c["text"] for kind, c in said if kind == "stream" and c["name"] == "stdout")


def test_a_bar_leaves_a_line_only_where_an_interrupt_leaves_the_base_as_it_was(kernel, tmp_path):
    manager, client = kernel
    few, many = write(tmp_path / "few.jsonl", 5), write(tmp_path / "many.jsonl", 3_000)
    run(client, OPEN.format(folder=str(tmp_path / "w"), few=few))
    before = printed(run(client, LOOK))
    assert before.startswith("5 ")

    stopped = run(client, ADD.format(many=many), stop=manager.interrupt_kernel)
    assert [c["ename"] for kind, c in stopped if kind == "error"] == ["KeyboardInterrupt"]
    line = lines(stopped)[-1]
    assert line.startswith("hills: stopped at") and "Run it again" in line
    assert printed(run(client, LOOK)) == before

    done = run(client, ADD.format(many=many))
    assert any(kind == "execute_result" and c["data"]["text/plain"] == "2995" for kind, c in done)
    (view,) = views(done)
    assert "text/plain" not in view, "nbval would compare it, and the next time there is no bar"
    assert lines(done)[-1] is None and "/ 2,995" in str(lines(done)), "a saved notebook tells nothing of the time"
    again = run(client, ADD.format(many=few))
    assert views(again) == [], "what is done in a moment shows no bar"


def test_who_asks_to_be_told_is_told_and_no_bar_is_shown_where_nobody_looks(capfd):
    told = []
    with indexing.watched("hills", "", lambda *how: told.append(how)) as tell:
        tell("read", 1, 2)
    with indexing.watched("hills", "") as tell:
        assert tell is None
    assert told == [("read", 1, 2)] and capfd.readouterr() == ("", "")


def test_an_add_holds_as_many_documents_as_it_may(tmp_path):
    path, library = write(tmp_path / "corpus.jsonl", 400), Library(tmp_path / "kb", Settings.load(**CORE))
    alive: dict[str, int] = {}
    gc.freeze()  # what is there already is not looked through at every step

    def look(stage: str, done: int, total: int) -> None:
        count = sum(type(one) in (Document, Source) for one in gc.get_objects())
        alive[stage] = max(count, alive.get(stage, 0))

    try:
        library.add("corpus", [path], progress=look)
    finally:
        gc.unfreeze()
    assert library.get("corpus").about()["counts"]["documents"] == 400
    assert max(alive.values()) <= 2 * MANY, alive
    assert alive["graph"], "the graph was looked at while it was made"
    library.close()
