"""Is the answer right? A table of questions with what must be planned, found and said, and a score by kind of question.

A row of the table is a JSON object:

    id, category, question     ``session`` groups rows that are one conversation, in their order
    intent                     accepted intents
    steps                      how many steps must have run, at least; with ``"retrieval": false`` none may
    evidence                   groups of names: one name of each group must be in the evidence
    answer                     groups of names: one name of each group must be in the answer
    answer_from                ``{"least": n, "of": [groups]}``: at least n groups must be in the answer
    cites_others               ``{"least": n, "than": [titles]}``: so many documents must be cited, these not counted
    must_not                   what the answer must not say
    refuse                     true: the corpus does not have it, and the answer must say so
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Protocol, TypedDict

from workbench.evaluating.rows import read_rows
from workbench.text import CJK, fold

USER = "evaluation"
BASELINE = "{kb}:naive_rag_agent:retrieve_only"
"""One vector search, no plan to speak of, no reflection: what the whole path has to beat."""

CHECKS = ("intent", "steps", "evidence", "answer")
_REFUSAL = re.compile(
    r"do(?:es)?(?: not|n't) (?:say|mention|name|know|have|hold|contain|cover)|nothing (?:in|about|on) |"
    r"no (?:\w+ ){0,4}(?:in|of) the (?:corpus|knowledge base)|not (?:in|part of) the (?:corpus|knowledge base)|"
    r"(?:没有|未)(?:\S{0,6})?(?:提到|提及|说明|说|记载|收录|找到|相关|回答|答案|资料|信息|内容)",
    re.IGNORECASE,
)


class Bench(Protocol):
    """Whoever answers questions: a ``Workbench``."""

    def ask(self, message: str, *, kb: str, session: str, user: str, worker: str, incognito: bool) -> Any:
        """Ask and wait: a run."""


class Score(TypedDict):
    """One question: each check is True, False, or None where the row asks for nothing of the kind."""

    id: str
    category: str
    question: str
    intent: bool | None
    steps: bool | None
    evidence: bool | None
    answer: bool | None
    right: bool
    wrong: list[str]
    said: str


def read_questions(path: Path) -> list[dict[str, Any]]:
    """The rows of a JSON Lines file.

    Raises:
        CorpusError: names the file and the line that is no such row.
    """
    return read_rows(path, "id", "category", "question")


def score_questions(
    bench: Bench,
    rows: Sequence[Mapping[str, Any]],
    *,
    kb: str = "film",
    baseline: bool = True,
    keep: bool = False,
    each: Callable[[Score, Any], None] | None = None,
) -> dict[str, Any]:
    """Ask every question, and again with the baseline, each conversation in a session of its own.

    Args:
        bench: a ``Workbench``.
        rows: as ``read_questions`` gives them.
        kb: the knowledge base.
        baseline: whether to ask the baseline too.
        keep: write the runs down, so that they can be looked at later; else they are incognito.
        each: called with the score and the run of each question as they come, the baseline's left out.

    Returns:
        ``{"categories": [{category, right, intent, ..., baseline: {...}}], "questions": [Score], ...}``, counts as
        ``[right, asked]``.
    """
    ask = partial(bench.ask, kb=kb, user=USER, incognito=not keep)
    scores = _asked(partial(ask, worker=""), rows, each)
    unplanned = [{name: value for name, value in row.items() if name != "steps"} for row in rows]  # it has one step
    plain = _asked(partial(ask, worker=BASELINE.format(kb=kb)), unplanned, None) if baseline else []
    names = list(dict.fromkeys(score["category"] for score in scores))
    return {
        "categories": [_line(name, scores, plain) for name in [*names, "all"]],
        "questions": scores,
        "baseline_questions": plain,
    }


def _asked(
    ask: Callable[..., Any], rows: Iterable[Mapping[str, Any]], each: Callable[[Score, Any], None] | None
) -> list[Score]:
    scores = []
    fresh = uuid.uuid4().hex[:8]  # a conversation of the last evaluation is no part of this one
    for row in rows:
        run = ask(row["question"], session=f"{USER}-{fresh}-{row.get('session') or row['id']}")
        scores.append(score(row, run))
        if each:
            each(scores[-1], run)
    return scores


def score(row: Mapping[str, Any], run: Any) -> Score:
    """Hold one run against its row."""
    wrong = list(_wrong(row, run))
    failed = {kind for kind, _ in wrong}
    asked = {
        "intent": bool(row.get("intent")),
        "steps": "steps" in row,
        "evidence": bool(row.get("evidence")),
        "answer": True,
    }
    checks = {kind: kind not in failed if asked[kind] else None for kind in CHECKS}
    return Score(
        id=row["id"],
        category=row["category"],
        question=row["question"],
        **checks,  # type: ignore[typeddict-item]
        right=not wrong,
        wrong=[f"{kind}: {what}" for kind, what in wrong],
        said=run.answer or "",
    )


def _wrong(row: Mapping[str, Any], run: Any) -> Iterable[tuple[str, str]]:
    route = run.route_decision or {}
    if row.get("intent") and route.get("query_intent") not in row["intent"]:
        yield "intent", f"{route.get('query_intent')} instead of {' or '.join(row['intent'])}"
    ran = len({r["step_id"] for r in run.records if r["status"] != "skipped"})
    if not row.get("retrieval", True) and ran:
        yield "steps", f"{ran} ran, none is needed"
    elif ran < row.get("steps", 0):
        yield "steps", f"{ran} ran, at least {row['steps']} are needed"
    found = " \n".join(_text_of(result) for result in run.evidence)
    yield from (("evidence", f"nothing on {group[0]}") for group in row.get("evidence", []) if not says(found, group))
    yield from (("answer", what) for what in _wrong_answer(row, run))


def _wrong_answer(row: Mapping[str, Any], run: Any) -> Iterable[str]:
    answer = run.answer or ""
    if run.status != "done" or not answer.strip():
        yield f"none: the run is {run.status}"
        return
    if bool(CJK.search(re.sub("《[^》]*》", "", row["question"]))) != bool(
        CJK.search(re.sub("《[^》]*》", "", answer))
    ):
        yield "in another language than the question"
    refused = is_refusal(answer)
    if row.get("refuse"):
        if not refused:
            yield "does not say that the corpus lacks it"
    elif row.get("retrieval", True):
        if refused:
            yield "says that the corpus lacks it"
        if not run.citations:
            yield "cites nothing"
    yield from (f"says {word!r}" for word in row.get("must_not", []) if says(answer, [word]))
    yield from (f"does not say {group[0]!r}" for group in row.get("answer", []) if not says(answer, group))
    some = row.get("answer_from")
    if some and (count := sum(says(answer, group) for group in some["of"])) < some["least"]:
        yield f"names {count} of the {some['least']} that it should"
    others = row.get("cites_others")
    if others:
        titles = {str(c["source"].get("title")) for c in run.citations} - set(others["than"])
        if len(titles) < others["least"]:
            yield f"cites {len(titles)} other documents instead of {others['least']}"


def is_refusal(answer: str) -> bool:
    """Whether an answer says that the corpus does not have what was asked.

    >>> is_refusal("The corpus does not say."), is_refusal("语料中没有相关内容。"), is_refusal("It is a 1993 film [1].")
    (True, True, False)
    """
    return _REFUSAL.search(answer) is not None


def says(text: str, names: Iterable[str]) -> bool:
    """Whether a text has one of these names, whatever the case and accents."""
    folded = fold(text)
    return any(fold(name) in folded for name in names)


def _text_of(result: Mapping[str, Any]) -> str:
    metadata = result["metadata"]
    return (
        f"{metadata.get('title', '')} {result['evidence']} {json.dumps(metadata.get('fields', {}), ensure_ascii=False)}"
    )


def _line(category: str, scores: Sequence[Score], plain: Sequence[Score]) -> dict[str, Any]:
    def counted(some: Sequence[Score]) -> dict[str, list[int]]:
        mine = [s for s in some if category in ("all", s["category"])]
        given = {kind: [s[kind] for s in mine if s[kind] is not None] for kind in CHECKS}  # type: ignore[literal-required]
        return {
            "right": [sum(s["right"] for s in mine), len(mine)],
            **{kind: [sum(values), len(values)] for kind, values in given.items()},
        }

    return {"category": category, **counted(scores), **({"baseline": counted(plain)} if plain else {})}


def table_text(table: Mapping[str, Any]) -> str:
    """The table for people: right / asked by category and check, the baseline in brackets, then what is wrong.

    >>> print(table_text({"categories": [{"category": "qa", "right": [1, 2], "intent": [2, 2], "steps": [2, 2],
    ...     "evidence": [2, 2], "answer": [1, 2]}], "questions": []}))
    category     right      intent     steps      evidence   answer
    qa           1/2        2/2        2/2        2/2        1/2
    """
    columns = ("right", *CHECKS)
    beside = any("baseline" in line for line in table["categories"])
    width = 17 if beside else 11
    lines = ["".join(["category     ", *(f"{name:<{width}}" for name in columns)]).rstrip()]
    for line in table["categories"]:
        cells = [_cell(line, name).ljust(width) for name in columns]
        lines.append(f"{line['category']:<13}{''.join(cells)}".rstrip())
    if beside:
        lines.append("in brackets: the same question to one vector search")
    for entry in table["questions"]:
        lines += [f"  {entry['id']} {entry['question']} -> {what}" for what in entry["wrong"]]
    return "\n".join(lines)


def _cell(line: Mapping[str, Any], name: str) -> str:
    cell, plain = "{}/{}".format(*line[name]), line.get("baseline", {}).get(name, [0, 0])
    return f"{cell} ({plain[0]})" if plain[1] else cell
