"""An experiment that runs: its cells one after the other from one tape, resumed where it was stopped, and compared."""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, cached_property
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import workbench
from workbench.errors import WorkbenchError, WorkspaceError
from workbench.futures.replay import full_document
from workbench.graphs.reviewers import RuleReviewer
from workbench.parts.experiments import notebooks, statistics
from workbench.parts.experiments.spec import Spec, check_spec, load_spec
from workbench.parts.experiments.statistics import Difference
from workbench.parts.experiments.store import ExperimentStore
from workbench.plans import canonical_json
from workbench.records.tape import canonical
from workbench.records.writing import write_file
from workbench.runs.asking import RunOptions
from workbench.runs.fork import spent
from workbench.settings import Settings, all_settings
from workbench.state import Json

if TYPE_CHECKING:
    import pandas

    from workbench.runs.run import Run
    from workbench.session import Workbench
    from workbench.views.figures.picture import Picture

USER = "experiment"
_PAGE = """<!doctype html><html lang="en"><meta charset="utf-8"><title>{name}</title><style>
body {{ font: 15px system-ui, sans-serif; margin: 2rem auto; max-width: 72rem; padding: 0 1rem }}
table {{ border-collapse: collapse; font-size: 13px }} td, th {{ padding: .2rem .6rem; text-align: left }}
tr {{ border-bottom: 1px solid #ddd }} pre {{ overflow: auto }}
</style><h1>{name}</h1><p>{said}</p>{body}</html>"""
Progress = Callable[[str, int, int], None]
_CHECKED = 100
"""One cell in so many is run a second time, alone."""


@property  # type: ignore[misc]
def experiments(wb: Workbench) -> Experiments:
    """Return the experiments of a workspace: ``wb.experiments``."""
    return Experiments(wb, wb._services["experiments"].store)  # type: ignore[attr-defined]


class Experiments:
    """The experiments of a workspace, newest first."""

    def __init__(self, wb: Workbench, store: ExperimentStore):
        self._wb, self._store = wb, store

    def run(
        self, spec: str | Path | Mapping[str, Any], *, workers: int = 1, progress: Progress | None = None
    ) -> Experiment:
        """Run an experiment, or what is missing of it: cells that are done and still valid are not run again.

        Cells that have failed are tried again.

        Args:
            spec: a YAML file, or what it would hold.
            workers: processes; each opens the workspace, without what was registered in this one.
            progress: called after each cell with ``(name, done, total)``.

        Raises:
            WorkbenchError: the specification is wrong; nothing has run.
        """
        read = load_spec(spec) if isinstance(spec, (str, Path)) else check_spec(spec)
        experiment = Experiment(self._wb, self._store, read)
        experiment.prepare()
        self._store.retry_failed(read.name)
        experiment.work(workers, progress)
        return experiment

    def get(self, name: str) -> Experiment:
        """Return an experiment by its name.

        Raises:
            WorkbenchError: there is none; it lists those there are.
        """
        return Experiment(self._wb, self._store, Spec.model_validate(self._store.spec(name)))

    def __iter__(self) -> Iterator[Experiment]:
        return iter([self.get(name) for name in self._store.names()])

    def __repr__(self) -> str:
        return f"<Experiments: {', '.join(self._store.names()) or 'none'}>"


