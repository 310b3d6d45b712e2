"""A run for those who watch servers: as OpenTelemetry spans, and counted for Prometheus; neither touches a run."""

from __future__ import annotations

import logging
import re
import socket
import urllib.request
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

from tests.servers import Reply, free_port, only, scripted_server, serving, until
from tests.shelves import CORE, noted
from workbench.errors import SettingsError
from workbench.parts.serve import metrics, spans
from workbench.runs.recording import recorded
from workbench.session import Workbench
from workbench.settings import Settings

QUESTION = "When was the Aldermoor kiln built?"
PRICES = '["openai:m"]\ninput = 100000\noutput = 200000\n'
LONGEST_S = 10.0


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return noted(tmp_path / "w", {"Kiln": "The Aldermoor kiln was built in 1993."})


@pytest.fixture
def port() -> int:
    return free_port()


def scraped(port: int) -> dict[str, float]:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=LONGEST_S) as page:
        lines = page.read().decode().splitlines()
    pairs = [line.rsplit(" ", 1) for line in lines if not line.startswith("#")]
    return {name: float(value) for name, value in pairs}


def when(port: int, fits: Callable[[dict[str, float]], bool]) -> dict[str, float]:
    """What is served, as soon as it fits: runs are counted beside what goes on."""
    return until(lambda: found if fits(found := scraped(port)) else None, LONGEST_S)


def ended(count: int, status: str = "done") -> Callable[[dict[str, float]], bool]:
    return lambda found: found.get(f'workbench_runs_total{{status="{status}"}}') == count


def test_a_scrape_finds_what_runs_did_and_took(folder, port) -> None:
    prices = folder / "prices.toml"
    prices.write_text(PRICES, encoding="utf-8")
    with scripted_server(Reply(["In 1993 [1]."])) as server:
        told = {"chat_model": "openai:m", "chat_base_url": server.url, **only("writer"), "prices": str(prices), **CORE}
        with Workbench.open(folder, metrics=str(port), **told) as wb:
            run = wb.ask(QUESTION, kb="notes")
            assert run.status == "done", run.error
            found = when(port, ended(1))
            made, judged, calls = run.records, run.reflections, run.calls()
            forked = wb.run(run.run_id).fork(thresholds={"min_evidence": 2})
            after = when(port, ended(2))
            took, again = run.to_dict()["figures"]["total_s"], forked.records
    tool = made[0]["tool"]
    steps = {name: count for name, count in found.items() if name.startswith("workbench_steps_total")}
    assert sum(steps.values()) == len(made) and steps[f'workbench_steps_total{{status="success",tool="{tool}"}}'] >= 1
    assert sum(v for n, v in found.items() if n.startswith("workbench_reflections_total")) == len(judged) > 0
    assert found['workbench_model_calls_total{outcome="ok",role="writer"}'] == len(calls) == 1
    assert found['workbench_tokens_total{kind="input",role="writer"}'] == 7
    assert found['workbench_tokens_total{kind="output",role="writer"}'] == 5
    assert found['workbench_money_total{role="writer"}'] == pytest.approx(7 * 0.1 + 5 * 0.2)
    seconds = found['workbench_run_seconds_sum{status="done"}']
    assert seconds == pytest.approx(took) and seconds > 0
    assert found[f'workbench_step_seconds_count{{tool="{tool}"}}'] >= 1
    own = [record for record in again if not record.get("replayed")]
    now = sum(v for n, v in after.items() if n.startswith("workbench_steps_total"))
    assert now == len(made) + len(own) < len(made) + len(again), "what the tape answered counts nothing"


def test_labels_hold_nothing_of_what_was_asked_found_or_named(folder, port) -> None:
    def aldermoor_archive(query: str) -> list[str]:
        """Look it up."""
        return ["The kiln was built in 1993."]

    with Workbench.open(folder, metrics=f"127.0.0.1:{port}", **CORE) as wb:
        wb.tools.register(aldermoor_archive)
        step = {"step_id": "s1", "objective": "look", "tool": "aldermoor_archive", "tool_input": {"query": "kiln"}}
        first = wb.ask(QUESTION, kb="notes", incognito=True, user="Ada", session="secret")
        other = wb.ask(QUESTION, kb="notes").fork(plan={"steps": [step]})
        assert {first.status, other.status} == {"done"}
        found = when(port, ended(3))
        assert found['workbench_steps_total{status="success",tool="aldermoor_archive"}'] == 1, "a registered name"
        names = "\n".join(found)
    assert set(re.findall(r"(\w+)=\"", names)) <= {"status", "tool", "role", "kind", "outcome", "continued", "le"}
    for secret in (QUESTION, "Aldermoor kiln", "1993", "Ada", "secret", first.run_id, other.run_id):
        assert secret not in names


