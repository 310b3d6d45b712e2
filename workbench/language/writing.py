"""The offline writer: cited text from evidence, for any corpus. Deterministic, and pure.

Facts are stated as the fields have them, lists and counts by the conditions that were read, and everything else is
quoted: whole sentences, in their order, each with its mark. What the corpus does not say is said.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from workbench.knowledge.schema import spoken, spoken_words
from workbench.language.citations import cite, marked, spaced
from workbench.language.judging import Document, Judged, Said, foreign, says_field, several, speaks_of
from workbench.language.reading import shown
from workbench.language.voice import Known as Known
from workbench.language.voice import Voice
from workbench.state import Citation, Reading, RetrievalResult
from workbench.text import fold

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
    reading: Reading, results: Sequence[RetrievalResult], judged: Judged, known: Known
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
        if self.reading["not_understood"]:
            unclear = self._listed([f"“{one}”" for one in self.reading["not_understood"]])
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
        if said := self._along():
            return said
        if selecting and not about:
            return self._quoted() if self.judged.sought and not reading["asked"] else self._listing()
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
        elif reading["words"] and selecting and not (reading["sort"] or reading["not_understood"]):
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
        if not reading["asked"] or (reading["answer_type"] == "yes_no" and reading["words"]):
            return ""
        for document in about:
            facts = [fact for name in reading["asked"] if (fact := self._fact(document, name))]
            if facts:
                joined = self._say("; ", "，").join(facts)
                parts.append(
                    marked(f"{self._title(document)}{self._say(': ', '：')}{joined}{self._say('.', '。')}", document.n)
                )
            for name in reading["asked"]:
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
            (reading["question"][start:end], name, value)
            for start, end, name, value in spoken(spoken_words(categories), reading["question"])
        ]
        people = [name for name in reading["asked"] if self.fields[name]["type"] == "name"]
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
        asked = self.reading["asked"]
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
        if not names or self.reading["words"] or self.reading["asked"]:
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
            if said.foreign > lead.foreign or less:
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
