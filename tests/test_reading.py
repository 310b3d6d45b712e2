"""Files as public reports describe them: the text of each document is what a reader of the file sees.

Each row names the report after which its file is made; what is left out, or read in one of two ways, is a problem.
"""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path

import pytest
from click.testing import CliRunner

from workbench.cli import main
from workbench.knowledge.library import Library
from workbench.knowledge.reading.corpus import load
from workbench.settings import Settings


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


TEXTS = [
    ("danny-avila/rag_api#291", "big5", "倉庫的開放時間是上午九點到下午五點。"),
    ("Maseya/SMB-Utility#1", "cp932", "サーバー保守は水曜日の午前二時に始まります。"),
    ("Hiromi-Ayase/brackets-shizimily-multiencoding#3", "cp1251", "Собрание начинается во вторник."),
    ("pandas-dev/pandas#14066", "cp1252", "The “night” shift costs 40 € – not 50."),
    ("EasyRPG/liblcf#187", "gb18030", "仓库的开放时间是上午九点。"),
    ("m8nscape/lunaticvibes#33", "utf-32", "The door opens at nine. 门九点开。"),
]


@pytest.mark.parametrize(("source", "encoding", "text"), TEXTS)
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


NUMBERS = [
    ("pandas-dev/pandas#59299", ["1,20", "22,3", "1.234,56"], [1.2, 22.3, 1234.56]),
    ("JuliaData/CSV.jl#1150", ["5.840,72", "5.860", "3"], [5840.72, 5860, 3]),
    ("pola-rs/polars#18797", ["1\u00a0299,99", "12 000"], [1299.99, 12000]),
    ("accounting", ["(300)", "1,200.50"], [-300, 1200.5]),
    ("currency", ["$1,200.50", "$3"], [1200.5, 3]),
    ("empty cells", ["5", "n/a", "–", "6"], [5, None, None, 6]),
    ("units", ["3 kg", "500 g", "2 kg"], None),
    ("scales", ["35 万元", "12 万元"], [350000, 120000]),
    ("currencies", ["5 €", "5 $"], None),
    ("codes", ["007", "012"], None),
    ("addresses", ["5 Main St", "7 Elm Rd"], None),
]


def column(tmp_path, cells: list[str], name: str = "amount"):
    lines = ["title,x", *(f'row {n},"{cell}"' for n, cell in enumerate(cells))]
    loaded = read(tmp_path / "a.csv", "\n".join(lines).replace("title,x", f"title,{name}"))
    return loaded, [document.fields.get(name) for document in loaded.documents]


@pytest.mark.parametrize(("source", "cells", "numbers"), NUMBERS)
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


DATES = [
    ("submersion-app/submersion#1828", ["15/04/1991", "03/04/1991"], ["1991-04-15", "1991-04-03"], ""),
    ("etalab/csvapi#62", ["07/03/2024", "01/02/2024"], ["07/03/2024", "01/02/2024"], "may be read in two ways"),
    ("wireservice/csvkit#280", ["02/01/2014", "31/12/2012"], ["2014-01-02", "2012-12-31"], ""),
    ("dotted", ["17.06.2024", "3.4.2024"], ["2024-06-17", "2024-04-03"], ""),
    ("versions", ["1.10.12", "1.2.3"], ["1.10.12", "1.2.3"], ""),
]


@pytest.mark.parametrize(("source", "cells", "days", "said"), DATES)
def test_dates_are_read_in_the_order_of_their_column(tmp_path, source, cells, days, said):
    loaded, values = column(tmp_path, cells, "when")
    assert values == (days or cells) and said in reasons(loaded) and bool(said) == bool(loaded.problems)


TABLES = [
    ("datopian/datahub.io#35", "title;n\nA;1\nB;2\n", [("A", {"n": 1}), ("B", {"n": 2})], ""),
    ("bars", "title|n\nA|1\nB|2\n", [("A", {"n": 1}), ("B", {"n": 2})], ""),
    ("Data-Liberation-Front/csvlint.io#107", "Grants 2024,,\n,,\ntitle,n,m\nA,1,2\n", [("A", {"n": 1, "m": 2})],
     "Grants 2024"),
    ("intel/pcm#240", "title,n,n\nA,1,2\n", [("A", {"n": 1, "n 3": 2})], ""),
    ("index", ",title,n\n0,A,1\n1,B,2\n", [("A", {"n": 1}), ("B", {"n": 2})], ""),
    ("names of rows", ",n\nNorth,1\nSouth,2\n", [("North", {"name": "North", "n": 1}), ("South", {"name": "South",
     "n": 2})], ""),
    ("list", "title,tags\nA,tea; green tea\n", [("A", {"tags": ["tea", "green tea"]})], ""),
]  # fmt: skip


@pytest.mark.parametrize(("source", "content", "records", "said"), TABLES)
def test_tables_of_every_form(tmp_path, source, content, records, said):
    loaded = read(tmp_path / "a.csv", content)
    assert [(document.title, document.fields) for document in loaded.documents] == records
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


FRONT = [
    ("YAML", "---\nversion: 1.10\ntags: [a, b]\n---\nBody.", {"version": "1.10", "tags": ["a", "b"]}),
    ("ikalnytskyi/holocron#253", "+++\nversion = 1.10\nwhen = 2024-05-06\ndraft = false\n+++\nBody.",
     {"version": "1.10", "when": "2024-05-06", "draft": False}),
    ("abhinav/stitchmd#74", "+++\nbroken\n+++\nBody.", {}),
]  # fmt: skip


@pytest.mark.parametrize(("source", "content", "fields"), FRONT)
def test_front_matter_of_two_kinds(tmp_path, source, content, fields):
    loaded = read(tmp_path / "a.md", content)
    assert dict(loaded.documents[0].fields) == fields
    assert loaded.documents[0].text.endswith("Body.") and bool(loaded.problems) == (not fields)


HTML = [
    (
        "hidden",
        "<h1>K</h1><p style='display:none'>No.</p><p hidden>No.</p><div aria-hidden=true>No</div>"
        "<template>No</template><p>Seen.</p>",
        "# K\n\nSeen.",
    ),
    (
        "boilerplate",
        "<header>Menu</header><nav>Home</nav><main><h1>K</h1><p>Text.</p></main><aside>Ad</aside><footer>2024</footer>",
        "# K\n\nText.",
    ),
    ("signs", "<p>5&nbsp;kg soft&shy;hyphen zero\u200bwidth</p>", "5 kg softhyphen zerowidth"),
]


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


JSON = [
    ("a list", [{"id": 1, "text": "One."}, {"id": 2, "text": "Two."}], ["One.", "Two."], ""),
    ("a list inside", {"count": 2, "items": [{"text": "One."}, {"text": "Two."}]}, ["One.", "Two."], "count"),
    ("nested", {"name": "Mara", "home": {"city": "Oslo"}, "pets": [{"kind": "cat"}]},
     ["name: Mara; home city: Oslo; pets kind: cat"], ""),
]  # fmt: skip


@pytest.mark.parametrize(("source", "value", "texts", "said"), JSON)
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
        (HTML, "html", lambda content: f"<body>{content}</body>".encode()),
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
    typst = pytest.importorskip("typst")
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
