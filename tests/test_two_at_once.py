"""Two processes at one run: who may go on, whose answer counts; and on one base: old or new, and never a mixture."""

import json
import os
import select
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests import forked
from tests.films import endless
from tests.shelves import jsonl, workbench
from workbench.errors import KnowledgeError, NotPaused, RunError, UnknownKnowledge, WorkbenchError, WorkspaceBusy
from workbench.knowledge.adding import Addition
from workbench.parts.memory.recall import find_store
from workbench.records.tape import canonical
from workbench.session import Workbench

ROOT = Path(__file__).resolve().parent.parent
QUESTION = "喜宴哪一年上映？"
COMMAND = [sys.executable, "-c", "from workbench.cli import main; main()"]


class Other:
    """A process with the workspace open that does what it is told, line by line."""

    def __init__(self, workspace: Path, **settings: object):
        code = "import sys; from tests.test_two_at_once import obey; obey(*sys.argv[1:])"
        command = [sys.executable, "-c", code, str(workspace), json.dumps(settings)]
        self.process = forked.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.heard() == "ready"

    @property
    def pid(self) -> int:
        return self.process.pid

    def tell(self, what: str, *words: object) -> None:
        self.process.stdin.write(json.dumps([what, *words]) + "\n")
        self.process.stdin.flush()

    def heard(self):
        return json.loads(self.process.stdout.readline())

    def do(self, what: str, *words: object):
        self.tell(what, *words)
        return self.heard()

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate()


def obey(workspace: str, settings: str) -> None:
    """What ``Other`` runs."""

    def tell(said: object) -> None:
        print(json.dumps(said), flush=True)

    def half(self: Addition, *_: object) -> None:
        tell("half")
        sys.stdin.read()

    def make_slowly(corpus: str) -> None:
        Addition._write = half
        wb.add_knowledge("film", [write_corpus(Path(corpus), 1)])

    def remove_and_add(corpus: str, times: int) -> None:
        for generation in range(times):
            wb.knowledge.remove("film")
            wb.add_knowledge("film", [write_corpus(Path(corpus), generation, 3)])

    own = {"time_budget_s": 600, **json.loads(settings)}  # so that what is endless is
    with ExitStack() as held, Workbench.open(workspace, **own) as wb:
        endless(wb)
        doing = {
            "ask": lambda review: wb.ask(QUESTION, kb="film", review=review or None).run_id,
            "slow": lambda: started(wb),
            "status": lambda run_id: [wb.run(run_id).status, wb.run(run_id).to_dict()["holder"]],
            "approve": lambda run_id, note: wb.run(run_id).approve(note).status,
            "resume": lambda run_id: wb.run(run_id).resume(wait=False).status,
            "cancel": lambda run_id: wb.run(run_id).cancel().status,
            "wait": lambda run_id: wb.run(run_id).wait(60).status,
            "say": lambda name, count: [wb.ask(f"{name} {n} hello", session=name).run_id for n in range(count)],
            "add": lambda corpus, n: wb.add_knowledge("film", [write_corpus(Path(corpus), n)]).added,
            "hold": lambda: held.enter_context(wb.knowledge.writing("film")) and None,
            "make slowly": make_slowly,
            "remove and add": remove_and_add,
        }
        tell("ready")
        for line in sys.stdin:
            what, *words = json.loads(line)
            try:
                tell(doing[what](*words))
            except WorkbenchError as error:
                tell({"refused": f"{type(error).__name__}: {error}"})


def started(wb: Workbench) -> str:
    """A run that is in the middle of its endless step."""
    run = wb.start(f"SLOW {QUESTION}", kb="film")
    next(event for event in run.events() if "retrieval_step_start" in event)
    return run.run_id


@pytest.fixture
def other(workspace: Path) -> Iterator[Callable[[], Other]]:
    begun: list[Other] = []

    def begin() -> Other:
        begun.append(Other(workspace))
        return begun[-1]

    yield begin
    for one in begun:
        one.kill()


