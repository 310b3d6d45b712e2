"""Fit what a second pass is worth (``tools/next_hop.py``, the merge), and report when it is made.

    python experiments/second_pass.py WORKSPACE DATA [--limit 200] [--reworded FOLDER]

WORKSPACE holds the bases of the question sets in DATA (``make bench`` keeps one with ``--work``); a set that is not
there is skipped, and that is said. Every question is asked once, and all its sub-questions are asked whatever the
first pass has found; the rest is arithmetic. Everything is fitted on half of the questions of a set (those whose
``sha256("half " + id)`` ends in an even digit), each set counting the same, and reported on the other half, which
fits nothing; every such report is noted in ``looks.jsonl`` with the commit and the digest of the questions.
``--reworded`` asks the questions there too, which are of the other half, and those in its ``fitting``, which fit.

- *next_hop*: whether a passage that a sub-question found is of a gold document.
- *second_pass*: the same of every document, when what the first pass says of it is known too.

Both are fitted over MuSiQue, HotpotQA and 2WikiMultihopQA. A second pass is made where the quality of the first
(``graphs/needs.py``) is below ``WORKBENCH_MIN_QUALITY``; nothing is fitted for it.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
from calibrate import _half
from thresholds import SETS

from workbench.evaluating.rankings import WITHOUT, OneBase, changed, chosen, listed, order, read_rows
from workbench.evaluating.statistics import auc_interval
from workbench.graphs.agents import RetrieveAgent
from workbench.graphs.merge import HOP, SECOND, signals_of_second, with_hops
from workbench.graphs.needs import QUALITY, quality_of
from workbench.graphs.route import make_worker_name
from workbench.ports import Context, KnowledgeBase
from workbench.session import Workbench
from workbench.state import RetrievalResult
from workbench.tools import next_hop
from workbench.tools.scoring import MODELS, Logistic
from workbench.tools.tool import StepLog

MULTI = ("musique", "hotpot", "2wiki")
ALL: Mapping[str, tuple[str, Mapping[str, str], str]] = {"musique": ("musique", {}, "gold"), **SETS}
SHRINK = 10.0
"""How strongly weights are held near 0."""
LOOKS = Path(__file__).parent / "looks.jsonl"


Rows = Sequence[tuple[Mapping[str, float], bool]]


class Pass(NamedTuple):
    """A first pass, what its sub-questions find, and its quality."""

    id: str
    gold: frozenset[str]
    first: list[RetrievalResult]
    hops: list[RetrievalResult]
    quality: float

    @property
    def fits(self) -> bool:
        """Whether it is of the half that fits."""
        return _half(self.id)

    @property
    def lacks(self) -> bool:
        """Whether a gold document is not among the first five."""
        return not self.gold <= set(documents(self.first)[:5])


def documents(results: Sequence[RetrievalResult]) -> list[str]:
    """The documents, best first."""
    return order(str(result["metadata"].get("doc_id") or "") for result in results)


def main() -> None:
    """Ask, fit, and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("workspace", type=Path)
    parser.add_argument("data", type=Path)
    parser.add_argument("--limit", type=int, default=200, help="questions of each set, at most")
    parser.add_argument("--reworded", type=Path, help="folder with questions in other words")
    options = parser.parse_args()
    asked: dict[str, list[Pass]] = {}
    read = hashlib.sha256()
    with Workbench.open(options.workspace) as wb:
        context = changed(wb.ports(), WITHOUT["reflect"])
        for name, (folder, where, gold) in ALL.items():
            path = options.data / folder / "questions.jsonl"
            if name not in wb.knowledge.names() or not path.exists():
                sys.stderr.write(f"skipped: {name}\n")
                continue
            base = wb.knowledge.get(name)
            base.warm()
            read.update(path.read_bytes())
            rows = chosen(read_rows(path, "id", "question"), where, options.limit)
            asked[name] = list(passes(rows, "question", gold, base, context))
            for kind, other in reworded(options.reworded, name):
                read.update(other.read_bytes())
                for language in ("en", "zh"):
                    rows = read_rows(other, "id", language)
                    asked[f"{name}, {kind} {language}"] = list(passes(rows, language, "gold", base, context))
    models = fitted(asked)
    sys.stdout.write("".join(f"{name}: {model}\n" for name, model in models.items()))
    now = {HOP: MODELS[HOP], SECOND: MODELS[SECOND]}
    for when, by in {"in the package": now, "fitted": models}.items():
        sys.stdout.write(f"\n{when}\n{report(asked, by)}")
    note_look(read.hexdigest(), options.limit)


def reworded(folder: Path | None, name: str) -> list[tuple[str, Path]]:
    """The questions of a set in other words, those that are reported and those that fit, where there are some."""
    kinds = {"reworded": f"{name}.jsonl", "fitting": f"fitting/{name}.jsonl"}
    return [(kind, folder / file) for kind, file in kinds.items() if (folder / file).exists()] if folder else []


def passes(
    rows: Sequence[Mapping[str, Any]], asks: str, gold: str, base: KnowledgeBase, context: Context
) -> Iterator[Pass]:
    """One pass over each question, and all its sub-questions."""
    agent = RetrieveAgent(
        make_worker_name(base.name, "fusion_agent"), replace(context, knowledge=OneBase(base)), _never
    )
    for row in rows:
        question = row[asks]
        first = asyncio.run(agent.aretrieve_with_trace(question, "measured"))["retrieval_results"]
        hops = []
        for sub in next_hop.sub_questions(question, first, base):
            given = next_hop.Input.model_validate({**sub.asked(question), "top_k": 20})
            hops += next_hop.search(given, base, StepLog()).results
        yield Pass(row["id"], frozenset(listed(row, gold)), first, hops, quality_of(question, first, base))


