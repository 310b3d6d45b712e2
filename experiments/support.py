"""Measure the checker of citations on public claims whose truth is known, to show how far it can be believed.

    python experiments/support.py DATA [--questions 200]

DATA is a folder with ``cmrc``, ``drcd`` (Chinese), ``xquad`` (both languages) and ``hotpot`` (English), each with
``corpus.jsonl.gz`` and ``questions.jsonl``; they are for measuring and are not shipped. A claim is a question with its
answer in the place of what it asks for, or a sentence of a passage with its end or its beginning cut off. It is held
against the passage that says it, and against hard negatives: the passage of the same document (where a document has one
only: of the corpus) that shares most words with it; the right passage, when the claim has another answer of the same
passage, another number, or says the contrary. Half of the questions (by a hash) chose the checker's two shares and the
baseline's; the other half measures, with intervals by question. The baseline is the share of the claim's words that the
passage has.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import re
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from workbench.language import citing
from workbench.text import CJK, detect_language, fold, sentences, terms

SETS = (("cmrc", ""), ("drcd", ""), ("xquad", "en"), ("xquad", "zh"), ("hotpot", ""))
_ASKS = re.compile(
    r"\b(?:who|whom|whose|where|when|how (?:many|much|long|old|far|often)"
    r"|(?:in )?(?:what|which)(?: (?:year|kind|type|name))?)\b"
    r"|谁|誰|哪(?:里|裡|一?[年个個位种種国國部些])|多少|几[个個年次]?|幾[個年次]?|什么(?:时候|地方)?|什麼(?:時候|地方)?|何(?:时|時|处|處|人)",
    re.I,
)


def main() -> None:
    """Make the claims and report."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=Path)
    parser.add_argument("--questions", type=int, default=200, help="of each set")
    args = parser.parse_args()
    rows = [
        row for name, lang in SETS for row in observed(args.data / name, lang, args.questions)
    ]
    first, second = ([row for row in rows if row["first"] == half] for half in (True, False))
    least = best_share(first)
    sys.stdout.write(
        f"{len(first)} claims choose, {len(second)} measure; baseline: {least:.2f} of the words\n"
    )
    for lang in ("en", "zh"):
        report(lang, [row for row in second if row["lang"] == lang], least)
    report("all", second, least)


def observed(folder: Path, lang: str, most: int) -> Iterator[dict[str, Any]]:
    """The claims with the checker's verdict on each."""
    for row in claims(folder, lang, most):
        verdict, missing = citing.compare(row["claim"], row["source"])
        yield {**row, "verdict": verdict, "missing": len(missing)}


def claims(folder: Path, lang: str, most: int) -> Iterator[dict[str, Any]]:
    """Claims with a passage each, and whether it supports them."""
    lines = [
        json.loads(line)
        for line in (folder / "questions.jsonl").read_text(encoding="utf-8").splitlines()
    ]
    questions = [
        q
        for q in lines
        if (not lang or q["lang"] == lang) and fold(q["answer"]) not in ("yes", "no")
    ]
    questions.sort(key=lambda q: hashlib.sha256(q["id"].encode()).hexdigest())
    with gzip.open(folder / "corpus.jsonl.gz", "rt", encoding="utf-8") as file:
        corpus = {
            d["id"]: d for d in map(json.loads, file) if not lang or d["id"].startswith(lang)
        }
    by_title = defaultdict(list)
    for one in corpus.values():
        by_title[one.get("title", "")].append(one["id"])
    words = {i: set(terms(d["text"])) for i, d in corpus.items()}
    answers = defaultdict(list)
    for q in questions:
        for gold in q.get("gold") or q[f"gold_{lang}"]:
            answers[gold].append(q["answer"])
    for q in questions[:most]:
        about = {
            "question": f"{folder.name}{lang}/{q['id']}",
            "lang": detect_language(q["question"]),
        }
        about["first"] = int(hashlib.sha256(q["id"].encode()).hexdigest()[-1], 16) < 8
        gold = [
            g
            for g in (q.get("gold") or q[f"gold_{lang}"])
            if fold(q["answer"]) in fold(corpus[g]["text"])
        ]
        if not gold:
            continue
        text = told(corpus[gold[0]])
        siblings = [
            i
            for i in by_title[corpus[gold[0]].get("title", "")]
            if i not in (q.get("gold") or gold)
        ]
        pool = siblings or [i for i in corpus if i not in (q.get("gold") or gold)]
        claim = stated(q["question"], q["answer"])
        of = sentences(corpus[gold[0]]["text"])
        pairs = (
            [("answer", claim, text, True)]
            if len(gold) == 1 and "hotpot" not in about["question"]
            else []
        )
        cut = shortened(of, about["first"])
        pairs += [("cut", cut, text, True)] if cut else []
        for kind, said in (("answer", claim), ("cut", cut)):
            near = max(pool, key=lambda i: (len(words[i] & set(terms(said))), i)) if said else ""
            pairs += [(f"{kind} elsewhere", said, told(corpus[near]), False)] if said else []
        other = next(
            (
                a
                for a in answers[gold[0]]
                if fold(a) not in fold(claim) and fold(q["answer"]) not in fold(a)
            ),
            "",
        )
        if other and pairs and pairs[0][0] == "answer":
            pairs.append(("another answer", stated(q["question"], other), text, False))
        if cut and (changed := re.sub(r"\d+", lambda m: str(int(m[0]) + 3), cut, count=1)) != cut:
            pairs.append(("another number", changed, text, False))
        if cut and (contrary := denied(cut)):
            pairs.append(("the contrary", contrary, text, False))
            if cut in text:
                pairs.append(("its negation left out", cut, text.replace(cut, contrary), False))
        for kind, said, source, right in pairs:
            yield {**about, "kind": kind, "claim": said, "source": source, "right": right}