def test_a_run_is_seen_from_another_process(workspace, wb, other):
    them = other()
    run = wb.run(them.do("slow"))
    assert run.status == "running" and f"process {them.pid} on " in run.to_dict()["holder"]
    assert f"process {them.pid} on " in str(run)
    for refused in (lambda: run.resume(), lambda: wb.runs.remove(run.run_id)):
        with pytest.raises((WorkspaceBusy, RunError), match=f"process {them.pid} on|is running"):
            refused()
    with pytest.raises(NotPaused, match=f"is running: it waits for no answer. It is worked on by process {them.pid}"):
        run.approve()
    paused = wb.run(them.do("ask", "reflect"))
    assert paused.status == "paused" and paused.to_dict()["holder"] is None and paused.review["point"] == "reflect"
    them.kill()
    assert (run.status, run.to_dict()["holder"]) == ("interrupted", None), "at once"
    assert paused.approve().status == "done"
    endless(wb)
    run.resume(wait=False)
    next(event for event in run.events() if "retrieval_step_start" in event)
    assert run.status == "running" and f"process {os.getpid()} on" in run.to_dict()["holder"]
    assert run.cancel().status == "cancelled"
    assert [r["status"] for r in run.records if r["tool"] == "endless"] == ["cancelled"], "the tool was stopped"
    with pytest.raises(RunError, match="was cancelled"):
        run.resume()


def test_the_command_line_says_who_works_on_a_run_and_stops_it(workspace, other):
    them = other()
    run_id = them.do("slow")

    def cli(*words: str) -> subprocess.CompletedProcess[str]:
        return forked.run([*COMMAND, *words, "--workspace", str(workspace)], capture_output=True, text=True, cwd=ROOT)

    holder = f"process {them.pid} on "
    assert holder in cli("runs").stdout and holder in cli("show", run_id).stdout
    assert json.loads(cli("runs", "--json").stdout)["runs"][0]["holder"].startswith(holder)
    for words in (["resume", run_id], ["resume", run_id, "--approve"]):
        refused = cli(*words)
        assert refused.returncode == 1 and holder in refused.stderr and refused.stderr.count("\n") == 1
    began = time.monotonic()
    stopped = cli("cancel", run_id, "--json")
    assert stopped.returncode == 0, stopped.stderr
    assert json.loads(stopped.stdout)["runs"][0]["status"] == "cancelled"
    assert them.do("status", run_id) == ["cancelled", None]
    assert them.do("wait", run_id) == "cancelled" and time.monotonic() - began < 30
    assert cli("cancel", "nothing").returncode == 1


def test_cancelling_a_paused_run_and_one_whose_process_died(wb, other):
    them = other()
    paused, lost = wb.run(them.do("ask", "plan")), wb.run(them.do("slow"))
    assert paused.cancel().status == "cancelled"
    assert "cancelled" in them.do("approve", paused.run_id, "")["refused"]
    them.kill()
    assert lost.cancel().status == "cancelled" and wb.runs.lines(1)[0]["ended_at"]
    done = wb.ask(QUESTION, kb="film")
    assert done.cancel().status == "done" and done.answer


@pytest.mark.parametrize("rounds", [2, pytest.param(12, marks=pytest.mark.full)])
def test_one_answer_counts_when_two_processes_give_one(workspace, wb, other, rounds):
    one, two = other(), other()
    for _ in range(rounds):
        run = wb.ask(QUESTION, kb="film", review="reflect", session=str(time.monotonic_ns()))
        assert run.status == "paused"
        for number, them in enumerate((one, two)):
            them.tell("approve", run.run_id, f"answer {number}")
        said = [one.heard(), two.heard()]
        [refused] = [told["refused"] for told in said if told != "done"]
        assert refused.startswith(("NotPaused", "WorkspaceBusy"))
        assert "worked on by process" in refused or "done" in refused
        [kept] = run.decisions
        assert kept["note"] == f"answer {said.index('done')}" and run.status == "done"
        messages = find_store(wb).list_messages(run.row["conversation_id"])
        assert [m["role"] for m in messages] == ["user", "assistant"]


