"""Forty orders in documents (``orders.jsonl``), the ordinary documents that hold them, and a model that obeys them.

Each line is one document: its kind (notes in Markdown, a table with fields, texts on films with fields), its language,
title and text, the order, where in the document it stands, and what one who obeys would do (``wants``). Every order
carries its id, so that it can be found in a prompt.
"""

import csv
import json
import re
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

from tests.servers import Reply
from tests.servers.roles import needs, responder
from tests.shelves import jsonl

ORDERS: list[dict[str, Any]] = [
    json.loads(line) for line in (Path(__file__).parent / "orders.jsonl").read_text(encoding="utf-8").splitlines()
]
KINDS = ("notes", "table", "films")
QUESTIONS = {
    ("notes", "en"): "What is said of each kiln?",
    ("notes", "zh"): "龙窑、阶级窑、馒头窑、葫芦窑、蛋形窑、试釉小窑、电窑和院窑各有什么特点？",
    ("table", "en"): "What is said of each tea of this shop?",
    ("table", "zh"): "本店的茶各有什么特点？",
    ("films", "en"): "What is each film directed by Ann Hope or Lee Stone about?",
    ("films", "zh"): "导演何安和石磊的电影各讲述什么？",
}


def write(folder: Path, kind: str, orders: bool) -> Path:
    """The documents of one kind, with their orders or without; the path to add."""
    rows = [row for row in ORDERS if row["kind"] == kind]
    folder.mkdir(parents=True, exist_ok=True)
    if kind == "notes":
        for row in rows:
            (folder / f"{row['id']}.md").write_text(_note(row, orders), encoding="utf-8")
        return folder
    table = [_row(row, orders) for row in rows]
    if kind == "films":
        return jsonl(folder / "films.jsonl", table)
    path = folder / "table.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        out = csv.DictWriter(file, list(dict.fromkeys(name for row in table for name in row)), restval="")
        out.writeheader()
        out.writerows(table)
    return path


def _note(row: dict[str, Any], orders: bool) -> str:
    order, where = row["order"] if orders else "", row["where"]
    title = f"{row['title']} {order}" if where == "title" else row["title"]
    shapes = {
        "heading": f"## {order}\n",
        "list item": f"- one\n- {order}\n",
        "code block": f"```\n{order}\n```\n",
        "table cell": f"| part | note |\n| --- | --- |\n| door | {order} |\n",
        "body": f"{order}\n",
    }
    return f"# {title}\n\n{row['text']}\n\n{shapes.get(where, '') if order else ''}"


def _row(row: dict[str, Any], orders: bool) -> dict[str, str]:
    told = {"id": row["id"], "title": row["title"], "text": row["text"], "note": "plain"}
    if orders:
        named = {"title": "title", "body": "text", "field": "note"}.get(row["where"], row["order"][:60])
        told[named] = f"{told[named]} {row['order']}" if named in ("title", "text") else row["order"]
    return told


def obeying(sly: bool, tools: Collection[str] = ()) -> Callable[[dict[str, Any]], Reply]:
    """A model that obeys every order of the corpus in every role, whether its prompt holds it or not.

    Args:
        sly: it keeps to the form: tools and numbers that there are. Else it asks for whatever it was told to.
        tools: what there is.
    """
    wants = [row["wants"] for row in ORDERS]
    steps = [
        {"name": f"s{n}", "objective": w["query"], "tool": w["tool"], "query": w["query"], "kb_prefix": w.get("base")}
        for n, w in enumerate(wants)
        if "tool" in w and "query" in w
    ]
    if sly:
        steps = [{k: v for k, v in s.items() if k != "kb_prefix"} for s in steps if s["tool"] in tools]
    bases = [w["base"] for w in wants if "base" in w]

    def passages(text: str) -> list[dict[str, Any]]:
        return [{"need": n, "passages": [1 if sly else 99]} for n, _ in enumerate(needs(text), 1)]

    def reflects(text: str) -> dict[str, Any]:
        told = [{**one, "verdict": "met"} for one in passages(text)]
        return {"needs": told, "enough": not sly, "steps": steps[:3] if sly else steps, "reasoning": "I was told so."}

    return responder(
        router=lambda _: {"bases": list(KINDS) if sly else bases, "reason": "I was told so."},
        follow_up=lambda _: {"question": "payroll e02"},
        planner=lambda _: {"steps": steps[:6] if sly else steps},
        rewriter=lambda _: {"query": "payroll e02"},
        reflector=reflects,
        checker=lambda text: {"sentences": [{"sentence": n, "verdict": "supported"} for n in range(1, 41)]},
        writer=lambda _: "\n".join(f"{w['say'].rstrip('.。')} [{1 if sly else 99}]." for w in wants if "say" in w),
        judge=lambda _: {"correct": True, "faithful": True, "reason": "I was told so."},
    )


def template_of(text: str) -> re.Pattern[str]:
    """A prompt's text as a pattern that finds what stands in its slots."""
    parts = re.split(r"(?<!\$)\$(\w+)", text.strip())
    literal = [re.escape(part.replace("$$", "$")) for part in parts]
    return re.compile("".join(literal[n] if n % 2 == 0 else f"(?P<{p}>.*)" for n, p in enumerate(parts)), re.S)
