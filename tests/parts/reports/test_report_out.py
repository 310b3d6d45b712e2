"""A report outside: references and pages that run nothing, and its outline as a widget."""

import re
import sys
from collections.abc import Iterator

import pytest
from bs4 import BeautifulSoup

from tests.cases import HERE, tables
from tests.harbour import harbour
from tests.test_widgets import field, panel
from workbench.errors import MissingExtra
from workbench.parts.reports.citing import references
from workbench.parts.reports.markdown import Chapter, escaped, html, page
from workbench.runs.run import Run
from workbench.session import Workbench
from workbench.views.labels import Labels
from workbench.widgets.review import Review

EVIL = (
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
    result(title=EVIL, url="javascript:alert(1)", licence=EVIL, kb_prefix=EVIL, fields={
        **dict.fromkeys(("author", "journal", "publisher", "date", "doi", "pages", "volume", "issue"), EVIL),
        EVIL: 1,
    }),
    result(title="x" * 100_000, url="https://" + "y" * 5000, fields={"author": "A, " * 9999}),
    result(title=["a", None], url=7, fields={"author": {"x": [1]}, "date": [{}], "journal": [[]]}),
    result(title=EVIL),
    result(),
]  # fmt: skip


def chapter(text, name="", lines=()):
    return Chapter(name=name, heading="", text=text, references=list(enumerate(lines, 1)))


def page_of(title, language, *chapters):
    labels = Labels(language)
    return page(title, html(chapters, labels), labels)


def test_references_by_default_and_as_bibtex():
    assert references(SOURCES, "default", "en") == [
        r"*On Houses*, passage 3, base tea, [https\://example.org/a\_(b)](https://example.org/a_%28b%29), CC BY-SA 4.0",
        r"《茶馆》, passage 1, base 书, [https\://zh.example.org/茶馆](https://zh.example.org/%E8%8C%B6%E9%A6%86)",
        "*A page*, base tea, <https://example.org/page>",
    ]
    assert references(SOURCES[2:], "default", "zh") == ["*A page*，知识库 tea，<https://example.org/page>"]
    paper, book, _ = references(SOURCES, "bibtex")
    assert paper.startswith(
        "@article{ref1,\n  title = {{On Houses}},\n  author = {Roe, Jane and Doe, John},\n  year = {2019},"
    )
    assert book.startswith("@book{ref2,") and "author = {{老舍} and {王五} and {李四} and {赵六}}" in book
    for entry in references(NASTY, "bibtex"):
        assert "`" not in entry and not re.search(r"(?<!\\)[$&#_]", entry.split("{", 1)[1].replace("url = ", ""))
        bare = re.sub(r"\\[{}]", "", entry)
        assert bare.count("{") == bare.count("}") and bare.startswith("@") and bare.endswith("\n}")


@pytest.mark.parametrize(("style", "paper", "book"), tables("report/styles", end="\n")["styles"])
def test_styles_of_csl_are_set_in_the_language_of_each_source(style, paper, book):
    for language in ("en", "zh"):
        first, second, third = references(SOURCES, style, language)
        assert first.startswith(paper) and book in second and "A page" in third
        assert "](https://zh.example.org/%E8%8C%B6%E9%A6%86)" in second and "10.1000/xyz123" in first


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("style", ("default", "apa", "ieee", "gb7714", "bibtex"))
def test_no_document_can_make_a_reference_anything_but_words(style, language):
    found = references(NASTY, style, language)
    assert len(found) == len(NASTY) and all(found)
    if style == "bibtex":
        return
    assert not any("\n" in line for line in found)
    made = page_of(EVIL, language, chapter(f"# {escaped(EVIL)}"), chapter("", "references", found))
    shown = BeautifulSoup(made, "html.parser")
    assert not shown.find(["script", "img", "iframe"])
    assert shown.h1.get_text().startswith("<script>alert(1)</script> [x](java")
    assert {a.get("href", "")[:9].rstrip("12345") for a in shown.find_all("a")} <= {"", "https://y", "#cite-"}
    assert shown.find(id="ref-1").parent["class"] == ["reference"] and shown.find(id="ref-5")


def test_without_its_library_the_install_line_is_told(monkeypatch):
    monkeypatch.setitem(sys.modules, "typst", None)
    assert references(SOURCES, "bibtex") and page_of(*REPORT)
    with pytest.raises(MissingExtra, match=r"pip install 'workbench\[reports\]'$"):
        references(SOURCES, "apa")


BODY, APPENDIX = ((HERE / "report" / name).read_text("utf-8") for name in ("body.md", "appendix.md"))
REPORT = (
    f"Tea {EVIL}",
    "en",
    chapter(BODY.format(title=escaped(f"Tea {EVIL}"))),
    chapter("", "references", ["*On Houses*, passage 3", "茶馆"]),
    chapter(APPENDIX.format(hostile=EVIL)),
)


