"""A section where no model writes: sentences of its evidence, grouped by what they are about, each with its mark.

Sentences in another language than the topic are quoted unchanged, and marked as quotations. Nothing is said twice.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from workbench.language.answer import CLOSED
from workbench.language.citing import marked, spaced
from workbench.language.fields import FieldsWriter
from workbench.language.quoting import Sentence, split_sentences
from workbench.parts.reports.markdown import escaped
from workbench.ports import KnowledgeBase
from workbench.state import Question, RetrievalResult, SectionContent, SectionOutline
from workbench.text import CJK, detect_language, fold, sentences, terms

LEADS = 2
"""Sentences of a piece from which nothing was chosen."""
MOST_DEFINED = 10


def section_text(
    section: SectionOutline, pieces: Sequence[RetrievalResult], question: Question, bases: Sequence[KnowledgeBase]
) -> str:
    """Write the section in Markdown; ``[n]`` is the n-th piece. A paragraph for each document.

    Args:
        section: its outline; of pieces from which it quotes nothing, the first sentences stand.
        pieces: its evidence.
        question: the topic as it was read: its language and names.
        bases: how they write titles and names.
    """
    fields = FieldsWriter(question, {}, bases)
    if not pieces:
        title = section["title"]
        return fields.say(f"The corpus says nothing on “{title}”.", f"资料库没有关于“{title}”的内容。")
    chosen: dict[str, list[Sentence]] = {}
    wanted, used = {fold(quote) for quote in section["quotes"]}, set[str]()
    for n, piece in enumerate(pieces, 1):
        sentences = sentences_in(n, piece)
        own = [s for s in sentences if fold(s.text) in wanted] or sentences[:LEADS]
        fresh = [s for s in own if fold(s.text) not in used]
        used |= {fold(s.text) for s in fresh}
        chosen.setdefault(str(piece["metadata"].get("doc_id") or piece["source_id"]), []).extend(fresh)
    text = "\n\n".join(_paragraph(sentences, fields) for sentences in chosen.values() if sentences)
    return spaced(text) if question["language"] == "zh" else text


def _paragraph(quoted: Sequence[Sentence], fields: FieldsWriter) -> str:
    """Write what one document says; foreign sentences in quotation marks, behind whose words they are."""
    title = quoted[0].title
    called = escaped(fields.called(title))
    if detect_language(quoted[0].text) != fields.question["language"]:
        original = escaped(title)
        both = f"**《{called}》**（{original}）" if called != original else f"**《{original}》**"
        words = " ".join(f"“{s.text}” [{s.n}]" for s in quoted)
        return fields.say(f"**{original}**: {words}", f"{both}：{words}。")
    closed = [s.text if s.text[-1:] in CLOSED else s.text + fields.say(".", "。") for s in quoted]
    text = fields.say(" ", "").join(marked(t, s.n) for t, s in zip(closed, quoted, strict=True))
    if fold(title) in fold(text) or len(sentences(title)) > 1:  # a title that ends in its middle
        return text
    return fields.say(f"**{called}**: {text}", f"**《{called}》**：{text}")


def sentences_in(n: int, piece: RetrievalResult) -> list[Sentence]:
    """Return the sentences of a piece, which has this number."""
    return [sentence._replace(n=n) for sentence in split_sentences([piece])]


def matrix(
    sections: Sequence[tuple[str, Sequence[str]]],
    numbers: Mapping[str, Sequence[int]],
    zh: bool,
    called: Callable[[str], str] = str,
) -> str:
    """Return which documents each section rests on, a line a section: what a conclusion can say without a model.

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
        cited = [document for document in documents if numbers.get(document)]
        names = [f"《{escaped(called(document))}》" if zh else escaped(document) for document in cited]
        words = [f"{name} [{numbers[document][0]}]" for name, document in zip(names, cited, strict=True)]
        if words:
            lines.append(f"- **{escaped(title)}**{'：' if zh else ': '}{('、' if zh else ', ').join(words)}")
    return "\n".join(lines)


def definitions(
    names: Collection[str], results: Sequence[RetrievalResult], sections: Sequence[SectionContent], zh: bool
) -> list[tuple[str, str, int]]:
    """Names that sections speak of and no section is about: the sentence that says what each is, and its place in the
    evidence.
    """
    words, cited_ids = (
        fold("\n".join(section["text"] for section in sections)),
        {i for section in sections for i in section["sources"]},
    )
    about = {str(r["metadata"].get("title") or "") for r in results if r["result_id"] in cited_ids}
    by_name: dict[str, tuple[str, str, int]] = {}
    for n, result in enumerate(results, 1):
        title = str(result["metadata"].get("title") or "")
        first = sentences_in(n, result)[:1]
        if not first or title in about or fold(first[0].text) in words or bool(CJK.search(first[0].text)) != zh:
            continue
        tells = fold(title) in fold(first[0].text) and len(terms(first[0].text)) > len(terms(title)) + 2
        if tells and any(fold(title) == fold(name) for name in names):
            by_name.setdefault(fold(title), (escaped(title), first[0].text, n))
    return sorted(by_name.values())[:MOST_DEFINED]