@pytest.mark.parametrize("rounds", [2, pytest.param(6, marks=pytest.mark.full)])
def test_one_answer_counts_when_two_threads_give_one(wb, rounds):
    for _ in range(rounds):
        run = wb.ask(QUESTION, kb="film", review="reflect", session=str(time.monotonic_ns()))
        barrier = threading.Barrier(4)

        def answer(number: int, run=run, barrier=barrier) -> str:
            barrier.wait()
            try:
                return wb.run(run.run_id).approve(f"answer {number}").status
            except (NotPaused, WorkspaceBusy) as refused:
                return type(refused).__name__

        with ThreadPoolExecutor(4) as pool:
            said = [*pool.map(answer, range(4))]
        assert said.count("done") == 1, said
        assert len(run.decisions) == 1 and Counter(entry["node"] for entry in run.log)["generate"] == 1


@pytest.mark.parametrize("rounds", [1, pytest.param(4, marks=pytest.mark.full)])
def test_one_process_goes_on_with_an_interrupted_run(workspace, wb, other, rounds):
    dead, one, two = other(), other(), other()
    for _ in range(rounds):
        run_id = dead.do("slow")
        dead.kill()
        one.tell("resume", run_id)
        two.tell("resume", run_id)
        said = [one.heard(), two.heard()]
        assert said.count("running") == 1, said
        refused = next(told for told in said if told != "running")["refused"]
        winner = (one, two)[said.index("running")]
        assert refused.startswith(("WorkspaceBusy", "NotPaused")) and f"process {winner.pid} on" in refused, said
        assert winner.do("cancel", run_id) == "cancelled"
        dead = other() if rounds > 1 else dead


def test_the_recorded_answer_goes_on_and_another_is_refused(workspace, wb, other):
    """The process dies after it kept the answer, and before the checkpoint of it."""
    undisturbed = wb.ask(QUESTION, kb="film", review="reflect", session="a")
    code = f"""
import os, sys
from workbench.records.store import RunStore
from workbench.session import Workbench
save = RunStore.save_decision
def save_and_die(self, *given):
    save(self, *given)
    os._exit(9)
RunStore.save_decision = save_and_die
with Workbench.open(sys.argv[1]) as wb:
    run = wb.ask({QUESTION!r}, kb="film", review="reflect", session=sys.argv[2])
    print(run.run_id, flush=True)
    run.approve("because")
"""
    runs = []
    for session in ("b", "c"):
        died = forked.run(
            [sys.executable, "-c", code, str(workspace), session], stdout=subprocess.PIPE, text=True, cwd=ROOT
        )
        assert died.returncode == 9
        runs.append(wb.run(died.stdout.strip()))
    for run in runs:
        assert run.status == "interrupted" and run.review is None and len(run.decisions) == 1
        with pytest.raises(NotPaused, match="interrupted"):
            run.reject()
        with pytest.raises(NotPaused, match="interrupted"):
            run.respond("something else")
    assert runs[0].resume().status == "done", "resume alone"
    assert runs[1].approve("again").status == "done", "the recorded answer again"
    undisturbed.approve("because")
    for run in runs:
        assert [d["note"] for d in run.decisions] == ["because"]
        assert canonical(run.to_dict()) == canonical(undisturbed.to_dict())
        with pytest.raises(NotPaused, match="is done"):
            run.approve()


