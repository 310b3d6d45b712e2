"""Corpora: files as the libraries that write them and public reports have them are read as a reader sees them.

A row of ``cases/reading.json`` names the report after which its file is made; what is left out, or read in one of two
ways, is a problem.
"""

import io
import json
import os
import zipfile
from datetime import datetime
from pathlib import Path

import docx
import nbformat
import pytest
from click.testing import CliRunner
from pypdf import PdfWriter
from pypdf.generic import NameObject, StreamObject, read_object

from tests.cases import HERE, load
from workbench.cli import main
from workbench.knowledge.library import Library
from workbench.knowledge.reading import formats as documents
from workbench.knowledge.reading.corpus import chunks
from workbench.language.quoting import parts
from workbench.settings import Settings


def shape(name: str) -> str:
    return (HERE / "reading" / name).read_text(encoding="utf-8")


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


def test_front_matter_gives_fields_of_the_types_that_are_written(tmp_path):
    (document,) = load([written(tmp_path / "a.md", f"{shape('front.md')}# Fall\n\nSalt fell.\n")]).documents
    assert (document.doc_id, document.title) == ("salt", "Salt: a study")
    assert document.text == "# Fall\n\nSalt fell.\n\n# summary\n\nTwo lakes, two years."
    assert document.fields == {
        "when": "2024-03-01", "depth": 7.5, "open": "no", "start": "12:30", "version": "1.10", "private": False,
        "authors": ["刘洋", "Mara Velden"], "sites": ["北湖", "南湖"], "summary": "Two lakes, two years.",
        "tags": ["green", "black"],
    }  # fmt: skip
    (plain,) = load([written(tmp_path / "b.md", "## Heading\nText.")]).documents
    assert (plain.doc_id, plain.title) == ("b.md", "b")


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
    text = shape("note.md").format(prose=prose, item=item, rows="\n".join(ROWS), code=code)
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


def one(path):
    loaded = load([path])
    assert all("left out" in problem["reason"] for problem in loaded.problems)
    return loaded.documents[0]


def test_each_kind_gives_title_fields_and_its_blocks_as_markdown(tmp_path):
    head, said = "采样地点", "共有两个湖泊。"
    page = tmp_path / "a.html"
    page.write_bytes(shape("page.html").format(head, said).encode("gb18030"))
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
    links = {"same.md": corpus / "good.md", "zero.txt": "/dev/zero", "no.txt": "nowhere", "loop.txt": "loop.txt"}
    for link, place in links.items():
        (corpus / link).symlink_to(place)
    os.mkfifo(corpus / "pipe.txt")
    (corpus / "quote.csv").write_bytes(b'id,text\n1,one\n2,"open\n3,three\n4,"x" y\n5,five\n')
    written(corpus / "sub" / "good.md", "Another.")
    loaded = load([corpus])
    reasons = {Path(problem["file"]).name: problem["reason"] for problem in loaded.problems}
    found = {"good.md": "Read.", "latin.txt": "Café au lait", "sub/good.md": "Another.", "1": "one"}
    found |= {"3": "three", "4": '"x" y', "5": "five"}  # no good row is swallowed
    assert {document.doc_id: document.text for document in loaded.documents} == found and len(reasons) == 312
    said = {"000.png": ".png", "Makefile": "Makefile", ".git": "hidden", ".secret.md": "hidden", "empty.md": "empty"}
    said |= {"picture.md": "picture", "there": "link to a folder", "out.txt": "out of the folder"}
    said |= {"zero.txt": "link out", "no.txt": "to nothing", "loop.txt": "to nothing"}
    said |= {"pipe.txt": "a pipe", "quote.csv": "not CSV"}
    assert {name for name, why in said.items() if why in reasons[name]} == set(said)

    done = CliRunner().invoke(main, ["kb", "add", "notes", str(corpus), "--workspace", str(tmp_path / "w")])
    lines = [line for line in done.output.splitlines() if ".png" in line]
    assert done.exit_code == 0, done.output
    assert len(lines) == 1 and "000.png" in lines[0] and "299 more" in lines[0]


CASES = json.loads((HERE / "reading.json").read_text("utf-8"))


def read(path: Path, content: str | bytes):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return load([path])


def reasons(loaded) -> str:
    return "\n".join(problem["reason"] for problem in loaded.problems)


@pytest.fixture
def library(tmp_path):
    library = Library(tmp_path / "knowledge", Settings.load(embedding_model="hashing"))
    yield library
    library.close()


def base(library, name="b"):
    return dict(library.get(name)._index.rows("SELECT doc_id, text FROM documents"))


