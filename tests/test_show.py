"""Runs, graphs and knowledge bases shown: as a page, as text, as a drawing."""

import json
import re
from itertools import pairwise
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import handmade
from tests.shelves import noted, opened, workbench
from tests.test_hostile import read
from workbench.errors import KnowledgeError
from workbench.graphs.conversation import build_conversation
from workbench.plans import Plan, PlanStep
from workbench.records.document import run_document
from workbench.records.timeline import bars, phases
from workbench.runs.run import _drawable
from workbench.session import Workbench
from workbench.views.drawing import width
from workbench.views.graph import graph, walked
from workbench.views.labels import Labels
from workbench.views.outline import run_html, run_text
from workbench.views.plan import query_text
from workbench.views.plan_graph import dag

STATIC_TAGS = {
    "div", "p", "strong", "code", "a", "br", "details", "summary", "table", "thead", "tbody", "tr", "th", "td",
}  # fmt: skip


def show(form, **changes):
    return form(run_document(handmade.run(**changes)))


def test_a_page_says_everything_that_was_done():
    page = show(run_html)
    said = ["对比《喜宴》和《饮食男女》的风格", "7f3a", "✓ 完成", "《喜宴》于 1993 年上映 [1]。", "The Wedding Banquet"]
    said += ["CC BY-SA 4.0", "https://en.wikipedia.org/wiki/1", "compare 2", "饮食男女 家庭 传统", "批准"]
    assert [piece for piece in said if piece not in page] == []
    assert 'lang="zh-Hans"' in page
    assert read(page).tags == STATIC_TAGS


@pytest.mark.parametrize("width", [60, 80, 120])
def test_text_keeps_to_its_width_and_chinese_counts_double(width):
    from rich.cells import cell_len

    assert max(cell_len(line) for line in show(lambda d: run_text(d, width)).splitlines()) <= width


def test_waiting_is_folded_and_charged_to_nobody():
    found = bars(handmade.log(), handmade.records(), handmade.run().decisions)
    waits = [bar for bar in found if bar.kind == "waiting"]
    assert [round(bar.duration_ms) for bar in waits] == [42_035]
    assert waits[0].end_ms - waits[0].start_ms < 200
    assert max(bar.end_ms for bar in found) < waits[0].duration_ms, "what comes later is drawn next to it"
    unanswered = bars(handmade.log(), handmade.records())
    assert [bar.kind for bar in unanswered if bar.kind in ("waiting", "stopped")] == ["stopped"]
    assert bars([], []) == []


ENTRIES = st.tuples(
    st.integers(0, 3000), st.integers(0, 400), st.sampled_from(["route", "memory", "plan", "execute", "generate", "x"])
)


@given(st.lists(ENTRIES, max_size=12), st.lists(ENTRIES, max_size=4))
def test_phases_add_up_to_the_time_of_a_run_whatever_ran_at_once(nodes: list, steps: list) -> None:
    log = [{"node": k, "node_type": k, "timestamp": handmade.at(t), "duration_ms": d} for t, d, k in nodes]
    records = [handmade.record("s", "naive_search", t, d, 0) for t, d, _ in steps]
    spans = sorted(tuple(span) for found in phases(log, records).values() for span in found)
    begins = sorted((t, t + d) for t, d, _ in nodes + steps)
    busy = {ms for begin, end in begins for ms in range(begin, end)}
    reached = begins[0][0] if begins else 0
    for begin, end in begins:
        busy |= set(range(reached, begin)) if begin - reached < 250 else set()
        reached = max(reached, end)
    assert round(sum(end - begin for begin, end in spans)) == len(busy)
    assert all(end <= begin + 1e-3 for (_, end), (begin, _) in pairwise(spans)), "none twice"


def test_where_the_time_went_is_seen_in_the_graph_and_on_the_timeline(wb):
    run = wb.ask("Compare The Wedding Banquet and Eat Drink Man Woman", kb="film", review="reflect")
    run.approve()
    fork = run.fork(thresholds={"min_evidence": 1}, mismatch="rules", rest="rules")
    frame = run.graph().to_frame().dropna(subset="share")
    slowest = frame.loc[frame.duration_ms.idxmax()]
    phases = run.to_dict()["figures"]["phases"]
    longest = max(phases, key=lambda phase: phases[phase])
    names = Labels("en").get(f"node_{slowest['name']}", slowest["name"]), Labels("en")(f"phase_{longest}")
    bars = run.timeline().to_frame()
    inner = bars[bars.kind.isin(("node", "step")) & ~bars.name.isin(bars[bars.kind == "step"].inside)]
    longer = inner.loc[inner.duration_ms.idxmax()]
    asked = {record["step_id"]: query_text(record["raw_input"]) for record in run.to_dict()["records"]}
    named = asked.get(longer.step_id) or Labels("en").get(f"node_{longer['name']}", longer["name"])
    assert any(text.startswith(f"Slowest: {named} · ") for text in words(run.timeline()))
    for picture, name in zip((run.graph(), run.timeline()), names, strict=True):
        assert {"< 5%", "> 50%"} <= {*words(picture)}
        bars = [text for text in words(picture) if name in text and re.search(r"\d m?s\b", text)]
        assert bars, "the title of a bar says its node and its time"
    shares = [float(text[:-1]) for text in re.findall(r"· (\d+%)</text>", run.timeline().markup)]
    assert len(shares) <= len(phases) and sum(shares) == pytest.approx(100, abs=len(phases)), "of phases alone"
    executed = fork.timeline().to_frame()
    taped = executed[(executed.kind == "step") & executed.replayed]
    assert len(taped) == len(run.records)
    assert taped.end_ms.max() <= executed[executed.kind == "node"].end_ms.max(), "no time of the other run is charged"
    shown = str(fork.timeline().markup)
    assert shown.count("· recorded") >= len(taped) and 'stroke-dasharray="2 3"' in shown and "From the tape" in shown


