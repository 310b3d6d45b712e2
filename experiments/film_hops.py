"""Questions of one to two hops over the films, made of their facts: what ``workbench eval retrieval`` is shown with.

    python experiments/film_hops.py > experiments/film_hops.jsonl
    python experiments/film_hops.py --texts FOLDER

The second one writes plain texts: titles and overviews without any field, the vocabulary, and the same questions.
Each of four kinds is asked as often in Chinese as in English; ``gold`` holds the documents that an answer stands on.
Films, and the facts that single them out, are drawn by the digest of their names: the same films give the same bytes.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from itertools import combinations
from pathlib import Path
from typing import Any

FILMS = Path(__file__).parents[1] / "data" / "films.jsonl"
EACH = 20
"""Questions of a kind in a language."""
WORDS = {
    "comparison": ("Which was released earlier, {a} or {b}?", "《{a}》和《{b}》哪部上映更早？"),
    "bridge": (
        "Which film did the director of {a} make with {actor}?",
        "《{a}》的导演和{actor}合作过哪部电影？",
    ),
    "year": (
        "What did the director of {a} make in {year}?",
        "《{a}》的导演在{year}年拍了哪部电影？",
    ),
    "intersection": (
        "In which film do both {one} and {other} appear?",
        "{one}和{other}共同出演了哪部电影？",
    ),
}
Film = Mapping[str, Any]
Question = dict[str, Any]


def questions(films: Sequence[Film]) -> Iterator[Question]:
    """All of them, by kind and language."""
    titles = Counter(
        title.casefold() for film in films for title in (film["title"], *film.get("aliases", ()))
    )
    named = [
        film for film in films if titles[film["title"].casefold()] == 1 and len(film["title"]) > 3
    ]
    for kind, made in (
        ("comparison", _comparisons(named)),
        ("bridge", _bridges(named)),
        ("year", _years(named)),
        ("intersection", _intersections(named)),
    ):
        drawn = sorted(
            made, key=lambda one: sha256(json.dumps(one, sort_keys=True).encode()).digest()
        )[: 2 * EACH]
        for number, one in enumerate(drawn):
            chinese = number % 2
            question = WORDS[kind][chinese].format(**one["names"])
            lang = ("en", "zh")[chinese]
            yield {
                "id": f"{kind}-{lang}-{number // 2}",
                "lang": lang,
                "type": kind,
                "question": question,
                "gold": one["gold"],
            }


def _comparisons(films: Sequence[Film]) -> Iterator[dict[str, Any]]:
    for a, b in zip(films, films[len(films) // 2 :], strict=False):
        if a["year"] != b["year"]:
            yield {"names": {"a": a["title"], "b": b["title"]}, "gold": [a["id"], b["id"]]}


def _bridges(films: Sequence[Film]) -> Iterator[dict[str, Any]]:
    """A film, and the one other film of its director with an actor who is not in the first."""
    for a, others in _same_director(films):
        with_actor = defaultdict(list)
        for b in others:
            for actor in b["cast"]:
                with_actor[actor].append(b)
        for actor, found in with_actor.items():
            if len(found) == 1 and actor not in a["cast"]:
                yield {
                    "names": {"a": a["title"], "actor": actor},
                    "gold": [a["id"], found[0]["id"]],
                }


def _years(films: Sequence[Film]) -> Iterator[dict[str, Any]]:
    """A film, and the one other film of its director in another year."""
    for a, others in _same_director(films):
        for year, count in Counter(b["year"] for b in others).items():
            if count == 1 and year != a["year"]:
                (b,) = (b for b in others if b["year"] == year)
                yield {"names": {"a": a["title"], "year": year}, "gold": [a["id"], b["id"]]}


def _intersections(films: Sequence[Film]) -> Iterator[dict[str, Any]]:
    """Two actors who are in one film together, and in others apart."""
    together = defaultdict(list)
    seen = Counter(actor for film in films for actor in film["cast"])
    for film in films:
        for pair in combinations(sorted(film["cast"]), 2):
            together[pair].append(film)
    for (one, other), found in sorted(together.items()):
        if len(found) == 1 and min(seen[one], seen[other]) > 2:
            yield {"names": {"one": one, "other": other}, "gold": [found[0]["id"]]}


def _same_director(films: Sequence[Film]) -> Iterator[tuple[Film, list[Film]]]:
    by_director = defaultdict(list)
    for film in films:
        if len(film["directors"]) == 1:
            by_director[film["directors"][0]].append(film)
    for film in films:
        if len(film["directors"]) == 1:
            yield (
                film,
                [
                    other
                    for other in by_director[film["directors"][0]]
                    if other["id"] != film["id"]
                ],
            )


def main() -> None:
    """Write them to standard output, a line each, or with the texts into a folder."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--texts",
        type=Path,
        metavar="FOLDER",
        help="write corpus.jsonl and questions.jsonl there",
    )
    folder = parser.parse_args().texts
    films = [json.loads(line) for line in FILMS.read_text(encoding="utf-8").splitlines()]
    asked = _lines(questions(films))
    if folder is None:
        sys.stdout.write(asked)
        return
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "questions.jsonl").write_text(asked, encoding="utf-8")
    texts = (
        {"id": film["id"], "title": film["title"], "text": film["overview"] or film["title"]}
        for film in films
    )
    (folder / "corpus.jsonl").write_text(_lines(texts), encoding="utf-8")
    words = (
        FILMS.with_name("films.vocabulary.toml")
        .read_text(encoding="utf-8")
        .replace('enrichment = "tmdb"', "")
    )
    (folder / "corpus.vocabulary.toml").write_text(words, encoding="utf-8")


def _lines(rows: Iterable[Mapping[str, Any]]) -> str:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


if __name__ == "__main__":
    main()
