"""Loading: every kind of file in both languages, made by the libraries that write them; bad lines are listed."""

from __future__ import annotations

import io
import json
import zipfile
from datetime import datetime
from pathlib import Path

import docx
import nbformat
import pytest
from click.testing import CliRunner
from pypdf import PdfWriter
from pypdf.generic import NameObject, StreamObject, read_object

from workbench.cli import main
from workbench.knowledge.reading import formats as documents
from workbench.knowledge.reading.corpus import chunks, load
from workbench.language.quoting import parts


def written(path: Path, text: str, encoding: str = "utf-8") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode(encoding))
    return path


def test_jsonl_knows_what_is_text_and_what_is_a_field(tmp_path):
    record = {
        "id": 7, "title": "喜宴", "overview": "一部电影。", "aliases": ["The Wedding Banquet"],
        "names": {"李安": ["Ang Lee"]}, "type": "Film", "url": "https://example.org/7", "license": "CC0",
        "year": 1993, "rating": 7.5, "genres": ["Drama"], "seen": True, "empty": [],
    }  # fmt: skip
    path = written(tmp_path / "a.jsonl", json.dumps(record, ensure_ascii=False) + "\n\n")
    (document,) = load([path]).documents
    assert (document.doc_id, document.title, document.text, document.type) == ("7", "喜宴", "一部电影。", "Film")
    assert (document.url, document.licence) == ("https://example.org/7", "CC0")
    assert (document.aliases, document.names) == (("The Wedding Banquet",), {"李安": ["Ang Lee"]})
    assert document.fields == {"year": 1993, "rating": 7.5, "genres": ["Drama"], "seen": True}
    assert document.source == path.resolve().as_posix()


FRONT = """---
title: "Salt: a study"
id: salt
tags: green | black
when: 2024-03-01
depth: 7.5
open: no
start: 12:30
version: "1.10"
private: false
authors:
  - {name: 刘洋, orcid: 0000-0001}
  - Mara Velden
sites: [北湖，南湖]
summary: >
  Two lakes,
  two years.
---
"""


def test_front_matter_gives_fields_of_the_types_that_are_written(tmp_path):
    (document,) = load([written(tmp_path / "a.md", f"{FRONT}# Fall\n\nSalt fell.\n")]).documents
    assert (document.doc_id, document.title, document.text) == ("salt", "Salt: a study", "# Fall\n\nSalt fell.")
    assert document.fields == {
        "when": "2024-03-01", "depth": 7.5, "open": "no", "start": "12:30", "version": "1.10", "private": False,
        "authors": ["刘洋", "Mara Velden"], "sites": ["北湖", "南湖"], "summary": "Two lakes, two years.",
        "tags": ["green", "black"],
    }  # fmt: skip
    (plain,) = load([written(tmp_path / "b.md", "## Heading\nText.")]).documents
    assert (plain.doc_id, plain.title) == ("b.md", "Heading")


@pytest.mark.parametrize("front", ["title: Salt: a study", "a: &a [x, x]\nb: [*a, *a]", "a: " + "[" * 5_000])
def test_front_matter_that_is_no_yaml_is_said_and_its_document_kept(tmp_path, front):
    loaded = load([written(tmp_path / "a.md", f"---\n{front}\n---\nSalt fell.")])
    assert "front matter cannot be read" in loaded.problems[0]["reason"]
    assert loaded.documents[0].text.endswith("Salt fell.")
    (two_rules,) = load([written(tmp_path / "b.md", "---\nProse.\n---\nMore.")]).documents
    assert "Prose." in two_rules.text and "More." in two_rules.text


@pytest.mark.parametrize("limit", [20, 50, 400])
def test_chunks_lose_nothing_and_hold_the_limit(limit):
    text = "The first sentence is here. 第二句是中文。第三句也是。" + "word " * 60 + "end. " + "字" * 130
    pieces = chunks(text, limit)
    assert all(0 < len(piece) <= limit for piece in pieces)
    assert "".join("".join(pieces).split()) == "".join(text.split())


ROWS = [f"| site {n} | {n}.5 g of salt in a litre |" for n in range(9)]
NOTE = """# Salt

{prose}

## Method

### Steps

1. {item}
2. Weigh what is left, to the milligram.

| site | salt |
|---|---|
{rows}

```python
{code}
```
"""


