"""What an open workspace makes of its runs: each method opens its room of this package when it is called."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from workbench.run import Run
from workbench.tape import Mode
from workbench.text import clean

if TYPE_CHECKING:
    from workbench.futures.compare import Comparison
    from workbench.futures.graft import Graft
    from workbench.knowledge.library import Library
    from workbench.lineage import Tree
    from workbench.settings import Settings
    from workbench.work import Work


class Futures:
    """Runs replayed, compared, grafted, sealed, and turned into tests."""

    knowledge: Library
    settings: Settings
    _work: Work

    if TYPE_CHECKING:  # the workspace itself has these

        def run(self, run_id: str) -> Run:
            """A run of this workspace."""

        def _must_be_open(self) -> None: ...

    def replay(self, run_id: str, mode: Mode = "replay", corpus: Literal["check", "tape"] = "check") -> Run:
        """Run it once more from its tape: its plan, evidence, decisions and answer, to the same bytes.

        Args:
            run_id: a run that is done.
            mode: ``replay`` takes everything from the tape: no network, no model, no clock; ``regression`` asks models
                again, and takes tools and knowledge from the tape; ``check`` routes, plans, reflects and merges by
                today's code, and compares the course that it takes, not what models word.
            corpus: ``check`` compares the knowledge bases of this workspace with those of the recording, where they are
                here; ``tape`` does not look at them.

        Returns:
            The new run, which is done.

        Raises:
            Divergence: the first point at which the tape does not fit: expected, got, and which input differs.
            RunError: the run is not done.
        """
        from workbench.futures.replay import replayed

        self._must_be_open()
        return replayed(self.run(run_id), self.knowledge, self.settings, mode, corpus)

    def export(self, run_id: str, path: str | Path) -> Path:
        """Seal a run that has ended in a zip file, without any secret: the same run gives the same bytes.

        Raises:
            CapsuleError: the run has not ended, or the file is there and is something else.
        """
        from workbench.futures.capsule import exported

        run = self.run(run_id)
        return exported(run, self._work.driver(run.run_id).runs, Path(path).expanduser(), self.settings)

    def import_capsule(self, path: str | Path, *, as_new: bool = False) -> Run:
        """Bring in a run that ``export`` sealed, to be shown, replayed and forked without its corpus.

        The same run here already is left as it is; ``as_new`` gives it a new id, when another run has its own.

        Raises:
            CapsuleError: the file is no capsule, or is damaged, newer or made to do harm; nothing was written.
        """
        from workbench.futures.capsule import brought

        self._must_be_open()
        return self.run(brought(Path(path).expanduser(), self._work.durable.runs, self.run, self.settings, as_new))

    def has_run(self, run_id: str) -> bool:
        """Whether there is a run of that id."""
        return self._work.driver(run_id).runs.has(run_id)

    def make_test(self, run_id: str, path: str | Path | None = None) -> Path:
        """Write a run as a pytest file, its capsule beside it, that fails when today's code takes another course.

        Without a path it is ``tests/test_run_RUN_ID.py``.

        Raises:
            RunError: the run is not done, or has no tape.
            CapsuleError: one of the two files is there and is something else.
        """
        from workbench.futures.made_test import made

        run = self.run(run_id)
        where = Path(path).expanduser() if path is not None else Path("tests") / f"test_run_{run.run_id}.py"
        return made(run, self._work.driver(run.run_id).runs, where, self.settings)

    def compare(self, *runs: Run | str) -> Comparison:
        """Two to four runs beside one another: where they part, and what each planned, found, decided, took and said.

        The first is what the others are compared with. What differs beside the edit (the knowledge base, settings, a
        model) is said; which run is better is not.

        Raises:
            RunError: fewer than two, or more than four.
            UnknownRun: there is none of that id.
        """
        from workbench.futures.compare import compared

        return compared([run if isinstance(run, Run) else self.run(run) for run in runs], self)

    def tree(self, run: Run | str | None = None) -> Tree:
        """Every run with its forks, replays and grafts: what was edited in each, how it stands, what the tape saved.

        Args:
            run: only the tree in which this one stands.

        Raises:
            UnknownRun: there is none of that id.
        """
        from workbench.lineage import tree

        named = run.run_id if isinstance(run, Run) else clean(str(run)) if run is not None else None
        return tree(self._work.durable.runs.lineage(), self._work.status, named, self)

    def graft(
        self,
        steps: Mapping[str, Run | str | Sequence[Run | str]],
        *,
        base: Run | str | None = None,
        prefer: str | None = None,
        **options: Any,
    ) -> Graft:
        """Merge branches: a new run that takes each of these steps, and what it depends on, from the run named for it.

        The tapes of all these runs answer; only what no tape knows is done, then reflection, merge and answer. A step
        takes the place of the base's when the base never edited it; else both stay, one under a new id.

        Args:
            steps: step id -> the run that it comes from, or several runs.
            base: the run whose plan, question and settings the others' steps join; the first one, when all agree.
            prefer: id of the run that holds where two contradict one another and only one can.
            options: what ``Run.fork`` takes too, as ``review``.

        Returns:
            The new run; its ``conflicts`` say what the branches disagree on, ``provenance()`` where evidence came from.

        Raises:
            GraftConflict: a choice is needed: it lists the conflicts.
            RunError: no such step, or a run that still runs.
        """
        from workbench.futures.graft import grafted

        self._must_be_open()

        def handle(run: Run | str) -> Run:
            return self.run(run) if isinstance(run, str) else run

        taken = {
            step_id: [handle(run) for run in ([one] if isinstance(one, (str, Run)) else one)]
            for step_id, one in steps.items()
        }
        return grafted(taken, None if base is None else handle(base), prefer, **options)