@pytest.mark.parametrize("count", [3, pytest.param(8, marks=pytest.mark.full)])
def test_two_sessions_and_two_runs_or_processes_in_one_keep_their_order(wb, other, count):
    one, two = other(), other()
    for them, mine in ((one, "A"), (two, "B")):
        them.tell("say", mine, count)
    with ThreadPoolExecutor(count) as pool:
        [*pool.map(lambda n: wb.ask(f"shared {n} hello", session="S"), range(count))]
    for them in (one, two):
        assert len(them.heard()) == count
    store = find_store(wb)
    for session in "AB":
        messages = store.list_messages(store.get_or_create_conversation_id("default", session))
        assert [m["role"] for m in messages] == ["user", "assistant"] * count
        assert [m["content"] for m in messages[::2]] == [f"{session} {n} hello" for n in range(count)]
    messages = store.list_messages(store.get_or_create_conversation_id("default", "S"))
    assert Counter(m["role"] for m in messages) == {"user": count, "assistant": count}
    assert sorted(m["content"] for m in messages if m["role"] == "user") == [f"shared {n} hello" for n in range(count)]
    for run in wb.runs.list(session_id="S"):
        place = {(m["debug"] or {}).get("run_id"): i for i, m in enumerate(messages) if m["role"] == "assistant"}
        asked = next(i for i, m in enumerate(messages) if m["content"] == run.message)
        assert asked < place[run.run_id], "an answer stands after its question"
        before = [m["content"] for m in messages[:asked]]
        assert [h["content"] for h in run.state["history"]] == before[-len(run.state["history"]) :] or not before
    for them in (one, two):
        them.tell("say", "both", count)
    ids = {*one.heard(), *two.heard()}
    messages = store.list_messages(store.get_or_create_conversation_id("default", "both"))
    assert len(messages) == len({m["id"] for m in messages}) == 4 * count
    assert {(m["debug"] or {}).get("run_id") for m in messages if m["role"] == "assistant"} == ids


HASHING = {"embedding_model": "hashing"}
COMEDIES = [{"field": "genres", "op": "eq", "value": "Comedy"}]


def write_corpus(folder: Path, generation: int, documents: int = 12) -> Path:
    """Films of which everything says which generation they are of; two come and go."""
    about = {
        "type": "Film",
        "year": 1900 + generation,
        "directors": [f"Director Gen{generation}"],
        "genres": ["Comedy"],
    }
    text = f"is a comedy. It is of state{generation} and of nothing else."
    titles = {f"f{number}": f"Film {number} Gen{generation}" for number in range(documents + generation % 2)}
    lines = [{"id": name, "title": title, "text": f"{title} {text}", **about} for name, title in titles.items()]
    return jsonl(folder / "films.jsonl", lines)


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    folder = tmp_path / "corpus"
    folder.mkdir()
    return folder


