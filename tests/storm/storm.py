"""A storm: what every scenario is undisturbed, where it could be killed, and trials until enough kills have fallen."""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from tests.servers import Reply, scripted_server
from tests.shelves import CORE
from tests.storm import ledger, process
from tests.storm.moments import Moment
from tests.storm.scenarios import ADDINGS, FILMS, KEEPINGS, QUESTIONS, TALKS, Adding, Keeping, Question, Talk
from tests.storm.trial import (
    Calm,
    Outcome,
    fresh,
    listed,
    seen,
    stretch,
    survive_adding,
    survive_keeping,
    survive_question,
    survive_talk,
)  # fmt: skip
from workbench.session import Workbench

Scenario = Question | Adding | Keeping | Talk
_TOKENS = ["Christopher ", "Nolan ", "directed ", "Memento", " [1]", "."]


class Storm:
    """Scenarios prepared in a folder, and trials drawn from one seed.

    Args:
        folder: for the templates and the trials' workspaces.
        seed: draws scenarios and moments.
        only: scenarios whose name begins so, or with one of these; all when empty.
        knowledge: the folder of an indexed film corpus; None indexes it here.
    """

    def __init__(self, folder: Path, seed: int, only: str | tuple[str, ...] = "", knowledge: Path | None = None):
        self._folder, self._draw = folder, random.Random(seed)
        self._closing = ExitStack()
        self._calm: dict[str, Calm] = {}
        self._numbers = iter(range(1_000_000))
        self._lock = threading.Lock()
        self.scenarios: list[Scenario] = [
            s for s in (*QUESTIONS, *TALKS, *ADDINGS, *KEEPINGS) if s.name.startswith(only)
        ]
        self._knowledge = knowledge
        self._ways: dict[type, tuple[Callable[[Any], Calm], Callable[..., Outcome]]] = {
            Question: (self._prepare_question, survive_question),
            Talk: (self._prepare_talk, survive_talk),
            Adding: (self._prepare_adding, survive_adding),
            Keeping: (self._prepare_keeping, survive_keeping),
        }

    def __enter__(self) -> Storm:
        """Prepare every scenario."""
        with ExitStack() as closing:
            self._server = closing.enter_context(scripted_server(Reply(_TOKENS, delay_s=0.02)))
            for scenario in self.scenarios:
                prepare, _ = self._ways[type(scenario)]
                self._calm[scenario.name] = prepare(scenario)
            self._closing = closing.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.close()

    def prepared(self) -> str:
        """In a line, what there is to kill."""
        return ", ".join(f"{name} ({len(calm.gaps)} writes, {calm.seconds:.1f} s)" for name, calm in self._calm.items())

    def gaps(self) -> set[str]:
        """Every pair of neighbouring writes that was seen undisturbed."""
        return {gap for calm in self._calm.values() for gap in calm.gaps}

    def trials(self, kills: int, workers: int) -> Iterator[Outcome]:
        """Trials until so many kills have fallen; pairs of writes that were not yet hit come first."""
        deck, fallen = self._deck(), 0
        with ThreadPoolExecutor(workers) as pool:
            running: set[Future[Outcome]] = set()
            while fallen < kills or running:
                while fallen < kills and len(running) < workers:
                    running.add(pool.submit(self._trial, *next(deck)))
                done, running = wait(running, return_when=FIRST_COMPLETED)
                for future in done:
                    outcome = future.result()
                    fallen += len(outcome.kills)
                    yield outcome

    def _deck(self) -> Iterator[tuple[Scenario, list[Moment]]]:
        """Most first kills fall between two writes, every pair once before any twice; the others anywhere."""
        every = [(s, n, gap) for s in self.scenarios for n, gap in enumerate(self._calm[s.name].gaps, 1)]
        self._draw.shuffle(every)
        first, again, seen = [], [], set[str]()
        for scenario, number, gap in every:
            (again if gap in seen else first).append((scenario, number))
            seen.add(gap)
        for turn, (scenario, number) in enumerate([*first, *again]):
            yield scenario, [Moment("write", number), *self._more(scenario)]
            if turn % 3 == 0 or turn >= len(first):
                other = self._draw.choice(self.scenarios)
                yield other, [self._anywhere(other), *self._more(other)]
        while True:
            other = self._draw.choice(self.scenarios)
            yield other, [self._anywhere(other), *self._more(other)]

    def _more(self, scenario: Scenario) -> list[Moment]:
        """Kills of the processes that come after the first one."""
        if isinstance(scenario, Talk):
            return [Moment("write", self._draw.randint(1, 2_000)) for _ in range(10)]
        return [self._anywhere(scenario) for _ in range(self._draw.choice((0, 1, 1, 2)))]

    def _anywhere(self, scenario: Scenario) -> Moment:
        calm = self._calm[scenario.name]
        kind = self._draw.choice(("write", "event", "time") if calm.events else ("write", "time"))
        if kind == "write":
            return Moment("write", self._draw.randint(1, len(calm.gaps)))
        if kind == "time":
            return Moment("time", round(self._draw.uniform(0, calm.seconds), 3))
        name = self._draw.choice(sorted(calm.events))
        return Moment("event", self._draw.randint(1, calm.events[name]), name)

    def _trial(self, scenario: Scenario, moments: list[Moment]) -> Outcome:
        with self._lock:
            number = next(self._numbers)
        folder = fresh(self._template(scenario), self._folder / f"trial-{number}")
        _, survive = self._ways[type(scenario)]
        return survive(folder, scenario, moments, self._calm[scenario.name], self._options(scenario))

    # what every trial begins with

    def _template(self, scenario: Scenario) -> Path:
        return self._folder / f"template-{[s.name for s in self.scenarios].index(scenario.name)}"

    def _options(self, scenario: Scenario) -> dict[str, Any]:
        """The settings of the scenario's processes."""
        if isinstance(scenario, Keeping):
            return CORE
        if isinstance(scenario, Talk):
            return {**CORE, "memory_core": True}
        if isinstance(scenario, Adding):
            return {}
        if scenario.streamed:
            return {"chat_model": "openai:scripted", "chat_base_url": self._server.url, "planner": "rules"}
        return {}

    def _index(self) -> Path:
        with Workbench.open(self._folder / "index") as wb:
            wb.add_knowledge("film", [FILMS])
        return self._folder / "index" / "knowledge"

    def _prepare_question(self, scenario: Question) -> Calm:
        self._knowledge = knowledge = self._knowledge or self._index()
        template = self._template(scenario)
        template.mkdir()
        (template / "knowledge").symlink_to(knowledge.absolute(), target_is_directory=True)
        for message in scenario.before:
            earlier = Question("before", message)
            _finished(stretch(process.ask, template, earlier, None, **self._options(scenario)))
        folder = fresh(template, self._folder / f"calm-{template.name}")
        told = _finished(stretch(process.ask, folder, scenario, None, **self._options(scenario)))
        return _calm(told, told=told.told("done")[0], counts=ledger.counts(ledger.read(folder)))

    def _prepare_talk(self, scenario: Talk) -> Calm:
        template = self._template(scenario)
        template.mkdir()
        folder = fresh(template, self._folder / f"calm-{template.name}")
        return _calm(_finished(stretch(process.talk, folder, scenario, None, **self._options(scenario))))

    def _prepare_adding(self, scenario: Adding) -> Calm:
        template, before = self._template(scenario), list[str]()
        template.mkdir()
        first, then = scenario.write(template)
        if scenario.first:
            first.rename(template / "films.jsonl")
            _finished(stretch(process.add, template, scenario, None, **self._options(scenario)))
            before = stretch(process.look, template, scenario, None, **self._options(scenario)).told("found")[0]
            (template / "films.jsonl").unlink()
        if scenario.then:
            then.rename(template / "films.jsonl")
        folder = fresh(template, self._folder / f"calm-{template.name}")
        told = _finished(stretch(process.add, folder, scenario, None, **self._options(scenario)))
        seen = stretch(process.look, folder, scenario, None, **self._options(scenario))
        return _calm(told, before=before, after=seen.told("found")[0], content=seen.told("content")[0])

    def _prepare_keeping(self, scenario: Keeping) -> Calm:
        template, options = self._template(scenario), self._options(scenario)
        _finished(stretch(process.furnish, template, scenario, None, **options))
        calm, told = Calm(), None
        for work in (None, process.keep):
            folder = fresh(template, self._folder / f"calm-{template.name}-{work is not None}")
            if work:
                told = _finished(stretch(work, folder, scenario, None, **options))
                calm.gaps, calm.events, calm.seconds = told.told("gap"), Counter(told.told("heard")), told.seconds
            _finished(stretch(process.tidy, folder, scenario, None, **options))
            calm.before, calm.after = calm.after, listed(folder)
            calm.kept, calm.content = ledger.read(folder), seen(folder, scenario, options)
        return calm


def _calm(heard: Any, **more: Any) -> Calm:
    return Calm(gaps=heard.told("gap"), events=Counter(heard.told("heard")), seconds=heard.seconds, **more)


def _finished(told: Any) -> Any:
    if not told.told("done"):
        raise RuntimeError(f"A scenario does not even finish undisturbed: {told.lines[-3:]}")
    return told
