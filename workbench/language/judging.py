"""Which sentences of the evidence answer a question, and what the evidence still lacks: one judgement for everybody.

The reflector goes by it when it decides whether to look further, the writer when it writes: what was called enough is
never denied. A sentence is judged by how much of the question it holds, by whose document it is, by whether it holds
the kind of thing that is asked for, and by how far the search believes its passage; one logistic weighs them
(``experiments/judging.py`` fits it on public questions, half of them, and measures it on the other half).
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import Any, NamedTuple

from workbench.context import Field, KnowledgeBase
from workbench.days import days
from workbench.knowledge.keywords import stem
from workbench.state import AnswerType, Reading, RetrievalResult
from workbench.text import CJK, fold, language_of, sentences, terms

WEIGHTS = {"bias": -6.92, "covered": 4.28, "named": 1.28, "kind": 0.45, "passage": 3.24, "across": 2.0}
LEAST = 0.12
"""A sentence that answers with this probability is an answer: on the half that fits, about nine of ten questions whose
answer is there have one, and one of ten whose answer is not."""
_MARKUP = re.compile(
    r"^\s*(?:#{1,6}\s+|[-*+>•·]\s+|\d{1,3}[.)]\s+)|\*\*|__|`{1,3}|^\s*\|\s*|\s*\|\s*$|\[([^\]]+)\]\([^)]*\)"
)
_REASON = re.compile(
    r"\b(?:because|since|due to|so that|in order to|reason|therefore|thus|caused|prevents?|avoids?|allows?|to \w+)\b"
    r"|因为|由于|为了|以便|因此|所以|原因|避免|防止",
    re.I,
)
_PLACE = re.compile(r"\b(?:in|at|near|from|to) (?:the )?[A-Z]|[市省县区国镇村路街楼室州]|位于|地址")
_PROPER = re.compile(
    r"(?<!^)(?<![.!?]\s)\b[A-Z][a-z]+|[\u4e00-\u9fff]{2,4}(?:负责|担任|先生|女士|经理|教授)|由[\u4e00-\u9fff]{2,4}"
)
_NUMBER = re.compile(
    r"\d|\b(?:two|three|four|five|six|seven|eight|nine|ten|dozen|hundred|thousand)\b|[一二两三四五六七八九十百千万]"
)
_KINDS: dict[AnswerType, Callable[[str], bool]] = {
    "number": lambda text: bool(_NUMBER.search(text)),
    "date": lambda text: bool(
        days(text) or re.search(r"(?:1[5-9]|20)\d\d|\d月|\b(?:mon|tues|wednes|thurs|fri|satur|sun)day", text, re.I)
    ),
    "person": lambda text: bool(_PROPER.search(text)),
    "place": lambda text: bool(_PLACE.search(text)),
    "reason": lambda text: bool(_REASON.search(text)),
}


class Said(NamedTuple):
    """A sentence of the evidence, its markup gone: whose ``n`` it is, where it stands, how surely it answers."""

    n: int
    doc_id: str
    title: str
    text: str
    place: tuple[int, int]
    probability: float


@dataclass(frozen=True)
class Judged:
    """What the evidence says to a question.

    Attributes:
        answers: the sentences that may answer, the surest first.
        holding: the documents of the evidence that hold for the conditions; all of them where there are none.
        missing_fields: ``(document title, field)``: asked for, and neither in its fields nor in a sentence of it.
        missing_names: names of the question that no piece of the evidence is about or speaks of.
        enough: whether the evidence answers.
    """

    answers: tuple[Said, ...] = ()
    holding: tuple[str, ...] = ()
    missing_fields: tuple[tuple[str, str], ...] = ()
    missing_names: tuple[str, ...] = ()
    enough: bool = False
    documents: Mapping[str, Document] = field(default_factory=dict)

    @property
    def surest(self) -> float:
        """The probability of the surest sentence."""
        return self.answers[0].probability if self.answers else 0.0


@dataclass(frozen=True)
class Document:
    """What the evidence holds of one document; ``n`` is the piece under which its fields are cited."""

    doc_id: str
    title: str
    n: int
    score: float
    fields: Mapping[str, Any]
    said: tuple[Said, ...] = ()

    def values(self, name: str) -> list[str]:
        """The values of a field as text; none where the document does not say."""
        value = self.fields.get(name)
        many = value if isinstance(value, list | tuple) else [] if value is None else [value]
        return [("yes" if v else "no") if isinstance(v, bool) else str(v) for v in many if str(v).strip()]


def judge(
    reading: Reading,
    results: Sequence[RetrievalResult],
    schema: Sequence[Field],
    weight: Callable[[str], float],
    holds: Callable[[str], bool] | None = None,
) -> Judged:
    """Judge the evidence.

    Args:
        reading: of the question.
        results: the evidence, in the order of its numbers.
        schema: the fields of the documents.
        weight: how much a term says.
        holds: whether a document holds for the conditions of the reading; None where there are none.
    """
    wanted = _Wanted.of(reading, weight)
    documents = {d.doc_id: d for d in _documents(results, wanted)}
    about = {name["doc_id"] for name in reading["names"]} & documents.keys()
    answers = sorted(
        (s for d in documents.values() for s in d.said if _is_of(s, about, reading)),
        key=lambda s: (-s.probability, s.n, s.place),
    )
    holding = tuple(doc_id for doc_id in documents if holds is None or holds(doc_id))
    lost = tuple(name["name"] for name in reading["names"] if not _known(name, results))
    missing = tuple(_missing(reading, documents, schema, wanted))
    selecting = bool(reading["conditions"] or reading["sort"] or reading["count"])
    asked = bool(reading["asked"]) and any(name["doc_id"] in documents for name in reading["names"])
    if selecting:
        enough = bool(holding) or bool(answers and answers[0].probability >= LEAST)
    elif asked:
        enough = not missing
    elif reading["intent"] in ("person", "compare"):
        enough = bool(documents) and not lost
    else:
        enough = bool(answers and answers[0].probability >= LEAST) and not (lost and len(lost) == len(reading["names"]))
    return Judged(tuple(answers), holding, missing, lost, enough, documents)


def judged(reading: Reading, results: Sequence[RetrievalResult], bases: Sequence[KnowledgeBase]) -> Judged:
    """The judgement on the evidence, over the fields and words of these bases."""
    schema = [field for base in bases for field in base.schema()]
    if not reading["conditions"]:
        return judge(reading, results, schema, weight_in(bases))
    holding = frozenset(doc_id for base in bases for doc_id in base.select(reading["conditions"]))
    return judge(reading, results, schema, weight_in(bases), holding.__contains__)


def weight_in(bases: Sequence[KnowledgeBase]) -> Callable[[str], float]:
    """How much a term says, in the knowledge base where it says most."""

    @cache
    def weight(term: str) -> float:
        return max((base.term_weight(term) for base in bases), default=0.0)

    return weight


@dataclass(frozen=True)
class _Wanted:
    """What a sentence should hold: stems of the words asked, by weight, and the names."""

    words: Mapping[str, float]
    names: tuple[tuple[str, frozenset[str], str], ...]
    kind: AnswerType
    chinese: bool

    @classmethod
    def of(cls, reading: Reading, weight: Callable[[str], float]) -> _Wanted:
        said = [*reading["words"], *reading["asked"]]
        words = {stem(term): weight(term) + 0.3 for word in said for term in terms(word.replace("_", " "))}
        names = tuple(
            (n["doc_id"], frozenset(map(stem, terms(n["name"]))) | frozenset(), fold(n["surface"].strip("《》“”\"'")))
            for n in reading["names"]
        )
        return cls(words, names, reading["answer_type"], reading["language"] == "zh")

    def signals(self, text: str, title: str, doc_id: str, passage: float) -> dict[str, float]:
        """What is seen of one sentence, each 0 to 1."""
        held = stems(text)
        total = sum(self.words.values())
        covered = (
            sum(w for word, w in self.words.items() if word in held or _sign(word, text)) / total if total else 0.0
        )
        folded = fold(text)
        named = [
            (doc_id == i and bool(i)) or surface in folded or (stems_ and stems_ <= held)
            for i, stems_, surface in self.names
        ]
        kind = _KINDS.get(self.kind)
        return {
            "covered": covered if total else passage,
            "named": sum(map(bool, named)) / len(named) if named else 0.5,
            "kind": float(kind(text)) if kind else 0.5,
            "passage": passage,
            "across": self.unread(text) * passage,
        }

    def unread(self, text: str) -> float:
        """The share of the words that is in another script than the text, so that words cannot tell."""
        total, chinese = sum(self.words.values()), bool(CJK.search(text))
        return sum(w for word, w in self.words.items() if bool(CJK.match(word)) != chinese) / total if total else 0.0


def _sign(word: str, text: str) -> bool:
    """Whether a word is one Chinese character and stands in a text: terms of a text are pairs of them."""
    return len(word) == 1 and word in text


def probability(signals: Mapping[str, float]) -> float:
    """The probability that a sentence with these signals answers."""
    z = WEIGHTS["bias"] + sum(weight * signals.get(name, 0.0) for name, weight in WEIGHTS.items() if name != "bias")
    return 1 / (1 + math.exp(-z))


def seen(
    reading: Reading, results: Sequence[RetrievalResult], weight: Callable[[str], float]
) -> list[tuple[Said, dict[str, float]]]:
    """Every sentence of the evidence with what is seen of it: what the weights are fitted to."""
    wanted = _Wanted.of(reading, weight)
    return [
        (said, wanted.signals(said.text, said.title, said.doc_id, results[said.n - 1]["score"]))
        for document in _documents(results, wanted)
        for said in document.said
    ]


@lru_cache(maxsize=16_384)
def stems(text: str) -> frozenset[str]:
    """The stems of a text."""
    return frozenset(stem(term) for term in terms(text))


def plain(text: str) -> str:
    """A sentence without its markup.

    >>> plain("- **Budget**: see [the plan](x.md)"), plain("## 1. Scope")
    ('Budget: see the plan', '1. Scope')
    """
    return re.sub(r"\s{2,}", " ", _MARKUP.sub(lambda m: m[1] or "", text)).strip()


def _documents(results: Sequence[RetrievalResult], wanted: _Wanted) -> Iterable[Document]:
    groups: dict[str, list[tuple[int, RetrievalResult]]] = {}
    for n, result in enumerate(results, 1):
        if result["source_type"] != "community":
            own = result["metadata"].get("doc_id") or result["result_id"]
            groups.setdefault(str(own), []).append((n, result))
    for doc_id, pieces in groups.items():
        pieces.sort(key=lambda p: (p[1]["source_type"] != "chunk", p[1]["metadata"].get("position") or 0, p[0]))
        n, first = pieces[0]
        title = str(first["metadata"].get("title") or doc_id)
        fields = next((r["metadata"]["fields"] for _, r in pieces if r["metadata"].get("fields")), {})
        score = max(result["score"] for _, result in pieces)
        yield Document(doc_id, title, n, score, fields, tuple(_sentences(pieces, title, doc_id, wanted)))


def _sentences(
    pieces: Sequence[tuple[int, RetrievalResult]], title: str, doc_id: str, wanted: _Wanted
) -> Iterable[Said]:
    """The sentences of passages, each once: what other notations say is no sentence of anybody's."""
    seen = set[str]()
    for n, result in pieces:
        if result["source_type"] != "chunk" and " — " in result["evidence"]:
            continue  # a field in the notation of a relation
        position = int(result["metadata"].get("position") or 0)
        for index, raw in enumerate(sentences(re.sub(r"\s?\[\d+\]", "", result["evidence"]))):
            text = _without_heading(plain(raw), title)
            if text in seen or not (len(text.split()) > 2 or len(CJK.findall(text)) > 3):
                continue
            seen.add(text)
            told = wanted.signals(text, title, doc_id, result["score"])
            yield Said(n, doc_id, title, text, (position, index), round(probability(told), 4))


