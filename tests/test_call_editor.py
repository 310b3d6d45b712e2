"""A call of a model, edited on the bench: what of it a fork takes, what is told beside a field, in either language."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.servers import ScriptedServer
from tests.servers.roles import responder, role_of
from tests.test_hostile import ALL
from tests.test_roles import CORE, GOOD, KEY, QUESTION
from workbench.runs.run import Run
from workbench.session import Workbench
from workbench.views.labels import Labels
from workbench.views.markup import draw
from workbench.widgets.bench import Bench
from workbench.widgets.calls import Calls


@pytest.fixture
def done(tmp_path: Path, server: ScriptedServer) -> Iterator[Run]:
    server.respond = responder(**GOOD)
    (tmp_path / "Kiln.md").write_text("# Kiln\n\nThe east kiln was built in 1993 by Mei Lan.\n", encoding="utf-8")
    told = {"chat_model": "openai:m", "chat_base_url": server.url, "chat_api_key": KEY, **CORE}
    with Workbench.open(tmp_path / "w", **told) as wb:
        wb.add_knowledge("notes", [tmp_path / "Kiln.md"])
        yield wb.ask(QUESTION, kb="notes")


def on_bench(run: Run, role: str, lang: str = "en") -> tuple[Bench, Calls]:
    bench = run._workspace.bench(run, lang=lang)
    calls = bench.working.calls
    assert calls is not None
    calls.list.press("edit", run.calls().by_role(role)[-1]["key"])
    return bench, calls


def typed(calls: Calls, name: str, value: str) -> None:
    calls.fields[name].control.widget.value = value


def test_a_prompt_and_a_model_hold_for_the_role(done: Run, server: ScriptedServer) -> None:
    bench, calls = on_bench(done, "writer")
    assert "$question, $memory, $totals, $findings, $evidence" in calls.slots.value
    typed(calls, "system", str(calls.fields["system"].value) + "\nBe brief.")
    assert list(calls.edits["prompts"]) == ["writer.en"] and not calls.button.disabled
    before = len(server.requests)
    calls.button.click()
    bench.wait()
    assert role_of(server.requests[before]) == "writer"
    assert "Be brief." in str(server.requests[before]["messages"][0]["content"])
    calls.open(bench.run.calls().by_role("writer")[-1]["key"])
    assert "Be brief." in str(calls.fields["system"].value), "the fork's own prompt is what is edited next"
    typed(calls, "model", "rules")
    assert calls.edits == {"models": {"writer": "rules"}}
    calls.button.click()
    bench.wait()
    assert "writer" not in {call["role"] for call in bench.run.calls()}
    bench.close()


def test_what_a_fork_refuses_is_shown_and_the_text_stays(done: Run) -> None:
    bench, calls = on_bench(done, "writer")
    typed(calls, "user", "$question $weather")
    calls.submit()
    assert "$weather" in bench.head.html and calls.opened and bench.run_id == done.run_id
    assert calls.fields["user"].control.widget.value == "$question $weather"
    bench.sheet.press("escape")
    assert not calls.opened and calls.edits == {}
    bench.close()


def test_what_a_model_said_is_text(done: Run) -> None:
    call: dict[str, Any] = {**done.calls()[0], "reply": ALL, "messages": [["human", ALL]]}
    shown = draw("calls.edited", Labels("en"), call=call)
    assert "<script" not in shown and "<img" not in shown
