"""The offline writer: cited text from evidence, for any corpus. Deterministic, and pure.

Facts are stated as the fields have them, lists and counts by the conditions that were read, and everything else is
quoted: whole sentences, in their order, each with its mark. What the corpus does not say is said.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from workbench.knowledge.names.schema import spoken, spoken_words
from workbench.language.citing import cite, marked, spaced
from workbench.language.judging import KINDS, Document, Judged, Said, foreign, says_field, several, speaks_of
from workbench.language.reading import in_words, shown
from workbench.ports import Field
from workbench.state import Citation, Question, RetrievalResult
from workbench.text import CJK, fold, sentences

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

    def __init__(self, reading: Question, results: Sequence[RetrievalResult], judged: Judged, known: Known):
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
        names = [*reading["fields"], *([reading["sort"]["field"]] if reading["sort"] else [])]
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
        lost = bool(reading["fields"]) and not any(document.values(name) for name in reading["fields"])
        wanted = wanted[: 3 if lost else max(1, len(reading["fields"]))]
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
        return bool(re.search(asks, self.reading["text"], re.I))

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


# --- The offline writer: cited text from evidence, for any corpus. Deterministic, and pure ---

MOST_LISTED = 30
RECOMMENDED = 8
SURE = 0.5
"""A document that the search gives this probability is one of a list, whatever its sentences say."""
SURELY = 0.7
"""A path of relations with this probability is the one that is asked for."""
MOST_QUOTED = 3
NEARLY = 0.75
"""A further sentence is quoted when it is at least so sure, for the surest one's 1."""


def write(
    reading: Question, results: Sequence[RetrievalResult], judged: Judged, known: Known
) -> tuple[str, list[Citation]]:
    """The answer to a question, every statement with its ``[n]``: the n-th piece of the evidence.

    Args:
        reading: of the question.
        results: the merged evidence, in the order of its numbers.
        judged: the judgement on it.
        known: what the knowledge bases say beside it.
    """
    text = _Writer(reading, results, judged, known).text()
    text, citations, _ = cite(spaced(text) if reading["language"] == "zh" else text, results)
    return text, citations


