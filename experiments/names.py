"""How fast names are matched, and what it costs to ask in the other Chinese script.

    python experiments/names.py matching [--names 100000]
    python experiments/names.py scripts WORKSPACE KB QUESTIONS CORPUS [--limit N]

``matching`` compiles made-up names and matches them in a text of 100,000 words: by ``linking.Matcher``, by
trying every length of every place, and by an Aho-Corasick automaton over letters where ``pyahocorasick`` is installed.
``scripts`` asks every question as it is written and as OpenCC writes it in simplified characters (the questions and the
corpus are traditional). The first row is the plain baseline: BM25 over character bigrams that are not folded.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import re
import resource
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import Any

from workbench.knowledge.names.surfaces import LONGEST, Matcher, units
from workbench.parts.evaluate.retrieval import eval_retrieval
from workbench.session import Workbench

TOOLS = ("keyword_search", "naive_search", "hybrid_search")
WIDTHS = (40, 14, 12, 12, 12)


def main() -> None:
    """Print one table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parts = parser.add_subparsers(required=True)
    one = parts.add_parser("matching")
    one.add_argument("--names", type=int, default=100_000)
    one.set_defaults(run=lambda options: matching(options.names))
    two = parts.add_parser("scripts")
    for name in ("workspace", "kb", "questions", "corpus"):
        two.add_argument(name, type=str if name == "kb" else Path)
    two.add_argument("--limit", type=int, default=None)
    two.set_defaults(run=scripts)
    options = parser.parse_args()
    options.run(options)


def _row(*cells: object) -> None:
    told = [f"{cell:.2f}" if isinstance(cell, float) else str(cell) for cell in cells]
    said = told[0].ljust(WIDTHS[0]) + "".join(
        c.rjust(w) for c, w in zip(told[1:], WIDTHS[1:], strict=False)
    )
    sys.stdout.write(f"{said}\n")


def matching(count: int) -> None:
    """Seconds and memory to compile, microseconds a word to match."""
    pick = random.Random(7)
    words = [f"{chr(97 + n % 26)}{n}" for n in range(30_000)]
    keys = list(
        dict.fromkeys(" ".join(pick.choices(words, k=pick.randint(1, 4))) for _ in range(count))
    )
    text = " ".join(pick.choices(words, k=100_000))
    found = units(text)
    _row(f"{len(keys):,} names, {len(found):,} words", "compile s", "MB", "us a word")

    def measure(name: str, build: Callable[[], Any], match: Callable[[Any], int]) -> None:
        before = _memory()
        began = time.perf_counter()
        built = build()
        compiled = time.perf_counter() - began
        after = _memory()
        began = time.perf_counter()
        hits = match(built)
        spent = time.perf_counter() - began
        _row(f"{name} ({hits:,} found)", compiled, after - before, 1e6 * spent / len(found))

    measure(
        "dictionary of words",
        lambda: Matcher(keys),
        lambda m: sum(len(m.at(text, found, at)) for at in range(len(found))),
    )
    measure(
        "every length of every place", lambda: frozenset(keys), lambda known: _tried(known, found)
    )
    if find_spec("ahocorasick"):
        measure(
            "Aho-Corasick over letters",
            lambda: _automaton(keys),
            lambda a: sum(1 for _ in a.iter(f" {text} ")),
        )


def _memory() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _tried(known: frozenset[str], found: Sequence[Any]) -> int:
    keys = [unit.key for unit in found]
    ends = [range(at + 1, min(at + LONGEST, len(keys)) + 1) for at in range(len(keys))]
    return sum(" ".join(keys[at:end]) in known for at in range(len(keys)) for end in ends[at])


def _automaton(keys: Sequence[str]) -> Any:
    import ahocorasick

    automaton = ahocorasick.Automaton()
    for key in keys:
        automaton.add_word(f" {key} ", key)
    automaton.make_automaton()
    return automaton


def scripts(options: Any) -> None:
    """R@1 and R@5 as asked, and asked in simplified characters."""
    import opencc

    convert = opencc.OpenCC("t2s").convert
    asked = list(_lines(options.questions))
    asked = asked[:: max(1, len(asked) // options.limit)] if options.limit else asked
    _row(
        f"{len(asked)} questions on {options.kb}",
        "R@1 as asked",
        "simplified",
        "R@5",
        "simplified",
    )
    index = _unfolded(options.corpus)
    plain = [
        _plain(index, [{**q, "question": turn(q["question"])} for q in asked])
        for turn in (str, convert)
    ]
    _row("BM25, characters not folded", plain[0][0], plain[1][0], plain[0][1], plain[1][1])
    with Workbench.open(options.workspace) as wb, tempfile.TemporaryDirectory() as folder:
        tables = []
        for name, turn in (("asked", str), ("simplified", convert)):
            path = Path(folder) / f"{name}.jsonl"
            rows = [
                {"id": q["id"], "question": turn(q["question"]), "gold": q["gold"]} for q in asked
            ]
            path.write_text(
                "\n".join(json.dumps(row, ensure_ascii=False) for row in rows), encoding="utf-8"
            )
            tables.append(
                eval_retrieval(wb, options.kb, path, tools=list(TOOLS), cuts=(1, 5))["tools"]
            )
    for tool in tables[0]:
        one = tables[0][tool]
        two = tables[1][tool]
        _row(tool, one["R@1"], two["R@1"], one["R@5"], two["R@5"])


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt", encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def _bigrams(text: str) -> str:
    """Pairs of characters as they are written, as words of an index."""
    runs = re.findall(r"[\u3400-\u9fff]+|[A-Za-z0-9]+", text)
    pairs = [
        pair for run in runs for pair in (map("".join, pairwise(run)) if len(run) > 1 else [run])
    ]
    return " ".join(pair.encode().hex() for pair in pairs)


def _unfolded(corpus: Path) -> sqlite3.Connection:
    index = sqlite3.connect(":memory:")
    index.execute("CREATE VIRTUAL TABLE texts USING fts5 (id UNINDEXED, body)")
    rows = (
        (row["id"], _bigrams(f"{row.get('title', '')} {row['text']}")) for row in _lines(corpus)
    )
    index.executemany("INSERT INTO texts VALUES (?, ?)", rows)
    return index


def _plain(index: sqlite3.Connection, asked: Sequence[dict[str, Any]]) -> tuple[float, float]:
    first = five = 0
    for question in asked:
        words = " OR ".join(
            f'"{word}"' for word in dict.fromkeys(_bigrams(question["question"]).split())
        )
        sql = "SELECT id FROM texts WHERE texts MATCH ? ORDER BY bm25(texts), id LIMIT 5"
        found = [row[0] for row in index.execute(sql, (words,))] if words else []
        first += found[:1] == question["gold"][:1]
        five += question["gold"][0] in found
    return 100 * first / len(asked), 100 * five / len(asked)


if __name__ == "__main__":
    main()
