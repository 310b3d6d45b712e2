"""Ask a corpus a question, see the plan before it runs, change it, decide at the reflect node, keep the whole run.

    with Workbench.open("dir") as wb:
        wb.add_knowledge("papers", ["papers.jsonl"])
        run = wb.ask("Which papers on sleep were published after 2020?", kb="papers")
        print(run.answer)

The package in the order in which a message walks through it; an import only ever goes down this page:

    cli/              the command line: a thin skin over the session
        demo.py ask.py person.py watch.py knowledge.py runs.py futures.py graft.py capsule.py
        evaluate.py doctor.py gc.py page.py
    session.py        Workbench, an open workspace: ask, start, map, resume, clear
    many.py           many questions asked at once, as a list that is a table
    own.py            a user's own parts, put in place and taken away
    experiments.py    what an experiment's notebook found, by name
    repair.py         what is wrong with its files, and the mend
    prune.py          what a workspace no longer needs
    widgets/          the bench in a notebook: thin widgets over runs; data in, one trait out
        workspace.py bench.py working.py futures.py ask.py follow.py turns.py plan.py draft.py form.py fields.py
        controls.py review.py review_form.py inbox.py past.py beside.py tree.py knowledge.py indexing.py shown.py
        pick.py
    run.py            Run, one question carried through: how it stands, what it did, the four answers
    inspected.py      a knowledge base looked into
    pictured.py       the pictures of a run, as plotly figures
    futures/          what is made of a run that is there
        workspace.py replay.py check.py capsule.py crate.py sealing.py made_test.py compare.py sides.py graft.py
        what_if.py leave_one_out.py; and what grafts stand on: join.py conflicts.py provenance.py shown.py
    work.py           the runs at work: who owns them, who listens, how they stop
    driver.py         carries a run from where it stands to the next pause or to its end
    playback.py       what a run works with, by its row: settings, tape, recorded decisions
    fork.py           a run made from another: what is edited, what that costs
    past.py           every checkpoint of a run, and what changed in it
    lineage.py        the tree of forks: which run was made from which, and what was edited
    autopilot.py      a reviewer fitted on past decisions, and how far it can be trusted
    asking.py         what may be asked: a message and its options, checked
    answering.py      the four answers, and how work is stopped and gone on with
    conversation.py   the parent graph: the order of everything below
    route.py          message -> knowledge base, worker, reading (a small graph of its own)
    recall.py         conversation -> the last messages
    retrieval/        the child graph, one file a node
        graph.py plan.py review.py dispatch.py execute.py reflect.py merge.py enriching.py
        and what they stand on: agreement.py chained.py drafts.py llm_plan.py skip.py signals.py rewrite.py wording.py
        reasons.py
    generate/         evidence -> cited answer: by the offline writer, or streamed from a chat model
        node.py prompt.py silence.py
    persist.py        answer -> what is kept
    agents.py         the retrieval graph without a person, by worker name
    tools/            what a step may call: one file a tool, one registry, one port
        registry.py tool.py adapt.py naive.py keyword.py local.py global_.py hybrid.py discover.py chain.py paths.py
        enrichment.py pagerank.py deep.py deeper.py
        and what they share: evidence.py signals.py dated.py neighbours.py calibration.py; for chains:
        walk.py seeds.py asked_words.py; for research: research.py lacking.py bridges.py; for paths: topics.py
        path_words.py path_match.py
    language/         reading a question, judging evidence and writing without a model, for any corpus
        reading.py conditions.py marks.py amounts.py times.py names.py joined.py ways.py followup.py hops.py
        quoting.py judging.py voice.py writing.py citations.py
    memory/           conversations, in SQLite or PostgreSQL
        store.py postgres.py migrations.py
    waiting.py        what waits for a person, over all runs
    knowledge/        a corpus and its three indexes behind one KnowledgeBase
        leftovers.py library.py rebuilding.py adding.py spool.py storing.py growing.py scratch.py beginnings.py
        communities.py sketches.py inspecting.py knowledge_base.py view.py chroma.py corpus.py aliases.py tables.py
        documents.py schema.py triples.py files.py names.py entities.py vocabulary.py surfaces.py matching.py
        linking.py meant.py
        title_links.py typed.py graph.py graph_view.py vectors.py siblings.py cleared.py keywords.py rare_terms.py
        ranks.py walks.py kept_arrays.py index.py
    enrichment/       a source outside, asked for what the corpus lacks: TMDB
        tmdb.py asking.py records.py telling.py notes.py
    runs.py           what is kept of a run: plans by version, records, decisions, log
    taped.py          the ports of a run over its tape
    around.py         the part of the knowledge graph around an answer
    checkpoints.py    where each run stands, as LangGraph keeps it
    agent_inbox.py    the shapes of LangChain's Agent Inbox
    reviewers.py      who answers at a review point when it is not a person at a screen
    show/             a run as static HTML and text
        outline.py beside.py inbox.py knowledge.py indexing.py web.py terminal.py
    document.py       a run as one JSON document
    draw/             records -> light HTML and SVG; pure, escaped throughout
        head.py rail.py steps.py lanes.py plan_graph.py plan_changes.py problems.py timeline.py evidence.py answer.py
        signals.py fork_bar.py inbox.py past.py beside.py changes.py graft.py tree.py knowledge.py page.py
    figures/          records -> plotly figures; pure
        dag.py steps.py timeline.py graph.py findings.py knowledge.py rankings.py reliability.py picture.py paper.py
    evaluating/       measuring: answers to a table of questions, rankings of a set, answers over triples
        bench.py questions.py judging.py together.py retrieval.py reflection.py calibration.py kbqa.py rankings.py
        narrowed.py statistics.py rows.py
    serve.py          the graphs for a LangGraph server
    testing.py        in-memory twins of the ports
    events.py         the stream's vocabulary, and the log of nodes
    models/           names -> chat models, embeddings, rerankers; offline ones included
        chat.py embeddings.py rerank.py
        and what a server can do to them: wire.py patience.py failures.py
    labels/           the words with which runs are shown, in both languages, a file a subject
        runs.py bench.py editor.py reviewing.py pictures.py beside.py knowledge.py told.py
    counted.py        the figures of a run, each defined once
    timeline.py       what happened when, on an axis of work time
    proposals.py      what is proposed at a review point, and what an edit changes
    walked.py         the graphs unfolded, and where a run went in them
    fates.py          what became of each finding: cited, in the prompt, dropped, and why
    canonical.py      the bytes in which two equal runs agree
    lease.py          who is alive
    loop.py           one event loop in one thread
    clock.py          time that never goes back
    parts.py          a user's own parts: how each is called, and what it may give
    context.py        the ports that nodes see
    tape.py           every effect of a run, by what determines it
    tokens.py         what models read and wrote: as their servers count it, or about
    plan_edits.py     what people do to a plan
    plans.py          the one plan type
    conditions.py     a condition on a typed field, as a line
    pieces.py         what a knowledge base gives, as plain data
    state.py          every type that a graph carries, once
    settings.py       every number that can be changed
    days.py           days in texts, and dates of any precision
    blocks.py         the blocks of a text: headings, list items, rows of tables, code
    given.py          models given as objects, by name
    salvage.py        what can still be read of a damaged SQLite file
    sqlite.py         what SQLite and the file system refuse, in words
    text.py           written language: terms, sentences, which one it is
    errors.py         everything that is raised on purpose
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from workbench.errors import InvalidAnswer, NotPaused, PlanError, WorkbenchError
    from workbench.plans import Plan, PlanBudget, PlanStep
    from workbench.runs.run import Run
    from workbench.session import Workbench
    from workbench.settings import Settings

__all__ = [
    "InvalidAnswer",
    "NotPaused",
    "Plan",
    "PlanBudget",
    "PlanError",
    "PlanStep",
    "Run",
    "Settings",
    "Workbench",
    "WorkbenchError",
]

# Imported when first asked for, so that `import workbench` costs nothing.
_HOMES = {
    "errors": ("InvalidAnswer", "NotPaused", "PlanError", "WorkbenchError"),
    "plans": ("Plan", "PlanBudget", "PlanStep"),
    "runs.run": ("Run",),
    "session": ("Workbench",),
    "settings": ("Settings",),
}


def __getattr__(name: str) -> Any:
    for module, names in _HOMES.items():
        if name in names:
            value = globals()[name] = getattr(import_module(f"workbench.{module}"), name)
            return value
    if name == "__version__":
        from importlib.metadata import version

        return version("workbench")
    raise AttributeError(f"module 'workbench' has no attribute {name!r}. It exports: {', '.join(__all__)}.")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
