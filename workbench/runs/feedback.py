"""What people think of answers: kept with the answer's message, and read back as labels for experiments.

Each person has one verdict on a run; the newest holds. It goes with the message, when a conversation is cleared.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from math import isfinite
from typing import Any, TypedDict

from workbench.errors import RunError, WorkbenchError, shown
from workbench.runs.stored import Recording
from workbench.state import Data, Json, pick
from workbench.text import clean
from workbench.views.render import FrameList


class Feedback(TypedDict):
    """One verdict.

    Attributes:
        run_id: of the run that is judged.
        good: what was thought of its answer.
        note: in words.
        who: whose verdict it is; the run's user, unless another was named.
        when: UTC, ISO 8601.
        question: what had been asked.
        agent_type: how was searched; empty where nothing was.
        answer_kind: how the answer was made, as ``run.state`` says it.
        user_id: whose run it is; ``session_id`` its conversation, ``message_id`` its answer there.
        labels: what else was said, by name.
    """

    run_id: str
    good: bool
    note: str
    who: str
    when: str
    question: str
    agent_type: str
    answer_kind: str
    user_id: str
    session_id: str
    message_id: str
    labels: Json


class Feedbacks(FrameList[Feedback]):
    """Verdicts, oldest first; a table in a notebook."""

    @property
    def columns(self) -> Sequence[str]:  # type: ignore[override]
        """Return a column for each label too."""
        own = (name for name in Feedback.__annotations__ if name != "labels")
        return [*own, *dict.fromkeys(name for verdict in self for name in verdict["labels"])]

    def rows(self) -> list[Json]:
        """Return a row per verdict."""
        return [{**verdict, **verdict["labels"]} for verdict in self]

    def on_answers(self) -> Feedbacks:
        """Return the verdicts on whole answers, without those on a piece of evidence."""
        return Feedbacks(verdict for verdict in self if "piece" not in verdict["labels"])

    def ratings(self) -> list[Json]:
        """Return how many verdicts are good and bad for each kind of answer and agent."""
        counted = Counter(
            (verdict["answer_kind"], verdict["agent_type"], verdict["good"])
            for verdict in self.on_answers()
        )
        return [
            {
                "answer_kind": kind,
                "agent_type": agent,
                "good": counted[kind, agent, True],
                "bad": counted[kind, agent, False],
            }
            for kind, agent in sorted({key[:2] for key in counted})
        ]


def give(run: Recording, good: bool | None, note: str, who: str, labels: Data) -> None:
    """Store a verdict on the answer of a run; None removes it.

    A fork or a replay has a conversation of its own, so what is thought of it is kept apart from what is thought of
    its origin.

    Raises:
        RunError: the run leaves nothing behind, has no answer in a conversation here, or something said is too long.
    """
    if run.options["incognito"]:
        raise RunError(
            f"Run {run.run_id} is incognito: nothing is kept of it, nor what is thought of it."
        )
    if (status := run.status) != "done":
        raise RunError(f"Run {run.run_id} is {status}: there is no whole answer to judge yet.")
    metadata = {
        "note": _text("note", note),
        "who": _text("who", who) or run.row["user_id"],
        "labels": _checked(labels),
        "answer_kind": run.state.get("answer_kind", ""),
    }
    conversations = run._work.driver(run.run_id).conversations
    # as persisted
    message_id = conversations.message_id(run.row["conversation_id"], f"{run.run_id}:assistant")
    key = ":".join(
        filter(None, ["feedback", str(metadata["who"]), str(labels.get("piece") or "")])
    )
    if good is None:
        conversations.remove_feedback(message_id, key)
        return
    if not isinstance(good, bool):
        raise RunError(
            f"good is {shown(good)}. Give True, False, or None to take back what was said."
        )
    from workbench.graphs.route import parse_worker_names  # it brings LangGraph

    route = run.state.get("route_decision")
    workers = parse_worker_names(route["worker_name"]) if route else ()
    agent_type = ",".join(dict.fromkeys(worker.agent_type for worker in workers))
    about = {"query": run.message, "thread_id": run.run_id, "agent_type": agent_type}
    try:
        conversations.add_feedback(message_id, good, **about, metadata=metadata, key=key)
    except WorkbenchError:
        raise RunError(
            f"Run {run.run_id} has no answer in a conversation here: that was cleared, or the run was brought from "
            "another workspace. Replay or fork it, and judge the new run."
        ) from None


def read(rows: Iterable[Data]) -> Feedbacks:
    """Rows of the store as verdicts."""
    return Feedbacks(map(_read, rows))


def _read(row: Data) -> Feedback:
    return Feedback(
        **pick(row, "agent_type", "user_id", "session_id", "message_id"),  # type: ignore[typeddict-item]
        run_id=row["thread_id"],
        good=row["is_positive"],
        when=row["created_at"],
        question=row["query"],
        **row["metadata"],
    )


def _checked(labels: Data) -> Json:
    # How many labels one verdict may have, and how many characters a note or a label.
    most_labels = 50
    if len(labels) > most_labels:
        raise RunError(f"There are {len(labels)} labels; {most_labels} are the most.")
    if taken := sorted(labels.keys() & Feedback.__annotations__.keys()):
        raise RunError(
            f"A label cannot be called {taken[0]!r}: that is a column already. Call it something else."
        )
    return {
        _text("The name of a label", name): _checked_label(name, value)
        for name, value in labels.items()
    }


def _checked_label(name: str, value: Any) -> Any:
    if isinstance(value, str):
        return _text(f"label {shown(name)}", value)
    if (
        value is None
        or isinstance(value, bool | int)
        or (isinstance(value, float) and isfinite(value))
    ):
        return value
    raise RunError(
        f"label {shown(name)} is {shown(value)}. Give text, a number, yes or no, or None."
    )


def _text(what: str, text: Any) -> str:
    longest = 4_000
    if not isinstance(text, str):
        raise RunError(f"{what} is {shown(text)}. Give text.")
    if len(text) > longest:
        raise RunError(f"{what} has {len(text):,} characters; {longest:,} are the most.")
    return clean(text)
