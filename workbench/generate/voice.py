"""How either language says a thing: titles, lists, marks, quotations."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

from workbench.generate.sources import Document, Sentence
from workbench.knowledge.vocabulary import display
from workbench.text import CJK, language_of

_EDGE = re.compile(r"(?<=[\u4e00-\u9fff])(?=[A-Za-z0-9])|(?<=[A-Za-z0-9.\]])(?=[\u4e00-\u9fff])|(?<=[》）])(?=\[\d)")
_CLOSED = ".!?。！？；”\"'’)）"
_VOCABULARIES = {"genres": "genre", "countries": "country"}


def as_they_are(name: str) -> str:
    """A name under which the knowledge base writes it."""
    return name


@dataclass(frozen=True)
class Voice:
    """One language. ``called`` gives the name by which its readers know something, or the name itself."""

    language: str
    called: Callable[[str], str] = as_they_are

    def pick(self, english: str, chinese: str) -> str:
        """The wording of this language."""
        return chinese if self.language == "zh" else english

    def title(self, document: Document) -> str:
        """A document's title, as it stands in a sentence."""
        return self.titled(document.title)

    def name(self, name: str) -> str:
        """A person or a thing as this language's readers know it."""
        return self.called(name) if self.language == "zh" else name

    def spaced(self, text: str) -> str:
        """The text with a blank where Chinese meets Latin letters, digits or a mark; English as it is."""
        return _EDGE.sub(" ", text) if self.language == "zh" else text

    def titled(self, title: str) -> str:
        """A title, as it stands in a sentence.

        >>> Voice("zh", {"The Wedding Banquet": "喜宴"}.get).titled("The Wedding Banquet")
        '《喜宴》'
        """
        return self.pick(title, f"《{self.called(title)}》")

    def value(self, field: str, value: str) -> str:
        """A typed value as this language writes it.

        >>> Voice("zh").value("genres", "Comedy"), Voice("zh").value("year", "1993")
        ('喜剧', '1993')
        """
        if field in _VOCABULARIES:
            return display(_VOCABULARIES[field], value, self.language)  # type: ignore[arg-type]
        return self.name(value)

    def values(self, document: Document, field: str, most: int = 8) -> str:
        """A document's values of a field, as a list in words; "" when it has none."""
        values = [self.value(field, value) for value in document.values(field)]
        cut = self.pick(" and others", "等") if len(values) > most else ""
        return self.listed(values[:most], closed=not cut) + cut

    def listed(self, items: Sequence[str], closed: bool = True) -> str:
        """Items as a list in words.

        >>> Voice("en").listed(["a", "b", "c"]), Voice("zh").listed(["甲", "乙"])
        ('a, b and c', '甲、乙')
        """
        if self.language == "zh":
            return "、".join(items)
        if len(items) < 2 or not closed:
            return ", ".join(items)
        return ", ".join(items[:-1]) + " and " + items[-1]

    def said(self, text: str, *numbers: int) -> str:
        """A sentence of the writer's own, with its marks before the full stop.

        >>> Voice("zh").said("《喜宴》由Ang Lee执导。", 1), Voice("en").said("It is green.", 1, 2)
        ('《喜宴》由 Ang Lee 执导 [1]。', 'It is green [1][2].')
        """
        return marked(self.spaced(text), *numbers)

    def quoted(self, sentences: Sequence[Sentence], named: bool = False) -> str:
        """Sentences of the evidence with their marks; in quotation marks where the source speaks another language.

        Args:
            sentences: what to quote, in order; those of one source share a pair of quotation marks.
            named: say whose words they are; needed where several documents speak.
        """
        groups = [list(group) for _, group in groupby(sentences, key=lambda s: s.n)]
        return self.joined(self._quoted(group, named) for group in groups)

    def _quoted(self, group: Sequence[Sentence], named: bool) -> str:
        closed = [s.text if s.text[-1] in _CLOSED else f"{s.text}." for s in group]
        title, n = group[0].title, group[0].n
        whose = self.titled(title) if named and title and not any(title in text for text in closed) else ""
        if language_of(" ".join(closed)) == self.language:
            lead = f"{whose}{self.pick(': ', '：')}" if whose else ""
            return lead + self.joined(marked(text, n) for text in closed)
        lead = self.pick(
            f"In the words of {whose or 'the source'}: ", f"{whose}的资料原文：" if whose else "资料原文："
        )
        return f"{lead}“{' '.join(closed)}” [{n}]{self.pick('', '。')}"

    def joined(self, sentences: Iterable[str]) -> str:
        """Sentences as a paragraph."""
        return self.pick(" ", "").join(sentence for sentence in sentences if sentence)


def marked(text: str, *numbers: int) -> str:
    """A sentence with its marks before the full stop, or at its end when it closes otherwise.

    >>> marked("It ends.", 3), marked("结束。", 3), marked('He said "no."', 3)
    ('It ends [3].', '结束 [3]。', 'He said "no." [3]')
    """
    marks = "".join(f"[{n}]" for n in dict.fromkeys(numbers))
    if not marks:
        return text
    stop = re.search(r"[.!?。！？；]$", text)
    return f"{text[: stop.start()]} {marks}{stop.group()}" if stop else f"{text} {marks}"


def is_chinese(text: str) -> bool:
    """Whether the text holds a Chinese character."""
    return bool(CJK.search(text))
