"""The results of an experiment: tables, comparisons with an account of every look, and the page that travels."""

from __future__ import annotations

import hashlib
import inspect
import itertools
import json
import os
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from functools import cache, cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas

import workbench
from workbench.errors import WorkbenchError
from workbench.graphs.reviewers import Reviewer, RuleReviewer
from workbench.parts.evaluate.answers import gold_documents, score_runs
from workbench.parts.evaluate.questions import choose, read_rows
from workbench.parts.evaluate.why import find_loss, find_mend, hiddenness
from workbench.parts.experiments import notebook, statistics
from workbench.parts.experiments.people import (
    ModelReviewer,
    Pauses,
    ThresholdReviewer,
    play_both_ways,
)
from workbench.parts.experiments.spec import MOST_CELLS, Spec
from workbench.parts.experiments.statistics import Difference
from workbench.parts.experiments.store import ExperimentStore
from workbench.records.sqlite import Tables
from workbench.records.tape import digest
from workbench.records.writing import write_file
from workbench.runs.asking import RunOptions
from workbench.runs.run import Run
from workbench.session import Workbench
from workbench.settings import all_settings, model_objects
from workbench.state import Data, Json, drop, pick, unique
from workbench.text import to_json
from workbench.tools.registry import BUILT_IN

if TYPE_CHECKING:
    from workbench.views.figures.picture import Picture


_SET_ON_A_FORK = {"settings", "thresholds", "reviewer", "decisions", "review"}
"""What a run may have otherwise than the one from whose tape it is made."""
_OF_ORIGIN = ("models", "memory_", "summary_")
"""Settings that a fork would not heed: it keeps the models of its origin, and what that one remembered."""
_OPTIONS = sorted(set(RunOptions.model_fields) - {"incognito", "session", "settings"})
_ENVIRONMENT = re.compile(r"(WORKBENCH|MA|KB|OPENAI)_(?!.*(KEY|TOKEN|WORKSPACE)$).*")
"""Variables on which every cell depends: no keys, which may be renewed."""
_REVIEWERS = "never, rules, a list of decisions, {threshold: 0.8}, {model: NAME}"


