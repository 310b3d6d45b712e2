"""An experiment that runs: its cells one after the other from one tape, resumed where it was stopped, and steered.

Other processes run cells of it too, here or on the workers of a Dask cluster. Optuna may choose the configurations, by
the measure of those that have run.
"""

from __future__ import annotations

import json
import math
import multiprocessing
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from functools import cache
from pathlib import Path
from types import MappingProxyType, SimpleNamespace
from typing import TYPE_CHECKING, Any

from pydantic import SecretStr

from workbench.errors import UnknownRun, WorkbenchError, WorkspaceError, needing
from workbench.futures.replay import full_document
from workbench.parts.experiments import notebook
from workbench.parts.experiments.people import ModelReviewer, ThresholdReviewer
from workbench.parts.experiments.results import Results, label, score
from workbench.parts.experiments.spec import Spec, check_spec, load_spec
from workbench.parts.experiments.store import ACTS, ExperimentStore, names
from workbench.records.spending import spent
from workbench.records.sqlite import Tables
from workbench.records.tape import canonical
from workbench.runs.run import Run
from workbench.session import Workbench
from workbench.state import Data, Json, Progress, pick
from workbench.text import to_json
from workbench.widgets.display import in_kernel

if TYPE_CHECKING:
    from workbench.parts.experiments.live import Live


class Experiments:
    """The experiments of a workspace, newest first."""

    def __init__(self, wb: Any):
        self._wb = wb
        self._tables: Tables = wb._services["experiments"].tables

    def run(
        self,
        spec: str | Path | Data,
        *,
        workers: int = 1,
        dask: str = "",
        progress: Progress | None = None,
        notify: Sequence[str] = (),
    ) -> Experiment:
        """Run an experiment, or what is missing of it: cells that are done and still valid are not run again.

        Cells that have failed are tried again.

        Args:
            spec: a YAML file, or what it would hold.
            workers: processes; each opens the workspace, without what was registered in this one.
            dask: the address of a Dask scheduler whose workers run cells too; they need the workspace's folder.
            progress: called after each cell with ``(name, done, total)``; in a notebook a table follows it by default.
            notify: URLs of Apprise, as ``mailto://...``: told of pauses, failures and the end.

        Raises:
            WorkbenchError: the specification is wrong; nothing has run.
        """
        experiment = self.prepare(spec)
        if notify:
            experiment.tell = notifier(notify)
        experiment._store.mark("failed", "waiting")  # their server may be back
        experiment._store.set_state("running")
        with (
            experiment.watch()
            if progress is None and in_kernel()
            else nullcontext(progress) as tell
        ):
            experiment.work(workers, dask, tell)
            if experiment.spec.optuna:
                search(experiment, lambda: experiment.work(workers, dask, tell))
            experiment.tell("done", f"{experiment.name} has ended: {experiment}")
        return experiment

    def prepare(self, spec: str | Path | Data) -> Experiment:
        """Check an experiment and write down its cells, without running any.

        Raises:
            WorkbenchError: the specification is wrong.
        """
        read = load_spec(spec) if isinstance(spec, (str, Path)) else check_spec(spec)
        experiment = Experiment(self._wb, self._tables, read)
        experiment.prepare()
        return experiment

    def get(self, name: str) -> Experiment:
        """Return an experiment by its name.

        Raises:
            WorkbenchError: there is none; it lists those there are.
        """
        row = ExperimentStore(self._tables, name).experiment()
        return Experiment(self._wb, self._tables, Spec.model_validate(row["spec"]))

    def __iter__(self) -> Iterator[Experiment]:
        return iter([self.get(name) for name in names(self._tables)])

    def __repr__(self) -> str:
        return f"<Experiments: {names(self._tables)}>"


experiments = property(Experiments)
"""``wb.experiments``."""


