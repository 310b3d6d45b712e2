"""Derive from data how high the best score must be for a first pass to be enough, and print how.

    python experiments/thresholds.py WORKSPACE DATA [--limit 150]

WORKSPACE holds the bases of the question sets in DATA (``make bench`` keeps one with ``--work``); a set that is not
there is skipped. Every question is asked of its own base and, one in three, of another's, which cannot answer it. What
one pass found is enough when every gold document is among the first five. For each intent the table says, by the least
top score: of the passes that were not enough how many would go on (``caught``), and of those that were how many would
go on for nothing (``bothered``). The best is the highest ``caught - bothered`` (Youden's J), averaged over the sets,
so that a large one counts no more than a small one (over all passes where no set has both kinds); in brackets the best
when any one set is left out. What stands in ``graphs/needs.py`` stays until enough questions speak against it:
over plain texts a higher one gains nothing, since another pass gains nothing there (``workbench eval reflection``).
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from workbench.evaluating.rankings import WITHOUT, Asked, changed, chosen, listed, ranker, read_rows
from workbench.graphs.needs import ENOUGH
from workbench.graphs.route import read_question
from workbench.ports import Context, KnowledgeBase
from workbench.session import Workbench

SETS: Mapping[str, tuple[str, Mapping[str, str], str]] = {
    "2wiki": ("2wiki", {}, "gold"),
    "hotpot": ("hotpot", {}, "gold"),
    "cmrc": ("cmrc", {}, "gold"),
    "drcd": ("drcd", {}, "gold"),
    "lihua": ("lihua", {}, "gold"),
    "xquad_en": ("xquad", {"lang": "zh"}, "gold_en"),
    "xquad_zh": ("xquad", {"lang": "en"}, "gold_zh"),
}
"""Base -> folder, which of its questions, and the field with the gold documents. MuSiQue is not among them."""
STEPS = tuple(round(0.05 * n, 2) for n in range(1, 20))
FIRST = 5


class Pass(NamedTuple):
    """One first pass."""

    of: str
    intent: str
    top: float
    enough: bool


def given(what: str | None, limit: int) -> argparse.Namespace:
    """The workspace, the folder of the question sets, and how many questions of each are asked, as they were given."""
    parser = argparse.ArgumentParser(description=what, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("workspace", type=Path)
    parser.add_argument("data", type=Path)
    parser.add_argument("--limit", type=int, default=limit, help="questions of each set, at most")
    return parser.parse_args()


def main() -> None:
    """Ask, and print a table for each intent."""
    options = given(__doc__, 150)
    with Workbench.open(options.workspace) as wb:
        there = [name for name in SETS if name in wb.knowledge.names() and (options.data / SETS[name][0]).is_dir()]
        sys.stderr.write("".join(f"skipped: {name}\n" for name in SETS if name not in there))
        context = changed(wb.ports(), WITHOUT["reflect"])
        passes = [one for name in there for one in _passes(name, there, wb, context, options.data, options.limit)]
    for intent in ENOUGH:
        sys.stdout.write(table(intent, [one for one in passes if one.intent == intent]))
    sys.stdout.write(table("any", passes))


def _passes(name: str, there: Sequence[str], wb: Any, context: Context, data: Path, limit: int) -> Iterator[Pass]:
    """First passes over one base: its own questions, and every third of the next set's."""
    own = _asked(name, data, limit)
    others = _asked(there[(there.index(name) + 2) % len(there)], data, limit)[::3] if len(there) > 2 else []
    base, rank = wb.knowledge.get(name), ranker("fusion_agent", context)
    base.warm()
    for asked, gold in [*own, *((other, []) for other, _ in others)]:
        found = asyncio.run(rank(asked, base))
        top = max((said for _, said in found.said), default=0.0)
        enough = bool(gold) and set(gold) <= set(found.documents[:FIRST])
        yield Pass(name, _intent(asked, base), top, enough)


def _asked(name: str, data: Path, limit: int) -> list[tuple[Asked, list[str]]]:
    folder, where, gold = SETS[name]
    rows = chosen(read_rows(data / folder / "questions.jsonl", "id", "question"), where, limit)
    return [(Asked(row["id"], row["question"]), listed(row, gold)) for row in rows]


def _intent(asked: Asked, base: KnowledgeBase) -> str:
    return read_question(asked.question, [base])["query_intent"]


def table(intent: str, passes: Sequence[Pass]) -> str:
    """What each threshold catches and bothers, and the best one."""
    if not any(one.enough for one in passes) or all(one.enough for one in passes):
        return f"\n{intent}: nothing to derive from ({len(passes)} passes)\n"
    now = f", now {ENOUGH[intent][1]}" if intent in ENOUGH else ""  # type: ignore[index]
    sets = sorted({one.of for one in passes})
    lines = [f"\n{intent}: {len(passes)} passes over {len(sets)} bases, {_share(passes, True):.0%} enough{now}"]
    lines.append("  least top score  " + "".join(f"{step:>6.2f}" for step in STEPS))
    for name, was in (("caught", False), ("bothered", True)):
        shares = (sum(o.top < step for o in passes if o.enough is was) for step in STEPS)
        count = sum(one.enough is was for one in passes)
        lines.append(f"  {name:<17}" + "".join(f"{share / count:>6.2f}" for share in shares))
    left_out = [best([one for one in passes if one.of != name]) for name in sets] if len(sets) > 1 else []
    apart = f" [{min(left_out):.2f} to {max(left_out):.2f} without any one base]" if left_out else ""
    lines.append(f"  best: {best(passes):.2f}{apart}")
    return "\n".join(lines) + "\n"


def _share(passes: Sequence[Pass], enough: bool) -> float:
    return sum(one.enough is enough for one in passes) / len(passes)


def best(passes: Sequence[Pass]) -> float:
    """The least top score with the highest ``caught - bothered``, averaged over bases; the lowest of equal ones.

    >>> best([Pass("a", "qa", 0.9, True), Pass("a", "qa", 0.2, False), Pass("a", "qa", 0.4, False)])
    0.45
    """
    by_base = defaultdict(list)
    for one in passes:
        by_base[one.of].append(one)

    def worth(step: float) -> float:
        apart = [_apart(group, step) for group in by_base.values()]
        known = [value for value in apart if value is not None]
        return round(sum(known) / len(known) if known else _apart(passes, step) or 0.0, 9)

    return max(STEPS, key=lambda step: (worth(step), -step))


def _apart(passes: Sequence[Pass], step: float) -> float | None:
    lacking = [one.top < step for one in passes if not one.enough]
    enough = [one.top < step for one in passes if one.enough]
    return sum(lacking) / len(lacking) - sum(enough) / len(enough) if lacking and enough else None


if __name__ == "__main__":
    main()
