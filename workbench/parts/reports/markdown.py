"""The Markdown of reports: words that stay words in it, how it is read again, and a page of HTML of it."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable, Container, Iterator
from functools import cache
from html import escape
from importlib.resources import files
from itertools import pairwise
from urllib.parse import unquote

from markdown_it import MarkdownIt
from markdown_it.token import Token
from pydantic import AnyHttpUrl, TypeAdapter, ValidationError

from workbench.text import clean, visible
from workbench.views.labels import LANGUAGES, Labels

MARK = re.compile(r"\[(\d{1,4})\]")
"""A mark of a reference, as ``[3]``."""
_OWN = ("mark", "back")
"""The classes of the links between marks and references."""
_MARK_LINK = re.compile(r'<a class="(mark|back)"[^>]*>\[(\d+)\]</a>([。，、；：？！.,;:?!]*)')
"""Such a rendered link, with the punctuation behind it; words of a report are escaped and cannot look so."""
_HEADINGS = {Labels(language)("part_references") for language in LANGUAGES}
_SPECIAL = re.compile(r"[\\`*_\[\]<>&~|$@]|(?<=[A-Za-z]):(?=//)|(?<=www)\.")
_AT_THE_START = re.compile(r"^(\d{0,9})(?=[.)]|[-+=#])")


def escaped(text: object) -> str:
    r"""Any text on one line, as Markdown that shows it and does nothing else: no markup, no link, no HTML, no formula.

    >>> print(escaped("[a](javascript:x) <b> $x$\n https://x.org _c_"))
    \[a\](javascript:x) \<b\> \$x\$ https\://x.org \_c\_
    >>> print(escaped("- 《茶馆》"), escaped("1984. x"))
    \- 《茶馆》 1984\. x
    """
    return _AT_THE_START.sub(r"\1\\", inline(" ".join(str(text).split())))


def inline(text: str) -> str:
    """Return the same for a piece from the middle of a line, with its spaces."""
    return _SPECIAL.sub(r"\\\g<0>", words(text).replace("\n", " "))


def words(value: object) -> str:
    """Any value as text that can be shown."""
    return visible(clean(str(value if value is not None else "")))


def address(value: object) -> str:
    """Return an address of the web, safe inside a link, and nothing of any other value.

    >>> address("https://example.org/a b"), address("https://例子.org"), address("javascript:alert(1)"), address(None)
    ('https://example.org/a%20b', 'https://xn--fsqu00a.org/', '', '')
    """
    if not isinstance(value, str):
        return ""
    try:
        return re.sub(r"[\s<>()\\`{}|$*]", lambda match: f"%{ord(match[0]):02X}", str(_HTTP.validate_python(value)))
    except ValidationError:
        return ""


def linked(url: str) -> str:
    """Return a link that says its own address, Chinese ones as they are read.

    >>> linked("https://zh.example.org/%E8%8C%B6"), linked("https://x.org/a_b")
    ('[https\\\\://zh.example.org/茶](https://zh.example.org/%E8%8C%B6)', '<https://x.org/a_b>')
    """
    label = unquote(url)
    return f"<{url}>" if label == url else f"[{escaped(label)}]({url})"


_HTTP: TypeAdapter[AnyHttpUrl] = TypeAdapter(AnyHttpUrl)


def parsed(text: str) -> list[Token]:
    """Return the tokens of a report: no HTML, no pictures from elsewhere, links to the web or within the page alone."""
    return _parser().parse(words(text))


@cache
def _parser() -> MarkdownIt:
    r"""Build the parser.

    ``reference`` is off, for a line ``[1]: https://...`` of a document would give every mark another target; so is
    ``text_join``, for then ``\\[1]`` is no mark.
    """
    parser = MarkdownIt("commonmark", {"html": False, "typographer": False}).enable(["table", "strikethrough"])
    parser.validateLink = lambda url: url.startswith("#") or bool(address(url))  # type: ignore[method-assign]
    return parser.disable(["html_block", "html_inline", "reference", "image", "text_join"])


def html(text: str, back: str, prefix: str = "") -> str:
    """Return the report as HTML; ``back`` is what a reference's way back is called.

    ``prefix`` stands before the names of its anchors, where several reports stand on one page.
    """
    tokens = cited(parsed(text))
    for child in (child for token in tokens for child in token.children or () if child.attrs.get("class") in _OWN):
        for name, before in (("id", ""), ("href", "#")):
            if name in child.attrs:
                child.attrs[name] = f"{before}{prefix}{str(child.attrs[name]).removeprefix(before)}"
    return _rendered(tokens, back)


def chapters(text: str, mark: Callable[[int, str], str]) -> list[tuple[str, str]]:
    """Return the report in HTML by chapters: each heading as plain text, "" before the first one, and what is below.

    ``mark`` gives the markup for a mark of a reference and the punctuation behind it, in the order in which they stand.
    """
    parts: list[tuple[str, list[Token]]] = [("", [])]
    heading = False
    for token in cited(parsed(text)):
        if token.type in ("heading_open", "heading_close") and token.tag == "h2":
            heading = token.nesting > 0
        elif heading:
            parts.append(("".join(child.content for child in token.children or ()), []))
        else:
            parts[-1][1].append(token)

    def own(match: re.Match[str]) -> str:
        return mark(int(match[2]), match[3]) if match[1] == "mark" else f"[{match[2]}]{match[3]}"

    return [(title, _MARK_LINK.sub(own, _rendered(tokens, ""))) for title, tokens in parts]


def _rendered(tokens: list[Token], back: str) -> str:
    parser = _parser()
    for token in tokens:
        if token.attrs.get("style"):  # a page without style attributes can forbid them
            token.attrs = {"class": str(token.attrs["style"]).replace("text-align:", "to-")}
        for child in token.children or ():
            if child.attrs.get("class") == "back":
                child.attrs["title"] = back
            elif child.type == "link_open" and not child.attrs.get("class"):
                child.attrs["rel"] = "noreferrer"
    results: str = parser.renderer.render(tokens, parser.options, {})
    return results


def cited(tokens: list[Token]) -> list[Token]:
    """Link each mark to its reference, and each reference to the first place that cites it.

    A reference is a paragraph below the heading for references; a mark without one stays words.
    """
    references = _references(tokens)
    own, used = {id(token) for token in references.values()}, set[int]()
    inlines = [token for token in tokens if token.type == "inline"]
    for token in inlines:
        if id(token) not in own:
            token.children = list(_with_links(token.children or [], references, used))
    for number, token in references.items():
        token.children = list(_with_anchor(token.children or [], number, number in used))
    for child in (child for token in inlines for child in token.children or []):
        child.type = "text" if child.type == "text_special" else child.type
    return tokens


def _references(tokens: list[Token]) -> dict[int, Token]:
    below, results = False, dict[int, Token]()
    for before, token in pairwise(tokens):
        if before.type == "heading_open" and before.tag in ("h1", "h2"):
            below = token.content.strip() in _HEADINGS
        elif below and before.type == "paragraph_open" and (match := MARK.match(token.content)):
            before.attrs = {"class": "reference"}
            results.setdefault(int(match[1]), token)
    return results


def _with_links(children: list[Token], references: Container[int | None], used: set[int]) -> Iterator[Token]:
    depth = 0
    for child in children:
        depth += child.nesting if child.type.startswith("link") else 0
        if child.type != "text" or depth:
            yield child
            continue
        for text, number in pieces(child.content):
            if number not in references or number is None:
                yield Token("text", "", 0, content=text)
                continue
            name = {} if number in used else {"id": f"cite-{number}"}
            used.add(number)
            yield from _link(text, {"class": "mark", "href": f"#ref-{number}", **name})


def _with_anchor(children: list[Token], number: int, is_cited: bool) -> Iterator[Token]:
    mark = f"[{number}]"
    way = {"href": f"#cite-{number}"} if is_cited else {}
    yield from _link(mark, {"class": "back", "id": f"ref-{number}", **way})
    yield Token("text", "", 0, content=MARK.sub("", children[0].content, count=1))
    yield from children[1:]


def _link(text: str, attributes: dict[str, str]) -> Iterator[Token]:
    yield Token("link_open", "a", 1, attrs=dict(attributes))
    yield Token("text", "", 0, content=text)
    yield Token("link_close", "a", -1)


def pieces(text: str) -> Iterator[tuple[str, int | None]]:
    """Yield text cut at its marks of references: ``(words, None)`` and ``(mark, number)``.

    >>> list(pieces("so it is [2]."))
    [('so it is ', None), ('[2]', 2), ('.', None)]
    """
    at = 0
    for match in MARK.finditer(text):
        if match.start() > at:
            yield text[at : match.start()], None
        yield match[0], int(match[1])
        at = match.end()
    if at < len(text):
        yield text[at:], None


_PAGE = """<!doctype html>
<html lang="{language}">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="no-referrer">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<main>
{body}<footer>{made}</footer>
</main>
</body>
</html>
"""


def to_html(title: str, text: str, labels: Labels) -> str:
    """Return one page that needs nothing else and runs nothing: marks lead to their references and back."""
    style = files("workbench.parts.reports").joinpath("report.css").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    return _PAGE.format(
        language=labels.html_lang,
        policy=f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'",
        title=escape(words(title)),
        style=style,
        body=html(words(text), labels("ref_back")),
        made=escape(labels("report_made")),
    )
