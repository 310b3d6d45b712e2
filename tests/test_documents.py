"""Documents as researchers have them, made here by the libraries that write them, in both languages."""

import io
import zipfile
from datetime import datetime
from pathlib import Path

import docx
import nbformat
import pytest
from click.testing import CliRunner
from pypdf import PdfWriter
from pypdf.generic import ArrayObject, DictionaryObject, NameObject, StreamObject

from workbench.cli import main
from workbench.knowledge.reading import formats as documents
from workbench.knowledge.reading.corpus import load

HTML = """<html><head><title>No</title><meta name=author content="Li"><meta name="dc.date" content="2024-03-01">
<meta name=keywords content="a, b"></head><body><script>alert(1)</script>
<h1>{0}</h1><p>{1} <b>x</b>
y.</p><!-- hidden --><ul><li>{1}</li></ul><table><tr><th>x</th><th>y|z</th></tr>
<tr><td></td><td>7</td></tr></table><pre>if x:

    y</pre></body></html>"""
WORDS = pytest.mark.parametrize("head,said", [("Sampling sites", "Two lakes."), ("采样地点", "共有两个湖泊。")])


def one(path):
    loaded = load([path])
    assert all("left out" in problem["reason"] for problem in loaded.problems)
    return loaded.documents[0]


@WORDS
def test_each_kind_gives_title_fields_and_its_blocks_as_markdown(tmp_path, head, said):
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
    table = f"| x | y\\|z |\n| --- | --- |\n| {head} | 7 |"
    assert document.text == f"# {head}\n\n{said}\n\n{table}"


def pdf(path, said="", password=""):
    writer = PdfWriter()
    page, stream = writer.add_blank_page(300, 300), StreamObject()
    encoding = "/UniGB-UCS2-H"
    inner = {"/Type": "/Font", "/Subtype": "/CIDFontType0", "/BaseFont": "/STSong-Light"}
    inner_font = DictionaryObject({NameObject(k): NameObject(v) for k, v in inner.items()})
    outer = {"/Type": "/Font", "/Subtype": "/Type0", "/BaseFont": "/STSong-Light", "/Encoding": encoding}
    font = DictionaryObject({NameObject(k): NameObject(v) for k, v in outer.items()})
    font[NameObject("/DescendantFonts")] = ArrayObject([inner_font])
    fonts = DictionaryObject({NameObject("/F"): font})
    page[NameObject("/Resources")] = DictionaryObject({NameObject("/Font"): fonts})
    stream.set_data(f"BT /F 12 Tf 20 200 Td <{said.encode('utf-16-be').hex()}> Tj ET".encode() if said else b"")
    page[NameObject("/Contents")] = writer._add_object(stream)
    writer.add_metadata({"/Author": "Li", "/CreationDate": "D:20240301120000Z"})
    if password:
        writer.encrypt(password, algorithm="RC4-128")
    writer.write(path)
    return path


@WORDS
def test_a_pdf_gives_its_text(tmp_path, head, said):
    document = one(pdf(tmp_path / "a.pdf", said))
    assert (document.text, document.fields) == (said, {"author": "Li", "date": "2024-03-01"})


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
    endless = tmp_path / "parsers" / "kreuzberg.py"
    endless.parent.mkdir()
    endless.write_text("while True: pass")
    monkeypatch.syspath_prepend(endless.parent)
    monkeypatch.setattr(documents, "PATIENCE_S", 0.2)
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    pdf(corpus / "a.pdf", "x")
    pdf(corpus / "b.pdf", "x")
    (corpus / "c.md").write_text("Read.")
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
    (corpus / "good.md").write_text("Read.")
    loaded = load([corpus])
    reasons = {Path(problem["file"]).name: problem["reason"] for problem in loaded.problems}
    assert [document.doc_id for document in loaded.documents] == ["good.md", "latin.txt"]
    assert len(reasons) == 306 and loaded.documents[1].text == "Café au lait"
    said = {"000.png": ".png", "Makefile": "Makefile", ".git": "hidden", ".secret.md": "hidden", "empty.md": "empty"}
    said |= {"picture.md": "picture", "there": "link to a folder"}
    assert {name for name, why in said.items() if why in reasons[name]} == set(said)

    done = CliRunner().invoke(main, ["kb", "add", "notes", str(corpus), "--workspace", str(tmp_path / "w")])
    lines = [line for line in done.output.splitlines() if ".png" in line]
    assert done.exit_code == 0, done.output
    assert len(lines) == 1 and "000.png" in lines[0] and "299 more" in lines[0]
