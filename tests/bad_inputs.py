"""docs/explanation/bad-input.md, made by giving the program everything in it.

``python -m tests.bad_inputs`` writes it; a test fails when it no longer says what is printed.
"""

import gzip
import json
import os
import re
import shutil
import sqlite3
import tempfile
from collections.abc import Callable
from contextlib import chdir, closing
from functools import cache
from pathlib import Path
from typing import NamedTuple
from unittest.mock import patch

from click.testing import CliRunner

from tests.shelves import CORE, CORPORA
from workbench.cli import main
from workbench.errors import WorkbenchError
from workbench.plans import Plan
from workbench.session import Workbench
from workbench.settings import Settings

FILMS = CORPORA / "two_films.jsonl"
PLAN = {
    "steps": [
        {"step_id": "a", "objective": "find", "tool": "naive_search", "tool_input": {"query": "Ang Lee"}},
        {
            "step_id": "b", "objective": "more", "tool": "local_search", "depends_on": ["a"], "priority": 2,
            "tool_input": {"query": "x", "entities": {"$from": "a.entities"}}, "budget": {"timeout_s": 5, "top_k": 3},
        },
    ],
    "execution_mode": "parallel", "metadata": {"planner": "rules"},
}  # fmt: skip
FILE = "docs/explanation/bad-input.md"
WHEN = "When was The Wedding Banquet released?"
Given = Callable[[], str]


class Row(NamedTuple):
    given: str
    where: str
    give: Given


def cli(*words: str, given: str | bytes | None = None, **environment: str) -> Given:
    """What a command prints; its exit code before it."""

    def give() -> str:
        done = CliRunner(env=environment).invoke(main, list(words), input=given)
        errors = [line for line in done.output.splitlines() if line.strip() and not line.startswith(("Usage:", "Try "))]
        return f"exit {done.exit_code}: " + "\n".join(errors)

    return give


def added(name: str, raw: bytes) -> Given:
    """What ``kb add`` says of a file with these bytes."""

    def give() -> str:
        Path(name).write_bytes(raw)
        said = cli("kb", "add", "notes", name)()
        with Workbench.open(".workbench") as wb:
            if "notes" in wb.knowledge.names():
                wb.knowledge.remove("notes")
        left = [line for line in said.splitlines() if re.sub(r"^exit \d: ", "", line).startswith(("!", "error"))]
        return "\n".join(left) or re.sub(r" · [\d.]+ s", "", said.splitlines()[0])

    return give


def field(value: bytes) -> Given:
    """Add a good line and one with this value in a field."""
    return added("a.jsonl", _GOOD + b'{"id": "bad", "text": "x", "m": ' + value + b"}\n")


def python(call: Callable[[Workbench], object]) -> Given:
    """The error that a call of the Python face raises."""

    def give() -> str:
        with Workbench.open(".workbench") as wb:
            try:
                call(wb)
            except WorkbenchError as error:
                return f"{type(error).__name__}: {error}"
        return "answered"

    return give


def edited(edit: bytes) -> Given:
    """What ``resume --edit`` says of a file with these bytes."""

    def give() -> str:
        Path("edit.json").write_bytes(edit)
        with Workbench.open(".workbench") as wb:
            run_id = wb.ask(WHEN, kb="film", review={"plan"}).run_id
        return cli("resume", run_id, "--edit", "edit.json")()

    return give


def broken(prepare: Callable[[], object], *words: str) -> Given:
    """What a command prints in a workspace of its own that was made and then broken."""

    def give() -> str:
        _made("broken")
        with chdir("broken"):
            prepare()
            return cli(*words)()

    return give


def _newer() -> None:
    with closing(sqlite3.connect(".workbench/workbench.db")) as database:
        database.execute("PRAGMA user_version = 99")
        database.commit()


