"""Fit when a second pass is made and what it is worth (``graphs/completeness.py``, ``tools/next_hop.py``, the merge).

    python experiments/second_pass.py WORKSPACE DATA [--limit 200] [--reworded FOLDER]

WORKSPACE holds the bases of the question sets in DATA (``make bench`` keeps one with ``--work``); a set that is not
there is skipped, and that is said. Every question is asked once, and all its sub-questions are asked whatever the
first pass has found; the rest is arithmetic. Everything is fitted on half of the questions of a set (those whose
``sha256("half " + id)`` ends in an even digit), each set counting the same, and reported on the other half, which
fits nothing; every such report is noted in ``looks.jsonl`` with the commit and the digest of the questions.
``--reworded`` asks the questions there too, which are of the other half, and those in its ``fitting``, which fit.

- *incomplete*: a gold document is not among the first five. Fitted over MuSiQue, HotpotQA and 2WikiMultihopQA where a
  title led from passage to passage, over LiHua and XQuAD where none did. CMRC and DRCD are only reported: titles lead
  on there, and one passage answers.
- *next_hop*: whether a passage that a sub-question found is of a gold document.
- *second_pass*: the same of every document, when what the first pass says of it is known too.
- *need*: whether a name or words of the question are met, which is to say that a gold document that says most of them
  is among the first five. How strongly its weights are held near 0 is chosen within the half that fits, by five folds.
- *promise*: whether a second pass finds a gold document that the first five lacked.
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
from calibrate import _half, ece
from thresholds import SETS

from workbench.evaluating.rankings import WITHOUT, OneBase, changed, chosen, listed, order, read_rows
from workbench.evaluating.statistics import auc_interval
from workbench.graphs import ledger
from workbench.graphs.agents import RetrieveAgent
from workbench.graphs.completeness import ALONE, LEAST, LINKED, PROMISE, first_documents, hopes, linked, signals
from workbench.graphs.merge import HOP, SECOND, signals_of_second, with_hops
from workbench.graphs.route import make_worker_name, read_question
from workbench.graphs.sufficiency import INCOMPLETE, need
from workbench.ports import Context, KnowledgeBase
from workbench.records.proposals import MET
from workbench.session import Workbench
from workbench.state import RetrievalResult
from workbench.tools import next_hop
from workbench.tools.scoring import MODELS, Logistic
from workbench.tools.tool import StepLog

MULTI, SINGLE = ("musique", "hotpot", "2wiki"), ("lihua", "xquad_en", "xquad_zh")
ALL: Mapping[str, tuple[str, Mapping[str, str], str]] = {"musique": ("musique", {}, "gold"), **SETS}
SHRINK = 10.0
"""How strongly weights are held near 0."""
ALIKE = 0.05
"""Gold documents that say so much less of a need than the one that says most are as good."""
LOOKS = Path(__file__).parent / "looks.jsonl"


Rows = Sequence[tuple[Mapping[str, float], bool]]


class Pass(NamedTuple):
    """A first pass and what its sub-questions find: ``seen`` and ``linked`` as completeness sees it."""

    id: str
    gold: frozenset[str]
    first: list[RetrievalResult]
    hops: list[RetrievalResult]
    seen: Mapping[str, float]
    linked: bool
    needs: Rows
    subs: Sequence[next_hop.SubQuestion]

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
    now = {"linked": LINKED, "alone": ALONE, HOP: MODELS[HOP], SECOND: MODELS[SECOND]}
    now |= {"need": ledger.SURE, "promise": PROMISE}
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
        subs = next_hop.sub_questions(question, first, base)
        for sub in subs:
            given = next_hop.Input(
                query=sub.query,
                question=question,
                name=sub.name,
                passage=sub.passage,
                sentence=f"{sub.title}. {sub.sentence}",
                top_k=20,
            )
            hops += next_hop.search(given, base, StepLog()).results
        golden, seen = frozenset(listed(row, gold)), signals(question, first, base)
        of = of_needs(question, first, golden, base)
        yield Pass(row["id"], golden, first, hops, seen, linked(first), of, subs)


def _never(work: Any) -> Any:
    raise RuntimeError("a measure is already in a loop")


def of_needs(question: str, found: Sequence[RetrievalResult], gold: frozenset[str], base: KnowledgeBase) -> Rows:
    """What is seen of each name and of each run of words, and whether it is met; none that no gold document says."""
    decision: Any = read_question(question, [base])
    wanted, first, rows = need(decision, [base]), first_documents(found), []
    texts: dict[str, str] = {}
    for passage in base.passages_of(sorted(gold)):
        texts[passage["doc_id"]] = f"{texts.get(passage['doc_id'], passage['title'] + '.')} {passage['text']}"
    for one in ledger.needs(question, decision, [base]):
        if one.kind in ("name", "words"):
            shares = dict(zip(texts, ledger.told(one, list(texts.values()), base), strict=True))
            most = max(shares.values(), default=0.0)
            sayers = {document for document, share in shares.items() if share >= most - ALIKE}
            if most >= MET:
                seen = ledger.features(one, ledger.says(one, wanted, first, base), first)
                rows.append((seen, bool(sayers & set(documents(found)[:5]))))
    return rows


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
    """Every model, on the half that fits."""

    def fitting(name: str, is_linked: bool) -> list[Pass]:
        own = [one for told, group in asked.items() if told.split(",")[0] == name for one in group]
        return [one for one in own if one.fits and one.linked is is_linked]

    multi = [fitting(name, True) for name in MULTI if name in asked]
    single = [fitting(name, False) for name in SINGLE if name in asked]
    models = {
        "linked": ridge([[(one.seen, one.lacks) for one in group] for group in multi]),
        "alone": ridge([[(one.seen, one.lacks) for one in group] for group in single]),
        HOP: ridge([[row for one in group for row in of_hops(one)] for group in multi]),
    }
    models[SECOND] = ridge([[row for one in group for row in of_documents(one, models)] for group in multi])
    every = [fitting(name, linked) for name in (*MULTI, *SINGLE) if name in asked for linked in (True, False)]
    needed = [[(one.id, row) for one in group for row in one.needs] for group in every]
    models["need"] = folded([rows for rows in needed if rows])
    hoped = [[(hopes(incomplete(one, models), one.subs), gains(one, models)) for one in group] for group in multi]
    models["promise"] = ridge(hoped)
    return models


def folded(sets: Sequence[Sequence[tuple[str, tuple[Mapping[str, float], bool]]]]) -> Logistic:
    """A ridge whose strength is the best of three over five folds; a question is in one fold."""

    def loss(shrink: float) -> float:
        total = 0.0
        for fold in range(5):
            inside = [[row for i, row in rows if _fold(i) != fold] for rows in sets]
            model = ridge(inside, shrink)
            for rows in sets:
                told = [(model(seen), met) for i, (seen, met) in rows if _fold(i) == fold]
                total -= sum(np.log(max(p if met else 1 - p, 1e-9)) for p, met in told) / len(rows)
        return total

    best = min((1.0, 10.0, 100.0), key=loss)
    return ridge([[row for _, row in rows] for rows in sets], best)


def _fold(question_id: str) -> int:
    return int(hashlib.sha256(f"fold {question_id}".encode()).hexdigest(), 16) % 5


def hope(one: Pass, models: Mapping[str, Logistic]) -> float:
    """How likely it is that a second pass finds something; 0 without a sub-question."""
    return models["promise"](hopes(incomplete(one, models), one.subs)) if one.subs else 0.0


def gains(one: Pass, models: Mapping[str, Logistic]) -> bool:
    """Whether a second pass brings a gold document in that the first five lack."""
    two = with_hops(one.first, judged(one, models), models[SECOND]) if one.hops else one.first
    return worth(documents(two), one.gold)[0] > worth(documents(one.first), one.gold)[0]


def of_hops(one: Pass) -> Rows:
    """What is seen of each passage that a sub-question found, and whether it is of a gold document."""
    return [(hop["metadata"]["signals"], hop["metadata"]["doc_id"] in one.gold) for hop in one.hops]


def of_documents(one: Pass, models: Mapping[str, Logistic]) -> Rows:
    """The same of every document, of the first pass too."""
    front, doubt = documents(one.first)[:5], incomplete(one, models)
    seen = signals_of_second(one.first, judged(one, models), front, doubt)
    return [(said, document in one.gold) for document, said in seen.items()]


def judged(one: Pass, models: Mapping[str, Logistic]) -> list[RetrievalResult]:
    """What the sub-questions found, by a model, best first."""
    doubt = incomplete(one, models)
    told = [
        {**h, "score": models[HOP](h["metadata"]["signals"]), "metadata": {**h["metadata"], "doubt": doubt}}
        for h in one.hops
    ]
    return sorted(told, key=lambda hop: (-hop["score"], hop["source_id"]))


def incomplete(one: Pass, models: Mapping[str, Logistic]) -> float:
    """How likely it is that a document is missing."""
    return models["linked" if one.linked else "alone"](one.seen)


def report(asked: Mapping[str, Sequence[Pass]], models: Mapping[str, Logistic]) -> str:
    """Each set's other half: how well incomplete passes are told, and R@5 / all@5 with one pass and with two."""
    lines = [
        f"{'other half of':24}{'asked':>6}{'lack':>6}  {'AUC by top score':20}{'AUC':20}{'ECE':>5}"
        f"  {'one pass':14}{'two where told':16}{'two always':14}gained lost  went on: incomplete, complete"
    ]
    for name, group in asked.items():
        rest = [one for one in group if not one.fits]
        if not rest:
            continue
        lacks = np.array([one.lacks for one in rest])
        said = np.array([incomplete(one, models) for one in rest])
        top = np.array([max((r["score"] for r in one.first), default=0.0) for one in rest])
        found = [(one.first, judged(one, models)) for one in rest]
        always = [with_hops(first, hops, models[SECOND]) if hops else first for first, hops in found]
        goes = np.array([p > INCOMPLETE and hope(one, models) >= LEAST for one, p in zip(rest, said, strict=True)])
        told = [two if on else one.first for one, two, on in zip(rest, always, goes, strict=True)]
        one, two, every = (
            np.array([worth(documents(results), p.gold) for results, p in zip(ranked, rest, strict=True)])
            for ranked in ([p.first for p in rest], told, always)
        )
        gained, lost = int((two[:, 1] > one[:, 1]).sum()), int((two[:, 1] < one[:, 1]).sum())
        went = f"{goes[lacks].sum()} of {lacks.sum()}, {goes[~lacks].sum()} of "
        lines.append(
            f"{name:24}{len(rest):>6}{lacks.sum():>6}  {area(-top, lacks):20}{area(said, lacks):20}"
            f"{ece(said, lacks):>5.2f}  {_percent(one):14}{_percent(two):16}{_percent(every):14}"
            f"{gained:>6}{lost:>5}  {went}{(~lacks).sum()}"
        )
    return "\n".join([*lines, "", *_smaller(asked, models)]) + "\n"


def _smaller(asked: Mapping[str, Sequence[Pass]], models: Mapping[str, Logistic]) -> Iterator[str]:
    """Each set's other half: how well met needs are told, and second passes that find something."""
    yield (
        f"{'other half of':24}{'needs':>6}{'met':>6}  {'AUC by words':20}{'AUC':20}{'ECE':>5}"
        f"  {'gains':>6}  {'AUC':20}{'ECE':>5}"
    )
    for name, group in asked.items():
        rest = [one for one in group if not one.fits]
        needed = [(models["need"](seen), seen["said"], met) for one in rest for seen, met in one.needs]
        hoped = [(hope(one, models), gains(one, models)) for one in rest if one.subs]
        if not needed or not hoped:
            continue
        said, words, met = (np.array(column) for column in zip(*needed, strict=True))
        chance, gain = (np.array(column) for column in zip(*hoped, strict=True))
        yield (
            f"{name:24}{len(met):>6}{met.sum():>6}  {area(words, met):20}{area(said, met):20}{ece(said, met):>5.2f}"
            f"  {gain.sum():>6}  {area(chance, gain):20}{ece(chance, gain):>5.2f}"
        )


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
