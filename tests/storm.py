"""Kill -9 before a drawn write, then a new process: is anything lost, doubled, repeated or answered otherwise?

A process counts its own writes: by SQLite's trace of statements, whichever database they go to, and by the calls with
which Chroma, small files and folders are written, moved or removed. What lasts changes there alone.
"""

import hashlib
import json
import os
import random
import re
import shutil
import signal
import sqlite3
import subprocess
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Set
from contextlib import closing, suppress
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

from tests import forked
from tests.shelves import CORE, PROJECT, corpus, jsonl
from workbench.errors import KnowledgeError
from workbench.graphs import execute
from workbench.graphs.reviewers import answer
from workbench.knowledge.indexes.stores import Chroma, Place
from workbench.records.tape import canonical
from workbench.session import Workbench

LIMIT_S = 180.0
"""How long one process may take, on a busy machine, before it counts as hung."""
Tell = Callable[[dict[str, Any]], None]


@dataclass(frozen=True)
class Scenario:
    """What is done while the kills come, in a copy of the workspace that ``prepare`` made."""

    name: str
    settings: Mapping[str, Any] = field(default_factory=lambda: CORE)
    left: tuple[str, ...] = ()
    appends = True
    """Whether no row that is stored may go or change but as it does undisturbed."""
    reads = False
    """Whether what is seen between the kills is what was there before, or all of what comes."""

    def prepare(self, wb: Workbench) -> None:
        """Make the workspace in which every trial begins."""

    def work(self, wb: Workbench, tell: Tell) -> None:
        """Begin, or go on from wherever it stands, to the end."""
        raise NotImplementedError

    def look(self, wb: Workbench) -> dict[str, Any]:
        """Read what must be the same after the kills: by default the bases, and the runs that are done."""
        return dict(_seen(wb))


@dataclass(frozen=True)
class Question(Scenario):
    """A run with a person's decisions, by the numbers of the reviews; after the last one everything is approved."""

    message: str = ""
    before: str = ""
    review: tuple[str, ...] = ()
    decisions: tuple[Mapping[str, Any], ...] = ()

    def prepare(self, wb: Workbench) -> None:
        wb.add_knowledge("film", [corpus(wb.path / "films.jsonl", 12)])
        if self.before:
            wb.ask(self.before, kb="film", session="storm")

    def work(self, wb: Workbench, tell: Tell) -> None:
        attempt = execute.attempt

        async def told(task: Any, step: Any, context: Any) -> Any:
            tell({"call": [step.step_id, task["attempt"]]})
            return await attempt(task, step, context)

        execute.attempt = told
        found = [run for run in wb.runs.list() if run.message == self.message]
        run = found[0] if found else wb.start(self.message, kb="film", review=self.review, session="storm")
        while (status := run.status) != "done":
            assert status not in ("failed", "cancelled"), f"{status}: {run.error}"
            if status == "interrupted":
                run.resume(wait=False)
            elif status == "paused":
                number = int(run.review["review_id"].split("-")[0])
                decision = self.decisions[number] if number < len(self.decisions) else {"action": "approve"}
                run.answer_review(answer(**decision), wait=False)
            for event in run.events():
                if "retrieval_step_done" in event:
                    tell({"step": [event["retrieval_step_done"][key] for key in ("step_id", "attempt")]})
            run.wait()


@dataclass(frozen=True)
class Talk(Scenario):
    """A conversation over no corpus."""

    turns: int = 0

    def work(self, wb: Workbench, tell: Tell) -> None:
        known = {run.message: run for run in wb.runs.list(2 * self.turns)}
        for n in range(1, self.turns + 1):
            message = f"I like shelf {n}." if n % 3 else f"What did I say about shelf {n - 1}?"
            run = known.get(message) or wb.start(message, kb="general", session="storm")
            if run.status == "interrupted":
                run.resume(wait=False)
            run.wait()
            assert run.status == "done", f"turn {n}: {run.status}: {run.error}"