@pytest.mark.parametrize(
    ("source", "first", "second", "ids"),
    [
        ("HKUDS/LightRAG#3158", ("a/n.md", "# A\n\nOne."), ("b/n.md", "# B\n\nTwo."), ["b/n.md", "n.md"]),
        ("HKUDS/LightRAG#2116", ("x.jsonl", '{"id": 1, "text": "One."}'), ("y.jsonl", '{"id": 1, "text": "Two."}'),
         ["1", "y.jsonl#1"]),
    ],
)  # fmt: skip
def test_an_id_belongs_to_its_source(tmp_path, library, source, first, second, ids):
    paths = [tmp_path / first[0], tmp_path / second[0]]
    for path, (_, content) in zip(paths, (first, second), strict=True):
        path.parent.mkdir(exist_ok=True)
        path.write_text(content)
        library.add("b", [path])
    documents = base(library)
    assert sorted(documents) == ids and {text.rpartition("\n")[2] for text in documents.values()} == {"One.", "Two."}
    again = library.add("b", paths[::-1])
    assert (again.unchanged, again.added, again.changed, again.deleted) == (2, 0, 0, 0)
    assert library.rebuild("b").added == 2 and base(library) == documents
    paths[0].write_text(first[1].replace("One", "Three"))
    assert library.add("b", [paths[0]]).changed == 1 and len(base(library)) == 2


def test_replace_puts_a_document_in_the_place_of_one_of_another_file(tmp_path):
    for name, text in (("x", "One."), ("y", "Two.")):
        (tmp_path / f"{name}.jsonl").write_text(json.dumps({"id": 1, "text": text}))
    run = CliRunner()

    def add(*args: str):
        options = ["--workspace", str(tmp_path / "w")]
        return run.invoke(main, ["kb", "add", "b", *args, *options])

    assert add(str(tmp_path / "x.jsonl")).exit_code == 0
    kept = add(str(tmp_path / "y.jsonl"))
    assert "1 added" in kept.output and "kb add --replace" in kept.output
    assert "1 changed" in add(str(tmp_path / "y.jsonl"), "--replace").output


def test_a_file_that_is_moved_keeps_its_documents(tmp_path, library):
    old, new = tmp_path / "d" / "x.jsonl", tmp_path / "d" / "y.jsonl"
    old.parent.mkdir()
    old.write_text('{"id": 1, "text": "One."}')
    library.add("b", [old.parent])
    old.rename(new)
    assert library.add("b", [new.parent]).unchanged == 1
    new.write_text('{"id": 1, "text": "Two."}')
    assert library.add("b", [new.parent]).changed == 1 and base(library) == {"1": "Two."}


@pytest.mark.parametrize(("source", "encoding", "text"), CASES["encodings"])
def test_an_encoding_is_found_for_the_whole_file(tmp_path, source, encoding, text):
    (document,) = read(tmp_path / "a.txt", text.encode(encoding)).documents
    assert document.text == text


@pytest.mark.parametrize("encoding", ["shift_jis", "windows-1252"])
def test_a_page_is_read_as_it_declares(tmp_path, encoding):
    text = {"shift_jis": "鍵", "windows-1252": "Café"}[encoding]
    page = f'<html><head><meta charset="{encoding}"></head><body><p>{text}</p></body></html>'
    (document,) = read(tmp_path / "a.html", page.encode(encoding)).documents
    assert document.text == text


@pytest.mark.parametrize(
    ("source", "content", "guesses"),
    [
        ("open-webui/open-webui#24973", "第一段。\n".encode() + "第二段是国标码。".encode("gb18030"), ("UTF-8", "CP1")),
        ("owncloud/files_texteditor#180", "鍵".encode("cp932"), ("UTF-8", "would be")),
    ],
)  # fmt: skip
def test_what_may_be_two_encodings_is_refused_with_both(tmp_path, source, content, guesses):
    loaded = read(tmp_path / "a.txt", content)
    assert not loaded.documents and all(guess in reasons(loaded) for guess in guesses)


@pytest.mark.parametrize("name", ["a.csv", "a.jsonl", "a.tsv"])
def test_lines_of_one_file_have_one_encoding(tmp_path, name):
    """open-webui/open-webui#24973: 卢伟 and 协同 alone are legal UTF-8."""
    people = ["卢伟", "林静", "史元"]
    lines = {
        "a.csv": ["姓名,部门", *(f"{one},协同" for one in people)],
        "a.jsonl": [json.dumps({"title": one, "text": one}, ensure_ascii=False) for one in people],
        "a.tsv": [f"{one}\t属于\t财务部" for one in people],
    }[name]
    loaded = read(tmp_path / name, "\r\n".join(lines).encode("gb18030"))
    assert sorted(document.title for document in loaded.documents) == sorted(people) and not loaded.problems


def column(tmp_path, cells: list[str], name: str = "amount"):
    lines = ["title,x", *(f'row {n},"{cell}"' for n, cell in enumerate(cells))]
    loaded = read(tmp_path / "a.csv", "\n".join(lines).replace("title,x", f"title,{name}"))
    return loaded, [document.fields.get(name) for document in loaded.documents]