class _Writer(Voice):
    def text(self) -> str:
        """The answer, and what was not understood of the question."""
        parts = [self._answer()]
        if self.reading["not_applied"]:
            unclear = self._listed([f"“{one}”" for one in self.reading["not_applied"]])
            parts.append(self._say(f"Not taken into account: {unclear}.", f"未计入的条件：{unclear}。"))
        return "\n".join(part for part in parts if part)

    def _answer(self) -> str:
        reading = self.reading
        selecting = bool(reading["conditions"] or reading["sort"])
        if reading["count"] and self.judged.missing_names:
            return self._nothing("")
        if reading["count"] and (selecting or reading["group"] or not reading["words"]):
            return self._counted()
        if reading["count"]:
            return self._quoted()
        about = self._about()
        if reading["intent"] == "compare" and about and len(reading["names"]) > 1:
            return self._sides(about)
        if said := self._as_of() or self._along():
            return said
        if selecting and not about:
            return self._quoted() if self.judged.sought and not reading["fields"] else self._listing()
        if about and (said := self._of_documents(about)):
            return said
        if reading["intent"] in ("list", "recommend") and not about and not reading["names"]:
            return self._listing()
        if reading["intent"] == "recommend" and about:
            return self._listing(without={d.doc_id for d in about})
        if said := self._of_names():
            return said
        return self._quoted()

    def _about(self) -> list[Document]:
        """The documents of the evidence that the question names."""
        ids = dict.fromkeys(name["doc_id"] for name in self.reading["names"])
        return [self.judged.documents[i] for i in ids if i in self.judged.documents]

    def _as_of(self) -> str:
        """The facts that hold at the time that is asked about; what had ended where nothing does, and says so."""
        told = [
            (n, r["metadata"]["as_of"], f)
            for n, r in enumerate(self.results, 1)
            for f in r["metadata"].get("facts", ())
        ]
        lines = dict[str, list[int]]()
        for n, _, fact in told:
            kind = fact["attribute"].split() or [""]
            attribute = fact["attribute"] if fact["attribute"] in fact["sentence"] else kind[0]
            since, until = fact["valid_from"], "" if fact["holds"] else fact["valid_to"]
            times = [self._say(f"since {since}", f"{since} 起")] if since else []
            times += [self._say(f"until {until}", f"{until} 止")] if until else []
            inside = self._say(", ", "，").join(times)
            line = self._say(", ", "").join(filter(None, (fact["subject"], attribute)))
            line += (
                (self._say(": ", "：") if line else "")
                + fact["value"]
                + (self._say(f" ({inside})", f"（{inside}）") if inside else "")
            )
            lines.setdefault(line, []).append(n)
        said = [marked(line + self._say(".", "。"), *numbers) for line, numbers in lines.items()]
        as_of = told[0][1] if told else ""
        return (self._say(f"As of {as_of}: ", f"截至 {as_of}：") if as_of else "") + "\n".join(said)

    def _along(self) -> str:
        """Where a path of several relations ends that the question surely asks for, and by way of whom."""
        ends = [(n, r["metadata"]["path"]) for n, r in enumerate(self.results, 1) if "path" in r["metadata"]]
        if not ends or ends[0][1]["sure"] < SURELY or not ends[0][1].get("by_way_of"):
            return ""
        named = self.known.called if self.zh else str
        lines = []
        for n, path in ends[:MOST_LISTED]:
            way = self._listed([named(name) for name in path["by_way_of"]])
            lines.append(f"- {named(path['answer'])}{self._say(f' (by way of {way})', f'（经由{way}）')} [{n}]")
        topic, count = named(ends[0][1]["topic"]), ends[0][1]["of"]
        cut = self._say(f", {len(lines)} of them here", f"，列出其中 {len(lines)} 个") if len(lines) < count else ""
        head = self._say(f"From {topic}, {count:,} found{cut}:", f"由{topic}找到 {count:,} 个{cut}：")
        return "\n".join([head, *lines])

    def _counted(self) -> str:
        reading, what = self.reading, self._conditions()
        if reading["group"] and self.known.counts:
            one = self.fields[reading["group"]]
            rows = [
                f"- {self._value(one, value)}{self._say(': ', '：')}{count}"
                for value, count in self.known.counts[:MOST_LISTED]
            ]
            head = self._say(
                f"{self._noun(2).capitalize()} by {shown(one, 'en')}{f' ({what})' if what else ''}:",
                f"按{shown(one, 'zh')}统计{f'（{what}）' if what else ''}：",
            )
            return "\n".join([head, *rows])
        total = self.known.total if what else self.known.documents
        shown_documents = self._holding()
        head = self._say(
            f"{total:,} {self._noun(total)}{f' ({what})' if what else ''}",
            f"{self._noun(2)}（{what}）共 {total:,} {self._measure}",
        )
        if not what:
            return self._say(
                f"There are {total:,} {self._noun(total)}.", f"共有 {total:,} {self._measure}{self._noun(total)}。"
            )
        if not total:
            return self._nothing(what)
        lines = [f"- {self._brief(d)} [{d.n}]" for d in shown_documents[:MOST_LISTED]]
        return "\n".join([f"{head}{self._say(':', '：') if lines else self._say('.', '。')}", *lines])

    def _holding(self) -> list[Document]:
        held = [self.judged.documents[i] for i in self.judged.holding]
        sort = self.reading["sort"]
        if sort:
            held = [d for d in held if d.values(sort["field"])]
        return held

    def _listing(self, without: Iterable[str] = ()) -> str:
        reading, what = self.reading, self._conditions()
        selecting = bool(reading["conditions"] or reading["sort"])
        held = [d for d in (self._holding() if selecting else self._telling()) if d.doc_id not in without]
        names = [name for name in reading["names"] if not name["doc_id"]]
        if selecting and names:
            held = [d for d in held if all(speaks_of(name, [self.results[d.n - 1]]) for name in names)]
        if self.judged.sought:
            held = [d for d in held if any(s.answers and not s.foreign for s in d.said)]
        elif reading["words"] and selecting and not (reading["sort"] or reading["not_applied"]):
            held = [d for d in held if any(s.answers and s.seen["covered"] > 0 for s in d.said)] or held
        if not held:
            return self._nothing("" if self.judged.sought or names else what)
        total = self.known.total if selecting and not reading["words"] and not names else len(held)
        most = RECOMMENDED if reading["intent"] == "recommend" else MOST_LISTED
        cut = held[: reading["limit"] or most]
        if (sort := reading["sort"]) and reading["limit"] == 1:
            alike = [d for d in held if d.values(sort["field"]) == held[0].values(sort["field"])]
            said = "\n".join(self._extreme(d, what) for d in alike)
            return said if self.judged.first else self._say("Among what was found: ", "在找到的资料中：") + said
        lines = [f"- {self._brief(d)}{self._told(d)} [{d.n}]" for d in cut]
        return "\n".join([self._heading(total, len(cut), what), *lines])

    def _told(self, document: Document) -> str:
        """The sentence that says why a document is listed, where words were asked for and not fields alone."""
        best = max(document.said, key=lambda s: s.probability, default=None)
        if not self.reading["words"] or best is None or not best.answers or foreign(best.text, self.reading):
            return ""
        return f"{self._say(': ', '：')}{_without_stop(best.text)}"

    def _telling(self) -> list[Document]:
        """The documents with a sentence that answers, the surest first."""
        best = {d.doc_id: max((s.probability for s in d.said), default=0.0) for d in self.judged.documents.values()}
        found = [d for d in self.judged.documents.values() if any(s.answers for s in d.said) or d.score >= SURE]
        return sorted(found, key=lambda d: (-best[d.doc_id] - d.score, d.n))

    def _heading(self, total: int, count: int, what: str) -> str:
        words = self._say(", ", "、").join(self.reading["words"])
        about = what or (self._say(f"on {words}", f"与{words}有关") if words else "")
        cut = self._say(f"; {count} of them", f"，列出其中 {count} {self._measure}") if count < total else ""
        return self._say(
            f"{total:,} {self._noun(total)}{f' ({about})' if about else ''}{cut}:",
            f"{self._noun(total)}{f'（{about}）' if about else ''}共 {total:,} {self._measure}{cut}：",
        )

    def _extreme(self, document: Document, what: str) -> str:
        sort = self.reading["sort"]
        assert sort is not None
        fact = self._fact(document, sort["field"])
        inside = self._say(f" ({what})", f"（{what}）") if what else ""
        return marked(
            self._say(f"{self._title(document)}: {fact}{inside}.", f"{self._title(document)}：{fact}{inside}。"),
            document.n,
        )

    def _of_documents(self, about: Sequence[Document]) -> str:
        """What is asked of the documents that the question names."""
        reading, parts, missing = self.reading, list[str](), list[str]()
        if reading["answer_type"] == "yes_no" and (said := self._verdict(about)):
            return said
        if not reading["fields"] or (reading["answer_type"] == "yes_no" and reading["words"]):
            return ""
        for document in about:
            facts = [fact for name in reading["fields"] if (fact := self._fact(document, name))]
            if facts:
                joined = self._say("; ", "，").join(facts)
                parts.append(
                    marked(f"{self._title(document)}{self._say(': ', '：')}{joined}{self._say('.', '。')}", document.n)
                )
            for name in reading["fields"]:
                if document.values(name):
                    continue
                told = says_field(document, self.fields[name], reading["answer_type"])
                if told:
                    parts.append(self._quotes(told[:1]))
                else:
                    missing.append(self._lacking(document, name))
        ids = {document.doc_id for document in about}
        beside = [s for s in self.judged.answers if s.doc_id in ids and s.answers and s.seen["covered"] >= 0.5]
        if reading["words"] and several(reading) and beside:
            parts.append(self._quotes(beside[:1]))  # the part of the question that asks for no field
        if missing:
            parts.append(
                self._say(
                    f"The corpus does not say {self._listed(missing)}.", f"资料库没有提到{self._listed(missing)}。"
                )
            )
        if parts and self.judged.missing_names:
            parts.append(self._not_named())
        return "\n".join(parts)

    def _verdict(self, about: Sequence[Document]) -> str:
        """Yes or no where a typed field can be tested, and nothing else is asked; "" otherwise."""
        reading = self.reading
        categories = [f for f in self.known.schema if f["type"] == "category"]
        said = [
            (reading["text"][start:end], name, value)
            for start, end, name, value in spoken(spoken_words(categories), reading["text"])
        ]
        people = [name for name in reading["fields"] if self.fields[name]["type"] == "name"]
        said += [("", name, one["name"]) for name in people[:1] for one in reading["names"] if not one["doc_id"]]
        if len(about) != 1 or not said or not {*reading["words"]} <= {word for word, *_ in said}:
            return ""
        document, parts = about[0], []
        for name in dict.fromkeys(name for _, name, _ in said):
            values = [value for _, field_name, value in said if field_name == name]
            if document.values(name):
                held = {fold(v) for v in document.values(name)}
                yes = all(fold(v) in held for v in values)
                if not yes and any(fold(v) in fold(s.text) for v in values for s in document.said):
                    return ""  # its text speaks of it
                fact = self._fact(document, name, [v for v in document.values(name) if not yes or v in values])
                parts.append(
                    marked(
                        self._say(
                            f"{'Yes' if yes else 'No'}: {self._title(document)} has {fact}.",
                            f"{'是' if yes else '不是'}：{self._title(document)}的{fact}。",
                        ),
                        document.n,
                    )
                )
        return "\n".join(parts)

    def _sides(self, about: Sequence[Document]) -> str:
        """The sides of a comparison: the fields that are asked, or those that differ, and a sentence of each."""
        asked = self.reading["fields"]
        names = asked or [
            f["name"]
            for f in self.known.schema
            if f["type"] != "text"
            and not any(value[-1:] in "。." for d in about for value in d.values(f["name"]))
            and sum(d.values(f["name"]) not in ([], [d.title]) for d in about) >= min(2, len(about))
        ]
        lines = []
        for document in about:
            facts = [fact for name in names if (fact := self._fact(document, name))]
            sentences = [
                s for s in document.said if not re.match(r"[^:：。.]{1,20}[:：]", s.text)
            ]  # no field as a line
            best = max(sentences, key=lambda s: (s.probability, [-p for p in s.place]), default=None)
            told = "" if asked or best is None else self._quotes([best])
            stated = (
                marked(
                    self._title(document)
                    + self._say(": ", "：")
                    + self._say("; ", "，").join(facts)
                    + self._say(".", "。"),
                    document.n,
                )
                if facts
                else ""
            )
            if stated or told:
                lines.append("- " + self._say(" ", "").join(part for part in (stated, told) if part))
        lost = [self._lacking(d, name) for d in about for name in asked if not d.values(name)]
        if lost:
            lines.append(
                self._say(f"The corpus does not say {self._listed(lost)}.", f"资料库没有提到{self._listed(lost)}。")
            )
        if asked and not any(d.values(name) for d in about for name in asked):
            return self._quoted()
        same = [
            name
            for name in names
            if all(d.values(name) for d in about) and len({tuple(d.values(name)) for d in about}) == 1
        ]
        if same and not asked and len(about) > 1:
            lines.append(
                self._say("- The same in both: ", "- 两者相同：")
                + self._listed([shown(self.fields[n], self.lang) for n in same])
                + "".join(f" [{d.n}]" for d in about)
                + self._say(".", "。")
            )
        if self.judged.missing_names:
            lines.append(self._not_named())
        return "\n".join(lines)

    def _of_names(self) -> str:
        """A name that is no document's own: the documents that have it in a field, and what is said of it."""
        names = [n for n in self.reading["names"] if not n["doc_id"] and n["name"] in self.known.by_field]
        if not names or self.reading["words"] or self.reading["fields"]:
            return ""
        lines = []
        for name in names:
            for field_name, titles in self.known.by_field[name["name"]].items():
                held = [
                    d
                    for d in self.judged.documents.values()
                    if any(fold(v) == fold(name["name"]) for v in d.values(field_name))
                ]
                listed = [f"{self._title(d)} [{d.n}]" for d in held[:MOST_LISTED]]
                if listed:
                    count = len(titles)
                    one = shown(self.fields[field_name], self.lang)
                    called = self.known.called(name["name"]) if self.zh else name["name"]
                    lines.append(
                        self._say(
                            f"{called} is {one} of {count} {self._noun(count)}: {self._listed(listed)}.",
                            f"{called}作为{one}的{self._noun(count)}有 {count} {self._measure}："
                            f"{self._listed(listed)}。",
                        )
                    )
            told = [
                s
                for s in self.judged.answers
                if fold(name["name"]) in fold(s.text) or fold(name["surface"]) in fold(s.text)
            ]
            if told:
                lines.append(self._quotes(told[:2]))
        return "\n".join(lines)

    def _quoted(self) -> str:
        """The sentences that answer, in their order; or that the corpus does not say."""
        if not self.judged.enough:
            return self._nothing("")
        chosen: list[Said] = []
        first = {said.part: said for said in reversed(self.judged.answers)}
        for said in self.judged.answers:
            lead = first[said.part]
            less = any(said.seen.get(name, 0.0) < lead.seen.get(name, 0.0) for name in ("kind", "named"))
            if said.foreign > lead.foreign or less or said.seen.get("ended", 0.0) > lead.seen.get("ended", 0.0):
                continue  # the surest one holds what is asked for: a reason, a number, who is named
            near = said.probability >= lead.probability * NEARLY and (said.answers or len(first) == 1)
            new = not any(said.text in c.text for c in chosen)
            if near and new and sum(c.part == said.part for c in chosen) < MOST_QUOTED:
                chosen.append(said)
        chosen.sort(key=lambda s: (s.n, s.place))
        parts = [self._quotes(chosen, titled=self._asks_for_documents())]
        if self.judged.lacking:
            words = self._listed([f"“{word}”" for some in self.judged.lacking for word in some])
            parts.append(self._say(f"Nothing was found on {words}.", f"没有找到与{words}有关的内容。"))
        if self.judged.missing_names:
            parts.append(self._not_named())
        return "\n".join(parts)

    def _nothing(self, what: str) -> str:
        """No piece of the evidence answers: what was looked for, and in how much."""
        read = len(self.results)
        if what:
            return self._say(
                f"No {self._noun(1)} in the corpus holds: {what}.", f"资料库中没有找到这样的{self._noun(1)}：{what}。"
            )
        if self.judged.missing_names:
            names = self._listed([f"“{name}”" for name in self.judged.missing_names])
            return self._say(
                f"The corpus does not say: it has nothing on {names} ({read} pieces of evidence read).",
                f"资料库没有提到{names}（已查阅 {read} 条证据）。",
            )
        words = self._listed([n["surface"] for n in self.reading["names"]] + self.reading["words"])
        if not words:
            return self._say("The corpus does not say.", "资料库没有提到。")
        return self._say(
            f"The corpus does not say. Looked for {words} in {read} pieces of evidence.",
            f"资料库没有提到。查找的是：{words}（共 {read} 条证据）。",
        )


def _without_stop(text: str) -> str:
    return re.sub(r"[.。]$", "", text)