@pytest.mark.parametrize(
    ("prose", "item"),
    [
        ("The lakes were read twice in the two years\nof the study, by two people.", "Dry it. Wait a day. Dry again."),
        (
            "两年之中，每个湖泊都由两个人分别读了两遍，记录的数值\n全部写在一张表里，供以后核对。",
            "先烘干。等一天。再烘干。",
        ),
    ],
)
def test_passages_keep_headings_items_rows_and_code_whole_and_quotes_have_no_markup(prose, item):
    code = "\n\n".join(f"salt_{n} = weigh(site={n})" for n in range(3))
    text = NOTE.format(prose=prose, item=item, rows="\n".join(ROWS), code=code)
    passages = chunks(text, 200, "Salt")
    assert all(len(passage) <= 200 for passage in passages)
    whole = prose.replace("\n", " " if prose.isascii() else "")
    assert passages[0].startswith(f"{whole}\n\n# Method › Steps\n\n1. {item}\n2. Weigh")
    assert all(passage.startswith("# Method › Steps\n\n") for passage in passages[1:])
    of_table = [passage for passage in passages if "| site " in passage]
    assert len(of_table) > 1 and all("| site | salt |\n|---|---|\n| site" in passage for passage in of_table)
    assert [line for passage in of_table for line in passage.splitlines() if line in ROWS] == ROWS
    assert sum(f"```python\n{code}\n```" in passage for passage in passages) == 1
    quotes = [quote for passage in passages for heading, quote in parts(passage, "Salt") if heading]
    rows = [f"site {n}: salt {n}.5 g of salt in a litre" for n in range(9)]
    lines = "; ".join(line for line in code.split("\n") if line)
    assert quotes == [item, "Weigh what is left, to the milligram.", *rows, lines]
    assert {heading for passage in passages for heading, _ in parts(passage, "Salt")} == {"", "Method › Steps"}


TRIPLES = [
    "Tampopo\tdirected_by\tJûzô Itami", "Dandelion\tsequel_of\tTampopo", "Tampopo\thas_tags\tramen",
    "Tampopo\thas_tags\t拉面", "Tampopo\tdirected_by\tJûzô Itami",
]  # fmt: skip


@pytest.mark.parametrize("order", [1, -1])
def test_triples_give_a_document_for_each_head(tmp_path, order):
    path = written(tmp_path / "kb.tsv", "".join(f"{line}\r\n" for line in TRIPLES[::order]))
    dandelion, tampopo = load([path]).documents
    assert (tampopo.doc_id, tampopo.title) == ("Tampopo", "Tampopo")
    assert tampopo.fields == {"directed_by": ["Jûzô Itami"], "has_tags": ["ramen", "拉面"]}
    assert tampopo.text == "Tampopo — directed by: Jûzô Itami.\nTampopo — has tags: ramen, 拉面."
    assert dandelion.fields == {"sequel_of": ["Tampopo"]}


HTML = """<html><head><title>No</title><meta name=author content="Li"><meta name="dc.date" content="2024-03-01">
<meta name=keywords content="a, b"></head><body><script>alert(1)</script>
<h1>{0}</h1><p>{1} <b>x</b>
y.</p><!-- hidden --><ul><li>{1}</li></ul><table><tr><th>x</th><th>y|z</th></tr>
<tr><td></td><td>7</td></tr></table><pre>if x:

    y</pre></body></html>"""


def one(path):
    loaded = load([path])
    assert all("left out" in problem["reason"] for problem in loaded.problems)
    return loaded.documents[0]


def test_each_kind_gives_title_fields_and_its_blocks_as_markdown(tmp_path):
    head, said = "采样地点", "共有两个湖泊。"
    page = tmp_path / "a.html"
    page.write_bytes(HTML.format(head, said).encode("gb18030"))
    document = one(page)
    assert (document.title, document.fields) == (head, {"author": "Li", "date": "2024-03-01", "keywords": ["a", "b"]})
    table, code = "| x | y\\|z |\n| --- | ---- |\n|   | 7    |", "```\nif x:\n\n    y\n```"
    assert document.text == f"# {head}\n\n{said} x y.\n\n- {said}\n\n{table}\n\n{code}"

    book = nbformat.v4.new_notebook(metadata={"authors": [{"name": "Li"}], "language_info": {"name": "python"}})
    output = nbformat.v4.new_output("stream", text="secret")
    cell = nbformat.v4.new_code_cell("# note\nx = 1", outputs=[output])
    book.cells = [nbformat.v4.new_markdown_cell(f"# {head}\n\n{said}"), cell]
    nbformat.write(book, tmp_path / "a.ipynb")
    document = one(tmp_path / "a.ipynb")
    assert (document.title, document.fields) == (head, {"author": "Li"})
    assert document.text == f"# {head}\n\n{said}\n\n```python\n# note\nx = 1\n```"

    word = docx.Document()
    word.core_properties.author, word.core_properties.created = "Li", datetime(2024, 3, 1)
    word.add_heading(head)
    word.add_paragraph(said)
    for row, texts in zip(word.add_table(2, 2).rows, (("x", "y|z"), (head, "7")), strict=True):
        row.cells[0].text, row.cells[1].text = texts
    word.save(tmp_path / "a.docx")
    document = one(tmp_path / "a.docx")
    assert (document.title, document.fields) == (head, {"author": "Li", "date": "2024-03-01"})
    assert document.text == f"# {head}\n\n{said}\n\n| x | y\\|z |\n| --- | --- |\n| {head} | 7 |"
    document = one(pdf(tmp_path / "a.pdf", said))
    assert (document.text, document.fields) == (said, {"author": "Li", "date": "2024-03-01"})


