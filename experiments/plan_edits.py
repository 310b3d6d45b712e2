"""Measure edits of plans: ``python -m experiments.plan_edits QUESTIONS --kb NAME [--workspace DIR] [--limit 40]``.

Each question is asked once; each edit of its plan is a fork of that run, of which the tape answers all that the edit
does not touch. A row per kind of edit: on how many questions it was possible, all gold documents among the first five,
right answers, seconds, and their difference to the plan as it was, with intervals and a decision. ``--by`` splits by a
field of the questions, as ``kind``.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from pathlib import Path

import pandas

from workbench import Workbench
from workbench.errors import PlanError, WorkbenchError
from workbench.parts.evaluate.questions import choose, read_rows
from workbench.parts.experiments.notebook import conversation
from workbench.parts.experiments.results import score
from workbench.parts.experiments.statistics import differences
from workbench.plans import Plan
from workbench.state import Json

OTHER = {
    "hybrid_search": "keyword_search",
    "keyword_search": "hybrid_search",
    "vector_search": "hybrid_search",
}
Edit = Callable[[Json], Json | None]


def drop(plan: Json) -> Json | None:
    """Leave out the last step that no other needs."""
    needed = {name for step in plan["steps"] for name in step.get("depends_on", [])}
    free = [step for step in plan["steps"] if step["step_id"] not in needed]
    if len(plan["steps"]) < 2 or not free:
        return None
    return {**plan, "steps": [step for step in plan["steps"] if step is not free[-1]]}


def reorder(plan: Json) -> Json | None:
    """Turn the order of the steps round that need no other."""
    free = [step for step in plan["steps"] if not step.get("depends_on")]
    rest = [step for step in plan["steps"] if step.get("depends_on")]
    return {**plan, "steps": [*free[::-1], *rest]} if len(free) > 1 else None


def other_tool(plan: Json) -> Json | None:
    """Search by words alone where both were used, and the other way round."""
    return _each(
        plan,
        lambda step: {**step, "tool": OTHER[step["tool"]]} if step["tool"] in OTHER else None,
    )


def twice(plan: Json) -> Json | None:
    """Take twice as many results of each step."""

    def more(step: Json) -> Json | None:
        budget = step.get("budget") or {}
        return (
            {**step, "budget": {**budget, "top_k": 2 * budget["top_k"]}}
            if budget.get("top_k")
            else None
        )

    return _each(plan, more)


def split(plan: Json) -> Json | None:
    """Search for the first and the second half of the first step's query apart."""
    first, *rest = plan["steps"]
    words = str(first.get("tool_input", {}).get("query", "")).split()
    if len(words) < 6:
        return None
    halves = (words[: len(words) // 2], words[len(words) // 2 :])
    name = first["step_id"]
    parts = [
        {
            **first,
            "step_id": f"{name}_{n}",
            "tool_input": {**first["tool_input"], "query": " ".join(half)},
        }
        for n, half in enumerate(halves, start=1)
    ]
    for step in rest:
        needs = step.get("depends_on", [])
        kept = [other for other in needs if other != name]
        parts.append(
            {**step, "depends_on": [*kept, f"{name}_1", f"{name}_2"]} if name in needs else step
        )
    return {**plan, "steps": parts}


def reword(plan: Json) -> Json | None:
    """Search for the longer words of a query alone."""

    def longer(step: Json) -> Json | None:
        query = str(step.get("tool_input", {}).get("query", ""))
        words = " ".join(word for word in query.split() if len(word) > 3)
        return (
            {**step, "tool_input": {**step["tool_input"], "query": words}}
            if words and words != query
            else None
        )

    return _each(plan, longer)


def another_need(plan: Json) -> Json | None:
    """Add the question itself to what the answer needs."""
    criteria = plan.get("acceptance_criteria") or []
    more = [*criteria, plan["problem_statement"]]
    return (
        {**plan, "acceptance_criteria": more}
        if plan["problem_statement"] not in criteria
        else None
    )


def _each(plan: Json, change: Callable[[Json], Json | None]) -> Json | None:
    steps = [change(step) for step in plan["steps"]]
    if not any(steps):
        return None
    return {**plan, "steps": [new or old for new, old in zip(steps, plan["steps"], strict=True)]}


EDITS: dict[str, Edit] = {
    "drop": drop, "split": split, "reorder": reorder, "other tool": other_tool, "k x 2": twice, "re-word": reword,
    "another need": another_need,
}  # fmt: skip
MEASURES = ("all@5", "right")


def rows(
    wb: Workbench, kb: str, questions: list[Json], by: str, edits: list[str]
) -> Iterator[Json]:
    """Yield a row for each question as planned and with each of these edits that its plan allows."""
    for question in questions:
        run = wb.ask(question["question"], kb=kb, **conversation("plan_edits"))
        if run.status != "done" or not run.plans:
            continue
        own = {"question": question["id"], "kind": str(question.get(by, ""))}
        yield {**own, "edit": "as planned", **_measured(question, run), "seconds": _seconds(run)}
        for name in edits:
            changed = EDITS[name](run.plans[0]["plan"].dump())
            if changed is None:
                continue
            try:
                fork = run.fork(plan=Plan.load(changed))
            except (PlanError, WorkbenchError):
                continue
            yield {**own, "edit": name, **_measured(question, fork), "seconds": _seconds(fork)}


def _measured(question: Json, run: object) -> Json:
    """Return the figures of a run; whether an answer is right only where the question says what is."""
    values = score(question, run)
    has_answer = any(
        name in question for name in ("answer", "answers", "must", "list", "number", "refuse")
    )
    found = {"all@5": float(values["R@5"] >= 1)} if "R@5" in values else {}
    return found | ({"right": values["right"]} if has_answer else {})


def _seconds(run: object) -> float:
    return sum(record["duration_ms"] for record in run.records) / 1000  # type: ignore[attr-defined]


def table(frame: pandas.DataFrame) -> pandas.DataFrame:
    """Return a row for each edit: what it does to each measure, on the questions that allow it."""
    lines = []
    for name in frame["edit"].unique()[1:]:
        edited = frame[frame["edit"] == name].set_index("question")
        planned = frame[frame["edit"] == "as planned"].set_index("question").loc[edited.index]
        line: Json = {"edit": name, "questions": len(edited)}
        for measure in [
            name for name in MEASURES if name in frame and edited[name].notna().any()
        ]:
            scores = {
                "as planned": planned[measure].dropna().to_dict(),
                name: edited[measure].dropna().to_dict(),
            }
            apart = differences(scores, "as planned", 5)[name]
            line |= {
                measure: f"{apart.mean:+.1f} [{apart.low:+.1f}, {apart.high:+.1f}]",
                f"{measure}: ": apart.decision,
            }
        if len(edited):
            line["seconds"] = round(float((edited["seconds"] - planned["seconds"]).mean()), 3)
        lines.append(line)
    return pandas.DataFrame(lines)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("questions", type=Path)
    parser.add_argument("--kb", default="film")
    parser.add_argument("--workspace", default=".workbench")
    parser.add_argument("--limit", type=int, default=40)
    parser.add_argument("--by", default="kind")
    parser.add_argument("--edits", nargs="+", default=list(EDITS), choices=EDITS)
    options = parser.parse_args()
    with Workbench.open(options.workspace) as wb:
        questions = choose(read_rows(options.questions, "id", "question"), None, options.limit)
        frame = pandas.DataFrame(rows(wb, options.kb, questions, options.by, options.edits))
    print(table(frame).to_string(index=False))
    for kind, part in frame.groupby("kind"):
        if frame["kind"].nunique() > 1:
            print(f"\n{options.by}: {kind}\n{table(part).to_string(index=False)}")


if __name__ == "__main__":
    main()
