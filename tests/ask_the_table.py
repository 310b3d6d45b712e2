"""Index the films in a fresh workspace, ask every nth question of the table, print the canonical bytes of each run.

python tests/ask_the_table.py FOLDER [N]    a line a question; all of them without N
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from workbench import Workbench
from workbench.parts.evaluate.answers import ask_all
from workbench.parts.evaluate.questions import read_rows
from workbench.records.tape import canonical

PROJECT = Path(__file__).resolve().parent.parent


def main(folder: str, every: str = "1") -> None:
    with Workbench.open(folder) as wb:
        wb.add_knowledge("film", [PROJECT / "data" / "films.jsonl"])
        rows = read_rows(PROJECT / "experiments" / "film_questions.jsonl", "id", "question")[:: int(every)]
        for row, run in zip(rows, ask_all(wb, rows, kb="film"), strict=True):
            document = {**run.to_dict(), "evidence": run.evidence, "merged": run.state.get("merged")}
            print(json.dumps([row["id"], canonical(document).decode()], ensure_ascii=False), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