@dataclass(frozen=True)
class Adding(Scenario):
    """Bring documents into a base that has so many of them, or index it again where ``then`` is 0: the file is gone."""

    first: int = 0
    then: int = 0
    reads = True

    def prepare(self, wb: Workbench) -> None:
        lines = (PROJECT / "data" / "films.jsonl").read_text("utf-8").splitlines()[: self.first + self.then]
        rows = [json.loads(line) for line in lines]
        films = wb.path / "films.jsonl"
        if self.first:
            wb.add_knowledge("film", [jsonl(films, rows[: self.first])])
            films.unlink()
        if self.then:  # some are as before, some differ, some are gone
            changed = [{**row, "overview": f"{row['overview']}{' Again.' * (not i % 3)}"} for i, row in enumerate(rows)]
            jsonl(films, (row for i, row in enumerate(changed) if i % 5 or i >= self.first))

    def work(self, wb: Workbench, tell: Tell) -> None:
        wb.add_knowledge("film", [wb.path / "films.jsonl"]) if self.then else wb.knowledge.rebuild("film")


_LEFT = (
    *("leases/0123.json", "leases/4567.lock"),
    *("knowledge/.film.rebuild-1/index.db", "knowledge/.other.ready/index.db", "knowledge/.gone.removed-1/index.db"),
    *("knowledge/.gone.lock", "knowledge/.other.holder.json"),
    *("knowledge/film/.sources.json.01234567", "knowledge/other/.arrays.89abcdef"),
)
"""What processes that were killed may have left."""


@dataclass(frozen=True)
class Keeping(Scenario):
    """Keep a small workspace in order, or take a base out of it."""

    reads = True

    def prepare(self, wb: Workbench) -> None:
        for base in ("film", "other"):
            wb.add_knowledge(base, [corpus(wb.path.parent / f"{base}.jsonl", 8)])
        for number in (2, 3):
            wb.ask(f"Who directed Film {number}?", kb="film")
        wb.ask("Who directed Film 4?", kb="other", review={"reflect"}).cancel()
        wb.ask("Who directed Film 5?", kb="film", review={"reflect"}, session="waits")

    def work(self, wb: Workbench, tell: Tell) -> None:
        if self.name == "kb remove" and "film" in wb.knowledge.names():
            wb.knowledge.remove("film")
        wb.gc(yes=True)


def _edit(point: str, **edits: Any) -> dict[str, Any]:
    return {"action": "edit", "point": point, "edits": edits}


SCENARIOS: dict[str, Scenario] = {
    scenario.name: scenario
    for scenario in (
        Question("a fact", message="When was Film 3 released?"),
        Question("a follow-up", message="And who directed it?", before="When was Film 3 released?"),
        Question(
            "recommendation, reviewed", message="Recommend films like Film 3", review=("plan", "reflect"),
            decisions=(
                {"action": "approve", "note": "first"}, {"action": "respond", "message": "comedies"},
                _edit("plan", thresholds={"min_evidence": 4}), _edit("reflect", rewrite_query="Ang Lee comedies"),
                {"action": "reject"},
            ),
        ),
        Question(
            "comparison, every wave", message="Compare Film 3 and Film 4", review=("step", "reflect"),
            decisions=(_edit("step", thresholds={"min_evidence": 3}),),
        ),
        Question("streamed", message="Who directed Film 7?", settings={**CORE, "planner": "rules"}),
        Talk("a conversation", settings={**CORE, "memory_core": True}, turns=40),
        Adding("kb add, from nothing", settings={}, first=0, then=30),
        Adding("kb add, a change", settings={}, first=24, then=12),
        Adding("kb rebuild", settings={}, first=24),
        Keeping("gc", left=_LEFT), Keeping("kb remove"),
    )
}  # fmt: skip


# in the process that is killed


