"""Which step paid for which sentence: the run without each step, and without each piece that its answer cites.

Each time one thing is left out of the merge, and the answer is made anew; plan, tools and reflections come from the
tape. Only single removals are tried: what two steps both found, neither of them alone takes away, and the table says
who else found it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import TYPE_CHECKING, Any

from workbench.errors import RunError
from workbench.futures.what_if import forget
from workbench.language.citations import marked_sentences
from workbench.plans import ENDED_WELL, last_records
from workbench.run import Run

if TYPE_CHECKING:
    import pandas

ALIKE = 0.6
"""From how much in common a sentence counts as the same one, said otherwise."""
_MARKS = re.compile(r"\s?\[\d+\]")


class LeaveOneOut:
    """What the answer rests on.

    Attributes:
        run: the run.
        removals: one dict a removal: ``kind`` (``step`` or ``evidence``), ``left_out`` (its id), ``title``, ``gone``
            (sentences of the answer that vanish), ``changed`` (``[before, after]``), ``cited_otherwise`` (same words,
            other sources), ``added`` (sentences that only the answer without it has), ``answer``, ``called`` (tools
            that ran again; none, unless the tape is incomplete).
        sentences: one dict a sentence: ``sentence``, ``cites`` (``{"n", "result_id", "title", "steps"}``),
            ``rests_on`` (the steps without any one of which it vanishes or changes), ``needs`` (the same of pieces),
            ``spared`` (steps that found what it cites, and without any one of which it stands).
    """

    def __init__(self, run: Run, removals: list[dict[str, Any]], sentences: list[dict[str, Any]]):
        self.run, self.removals, self.sentences = run, removals, sentences

    def to_dict(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "run_id": self.run.run_id,
            "message": self.run.message,
            "sentences": self.sentences,
            "removals": self.removals,
        }

    def to_frame(self) -> pandas.DataFrame:
        """One row a removal: what was left out, and how many sentences vanish, change, or rest on other sources."""
        import pandas

        rows = [
            {
                **{name: r[name] for name in ("kind", "left_out", "title")},
                **{name: len(r[name]) for name in ("gone", "changed", "cited_otherwise", "added", "called")},
            }
            for r in self.removals
        ]
        return pandas.DataFrame(rows)

    def __str__(self) -> str:
        from workbench.futures.shown import leave_one_out_blocks
        from workbench.show import plain

        return plain(leave_one_out_blocks(self), 100)

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        from workbench.futures.shown import leave_one_out_blocks, page

        return {"text/plain": str(self), "text/html": page(leave_one_out_blocks(self), self.run.message)}


def leave_one_out(run: Run) -> LeaveOneOut:
    """See ``Run.leave_one_out``."""
    if run.status != "done" or run.plan is None:
        raise RunError(f"Run {run.run_id} is {run.status}, or asked no knowledge base: there is nothing to leave out.")
    as_it_is = _without(run, {})
    if as_it_is["answer"] != run.answer or as_it_is["called"]:
        raise RunError(
            f"Run {run.run_id} cannot be made again as it was: its corpus or its model says something else now, so that"
            " no difference could be laid to what is left out. See `replay` for where it differs."
        )
    removals = [{**what, **_compared(run, _without(run, {name: [what["left_out"]]}))} for name, what in _removable(run)]
    return LeaveOneOut(run, removals, _paid(run, removals))


def _removable(run: Run) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each step that found something, then each piece that the answer cites."""
    for step_id, record in last_records(run.records).items():
        if record["status"] in ENDED_WELL and record["output_summary"]["evidence_count"]:
            title = record["input_summary"]["objective"]
            yield "steps", {"kind": "step", "left_out": step_id, "title": title}
    for result_id, title in {c["result_id"]: c["source"]["title"] for c in run.citations}.items():
        yield "evidence", {"kind": "evidence", "left_out": result_id, "title": title}


def _without(run: Run, without: dict[str, list[str]]) -> dict[str, Any]:
    """The answer without something, as the run's tape gives it; the run that made it is let go again."""
    fork = run.start_fork(without=without, mismatch="rules", rest="rules").wait()
    if fork.status != "done":
        raise fork.divergence or RunError(f"Without {without} the run is {fork.status}: {fork.error}")
    told = {
        "answer": fork.answer,
        "cited": _cited(fork),
        "called": [r["step_id"] for r in fork.records if "effect" in r and not r.get("replayed")],
    }
    forget(fork)
    return told


def _cited(run: Run) -> dict[str, list[str]]:
    """Each sentence of an answer, without its marks, and the pieces that it cites."""
    cited: dict[str, list[str]] = {words(s): [] for s in marked_sentences(run.answer)}
    for citation in run.citations:
        cited.setdefault(words(citation["sentence"]), []).append(citation["result_id"])
    return {sentence: pieces for sentence, pieces in cited.items() if sentence}


def words(sentence: str) -> str:
    """A sentence without its marks.

    >>> words("It is a 1993 paper [1][2].")
    'It is a 1993 paper.'
    """
    return _MARKS.sub("", sentence).strip()


def _compared(run: Run, other: dict[str, Any]) -> dict[str, Any]:
    """What of the answer is not as it was."""
    before, after = _cited(run), other["cited"]
    lost, added = [s for s in before if s not in after], [s for s in after if s not in before]
    changed: list[list[str]] = []
    for sentence in lost:
        near = max(added, key=lambda s: SequenceMatcher(None, sentence, s).ratio(), default="")
        if near and SequenceMatcher(None, sentence, near).ratio() >= ALIKE:
            changed.append([sentence, near])
            added.remove(near)
    return {
        "gone": [s for s in lost if s not in {pair[0] for pair in changed}],
        "changed": changed,
        "cited_otherwise": [s for s in before if s in after and set(before[s]) != set(after[s])],
        "added": added,
        "answer": other["answer"],
        "called": other["called"],
    }


def _paid(run: Run, removals: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Sentence -> evidence -> steps."""
    finders: dict[str, list[str]] = {}
    numbers: dict[str, tuple[int, str]] = {}
    for row in run.provenance():
        finders.setdefault(row["result_id"], []).append(row["step_id"])
        numbers.setdefault(row["result_id"], (row["n"], row["title"]))
    table = []
    for sentence, pieces in _cited(run).items():
        hit = [r for r in removals if sentence in r["gone"] or sentence in [pair[0] for pair in r["changed"]]]
        rests_on = [r["left_out"] for r in hit if r["kind"] == "step"]
        found_by = dict.fromkeys(step for piece in pieces for step in finders.get(piece, ()))
        table.append(
            {
                "sentence": sentence,
                "cites": [
                    {"n": numbers[p][0], "result_id": p, "title": numbers[p][1], "steps": finders[p]}
                    for p in dict.fromkeys(pieces)
                    if p in numbers
                ],
                "rests_on": rests_on,
                "needs": [r["left_out"] for r in hit if r["kind"] == "evidence"],
                "spared": [step for step in found_by if step not in rests_on],
            }
        )
    return table
