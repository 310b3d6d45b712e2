"""An experiment as a YAML file: what is asked, what varies, how it is judged; checked before anything runs."""

from __future__ import annotations

import itertools
import json
import math
import random
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import BaseModel, Field, PrivateAttr, ValidationError

from workbench.errors import WorkbenchError, shown
from workbench.plans import canonical_json
from workbench.state import Data, Json

MOST_CELLS = 100_000
"""Runs that one experiment may have."""
MEASURES = (
    "right",
    "EM",
    "F1",
    "holds",
    "R@5",
    "precision",
    "recall",
    "refused",
    "wrongly refused",
)
"""Figures of answers to questions."""
Place = tuple[Any, ...]
Locate = Callable[[Place], str]


class Strict(BaseModel, extra="forbid", use_attribute_docstrings=True):
    """A part of an experiment: it has no other keys."""


class Random(Strict):
    """Draw configurations from the grid instead of running all of it."""

    n: Annotated[int, Field(ge=1, le=MOST_CELLS)]
    seed: int = 1


class Budget(Strict):
    """What the experiment may take; it stops before the run that would begin beyond it, and can be continued."""

    seconds: Annotated[float, Field(gt=0)] | None = None
    tokens: Annotated[int, Field(gt=0)] | None = None
    money: Annotated[float, Field(gt=0)] | None = None


class Question(BaseModel, extra="allow", use_attribute_docstrings=True):
    """A question of the file, with what a right answer says and cites."""

    id: str = ""
    """Its number where it has none."""
    question: str
    """Its words."""


class Spec(Strict):
    """An experiment.

    A parameter of the grid is a setting (``merge_max_results``), an option of a question (``worker``), a threshold
    (``thresholds.min_evidence``), ``reviewer``, or with ``notebook`` a name in its
    cell of parameters. ``graph`` lets a recorded graph answer: ``agent``, or ``MODULE:GRAPH`` with the ``field`` of its
    state that takes the question (by default it is what the user says).
    """

    name: Annotated[str, Field(pattern=r"^[\w-]{1,60}$")]
    """Of the experiment: letters, digits, ``_`` and ``-``."""
    notebook: str = ""
    """A parametrised notebook that is executed for each configuration, relative to the file."""
    questions: str | list[str | Question] = ""
    """A JSON Lines file with ``id``, ``question`` and gold, relative to the file; or the questions themselves."""
    limit: Annotated[int, Field(ge=1)] | None = None
    """Ask so many of them, evenly drawn."""
    kb: str = ""
    """The knowledge base that is asked."""
    base: Json = {}
    """Parameters that all configurations share."""
    grid: dict[str, Annotated[list[Any], Field(min_length=1)]] = {}
    """Values of each parameter; every combination is a configuration, the first value of each the baseline."""
    configurations: list[Json] = []
    """Configurations one by one instead of a grid; the first is the baseline."""
    random: Random | None = None
    """Draw from the grid."""
    optuna: Random | None = None
    """Let Optuna choose from the grid, by the measure of what has run."""
    repeats: Annotated[int, Field(ge=1, le=1000)] = 1
    """How often each configuration answers each question."""
    reviewer: (
        Literal["never", "rules"] | list[Json] | dict[Literal["threshold", "model"], float | str]
    ) = "never"
    """Who answers at review points: nothing is asked, the rules, these recorded decisions, ``{threshold: 0.8}`` (acts
    alone from that margin on, else searches on), or ``{model: NAME}``."""
    hypothesis: str = ""
    """What is expected, written down before the first look."""
    measure: str = "right"
    """The figure that decides."""
    smallest_difference: Annotated[float, Field(gt=0, le=100)] = 5.0
    """Points that would matter; smaller differences count as none."""
    budget: Budget = Budget()
    """What it may take."""
    _locate: Locate | None = PrivateAttr(None)

    def locate(self, place: Place) -> str:
        """Return the place of a key in the file that was read, to begin a message with."""
        return self._locate(place) if self._locate else ""

    def faults(self) -> Iterator[tuple[Place, str]]:
        """Yield what is wrong with the specification as a whole, each with its key."""
        if bool(self.notebook) == bool(self.questions):
            yield ("name",), "name either questions or a notebook."
        if self.grid and self.configurations:
            yield ("grid",), "give a grid or configurations, not both."
        if (self.random and self.optuna) or not (self.grid or self.random is self.optuna):
            yield ("random",), "either random or optuna draws from a grid."
        if self.size > MOST_CELLS and not self.random and not self.optuna:
            yield (
                ("grid",),
                f"the grid has more than {MOST_CELLS:,} configurations; draw some with random: {{n: 100}}.",
            )
        for name, values in [*self.grid.items(), ("configurations", self.configurations)]:
            if len(set(map(canonical_json, values))) < len(values):
                yield (
                    ("grid", name) if name in self.grid else (name,),
                    f"{name} has a value twice.",
                )
        if self.questions and self.measure not in MEASURES:
            yield (
                ("measure",),
                f"measure {self.measure!r} is not one. Known: {', '.join(MEASURES)}.",
            )

    @property
    def size(self) -> int:
        """Return how many configurations the grid has."""
        return math.prod(map(len, self.grid.values()))

    def variants(self) -> list[Json]:
        """Return the configurations, the baseline first; of a search by Optuna only the baseline."""
        if self.configurations:
            return [dict(configuration) for configuration in self.configurations]
        if self.random or self.optuna:
            return self._drawn(self.random or Random(n=1))
        return [
            dict(zip(self.grid, values, strict=True))
            for values in itertools.product(*self.grid.values())
        ]

    def _drawn(self, drawing: Random) -> list[Json]:
        generator = random.Random(drawing.seed)
        drawn = dict[str, Json]()
        variant = {name: values[0] for name, values in self.grid.items()}
        while len(drawn) < min(drawing.n, self.size):  # more draws only add to those of fewer
            drawn.setdefault(canonical_json(variant), variant)
            variant = {name: generator.choice(values) for name, values in self.grid.items()}
        return list(drawn.values())


