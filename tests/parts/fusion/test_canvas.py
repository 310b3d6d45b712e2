"""JSON Canvas: read as knowledge, shown, worked on, and what was found written into a copy."""

import json
import os
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.language_models import FakeListChatModel

from workbench.cli import main
from workbench.knowledge.reading.corpus import load
from workbench.knowledge.reading.files import Unreadable
from workbench.parts.fusion import canvas as reading
from workbench.session import Workbench


def node(node_id, text="", x=0, y=0, width=200, height=80, **more):
    kind = more.pop("type", "text")
    content = {reading.CONTENT[kind] or "label": text}
    return {"id": node_id, "type": kind, **content, "x": x, "y": y, "width": width, "height": height, **more}


def edge(start, end, label="", **more):
    said = {"label": label} if label else {}
    return {"id": more.pop("id", f"{start}-{end}"), "fromNode": start, "toNode": end, **said, **more}


NOTES = {
    "nodes": [node("all", "Mathematics", -100, -100, 2000, 1000, type="group"), node("logic", "Logic", -20, -20, 900,
     400, type="group", color="4"), node("a", "Proposition\nA proposition is a sentence that is true or false.",
     mine={"kept": [1]}), node("b",
     "**Implication**\nAn implication is false only when its premise is true and not its end.", 300), node("c", "a.md",
     600, type="file"), node("d", "https://www.example.org/x?y", 1600, type="link", color="#FF00aa")],
    "edges": [edge("a", "b", "is needed for"), edge("c", "b", fromEnd="arrow", toEnd="none"), edge("d", "logic",
     "explains", fromEnd="arrow")],
}  # fmt: skip


@pytest.fixture
def folder(tmp_path):
    place = tmp_path / "vault" / "notes"
    place.mkdir(parents=True)
    (place / "a.md").write_text("# Truth tables\n\nA truth table lists the value of a formula in every case.")
    (place.parent / "secret.md").write_text("The password is tulip.")
    (place / "notes.canvas").write_text(json.dumps(NOTES, ensure_ascii=False), "utf-8")
    return place


def write(folder, nodes, edges=(), name="notes.canvas"):
    path = folder / name
    path.write_text(json.dumps({"nodes": list(nodes), "edges": list(edges)}), "utf-8")
    return path


def test_nodes_are_documents_and_edges_and_groups_relations(folder, tmp_path):
    with Workbench.open(tmp_path / "ws") as wb:
        assert wb.add_knowledge("math", [folder / "notes.canvas"], lambda *_: None).problems == []
        base = wb.knowledge.get("math")
        related = {
            (r["source"], r["type"], r["target"])
            for entity in base.graph().nodes
            for r in base.around("relations", [entity])
            if r["type"] != "mentions"
        }
        answer = wb.ask("What is a proposition needed for?", kb="math").answer
    doc = "doc:notes.canvas#{}".format
    assert related == {
        (doc("a"), "is_needed_for", doc("b")),
        (doc("b"), "leads_to", doc("c")),  # its arrow is at the beginning
        (doc("d"), "explains", doc("logic")),
        (doc("logic"), "explains", doc("d")),  # it has two arrows
        *((doc(one), "in_group", doc("logic")) for one in "abc"),
        (doc("d"), "in_group", doc("all")),
        (doc("logic"), "in_group", doc("all")),
    }
    assert "Implication" in answer
    with Workbench.open(tmp_path / "ws") as wb:
        wb.add_knowledge("math", [folder / "notes.canvas"], lambda *_: None)
        write(folder, [one for one in NOTES["nodes"] if one["id"] != "b"])
        report = wb.add_knowledge("math", [folder / "notes.canvas"], lambda *_: None)
        assert (report.deleted, report.problems) == (1, [])
        assert wb.knowledge.get("math").around("relations", ["doc:notes.canvas#b"]) == []


def holds(outer, inner) -> bool:
    (a, b, c, d), (e, f, g, h) = ((n["x"], n["y"], n["x"] + n["width"], n["y"] + n["height"]) for n in (outer, inner))
    return a <= e and b <= f and c >= g and d >= h


@given(st.lists(st.tuples(*[st.integers(0, 12)] * 4, st.booleans()), max_size=14))
def test_each_node_is_in_the_smallest_group_that_holds_it_and_no_group_is_around_itself(boxes):
    nodes = [
        node(str(n), "", x, y, w, h, type="group" if group else "text") for n, (x, y, w, h, group) in enumerate(boxes)
    ]
    canvas = reading.Canvas(json.dumps({"nodes": nodes}))
    sizes = {str(n): (w * h, -n) for n, (_, _, w, h, group) in enumerate(boxes) if group}
    for one, inner in canvas.nodes.items():
        larger = [i for i in sizes if i != one and sizes[i] > sizes.get(one, (-1, 0))]
        around = [i for i in larger if holds(canvas.nodes[i], inner)]
        assert canvas.parents.get(one) == min(around, key=sizes.get, default=None)
        assert one not in canvas.around(one)


