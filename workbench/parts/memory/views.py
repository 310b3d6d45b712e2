"""What is remembered, to be looked at: what is known of whom, and what a prompt is made of."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from workbench.state import Data
from workbench.views.blocks import Block, Lines, clipped, columns, one_line
from workbench.views.drawing import short
from workbench.views.labels import Labels, labels_for
from workbench.views.markup import Picture, cut, draw
from workbench.views.render import FrameList, Shown, page_html

ORDER = ("system", "core", "summary", "episode", "evidence", "history", "question")
"""The parts of a prompt, in their order."""
_OF_MEMORY = ("core", "summary", "episode", "history")


class Rows(Shown, FrameList[Any]):
    """Rows that show themselves, in the language of ``message``; ``to_frame()`` makes a table of them."""

    def __init__(
        self,
        rows: Iterable[Any],
        message: str,
        blocks: Callable[[Sequence[Any], Labels], Iterable[Block]],
    ):
        super().__init__(rows)
        self.message = message
        self._blocks = blocks

    def blocks(self) -> list[Block]:
        """Return a table of them."""
        return [*self._blocks(self, labels_for(self.message))]

    __repr__ = Shown.__str__


# static forms


def known_blocks(view: Data, labels: Labels) -> Iterator[Block]:
    """Yield what is known of a person: what holds, what ended, and summaries."""
    holding, ended = (
        [row for row in view["memories"] if bool(row["ended_at"]) == gone]
        for gone in (False, True)
    )
    count = labels("mem_count", n=len(holding))
    title = " · ".join((labels("mem_known_of", who=view["user"]), count))
    names = ("mem_section", "mem_content", "mem_from", "mem_who", "mem_since", "mem_id:code")
    yield _table(title, names, holding, labels, notes=[] if holding else [labels("mem_nothing")])
    if ended:
        over = ("mem_section", "mem_content", "mem_from", "mem_until", "mem_why", "mem_id:code")
        yield _table(labels("mem_ended"), over, ended, labels, opened=False)
    for summary in view["summaries"]:
        by = (
            author(summary["author"], labels),
            labels("mem_covers", n=summary["covered_message_count"]),
        )
        lines = cut(summary["text"], 1_500).splitlines()
        heading = f"{labels('mem_summary')}{labels('colon')}{summary['session_id']}"
        yield Lines([(heading, "strong"), *lines, (" · ".join(filter(None, by)), "dim")])


def found_blocks(query: str, rows: Sequence[Data], labels: Labels) -> Iterator[Block]:
    """Yield what a search found, best first."""
    names = (":number", "mem_part", "mem_content", "mem_from", "mem_id:code")
    yield _table(labels("mem_found", n=len(rows), query=query), names, rows, labels)


def prompt_blocks(parts: Sequence[Data], labels: Labels) -> Iterator[Block]:
    """Yield the token map of a prompt, and what was left out of it."""
    total = sum(part["tokens"] for part in parts if part["kept"]) or 1
    rows = []
    for name in ORDER:
        if included := [part for part in parts if part["part"] == name and part["kept"]]:
            tokens = sum(part["tokens"] for part in included)
            preview = short(" · ".join(one_line(part["text"]) for part in included), 60)
            rows.append((labels(f"mem_{name}"), preview, f"{tokens:,}", str(tokens / total)))
    heads = columns(labels, "mem_part", "mem_content", "mem_tokens:number", "mem_share:bar")
    sent = parts[0]["sent"]
    title = labels("mem_prompt" if sent else "mem_unsent", n=f"{total:,}")
    yield clipped(title, heads, rows, opened=sent)
    if out := [part for part in parts if not part["kept"]]:
        names = ("mem_part", "mem_content", "mem_from", "mem_tokens:number", "mem_why")
        yield _table(labels("mem_left_out", n=len(out)), names, out, labels)


def _table(
    title: str, names: Sequence[str], rows: Sequence[Data], labels: Labels, **look: Any
) -> Block:
    keys = [name.partition(":")[0].removeprefix("mem_") for name in names]
    shown = [_cells(row, labels) for row in rows]
    return clipped(
        title, columns(labels, *names), [[cells[key] for key in keys] for cells in shown], **look
    )


def _cells(row: Data, labels: Labels) -> dict[str, str]:
    """Return the cells of a row, by the names of their columns."""
    cells = {name: "" if value is None else str(value) for name, value in row.items()}
    for name in ("section", "part"):
        if name in row:
            cells[name] = labels(f"mem_{row[name]}")
    cells |= {
        "content": one_line(cells.get("content", cells.get("text"))),
        "from": source(row, labels),
        "who": author(cells.get("author", ""), labels),
        "since": day(cells.get("created_at", "")),
        "until": day(cells.get("ended_at", "")),
        "why": cells.get("ended_why") or cells.get("why", ""),
    }
    if "kept" in row and row["why"]:
        cells["why"] = labels(f"mem_why_{row['why']}")
    if "similarity" in row:
        cells[""] = f"{row['similarity']:.2f}"
    return cells


def source(row: Data, labels: Labels, current: str | None = None) -> str:
    """Return where something was said: which turn of which conversation, else by hand or on which day.

    ``current`` is the conversation that is not named.
    """
    if row.get("turn") and row["session"] == current:
        return labels("mem_turn_here", n=row["turn"])
    if row.get("turn"):
        return labels(
            "mem_turn", n=row["turn"], session=cut(row.get("title") or row["session"], 40)
        )
    if row.get("author") == "person":
        return labels("mem_by_hand")
    return day(row.get("at") or row.get("created_at") or "")


def author(name: str, labels: Labels) -> str:
    """Return who noted something: the rules, a person, or a model by its name."""
    return labels.get(f"mem_by_{name}", name)


def day(moment: str) -> str:
    """Return a moment in UTC, to the minute."""
    return moment[:16].replace("T", " ")


# on the bench


def panel(parts: Sequence[Data], labels: Labels, **about: Any) -> Picture:
    """Draw what a run recalled, and the parts of its prompt.

    Args:
        parts: of ``Run.prompt_parts``.
        labels: the words.
        about: ``current``, memories that hold now, by id: these can be corrected, and said to be over; all ``rows`` of
            the person; the ``session`` of the run.
    """
    return Picture(
        draw(
            "memory.panel",
            labels,
            tables=page_html(prompt_blocks(parts, labels), labels, "wb-worked"),
            parts=[part for part in parts if part["part"] in _OF_MEMORY],
            source=source,
            author=author,
            **about,
        )
    )