class Experiment(Results):
    """One experiment.

    Attributes:
        tell: called with a status and a sentence for what happens to it while it runs.
        changed: cells that had ended and run again, by the part of their proof that differs.
    """

    tell: Callable[[str, str], object] = staticmethod(lambda status, text: None)
    changed: Mapping[str, int] = MappingProxyType({})

    def prepare(self) -> None:
        """Check every configuration, and write down the cells that are to run.

        Raises:
            WorkbenchError: a parameter is unknown or has a value that it may not have.
        """
        key, what = (
            ("notebook", notebook.parameters_of)
            if self.spec.notebook
            else ("kb", self._wb.knowledge.get)
        )
        with self._at(key):
            what(getattr(self.spec, key))
        cells = self.cells()
        self.keep_plan()
        self.changed = self.stale(cells)
        for part, count in self.changed.items():
            self._store.note("stale", f"{count} cells run again: {part} has changed")
        self._store.keep_cells(cells)

    def forecast(self) -> Json:
        """Return what is left to run and what that will take, with a line for a person as ``text``.

        Next to ``status``, ``alone`` are the cells that begin a tape of their own, about as many as are distinct.
        ``seconds`` is what cells took here before, None where none has run; ``stale`` the cells that had ended and run
        again, by what has changed.
        """
        pace = self._store.pace()
        done = self._cells("done")
        left = self._cells("waiting", "running")
        alone = len(set(map(self._tape, left)) - set(map(self._tape, done)))
        kinds = {"alone": alone, "forked": len(left) - alone}
        if self.spec.notebook:
            kinds = {"notebook": len(left)}
        seconds = sum(count * pace.get(kind, math.nan) for kind, count in kinds.items() if count)
        status = self.status()
        unknown = math.isnan(seconds)
        stale = "".join(
            f"{count} again: {part} has changed; " for part, count in self.changed.items()
        )
        text = (
            f"{status['cells']} cells, {len(done)} there, {len(left)} to run: {alone} alone, {len(left) - alone} from "
            f"their tapes; {stale}{'no cell has run here yet' if unknown else f'about {seconds:.0f} s'}; "
            f"shows differences from {status['detectable_points']:.1f} points"
        )
        counts = {
            "to_run": len(left),
            "alone": alone,
            "seconds": None if unknown else seconds,
            "stale": self.changed,
        }
        return {**status, **counts, "text": text}

    def _tape(self, row: Json) -> tuple[str, int, str]:
        """Return what cells that share a tape have in common: question, repeat, and what a fork cannot change."""
        own = self.spec.notebook or self._graph(row["parameters"])
        return (
            row["question"],
            row["repeat"],
            row["cell"] if own else self.shared(row["parameters"]),
        )

    # running

    def work(self, count: int = 1, dask: str = "", progress: Progress | None = None) -> None:
        """Run the cells that wait, until all have ended, the budget is spent, or it is stopped."""
        began = time.monotonic()
        with other_processes(self._wb, self.name, count - 1, dask):
            self._work(began, progress)
        if not self._must_stop(began):  # what a worker that was killed has left
            self._work(began, progress)

    def _work(self, began: float, progress: Progress | None) -> None:
        try:
            while sum(self._ask_all(question, progress, began) for question in self.questions):
                pass  # again, for what was added meanwhile
        finally:  # an interrupt in the middle leaves no cell behind that only this process may run
            self._store.release(self._wb._work.lease.owner)

    def _ask_all(self, question: Json, progress: Progress | None, began: float) -> int:
        """Run the cells of a question that are free, and return how many there were."""
        if self._must_stop(began):
            return 0
        lease = self._wb._work.lease
        count = 0
        rows = self._store.claim(question["id"], lease.owner, lease.alive)
        tapes: dict[Any, Run] = {}
        for row in rows:
            if row["status"] == "done" and row["run_id"] in self._wb.runs:
                tapes.setdefault(self._tape(row), self._wb.run(row["run_id"]))
        for row in rows:
            is_free = row["owner"] == lease.owner and not self._must_stop(began)
            if not is_free or not self._store.begin(row["cell"], lease.owner):
                continue
            self._run_cell(row, question, tapes)
            count += 1
            if progress:
                totals = self._store.totals()
                progress(
                    self.name,
                    totals["cells"] - totals["waiting"] - totals["running"],
                    totals["cells"],
                )
        return count

    def _must_stop(self, began: float) -> bool:
        """Return whether no further cell may begin; a paused experiment waits here."""
        poll_s = 0.2
        while (state := self._store.experiment()["state"]) == "paused":
            self.tell("paused", f"{self.name} is paused.")
            time.sleep(poll_s)
        spent_now = {**self._store.totals(), "seconds": time.monotonic() - began}
        limits = self.spec.budget.model_dump(exclude_none=True)
        return state == "stopped" or any(
            spent_now[name] >= limit for name, limit in limits.items()
        )

    def _run_cell(self, row: Json, question: Json, tapes: dict[Any, Run]) -> None:
        variant = row["parameters"]
        began = time.perf_counter()
        try:
            if self.spec.notebook:
                columns = self._notebook(row["cell"], variant)
            elif graph := self._graph(variant):
                columns = self._recorded(graph, question, variant)
            else:
                columns = self._question(question, variant, row, tapes)
        except WorkspaceError:  # no room, or held by another process: no failure of this cell
            raise
        except Exception as error:
            # raised by a tool, a model or a notebook: it stops no other cell
            message = (
                str(error)
                if isinstance(error, WorkbenchError)
                else f"{type(error).__name__}: {error}"
            )
            columns = {"status": "failed", "error": message}
            self.tell("failed", f"{self.name} has cells that fail.")
        self._store.end(row, seconds=round(time.perf_counter() - began, 4), **columns)

    def _notebook(self, cell: str, variant: Json) -> Json:
        output = self._wb.path / "experiments" / self.name / f"{cell}.ipynb"
        defaults = {"workspace": str(self._wb.path), "experiment": self.name}
        declared = notebook.parameters_of(self.spec.notebook)
        values = (
            {name: value for name, value in defaults.items() if name in declared}
            | self.spec.base
            | variant
        )
        results, error = notebook.execute(
            self.spec.notebook, output, values, self._wb.path.parent
        )
        scores = {
            name: float(value)
            for name, value in results.items()
            if isinstance(value, (int, float))
        }
        return _columns("failed" if error else "done", error, str(output), scores)

    def _recorded(self, graph: Any, question: Json, variant: Json) -> Json:
        field = variant.get("field")
        text = question["question"]
        run = graph.ask({field: text} if field else text)
        answer = run.reply
        evidence = run.evidence
        # an agent cites ids, and what judges answers counts
        for n, piece in enumerate(evidence, start=1):
            answer = answer.replace(f"[{piece['result_id']}]", f"[{n}]")
        judged = SimpleNamespace(status=run.status, answer=answer, evidence=evidence, state={})
        tokens = sum(effect.tokens for effect in run.effects if not effect.replayed)
        spent_here = {"tokens": tokens, "executed": len(run.executed), "replayed": 0}
        return _columns(run.status, None, run.run_id, score(question, judged)) | spent_here

    def _question(self, question: Json, variant: Json, row: Json, tapes: dict[Any, Run]) -> Json:
        options = self.options(variant)
        tape = self._tape(row)
        run = (
            self._left(row)
            or self._fork(tapes.get(tape), options)
            or self._start(question, options)
        )
        self._store.note_run(row["cell"], run.run_id)
        # the table of runs shows and finds them
        self._wb.runs.annotate(run.run_id, tags=[self.name, label(variant)])
        if run.wait().status == "done":
            tapes.setdefault(tape, run)
        effects = [
            effect for effect in run.tape() if effect.kind in ("tool", "model", "plan", "handler")
        ]
        own = [effect for effect in effects if not effect.replayed]
        cost = spent(effect for effect in own if effect.kind == "model")
        counts = {"executed": len(own), "replayed": len(effects) - len(own)}
        columns = _columns(run.status, run.error, run.run_id, score(question, run))
        return {**columns, "tokens": cost.tokens, "money": cost.money, **counts}

    def _left(self, row: Json) -> Run | None:
        """Return the run that a killed process had finished for this cell; one that it had not finished is removed."""
        if not row["run_id"]:
            return None
        with suppress(UnknownRun):  # somebody removed the run: the cell is asked again
            run = self._wb.run(row["run_id"])
            if run.status == "done":
                return run
            self._wb.runs.remove(run.run_id)
        return None

    def _start(self, question: Json, options: Json) -> Run:
        """Begin a run for a cell alone, in a conversation of its own; without a named user it has no memory."""
        own = notebook.conversation(self.name)
        if "user" in options:  # whose other conversations may have the experiment's name
            own = {"session": own["user"]}
        return self._wb.start(question["question"], **{**own, **options})

    def _fork(self, origin: Run | None, options: Json) -> Run | None:
        """Begin the run from the tape of one of the same question, where that tape cannot hold anything else."""
        # a fork has recorded answers
        own = isinstance(options.get("reviewer"), (ThresholdReviewer, ModelReviewer))
        if (
            origin is None
            or own
            or not set(origin.options["thresholds"]) <= set(options["thresholds"])
        ):
            return None
        shipped = pick(self._wb.settings.model_dump(), *origin.options.get("settings", {}))
        return origin.fork(
            settings=shipped | options["settings"],
            thresholds=options["thresholds"],
            answers=options.get("decisions", []),
            review=options.get("review", []),
            rest="rules" if options.get("reviewer") else "ask",
            wait=False,
        )

    def check(self, share: int = 100) -> list[str]:
        """Run one cell in ``share`` a second time, alone, and return the cells whose bytes differ."""
        differing = []
        sample = [row for row in self._cells("done") if row["replayed"]][:: max(1, share)]
        for row in sample:
            alone = self._start(
                self.by_id[row["question"]], self.options(row["parameters"])
            ).wait()
            if canonical(full_document(alone)) != canonical(
                full_document(self._wb.run(row["run_id"]))
            ):
                differing.append(row["cell"])
        self._store.note("check", f"{len(sample)} cells run alone, {len(differing)} differ")
        return differing

    def watch(self) -> Live:
        """Return a widget: how far it is, and its runs in the bench's table, to sort, narrow, open and compare."""
        from workbench.parts.experiments.live import Live

        return Live(self)

    # steering

    def stop(self) -> None:
        """Stop after the cell that runs; ``run`` continues."""
        self._store.set_state("stopped")

    def steer(
        self, act: str, configuration: int | None = None, values: Data | None = None
    ) -> None:
        """Change the experiment while it runs, in whatever process; the act is kept with its time.

        Args:
            act: ``pause`` or ``resume`` all of it; ``drop`` a configuration, of which what has run stays, or ``take``
                it back; ``add`` one; ``clone`` one with other values; ``change`` one, which is to clone and drop it.
            configuration: its number; the baseline, 0, is what the others are compared with, and stays.
            values: parameters of the new configuration.

        Raises:
            WorkbenchError: there is no such act or configuration, or a parameter is wrong; nothing has changed.
        """
        variants = self.variants
        values = dict(values or {})
        if act not in ACTS:
            raise WorkbenchError(f"No act {act!r}. Known: {', '.join(ACTS)}.")
        chosen = {}
        if act in ("drop", "take", "clone", "change"):
            if configuration not in range(len(variants)):
                hint = f"Known: 0 to {len(variants) - 1}, as `compare` lists them."
                raise WorkbenchError(f"No configuration {configuration!r}. {hint}")
            if configuration == 0 and act in ("drop", "change"):
                raise WorkbenchError(
                    "Configuration 0 is the baseline, with which the others are compared. It stays."
                )
            chosen = variants[configuration or 0]
        if act in ("pause", "resume"):
            self._store.set_state("paused" if act == "pause" else "running")
        if act in ("add", "clone", "change"):
            self._add({**chosen, **values}, variants)
        if act in ("drop", "change", "take"):
            states = ("dropped", "waiting") if act == "take" else ("waiting", "dropped")
            self._store.mark(*states, to_json(chosen))
        self._store.note(act, " ".join(label(part) for part in (chosen, values) if part))

    def _add(self, variant: Json, variants: Sequence[Json]) -> None:
        if variant in variants:
            raise WorkbenchError(f"{label(variant)} is there already.")
        self._check(variant, "grid")
        self._store.steer(variant)
        self._store.keep_cells(self.cells())


