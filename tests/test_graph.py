"""The graph in memory and its communities."""

from __future__ import annotations

import json
import os
import subprocess
import sys

from tests.shelf import VOCABULARY, extracted
from workbench.knowledge import vocabulary
from workbench.knowledge.graph import graph
from workbench.knowledge.names.entities import Source

CIRCLES = {"Lee": ["A1", "A2", "A3"], "Nolan": ["B1", "B2", "B3", "B4"], "Burton": ["C1", "C2"]}


def circles():
    """Three directors with their casts, all in one genre."""
    return [
        Source(
            title,
            f"Film {title}",
            "Film",
            {"directors": [f"Ann {name}"], "cast": [f"Actor {name}", f"Star {name}"], "genres": ["Drama"]},
            [],
            {},
            [(f"{title}#0", f"Film {title} is by Ann {name}. More of it.", [])],
        )
        for name, titles in CIRCLES.items()
        for title in titles
    ]


def groups(sources):
    found = extracted(sources, vocabulary.load(VOCABULARY))
    leads = {s.doc_id: s.passages[0][1].split(". ")[0] + "." for s in sources}
    links = [(r["source"], r["type"], r["target"]) for r in found.relations]
    return graph.communities({e["entity_id"]: e for e in found.entities}, links, found.categories, leads)


def test_communities_are_the_circles_largest_first():
    found = groups(circles())
    assert [sorted(c["doc_ids"]) for c in found] == [CIRCLES["Nolan"], CIRCLES["Lee"], CIRCLES["Burton"]]
    assert [c["community_id"] for c in found] == ["community:0000", "community:0001", "community:0002"]
    assert found[0]["title"].endswith(" Nolan · Film B1 · Film B2")
    assert found[0]["summary"].startswith("Film B1 is by Ann Nolan. Film B2")
    assert set(found[1]["members"]) >= {"person:ann lee", "person:star lee", "doc:A1"}


def test_nothing_makes_no_community():
    assert groups([]) == []


def test_the_graph_for_networkx():
    found = extracted(circles(), vocabulary.load(VOCABULARY))
    made = graph.build(found.entities, found.relations)
    assert made.number_of_nodes() == len(found.entities)
    assert made.number_of_edges() == len(found.relations)
    assert made.nodes["person:ann lee"]["type"] == "Person"
    assert made.edges["doc:A1", "person:ann lee", "doc:A1|directed_by|person:ann lee"]["type"] == "directed_by"


def test_communities_are_the_same_under_another_hash_seed(project):
    code = (
        "import json, sys; sys.path.insert(0, 'tests'); "
        "from test_graph import circles, groups; sys.stdout.write(json.dumps(groups(circles() * 1)))"
    )
    told = []
    for seed in ("0", "12345"):
        env = {**os.environ, "PYTHONHASHSEED": seed}
        done = subprocess.run([sys.executable, "-c", code], cwd=project, env=env, capture_output=True, check=True)
        told.append(json.loads(done.stdout))
    assert told[0] == told[1] == groups(circles())
