"""Whatever documents, people, models and tools write is shown as text: in HTML, terminals, figures and notebooks."""

import json
import os
import re
import unicodedata
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner

from tests import forked
from tests.browser.lab import chromium
from tests.cases import HERE
from tests.shelves import jsonl
from tests.test_cli import converse
from workbench.cli import main
from workbench.errors import RunError, WorkbenchError
from workbench.session import Workbench
from workbench.text import visible
from workbench.views.labels import Labels
from workbench.views.run import Marks
from workbench.widgets.futures import Decisions
from workbench.widgets.runs import RunTable

ROOT = Path(__file__).resolve().parent.parent
HASHING = {"embedding_model": "hashing"}
HOSTILE = tuple(json.loads((HERE / "hostile.json").read_text("utf-8")))
ALL = " ".join(HOSTILE)
UNPRINTABLE = " ".join(text[:18] for text in (HOSTILE[0], *HOSTILE[4:12]))
NAME = "".join(sign for sign in UNPRINTABLE if unicodedata.category(sign) != "Cc")
STEERING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]")
TAGS = {"div", "p", "strong", "code", "a", "br", "details", "summary", "table", "thead", "tbody", "tr", "th", "td"}
ATTRIBUTES = {"class", "lang", "style", "open", "href", "rel"}


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace whose documents, questions, notes, tools and sessions all say the worst."""
    folder = tmp_path_factory.mktemp("hostile")
    corpus = folder / "corpus"
    corpus.mkdir()
    jsonl(corpus / "films.jsonl", films(*HOSTILE))
    (corpus / "<img src=x onerror=alert(1)> \x1b[31m $x$.md").write_text(f"# {ALL}\n\n{ALL}", encoding="utf-8")
    with Workbench.open(folder / "ws", **HASHING) as wb:
        wb.add_knowledge("film", [corpus])
        prepare(wb)
        ask(wb)
    return folder / "ws"


def films(*texts: str) -> list[dict[str, Any]]:
    """A film for each text, which says it in every field."""
    return [
        {
            "id": f"d{n} {text}", "type": "Film", "title": f"Banquet {n} {text}", "year": 1990 + n,
            "directors": [f"Ang Lee {text}"], "genres": ["Comedy"], "aliases": [f"喜宴 {text}"], "licence": text,
            "overview": f"The banquet of film {n} was released in {1990 + n}. {text} It is a comedy {text}.",
            "url": "javascript:alert(1)" if n % 2 else f"https://example.org/{n}?q={text}",
        }
        for n, text in enumerate(texts)
    ]  # fmt: skip


def prepare(wb: Workbench) -> None:
    @wb.tools.tool(name="failing", description=ALL, intents=["qa", "list", "recommend"])
    async def failing(query: str) -> list[str]:
        raise ValueError(ALL)


def ask(wb: Workbench) -> None:
    for session, question in (("a" + NAME, f"List comedies about a banquet {ALL}"), (NAME, "喜宴是什么？" + ALL)):
        run = wb.ask(question, kb="film", session=session, user=NAME, review={"plan", "reflect"})
        while run.status == "paused":
            run.respond("more " + ALL, note=ALL) if len(run.decisions) < 1 else run.approve(ALL)
        assert run.status == "done", run.error
        assert run.evidence and any("failing" in r["tool"] for r in run.records)
    assert wb.ask("banquet " + ALL, kb="film", review={"plan"}, session="paused").status == "paused"


@pytest.fixture
def wb(hostile: Path):
    with Workbench.open(hostile, **HASHING) as opened:
        prepare(opened)
        yield opened


class Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.open, self.tags, self.attributes, self.links, self.text = [], set(), set(), [], ""

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}
        self.links += [value for name, value in attrs if name == "href"]
        if tag not in ("br", "input"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


def read(page: str) -> Page:
    found = Page()
    found.feed(page)
    assert not found.open
    return found


def test_html_holds_no_more_than_its_template(wb):
    for run in wb.runs.list():
        bundle = run._repr_mimebundle_()
        assert set(bundle) == {"text/plain", "text/html"}
        page = read(bundle["text/html"])
        assert page.tags <= TAGS and page.attributes <= ATTRIBUTES
        assert all(re.match(r"https?://example\.org/", link) for link in page.links)
        assert not STEERING.search(bundle["text/html"])
        assert "<script>alert(1)</script>" in page.text and "{{ 7*7 }}" in page.text
        first = re.match(r'<div class="([^"]*)"', bundle["text/html"])
        assert first and {"mathjax_ignore", "tex2jax_ignore"} <= set(first[1].split())


def test_text_steers_no_terminal(wb):
    for run in wb.runs.list():
        for shown in (str(run), repr(run), run._repr_mimebundle_()["text/plain"], run.answer):
            assert not STEERING.search(shown)
        assert "[red]red[/red]" in str(run)


def test_figures_show_text(wb):
    for run in (run for run in wb.runs.list() if run.status == "done"):
        for drawing in (run.dag(), run.timeline(), run.graph(), run.knowledge()):
            assert not STEERING.search(drawing.svg)
            tags = {node.tag.split("}")[1] for node in ElementTree.fromstring(drawing.svg).iter()}
            assert tags <= {"svg", "g", "title", "rect", "path", "line", "circle", "text", "tspan"}


def test_what_stands_beside_a_run_shows_text(wb):
    """Its past, its forks, what it is compared with, and the table of all runs, on a page and on the bench."""
    run, other, *_ = [run for run in wb.runs.list() if run.status == "done"]
    runs, past = RunTable(Labels("en"), wb), Decisions(Labels("en"))
    wb.runs.annotate(run.run_id, title=ALL, note=ALL, tags=[ALL])
    runs.show(run.run_id)
    past.show(run.to_dict())
    for html in (wb.compare(run, other)._repr_html_(), runs.table.picture.html, past.region.picture.html):
        page = read(html)
        assert not page.tags & {"script", "img", "iframe", "style"} and not STEERING.search(html)
        assert not [name for name in page.attributes if name.startswith("on")]
        assert not [link for link in page.links if "javascript" in str(link).split("?")[0]]
    assert not STEERING.search(str(wb.compare(run, other)))


@pytest.mark.parametrize("as_json", [False, True], ids=["words", "json"])
def test_the_command_line_steers_no_terminal(hostile, as_json, tmp_path):
    with Workbench.open(hostile, **HASHING) as opened:
        runs = {run.status: run.run_id for run in opened.runs.list()}
    broken = tmp_path / "bad \x1b[31m <b>.jsonl"
    broken.write_text(f"{{broken {ALL}\n", encoding="utf-8")
    commands = [
        ["show", runs["done"]], ["show", runs["paused"]], ["show", f"nothing {ALL}"], ["runs"], ["kb", "list"],
        ["kb", "add", f"<b>{ALL}", str(broken)], ["kb", "add", "other", str(broken)],
        ["kb", "add", "other", f"missing {ALL}"[:100]], ["kb", "remove", f"no such {ALL}"], ["doctor"],
        ["ask", f"喜宴 {ALL}", "--kb", "film", "--session", NAME, "--stream"],
        ["ask", "x", "--kb", "film", "--session", UNPRINTABLE], ["ask", "x", "--kb", ALL],
        ["ask", "x", "--review", ALL], ["ask", f"--{ALL}"], ["resume", runs["paused"], "--respond", "x", "--approve"],
        ["resume", runs["paused"], "--edit", str(broken)], ["cancel", ALL], ["memory", "forget", "--session", NAME],
    ]  # fmt: skip
    runner = CliRunner(env={"WORKBENCH_EMBEDDING_MODEL": "hashing"})
    for words in commands:
        done = runner.invoke(main, [*words, "--workspace", str(hostile), *(["--json"] if as_json else [])])
        for stream in (done.stdout, done.stderr):
            assert not STEERING.search(stream), words
        assert "Traceback" not in done.stderr and "fault of workbench" not in done.output, done.output
        told = json.loads(done.stdout) if as_json and done.stdout else {}
        assert words != ["runs"] or not as_json or any(ALL in run["message"] for run in told["runs"]), "as written"


def test_progress_on_a_terminal_is_text(hostile):
    """What a person at a terminal sees while a run goes on: only rich's own escapes, none of a document's."""
    asked = ["ask", f"喜宴 {ALL}".replace("\x00", ""), "--kb", "film", "--workspace", str(hostile)]
    env = {**os.environ, "TERM": "xterm", "WORKBENCH_EMBEDDING_MODEL": "hashing"}
    code, text = converse(asked, [], env)
    assert code == 0, text[-2000:]
    bare = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text)
    assert not re.search("[\x00-\x07\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", bare)


@pytest.mark.browser
def test_nothing_is_fetched_or_run_in_a_real_browser(wb, tmp_path):
    run = next(run for run in wb.runs.list() if run.status == "done")
    page_file, asked = tmp_path / "page.html", list[str]()
    shown = "".join([run._repr_mimebundle_()["text/html"], run.dag()._repr_html_(), run.timeline()._repr_html_()])
    page_file.write_text(f"<!doctype html><meta charset=utf-8><body>{shown}", encoding="utf-8")
    with chromium(tmp_path / "profile") as browser:
        page = browser.context.new_page()
        page.on("request", lambda request: asked.append(request.url))
        page.goto(page_file.as_uri())
        page.wait_for_selector("svg[data-zoom]")
        for element in page.query_selector_all("summary"):
            element.click()
        inside = page.evaluate("() => [...document.querySelectorAll('.wb-static *')].map(e => e.tagName.toLowerCase())")
        links = page.evaluate("() => [...document.querySelectorAll('a')].map(a => a.getAttribute('href') || '')")
        svg_links = page.evaluate("() => document.querySelectorAll('svg a').length")
        text = page.inner_text(".wb-static")
    assert set(inside) <= TAGS
    assert asked == [page_file.as_uri()] and not browser.seen.dialogs and not browser.seen.errors
    assert not svg_links and not [link for link in links if "javascript" in link.split("?")[0]]
    assert visible("<script>alert(1)</script>") in text


def test_in_a_notebook_and_what_papermill_keeps(hostile, tmp_path, monkeypatch):
    import nbformat
    import papermill
    from nbconvert import HTMLExporter

    monkeypatch.setenv("JUPYTER_PATH", str(forked.kernels(tmp_path / "jupyter")))
    begin = (
        f"from workbench import Workbench\nwb = Workbench.open({str(hostile)!r}, embedding_model='hashing')\n"
        "run = next(run for run in wb.runs.list() if run.status == 'done')"
    )
    cells = (begin, "run", "print(run.answer)", "run.dag()", "wb.close()")
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    book = nbformat.v4.new_notebook(metadata=kernel, cells=[*map(nbformat.v4.new_code_cell, cells)])
    nbformat.write(book, tmp_path / "in.ipynb")
    papermill.execute_notebook(tmp_path / "in.ipynb", tmp_path / "out.ipynb", progress_bar=False, cwd=str(ROOT))
    done = nbformat.read(tmp_path / "out.ipynb", as_version=4)
    kinds = {kind for cell in done.cells for output in cell.outputs for kind in output.get("data", {})}
    assert not kinds & {"text/markdown", "text/latex", "application/javascript"}
    for cell in done.cells[:3]:
        for output in cell.outputs:
            for text in [*output.get("data", {}).values(), output.get("text", "")]:
                assert not STEERING.search(str(text))
    html, _ = HTMLExporter().from_notebook_node(nbformat.v4.new_notebook(cells=done.cells[:3]))
    assert "<script>alert(1)</script>" not in html and "<img src=x onerror" not in html
    assert "mathjax_ignore" in html


@pytest.mark.parametrize("option", ["session", "user"])
@pytest.mark.parametrize("name", [UNPRINTABLE, "a\nb", "a\r", "\x1b[2J", "a\u2028b"], ids=ascii)
def test_names_that_would_steer_a_terminal_are_refused(wb, option, name):
    with pytest.raises(RunError, match=f"^{option} is .*that is not printed") as refused:
        wb.ask("hello", **{option: name})
    assert not STEERING.search(str(refused.value))


def test_ids_and_sessions_are_never_paths(hostile, wb):
    before = sorted(p for p in hostile.parent.rglob("*") if "leases" not in p.parts)
    outside = {p.name for p in hostile.parent.parent.iterdir()}
    for word in ("../../escaped", "/tmp/escaped", "a/../../b", "CON", "..\\..\\x"):
        wb.ask("hello", session=word, user=word)
        with pytest.raises(WorkbenchError):
            wb.run(word)
        wb.clear(session=word)
    after = sorted(p for p in hostile.parent.rglob("*") if "leases" not in p.parts)
    assert [p for p in after if p not in before and not p.name.endswith(("-wal", "-shm"))] == []
    assert {p.name for p in hostile.parent.parent.iterdir()} == outside


def test_emphasis_is_that_of_the_answer_and_never_of_what_it_cites():
    marks = Marks([{"n": 1, "source": {"title": "A ** title"}}], Labels("en"))
    line = str(marks.line("It is **old** [1] & <b>**."))
    assert "<strong>old</strong>" in line and "A ** title" in line and "&lt;b&gt;**." in line
