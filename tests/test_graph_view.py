"""Beyond 10^5 nodes the graph is a view over the index: the same to whoever reads it, and nothing is loaded."""

from __future__ import annotations

import tracemalloc

import networkx
import pytest

from workbench.knowledge.graph import graph, view
from workbench.knowledge.graph.view import HELD, graph_view
from workbench.views.neighbourhood import around, seeds_of, way


@pytest.fixture
def film(wb):
    return wb.knowledge.get("film")


@pytest.fixture
def large(film, monkeypatch):
    """The films, as if they were many."""
    monkeypatch.setattr(view, "MOST_NODES", 10)
    return film


def test_it_is_what_networkx_would_hold(film):
    seen, held = graph_view(film._index), film.graph()
    assert isinstance(seen, networkx.MultiDiGraph)
    assert (len(seen), seen.number_of_edges()) == (len(held), held.number_of_edges())
    assert list(seen) == list(held)
    for one in list(held)[::97]:
        assert seen.nodes[one] == held.nodes[one]
        assert dict(seen.succ[one]) == dict(held.succ[one])
        assert set(seen.predecessors(one)) == set(held.predecessors(one))
        assert (seen.degree(one), seen.in_degree(one)) == (held.degree(one), held.in_degree(one))
    assert sorted(seen.subgraph(list(held)[:50]).edges(keys=True)) == sorted(
        held.subgraph(list(held)[:50]).edges(keys=True)
    )
    one, *_, other = networkx.descendants(held, "person:robert altman") | networkx.ancestors(held, "doc:mv21858")
    assert seen.has_edge(one, other) == held.has_edge(one, other)


def test_who_is_not_there(film):
    seen = graph_view(film._index)
    assert "nobody" not in seen and 7 not in seen
    for look in (lambda: seen.nodes["nobody"], lambda: seen.adj["nobody"]):
        with pytest.raises(KeyError):
            look()
    with pytest.raises(networkx.NetworkXError):
        seen.add_node("nobody")


def test_a_copy_can_be_changed(film):
    copied = graph_view(film._index).copy()
    copied.add_node("somebody")
    assert len(copied) == len(film.graph()) + 1 and type(copied) is networkx.MultiDiGraph


def test_what_is_around_an_answer_is_the_same_and_nothing_is_built(film, large, monkeypatch):
    held = graph.build(view.entities(film._index), view.relations(film._index))
    monkeypatch.setattr(graph, "build", None)
    seeds = seeds_of(large, ["mv21858"], "Who directed Brewster McCloud?")
    tracemalloc.start()
    found = around(large, seeds)
    path = way(large, "doc:mv21858", "doc:mv21954")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found.relations and len(large.graph()) == len(held)
    assert path[0] == "doc:mv21858" and path[-1] == "doc:mv21954"
    assert len(path) == networkx.shortest_path_length(held.to_undirected(), "doc:mv21858", "doc:mv21954") + 1
    assert peak < 20 * 2**20


def test_few_rows_are_held(film, monkeypatch):
    monkeypatch.setattr("workbench.knowledge.graph.view.HELD", 5)
    seen = graph_view(film._index)
    for one in list(seen)[:50]:
        seen.nodes[one]
    assert len(seen._node._held) <= 5 < HELD
