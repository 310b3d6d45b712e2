"""How many answers are right: over the films, over three corpora that are no films, and where a question says "not".

python -m experiments.score
"""

from __future__ import annotations

import tempfile
import uuid

from experiments.blind import BLIND, SETS, rows
from workbench import Workbench
from workbench.parts.evaluate.answers import eval_answers


def negations(wb: Workbench) -> list[dict]:
    """Each question asked: ``inverted`` where it cites what must never appear, ``whole`` where it has the rest."""
    found = []
    for gold in rows(BLIND / "negation.jsonl"):
        run = wb.ask(
            gold["question"], kb=gold["corpus"], session=uuid.uuid4().hex, incognito=True
        )
        sources = [run.evidence[c["n"] - 1]["metadata"] for c in run.citations]
        cited = {
            name for s in sources for name in (s.get("doc_id"), s.get("fields", {}).get("编号"))
        } - {None, ""}
        never, exact = (
            {d for item in gold[part] for d in item["cite"]} for part in ("never", "exact")
        )
        whole = exact <= cited and not cited & never
        found.append(
            {"question": gold["question"], "inverted": bool(cited & never), "whole": whole}
        )
    return found


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, Workbench.open(folder) as wb:
        for name in SETS:
            wb.add_knowledge(
                name,
                [
                    BLIND.parents[1] / "data" / "films.jsonl"
                    if name == "films"
                    else BLIND / name / "corpus"
                ],
                vocabulary=None if name == "films" else BLIND / name / "vocabulary.toml",
            )
            print(
                eval_answers(wb, name, BLIND / name / "questions.jsonl"), end="\n\n", flush=True
            )
        denied = negations(wb)
    n = {what: sum(entry[what] for entry in denied) for what in ("inverted", "whole")}
    print(
        f"negation: {n['inverted']} of {len(denied)} inverted, {n['whole']} whole: they have all of the rest"
    )


if __name__ == "__main__":
    main()