def _damaged(name: str) -> Callable[[], None]:
    def damage() -> None:
        path = Path(".workbench", name)
        path.write_bytes(b"not a database" * 1_000)
        for beside in ("-wal", "-shm"):
            Path(f"{path}{beside}").unlink(missing_ok=True)

    return damage


def _step(**changes: object) -> dict[str, object]:
    return {"plan": {"steps": [{**PLAN["steps"][0], **changes}]}}


def _edit(value: object) -> Given:
    return edited(json.dumps(value).encode())


_GOOD = b'{"id": "a", "text": "one"}\n'
ASK = ("ask", WHEN, "--kb", "film")
QUESTIONS = [
    Row("nothing", "`workbench ask`", cli("ask", "", "--kb", "film")),
    Row("blanks, tabs, a NUL", "`workbench ask -`", cli("ask", "-", "--kb", "film", given=" \t\x00\n")),
    Row("100,000 characters", "`workbench ask -`", cli("ask", "-", "--kb", "film", given="喜" * 100_000)),
    Row(
        "half a surrogate pair, a bidi control, an emoji", "`wb.ask`",
        python(lambda wb: wb.ask(f"\ud800\u202e🎬 {WHEN}", kb="film")),
    ),
    Row("no text", "`wb.ask`", python(lambda wb: wb.ask(1993))),
    Row("an unknown knowledge base", "`--kb`", cli("ask", WHEN, "--kb", "films")),
    Row("a number for it", "`wb.ask(kb=)`", python(lambda wb: wb.ask(WHEN, kb=3))),
    Row("an unknown review point", "`--review`", cli(*ASK, "--review", "end")),
    Row("the same in Python", "`wb.ask(review=)`", python(lambda wb: wb.ask(WHEN, review={"end"}))),
    Row("an unknown threshold", "`wb.ask(thresholds=)`", python(lambda wb: wb.ask(WHEN, thresholds={"most": 1}))),
    Row(
        "a threshold that is no number", "`wb.ask(thresholds=)`",
        python(lambda wb: wb.ask(WHEN, thresholds={"min_top_score": float("nan")})),
    ),
    Row("no date", "`--as-of`", cli(*ASK, "--as-of", "someday")),
    Row("the same in Python", "`wb.ask(known=)`", python(lambda wb: wb.ask(WHEN, known=3))),
    Row("a worker of four parts", "`wb.ask(worker=)`", python(lambda wb: wb.ask(WHEN, worker="a:b:c:d"))),
    Row("a session that is no text", "`wb.ask(session=)`", python(lambda wb: wb.ask(WHEN, session=7))),
    Row("decisions that are none", "`wb.ask(decisions=)`", python(lambda wb: wb.ask(WHEN, decisions=[3]))),
    Row("an unknown run", "`workbench show`", cli("show", "nothing")),
    Row("an unknown tool", "`wb.tools[...]`", python(lambda wb: wb.tools["hybrid_serch"])),
    Row("an unknown memory", "`memory edit`", cli("memory", "edit", "nothing", "x")),
    Row("an unknown section", "`wb.memory`", python(lambda wb: wb.memory.core_memory_update("mood", "x"))),
    Row("no reason", "`wb.memory`", python(lambda wb: wb.memory.invalidate("a", " "))),
    Row("an unknown command", "`workbench`", cli("aks")),
    Row("an unknown setting", "`Settings.load`", python(lambda wb: Settings.load(max_task=3))),
    Row("a setting that is not allowed", "`WORKBENCH_MAX_TASKS=many`", cli("runs", WORKBENCH_MAX_TASKS="many")),
]  # fmt: skip
_STEPS = [{"step_id": f"s{n}", "objective": "", "tool": "discover"} for n in range(10_000)]
_CYCLE = [{**PLAN["steps"][0], "step_id": one, "depends_on": [other]} for one, other in ("ab", "ba")]
ANSWERS = [
    Row("no JSON", "`resume --edit`", edited(b"{")),
    Row("100,000 brackets", "`resume --edit`", edited(b"[" * 100_000)),
    Row("no object", "`resume --edit`", edited(b"[1]")),
    Row("no UTF-8", "`resume --edit`", edited(b'{"query": "\xff"}')),
    Row("an unknown field", "`resume --edit`", _edit({"colour": 1})),
    Row("an unknown tool", "`resume --edit`", _edit(_step(tool="telepathy"))),
    Row("a step that depends on itself", "`resume --edit`", _edit(_step(depends_on=["a"]))),
    Row("a reference to nothing", "`resume --edit`", _edit(_step(tool_input={"query": {"$from": "z.query"}}))),
    Row("a number of more than 64 bits", "`resume --edit`", _edit(_step(budget={"top_k": 10**30}))),
    Row("10,000 steps", "`resume --edit`", _edit({"plan": {"steps": _STEPS}})),
    Row("a cycle", "`plan.topological_order`", python(lambda wb: Plan.load({"steps": _CYCLE}).topological_order())),
    Row("an answer where nothing waits", "`run.approve`", python(lambda wb: wb.ask(WHEN, kb="film").approve())),
]
CORPORA = [
    Row("a broken line", "`a.jsonl`", added("a.jsonl", _GOOD + b"{oops\n")),
    Row("an id used twice", "`a.jsonl`", added("a.jsonl", _GOOD * 2)),
    Row("no text", "`a.jsonl`", added("a.jsonl", b'{"id": "b", "year": 1993}\n')),
    Row("nothing but an id", "`a.jsonl`", added("a.jsonl", _GOOD + b'{"id": "b"}\n')),
    Row("no object", "`a.jsonl`", added("a.jsonl", _GOOD + b'["a", "list"]\n')),
    Row("an id that is a list", "`a.jsonl`", added("a.jsonl", _GOOD + b'{"id": [1], "text": "x"}\n')),
    Row("aliases that are numbers", "`a.jsonl`", added("a.jsonl", _GOOD + b'{"text": "x", "aliases": [1]}\n')),
    Row("a line that is not UTF-8", "`a.jsonl`", added("a.jsonl", _GOOD + b'{"text": "\xff"}\n')),
    Row("100,000 brackets", "`a.jsonl`", field(b"[" * 100_000 + b"]" * 100_000)),
    Row("500 objects in one another", "`a.jsonl`", field(b'{"a":' * 500 + b"1" + b"}" * 500)),
    Row("NaN", "`a.jsonl`", field(b"NaN")),
    Row("less than any number", "`a.jsonl`", field(b"-Infinity")),
    Row("more than any number", "`a.jsonl`", field(b"1e999")),
    Row("a number of more than 64 bits", "`a.jsonl`", field(b"99999999999999999999")),
    Row("a number of 5,000 digits", "`a.jsonl`", field(b"9" * 5_000)),
    Row("a line of 20 MB", "`a.jsonl`", added("a.jsonl", _GOOD + b"x" * 20 * 2**20 + b"\n")),
    Row("Latin-1", "`a.txt`", added("a.txt", "élan vital".encode("latin-1"))),
    Row("GB18030, or UTF-16 with its mark", "`a.txt`", added("a.txt", "推手是李安的电影。".encode("gb18030"))),
    Row("UTF-16 without its mark", "`a.txt`", added("a.txt", "film".encode("utf-16-le"))),
    Row("a PDF", "`a.md`", added("a.md", b"%PDF-1.7 ...")),
    Row("a picture", "`a.md`", added("a.md", b"\x89PNG\r\n\x1a\n")),
    Row("a damaged gzip", "`a.jsonl.gz`", added("a.jsonl.gz", gzip.compress(_GOOD, mtime=0)[:20])),
    Row("a quote that is never closed", "`a.csv`", added("a.csv", b'id,text\n1,one\n2,"open\n3,three\n')),
    Row("no triple", "`a.tsv`", added("a.tsv", b"Tampopo\tdirected_by\n")),
    Row("a blank file", "`a.txt`", added("a.txt", b" \n")),
    Row("a pipe", "`kb add`", lambda: (os.mkfifo("pipe.txt"), cli("kb", "add", "notes", "pipe.txt")())[1]),
    Row("another kind of file", "`kb add`", lambda: (Path("a.xyz").touch(), cli("kb", "add", "notes", "a.xyz")())[1]),
    Row("no such file", "`kb add`", cli("kb", "add", "notes", "nowhere.md")),
    Row("a name that is none", "`kb add`", cli("kb", "add", "My Notes", "films.jsonl")),
]  # fmt: skip
WORKSPACES = [
    Row("a file", "`--workspace`", cli("runs", "--workspace", "films.jsonl")),
    Row("nothing there", "`--workspace`", cli("runs", "--workspace", "nowhere")),
    Row("a newer version", "`workbench.db`", broken(_newer, "runs")),
    Row("a damaged database", "`workbench.db`", broken(_damaged("workbench.db"), "runs")),
    Row("damaged checkpoints", "`checkpoints.db`", broken(_damaged("checkpoints.db"), *ASK)),
    Row("a damaged index", "`knowledge/film/index.db`", broken(_damaged("knowledge/film/index.db"), *ASK)),
]  # fmt: skip
ROWS = {"Questions and options": QUESTIONS, "Answers and plans": ANSWERS}
ROWS |= {"Files of a corpus": CORPORA, "Workspaces": WORKSPACES}