class Cells:
    """What there is to do in an experiment.

    Attributes:
        name: of the experiment.
        spec: what is asked and what varies.
    """

    def __init__(self, wb: Workbench, tables: Tables, spec: Spec):
        self._wb = wb
        self.spec = spec
        self.name = spec.name
        self._store = ExperimentStore(tables, spec.name)
        self._graphs: Json = {}
        self._checked = set[str]()

    @cached_property
    def questions(self) -> list[Json]:
        """Return the questions, each with an ``id``; one without words for a notebook."""
        if self.spec.notebook:
            return [{"id": "notebook", "question": ""}]
        rows: Any = self.spec.questions
        if isinstance(rows, str):
            rows = read_rows(Path(rows), "id", "question")
        texts = [{"question": row} if isinstance(row, str) else dict(row) for row in rows]
        return choose(
            [{**row, "id": row.get("id") or str(n)} for n, row in enumerate(texts, 1)],
            None,
            self.spec.limit,
        )

    @cached_property
    def by_id(self) -> dict[str, Json]:
        """Return the questions by their ids."""
        return {question["id"]: question for question in self.questions}

    @property
    def variants(self) -> list[Json]:
        """Return the configurations: what varies, the baseline first, those that were added while it ran last."""
        planned = self.spec.variants()
        return planned + [variant for variant in self._store.steered() if variant not in planned]

    @property
    def labels(self) -> list[str]:
        """Return the configurations as texts."""
        return list(map(label, self.variants))

    def cells(self) -> list[Json]:
        """Return the cells, each with its proof.

        Raises:
            WorkbenchError: a parameter is unknown or has a value that it may not have: it names the key and its line.
        """
        variants = self.variants
        if len(variants) * len(self.questions) * self.spec.repeats > MOST_CELLS:
            raise WorkbenchError(
                f"{self.spec.locate(('grid',))}grid: this is more than {MOST_CELLS:,} runs."
            )
        self._check(self.spec.base, "base")
        for number, variant in enumerate(variants):
            self._check(
                variant, *(("configurations", number) if self.spec.configurations else ("grid",))
            )
        return [
            {
                "cell": digest([variant, question["id"], repeat]),
                "configuration": number,
                "parameters": to_json(variant),
                "question": question["id"],
                "repeat": repeat,
                "proof": json.dumps(self.proof(variant, question, repeat)),
            }
            for question in self.questions
            for repeat in range(self.spec.repeats)
            for number, variant in enumerate(variants)
        ]

    def _check(self, variant: Json, *place: str | int) -> None:
        """Check a configuration, each of its parameters alone first, so that the one at fault is named."""
        alone = [
            {name: value}
            for name, value in variant.items()
            if "graph" not in variant or self.spec.notebook
        ]
        for part in [*alone, variant]:
            if (text := to_json(part)) in self._checked:
                continue
            self._checked.add(text)
            with self._at(*place, *list(part)[:1]):
                if self.spec.notebook:
                    notebook.checked(self.spec.notebook, part)
                elif not self._graph(part):
                    self.options(part)

    @contextmanager
    def _at(self, *place: str | int) -> Iterator[None]:
        """Name key and line of what is wrong."""
        try:
            yield
        except (WorkbenchError, ValueError, OSError, ImportError) as error:
            raise WorkbenchError(
                f"{self.spec.locate(place)}{'.'.join(map(str, place))}: {error}"
            ) from None

    def proof(self, variant: Json, question: Json, repeat: int) -> Json:
        """Return digests of everything that a cell depends on, by part."""
        wb = self._wb
        spec = self.spec
        parameters = {**self.spec.base, **variant}
        whose = str(parameters.get("user", ""))
        used = {name: value for name, value in os.environ.items() if _ENVIRONMENT.fullmatch(name)}
        memories = wb.memory.view(whose).memories if whose and not spec.notebook else []
        own = {
            **drop(wb.tools, *BUILT_IN),
            **wb._parts,
            **wb._handlers,
        }
        settings = wb.settings.model_dump(mode="json")
        text = to_json({**settings, **parameters})
        objects = {name: model for name, model in model_objects().items() if name in text}
        graph = self._graph(variant)
        parts = {
            "code": code_version(),
            "corpus": "" if spec.notebook else wb.knowledge.get(spec.kb).fingerprint(),
            "settings": settings,
            "prompts": wb.prompts.own(),
            "tools": [sorted(wb.tools), {name: _source(part) for name, part in own.items()}],
            "models": {
                name: str(getattr(model, "_identifying_params", ""))
                for name, model in objects.items()
            },
            "memory": sorted([row["section"], row["content"]] for row in memories),
            "environment": used,
            "parameters": [parameters, spec.kb],
            "reviewer": spec.reviewer,
            "question": question,
            "graph": graph and graph.version,
            "notebook": spec.notebook and Path(spec.notebook).read_text("utf-8"),
            "repeat": repeat,
        }
        return {part: digest(value) for part, value in parts.items()}

    def shared(self, variant: Json) -> str:
        """Return a digest of all in a configuration that runs which share a tape must have in common."""
        settings = {
            name for name in all_settings().model_fields if not name.startswith(_OF_ORIGIN)
        }
        apart = {**self.spec.base, **variant}
        for name in list(apart):
            if name.removeprefix("settings.").partition(".")[0] in settings | _SET_ON_A_FORK:
                del apart[name]
        return digest(apart)

    def stale(self, cells: Sequence[Json]) -> dict[str, int]:
        """Return how many cells that had ended must run again, by the part of their proof that has changed."""
        before = {
            row["cell"]: json.loads(row["proof"]) for row in self._store.cells() if row["scores"]
        }
        return Counter(
            part
            for cell in cells
            for part, value in json.loads(cell["proof"]).items()
            if before.get(cell["cell"], {}).get(part, value) != value
        )

    def options(self, variant: Json) -> Json:
        """Return the options of a question in a configuration, with settings and thresholds in their groups.

        Raises:
            WorkbenchError: a parameter is unknown, or has a value that it may not have.
        """
        options: Json = {"kb": self.spec.kb, "settings": {}, "thresholds": {}}
        for name, value in {"reviewer": self.spec.reviewer, **self.spec.base, **variant}.items():
            group, _, inner = name.partition(".")
            if inner and group in ("settings", "thresholds"):
                options[group][inner] = value
            elif name == "reviewer":
                options |= self._reviewing(value)
            elif name in all_settings().model_fields:
                options["settings"][name] = value
            elif name in _OPTIONS:
                options[name] = value
            else:
                close = get_close_matches(name, [*all_settings().model_fields, *_OPTIONS])
                raise WorkbenchError(
                    f"{name!r} is neither a setting nor an option of a question. "
                    f"{f'Did you mean {close[0]!r}? ' if close else ''}"
                    f"Options: {', '.join(_OPTIONS)}; thresholds.min_evidence, thresholds.min_top_score."
                )
        RunOptions.read(self._wb, options)
        return options

    def _reviewing(self, value: Any) -> Json:
        """Return the options for review points: never, the rules, recorded decisions, a threshold, or a model."""
        match value:
            case "never":
                return {}
            case [*decisions]:
                points = {decision["point"] for decision in decisions if "point" in decision}
                return {"decisions": decisions, "review": sorted(points)}
            case "rules":
                reviewer: Reviewer = RuleReviewer()
            case {"threshold": limit, **rest} if not rest:
                reviewer = ThresholdReviewer(float(limit))
            case {"model": name, **rest} if not rest:
                reviewer = ModelReviewer(self._wb.settings, str(name))
            case _:
                raise WorkbenchError(f"reviewer is {value!r}. Known: {_REVIEWERS}.")
        return {"reviewer": reviewer, "review": ["reflect"]}

    def _graph(self, variant: Json) -> Any:
        """Return the recorded graph that answers in this configuration; None where the workbench or a notebook does.

        Raises:
            WorkbenchError: it has other parameters, which the graph would not hear of.
        """
        name = "" if self.spec.notebook else str(variant.get("graph", ""))
        if not name:
            return None
        if ignored := sorted(set(variant) - {"graph", "field"}):
            raise WorkbenchError(
                f"{self.name}: a graph takes no {ignored[0]!r}. Its parameters: graph, field."
            )
        if name not in self._graphs:
            self._graphs[name] = (
                self._wb.agent(self.spec.kb) if name == "agent" else self._wb.record(name)
            )
        return self._graphs[name]


