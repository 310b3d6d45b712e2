"""The four answers that people give to a run that waits, and how its work is stopped and gone on with.

Each comes twice: for a script that waits, and, with an ``a`` before its name, for a loop that must not block.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from workbench.plans import Plan
from workbench.reviewers import answer

if TYPE_CHECKING:
    from workbench.work import Work


class Answering:
    """What a handle of a run can do to it."""

    run_id: str
    _work: Work

    if TYPE_CHECKING:  # the run itself has these

        @property
        def review(self) -> dict[str, Any] | None:
            """What the run asks."""

        def wait(self, timeout: float | None = None) -> Self:
            """Wait until the run pauses or ends."""

    @property
    def agent_inbox(self) -> dict[str, Any] | None:
        """What the run asks, in the shape of LangChain's Agent Inbox; None when it asks nothing.

        ``answer_review`` takes the responses of such an inbox as they are.
        """
        from workbench.agent_inbox import interrupt_of

        asked = self.review
        return interrupt_of(asked) if asked else None

    def approve(self, note: str = "") -> Self:
        """Go on as proposed."""
        return self.answer_review(answer("approve", note=note))

    def edit(self, edits: dict[str, Any] | None = None, *, note: str = "", **fields: Any) -> Self:
        """Go on with changes: ``plan=``, ``query=``, ``thresholds=`` at the points plan and step; ``next_steps=``,
        ``activate=``, ``rewrite_query=``, ``should_continue=``, ``thresholds=`` at reflect.

        Raises:
            InvalidAnswer: names the field and what is allowed; the run waits as before.
        """
        asked = self.review
        changes = {**(edits or {}), **fields}
        return self.answer_review(
            answer("edit", point=asked["point"] if asked else "", edits=_plain(changes), note=note)
        )

    def reject(self, note: str = "") -> Self:
        """Stop here, and answer from what was found."""
        return self.answer_review(answer("reject", note=note))

    def respond(self, message: str, note: str = "") -> Self:
        """Say it in words: the text joins the query, and what is missing is planned."""
        return self.answer_review(answer("respond", message=message, note=note))

    def answer_review(self, given: dict[str, Any] | list[Any], *, wait: bool = True) -> Self:
        """Give an answer, in the middleware's shape or an Agent Inbox's, and wait for the next pause or the end.

        Without ``wait`` it returns at once: follow ``events``, then ``wait`` says how it went.

        Raises:
            NotPaused: nothing waits for an answer.
            InvalidAnswer: the answer does not fit; the run waits as before.
        """
        self._work.answer(self.run_id, given)
        return self.wait() if wait else self

    def resume(self, *, wait: bool = True) -> Self:
        """Continue a run whose process died, that failed, or that was interrupted; a finished one stays as it is."""
        self._work.resume(self.run_id)
        return self.wait() if wait else self

    def interrupt(self) -> Self:
        """Stop the work now and leave the run resumable, as Ctrl-C does."""
        self._work.interrupt(self.run_id)
        return self

    def cancel(self) -> Self:
        """Stop the work now, with its tools, in whatever process it is done. What is finished is kept.

        Raises:
            WorkspaceBusy: the other process has not stopped in good time; it will when it wakes.
        """
        self._work.cancel(self.run_id)
        return self

    async def await_end(self) -> Self:
        """``wait`` for a loop that must not block."""
        await self._work.await_end(self.run_id)
        return self

    async def aapprove(self, note: str = "") -> Self:
        """``approve`` for a loop that must not block."""
        return await self.aanswer_review(answer("approve", note=note))

    async def aedit(self, edits: dict[str, Any] | None = None, *, note: str = "", **fields: Any) -> Self:
        """``edit`` for a loop that must not block."""
        asked = self.review
        changes = _plain({**(edits or {}), **fields})
        return await self.aanswer_review(
            answer("edit", point=asked["point"] if asked else "", edits=changes, note=note)
        )

    async def areject(self, note: str = "") -> Self:
        """``reject`` for a loop that must not block."""
        return await self.aanswer_review(answer("reject", note=note))

    async def arespond(self, message: str, note: str = "") -> Self:
        """``respond`` for a loop that must not block."""
        return await self.aanswer_review(answer("respond", message=message, note=note))

    async def aanswer_review(self, given: dict[str, Any] | list[Any]) -> Self:
        """``answer_review`` for a loop that must not block."""
        self._work.answer(self.run_id, given)
        return await self.await_end()

    async def aresume(self) -> Self:
        """``resume`` for a loop that must not block."""
        self._work.resume(self.run_id)
        return await self.await_end()

    async def acancel(self) -> Self:
        """``cancel`` for a loop that must not block."""
        import asyncio

        return await asyncio.to_thread(self.cancel)


def _plain(value: Any) -> Any:
    """Plans and steps inside edits as JSON."""
    if isinstance(value, Plan):
        return value.dump()
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json", exclude_none=True)
    if isinstance(value, dict):
        return {name: _plain(inner) for name, inner in value.items()}
    return [_plain(inner) for inner in value] if isinstance(value, (list, tuple)) else value
