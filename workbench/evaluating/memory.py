"""How well earlier turns are recalled for a question: methods side by side, by turn and by session, no model judging.

    {"set", "questions", "conversations", "clustered", "models", "turn": TABLE, "session": TABLE,
     "without_errata": {"left_out", "unknown", "turn": TABLE, "session": TABLE}}
    TABLE = {"questions", "methods": {name: {"R@5", "all@5", "MRR", "nDCG@10", "by", "ci", "ms"}}, "paired"}

``ours`` leads, and the others are compared with it.

Of a question only its words and its conversation are read when it is asked. A session ranks by its best turn.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from workbench.errors import CorpusError, shown
from workbench.evaluating.rankings import Row, chosen, listed, order, read_rows
from workbench.evaluating.statistics import Progress, compare, frame_text, scores_of, spread
from workbench.evaluating.statistics import table_text as level_text
from workbench.models.embeddings import TextModel, text_model
from workbench.parts.memory.ranking import Conversation, Turn
from workbench.settings import Settings
from workbench.text import sentences, stem, terms
from workbench.tools.fusing import rrf

CUTS = (5, 10, 25)
WINDOW = 6
"""How many of the last messages reached an answer before there was recall."""
SUMMARY = 25
"""Sentences of a summary."""
_BATCH = 500


class Talk(NamedTuple):
    """A conversation that is asked about. ``session_of``: by the id of a turn."""

    turns: Conversation
    summary: list[str]
    session_of: dict[str, str]


def read_conversations(path: Path) -> tuple[dict[str, list[Turn]], bool]:
    """The turns of each conversation, and whether a gold id names a turn (else a session).

    A row is a turn (``id``, ``conv``, ``session``, ``date`` or ``time``, ``speaker``, ``text``, perhaps
    ``image_caption``), or a session (``id``, ``time``, ``text`` with a line ``Name: message`` for each turn).

    Raises:
        CorpusError: names the file and what is wrong with it.
    """
    found: dict[str, list[Turn]] = {}
    seen: set[str] = set()
    rows = read_rows(path, "id", "text")
    by_turn = any("speaker" in row for row in rows)
    for row in rows:
        for turn in [_turn(row, path)] if by_turn else _turns(row):
            if turn.id in seen:
                raise CorpusError(f"{path}: two turns or sessions have the id {shown(turn.id)}: give each its own.")
            seen.add(turn.id)
            found.setdefault(str(row.get("conv") or ""), []).append(turn)
    if not found:
        raise CorpusError(f"{path} holds no turn. A row needs id, session, speaker and text; or id and text.")
    return found, by_turn


def _turn(row: Row, path: Path) -> Turn:
    if missing := [name for name in ("session", "speaker") if row.get(name) in (None, "")]:
        raise CorpusError(f"{path}: turn {shown(row['id'])} has no {missing[0]!r}. Its fields: {', '.join(row)}.")
    caption = f" [image: {row['image_caption']}]" if row.get("image_caption") else ""
    return Turn(row["id"], str(row["session"]), _time(row), str(row["speaker"]), row["text"] + caption)


def _turns(row: Row) -> list[Turn]:
    parts = [line.partition(":") for line in row["text"].splitlines() if line.strip()]
    return [
        Turn(f"{row['id']}#{number}", row["id"], _time(row), *((who, said.strip()) if colon else ("", who)))
        for number, (who, colon, said) in enumerate(parts, start=1)
    ]


def _time(row: Row) -> str:
    return str(row.get("time") or row.get("date") or "")


def read_errata(path: Path) -> set[str]:
    """Ids of questions whose key is known to be wrong: one a line, or JSON Lines with ``id``."""
    found = set()
    for line in filter(None, map(str.strip, path.read_text(encoding="utf-8").splitlines())):
        try:
            row = json.loads(line)
        except ValueError:
            row = line
        found.add(str(row["id"] if isinstance(row, dict) and "id" in row else line))
    return found


def eval_memory(
    settings: Settings,
    conversations: Path,
    questions: Path,
    *,
    cuts: Sequence[int] = CUTS,
    errata: Path | None = None,
    where: Mapping[str, str] | None = None,
    limit: int | None = None,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Ask every question of its conversation by every method, and give the table of the module's docstring.

    Args:
        settings: they name the embedding model.
        conversations: as ``read_conversations`` takes them.
        questions: JSON Lines: ``id``, ``question``, ``gold``; ``conv`` where there are several conversations.
        cuts: the k of ``R@k`` and ``all@k``.
        errata: as ``read_errata`` takes them: everything is counted without these questions too.
        where: only questions that hold these values.
        limit: only so many of them, evenly drawn.
        progress: called after each question.

    Raises:
        CorpusError: a file is no such file, or a question is about a conversation or a turn that is not there.
        MissingExtra: ir-measures or the embedding model is not installed.
    """
    turns, by_turn = read_conversations(conversations)
    rows = chosen(read_rows(questions, "id", "question"), where or {}, limit)
    model = text_model(settings)
    wanted = {_conversation(row, turns) for row in rows}
    talks = index({name: turns[name] for name in turns if name in wanted}, model, progress)
    gold = {row["id"]: _gold(row, talks[_conversation(row, turns)], by_turn) for row in rows}
    rankings, seconds = _ask(rows, turns, talks, model, progress)

    def tables(some: Sequence[Row]) -> dict[str, Any]:
        return {
            level: _table(some, gold, rankings, seconds, talks, cuts, level)
            for level in (["turn"] if by_turn else []) + ["session"]
        }

    table = {
        "set": str(conversations.name),
        "questions": len(rows),
        "conversations": len(talks),
        "clustered": "conversation" if len(talks) > 1 else "question",
        "models": {"embedding_model": model.name},
        **tables(rows),
    }
    if errata:
        wrong = read_errata(errata)
        kept = [row for row in rows if row["id"] not in wrong]
        if not kept:
            raise CorpusError(f"{errata} holds every question that is asked: nothing is left to count.")
        unknown = len(wrong - {row["id"] for row in rows})
        table["without_errata"] = {"left_out": len(rows) - len(kept), "unknown": unknown, **tables(kept)}
    return table