def _never(work: Any) -> Any:
    raise RuntimeError("a measure is already in a loop")


def ridge(sets: Sequence[Rows], shrink: float = SHRINK) -> Logistic:
    """Ridge regression of the log odds, each set counting the same (Newton's method)."""
    names = list(next(rows for rows in sets if rows)[0][0])
    x = np.array([[seen[name] for name in names] for rows in sets for seen, _ in rows])
    y = np.array([right for rows in sets for _, right in rows], float)
    share = np.array([len(y) / len(sets) / len(rows) for rows in sets for _ in rows])
    middle, spread = x.mean(0), x.std(0) + 1e-9
    scaled = np.c_[np.ones(len(x)), (x - middle) / spread]
    held = np.diag([1e-6, *[shrink] * x.shape[1]])
    weights = np.zeros(scaled.shape[1])
    for _ in range(40):
        said = 1 / (1 + np.exp(-scaled @ weights))
        slope = scaled.T @ (share * (said - y)) + held @ weights
        weights -= np.linalg.solve((scaled * (share * said * (1 - said))[:, None]).T @ scaled + held, slope)
    own = weights[1:] / spread
    rounded = {name: round(float(w), 2) for name, w in zip(names, own, strict=True)}
    return Logistic(round(float(weights[0] - own @ middle), 2), rounded)


def fitted(asked: Mapping[str, Sequence[Pass]]) -> dict[str, Logistic]:
    """Both models, on the half that fits."""
    multi = [
        [one for told, group in asked.items() if told.split(",")[0] == name for one in group if one.fits]
        for name in MULTI
        if name in asked
    ]
    models = {HOP: ridge([[row for one in group for row in of_hops(one)] for group in multi])}
    models[SECOND] = ridge([[row for one in group for row in of_documents(one, models)] for group in multi])
    return models


def of_hops(one: Pass) -> Rows:
    """What is seen of each passage that a sub-question found, and whether it is of a gold document."""
    return [(hop["metadata"]["signals"], hop["metadata"]["doc_id"] in one.gold) for hop in one.hops]


def of_documents(one: Pass, models: Mapping[str, Logistic]) -> Rows:
    """The same of every document, of the first pass too."""
    seen = signals_of_second(one.first, judged(one, models), documents(one.first)[:5])
    return [(said, document in one.gold) for document, said in seen.items()]


def judged(one: Pass, models: Mapping[str, Logistic]) -> list[RetrievalResult]:
    """What the sub-questions found, by a model, best first."""
    told: list[RetrievalResult] = [{**h, "score": models[HOP](h["metadata"]["signals"])} for h in one.hops]
    return sorted(told, key=lambda hop: (-hop["score"], hop["source_id"]))


def report(asked: Mapping[str, Sequence[Pass]], models: Mapping[str, Logistic]) -> str:
    """Each set's other half: how well incomplete passes are told, and R@5 / all@5 with one pass and with two."""
    lines = [
        f"{'other half of':24}{'asked':>6}{'lack':>6}  {'AUC by top score':20}{'AUC by quality':20}"
        f"  {'one pass':14}{'two where low':16}{'two always':14}gained lost  went on: incomplete, complete"
    ]
    for name, group in asked.items():
        rest = [one for one in group if not one.fits]
        if not rest:
            continue
        lacks = np.array([one.lacks for one in rest])
        quality = np.array([one.quality for one in rest])
        top = np.array([max((r["score"] for r in one.first), default=0.0) for one in rest])
        always = [with_hops(p.first, judged(p, models), models[SECOND]) if p.hops else p.first for p in rest]
        goes = quality < QUALITY
        told = [two if on else one.first for one, two, on in zip(rest, always, goes, strict=True)]
        one, two, every = (
            np.array([worth(documents(results), p.gold) for results, p in zip(ranked, rest, strict=True)])
            for ranked in ([p.first for p in rest], told, always)
        )
        gained, lost = int((two[:, 1] > one[:, 1]).sum()), int((two[:, 1] < one[:, 1]).sum())
        went = f"{goes[lacks].sum()} of {lacks.sum()}, {goes[~lacks].sum()} of {(~lacks).sum()}"
        lines.append(
            f"{name:24}{len(rest):>6}{lacks.sum():>6}  {area(-top, lacks):20}{area(-quality, lacks):20}"
            f"  {_percent(one):14}{_percent(two):16}{_percent(every):14}{gained:>6}{lost:>5}  {went}"
        )
    return "\n".join(lines) + "\n"


def worth(found: Sequence[str], gold: frozenset[str]) -> tuple[float, float]:
    """R@5 and all@5.

    >>> worth(["a", "c", "b"], frozenset("ad"))
    (0.5, 0.0)
    """
    five = gold & set(found[:5])
    return len(five) / len(gold), float(five == gold)


def area(said: np.ndarray, lacks: np.ndarray) -> str:
    """The area under the curve, and its interval over resampled questions."""
    found = auc_interval(said, lacks)
    return "not tested" if found["auc"] is None else f"{found['auc']:.2f} [{found['low']:.2f}, {found['high']:.2f}]"


def _percent(scores: np.ndarray) -> str:
    return " / ".join(f"{share:.1f}" for share in 100 * scores.mean(axis=0))


def note_look(digest: str, limit: int) -> None:
    """Note that the reporting half was looked at: when, at which commit, and at which questions."""
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    told = {
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": "second_pass.py",
        "commit": commit.stdout.strip(),
        "questions": digest[:16],
        "limit": limit,
    }
    with LOOKS.open("a", encoding="utf-8") as file:
        file.write(json.dumps(told) + "\n")


if __name__ == "__main__":
    main()
