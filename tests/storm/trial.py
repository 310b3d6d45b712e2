"""One scenario through its kills to its end, each stretch in a new process, and the verdict."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests import forked
from tests.storm import ledger, process
from tests.storm.moments import Moment, Told
from tests.storm.scenarios import Adding, Keeping, Question, Talk
from workbench.parts.memory.service import due
from workbench.settings import Settings

LIMIT_S = 180.0
"""How long one stretch of work may take, on a busy machine, before it counts as hung."""


@dataclass
class Stretch:
    """What one process told: its lines, and whether it was killed."""

    lines: list[dict[str, Any]]
    killed: bool
    hung: bool = False
    seconds: float = 0.0

    def told(self, name: str) -> list[Any]:
        return [line[name] for line in self.lines if name in line]


@dataclass
class Outcome:
    """What came of one trial. ``kills`` say how each was drawn, where it fell and of what; a fault is a line."""

    scenario: str
    moments: list[Moment]
    kills: list[tuple[str, str, str]] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    doubled: list[str] = field(default_factory=list)
    repeated: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)

    @property
    def faults(self) -> list[str]:
        kinds = ("lost", "doubled", "repeated", "wrong")
        return [f"{kind}: {fault}" for kind in kinds for fault in getattr(self, kind)]


@dataclass
class Calm:
    """How a scenario goes undisturbed: what it tells, what is stored after it, and where it could be killed."""

    told: str = ""
    counts: Counter[str] = field(default_factory=Counter)
    gaps: list[str] = field(default_factory=list)
    events: Counter[str] = field(default_factory=Counter)
    seconds: float = 1.0
    before: list[str] = field(default_factory=list)
    after: list[str] = field(default_factory=list)
    content: dict[str, str] = field(default_factory=dict)
    kept: dict[ledger.Key, list[Any]] = field(default_factory=dict)


def stretch(
    work: Callable[..., None], folder: Path, scenario: Any, moment: Moment | None = None, **options: Any
) -> Stretch:
    """Run one process to its end or its kill."""
    child = forked.call(work, Told(), str(folder), scenario, moment, options, stdout=subprocess.PIPE)
    told, late = Stretch([], False), threading.Event()
    watch = threading.Timer(LIMIT_S, lambda: (late.set(), child.kill()))
    watch.start()
    kill: threading.Timer | None = None
    began = time.monotonic()
    with child.stdout as lines:
        for raw in lines:
            if not raw.endswith(b"\n"):
                break  # the line in which it was killed
            told.lines.append(json.loads(raw))
            if "begun" in told.lines[-1]:
                began = time.monotonic()
            if "begun" in told.lines[-1] and moment and moment.kind == "time":
                kill = threading.Timer(moment.at, child.kill)
                kill.start()
    told.seconds = time.monotonic() - began
    child.wait()
    watch.cancel()
    if kill:
        kill.cancel()
    told.hung, told.killed = late.is_set(), child.returncode == -9
    if child.returncode not in (0, -9):
        told.lines.append({"failed": f"the process ended with {child.returncode}"})
    return told


def survive_question(
    folder: Path, scenario: Question, moments: Sequence[Moment], calm: Calm, options: dict[str, Any]
) -> Outcome:
    """Ask under kills, then finish undisturbed and compare with ``calm``."""
    outcome, done = Outcome(scenario.name, list(moments)), None
    before, finished = ledger.read(folder), set()
    # Steps are named by their question, so an earlier run may have one of the same name.
    earlier = {key[1] for key in before if key[0] == "runs"}
    for moment in [*moments, None]:
        told = stretch(process.ask, folder, scenario, moment, **options)
        _repeated(outcome, told, finished)
        after = ledger.read(folder)
        outcome.lost += ledger.lost(before, after)
        missing = (step for step in told.told("step") if tuple(step) not in _steps(after, earlier))
        outcome.lost += [f"step {step} was told as done" for step in missing]
        if told.told("run") and ("runs", told.told("run")[0]) not in after:
            outcome.lost.append(f"run {told.told('run')[0]} was begun")
        before, finished = after, finished | _steps(after, earlier)
        _failures(outcome, told)
        if told.killed and not told.hung:
            outcome.kills.append((*_drawn(told, moment), scenario.name))
        done = next(iter(told.told("done")), None)
        if done is not None:
            break
    if done != calm.told:
        outcome.wrong.append("no answer" if done is None else f"not the same bytes: {_difference(calm.told, done)}")
    more, less = ledger.counts(before) - calm.counts, calm.counts - ledger.counts(before)
    outcome.doubled += [f"{count} more of {name!r}" for name, count in sorted(more.items())]
    outcome.lost += [f"{count} less of {name!r}" for name, count in sorted(less.items())]
    return outcome


def survive_talk(
    folder: Path, scenario: Talk, moments: Sequence[Moment], calm: Calm, options: dict[str, Any]
) -> Outcome:
    """Hold a conversation under kills: every message, episode and note once and in order, the summary as it is due."""
    outcome, before = Outcome(scenario.name, list(moments)), ledger.read(folder)
    for moment in [*moments, None]:
        told = stretch(process.talk, folder, scenario, moment, **options)
        _failures(outcome, told)
        after = ledger.read(folder)
        outcome.lost += ledger.lost(before, after)
        before = after
        if told.killed and not told.hung:
            outcome.kills.append((*_drawn(told, moment), scenario.name))
    outcome.wrong += talked(scenario, ledger.conversation(folder))
    return outcome


def talked(scenario: Talk, kept: dict[str, Any]) -> list[str]:
    """What is wrong with what is kept of a conversation that was held to its end."""
    said = [scenario.message(number) for number in range(1, scenario.turns + 1)]
    rows, settings, faults = kept["messages"], Settings.load(), list[str]()
    if [row[1] for row in rows[::2]] != said or [row[0] for row in rows] != ["user", "assistant"] * len(said):
        faults.append(f"{len(rows)} messages, not each of the {len(said)} and its answer once and in order")
    if any(row[2] for row in rows):
        faults.append("an answer is partial")
    if kept["episodes"] != [(one[3], other[3]) for one, other in zip(rows[::2], rows[1::2], strict=False)]:
        faults.append(f"{len(kept['episodes'])} episodes, not each once and in order")
    if kept["bare"]:
        faults.append(f"{kept['bare']} episodes have no vector")
    stated = [f"I like shelf {n}" for n in range(1, scenario.turns + 1) if n % 3]
    if (noted := [row[0] for row in kept["memories"]]) != stated:
        faults.append(f"{len(noted)} notes, not each of the {len(stated)} once and in order")
    [(summary, covered, author)] = kept["summaries"] or [("", 0, "nobody")]
    window = settings.history_window
    every = {"begins": settings.summary_from, "every": settings.summary_every}
    if author != "rules" or due(len(rows), covered, window=window, **every):
        faults.append(f"the summary by {author} covers {covered} of {len(rows)} messages")
        return faults
    sentences = re.sub(r"^(?:Asked last|Asked|Found): ", "", summary, flags=re.MULTILINE).splitlines()
    if unsaid := [sentence for sentence in sentences if not any(sentence in row[1] for row in rows)]:
        faults.append(f"the summary says {unsaid}")
    return faults


def survive_adding(
    folder: Path, scenario: Adding, moments: Sequence[Moment], calm: Calm, options: dict[str, Any]
) -> Outcome:
    """Add documents under kills; a reader finds the old or the new ones at any time, and the end is as undisturbed."""
    outcome = Outcome(scenario.name, list(moments))
    for moment in [*moments, None]:
        told = stretch(process.add, folder, scenario, moment, **options)
        _failures(outcome, told)
        if told.killed and not told.hung:
            outcome.kills.append((*_drawn(told, moment), scenario.name))
        seen = stretch(process.look, folder, scenario, None, **options)
        found = next(iter(seen.told("found")), [])
        if found not in (calm.before, calm.after):
            outcome.lost.append(f"a reader found {len(found)} documents, neither the old nor the new ones")
        if told.told("done") or not scenario.then:  # what is made anew is never half of it
            content = next(iter(seen.told("content")), {})
            wrong = {name: rows for name, rows in calm.content.items() if content.get(name) != rows}
            outcome.wrong += [f"{name}: {content.get(name)}, not {rows}" for name, rows in wrong.items()]
        if told.told("done"):
            break
    return outcome


def survive_keeping(
    folder: Path, scenario: Keeping, moments: Sequence[Moment], calm: Calm, options: dict[str, Any]
) -> Outcome:
    """Keep in order under kills: what could be read still can, and a gc later all is as after a calm one."""
    outcome, before = Outcome(scenario.name, list(moments)), seen(folder, scenario, options)
    for number, moment in enumerate([*moments, None], 1):
        told = stretch(process.keep if moment else process.tidy, folder, scenario, moment, **options)
        _failures(outcome, told)
        if told.killed and not told.hung:
            outcome.kills.append((*_drawn(told, moment), scenario.name))
        if number == len(moments) > 1:
            continue  # then nobody opens it before the last gc
        files, found = listed(folder), seen(folder, scenario, options)
        gone = {"base film"} if scenario.name == "kb remove" else set()
        lost = (name for name in before if found.get(name, None if name in gone else "") not in (None, before[name]))
        outcome.lost += [f"{name} could be read before" for name in lost]
        before = found
    kept = ledger.read(folder)
    if files not in (calm.before, calm.after):
        more, less = Counter(files) - Counter(calm.after), Counter(calm.after) - Counter(files)
        outcome.wrong.append(f"left {sorted(more)}, without {sorted(less)}")
    if files == calm.after:
        other = sorted(name for name, _ in {*found.items()} ^ {*calm.content.items()})
        outcome.wrong += [f"{name} is not what a calm one leaves" for name in other]
    outcome.lost += ledger.lost(calm.kept, kept)
    outcome.doubled += [" ".join(key) for key in kept.keys() - calm.kept.keys()]
    return outcome


def seen(folder: Path, scenario: Keeping, options: dict[str, Any]) -> dict[str, str]:
    return next(iter(stretch(process.read, folder, scenario, None, **options).told("seen")), {})


def listed(folder: Path) -> list[str]:
    """Every file and folder, without what is drawn or of a moment in their names."""
    drawn = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|\d{8}T\d{12}")
    return sorted(drawn.sub("*", path.relative_to(folder).as_posix()) for path in folder.rglob("*"))


def _steps(kept: dict[Any, Any], earlier: set[str]) -> set[tuple[str, int]]:
    return ledger.finished_steps({key: row for key, row in kept.items() if key[1] not in earlier})


def _repeated(outcome: Outcome, told: Stretch, finished: set[tuple[str, int]]) -> None:
    outcome.repeated += [f"{call} had finished" for call in told.told("call") if tuple(call) in finished]


def _failures(outcome: Outcome, told: Stretch) -> None:
    outcome.wrong += told.told("failed")
    if told.hung:
        outcome.wrong.append(f"hung for {LIMIT_S:g} s after {told.lines[-1:]}")


def _drawn(told: Stretch, moment: Moment | None) -> tuple[str, str]:
    kind = moment.kind if moment else "time"
    return kind, next(iter(told.told("killed")), "at a random time")


def _difference(one: str, other: str) -> str:
    place = next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    return f"...{one[max(place - 40, 0) : place + 60]!r} became ...{other[max(place - 40, 0) : place + 60]!r}"


def fresh(template: Path, folder: Path) -> Path:
    shutil.copytree(template, folder, symlinks=True)
    return folder
