"""Tables of cases, a file a test: each table is a text in which a case is a line, or ends at ";", and a cell at "|"."""

import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from workbench.knowledge.reading.corpus import Reading

HERE = Path(__file__).parent


def tables(name: str, end: str = ";") -> dict[str, list[list[str]]]:
    """Return the rows of each table of a file, by its key; a line that begins with "#" is none."""
    told = tomllib.loads((HERE / f"{name}.toml").read_text(encoding="utf-8"))
    return {key: [*rows(text.strip().splitlines(), end)] for key, text in told.items()}


def rows(lines: list[str], end: str) -> Iterator[list[str]]:
    for line in lines:
        for case in line.split(end) if not line.startswith("#") else ():
            yield [cell.strip() for cell in case.split("|")]


def load(paths: Iterable[Path]) -> Any:
    """A reading that has come to its end, with all of its ``documents``."""
    reading: Any = Reading([*map(Path, paths)])
    reading.documents = list(reading)
    return reading