def notifier(urls: Sequence[str]) -> Callable[[str, str], object]:
    """Return a function that sends a text to these addresses of Apprise, each text once.

    Raises:
        WorkbenchError: Apprise is not installed, or does not know an address.
    """
    with needing("Apprise", "apprise"):
        from apprise import Apprise
    addresses = Apprise()
    for url in urls:
        if not addresses.add(url):
            raise WorkbenchError(
                f"Apprise does not know {url.partition(':')[0]}:// or lacks a part of the address."
            )
    return cache(lambda status, text: addresses.notify(body=text, title="Workbench"))


def _columns(status: str, error: str | None, run_id: str, scores: Json) -> Json:
    """Return what is kept of a cell that has ended; a run that waits for a person has failed."""
    is_done = status == "done"
    reason = error or (None if is_done else f"The run is {status}, without an answer.")
    columns = {"status": "done" if is_done else "failed", "error": reason, "run_id": run_id}
    return {**columns, "scores": json.dumps(scores)}


@contextmanager
def other_processes(wb: Any, name: str, count: int, dask: str) -> Iterator[None]:
    """Run cells in other processes too while the block does; wait for them at its end.

    Each takes cells from the store until none is free. What one that dies has taken is free again. No secret goes to
    a cluster: its workers have keys in their own environment.

    Raises:
        WorkbenchError: Dask is not installed, or its scheduler does not answer.
    """
    path = Path(wb.path).resolve()
    values = wb.settings.model_dump(exclude_unset=True)
    context = multiprocessing.get_context("spawn")
    with ExitStack() as ends:
        for _ in range(count):
            process = context.Process(target=run_cells, args=(path, values, name))
            process.start()
            ends.callback(process.join)
        if dask:
            client = ends.enter_context(_cluster(dask))
            bare = {
                key: value for key, value in values.items() if not isinstance(value, SecretStr)
            }
            # a worker that dies is replaced
            more = {"allow_other_workers": True, "pure": False}
            futures = [
                client.submit(run_cells, path, bare, name, workers=[worker], **more)
                for worker in client.scheduler_info(n_workers=-1)["workers"]
            ]
            ends.callback(client.gather, futures, errors="skip")
        yield