def index(turns: Mapping[str, Sequence[Turn]], model: TextModel, progress: Progress | None = None) -> dict[str, Talk]:
    """Each conversation, indexed with the vectors of this model."""
    made, total, done = {}, sum(map(len, turns.values())), 0
    for name, some in turns.items():
        talk = Conversation(getattr(model, "words", None))
        for start in range(0, len(some), _BATCH):
            batch = some[start : start + _BATCH]
            for turn, vector in zip(batch, model.array([turn.text for turn in batch]), strict=True):
                talk.add(turn, vector)
            done += len(batch)
            if progress:
                progress("embedding", done, total)
        made[name] = Talk(talk, summary(some), {turn.id: turn.session for turn in some})
    return made


def summary(turns: Sequence[Turn], length: int = SUMMARY) -> list[str]:
    """The turns of an extractive summary's sentences: those with the conversation's most frequent words, said once.

    After SumBasic (Nenkova and Vanderwende 2005): a word that a sentence has told counts squared afterwards.
    """
    told = [(turn.id, list(map(stem, terms(text)))) for turn in turns for text in sentences(turn.text)]
    counts = Counter(word for _, words in told for word in words)
    of = sum(counts.values())
    share = {word: count / of for word, count in counts.items() if len(word) > 2 or not word.isascii()}
    left, found = [(turn, [word for word in words if word in share]) for turn, words in told], list[str]()
    left = [(turn, words) for turn, words in left if len(words) > 3]
    while left and len(found) < length:
        best = max(range(len(left)), key=lambda i: (sum(share[w] for w in left[i][1]) / len(left[i][1]), -i))
        turn, words = left.pop(best)
        found.append(turn)
        share |= {word: share[word] ** 2 for word in set(words)}
    return order(found)


def _conversation(row: Row, turns: Mapping[str, Sequence[Turn]]) -> str:
    """The name of the conversation that a question is about: the only one where it names none."""
    name = str(row.get("conv") or "")
    if not name and len(turns) == 1:
        name = next(iter(turns))
    if name not in turns:
        known = ", ".join(shown(one) for one in list(turns)[:5])
        raise CorpusError(f"Question {shown(row['id'])} is about conversation {shown(name)}. Known: {known}.")
    return name


def _gold(row: Row, talk: Talk, by_turn: bool) -> list[str]:
    ids, known = listed(row, "gold"), set(talk.session_of) if by_turn else set(talk.session_of.values())
    if unknown := [one for one in ids if one not in known]:
        unit = "turn" if by_turn else "session"
        raise CorpusError(f"Question {shown(row['id'])}: its conversation has no {unit} {shown(unknown[0])}.")
    return ids


