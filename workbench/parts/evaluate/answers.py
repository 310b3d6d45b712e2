"""Measure answers against their gold, against what they cite, and by a panel of judges; several ways side by side.

A way is how questions are answered: models by role, prompts. The baselines are the first two sentences of the best
passage of one vector search, a floor, the writer's model without any evidence, and a ceiling, the writer over the gold
documents. A question is a row of JSON Lines with ``id``, ``question``, and its gold:

    answer, answers   one of these is said, in a sentence that cites one of ``gold``, where these documents are named
    must              [{"say": [one of these], "cite": [in a sentence that cites one of these; any, if empty]}]
    some              {"least": n, "of": [{say, cite}]}: at least so many of these
    list              {"exact": [{say, cite}], "may": [{say, cite}]}: all of these, and no other document is cited
    number            {"is": n, "cite": [documents]}: a count that cites these documents only
    must_not          what would be false
    refuse            true: the answer is that the corpus does not say, or that nothing clearly answers
    earlier, session  questions asked before it; rows that are one conversation, in their order

A row without gold is asked and not scored: those that follow may build on it. All in percent:

    right         the answer says and cites all that it must, and nothing else
    EM, F1        the answer is a gold one, and how far their words agree (characters in Chinese), as SQuAD has them
    holds         a gold answer is in it
    R@5           gold documents among the first five of the evidence
    precision     citations that support their statement (``figures``); ``recall``: statements that are supported
    refused       answers that say that the corpus does not say; ``wrongly``: over a question that has an answer
    judged        ``correct`` and ``faithful`` by the judges, of the answers on which all of them agree

Judges grade answers one by one. A judge is ``MODEL``, or ``MODEL@FILE.toml`` with a prompt of its own, so that one
model can judge by several prompts.
"""

from __future__ import annotations

import asyncio
import re
import uuid
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from pydantic import BaseModel, Field

from workbench.errors import CorpusError
from workbench.graphs.generate import generate
from workbench.graphs.merge import first_documents
from workbench.graphs.roles import ask_model
from workbench.graphs.slots import evidence_text
from workbench.language.citing import cited, marked_sentences
from workbench.parts.evaluate.measures import Rows, Scores, compare, percent
from workbench.parts.evaluate.questions import Row, choose, read_rows
from workbench.ports import Context
from workbench.records.figures import precision_and_recall
from workbench.records.prompts import LANGUAGES, fenced
from workbench.session import Workbench
from workbench.state import Data, Json, Progress, drop
from workbench.text import CJK, fold, sentences, unmarked
from workbench.tools.evidence import chunk

AS_SET = "as set"
RULES = "rules"
PASSAGE = "best passage"
CLOSED = "closed book"
GOLD = "gold evidence"
USER = "evaluation"
GOLD_FIELDS = ("answer", "answers", "must", "some", "list", "number", "must_not", "refuse")
_ARTICLES = re.compile(r"\b(?:a|an|the)\b")
_REFUSAL = re.compile(
    r"corpus does not|no .{1,60} in the corpus|资料库(?:里|中)?没有|没有提到", re.IGNORECASE
)
"""How the writer without a model refuses, and how the prompts ask a model to."""
_UNCLEAR = re.compile(r"nothing here clearly answers|没有找到明确的答案", re.IGNORECASE)
"""How the writer without a model says that what follows is only close."""


