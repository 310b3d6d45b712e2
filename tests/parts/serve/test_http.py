"""The workspace over HTTP, in this process and from a real server; a run as spans and counters for those who watch."""

import json
import logging
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from click.testing import CliRunner
from starlette.testclient import TestClient

from tests import forked
from tests.servers import Reply, closed_port, free_port, only, scripted_server, until
from tests.shelves import CORE, noted
from workbench.cli import main
from workbench.errors import SettingsError, WorkspaceError
from workbench.parts.serve import http, metrics
from workbench.runs.stored import snapshot
from workbench.session import Workbench

QUESTION = "When was the Aldermoor kiln built?"
ANSWER = "The Aldermoor kiln was built in 1993 [1]."
ANN = {"user_id": "ann", "session_id": "kilns", "message": QUESTION, "kb_prefix": "notes"}
TOKEN = "a-long-planted-token"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return noted(tmp_path / "w", {"Kiln": "The Aldermoor kiln was built in 1993."})


@pytest.fixture
def wb(folder: Path) -> Iterator[Workbench]:
    with Workbench.open(folder, **CORE) as opened:
        yield opened


@pytest.fixture
def client(wb: Workbench) -> TestClient:
    return TestClient(http.make_app(wb), base_url="http://127.0.0.1:8000")


def frames(text: str) -> list[dict[str, Any]]:
    """The events of a stream; whatever is neither a frame nor a heartbeat fails."""
    blocks = [block for block in text.split("\n\n") if block]
    assert all(block == ": ping" or (block.startswith("data: ") and "\n" not in block) for block in blocks), blocks
    return [json.loads(block.removeprefix("data: ")) for block in blocks if block != ": ping"]


def test_a_chat_is_streamed_in_the_one_vocabulary_or_comes_whole(client, wb):
    given = client.post("/api/v1/chat/stream", json=ANN)
    assert given.status_code == 200 and given.headers["content-type"].startswith("text/event-stream")
    assert given.headers["cache-control"] == "no-cache" and given.headers["x-accel-buffering"] == "no"
    events = frames(given.text)
    statuses = dict.fromkeys(event["status"] for event in events)
    assert [*statuses] == ["start", "route_decision", "progress", "token", "done"]
    run = wb.run(events[0]["content"]["run_id"])
    ids = {"conversation_id": run.row["conversation_id"], "run_id": run.run_id}
    assert events[-1]["content"] == {"answer": ANSWER, **ids}
    steps = [e["content"] for e in events if e["status"] == "progress" and e["content"]["agent_type"]]
    assert set(steps[-1]) == {"stage", "completed", "total", "error", "agent_type", "retrieval_count"}
    assert steps[-1]["completed"] == steps[-1]["total"] > 0 and steps[-1]["stage"] == "retrieval"
    assert (run.row["user_id"], run.session_id) == ("ann", "kilns")
    told = client.post("/api/v1/chat", json={**ANN, "agent_type": "hybrid_agent"}).json()
    run = wb.run(told["run_id"])
    assert (told["status"], told["answer"], told["error"], told["review"]) == ("done", run.answer, None, None)
    assert told["conversation_id"] == run.row["conversation_id"] and told["citations"][0]["source"]["title"] == "Kiln"
    assert run.state["route_decision"]["worker_name"] == "notes:hybrid_agent:retrieve_only"
    assert "execution_log" not in told
    whole = client.post("/api/v1/chat", json={**ANN, "debug": True}).json()
    assert whole["execution_log"][-1]["node"] == "persist" and whole["records"] and whole["plan"]["steps"]