def told(document: dict[str, Any]) -> str:
    """A passage as an answer's source is shown."""
    return f"{document.get('title', '')}\n{document['text']}".strip()


def stated(question: str, answer: str) -> str:
    """A question as a statement: the answer in the place of what is asked for."""
    said, count = _ASKS.subn(lambda _: answer, question.rstrip("?？ "), count=1)
    return said if count else f"{question.rstrip('?？ ')}: {answer}"


def shortened(of: Sequence[str], front: bool) -> str:
    """A sentence of some length without its end, or its beginning, at a comma; "" when there is none."""
    for one in sorted(of, key=len, reverse=True):
        parts = re.split(r"(?<=[,，;；])\s*", one)
        if len(parts) > 1 and 20 <= len(one) <= 400:
            kept = " ".join(parts[:-1] if front else parts[1:]).rstrip(",，;； ")
            if len(terms(kept)) >= 5:
                return kept
    return ""


def denied(said: str) -> str:
    """The contrary of a sentence, where it can be said by one word; "" elsewhere."""
    if citing.denies(said):
        return ""
    if CJK.search(said):
        return (
            re.sub(r"(?<=[\u4e00-\u9fff])(是|在|有)(?=[\u4e00-\u9fff])", r"不\1", said, count=1)
            if re.search("[是在]", said)
            else ""
        )
    changed = re.sub(r"\b(is|was|were|are|has|had|can|will)\b", r"\1 not", said, count=1)
    return changed if changed != said else ""


def share(row: dict[str, Any]) -> float:
    """The baseline."""
    asked = terms(row["claim"])
    return sum(t in set(terms(row["source"])) for t in asked) / max(1, len(asked))


def best_share(rows: Sequence[dict[str, Any]]) -> float:
    """The threshold at which the baseline is right most often."""
    shares = np.array([share(r) for r in rows])
    right = np.array([r["right"] for r in rows])
    return (
        max((float(((shares >= t) == right).mean()), -t) for t in np.linspace(0.3, 1, 36))[1] * -1
    )


def report(name: str, rows: Sequence[dict[str, Any]], least: float) -> None:
    """Precision and recall of "supported", and how often each kind is told rightly, beside the baseline."""
    right = np.array([r["right"] for r in rows])
    ours = np.array([r["verdict"] == "supported" for r in rows])
    plain = np.array([share(r) >= least for r in rows])
    groups = defaultdict(list)
    for place, row in enumerate(rows):
        groups[row["question"]].append(place)
    for what, said in (("checker", ours), ("baseline", plain)):
        told = []
        for measure in (_precision, _recall, _accuracy):
            low, high = interval(list(groups.values()), said, right, measure)
            told.append(
                f"{measure.__name__[1:]} {measure(said, right):.3f} [{low:.3f}, {high:.3f}]"
            )
        sys.stdout.write(f"{name} {what}: {'; '.join(told)}\n")
    refused = np.array([r["verdict"] == "unsupported" for r in rows])
    sys.stdout.write(f"  unsupported ({refused.sum()}): rightly {(~right)[refused].mean():.3f}\n")
    for kind in dict.fromkeys(r["kind"] for r in rows):
        of = np.array([r["kind"] == kind for r in rows])
        told = f"{(ours == right)[of].mean():.3f}, baseline {(plain == right)[of].mean():.3f}"
        sys.stdout.write(f"  {kind} ({of.sum()}): told rightly {told}\n")


def _precision(said: Any, right: Any) -> float:
    return float(right[said].mean()) if said.any() else 1.0


def _recall(said: Any, right: Any) -> float:
    return float(said[right].mean()) if right.any() else 1.0


def _accuracy(said: Any, right: Any) -> float:
    return float((said == right).mean())


def interval(
    groups: Sequence[Sequence[int]], said: Any, right: Any, measure: Any
) -> tuple[float, float]:
    """95 %, by question."""
    random = np.random.default_rng(0)
    found = []
    for _ in range(300):
        places = np.concatenate([groups[g] for g in random.integers(0, len(groups), len(groups))])
        found.append(measure(said[places], right[places]))
    return float(np.quantile(found, 0.025)), float(np.quantile(found, 0.975))


if __name__ == "__main__":
    main()
