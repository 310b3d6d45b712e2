"""What each part of ``graph_paths`` adds, how it takes other words than a set's, and how far it is to be believed.

    python experiments/graph_paths.py WORKSPACE DATA [--limit N] [--fit]

WORKSPACE holds the bases ``metaqa`` (of its triples) and ``film``; DATA the sets ``metaqa``, ``2wiki``, ``hotpot``,
``cmrc`` and ``xquad``. Every row of the first table differs from the tool in one thing. The second asks for the same
paths in words that are not MetaQA's: 195 of 215 were right when they were first tried; then "made" and "penned" joined
the vocabulary, and some rules were mended by what was missed. The third is the reliability of the score: questions of
other sets have no path, and most films of MetaQA's questions are not in ``film``.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from unittest.mock import patch

from calibrate import Asked, _half, _lines, _some, fit, report

from workbench.knowledge.library import Library
from workbench.settings import Settings
from workbench.text import fold
from workbench.tools import path_match, path_words, paths
from workbench.tools import path_words as topics
from workbench.tools.scoring import MODELS
from workbench.tools.tool import StepLog

OTHER_WORDS = json.loads((Path(__file__).parent / "graph_paths.json").read_text(encoding="utf-8"))
STRANGE = ("2wiki", "hotpot", "cmrc", "xquad")


def main() -> None:
    """Print the three tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("workspace", type=Path)
    parser.add_argument("data", type=Path)
    parser.add_argument("--limit", type=int, default=891, help="questions of MetaQA, at most")
    parser.add_argument("--fit", action="store_true", help="fit the score on half of the questions")
    options = parser.parse_args()
    library = Library(options.workspace / "knowledge", Settings.load())
    asked = list(_lines(options.data / "metaqa" / "questions.jsonl"))[:: max(1, 891 // options.limit)]
    base = library.get("metaqa")
    sys.stdout.write(f"Hits@1, topic not given{'1 hop':>22}{'2 hops':>8}{'3 hops':>8}\n")
    for name, changed in ABLATIONS.items():
        with changed():
            sys.stdout.write(f"{name:<38}{_by_hops(asked, base)}\n")
    sys.stdout.write(f"\nother words: {_other_words(asked, base)}\n")
    rows = list(observe(library, asked, options.data))
    measured = [row for row in rows if not row["fits"]]
    model = MODELS["graph_paths"]
    if options.fit:
        model = fit([row for row in rows if row["fits"]], list(model.weights))
    sys.stdout.write(report("graph_paths", model, measured))
    library.close()


def _answers(text: str, base: Any) -> Any:
    with base.reading():
        return paths.search(paths.Input(query=text), base, StepLog())


def _by_hops(asked: Sequence[Mapping[str, Any]], base: Any) -> str:
    right, all_of = defaultdict(int), defaultdict(int)
    for question in asked:
        found = _answers(question["question"], base).answers
        all_of[question["hops"]] += 1
        right[question["hops"]] += bool(found) and fold(found[0]) in {fold(a) for a in question["answers"]}
    return "".join(f"{100 * right[hops] / all_of[hops]:8.1f}" for hops in sorted(all_of))


def _other_words(asked: Sequence[Mapping[str, Any]], base: Any) -> str:
    """How many templates of one's own lead along the right path from five topics each."""
    right, total, missed = 0, 0, []
    for path, templates in OTHER_WORDS.items():
        about = [q["topic_entity"] for q in asked if " ".join(q["path"]) == path][:5]
        for template in templates:
            led = [_answers(template.replace("{}", topic), base) for topic in about]
            good = sum(" ".join(o.path) == path and o.entities[:1] == [t] for o, t in zip(led, about, strict=True))
            right, total = right + good, total + len(about)
            missed += [f"  {good} of {len(about)}: {template}"] if good < len(about) else []
    return "\n".join([f"{right} of {total} along the right path", *missed])


def observe(library: Library, asked: Sequence[Mapping[str, Any]], data: Path) -> Iterator[dict[str, Any]]:
    """The first answer to each question: what was seen of its path, and whether it is right."""
    ours = [(Asked(q["id"], q["question"], frozenset(map(fold, q["answers"]))), "metaqa") for q in asked]
    films = [(Asked(f"film/{q.id}", q.text, q.gold), "film") for q, _ in ours]
    strange = []
    for name in STRANGE:
        lines = _lines(data / name / "questions.jsonl")
        found = _some((Asked(f"{name}/{q['id']}", q["question"], frozenset()) for q in lines), 150)
        strange += [(q, base) for q in found for base in ("metaqa", "film")]
    for question, base in (*ours, *films, *strange):
        output = _answers(question.text, library.get(base))
        if output.results:
            yield {
                "corpus": base if question.gold else f"(strange) {base}",
                "tool": "graph_paths",
                "question": question.id,
                "fits": _half(question.id),
                "signals": output.results[0]["metadata"]["signals"],
                "right": fold(output.answers[0]) in question.gold,
            }


def _own_names() -> Any:
    return patch.object(path_words, "_concepts", dict)


def _forward() -> Any:
    after, whole = path_match.Schema.after, path_match.Schema.paths

    def along(hops: Mapping[path_match.Hop, Any]) -> dict[path_match.Hop, Any]:
        return {hop: value for hop, value in hops.items() if hop.forward}

    return patch.multiple(
        path_match.Schema,
        after=lambda self, types: along(after(self, types)),
        paths=lambda self, starts, called: whole(self, along(starts), called),
    )


def _longest_name() -> Any:
    return patch.object(topics, "_surely", lambda text, start, end, entity: float(end - start))


ABLATIONS: Mapping[str, Callable[[], Any]] = {
    "graph_paths": lambda: patch.object(paths, "TRIED", paths.TRIED),
    "without the vocabulary (own names only)": _own_names,
    "without relations against direction": _forward,
    "without what is asked for": lambda: patch.multiple(path_match, ASKED=0.0, NOT_ASKED=0.0),
    "without the order of the cues": lambda: patch.object(
        path_words.Asked, "orders", lambda self: [tuple(sorted(self.cues, key=lambda cue: cue.word))]
    ),
    "topic: only the longest name": _longest_name,
}

if __name__ == "__main__":
    main()