def test_a_port_that_is_taken_is_said_and_runs_go_on(folder, port, caplog) -> None:
    with socket.socket() as other, caplog.at_level(logging.WARNING):
        other.bind(("127.0.0.1", port))
        other.listen()
        with Workbench.open(folder, metrics=str(port), **CORE) as wb:
            assert wb.ask(QUESTION, kb="notes").status == "done"
    said = [record.getMessage() for record in caplog.records if "WORKBENCH_METRICS" in record.getMessage()]
    assert len(said) == 1 and str(port) in said[0] and "Name another port" in said[0]


@pytest.mark.parametrize(("owner", "name", "own"), [(metrics.Metrics, "count", "metrics"), (spans, "send", "spans")])
def test_what_raises_there_touches_no_run(folder, port, monkeypatch, caplog, owner, name, own) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("not today")

    monkeypatch.setattr(owner, name, broken)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")
    watched = {"metrics": str(port), "spans": "otlp"}[own]
    with caplog.at_level(logging.WARNING), Workbench.open(folder, **{own: watched}, **CORE) as wb:
        assert wb.ask(QUESTION, kb="notes").status == "done"
    assert "not today" in caplog.text


@pytest.mark.parametrize("wrong", ["here", "localhost:", "1 2:80", "9464/metrics"])
def test_an_address_that_is_none_is_refused(wrong) -> None:
    with pytest.raises(SettingsError, match="WORKBENCH_METRICS"):
        Settings.load(metrics=wrong)


SAID = "In 1993 [1]."


@pytest.fixture
def collector() -> Iterator[Any]:
    """A collector on loopback: what it was sent, as bytes."""

    class Collector(BaseHTTPRequestHandler):
        bodies: list[bytes] = []  # noqa: RUF012

        def log_message(self, *_: object) -> None:
            pass

        def do_POST(self) -> None:
            self.bodies.append(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

    with serving(Collector) as server:
        yield server


def test_a_run_is_a_trace_with_its_nodes_route_steps_and_calls(folder: Path) -> None:
    with scripted_server(Reply([SAID])) as server:
        told = {"chat_model": "openai:m", "chat_base_url": server.url, **only("writer"), **CORE}
        with Workbench.open(folder, **told) as wb:
            run = wb.ask(QUESTION, kb="notes")
            found = spans.run_spans(recorded(run))
    names = [span.name for span in found]
    assert names[0] == "invoke_agent workbench" and found[0].inside is None
    assert {"route_decision", "planner", "reflector", "generate", "persist", "chat m"} <= set(names)
    assert any(name.startswith("execute_tool ") for name in names)
    route = found[names.index("route_decision")].attributes
    assert route["message_preview"] == "When was the Aldermoor kiln built?" and route["routing_ms"] > 0
    chat = found[names.index("chat m")]
    assert found[chat.inside].name == "generate" and chat.attributes["gen_ai.request.model"] == "m"
    assert (chat.attributes["gen_ai.usage.input_tokens"], chat.attributes["gen_ai.usage.output_tokens"]) == (7, 5)
    assert all(span.start <= span.end for span in found)
    assert not [s for s in found if SAID in str(s.attributes)], "what was said is not sent"


def test_spans_go_to_a_collector_when_the_run_has_ended(folder, collector, monkeypatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{collector.server_port}")
    with Workbench.open(folder, spans="otlp", **CORE) as wb:
        wb.ask(QUESTION, kb="notes", incognito=True)
    bodies = collector.RequestHandlerClass.bodies
    assert not bodies, "nothing of an incognito run"
    with Workbench.open(folder, spans="otlp", **CORE) as wb:
        wb.ask(QUESTION, kb="notes")
    sent = b"".join(bodies)
    assert b"route_decision" in sent and b"execute_tool" in sent and b"gen_ai.tool.name" in sent
