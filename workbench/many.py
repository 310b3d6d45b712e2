"""Many questions asked at once: the runs in the order of the questions, as a list that is a table too."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from workbench.run import Run

if TYPE_CHECKING:
    import pandas


class Runs(list[Any]):
    """What ``map`` gives: a run for each question, or the error with which it could not begin."""

    def __init__(self, found: Any = (), questions: Any = ()):
        super().__init__(found)
        self._questions = list(questions)

    def to_frame(self) -> pandas.DataFrame:
        """One row a question: what was asked, how it ended, the answer, the error of one that failed."""
        import pandas

        return pandas.DataFrame([self._row(place, one) for place, one in enumerate(self)], columns=list(_COLUMNS))

    def _row(self, place: int, one: Any) -> dict[str, Any]:
        if isinstance(one, Run):
            seconds = one.to_dict()["figures"]["total_s"]
            about = {"message": one.message, "run_id": one.run_id, "status": one.status, "kb": one.kb_prefix}
            return {
                **about,
                "answer": one.answer,
                "error": one.error,
                "evidence": len(one.evidence),
                "seconds": seconds,
            }
        asked = self._questions[place] if len(self._questions) == len(self) else ""
        return {"message": asked, "status": "refused", "error": f"{type(one).__name__}: {one}"}

    def _repr_html_(self) -> str:
        rows = [self._row(place, one) for place, one in enumerate(self)]
        head = "".join(f"<th>{escape(name)}</th>" for name in _COLUMNS)
        cells = ["".join(f"<td>{escape(str(row.get(name) or ''))}</td>" for name in _COLUMNS) for row in rows]
        body = "".join(f"<tr>{line}</tr>" for line in cells)
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


async def asked_each(
    ask: Callable[..., Awaitable[Run]],
    questions: Sequence[str],
    return_exceptions: bool,
    progress: Callable[[str, int, int], None] | None,
    options: Mapping[str, Any],
) -> Runs:
    """Ask them, ``AT_ONCE`` at a time, and tell how many have ended."""
    slots, done = asyncio.Semaphore(AT_ONCE), itertools.count(1)
    tell = progress or (lambda *_: None)

    async def one(message: str) -> Run:
        async with slots:
            try:
                return await ask(message, **options)
            finally:
                tell("asked", next(done), len(questions))

    ended = Runs(await asyncio.gather(*map(one, questions), return_exceptions=True), questions)
    refused = next((one for one in ended if isinstance(one, BaseException)), None)
    if refused is not None and not (return_exceptions and isinstance(refused, Exception)):
        kept = ", ".join(one.run_id for one in ended if isinstance(one, Run))
        refused.add_note(f"The other runs of this map: {kept or 'none'}. return_exceptions=True gives them back.")
        raise refused
    return ended


AT_ONCE = 10
_COLUMNS = ("message", "run_id", "status", "kb", "answer", "error", "evidence", "seconds")
