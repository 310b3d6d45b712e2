"""Whether reflection pays: what an agent finds, and at what cost, with one pass, with two, and so on; and how well its
quality tells the questions apart whose first pass lacks a document.

    {"set", "questions", "agent", "rounds": [{"passes", "R@5", "all@5", ..., "steps", "ms", "went_on", "gained",
     "lost", "against"}], "policies": {name: {"R@5", ..., "gained", "lost", "against"}},
     "judged": {"asked", "at", "incomplete": {k: n}, "auc", "top_score"},
     "rows": [{"id", "quality", "lacks", "passes": [recall with one pass, with two, ...]}]}

``policies``: what one may do instead of going on where the reflector says so. ``always``: a second pass for every
question. ``right title``: the titles of the gold documents that are missing are searched for beside the question, and
what is found has the places behind the third document. ``right sub-question``: the same with the set's own
sub-questions (``decomposition``), each with the title of the document that it leads to, where the set has some. The
last two know the answer: they say how much a second pass could add. ``people``: what runs of the workspace came to in
which a person decided at reflect, in place of what the rules came to. Each is held against one pass.

``went_on``: questions for which a pass of this number ran. ``gained`` and ``lost``: questions whose recall, at the
middle one of the cuts, rose or fell against one pass less; ``against`` is that difference with its interval.

``judged``: of the first pass. ``incomplete``: questions that lack a gold document among the first ``k``, and in what
the writer gets (``prompt``). ``auc`` is that of the reflection's quality at the middle cut, ``top_score`` that of the
best score, the plain baseline; each with its interval. ``rows`` are kept so that two evaluations of the same questions
can be paired.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from workbench.evaluating.asking import Measured, Told
from workbench.evaluating.rankings import Asked, Found, Ranker, Row, changed, order, ranker, results_of
from workbench.evaluating.retrieval import Measure
from workbench.evaluating.statistics import Bootstrap, Scores, auc_interval, means, spread
from workbench.graphs.autopilot import NO_PERSONS
from workbench.graphs.merge import KEPT, PLACES, SEARCH
from workbench.graphs.route import AGENT_TYPES
from workbench.ports import Context, KnowledgeBase
from workbench.runs.recording import Recording

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
    decided: Mapping[str, Found] | None = None,
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
        decided: question -> what a run came to in which a person decided (``decided_by_people``).
        told: hears of progress.
    """
    rankers = [ranker(agent, changed(context, {"max_iterations": most + 1})) for most in range(passes)]
    of = Measure.of(rows, knowledge, gold, docs, told)
    done = [await of.ask(f"{agent}, {most} passes", rank) for most, rank in enumerate(rankers, start=1)]
    always = ranker(agent, changed(context, {"max_iterations": 2, "min_quality": 1.0}))
    policies = {"always": await of.ask(f"{agent}, always a second pass", always)}
    if people := {one.id: decided[one.question] for one in of.asked if decided and one.question in decided}:
        policies[f"people, {len(people)} of {len(of.asked)}"] = Measured({**done[-1].found, **people}, {}, [])
    for name, asks in oracles(rows, of, knowledge).items():
        policies[name] = await of.ask(name, _knowing(done[0], asks, of.gold, context))
    return table(of, done, agent, cuts, policies)


def decided_by_people(runs: Iterable[Recording], kb: str) -> dict[str, Found]:
    """Question -> the documents of the newest run over this base in which a person decided at reflect.

    Args:
        runs: newest first, as ``wb.runs()`` has them.
        kb: the knowledge base.
    """
    found: dict[str, Found] = {}
    for run in runs:
        people = [d for d in run.decisions if d["point"] == "reflect" and d["who"] not in NO_PERSONS]
        if people and run.kb_prefix == kb:
            found.setdefault(run.message, Found(order(str(r["metadata"].get("doc_id") or "") for r in run.evidence)))
    return found


def oracles(rows: Sequence[Row], of: Measure, knowledge: KnowledgeBase) -> dict[str, dict[str, list[str]]]:
    """Oracle -> question id -> the searches of a second pass that knows what is missing."""
    titles = {i: [_title(d, knowledge) for d in gold] for i, gold in of.gold.items()}
    found = {"right title": {one.id: [f"{one.question} {title}" for title in titles[one.id]] for one in of.asked}}
    parts = {str(row["id"]): row.get("decomposition") for row in rows}
    told = {i: [str(part) for part in parts.get(i) or ()] for i in titles}
    if all(len(told[i]) == len(titles[i]) for i in titles):
        found["right sub-question"] = {i: [_asked_of(part, titles[i]) for part in told[i]] for i in titles}
    return found


def _title(document: str, knowledge: KnowledgeBase) -> str:
    return next((passage["title"] for passage in knowledge.passages_of([document])), "")


def _asked_of(part: str, titles: Sequence[str]) -> str:
    """A sub-question with the title of the document that an earlier one leads to in place of its number.

    >>> _asked_of("#1 >> place of birth", ["The Reef", "Mara Velden"])
    'Mara Velden >> place of birth'
    """
    return re.sub(r"#(\d)", lambda m: titles[min(int(m[1]), len(titles) - 1)], part)


