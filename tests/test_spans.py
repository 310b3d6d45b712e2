"""A run as OpenTelemetry spans: what they hold, where they go, and that nothing of it touches a run."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

from tests.servers import Reply, only, scripted_server, serving
from workbench.parts.serve import spans
from workbench.runs.recording import recorded
from workbench.session import Workbench

CORE = {"embedding_model": "hashing", "rerank_model": "none"}
SAID = "In 1993 [1]."


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    path = tmp_path / "kiln.md"
    path.write_text("# Kiln\n\nThe kiln was built in 1993.\n", encoding="utf-8")
    return path


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


def test_a_run_is_a_trace_with_its_nodes_route_steps_and_calls(tmp_path: Path, notes: Path) -> None:
    with scripted_server(Reply([SAID])) as server:
        told = {"chat_model": "openai:m", "chat_base_url": server.url, **only("writer"), **CORE}
        with Workbench.open(tmp_path / "w", **told) as wb:
            wb.add_knowledge("notes", [notes])
            run = wb.ask("When was the kiln built?", kb="notes")
            found = spans.run_spans(recorded(run))
    names = [span.name for span in found]
    assert names[0] == "invoke_agent workbench" and found[0].inside is None
    assert {"route_decision", "planner", "reflector", "generate", "persist", "chat m"} <= set(names)
    assert any(name.startswith("execute_tool ") for name in names)
    route = found[names.index("route_decision")].attributes
    assert route["message_preview"] == "When was the kiln built?" and route["routing_ms"] > 0
    chat = found[names.index("chat m")]
    assert found[chat.inside].name == "generate" and chat.attributes["gen_ai.request.model"] == "m"
    assert (chat.attributes["gen_ai.usage.input_tokens"], chat.attributes["gen_ai.usage.output_tokens"]) == (7, 5)
    assert all(span.start <= span.end for span in found)
    assert not [s for s in found if SAID in str(s.attributes)], "what was said is not sent"


def test_spans_go_to_a_collector_when_the_run_has_ended(tmp_path, notes, collector, monkeypatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{collector.server_port}")
    with Workbench.open(tmp_path / "w", spans="otlp", **CORE) as wb:
        wb.add_knowledge("notes", [notes])
        wb.ask("When was the kiln built?", kb="notes", incognito=True)
    bodies = collector.RequestHandlerClass.bodies
    assert not bodies, "nothing of an incognito run"
    with Workbench.open(tmp_path / "w", spans="otlp", **CORE) as wb:
        wb.ask("When was the kiln built?", kb="notes")
    sent = b"".join(bodies)
    assert b"route_decision" in sent and b"execute_tool" in sent and b"gen_ai.tool.name" in sent


def test_a_collector_that_is_away_touches_no_run(tmp_path, notes, monkeypatch, caplog) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "1")

    def broken(*_: Any) -> None:
        raise RuntimeError("no such collector")

    monkeypatch.setattr(spans, "send", broken)
    with caplog.at_level(logging.WARNING), Workbench.open(tmp_path / "w", spans="otlp", **CORE) as wb:
        wb.add_knowledge("notes", [notes])
        assert wb.ask("When was the kiln built?", kb="notes").status == "done"
    assert "no such collector" in caplog.text