def _source(part: Any) -> str:
    """Return the source of a registered part, or of its class."""
    target = inspect.unwrap(getattr(part, "function", part))
    target = target if inspect.isroutine(target) else type(target)
    try:
        return inspect.getsource(target)
    except (OSError, TypeError):  # it was typed into a console
        return repr(getattr(getattr(target, "__code__", None), "co_code", target.__qualname__))


def label(variant: Data) -> str:
    """Return a configuration as text.

    >>> label({"max_iterations": 2, "thresholds.min_evidence": 3})
    'max_iterations=2, thresholds.min_evidence=3'
    """
    return ", ".join(f"{name}={value!r}" for name, value in variant.items()) or "baseline"


@cache
def code_version() -> str:
    """Return a digest of the package's source: any change of it makes cells stale."""
    folder = Path(workbench.__file__).parent
    sources = b"".join(path.read_bytes() for path in sorted(folder.rglob("*.py")))
    return hashlib.sha256(sources).hexdigest()[:16]


_PAGE = Path(__file__).with_name("page.html")
_PLAN = ("hypothesis", "measure", "smallest_difference", "limit", "repeats", "budget")
_CHOSEN = "not decided: it was chosen by these questions, compare it on others"
_COLUMNS = ("seconds", "tokens", "money", "executed", "replayed", "run_id", "error")


