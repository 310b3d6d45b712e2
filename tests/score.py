"""How many answers are right: over the films, over three corpora that are no films, and where a question says "not".

python -m tests.score [NAME]    with a name, docs/scores/NAME.md and NAME.json are written too
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import uuid
from pathlib import Path

from workbench import Workbench
from workbench.evaluating.judging import Words, claims
from workbench.evaluating.questions import counted, score_questions, split, table_text

from .blind import BLIND, SETS, questions, rows, vocabulary

ROOT = BLIND.parents[1]


def negations(wb: Workbench) -> list[dict]:
    """Each question asked: ``inverted`` where it cites what must never appear, ``whole`` where it has the rest."""
    found = []
    for gold in rows(BLIND / "negation.jsonl"):
        run = wb.ask(gold["question"], kb=gold["corpus"], session=uuid.uuid4().hex, incognito=True)
        marks = {n for claim in claims(run.answer or "") for n in claim.marks if n <= len(run.evidence)}
        sources = [run.evidence[n - 1]["metadata"] for n in marks]
        cited = {name for s in sources for name in (s.get("doc_id"), s.get("fields", {}).get("编号"))} - {None, ""}
        never, exact = ({d for item in gold[part] for d in item["cite"]} for part in ("never", "exact"))
        entry = {name: gold[name] for name in ("id", "corpus", "lang", "question")}
        found.append(
            {
                **entry,
                "inverted": bool(cited & never),
                "whole": exact <= cited and not cited & never,
                "said": run.answer,
            }
        )
    return found


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, Workbench.open(folder) as wb:
        scores = {}
        for name in SETS:
            report = wb.add_knowledge(
                name,
                [ROOT / "data" / "films.jsonl" if name == "films" else BLIND / name / "corpus"],
                vocabulary=None if name == "films" else BLIND / name / "vocabulary.toml",
            )
            print(f"{name}: {report.added} documents, {len(report.problems)} not taken", file=sys.stderr, flush=True)
            words = Words.read(vocabulary(name))
            scores[name] = score_questions(wb, questions(name), kb=name, words=words)
        denied = negations(wb)
    others = [score for name in SETS[1:] for score in scores[name]]
    tables = {
        "films": split(scores["films"]),
        "three other corpora": {**split(others), **{name: scores[name] for name in SETS[1:]}},
    }
    told = [f"{title}\n{table_text(groups, told=False)}" for title, groups in tables.items()]
    n = {what: sum(entry[what] for entry in denied) for what in ("inverted", "whole")}
    told.append(f"negation: {n['inverted']} of {len(denied)} inverted, {n['whole']} whole: they have all of the rest")
    print("\n\n".join(told))
    if len(sys.argv) > 1:
        write(ROOT / "docs" / "scores" / sys.argv[1], told, {**scores, "negation": denied})


def write(path: Path, told: list[str], document: dict) -> None:
    """The tables, what is wrong in each ``dev`` question, and all as JSON; of ``test`` the verdicts only."""
    commit = subprocess.check_output(
        ["git", "describe", "--always", "--dirty", "--abbrev=40"], cwd=ROOT, text=True
    ).strip()
    wrong = [
        f"| {s['id']} | {s['question']} | {'; '.join(s['wrong'])[:160]} |".replace("\n", " ")
        for name in SETS
        for s in document[name]
        if s["wrong"] and s["split"] == "dev"
    ]
    body = "\n".join(["| question | | what is wrong |", "| --- | --- | --- |", *wrong])
    path.parent.mkdir(parents=True, exist_ok=True)
    tables = "\n\n".join(told)
    path.with_suffix(".md").write_text(
        f"# Score at {commit}\n\n`make score`: `data/blind` asked of a fresh workspace.\n\n```\n{tables}\n```\n\n"
        f"What is wrong in the half that may be looked at (`dev`):\n\n{body}\n",
        encoding="utf-8",
    )
    document = {name: [_seen(s) for s in some] for name, some in document.items()}
    kept = {"commit": commit, "counts": {name: counted(document[name]) for name in SETS}, **document}
    path.with_suffix(".json").write_text(json.dumps(kept, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


def _seen(score: dict) -> dict:
    return {
        name: value for name, value in score.items() if score.get("split") != "test" or name not in ("said", "wrong")
    }


if __name__ == "__main__":
    main()
