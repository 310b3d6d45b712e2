"""How an answer says things in either language: titles, values of fields, lists, conditions, quotations with marks."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from workbench.context import Field
from workbench.language.citations import marked
from workbench.language.judging import KINDS, Document, Judged, Said, foreign
from workbench.language.reading import in_words, shown
from workbench.state import Reading, RetrievalResult
from workbench.text import CJK, sentences

_POINTS_BACK = re.compile(r"(?:he|she|they|it|this|these|those|that)\b|[他她它]们?|[这那该此]", re.I)
"""How a sentence begins that is not understood without the one before."""
_POINTS_TO_PEOPLE = re.compile(r"(?:he|she|they)\b|[他她]们?", re.I)
_ANNOUNCES = re.compile(
    r"[:：]$|如下\W*$|有[二两三四五]个?\W*$|\b(?:two|three|four|several) \w+s\W*$|\bas follows\W*$", re.I
)
"""How a sentence ends that says that something comes."""
_ANNOUNCED = 2
_CLOSED = '.!?。！？；…"”’』」)）'


@dataclass(frozen=True)
class Known:
    """What the knowledge bases say of a question beside its evidence.

    Attributes:
        schema: the fields of their documents.
        nouns: language -> what the documents are called.
        total: how many documents hold for the conditions.
        documents: how many there are.
        counts: value -> documents, where the question counts by a field.
        by_field: name -> field -> how many documents have it there.
        called: another writing of a title or name in the reader's language, or itself.
    """

    schema: Sequence[Field] = ()
    nouns: Mapping[str, Sequence[str]] = field(default_factory=dict)
    total: int = 0
    documents: int = 0
    counts: Sequence[tuple[str, int]] = ()
    by_field: Mapping[str, Mapping[str, Sequence[str]]] = field(default_factory=dict)
    called: Callable[[str], str] = str


class Voice:
    """What every answer is made of."""

    def __init__(self, reading: Reading, results: Sequence[RetrievalResult], judged: Judged, known: Known):
        self.reading, self.results, self.judged, self.known = reading, results, judged, known
        self.zh, self.lang = reading["language"] == "zh", reading["language"]
        self.fields = {one["name"]: one for one in known.schema}

    def _say(self, english: str, chinese: str) -> str:
        return chinese if self.zh else english

    def _listed(self, items: Sequence[str]) -> str:
        if self.zh:
            return "、".join(items)
        return " and ".join([", ".join(items[:-1]), items[-1]]) if len(items) > 1 else "".join(items)

    def _title(self, document: Document) -> str:
        return self._named(document.title)

    def _named(self, name: str, title: bool = True) -> str:
        called = self.known.called(name) if self.zh else name
        return f"《{called}》" if self.zh and title else called

    def _value(self, one: Field, value: str) -> str:
        said = one["values_called"].get(value, {}).get(self.lang, []) if self.zh else []
        text = said[0] if said else self.known.called(value) if self.zh and one["type"] == "name" else value
        if one["unit"] and re.fullmatch(r"[\d.,]+", text):
            return f"{float(text):,.10g}{'' if self.zh else ' '}{one['unit']}" if one["unit"] != "%" else f"{text}%"
        return text

    def _fact(self, document: Document, name: str, some: Sequence[str] = ()) -> str:
        """A field with its values, or some of them: "budget 120,000 EUR", 预算 120万元."""
        one = self.fields[name]
        values = self._listed([self._value(one, value) for value in some or document.values(name)])
        return f"{shown(one, self.lang)}{self._say(' ', '为')}{values}" if values else ""

    def _brief(self, document: Document) -> str:
        """A document by its title and the fields that tell it from others: those asked, sorted and conditioned by."""
        reading = self.reading
        names = [*reading["asked"], *([reading["sort"]["field"]] if reading["sort"] else [])]
        names += [c["field"] for c in reading["conditions"] if c["op"] not in ("eq", "exists")]
        order = {"date": 0, "category": 1, "name": 2}
        kept = [
            f
            for f in self.known.schema
            if f["type"] in order and not (f["type"] == "name" and len(document.values(f["name"])) > 2)
        ]
        names += [f["name"] for f in sorted(kept, key=lambda f: order[f["type"]])]
        same = {c["field"] for c in reading["conditions"] if c["op"] == "eq"}
        wanted = [n for n in dict.fromkeys(names) if document.values(n) and n not in same]
        lost = bool(reading["asked"]) and not any(document.values(name) for name in reading["asked"])
        wanted = wanted[: 3 if lost else max(1, len(reading["asked"]))]
        facts = [self._listed([self._value(self.fields[n], v) for v in document.values(n)[:3]]) for n in wanted]
        inside = self._say(", ", "，").join(facts)
        return f"{self._title(document)}{self._say(f' ({inside})', f'（{inside}）') if inside else ''}"

    @property
    def _measure(self) -> str:
        return next(iter(self.known.nouns.get("measure", ())), "份")

    def _noun(self, count: int) -> str:
        words = list(self.known.nouns.get(self.lang, ()))
        if self.zh:
            return words[0] if words else "文档"
        one, many = words[:2] if len(words) > 1 else ("document", "documents")
        return one if count == 1 else many

    def _conditions(self) -> str:
        """What was asked for, in words."""
        said = [
            in_words(c, self.fields[c["field"]], self.lang)
            for c in self.reading["conditions"]
            if c["field"] in self.fields
        ]
        return self._say("; ", "，").join(said)

    def _lacking(self, document: Document, name: str) -> str:
        called, title = shown(self.fields[name], self.lang), self._title(document)
        return self._say(f"the {called} of {title}", f"{title}的{called}")

    def _asks_for_documents(self) -> bool:
        """Whether the question asks which documents they are: "in which report", 哪份报告."""
        own = [*self.known.nouns.get("en", ()), *self.known.nouns.get("zh", ())]
        nouns = "|".join(map(re.escape, [*own, "document", "file", "page", "文档", "文件"]))
        english = rf"\b(?:which|what)\s+(?:is (?:the (?:name|title) of )?the )?(?:\w+\s+)?(?:{nouns})s?\b"
        asks = rf"{english}|(?:哪|什么)\S{{0,3}}(?:{nouns})"
        return bool(re.search(asks, self.reading["question"], re.I))

    def _quotes(self, chosen: Sequence[Said], titled: bool = False) -> str:
        """Whole sentences with their marks, after their title where that is asked for; those of another language in
        quotation marks, with whose words they are.
        """
        parts, told = list[str](), {said.text for said in chosen}
        for said in chosen:
            texts = [text for text in self._with_neighbour(said) if text == said.text or text not in told]
            closed = [t if t[-1:] in _CLOSED else f"{t}{'。' if CJK.search(t[-3:]) else '.'}" for t in texts]
            if not foreign(said.text, self.reading):
                if titled and not closed[0].startswith(said.title):
                    closed[0] = f"{said.title}{self._say(': ', '：')}{closed[0]}"
                parts += [marked(one, said.n) for text in closed for one in sentences(text)]
            else:
                lead = self._say(f"In the words of {said.title}: ", f"原文（{said.title}）：")
                parts.append(f"{lead}“{' '.join(closed)}” [{said.n}]{self._say('', '。')}")
        return self._say(" ", "").join(parts)

    def _with_neighbour(self, said: Said) -> list[str]:
        """A sentence, and the one before or after it where that says of whom it speaks or holds what is asked for."""
        named = any(said.doc_id and said.doc_id == name["doc_id"] for name in self.reading["names"])
        kind = KINDS.get(self.reading["answer_type"])
        lacks = kind is not None and not kind(said.text)
        if said.before and (_POINTS_TO_PEOPLE if named else _POINTS_BACK).match(said.text):
            return [said.before, said.text]
        if lacks and kind and kind(said.before) and not kind(" ".join(said.after[:1])):
            return [said.before, said.text]
        more = 1 if lacks and kind and kind(" ".join(said.after[:1])) else 0
        if _ANNOUNCES.search([said.text, *said.after][more]):
            more += _ANNOUNCED
        return [said.text, *said.after[:more]]

    def _not_named(self) -> str:
        names = self._listed([f"“{name}”" for name in self.judged.missing_names])
        return self._say(f"The corpus has nothing on {names}.", f"资料库没有关于{names}的内容。")
