"""A report goes out: references in every style, a page; documents say words in them, no code."""

import re
import sys

import pytest
from bs4 import BeautifulSoup

from workbench.errors import MissingExtra
from workbench.parts.reports.citing import STYLES, references
from workbench.parts.reports.markdown import escaped, to_html
from workbench.views.labels import Labels

HOSTILE = (
    '<script>alert(1)</script> [x](javascript:alert(1)) ![p](https://evil.example/p.png) #read("/etc/passwd") $x^2$ '
    "\\input{a} {b} `q` ``` \u202e\u0000\ufffe 😀 https://evil.example a@evil.example "
    "[1]: https://evil.example @a % & _c_ |"
)
FIELDS = {"authors": ["Roe, Jane", "Doe, John"], "year": 2019, "Journal": "Annals of Tea", "volume": "3", "issue": 2}
PAPER = {"title": "On Houses", "url": "https://example.org/a_(b)", "licence": "CC BY-SA 4.0", "position": 2}
BOOK = {"作者": "老舍、王五、李四、赵六", "出版年份": "1957年", "出版社": "人民文学出版社"}


def result(**metadata):
    return {"result_id": "r", "source_type": "chunk", "evidence": "", "metadata": metadata}


SOURCES = [
    result(**PAPER, kb_prefix="tea", fields={**FIELDS, "pages": "11-19", "DOI": "10.1000/xyz123"}),
    result(title="茶馆", url="https://zh.example.org/茶馆", licence="", position=0, kb_prefix="书", fields=BOOK),
    result(title="A page", url="https://example.org/page", kb_prefix="tea"),
]
NASTY = [
    result(title=HOSTILE, url="javascript:alert(1)", licence=HOSTILE, kb_prefix=HOSTILE, fields={
        **dict.fromkeys(("author", "journal", "publisher", "date", "doi", "pages", "volume", "issue"), HOSTILE),
        HOSTILE: 1,
    }),
    result(title="x" * 100_000, url="https://" + "y" * 5000, position="3", fields={"author": "A, " * 9999}),
    result(title=["a", None], url=7, position=True, fields={"author": {"x": [1]}, "date": [{}], "journal": [[]]}),
    result(title=HOSTILE, fields="none"),
    {"metadata": None},
    {},
]  # fmt: skip


def page_of(report):
    return to_html(report["title"], report["final_report"], Labels(report["language"]))


def test_a_reference_says_title_place_base_address_and_licence():
    assert references(SOURCES, "default", "en") == [
        r"*On Houses*, passage 3, base tea, <https://example.org/a_%28b%29>, CC BY-SA 4.0".replace(
            "<https://example.org/a_%28b%29>", r"[https\://example.org/a\_(b)](https://example.org/a_%28b%29)"
        ),
        r"*茶馆*, passage 1, base 书, [https\://zh.example.org/茶馆](https://zh.example.org/%E8%8C%B6%E9%A6%86)",
        "*A page*, base tea, <https://example.org/page>",
    ]
    assert references(SOURCES[2:], "default", "zh") == ["《A page》，知识库 tea，<https://example.org/page>"]


@pytest.mark.parametrize(
    ("style", "paper", "book"),
    [
        (
            "apa", r"Roe, J., \& Doe, J. (2019). On Houses. *Annals of Tea*, *3*(2), 11–19.",
            r"老舍, 王五, 李四, \& 赵六. (1957). *茶馆*.",
        ),
        (
            "ieee", "J. Roe and J. Doe, “On Houses,” *Annals of Tea*, vol. 3, no. 2, pp. 11–19, 2019",
            "老舍, 王五, 李四, 和 赵六, *茶馆*. 人民文学出版社, 1957.",
        ),
        (
            "gb7714", r"ROE J, DOE J. On Houses\[J/OL\]. Annals of Tea, 2019, 3(2): 11-19.",
            r"老舍, 王五, 李四, 等. 茶馆\[M/OL\]. 人民文学出版社, 1957.",
        ),
    ],
)  # fmt: skip
def test_styles_of_csl_are_set_in_the_language_of_each_source(style, paper, book):
    for language in ("en", "zh"):
        first, second, third = references(SOURCES, style, language)
        assert first.startswith(paper) and book in second and "A page" in third
        assert "](https://zh.example.org/%E8%8C%B6%E9%A6%86)" in second and "10.1000/xyz123" in first