def pdf(path, said="", password=""):
    writer = PdfWriter()
    page, stream = writer.add_blank_page(300, 300), StreamObject()
    inner = "<</Type /Font /Subtype /CIDFontType0 /BaseFont /STSong-Light>>"
    font = f"<</Type /Font /Subtype /Type0 /BaseFont /STSong-Light /Encoding /UniGB-UCS2-H /DescendantFonts [{inner}]>>"
    fonts = io.BytesIO(f"<</Font <</F {font}>>>>".encode())
    page[NameObject("/Resources")] = read_object(fonts, writer)
    stream.set_data(f"BT /F 12 Tf 20 200 Td <{said.encode('utf-16-be').hex()}> Tj ET".encode() if said else b"")
    page[NameObject("/Contents")] = writer._add_object(stream)
    writer.add_metadata({"/Author": "Li", "/CreationDate": "D:20240301120000Z"})
    if password:
        writer.encrypt(password, algorithm="RC4-128")
    writer.write(path)
    return path


def test_what_is_not_taken_is_named_with_its_reason(tmp_path, monkeypatch):
    pdf(tmp_path / "pictures.pdf")
    pdf(tmp_path / "locked.pdf", "x", "secret")
    (tmp_path / "broken.docx").write_bytes(b"PK\x03\x04")
    (tmp_path / "empty.html").write_text("<p></p>")
    bomb = io.BytesIO()
    archive = zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED)
    with archive, archive.open("word/document.xml", "w", force_zip64=True) as part:
        for _ in range(129):
            part.write(bytes(2**20))
    (tmp_path / "bomb.docx").write_bytes(bomb.getvalue())
    reasons = {p["file"].rsplit("/")[-1]: p["reason"] for p in load([tmp_path]).problems}
    said = {"pictures": "OCR", "locked": "encrypted", "broken": "damaged", "empty": "no text", "bomb": "unpacks to"}
    assert {name.split(".")[0] for name, why in reasons.items() if said[name.split(".")[0]] in why} == set(said)


def test_a_parser_that_never_returns_is_ended_and_its_document_listed(tmp_path, monkeypatch):
    """Two of them, each in a process of its own; what no parser is needed for is read all the same."""
    monkeypatch.syspath_prepend(written(tmp_path / "parsers" / "kreuzberg.py", "while True: pass").parent)
    monkeypatch.setattr(documents, "PATIENCE_S", 0.2)
    corpus = written(tmp_path / "corpus" / "c.md", "Read.").parent
    pdf(corpus / "a.pdf", "x")
    pdf(corpus / "b.pdf", "x")
    loaded = load([corpus])
    assert [document.doc_id for document in loaded.documents] == ["c.md"]
    listed = [(Path(problem["file"]).name, "takes longer" in problem["reason"]) for problem in loaded.problems]
    assert listed == [("a.pdf", True), ("b.pdf", True)]


def test_every_file_that_is_not_taken_is_listed_and_many_alike_are_one_line(tmp_path):
    corpus = tmp_path / "corpus"
    (corpus / ".git" / "objects").mkdir(parents=True)
    (corpus / ".git" / "objects" / "a.md").write_text("Hidden.")
    for name in (*(f"{n:03}.png" for n in range(300)), "Makefile", ".secret.md", "vocabulary.toml"):
        (corpus / name).write_text("")
    (corpus / "empty.md").write_text("")
    (corpus / "latin.txt").write_bytes("Café au lait".encode("latin-1"))
    (corpus / "picture.md").write_bytes(b"\x89PNG\r\n\x1a\n")
    (corpus / "there").symlink_to(tmp_path)
    (tmp_path / "private.txt").write_text("zqprivate")
    (corpus / "out.txt").symlink_to(tmp_path / "private.txt")
    (corpus / "good.md").write_text("Read.")
    (corpus / "same.md").symlink_to(corpus / "good.md")
    written(corpus / "sub" / "good.md", "Another.")
    loaded = load([corpus])
    reasons = {Path(problem["file"]).name: problem["reason"] for problem in loaded.problems}
    found = {"good.md": "Read.", "latin.txt": "Café au lait", "sub/good.md": "Another."}
    assert {document.doc_id: document.text for document in loaded.documents} == found and len(reasons) == 307
    said = {"000.png": ".png", "Makefile": "Makefile", ".git": "hidden", ".secret.md": "hidden", "empty.md": "empty"}
    said |= {"picture.md": "picture", "there": "link to a folder", "out.txt": "out of the folder"}
    assert {name for name, why in said.items() if why in reasons[name]} == set(said)

    done = CliRunner().invoke(main, ["kb", "add", "notes", str(corpus), "--workspace", str(tmp_path / "w")])
    lines = [line for line in done.output.splitlines() if ".png" in line]
    assert done.exit_code == 0, done.output
    assert len(lines) == 1 and "000.png" in lines[0] and "299 more" in lines[0]
