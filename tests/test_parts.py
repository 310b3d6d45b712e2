"""Parts hang on the spine and can be taken away; parts of one's own change what they should, and are recorded."""

import json
import shutil
import sys
import threading
from pathlib import Path
from unittest.mock import Mock

import pytest

from tests import forked
from tests.shelves import CORE, PROJECT
from workbench import extensions
from workbench.errors import RunError, WorkbenchError
from workbench.extensions import BUILT_IN
from workbench.graphs.reviewers import RuleReviewer, answer
from workbench.plans import Plan, PlanStep
from workbench.runs.driver import releasing
from workbench.runs.stored import debug_events
from workbench.session import Workbench
from workbench.settings import all_settings

# What was loaded of the package goes; the libraries stay.
FRESH = """
import sys
for name in [name for name in sys.modules if name.partition(".")[0] in ("workbench", "tests")]:
    del sys.modules[name]
sys.path.insert(0, sys.argv.pop(1))
import workbench
assert workbench.__file__.startswith(sys.path[0])
"""
ASKED = """
import json, sys
from workbench.session import Workbench
from workbench.settings import all_settings

folder, options, names = sys.argv[1], json.loads(sys.argv[2]), json.loads(sys.argv[3])
with Workbench.open(folder + "/w", **options) as wb:
    wb.add_knowledge("mills", [folder + "/mill.md"], progress=lambda *_: None)
    first = wb.ask("I like tea.", kb="mills", session="s")
    run = wb.ask("Who built Moss Mill?", kb="mills", session="s")
    refused = {}
    for name in names:
        try:
            getattr(run if name in ("prompt_parts", "what_if") else wb, name)
        except AttributeError as error:
            refused[name] = str(error)
    histories = [event["history"] for event in run.events() if "history" in event]
    print(json.dumps({
        "status": [first.status, run.status],
        "answer": run.answer,
        "refused": refused,
        "history": histories,
        "messages": len(wb.messages("s")),
        "remembered": [part["part"] for part in run.state["remembered"]],
        "settings": list(all_settings().model_fields),
    }))
"""


@pytest.mark.parametrize("name", BUILT_IN)
def test_a_workbench_without_a_part_answers_and_says_what_is_missing(name: str, tmp_path: Path) -> None:
    shutil.copytree(PROJECT / "workbench", tmp_path / "workbench", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.rmtree(tmp_path / "workbench" / "parts" / name)
    (tmp_path / "mill.md").write_text("# Moss Mill\n\nMoss Mill was built in 1821 by Ann Lee.\n", encoding="utf-8")
    attributes = BUILT_IN[name]
    words = [str(tmp_path), str(tmp_path), json.dumps(CORE), json.dumps(attributes)]
    command = [sys.executable, "-c", FRESH + ASKED, *words]
    done = forked.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout.splitlines()[-1])
    assert told["status"] == ["done", "done"] and "Ann Lee" in told["answer"] and told["messages"] == 4
    assert list(told["refused"]) == list(attributes)
    path = extensions.parts()[name].settings
    own = extensions.load(f"workbench.parts.{name}.{path}").model_fields if path else {}
    assert set(told["settings"]) == set(all_settings().model_fields) - set(own)
    assert all(f"the part {name!r}, which is not installed" in message for message in told["refused"].values())
    if name == "memory":
        assert told["remembered"] == [] and "which is not installed" in told["history"][0]["note"]


def test_a_run_that_needs_a_part_which_is_gone_names_it_and_resumes_when_it_is_back(tmp_path, monkeypatch):
    (tmp_path / "mill.md").write_text("# Moss Mill\n\nMoss Mill was built in 1821 by Ann Lee.\n", encoding="utf-8")
    with Workbench.open(tmp_path / "w", **CORE) as wb:
        wb.add_knowledge("mills", [tmp_path / "mill.md"])
        run = wb.ask("I like tea. Who built Moss Mill?", kb="mills", review={"plan"})
        assert run.status == "paused"
        here = extensions.parts()
        with monkeypatch.context() as gone:
            gone.setattr(extensions, "parts", lambda: {name: part for name, part in here.items() if name != "memory"})
            run.approve()
            assert run.status in ("failed", "interrupted") and "the part 'memory', which is not installed" in run.error
        assert run.resume().status == "done" and "Ann Lee" in run.answer


QUESTION = "Which kiln fires the blue glaze?"


@pytest.fixture
def notes(tmp_path):
    file = tmp_path / "notes.md"
    text = "The east kiln fires the blue glaze at 1240 degrees.\n\n# Wheels\n\nThe old wheel has a slow motor."
    file.write_text(f"# Kilns\n\n{text}")
    (tmp_path / "shop.md").write_text("# Shop\n\nThe shop sells bowls with a blue glaze from the kiln.")
    return file


