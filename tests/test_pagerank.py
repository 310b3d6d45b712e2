"""Personalised PageRank: against networkx on any graph, kept beside the index through kills, and as a tool."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import networkx
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.sparse import coo_array

from tests.shelf import small_base
from workbench.knowledge.indexes import pagerank as ranks_module
from workbench.knowledge.indexes import pagerank as walks
from workbench.knowledge.indexes.pagerank import FILE, LONGEST_WAY, Ranks, Spread, keep, kept, made, pagerank
from workbench.knowledge.library import Library
from workbench.settings import Settings
from workbench.testing import MemoryKnowledge
from workbench.tools.pagerank import TOOL, Input, search
from workbench.tools.tool import StepLog

ENGLISH = [
    ("film", "Lanterns at Dusk", "Lanterns at Dusk is a 1961 drama directed by Mara Velden."),
    ("woman", "Mara Velden", "Mara Velden, born in Osterby, was a director. Her husband was Jonas Hale."),
    ("man", "Jonas Hale", "Jonas Hale was a painter who studied at the Royal Academy of Tarn."),
    ("school", "Tarn Guild", "The guild was a rival of the Royal Academy of Tarn and taught carving."),
    *((f"noise{n}", f"Ledger {n}", f"A ledger of accounts number {n} was kept in the office.") for n in range(12)),
]
CHINESE = [
    ("film", "夜航灯", "《夜航灯》是一部剧情片，由林若川执导。"),
    ("man", "林若川", "林若川，导演，1950年出生于临溪镇，妻子是画家苏晚晴。"),
    ("wife", "苏晚晴", "苏晚晴是一位画家，毕业于云泽美术学院。"),
    *((f"noise{n}", f"账册{n}号", f"这是办公室里的第{n}本账册，记录了收支。") for n in range(12)),
]


# --- the walk ---

NODES = st.integers(0, 7)
LINKS = st.lists(st.tuples(NODES, NODES, st.sampled_from([0.5, 1.0, 2.0, 7.25])), max_size=30)
BEGINS = st.lists(st.sampled_from([0.0, 0.0, 0.25, 1.0, 3.0]), min_size=8, max_size=8)


@settings(max_examples=200, deadline=None)
@given(links=LINKS, begins=BEGINS, damping=st.sampled_from([0.15, 0.5, 0.85, 0.97]))
def test_equal_to_networkx_with_ends_loops_parallel_links_and_no_beginning(links, begins, damping):
    graph = networkx.MultiDiGraph()
    graph.add_nodes_from(range(8))
    graph.add_weighted_edges_from(links)
    given_begins = dict(enumerate(begins)) if any(begins) else None
    wanted = networkx.pagerank(graph, alpha=damping, personalization=given_begins, tol=1e-13, max_iter=10_000)
    found = pagerank(matrix(links, 8), np.array(begins), damping)
    assert np.abs(found - np.array([wanted[n] for n in range(8)])).max() < 1e-6
    assert abs(found.sum() - 1) < 1e-12 and found.min() >= 0


def matrix(links, size):
    rows, columns, weights = zip(*links, strict=True) if links else ((), (), ())
    return coo_array((np.array(weights, float), (np.array(rows, int), np.array(columns, int))), (size, size)).tocsr()


def test_a_walk_over_nothing_is_found_nowhere():
    assert pagerank(matrix([], 0), np.zeros(0)).tolist() == []
    assert pagerank(matrix([], 2), np.array([0.0, 3.0])).tolist() == [0.0, 1.0]


HELD = st.lists(st.lists(st.integers(0, 5), min_size=1, max_size=4, unique=True), max_size=7)


@settings(max_examples=100, deadline=None)
@given(held=HELD, begins=st.dictionaries(st.integers(0, 5), st.sampled_from([0.5, 1.0]), max_size=3))
def test_passages_are_ranked_as_networkx_ranks_them_and_ways_are_ways_of_the_graph(held, begins):
    names = {f"name {n}": sorted(passages) for n, passages in enumerate(held)}
    found = spread(names, begins)
    graph = networkx.Graph()
    graph.add_nodes_from(range(6))
    for name, passages in names.items():
        graph.add_weighted_edges_from((name, p, np.log1p(6 / len(passages))) for p in passages)
    if not begins:
        assert found == []
        return
    wanted = networkx.pagerank(graph, alpha=0.5, personalization=begins, tol=1e-13, max_iter=10_000)
    for one in found:
        assert abs(one["probability"] - wanted[int(one["chunk_id"])]) < 1e-6
        stops = [int(i) if kind == "passage" else i for kind, i in one["way"]]
        assert all(graph.has_edge(*pair) for pair in pairwise(stops))
        assert len(set(stops)) == len(stops) <= 2 * LONGEST_WAY + 1
        assert not stops or stops[-1] == int(one["chunk_id"])
        falling = [wanted[stop] for stop in stops if isinstance(stop, int)]
        assert falling == sorted(falling, reverse=True)
    reached = [p for p in range(6) if wanted[p] > 1e-11]
    assert sorted(int(one["chunk_id"]) for one in found) == reached
    assert [one["probability"] for one in found] == sorted((one["probability"] for one in found), reverse=True)
    assert spread(names, begins, most=2) == found[:2]


def spread(names, begins, most=6):
    ranks = Ranks.of(made(range(6), sorted(names.items())))
    return ranks.reached(begins, {}, 0.5, most, lambda numbers: {n: str(n) for n in numbers})


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(held=HELD, begins=st.dictionaries(st.integers(0, 5), st.sampled_from([0.5, 1.0]), min_size=1, max_size=3))
def test_a_large_graph_is_walked_around_the_beginnings(monkeypatch, held, begins):
    names = {f"name {n}": sorted(passages) for n, passages in enumerate(held)}
    whole = spread(names, begins)
    with monkeypatch.context() as changed:
        changed.setattr(walks, "LARGE", -1)
        changed.setattr(walks, "ROUNDS", 20)
        assert spread(names, begins) == whole
        changed.setattr(walks, "ROUNDS", 1)
        near = {one["chunk_id"] for one in spread(names, begins)}
        assert near <= {one["chunk_id"] for one in whole} and near >= {str(node) for node in begins}
        changed.setattr(walks, "ROOM", 0)
        assert {one["chunk_id"] for one in spread(names, begins)} == {str(node) for node in begins}


def test_of_a_large_graph_the_rare_names_are_followed(monkeypatch):
    monkeypatch.setattr(walks, "LARGE", 0)
    monkeypatch.setattr(walks, "ROOM", 10)
    links = Ranks.of(made(range(200), [("common", range(100)), ("rare", [0, 150])])).links
    found = Spread.of(links, 200, {0: 1.0}, 0.5)
    assert found is not None and found.nodes.tolist() == [0, 150, 201]
    assert list(found.best(200, 5)) == [0, 150] and found.way(150) == [0, 201, 150] and found.way(7) == []


def test_a_name_is_found_by_its_bytes_and_an_unknown_one_is_not():
    labels = sorted(["", "a", "ab", "b", "中", "中文", "\x00phrase"], key=str.encode)
    ranks = Ranks.of(made([4, 9], [(label, [4]) for label in labels]))
    assert [ranks.name(label) for label in labels] == list(range(2, 9))
    assert ranks.name("aa") == ranks.name("zz") == -1
    assert [ranks.passage(n) for n in (3, 4, 9, 10)] == [-1, 0, 1, -1]


# --- kept beside the index ---


def walked(folder: Path):
    library = Library(folder / "knowledge", Settings.load(embedding_model="hashing", names="rules"))
    try:
        return library.get("base").spread({"film#0": 1.0}, {"doc:film": 1.0}, 0.5, 10)
    finally:
        library.close()


@pytest.fixture
def counted(monkeypatch):
    calls = []
    real = ranks_module.made
    monkeypatch.setattr(ranks_module, "made", lambda *given: calls.append(1) or real(*given))
    return calls


def test_arrays_are_made_once_for_a_content_and_anew_for_another(tmp_path, counted):
    small_base(tmp_path, ENGLISH).close()
    first = walked(tmp_path)
    assert {one["chunk_id"] for one in first} >= {"film#0", "woman#0", "man#0", "school#0"}
    assert walked(tmp_path) == first and len(counted) == 1
    small_base(tmp_path, [d for d in ENGLISH if d[0] != "woman"]).close()
    assert {one["chunk_id"] for one in walked(tmp_path)} == {"film#0"} and len(counted) == 2


def test_what_a_kill_or_a_bad_disk_leaves_is_made_anew(tmp_path, counted):
    small_base(tmp_path, ENGLISH).close()
    first, file = walked(tmp_path), tmp_path / "knowledge" / "base" / FILE
    whole = file.read_bytes()
    for damaged in (b"", whole[: len(whole) // 2], whole[:-9] + b"\x7f" + whole[-8:], b"{}" + whole, b"\xff" * 300):
        file.write_bytes(damaged)
        assert walked(tmp_path) == first
        assert file.read_bytes() == whole
    assert len(counted) == 6
    (file.parent / f".{FILE}.0a1b2c3d").write_bytes(whole[:50])  # a writer was killed
    assert walked(tmp_path) == first and len(counted) == 6


def test_where_nothing_can_be_kept_it_is_made_for_the_process_and_said(tmp_path, counted, caplog):
    small_base(tmp_path, ENGLISH).close()
    file = tmp_path / "knowledge" / "base" / FILE
    file.mkdir()  # cannot be replaced by a file
    first = walked(tmp_path)
    assert first and walked(tmp_path) == first and len(counted) == 2
    assert "cannot be kept" in caplog.text and str(file) in caplog.text
    assert not list(file.parent.glob(f".{FILE}*"))


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(sizes=st.lists(st.integers(0, 9), max_size=4), content=st.text(max_size=9))
def test_arrays_come_back_as_they_were(tmp_path, sizes, content):
    arrays = {str(n): np.arange(size, dtype=kind) for n, size in enumerate(sizes) for kind in ("i4", "f8")}
    assert keep(tmp_path / "x", content, arrays)
    back = kept(tmp_path / "x", content)
    assert back is not None and kept(tmp_path / "x", f"{content}+") is None
    assert {n: (a.dtype, a.tolist()) for n, a in back.items()} == {n: (a.dtype, a.tolist()) for n, a in arrays.items()}


# --- the tool ---


@pytest.fixture(scope="module")
def english(tmp_path_factory):
    library = small_base(tmp_path_factory.mktemp("english"), ENGLISH)
    yield library.get("base")
    library.close()


@pytest.fixture(scope="module")
def chinese(tmp_path_factory):
    library = small_base(tmp_path_factory.mktemp("chinese"), CHINESE)
    yield library.get("base")
    library.close()


def asked(knowledge, query, **more):
    log = StepLog()
    return search(Input(query=query, **more), knowledge, log), log


def documents(output):
    return list(dict.fromkeys(r["metadata"]["doc_id"] for r in output.results))


def test_a_walk_leads_over_names_to_what_the_question_does_not_name(english):
    output, log = asked(english, "Where did the husband of the director of Lanterns at Dusk study?")
    assert set(documents(output)[:3]) == {"film", "woman", "man"}
    man = next(r for r in output.results if r["metadata"]["doc_id"] == "man")
    last = man["metadata"]["chain"]["steps"][-1]
    assert (last["from"], last["to"], last["by"]) == ("woman#0", "man#0", "title")
    assert "Mara Velden names Jonas Hale (“Her husband was Jonas Hale.”)" in man["metadata"]["chain"]["says"]
    assert man["metadata"]["chain"]["says"] in output.paths
    assert [step["name"] for step in log.sub_steps] == ["link", "seeds", "walk", "choose", "calibrate"]
    assert log.sub_steps[2]["detail"]["reached"] >= 4
    assert output.entities == ["Lanterns at Dusk"] and "Jonas Hale" in output.candidates


def test_a_walk_in_chinese(chinese):
    output, _ = asked(chinese, "《夜航灯》的导演的妻子毕业于哪所学院？")
    assert set(documents(output)[:3]) == {"film", "man", "wife"}
    wife = next(r for r in output.results if r["metadata"]["doc_id"] == "wife")
    assert "林若川提到苏晚晴（“" in wife["metadata"]["chain"]["says"]


def test_scores_are_probabilities_that_fall_and_the_same_bytes_come_twice(english):
    output, _ = asked(english, "Where did the husband of the director of Lanterns at Dusk study?")
    scores = [r["score"] for r in output.results]
    assert all(0 <= score <= 1 for score in scores) and scores == sorted(scores, reverse=True)
    assert [r["metadata"]["rank"] for r in output.results] == list(range(1, len(scores) + 1))
    again, _ = asked(english, "Where did the husband of the director of Lanterns at Dusk study?")
    assert again.model_dump_json() == output.model_dump_json()


def test_further_names_and_the_damping_change_the_walk(english):
    far, _ = asked(english, "Who kept accounts?", entities=["Jonas Hale"])
    plain, _ = asked(english, "Who kept accounts?")
    assert far.entities == ["Jonas Hale"] and plain.entities == []
    assert rank_of("man", far) > rank_of("man", plain)
    near, _ = asked(english, "Lanterns at Dusk", damping=0.05)
    wide, _ = asked(english, "Lanterns at Dusk", damping=0.9)
    assert rank_of("man", wide) > rank_of("man", near)


def rank_of(doc_id, output):
    return next(r for r in output.results if r["metadata"]["doc_id"] == doc_id)["metadata"]["signals"]["rank"]


def test_nothing_asked_finds_nothing_wrong(english):
    output, _ = asked(english, "?")
    assert all(0 <= r["score"] <= 1 for r in output.results)


def test_the_twin_in_memory_walks_too():
    texts = {"Arvel": "Arvel met Borun.", "Borun": "Borun knew Cestra.", "Cestra": "A river.", "Other": "Nothing."}
    knowledge = MemoryKnowledge("m", texts)
    found = knowledge.spread({"Arvel#0": 1.0}, {}, 0.5, 10)
    assert [one["chunk_id"] for one in found] == ["Arvel#0", "Borun#0", "Cestra#0"]
    assert found[1]["way"] == [("passage", "Arvel#0"), ("entity", "Borun"), ("passage", "Borun#0")]
    output, _ = asked(knowledge, "Who met Arvel?")
    assert documents(output)[0] == "Arvel"


def test_the_tool_says_what_it_is():
    assert TOOL.parallel and TOOL.name == "pagerank" and "hops" in TOOL.description
