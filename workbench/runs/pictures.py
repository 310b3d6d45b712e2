"""The pictures of a run; the ``to_frame()`` of each is the table behind it."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from functools import cache
from typing import Any

from workbench.errors import KnowledgeError, RunError
from workbench.knowledge.vocabulary import GROUPING
from workbench.ports import KnowledgeBase, KnowledgeBases, Relation
from workbench.runs.recording import Recording
from workbench.views import plan_graph
from workbench.views.drawing import Drawing
from workbench.views.graph import graph as draw_graph
from workbench.views.graph import walked
from workbench.views.knowledge import MENTION, Around
from workbench.views.knowledge import knowledge as draw_knowledge
from workbench.views.labels import labels_for
from workbench.views.timeline import when

_MOST_SEEDS = 40
_MOST_EXPANDED = 8
"""Names of the answer whose neighbours are shown."""
_MOST_NEIGHBOURS = 10
"""Neighbours of one entity that are shown."""


def dag(run: Recording) -> Drawing:
    """See ``Run.dag``."""
    versions = run.plans
    if not versions:
        raise RunError(f"Run {run.run_id} has no plan to draw: it is {run.status}, and made none.")
    plans = [version["plan"] for version in versions]
    return plan_graph.dag(plans[-1], run.records, run.query, plans)


def timeline(run: Recording) -> Drawing:
    """See ``Run.timeline``."""
    return when(run.log, run.records, run.decisions, language=_language(run))


def graph(run: Recording) -> Drawing:
    """See ``Run.graph``."""
    next_nodes = [] if run.status == "done" else run._work.next_nodes(run.run_id)
    return draw_graph(
        walked(_drawable(), run.log, run.status, next_nodes), run.query, _language(run)
    )


def knowledge(run: Recording) -> Drawing:
    """See ``Run.knowledge``."""
    base = _base(run, run._workspace.knowledge)
    documents = [str(piece["source"].get("doc_id", "")) for piece in run.citations]
    documents = documents or [
        str(piece["metadata"].get("doc_id", "")) for piece in run.evidence[:8]
    ]
    neighbourhood = around(base, documents, f"{run.query}\n{run.answer}")
    return draw_knowledge(neighbourhood, _language(run))


def around(knowledge: KnowledgeBase, documents: Iterable[str], text: str) -> Around:
    """Return the entities that a text names, those of its documents, their neighbours, and the relations between them.

    Args:
        knowledge: the knowledge base.
        documents: ids of documents.
        text: the question and its answer.
    """
    mentioned = [mention["entity_id"] for mention in knowledge.link(text)]
    entity_ids = dict.fromkeys([*mentioned, *(f"doc:{doc_id}" for doc_id in documents)])
    linked = {
        entity_id: entity for entity_id in entity_ids if (entity := knowledge.entity(entity_id))
    }
    seeds = [*linked][:_MOST_SEEDS]
    ids = dict.fromkeys(seeds)
    # a genre has a thousand
    things = [seed for seed in seeds if linked[seed]["type"] not in GROUPING]
    for seed in things[:_MOST_EXPANDED]:
        ids |= dict.fromkeys(_neighbours(knowledge, seed, seeds)[:_MOST_NEIGHBOURS])
    read = map(knowledge.entity, ids)
    entities = {entity["entity_id"]: entity for entity in read if entity is not None}
    relations = {
        relation["relation_id"]: relation
        for relation in knowledge.around("relations", [*entities])
        if {relation["source"], relation["target"]} <= entities.keys()
    }
    about = knowledge.about()
    words = {f["relation"]: f["called"] for f in about["fields"]} | {
        kind: about["nouns"] for kind, *_ in about["types"]
    }
    return Around(entities, tuple(relations[key] for key in sorted(relations)), tuple(seeds), words)


def _neighbours(knowledge: KnowledgeBase, entity_id: str, seeds: Collection[str]) -> list[str]:
    """Return the ids next to an entity: neighbours of several seeds first, then well connected ones, groups last."""
    read = map(knowledge.entity, _ends(knowledge.around("relations", [entity_id])) - {entity_id})
    neighbours = {
        entity["entity_id"]: entity for entity in read if entity and entity["type"] != MENTION
    }

    def order(neighbour: str) -> tuple[int, bool, int, str]:
        relations = knowledge.around("relations", [neighbour])
        shared = (_ends(relations) - {neighbour}) & {*seeds}
        return -len(shared), neighbours[neighbour]["type"] in GROUPING, -len(relations), neighbour

    return sorted(neighbours, key=order)


def _ends(relations: Iterable[Relation]) -> set[str]:
    return {end for relation in relations for end in (relation["source"], relation["target"])}


def _base(run: Recording, bases: KnowledgeBases) -> KnowledgeBase:
    """Return the knowledge base that was asked."""
    name = run.state.get("kb_prefix", "")
    if not name:
        raise RunError(
            f"Run {run.run_id} asked no knowledge base: there is no graph around its answer."
        )
    if name not in bases.names():
        raise KnowledgeError(
            f"Run {run.run_id} asked {name!r}, which this workspace does not have (a run that was imported comes "
            f"without its corpus). Add it with `workbench kb add {name} PATH...`."
        )
    return bases.get(name)


def _language(run: Recording) -> Any:
    return labels_for(run.message).language


@cache
def _drawable() -> Any:
    """LangGraph's own drawing of the conversation graph, the graphs inside it unfolded."""
    from workbench.graphs.conversation import build_conversation

    return build_conversation().get_graph(xray=True)