class Experiment:
    """One experiment.

    Attributes:
        name: of the experiment.
        spec: what is asked and what varies.
    """

    def __init__(self, wb: Workbench, store: ExperimentStore, spec: Spec):
        self._wb, self._store, self.spec, self.name = wb, store, spec, spec.name
        self._graphs: dict[str, Any] = {}

    # what there is to do

    @cached_property
    def questions(self) -> list[Json]:
        """Return the questions, each with an ``id``; one without words for a notebook."""
        if self.spec.notebook:
            return [{"id": "notebook", "question": ""}]
        from workbench.parts.evaluate.questions import choose, read_rows

        source = self.spec.questions
        if isinstance(source, str):
            return choose(read_rows(Path(source), "id", "question"), None, self.spec.limit)
        rows = [{"question": row} if isinstance(row, str) else row for row in source]
        return choose([{"id": str(number), **row} for number, row in enumerate(rows, start=1)], None, self.spec.limit)

    @cached_property
    def variants(self) -> list[Json]:
        """Return the configurations: what varies, the baseline first."""
        return self.spec.variants()

    def prepare(self) -> None:
        """Check every configuration, and write down the cells that are to run.

        Raises:
            WorkbenchError: a parameter is unknown or has a value that it may not have.
        """
        if self.spec.notebook:
            for variant in self.variants:
                notebooks.checked(self.spec.notebook, {**self.spec.base, **variant})
        else:
            self._wb.knowledge.get(self.spec.kb)
            for variant in self.variants:
                if not self._graph(variant):
                    RunOptions.read(self._wb, self._options(variant))
        cells = [
            {
                "cell": digest([variant, question["id"], repeat]),
                "configuration": number,
                "parameters": json.dumps(variant, ensure_ascii=False),
                "question": question["id"],
                "repeat": repeat,
                "proof": json.dumps(self.proof(variant, question, repeat)),
            }
            for question in self.questions
            for repeat in range(self.spec.repeats)
            for number, variant in enumerate(self.variants)
        ]
        self._store.save_spec(self.name, self.spec.model_dump(mode="json"))
        for part, count in self.stale(cells).items():
            self._store.note(self.name, "stale", f"{count} cells run again: {part} has changed")
        self._store.add_cells(self.name, cells)
        self._store.remove_cells(self.name, [cell["cell"] for cell in cells])

    def proof(self, variant: Json, question: Json, repeat: int) -> Json:
        """Return digests of everything that a cell depends on, by part."""
        wb, spec = self._wb, self.spec
        settings = wb.settings.model_dump(mode="json")
        return {
            "code": code_version(),
            "corpus": "" if spec.notebook else wb.knowledge.get(spec.kb).fingerprint(),
            "settings": digest(settings),
            "prompts": digest(wb.prompts.own()),
            "parameters": digest([spec.base, variant, spec.kb]),
            "reviewer": digest(spec.reviewer),
            "question": digest(question),
            "graph": graph.version if (graph := self._graph(variant)) else "",
            "notebook": digest(Path(spec.notebook).read_text("utf-8")) if spec.notebook else "",
            "repeat": str(repeat),
        }

    def stale(self, cells: Sequence[Json]) -> dict[str, int]:
        """Return how many cells that had ended must run again, by the part of their proof that has changed."""
        before = {row["cell"]: json.loads(row["proof"]) for row in self._store.cells(self.name) if row["scores"]}
        changed: dict[str, int] = {}
        for cell in cells:
            old, new = before.get(cell["cell"]), json.loads(cell["proof"])
            for part in new:
                if old and old[part] != new[part]:
                    changed[part] = changed.get(part, 0) + 1
        return changed

    def _options(self, variant: Json) -> Json:
        """Return the options of a question in a configuration, with settings and thresholds in their groups."""
        options: Json = {"kb": self.spec.kb, "user": USER, "settings": {}, "thresholds": {}}
        for name, value in {**self.spec.base, **variant}.items():
            group, _, inner = name.partition(".")
            if inner and group in ("settings", "thresholds"):
                options[group][inner] = value
            elif name in all_settings().model_fields:
                options["settings"][name] = value
            elif name in RunOptions.model_fields:
                options[name] = value
            else:
                raise WorkbenchError(
                    f"{self.name}: {name!r} is neither a setting nor an option of a question. Options: "
                    f"{', '.join(RunOptions.model_fields)}; thresholds.min_evidence, thresholds.min_top_score."
                )
        if self.spec.reviewer == "rules":
            options["reviewer"] = RuleReviewer()
        elif isinstance(self.spec.reviewer, list):
            options["decisions"] = self.spec.reviewer
            options["review"] = sorted({decision["point"] for decision in self.spec.reviewer})
        return options

    # running

    def work(self, workers: int = 1, progress: Progress | None = None) -> None:
        """Run the cells that wait, until all have ended, the budget is spent, or it is stopped."""
        context = multiprocessing.get_context("spawn")
        arguments = (self._wb.path, self._wb.settings, self.name)
        processes = [context.Process(target=_worker, args=arguments) for _ in range(workers - 1)]
        for process in processes:
            process.start()
        began = time.monotonic()
        try:
            for question in self.questions:
                self._ask_all(question, progress, began)
        finally:  # an interrupt in the middle leaves no cell behind that only this process may run
            self._store.release(self.name, self._wb._work._lease.owner)
            for process in processes:
                process.join()

    def _ask_all(self, question: Json, progress: Progress | None, began: float) -> None:
        cells = [row for row in self._store.cells(self.name) if row["question"] == question["id"]]
        lease = self._wb._work._lease
        mine = set(self._store.claim(self.name, [row["cell"] for row in cells], lease.owner, lease.alive))
        first: dict[int, Run] = {}
        for row in cells:
            if row["cell"] not in mine:
                ours = not self.spec.notebook and not self._graph(json.loads(row["parameters"]))
                if row["run_id"] and row["status"] == "done" and ours:
                    first.setdefault(row["repeat"], self._wb.run(row["run_id"]))
                continue
            if self._over_budget(began) or self._store.state(self.name) == "stopped":
                self._store.end(self.name, row["cell"], status="waiting")
                continue
            self._run_cell(row, question, first)
            if progress:
                totals = self._store.totals(self.name)
                progress(self.name, totals["ended"], totals["cells"])

    def _over_budget(self, began: float) -> bool:
        seconds, tokens = self.spec.budget.seconds, self.spec.budget.tokens
        if seconds is not None and time.monotonic() - began > seconds:
            return True
        return tokens is not None and self._store.totals(self.name)["tokens"] >= tokens

    def _run_cell(self, row: Json, question: Json, first: dict[int, Run]) -> None:
        variant, began = json.loads(row["parameters"]), time.perf_counter()
        try:
            if self.spec.notebook:
                columns = self._notebook(row["cell"], variant)
            elif graph := self._graph(variant):
                columns = self._recorded(graph, question, variant)
            else:
                columns = self._question(question, variant, row, first)
        except WorkspaceError:  # no room, or held by another process: no failure of this cell
            raise
        except Exception as error:  # raised by a tool, a model or a notebook: it stops no other cell
            message = str(error) if isinstance(error, WorkbenchError) else f"{type(error).__name__}: {error}"
            columns = {"status": "failed", "error": message}
        self._store.end(self.name, row["cell"], seconds=round(time.perf_counter() - began, 4), **columns)

    def _notebook(self, cell: str, variant: Json) -> Json:
        output = self._wb.path / "experiments" / self.name / f"{cell}.ipynb"
        results, error = notebooks.execute(self.spec.notebook, output, {**self.spec.base, **variant})
        scores = {name: float(value) for name, value in results.items() if isinstance(value, (int, float))}
        status = "failed" if error else "done"
        return {"status": status, "error": error or None, "scores": json.dumps(scores), "run_id": str(output)}

    def _graph(self, variant: Json) -> Any:
        """Return the recorded graph that answers in this configuration; None where the workbench or a notebook does.

        Raises:
            WorkbenchError: it has other parameters, which the graph would not hear of.
        """
        name = "" if self.spec.notebook else str(variant.get("graph", ""))
        if not name:
            return None
        if ignored := sorted(set(variant) - {"graph", "field"}):
            raise WorkbenchError(f"{self.name}: a graph takes no {ignored[0]!r}. Its parameters: graph, field.")
        if name not in self._graphs:
            self._graphs[name] = self._wb.agent(self.spec.kb) if name == "agent" else self._wb.record(name)
        return self._graphs[name]

    def _recorded(self, graph: Any, question: Json, variant: Json) -> Json:
        field, text = variant.get("field"), question["question"]
        run = graph.ask({field: text} if field else text)
        answer, evidence = run.reply, run.evidence
        for n, piece in enumerate(evidence, start=1):  # an agent cites ids, and what judges answers counts
            answer = answer.replace(f"[{piece['result_id']}]", f"[{n}]")
        judged = SimpleNamespace(status=run.status, answer=answer, evidence=evidence, support=None)
        return {
            "status": "done" if run.status == "done" else "failed",
            "error": None if run.status == "done" else f"The run is {run.status}, without an answer.",
            "run_id": run.run_id,
            "scores": json.dumps(score(question, judged)),
            "tokens": sum(effect.tokens for effect in run.effects if not effect.replayed),
            "executed": len(run.executed),
            "replayed": 0,
        }

    def _question(self, question: Json, variant: Json, row: Json, first: dict[int, Run]) -> Json:
        options = self._options(variant)
        run = self._fork(first.get(row["repeat"]), options) or self._alone(question, options)
        if run.status == "done":
            first.setdefault(row["repeat"], run)
        effects = [effect for effect in run.tape() if effect.kind in ("tool", "model", "plan", "handler")]
        return {
            "status": run.status if run.status in ("done", "failed") else "failed",
            "error": run.error or (None if run.status == "done" else f"The run is {run.status}, without an answer."),
            "run_id": run.run_id,
            "scores": json.dumps(score(question, run)),
            "tokens": spent(run.tape())["tokens"],
            "executed": sum(not effect.replayed for effect in effects),
            "replayed": sum(effect.replayed for effect in effects),
        }

    def _alone(self, question: Json, options: Json) -> Run:
        return self._wb.ask(question["question"], **options)

    def _fork(self, origin: Run | None, options: Json) -> Run | None:
        """Make the run from one of the same question, where settings and thresholds are all that differs."""
        if origin is None:
            return None
        stored = RunOptions.read(self._wb, options).stored("")
        forked = ("settings", "thresholds")
        same = all(
            origin.options.get(name) == stored.get(name)
            for name in {*stored, *origin.options} - {*forked, "session", "tape", "decisions", "mismatch", "rest"}
        )
        settings = {name: self._wb.settings.model_dump()[name] for name in origin.options.get("settings", {})}
        settings |= stored.get("settings", {})
        return origin.fork(settings=settings, thresholds=stored["thresholds"], wait=True) if same else None

    def check(self, share: int = _CHECKED) -> list[str]:
        """Run one cell in ``share`` a second time, alone, and return the cells whose bytes differ."""
        differing = []
        questions = {question["id"]: question for question in self.questions}
        done = [row for row in self._store.cells(self.name) if row["status"] == "done" and row["replayed"]]
        for row in done[:: max(1, share)]:
            alone = self._alone(questions[row["question"]], self._options(json.loads(row["parameters"])))
            if canonical(full_document(alone)) != canonical(full_document(self._wb.run(row["run_id"]))):
                differing.append(row["cell"])
        self._store.note(self.name, "check", f"{len(done[:: max(1, share)])} cells run alone, {len(differing)} differ")
        return differing

    def stop(self) -> None:
        """Stop after the cell that runs; ``run`` continues."""
        self._store.set_state(self.name, "stopped")

    # results

    def status(self) -> Json:
        """Return how many cells wait, run, are done and have failed, and what was shared between them."""
        cells = self._store.cells(self.name)
        counts = {
            state: sum(row["status"] == state for row in cells) for state in ("waiting", "running", "done", "failed")
        }
        effects = {name: sum(row[name] or 0 for row in cells) for name in ("executed", "replayed")}
        shown = statistics.detectable(len(self.questions), len(self.variants) - 1)
        return {"experiment": self.name, "cells": len(cells), **counts, **effects, "detectable_points": round(shown, 1)}

    def to_frame(self) -> pandas.DataFrame:
        """Return a row for each cell: parameters, question, scores, seconds, tokens, and its run."""
        import pandas

        rows = [
            {
                **json.loads(row["parameters"]),
                "question": row["question"],
                "repeat": row["repeat"],
                "status": row["status"],
                **json.loads(row["scores"] or "{}"),
                **{name: row[name] for name in ("seconds", "tokens", "executed", "replayed", "run_id", "error")},
            }
            for row in self._store.cells(self.name)
        ]
        return pandas.DataFrame(rows)

    def scores(self, measure: str = "") -> dict[str, dict[str, float]]:
        """Return the scores of finished cells by configuration and question; repeats are averaged."""
        measure = measure or self.spec.measure
        lists: dict[str, dict[str, list[float]]] = {label(variant): {} for variant in self.variants}
        for row in self._store.cells(self.name):
            value = json.loads(row["scores"] or "{}").get(measure)
            if row["status"] == "done" and value is not None:
                lists[label(json.loads(row["parameters"]))].setdefault(row["question"], []).append(value)
        return {
            name: {question: sum(values) / len(values) for question, values in by_question.items()}
            for name, by_question in lists.items()
        }

    def differences(self, measure: str = "") -> dict[str, Difference]:
        """Compare every configuration with the first one; the look is noted.

        Raises:
            WorkbenchError: no cell has this measure.
        """
        scores = self.scores(measure)
        if not any(scores.values()):
            measures = sorted(
                {name for row in self._store.cells(self.name) for name in json.loads(row["scores"] or "{}")}
            )
            raise WorkbenchError(
                f"No cell of {self.name} has {measure or self.spec.measure!r}. Known: {', '.join(measures)}."
            )
        self._store.note(self.name, "look", measure or self.spec.measure)
        clusters = {question["id"]: str(question["session"]) for question in self.questions if "session" in question}
        baseline = label(self.variants[0])
        return statistics.differences(scores, baseline, self.spec.smallest_difference, clusters)

    def compare(self, measure: str = "") -> pandas.DataFrame:
        """Return a row for each configuration: asked, scored, failed, the figure, and how it differs from the first."""
        import pandas

        measure = measure or self.spec.measure
        scores, apart, frame = self.scores(measure), self.differences(measure), self.to_frame()
        names = [label(variant) for variant in self.variants]
        configured = [label(json.loads(row["parameters"])) for row in self._store.cells(self.name)]
        rows = []
        for name in names:
            own = frame[[configuration == name for configuration in configured]]
            values, failed = scores[name].values(), own[own["status"] == "failed"]["question"].nunique()
            row = {
                "configuration": name,
                "asked": own["question"].nunique(),
                "scored": len(values),
                "failed": failed,
                measure: round(100 * sum(values) / len(values), 1) if values else None,
                "failures_as_0": round(100 * sum(values) / (len(values) + failed), 1) if values else None,
                "seconds": round(float(own["seconds"].mean()), 3),
                "tokens": own["tokens"].sum(),
            }
            if name in apart:
                row |= {"difference": apart[name].mean, "low": apart[name].low, "high": apart[name].high}
                row |= {"p": apart[name].p, "n_both": apart[name].n, "decision": apart[name].decision}
            rows.append(row)
        return pandas.DataFrame(rows)

    def flips(self, configuration: int = 1, measure: str = "") -> pandas.DataFrame:
        """Return the questions that turned between the first configuration and another, with both runs."""
        import pandas

        scores = self.scores(measure)
        names = [label(variant) for variant in self.variants]
        runs = {(row["configuration"], row["question"]): row["run_id"] for row in self._store.cells(self.name)}
        words = {question["id"]: question["question"] for question in self.questions}
        return pandas.DataFrame(
            [
                {
                    "question": words[question],
                    "change": change,
                    "first_run": runs[0, question],
                    "other_run": runs[configuration, question],
                }
                for question, change in statistics.flips(scores[names[configuration]], scores[names[0]])
            ],
            columns=["question", "change", "first_run", "other_run"],
        )

    def why(self, configuration: int = 0, measure: str = "", *, try_changes: bool = False) -> pandas.DataFrame:
        """Return where each wrong answer of a configuration lost what would have answered it.

        Args:
            configuration: by its number; 0 is the baseline.
            measure: an answer is wrong where it is below 1.
            try_changes: fork each run with wider limits where it lost its document, and say whether that was enough.

        Raises:
            WorkbenchError: a notebook or a graph answered.
        """
        import pandas

        from workbench.parts.evaluate.answers import gold_documents
        from workbench.parts.experiments.why import CHANGES, find_loss

        measure = measure or self.spec.measure
        questions, base = {row["id"]: row for row in self.questions}, self._wb.knowledge.get(self.spec.kb)
        rows = []
        for cell in self._store.cells(self.name):
            value = json.loads(cell["scores"] or "{}").get(measure, 1.0)
            if cell["configuration"] != configuration or cell["status"] != "done" or value >= 1:
                continue
            if self.spec.notebook or self._graph(json.loads(cell["parameters"])):
                raise WorkbenchError(f"Configuration {configuration} of {self.name} has no plan and no tape of ours.")
            question, run = questions[cell["question"]], self._wb.run(cell["run_id"])
            loss = find_loss(run, gold_documents(question), base)
            row = {"question": question["question"], "lost": loss.stage, "document": loss.document}
            row |= {"rank_by_words": loss.words, "rank_by_meaning": loss.meaning, "run_id": run.run_id}
            if try_changes and loss.stage in CHANGES:
                fork = run.fork(settings=CHANGES[loss.stage], wait=True)
                row["right_with_wider_limits"] = score(question, fork).get(measure, 0.0) >= 1
            rows.append(row)
        return pandas.DataFrame(rows)

    def figure(self, measure: str = "") -> Picture:
        """Draw each configuration: its figure against the seconds of a cell."""
        from workbench.parts.experiments.figures import quality_and_cost

        rows: list[Json] = [{str(k): v for k, v in row.items()} for row in self.compare(measure).to_dict("records")]
        return quality_and_cost(rows, measure or self.spec.measure, self.name)

    def report(self, path: str | Path) -> Path:
        """Write one HTML page: figures, differences, the questions that turned, looks, and how to run it again."""
        from markupsafe import Markup, escape

        def table(frame: pandas.DataFrame) -> Markup:
            return Markup(frame.to_html(escape=True, index=False, na_rep="", border=0))

        import pandas

        sections = [("Configurations", table(self.compare()))]
        sections += [
            (f"Turned: {label(variant)}", table(self.flips(number)))
            for number, variant in enumerate(self.variants[1:], start=1)
            if not self.spec.notebook
        ]
        sections += [("Cells", table(self.to_frame())), ("Looks and changes", table(pandas.DataFrame(self.looks)))]
        proof = self.proof(self.variants[0], self.questions[0], 0)
        sections.append(("What a cell depends on", table(pandas.DataFrame([proof]))))
        sections.append(("Specification", Markup("<pre>{}</pre>").format(self.spec.model_dump_json(indent=2))))
        body = Markup("").join(Markup("<h2>{}</h2>{}").format(title, inside) for title, inside in sections)
        text = _PAGE.format(name=escape(self.name), said=escape(repr(self).strip("<>")), body=body)
        return write_file(path, text.encode(), replace=True)

    @property
    def looks(self) -> list[Json]:
        """Return what was looked at, run again and changed, with times."""
        return self._store.looks(self.name)

    def __repr__(self) -> str:
        status = self.status()
        return (
            f"<Experiment {self.name!r}: {status['done']} of {status['cells']} cells done, {status['failed']} failed>"
        )

    def _repr_html_(self) -> str:
        from markupsafe import escape

        return f"<p>{escape(repr(self).strip('<>'))}</p>{self.compare().to_html(escape=True, index=False)}"