def load_spec(path: str | Path) -> Spec:
    """Read an experiment from a YAML file; paths in it become absolute.

    ``include: FILE`` takes the keys of another file, under those of this one.

    Raises:
        WorkbenchError: names the line and the key.
    """
    tree = _read(Path(path).resolve(), ())
    try:
        data = {
            str(name): value
            for name, value in yaml.SafeLoader("").construct_document(tree).items()
        }
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise WorkbenchError(f"{path} is no YAML: {error}") from None

    marks = _marks(tree)

    def locate(place: Place) -> str:
        above = (tuple(map(str, place[:depth])) for depth in range(len(place), -1, -1))
        return next(marks[key] for key in above if key in marks)

    for key in ("notebook", "questions"):
        if isinstance(name := data.get(key), str) and name:
            where = locate((key,))
            file = (Path(where.rpartition(":")[0].rpartition(":")[0]).parent / name).resolve()
            if not file.is_file():
                raise WorkbenchError(f"{where}{key}: {file} does not exist.")
            data[key] = str(file)
    return check_spec(data, locate)


def _read(path: Path, including: tuple[Path, ...]) -> yaml.MappingNode:
    """Return the tree of a file, with the keys of those that it includes; each node knows its file and line."""
    try:
        with path.open(encoding="utf-8") as file:
            tree = yaml.compose(file, yaml.SafeLoader)
        _marks(tree)
    except OSError as error:
        raise WorkbenchError(f"{path} cannot be read: {error.strerror}.") from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise WorkbenchError(f"{path} is no YAML: {error}") from None
    if not isinstance(tree, yaml.MappingNode):
        raise WorkbenchError(
            f"{path}:1: it holds no experiment. It needs at least `name`, `questions` and `grid`."
        )
    names = [key.value for key, _ in tree.value]
    if "include" in names:
        key, included = tree.value.pop(names.index("include"))
        where = f"{path}:{key.start_mark.line + 1}: include"
        target = (path.parent / str(included.value)).resolve()
        if not target.is_file():
            raise WorkbenchError(f"{where}: {shown(included.value)} does not exist.")
        if target in (*including, path):
            raise WorkbenchError(f"{where}: {included.value} includes this file in turn.")
        tree.value += [
            pair for pair in _read(target, (*including, path)).value if pair[0].value not in names
        ]
    return tree


def _marks(node: Any, place: Place = ()) -> dict[Place, str]:
    """Return file and line of each key in a YAML tree; raise for one that stands twice: YAML would take the last."""
    marks = {place: f"{node.start_mark.name}:{node.start_mark.line + 1}: "}
    for number, child in enumerate(node.value if isinstance(node.value, list) else ()):
        key, value = child if isinstance(child, tuple) else (None, child)
        below = (*place, str(key.value if key else number))
        line = f"{(key or value).start_mark.name}:{(key or value).start_mark.line + 1}: "
        if below in marks:
            raise WorkbenchError(f"{line}{'.'.join(below)} stands here twice.")
        marks |= {**_marks(value, below), below: line}
    return marks


def check_spec(data: Data, locate: Locate = lambda _: "") -> Spec:
    """Return an experiment.

    Args:
        data: what its file would hold.
        locate: says where a key stands, for messages.

    Raises:
        WorkbenchError: names the key.
    """
    try:
        spec = Spec.model_validate(dict(data))
        json.dumps(spec.model_dump(mode="json"), allow_nan=False)
    except ValidationError as error:
        faults = [(_place(fault, data), fault) for fault in error.errors()]
        # of several alternatives the one that was meant
        place, fault = max(faults, key=lambda pair: len(pair[0]))
        keys = (
            f" Known: {', '.join(Spec.model_fields)}."
            if place == fault["loc"][:1] and place[0] in data
            else ""
        )
        raise WorkbenchError(
            f"{locate(place)}{'.'.join(map(str, place))}: {fault['msg']}.{keys}"
        ) from None
    except (ValueError, RecursionError) as error:
        raise WorkbenchError(f"{locate(())}a value cannot be kept as JSON: {error}.") from None
    for place, message in spec.faults():
        raise WorkbenchError(locate(place) + message)
    spec._locate = locate
    return spec


def _place(fault: Any, value: Any) -> Place:
    """Return the key of a fault; pydantic names the alternatives of a type in it too."""
    place = []
    for name in fault["loc"]:
        with suppress(LookupError, TypeError):
            value = value[name]
            place.append(name)
    return (*place, *fault["loc"][-1:]) if fault["type"] == "missing" else tuple(place)
