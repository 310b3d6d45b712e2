"""A knowledge base looked into: as data, as a table, as text, and as a page in a notebook."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from workbench.labels import labels_for
from workbench.show import Block, page_html, plain
from workbench.show.knowledge import knowledge_blocks


@dataclass(frozen=True)
class Inspected:
    """What is in a knowledge base.

    Attributes:
        found: counts, growth, coverage, languages, orphans, duplicates, fields and files.
    """

    found: Mapping[str, Any]

    def to_dict(self) -> dict[str, Any]:
        """As JSON."""
        return json.loads(json.dumps(self.found))

    def rows(self) -> Iterator[dict[str, Any]]:
        """One row a figure: ``part``, ``what``, ``count``, ``percent``, ``examples``."""
        for what, count in self.found["counts"].items():
            yield _row("counts", what, count)
        for what, covered in self.found["coverage"].items():
            yield _row("coverage", what, covered["documents"], covered["percent"])
        for language, count in self.found["languages"].items():
            yield _row("languages", language, count)
        for day in self.found["growth"]:
            yield _row("growth", day["day"], day["documents"])
        for part in ("orphans", "duplicates"):
            for what, told in self.found[part].items():
                yield _row(part, what, told["count"], examples=told["examples"])

    def to_frame(self) -> Any:
        """``rows`` as a pandas table."""
        import pandas

        return pandas.DataFrame(self.rows())

    def blocks(self) -> list[Block]:
        """As tables, in the language that was chosen for everything."""
        return knowledge_blocks(self.found, labels_for(""))

    def _repr_html_(self) -> str:
        return page_html(self.blocks(), labels_for(""))

    def __str__(self) -> str:
        return plain(self.blocks(), 100)

    def __repr__(self) -> str:
        return f"<Inspected {self.found['name']}: {self.found['counts']['documents']:,} documents>"


def _row(part: str, what: str, count: int, percent: float | None = None, examples: Any = ()) -> dict[str, Any]:
    return {"part": part, "what": what, "count": count, "percent": percent, "examples": list(examples)}