def live(scenario: Scenario, act: str, folder: str, settings: Mapping[str, Any], at: int) -> None:
    """Prepare, work or look; tell each line before anything else is done, and die before the ``at``-th write."""
    lock = threading.Lock()

    def tell(message: dict[str, Any]) -> None:
        with lock:
            os.write(1, json.dumps(message, ensure_ascii=False).encode() + b"\n")

    if act == "work":
        _count_writes(tell, at)
    with Workbench.open(folder, **settings) as wb:
        if act == "look":
            tell({"seen": scenario.look(wb)})
        else:
            scenario.prepare(wb) if act == "prepare" else scenario.work(wb, tell)
    for path in (Path(folder, name) for name in scenario.left if act == "prepare"):
        path.parent.mkdir(exist_ok=True)
        path.write_text("{}")
    tell({"done": act})


def _count_writes(tell: Tell, at: int) -> None:
    lock, labels = threading.Lock(), ["the beginning"]

    def count(label: str) -> None:
        with lock:
            labels.append(label)
            tell({"write": label})
            if len(labels) - 1 == at:
                os.kill(os.getpid(), signal.SIGKILL)
                threading.Event().wait()  # the signal comes before anything else is done

    write = re.compile(r"\s*(INSERT|UPDATE|DELETE|REPLACE|COMMIT|CREATE|ALTER|VACUUM|PRAGMA user_version\s*=)", re.I)
    table = re.compile(r"(?:INTO|UPDATE|FROM|TABLE|INDEX)\s+(?:IF NOT EXISTS\s+)?(?:OR \w+\s+)?[\"'`\[]?(\w+)", re.I)
    connect = sqlite3.connect

    def traced(database: Any, *args: Any, **more: Any) -> sqlite3.Connection:
        connection = connect(database, *args, **more)

        def statement(sql: str) -> None:
            if verb := write.match(sql):
                count(" ".join([Path(str(database)).name, verb[1].upper(), *table.findall(sql)[:1]]))

        connection.set_trace_callback(statement)
        return connection

    def watch(owner: Any, name: str) -> None:
        done = getattr(owner, name)

        def counted(*args: Any, **more: Any) -> Any:
            count(name)
            return done(*args, **more)

        setattr(owner, name, counted)

    sqlite3.connect = traced  # type: ignore[assignment]
    import chromadb.api.models.Collection as chroma

    for owner, *names in (
        (chroma.Collection, "upsert", "delete"), (Path, "write_text", "rename"), (shutil, "rmtree", "copyfile"),
        (os, "replace", "mkdir", "unlink", "rmdir"),
    ):  # fmt: skip
        for name in names:
            watch(owner, name)


def _seen(wb: Workbench) -> Iterator[tuple[str, Any]]:
    """Read what anybody reads: the documents of each base, what is stored for them, and each run that is done."""
    for name in wb.knowledge.names():
        with suppress(KnowledgeError):
            hits = wb.knowledge.get(name).search("meaning", "film", 10_000)
            yield f"base {name}", sorted({chunk_id.split("#")[0] for chunk_id, _ in hits})
            yield f"content {name}", _content(wb.path / "knowledge" / name, str(wb.path))
    for run in wb.runs.list(1000):
        if run.status == "done":
            document = {**run.to_dict(), "evidence": run.evidence, "merged": run.state.get("merged")}
            yield f"run {run.message}", hashlib.sha256(canonical(document)).hexdigest()
    with closing(sqlite3.connect(wb.path / "workbench.db")) as database:
        yield (
            "content of the conversation",
            database.execute("SELECT role, content FROM messages ORDER BY position").fetchall(),
        )


def _content(home: Path, place: str) -> dict[str, str]:
    """Digest what an index holds, by table and without numbering, and what Chroma has of it."""
    columns = {"passages": "chunk_id, doc_id, position, text, vector", "terms": "title, names, body"}
    tables = ("documents", "vectors", "words", "facts", "entities", "names", "relations", "mentions", "communities")
    with closing(sqlite3.connect(home / "index.db")) as index:
        content = {
            table: index.execute(f"SELECT {columns.get(table, '*')} FROM {table}").fetchall()
            for table in (*tables, *columns)
        }
    with Chroma(Place(home / "chroma")) as chroma:
        got = chroma._collection.get(include=["metadatas", "embeddings"])
    content["chroma"] = [
        (i, m["key"], v.tobytes()) for i, m, v in zip(got["ids"], got["metadatas"], got["embeddings"], strict=True)
    ]
    said = {table: "\n".join(sorted(map(repr, rows))).replace(place, "") for table, rows in content.items()}
    return {table: hashlib.sha256(text.encode()).hexdigest() for table, text in said.items()}


