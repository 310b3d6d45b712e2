"""A section where no model writes: sentences of its evidence, grouped by what they are about, each with its mark.

What stands in another language than the topic is quoted as it is and said to be so. Nothing is said twice.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from workbench.language.citing import spaced
from workbench.language.judging import Judged, Said, foreign
from workbench.language.quoting import parts
from workbench.language.writing import Known, Voice
from workbench.reports.markdown import escaped
from workbench.state import Question, RetrievalResult, SectionContent, SectionOutline
from workbench.text import CJK, fold, sentences, terms

_BEHIND = 2
"""Sentences that stand behind one, for where it announces them."""
LEADS = 2
"""Sentences of a piece from which nothing was chosen."""
MOST_DEFINED = 10


def section_text(section: SectionOutline, pieces: Sequence[RetrievalResult], reading: Question, known: Known) -> str:
    """The section in Markdown; ``[n]`` is the n-th piece. A paragraph for each document.

    Args:
        section: its outline; of pieces from which it quotes nothing, the first sentences stand.
        pieces: its evidence.
        reading: of the topic: its language and names.
        known: how the knowledge bases write titles and names.
    """
    return _Section(reading, pieces, Judged(), known).text(section)


class _Section(Voice):
    def text(self, section: SectionOutline) -> str:
        """The paragraphs; or that there is nothing."""
        if not self.results:
            return self._nothing(section["title"])
        chosen: dict[str, list[Said]] = {}
        wanted, told = {fold(quote) for quote in section["quotes"]}, set[str]()
        for n, piece in enumerate(self.results, 1):
            said = said_in(n, piece)
            own = [s for s in said if fold(s.text) in wanted] or said[:LEADS]
            fresh = [s for s in own if fold(s.text) not in told]
            told |= {fold(s.text) for s in fresh}
            chosen.setdefault(str(piece["metadata"].get("doc_id") or piece["source_id"]), []).extend(fresh)
        paragraphs = [self._paragraph(said) for said in chosen.values() if said]
        text = "\n\n".join(paragraphs)
        return spaced(text) if self.zh else text

    def _paragraph(self, said: Sequence[Said]) -> str:
        """What one document says; foreign sentences in quotation marks, behind whose words they are."""
        if foreign(said[0].text, self.reading):
            return self._foreign(said)
        text, named = self._quotes(said), self._named(said[0].title)
        if fold(said[0].title) in fold(text) or len(sentences(said[0].title)) > 1:  # a title that ends in its middle
            return text
        return f"**{escaped(named)}**{self._say(': ', '：')}{text}"

    def _foreign(self, said: Sequence[Said]) -> str:
        title = said[0].title
        called, title = escaped(self.known.called(title) if self.zh else title), escaped(title)
        named = self._say(f"**{title}**", f"**《{called}》**（{title}）" if called != title else f"**《{title}》**")
        words = " ".join(f"“{s.text}” [{s.n}]" for s in said)
        return f"{named}{self._say(': ', '：')}{words}{self._say('', '。')}"

    def _nothing(self, title: str) -> str:
        return self._say(f"The corpus says nothing on “{title}”.", f"资料库没有关于“{title}”的内容。")


def said_in(n: int, piece: RetrievalResult) -> list[Said]:
    """The sentences of a piece, each with those around it."""
    metadata = piece["metadata"]
    title = str(metadata.get("title") or metadata.get("doc_id") or "")
    doc_id = str(metadata.get("doc_id") or piece["source_id"])
    texts = [text for _, text in parts(piece["evidence"], title)]
    return [
        Said(n, doc_id, title, text, (n, place), 1.0, 0, texts[place - 1] if place else "", _after(texts, place))
        for place, text in enumerate(texts)
    ]


def _after(texts: Sequence[str], place: int) -> tuple[str, ...]:
    return tuple(texts[place + 1 : place + 1 + _BEHIND])


def matrix(
    sections: Sequence[tuple[str, Sequence[str]]],
    numbers: Mapping[str, Sequence[int]],
    zh: bool,
    called: Callable[[str], str] = str,
) -> str:
    """Which documents each section rests on, a line a section: what a conclusion can say without a model.

    Args:
        sections: title, and titles of documents.
        numbers: title of a document -> its marks.
        zh: whether it is for Chinese readers.
        called: the title as they know it.
    """
    lines = []
    for title, documents in sections:
        if list(map(fold, documents)) == [fold(title)]:
            continue  # it says so itself
        told = [
            f"{f'《{escaped(called(one))}》' if zh else escaped(one)} {''.join(f'[{n}]' for n in numbers[one][:1])}"
            for one in documents
            if numbers.get(one)
        ]
        if told:
            lines.append(f"- **{escaped(title)}**{'：' if zh else ': '}{('、' if zh else ', ').join(told)}")
    return "\n".join(lines)


def definitions(
    names: Collection[str], results: Sequence[RetrievalResult], sections: Sequence[SectionContent], zh: bool
) -> list[tuple[str, str, int]]:
    """Names that sections speak of and no section is about: the sentence that says what each is, and its place in the
    evidence.
    """
    told, held = fold("\n".join(one["text"] for one in sections)), {i for one in sections for i in one["sources"]}
    about = {str(r["metadata"].get("title") or "") for r in results if r["result_id"] in held}
    found: dict[str, tuple[str, str, int]] = {}
    for n, result in enumerate(results, 1):
        title = str(result["metadata"].get("title") or "")
        said = said_in(n, result)[:1]
        if not said or title in about or fold(said[0].text) in told or bool(CJK.search(said[0].text)) != zh:
            continue
        tells = fold(title) in fold(said[0].text) and len(terms(said[0].text)) > len(terms(title)) + 2
        if tells and any(fold(title) == fold(name) for name in names):
            found.setdefault(fold(title), (escaped(title), said[0].text, n))
    return sorted(found.values())[:MOST_DEFINED]