@pytest.mark.parametrize(("source", "cells", "numbers"), CASES["numbers"])
def test_numbers_are_read_in_the_writing_of_their_column(tmp_path, library, source, cells, numbers):
    loaded, values = column(tmp_path, cells)
    library.add("b", [tmp_path / "a.csv"])
    if numbers is None:
        kinds = {field["name"]: field["type"] for field in library.get("b").inspect()["fields"]}
        assert values == cells and kinds["amount"] != "number"
        return
    rows = library.get("b")._index.rows("SELECT doc_id, number FROM facts WHERE field = 'amount'")
    kept = dict(rows)
    assert [kept.get(document.doc_id) for document in loaded.documents] == numbers


@pytest.mark.parametrize(("source", "cells", "days", "said"), CASES["dates"])
def test_dates_are_read_in_the_order_of_their_column(tmp_path, source, cells, days, said):
    loaded, values = column(tmp_path, cells, "when")
    assert values == (days or cells) and said in reasons(loaded) and bool(said) == bool(loaded.problems)


@pytest.mark.parametrize(("source", "content", "records", "said"), CASES["tables"])
def test_tables_of_every_form(tmp_path, source, content, records, said):
    loaded = read(tmp_path / "a.csv", content)
    assert [[document.title, document.fields] for document in loaded.documents] == records
    assert said in reasons(loaded) and bool(said) == bool(loaded.problems)


def test_a_table_with_tabs_is_no_triples_and_text_has_no_signs_that_nobody_sees(tmp_path):
    (document,) = read(tmp_path / "a.tsv", "title\tn\tm\tk\nA\t1,5\t2\tx\n").documents
    assert (document.title, document.fields) == ("A", {"n": 1.5, "m": 2, "k": "x"})
    content = "The \x1b[31mred\x1b[0m do\u00ador\r\nis o\u2060pen.\x0cPage\u2028two."
    (document,) = read(tmp_path / "a.txt", content).documents
    assert document.text == "The red door\nis open.\n\nPage\ntwo."


@pytest.mark.parametrize(
    ("cell", "people"),
    [
        ("Lee, Ann", "Ann Lee"),
        ("Lee, Ann; de la Cruz, Bo B.", ["Ann Lee", "Bo B. de la Cruz"]),
        ("Ann Lee and Bo Cruz", ["Ann Lee", "Bo Cruz"]),
        ("张三、李四", ["张三", "李四"]),
    ],
)
def test_people_are_named_given_name_first_and_one_by_one(tmp_path, cell, people):
    (document,) = read(tmp_path / "a.csv", f'title,authors\nA,"{cell}"\n').documents
    assert document.fields["authors"] == people
    assert not cell.startswith("Lee,") or document.names["Ann Lee"] == ["Lee, Ann"]


@pytest.mark.parametrize(("source", "content", "fields"), CASES["front"])
def test_front_matter_of_two_kinds(tmp_path, source, content, fields):
    loaded = read(tmp_path / "a.md", content)
    assert dict(loaded.documents[0].fields) == fields
    assert loaded.documents[0].text.endswith("Body.") and bool(loaded.problems) == (not fields)


def cells(*given: dict, **more) -> str:
    return json.dumps({"cells": list(given), "nbformat": 4, **more})


BIG = {"cell_type": "code", "source": ["x = 1"], "outputs": [{"text": "x" * 17 * 2**20}]}
NOTEBOOKS = [
    ("nteract/papermill#637", cells({"cell_type": "markdown", "source": ["# K\n", "text"]}, BIG),
     "# K\ntext\n\n```\nx = 1\n```"),
    ("google-gemini/genai-processors#155", cells({"cell_type": "markdown", "source": "# K\ntext"}), "# K\ntext"),
    ("executablebooks/meta#735", cells({"cell_type": "markdown",
     "source": "# K\n![x](data:image/png;base64," + "A" * 999 + ")\nFired."}), "# K\n![x]()\nFired."),
    ("Quarto", cells({"cell_type": "raw", "source": "---\ntitle: Kiln\n---"}, {"cell_type": "markdown",
     "source": "text"}), "text"),
]  # fmt: skip


@pytest.mark.parametrize(("source", "value", "texts", "said"), CASES["json"])
def test_a_json_file_is_records_or_one_document(tmp_path, source, value, texts, said):
    loaded = read(tmp_path / "a.json", json.dumps(value))
    assert [document.text for document in loaded.documents] == texts
    assert said in reasons(loaded) and bool(said) == bool(loaded.problems)


W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main" xmlns:m="urn:m" xmlns:mc="urn:mc"'


def zipped(body: str, **parts: str) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        archive.writestr("word/document.xml", f"<w:document {W}><w:body>{body}</w:body></w:document>")
        for name, part in parts.items():
            archive.writestr(f"word/{name}.xml", f"<w:root {W}>{part}</w:root>")
    return content.getvalue()


