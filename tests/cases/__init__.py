"""Tables of cases, a file a test: each table is a text in which a case is a line, or ends at ";", and a cell at "|"."""

import tomllib
from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).parent


def tables(name: str, end: str = ";") -> dict[str, list[list[str]]]:
    """Return the rows of each table of a file, by its key; a line that begins with "#" is none."""
    told = tomllib.loads((HERE / f"{name}.toml").read_text(encoding="utf-8"))
    return {key: [*rows(text.strip().splitlines(), end)] for key, text in told.items()}


def rows(lines: list[str], end: str) -> Iterator[list[str]]:
    for line in lines:
        for case in line.split(end) if not line.startswith("#") else ():
            yield [cell.strip() for cell in case.split("|")]
