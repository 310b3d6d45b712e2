"""Measure answers without a model on public questions: is the gold answer in it, how long is it, does it say when not.

    python experiments/answering.py DATA [--work DIR] [--sets cmrc hotpot ...] [--limit 240] [--fit]

DATA is a folder with the question sets of ``SETS``; they are for measuring and are not shipped. Each corpus is indexed
once and each question retrieved once, as a user's question is, into ``--work``; after that another writer takes
seconds. Half of the questions, by a hash of their id, fit; the other half reports. ``--fit`` writes
``workbench/language/quoting.json`` from nothing but the fit half, and the same bytes each time. A question whose
answer is yes or no has no gold string and is left out.

Every answerable question is also asked without its gold documents, so that nothing answers it, and a quarter as many
questions of the other sets, in the language of this one, are asked of its corpus: those, and the unanswerable ones of
MTRAG-UN, should be *unsure*.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import math
import re
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize

from workbench.language import quoting
from workbench.language.answer import judge, write
from workbench.language.question import read
from workbench.ports import KnowledgeBase
from workbench.session import Workbench
from workbench.text import CJK, STOP_WORDS, detect_language, fold, sentences, stem, terms

SURE = ("fields", "quotation")
AGENT = "fusion_agent:retrieve_only"


@dataclass(frozen=True)
class QuestionSet:
    """A folder of DATA: which of its lines are indexed and asked, and how its answers are compared.

    ``whole`` answers are sentences: the share of their words counts, and no string.
    """

    name: str
    folder: str
    corpus: str = "corpus.jsonl.gz"
    questions: str = "questions.jsonl"
    corpus_language: str = ""
    question_language: str = ""
    whole: bool = False

    @property
    def base(self) -> str:
        """The name of its knowledge base."""
        return f"{self.folder}_{self.corpus_language}" if self.corpus_language else self.folder


SETS = (
    QuestionSet("hotpot", "hotpot"),
    QuestionSet("2wiki", "2wiki"),
    QuestionSet("musique", "musique"),
    QuestionSet("cmrc", "cmrc"),
    QuestionSet("drcd", "drcd"),
    QuestionSet("xquad_zh_en", "xquad", corpus_language="en", question_language="zh"),
    QuestionSet("xquad_en_zh", "xquad", corpus_language="zh", question_language="en"),
    QuestionSet("mtrag", "mtrag", questions="tasks.jsonl", whole=True),
    QuestionSet(
        "medical", "graphragbench", "medical.jsonl.gz", "medical.questions.jsonl", whole=True
    ),
)


class Case(NamedTuple):
    """A question with its evidence, best first; ``fits`` tells the half that chooses weights."""

    set_name: str
    question: str
    answers: list[str]
    gold: list[str]
    answerability: str
    fits: bool
    results: list[Any]


class Answer(NamedTuple):
    """What a writer gives: a text, its kind, and how probable it is that it answers."""

    text: str
    kind: str
    probability: float = 1.0


Writer = Callable[[str, Sequence[Any], KnowledgeBase], Answer]


# --- Questions and their evidence ---


def lines_of(path: Path) -> list[dict[str, Any]]:
    """Return the JSON lines of a file, packed or not."""
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def questions_of(data: Path, chosen: QuestionSet, limit: int) -> list[dict[str, Any]]:
    """Return the questions to ask, as many of each half, in the order of their hashes."""
    lines = lines_of(data / chosen.folder / chosen.questions)
    answers = {line["id"]: line["answer"] for line in lines}
    rows = []
    for line in lines:
        if line.get("lang", "") != chosen.question_language:
            continue
        turns = [turn["text"] for turn in line.get("turns", []) if turn["speaker"] == "user"]
        plain_id = line["id"].partition("#")[0]
        answer = (
            answers[f"{plain_id}#{chosen.corpus_language}"]
            if chosen.corpus_language
            else line["answer"]
        )
        if fold(answer).strip(".") in ("yes", "no"):
            continue
        hashed = plain_id.rpartition("-")[0] if turns else plain_id
        digest = hashlib.sha256(hashed.encode()).hexdigest()
        gold = line.get("gold", line.get(f"gold_{chosen.corpus_language}", []))
        rows.append(
            {
                "id": line["id"],
                "question": "\n".join(turns[-2:]) or line["question"],
                "answers": [answer, *line.get("aliases", [])],
                "gold": gold,
                "answerability": line.get("answerability", "ANSWERABLE"),
                "fits": int(digest[-1], 16) < 8,
                "digest": digest,
            }
        )
    rows.sort(key=lambda row: row["digest"])
    halves = [
        [row for row in rows if row["fits"] is fits][: limit // 2] for fits in (True, False)
    ]
    return [*halves[0], *halves[1]]


def rows_by_set(data: Path, limit: int) -> dict[str, list[dict[str, Any]]]:
    """Return the questions of every set."""
    return {chosen.name: questions_of(data, chosen, limit) for chosen in SETS}


def of_other_sets(
    rows: Mapping[str, Sequence[dict[str, Any]]], chosen: QuestionSet, limit: int
) -> list[dict[str, Any]]:
    """Return questions of sets over other corpora in the language of this set's, as many of each half."""
    [language] = Counter(
        detect_language(row["question"]) for row in rows[chosen.name]
    ).most_common(1)
    others = [
        {**row, "id": f"{other.name}/{row['id']}", "gold": [], "answerability": "UNANSWERABLE"}
        for other in SETS
        if other.folder != chosen.folder
        for row in rows[other.name]
        if detect_language(row["question"]) == language[0]
    ]
    others.sort(key=lambda row: row["digest"])
    return [
        row
        for fits in (True, False)
        for row in [row for row in others if row["fits"] is fits][: limit // 8]
    ]


def indexed(wb: Workbench, data: Path, work: Path, chosen: QuestionSet) -> None:
    """Index the corpus of a set, where that is not done yet."""
    if chosen.base in wb.knowledge.names():
        return
    corpus = [
        {
            "id": line.get("id") or line["doc_id"],
            "title": line.get("title", ""),
            "text": line["text"],
        }
        for line in lines_of(data / chosen.folder / chosen.corpus)
        if line.get("lang", "") == chosen.corpus_language
    ]
    path = work / f"{chosen.base}.corpus.jsonl"
    path.write_text(
        "\n".join(json.dumps(line, ensure_ascii=False) for line in corpus), encoding="utf-8"
    )
    wb.add_knowledge(chosen.base, [path])


def gathered(
    wb: Workbench, work: Path, chosen: QuestionSet, rows: Sequence[dict[str, Any]]
) -> list[Case]:
    """Return the cases of these questions over the corpus of a set; retrieve what ``work`` does not hold yet."""
    cached = work / f"{chosen.name}.evidence.jsonl"
    evidence = {row["id"]: row["results"] for row in lines_of(cached)} if cached.exists() else {}
    agent = wb.agents.get(f"{chosen.base}:{AGENT}")
    with cached.open("a", encoding="utf-8") as file:
        for row in rows:
            if row["id"] not in evidence:
                trace = agent.retrieve_with_trace(row["question"], "answering")
                evidence[row["id"]] = trace["retrieval_results"]
                line = {"id": row["id"], "results": trace["retrieval_results"]}
                file.write(json.dumps(line, ensure_ascii=False) + "\n")
                file.flush()
    return [
        Case(
            chosen.name,
            row["question"],
            row["answers"],
            row["gold"],
            row["answerability"],
            row["fits"],
            evidence[row["id"]],
        )
        for row in rows
    ]


# --- Measures ---


@lru_cache(maxsize=65_536)
def plain(text: str) -> str:
    """Return words and Chinese characters, folded, with a blank around each, so that only whole words are found.

    >>> plain("It cost 136 次.")
    ' it cost 136 次 '
    """
    return " " + " ".join(re.findall(rf"{CJK.pattern}|[^\W_\u3400-\u9fff]+", fold(text))) + " "


def holds(text: str, answers: Sequence[str]) -> bool:
    """Check whether one of the answers is in a text."""
    return any(plain(answer) in plain(text) for answer in answers if plain(answer).strip())


def share(text: str, answer: str) -> float:
    """Return the share of the content words of an answer that a text says."""
    wanted = {stem(term) for term in terms(answer) if term not in STOP_WORDS}
    return len(wanted & {stem(term) for term in terms(text)}) / len(wanted) if wanted else 0.0


def length(text: str) -> float:
    """Return the number of words; a Chinese character counts half a word."""
    bare = re.sub(r"\[\d+\]", "", text)
    return len(CJK.findall(bare)) / 2 + len(re.findall(r"\w+", CJK.sub(" ", bare)))


def quality(case: Case, text: str, whole: bool) -> float:
    """Return 0 to 1: is the gold string in the text, or what share of the gold sentence's words."""
    return share(text, case.answers[0]) if whole else float(holds(text, case.answers))


def interval(differences: Sequence[float], rounds: int = 2000) -> tuple[float, float]:
    """Return the 95 % interval of a mean by a seeded bootstrap over questions."""
    values = np.asarray(differences)
    drawn = np.random.default_rng(7).integers(0, len(values), (rounds, len(values)))
    low, high = np.percentile(values[drawn].mean(axis=1), [2.5, 97.5])
    return float(low), float(high)


# --- Baselines ---


def of_passages(results: Sequence[Any], first: int = 5) -> list[Any]:
    """Return the passages of the first documents."""
    documents: dict[str, None] = {}
    passages = [result for result in results if result["source_type"] == "chunk"]
    for result in passages:
        documents.setdefault(result["metadata"]["doc_id"])
    chosen = set(list(documents)[:first])
    return [result for result in passages if result["metadata"]["doc_id"] in chosen]


def three_sentences(question: str, results: Sequence[Any], base: KnowledgeBase) -> Answer:
    """Quote the three sentences of the first five documents that share most weighted words with the question."""
    pool = [
        sentence for result in of_passages(results) for sentence in sentences(result["evidence"])
    ]
    words = [{stem(term) for term in terms(sentence)} for sentence in pool]
    frequency = Counter(word for held in words for word in held)
    asked = {stem(term) for term in terms(question) if term not in STOP_WORDS}
    weights = {word: np.log(1 + len(pool) / (0.5 + frequency[word])) for word in asked}
    best = sorted(
        range(len(pool)), key=lambda n: -sum(weights[word] for word in asked & words[n])
    )
    return Answer(" ".join(pool[n] for n in best[:3]), "quotation")


def best_passage(question: str, results: Sequence[Any], base: KnowledgeBase) -> Answer:
    """Quote the first two sentences of the best passage."""
    passages = of_passages(results, 1)
    return Answer(
        " ".join(sentences(passages[0]["evidence"])[:2]) if passages else "", "quotation"
    )


def ceiling(question: str, results: Sequence[Any], base: KnowledgeBase) -> Answer:
    """Quote the first five documents whole."""
    text = "\n".join(
        f"{result['metadata']['title']} {result['evidence']}" for result in of_passages(results)
    )
    return Answer(text, "quotation")


def answered(question: str, results: Sequence[Any], base: KnowledgeBase) -> Answer:
    """Answer as the product does without a model."""
    read_question = read(question, [base])
    judgement = judge(read_question, results, [base])
    return Answer(
        write(judgement, read_question, results)[0], judgement.kind, judgement.probability
    )


def printed(quotes: Sequence[quoting.Sentence]) -> str:
    """Return quotes with the titles that they do not say, a title once: what the weights are fitted to."""
    parts = []
    for place, quote in enumerate(quotes):
        title = quoting.brief_title(quote.title)
        again = any(other.doc_id == quote.doc_id for other in quotes[place + 1 :])
        named = again or fold(quote.title) in fold(quote.text)
        parts.append(quote.text if named else f"{quote.text} ({title})")
    return " ".join(parts)


BASELINES: dict[str, Writer] = {
    "three sentences": three_sentences,
    "best passage": best_passage,
    "first five documents": ceiling,
}
WRITERS: dict[str, Writer] = {**BASELINES, "workbench": answered}


# --- The report ---


@dataclass
class Scores:
    """What a writer did on the questions of a set."""

    quality: list[float] = field(default_factory=list)
    sure: list[float] = field(default_factory=list)
    words: list[float] = field(default_factory=list)
    kinds: Counter[str] = field(default_factory=Counter)
    denials: int = 0
    unsure: list[bool] = field(default_factory=list)
    seconds: float = 0.0


def scores_of(cases: Sequence[Case], writer: Writer, base: KnowledgeBase, whole: bool) -> Scores:
    """Return what a writer does on the answerable questions."""
    scores = Scores()
    began = time.perf_counter()
    for case in cases:
        answer = writer(case.question, case.results, base)
        value = quality(case, answer.text, whole)
        sure = answer.kind in SURE
        scores.quality.append(value)
        scores.sure.append(value * sure)
        scores.unsure.append(not sure)
        scores.words.append(length(answer.text))
        scores.kinds[answer.kind] += 1
        first = {result["metadata"]["doc_id"] for result in of_passages(case.results)}
        scores.denials += answer.kind == "nothing" and bool(first & set(case.gold))
    scores.seconds = time.perf_counter() - began
    return scores


def without_gold(case: Case) -> Case:
    """Return the case without its gold documents."""
    kept = [
        result for result in case.results if result["metadata"].get("doc_id") not in case.gold
    ]
    return case._replace(results=kept, answerability="UNANSWERABLE")


def report(
    cases: Sequence[Case], others: Sequence[Case], chosen: QuestionSet, base: KnowledgeBase
) -> Iterator[str]:
    """Yield one line per writer for one set; ``others`` are questions of other sets."""
    answerable = [case for case in cases if case.answerability in ("ANSWERABLE", "PARTIAL")]
    unanswerable = [case for case in cases if case.answerability == "UNANSWERABLE"]
    unanswerable += [without_gold(case) for case in answerable if case.gold]
    yield f"\n{chosen.name}: {len(answerable)} answerable, {len(unanswerable)} not"
    baseline = scores_of(answerable, three_sentences, base, chosen.whole)
    for name, writer in WRITERS.items():
        scores = scores_of(answerable, writer, base, chosen.whole)
        low, high = interval(
            [a - b for a, b in zip(scores.quality, baseline.quality, strict=True)]
        )
        kinds = ", ".join(f"{kind} {count}" for kind, count in scores.kinds.most_common())
        line = f"  {name:21} {100 * np.mean(scores.quality):5.1f} % [{100 * low:+.1f}, {100 * high:+.1f}]"
        line += (
            f"  when sure {100 * np.mean(scores.sure):5.1f} %  words {np.mean(scores.words):5.1f}"
        )
        line += f"  denials {scores.denials}  ms {1000 * scores.seconds / max(1, len(answerable)):.0f}  ({kinds})"
        if name not in BASELINES and unanswerable:
            sure, elsewhere = (
                100 * np.mean([writer(c.question, c.results, base).kind in SURE for c in asked])
                for asked in (unanswerable, others)
            )
            line += (
                f"  unsure {100 * np.mean(scores.unsure):.0f} %, sure without gold {sure:.0f} %"
            )
            line += f", of another corpus {elsewhere:.0f} %"
        yield line


# --- Choosing the weights ---

STEPS = {
    "repeated": (5.0, 0.0, 2.5, 7.5),
    "fresh": (6.0, 0.0, 3.0, 9.0),
    "share": (0.4, 0.25, 0.5, 0.6, 0.7),
}
"""What each constant between sentences may be. The first stands unless another is better by ``BETTER``."""
BETTER, ROUNDS = 0.005, 2
WORD = 0.0025
"""What a word of an answer costs of its quality: a sentence of twenty words has to add five points."""


class Seen(NamedTuple):
    """A case with what is seen of its sentences."""

    case: Case
    reader: quoting.Reader
    whole: bool


def seen_in(case: Case, base: KnowledgeBase, whole: bool) -> Seen:
    """Return a case with its sentences read."""
    pool = quoting.split_sentences(case.results[: quoting.PASSAGES])
    return Seen(case, quoting.Reader(case.question, pool, base.words, base.rerank), whole)


def right_sentences(seen: Seen) -> np.ndarray:
    """Return which sentences hold the answer: those of gold documents where there are such."""
    case = seen.case
    pool = seen.reader.pool
    if seen.whole:
        shares = np.array([share(sentence.text, case.answers[0]) for sentence in pool])
        return shares >= max(0.3, 0.9 * shares.max(initial=0.0))
    right = np.array([holds(sentence.text, case.answers) for sentence in pool], bool)
    gold = np.array([sentence.doc_id in case.gold for sentence in pool], bool)
    return right & gold if (right & gold).any() else right


def signals_fitted(rows: Sequence[Seen]) -> dict[str, float]:
    """Return the weights by which sentences that hold the answer stand before the others of their question."""
    count = Counter(seen.case.set_name for seen in rows)
    parts = []
    for seen in rows:
        right = right_sentences(seen)
        if right.any() and not right.all():
            parts.append((seen.reader.signals, right, 1 / math.sqrt(count[seen.case.set_name])))
    total = sum(weight for *_, weight in parts)

    def loss(weights: np.ndarray) -> tuple[float, np.ndarray]:
        value = 0.0
        slope = np.zeros(len(weights))
        for signals, right, weight in parts:
            raised = np.exp(signals @ weights - (signals @ weights).max())
            every = raised / raised.sum()
            good = raised * right / (raised * right).sum()
            value -= weight * math.log((raised * right).sum() / raised.sum())
            slope -= weight * (signals.T @ (good - every))
        penalty = 0.05 / len(parts)
        return value / total + penalty * weights @ weights, slope / total + 2 * penalty * weights

    bounds = [(0.0, None)] * len(quoting.SIGNALS)
    found = minimize(loss, np.zeros(len(quoting.SIGNALS)), jac=True, bounds=bounds)
    return {
        name: round(float(weight), 3)
        for name, weight in zip(quoting.SIGNALS, found.x, strict=True)
    }


def chosen_by(seen: Seen, model: Mapping[str, float]) -> tuple[list[int], float]:
    """Return the chosen sentences and how good they are."""
    chosen = seen.reader.choose(model)
    text = printed([seen.reader.pool[row] for row in chosen])
    return chosen, quality(seen.case, text, seen.whole)


def steps_fitted(rows: Sequence[Seen], signals: Mapping[str, float]) -> dict[str, float]:
    """Return the constants between sentences, one moved after another: the mean over the sets decides."""
    steps = {name: values[0] for name, values in STEPS.items()}

    def gain(tried: Mapping[str, float]) -> float:
        by_set: dict[str, list[float]] = {}
        for seen in rows:
            chosen, value = chosen_by(seen, {**signals, **tried})
            words = length(printed([seen.reader.pool[row] for row in chosen]))
            by_set.setdefault(seen.case.set_name, []).append(value - WORD * words)
        return float(np.mean([np.mean(values) for values in by_set.values()]))

    best = gain(steps)
    for name, values in [*STEPS.items()] * ROUNDS:
        for value in values:
            tried = gain({**steps, name: value})
            if tried > best + BETTER:
                best, steps[name] = tried, value
    return steps


def answers_fitted(
    rows: Sequence[Seen], unanswerable: Sequence[Seen], model: Mapping[str, float]
) -> tuple[dict[str, float], float]:
    """Return the weights of the probability that quotes answer, and from which on they are called an answer.

    There as many right answers are called so as possible, and as few others: the mean over the sets decides.
    """
    judged = [
        (seen, chosen, True)
        for seen in rows
        for chosen, value in [chosen_by(seen, model)]
        if value >= 0.5
    ]
    judged += [(seen, seen.reader.choose(model), False) for seen in unanswerable]
    signals = [seen.reader.together(chosen) for seen, chosen, _ in judged]
    names = list(signals[0])
    values = np.array([[signal[name] for name in names] for signal in signals])
    labels = np.array([float(right) for *_, right in judged])

    def loss(weights: np.ndarray) -> tuple[float, np.ndarray]:
        scores = values @ weights
        slope = values.T @ (1 / (1 + np.exp(-scores)) - labels)
        return float(
            np.logaddexp(0, scores).sum() - labels @ scores + weights @ weights / 2
        ), slope + weights

    found = minimize(loss, np.zeros(len(names)), jac=True).x
    probabilities = 1 / (1 + np.exp(-values @ found))
    groups = defaultdict[tuple[str, bool], list[float]](list)
    for (seen, _, right), probability in zip(judged, probabilities, strict=True):
        groups[seen.case.set_name, right].append(probability)

    def called_rightly(sure: float) -> float:
        shares = [
            np.mean((np.array(group) >= sure) == right) for (_, right), group in groups.items()
        ]
        return float(np.mean(shares))

    sure = max(np.round(np.unique(probabilities), 3), key=called_rightly)
    return {
        name: round(float(weight), 3) for name, weight in zip(names, found, strict=True)
    }, float(sure)


def fit(rows: Sequence[Seen], unanswerable: Sequence[Seen]) -> dict[str, Any]:
    """Return the content of ``quoting.json``."""
    signals = signals_fitted(rows)
    steps = steps_fitted(rows, signals)
    answers, sure = answers_fitted(rows, unanswerable, {**signals, **steps})
    made_by = "python experiments/answering.py DATA --fit: the fit halves of " + ", ".join(
        sorted({seen.case.set_name for seen in rows})
    )
    return {
        "made_by": made_by,
        "signals": signals,
        "steps": steps,
        "answers": answers,
        "sure": sure,
    }


def write_fit(
    wb: Workbench, chosen_sets: Sequence[QuestionSet], cases: Mapping[str, Sequence[Case]]
) -> None:
    """Fit on the fit half of these sets, and write ``quoting.json``."""
    rows = list[Seen]()
    unanswerable = list[Seen]()
    for chosen in chosen_sets:
        base = wb.knowledge.get(chosen.base)
        for case in cases[chosen.name]:
            if case.fits and case.answerability == "UNANSWERABLE":
                unanswerable.append(seen_in(case, base, chosen.whole))
            elif case.fits and case.answerability != "UNDERSPECIFIED":
                rows.append(seen_in(case, base, chosen.whole))
                unanswerable += (
                    [seen_in(without_gold(case), base, chosen.whole)] if case.gold else []
                )
    path = Path(quoting.__file__).with_suffix(".json")
    path.write_text(json.dumps(fit(rows, unanswerable), indent=1) + "\n", encoding="utf-8")
    quoting.weights.cache_clear()


def main() -> None:
    """Gather, and fit or report."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=Path)
    parser.add_argument("--work", type=Path, default=Path("build/answering"))
    parser.add_argument("--sets", nargs="*", default=[chosen.name for chosen in SETS])
    parser.add_argument("--limit", type=int, default=240, help="questions of each set")
    parser.add_argument(
        "--half", choices=("fit", "report"), default="report", help="the half that is reported"
    )
    parser.add_argument(
        "--fit", action="store_true", help="fit the weights on the fit half, report nothing"
    )
    args = parser.parse_args()
    args.work.mkdir(parents=True, exist_ok=True)
    chosen_sets = [chosen for chosen in SETS if chosen.name in args.sets]
    with Workbench.open(args.work) as wb:
        rows = rows_by_set(args.data, args.limit)
        cases = dict[str, list[Case]]()
        others = dict[str, list[Case]]()
        for chosen in chosen_sets:
            indexed(wb, args.data, args.work, chosen)
            cases[chosen.name] = gathered(wb, args.work, chosen, rows[chosen.name])
            foreign = of_other_sets(rows, chosen, args.limit)
            others[chosen.name] = gathered(wb, args.work, chosen, foreign)
        if args.fit:
            write_fit(wb, chosen_sets, {name: [*cases[name], *others[name]] for name in cases})
            return
        for chosen in chosen_sets:
            base = wb.knowledge.get(chosen.base)
            fits = args.half == "fit"
            reported, foreign = (
                [case for case in of_set[chosen.name] if case.fits is fits]
                for of_set in (cases, others)
            )
            for line in report(reported, foreign, chosen, base):
                sys.stdout.write(f"{line}\n")
                sys.stdout.flush()


if __name__ == "__main__":
    main()