@pytest.fixture
def wb(tmp_path, notes):
    with Workbench.open(tmp_path / "ws", embedding_model="hashing") as opened:
        opened.add_knowledge("studio", [notes])
        yield opened


def test_parts_of_ones_own_are_used_recorded_and_undone(wb):
    plain = wb.ask(QUESTION, kb="studio")

    async def enough(query, evidence, proposal):
        return {"should_continue": False, "reasoning": f"{len(evidence)} is plenty"}

    async def last_first(query, evidence):
        return evidence[::-1]

    async def short(query, evidence):
        return f"Look at {evidence[0]['metadata']['title']} [1]."

    calls = []

    def by_length(query, texts):
        calls.append(len(texts))
        return [float(len(text)) for text in texts]

    for part, given in (("reflector", enough), ("merger", last_first), ("writer", short), ("reranker", by_length)):
        assert wb.register(part, given) is given
    run = wb.ask(QUESTION, kb="studio")
    assert run.reflections[-1]["reasoning"].endswith("is plenty") and calls
    scores = [piece["score"] for piece in run.evidence]
    assert scores == sorted(scores) and run.state["merged"]["context"].startswith("[1]")
    assert run.answer.startswith("Look at") and run.citations[0]["result_id"] == run.evidence[0]["result_id"]
    for part in ("reflector", "merger", "writer", "reranker"):
        wb.register(part, None)
    assert wb.replay(run.run_id).answer == run.answer, "a replay takes what the parts said from the tape"
    assert wb.ask(QUESTION, kb="studio").answer == plain.answer


def test_a_part_that_cannot_work_is_refused_and_one_that_fails_is_named(wb):
    async def empty(query, evidence):
        return ""

    with pytest.raises(WorkbenchError, match=r"async def merger\(query, evidence\)"):
        wb.register("merger", lambda query, evidence: evidence)
    with pytest.raises(WorkbenchError, match="Known: router, planner, reflector"):
        wb.register("poet", empty)
    with pytest.raises(WorkbenchError, match="async def merger"):
        wb.register({"writer": empty, "merger": print})
    with pytest.raises(WorkbenchError, match='kb="papers"'):
        wb.register("handler", empty)
    assert wb.ask(QUESTION, kb="studio").status == "done", "a bundle with a wrong part replaces nothing"
    wb.register("writer", empty)
    run = wb.ask(QUESTION, kb="studio")
    assert run.status == "failed" and "The writer gave" in repr(run) and "The writer gave" in str(run)
    assert "The writer gave" in run._repr_mimebundle_()["text/html"]


WAYS = [
    (["studio:naive_rag_agent"], "studio:naive_rag_agent:retrieve_only"),
    ([], ""),
    (None, "shop:fusion_agent:retrieve_only"),
]


@pytest.mark.parametrize(("names", "worker"), WAYS)
@pytest.mark.few(2)
def test_a_registered_router_names_bases_and_workers(wb, notes, names, worker):
    wb.add_knowledge("shop", [notes.parent / "shop.md"])

    @wb.register("router")
    async def mine(message, known):
        assert known == ["shop", "studio"]
        return names

    run = wb.ask(QUESTION)
    assert run.state["route_decision"]["worker_name"] == worker and bool(run.evidence) is bool(worker)
    assert wb.replay(run.run_id).state["route_decision"] == run.state["route_decision"]
    assert wb.ask(QUESTION, kb="shop").state["kb_prefix"] == "shop", "what somebody asked for comes first"


def test_several_agents_of_several_bases_answer_one_question_together(wb, notes):
    wb.add_knowledge("shop", [notes.parent / "shop.md"])
    asked = ["studio:naive_rag_agent", "studio:graph_agent", "shop:hybrid_agent"]
    run = wb.ask(QUESTION, worker=asked)
    assert [record["tool"] for record in run.records] == ["naive_search", "local_search", "hybrid_search"]
    told = next(event["rag_runs"] for event in debug_events(run) if "rag_runs" in event)
    parts = {one["worker_name"].removesuffix(":retrieve_only"): one for one in told}
    ids = {piece["result_id"] for piece in run.evidence}
    assert list(parts) == asked and {one for part in parts.values() for one in part["result_ids"]} == ids
    assert parts["shop:hybrid_agent"]["result_ids"] and parts["studio:naive_rag_agent"]["result_ids"]
    assert wb.ask(QUESTION, worker="studio:naive_rag_agent").records[0]["tool"] == "naive_search"
    with pytest.raises(RunError, match="'poet'"):
        wb.ask(QUESTION, worker=["studio:graph_agent", "poet"])


