"""The command line as a person, a script and a terminal use it."""

import json
import os
import pty
import re
import select
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from click.testing import CliRunner

from tests import forked
from tests.films import VOCABULARY
from tests.parts.agent.test_agent import calls
from tests.servers import Reply, scripted_server
from tests.shelves import CORPORA, environment
from workbench.cli import main
from workbench.records.document import SCHEMA_FILE

FILMS = CORPORA / "two_films.jsonl"
WHEN = "When was The Wedding Banquet released?"
COMMAND = [sys.executable, "-c", "from workbench.cli import main; main()"]


@pytest.fixture(scope="module")
def indexed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace that knows two films, made with the command line itself."""
    folder = tmp_path_factory.mktemp("cli")
    corpus = folder / "films.jsonl"
    corpus.write_text(f"{FILMS.read_text(encoding='utf-8')}{{broken", encoding="utf-8")
    runner = CliRunner(env={"WORKBENCH_EMBEDDING_MODEL": "hashing"})
    how = ["--vocabulary", str(VOCABULARY), "--workspace", str(folder / "ws"), "--json"]
    done = runner.invoke(main, ["kb", "add", "film", str(corpus), *how])
    assert done.exit_code == 0, done.output
    report = json.loads(done.stdout)
    assert (report["added"], report["counts"]["documents"]) == (2, 2)
    assert [(problem["line"], Path(problem["file"]).name) for problem in report["problems"]] == [(3, "films.jsonl")]
    return folder / "ws"


@pytest.fixture
def cli(indexed: Path, monkeypatch: pytest.MonkeyPatch):
    """``cli("ask", "...")`` in that workspace: exit code, standard output, standard error."""
    monkeypatch.setenv("WORKBENCH_WORKSPACE", str(indexed))
    monkeypatch.setenv("WORKBENCH_EMBEDDING_MODEL", "hashing")

    def run(*words: str, **more):
        done = CliRunner().invoke(main, list(words), **more)
        assert "Traceback" not in done.output
        return done

    return run


def document(done) -> dict:
    """The one document on standard output, held to the published schema."""
    found = json.loads(done.stdout)
    if "document" in found:
        jsonschema.Draft202012Validator(json.loads(SCHEMA_FILE.read_text("utf-8"))).validate(found)
    return found


def test_ask_answers_with_sources_and_json_is_one_document_and_nothing_else(cli):
    for question, said in ((WHEN, "1993"), ("喜宴哪一年上映？", "《喜宴》")):
        done = cli("ask", "-", "--kb", "film", input=question)
        assert done.exit_code == 0 and said in done.stdout and "[1]" in done.stdout
        assert "CC BY-SA 4.0" in done.stdout and "https://en.wikipedia.org/wiki/The_Wedding_Banquet" in done.stdout
        assert re.search(r"workbench show \w+", done.stderr)
    done = cli("ask", WHEN, "--kb", "film", "--json")
    found = document(done)
    assert (done.exit_code, done.stderr, found["status"]) == (0, "", "done")
    assert found["citations"][0]["source"]["licence"] == "CC BY-SA 4.0"
    assert found["route_decision"]["kb_prefix"] == found["kb_prefix"] == "film"
    assert found["records"][0]["step_id"] == found["plan"]["steps"][0]["step_id"]


def test_without_a_person_a_review_pauses_and_says_how_to_go_on(cli):
    done = cli("ask", WHEN, "--kb", "film", "--review", "plan")
    assert done.exit_code == 3
    assert "Your decision: run this plan?" in done.stdout
    for option in ("--approve", "--edit FILE.json", "--respond TEXT", "--reject"):
        assert re.search(rf"workbench resume \w+ {option}", done.stderr)
    run_id = re.search(r"workbench resume (\w+) --approve", done.stderr)[1]
    assert cli("resume", run_id).exit_code == 3  # nothing was answered
    assert cli("resume", run_id, "--approve", "--note", "looks right").exit_code == 0
    again = cli("resume", run_id, "--approve")
    assert again.exit_code == 1 and "waits for no answer" in again.stderr
    assert document(cli("show", run_id, "--json"))["decisions"][0]["note"] == "looks right"


def test_edit_respond_and_reject(cli, tmp_path):
    paused = document(cli("ask", WHEN, "--kb", "film", "--review", "plan", "--json"))
    assert (paused["status"], paused["review"]["point"]) == ("paused", "plan")
    run_id = paused["run_id"]
    (tmp_path / "edit.json").write_text('{"query": "喜宴"}', encoding="utf-8")
    edited = document(cli("resume", run_id, "--edit", str(tmp_path / "edit.json"), "--json"))
    assert edited["plan"]["version"] == 2
    responded = document(cli("resume", run_id, "--respond", "only comedies", "--json"))
    assert responded["decisions"][-1]["message"] == "only comedies"
    stopped = cli("resume", run_id, "--reject", "--json")
    assert (stopped.exit_code, document(stopped)["stop_reason"]) == (0, "stopped_by_reviewer")


def test_a_question_without_a_session_is_alone_and_its_conversation_can_be_gone_on_with(cli):
    run_id = document(cli("ask", WHEN, "--kb", "film", "--json"))["session_id"]
    alone = cli("ask", "Who directed it?", "--kb", "film")
    assert "Read as" not in alone.stderr and f"--session {run_id}" not in alone.stderr
    followed = cli("ask", "Who directed it?", "--kb", "film", "--session", run_id)
    read = "Read as: Who directed it? (The Wedding Banquet)"
    assert "Ang Lee" in followed.stdout
    assert read in followed.stderr and f"workbench ask QUESTION --session {run_id}" in followed.stderr
    assert read in " ".join(cli("runs").stdout.split()), "in the list too"
    listed = json.loads(cli("runs", "--session", run_id, "--json").stdout)["runs"]
    assert [run["message"] for run in listed] == ["Who directed it?", WHEN]


@pytest.mark.parametrize(
    "words", [["ask"], ["ask", "x", "--limit", "3"], ["dance"], ["kb", "add", "film", "/nowhere"], ["resume"]]
)
def test_wrong_usage_is_2_for_people_and_scripts(cli, words):
    done = cli(*words)
    assert (done.exit_code, done.stdout) == (2, "")
    as_json = cli(*words, "--json")
    assert as_json.exit_code == 2 and json.loads(as_json.stdout)["error"]
    unknown = json.loads(cli("ask", "x", "--kb", "nowhere", "--json").stdout)
    assert unknown["type"] == "UnknownKnowledge"


def test_a_missing_workspace_is_not_made_by_looking(cli, tmp_path):
    for words in (["runs"], ["show", "x"], ["kb", "list"], ["resume", "x"], ["remove", "x"]):
        done = cli(*words, "--workspace", str(tmp_path / "none"))
        assert done.exit_code == 1 and "There is no workspace" in done.stderr
    assert not (tmp_path / "none").exists()


def test_doctor_names_what_could_be_better_with_its_fix(cli, tmp_path):
    found = json.loads(cli("doctor", "--json").stdout)
    checks = {check["name"]: check for check in found["checks"]}
    assert found["ok"] and checks["full text search"]["state"] == "ok"
    assert "WORKBENCH_EMBEDDING_MODEL" in checks["embeddings"]["fix"]
    assert "2 documents" in checks["knowledge film"]["detail"]
    assert "→ workbench demo" in cli("doctor", "--workspace", str(tmp_path / "none")).stdout


@pytest.mark.parametrize(
    ("schema", "tools", "said"),
    [
        (True, True, "takes JSON schemas; calls tools"),
        (True, False, "calls no tools: the agent is asked by a form"),
        (False, True, "takes no JSON schema: forms are asked for in words; calls tools"),
    ],
)
def test_doctor_asks_a_server_what_it_can(cli, monkeypatch, schema, tools, said):
    def respond(request: dict[str, Any]) -> Reply:
        if "tools" in request:
            return calls(("hybrid_search", {"query": "mill"})) if tools else Reply(status=400, message="no tools here")
        asks = "response_format" in request
        return Reply(status=400, message="unknown response_format") if asks and not schema else Reply(["{}"])

    with scripted_server() as server:
        server.respond = respond
        monkeypatch.setenv("WORKBENCH_CHAT_MODEL", f"openai:m{schema}{tools}")
        monkeypatch.setenv("WORKBENCH_CHAT_BASE_URL", server.url)
        checks = json.loads(cli("doctor", "--ask", "--json").stdout)["checks"]
    assert said in next(check["detail"] for check in checks if check["name"].startswith("model openai:m"))


def test_models_and_their_calls_from_the_terminal(cli):
    with scripted_server(Reply(["In 1993 [1]."])) as server:
        at = {"env": {"WORKBENCH_CHAT_BASE_URL": server.url}}
        asked = ["--model", "all=rules", "--model", "writer=openai:m"]
        run = json.loads(cli("ask", WHEN, "--kb", "film", *asked, "--json", **at).stdout)
        assert run["answer"].startswith("In 1993 [1]")
        [call] = json.loads(cli("show", run["run_id"], "--calls", "--json").stdout)["calls"]
        assert (call["role"], call["place"]) == ("writer", "writer/1")
        text = cli("show", run["run_id"], "--calls").stdout
        assert "writer/1:" in text and "[said]\nIn 1993 [1]." in text
        plain = json.loads(cli("fork", run["run_id"], "--model", "writer=rules", "--json", **at).stdout)
        assert "1993" in plain["answer"] and len(server.requests) == 1
        assert "models: 1 calls, 7 tokens read" in cli("ask", WHEN, "--kb", "film", *asked, **at).output
        refused = cli("ask", WHEN, "--model", "poet=x", **at)
        assert refused.exit_code == 1 and "Known: all, router" in refused.stderr


def test_demo_shows_plan_reflection_and_a_cited_answer(cli, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    Path("data").mkdir()
    shutil.copy(FILMS, "data/films.jsonl")
    for name in ("demo.toml", "films.vocabulary.toml"):
        shutil.copy(Path(__file__).parents[1] / "data" / name, "data")
    done = cli("demo", "--workspace", "ws")
    assert done.exit_code == 0, done.output
    for piece in ("计划", "反思", "[1]", "来源", "1993"):
        assert piece in done.stdout
    assert "--review plan,reflect" in done.stderr
    again = json.loads(cli("demo", "--workspace", "ws", "--json").stdout)
    assert again["knowledge"]["unchanged"] == 2
    assert [run["status"] for run in again["runs"]] == ["done", "done"]


@pytest.mark.slow
def test_ctrl_c_leaves_the_run_resumable(indexed):
    slow = Reply(["The ", "Wedding ", "Banquet ", "was released in 1993 [1]."] * 80, delay_s=0.2)
    with scripted_server(slow, Reply(["In 1993 [1]."])) as server:
        chat = {"WORKBENCH_MODELS__WRITER": "openai:slow", "WORKBENCH_CHAT_BASE_URL": server.url}
        settings = {**environment(), "WORKBENCH_WORKSPACE": str(indexed), **chat}
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        asking = forked.Popen([*COMMAND, "ask", WHEN, "--kb", "film", "--stream"], env=settings, **pipes)
        assert asking.stdout.read(3) == b"The"  # the answer has begun
        asking.send_signal(signal.SIGINT)
        server.wait_left()
        _, said = asking.communicate(timeout=120)
        assert asking.returncode == 4, said.decode()
        run_id = re.search(r"workbench resume (\w+)", said.decode())[1]
        on = forked.run([*COMMAND, "resume", run_id, "--json"], env=settings, capture_output=True, timeout=180)
        assert (on.returncode, json.loads(on.stdout)["answer"]) == (0, "In 1993 [1].")


def converse(words: list[str], answers: list[tuple[str, str]], env: dict[str, str]) -> tuple[int, str]:
    """Run a command on a terminal of its own: wait for each text, then type."""
    master, slave = pty.openpty()
    process = forked.Popen([*COMMAND, *words], stdin=slave, stdout=slave, stderr=slave, env=env, close_fds=True)
    os.close(slave)
    heard, mark, left, until = "", 0, list(answers), time.monotonic() + 180
    while time.monotonic() < until:
        if left and left[0][0] in heard[mark:]:
            mark = len(heard)
            os.write(master, left.pop(0)[1].encode())
        if select.select([master], [], [], 0.1)[0]:
            try:
                heard += os.read(master, 65536).decode("utf-8", "replace")
            except OSError:  # the other end is gone
                break
        elif process.poll() is not None:
            break
    os.close(master)
    return process.wait(timeout=10), heard


@pytest.mark.slow
def test_on_a_terminal_the_person_is_asked(indexed, tmp_path):
    editor = tmp_path / "editor.py"
    editor.write_text(
        "import json, pathlib, sys; path = pathlib.Path(sys.argv[1]); edits = json.loads(path.read_text('utf-8'))\n"
        "path.write_text(json.dumps(edits | {'query': 'The Wedding Banquet comedy'}))"
    )
    own = {"EDITOR": f"{sys.executable} {editor}", "TERM": "xterm", "COLUMNS": "100"}
    env = {**environment(), "WORKBENCH_WORKSPACE": str(indexed), **own}
    typed = [("> ", "dance\n"), ("> ", "e\n"), ("optional)", "narrower\n"), ("> ", "a\n"), ("optional)", "\n")]
    code, heard = converse(["ask", WHEN, "--kb", "film", "--review", "plan"], typed, env)
    assert code == 0 and "Please type one of a, e, n, r, q." in heard and "version 2" in heard and "1993" in heard
