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

from workbench.language.names import blotted
from workbench.language.quoting import parts
from workbench.ports import Field, KnowledgeBase
from workbench.state import AnswerType, Question, RetrievalResult
from workbench.text import CJK, days, fold, language_of, stem, terms


class Model(NamedTuple):
    """Weights of what is seen, and the probability from which a sentence is an answer: in the language of the question,
    and in another.
    """

    weights: dict[str, float]
    least: float
    across: float


WORDS = Model(
    {
        "bias": -6.23,
        "covered": 0.9,
        "mass": 1.99,
        "around": 0.35,
        "named": 0.64,
        "kind": 0.83,
        "passage": 2.43,
        "across": 3.74,
    },
    least=0.07,
    across=0.035,
)
"""Where there is no reranker. Of 100 English and 100 Chinese questions whose answer is there 9 and 17 are told to have
none, and 24 and 22 whose answer was taken away to have one; across languages 50 and 20."""
SENSE = Model(
    {
        "bias": -7.87,
        "covered": 0.27,
        "mass": 1.19,
        "around": 1.19,
        "named": 0.19,
        "kind": 0.18,
        "passage": 2.56,
        "across": 0.3,
        "sense": 2.48,
        "lead": 6.22,
        "sense_across": 1.5,
        "lead_across": 2.52,
    },
    least=0.15,
    across=0.25,
)
"""Where there is one: 4 and 6, 32 and 25; across languages 27 and 41."""
SURE = 0.5
"""From here on a sentence may answer that shares no word with the question."""
_NONE = 0.1
_RAREST, _NOWHERE = 6.5, "\x00"
"""What a term weighs that no passage has, and one that none can have."""
_MASS = 12.0
"""Weight of words that says as much as words can."""
_WHOLE = 0.8
"""The share of the words that a sentence says with its title, its heading and the sentence before, and says it all."""
_NOTED = re.compile(r".{1,200}?(?: — | \(\w+\): |\w ~?[a-z]+(?:_[a-z]+)+ \w)")
"""A relation as it is noted down."""
_READ = 10
"""Passages whose sentences are given to the reranker."""
_BEHIND = 5
Sense = Mapping[str, tuple[float, float]]
_LONG = 5
"""Letters of a beginning that two words of one family share."""
_REASON = re.compile(
    r"\b(?:because|since|due to|so that|in order to|reason|therefore|thus|caused|prevents?|avoids?|allows?|to \w+)\b"
    r"|因为|由于|为了|以便|因此|所以|原因|避免|防止",
    re.I,
)
_PLACE = re.compile(r"\b(?:in|at|near|from|to) (?:the )?[A-Z]|[市省县区国镇村路街楼室州]|位于|地址")
_PROPER = re.compile(
    r"(?<!^)(?<![.!?]\s)\b[A-Z][a-z]+|[\u4e00-\u9fff]{2,4}(?:负责|担任|先生|女士|经理|教授)|由[\u4e00-\u9fff]{2,4}"
)
_YEAR = re.compile(r"(?<![\d.,])(?:1[5-9]|20)\d\d(?![\d.,%]|\s?年?[元人个])(?=年|\b)")
_NUMBER = re.compile(
    r"\d|\b(?:two|three|four|five|six|seven|eight|nine|ten|dozen|hundred|thousand)\b|[一二两三四五六七八九十百千万]"
)
KINDS: dict[AnswerType, Callable[[str], bool]] = {
    "number": lambda text: bool(_NUMBER.search(_YEAR.sub("", text))),
    "date": lambda text: bool(
        days(text) or re.search(r"(?:1[5-9]|20)\d\d|\d月|\b(?:mon|tues|wednes|thurs|fri|satur|sun)day", text, re.I)
    ),
    "person": lambda text: bool(_PROPER.search(text)),
    "place": lambda text: bool(_PLACE.search(text)),
    "reason": lambda text: bool(_REASON.search(text)),
}


class Said(NamedTuple):
    """A sentence, list item or row of the evidence, its markup gone: whose ``n`` it is, where it stands, how surely it
    answers which part of the question, what stands before and after it, and what was seen of it.
    """

    n: int
    doc_id: str
    title: str
    text: str
    place: tuple[int, int]
    probability: float
    part: int = 0
    before: str = ""
    after: tuple[str, ...] = ()
    seen: Mapping[str, float] = {}

    @property
    def answers(self) -> bool:
        """Whether it is likely enough to answer."""
        model = model_of(self.seen)
        if self.foreign:
            return self.probability >= model.across and self.seen.get("kind", 1.0) > 0
        words = self.seen.get("covered", 0.0) + self.seen.get("around", 0.0)
        if words < _NONE:  # it may speak of a name that is asked about, but not of what is asked
            return model is SENSE and self.seen.get("named", 0.0) < 1.0 and self.probability >= SURE
        return self.probability >= model.least or (model is WORDS and words >= _WHOLE)

    @property
    def foreign(self) -> bool:
        """Whether the question's words are in another language; what is said in its own comes first."""
        return self.seen.get("across", 0.0) > 0


