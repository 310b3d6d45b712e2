"""The Markdown of reports: words that stay words in it, its chapters, and HTML of them."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable, Sequence
from functools import cache
from importlib.resources import files
from itertools import chain
from typing import Any
from urllib.parse import quote, unquote

from markdown_it import MarkdownIt
from markupsafe import Markup
from pydantic import AnyHttpUrl, TypeAdapter, ValidationError
from typing_extensions import TypedDict

from workbench.text import clean, visible
from workbench.views.labels import Labels
from workbench.views.markup import draw

_MARK = re.compile(r"\[(\d{1,4})\]([。，、；：？！.,;:?!]*)")
"""A mark of a reference, as ``[3]``, with the punctuation behind it."""
_MARKS_AT_END = re.compile(r"\\\[(\d+)\\\](?=(?:\\\[\d+\\\])*[.。；;]?$)")
_SPECIAL = re.compile(r"[\\`*_\[\]<>&~|$@]|(?<=[A-Za-z]):(?=//)|(?<=www)\.")
_AT_THE_START = re.compile(r"^(\d{0,9})(?=[.)]|[-+=#])")
_OPENING = re.compile(
    r"^(?:(?:#{1,6}|[-+*])(?:\s+|$)|(?:>|`{3,}|~{3,})\s*|\d{1,9}[.)]\s+(?=[#>*+`~-]))+"
)
"""What would open a heading, a list, a quotation or a fence, where a line begins."""
_HTTP: TypeAdapter[AnyHttpUrl] = TypeAdapter(AnyHttpUrl)

Mark = Callable[[int, str], str]
"""Makes HTML of a mark: its number, and the punctuation behind it."""


class Chapter(TypedDict):
    """A part of a report.

    Attributes:
        name: the id of its section, or its own.
        heading: in Markdown.
        text: in Markdown.
        references: number and text of each reference that it lists.
    """

    name: str
    heading: str
    text: str
    references: list[tuple[int, str]]


def markdown(chapters: Sequence[Chapter]) -> str:
    """Return a report as one text."""
    parts = [
        part for chapter in chapters for part in (chapter["heading"], chapter["text"]) if part
    ]
    return "\n\n".join(parts) + "\n" * bool(parts)


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


def answer_lines(text: str) -> str:
    r"""Escape the lines of an answer, but for the dash of an item and the marks at the end.

    >>> print(answer_lines("2 mills:\n- <b> [7] Mill [1][2]."))
    2 mills:
    - \<b\> \[7\] Mill [1][2].
    """
    lines = []
    for line in text.splitlines():
        dash = "- " * line.startswith("- ")
        lines.append(dash + _MARKS_AT_END.sub(r"[\1]", escaped(line.removeprefix(dash))))
    return "\n".join(lines)


def words(value: object) -> str:
    """Any value as text that can be shown."""
    return visible(clean(str(value)))


def address(value: object) -> str:
    """Return an address of the web, safe inside a link, and nothing of any other value.

    >>> address("https://example.org/a b"), address("https://例子.org"), address("javascript:alert(1)"), address(None)
    ('https://example.org/a%20b', 'https://xn--fsqu00a.org/', '', '')
    """
    if not isinstance(value, str):
        return ""
    try:
        return quote(str(_HTTP.validate_python(value)), safe="%/:?#[]@!&'+,;=^\"")
    except ValidationError:
        return ""


def linked(url: str) -> str:
    """Return a link that says its own address, Chinese ones as they are read.

    >>> linked("https://zh.example.org/%E8%8C%B6"), linked("https://x.org/a_b")
    ('[https\\\\://zh.example.org/茶](https://zh.example.org/%E8%8C%B6)', '<https://x.org/a_b>')
    """
    label = unquote(url)
    return f"<{url}>" if label == url else f"[{escaped(label)}]({url})"


@cache
def _parser() -> MarkdownIt:
    """Build a parser without HTML and pictures, with links to the web alone.

    ``reference`` is off, for a line ``[1]: https://...`` of a document would give every mark another target.
    """
    parser = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
    parser.validateLink = lambda url: bool(address(url))  # type: ignore[method-assign]
    parser.disable(["html_block", "html_inline", "reference", "image"])
    parser.inline.ruler.before("link", "mark", _read_mark)
    parser.core.ruler.push("attributes", _set_attributes)
    parser.add_render_rule(
        "mark", lambda _, tokens, at, options, env: env["mark"](*tokens[at].meta["mark"])
    )
    return parser


def _read_mark(state: Any, silent: bool) -> bool:
    match = _MARK.match(state.src, state.pos)
    if not match or state.linkLevel:
        return False
    if not silent:
        state.push("mark", "", 0).meta = {"mark": (int(match[1]), match[2])}
    state.pos = match.end()
    return True


def _set_attributes(state: Any) -> None:
    for token in chain(state.tokens, *(token.children or () for token in state.tokens)):
        if token.type == "link_open":
            token.attrs["rel"] = "noreferrer"
        elif "style" in token.attrs:  # a page without style attributes can forbid them
            token.attrs = {"class": str(token.attrs["style"]).replace("text-align:", "to-")}


def rendered(text: str, mark: Mark, *, line: bool = False) -> Markup:
    """Return Markdown, or a single line of it, as HTML with what ``mark`` makes of each mark of a reference."""
    render = _parser().renderInline if line else _parser().render
    return Markup(render(words(text), {"mark": mark}))


def plain_mark(number: int, behind: str) -> str:
    """Return a mark as the text that it is."""
    return f"[{number}]{behind}"


def bare(line: str) -> str:
    r"""Return what a line of Markdown shows, with its marks, as Markdown in which nothing but these is one.

    >>> print(bare("> - It is *red* [the kiln](http://x.example) [1]"), bare("[x]: <b [2]: z"))
    It is red the kiln [1] [x]: \<b [2] : z
    """
    [token] = _parser().parseInline(_OPENING.sub("", line))
    texts = (
        plain_mark(*child.meta["mark"]) if child.meta else child.content
        for child in token.children or ()
    )
    text = (
        _OPENING.sub("", " ".join("".join(texts).split()))
        .replace("\\", r"\\")
        .replace("](", "] (")
    )
    return without_tags(re.sub(r"(\[\d+\]):", r"\1 :", text))


def without_tags(text: str) -> str:
    r"""Return Markdown in which a tag of HTML is the text that it is.

    >>> print(without_tags("a <b> < c"))
    a \<b> < c
    """
    return re.sub(r"<(?=[A-Za-z/!?])", r"\\<", text)


def html(chapters: Sequence[Chapter], labels: Labels, prefix: str = "") -> Markup:
    """Return a report as HTML whose marks lead to their references and back.

    ``prefix`` stands before the names of its anchors, where several reports stand on one page.
    """
    cited: set[int] = set()
    listed = {number for chapter in chapters for number, _ in chapter["references"]}

    def mark(number: int, behind: str) -> str:
        if number not in listed:
            return plain_mark(number, behind)
        first = number not in cited
        cited.add(number)
        return draw("report.mark", n=number, behind=behind, first=first, prefix=prefix)

    parts = []
    for chapter in chapters:
        lines = [(n, rendered(line, plain_mark, line=True)) for n, line in chapter["references"]]
        parts.append(rendered(chapter["heading"] if lines else markdown([chapter]), mark))
        parts.append(draw("report.references", labels, lines=lines, prefix=prefix))
    return Markup().join(parts)


def page(title: str, body: Markup, labels: Labels) -> str:
    """Return one page that needs nothing else and runs nothing."""
    style = _style("report.css") + _style("document.css")
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    return draw(
        "report.page", labels, title=words(title), style=Markup(style), digest=digest, body=body
    )


def document_style() -> str:
    """Return the style of a report within another page."""
    return f".wb-doc.wb-doc{{{_style('document.css')}}}"


def _style(name: str) -> str:
    return files("workbench.parts.reports").joinpath(name).read_text("utf-8")