def _is_of(said: Said, about: Collection[str], reading: Reading) -> bool:
    """Whether a sentence may speak of what the question names: it is in a document about it, or it names it."""
    if not about or said.doc_id in about:
        return True
    text = fold(said.text)
    return any(fold(name["name"]) in text or fold(name["surface"]).strip("《》") in text for name in reading["names"])


def _without_heading(text: str, title: str) -> str:
    """A sentence without the heading that a passage begins with, when the two ran together."""
    ran_on = re.match(rf"{re.escape(title)}\s+(?=[A-Z\u4e00-\u9fff])", text) if title else None
    return text[ran_on.end() :] if ran_on and len(terms(text[ran_on.end() :])) > 2 else text


def _known(name: Mapping[str, Any], results: Sequence[RetrievalResult]) -> bool:
    """Whether a piece of evidence is about a name or speaks of it."""
    surface, own = fold(str(name["surface"]).strip("《》“”\"'")), fold(str(name["name"]))
    for result in results:
        metadata = result["metadata"]
        if name["doc_id"] and metadata.get("doc_id") == name["doc_id"]:
            return True
        values = " / ".join(str(v) for v in (metadata.get("fields") or {}).values())
        text = fold(f"{metadata.get('title') or ''} {result['evidence']} {values}")
        if surface in text or own in text:
            return True
    return False


def _missing(
    reading: Reading, documents: Mapping[str, Document], schema: Sequence[Field], wanted: _Wanted
) -> Iterable[tuple[str, str]]:
    fields = {one["name"]: one for one in schema}
    for name in reading["names"]:
        document = documents.get(name["doc_id"])
        if document is None:
            continue
        for asked in reading["asked"]:
            if not document.values(asked) and not says_field(document, fields[asked], wanted.kind):
                yield document.title, asked


def says_field(document: Document, field: Field, kind: AnswerType) -> list[Said]:
    """The sentences of a document that speak of a field by one of its words and hold the kind of thing it is."""
    called = [stems(word) for words in field["called"].values() for word in words]
    holds = _KINDS.get({"number": "number", "date": "date"}.get(field["type"], kind))  # type: ignore[arg-type]
    return [
        said
        for said in document.said
        if any(words and words <= stems(said.text) for words in called) and (holds is None or holds(said.text))
    ]


def foreign(text: str, reading: Reading) -> bool:
    """Whether a text is written in another language than the question."""
    return language_of(text) != reading["language"]