def test_a_base_is_a_page_text_and_json_in_both_languages(tmp_path, monkeypatch):
    folder = noted(tmp_path / "w", {"Tea": "Ann Tea was a farmer.", "<b>": "<script>alert(1)</script>"})
    for lang, words in (("zh", "文档"), ("en", "documents")):
        with opened(folder) as wb:
            monkeypatch.setattr("workbench.views.labels._spoken", lang)
            found = wb.inspect_knowledge("notes")
            assert words in found._repr_html_() and words in str(found) and "<script" not in found._repr_html_()
    assert "documents" in workbench(folder, "kb", "inspect", "notes").stdout
    told = json.loads(workbench(folder, "kb", "inspect", "notes", "--json").stdout)
    assert told["counts"]["documents"] == 2


def words(drawing):
    return [part for part in ElementTree.fromstring(drawing.svg).itertext() if part]


def drawn(drawing, tag, **attributes):
    found = ElementTree.fromstring(drawing.svg).iter(f"{{http://www.w3.org/2000/svg}}{tag}")
    return [one for one in found if all(one.get(key) == value for key, value in attributes.items())]


GRAPH = build_conversation().get_graph(xray=True)


def test_the_graph_is_the_one_that_runs():
    """Every node and every edge of LangGraph's own, but for the beginnings and ends of the graphs inside."""
    found = walked(GRAPH)
    names = {node["name"] for node in found.nodes}
    assert names == {node.name for node in GRAPH.nodes.values()}
    assert {node["graph"] for node in found.nodes} == {"", "route", "retrieval", "reporter"}
    inner, every = ("__start__", "__end__"), {(edge.source, edge.target) for edge in GRAPH.edges}
    kept = {edge for edge in every if not any(":" in i and i.endswith(inner) for i in edge)}
    ways = {(edge["source"], edge["target"]) for edge in found.edges}
    entered = {("prepare_retrieval", "retrieval:planner"), ("review_clarify", "retrieval:planner")}
    assert kept <= ways and ways - kept == entered
    boxes = drawn(graph(found, ""), "g", role="img")
    assert len({box.get("transform") for box in boxes}) == len(found.nodes)


def test_a_plan_of_many_steps_keeps_its_words_in_boxes():
    about = {"objective": "What is known of moss and of tea " * 3, "tool": "t"}
    before = [[f"step_{n - 10}"] if n > 9 else [] for n in range(200)]
    wide = [PlanStep(step_id=f"step_{n}", depends_on=ids, **about) for n, ids in enumerate(before)]
    for count in (6, 200):
        drawing = dag(Plan(steps=wide[:count], problem_statement="Moss"))
        boxes = drawn(drawing, "rect", rx="3")
        assert len(boxes) == count and len({box.get("width") for box in boxes}) == 1
        inside = float(boxes[0].get("width")) - 20
        texts = [
            text for box in drawn(drawing, "g", role="img") for text in box.iter("{http://www.w3.org/2000/svg}text")
        ]
        assert len(texts) == 2 * count and all(width(text.text, 12) <= inside for text in texts)


def test_a_run_draws_itself(wb):
    run = wb.ask("Compare The Wedding Banquet and Eat Drink Man Woman", kb="film", review="reflect")
    frame = run.graph().to_frame()
    assert list(frame[frame.status == "paused"].name) == ["review_reflect"]
    run.approve()
    assert run.status == "done"
    frame = run.graph().to_frame()
    asked = frame[frame.name.isin(["review_plan", "review_reflect"])]
    assert dict(zip(asked.name, asked.status, strict=True)) == {"review_plan": "pending", "review_reflect": "done"}
    path = frame[(frame.kind == "edge") & (frame.source == "retrieval:planner") & (frame.status == "done")]
    assert list(path.target) == ["retrieval:dispatcher"], "the way goes past who was not asked"
    executor = frame[frame.name == "executor"].iloc[0]
    assert executor.times == len(run.records) and not set(frame.status) - {"done", "pending"}
    near = run.knowledge()
    named = {"Ang Lee", "Yu-wen Wang", "Sihung Lung", "Comedy", "1993"}
    assert named <= {*words(near)} and "Taiwan" not in run.answer, "the answer says its values"
    around = {*words(run.knowledge(nearby=True))}
    assert named | {"Taiwan", "Pushing Hands"} <= around and not {"Taiwan", "Pushing Hands"} & {*words(near)}
    assert {"检索", "审阅反思"} <= {*words(graph(walked(_drawable(), run.log, "done"), "", "zh"))}, "no name is cut"


def test_a_run_without_its_corpus_says_so(workspace):
    with Workbench.open(workspace) as wb:
        run_id = wb.ask("喜宴哪一年上映？", kb="film").run_id
    (workspace / "knowledge" / "film").unlink()
    with Workbench.open(workspace) as wb, pytest.raises(KnowledgeError, match="without its corpus"):
        wb.run(run_id).knowledge()
