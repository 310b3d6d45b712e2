"""What a good model at a node is worth, on questions of several hops: ``python -m tests.model_nodes DATA``.

    python -m tests.model_nodes DATA [--limit 40] [--passages 1500]

DATA is a folder with ``musique`` (for measuring, not shipped). With ``WORKBENCH_CHAT_MODEL`` in the environment that
model plans and reflects; without one a scripted model on loopback does, which knows the key and shows how far a good
one could come. Its rules: the planner asks the question and its first hop, as the set takes it apart; the reflector
calls a need met when every gold passage is among those that it is shown first, and else asks for the title of the next
gold passage together with that hop. Printed are R@5 and all@5 of the fusion agent with the rules alone, a model's
plan, a model's reflection, and both, with paired differences and intervals.
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
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.servers import Reply, scripted_server
from tests.servers.roles import needs, passages, responder
from workbench.parts.evaluate.measures import Scores, difference, means
from workbench.parts.evaluate.questions import choose, read_rows
from workbench.parts.evaluate.rankers import ranker
from workbench.parts.evaluate.retrieval import QuestionSet
from workbench.session import Workbench
from workbench.settings import ROLES, RULES

AGENT = "fusion_agent"
FIRST = 5
WAYS = {
    "rules": (),
    "a model's plan": ("planner",),
    "a model's reflection": ("reflector",),
    "both": ("planner", "reflector"),
}


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--limit", type=int, default=40)
    parser.add_argument("--passages", type=int, default=1_500, help="of the corpus, beside the gold ones")
    args = parser.parse_args()
    folder = args.data / "musique"
    rows = choose(read_rows(folder / "questions.jsonl", "id", "question"), limit=args.limit)
    with gzip.open(folder / "corpus.jsonl.gz", "rt", encoding="utf-8") as file:
        corpus = {d["id"]: d for d in map(json.loads, file)}
    gold = {i for row in rows for i in row["gold"]}
    kept = [*gold, *[i for i in corpus if i not in gold][: args.passages]]
    with tempfile.TemporaryDirectory() as temporary:
        path = Path(temporary) / "corpus.jsonl"
        path.write_text("\n".join(json.dumps(corpus[i], ensure_ascii=False) for i in sorted(kept)), encoding="utf-8")
        with model(rows, corpus) as (name, url), Workbench.open(Path(temporary) / "w") as wb:
            wb.add_knowledge("musique", [path], progress=lambda *_: None)
            told = {way: measured(wb, rows, name, url, roles) for way, roles in WAYS.items()}
    ids = [row["id"] for row in rows]
    sys.stdout.write(f"musique, {len(rows)} questions, {len(kept):,} passages, {name}\n")
    for way, scores in told.items():
        line = f"{way:<22}" + "".join(
            f"{m} {v:5.1f}   " for m, v in means(scores, ids).items() if m in ("R@5", "all@5")
        )
        if way != "rules":
            for m in ("R@5", "all@5"):
                apart = difference(scores[m], told["rules"][m], len(WAYS) - 1)
                line += f"{m} {apart['difference']:+.1f} [{apart['low']:+.1f}, {apart['high']:+.1f}]   "
        sys.stdout.write(f"{line.rstrip()}\n")


def measured(wb: Workbench, rows: Any, name: str, url: str, roles: tuple[str, ...]) -> Scores:
    """The rankings of the agent whose roles these are a model's."""
    own = {f"{role}_model": name if role in roles else RULES for role in ROLES}
    settings = wb.settings.model_copy(update={"chat_model": name, "chat_base_url": url, **own})
    context = wb.ports()
    held = wb._models_for(settings)

    of = QuestionSet(rows, wb.knowledge.get("musique"))
    at = replace(context, settings=settings, models=held, today="2026-01-01")
    found = wb.call(of.ask(AGENT, ranker(AGENT, at)))
    assert not found.failures, found.failures
    return of.scores(found, (FIRST,))


@contextlib.contextmanager
def model(rows: Any, corpus: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The name of the model that plans and reflects, and where it is."""
    if name := os.environ.get("WORKBENCH_CHAT_MODEL"):
        yield name, os.environ.get("WORKBENCH_CHAT_BASE_URL", "")
        return
    key = {row["question"]: row for row in rows}
    with scripted_server(Reply(["nothing"])) as server:
        server.respond = responder(
            planner=lambda text: plans(text, key), reflector=lambda text: reflects(text, key, corpus)
        )
        yield "openai:scripted", server.url


def plans(text: str, key: Mapping[str, Any]) -> dict[str, Any]:
    """The question, and its first hop, each searched by itself."""
    question = json.loads(text.rpartition("Question: ")[2].strip())
    hop = key[question]["decomposition"][0].replace(">>", " ")
    asked = {
        "whole": ("hybrid_search", question),
        "chain": ("chain_exploration", question),
        "hop": ("hybrid_search", hop),
    }
    steps = [{"name": n, "objective": q[:190], "tool": tool, "query": q[:290]} for n, (tool, q) in asked.items()]
    return {"steps": steps, "acceptance_criteria": [hop[:80]]}


def reflects(text: str, key: Mapping[str, Any], corpus: Mapping[str, Any]) -> dict[str, Any]:
    """Content when every gold passage stands among the first; else the next one is asked for."""
    question = text.partition("Question: ")[2].partition("\n")[0]
    row, shown = key[question], list(passages(text).values())[:FIRST]
    missing = [n for n, i in enumerate(row["gold"]) if not any(one.startswith(corpus[i]["title"]) for one in shown)]
    told = [
        {"need": n, "verdict": "missing" if missing else "met", "passages": [] if missing else [1]}
        for n, _ in enumerate(needs(text), 1)
    ]
    steps = []
    for n in missing[:2]:
        title, hop = corpus[row["gold"][n]]["title"], row["decomposition"][min(n, len(row["decomposition"]) - 1)]
        query = f"{title} {re.sub(r'#[0-9]+|>>', ' ', hop)}"[:290]
        steps.append({"name": f"hop{n}", "objective": title[:190], "tool": "hybrid_search", "query": query})
    return {"needs": told, "enough": not missing, "steps": steps, "reasoning": ""}


if __name__ == "__main__":
    main()