# in the process that watches


@dataclass
class Life:
    """What one process told, and how it ended."""

    lines: list[dict[str, Any]]
    returncode: int

    def told(self, name: str) -> list[Any]:
        return [line[name] for line in self.lines if name in line]


@dataclass
class Storm:
    """A scenario: how it goes undisturbed, and trials under kills that are drawn from a seed."""

    scenario: Scenario
    folder: Path
    seed: int = 1
    settings: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.folder.mkdir(exist_ok=True)
        self._run("prepare", self._template)
        self._before = self._look(self._fresh("before")) if self.scenario.reads else {}
        calm = self._fresh("calm")
        self._writes = self._run("work", calm).told("write")
        self._seen, self._rows, self._files = self._look(calm), read(calm), self._listed(calm)
        self._freed = read(self._template).keys() - self._rows.keys()

    @property
    def _template(self) -> Path:
        return self.folder / "template" / "w"

    def _fresh(self, name: str) -> Path:
        return Path(shutil.copytree(self._template, self.folder / name / "w"))

    def _run(self, act: str, folder: Path, at: int = 0) -> Life:
        folder.parent.mkdir(exist_ok=True)
        settings = {**self.scenario.settings, **self.settings}
        child = forked.call(live, self.scenario, act, str(folder), settings, at, stdout=subprocess.PIPE)
        late = threading.Event()
        watch = threading.Timer(LIMIT_S, lambda: (late.set(), child.kill()))
        watch.start()
        with child.stdout as told:  # a line without its end is the one in which it was killed
            life = Life([json.loads(line) for line in told if line.endswith(b"\n")], child.wait())
        watch.cancel()
        assert not late.is_set(), f"{self.scenario.name} hangs: {life.lines[-3:]}"
        assert life.told("done") or (at and life.returncode == -9), (life.returncode, life.lines[-3:])
        return life

    def _look(self, folder: Path) -> dict[str, Any]:
        seen: dict[str, Any] = self._run("look", folder).told("seen")[0]
        return seen

    def _listed(self, folder: Path) -> list[str]:
        """Every file and folder, without what is drawn or of a moment in their names."""
        drawn = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|\d{8}T\d{12}")
        return sorted(drawn.sub("*", str(path.relative_to(folder))) for path in folder.rglob("*"))

    def trials(self, kills: int) -> list[str]:
        """Return what went wrong under so many kills; each pair of neighbouring writes is hit before any twice."""
        draw, pairs, known = random.Random(f"{self.seed} {self.scenario.name}"), list(pairwise(self._writes)), set()
        order = draw.sample(range(len(pairs)), len(pairs))
        order.sort(key=lambda number: pairs[number] in known or known.add(pairs[number]) or False)
        faults, fallen = list[str](), 0
        while fallen < kills:
            first = order[fallen % len(order)] + 2
            moments = [first, *(draw.randint(1, len(self._writes)) for _ in range(draw.choice((0, 1, 2))))]
            more, found = self._trial(self._fresh(f"trial {fallen}"), moments)
            fallen += more
            faults += [f"{self.scenario.name}, killed before the writes {moments}: {fault}" for fault in found]
        return faults

    def _trial(self, folder: Path, moments: list[int]) -> tuple[int, list[str]]:
        faults, kills = list[str](), 0
        before, finished = read(folder), set[tuple[str, int]]()
        earlier = {key[1] for key in before if key[0] == "runs"}  # may have steps of the same names
        for at in [*moments, 0]:
            life = self._run("work", folder, at)
            kills += life.returncode == -9
            faults += [f"repeated: {call}" for call in life.told("call") if tuple(call) in finished]
            rows = read(folder)
            if self.scenario.appends:
                faults += [f"lost: {fault}" for fault in lost(before, rows, self._freed)]
            before = rows
            finished = {(k[2], int(k[3])) for k in rows if k[0] == "records" and k[1] not in earlier}
            faults += [f"lost: step {step}, told as done" for step in life.told("step") if tuple(step) not in finished]
            now = self._look(folder) if self._before else {}
            for name, old in self._before.items():
                fits = now.get(name) in (old, self._seen.get(name)) or name.startswith("content")
                faults += [] if fits else [f"lost: {name} could be read before"]
            if life.told("done"):
                break
        now = self._look(folder)
        differing = [name for name in {*now, *self._seen} if now.get(name) != self._seen.get(name)]
        faults += [f"wrong: {name} is not as it is undisturbed" for name in differing]
        many, calm = (counts(rows) if self.scenario.appends else Counter[str]() for rows in (before, self._rows))
        faults += [f"doubled: {count} of {name}" for name, count in (many - calm).items()]
        faults += [f"lost: {count} of {name}" for name, count in (calm - many).items()]
        if isinstance(self.scenario, Keeping) and (files := self._listed(folder)) != self._files:
            faults.append(f"left: {sorted(set(files) ^ set(self._files))}")
        return kills, faults