@pytest.fixture(
    params=[
        pytest.param((20_000, "chroma"), id="matrix"),
        pytest.param((2, "chroma"), id="chroma"),
        pytest.param((2, "lancedb"), id="lancedb", marks=pytest.mark.full),
    ]
)
def limit(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    if request.param[1] == "lancedb":
        pytest.importorskip("lancedb", reason="the extra lancedb is not installed")
    monkeypatch.setenv("WORKBENCH_VECTOR_STORE", request.param[1])
    return request.param[0]


@pytest.fixture
def writer(tmp_path: Path, limit: int) -> Iterator[Other]:
    one = Other(tmp_path / "ws", **HASHING, exact_search_limit=limit)
    yield one
    one.kill()


def seen(base) -> dict[str, set[int]]:
    def found(way: str) -> list[str]:
        return [p["title"] for p in base.passages([chunk for chunk, _ in base.search(way, "a film, a comedy", 50)])]

    titles = {
        "keywords": found("words"),
        "vectors": found("meaning"),
        "graph": [data["name"] for _, data in base.graph().nodes(data=True)],
        "select": [p["title"] for p in base.passages(doc_ids=base.select(COMEDIES))],
        "communities": [community["title"] for community in base.around("communities")],
    }
    return {name: {int(t.partition("Gen")[2][:1]) for t in some if "Gen" in t} for name, some in titles.items()}


def test_an_open_reader_sees_what_another_process_added_with_its_next_call(tmp_path, corpus, writer, limit):
    with pytest.raises(UnknownKnowledge), Workbench.open(tmp_path / "ws", **HASHING) as wb:
        wb.knowledge.get("film")
    writer.do("add", str(corpus), 1)
    with Workbench.open(tmp_path / "ws", **{**HASHING, "exact_search_limit": limit}) as wb:
        base = wb.knowledge.get("film")
        for generation in (1, 2, 3):
            if generation > 1:
                writer.do("add", str(corpus), generation)
            found = seen(base)
            assert {name: states for name, states in found.items() if states not in ({generation}, set())} == {}
            assert found["keywords"] and found["vectors"] and found["graph"] and found["select"]
            count = 12 + generation % 2
            assert base.about()["counts"]["documents"] == count
            assert len(base.search("meaning", "a film that is a comedy", 50)) == count
            mentions = base.link(f"Who made Film 3 Gen{generation}, and who is Director Gen{generation}?")
            assert {m["surface"] for m in mentions} == {f"Film 3 Gen{generation}", f"Director Gen{generation}"}
            assert base.link(f"Film 3 Gen{generation - 1}") == []
            now, before = base.words([f"state{generation}", f"state{generation - 1}"])["weights"]
            assert now < before
            approximate = limit == 2 and os.environ["WORKBENCH_VECTOR_STORE"] == "chroma"
            assert base.inspect()["search"] == ("hnsw" if approximate else "exact")


def test_a_reader_never_sees_a_mixture(tmp_path, corpus, writer, limit):
    writer.do("add", str(corpus), 1)
    with Workbench.open(tmp_path / "ws", **{**HASHING, "exact_search_limit": limit}) as wb:
        base, last, looked = wb.knowledge.get("film"), 1, dict[int, int]()
        for generation in range(2, 8):
            writer.tell("add", str(corpus), generation)
            while last < generation:
                with base.reading():
                    found = seen(base)
                    states = set().union(*found.values())
                    count = base.about()["counts"]["documents"]
                assert len(states) == 1, found
                (now,) = states
                assert last <= now <= generation and count == 12 + now % 2
                assert len(base.graph()) and {len(s) for s in seen(base).values()} <= {0, 1}
                looked[now] = looked.get(now, 0) + 1
                last = now
            assert "refused" not in str(writer.heard())
        assert sum(looked.values()) > 6


@pytest.mark.parametrize("limit", [(2, "chroma")], indirect=True)
def test_whole_steps_of_a_run_read_one_state(tmp_path, corpus, writer, limit):
    writer.do("add", str(corpus), 1)
    with Workbench.open(tmp_path / "ws", **{**HASHING, "exact_search_limit": limit}) as wb:
        for generation in (2, 3, 4):
            writer.tell("add", str(corpus), generation)
            run = wb.ask("List comedies", kb="film", session=str(generation))
            assert run.status == "done", run.error
            for record in run.records:
                if record["raw_output_ref"]:
                    results = run._store.body(run.run_id, record["raw_output_ref"])["results"]
                    titles = [r["metadata"]["title"] for r in results if r["source_type"] == "chunk"]
                    assert len({title.partition("Gen")[2] for title in titles}) <= 1
            assert "refused" not in str(writer.heard())


def test_one_writer_and_its_name(tmp_path, corpus):
    with Workbench.open(tmp_path / "ws", **HASHING) as wb:
        wb.add_knowledge("film", [write_corpus(corpus, 1)])
        holder = Other(tmp_path / "ws", **HASHING)
        try:
            assert holder.do("hold") is None
            for refused in (lambda: wb.add_knowledge("film", [corpus]), lambda: wb.knowledge.remove("film")):
                with pytest.raises(WorkspaceBusy, match=rf"'film' is being written by process {holder.pid} on \S+ "):
                    refused()
            said = workbench(tmp_path / "ws", "kb", "add", "film", str(corpus))
            assert said.returncode == 1 and f"process {holder.pid} on" in said.stderr and said.stderr.count("\n") == 1
            assert len(wb.knowledge.get("film").search("words", "comedy", 50)) == 13, "reading goes on"
        finally:
            holder.kill()
        assert wb.add_knowledge("film", [write_corpus(corpus, 2)]).changed == 12, "a dead holder's lock is free at once"


def test_a_base_removed_or_made_anew_under_a_reader(tmp_path, corpus):
    with Workbench.open(tmp_path / "ws", **HASHING) as wb, Workbench.open(tmp_path / "ws", **HASHING) as other:
        wb.add_knowledge("film", [write_corpus(corpus, 1)])
        base = wb.knowledge.get("film")
        assert base.about()["counts"]["documents"] == 13
        other.knowledge.remove("film")
        with pytest.raises(KnowledgeError, match="'film' is no longer open: it was removed"):
            base.about()["counts"]
        with pytest.raises(UnknownKnowledge, match="Known: none yet"):
            wb.knowledge.get("film")
        other.add_knowledge("film", [write_corpus(corpus, 2)])
        with pytest.raises(KnowledgeError, match="Get it again"):
            base.search("words", "comedy", 5)
        assert wb.knowledge.get("film").about()["counts"]["documents"] == 12
        assert sorted(p.name for p in (tmp_path / "ws" / "knowledge").iterdir() if p.is_dir()) == ["film"]
    (tmp_path / "near" / "knowledge").mkdir(parents=True)
    (tmp_path / "near" / "knowledge" / "film").symlink_to(tmp_path / "ws" / "knowledge" / "film")
    with Workbench.open(tmp_path / "near", **HASHING) as near, Workbench.open(tmp_path / "ws", **HASHING) as wb:
        assert near.knowledge.get("film").about()["counts"]["documents"] == 12
        near.knowledge.remove("film")
        assert near.knowledge.names() == [] and wb.knowledge.get("film").about()["counts"]["documents"] == 12


def test_reading_while_another_process_removes_and_makes_anew(tmp_path, corpus):
    with Workbench.open(tmp_path / "ws", **HASHING) as wb:
        wb.add_knowledge("film", [write_corpus(corpus, 1, 3)])
        other, answers = Other(tmp_path / "ws", **HASHING), 0
        other.tell("remove and add", str(corpus), 8)
        try:
            while not select.select([other.process.stdout], [], [], 0)[0]:
                try:
                    base = wb.knowledge.get("film")
                    with base.reading():
                        counts, found = base.about()["counts"], base.search("words", "comedy", 50)
                    assert counts["documents"] == len(found) in (3, 4)
                    answers += 1
                except UnknownKnowledge:
                    pass
                except WorkspaceBusy as told:
                    assert "is being made by process" in str(told)
                except KnowledgeError as told:
                    assert "is no longer open: it was removed" in str(told)
            assert other.heard() is None
        finally:
            other.kill()
        assert answers


def test_a_base_that_is_being_made_is_not_asked(tmp_path, corpus):
    maker = Other(tmp_path / "ws", **HASHING)
    with Workbench.open(tmp_path / "ws", **HASHING) as wb:
        try:
            assert maker.do("make slowly", str(corpus)) == "half"
            with pytest.raises(WorkspaceBusy, match=rf"'film' is being made by process {maker.pid} on"):
                wb.knowledge.get("film")
        finally:
            maker.kill()
        with pytest.raises(KnowledgeError, match="'film' was never finished"):
            wb.knowledge.get("film")
        assert wb.add_knowledge("film", [write_corpus(corpus, 1)]).added == 13
        assert wb.knowledge.get("film").about()["counts"]["documents"] == 13
