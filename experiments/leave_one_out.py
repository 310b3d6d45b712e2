"""Show which step and which cited piece each sentence of an answer rests on: each is left out of the merge once.

    python experiments/leave_one_out.py WORKSPACE RUN_ID

Plan, tools and reflections come from the tape; only merge and answer are made again, in forks that are removed. What
two steps found, neither of them alone takes away.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator

import pandas

from workbench.errors import RunError
from workbench.language.citing import marked_sentences
from workbench.plans import ENDED_WELL, last_records
from workbench.runs.run import Run
from workbench.session import Workbench

MARKS = re.compile(r"\s?\[\d+\]")


def sentences(answer: str) -> list[str]:
    """Return the sentences of an answer without their marks."""
    return [bare for one in marked_sentences(answer) if (bare := MARKS.sub("", one).strip())]


def removable(run: Run) -> Iterator[tuple[str, str]]:
    """Yield each step that found something, then each piece that the answer cites."""
    for step_id, record in last_records(run.records).items():
        if record["status"] in ENDED_WELL and record["output_summary"]["evidence_count"]:
            yield "steps", step_id
    for result_id in dict.fromkeys(citation["result_id"] for citation in run.citations):
        yield "evidence", result_id


def answer_without(wb: Workbench, run: Run, without: dict[str, list[str]]) -> list[str]:
    """Return the sentences of the answer without something; the fork that makes it is removed."""
    # Without a step the reflector would search on, so the fork has no more passes than the run had.
    passes = {"max_iterations": len(run.reflections)}
    fork = run.fork(without=without, mismatch="rules", rest="rules", settings=passes)
    found, status, called = sentences(fork.answer), fork.status, fork.called
    wb.runs.remove(fork.run_id)
    if status != "done" or called:
        raise RunError(f"The fork without {without} is {status} and called {called or 'nothing'}: no comparison.")
    return found


def leave_one_out(wb: Workbench, run: Run) -> pandas.DataFrame:
    """Return a row per removal: ``kind``, ``left_out``, ``gone`` and ``added``, sentences without their marks.

    Raises:
        RunError: the run cannot be made again from its tape as it was.
    """
    whole = sentences(run.answer)
    if answer_without(wb, run, {}) != whole:
        raise RunError(f"Run {run.run_id} cannot be made again as it was: no difference could be laid to a removal.")
    rows = []
    for kind, name in removable(run):
        left = answer_without(wb, run, {kind: [name]})
        gone, added = [s for s in whole if s not in left], [s for s in left if s not in whole]
        rows.append({"kind": kind, "left_out": name, "gone": gone, "added": added})
    return pandas.DataFrame(rows, columns=["kind", "left_out", "gone", "added"])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("workspace")
    parser.add_argument("run_id")
    given = parser.parse_args()
    with Workbench.open(given.workspace) as bench:
        sys.stdout.write(leave_one_out(bench, bench.run(given.run_id)).to_string() + "\n")