def eval_answers(
    wb: Workbench,
    kb: str,
    questions: Path,
    *,
    ways: Mapping[str, Data] | None = None,
    where: Mapping[str, str] | None = None,
    limit: int | None = None,
    judges: Sequence[str] = (),
    progress: Progress | None = None,
) -> Rows:
    """Return the table of these ways, with the baselines, and the rows of the first way.

    Args:
        wb: an open workspace.
        kb: the knowledge base to ask.
        questions: JSON Lines.
        ways: options of ``ask`` by name; None compares what is set with the rules alone.
        where: only questions that hold these values.
        limit: only so many of them.
        judges: grade each answer, as ``MODEL`` or ``MODEL@FILE.toml``; none for no grading.
        progress: called after each question.

    Raises:
        CorpusError: no question has gold.
    """
    panel = judge_contexts(wb, judges)
    chosen = choose(read_rows(questions, "id", "question"), where, limit)
    rows = [row for row in chosen if any(name in row for name in GOLD_FIELDS)]
    if not rows:
        raise CorpusError(
            f"No question of {questions} says what is right. Fields for that: {', '.join(GOLD_FIELDS)}."
        )
    wb.knowledge.get(kb)
    ids = {row["id"] for row in rows}
    ports = wb.ports()
    if ways is None:
        ways = {AS_SET: {}, RULES: {"models": {"all": "rules"}}} if ports.models else {RULES: {}}

    def ask_way(name: str, **options: Any) -> list[Any]:
        runs = zip(chosen, ask_all(wb, chosen, progress, name, **options), strict=True)
        return [run for row, run in runs if row["id"] in ids]

    runs = {name: ask_way(name, kb=kb, **options) for name, options in ways.items()}
    searched = ask_way(PASSAGE, kb=kb, worker=f"{kb}:naive_rag_agent:retrieve_only")
    runs[PASSAGE] = [_best_passage(run) for run in searched]
    if "writer" in ports.models:
        runs[CLOSED] = ask_way(CLOSED, kb="general")
    agent = wb.agents.get(f"{kb}:naive_rag_agent")
    runs[GOLD] = [wb.call(_write_from_gold(agent, row)) for row in rows]
    first, *compared = ways
    table = compare(
        "way",
        rows,
        {name: score_runs(rows, answered) for name, answered in runs.items()},
        others=compared,
    )
    longest = ports.settings.merge_max_characters
    for name in [name for name in runs if name != PASSAGE] if judges else ():
        texts = [
            judged_texts(row, run, longest) for row, run in zip(rows, runs[name], strict=True)
        ]
        table["ways"][name]["judged"] = judged(wb, panel, texts)
    answers = [
        {
            "id": row["id"],
            "question": row["question"],
            "answer": run.answer or "",
            "wrong": list(faults(row, run)),
        }
        for row, run in zip(rows, runs[first], strict=True)
        if row.get("split") != "test"  # hidden while the code is being developed
    ]
    return Rows(set=kb, questions=len(rows), **table, rows=answers)


def ask_all(
    wb: Workbench,
    rows: Sequence[Row],
    progress: Progress | None = None,
    name: str = "",
    **options: Any,
) -> list[Any]:
    """Ask every question: at once, or, where there are conversations, one after the other in their sessions."""

    def report(_: str, done: int, total: int) -> None:
        if progress:
            progress(name, done, total)

    options["user"] = USER
    if not any("session" in row or "earlier" in row for row in rows):
        return list(wb.map([row["question"] for row in rows], progress=report, **options))
    runs, fresh = [], uuid.uuid4().hex[:8]  # not the sessions of an earlier evaluation
    for number, row in enumerate(rows, start=1):
        session = f"{USER}-{fresh}-{row.get('session') or row['id']}"
        for message in row.get("earlier", ()):
            wb.ask(message, session=session, **options)
        runs.append(wb.ask(row["question"], session=session, **options))
        report(name, number, len(rows))
    return runs


def _best_passage(run: Any) -> Any:
    """Answer with the first two sentences of the best passage, cited."""
    text = run.evidence[0]["evidence"] if run.evidence else ""
    answer = " ".join(f"{sentence} [1]" for sentence in sentences(text)[:2])
    return SimpleNamespace(status=run.status, answer=answer, state={}, evidence=run.evidence)


async def _write_from_gold(agent: Any, row: Row) -> Any:
    """Let the writer answer from the gold documents alone, with nothing searched."""
    kb = agent.worker.kb_prefix
    passages = agent.context.knowledge.get(kb).passages(doc_ids=gold_documents(row))
    evidence = [chunk(passage, 1.0, "gold", kb) for passage in passages]
    begin = await asyncio.to_thread(agent.input, row["question"], "", "")
    state = {
        **begin,
        "message": row["question"],
        "use_retrieval": True,
        "merged": {
            "retrieval_results": evidence,
            "statistics": {},
            "context": "",
            "reference": {},
        },
        "records": [],
    }
    runtime = SimpleNamespace(context=agent.context, stream_writer=lambda _: None)
    change = await generate(cast(Any, state), cast(Any, runtime))
    return SimpleNamespace(
        status="done", answer=change["answer"], state=change, evidence=evidence
    )


def gold_answers(row: Row) -> list[str]:
    """Return the answers of which one is right."""
    return [row["answer"]] if "answer" in row else list(row.get("answers", []))


