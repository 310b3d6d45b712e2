"""Documents as researchers have them, made here by the libraries that write them, in both languages."""

import io
import sys
import zipfile

import docx
import nbformat
import pytest
from pypdf import PdfWriter
from pypdf.generic import ArrayObject, DictionaryObject, NameObject, StreamObject

from workbench.knowledge.corpus import load

HTML = """<html><head><title>No</title><meta name=author content="Li"></head><body><script>alert(1)</script>
<h1>{0}</h1><p>{1} <b>x</b>
y.</p><!-- hidden --><ul><li>{1}</li></ul><table><tr><td>{0}</td><td>7</td></tr></table></body></html>"""
WORDS = pytest.mark.parametrize("head,said", [("Sampling sites", "Two lakes."), ("采样地点", "共有两个湖泊。")])


def one(path):
    loaded = load([path])
    assert not loaded.problems
    return loaded.documents[0]


@WORDS
def test_each_kind_gives_title_fields_and_a_line_for_each_block(tmp_path, head, said):
    page = tmp_path / "a.html"
    page.write_bytes(HTML.format(head, said).encode("gb18030"))
    document = one(page)
    assert (document.title, document.fields["author"]) == (head, "Li")
    assert document.text.splitlines() == [head, f"{said} x y.", said, f"{head} | 7"]

    rst = tmp_path / "a.rst"
    table = f"\n\n.. list-table::\n\n   * - {head}\n     - 7\n\n.. include:: /etc/passwd\n"
    rst.write_text(f"{head}\n{'=' * 30}\n\n*{said}*\n\n- {said}{table}", "utf-8")
    document = one(rst)
    assert (document.title, document.text.splitlines()) == (head, [head, said, said, f"{head} | 7"])

    book = nbformat.v4.new_notebook()
    output = nbformat.v4.new_output("stream", text="secret")
    code = nbformat.v4.new_code_cell("# note\nx = 1", outputs=[output])
    book.cells = [nbformat.v4.new_markdown_cell(f"# {head}\n\n{said}"), code]
    nbformat.write(book, tmp_path / "a.ipynb")
    document = one(tmp_path / "a.ipynb")
    assert (document.title, document.text) == (head, f"{head}\n\n{said}\n# note\nx = 1")

    word = docx.Document()
    word.add_heading(head)
    word.add_paragraph(said, style="List Bullet")
    cells = word.add_table(1, 2).rows[0].cells
    cells[0].text, cells[1].text = head, "7"
    word.save(tmp_path / "a.docx")
    document = one(tmp_path / "a.docx")
    assert (document.title, document.text.splitlines()) == (head, [head, said, f"{head} | 7"])


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
    if password:
        writer.encrypt(password, algorithm="RC4-128")
    writer.write(path)
    return path


@WORDS
def test_a_pdf_gives_its_text(tmp_path, head, said):
    assert one(pdf(tmp_path / "a.pdf", said)).text == said


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

    monkeypatch.setitem(sys.modules, "pypdf", None)
    reason = load([pdf(tmp_path / "a.pdf", "x")]).problems[0]["reason"]
    assert reason.endswith("pip install 'workbench[documents]'")
