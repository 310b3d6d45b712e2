"""Answers from typed fields: facts of a document, lists, counts, comparisons, the first by an order."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from workbench.language.citing import marked
from workbench.language.quoting import Sentence
from workbench.language.words import (
    NO,
    TABLE,
    YES,
    field_words,
    fields_by_name,
    in_words,
    shown,
    value_in_words,
    value_texts,
)
from workbench.ports import Bases, Field
from workbench.state import Condition, Data, Question
from workbench.text import CJK, amount, fold, mentions, stems

MOST_LISTED = 30
RECOMMENDED = 8
"""Documents in a list, and in a recommendation or behind a count, at most."""
MOST_VALUES = 4
"""Values of a field that is not asked for, and fields of a comparison, in a sentence."""
_BRIEF = ("date", "category", "name", "number")
"""Types of the fields that are compared, and that stand behind a title in a list, in this order."""


@dataclass(frozen=True)
class Document:
    """What the evidence has of one document.

    Attributes:
        n: the number of the piece that it is cited by.
        stated_by: field -> the number of the first piece that has it: of several sources each has its own.
    """

    doc_id: str
    title: str
    n: int
    fields: Data
    stated_by: Mapping[str, int]
    sentences: tuple[Sentence, ...] = ()

    @property
    def is_record(self) -> bool:
        """Return True where all that is found of it are fields."""
        return all(sentence.is_field for sentence in self.sentences)

    def values(self, name: str) -> list[str]:
        """Return the values of a field as text; an empty list where the document has none."""
        return value_texts(self.fields.get(name))


def table(rows: Sequence[Sequence[str]]) -> str:
    """Return rows of cells as a table of Markdown; the first is its head."""
    head, *body = rows
    lines = [head, ["---"] * len(head), *body]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _in_cell(text: str) -> str:
    """Return a text that does not end its cell."""
    return text.replace("|", "/")


@dataclass(frozen=True)
class FieldsWriter:
    """Write answers from fields in the language of the question, each statement with its ``[n]``.

    Attributes:
        earlier: answers whose lists are continued: what they list is not listed again.
        missing: ``(title, field)`` pairs that the answer lacks.
        not_applied: words of the question that the listed documents were not filtered by.
    """

    question: Question
    documents: Mapping[str, Document]
    bases: Bases
    earlier: Sequence[str] = ()
    missing: list[tuple[str, str]] = field(default_factory=list)
    not_applied: list[str] = field(default_factory=list)

    @cached_property
    def schema(self) -> dict[str, Field]:
        """Return the fields of all bases, by name."""
        return {TABLE["name"]: TABLE} | fields_by_name(self.bases)

    @cached_property
    def typed(self) -> list[str]:
        """Return the fields that are no texts: dates, then categories, names and numbers."""
        fields = [field for field in self.schema.values() if field["type"] in _BRIEF]
        return [f["name"] for f in sorted(fields, key=lambda f: _BRIEF.index(f["type"]))]

    @cached_property
    def selected(self) -> list[str]:
        """Return the ids of all documents of the corpus that match the conditions, in the order that is asked for."""
        question = self.question
        return [
            i
            for base in self.bases
            for i in base.select(question["conditions"], question["sort"])
        ]

    @cached_property
    def holding(self) -> list[Document]:
        """Return the documents of the evidence that hold for the conditions, in the order that is asked for."""
        ids = (
            self.selected
            if self.question["conditions"] or self.question["sort"]
            else self.documents
        )
        documents = [self.documents[doc_id] for doc_id in ids if doc_id in self.documents]
        return [document for document in documents if not self._is_listed(document)]

    def _is_listed(self, document: Document) -> bool:
        line = re.compile(
            rf"^- (?:{re.escape(document.title)}|{re.escape(self.title(document))})(?= [(\[]|[（；;])",
            re.M,
        )
        return any(line.search(answer) for answer in self.earlier)

    @property
    def language(self) -> str:
        """Return the language of the question."""
        return self.question["language"]

    def shown(self, name: str) -> str:
        """Return what a field is called in the language of the question."""
        return shown(self.schema[name], self.language)

    def say(self, english: str, chinese: str) -> str:
        """Return the text in the language of the question."""
        return chinese if self.language == "zh" else english

    def text(self) -> str:
        """Write the answer; "" where fields do not answer, so that it must be quoted."""
        question = self.question
        about = self.about()
        if question["intent"] == "compare" and len(about) > 1:
            return self._sides(about)
        if question["intent"] == "recommend":
            return ""
        if question["aggregate"] and not question["names"]:
            if question["aggregate"] == "count":
                self.not_applied.extend(question["words"])
                return self._aggregate()
            if not question["words"]:
                return self._aggregate()
        if question["words"]:
            return self._words_left()
        if about and question["fields"]:
            return self._facts(about)
        if about and all(document.is_record for document in about):
            return self.records(about)
        if question["names"]:
            return ""
        if question["count"] and not question["conditions"]:
            documents = self.counted(len(self.selected))
            return self.say(f"There are {documents}.", f"共有 {documents}。")
        if question["limit"] == 1:
            return self._first()
        lists = question["conditions"] or question["sort"] or question["intent"] == "list"
        return self.listing(self.holding, len(self.selected)) if lists else ""

    def records(self, documents: Iterable[Document]) -> str:
        """Write all that is in the fields of records; of one that is asked for a date its dates."""
        dates = [name for name in self.typed if self.schema[name]["type"] == "date"]
        names = dates if self.question["answer_type"] == "date" and dates else self.typed
        return "\n".join(self.statement(document, names) for document in documents)

    def spoken_of(self) -> list[Document]:
        """Return the records that the question names, or calls by a value which few of those found have."""
        if about := self.about():
            return [document for document in about if document.is_record]
        records = [document for document in self.documents.values() if document.is_record]
        having: dict[str, list[Document]] = {}
        for document in records:
            for value in {value for name in document.fields for value in document.values(name)}:
                having.setdefault(fold(value), []).append(document)
        text = fold(self.question["text"])
        for value in sorted(having, key=len, reverse=True):
            few = 3 * len(having[value]) <= len(records)
            if few and not value.isdigit() and mentions(text, value):
                return having[value]
        return []

    def _words_left(self) -> str:
        """List what holds for the conditions and says most of the other words; note those that are missing."""
        question = self.question
        if question["names"] or not (question["conditions"] or question["sort"]):
            return ""
        wanted = stems(" ".join(question["words"]))
        saying = {
            document.doc_id: wanted & stems(" ".join(s.text for s in document.sentences))
            for document in self.holding
        }
        best_count = max(map(len, saying.values()), default=0)
        if best_count and not question["conditions"]:
            return ""
        having = [d for d in self.holding if len(saying[d.doc_id]) == best_count]
        notes = {}
        for document in having if best_count else ():
            best = max(document.sentences, key=lambda s: len(wanted & stems(s.text)))
            notes[document.doc_id] = f"{self.say(': ', '：')}{best.text.rstrip('.。')}"
        said_by_all = wanted.intersection(*(saying[document.doc_id] for document in having))
        missing = [word for word in question["words"] if not stems(word) <= said_by_all]
        words = [f"“{word}”" for word in question["words"] if word not in missing]
        ignored = " ".join(question["not_applied"])
        self.not_applied.extend(word for word in missing if word not in ignored)
        if question["limit"] == 1:
            return self._first()
        return self.listing(having, len(self.selected), notes, self.joined(words))

    def about(self) -> list[Document]:
        """Return the documents of the evidence that the question names; of a name that no base knows, by title."""
        names = self.question["names"]
        unknown = {fold(name["name"]) for name in names if not name["entity_id"]}
        outside = [
            document.doc_id
            for document in self.documents.values()
            if fold(document.title) in unknown
        ]
        ids = dict.fromkeys([*(name["doc_id"] for name in names), *outside])
        return [self.documents[doc_id] for doc_id in ids if doc_id in self.documents]

    def called(self, name: str) -> str:
        """Return a name in Chinese where the question is and a base has its Chinese writing."""
        if self.language != "zh" or CJK.search(name):
            return name
        entities = filter(None, (base.entity(name) for base in self.bases))
        return next(
            (alias for entity in entities for alias in entity["aliases"] if CJK.search(alias)),
            name,
        )

    def title(self, document: Document) -> str:
        """Return a document's title, in 《》 where the question is Chinese."""
        return self.say(document.title, f"《{self.called(document.title)}》")

    def joined(self, items: Sequence[str]) -> str:
        """Join items as a sentence does."""
        if self.language == "zh":
            return "、".join(items)
        if len(items) > 1:
            return f"{', '.join(items[:-1])} and {items[-1]}"
        return "".join(items)

    def noun(self, count: int) -> str:
        """Return what this many documents are called."""
        usual = ["文档"] if self.language == "zh" else ["document", "documents"]
        nouns = (base.about()["nouns"].get(self.language) for base in self.bases)
        words = next(filter(None, nouns), usual)
        return words[self.language == "en" and count != 1]

    def measure(self) -> str:
        """Return the Chinese measure word of the documents."""
        nouns = (base.about()["nouns"] for base in self.bases)
        return next((words["measure"][0] for words in nouns if words.get("measure")), "份")

    def date(self, doc_id: str) -> str:
        """Return the first date in the fields of a document; "" where it has none."""
        dates = (name for name in self.typed if self.schema[name]["type"] == "date")
        document = self.documents.get(doc_id)
        return next((date for name in dates if document for date in document.values(name)), "")

    def counted(self, count: int) -> str:
        """Return a count with what the documents are called."""
        noun = self.noun(count)
        return self.say(f"{count:,} {noun}", f"{count:,} {self.measure()}{noun}")

    def conditions(self) -> str:
        """Return the conditions in words."""
        conditions: list[Condition] = [
            {**c, "value": self.called(c["value"])} if isinstance(c["value"], str) else c
            for c in self.question["conditions"]
            if c["field"] in self.schema
        ]
        return self.say("; ", "，").join(
            in_words(c, self.schema[c["field"]], self.language) for c in conditions
        )

    def inside(self) -> str:
        """Return the conditions in brackets; "" for none."""
        what = self.conditions()
        return self.say(f" ({what})", f"（{what}）") if what else ""

    def _value_text(self, field: Field, value: str) -> str:
        value = self.called(value) if field["type"] == "name" else value
        return value_in_words(value, field, self.language)

    def field_called(self, words: str) -> str:
        """Return the field that is called so in any language; "" where none is."""
        names = (n for n, f in self.schema.items() if fold(words) in map(fold, field_words(f)))
        return next(names, "")

    def value_texts(self, document: Document, name: str) -> list[str]:
        """Return the values of a field in the language of the question."""
        return [self._value_text(self.schema[name], value) for value in document.values(name)]

    def values_text(self, document: Document, name: str) -> str:
        """Return the values of a field as one text; of one that is not asked for the first few."""
        texts = self.value_texts(document, name)
        return self.joined(texts) if name in self.question["fields"] else self._brief(texts)

    def _brief(self, texts: Sequence[str]) -> str:
        """Join texts, of many the first few."""
        if len(texts) > MOST_VALUES:
            return f"{self.say(', ', '、').join(texts[:MOST_VALUES])} …"
        return self.joined(texts)

    def statement(self, document: Document, names: Iterable[str], inside: str = "") -> str:
        """Write what fields say of a document, with the numbers of the pieces that have them; "" where none says it."""
        names = [name for name in names if document.values(name) not in ([], [document.title])]
        texts = [f"{self.shown(name)} {self.values_text(document, name)}" for name in names]
        facts = self.say("; ", "，").join(texts)
        text = f"{self.title(document)}{self.say(': ', '：')}{facts}{inside}{self.say('.', '。')}"
        return marked(text, *(document.stated_by[name] for name in names)) if names else ""

    def _facts(self, about: Sequence[Document]) -> str:
        """Write what is asked of the documents that the question names."""
        names = self.question["fields"]
        unknown = [name["name"] for name in self.question["names"] if not name["entity_id"]]
        titles = [fold(document.title) for document in about]
        self.not_applied.extend(name for name in unknown if fold(name) not in titles)
        lines = list(filter(None, (self.statement(document, names) for document in about)))
        self.missing.extend(
            (d.title, name) for d in about for name in names if not d.values(name)
        )
        if lines and self.missing:
            lacking = [
                self.say(f"{name} of {title}", f"《{title}》的{name}")
                for title, name in self.missing
            ]
            lines.append(
                self.say(
                    f"No field has the {self.joined(lacking)}.",
                    f"没有{self.joined(lacking)}的记载。",
                )
            )
        return "\n".join(lines)

    def _sides(self, about: Sequence[Document]) -> str:
        """Write a comparison: what is shared and what differs, then a table of what each side has."""
        names = self.shared(about)
        if len(names) < 2:
            return "\n".join(filter(None, (self.statement(side, names) for side in about)))
        return f"{self.compared(about)}\n\n{table(self.rows(about))}"

    def rows(self, about: Sequence[Document]) -> list[list[str]]:
        """Return a row for each compared field with a cell for each document, below a row of titles."""
        rows = [["", *(_in_cell(self.title(document)) for document in about)]]
        for name in self.shared(about):
            cells = [
                f"{_in_cell(self.values_text(document, name))} [{document.stated_by[name]}]"
                if document.values(name)
                else "–"
                for document in about
            ]
            rows.append([_in_cell(self.shown(name)), *cells])
        return rows

    def shared(self, about: Sequence[Document]) -> list[str]:
        """Return the fields in which documents are compared: those asked for, else the typed ones that several have.

        Of these, those with a word of the question alone, if there are any. Those that are equal come first, then those
        with a value in common.
        """
        shared = [
            name
            for name in self.typed
            if sum(bool(d.values(name)) for d in about) > 1
            and any(d.values(name) != [d.title] for d in about)
        ]

        words = stems(" ".join(self.question["words"]))
        shared = [name for name in shared if words & stems(self.shown(name))] or shared

        def difference(name: str) -> float:
            longest = max(len(document.values(name)) for document in about)
            return -len(self._common(about, name)) / longest

        return self.question["fields"] or sorted(shared, key=difference)

    def _common(self, about: Sequence[Document], name: str) -> list[str]:
        """Return the values of a field that all of the documents have."""
        had = set.intersection(*({*map(fold, d.values(name))} for d in about))
        return [value for value in about[0].values(name) if fold(value) in had]

    def compared(self, about: Sequence[Document]) -> str:
        """Write which values all of the documents have, and which fields differ, with their single values."""
        common, differing = list[str](), list[str]()
        names = [name for name in self.shared(about) if all(d.values(name) for d in about)]
        for name in names:
            label = self.shown(name)
            if shared := self._common(about, name):
                value = self.values_text(replace(about[0], fields={name: shared}), name)
                common.append(self.say(f"{label} {value}", f"{label}（{value}）"))
            elif all(len(document.values(name)) == 1 for document in about):
                each = self.say(", ", "、").join(
                    self.values_text(document, name) for document in about
                )
                differing.append(self.say(f"{label} ({each})", f"{label}（{each}）"))
            else:
                differing.append(label)
        facts = self._brief(common) or self.say("no recorded value", "没有相同的记载")
        text = self.joined([self.title(document) for document in about])
        text += self.say(f" have {facts} in common", f"的共同之处：{facts}")
        if differing:
            fields = self._brief(differing)
            text += self.say(f"; they differ in {fields}", f"，不同之处：{fields}")
        numbers = [document.stated_by[name] for document in about for name in names]
        return marked(text + self.say(".", "。"), *numbers)

    def _aggregate(self) -> str:
        """Write what is asked of all documents of the corpus that hold: a sum, a mean, or figures by a field."""
        name, *by = self.question["fields"]
        if self.question["aggregate"] == "count":
            return self._by_value(name)
        english, chinese = (
            ("Total", "总") if self.question["aggregate"] == "sum" else ("Average", "平均")
        )
        label = self.say(f"{english} {self.shown(name)}", f"{chinese}{self.shown(name)}")
        if by:
            return self._by_value(by[0], name, label)
        having, value = self._figure(name)
        documents = f"{self.counted(having)}{self.inside()}"
        text = self.say(f"{label} of {documents}: {value}.", f"{documents}的{label}：{value}。")
        return text if having else ""

    def _counted(self, name: str, *more: Condition) -> list[tuple[str, int]]:
        """Return how many documents that hold have each value of a field."""
        conditions = [*self.question["conditions"], *more]
        return [pair for base in self.bases for pair in base.select(conditions, count=name)]

    def _figure(self, name: str, *more: Condition) -> tuple[int, str]:
        """Return how many documents have a number, and their sum or mean."""
        counts = [
            (number, n) for text, n in self._counted(name, *more) if (number := amount(text))
        ]
        having = sum(count for _, count in counts)
        total = sum(number[0] * count for number, count in counts)
        mean = total if self.question["aggregate"] == "sum" else total / max(having, 1)
        text = f"{mean:.3f}".rstrip("0").rstrip(".")
        return having, self._value_text(self.schema[name], text)

    def _by_value(self, name: str, number: str = "", label: str = "") -> str:
        """Write a figure for each value of a field: how many documents have it, or the sum or mean of a number."""
        counted = self._counted(name)
        field = self.schema[name]
        shown_here = sorted(counted, key=lambda pair: (-pair[1], pair[0]))[:MOST_LISTED]
        if field["type"] == "date":
            shown_here.sort()
        texts = []
        for value, count in shown_here:
            holds = Condition(field=name, op="eq", value=value)
            figure = self._figure(number, holds)[1] if number else f"{count:,}"
            texts.append(f"{self._value_text(field, value)} ({figure})")
        if more := len(counted) - len(shown_here):
            texts.append(self.say(f"{more:,} more values", f"另外 {more:,} 个值"))
        documents = f"{self.counted(len(self.selected))}{self.inside()}"
        what = (
            self.say(f"{label} of {documents}", f"{documents}的{label}") if label else documents
        )
        text = self.say(
            f"{what} by {self.shown(name)}: {self.joined(texts)}.",
            f"{what}，按{self.shown(name)}：{self.joined(texts)}。",
        )
        return text if counted else ""

    def _first(self) -> str:
        """Write the first document by the order that is asked for, with all that share its value."""
        sort = self.question["sort"]
        assert sort is not None
        having = [document for document in self.holding if document.values(sort["field"])]
        if not having or having[0].doc_id != self.selected[0]:
            return ""  # the first is not among the evidence
        first = [d for d in having if d.values(sort["field"]) == having[0].values(sort["field"])]
        names = dict.fromkeys([sort["field"], *self.question["fields"]])
        return "\n".join(self.statement(document, names, self.inside()) for document in first)

    def listing(
        self,
        documents: Sequence[Document],
        total: int,
        notes: Mapping[str, str] | None = None,
        words: str = "",
    ) -> str:
        """Write documents as a list below a heading that counts them; "" for none.

        Args:
            documents: in their order.
            total: how many there are in the corpus.
            notes: document id -> what stands behind it.
            words: that these documents say.
        """
        sort = self.question["sort"]
        documents = [d for d in documents if d.values(sort["field"])] if sort else documents
        usual = RECOMMENDED if self.question["count"] else MOST_LISTED
        shown_here = documents[: self.question["limit"] or usual]
        if not shown_here:
            return ""
        inside = self.inside()
        count = len(shown_here)
        cut = (
            self.say(
                f"; {count} of them{words and f' with {words}'}",
                f"，列出其中{words and f'提到{words}的'} {count} {self.measure()}",
            )
            if count < total
            else ""
        )
        head = self.say(
            f"{self.counted(total)}{inside}{cut}:",
            f"{self.noun(total)}{inside}共 {total:,} {self.measure()}{cut}：",
        )
        return "\n".join([head, *self.lines(shown_here, notes or {})])

    def lines(self, documents: Sequence[Document], notes: Mapping[str, str]) -> list[str]:
        """Write each document as a line of a list, with its note and its number."""
        return [
            f"- {self.brief(document, documents)}{notes.get(document.doc_id, '')} [{document.n}]"
            for document in documents
        ]

    def brief(self, document: Document, among: Sequence[Document] = ()) -> str:
        """Write a title and, in brackets, the fields that are asked for and that all of ``among`` have."""
        question = self.question
        equal = {c["field"] for c in question["conditions"] if c["op"] == "eq"}
        names = [*question["fields"], *([question["sort"]["field"]] if question["sort"] else [])]
        names += [c["field"] for c in question["conditions"] if c["op"] not in ("eq", "exists")]
        # a bare number says little without the name of its field
        plain = [n for n in self.typed if self.schema[n]["type"] != "number"]
        names += [n for n in plain if all(0 < len(d.values(n)) < 4 for d in among)]
        wanted = [
            n
            for n in dict.fromkeys(names)
            if n in self.schema
            and n not in equal
            and not all(
                fold(value) in (*YES, *NO) or value in document.title
                for value in document.values(n)
            )
        ]
        wanted = wanted[: max(2, len(question["fields"]))]
        facts = [self.joined(self.value_texts(document, name)[:3]) for name in wanted]
        inside = self.say(", ", "，").join(facts)
        return (
            f"{self.title(document)}{self.say(f' ({inside})', f'（{inside}）') if inside else ''}"
        )

    def recommendation(self) -> str:
        """Write what to try: documents that share a value with those that are named, else those that were found."""
        question = self.question
        about = self.about()
        documents = [document for document in self.holding if document not in about]
        inside = self.inside()
        if not documents:
            documents = [
                document for document in self.documents.values() if document not in about
            ]
            self.not_applied.extend([self.conditions()] if inside else [])
            inside = ""
        values = self._list_values(about)
        related = [document for document in documents if values & self._list_values([document])]
        head = self.say(f"Worth a look{inside}:", f"可以看看{inside}：")
        lines = self.lines((related or documents)[: question["limit"] or RECOMMENDED], {})
        return "\n".join([head, *lines]) if lines else ""

    def _list_values(self, documents: Iterable[Document]) -> set[tuple[str, str]]:
        """Return the names and categories in the fields of documents."""
        return {
            (name, fold(value))
            for name, field in self.schema.items()
            for document in documents
            for value in document.values(name)
            if field["type"] in ("category", "name")
        }