def r(text: str) -> str:
    return f"<w:r><w:t>{text}</w:t></w:r>"


def p(*runs: str) -> str:
    return f"<w:p>{''.join(runs)}</w:p>"


def cell(text: str, properties: str = "") -> str:
    return f"<w:tc><w:tcPr>{properties}</w:tcPr>{text if '<' in text else p(r(text))}</w:tc>"


def rows(*rows: str) -> str:
    return f"<w:tbl>{''.join(f'<w:tr>{row}</w:tr>' for row in rows)}</w:tbl>"


NOTE = '<w:footnote w:id="2">' + p("<w:ins>", r("Weighed twice."), "</w:ins>") + "</w:footnote>"
WORDS = [
    ("docling-project/docling#3152", p(r("It closes at "), "<w:del><w:r><w:delText>five</w:delText></w:r></w:del>",
     f"<w:ins>{r('seven')}</w:ins>", r(".")), "It closes at seven."),
    ("langgenius/dify#42414", f"<w:sdt><w:sdtContent>{p(r('In a control.'))}</w:sdtContent></w:sdt>" + p(r("Fee: "),
     f"<w:sdt><w:sdtContent>{r('40')}</w:sdtContent></w:sdt>"), "In a control.\n\nFee: 40"),
    ("stella/folio#583", p(r("Salt."), '<w:r><w:footnoteReference w:id="2"/></w:r>') + p(r("Next.")),
     "Salt.\n\nNext.\n\nWeighed twice."),
    ("smart tags, fields", p(f"<w:smartTag>{r('Mrs Lund')}</w:smartTag>", r(", "),
     f"<w:fldSimple>{r('12 March')}</w:fldSimple>"), "Mrs Lund, 12 March"),
    ("nested tables", rows(cell("Day") + cell("Room"), cell("Monday") + cell(rows(cell("Blue") + cell("Seat 4"),
     cell("Red") + cell("5")) + p())), "| Day | Room |\n| --- | --- |\n| Monday | Blue Seat 4 Red 5 |"),
]  # fmt: skip


def test_pages_notebooks_and_docx_are_what_is_seen_of_them(tmp_path):
    kinds = [
        (CASES["pages"], "html", lambda content: f"<body>{content}</body>".encode()),
        (NOTEBOOKS, "ipynb", str.encode),
        (WORDS, "docx", lambda body: zipped(body, footnotes=NOTE)),
    ]
    expected = {}
    for rows, ending, make in kinds:
        for number, (name, content, text) in enumerate(rows):
            expected[f"{number}.{ending}"] = (name, text)
            (tmp_path / f"{number}.{ending}").write_bytes(make(content))
    loaded = load([tmp_path])
    found = {Path(document.source).name: document.text for document in loaded.documents}
    assert {file: (expected[file][0], text) for file, text in found.items()} == expected and not loaded.problems


MAIL = "From: Iris <iris@x.org>\nSubject: Kiln\nContent-Type: text/plain\n\nThe kiln fires at 1200 degrees.\n"
RTF = r"{\rtf1\ansi {\b Kiln} fires at 1200 degrees.\par Second \'e9 line.}"


@pytest.mark.parametrize(("name", "content"), [("a.eml", MAIL), ("a.rtf", RTF)])
def test_mail_and_rich_text_are_read(tmp_path, name, content):
    loaded = read(tmp_path / name, content)
    assert "fires at 1200 degrees." in loaded.documents[0].text and not loaded.problems


def test_a_pdf_in_columns_has_whole_words_and_no_running_heads(tmp_path):
    import typst

    source = """#set page(width: 15cm, height: 12cm, columns: 2, header: [Harbour Review], footer: [1])
    #set text(size: 10pt, hyphenate: true, lang: "en"); #set par(justify: true)
    = The pump
    The international administration demonstrated considerable responsibility. The pump must be primed twice before
    extraordinarily complicated measurements. Electromagnetic interference characteristically influences the
    instrumentation.
    #lorem(150)
    == Results
    Ozone was measured thrice."""
    (tmp_path / "a.typ").write_text(source)
    loaded = read(tmp_path / "a.pdf", typst.compile(tmp_path / "a.typ"))
    text = " ".join(loaded.documents[0].text.split())
    assert "primed twice before extraordinarily complicated measurements. Electromagnetic interference" in text
    assert "Harbour Review" not in text and text.index("The pump") < text.index("Ozone was measured thrice.")


def test_a_long_subject_is_cut(tmp_path):
    (document,) = load([written(tmp_path / "a.eml", f"Subject: {'tea ' * 200}\n\nHot.\n")]).documents
    assert document.title.startswith("tea tea") and len(document.title) <= 200
