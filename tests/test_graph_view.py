"""What stands around an answer in the graph is read from the index; the graph is not built for it."""

from __future__ import annotations

from workbench.knowledge.graph import graph
from workbench.runs.pictures import around


def test_what_is_around_an_answer_is_read_from_the_index(wb, monkeypatch):
    film = wb.knowledge.get("film")
    monkeypatch.setattr(graph, "build", None)
    assert around(film, ["mv21858"], "Who directed Brewster McCloud?").relations
