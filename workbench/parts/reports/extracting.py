"""A section where no model writes: sentences of its evidence, grouped by what they are about, each with its mark.

Sentences in another language than the topic are quoted unchanged, and marked as quotations. Nothing is said twice.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from workbench.language.answer import CLOSED
from workbench.language.citing import marked, spaced
from workbench.language.fields import FieldsWriter
from workbench.language.quoting import Sentence, split_sentences
from workbench.parts.reports.markdown import escaped
from workbench.ports import KnowledgeBase
from workbench.state import Question, RetrievalResult, SectionContent, SectionOutline
from workbench.text import detect_language, fold, sentences


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
        # Sentences of a piece from which nothing was chosen.
        own = [s for s in sentences if fold(s.text) in wanted] or sentences[:2]
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


def definitions(
    names: Collection[str], results: Sequence[RetrievalResult], sections: Sequence[SectionContent]
) -> list[tuple[str, str, int]]:
    """Return names that sections speak of and none is about: name, the first sentence of its document, its place."""
    text, used = fold(" ".join(s["text"] for s in sections)), {i for s in sections for i in s["sources"]}
    wanted, by_name = set(map(fold, names)), dict[str, tuple[str, str, int]]()
    for n, result in enumerate(results, 1):
        title = str(result["metadata"].get("title") or "")
        if result["result_id"] not in used and fold(title) in wanted:
            first = next(iter(sentences_in(n, result)), None)
            if first and fold(first.text) not in text:
                by_name.setdefault(fold(title), (escaped(title), first.text, n))
    return sorted(by_name.values())[:10]
