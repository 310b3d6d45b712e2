"""The classes of input: each feeds one generated input to the product, and says whether it was answered or refused.

A refusal is an error of ours with a text. Anything else that is raised is a traceback; what was accepted and is not
there afterwards is lost.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any, NamedTuple
from unittest.mock import patch

from click.testing import CliRunner
from pydantic import ValidationError

from tests import forked
from tests.inputs.wild import NAMES, bent, changed, spelled, text, value
from tests.shelves import CORE
from workbench.cli import main
from workbench.errors import WorkbenchError
from workbench.knowledge.library import check_name
from workbench.knowledge.reading import corpus
from workbench.language.question import read
from workbench.plans import Plan
from workbench.session import Workbench
from workbench.settings import Settings, all_settings
from workbench.text import clean, detect_language, fold, sentences, terms, visible
from workbench.tools.registry import check

FILMS = [
    {
        "id": "wb", "type": "Film", "title": "The Wedding Banquet", "year": 1993, "directors": ["Ang Lee"],
        "genres": ["Comedy"], "aliases": ["喜宴"], "names": {"Ang Lee": ["李安"]},
        "overview": "The Wedding Banquet is a 1993 comedy film directed by Ang Lee.",
    },
    {
        "id": "ed", "type": "Film", "title": "Eat Drink Man Woman", "year": 1994, "directors": ["Ang Lee"],
        "genres": ["Drama"], "aliases": ["饮食男女"],
        "overview": "Eat Drink Man Woman is a 1994 film by Ang Lee about a chef.",
    },
]  # fmt: skip
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
ANSWER = {
    "decisions": [{"type": "edit", "edited_action": {"name": "plan", "args": {"query": "Ang Lee", "plan": PLAN}}}],
    "note": "n",
    "who": "w",
}
OPTIONS = {
    "kb": "film", "review": ["plan"], "session": "s", "user": "u", "worker": "film",
    "thresholds": {"min_evidence": 1},
}  # fmt: skip
REFUSED = (WorkbenchError, ValidationError)


class Lost(Exception):
    """What was accepted is not there."""


class Place:
    """An open workspace that knows two films, and what was accepted there."""

    def __init__(self, folder: Path):
        self.folder = folder
        films = folder / "films.jsonl"
        films.write_bytes(b"\n".join(spelled(film) for film in FILMS))
        self.wb = Workbench.open(folder / "ws", **CORE)
        self.wb.add_knowledge("film", [films])
        self.accepted: list[tuple[str, str]] = []
        self.environment = {f"WORKBENCH_{name.upper()}": value for name, value in CORE.items()}
        self._paused: Any = None
        self.paused()  # everything is imported, so that no input pays for it

    def paused(self) -> Any:
        if self._paused is None or self._paused.status != "paused":
            self._paused = self.wb.ask(
                "When was The Wedding Banquet released?", kb="film", review={"plan"}, session="p"
            )
        return self._paused

    def lost(self) -> int:
        """How many accepted runs the store does not have whole."""
        return sum(not self._kept(run_id, message) for run_id, message in self.accepted)

    def _kept(self, run_id: str, message: str) -> bool:
        run = self.wb.run(run_id)
        return run.message == message and (run.status == "paused" or (run.status == "done" and bool(run.answer)))


def lines(place: Place, rng: Random) -> bool:
    """JSON Lines: good, bent and changed ones mixed."""
    good, rows = list[str](), list[bytes]()
    for number in range(rng.randrange(1, 6)):
        record = {"id": f"g{number}", "text": f"good {number}", "year": 1990, "aliases": ["x"]}
        pick = rng.random()
        if pick < 0.4:
            good.append(f"g{number}")
            rows.append(spelled(record))
        else:
            other = spelled(changed(rng, {**record, "id": f"c{number}"}))
            rows.append(bent(rng, spelled(record)) if pick < 0.7 else other)
    bad = {f"g{n}" for n, row in enumerate(rows)} - set(good)
    return _loaded(place, "a.jsonl", b"\n".join(rows), [i for i in good if i not in bad])


def tables(place: Place, rng: Random) -> bool:
    """CSV with odd quotes."""
    rows = [b"id,text", b"g1,fine", bent(rng, b'2,"some text",x'), bent(rng, b"3,other"), b"g4,last"]
    return _loaded(place, "a.csv", b"\n".join(rows), [])


def files(place: Place, rng: Random) -> bool:
    """Any bytes under any known name."""
    spoken, front = text(rng).encode("utf-8", "surrogatepass"), bent(rng, b"---\nid: a\n---\n# T\ntext")
    raw = rng.choice((rng.randbytes(rng.randrange(200)), spoken, front))
    raw = rng.choice((raw, raw.decode("utf-8", "replace").encode(rng.choice(("utf-16", "gb18030", "utf-8-sig")))))
    endings = ("md", "txt", "csv", "jsonl", "jsonl.gz", "markdown", "tsv")
    return _loaded(place, f"a.{rng.choice(endings)}", raw, [])


def _loaded(place: Place, name: str, raw: bytes, good: list[str]) -> bool:
    path = place.folder / name
    path.write_bytes(raw)
    loaded = corpus.load([path])
    if missing := set(good) - {d.doc_id for d in loaded.documents}:
        raise Lost(f"{sorted(missing)} of {raw!r}")
    if raw.strip() and name.endswith((".txt", ".md")) and not loaded.documents and not loaded.problems:
        raise Lost(f"nothing said of {raw!r}")
    return not loaded.problems


def bases(place: Place, rng: Random) -> bool:
    """Whole ``add``s: every loaded document is in the index, and no other one unless a line may have held it."""
    path = place.folder / "kb.jsonl"
    more = {"directors": ["Ang Lee"], "names": {"A": ["B"]}}
    records = [changed(rng, {"id": f"r{n}", "text": f"text {n}", "year": 1990 + n, **more}) for n in range(3)]
    path.write_bytes(b"\n".join(map(spelled, records)))
    wanted = {d.doc_id for d in corpus.load([path]).documents}
    report = place.wb.add_knowledge("wild", [path])
    count = place.wb.knowledge.get("wild").about()["counts"]["documents"]
    if count < len(wanted) or (count != len(wanted) and not report.problems):
        raise Lost(f"{count} of {len(wanted)} documents: {records}")
    return True


def plans(place: Place, rng: Random) -> bool:
    """Plans with something wrong in them: loaded, checked, ordered."""
    plan = Plan.load(changed(rng, changed(rng, PLAN)))
    problems = check(plan, place.wb.tools)
    if not problems:
        plan.topological_order()
        plan.critical_path()
        plan.diff(Plan.load(PLAN))
    elif not all(p["message"] and p["fix"] for p in problems):
        raise Lost(f"a problem without its fix: {problems}")
    return not problems


def settings(place: Place, rng: Random) -> bool:
    name = rng.choice([*all_settings().model_fields, "nothing"])
    if rng.random() < 0.5:
        Settings.load(**{name: value(rng)})
        return True
    said = text(rng, 3).replace("\x00", "").encode("utf-8", "replace").decode()
    with patch.dict(os.environ, {f"WORKBENCH_{name.upper()}": said[:1000]}):
        Settings.load()
    return True


def names(place: Place, rng: Random) -> bool:
    """Runs, tools, bases and lists by names that are none."""
    name: Any = rng.choice((rng.choice(NAMES), text(rng, 3), value(rng)))
    wb = place.wb
    asked: list[Callable[[], Any]] = [
        lambda: check_name(name), lambda: wb.run(name), lambda: wb.tools[name], lambda: wb.knowledge.get(name),
        lambda: wb.runs.list(name), lambda: wb.runs.list(3, session_id=name), lambda: wb.clear(session=str(name)),
        lambda: wb.runs.remove(name), lambda: wb.knowledge.remove(f"no{name}"), lambda: wb.add_knowledge(name, []),
        lambda: wb.add_knowledge("other", [name] if isinstance(name, str) and len(name) > 2 else [7]),
    ]  # fmt: skip
    rng.choice(asked)()
    return True


def texts(place: Place, rng: Random) -> bool:
    one, base = clean(text(rng, 30)[:4_000]), place.wb.knowledge.get("film")
    for look in (fold, terms, detect_language):
        look(one)
    if clean(one) != one or "\x00" in one or {"\x1b", "\u202e"} & set(visible(one)):
        raise Lost(f"what nobody sees is in {one!r}")
    if "".join("".join(sentences(one)).split()) != "".join(one.split()):
        raise Lost(f"sentences lose a part of {one!r}")
    found = read(one, [base])["names"]
    if any(one[n["start"] : n["end"]] != n["surface"] for n in found):
        raise Lost(f"a name that is not there: {one!r}")
    spans = sorted((name["start"], name["end"]) for name in found)
    if any(second[0] < first[1] for first, second in pairwise(spans)):
        raise Lost(f"names that overlap: {one!r}")
    if not all(0 <= mention["start"] < mention["end"] <= len(one) for mention in base.link(one)):
        raise Lost(f"a mention outside of {one!r}")
    return True


def options(place: Place, rng: Random) -> bool:
    wrong = changed(rng, {name: OPTIONS[name] for name in rng.sample(sorted(OPTIONS), 2)})
    given = {name: one for name, one in wrong.items() if name in OPTIONS} if isinstance(wrong, dict) else {}
    if not given:
        given = {"kb": wrong}
    return _asked(place, "When was The Wedding Banquet released?", {"kb": "film", **given})


def questions(place: Place, rng: Random) -> bool:
    return _asked(place, text(rng, 20), {"kb": "film", "session": f"q{rng.randrange(10**9)}"})


def _asked(place: Place, message: str, given: dict[str, Any]) -> bool:
    run = place.wb.ask(message, **given)
    if run.status not in ("done", "paused"):
        raise Lost(f"{run.status}: {run.error}")
    place.accepted.append((run.run_id, clean(message)))
    return True


def answers(place: Place, rng: Random) -> bool:
    """Answers at a review point: what is refused leaves the pause as it was."""
    run = place.paused()
    try:
        run.answer_review(changed(rng, changed(rng, ANSWER)))
    except WorkbenchError:
        if run.status != "paused":
            raise Lost(f"refused, and the run is {run.status}: {run.error}") from None
        raise
    if run.status not in ("done", "paused"):
        raise Lost(f"{run.status}: {run.error}")
    return True


def commands(place: Place, rng: Random) -> bool:
    words, given = _words(place, rng), text(rng, 5).encode("utf-8", "replace")
    done = CliRunner(env=place.environment).invoke(main, words, input=given)
    return _ended(done.exit_code, done.output, done.exception)


def processes(place: Place, rng: Random) -> bool:
    """The command line, as a process of its own."""
    words = [os.fsencode(word[:10_000]) for word in _words(place, rng)]
    code, own = [sys.executable, "-c", "from workbench.cli import main; main()"], {**os.environ, **place.environment}
    done = forked.run([*code, *words], capture_output=True, input=b"", timeout=60, env=own)
    return _ended(done.returncode, (done.stdout + done.stderr).decode("utf-8", "replace"), None)


def _words(place: Place, rng: Random) -> list[str]:
    edit = place.folder / "edit.json"
    plan, odd = spelled(changed(rng, {"query": "x", "plan": PLAN})), bent(rng, b'{"query": "x"}')
    edit.write_bytes(rng.choice((plan, odd, b"[" * 100_000, rng.randbytes(50))))
    word = rng.choice((rng.choice(NAMES), text(rng, 4))).encode("utf-8", "replace").decode().replace("\x00", "")
    lines = [
        ["ask", word, "--kb", "film"], ["ask", "x", "--kb", word], ["ask", "x", "--review", word],
        ["ask", "-", "--kb", "film"], ["ask", "Who is Ang Lee?", "--kb", "film", "--session", word, "--user", word],
        ["show", word], ["resume", word], ["resume", place.paused().run_id, "--edit", str(edit)],
        ["runs", "--limit", word], ["runs", "--session", word], ["remove", word],
        ["memory", "forget", "--session", word, "--yes"], ["kb", "add", word, str(edit)], ["kb", "remove", word],
        ["kb", "add", "film2", word], ["eval", "retrieval", "--questions", str(edit), "--kb", "film"], [word],
        ["resume", place.paused().run_id, "--respond", word],
    ]  # fmt: skip
    line = rng.choice(lines)
    return [*line, "--workspace", str(place.folder / "ws"), *(["--json"] if rng.random() < 0.3 else [])]


def _ended(code: int, said: str, error: BaseException | None) -> bool:
    if error is not None and not isinstance(error, SystemExit):
        raise error
    if code not in (0, 1, 2, 3, 4) or "Traceback (most" in said or "fault of workbench" in said:
        raise RuntimeError(f"exit code {code}: {said[-600:]}")
    if code in (1, 2) and not said.strip():
        raise Lost("failed without a word")
    return code in (0, 3)


class Kind(NamedTuple):
    """A class of input: how it is fed, its share of all, and how many seconds one may take."""

    feed: Callable[[Place, Random], bool]
    share: float
    limit_s: float


KINDS = {
    "loaders: JSON Lines": Kind(lines, 0.30, 2), "loaders: CSV": Kind(tables, 0.10, 2),
    "loaders: any file": Kind(files, 0.15, 2), "plans": Kind(plans, 0.20, 2), "settings": Kind(settings, 0.07, 2),
    "names": Kind(names, 0.08, 15), "texts": Kind(texts, 0.08, 15), "options": Kind(options, 0.008, 15),
    "questions": Kind(questions, 0.006, 15), "answers": Kind(answers, 0.004, 15),
    "knowledge bases": Kind(bases, 0.001, 15), "command line": Kind(commands, 0.004, 15),
    "command line, own process": Kind(processes, 0.0001, 60),
}  # fmt: skip
