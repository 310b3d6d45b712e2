"""What an open workspace shows in a notebook: the bench, and what waits for a person; loaded when it is called."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from workbench.run import Run
    from workbench.widgets.bench import Bench
    from workbench.widgets.inbox import Inbox


class Benches:
    """The widgets of a workspace."""

    def bench(
        self,
        run: Run | str | None = None,
        *,
        kb: str | None = None,
        review: bool | str | Iterable[str] | None = ("plan", "reflect"),
        session: str | None = None,
        user: str = "default",
        lang: str | None = None,
        **options: Any,
    ) -> Bench:
        """The bench: ask, see and edit the plan, decide, watch, look at evidence and timeline, fork and compare.

        Without a run it opens on the newest one of this conversation that waits, works or was interrupted, so that the
        same cell, run again after a restart, goes on where it stood; else on an empty question.

        Args:
            run: the run to open, or its id.
            kb: the knowledge base that questions go to; None lets the router choose.
            review: where it pauses for you at first: ``plan``, ``step``, ``reflect``, several, True for all, None for
                none. It can be changed for each question.
            session: the conversation; None for the bench's own, one for each ``kb``, which it keeps until
                *New conversation* is pressed.
            user: whose.
            lang: ``en`` or ``zh``; None takes ``WORKBENCH_LANG``, or else the language of the question.
            **options: what else ``start`` takes, for every question asked here.

        Raises:
            UnknownRun: there is no such run.
            RunError: an option is not one.
        """
        from workbench.widgets.bench import Bench

        if session is None:
            session = " ".join(["bench", *([kb] if isinstance(kb, str) else kb or [])])
        asking: Mapping[str, Any] = {"kb": kb, "review": review, "session": session, "user": user, **options}
        return Bench(self, run, asking, lang)

    def inbox(self, *, lang: str | None = None) -> Inbox:
        """Everything that waits for a person, over all runs, newest first: open, approve or stop it there.

        It looks for news once a second while it is displayed.

        Args:
            lang: ``en`` or ``zh``; None takes ``WORKBENCH_LANG``, or else the language of the newest question.
        """
        from workbench.widgets.inbox import Inbox

        return Inbox(self, lang)