@dataclass(frozen=True)
class Judged:
    """What the evidence says to a question.

    Attributes:
        answers: the sentences that may answer, the surest first.
        holding: the documents of the evidence that hold for the conditions, in the order asked; all of them where there
            are none.
        first: whether the first of all documents that hold is in the evidence.
        missing_fields: ``(document title, field)``: asked for, and neither in its fields nor in a sentence of it.
        missing_names: names of the question that no piece of the evidence is about or speaks of.
        lacking: of each part of the question that no sentence answers, the words that none of them holds.
        enough: whether the evidence answers.
        sought: whether a question with conditions is after what documents say, and not after those that hold.
    """

    answers: tuple[Said, ...] = ()
    holding: tuple[str, ...] = ()
    first: bool = True
    missing_fields: tuple[tuple[str, str], ...] = ()
    missing_names: tuple[str, ...] = ()
    lacking: tuple[tuple[str, ...], ...] = ()
    enough: bool = False
    sought: bool = False
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
    reading: Question,
    results: Sequence[RetrievalResult],
    schema: Sequence[Field],
    weight: Callable[[str], float],
    selected: Sequence[str] | None = None,
    sense: Sense | None = None,
) -> Judged:
    """Judge the evidence.

    Args:
        reading: of the question.
        results: the evidence, in the order of its numbers.
        schema: the fields of the documents.
        weight: how much a term says.
        sense: of ``sense_of``.
        selected: the documents that hold for the conditions of the reading, in its order; None where it has neither.
    """
    asks = asked_parts(reading)
    wanted = [_Wanted.of(reading, weight, words) for words in asks]
    documents = {d.doc_id: d for d in _documents(results, wanted, sense)}
    about = {name["doc_id"] for name in reading["names"]} & documents.keys()
    answers = sorted(
        (s for d in documents.values() for s in d.said if _is_of(s, about, reading)),
        key=lambda s: (not s.answers, s.foreign, -s.probability, s.n, s.place),
    )
    holding = tuple(doc_id for doc_id in (documents if selected is None else selected) if doc_id in documents)
    first = selected is None or list(selected[:1]) == list(holding[:1])
    lost = tuple(name["name"] for name in reading["names"] if not speaks_of(name, results))
    missing = tuple(_missing(reading, documents, schema))
    selecting = bool(reading["conditions"] or reading["sort"] or (reading["count"] and not reading["words"]))
    asked = bool(reading["fields"]) and any(name["doc_id"] in documents for name in reading["names"])
    answered = any(one.answers for one in answers)
    sought = selecting and _sought(reading)
    if sought:
        enough = answered
    elif selecting:
        there = bool(about) or not any(name["doc_id"] for name in reading["names"])
        enough = (there and bool(holding) and (first or reading["limit"] != 1)) or (bool(reading["words"]) and answered)
    elif asked:
        enough = not missing
    elif reading["intent"] in ("person", "compare"):
        enough = bool(documents) and not lost
    else:
        if reading["answer_type"] == "yes_no" and about and len(reading["names"]) > 1:
            answered = any(one.seen["named"] == 1 for one in answers)  # what is said of one and the other
        enough = answered and not (lost and len(lost) == len(reading["names"]))
    said = {s.part for s in answers if s.answers}
    held = frozenset().union(*(stems(f"{s.title} {s.text}") for s in answers))
    absent = [[w for w in words if not stems(w) & held] for part, words in enumerate(asks) if part not in said]
    lacking = tuple(tuple(words) for words in absent if words and not any(s.foreign for s in answers[:1]))
    return Judged(tuple(answers), holding, first, missing, lost, lacking, enough, sought, documents)


def _sought(reading: Question) -> bool:
    told = reading["answer_type"] in ("reason", "manner", "date", "place", "number", "yes_no")
    return told and bool(reading["words"]) and not (reading["sort"] or reading["count"])


