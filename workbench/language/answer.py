"""The answer without a model, and the one judgement on the evidence that the reflector and the writer share.

There are five kinds. ``fields``: typed fields answer, and account for every content word of the question.
``quotation``: one to four sentences of the evidence, whole, each with its title and number. ``closest``: the best two,
where they probably do not answer. ``nothing``: no evidence, or the only name asked for is nowhere in the corpus.
``asks``: the question leaves open what decides the answer, and the readings are named.

It asks back for a pronoun without anything before it, and for a name that several documents have.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

from workbench.language.citing import cite, marked_each, spaced
from workbench.language.dates_and_numbers import read_dates
from workbench.language.fields import Document, FieldsWriter
from workbench.language.followup import asks_for_more
from workbench.language.names import bare, blotted
from workbench.language.quoting import (
    Quotes,
    Sentence,
    best_quotes,
    brief_title,
    in_reading_order,
    plain_title,
    split_sentences,
)
from workbench.language.quoting import weights as fitted
from workbench.language.words import field_words, fields_by_name, measured, pattern, shown
from workbench.ports import Bases, Field, KnowledgeBase, Passage
from workbench.state import Citation, Data, Evidence, Json, NameRead, Question, RetrievalResult
from workbench.text import CJK, content_stems, fold, mentions, stems

Kind = Literal["fields", "quotation", "closest", "nothing", "asks"]
CLOSEST = 2
"""Quotations where nothing clearly answers."""
CLOSED = '.!?。！？；…"”’』」)）'
"""A text that ends in one of these needs no full stop."""


@dataclass(frozen=True)
class Judgement:
    """What the evidence says to a question.

    Attributes:
        kind: of the answer that it allows.
        text: that answer, with its marks.
        probability: how likely the answer answers, 0 to 1.
        missing_fields: ``(title, field)`` pairs that are asked for and are in no field and no quotation.
        not_applied: what the question asks for and the answer was not filtered by.
    """

    kind: Kind = "nothing"
    text: str = ""
    probability: float = 0.0
    missing_fields: tuple[tuple[str, str], ...] = ()
    not_applied: tuple[str, ...] = ()

    @property
    def enough(self) -> bool:
        """Return True where the evidence answers."""
        return self.kind in ("fields", "quotation") and not self.missing_fields


def judge(
    question: Question,
    results: Evidence,
    bases: Bases,
    message: str = "",
    history: Sequence[Data] = (),
) -> Judgement:
    """Judge the evidence: which kind of answer it allows, and that answer.

    Args:
        question: as it was read.
        results: the evidence, in the order of its numbers.
        bases: the knowledge bases that it is from.
        message: as the person typed it; without one nothing is asked back.
        history: the messages before it, oldest first, each with ``role`` and ``content``.
    """
    listed = [entry["content"] for entry in history if entry["role"] == "assistant"]
    listed = listed if listed and asks_for_more(message, question) else []
    fields = FieldsWriter(question, group_by_document(results), bases, listed)
    missing = tuple(name["name"] for name in question["names"] if not is_about(name, results))
    none = Judgement(text=_nothing(fields, missing))
    if left := left_open(question, bases, history) if message else None:
        return replace(none, kind="asks", text=_asking(left, fields))
    if not results and not question["count"]:
        return none
    searched = [name for name in question["names"] if _same_script(name, results)]
    all_missing = missing and len(missing) == len(searched) == len(question["names"])
    recommends = question["intent"] == "recommend"
    if all_missing and not recommends and not any(name["entity_id"] for name in searched):
        return none
    unknown = [name["name"] for name in question["names"] if not name["entity_id"]]
    fields.not_applied.extend(
        name for name in unknown if name in missing or (recommends and not fields.about())
    )
    if text := fields.text() or (fields.recommendation() if recommends else ""):
        return _of_fields(none, text, fields, results)
    chosen = _chosen(question, results, fields, bases)
    absent = [
        pair for pair in fields.missing if not any(_says(q, *pair, fields) for q in chosen.quotes)
    ]
    # Where no document of the corpus holds for a list's conditions, no quotation is that list. No sentence
    # chooses among documents by what their fields do not have.
    empty_list = question["intent"] == "list" and question["conditions"] and not fields.selected
    chooses = len(fields.schema) > 1 and pattern("intent.which").search(question["text"].lower())
    # A field is asked of a document: a name that is none of these is not answered for. What fields answer they have
    # answered by now: a line of a record is no sentence that does.
    unsaid = (
        empty_list
        or (chooses and question["not_applied"])
        or (unknown and question["fields"])
        or any(name in missing for name in unknown)
        or all(quote.is_field for quote in chosen.quotes)
    )
    says = chosen.sure and not unsaid and _says_kind(question, chosen.quotes)
    kind: Kind = "quotation" if says and not absent else "closest"
    quotes = chosen.quotes if kind == "quotation" else chosen.quotes[:CLOSEST]
    if not says and (records := fields.records(fields.spoken_of())):
        text = f"{_unclear(fields)}\n{records}"
    elif not quotes:
        kind = "nothing"
        text = none.text
    else:
        text = "\n".join(
            [*([_unclear(fields)] if kind == "closest" else []), quoted(quotes, fields)]
        )
    return replace(
        none,
        kind=kind,
        text=text,
        probability=chosen.probability if says else min(chosen.probability, fitted()["sure"]),
        missing_fields=tuple(absent),
        not_applied=tuple(fields.not_applied),
    )


def _of_fields(none: Judgement, text: str, fields: FieldsWriter, results: Evidence) -> Judgement:
    """Return the judgement that fields answer; a comparison quotes sentences that have the words left."""
    question = fields.question
    text = spaced(text) if question["language"] == "zh" else text
    if question["intent"] == "compare" and question["words"]:
        words = stems(" ".join(question["words"]))
        quotes = _chosen(question, results, fields, fields.bases).quotes[:CLOSEST]
        having = [q for q in quotes if not q.is_field and words & stems(q.text)]
        compared = any(
            words & stems(fields.shown(name)) for name in fields.shared(fields.about())
        )
        fields.not_applied.extend([] if having or compared else question["words"])
        text = "\n".join(filter(None, [text, quoted(having, fields)]))
    kind: Kind = "quotation" if question["words"] and question["intent"] == "list" else "fields"
    return replace(
        none,
        kind="closest" if fields.not_applied else kind,
        text=text,
        probability=0.0 if fields.not_applied else 1.0,
        missing_fields=tuple(fields.missing),
        not_applied=tuple(fields.not_applied),
    )


def write(
    judgement: Judgement, question: Question, results: Evidence
) -> tuple[str, list[Citation]]:
    """Write the answer of a judgement with its citations, and what of the question was not applied."""
    zh = question["language"] == "zh"
    text = judgement.text
    ignored = list(dict.fromkeys([*question["not_applied"], *judgement.not_applied]))
    if ignored and judgement.kind != "asks":
        phrases = ("、" if zh else ", ").join(f"“{phrase}”" for phrase in ignored)
        heading, _, listed = text.partition("\n")
        # a list is longer than what was asked for: it is read before
        if listed and heading.endswith((":", "：")):
            note = f"（未应用的条件：{phrases}）" if zh else f" (not applied: {phrases})"
            text = f"{heading[:-1]}{note}{heading[-1]}\n{listed}"
        else:
            text += f"\n\n未应用的条件：{phrases}。" if zh else f"\n\nNot applied: {phrases}."
    text, citations, _ = cite(text, results)
    return text, citations


def group_by_document(results: Evidence) -> dict[str, Document]:
    """Group the evidence by document, in the order of its numbers."""
    pieces: dict[str, list[tuple[int, RetrievalResult]]] = {}
    for n, result in enumerate(results, 1):
        if result["source_type"] != "community":
            doc_id = str(result["metadata"].get("doc_id") or result["result_id"])
            pieces.setdefault(doc_id, []).append((n, result))
    sentences = split_sentences(results)
    documents = {}
    for doc_id, own in pieces.items():
        # A passage of the document itself is cited for its fields before a relation or an entity.
        own.sort(key=lambda piece: (piece[1]["source_type"] != "chunk", piece[0]))
        n, first = own[0]
        fields = Json()
        stated_by = dict[str, int]()
        for place, result in reversed(own):
            stated = result["metadata"].get("fields") or {}
            fields |= stated
            stated_by |= dict.fromkeys(stated, place)
        title = str(first["metadata"].get("title") or doc_id)
        own_sentences = tuple(sentence for sentence in sentences if sentence.doc_id == doc_id)
        documents[doc_id] = Document(doc_id, title, n, fields, stated_by, own_sentences)
    return documents


def _writings(name: NameRead) -> set[str]:
    writings = {fold(bare(name["surface"])), fold(name["name"])}
    return writings | {writing.removesuffix("s") for writing in writings}  # "PDFs"


def is_about(name: NameRead, results: Evidence) -> bool:
    """Return True where a piece of evidence is about a name or has it in its text, title or fields."""
    writings = _writings(name)
    for result in results:
        metadata = result["metadata"]
        if name["doc_id"] and metadata.get("doc_id") == name["doc_id"]:
            return True
        values = " / ".join(map(str, (metadata.get("fields") or {}).values()))
        text = fold(f"{metadata.get('title') or ''} {result['evidence']} {values}")
        if any(mentions(text, writing) for writing in writings):
            return True
    return False


def _same_script(name: NameRead, results: Evidence) -> bool:
    """Return True where most of the evidence is in the script of a name: across scripts its absence says nothing."""
    chinese = sum(bool(CJK.search(result["evidence"])) for result in results)
    return bool(CJK.search(name["name"])) == (2 * chinese > len(results))


def _chosen(question: Question, results: Evidence, fields: FieldsWriter, bases: Bases) -> Quotes:
    """Choose the quotations, of the documents that hold for the conditions where those probably answer."""
    # Words are compared, and sentences reranked, by the first base: one question has one scale.
    similar, rerank = (bases[0].words, bases[0].rerank) if bases else (None, None)
    results = _keep(_related(fields), results)
    if question["conditions"] and fields.holding:
        inside = _keep({document.doc_id for document in fields.holding}, results)
        chosen = best_quotes(question["text"], inside, similar=similar, rerank=rerank)
        if chosen.sure or (chosen.quotes and question["intent"] in ("list", "recommend")):
            return chosen
    return best_quotes(question["text"], results, similar=similar, rerank=rerank)


def _related(fields: FieldsWriter) -> set[str]:
    """Return the documents that the question names, that speak of its names, and that those it names lead to.

    Of a question that names no document these are all. ``experiments/answering.py`` measures what it is worth.
    """
    documents = fields.documents
    about = fields.about()
    if not about:
        return {*documents}
    texts = {
        document.doc_id: fold(" ".join([document.title, *(s.text for s in document.sentences)]))
        for document in documents.values()
    }
    leads = " ".join(texts[document.doc_id] for document in about)
    names = {writing for name in fields.question["names"] for writing in _writings(name)}
    return {
        doc_id
        for doc_id, text in texts.items()
        if any(mentions(text, name) for name in names)
        or mentions(leads, plain_title(documents[doc_id].title))
    }


def _keep(doc_ids: set[str], results: Evidence) -> list[RetrievalResult]:
    """Empty the pieces of other documents: the numbers of those that stay are their places."""
    return [
        r
        if str(r["metadata"].get("doc_id") or r["result_id"]) in doc_ids
        else {**r, "evidence": ""}
        for r in results
    ]


def quoted(quotes: Sequence[Sentence], fields: FieldsWriter) -> str:
    """Write one quotation per line with its number, and once, behind its last, the title of each document.

    A sentence that has the title needs none; any other must not be taken for a statement on what was asked for.
    """
    lines = []
    quotes = in_reading_order(quotes)
    for place, quote in enumerate(quotes):
        text = quote.below_heading(fields.question["text"])
        text = text if text[-1:] in CLOSED else text + fields.say(".", "。")
        follows = any(later.doc_id == quote.doc_id for later in quotes[place + 1 :])
        # the title is no sentence of the quotation: it may end in a mark itself
        text, mark, stop = marked_each(text, quote.n).rpartition(f" [{quote.n}]")
        if quote.title and not follows and fold(quote.title) not in fold(quote.text):
            title = brief_title(quote.title)
            text += f"（{title}）" if CJK.search(text) else f" ({title})"
        lines.append(text + mark + stop)
    return "\n".join(lines)


def _says(quote: Sentence, title: str, name: str, fields: FieldsWriter) -> bool:
    """Return True where a quotation on a document says a field of it."""
    about = title == fields.documents[quote.doc_id].title or fold(title) in fold(quote.text)
    return about and says_field(quote.text, fields.schema[name])


def says_field(text: str, field: Field, values: Sequence[str] = ()) -> bool:
    """Return True where a text has one of the words for a field, or one of the values that a document has in it."""
    words = [field["name"], *field_words(field), *values]
    return any(fold(word) in fold(text) for word in words)


def _says_kind(question: Question, quotes: Sequence[Sentence]) -> bool:
    """Return True where a date, or a number that is no date, is quoted if one is asked for."""
    kind = question["answer_type"]
    if kind not in ("date", "number"):
        return True
    texts = [quote.below_heading(question["text"]).lower() for quote in quotes]
    dates = [[span[:2] for span in read_dates(text)] for text in texts]
    if kind == "date" and any(dates):
        return True
    if kind == "number":
        texts = [
            text if len(spans) > 1 else blotted(text, spans)  # two dates are a duration
            for text, spans in zip(texts, dates, strict=True)
        ]
    return any(map(pattern(f"quoted.{kind}").search, texts))


def _unclear(fields: FieldsWriter) -> str:
    if fields.question["conditions"] and not fields.selected:
        return f"{_nothing(fields, ())}{fields.say(' Closest:', '最接近的是：')}"
    return fields.say(
        "Nothing here clearly answers this; the closest:", "没有找到明确的答案，最接近的是："
    )


def _asking(left: Open, fields: FieldsWriter) -> str:
    """Write the question back: each reading with its document and its number."""
    say = fields.say
    documents = fields.documents
    if not left.readings:
        return say(f"Whom or what does “{left.word}” refer to?", f"“{left.word}”指的是谁或什么？")
    numbers = [
        f" [{documents[r.doc_id].n}]" if r.doc_id in documents else "" for r in left.readings
    ]
    readings = [
        f"{reading.text}{number}" for reading, number in zip(left.readings, numbers, strict=True)
    ]
    joined = say(" or ", "，还是").join(readings)
    return say(
        f"The question leaves open which is meant: {joined}?",
        f"这个问题没有说清楚所指的是哪一个：{joined}？",
    )


def _nothing(fields: FieldsWriter, missing: Sequence[str]) -> str:
    if missing:
        names = fields.joined([f"“{name}”" for name in missing])
        return fields.say(
            f"The corpus does not say: it has nothing on {names}.", f"资料库没有提到{names}。"
        )
    conditions = fields.conditions()
    if conditions:
        return fields.say(
            f"No {fields.noun(1)} in the corpus holds: {conditions}.",
            f"资料库中没有符合条件的{fields.noun(1)}：{conditions}。",
        )
    return fields.say("The corpus does not say.", "资料库没有提到。")


READINGS = 4
_KIND = re.compile(r"\((.+)\)$")


_PRONOUN = re.compile(
    r"\W*(?:(?:who|what|when|where|why|how|which)(?: \w+)? )?(?:is|are|was|were|do|does|did|has|have|had|can|could)"
    r" (he|she|they|him|his|her|their|it(?= \w+\W*$))\b|\W*(he|she|they|his|her|their)\b|(?:请问)?([他她它]们?)",
    re.I,
)


class Reading(NamedTuple):
    """The title of a document that a question may mean, and its id."""

    text: str
    doc_id: str


class Open(NamedTuple):
    """What a question leaves open: which of the readings its ``word`` means; a pronoun has none."""

    readings: list[Reading]
    word: str


def left_open(question: Question, bases: Bases, history: Sequence[Data]) -> Open | None:
    """Return what the question leaves open; None where it is clear.

    Args:
        question: as it was read.
        bases: the knowledge bases that were searched.
        history: the messages before it; after any of them a pronoun has something to refer to.
    """
    if pronoun := None if history else _PRONOUN.match(question["text"]):
        return Open([], next(filter(None, pronoun.groups())))
    return _order_left_open(question, bases) or name_left_open(question["text"], bases)


def _order_left_open(question: Question, bases: Bases) -> Open | None:
    """Return the fields of numbers that "the largest" may be of, where the question says nothing else."""
    orders = (pattern("order.most"), pattern("order.least"))
    for phrase in question["not_applied"]:
        numbers = measured(phrase.lower(), fields_by_name(bases).values())
        is_order = any(order.fullmatch(phrase.lower()) for order in orders)
        if len(numbers) > 1 and is_order and all(word in phrase for word in question["words"]):
            fields = [Reading(shown(field, question["language"]), "") for field in numbers]
            return Open(fields, phrase)
    return None


def name_left_open(question: str, bases: Bases) -> Open | None:
    """Return the documents of a name that several have and nothing in the question tells apart."""
    for base in bases:
        for mention in base.link(question):
            entities = map(base.entity, (mention["entity_id"], *mention.get("others", [])))
            ids = dict.fromkeys(e["doc_id"] for e in entities if e and e["doc_id"])
            if len(ids) > 1:
                return Open(_distinguished(_first_passages(base, ids)), mention["surface"])
        titles = base.link(question, "title")
        passages = _first_passages(base, titles[0]["doc_ids"] if len(titles) == 1 else [])
        matches = [_KIND.search(passage["title"]) for passage in passages]
        kinds = {match[1] for match in matches if match}
        decided = any(content_stems(kind) & content_stems(question) for kind in kinds)
        if len(kinds) == len(passages) > 1 and not decided:
            return Open(_distinguished(passages), titles[0]["surface"])
    return None


def _first_passages(base: KnowledgeBase, doc_ids: Iterable[str]) -> list[Passage]:
    return [passage for i in doc_ids for passage in base.passages(doc_ids=[i])[:1]]


def _distinguished(passages: Sequence[Passage]) -> list[Reading]:
    """Return documents by their titles, with the briefest field that tells apart those that share one."""
    titles = [passage["title"] for passage in passages]
    fields = [{**passage["fields"], "id": passage["doc_id"]} for passage in passages]
    texts = {name: [str(own.get(name, "–")) for own in fields] for name in fields[0]}
    apart = [name for name in texts if len({*texts[name]}) == len(fields)]
    if len(set(titles)) < len(titles):
        name = min(apart, key=lambda name: (name == "id", max(map(len, texts[name]))))
        values = [re.sub(r"[\[\]']", "", text) for text in texts[name]]
        titles = [f"{t} ({name} {value})" for t, value in zip(titles, values, strict=True)]
    readings = [
        Reading(title, passage["doc_id"]) for title, passage in zip(titles, passages, strict=True)
    ]
    return readings[:READINGS]
