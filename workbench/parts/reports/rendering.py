"""A report as a page of HTML and a PDF.

A report is a mapping with ``title``, ``language`` and ``final_report`` (Markdown).
All of its text is untrusted: HTML gets no markup and no address from it but links to the web, typst gets it as data.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import tempfile
import time
from functools import cache
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

from markdown_it.tree import SyntaxTreeNode

from workbench.errors import ReportError
from workbench.parts.reports.citing import typst
from workbench.parts.reports.markdown import cited, html, parsed, words
from workbench.state import Data
from workbench.text import CJK
from workbench.views.labels import Labels

Report = Data
_RUST = re.compile(r"\\u\{([0-9a-f]+)\}")
"""How typst's errors write what is not printed."""
_JOINERS = re.compile("[\u00ad\u034f\u180b-\u180f\u200b-\u200d\ufe00-\ufe0f\U000e0000-\U000e0fff]")
"""What only changes the looks of its neighbours."""
_INSTALL_FONT = "Debian, Ubuntu: apt-get install fonts-noto-cjk. Fedora: dnf install google-noto-sans-cjk-fonts"


def _labels(report: Report) -> Labels:
    return Labels("zh" if report.get("language") == "zh" else "en")


# HTML

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


def to_html(report: Report) -> str:
    """Return one page that needs nothing else and runs nothing: marks lead to their references and back."""
    labels, style = _labels(report), files("workbench.parts.reports").joinpath("report.css").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    return _PAGE.format(
        language=labels.html_lang,
        policy=f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'",
        title=escape(words(report.get("title"))),
        style=style,
        body=html(words(report.get("final_report")), labels("ref_back")),
        made=escape(labels("report_made")),
    )


# PDF


def to_pdf(report: Report) -> bytes:
    """Return a PDF/A, set by typst, which sees an empty folder and gets the report as data.

    What no font of this machine can show stands as its code point, ``⟨U+1F600⟩``. ``at``, in seconds, is its date, so
    that equal reports give equal bytes; else it is of today.

    Raises:
        MissingExtra: typst is not installed.
        ReportError: the report has Chinese in it and the machine no font for that, or typst refused it.
    """
    setter, labels = typst(), _labels(report)
    source = files("workbench.parts.reports").joinpath("report.typ").read_bytes()
    data = {
        "title": (title := words(report.get("title"))),
        "head": title if len(title) < 80 else f"{title[:78]}…",
        "language": labels.language,
        "made": labels("report_made"),
        "body": _tree(SyntaxTreeNode(cited(parsed(words(report.get("final_report")).expandtabs(4))))),
    }
    texts, missing = json.dumps(data, ensure_ascii=False), set[int]()
    with tempfile.TemporaryDirectory() as nothing:
        empty, fonts = Path(nothing), _fonts()
        while True:
            try:
                result: bytes = setter.compile(
                    source,
                    root=empty,
                    font_paths=fonts,
                    package_path=empty,
                    package_cache_path=empty,
                    format="pdf",
                    pdf_standards="a-2b",
                    timestamp=int(report.get("at") or time.time()),
                    sys_inputs={"report": texts},
                )
                return result
            except setter.TypstError as error:
                match = re.search(r'the text `"(.+?)"` could not be displayed', str(error), re.DOTALL)
                if match and (bare := _JOINERS.sub("", texts)) != texts:
                    texts = bare  # one without a glyph is reported as its neighbour
                    continue
                without = _RUST.sub(lambda code: chr(int(code[1], 16)), match[1]) if match else ""
                if CJK.search(without):
                    raise ReportError(
                        f"The report has Chinese in it, as {without!r}, and no font of this machine shows that: "
                        f"a PDF would have boxes. Install one, or take HTML. {_INSTALL_FONT}"
                    ) from None
                pages = {ord(character) >> 8 for character in without if not character.isascii()} - missing
                if not pages:
                    raise ReportError(f"typst could not set the report: {error}") from None
                missing |= pages
                texts = "".join(f"⟨U+{ord(c):04X}⟩" if ord(c) >> 8 in missing else c for c in texts)


@cache
def _fonts() -> Any:
    """Return the fonts of this machine, once: typst never releases those that a page was set with."""
    return typst().Fonts()


def _tree(node: SyntaxTreeNode) -> Any:
    """Return a tree of Markdown as plain lists for the page's own functions: text is a string, anything else a dict."""
    children = [_tree(child) for child in node.children]
    inside = [node for child in children for node in (child if isinstance(child, list) else [child])]
    match node.type:
        case "root" | "inline":
            return inside
        case "text":
            return node.content
        case "softbreak":
            return " "
        case "link":
            return {
                "t": "link",
                "to": str(node.attrs.get("href", "")),
                "id": str(node.attrs.get("id", "")),
                "c": inside,
            }
        case "heading":
            return {"t": "heading", "level": int(node.tag[1]), "c": inside}
        case "ordered_list":
            return {"t": "ordered_list", "start": int(node.attrs.get("start", 1)), "c": inside}
        case "table":
            rows = [row for part in node.children for row in part.children]
            cells = [[_tree(cell) for cell in row.children] for row in rows]
            return {"t": "table", "columns": max(map(len, cells), default=1), "rows": cells}
        case "fence" | "code_block" | "code_inline":
            return {"t": "code", "text": node.content, "block": node.type != "code_inline"}
        case "th" | "td":
            return {"c": inside, "look": str(node.attrs.get("style", ""))}
    return {"t": node.type, "class": str(node.attrs.get("class", "")), "c": inside}
