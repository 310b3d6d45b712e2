"""The results of an experiment: tables, comparisons with an account of every look, and the page that travels."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas

from workbench.errors import WorkbenchError
from workbench.parts.evaluate.answers import gold_documents, score_runs
from workbench.parts.evaluate.why import find_loss, find_mend, hiddenness
from workbench.parts.experiments import statistics
from workbench.parts.experiments.cells import Cells
from workbench.parts.experiments.people import Pauses, play_both_ways
from workbench.parts.experiments.statistics import Difference
from workbench.records.tape import digest
from workbench.records.writing import write_file
from workbench.runs.run import Run
from workbench.state import Json

if TYPE_CHECKING:
    from workbench.views.figures.picture import Picture

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
                **{name: row[name] for name in _COLUMNS},
            }
            for row in self._store.cells()
        ]
        return pandas.DataFrame(rows)

    def calls(self) -> pandas.DataFrame:
        """Return a row for each call of a planner, tool, model or handler in each cell, from the tapes."""
        names = ("kind", "name", "seconds", "tokens", "replayed")
        return pandas.DataFrame(
            {
                **row["parameters"],
                **{name: row[name] for name in ("question", "repeat", "run_id")},
                **{name: getattr(effect, name) for name in names},
            }
            for row in self._store.cells()
            if row["executed"] is not None and row["run_id"] in self._wb.runs
            for effect in self._wb.run(row["run_id"]).tape()
        )

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
        error = statistics.error_of_look(list(dict.fromkeys(self._details("look"))).index(seen))
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
        table = self._pair(configuration)
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

    def _pair(self, configuration: int) -> pandas.DataFrame:
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
            kind: ``cost``: quality against seconds, with the front that none beats; ``parallel``: parameters and
                figure of each; ``questions``: each question in the first configuration and another; ``hidden``: how it
                turned, by how hidden its gold documents are.
            configuration: the other one of ``questions`` and ``hidden``.

        Raises:
            WorkbenchError: there is no such kind.
        """
        from workbench.parts.experiments import figures

        measure = self.spec.measure
        name = self.name
        if kind in ("questions", "hidden"):
            table = self._pair(configuration)
            if kind == "questions":
                return figures.by_question(table, name)
            base = self._wb.knowledge.get(self.spec.kb)
            gold = {
                row["id"]: (row["question"], gold_documents(row), base) for row in self.questions
            }
            hidden = pandas.Series(
                {name: hiddenness(*rest) for name, rest in gold.items() if rest[1]}, dtype=float
            )
            change = table.diff(axis=1).iloc[:, 1]
            return figures.by_hiddenness(
                pandas.DataFrame({"hidden": hidden, "change": change}).dropna(), name
            )
        draws = {"cost": figures.quality_and_cost, "parallel": figures.parallel}
        if kind not in draws:
            raise WorkbenchError(
                f"No figure {kind!r}. Known: {', '.join(draws)}, questions, hidden."
            )
        return draws[kind](self.compare(), self.variants, measure, name)

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
    return {
        measure: values[question["id"]]
        for measure, values in scores.items()
        if question["id"] in values
    }
