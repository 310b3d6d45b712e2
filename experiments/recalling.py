"""Measure how well earlier turns are recalled for a question: methods side by side, by turn and by session.

    python experiments/recalling.py --conversations FILE --questions FILE [--limit N]

The table needs no model that judges:

    {"set", "questions", "conversations", "clustered", "models", "turn": TABLE, "session": TABLE}
    TABLE = {"methods": {name: {"R@5", "all@5", "MRR", "nDCG@10", "by", "ci", "ms"}}, "paired"}

``ours`` leads, and the others are compared with it. Of a question only its words and its conversation are read when it
is asked. A session ranks by its best turn.
"""

from __future__ import annotations

import argparse
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from workbench.errors import CorpusError, shown
from workbench.models.embeddings import TextModel, text_model
from workbench.parts.evaluate.measures import (
    Rows,
    compare,
    milliseconds,
    score_rankings,
)
from workbench.parts.evaluate.questions import Row, choose, distinct, gold_ids, read_rows
from workbench.parts.memory.ranking import Conversation, Turn
from workbench.settings import Settings
from workbench.state import Json, Progress
from workbench.tools.scoring import rrf


class Talk(NamedTuple):
    """A conversation that is asked about. ``session_of``: by the id of a turn."""

    turns: Conversation
    session_of: dict[str, str]


def read_conversations(path: Path) -> tuple[dict[str, list[Turn]], bool]:
    """Return the turns of each conversation, and whether a gold id names a turn (else a session).

    A row is a turn (``id``, ``conv``, ``session``, ``date`` or ``time``, ``speaker``, ``text``, perhaps
    ``image_caption``), or a session (``id``, ``time``, ``text`` with a line ``Name: message`` for each turn).

    Raises:
        CorpusError: names the file and what is wrong with it.
    """
    conversations: dict[str, list[Turn]] = {}
    seen: set[str] = set()
    rows = read_rows(path, "id", "text")
    by_turn = any("speaker" in row for row in rows)
    for row in rows:
        for turn in [_turn(row, path)] if by_turn else _turns(row):
            if turn.id in seen:
                raise CorpusError(
                    f"{path}: two turns or sessions have the id {shown(turn.id)}: give each its own."
                )
            seen.add(turn.id)
            conversations.setdefault(str(row.get("conv") or ""), []).append(turn)
    if not conversations:
        raise CorpusError(
            f"{path} holds no turn. A row needs id, session, speaker and text; or id and text."
        )
    return conversations, by_turn


def _turn(row: Row, path: Path) -> Turn:
    if missing := [name for name in ("session", "speaker") if row.get(name) in (None, "")]:
        raise CorpusError(
            f"{path}: turn {shown(row['id'])} has no {missing[0]!r}. Its fields: {', '.join(row)}."
        )
    caption = f" [image: {row['image_caption']}]" if row.get("image_caption") else ""
    return Turn(
        row["id"], str(row["session"]), _time(row), str(row["speaker"]), row["text"] + caption
    )


def _turns(row: Row) -> list[Turn]:
    parts = [line.partition(":") for line in row["text"].splitlines() if line.strip()]
    return [
        Turn(
            f"{row['id']}#{number}",
            row["id"],
            _time(row),
            *((who, text.strip()) if colon else ("", who)),
        )
        for number, (who, colon, text) in enumerate(parts, start=1)
    ]


def _time(row: Row) -> str:
    return str(row.get("time") or row.get("date") or "")