def _knowing(
    first: Measured[Found], asks: Mapping[str, Sequence[str]], gold: Mapping[str, Sequence[str]], context: Context
) -> Ranker:
    """One pass, and behind its third document what was searched for each gold document that it lacks."""

    async def ranked(asked: Asked, knowledge: KnowledgeBase) -> Found:
        documents = first.found[asked.id].documents
        missing = [n for n, d in enumerate(gold[asked.id]) if d not in documents[:PLACES]]
        found: list[str] = []
        for n in missing:
            search = Asked(asked.id, asks[asked.id][n], asked.conv)
            results = await results_of(context.tools[SEARCH], search, knowledge, context)
            found += order(str(r["metadata"].get("doc_id") or "") for r in results)[:1]
        return Found(list(dict.fromkeys([*documents[:KEPT], *found, *documents[KEPT:]])))

    return ranked


def table(
    of: Measure,
    done: Sequence[Measured[Found]],
    agent: str = AGENT_TYPES[0],
    cuts: Sequence[int] = CUTS,
    policies: Mapping[str, Measured[Found]] | None = None,
) -> dict[str, Any]:
    """The table of the module's docstring, of what the agent did with one pass at most, with two, and so on."""
    bootstrap = Bootstrap([one.id for one in of.asked], len(done) - 1 + len(policies or ()))
    shown = f"R@{cuts[len(cuts) // 2]}"
    lines: list[dict[str, Any]] = []
    before: Scores | None = None
    every = [of.scores(measured, cuts) for measured in done]
    for most, (measured, scores) in enumerate(zip(done, every, strict=True), start=1):
        line: dict[str, Any] = {"passes": most, **means(scores, list(of.gold)), **_cost(measured, most)}
        if before is not None:
            line |= _apart(scores, before, shown, bootstrap)
        lines.append(line)
        before = scores
    told = {"set": of.name, "questions": len(of.asked), "agent": agent, "shown": shown, "rounds": lines}
    if policies:
        one = every[0]
        scored = {name: (measured, of.scores(measured, cuts)) for name, measured in policies.items()}
        told["policies"] = {
            name: {**means(scores, list(of.gold)), **measured.failed(), **_apart(scores, one, shown, bootstrap)}
            for name, (measured, scores) in scored.items()
        }
    told["rows"] = [
        {"id": i, "quality": found.quality, "lacks": every[0][shown][i] < 1}
        | {"passes": [scores[shown][i] for scores in every]}
        for i, found in done[0].found.items()
    ]
    return told | ({"judged": judged} if (judged := _judged(of, done, cuts)) else {})


def _apart(scores: Scores, before: Scores, shown: str, bootstrap: Bootstrap) -> dict[str, Any]:
    """How many questions are better and worse, and the paired difference."""
    apart = [scores[shown][i] - value for i, value in before[shown].items()]
    better, worse = sum(d > 0 for d in apart), sum(d < 0 for d in apart)
    return {"gained": better, "lost": worse, "against": bootstrap.compare(scores, before)[shown]}


def _judged(of: Measure, done: Sequence[Measured[Found]], cuts: Sequence[int]) -> dict[str, Any]:
    """Return how the first pass was judged, over the questions for which there is a quality."""
    first = {i: found for i, found in done[0].found.items() if found.quality is not None}
    if not first:
        return {}
    middle = cuts[len(cuts) // 2]
    lacks = {k: [not set(of.gold[i]) <= set(found.documents[:k]) for i, found in first.items()] for k in cuts}
    poor = [1 - (found.quality or 0.0) for found in first.values()]
    top = [1 - max((score for _, score in found.said), default=0.0) for found in first.values()]
    return {
        "asked": len(first),
        "at": middle,
        "incomplete": {str(k): sum(lacks[k]) for k in cuts}
        | {"prompt": sum(not set(of.gold[i]) <= set(found.documents) for i, found in first.items())},
        "auc": auc_interval(poor, lacks[middle]),
        "top_score": auc_interval(top, lacks[middle]),
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
            behind = f"  {_behind(line)}" if line["went_on"] else "  not tested: nobody went on"
        told.append(f"{line['passes']:<8}{cells}{cost}{behind}")
        if "failed" in line:
            told.append(f"  {line['failed']} failed: {line['failures'][0]}")
    for name, line in measured.get("policies", {}).items():
        cells = "".join(f"{line[key]:>8.1f}" for key in names)
        told.append(f"{name}\n{'':<8}{cells}{'against one pass':>26}  {_behind(line)}")
    return "\n".join([*told, *_judged_text(measured["judged"])] if "judged" in measured else told)


def _behind(line: Mapping[str, Any]) -> str:
    """The paired difference; where none is shown, the least that could have been."""
    apart = line["against"]
    told = f"{apart['difference']:+.2f} [{apart['low']:+.2f}, {apart['high']:+.2f}]"
    told += f", {line['gained']} better, {line['lost']} worse"
    return (
        told if apart["low"] > 0 or apart["high"] < 0 else f"{told}; no difference shown (±{apart['least']} would be)"
    )


def _judged_text(judged: Mapping[str, Any]) -> list[str]:
    lacking = ", ".join(
        f"{n} {'in the prompt' if k == 'prompt' else f'among the first {k}'}" for k, n in judged["incomplete"].items()
    )
    told = f"told by the quality: AUC {_area(judged['auc'])}; by the top score: AUC {_area(judged['top_score'])}"
    return [f"a document is missing, of {judged['asked']}: {lacking}", told]


def _area(found: Mapping[str, float | None]) -> str:
    if found["auc"] is None:
        return "not tested"
    return f"{found['auc']:.2f} [{found['low']:.2f}, {found['high']:.2f}]"