def test_bibtex_is_entries_whose_values_stay_in_their_braces():
    paper, book, _ = references(SOURCES, "bibtex")
    assert paper.startswith(
        "@article{ref1,\n  title = {{On Houses}},\n  author = {Roe, Jane and Doe, John},\n  year = {2019},"
    )
    assert book.startswith("@book{ref2,") and "author = {{老舍} and {王五} and {李四} and {赵六}}" in book
    for entry in references(NASTY, "bibtex"):
        assert "`" not in entry and not re.search(r"(?<!\\)[$&#_]", entry.split("{", 1)[1].replace("url = ", ""))
        bare = re.sub(r"\\[{}]", "", entry)
        assert bare.count("{") == bare.count("}") and bare.startswith("@") and bare.endswith("\n}")


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("style", STYLES)
def test_no_document_can_make_a_reference_anything_but_words(style, language):
    found = references(NASTY, style, language)
    assert len(found) == len(NASTY) and all(found)
    if style == "bibtex":
        return
    assert not any("\n" in line for line in found)
    heading = "参考文献" if language == "zh" else "References"
    report = "\n\n".join(
        [f"# {escaped(HOSTILE)}", "", f"## {heading}", "", *(f"[{n}] {one}" for n, one in enumerate(found, 1))]
    )
    page = BeautifulSoup(page_of({"title": HOSTILE, "language": language, "final_report": report}), "html.parser")
    assert not page.find(["script", "img", "iframe"]) and page.h1.get_text().startswith(
        "<script>alert(1)</script> [x](java"
    )
    assert {a.get("href", "")[:9] for a in page.find_all("a")} <= {"", "https://y"}
    assert page.find(id="ref-1").parent["class"] == ["reference"] and page.find(id="ref-6")


def test_without_its_library_the_install_line_is_told(monkeypatch):
    monkeypatch.setitem(sys.modules, "typst", None)
    assert references(SOURCES, "bibtex") and page_of(REPORT)
    with pytest.raises(MissingExtra, match=r"pip install 'workbench\[reports\]'$"):
        references(SOURCES, "apa")


TEXT = """# {title}

What was asked, and what was found [1].

## Introduction

A statement [1][2], another [9], and `[1]` as code; 茶馆 *em* **strong** ~~gone~~ <https://example.org>.

1. one
2. two

> said so [2]

## References

[1] *On Houses*, passage 3

[2] 茶馆

[3] never cited

## Appendix

| Check | Share |
|---|---:|
| Statements [1] | 100 % |

```
@book{{ref1, <b> $x$}}
```

{hostile}
"""
REPORT = {
    "title": f"Tea {HOSTILE}",
    "language": "en",
    "final_report": TEXT.format(title=escaped(f"Tea {HOSTILE}"), hostile=HOSTILE),
}
CHINESE = {
    "title": "茶馆的变迁",
    "language": "zh",
    "final_report": "# 茶馆的变迁\n\n它是一座城的缩影[1]。\n\n## 参考文献\n\n[1] 老舍：《茶馆》\n\n"
    "## 附录\n\n| 检查 | 结果 |\n|---|---|\n| 陈述 | 12 |",
}  # fmt: skip


def test_the_page_leads_from_marks_to_references_and_back():
    page = BeautifulSoup(page_of(REPORT), "html.parser")
    marks = page.select("a.mark")
    assert [(a.get_text(), a["href"], a.get("id")) for a in marks][:3] == [
        ("[1]", "#ref-1", "cite-1"),
        ("[1]", "#ref-1", None),
        ("[2]", "#ref-2", "cite-2"),
    ]
    backs = [(a.get_text(), a["id"], a.get("href")) for a in page.select("p.reference > a.back")]
    assert backs == [("[1]", "ref-1", "#cite-1"), ("[2]", "ref-2", "#cite-2"), ("[3]", "ref-3", None)]
    ids = [node["id"] for node in page.find_all(id=True)]
    assert len(ids) == len(set(ids)) and {a["href"][1:] for a in page.select("a[href^='#']")} <= set(ids)
    assert page.code.get_text() == "[1]" and "another [9]" in page.get_text() and page.select_one("td.to-right")
    assert (page.html["lang"], BeautifulSoup(page_of(CHINESE), "html.parser").html["lang"]) == ("en", "zh-Hans")


def test_the_page_runs_nothing_and_fetches_nothing():
    made = page_of(REPORT)
    page = BeautifulSoup(made, "html.parser")
    policy = page.find("meta", {"http-equiv": "Content-Security-Policy"})["content"]
    assert policy.startswith("default-src 'none'; style-src 'sha256-") and "unsafe" not in policy
    assert not page.find(["script", "iframe", "object", "link", "svg", "img", "base", "form"])
    assert not page.find(style=True)
    assert not [name for node in page.find_all() for name in node.attrs if name.startswith("on")]
    hrefs = {a["href"] for a in page.find_all("a", href=True)}
    assert all(href.startswith(("https://", "#")) for href in hrefs)
    assert "\u202e" not in made and "\x00" not in made


def test_a_line_of_a_document_cannot_give_the_marks_another_target():
    text = "# T\n\nSo [1] and [2](javascript:x).\n\n[1]: https://evil.example\n\n## References\n\n[1] a\n\n[1] again"
    page = BeautifulSoup(page_of({"title": "T", "language": "en", "final_report": text}), "html.parser")
    assert (
        "https://evil.example" not in {a.get("href") for a in page.find_all("a")}
        and len(page.find_all(id="ref-1")) == 1
    )
