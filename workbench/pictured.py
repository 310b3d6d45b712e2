"""The pictures of a run: plotly figures that carry their data, drawn from what the workspace keeps."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import TYPE_CHECKING, Any

from workbench.errors import KnowledgeError, RunError, shown
from workbench.labels import labels_for

if TYPE_CHECKING:
    from workbench.around import Around
    from workbench.figures.findings import By
    from workbench.figures.picture import Picture


class Pictured:
    """What a run shows of itself. Each is a plotly figure; its ``to_frame()`` is the table behind it."""

    def dag(self: Any) -> Picture:
        """The plan: steps, dependencies, status, critical path, and what later versions added or changed.

        Raises:
            RunError: there is no plan.
        """
        from workbench.figures import dag

        versions = self.plans
        if not versions:
            raise RunError(f"Run {self.run_id} has no plan to draw: it is {self.status}, and made none.")
        return dag(versions[-1], self.records, title=self.query, versions=versions, running=self._steps_at_work())

    def timeline(self: Any) -> Picture:
        """What ran when: graph, steps, and what happened inside the tools; waiting and what is recorded are marked."""
        from workbench.figures import timeline

        return timeline(self.log, self.records, self.decisions, language=labels_for(self.message).language)

    def graph(self: Any) -> Picture:
        """The conversation graph with the graphs inside it unfolded: where the run is, where it was, how often."""
        from workbench.figures import graph
        from workbench.walked import walked

        found = walked(_drawable(), self.log, self.status, self._standing_at())
        return graph(found, self.query, labels_for(self.message).language)

    def findings(self: Any, by: By = "step") -> Picture:
        """Everything that was found, by its score: cited, in the prompt, or dropped and why.

        Args:
            by: a lane for each ``step``, or for each ``document``.
        """
        from workbench.figures import findings

        cut = sum(record["output_summary"].get("cut", 0) for record in self.records)
        return findings(self.pieces, self.query, by, cut, labels_for(self.message).language)

    def knowledge(self: Any, path: tuple[str, str] | None = None, expand: Iterable[str] = ()) -> Picture:
        """The knowledge graph around the answer: what it names and cites, and what relates to that.

        Args:
            path: two entities, by name or alias in any language: a shortest way between them is shown too.
            expand: further entities whose neighbours are shown.

        Raises:
            KnowledgeError: there is no such entity, or no way; the knowledge base is not here.
            RunError: no knowledge base was asked.
        """
        from workbench.figures import knowledge

        return knowledge(self.around(path, expand), self.query, labels_for(self.message).language)

    def around(self: Any, path: tuple[str, str] | None = None, expand: Iterable[str] = ()) -> Around:
        """The data of ``knowledge``.

        Raises:
            KnowledgeError: there is no such entity, or no way; the knowledge base is not here.
            RunError: no knowledge base was asked.
        """
        from workbench.around import around, seeds_of, way, with_outside

        base, outside = self._base(), self.merged.get("enrichment")
        documents = [str(one["source"].get("doc_id", "")) for one in self.citations]
        documents = documents or [str(one["metadata"].get("doc_id", "")) for one in self.evidence[:8]]
        seeds = seeds_of(base, documents, f"{self.query}\n{self.answer}")
        opened = [*seeds, *(_entity(base, name) for name in expand)]
        if path is None:
            return with_outside(around(base, seeds, opened), outside)
        found = way(base, *(_entity(base, name) for name in path))
        if not found:
            raise KnowledgeError(f"No relations of {base.name!r} lead from {shown(path[0])} to {shown(path[1])}.")
        return with_outside(around(base, seeds, opened, found), outside)

    def _base(self: Any) -> Any:
        """The knowledge base that was asked."""
        name = self.kb_prefix
        if not name:
            raise RunError(f"Run {self.run_id} asked no knowledge base: there is no graph around its answer.")
        if name not in self.workspace.knowledge.names():
            raise KnowledgeError(
                f"Run {self.run_id} asked {name!r}, which this workspace does not have (a run that was imported comes "
                f"without its corpus). Add it with `workbench kb add {name} PATH...`."
            )
        return self.workspace.knowledge.get(name)

    def _standing_at(self: Any) -> list[str]:
        """Where the run stands, as LangGraph says: the next nodes of the innermost graph that has some."""
        if self.status == "done":
            return []
        last: dict[str, Any] = {one.graph: one for one in self.checkpoints()}
        newest = sorted((one for one in last.values() if one.next), key=lambda one: one.at)
        outer = "" if not newest or newest[-1].graph == "conversation" else f"{newest[-1].graph}:"
        return [f"{outer}{node}" for node in newest[-1].next] if newest else []

    def _steps_at_work(self: Any) -> list[str]:
        """The steps of the wave that runs now and have not ended."""
        if self.status != "running":
            return []
        ended = {(record["step_id"], record["iteration"]) for record in self.records}
        values = self._values()
        wave = [step["step_id"] for step in values.get("wave", [])]
        return [step_id for step_id in wave if (step_id, values.get("iteration")) not in ended]


def _entity(base: Any, name: str) -> str:
    """The id of the entity of that name, alias or id."""
    found = base.find_entity(name) or base.entity(name)
    if found is None:
        raise KnowledgeError(
            f"{base.name!r} has no entity {shown(name)}. Give one as the documents write it, in any language."
        )
    return str(found["entity_id"])


@cache
def _drawable() -> Any:
    """LangGraph's own drawing of the conversation graph, the graphs inside it unfolded."""
    from workbench.conversation import build_conversation

    return build_conversation().get_graph(xray=True)