class Shelf:
    """Messages and memories in lists, as somebody else's service would have them."""

    def __init__(self):
        self.messages, self.kept = [], []

    def get_or_create_conversation_id(self, user_id, session_id):
        return f"{user_id}/{session_id}"

    def append_message(self, conversation_id, role, content, *, message_key=None, **about):
        if message_key not in [m["id"] for m in self.messages]:
            made = {"id": message_key, "conversation": conversation_id, "created_at": "2026-01-01T00:00:00+00:00"}
            self.messages.append({**made, "role": role, "content": content})
        return message_key

    def list_messages(self, conversation_id, limit=None, before=None):
        ids = [m["id"] for m in self.messages]
        older = self.messages[: ids.index(before)] if before in ids else self.messages
        return [m for m in older if m["conversation"] == conversation_id][-(limit or 100) :]

    def recall(self, message, *, user_id, conversation_id, before=None):
        return {"memories": [], "summary": None, "episodes": [], "note": ""}

    def remember(self, user_id, section, content, **about):
        self.kept.append((user_id, section, content))
        return str(len(self.kept))


def test_a_store_and_a_memory_are_replaced_and_restored(wb):
    own = Shelf()
    wb.register({"store": own, "memory": own})
    first = wb.ask("My name is Noor. Which kiln fires the blue glaze?", kb="studio", session="s", user="noor")
    assert [m["role"] for m in own.messages] == ["user", "assistant"] and own.messages[1]["content"] == first.answer
    assert any(user == "noor" and "Noor" in content for user, _, content in own.kept)
    wb.ask("Why?", kb="studio", session="s", user="noor")
    wb.ask(QUESTION, kb="studio", incognito=True)
    wb.register({"store": None, "memory": None})
    wb.ask(QUESTION, kb="studio", session="s", user="noor")
    assert len(own.messages) == 4 and not wb.memory.view("noor").to_dict()["memories"]
    with pytest.raises(WorkbenchError, match="no method recall, remember"):
        wb.register("memory", object())
    runs, lost = Mock(), Mock(side_effect=ConnectionError("gone"))  # a store that fails leaves no run running
    with pytest.raises(ValueError, match="no") as failed, releasing(runs, Mock(run_id="r"), keep=lost):
        raise ValueError("no")
    assert runs.let_go.call_args.args == ("r", "failed", "ValueError: no") and "gone" in failed.value.__notes__[0]


def test_a_report_is_planned_outlined_and_written_by_ones_own_parts_together(wb):
    async def planner(query, decision, knowledge, tools):
        step = PlanStep(step_id="own", objective="o", tool="keyword_search", tool_input={"query": "kiln wheel"})
        return Plan(problem_statement=query, steps=[step])

    async def outliner(query, evidence):
        return [{"title": "All of it", "evidence": [1]}]

    async def writer(query, evidence):
        return "The east kiln fires the blue glaze [1]."

    plain = wb.report("Kilns and wheels", kb="studio")
    wb.register({"planner": planner, "outliner": outliner, "writer": writer})
    run = wb.report("Kilns and wheels", kb="studio")
    assert run.plan.steps[0].step_id == "own" and [s["title"] for s in run.report.sections] == ["All of it"]
    assert "The east kiln fires the blue glaze [1]." in run.report.text
    wb.register(dict.fromkeys(["planner", "outliner", "writer"]))
    assert wb.report("Kilns and wheels", kb="studio").report.text == plain.report.text

    async def beyond(query, evidence):
        return [{"title": "X", "evidence": [len(evidence) + 1]}]

    wb.register("outliner", beyond)
    assert "The outliner gave" in str(wb.report("Kilns and wheels", kb="studio").error)


def test_a_reviewer_may_be_async_sees_the_evidence_and_holds_up_nobody(wb):
    seen, go = [], threading.Event()

    async def judge(request):
        seen.append([piece["metadata"]["title"] for piece in request["evidence"]])
        return answer("approve", who="judge")

    run = wb.ask(QUESTION, kb="studio", review="reflect", reviewer=judge)
    assert run.status == "done" and run.decisions[0]["who"] == "judge" and seen[0]

    def slow(request):
        assert go.wait(30)
        return RuleReviewer()(request)

    waiting = [wb.start(QUESTION, kb="studio", review="reflect", reviewer=slow) for _ in range(8)]
    assert wb.ask(QUESTION, kb="studio").status == "done"
    go.set()
    assert {one.wait().status for one in waiting} == {"done"}