@pytest.mark.parametrize(
    ("file", "why"),
    [
        ("../secret.md", "leads out of the folder"), ("x/../../secret.md", "leads out of the folder"),
        ("..\\secret.md", "leads out of the folder"), ("{}/secret.md", "leads out of the folder"),
        ("file:///etc/passwd", "leads out of the folder"),
        ("a\0.md", "leads out of the folder"), ("out.md", "is a link out of the folder"),
        ("under/secret.md", "is a link out of the folder"), (".hidden.md", "is hidden"),
        ("gone.md", "is not next to the canvas"), ("b" * 5000, "is not next to the canvas"),
        ("pipe.md", "a pipe, a device or a folder"), ("rows.csv", "holds many records"),
        ("notes.canvas", "holds many records"),
    ],
)  # fmt: skip
def test_nothing_outside_the_folder_is_read(folder, file, why):
    (folder / "out.md").symlink_to(folder.parent / "secret.md")
    (folder / "under").symlink_to(folder.parent)
    (folder / ".hidden.md").write_text("The password is tulip.")
    (folder / "rows.csv").write_text("title,text\na,b\n")
    os.mkfifo(folder / "pipe.md")
    loaded = load([write(folder, [node("f", file.format(folder.parent), type="file"), node("g", "here")])])
    [problem] = loaded.problems
    assert why in problem["reason"] and "'f'" in problem["reason"] and ":" in problem["reason"]
    assert len(loaded.documents) == 2 and not any("tulip" in document.text for document in loaded.documents)


def test_links_and_hostile_text_are_only_text(folder, monkeypatch):
    import socket

    monkeypatch.setattr(socket, "socket", None)
    links = ["http://a.b/c", "javascript:alert(1)", "file:///etc/passwd", "data:text/html,<b>", "ftp://x"]
    found = load([write(folder, [node(f"l{n}", url, type="link") for n, url in enumerate(links)])])
    assert [document.url for document in found.documents] == ["http://a.b/c", *[""] * 4]
    assert not found.problems
    text = "\ud800\u202e<script>alert(1)</script>\x00" + "((" * 50_000
    loaded = load([write(folder, [node("a\ud800", text), node("g", text, type="group")], [edge("a\ud800", "g", text)])])
    assert loaded.problems == []
    assert all(document.digest() for document in loaded.documents)  # it can be kept


