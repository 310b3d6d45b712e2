"""The runs of a workspace as a whole."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from workbench.errors import RunError, shown
from workbench.records.figures import figures as count
from workbench.records.proposals import ledger
from workbench.runs.family import fork_changes
from workbench.runs.forecast import forecast
from workbench.runs.run import Run
from workbench.state import Data, Json, without_none
from workbench.text import clean, to_json
from workbench.views.labels import need_states

if TYPE_CHECKING:
    import pandas

    from workbench.runs.work import Work
    from workbench.views.runs import RunLines


class WorkspaceRuns:
    """The runs of a workspace, newest first."""

    def __init__(self, work: Work, workspace: Any):
        self._work = work
        self._workspace = workspace

    def list(self, limit: int = 100, **equals: str) -> Sequence[Run]:
        """Return the newest runs; ``equals`` narrows by ``session_id``, ``user_id``, ``status`` or ``graph``."""
        return [self._workspace.run(run_id) for run_id in self._ids(limit, equals)]

    def lines(self, limit: int = 100, text: str = "", tag: str = "", **equals: str) -> RunLines:
        """Return what a list shows of each run, in a few queries for all.

        Args:
            limit: how many at most, the newest.
            text: words that are in its id, title, question, answer's first line, tags or note.
            tag: one of its tags.
            equals: the value of a column, as ``status="done"``, ``kb="papers"``, ``graph="my_agent"``,
                ``session_id="talk"``, or ``origin=run_id`` for what was made of a run, and of that.
        """
        from workbench.views.runs import RunLines

        stored = {
            name: equals[name] for name in equals if name in ("session_id", "user_id", "graph")
        }
        narrowed = bool(text or tag or equals.keys() - stored.keys())
        rows = self._work.lines(self._ids(2**31 if narrowed else limit, stored))
        fitting = [row for row in rows if fits(row, text, tag, **equals)]
        lines = RunLines(fitting[: checked_limit(limit)])
        run = self._workspace.run
        lines.changes = lambda line: fork_changes(run(line["run_id"]), line["origin"])
        return lines

    def find(self, text: str = "", limit: int = 100, **narrowed: str) -> Sequence[Run]:
        """Return the newest runs that these words and values are in; narrowed as in ``lines``."""
        return [self._workspace.run(row["run_id"]) for row in self.lines(limit, text, **narrowed)]

    def costs(self, run_id: str) -> Json:
        """Return the seconds, calls, models, tokens, money, needs and score of a run; None where nothing is counted.

        The ``calls`` of tools were made, the ``saved_calls`` reused; ``saved_seconds`` are those of these,
        ``cited`` passages of the answer. ``needs_met`` of its ``needs`` are met, surely or likely, and
        ``needs_unjudged`` nothing judged. The score is the share of the answer's statements that their sources support.
        Once a run has ended, they are kept when first asked for.
        """
        run = self._workspace.run(run_id)
        if figures := run._store.figures(run.run_id):
            return figures
        store, run = run._store, run._read_once()
        calls = run.calls()
        total = calls.total()
        backed = {"citations": run.citations, "support": run.state.get("support")}
        counted = count({"records": run.records, "log": run.log, **backed})
        states = need_states(ledger({"reflections": run.reflections, "decisions": run.decisions}))
        figures = {
            "seconds": counted["total_s"],
            "saved_seconds": counted["saved_s"],
            "calls": counted["calls"],
            "saved_calls": counted["saved_calls"],
            "cited": counted["cited"],
            "model": ", ".join(dict.fromkeys(call["model"] for call in calls)),
            "tokens": total["tokens"] or None,
            "money": total["money"],
            "needs": states["needed"] or None,
            "needs_met": states["reached"],
            "needs_unjudged": states["unjudged"],
            "score": counted["citation_recall"],
        }
        store.save_figures(run.row, figures)
        return figures

    def annotate(
        self,
        run_id: str,
        *,
        title: str | None = None,
        tags: Sequence[str] | None = None,
        note: str | None = None,
    ) -> None:
        """Give a run a title, tags or a note; None leaves what is there."""
        about = json.loads(self.draft(run_id, "about") or "{}")
        changes = {
            "title": title,
            "tags": None if tags is None else [clean(str(tag)) for tag in tags],
            "note": note,
        }
        about |= without_none(changes)
        self.save_draft(self._workspace.run(run_id).run_id, "about", to_json(about))

    def to_frame(self, limit: int = 100, text: str = "", **narrowed: str) -> pandas.DataFrame:
        """Return one row per run: ``lines`` as a table, with what each has cost."""
        import pandas

        return pandas.DataFrame(
            [row | self.costs(row["run_id"]) for row in self.lines(limit, text, **narrowed)]
        )

    forecast = staticmethod(forecast)

    def remove(self, run_id: str) -> None:
        """Forget a run with everything that it did; what was said in its conversation stays.

        Raises:
            RunError: it still runs.
        """
        self._work.remove(self._workspace.run(run_id).run_id)

    def draft(self, run_id: str, name: str) -> str:
        """Return what a person has typed or chosen for a run and not sent, by name; empty when nothing."""
        return self._work.driver(run_id).runs.draft(run_id, name)

    def save_draft(self, run_id: str, name: str, text: str) -> None:
        """Keep what a person has typed or chosen and not sent; it is there again after a restart."""
        self._work.driver(run_id).runs.save_draft(run_id, name, text)

    def __contains__(self, run_id: str) -> bool:
        return self._work.driver(run_id).runs.has(run_id)

    def _ids(self, limit: int, equals: Mapping[str, str]) -> Sequence[str]:
        wanted = {name: clean(str(value)) for name, value in equals.items()}
        return self._work.durable.runs.ids(checked_limit(limit), **wanted)

    def _repr_html_(self) -> str:
        return self.lines()._repr_html_()

    def __repr__(self) -> str:
        return "\n".join(
            f"{row['run_id']}  {row['status']:11}  {row['message'][:80]}" for row in self.lines()
        )


def fits(row: Data, words: str = "", tag: str = "", **equals: str) -> bool:
    """Check whether a line of a run has these words, this tag and these values."""
    texts = [row[name] for name in ("run_id", "title", "message", "answer", "note")]
    text = " ".join([*texts, *row["tags"]]).casefold()
    has_words = all(word in text for word in clean(words).casefold().split())
    has_tag = not tag or tag in row["tags"]
    values = {**row, "origin": equals.get("origin") in row["origins"] and equals["origin"]}
    return (
        has_words
        and has_tag
        and all(str(values.get(name) or "") == value for name, value in equals.items())
    )


def checked_limit(limit: Any) -> int:
    """Return how many are wanted.

    Raises:
        RunError: it is no whole number of 1 or more.
    """
    if isinstance(limit, bool) or not isinstance(limit, int) or limit < 1:
        raise RunError(f"limit is {shown(limit)}. Give a whole number of 1 or more.")
    return min(limit, 2**31)
