"""The cells of an experiment: a configuration, a question and a repeat, with the proof of what each depends on."""

from __future__ import annotations

import hashlib
import inspect
import json
import os
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import workbench
from workbench.errors import WorkbenchError
from workbench.graphs.reviewers import Reviewer, RuleReviewer
from workbench.parts.evaluate.questions import choose, read_rows
from workbench.parts.experiments import notebook
from workbench.parts.experiments.reviewers import ModelReviewer, ThresholdReviewer
from workbench.parts.experiments.spec import MOST_CELLS, Spec
from workbench.parts.experiments.store import ExperimentStore
from workbench.records.sqlite import Tables
from workbench.records.tape import digest
from workbench.runs.asking import RunOptions
from workbench.session import Workbench
from workbench.settings import all_settings, model_objects
from workbench.state import Data, Json
from workbench.text import to_json
from workbench.tools.registry import BUILT_IN

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
                "parameters": canonical_text(variant),
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
            if (text := canonical_text(part)) in self._checked:
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
            **{name: tool for name, tool in wb.tools.items() if name not in BUILT_IN},
            **wb._parts,
            **wb._handlers,
        }
        settings = wb.settings.model_dump(mode="json")
        text = canonical_text({**settings, **parameters})
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


def canonical_text(variant: Data) -> str:
    """Return a configuration as the JSON by which its cells are found."""
    return to_json(variant)


@cache
def code_version() -> str:
    """Return a digest of the package's source: any change of it makes cells stale."""
    folder = Path(workbench.__file__).parent
    sources = b"".join(path.read_bytes() for path in sorted(folder.rglob("*.py")))
    return hashlib.sha256(sources).hexdigest()[:16]
