"""What is in a knowledge base, to read: on a page and in a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from workbench.labels import Labels
from workbench.show.outline import Block, Column, Lines, clipped

_DAYS = 30
"""Days of growth that are listed; what came before stands in one row."""


def knowledge_blocks(found: Mapping[str, Any], labels: Labels) -> list[Block]:
    """What is there, how it grew, what covers it, what belongs to nothing, what is there twice, its fields."""
    return [block for part in (_head, _coverage, _growth, _faults, _fields) for block in part(found, labels)]


def _head(found: Mapping[str, Any], labels: Labels) -> Iterator[Block]:
    counts = labels("comma").join(f"{n:,} {labels(f'kb_{what}')}" for what, n in found["counts"].items())
    where = labels("kb_behind") if not found["chroma"] else found["chroma_at"] or labels("kb_own_files")
    facts = f"{found['embedding_model']} · {labels('kb_search')} {found['search']} · Chroma{labels('colon')}{where}"
    languages = labels("comma").join(f"{language} {count:,}" for language, count in found["languages"].items())
    size = f"{found['bytes'] / 2**20:,.1f} MB · {labels('kb_generation', n=found['generation'])}"
    lines = [((found["name"], "strong"), (f" · {counts}", "")), ((f"{facts} · {size}", "dim"),)]
    if languages:
        lines.append(((f"{labels('kb_languages')}{labels('colon')}{languages}", "dim"),))
    yield Lines(tuple(lines))


def _coverage(found: Mapping[str, Any], labels: Labels) -> Iterator[Block]:
    columns = (Column(labels("kb_covered")), Column(labels("kb_documents"), "number"), Column("%", "number"))
    rows = [
        (labels(f"kb_with_{name}"), f"{part['documents']:,}", f"{part['percent']:.1f}")
        for name, part in found["coverage"].items()
    ]
    yield clipped(labels("kb_coverage"), columns, rows)


def _growth(found: Mapping[str, Any], labels: Labels) -> Iterator[Block]:
    names = (("kb_day", "text"), ("kb_documents", "number"), ("kb_total", "number"))
    days = found["growth"]
    rows = [(one["day"] or labels("kb_before"), f"{one['documents']:,}", f"{one['total']:,}") for one in days[-_DAYS:]]
    notes = [labels("and_more", n=len(days) - _DAYS)] if len(days) > _DAYS else []
    yield clipped(
        labels("kb_growth"), [Column(labels(n), kind) for n, kind in names], rows, opened=len(days) > 1, notes=notes
    )


def _faults(found: Mapping[str, Any], labels: Labels) -> Iterator[Block]:
    columns = (Column(labels("kb_what")), Column(labels("kb_count"), "number"), Column(labels("kb_examples"), "code"))
    orphans = [
        (labels(f"kb_{name}"), f"{part['count']:,}", labels("comma").join(part["examples"]))
        for name, part in found["orphans"].items()
    ]
    yield clipped(labels("kb_orphans"), columns, orphans)
    twice = [
        (labels(f"kb_{name}"), f"{part['count']:,}", labels("comma").join(" = ".join(ids) for ids in part["examples"]))
        for name, part in found["duplicates"].items()
    ]
    unread = found["duplicates"]["nearly_same"]["not_compared"]
    notes = [labels("kb_not_compared", n=unread)] if unread else []
    yield clipped(labels("kb_duplicates"), columns, twice, notes=notes)


def _fields(found: Mapping[str, Any], labels: Labels) -> Iterator[Block]:
    columns = (Column(labels("kb_field"), "code"), Column(labels("kb_documents"), "number"))
    if found["fields"]:
        typed = (columns[0], Column(labels("kb_type")), Column(labels("kb_values")), columns[1])
        told = [(f["name"], labels(f"kb_{f['type']}"), _range(f), f"{f['documents']:,}") for f in found["fields"]]
        yield clipped(labels("kb_fields", n=len(told)), typed, told, opened=False)
    if found["sources"]:
        rows = [(path, f"{count:,}") for path, count in found["sources"].items()]
        columns = (Column(labels("kb_source"), "code"), columns[1])
        yield clipped(labels("kb_sources", n=len(rows)), columns, rows, opened=False)


def _range(field: Mapping[str, Any]) -> str:
    """What a field holds: its first values, or from where to where."""
    if field["values"]:
        return ", ".join(field["values"][:4]) + (" …" if len(field["values"]) > 4 else "")
    low, high = ((f"{end:,g}" if isinstance(end, float) else end or "") for end in (field["low"], field["high"]))
    unit = f" {field['unit']}" if field["unit"] else ""
    return f"{low} – {high}{unit}" if low else ""