Key = tuple[str, ...]
_ROWS = {  # a table -> how many leading columns name a row, and its columns
    "runs": (1, "run_id, message, options, created_at, result"), "plans": (2, "run_id, version, plan, author, reason"),
    "records": (3, "run_id, step_id, attempt, record"), "bodies": (2, "run_id, ref, body"),
    "decisions": (2, "run_id, review_id, decision"), "events": (2, "run_id, key, event"),
    "tapes": (2, "run_id, page, hex(effects)"), "conversations": (1, "id, user_id, session_id"),
    "messages": (1, "id, role, created_at, citations, content, partial"), "memories": (1, "id, content, ended_at"),
    "episodes": (1, "user_message_id, assistant_message_id, vector IS NULL"),
    "checkpoints": (3, "thread_id, checkpoint_ns, checkpoint_id, checkpoint"),
}  # fmt: skip


def read(workspace: Path) -> dict[Key, list[Any]]:
    """Read every stored row by its key, from outside; a database that is not there yet has none."""
    kept: dict[Key, list[Any]] = {}
    for name in ("workbench.db", "checkpoints.db"):
        if not (workspace / name).exists():
            continue
        with closing(sqlite3.connect(workspace / name, timeout=30)) as connection:
            there = {row[0] for row in connection.execute("SELECT name FROM sqlite_master")}
            for table, (width, columns) in _ROWS.items():
                for row in connection.execute(f"SELECT {columns} FROM {table}") if table in there else ():
                    kept[(table, *map(str, row[:width]))] = list(row[width:])
    return kept


def lost(before: dict[Key, list[Any]], after: dict[Key, list[Any]], freed: Set[Key]) -> Iterator[str]:
    """Name what was stored and is no longer there without being freed, or says something else now.

    Some may change: a run without a result gets one, then its checkpoints are folded, a partial answer becomes whole,
    and an episode gets its vector.
    """
    done = {key[1] for key, row in after.items() if key[0] == "runs" and row[-1] is not None}
    for key, old in before.items():
        new, may_change = after.get(key), {"runs": old[-1] is None, "messages": old[-1], "episodes": old[-1]}
        if new is None and key not in freed and not (key[0] == "checkpoints" and key[1] in done):
            yield f"{' '.join(key)} is gone"
        elif new is not None and new != old and not may_change.get(key[0]):
            yield f"{' '.join(key)} was changed"


def counts(kept: dict[Key, list[Any]]) -> Counter[str]:
    """Count the rows of each kind: log entries by their node, messages and memories by what they say."""
    found: Counter[str] = Counter()
    for (table, *_), row in kept.items():
        if table == "events":
            event = json.loads(row[0])
            found[f"log of {event.get('execution_log', {}).get('node', 'other')}"] += 1
        elif table in ("messages", "memories"):
            found[f"{table}: {row[-2]}"] += 1
        elif table not in ("checkpoints", "tapes"):  # what a killed node had recorded is beside what it records again
            found[table] += 1
    return found
