"""What stands around an answer in the graph is read from the index; the graph is not built for it."""

from __future__ import annotations

import networkx

from workbench.knowledge.graph import graph
from workbench.views.knowledge import around, seed_entities, way


def test_what_is_around_an_answer_is_read_from_the_index(wb, monkeypatch):
    film = wb.knowledge.get("film")
    whole = film.graph().to_undirected()
    monkeypatch.setattr(graph, "build", None)
    assert around(film, seed_entities(film, ["mv21858"], "Who directed Brewster McCloud?")).relations
    path = way(film, "doc:mv21858", "doc:mv21954")
    assert path[0] == "doc:mv21858" and path[-1] == "doc:mv21954"
    assert len(path) == networkx.shortest_path_length(whole, "doc:mv21858", "doc:mv21954") + 1
    assert way(film, "doc:mv21858", "nobody") == []
