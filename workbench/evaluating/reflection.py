"""Whether reflection pays: what an agent finds, and at what cost, with one pass, with two, and so on; and how well it
tells the questions apart whose first pass lacks a document.

    {"set", "questions", "agent", "rounds": [{"passes", "R@5", "all@5", ..., "steps", "ms", "went_on", "gained",
     "lost", "against"}],
     "judged": {"asked", "at", "incomplete": {k: n}, "auc", "top_score", "ECE", "Brier", "went_on", "curve"}}

``went_on``: questions for which a pass of this number ran. ``gained`` and ``lost``: questions whose recall, at the
middle one of the cuts, rose or fell against one pass less; ``against`` is that difference with its interval.

``judged``: of the first pass. ``incomplete``: questions that lack a gold document among the first ``k``. ``auc`` and
``ECE`` are of the probability that the reflector gives for that at the middle cut, ``top_score`` the area of one minus
the best score, the plain baseline; each with its interval. ``went_on`` and each point of ``curve`` (``at``: the
probability from which on one would go on) say of how many complete and of how many incomplete passes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from workbench.evaluating.asking import Measured, Told
from workbench.evaluating.calibration import reliability
from workbench.evaluating.rankings import Found, Row, changed, ranker
from workbench.evaluating.retrieval import Measure
from workbench.evaluating.statistics import Bootstrap, Scores, auc_interval, means, spread
from workbench.graphs.route import AGENT_TYPES
from workbench.ports import Context, KnowledgeBase

CUTS = (1, 5, 10)
CURVE = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
"""Probabilities from which on one might go on."""


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
        rows: of ``rankings.read_rows``, chosen.
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
    told = {"set": of.name, "questions": len(of.asked), "agent": agent, "shown": shown, "rounds": lines}
    return told | ({"judged": judged} if (judged := _judged(of, done, cuts)) else {})


def _judged(of: Measure, done: Sequence[Measured[Found]], cuts: Sequence[int]) -> dict[str, Any]:
    """How the first pass was judged, of the questions for which a probability was given."""
    first = {i: found for i, found in done[0].found.items() if found.incomplete is not None}
    if not first:
        return {}
    middle = cuts[len(cuts) // 2]
    lacks = {k: [not set(of.gold[i]) <= set(found.documents[:k]) for i, found in first.items()] for k in cuts}
    said = [found.incomplete or 0.0 for found in first.values()]
    top = [1 - max((score for _, score in found.said), default=0.0) for found in first.values()]
    measured = reliability(zip(said, lacks[middle], strict=True))
    again = [done[1].found[i].passes > 1 for i in first] if len(done) > 1 else []
    return {
        "asked": len(first),
        "at": middle,
        "incomplete": {str(k): sum(lacks[k]) for k in cuts},
        "auc": auc_interval(said, lacks[middle]),
        "top_score": auc_interval(top, lacks[middle]),
        "ECE": measured["ECE"],
        "Brier": measured["Brier"],
        **({"went_on": _shares(again, lacks[middle])} if again else {}),
        "curve": [{"at": at, **_shares([p >= at for p in said], lacks[middle])} for at in CURVE],
    }


def _shares(went: Sequence[bool], lacks: Sequence[bool]) -> dict[str, list[int]]:
    """``[went on, all]`` of the passes that lacked nothing and of those that lacked something."""
    kinds = {"complete": False, "incomplete": True}
    return {
        name: [sum(w for w, one in zip(went, lacks, strict=True) if one is kind), sum(one is kind for one in lacks)]
        for name, kind in kinds.items()
    }


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
    return "\n".join([*told, *_judged_text(measured["judged"])] if "judged" in measured else told)


def _judged_text(judged: Mapping[str, Any]) -> list[str]:
    lacking = ", ".join(f"{n} among the first {k}" for k, n in judged["incomplete"].items())
    lines = [f"a document is missing, of {judged['asked']}: {lacking}"]
    lines.append(
        f"told from complete ones by the reflector: AUC {_area(judged['auc'])}, ECE {judged['ECE']:.3f}, "
        f"Brier {judged['Brier']:.3f}; by the top score: AUC {_area(judged['top_score'])}"
    )
    if "went_on" in judged:
        lines.append(f"went on: {_of(judged['went_on'])}")
    lines += [f"going on from {point['at']:.1f}: {_of(point)}" for point in judged["curve"]]
    return lines


def _area(found: Mapping[str, float | None]) -> str:
    if found["auc"] is None:
        return "not tested"
    return f"{found['auc']:.2f} [{found['low']:.2f}, {found['high']:.2f}]"


def _of(point: Mapping[str, Any]) -> str:
    return ", ".join(f"{point[kind][0]} of {point[kind][1]} {kind}" for kind in ("incomplete", "complete"))
