"""References in the styles that people are asked for: a line for each piece of evidence, of what its document says.

Authors, dates, journals and publishers come from typed fields with the usual names; a corpus that has none is cited by
title and address. APA, IEEE and GB/T 7714 are CSL styles that typst carries and sets (the extra ``reports``).
"""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from workbench.errors import needing
from workbench.parts.reports.markdown import address, escaped, inline, linked, words
from workbench.state import Data, Evidence, Json
from workbench.text import CJK, detect_language, iso, own_table, titled
from workbench.views.labels import Labels

_TABLES = own_table(__file__)
_TEX = str.maketrans(_TABLES["tex"])


def references(results: Evidence, style: str = "default", language: str = "en") -> list[str]:
    """Return the reference of each result, without its number: a line of Markdown, or an entry of BibTeX.

    Raises:
        MissingExtra: typst is not installed, and the style needs it.
    """
    labels = Labels(language)
    sources = [_facts(result["metadata"], labels) for result in results]
    if style == "default":
        return [_line(source, labels) for source in sources]
    entries = [_bibtex(source, number) for number, source in enumerate(sources, 1)]
    if style == "bibtex" or not entries:
        return entries
    return _by_csl(
        [(source["language"], entry) for source, entry in zip(sources, entries, strict=True)],
        _TABLES["styles"][style],
    )


def _facts(metadata: Data, labels: Labels) -> Json:
    """Return what is known of a source, as plain words; ``url`` is an address of the web or ""."""
    fields = {_folded(name): value for name, value in (metadata.get("fields") or {}).items()}
    values = {
        kind: next(
            (fields[name] for name in names if fields.get(name) not in (None, "", [])), None
        )
        for kind, names in _TABLES["fields"].items()
    }
    title = _words(metadata.get("title")) or _words(metadata.get("doc_id")) or labels("untitled")
    return {
        **{kind: _words(value) for kind, value in values.items()},
        "title": title,
        "author": _authors(values["author"]),
        "date": _date(values["date"]),
        "url": address(metadata.get("url")),
        "licence": _words(metadata.get("licence")),
        "base": _words(metadata.get("kb_prefix")),
        "position": metadata.get("position"),
        "language": detect_language(title),
    }


def _folded(name: object) -> str:
    return re.sub(r"[\s-]+", "_", str(name).strip().casefold())


def _words(value: object) -> str:
    """Return a value on one line; of a list its members, of anything nested nothing."""
    if isinstance(value, list | tuple):
        return "; ".join(filter(None, map(_words, value)))
    if value is None or isinstance(value, bool | Mapping):
        return ""
    return " ".join(words(value).split())[:500]


def _date(value: object) -> str:
    if isinstance(value, list | tuple):
        value = value[0] if value else None
    return iso(value) or iso(str(value)[:10])


def _authors(value: object) -> list[str]:
    """Return names as the source writes them: ``Family, Given`` is read as that, anything else is left whole.

    >>> _authors("Smith, Jane; Doe, John"), _authors("Ann Lee and Bo Li"), _authors("老舍、曹禺"), _authors(["A", None])
    (['Smith, Jane', 'Doe, John'], ['Ann Lee', 'Bo Li'], ['老舍', '曹禺'], ['A'])
    """
    most_authors = 50
    if isinstance(value, list | tuple):
        return [name for author in value[:most_authors] for name in _authors(author)]
    text = _words(value)
    between = r"[;；、,，]" if CJK.search(text) else r";|\sand\s|\s&\s"
    names = map(str.strip, re.split(between, text))
    return list(filter(None, names))[:most_authors]


def _line(source: Data, labels: Labels) -> str:
    """Title, where in the document, base, address, licence."""
    title = escaped(source["title"])
    texts = [
        titled(title) if CJK.search(title) else f"*{title}*",
        labels("ref_passage", n=source["position"] + 1) if source["position"] is not None else "",
        labels("ref_base", name=escaped(source["base"])) if source["base"] else "",
        linked(source["url"]) if source["url"] else "",
        escaped(source["licence"]),
    ]
    return labels("ref_comma").join(filter(None, texts))


# BibTeX

_NUMERIC = re.compile(r"\d{1,6}([-–]\d{1,6})?", re.ASCII)
_DOI = re.compile(r"10\.\d{4,9}/[\w.;()/:-]+")


def _bibtex(source: Data, number: int) -> str:
    """Return an entry whose values cannot leave their braces, nor the fence of Markdown in which it will stand.

    Values that a style computes with are left out where they are not numbers.
    """
    kind = "book" if source["publisher"] else "misc"
    if source["journal"]:
        kind = "article"
    texts = {
        "title": f"{{{_tex(source['title'])}}}",
        "author": " and ".join(
            name if ", " in name else f"{{{name}}}" for name in map(_tex, source["author"])
        ),
        "year": source["date"][:4],
        "month": source["date"][5:7].lstrip("0"),
        **{name: _tex(source[name]) for name in ("journal", "publisher")},
        **{
            name: source[key] if _NUMERIC.fullmatch(source[key]) else ""
            for name, key in _TABLES["numbers"].items()
        },
        "url": source["url"],
        "doi": _tex(source["doi"]) if _DOI.fullmatch(source["doi"]) else "",
        "note": _tex(source["licence"]),
    }
    lines = [f"  {name} = {{{value}}}," for name, value in texts.items() if value]
    return "\n".join([f"@{kind}{{ref{number},", *lines, "}"])


def _tex(text: str) -> str:
    return text.translate(_TEX)


# CSL

_SOURCE = b"""
#for (language, entry) in json(bytes(sys.inputs.entries)) {
  set text(lang: language, region: if language == "zh" { "CN" } else { "US" })
  bibliography(bytes(entry), style: sys.inputs.style, title: none, full: true)
}
"""


def _by_csl(entries: Sequence[tuple[str, str]], style: str) -> list[str]:
    """Set each entry of BibTeX in the language of its own title, as GB/T 7714 asks."""
    with needing("A reference style by CSL", "reports"):
        import typst
    from bs4 import BeautifulSoup

    with tempfile.TemporaryDirectory() as nothing:
        compiler: Any = typst
        page = compiler.compile(
            _SOURCE,
            root=nothing,
            format="html",
            ignore_system_fonts=True,
            package_path=Path(nothing),
            package_cache_path=Path(nothing),
            sys_inputs={"style": style, "entries": json.dumps(entries)},
        )
    lines = BeautifulSoup(page, "html.parser").select("section[role=doc-bibliography] > ul > li")
    texts = [" ".join(_markdown(line).split()) for line in lines]
    # typst's comma before a month that is not known
    return [re.sub(r"\((\d{4}),\)", r"(\1)", line) for line in texts]


def _markdown(node: Any) -> str:
    """Return what typst set, as Markdown: italics and addresses stay, the rest is words, without its number."""
    texts = []
    for child in node.children:
        if not child.name:  # a text
            texts.append(inline(str(child)))
        elif child.name == "em":
            texts.append(f"*{text}*" if (text := inline(child.get_text()).strip()) else "")
        elif child.name == "a" and (url := address(child.get("href"))):
            label = child.get_text()
            texts.append(linked(url) if label == child["href"] else f"[{inline(label)}]({url})")
        elif "prefix" not in (child.get("class") or ()):
            texts.append(_markdown(child))
    return "".join(texts)
