"""Whether a round of reflection pays: what an agent finds, and what that takes, when it may reflect ever more often.

    {"set", "questions", "agent", "rounds": [{"passes", "R@5", "all@5", ..., "steps", "ms", "went_on", "gained",
     "lost", "against"}]}

``went_on``: questions for which a pass of this number ran. ``gained`` and ``lost``: questions whose recall, at the
middle one of the cuts, rose or fell against one pass less; ``against`` is that difference with its interval.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from workbench.evaluating.asking import Measured, Told
from workbench.evaluating.rankings import Found, Row, changed, ranker
from workbench.evaluating.retrieval import Measure
from workbench.evaluating.statistics import Bootstrap, Scores, means, spread
from workbench.graphs.route import AGENT_TYPES
from workbench.ports import Context, KnowledgeBase

CUTS = (1, 5, 10)


async def measure(
    rows: Sequence[Row],
    knowledge: KnowledgeBase,
    context: Context,
    *,
    agent: str = AGENT_TYPES[0],
    passes: int = 3,
    cuts: Sequence[int] = CUTS,
    gold: str = "gold",
    docs: Mapping[str, str] | None = None,
    told: Told | None = None,
) -> dict[str, Any]:
    """Ask every question with one pass at most, then with two, and so on.

    Args:
        rows: of ``rows.read_rows``, chosen.
        knowledge: the base to search.
        context: the ports.
        agent: an agent type of ``route``.
        passes: how far to go.
        cuts: the k of ``R@k`` and ``all@k``.
        gold: the field with the ids of the gold documents.
        docs: only documents that hold these values.
        told: hears of progress.
    """
    rankers = [ranker(agent, changed(context, {"max_iterations": most + 1})) for most in range(passes)]
    of = Measure.of(rows, knowledge, gold, docs, told)
    done = [await of.ask(f"{agent}, {most} passes", rank) for most, rank in enumerate(rankers, start=1)]
    return table(of, done, agent, cuts)


def table(
    of: Measure, done: Sequence[Measured[Found]], agent: str = AGENT_TYPES[0], cuts: Sequence[int] = CUTS
) -> dict[str, Any]:
    """The table of the module's docstring, of what the agent did with one pass at most, with two, and so on."""
    bootstrap = Bootstrap([one.id for one in of.asked])
    shown = f"R@{cuts[len(cuts) // 2]}"
    lines: list[dict[str, Any]] = []
    before: Scores | None = None
    for most, measured in enumerate(done, start=1):
        scores = of.scores(measured, cuts)
        line: dict[str, Any] = {"passes": most, **means(scores, list(of.gold)), **_cost(measured, most)}
        if before is not None:
            apart = [scores[shown][i] - before[shown][i] for i in of.gold]
            line |= {"gained": sum(d > 0 for d in apart), "lost": sum(d < 0 for d in apart)}
            line["against"] = bootstrap.compare(scores, before)[shown]
        lines.append(line)
        before = scores
    return {"set": of.name, "questions": len(of.asked), "agent": agent, "shown": shown, "rounds": lines}


def _cost(done: Measured[Found], most: int) -> dict[str, Any]:
    found = list(done.found.values())
    return {
        "steps": round(sum(one.steps for one in found) / len(found), 2),
        "went_on": sum(one.passes >= most for one in found),
        "ms": spread(list(done.seconds.values())),
        **done.failed(),
    }


def table_text(measured: Mapping[str, Any]) -> str:
    """The table for people: a line for each number of passes, the difference to one less behind it."""
    lines = measured["rounds"]
    names = [name for name in lines[0] if name.startswith(("R@", "all@"))]
    head = "".join(f"{name:>8}" for name in names)
    told = [f"{measured['set']}: {measured['questions']} questions to {measured['agent']}, in percent"]
    told.append(f"{'passes':<8}{head}{'steps':>8}{'p50 ms':>9}{'p95 ms':>9}{'went on':>9}  {measured['shown']} +-")
    for line in lines:
        cells = "".join(f"{line[name]:>8.1f}" for name in names)
        cost = f"{line['steps']:>8.2f}{line['ms']['p50']:>9.1f}{line['ms']['p95']:>9.1f}{line['went_on']:>9}"
        behind = ""
        if "against" in line:
            apart = line["against"]
            behind = f"  {apart['difference']:+.2f} [{apart['low']:+.2f}, {apart['high']:+.2f}]"
            behind += f", {line['gained']} better, {line['lost']} worse"
        told.append(f"{line['passes']:<8}{cells}{cost}{behind}")
        if "failed" in line:
            told.append(f"  {line['failed']} failed: {line['failures'][0]}")
    return "\n".join(told)
