"""The decisions of a run, each a place at which the run can be forked."""

from __future__ import annotations

from markupsafe import Markup

from workbench.state import Data
from workbench.views.labels import Labels
from workbench.views.labels.sentences import decision_name, edit_texts
from workbench.views.markup import Picture, cut, draw


def decision_list(document: Data, labels: Labels) -> Picture:
    """Return the decisions of a run, each with a button that begins a fork which decides it again."""
    rows = {decision["review_id"]: _row(decision, labels) for decision in document["decisions"]}
    frame = draw(
        "futures.decisions",
        labels,
        shown=len(rows),
        plan=document["status"] == "done" and document["plan"],
    )
    return Picture(frame, rows)


def _row(decision: Data, labels: Labels) -> Markup:
    who = decision["who"]
    action = labels(f"did_{decision['action']}")
    text = (
        labels("past_by_you", what=action)
        if who == "person"
        else labels("past_by", what=action, who=who)
    )
    edits = [
        cut(words, 120) for words in edit_texts(decision["edits"], decision["proposal"], labels)
    ]
    text += f"{labels('colon')}{labels('comma').join(edits)}" if edits else ""
    remarks = "".join(f" “{words}”" for words in (decision["message"], decision["note"]) if words)
    name = decision_name(decision["review_id"], labels)
    return draw(
        "futures.decision", labels, key=decision["review_id"], name=name, text=text + remarks
    )