@pytest.mark.parametrize(
    ("nodes", "edges", "why", "left"),
    [
        ([node("a", "x")], [edge("a", "zz")], "edge 'a-zz' has toNode 'zz', which is no usable node", 1),
        ([node("a", "x"), node("a", "y")], [], "node 'a' is there twice, and the first is kept", 1),
        ([7, node("a", "x")], [], "node number 1 has no id", 1),
        ([node("a" * 500, "x")], [], "more than 400 characters", 0),
        ([{**node("a"), "type": "video"}], [], "has type 'video': use one of text, file, link, group", 0),
        ([node("a", "x", x="1")], [], "has x '1': a number of pixels is needed", 0),
        ([node("a", "x", x=float("nan"))], [], "has x nan", 0),
        ([node("a", "x", color="mauve")], [], "has color 'mauve', which is ignored: use 1 to 6", 1),
        (
            [node("a", "A", type="group"), node("b", "B", type="group")], [],
            "group 'b' covers just what group 'a' covers, so that each would hold the other", 2,
        ),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_with_id_and_mend_and_the_rest_is_used(folder, nodes, edges, why, left):
    loaded = load([write(folder, nodes, edges)])
    [problem] = loaded.problems
    assert why in problem["reason"] and problem["line"] == 1
    assert len(loaded.documents) == left


@pytest.mark.parametrize(
    ("raw", "why"),
    [
        (b"[]", "a canvas is {"),
        (b"{", "not JSON: .* at line 1, column 2"),
        (b'{"nodes": {}}', "nodes is {}: it must be a list"),
        (b"[" * 100_000, "make it flatter"),
        (b'{"nodes": [' + b"9" * 5000 + b"]}", "its numbers shorter"),
        ('{"nodes": "集合"}'.encode("gb18030"), "save it as UTF-8"),
    ],
)
def test_a_file_that_is_no_canvas_says_why(folder, raw, why):
    path = folder / "no.canvas"
    path.write_bytes(raw)
    with pytest.raises(Unreadable, match=why):
        reading.Canvas(reading.Canvas.read_text(path))
    assert load([path]).documents == []


@pytest.fixture(scope="module")
def desk(tmp_path_factory):
    with Workbench.open(tmp_path_factory.mktemp("desk")) as opened:
        yield opened


def test_a_canvas_is_drawn_with_everything_escaped(desk, folder):
    bad = "<img src=x onerror=alert(1)>\u202e"
    nodes = [
        node("<b>", bad),
        node("g", bad, -9, -9, 900, 300, type="group", color="#abcdef"),
        node("l", bad, 300, type="link"),
    ]
    shown = desk.canvas(write(folder, nodes, [edge("<b>", "l", bad, fromSide="bottom"), edge("l", "zz")]))
    page = shown._repr_html_()
    assert "<img" not in page and "<b>" not in page and "\u202e" not in page
    assert page.count("&lt;img src=x") >= 4 and "border-color:#abcdef" in page and "marker-end" in page
    assert "edge 'l-zz' has toNode 'zz'" in str(shown) and "3 nodes" in str(shown)


SAMPLES = Path(__file__).resolve().parents[3] / "data" / "canvases"
MATHS, LEAF = SAMPLES / "离散数学.canvas", SAMPLES / "photosynthesis.canvas"


def found(desk, path, operation, *nodes):
    entries = desk.canvas(path).work(operation, nodes).entries
    return {entry["node"]: entry for entry in entries}


def kinds(entry):
    return {row["text"]: row["kind"] for row in entry["rows"]}


def test_decomposition_and_explanation_go_along_the_edges(desk):
    entry = found(desk, MATHS, "decomposition", "shuang-she")
    rows = entry["shuang-she"]["rows"]
    before = [row["node"] for row in rows if row["kind"] == "presupposes"]
    assert before == ["ji-he", "di-ka-er", "guan-xi", "han-shu", "dan-she", "man-she"]  # 函数 —是一种→ 二元关系
    assert rows[0]["text"] == "什么是“集合”？" and rows[0]["because"].endswith("函数 —性质→ 单射 —用于定义→ 双射")
    calvin = {row["node"]: row["kind"] for row in found(desk, LEAF, "decomposition", "calvin")["calvin"]["rows"]}
    # «depends on» leads to what comes first
    assert calvin["light"] == calvin["rubisco"] == "presupposes" and "sugar" not in calvin
    entry = found(desk, MATHS, "explanation", "shu", "ren-wu-2")
    rows = entry["shu"]["rows"]
    assert "没有回路" in rows[0]["text"] and ("evidence", "shu") in {(row["kind"], row["node"]) for row in rows}
    assert desk.run(entry["shu"]["run_id"]).status == "done"
    assert any("双射有反函数，反函数也是双射" in text for text in kinds(entry["ren-wu-2"]))


def test_without_a_model_nothing_is_judged_and_what_differs_is_shown(desk):
    entries = found(desk, LEAF, "scoring")  # without nodes: the learner's answers
    assert list(entries) == ["answer-light", "answer-calvin"] and entries["answer-light"]["score"] is None
    worked = found(desk, LEAF, "verification", "answer-light", "answer-calvin")
    rows = {row["text"]: row for entry in worked.values() for row in entry["rows"]}
    assert {row["kind"] for row in rows.values()} == {"unjudged"}
    oxygen = rows["The oxygen that is released comes from carbon dioxide."]
    assert oxygen["node"] == "split" and "the oxygen is released" in oxygen["because"], "the best by the ranking"
    assert "words found: 44% · not found: carbon, dioxide" in oxygen["because"]
    assert "not found: never" in rows["The Calvin cycle never uses ATP."]["because"]
    assert kinds(found(desk, LEAF, "verification", "site")["site"]) == {}


def test_the_model_of_the_checker_judges(desk, tmp_path):
    verdicts = ["supported", "unsupported", "partly"]
    reply = json.dumps({"sentences": [{"sentence": n, "verdict": v} for n, v in enumerate(verdicts, 1)]})
    with Workbench.open(tmp_path / "w", models={"checker": FakeListChatModel(responses=[reply])}) as wb:
        entry = found(wb, LEAF, "verification", "answer-light")["answer-light"]
        assert sorted(row["kind"] for row in entry["rows"]) == sorted(verdicts) and entry["score"] == 0.5
        assert entry["rows"][0]["kind"] == "unsupported", "the worst comes first"
        copied = wb.canvas(LEAF).work("verification", ["answer-light"]).copy()
        assert {n["color"] for i, n in copied.nodes.items() if i.startswith("wb-text")} == {"1"}
        scored = found(wb, LEAF, "scoring", "answer-calvin")["answer-calvin"]
        assert [row["kind"] for row in scored["rows"]] == ["missing", "partly", "covered"]
    with Workbench.open(tmp_path / "mute", models={"checker": FakeListChatModel(responses=["no"])}) as wb:
        entry = found(wb, LEAF, "verification", "answer-light")["answer-light"]
        assert {row["kind"] for row in entry["rows"]} == {"unjudged"}
        assert entry["note"].startswith("The checker's model gave no verdict: ")


def test_a_canvas_that_is_worked_on_makes_no_base_that_lasts(folder, tmp_path):
    (tmp_path / "kiln.md").write_text("# Kiln\n\nThe kiln was built in 1911.")
    with Workbench.open(tmp_path / "w", embedding_model="hashing") as wb:
        wb.add_knowledge("site", [tmp_path / "kiln.md"])
        canvas = wb.canvas(folder / "notes.canvas")
        for operation in ("verification", "explanation"):
            assert canvas.work(operation, ["a"]).entries
            assert wb.knowledge.names() == ["site"] and not list((wb.path / "knowledge").glob("canvas-*"))
        with pytest.raises(reading.CanvasError):
            canvas.work("review", ["nobody"])
        assert wb.knowledge.names() == ["site"]
        run = wb.ask("What is an implication?")
        assert run.state["kb_prefix"] == "site", "no other question goes there"
        wb.add_knowledge("board", [folder / "notes.canvas"])
        assert canvas.work("explanation", ["a"], "board").kb == "board" and "board" in wb.knowledge.names()


def test_a_copy_keeps_what_stands_there(desk, folder):
    before, copy = LEAF.read_bytes(), folder / "copy.canvas"
    worked = desk.canvas(LEAF).work("verification", ["answer-light", "answer-calvin"])
    written = worked.save(copy)
    assert LEAF.read_bytes() == before and not written.problems
    old, new = desk.canvas(LEAF), [i for i in written.nodes if i.startswith("wb-text-")]
    assert {i: n for i, n in written.nodes.items() if i not in new} == old.nodes and len(new) == 2
    assert "Verification" in written.nodes[new[0]]["text"] and "words found: 100%" in written.nodes[new[1]]["text"]
    edges = {(e["fromNode"], e["toNode"]): e["label"] for i, e in written.edges.items() if i not in old.edges}
    assert edges["answer-light", new[0]] == "Verification" and edges["calvin", new[1]]
    assert worked.save(copy).raw == written.raw  # the same once more
    for wrong, why in ((folder / "there.txt", "end it in .canvas"), (copy / "x.canvas", "Not a directory")):
        with pytest.raises(reading.CanvasError, match=why):
            worked.save(wrong)
    with pytest.raises(reading.CanvasError, match="is there already"):
        desk.canvas(LEAF).work("scoring").save(copy)
    odd = [node("a", "Tea\nTea is a drink."), {"id": "wb-text-7", "type": "odd", "mine": "\ud800"}, 1e3]
    worked = desk.canvas(write(folder, odd)).work("review", ["a"])
    copy = json.loads(worked.save(folder / "second.canvas").path.read_text("utf-8"))
    assert copy["nodes"][:3] == odd and [one["id"] for one in copy["nodes"][3:]] == ["wb-text-8"]
    (folder / "notes.canvas").write_text(json.dumps({"nodes": odd[:1], "mine": 7}).replace(": 7}", ": 1e400}"))
    with pytest.raises(reading.CanvasError, match="too large"):
        desk.canvas(folder / "notes.canvas").work("review", ["a"]).save(folder / "big.canvas")


def test_canvas_from_the_terminal(workspace, tmp_path):
    def run(*words):
        return CliRunner().invoke(main, ["canvas", *map(str, words), "--workspace", str(workspace)])

    assert "Calvin cycle" in run(LEAF).stdout and json.loads(run(LEAF, "--json").stdout)["problems"] == []
    copy = tmp_path / "copy.canvas"
    done = run(LEAF, "--operation", "scoring", "--nodes", "answer-light", "--write", copy)
    assert done.exit_code == 0 and "not judged" in done.stdout and "copy.canvas" in done.stderr
    assert "Scoring" in copy.read_text("utf-8")
    done = run(LEAF, "--operation", "decomposition", "--nodes", "calvin, light", "--json", "--kb", "film")
    assert [one["node"] for one in json.loads(done.stdout)["results"]] == ["calvin", "light"]
    assert run(LEAF, "--write", copy).exit_code == 2
    assert run(tmp_path / "no.canvas").exit_code == 1