def _cluster(address: str) -> Any:
    with needing("Dask", "dask"):
        from distributed import Client
    try:
        return Client(address, timeout="10s", set_as_default=False)
    except (OSError, ValueError) as error:
        raise WorkbenchError(f"The Dask scheduler {address} does not answer: {error}") from None


def run_cells(path: Path, values: Json, name: str) -> None:
    """Run cells of an experiment in a process of its own, with these settings."""
    with Workbench.open(path, **values) as wb:
        wb.experiments.get(name).work()


def search(experiment: Experiment, work: Callable[[], None]) -> None:
    """Add configurations one by one until there are as many as the specification lets Optuna choose.

    A search that is resumed proposes the same ones again, of which nothing runs twice.

    Raises:
        MissingExtra: Optuna is not installed.
    """
    with needing("Optuna", "optuna"):
        import optuna
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    spec = experiment.spec
    grid = spec.grid
    chosen: Any = spec.optuna
    enough = min(chosen.n, spec.size)

    def mean(trial: Any) -> float:
        variant = {
            name: grid[name][trial.suggest_categorical(name, range(len(grid[name])))]
            for name in grid
        }
        if variant not in experiment.variants:
            experiment.steer("add", values=variant)
            work()
        score = float(experiment.scores().mean()[label(variant)])
        # stopped, nothing was scored, or all are there
        if math.isnan(score) or len(experiment.variants) >= enough:
            trial.study.stop()
        return score

    study = optuna.create_study(
        direction="maximize", sampler=optuna.samplers.TPESampler(seed=chosen.seed)
    )
    study.enqueue_trial(dict.fromkeys(grid, 0))
    study.optimize(mean, n_trials=20 * chosen.n)  # most proposals may be there already