def test_a_pause_says_what_an_answer_may_be_and_is_answered(client, wb) -> None:
    *_, asked = frames(client.post("/api/v1/chat/stream", json={**ANN, "review": ["plan"]}).text)
    request = asked["content"]
    assert asked["status"] == "review" and request["review_configs"][0]["allowed_decisions"][0] == "approve"
    assert request["review_configs"][0]["args_schema"]["properties"]["plan"]
    where = f"/api/v1/runs/{request['run_id']}/answer"
    mine = {"user_id": "ann", "decision": "approve"}

    other = client.post(where, json={**mine, "user_id": "bob"})
    assert other.status_code == 404 and "of user 'bob'" in other.json()["detail"]
    stale = client.post(where, json={**mine, "review_id": "reflect 9"})
    assert stale.status_code == 409 and "asks" in stale.json()["detail"]
    wrong = client.post(where, json={**mine, "decision": "edit", "edits": {"plan": {"steps": 7}}})
    assert wrong.status_code == 422 and "waits as before" in wrong.json()["detail"]
    told = frames(client.post(where, json={**mine, "decision": "edit", "edits": {"colour": 1}, "stream": True}).text)
    assert told[-1]["status"] == "error" and "waits as before" in told[-1]["message"]
    assert client.post(where, json={**mine, "decision": "resume"}).status_code == 409

    done = frames(client.post(where, json={**mine, "review_id": request["review_id"], "stream": True}).text)
    assert done[-1]["status"] == "done" and done[-1]["content"]["answer"] == ANSWER
    assert [decision["action"] for decision in wb.run(request["run_id"]).decisions] == ["approve"]
    late = client.post(where, json=mine)
    assert late.status_code == 409 and "waits for no answer" in late.json()["detail"]
    assert client.post(where, json={**mine, "decision": "resume"}).json()["answer"] == ANSWER


def test_a_conversation_is_listed_and_cleared_for_its_user_alone(client, wb) -> None:
    for user in ("ann", "bob"):
        client.post("/api/v1/chat", json={**ANN, "user_id": user, "session_id": "a/b c"})
    client.post("/api/v1/chat", json={**ANN, "session_id": "a/b c", "incognito": True, "message": "When, in secret?"})

    def listed(user: str, **more: Any) -> list[dict[str, Any]]:
        found = client.get("/api/v1/conversations/a/b%20c/messages", params={"user_id": user, **more})
        assert found.status_code == 200
        return found.json()["messages"]

    first = listed("ann")
    assert [(m["role"], m["content"]) for m in first] == [("user", QUESTION), ("assistant", ANSWER)]
    assert [m["id"] for m in listed("ann", limit=1)] == [first[-1]["id"]]
    assert [m["id"] for m in listed("ann", before=first[-1]["id"])] == [first[0]["id"]]
    assert listed("eve") == [] and len(wb.runs.list()) == 2
    cleared = client.post("/api/v1/clear", json={"user_id": "ann", "session_id": "a/b c"})
    assert cleared.json() == {"status": "ok", "remaining_messages": "0", "cleared_messages": "2"}
    assert listed("ann") == [] and len(listed("bob")) == 2


def test_feedback_is_kept_in_the_shape_of_its_table(client, wb) -> None:
    run_id = client.post("/api/v1/chat", json=ANN).json()["run_id"]
    message = wb.messages("kilns", "ann")[-1]["id"]
    row = {"message_id": message, "query": QUESTION, "is_positive": True, "thread_id": "kilns", "agent_type": "x"}
    assert client.post("/api/v1/feedback", json=row).json() == {"status": "ok", "run_id": run_id}
    more = {"thread_id": run_id, "is_positive": False, "user_id": "ann", "metadata": {"note": "短", "arm": "b"}}
    assert client.post("/api/v1/feedback", json=more).status_code == 200
    [kept] = wb.feedback()
    assert (kept["good"], kept["note"], kept["labels"], kept["run_id"]) == (False, "短", {"arm": "b"}, run_id)
    for wrong, status in (
        ({"user_id": "bob"}, 404),
        ({"metadata": {"who": "eve"}}, 400),
        ({"is_positive": "maybe"}, 422),
    ):
        assert client.post("/api/v1/feedback", json={**more, **wrong}).status_code == status
    assert wb.feedback() == [kept]
    client.post("/api/v1/feedback", json={**more, "is_positive": None})
    assert wb.feedback() == []


def test_health_says_whether_the_stores_answer(client, wb, monkeypatch) -> None:
    assert (client.get("/api/v1/health").status_code, client.get("/api/v1/health").json()) == (200, {"status": "ok"})

    def broken(*_: Any) -> None:
        raise WorkspaceError("/home/ann/secret.db is damaged.")

    monkeypatch.setattr(type(wb), "runs", property(broken))
    ill = client.get("/api/v1/health")
    assert (ill.status_code, ill.json()) == (503, {"status": "failed"})