_PARTS = re.compile(
    r"\b(?:and|or)\s+(?=(?:what|who|whom|when|where|why|how|which|can|could|does|do|did|is|are|was|were|has|have|must|may)\b)"
    r"|[?？;；]\s*(?=\S)|[，,]\s*(?=[^，,？?]*(?:谁|什么|哪|多少|几|为何|怎么|如何|是否|吗))"
)


def several(reading: Question) -> bool:
    """Whether a question asks several things."""
    return bool(_PARTS.search(fold(reading["text"])))


def asked_parts(reading: Question) -> list[list[str]]:
    """The words of each part of a question that asks several things; the words of all where it asks one.

    >>> asked_parts({"question": "Which cipher is it, and who chose it?", "words": ["cipher", "chose"], "asked": []})
    [['cipher'], ['chose']]
    """
    question, found = fold(reading["text"]), dict[int, list[str]]()
    borders = [match.start() for match in _PARTS.finditer(question)]
    for word in reading["words"]:
        at = question.find(fold(word))
        found.setdefault(sum(0 <= border <= at for border in borders), []).append(word)
    return list(found.values()) if found and borders else [[*reading["words"], *reading["fields"]]]


def judged(reading: Question, results: Sequence[RetrievalResult], bases: Sequence[KnowledgeBase]) -> Judged:
    """The judgement on the evidence, over the fields and words of these bases."""
    schema = [field for base in bases for field in base.schema()]
    selected = None
    if reading["conditions"] or reading["sort"]:
        selected = [doc_id for base in bases for doc_id in base.select(reading["conditions"], reading["sort"])]
    return judge(reading, results, schema, weight_in(bases), selected, sense_of(reading, results, bases))


def sense_of(reading: Question, results: Sequence[RetrievalResult], bases: Sequence[KnowledgeBase]) -> Sense | None:
    """What the reranker says of each sentence of the first passages, 1 for its best and 0 for its worst, and by how
    much it is before the sixth; None without a reranker.
    """
    chunks = [result for result in results if result["source_type"] == "chunk"]
    ids = {name["doc_id"] for name in reading["names"]} - {""}
    about = ids & {str(one["metadata"].get("doc_id")) for one in chunks}
    asked = blotted(reading["text"], [(n["start"], n["end"]) for n in reading["names"] if about]).replace("_", "")
    read = [one for one in chunks if not about or one["metadata"].get("doc_id") in about or _named(one, reading)]
    texts = list(dict.fromkeys(text for one in read[:_READ] for _, text in _parts(one)))
    scores = bases[0].rerank(asked, texts) if bases and texts else None
    if not scores:
        return None
    low, high = min(scores), max(scores)
    told = [(score - low) / ((high - low) or 1.0) for score in scores]
    sixth = sorted(told, reverse=True)[min(_BEHIND, len(told) - 1)]
    return {text: (one, max(0.0, one - sixth)) for text, one in zip(texts, told, strict=True)}


def _named(result: RetrievalResult, reading: Question) -> bool:
    text = fold(result["evidence"])
    return any(fold(name["surface"]).strip("《》") in text for name in reading["names"])


def _parts(result: RetrievalResult) -> list[tuple[str, str]]:
    return list(parts(result["evidence"], str(result["metadata"].get("title") or result["metadata"].get("doc_id"))))


def weight_in(bases: Sequence[KnowledgeBase]) -> Callable[[str], float]:
    """How much a term says, in the base where it says most: as much where there are few passages as in many."""
    most = max((base.term_weight(_NOWHERE) for base in bases), default=0.0) or 1.0

    @cache
    def weight(term: str) -> float:
        return _RAREST / most * max((base.term_weight(term) for base in bases), default=0.0)

    return weight