def gold_documents(row: Row) -> list[str]:
    """Return the documents that answer."""
    points = [
        *_points(row),
        *row.get("some", {}).get("of", ()),
        *([row["number"]] if "number" in row else []),
    ]
    return list(
        row.get("gold") or dict.fromkeys(name for point in points for name in point["cite"])
    )


def _points(row: Row) -> list[Data]:
    """Return the points that an answer must state, with what each must cite."""
    points = [*row.get("must", ()), *row.get("list", {}).get("exact", ())]
    answers = gold_answers(row)
    return [*points, {"say": answers, "cite": row.get("gold") or []}] if answers else points


def faults(row: Row, run: Any) -> Iterator[str]:
    """Yield what is wrong with the answer of a run, the kind before a colon."""
    answer = _finished_answer(run)
    if not answer.strip():
        yield "missing: there is no answer"
    if row.get("refuse"):
        if not (_REFUSAL.search(answer) or _UNCLEAR.search(answer)):
            yield "answered: the corpus does not say it"
        return
    if _REFUSAL.search(answer):
        yield "refused: the corpus says it"
    lines = [(sentence, _cited(sentence, run.evidence)) for sentence in marked_sentences(answer)]

    def has(point: Data) -> bool:
        documents = set(point["cite"])
        return any(
            says(sentence, point["say"]) and (not documents or documents & names)
            for sentence, names in lines
        )

    yield from (
        f"missing: {point['say'][0]} {point['cite'][:1]}"
        for point in _points(row)
        if not has(point)
    )
    yield from (f"false: {name}" for name in row.get("must_not", ()) if says(answer, [name]))
    several = row.get("some")
    number = row.get("number")
    listed = row.get("list", {})
    if several and (count := sum(map(has, several["of"]))) < several["least"]:
        yield f"missing: {count} of the {several['least']} that it should say"
    if number and not has({"say": [str(number["is"])], "cite": number["cite"]}):
        yield f"count: not {number['is']}"
    if number or listed:
        points = [*listed.get("exact", ()), *listed.get("may", ()), *([number] if number else [])]
        allowed = {name for point in points for name in point["cite"]}
        foreign = [
            n
            for n in _marks(answer, run.evidence)
            if not source_names(run.evidence[n - 1]) & allowed
        ]
        yield from (f"foreign: {run.evidence[n - 1]['metadata'].get('title')}" for n in foreign)


def _finished_answer(run: Any) -> str:
    return (run.answer or "") if run.status == "done" else ""


def says(text: str, names: Iterable[str]) -> bool:
    """Check whether a text has one of these names as whole words.

    >>> says("In 1993, 21,000 of them", ["21000"]), says("In 1993", ["99"])
    (True, False)
    """
    flat = normal(text)
    return any(
        re.search(rf"(?<![a-z0-9]){re.escape(normal(name))}(?![a-z0-9])", flat) for name in names
    )


def _marks(text: str, evidence: Sequence[Any]) -> list[int]:
    return [n for n in cited(text) if 1 <= n <= len(evidence)]


def _cited(sentence: str, evidence: Sequence[Any]) -> set[str]:
    return {name for n in _marks(sentence, evidence) for name in source_names(evidence[n - 1])}


def source_names(result: Data) -> set[str]:
    """Return the names of a result's document: its id, and the fields that may hold one."""
    metadata = result["metadata"]
    fields = [value for value in metadata.get("fields", {}).values() if isinstance(value, str)]
    return {str(metadata.get("doc_id") or ""), *fields}


def score_runs(rows: Sequence[Row], runs: Sequence[Any]) -> Scores:
    """Score each answer, without the measures that no row or run has a value for."""
    scores: dict[str, dict[str, float]] = {}
    for row, run in zip(rows, runs, strict=True):
        answer = unmarked(_finished_answer(run))
        gold = gold_answers(row)
        documents = gold_documents(row)
        refused = bool(_REFUSAL.search(answer))
        first = {name for r in first_documents(run.evidence) for name in source_names(r)}
        support = precision_and_recall(run.state.get("support") or [])
        values = {
            "right": not any(faults(row, run)),
            "EM": any(normal(answer) == normal(text) for text in gold),
            "F1": max((f1(answer, text) for text in gold), default=0.0),
            "holds": any(normal(text) and normal(text) in normal(answer) for text in gold),
            "R@5": sum(i in first for i in documents) / max(1, len(documents)),
            "precision": support["citation_precision"] or 0.0,
            "recall": support["citation_recall"] or 0.0,
            "refused": refused,
            "wrongly refused": refused and not row.get("refuse"),
        }
        for name, value in values.items():
            scores.setdefault(name, {})[row["id"]] = float(value)
    needs = {
        ("EM", "F1", "holds"): any(map(gold_answers, rows)),
        ("R@5",): any(map(gold_documents, rows)),
        ("precision", "recall"): any(run.state.get("support") is not None for run in runs),
    }
    empty = {name for names, is_there in needs.items() if not is_there for name in names}
    return drop(scores, *empty)