class Results(Cells):
    """What came of the cells of an experiment."""

    def keep_plan(self) -> None:
        """Keep the specification; what is changed of the plan after the first look is noted."""
        now = self.spec.model_dump(mode="json")
        before = self._store.experiment()["spec"] if self._details("look") else now
        for name in _PLAN:
            if before[name] != now[name]:
                self._store.note(
                    "plan", f"{name} was {before[name]!r}, after a look {now[name]!r}"
                )
        self._store.save_spec(now)

    def status(self) -> Json:
        """Return how many cells wait, run, are done, failed or dropped, and what was shared between them."""
        totals = self._store.totals()
        state = self._store.experiment()["state"]
        owners = (totals.pop("owners") or "").split(",")
        if not totals["waiting"] + totals["running"]:
            state = "done"
        elif state == "running" and not any(map(self._wb._work.lease.alive, owners)):
            state = "idle"
        points = round(statistics.detectable(len(self.questions), len(self.variants) - 1), 1)
        return {"experiment": self.name, "state": state, **totals, "detectable_points": points}

    def _cells(self, *statuses: str) -> list[Json]:
        """Return the cells that have one of these statuses."""
        return [row for row in self._store.cells() if row["status"] in statuses]

    def to_frame(self) -> pandas.DataFrame:
        """Return a row for each cell: parameters, question, scores, seconds, tokens, and its run."""
        rows = [
            {
                **row["parameters"],
                "question": row["question"],
                "repeat": row["repeat"],
                "status": row["status"],
                **(row["scores"] or {}),
                **pick(row, *_COLUMNS),
            }
            for row in self._store.cells()
        ]
        return pandas.DataFrame(rows)

    def scores(self, measure: str = "", over_repeats: str = "mean") -> pandas.DataFrame:
        """Return the scores of finished cells, a row for each question and a column for each configuration."""
        rows = self._store.values(measure or self.spec.measure)
        frame = pandas.DataFrame(rows, columns=["configuration", "question", "value"])
        values = frame.groupby(["question", "configuration"])["value"].agg(over_repeats).unstack()
        return (
            values.reindex(list(self.by_id), columns=range(len(self.variants)))
            .astype(float)
            .set_axis(self.labels, axis=1)
        )

    def differences(self, measure: str = "") -> dict[str, Difference]:
        """Compare every configuration with the first one; the look is noted, with what it may spend of the error.

        While cells are still to run, what is returned is valid at whatever moment one looks.

        Raises:
            WorkbenchError: no cell has this measure.
        """
        measure = measure or self.spec.measure
        table = self.scores(measure)
        if not table.count().any():
            measures = ", ".join(self._store.measures()) or "none yet"
            raise WorkbenchError(f"No cell of {self.name} has {measure!r}. Known: {measures}.")
        clusters = {
            row["id"]: str(row.get("session", gold_documents(row) or row["id"]))
            for row in self.questions
        }
        rest = self.labels[0], self.spec.smallest_difference, clusters
        # of those before the first open one the order is no choice
        if unfinished := self._store.unfinished():
            still_open = {clusters[question] for question in unfinished}
            ended = list(
                itertools.takewhile(
                    lambda question: clusters[question] not in still_open, clusters
                )
            )
            self._store.note("live look", f"{measure}, {len(ended)} questions")
            return statistics.live_differences(
                {name: table[name].loc[ended] for name in self.labels}, *rest
            )
        seen = f"{measure}, results {digest(table.to_csv())}"
        self._store.note("look", seen)
        error = statistics.error_of_look(unique(self._details("look")).index(seen))
        apart = statistics.differences({name: table[name] for name in self.labels}, *rest, error)
        # chosen for their figures on these questions, so that these claim nothing
        if self.spec.optuna:
            return {name: result._replace(decision=_CHOSEN) for name, result in apart.items()}
        return apart

    def error_budget(self) -> Json:
        """Return how many looks there were, and what of the error they have spent and what the next new one may."""
        looks = self._details("look")
        live = self._details("live look")
        *before, following = map(statistics.error_of_look, range(len(set(looks)) + 1))
        spent = round(sum(before) + statistics.ERROR * statistics.LIVE * bool(live), 4)
        counts = {"looks": len(looks), "distinct": len(before), "live": len(live)}
        return {"error": statistics.ERROR, "spent": spent, "next": round(following, 4), **counts}

    def _details(self, what: str) -> list[str]:
        return [look["detail"] for look in self.looks if look["what"] == what]

    def compare(self, measure: str = "") -> pandas.DataFrame:
        """Return a row for each configuration: asked, scored, failed, the figure, and how it differs from the first."""
        measure = measure or self.spec.measure
        table = pandas.DataFrame(self._store.summary())
        apart = {name: result._asdict() for name, result in self.differences(measure).items()}
        means = self.scores(measure)
        variances = self.scores(measure, "var")
        table["configuration"] = self.labels
        each = means.agg(["count", "mean", "sum"]).T.set_axis(table.index)
        table.insert(2, "scored", each["count"].astype(int))
        table[measure] = (100 * each["mean"]).round(1)
        table["failures_as_0"] = (100 * each["sum"] / (table["scored"] + table["failed"])).round(
            1
        )
        table["over_questions"] = (100 * means.std(ddof=0).to_numpy()).round(1)
        table["over_repeats"] = (100 * variances.mean().to_numpy() ** 0.5).round(1)
        if not apart:
            return table
        columns = {"mean": "difference", "n": "n_both"}
        pairs = (
            pandas.DataFrame.from_dict(apart, orient="index")
            .rename(columns=columns)
            .astype({"n_both": "Int64"})
        )
        return table.join(pairs, on="configuration")

    def flips(self, configuration: int = 1) -> pandas.DataFrame:
        """Return the questions that turned between the first configuration and another: both runs, and where they part.

        Losses stand first.
        """
        table = self.pair(configuration)
        runs = {
            (row["configuration"], row["question"]): row["run_id"] for row in self._cells("done")
        }
        rows = []
        for question, change in table.diff(axis=1).iloc[:, 1].sort_values(kind="stable").items():
            if change:
                pair = runs[0, question], runs[configuration, question]
                ours = all(run_id in self._wb.runs for run_id in pair)
                parts = self._wb.compare(*pair).parts if ours else None
                rows.append(
                    [
                        self.by_id[str(question)]["question"],
                        change,
                        f"{parts['where']} {parts['name']}" if parts else "",
                        *pair,
                    ]
                )
        return pandas.DataFrame(
            rows, columns=["question", "change", "parted", "first_run", "other_run"]
        )

    def pair(self, configuration: int) -> pandas.DataFrame:
        """Return the scores of the first configuration and another, on the questions that both finished."""
        return self.scores().iloc[:, [0, configuration]].dropna()

    def why(self, configuration: int = 0, *, fix: bool = False) -> pandas.DataFrame:
        """Return where each wrong answer of a configuration, below 1, lost what would have answered it.

        Args:
            configuration: by its number; 0 is the baseline.
            fix: fork each run until the smallest change is found that makes its answer right.

        Raises:
            WorkbenchError: a notebook or a graph answered.
        """
        measure = self.spec.measure
        base = self._wb.knowledge.get(self.spec.kb)
        rows = []
        for cell, question, run in self.runs(configuration):
            if (cell["scores"] or {}).get(measure, 1.0) >= 1:
                continue
            gold = gold_documents(question)
            loss = find_loss(run, gold, base)
            row = {
                "question": question["question"],
                **loss._asdict(),
                "run_id": run.run_id,
            }
            if fix:
                is_right = partial(_is_right, question, measure)
                row["mended_by"], row["mended_run"] = find_mend(run, loss, gold, base, is_right)
            rows.append(row)
        return pandas.DataFrame(rows)

    def runs(self, configuration: int) -> list[tuple[Json, Json, Run]]:
        """Return the finished cells of a configuration, each with its question and its run."""
        if self.spec.notebook or self._graph(self.variants[configuration]):
            raise WorkbenchError(
                f"Configuration {configuration} of {self.name} has no plan and no tape of ours."
            )
        done = [cell for cell in self._cells("done") if cell["configuration"] == configuration]
        return [
            (cell, self.by_id[cell["question"]], self._wb.run(cell["run_id"])) for cell in done
        ]

    def pauses(self, configuration: int = 0) -> Pauses:
        """Play every point at which a person decided, or could have, both ways from the tape, and score both.

        Raises:
            WorkbenchError: a notebook or a graph answered.
        """
        rows = Pauses()
        for cell, question, run in self.runs(configuration):
            if cell["repeat"] == 0:
                rows += play_both_ways(run, partial(score, question), self.spec.measure)
        return rows

    def figure(self, kind: str = "cost", configuration: int = 1) -> Picture:
        """Draw the configurations.

        Args:
            kind: ``cost``: quality against seconds, with the front that none beats; ``hidden``: how each question
                turned, by how hidden its gold documents are.
            configuration: the other one of ``hidden``.

        Raises:
            WorkbenchError: there is no such kind.
        """
        from workbench.parts.experiments.figures import KINDS
        from workbench.views.figures.picture import picture

        if kind not in KINDS:
            raise WorkbenchError(f"No figure {kind!r}. Known: {', '.join(KINDS)}.")
        table, traces, under, axes = KINDS[kind](self, configuration)
        rows: Any = table.to_dict("records")
        return picture(rows, traces, self.name, under, 440, **axes)

    def hidden(self, configuration: int) -> pandas.DataFrame:
        """Return how ``hidden`` the gold documents of each question are, and the ``change`` of its score."""
        base = self._wb.knowledge.get(self.spec.kb)
        gold = {row["id"]: gold_documents(row) for row in self.questions}
        hidden = {
            name: hiddenness(self.by_id[name]["question"], documents, base)
            for name, documents in gold.items()
            if documents
        }
        change = self.pair(configuration).diff(axis=1).iloc[:, 1]
        return pandas.DataFrame(
            {"hidden": pandas.Series(hidden, dtype=float), "change": change}
        ).dropna()

    def report(self, path: str | Path, pauses: Sequence[Json] = ()) -> Path:
        """Write one HTML page: figures, differences, the questions that turned, looks, and how to run it again.

        In the page a reader moves the smallest difference, counts failures as wrong or not, and, with ``pauses``, moves
        the threshold from which on a reviewer acts alone or turns single decisions round; tables and intervals follow.
        """
        from jinja2 import Environment

        tables = {"Configurations": self.compare()}
        if not self.spec.notebook:
            tables |= {
                f"Turned: {name}": self.flips(n) for n, name in enumerate(self.labels) if n
            }
        tables |= {"Cells": self.to_frame(), "Looks and changes": pandas.DataFrame(self.looks)}
        tables["What a cell depends on"] = pandas.DataFrame(
            [self.proof(self.variants[0], self.questions[0], 0)]
        )
        labels = self.labels
        data = {
            "scores": {name: values.dropna().to_dict() for name, values in self.scores().items()},
            "failed": [
                [labels[row["configuration"]], row["question"]] for row in self._cells("failed")
            ],
            "pauses": list(pauses),
            "smallest": self.spec.smallest_difference,
            "baseline": labels[0],
            "error": statistics.ERROR,
        }
        page = Environment(autoescape=True).from_string(_PAGE.read_text("utf-8"))
        text = page.render(experiment=self, tables=tables, data=data)
        return write_file(path, text.encode(), replace=True)

    @property
    def looks(self) -> list[Json]:
        """Return what was looked at, run again and changed, with times."""
        return self._store.looks()

    def __repr__(self) -> str:
        status = self.status()
        done = f"{status['done']} of {status['cells']} cells done"
        return f"<Experiment {self.name!r}: {done}, {status['failed']} failed>"


def _is_right(question: Json, measure: str, run: Run) -> bool:
    return run.status == "done" and score(question, run).get(measure, 0.0) >= 1


def score(question: Json, run: Any) -> Json:
    """Return the figures of one answer, 0 to 1; none where the question has no gold."""
    scores = score_runs([question], [run])
    return {measure: values[question["id"]] for measure, values in scores.items()}