def _worker(path: Path, settings: Settings, name: str) -> None:
    """Run cells of an experiment in a process of its own."""
    from workbench.session import Workbench

    with Workbench.open(path, settings) as wb:
        wb.experiments.get(name).work()


def score(question: Json, run: Run | SimpleNamespace) -> Json:
    """Return the figures of one answer, 0 to 1; none where the question has no gold."""
    from workbench.parts.evaluate.answers import score_runs

    scores = score_runs([question], [run])
    return {measure: values[question["id"]] for measure, values in scores.items() if question["id"] in values}


def label(variant: Mapping[str, Any]) -> str:
    """Return a configuration as text.

    >>> label({"max_iterations": 2, "thresholds.min_evidence": 3})
    'max_iterations=2, thresholds.min_evidence=3'
    """
    return ", ".join(f"{name}={value}" for name, value in variant.items()) or "baseline"


def digest(value: Any) -> str:
    """Return 16 hex digits of a value's canonical JSON."""
    return hashlib.sha256(canonical_json(value).encode()).hexdigest()[:16]


@cache
def code_version() -> str:
    """Return a digest of the package's source: any change of it makes cells stale."""
    folder = Path(workbench.__file__).parent
    sources = hashlib.sha256()
    for path in sorted(folder.rglob("*.py")):
        sources.update(path.read_bytes())
    return sources.hexdigest()[:16]