def normal(text: str) -> str:
    """Return a text as answers are compared: folded, without articles and punctuation.

    >>> normal("The  East Kiln."), normal("《茶馆》")
    ('east kiln', '茶馆')
    """
    plain = re.sub(r"(?<=\d),(?=\d{3}\b)", "", _ARTICLES.sub(" ", fold(text)))
    return " ".join(re.sub(r"[^\w\s]", " ", plain).split())


def f1(answer: str, gold: str) -> float:
    """Return how far the words of two texts agree; Chinese by characters.

    >>> round(f1("It was Lao She", "Lao She"), 2), f1("老舍", "老舍")
    (0.67, 1.0)
    """
    words = Counter(_tokens(answer))
    gold_words = Counter(_tokens(gold))
    shared = (words & gold_words).total()
    return 2 * shared / (words.total() + gold_words.total()) if shared else 0.0


def _tokens(text: str) -> list[str]:
    return re.findall(
        rf"{CJK.pattern}|[^\W_]+", re.sub(rf"({CJK.pattern})", r" \1 ", normal(text))
    )


GRADES = ("correct", "faithful")


class Grade(BaseModel, extra="forbid"):
    """The form that a judge fills in."""

    correct: bool
    faithful: bool
    reason: str = Field("", max_length=300)


def read_judge(judge: str) -> tuple[str, Path | None]:
    """Return the model, and the file of the prompt where there is one.

    >>> read_judge("openai:m@strict.toml"), read_judge("openai:m@fast")
    (('openai:m', PosixPath('strict.toml')), ('openai:m@fast', None))
    """
    model, _, file = judge.rpartition("@")
    return (model, Path(file)) if model and file.endswith(".toml") else (judge, None)


def judge_contexts(wb: Workbench, judges: Sequence[str]) -> dict[str, Context]:
    """Return the ports of each judge.

    Raises:
        SettingsError: a file is not a prompt of a judge.
    """
    panel = {}
    for judge in judges:
        model, file = read_judge(judge)
        panel[judge] = wb.ports(
            model, {f"judge.{language}": file for language in LANGUAGES} if file else {}
        )
    return panel


def judged_texts(row: Row, run: Any, limit: int) -> dict[str, str]:
    """Return what is judged: question, gold answers, answer, and at most ``limit`` characters of its evidence."""
    most_passages = 10  # that a judge reads
    return {
        "question": row["question"],
        "gold": fenced(" / ".join(map(str, gold_answers(row)))),
        "answer": fenced(run.answer or ""),
        "evidence": fenced(evidence_text(run.evidence[:most_passages], limit)),
    }


def judged(
    wb: Workbench, panel: Mapping[str, Context], answers: Sequence[Mapping[str, str]]
) -> Json:
    """Return, per grade, the share of the answers on which all judges agree, and their number.

    ``refused`` counts the replies that could not be used.
    """
    by_judge = [wb.call(grades(context, answers)) for context in panel.values()]
    votes = list(zip(*by_judge, strict=True))
    figures = {
        "judges": ", ".join(panel),
        "refused": sum(vote is None for group in votes for vote in group),
    }
    for name in GRADES:
        verdicts = [{vote and getattr(vote, name) for vote in group} for group in votes]
        agreed = [True in verdict for verdict in verdicts if verdict in ({True}, {False})]
        figures |= {
            name: percent(sum(agreed) / len(agreed)) if agreed else None,
            f"{name} agreed": len(agreed),
        }
    return figures


async def grades(context: Context, answers: Sequence[Mapping[str, str]]) -> list[Grade | None]:
    """Return a judge's grade of each answer; None where its reply cannot be used."""
    return [
        (await ask_model(context, "judge", Grade, texts, question=texts["question"])).form
        for texts in answers
    ]
