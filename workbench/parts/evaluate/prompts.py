"""Measure prompts, next to those that are set, on the same questions: what they change in answers and in the work.

Next to the measures of ``answers``, a question has:

    found     gold documents among all that the steps found
    stopped   the search ended when it should: after the first pass that found every gold document, or, where none did,
              not because the evidence was called enough; without gold documents, it was called enough and is right
    steps, passes, calls, tokens   numbers, not percent
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.errors import CorpusError
from workbench.parts.evaluate.answers import GOLD_FIELDS, ask_all, faults, gold_documents, names_of, score_runs
from workbench.parts.evaluate.measures import Progress, Rows, compare
from workbench.parts.evaluate.questions import Row, choose, read_rows
from workbench.plans import last_records

if TYPE_CHECKING:
    from workbench.session import Workbench

AS_SET = "as set"
COUNTS = ("steps", "passes", "calls", "tokens")


def eval_prompts(
    wb: Workbench,
    kb: str,
    questions: Path,
    prompts: Mapping[str, Path],
    *,
    where: Mapping[str, str] | None = None,
    limit: int | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> Rows:
    """Return a table with a line for the prompts that are set and one for each of ``prompts``, paired.

    Args:
        wb: an open workspace.
        kb: the knowledge base to ask.
        questions: JSON Lines with gold, as ``eval_answers`` reads it.
        prompts: a file by the name of a prompt, as ``planner`` or ``planner.zh``.
        where: only questions that hold these values.
        limit: only so many of them.
        progress: called after each question.
        **options: of ``ask``, for every question.

    Raises:
        CorpusError: no question has gold.
        SettingsError: a file is no prompt, or there is no such role.
    """
    rows = [row for row in choose(read_rows(questions, "id", "question"), where, limit) if row.keys() & {*GOLD_FIELDS}]
    if not rows:
        raise CorpusError(f"No question of {questions} says what is right.")
    ways: dict[str, Any] = {AS_SET: {}} | {
        f"{name}={path}": {"prompts": {name: path}} for name, path in prompts.items()
    }
    scores, values = dict[str, Any](), dict[str, Any]()
    for way, prompt in ways.items():
        runs = ask_all(wb, rows, progress, way, kb=kb, **prompt, **options)
        values[way] = {row["id"]: _work(row, run) for row, run in zip(rows, runs, strict=True)}
        right = score_runs(rows, runs)
        work = {name: {i: value[name] for i, value in values[way].items()} for name in (*COUNTS, "found", "stopped")}
        # `compare` writes percent: a hundredth of a number comes out as the number
        scores[way] = {**right, **{name: {i: v / 100 for i, v in work[name].items()} for name in COUNTS}}
        scores[way] |= {name: work[name] for name in ("found", "stopped")}
        values[way] = {i: {"right": right["right"][i], **value} for i, value in values[way].items()}
    table = compare("way", rows, scores)
    pairs = [
        {
            "id": row["id"],
            "question": row["question"],
            "wrong": [],
            "ways": {way: values[way][row["id"]] for way in ways},
        }
        for row in rows
    ]
    return Rows(set=kb, questions=len(rows), **table, rows=pairs)


def _work(row: Row, run: Any) -> dict[str, float]:
    """Return what a run took, what it found, and whether it ended when it should."""
    records, total = run.records, run.calls().total()
    passes = max((record["iteration"] for record in records), default=0)
    wanted, when = set(gold_documents(row)), _first_passes(run)
    reason = run.reflections[-1]["stop_reason"] if run.reflections else None
    enough = reason == "quality_satisfied"
    complete = max((when.get(name, passes + 1) for name in wanted), default=0)
    right = not (row.get("refuse") or any(faults(row, run)))
    stopped = (complete == passes if complete <= passes else not enough) if wanted else enough is right
    return {
        "steps": len(last_records(records)),
        "passes": passes,
        "calls": total["calls"],
        "tokens": total["tokens"],
        "found": sum(name in when for name in wanted) / max(1, len(wanted)),
        "stopped": float(stopped),
    }


def _first_passes(run: Any) -> dict[str, int]:
    """Return for each document the pass that found it first."""
    passes = {step_id: record["iteration"] for step_id, record in last_records(run.records).items()}
    when = dict[str, int]()
    for step_id, results in sorted(run._results_by_step().items(), key=lambda item: passes[item[0]]):
        for name in (name for result in results for name in names_of(result)):
            when.setdefault(name, passes[step_id])
    return when


def pairs_text(table: Rows) -> str:
    """Return each question with what it was answered by each prompt."""
    import pandas

    rows: Sequence[Any] = table["rows"]
    lines = {f"{row['id']} {way}": values for row in rows for way, values in row["ways"].items()}
    return str(pandas.DataFrame.from_dict(lines, orient="index").to_string())