def test_the_page_leads_from_marks_to_references_and_runs_nothing():
    shown = BeautifulSoup(page_of(*REPORT), "html.parser")
    marks = shown.select("a.mark")
    expected = [("[1]", "#ref-1", "cite-1"), ("[1]", "#ref-1", None), ("[2]", "#ref-2", "cite-2")]
    assert [(a.get_text(), a["href"], a.get("id")) for a in marks][:3] == expected
    backs = [(a.get_text(), a["id"], a.get("href")) for a in shown.select("p.reference > a.back")]
    assert backs == [("[1]", "ref-1", "#cite-1"), ("[2]", "ref-2", "#cite-2")]
    ids = [node["id"] for node in shown.find_all(id=True)]
    assert len(ids) == len(set(ids)) and {a["href"][1:] for a in shown.select("a[href^='#']")} <= set(ids)
    assert shown.code.get_text() == "[1]" and "another [9]" in shown.get_text() and shown.select_one("td.to-right")
    chinese = BeautifulSoup(page_of("茶馆", "zh", chapter("# 茶馆")), "html.parser")
    assert (shown.html["lang"], chinese.html["lang"]) == ("en", "zh-Hans")
    made = page_of(*REPORT)
    shown = BeautifulSoup(made, "html.parser")
    policy = shown.find("meta", {"http-equiv": "Content-Security-Policy"})["content"]
    assert policy.startswith("default-src 'none'; style-src 'sha256-") and "unsafe" not in policy
    assert not shown.find(["script", "iframe", "object", "link", "svg", "img", "base", "form"])
    assert not shown.find(style=True)
    assert not [name for node in shown.find_all() for name in node.attrs if name.startswith("on")]
    hrefs = {a["href"] for a in shown.find_all("a", href=True)}
    assert all(href.startswith(("https://", "#")) for href in hrefs)
    assert "\u202e" not in made and "\x00" not in made
    text = "# T\n\nSo [1] and [2](javascript:x).\n\n[1]: https://evil.example\n\n[2]: https://evil.example"
    made = page_of("T", "en", chapter(text), chapter("", "references", ["a"]))
    shown = BeautifulSoup(made, "html.parser")
    assert {a.get("href") for a in shown.find_all("a")} == {"#ref-1", "#cite-1"}
    assert len(shown.find_all(id="ref-1")) == 1


TOPIC = "The harbour: bridge, ferry, fish"
HOSTILE = "<img src=x onerror=alert(1)> [x](javascript:alert(1)) <script>"


@pytest.fixture(scope="module")
def wb(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workbench]:
    """A workspace with a few documents of a made-up harbour."""
    with Workbench.open(tmp_path_factory.mktemp("workspace"), embedding_model="hashing") as opened:
        opened.add_knowledge("harbour", [harbour(tmp_path_factory.mktemp("harbour"))])
        yield opened


@pytest.fixture
def asked(wb: Workbench, request: pytest.FixtureRequest) -> Run:
    """A report that waits at its outline."""
    return wb.report(TOPIC, kb="harbour", review={"outline"}, cached=False)


def titles(review: Review) -> list[tuple[str, str]]:
    return [(one["section_id"], one["title"]) for one in review._form._fields.value["sections"]]


def test_sections_are_renamed_moved_put_below_one_another_removed_and_added(asked: Run) -> None:
    review = panel(asked)
    proposed = asked.report.outline["sections"]
    before = [title for _, title in titles(review)]
    lines = field(review, "Sections, one per line; indent the parts of one by two spaces")
    lines.value = f"2 {before[1]}\n1 Stone\n  The ferry's tickets\n"
    assert review.primary.description == "Write as edited"
    assert titles(review) == [("1", before[1]), ("2", "Stone"), ("2.1", "The ferry's tickets")]
    lines.value += "3 "
    assert review.primary.disabled and "problem" in review.band.html
    lines.value = lines.value.removesuffix("3 ")
    assert not review.primary.disabled
    wanted = titles(review)
    review.primary.click()
    kept = asked.decisions[0]
    assert kept["action"] == "edit" and [one["title"] for one in kept["edits"]["sections"]] == [t for _, t in wanted]
    outlined = asked.report.outline["sections"]
    assert [(s["section_id"], s["title"]) for s in outlined] == wanted
    assert outlined[1]["evidence_ids"] == proposed[0]["evidence_ids"] and outlined[2]["evidence_ids"] == []


def test_a_report_shows_itself_on_a_page_and_nothing_in_it_is_markup(asked: Run) -> None:
    asked.edit(title=HOSTILE)
    while asked.status == "paused":
        asked.approve()
    report = asked.report
    shown = report._repr_mimebundle_()
    assert shown["text/plain"] == report.text
    page = shown["text/html"]
    assert "<img" not in page and "<script" not in page and 'href="javascript' not in page
    assert f'id="{asked.run_id}-ref-1"' in page and f'href="#{asked.run_id}-ref-1"' in page
    assert "evidence for" in page and "sentences found in their passages" in page and "<h2>" in page
