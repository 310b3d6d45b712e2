"""Many questions at once: ``Workbench.map``."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Sequence
from typing import Any

from workbench.runs.run import Run
from workbench.runs.stored import snapshot
from workbench.state import Data, Json, Progress
from workbench.views.render import FrameList

_COLUMNS = "message run_id status kb answer error evidence seconds calls tokens money"


class Runs(FrameList[Any]):
    """The output of ``map``: a run for each question, or the error with which it could not begin."""

    columns = _COLUMNS.split()

    def __init__(self, runs: Any = (), questions: Any = ()):
        super().__init__(runs)
        self._questions = list(questions)

    def rows(self) -> list[Json]:
        """Return a row per question: what was asked, how it ended, the answer, why one failed, what models took."""
        return [self._row(place, entry) for place, entry in enumerate(self)]

    def _row(self, place: int, entry: Any) -> Json:
        if isinstance(entry, Run):
            run = snapshot(entry)
            names = ("message", "run_id", "status", "answer", "error")
            row = {name: getattr(run, name) for name in names}
            row |= {"kb": run.state.get("kb_prefix", ""), "evidence": len(run.evidence)}
            row["seconds"] = run.to_dict()["figures"]["total_s"]
            return row | run.calls().total()
        question = self._questions[place] if len(self._questions) == len(self) else ""
        return {
            "message": question,
            "status": "refused",
            "error": f"{type(entry).__name__}: {entry}",
        }

    def _repr_html_(self) -> str:
        # a cell that is executed again shows the same
        frame = self.to_frame().drop(columns="seconds")
        return str(frame.to_html(index=False))


async def map_questions(
    start: Callable[..., Run],
    questions: Sequence[str],
    return_exceptions: bool,
    progress: Progress | None,
    options: Data,
) -> Runs:
    """Ask them, ten at a time, and tell how many have ended."""
    slots = asyncio.Semaphore(10)
    done = itertools.count(1)
    tell = progress or (lambda *_: None)

    async def ask_one(message: str) -> Run:
        async with slots:
            try:
                return await start(message, **options).aio.wait()
            finally:
                tell("asked", next(done), len(questions))

    ended = await asyncio.gather(*map(ask_one, questions), return_exceptions=True)
    refused = next((entry for entry in ended if isinstance(entry, BaseException)), None)
    if refused is not None and not (return_exceptions and isinstance(refused, Exception)):
        run_ids = ", ".join(entry.run_id for entry in ended if isinstance(entry, Run))
        refused.add_note(
            f"The other runs of this map: {run_ids or 'none'}. return_exceptions=True gives them back."
        )
        raise refused
    return Runs(ended, questions)