@dataclass(frozen=True)
class _Wanted:
    """What a sentence should hold: stems of the words asked, by weight, and the names."""

    words: Mapping[str, float]
    names: tuple[tuple[str, frozenset[str], str, str], ...]
    kind: AnswerType
    chinese: bool

    @classmethod
    def of(cls, reading: Question, weight: Callable[[str], float], said: Sequence[str]) -> _Wanted:
        words = {root(term): weight(term) + 0.3 for word in said for term in terms(word.replace("_", " "))}
        names = tuple(
            (n["doc_id"], stems(n["name"]), fold(n["surface"].strip("《》“”\"'")), (terms(n["name"]) or [""])[-1])
            for n in reading["names"]
        )
        return cls(words, names, reading["answer_type"], reading["language"] == "zh")

    def signals(
        self, text: str, around: str, doc_id: str, passage: float, sense: Sense | None = None
    ) -> dict[str, float]:
        """What is seen of one sentence, each 0 to 1; ``around``: the title, the heading and the sentence before it."""
        held = stems(text)
        total = sum(self.words.values())
        told = {word for word in self.words if _told(word, held, text)}
        covered = sum(self.words[word] for word in told) / total if total else 0.0
        near = stems(around)
        beside = sum(self.words[word] for word in self.words if word not in told and _told(word, near, around))
        folded, words = fold(text), set(terms(text))
        named = [
            (doc_id == i and bool(i)) or surface in folded or (stems_ and stems_ <= held) or (not i and last in words)
            for i, stems_, surface, last in self.names
        ]
        kind = KINDS.get(self.kind)
        reread = {} if sense is None else dict(zip(("sense", "lead"), sense.get(text, (0.0, 0.0)), strict=True))
        return {
            **reread,
            **{f"{name}_across": self.unread(text) * value for name, value in reread.items()},
            "covered": covered if total else passage,
            "mass": min(1.0, covered * total / _MASS) if total else passage,
            "around": beside / total if total else 0.0,
            "named": sum(map(bool, named)) / len(named) if named else 0.5,
            "kind": float(kind(text)) if kind else 0.5,
            "passage": passage,
            "across": self.unread(text) * passage,
        }

    def unread(self, text: str) -> float:
        """The share of the words that is in another script than the text, so that words cannot tell."""
        total, chinese = sum(self.words.values()), bool(CJK.search(text))
        return sum(w for word, w in self.words.items() if bool(CJK.match(word)) != chinese) / total if total else 0.0


def _told(word: str, held: frozenset[str], text: str) -> bool:
    """Whether a word is said, if in another form ("photo", "photographs"); Chinese terms are pairs of signs."""
    if word in held or (len(word) == 1 and word in text):
        return True
    long = len(word) >= _LONG and word.isascii()
    return long and any(one.startswith(word) or (len(one) >= _LONG and word.startswith(one)) for one in held)


def probability(signals: Mapping[str, float]) -> float:
    """The probability that a sentence with these signals answers."""
    z = sum(
        weight * (signals.get(name, 0.0) if name != "bias" else 1.0)
        for name, weight in model_of(signals).weights.items()
    )
    return 1 / (1 + math.exp(-z))


def model_of(signals: Mapping[str, float]) -> Model:
    """The model for what was seen: with or without a reranker."""
    return SENSE if "sense" in signals else WORDS


def seen(
    reading: Question,
    results: Sequence[RetrievalResult],
    weight: Callable[[str], float],
    sense: Sense | None = None,
) -> list[tuple[Said, dict[str, float]]]:
    """Every sentence of the evidence with what is seen of it: what the weights are fitted to."""
    wanted = [_Wanted.of(reading, weight, words) for words in asked_parts(reading)]
    return [(said, dict(said.seen)) for document in _documents(results, wanted, sense) for said in document.said]


@lru_cache(maxsize=16_384)
def stems(text: str) -> frozenset[str]:
    """The stems of a text."""
    return frozenset(root(term) for term in terms(text))


def root(term: str) -> str:
    """The stem of a term; irregular verbs go by their first form.

    >>> root("wrote") == root("written") == root("writes")
    True
    """
    found = stem(_irregular().get(term, term))
    return _same().get(found, found)


@cache
def _same() -> dict[str, str]:
    return {stem(word): stem(first) for first, *others in map(str.split, _SYNONYMS.split(",")) for word in others}


def forms(verb: str) -> list[str]:
    """The other forms of an irregular verb; none of a participle, which says what is done to a thing.

    >>> forms("wrote"), forms("written")
    (['write', 'written'], [])
    """
    every = next((line.split() for line in _VERBS.split(",") if verb in line.split()[:2]), [])
    return [form for form in every if form != verb]


@cache
def _irregular() -> dict[str, str]:
    return {form: first for first, *others in map(str.split, _VERBS.split(",")) for form in others}


_VERBS = """
begin began begun, break broke broken, bring brought, build built, buy bought, catch caught, choose chose chosen,
come came, cost costs, cut cuts, draw drew drawn, drive drove driven, eat ate eaten, fall fell fallen, feel felt,
fight fought, find found, fly flew flown, forget forgot forgotten, freeze froze frozen, get got gotten, give gave
given, go went gone, grow grew grown, hear heard, hide hid hidden, hold held, keep kept, know knew known, lead led,
leave left, lose lost, make made, mean meant, meet met, pay paid, rise rose risen, run ran, say said, see saw seen,
sell sold, send sent, shoot shot, show shown, sing sang sung, sink sank sunk, sleep slept, speak spoke spoken,
spend spent, stand stood, steal stole stolen, take took taken, teach taught, tell told, think thought, throw threw
thrown, understand understood, wear wore worn, win won, write wrote written
"""