def _methods(talk: Talk, question: str, vector: Any) -> dict[str, Callable[[], list[str]]]:
    """What ranks turns, by name; the later ones may use what an earlier one found."""
    ids = [turn.id for turn in talk.turns.turns]

    def scored(scores: Any) -> list[tuple[str, float]]:
        return [(ids[i], float(scores[i])) for i in (-scores).round(6).argsort(kind="stable").tolist()]

    def by(scores: Any) -> list[str]:
        return [i for i, _ in scored(scores)]

    def both() -> list[tuple[str, float]]:
        return rrf({"bm25": scored(talk.turns.keywords(question)), "dense": scored(talk.turns.cosines(vector))})

    return {
        "ours": lambda: [found.id for found in talk.turns.rank(question, vector)],
        "window": lambda: ids[: -WINDOW - 1 : -1],
        "summary": lambda: talk.summary,
        "bm25": lambda: by(talk.turns.keywords(question)),
        "vectors": lambda: by(talk.turns.cosines(vector)),
        "fused": lambda: [i for i, _ in both()],
    }


def _ask(
    rows: Sequence[Row],
    turns: Mapping[str, Sequence[Turn]],
    talks: Mapping[str, Talk],
    model: TextModel,
    progress: Progress | None,
) -> tuple[dict[str, dict[str, list[str]]], dict[str, list[float]]]:
    """Method -> question -> ids of turns, best first; and the seconds of each."""
    vectors = model.array([row["question"] for row in rows])
    rankings: dict[str, dict[str, list[str]]] = {}
    seconds: dict[str, list[float]] = {}
    for number, (row, vector) in enumerate(zip(rows, vectors, strict=True), start=1):
        for name, rank in _methods(talks[_conversation(row, turns)], row["question"], vector).items():
            begun = time.perf_counter()
            rankings.setdefault(name, {})[row["id"]] = rank()
            seconds.setdefault(name, []).append(time.perf_counter() - begun)
        if progress:
            progress("asking", number, len(rows))
    return rankings, seconds


def _table(
    rows: Sequence[Row],
    gold: Mapping[str, list[str]],
    rankings: Mapping[str, Mapping[str, list[str]]],
    seconds: Mapping[str, list[float]],
    talks: Mapping[str, Talk],
    cuts: Sequence[int],
    level: str,
) -> dict[str, Any]:
    """Return the table of one level."""
    session_of = {turn: session for talk in talks.values() for turn, session in talk.session_of.items()}

    def at_level(found: Iterable[str]) -> list[str]:
        return list(found) if level == "turn" else order(session_of.get(one, one) for one in found)

    wanted = {row["id"]: at_level(gold[row["id"]]) for row in rows}
    scores = {
        name: scores_of(wanted, {i: at_level(ranked[i]) for i in wanted}, cuts) for name, ranked in rankings.items()
    }
    table = compare("method", rows, scores, clusters={row["id"]: str(row.get("conv") or "") for row in rows})
    for name, line in table["methods"].items():
        line["ms"] = spread(seconds[name])
    return {"questions": len(rows), **table}


def table_text(table: Mapping[str, Any], cuts: Sequence[int]) -> str:
    """Return the tables for people, and ours by type."""
    many = f"{table['conversations']} conversations, intervals over them"
    how = many if table["clustered"] == "conversation" else "one conversation, intervals over its questions"
    parts = [f"{table['set']}: {table['questions']} questions, {how}; embeddings: {table['models']['embedding_model']}"]
    parts += _levels(table, cuts)
    if without := table.get("without_errata"):
        unknown = f", {without['unknown']} ids of no question asked" if without["unknown"] else ""
        parts += [f"\nWithout the {without['left_out']} questions whose key is wrong{unknown}", *_levels(without, cuts)]
    return "\n".join(parts)


def _levels(tables: Mapping[str, Any], cuts: Sequence[int]) -> Iterable[str]:
    names = [name for k in cuts for name in (f"R@{k}", f"all@{k}")]
    for level in ("turn", "session"):
        if level in tables:
            yield f"\nby {level}\n{level_text(tables[level], 'method', names)}"
            for kinds in tables[level]["methods"]["ours"]["by"].values():
                cells = {kind: {n: line[n] for n in ("questions", *names)} for kind, line in kinds.items()}
                yield f"\nours\n{frame_text(cells)}"