def eval_memory(
    settings: Settings,
    conversations: Path,
    questions: Path,
    *,
    cuts: Sequence[int] = (5, 10, 25),
    where: Mapping[str, str] | None = None,
    limit: int | None = None,
    progress: Progress | None = None,
) -> Rows:
    """Ask every question of its conversation by every method, and return the table of the module's docstring.

    Args:
        settings: they name the embedding model.
        conversations: as ``read_conversations`` takes them.
        questions: JSON Lines: ``id``, ``question``, ``gold``; ``conv`` where there are several conversations.
        cuts: the k of ``R@k`` and ``all@k``.
        where: only questions that hold these values.
        limit: only so many of them, evenly drawn.
        progress: called after each question.

    Raises:
        CorpusError: a file is no such file, or a question is about a conversation or a turn that is not there.
        MissingExtra: ir-measures or the embedding model is not installed.
    """
    turns, by_turn = read_conversations(conversations)
    rows = choose(read_rows(questions, "id", "question"), where, limit)
    model = text_model(settings)
    names = {row["id"]: _conversation(row, turns) for row in rows}
    talks = index(
        {name: turns[name] for name in turns if name in names.values()}, model, progress
    )
    gold = {row["id"]: _gold(row, talks[names[row["id"]]], by_turn) for row in rows}
    rankings: dict[str, dict[str, list[str]]] = defaultdict(dict)
    seconds: dict[str, list[float]] = defaultdict(list)
    vectors = model.array([row["question"] for row in rows])
    for number, (row, vector) in enumerate(zip(rows, vectors, strict=True), start=1):
        for name, rank in _methods(
            talks[names[row["id"]]].turns, row["question"], vector
        ).items():
            begun = time.perf_counter()
            rankings[name][row["id"]] = rank()
            seconds[name].append(time.perf_counter() - begun)
        if progress:
            progress("asking", number, len(rows))
    session_of = {
        turn: session for talk in talks.values() for turn, session in talk.session_of.items()
    }

    def section(of_level: Callable[[Iterable[str]], list[str]]) -> Json:
        wanted = {question: of_level(ids) for question, ids in gold.items()}
        scores = {
            name: score_rankings(
                wanted, {question: of_level(ids) for question, ids in ranked.items()}, cuts
            )
            for name, ranked in rankings.items()
        }
        table = compare("method", rows, scores, clusters=names)
        for name, line in table["methods"].items():
            line["ms"] = milliseconds(seconds[name])
        return table

    return Rows(
        set=conversations.name,
        questions=len(rows),
        conversations=len(talks),
        clustered="conversation" if len(talks) > 1 else "question",
        models={"embedding_model": model.name},
        **({"turn": section(list)} if by_turn else {}),
        session=section(lambda ids: distinct(session_of.get(name, name) for name in ids)),
    )


def index(
    turns: Mapping[str, Sequence[Turn]], model: TextModel, progress: Progress | None = None
) -> dict[str, Talk]:
    """Return each conversation, indexed with the vectors of this model."""
    most_batch = 500
    talks = {}
    total = sum(map(len, turns.values()))
    done = 0
    for name, spoken in turns.items():
        conversation = Conversation(getattr(model, "words", None))
        for start in range(0, len(spoken), most_batch):
            batch = spoken[start : start + most_batch]
            for turn, vector in zip(
                batch, model.array([turn.text for turn in batch]), strict=True
            ):
                conversation.add(turn, vector)
            done += len(batch)
            if progress:
                progress("embedding", done, total)
        talks[name] = Talk(conversation, {turn.id: turn.session for turn in spoken})
    return talks


def _conversation(row: Row, turns: Mapping[str, Sequence[Turn]]) -> str:
    """Return the name of the conversation that a question is about: the only one where it names none."""
    name = str(row.get("conv") or "")
    if not name and len(turns) == 1:
        name = next(iter(turns))
    if name not in turns:
        names = ", ".join(map(shown, list(turns)[:5]))
        raise CorpusError(
            f"Question {shown(row['id'])} is about conversation {shown(name)}. Known: {names}."
        )
    return name


def _gold(row: Row, talk: Talk, by_turn: bool) -> list[str]:
    ids = gold_ids(row)
    units = set(talk.session_of if by_turn else talk.session_of.values())
    if unknown := [name for name in ids if name not in units]:
        unit = "turn" if by_turn else "session"
        raise CorpusError(
            f"Question {shown(row['id'])}: its conversation has no {unit} {shown(unknown[0])}."
        )
    return ids


def _methods(
    talk: Conversation, question: str, vector: Any
) -> dict[str, Callable[[], list[str]]]:
    """Return what ranks turns, by name."""
    ids = [turn.id for turn in talk.turns]

    def scored(scores: Any) -> list[tuple[str, float]]:
        return [
            (ids[i], float(scores[i])) for i in (-scores).round(6).argsort(kind="stable").tolist()
        ]

    def names(ranking: Iterable[tuple[str, float]]) -> list[str]:
        return [name for name, _ in ranking]

    def both() -> dict[str, list[tuple[str, float]]]:
        return {"bm25": scored(talk.keywords(question)), "dense": scored(talk.cosines(vector))}

    # How many of the last messages reached an answer before there was recall.
    return {
        "ours": lambda: [*talk.rank(question, vector)],
        "window": lambda: ids[:-7:-1],
        "bm25": lambda: names(scored(talk.keywords(question))),
        "vectors": lambda: names(scored(talk.cosines(vector))),
        "fused": lambda: names(rrf(both())),
    }


def main() -> None:
    """Print the table of one set."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--conversations", type=Path, required=True)
    parser.add_argument("--questions", type=Path, required=True)
    parser.add_argument("--limit", type=int)
    args = parser.parse_args()
    table = eval_memory(Settings.load(), args.conversations, args.questions, limit=args.limit)
    print(table)


if __name__ == "__main__":
    main()
