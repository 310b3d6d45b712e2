"""An experiment as a YAML file: what is asked, what varies, how it is judged; checked before anything runs."""

from __future__ import annotations

import itertools
import json
import math
import random
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from workbench.errors import WorkbenchError
from workbench.state import Json

MOST_CELLS = 100_000
"""Runs that one experiment may have."""


class Random(BaseModel):
    """Draw configurations from the grid instead of running all of it."""

    model_config = ConfigDict(extra="forbid")

    n: Annotated[int, Field(ge=1)]
    seed: int = 1


class Budget(BaseModel):
    """What the experiment may take; it stops before the run that would begin beyond it, and can be continued."""

    model_config = ConfigDict(extra="forbid")

    seconds: Annotated[float, Field(gt=0)] | None = None
    tokens: Annotated[int, Field(gt=0)] | None = None


class Spec(BaseModel):
    """An experiment.

    A parameter of the grid is a setting (``merge_max_results``), an option of a question (``worker``), a threshold
    (``thresholds.min_evidence``), or with ``notebook`` a name in its cell of parameters. ``graph`` lets a
    recorded graph answer: ``agent``, or ``MODULE:GRAPH`` with the ``field`` of its state that takes the question (by
    default it is what the user says).
    """

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)

    name: Annotated[str, Field(pattern=r"^[\w-]{1,60}$")]
    """Of the experiment: letters, digits, ``_`` and ``-``."""
    notebook: str = ""
    """A parametrised notebook that is executed for each configuration, relative to the file."""
    questions: str | list[str | Json] = ""
    """A JSON Lines file with ``id``, ``question`` and gold, relative to the file; or the questions themselves."""
    limit: Annotated[int, Field(ge=1)] | None = None
    """Ask so many of them, evenly drawn."""
    kb: str = ""
    """The knowledge base that is asked."""
    base: Json = {}
    """Parameters that all configurations share."""
    grid: dict[str, list[Any]] = {}
    """Values of each parameter; every combination is a configuration, the first value of each the baseline."""
    configurations: list[Json] = []
    """Configurations one by one instead of a grid; the first is the baseline."""
    random: Random | None = None
    """Draw from the grid."""
    repeats: Annotated[int, Field(ge=1, le=1000)] = 1
    """How often each configuration answers each question."""
    reviewer: Literal["never", "rules"] | list[Json] = "never"
    """Who answers at review points: nothing is asked, the rules, or these recorded decisions."""
    measure: str = "right"
    """The figure that decides."""
    smallest_difference: Annotated[float, Field(gt=0, le=100)] = 5.0
    """Points that would matter; smaller differences count as none."""
    budget: Budget = Budget()
    """What it may take."""

    @model_validator(mode="after")
    def _check(self) -> Spec:
        if bool(self.notebook) == bool(self.questions):
            raise ValueError("name either questions or a notebook")
        if self.grid and self.configurations:
            raise ValueError("give a grid or configurations, not both")
        if empty := [name for name, values in self.grid.items() if not values]:
            raise ValueError(f"grid.{empty[0]} has no values")
        if math.prod(map(len, self.grid.values())) > MOST_CELLS and not self.random:
            raise ValueError(f"the grid has more than {MOST_CELLS:,} configurations; draw some with random: {{n: 100}}")
        return self

    def variants(self) -> list[Json]:
        """Return the configurations, the baseline first."""
        if self.configurations:
            return [dict(configuration) for configuration in self.configurations]
        names = list(self.grid)
        if self.random is None:
            return [dict(zip(names, values, strict=True)) for values in itertools.product(*self.grid.values())]
        return list(self._drawn(names))

    def _drawn(self, names: list[str]) -> Iterator[Json]:
        assert self.random is not None
        size = math.prod(map(len, self.grid.values()))
        rest = range(1, size)
        places = [0, *random.Random(self.random.seed).sample(rest, min(self.random.n - 1, len(rest)))]
        for place in places:
            configuration = {}
            for name in reversed(names):
                place, index = divmod(place, len(self.grid[name]))
                configuration[name] = self.grid[name][index]
            yield {name: configuration[name] for name in names}


def load_spec(path: str | Path) -> Spec:
    """Read an experiment from a YAML file; paths in it become absolute.

    Raises:
        WorkbenchError: names the line and the key.
    """
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8")
        tree, data = yaml.compose(text, yaml.SafeLoader), yaml.safe_load(text)
    except OSError as error:
        raise WorkbenchError(f"{path} cannot be read: {error.strerror}.") from None
    except yaml.YAMLError as error:
        raise WorkbenchError(f"{path} is no YAML: {error}") from None
    if not isinstance(data, Mapping):
        raise WorkbenchError(f"{path} holds no experiment. It needs at least `name`, `questions` and `grid`.")
    for key in ("notebook", "questions"):
        if isinstance(data.get(key), str) and data[key]:
            data = {**data, key: str((path.parent / data[key]).resolve())}
            if not Path(data[key]).is_file():
                raise WorkbenchError(f"{path}:{_line(tree, (key,))}: {key}: {data[key]} does not exist.")
    return check_spec(data, lambda place: f"{path}:{_line(tree, place)}: ")


def check_spec(data: Mapping[str, Any], locate: Callable[[tuple[Any, ...]], str] = lambda _: "") -> Spec:
    """Return an experiment.

    Args:
        data: what its file would hold.
        locate: says where a key stands, for messages.

    Raises:
        WorkbenchError: names the key.
    """
    try:
        return Spec.model_validate(dict(data))
    except ValidationError as error:
        fault = error.errors()[0]
        key = ".".join(map(str, fault["loc"]))
        message = fault["msg"].removeprefix("Value error, ") + "."
        if fault["type"] == "extra_forbidden":
            message += f" Known: {', '.join(Spec.model_fields)}."
        raise WorkbenchError(f"{locate(fault['loc'])}{key + ': ' if key else ''}{message}") from None


def _line(node: Any, place: tuple[Any, ...]) -> int:
    """Return the line of a key in a YAML tree, or of the nearest one above it."""
    line: int = node.start_mark.line + 1
    for name in place:
        children = getattr(node, "value", ())
        if isinstance(node, yaml.MappingNode):
            pair = next(((key, child) for key, child in children if key.value == str(name)), None)
        elif isinstance(node, yaml.SequenceNode) and isinstance(name, int) and name < len(children):
            pair = (children[name], children[name])
        else:
            pair = None
        if pair is None:
            break
        line, node = pair[0].start_mark.line + 1, pair[1]
    return line


if __name__ == "__main__":  # python -m workbench.parts.experiments.spec > experiments/experiment.schema.json
    sys.stdout.write(json.dumps(Spec.model_json_schema(), indent=1) + "\n")
