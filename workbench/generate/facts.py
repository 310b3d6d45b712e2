"""Typed facts of documents, each said in a sentence with its mark."""

from __future__ import annotations

import re
from collections.abc import Sequence

from workbench.generate.question import Facet, facets
from workbench.generate.sources import Document
from workbench.generate.voice import Voice, is_chinese
from workbench.text import fold

_OF_FILMS = {
    "year": ("{title} was released in {value}.", "{title}于{value}年上映。"),
    "directors": ("{title} was directed by {value}.", "{title}由{value}执导。"),
    "cast": ("{title} stars {value}.", "{title}由{value}主演。"),
    "genres": ("{title} is listed under {value}.", "{title}的类型是{value}。"),
    "countries": ("{title} is from {value}.", "{title}的制片国家/地区是{value}。"),
}
_OF_ANYTHING = ("{label} is {value}.", "{label}是{value}。")


def fact(document: Document, field: str, voice: Voice) -> str:
    """One typed field as a sentence; "" when the document does not say.

    >>> film = Document("mv1", "Hulk", 2, 0.9, {"year": 2003, "directors": ["Ang Lee"]})
    >>> fact(film, "year", Voice("en")), fact(film, "directors", Voice("zh"))
    ('Hulk was released in 2003 [2].', '《Hulk》由 Ang Lee 执导 [2]。')
    """
    value = voice.values(document, field)
    if not value:
        return ""
    wording = _OF_FILMS.get(field) if document.is_film else None
    english, chinese = wording or _OF_ANYTHING
    label = next((f.names for f in facets() if field in f.fields), (f"the {field} of {{}}", f"{{}}的{field}"))
    named = voice.pick(*label).format(voice.title(document)).replace("_", " ")
    said = voice.pick(english, chinese).format(
        title=voice.title(document), value=value, label=named[:1].upper() + named[1:]
    )
    return voice.said(said, document.n)


def alias(document: Document, voice: Voice) -> str:
    """The other titles of a document as a sentence; "" when none is known."""
    known = [document.title, *document.aliases, voice.called(document.title)]
    others = [t for t in dict.fromkeys(known) if fold(t) != fold(document.title)]
    if not others:
        return ""
    chinese = [t for t in others if is_chinese(t)] or others
    return voice.said(
        voice.pick(
            f"The Chinese title of {document.title} is {chinese[0]}.",
            f"《{chinese[0]}》的英文片名是{document.title}。",
        ),
        document.n,
    )


def answers(document: Document, facet: Facet, voice: Voice) -> str:
    """The typed answer of a document to a facet; "" when it has none."""
    if facet.name == "alias":
        return alias(document, voice)
    return next((said for field in facet.fields if (said := fact(document, field, voice))), "")


def brief(document: Document, voice: Voice, without: Sequence[str] = ()) -> str:
    """A document in a phrase: title, year, directors.

    >>> brief(Document("mv1", "Hulk", 2, 0.9, {"year": 2003, "directors": ["Ang Lee"]}), Voice("en"))
    'Hulk (2003, directed by Ang Lee)'
    """
    parts = [voice.values(document, "year")] if "year" not in without else []
    if "directors" not in without and (directors := voice.values(document, "directors", 3)):
        parts.append(voice.pick(f"directed by {directors}", f"{directors}执导"))
    inside = voice.spaced(voice.pick(", ", "，").join(part for part in parts if part))
    return voice.title(document) + (voice.pick(f" ({inside})", f"（{inside}）") if inside else "")


def introduction(document: Document, voice: Voice) -> str:
    """What a film is, in a sentence; "" for a document without a year and directors.

    >>> film = Document("mv1", "Hulk", 2, 0.9, {"year": 2003, "directors": ["Ang Lee"], "genres": ["Action"]})
    >>> introduction(film, Voice("en")), introduction(film, Voice("zh"))
    ('Hulk is a 2003 film by Ang Lee (Action) [2].', '《Hulk》是 Ang Lee 执导的 2003 年影片，类型是动作 [2]。')
    """
    directors, genres = voice.values(document, "directors", 3), voice.values(document, "genres")
    if not (document.year and directors):
        return ""
    english = f"{document.title} is a {document.year} film by {directors}" + (f" ({genres})." if genres else ".")
    chinese = f"{voice.title(document)}是{directors}执导的{document.year}年影片" + (
        f"，类型是{genres}。" if genres else "。"
    )
    return voice.said(voice.pick(english, chinese), document.n)


def years_differ(document: Document) -> str:
    """The year that a document's own text gives, when it is another than its typed one; else "".

    Lists of releases and articles disagree about festival films; a reader should see both.
    """
    opening = next((s.text for s in document.sentences if s.place == (0, 0)), "")
    said = re.search(r"\b(?:is|was) an? ((?:18|19|20)\d\d)\b", opening)
    return said.group(1) if said and document.year and int(said.group(1)) != document.year else ""
