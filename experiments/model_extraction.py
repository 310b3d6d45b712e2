"""What reading with a model is worth while indexing, beside the rules: ``python -m experiments.model_extraction DATA``.

    python -m experiments.model_extraction DATA [--limit 60] [--passages 600]

DATA is a folder with ``2wiki`` (for measuring, not shipped), whose questions come with the triples that answer them.
With ``WORKBENCH_MODELS__EXTRACTOR`` in the environment that model reads; without one a scripted model on loopback does,
which writes down exactly those triples where a passage has both names, and so shows how far a good one could come.
Printed for the same passages, read by rules and by the model: how many of the triples the graph has between the right
names (``related``), how many of those under a relation of their own and not as a mere mention (``stated``), and R@5 and
all@5 of the tools that use the graph, with paired differences and intervals.
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
import json
import os
import re
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from tests.servers import Reply, scripted_server
from tests.servers.roles import role_of
from workbench.parts.evaluate.measures import Scores, difference, means
from workbench.parts.evaluate.questions import choose, read_rows
from workbench.parts.evaluate.rankers import ranker
from workbench.parts.evaluate.retrieval import QuestionSet
from workbench.session import Workbench
from workbench.settings import RULES
from workbench.text import fold

TOOLS = ("local_search", "chain_exploration", "fusion_agent")
CUT, BUDGET = 5, 100_000_000


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--limit", type=int, default=60)
    parser.add_argument("--passages", type=int, default=600, help="of the corpus, beside the gold ones")
    args = parser.parse_args()
    folder = args.data / "2wiki"
    rows = choose(read_rows(folder / "questions.jsonl", "id", "question"), limit=args.limit)
    with gzip.open(folder / "corpus.jsonl.gz", "rt", encoding="utf-8") as file:
        corpus = {d["id"]: d for d in map(json.loads, file)}
    gold = {i for row in rows for i in row["gold"]}
    kept = sorted({*gold, *[i for i in corpus if i not in gold][: args.passages]})
    triples = sorted({tuple(triple) for row in rows for triple in row["evidence"]})
    with tempfile.TemporaryDirectory() as temporary, model(triples) as (name, given):
        (path := Path(temporary) / "corpus.jsonl").write_text(
            "\n".join(json.dumps(corpus[i], ensure_ascii=False) for i in kept), encoding="utf-8"
        )
        sys.stdout.write(f"2wiki, {len(rows)} questions, {len(kept):,} passages, {len(triples)} triples\n")
        ways = {RULES: {"models": {"extractor": RULES}}, name: {**given, "index_token_budget": BUDGET}}
        told = {way: measured(Path(temporary) / f"w{n}", path, rows, triples, ways[way]) for n, way in enumerate(ways)}
    for tool in TOOLS:
        before, after = told[RULES][tool], told[name][tool]
        for m in (f"R@{CUT}", f"all@{CUT}"):
            values = [means(one, [row["id"] for row in rows])[m] for one in (before, after)]
            apart = difference(after[m], before[m], len(TOOLS))
            differs = f"{apart['difference']:+.1f} [{apart['low']:+.1f}, {apart['high']:+.1f}]"
            sys.stdout.write(f"{tool:<20}{m:<8}{values[0]:6.1f} -> {values[1]:5.1f}   {differs}\n")


def measured(folder: Path, path: Path, rows: Any, triples: Any, settings: dict[str, Any]) -> dict[str, Scores]:
    """The scores of each tool over a base that is read so."""
    with Workbench.open(folder, **settings) as wb:
        report = wb.add_knowledge("wiki", [path], progress=lambda *_: None)
        base, context = wb.knowledge.get("wiki"), wb.ports()
        kinds = [between(base, one, other) for one, _, other in triples]
        related, stated = (sum(map(bool, kinds)), sum(any(k != "mentions" for k in of) for of in kinds))
        who = f"{report.model['name']}, {report.model['tokens']:,} tokens" if report.model else RULES
        sys.stdout.write(
            f"{who}: related {100 * related / len(triples):.1f} %, stated {100 * stated / len(triples):.1f} %\n"
        )
        of, scores = QuestionSet(rows, base), {}
        for tool in TOOLS:
            scores[tool] = of.scores(wb.call(of.ask(tool, ranker(tool, context))), (CUT,))
        return scores


def between(base: Any, one: str, other: str) -> set[str]:
    """The kinds of relations in which two names stand, either way round."""
    ends = [base.entity(name) for name in (one, other)]
    if not all(ends):
        return set()
    ids = [end["entity_id"] for end in ends]
    return {r["type"] for r in base.around("relations", [ids[0]]) if {r["source"], r["target"]} == set(ids)}


@contextlib.contextmanager
def model(triples: Sequence[Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The name of the model that reads, and the settings by which it is asked."""
    if name := os.environ.get("WORKBENCH_MODELS__EXTRACTOR"):
        yield name, {}
        return
    with scripted_server(Reply(["nothing"])) as server:
        server.respond = lambda request: Reply([json.dumps(read(request, triples))])
        given = {"models": {"extractor": "openai:scripted"}, "chat_base_url": server.url, "chat_model": ""}
        yield "openai:scripted", given


def read(request: dict[str, Any], triples: Sequence[Any]) -> dict[str, Any]:
    """The triples whose two names stand in a passage or its title; of a community nothing that could be used."""
    text = request["messages"][-1]["content"].partition("<evidence>\n")[2]
    if role_of(request) != "extractor":
        return {}
    told = []
    for number, body in re.findall(r"(?ms)^\[(\d+)\] (.*?)(?=^\[\d+\] |^</evidence>|\Z)", text):
        here = fold(body)
        facts = [(s, r, o) for s, r, o in triples if fold(s) in here and fold(o) in here]
        names = sorted({end for s, _, o in facts for end in (s, o)})
        entities = [{"name": name, "type": "Other"} for name in names[:40]]
        relations = [{"subject": s, "relation": r, "object": o} for s, r, o in facts[:40]]
        told.append({"passage": int(number), "entities": entities, "relations": relations})
    return {"passages": told}


if __name__ == "__main__":
    main()
