"""Let somebody else's optimiser write a prompt, and test it on the half of the questions that it never saw.

    pip install gepa
    python -m experiments.optimised_prompt film questions.jsonl reflector openai/gpt-5-mini mine.toml

A prompt is a file, so whatever writes text can write one: DSPy, GEPA, a person. Here GEPA changes the instructions of a
role; a question's score is that of ``eval answers`` (``right``), less a little for each call of a model.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from workbench import Workbench
from workbench.parts.evaluate.answers import ask_all, eval_answers, faults
from workbench.parts.evaluate.questions import read_rows

CALL = 0.01
"""What a call of a model costs in points: of two prompts that are right the shorter way wins."""


def halves(questions: Path, folder: Path) -> tuple[Path, Path]:
    """Write every other question to one file and the rest to another: what is optimised on, and what is held out."""
    rows = read_rows(questions, "id", "question")
    paths = folder / "optimised_on.jsonl", folder / "held_out.jsonl"
    for path, half in zip(paths, (rows[::2], rows[1::2]), strict=True):
        path.write_text(
            "\n".join(json.dumps(row, ensure_ascii=False) for row in half), encoding="utf-8"
        )
    return paths


def write_prompt(wb: Workbench, role: str, system: str, path: Path) -> Path:
    """Write the prompt of a role with other instructions as a file."""
    prompt = {
        "version": wb.prompts[role].version + 1,
        "system": system,
        "user": wb.prompts[role].user,
    }
    path.write_text(
        "\n".join(f"{name} = {json.dumps(value)}" for name, value in prompt.items()),
        encoding="utf-8",
    )
    return path


class Adapter:
    """What GEPA asks: how good a candidate is on some questions, and what went wrong with it."""

    def __init__(self, wb: Workbench, kb: str, role: str, folder: Path):
        self.wb = wb
        self.kb = kb
        self.role = role
        self.folder = folder
        self.propose_new_texts = None

    def evaluate(
        self, batch: Sequence[Any], candidate: Mapping[str, str], capture_traces: bool = False
    ) -> Any:
        """Return the score of each question, with what was wrong with its answer."""
        from gepa.core.adapter import EvaluationBatch

        scores, traces = self.scores(batch, candidate[self.role])
        return EvaluationBatch(
            outputs=traces, scores=scores, trajectories=traces if capture_traces else None
        )

    def scores(
        self, batch: Sequence[Any], system: str
    ) -> tuple[list[float], list[dict[str, Any]]]:
        """Ask these questions with these instructions."""
        try:
            prompts = {
                self.role: write_prompt(
                    self.wb, self.role, system, self.folder / "candidate.toml"
                )
            }
            runs = ask_all(self.wb, batch, kb=self.kb, prompts=prompts)
        except Exception as error:  # a candidate that names a slot that there is not, say
            return [-1.0] * len(batch), [
                {"question": row["question"], "wrong": [str(error)]} for row in batch
            ]
        wrong = [list(faults(row, run)) for row, run in zip(batch, runs, strict=True)]
        scores = [(not w) - CALL * len(run.calls()) for w, run in zip(wrong, runs, strict=True)]
        traces = [
            {
                "question": row["question"],
                "wrong": w,
                "said": [call["reply"] for call in run.calls().by_role(self.role)],
            }
            for row, run, w in zip(batch, runs, wrong, strict=True)
        ]
        return scores, traces

    def make_reflective_dataset(
        self, candidate: Any, batch: Any, components: Sequence[str]
    ) -> dict[str, list[Any]]:
        """Return what a model reads that proposes better instructions."""
        records = [
            {
                "Inputs": t["question"],
                "Generated Outputs": t.get("said", []),
                "Feedback": "; ".join(t["wrong"]) or "right",
            }
            for t in batch.trajectories
        ]
        return dict.fromkeys(components, records)


def main(kb: str, questions: str, role: str, reflector: str, path: str, calls: int = 200) -> None:
    import gepa

    file = Path(path)
    folder = Path(path).parent
    with Workbench.open(".workbench") as wb:
        mine, held_out = halves(Path(questions), folder)
        rows = read_rows(mine, "id", "question")
        found = gepa.optimize(
            seed_candidate={role: wb.prompts[role].system},
            trainset=rows[::2],
            valset=rows[1::2],
            adapter=Adapter(wb, kb, role, folder),
            reflection_lm=reflector,
            max_metric_calls=calls,
        )
        write_prompt(wb, role, found.best_candidate[role], file)
        ways = {"as set": {}, "optimised": {"prompts": {role: file}}}
        sys.stdout.write(f"{eval_answers(wb, kb, held_out, ways=ways)}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