@pytest.mark.parametrize(
    ("wrong", "status", "said"),
    [
        ({"message": ""}, 400, "The message is empty"), ({"message": "x" * 100_001}, 422, "100000 characters"),
        ({"kb_prefix": "../../etc"}, 404, "Unknown knowledge base '../../etc'. Known: notes"),
        ({"agent_type": "poet"}, 400, "fusion_agent"), ({"review": ["end"]}, 422, "'reflect'"),
        ({"models": {"all": "x"}}, 422, "Extra inputs"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("door", ["chat", "chat/stream"])
def test_what_does_not_fit_is_refused_in_words(client, wb, door, wrong, status, said) -> None:
    given = client.post(f"/api/v1/{door}", json={**ANN, **wrong})
    assert given.status_code == status and said in json.dumps(given.json()["detail"])
    assert wb.runs.list() == []


def test_hostile_bodies_and_names_do_no_harm(client, wb) -> None:
    def post(content: bytes, kind: str = "application/json") -> httpx.Response:
        return client.post("/api/v1/chat", content=content, headers={"content-type": kind})

    assert post(json.dumps(ANN).encode(), "text/plain").status_code == 415  # what a page of another site can send
    for body in (b"", b"[]", b"{", b"\xff\xfe", b"[" * 50_000, b'{"user_id": "\\ud800"}'):
        assert post(body).status_code == 422, body[:20]
    assert post(b" " * (http.MOST_BYTES + 1)).status_code == 413
    odd = {**ANN, "user_id": "a\x00'; DROP TABLE messages; --", "session_id": "<script>?"}
    assert client.post("/api/v1/chat", json=odd).status_code == 400, "a name with a control character"
    odd["user_id"] = "a'; DROP TABLE messages; --"
    assert client.post("/api/v1/chat", json=odd).status_code == 200
    for run_id in ("nobody", "..%2F..%2Fetc", "%00", "%F0%9F%92%A5", "' OR 1=1 --", "x" * 5_000):
        given = client.post(f"/api/v1/runs/{run_id}/answer", json={"user_id": "ann", "decision": "approve"})
        assert given.status_code == 404, run_id
    assert client.get("/api/v1/conversations/x/messages").status_code == 422
    assert client.get("/api/v1/conversations/x/messages", params={"user_id": "a", "limit": 9_999}).status_code == 422
    assert (client.get("/api/v1/nothing").status_code, client.get("/api/v1/chat").status_code) == (404, 405)
    assert all("detail" in client.get(path).json() for path in ("/api/v1/nothing", "/api/v1/chat"))
    assert len(wb.runs.list()) == 1 and wb.messages("kilns", "ann") == []


def test_without_a_token_only_this_machines_own_names_are_answered(client) -> None:
    for host, status in (("127.0.0.1:8000", 200), ("localhost", 200), ("[::1]:8000", 200), ("evil.example", 403)):
        given = client.post("/api/v1/chat", json={**ANN, "message": "hello"}, headers={"host": host})
        assert given.status_code == status, host
    given = client.post("/api/v1/chat", json=ANN, headers={"origin": "https://evil.example"})
    assert "access-control-allow-origin" not in given.headers


def test_with_a_token_everybody_brings_it(folder, caplog) -> None:
    with Workbench.open(folder, **CORE, http_token=TOKEN) as wb:
        client = TestClient(http.make_app(wb), base_url="http://workbench.example")
        for wrong in ("", "Bearer", f"Basic {TOKEN}", f"Bearer {TOKEN}x", "Bearer größer", f"Bearer {TOKEN[:-1]}"):
            given = client.post("/api/v1/chat", json=ANN, headers={"authorization": wrong.encode()})
            assert given.status_code == 401 and given.headers["www-authenticate"] == "Bearer"
            assert TOKEN not in given.text
        assert wb.runs.list() == [] and client.get("/api/v1/health").status_code == 200
        given = client.post("/api/v1/chat", json=ANN, headers={"authorization": f"Bearer {TOKEN}"})
        assert given.json()["answer"] == ANSWER
    assert TOKEN not in caplog.text


def test_what_fails_tells_no_secret_and_no_traceback(folder, caplog) -> None:
    with Workbench.open(folder, **CORE, http_token=TOKEN) as wb:
        client = TestClient(http.make_app(wb), headers={"authorization": f"Bearer {TOKEN}"})

        mended = threading.Event()

        async def broken(state: Any, context: Any) -> Any:
            if mended.is_set():
                return {"answer": "In 1993.", "citations": []}
            raise RuntimeError(f"connected with {TOKEN}")

        wb.register("handler", broken, kb="notes", retrieve=False)
        whole = client.post("/api/v1/chat", json=ANN)
        assert whole.status_code == 500 and whole.json()["detail"] == "RuntimeError: connected with [secret]"
        last = frames(client.post("/api/v1/chat/stream", json=ANN).text)[-1]
        assert last == {"status": "error", "message": "RuntimeError: connected with [secret]"}
        resumed = {"user_id": "ann", "decision": "resume"}
        mended.set()
        again = client.post(f"/api/v1/runs/{whole.json()['run_id']}/answer", json=resumed)
        assert (again.status_code, again.json()["answer"]) == (200, "In 1993.")

        wb.messages = lambda *_, **__: 1 / 0  # type: ignore[method-assign]
        fault = client.get("/api/v1/conversations/x/messages", params={"user_id": "ann"})
        assert fault.status_code == 500 and fault.json()["detail"].startswith("ZeroDivisionError: this is a fault")
        assert "Traceback" not in fault.text and "ZeroDivisionError at test_http.py" in caplog.text


@pytest.mark.parametrize(
    "token", [" ", "short-token", "a " * 15, "\u200b" * 20, "\u3000" * 20, "密" * 20, "a" * 16 + "\x00"], ids=repr
)
def test_a_token_that_keeps_nobody_out_is_refused(folder, token) -> None:
    refused = pytest.raises(SettingsError, match=r"WORKBENCH_HTTP_TOKEN has .* at least 16")
    with Workbench.open(folder, **CORE, http_token=token) as wb, refused:
        http.make_app(wb)
    done = CliRunner(env={"WORKBENCH_HTTP_TOKEN": token.replace("\x00", "é")}).invoke(
        main, ["serve", "--workspace", str(folder), "--host", "0.0.0.0", "--port", "0"]
    )
    assert done.exit_code == 1 and "at least 16" in done.stderr


def test_runs_are_listed_and_read_with_their_records_and_log(client, wb) -> None:
    first = client.post("/api/v1/chat", json=ANN).json()["run_id"]
    second = client.post("/api/v1/chat", json={**ANN, "user_id": "bob", "review": ["plan"]}).json()["run_id"]

    def listed(**params: Any) -> list[str]:
        return [run["run_id"] for run in client.get("/api/v1/runs", params=params).json()["runs"]]

    assert listed() == [second, first] and listed(user_id="ann") == [first] and listed(limit=1) == [second]
    assert listed(status="paused") == [second] and listed(session_id="nobody's") == []
    assert client.get("/api/v1/runs", params={"status": "odd"}).status_code == 422
    line = client.get("/api/v1/runs").json()["runs"][1]
    assert (line["status"], line["message"], line["user_id"]) == ("done", QUESTION, "ann") and line["created_at"]

    told = client.get(f"/api/v1/runs/{first}", params={"user_id": "ann"}).json()
    assert told == json.loads(json.dumps(wb.run(first).to_dict()))
    assert told["plan"]["steps"] and told["records"] and told["reflections"] and told["answer"] == ANSWER
    levels = {entry["node"]: entry for entry in told["execution_log"]}
    assert {"route", "retrieval", "generate", "persist"} <= set(levels)
    nodes = {entry["node"]: entry for entry in levels["retrieval"]["sub_steps"]}
    assert {"planner", "executor", "reflector", "merger"} <= set(nodes), "subgraph, node, step, what its tool did"
    [step, *_] = nodes["executor"]["sub_steps"]
    assert step["node"] in {record["step_id"] for record in told["records"]} and step["sub_steps"]
    collected = client.get(f"/api/v1/debug/{first}").json()
    assert (collected["request_id"], collected["route_decision"]["kb_prefix"]) == (first, "notes")
    assert "1993" in json.dumps(collected["combined_context"]) and collected["rag_runs"] and collected["records"]
    for path in (f"runs/{first}", f"debug/{first}", "runs/nobody", "debug/nobody"):
        assert client.get(f"/api/v1/{path}", params={"user_id": "eve"}).status_code == 404, path


def test_another_host_than_this_machine_needs_a_token() -> None:
    for host in ("0.0.0.0", "::"):
        with pytest.raises(SettingsError, match=r"other machines\. Set WORKBENCH_HTTP_TOKEN"):
            http.listen(host, 0, "")
    with http.listen("0.0.0.0", 0, TOKEN) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(SettingsError, match=rf"127\.0\.0\.1:{port} cannot be listened on: .*Choose another"):
            http.listen("127.0.0.1", port, "")
    with pytest.raises(SettingsError, match="cannot be listened on"):
        http.listen("no.such.host.invalid", 0, TOKEN)


@contextmanager
def served(
    folder: Path, *options: str, stopped: list[str] | None = None, **environment: Any
) -> Iterator[tuple[httpx.Client, subprocess.Popen[str]]]:
    """``workbench serve`` as a process on a free port, and a client of it."""
    texts = {n: value if isinstance(value, str) else json.dumps(value) for n, value in {**CORE, **environment}.items()}
    settings = {f"WORKBENCH_{name.upper()}": text for name, text in texts.items()}
    command = ["serve", "--workspace", str(folder), "--port", "0", "--json", *options]
    code, pipes = "from workbench.cli import main; main()", {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    process = forked.Popen([sys.executable, "-c", code, *command], env={**os.environ, **settings}, text=True, **pipes)
    try:
        assert process.stdout is not None
        told = json.loads("".join(iter(process.stdout.readline, "}\n")) + "}")
        with httpx.Client(base_url=f"http://127.0.0.1:{told['port']}", timeout=60, trust_env=False) as client:
            yield client, process
    finally:
        if not stopped:
            process.send_signal(signal.SIGTERM)
        _, said = process.communicate(timeout=60)
    assert process.returncode == 0 and "Traceback" not in said, said


def scripted(url: str) -> dict[str, Any]:
    """Settings by which a model behind that address writes the answers."""
    return {"models": {"writer": "openai:scripted"}, "chat_base_url": url, "chat_api_key": "planted-key"}


@pytest.mark.parametrize("how", ["dead", "in trouble"])
def test_a_model_that_fails_is_a_bad_gateway_in_its_words(folder, how) -> None:
    with scripted_server(Reply(status=500, message="out of memory")) as model:
        url = closed_port() if how == "dead" else model.url
        with Workbench.open(folder, **CORE, **scripted(url), model_backoff_s=0.01) as wb:
            given = TestClient(http.make_app(wb), base_url="http://127.0.0.1").post("/api/v1/chat", json=ANN)
    assert given.status_code == 502 and given.json()["status"] == "failed"
    assert f"The chat model at {url} failed" in given.json()["detail"] and "planted-key" not in given.text


def test_tokens_stream_as_the_model_writes_and_pings_fill_the_gaps(folder) -> None:
    words = ["The Aldermoor ", "kiln was built ", "in 1993 [1]."]
    with (
        scripted_server(Reply(words, delay_s=0.4)) as model,
        served(folder, "--heartbeat", "0.1", **scripted(model.url)) as (client, _),
        client.stream("POST", "/api/v1/chat/stream", json=ANN) as stream,
    ):
        text, seen = "", []
        for line in stream.iter_lines():
            text += line + "\n"
            seen.append("ping" if line == ": ping" else "token" if '"token"' in line else "")
    events = frames(text)
    assert [e["content"] for e in events if e["status"] == "token"] == words
    assert events[-1]["content"]["answer"] == "".join(words)
    first, last = seen.index("token"), len(seen) - seen[::-1].index("token")
    assert "ping" in seen[:first] and "ping" in seen[first:last], "before the first token, and between them"


def test_a_client_that_goes_away_leaves_a_run_that_resumes(folder) -> None:
    slow = Reply(["The Aldermoor kiln ", *["and again "] * 10_000], delay_s=0.05)
    with scripted_server(slow) as model, served(folder, **scripted(model.url)) as (client, _):
        with client.stream("POST", "/api/v1/chat/stream", json=ANN) as stream:
            lines = stream.iter_lines()
            run_id = json.loads(next(lines).removeprefix("data: "))["content"]["run_id"]
            assert any('"token"' in line for line in lines)
        model.wait_left()
        with Workbench.open(folder, **CORE) as wb:
            run = wb.run(run_id)
            until(lambda: run.status == "interrupted")
            cut = wb.messages("kilns", "ann")[-1]
        assert cut["partial"] and cut["content"].startswith("The Aldermoor kiln"), "as far as it came"
        model.answer(Reply([ANSWER]))
        done = client.post(f"/api/v1/runs/{run_id}/answer", json={"user_id": "ann", "decision": "resume"})
        assert done.json()["answer"] == ANSWER and done.json()["run_id"] == run_id
        whole = client.get("/api/v1/conversations/kilns/messages", params={"user_id": "ann"}).json()["messages"]
    assert [(m["role"], m["partial"]) for m in whole] == [("user", False), ("assistant", False)]


def test_a_server_that_is_stopped_leaves_its_runs_to_be_resumed(folder) -> None:
    stopped: list[str] = []
    with (
        scripted_server(Reply(["In 1993 ", *["and "] * 10_000], delay_s=0.05)) as model,
        served(folder, stopped=stopped, http_token=TOKEN, **scripted(model.url)) as (client, process),
    ):
        assert client.post("/api/v1/chat/stream", json=ANN).status_code == 401
        bearer = {"authorization": f"Bearer {TOKEN}"}
        with client.stream("POST", "/api/v1/chat/stream", json=ANN, headers=bearer) as stream:
            lines = stream.iter_lines()
            run_id = json.loads(next(lines).removeprefix("data: "))["content"]["run_id"]
            assert any('"token"' in line for line in lines)
            process.send_signal(signal.SIGTERM)
            stopped.append(run_id)
            last = [line for line in lines if line][-1]
    assert json.loads(last.removeprefix("data: "))["message"].startswith(f"Run {run_id} is interrupted. Continue it")
    with Workbench.open(folder, **CORE) as wb:
        assert wb.run(run_id).status == "interrupted"
        wb.run(run_id).resume()
        assert wb.run(run_id).status == "done"


PRICES = '["openai:m"]\ninput = 100000\noutput = 200000\n'


@pytest.fixture
def port() -> int:
    return free_port()


def when(port: int, fits: Callable[[dict[str, float]], bool]) -> dict[str, float]:
    """What is served, as soon as it fits: runs are counted beside what goes on."""

    def scraped() -> dict[str, float] | None:
        lines = httpx.get(f"http://127.0.0.1:{port}/metrics", trust_env=False).text.splitlines()
        found = {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in lines if line[0] != "#"}
        return found if fits(found) else None

    return until(scraped, 10)


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


@pytest.mark.parametrize(("owner", "name", "own"), [(metrics.Metrics, "count", "metrics"), (metrics, "send", "spans")])
def test_what_raises_there_touches_no_run(folder, port, monkeypatch, caplog, owner, name, own) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("not today")

    monkeypatch.setattr(owner, name, broken)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")
    watched = {"metrics": str(port), "spans": "otlp"}[own]
    with caplog.at_level(logging.WARNING), Workbench.open(folder, **{own: watched}, **CORE) as wb:
        assert wb.ask(QUESTION, kb="notes").status == "done"
    assert "not today" in caplog.text


SAID = "In 1993 [1]."


def test_a_run_is_a_trace_with_its_nodes_route_steps_and_calls(folder: Path) -> None:
    with scripted_server(Reply([SAID])) as server:
        told = {"chat_model": "openai:m", "chat_base_url": server.url, **only("writer"), **CORE}
        with Workbench.open(folder, **told) as wb:
            run = wb.ask(QUESTION, kb="notes")
            found = metrics.run_spans(snapshot(run))
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


def test_spans_go_to_a_collector_when_the_run_has_ended(folder, server, monkeypatch) -> None:
    server.answer(Reply(body=b""))
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", server.url.removesuffix("/v1"))
    with Workbench.open(folder, spans="otlp", **CORE) as wb:
        wb.ask(QUESTION, kb="notes", incognito=True)
    assert not server.requests, "nothing of an incognito run"
    with Workbench.open(folder, spans="otlp", **CORE) as wb:
        wb.ask(QUESTION, kb="notes")
    sent = b"".join(request["content"] for request in server.requests)
    assert b"route_decision" in sent and b"execute_tool" in sent and b"gen_ai.tool.name" in sent