_SYNONYMS = """
begin start launch, need require, mend fix repair, buy purchase, remove delete, allow permit, end finish, choose select,
cheap inexpensive, quick fast, big large, error mistake fault, change alter modify, show display, stop halt quit,
get receive obtain, prove demonstrate, help assist, ask request, answer reply respond, happen occur, cost price
"""


def _documents(
    results: Sequence[RetrievalResult], wanted: Sequence[_Wanted], sense: Sense | None
) -> Iterable[Document]:
    groups: dict[str, list[tuple[int, RetrievalResult]]] = {}
    for n, result in enumerate(results, 1):
        if result["source_type"] != "community":
            own = result["metadata"].get("doc_id") or result["result_id"]
            groups.setdefault(str(own), []).append((n, result))
    for doc_id, pieces in groups.items():
        pieces.sort(key=lambda p: (p[1]["source_type"] != "chunk", p[1]["metadata"].get("position") or 0, p[0]))
        n, first = pieces[0]
        title = str(first["metadata"].get("title") or doc_id)
        fields: Mapping[str, Any] = next(
            (r["metadata"]["fields"] for _, r in pieces if r["metadata"].get("fields")), {}
        )
        score = max(result["score"] for _, result in pieces)
        yield Document(doc_id, title, n, score, fields, tuple(_sentences(pieces, title, doc_id, wanted, sense)))


def _sentences(
    pieces: Sequence[tuple[int, RetrievalResult]],
    title: str,
    doc_id: str,
    wanted: Sequence[_Wanted],
    sense: Sense | None,
) -> Iterable[Said]:
    """The sentences of passages, each once: what other notations say is no sentence of anybody's."""
    seen = set[str]()
    for n, result in pieces:
        position = int(result["metadata"].get("position") or 0)
        found = _parts(result)
        for index, (heading, text) in enumerate(found):
            if result["source_type"] != "chunk" and _NOTED.match(text):
                continue  # a field in the notation of a relation
            if re.fullmatch(rf"[^:：]{{1,20}}[:：]\s*{re.escape(title)}[.。]?", text):
                continue  # a field that says the title
            if text in seen or not (len(text.split()) > 2 or len(CJK.findall(text)) > 3 or ":" in text):
                continue
            seen.add(text)
            before, after = found[index - 1][1] if index else "", tuple(one for _, one in found[index + 1 : index + 4])
            told = [
                one.signals(text, f"{title}\n{heading}\n{before}", doc_id, result["score"], sense) for one in wanted
            ]
            part, best = max(enumerate(map(probability, told)), key=lambda one: (one[1], -one[0]))
            yield Said(n, doc_id, title, text, (position, index), round(best, 4), part, before, after, told[part])


def _is_of(said: Said, about: Collection[str], reading: Question) -> bool:
    """Whether a sentence may speak of what the question names: it is in a document about it, or it names it."""
    if not about or said.doc_id in about:
        return True
    text = fold(f"{said.title} {said.text}")
    return any(fold(name["name"]) in text or fold(name["surface"]).strip("《》") in text for name in reading["names"])


def speaks_of(name: Mapping[str, Any], results: Sequence[RetrievalResult]) -> bool:
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
    reading: Question, documents: Mapping[str, Document], schema: Sequence[Field]
) -> Iterable[tuple[str, str]]:
    fields = {one["name"]: one for one in schema}
    for name in reading["names"]:
        document = documents.get(name["doc_id"])
        if document is None:
            continue
        for asked in reading["fields"]:
            if not document.values(asked) and not says_field(document, fields[asked], reading["answer_type"]):
                yield document.title, asked


def says_field(document: Document, field: Field, kind: AnswerType) -> list[Said]:
    """The sentences of a document that speak of a field by one of its words and hold the kind of thing it is."""
    called = [stems(word) for words in field["called"].values() for word in words]
    own: dict[str, AnswerType] = {"number": "number", "date": "date"}
    holds = KINDS.get(own.get(field["type"], kind))
    return [
        said
        for said in document.said
        if any(words and words <= stems(said.text) for words in called) and (holds is None or holds(said.text))
    ]


def foreign(text: str, reading: Question) -> bool:
    """Whether a text is written in another language than the question."""
    return language_of(text) != reading["language"]
