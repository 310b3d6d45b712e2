"""``enrichment``: what a source outside the corpus says of a name that the corpus lacks, or lacks a field of.

Its evidence is marked ``transient`` and names its page; it is a run's own, and no knowledge base ever keeps it. Without
a source, a key or a network there is a note instead.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple, TypedDict

from pydantic import Field

from workbench.language.names import names_in
from workbench.ports import Context, Entity, KnowledgeBase, Passage, Relation, ToolLog
from workbench.records.tape import Tape
from workbench.state import (
    Data,
    Enrichment,
    ExecutionRecord,
    Json,
    RetrievalResult,
    RetrievalState,
    unique,
    without_empty,
)
from workbench.text import CJK, detect_language, own_table
from workbench.tools import evidence
from workbench.tools.scoring import Question
from workbench.tools.tool import FunctionTool, Search, StepLog, ToolOutput


class Enriched(TypedDict):
    """The reply of an external source: evidence and a piece of graph, for one run and never stored in a base.

    ``notes`` say why there is less than was asked for; ``asked`` counts its answers.
    """

    passages: list[Passage]
    entities: list[Entity]
    relations: list[Relation]
    notes: list[str]
    asked: int


class Wanted(NamedTuple):
    """A name to ask a source outside for: how else it is written, and the years that it may be of."""

    name: str
    also: tuple[str, ...] = ()
    years: tuple[int, ...] = ()


_YEAR = re.compile(r"(?<!\d)(?:1[89]|20)\d\d(?!\d)")


@cache
def texts() -> Json:
    """Return the words of ``tmdb.toml``, read when they are first used."""
    return own_table(__file__, "tmdb")


def note(what: str, language: str, **names: str) -> str:
    """Return a note in a language.

    >>> note("no name", "en", source="TMDB"), note("no name", "zh", source="TMDB")
    ('The question names nothing to ask TMDB for.', '问题里没有可以向 TMDB 查询的名称。')
    """
    return texts()["notes"][what][language == "zh"].format(**names)


class EnrichmentInput(Search):
    """The input of ``enrichment``."""

    names: list[str] = Field(default_factory=list)
    """Names to ask for; empty: those in the query"""


class EnrichmentOutput(ToolOutput):
    """The output of ``enrichment``: ``subgraph`` has ``entities`` and ``relations``, ``notes`` say what went wrong."""

    notes: list[str] = Field(default_factory=list)
    """Why there is less than was asked for"""
    subgraph: dict[str, list[Any]] = Field(default_factory=dict)
    """Entities and relations, of this run only"""


async def search(
    tool_input: EnrichmentInput, knowledge: KnowledgeBase, log: ToolLog
) -> EnrichmentOutput:
    """Ask the source of this base for the names, and judge what it says by the words of the query."""
    query = tool_input.query
    language = detect_language(query)
    enricher = knowledge.enricher
    if enricher is None:
        with log("ask") as detail:
            detail["notes"] = [note("no source", language, kb=knowledge.name)]
        return EnrichmentOutput(notes=detail["notes"])
    with log("names") as detail:
        wanted = await asyncio.to_thread(_wanted, query, tool_input.names, knowledge)
        detail["names"] = [name.name for name in wanted]
    with log("ask", source=enricher.name) as detail:
        reply = await enricher(wanted, language)
        notes = reply["notes"] if wanted else [note("no name", language, source=enricher.name)]
        detail |= {"answers": reply["asked"], **without_empty({"notes": notes})}
    with log("judge") as detail:
        results_found = await asyncio.to_thread(_judged, query, reply, knowledge, enricher.name)
        detail["hits"] = len(results_found)
    results = evidence.ranked(results_found, tool_input.top_k)
    entities = [{**entity, "transient": True} for entity in reply["entities"]]
    subgraph = {"entities": entities, "relations": list(reply["relations"])}
    return EnrichmentOutput(
        results=results,
        entities=[entity["name"] for entity in entities],
        candidates=evidence.titles(results),
        notes=notes,
        subgraph=subgraph,
    )


def _wanted(query: str, names: Sequence[str], knowledge: KnowledgeBase) -> list[Wanted]:
    """Each name as the language of the query writes it, with the years in the query and of the document about it."""
    names_asked = unique(names) or [mention["name"] for mention in names_in(query, [knowledge])]
    years_in_query = list(map(int, _YEAR.findall(query)))
    chinese = detect_language(query) == "zh"
    wanted = []
    for name in filter(str.strip, names_asked):
        entity = knowledge.entity(name)
        spellings = [entity["name"], *entity["aliases"]] if entity else [name]
        own = next((n for n in [name, *spellings] if bool(CJK.search(n)) == chinese), name)
        released = [passage["fields"].get("year") for passage in _about(entity, knowledge)]
        years = sorted({*years_in_query, *(year for year in released if isinstance(year, int))})
        wanted.append(Wanted(own, tuple(n for n in [name, *spellings] if n != own), tuple(years)))
    return wanted


def _about(entity: Entity | None, knowledge: KnowledgeBase) -> list[Passage]:
    """Return the first passage of the document that an entity is."""
    return (
        knowledge.passages(doc_ids=[entity["doc_id"]])[:1] if entity and entity["doc_id"] else []
    )


def _judged(query: str, answer: Enriched, knowledge: KnowledgeBase, source: str) -> list[Any]:
    question = Question.read(query, knowledge)
    names = {
        entity["doc_id"]: [entity["name"], *entity["aliases"]] for entity in answer["entities"]
    }
    results = []
    for passage in answer["passages"]:
        score = question.judge(
            "keyword_search", passage["text"], passage["title"], subject=1.0, bm25=1.0
        )
        called = names.get(passage["doc_id"], [])
        result = evidence.chunk(passage, score, TOOL.name, knowledge.name)
        result["metadata"] |= {
            "doc_id": _document(passage, called, knowledge),
            "aliases": called[1:],
            "transient": True,
            "source": source,
        }
        results.append(result)
    return results


def _document(passage: Passage, names: Sequence[str], knowledge: KnowledgeBase) -> str:
    """Return the document of the base that is about the same thing: of one of its names, and of its year within one."""
    year = passage["fields"].get("year")
    for name in names:
        for own in _about(knowledge.entity(name), knowledge):
            its = own["fields"].get("year", year)
            if its == year or (isinstance(its, int) and year and abs(its - year) <= 1):
                return own["doc_id"]
    return passage["doc_id"]


TOOL = FunctionTool(
    name="enrichment",
    description="What the source outside that a base's vocabulary asks for says of a name or a field that it lacks.",
    input_schema=EnrichmentInput,
    output_schema=EnrichmentOutput,
    function=search,
)


# at the merge: a source is asked once, for a name or a field that is missing; a replay takes its answer from the tape


Added = tuple[list[RetrievalResult], Enrichment]
"""The evidence of an external source that no step has, and what was asked of it."""


async def enriched(state: RetrievalState, context: Context) -> Added | None:
    """Return what an external source adds to the evidence; None when nothing is missing or no source can be asked."""
    decision: Data = state.get("route_decision") or {}
    question = decision.get("question")
    steps = [record for record in state["records"] if record["tool"] == TOOL.name]
    stopped = state.get("stop_reason") == "stopped_by_reviewer"
    if steps or stopped or not state.get("reflections"):  # nothing was judged
        return _by_steps(state, context, steps)
    # "Who edited Salt Road (1982)?" selects by a year, but asks for a field of what it names.
    lists = (
        question
        and question["intent"] in ("list", "recommend")
        and not (question["names"] and question["fields"])
    )
    kb = _base_to_ask(state, context) if question and not lists else None
    names = missing_names(state) if kb else []
    if not kb or not names:
        return None
    args = {"query": state["query"], "names": names}

    async def ask() -> Json:
        tool = context.tools[TOOL.name]
        request = tool.input_schema.model_validate(args)
        output = await tool(request, context.searched.get(kb), StepLog(context.clock))
        return output.model_dump(mode="json")

    output = (await context.tape.effect(TOOL.name, kb, args, ask)).value
    return output["results"], _summary(names, [output])


def _by_steps(
    state: RetrievalState, context: Context, records: Sequence[ExecutionRecord]
) -> Added | None:
    """Return what steps asked of the source; their evidence is that of the plan."""
    refs = [record["raw_output_ref"] for record in records]
    bodies = [context.runs.body(state["run_id"], ref) for ref in refs if ref]
    if not bodies:
        return None
    names = dict.fromkeys(
        name for record in records for name in record["raw_input"].get("names", [])
    )
    outputs = [{**body["output"], "results": body["results"]} for body in bodies]
    return [], _summary(list(names), outputs)


def _summary(names: list[str], outputs: Sequence[Data]) -> Enrichment:
    graphs = [output["subgraph"] for output in outputs]
    return Enrichment(
        asked=names,
        found=sum(len(output["results"]) for output in outputs),
        notes=[note for output in outputs for note in output["notes"]],
        entities=[entity for graph in graphs for entity in graph.get("entities", [])],
        relations=[relation for graph in graphs for relation in graph.get("relations", [])],
    )


def _from_tape(context: Context) -> Tape | None:
    """Return the tape that answers instead of a source, if this run is a replay."""
    tape = context.tape
    return tape if isinstance(tape, Tape) and tape.mode == "replay" else None


def _base_to_ask(state: RetrievalState, context: Context) -> str | None:
    """Return the first base with an external source; in a replay the base whose source was asked."""
    if tape := _from_tape(context):
        return next((effect.name for effect in tape.known if effect.kind == TOOL.name), None)
    available = set(context.searched.names())  # a fork may be in a workspace without the corpus
    prefixes = [kb for kb in state.get("kb_prefixes", []) if kb in available]
    return next((kb for kb in prefixes if context.searched.get(kb).enricher), None)


def can_enrich(state: RetrievalState, context: Context) -> bool:
    """Check whether an external source is ready to be asked; in a replay, whether a step asked it."""
    if tape := _from_tape(context):
        return any((effect.kind, effect.name) == ("tool", TOOL.name) for effect in tape.known)
    kb = _base_to_ask(state, context)
    enricher = context.searched.get(kb).enricher if kb else None
    return enricher is not None and enricher.ready


def missing_names(state: RetrievalState) -> list[str]:
    """Return the names of the question without evidence, and those without a field that the source may know."""
    signals = state["reflections"][-1]["signals"]
    names = [
        *signals.get("unknown", []),
        *(c["name"] for c in signals.get("coverage", []) if not c["found"]),
    ]
    titles = {
        title
        for title, field in signals.get("missing_fields", [])
        if field in texts()["sentences"]
    }
    return unique([*names, *sorted(titles)])