def _made(folder: str = ".") -> None:
    place = Path(folder)
    if (place / ".workbench").exists():
        shutil.rmtree(place)
    place.mkdir(exist_ok=True)
    with chdir(place):
        shutil.copy(FILMS, "films.jsonl")
        with Workbench.open(".workbench") as wb:
            wb.add_knowledge("film", ["films.jsonl"])
            wb.ask(WHEN, kb="film")


@cache
def printed() -> dict[str, list[str]]:
    """What each row of each part prints: in an empty folder, with settings that need no model."""
    light = {f"WORKBENCH_{name.upper()}": value for name, value in CORE.items()}
    with tempfile.TemporaryDirectory() as folder, chdir(folder), patch.dict(os.environ, light, COLUMNS="120"):
        _made()
        return {title: [_cell(row.give()) for row in rows] for title, rows in ROWS.items()}


def _cell(said: str) -> str:
    """As the cell of a table: without what differs from run to run."""
    said = said.replace(f"{os.getcwd()}/", "").replace(os.path.realpath(os.getcwd()) + "/", "")
    said = re.sub(r"\b[0-9a-f]{12}\b", "RUN_ID", said)
    said = re.sub(r"known here: \d+", "known here: 1", said)
    said = re.sub(r"RUN_ID(?:, RUN_ID)+", "RUN_ID, ...", said)
    said = said if len(said) <= 420 else f"{said[:400]} …"
    lines = [line.strip().replace("|", "\\|").replace("`", "'") for line in said.splitlines() if line.strip()]
    return "<br>".join(f"`{line}`" for line in lines)


HEAD = """# Bad input

What was given, where, and what is printed. Every message says what is wrong, where, and the fix; a traceback or a hang
is a bug. A line that cannot be read costs that line alone.

`python -m tests.bad_inputs` makes this page by giving all of it to the program; `make inputs` gives tens of
thousands of generated inputs more.
"""


def page() -> str:
    parts = [HEAD]
    for title, rows in ROWS.items():
        lines = [f"## {title}", "", "| given | where | printed |", "| --- | --- | --- |"]
        lines += [f"| {row.given} | {row.where} | {said} |" for row, said in zip(rows, printed()[title], strict=True)]
        parts.append("\n".join(lines) + "\n")
    return "\n".join(parts)


if __name__ == "__main__":
    Settings.model_config["env_file"] = None
    Path(FILE).write_text(page(), "utf-8")
