"""Ask a corpus a question, see the plan before it runs, change it, decide at the reflect node, keep the whole run.

    with Workbench.open("dir") as wb:
        wb.add_knowledge("papers", ["papers.jsonl"])
        run = wb.ask("Which papers on sleep were published after 2020?", kb="papers")
        print(run.answer)

The rooms, from the street down; an import only ever goes down this page (``docs/architecture.md`` draws it):

    parts/           capabilities that hang on the spine, as memory, reports, fusion, recording, experiments
    cli/             the command line, and tools for other agents: thin skins over the session
    session.py       Workbench, an open workspace: ask, resume, compare, replay, and register custom parts
    widgets/         the bench in a notebook
    futures/         what is made of a finished run: replay, compare, capsule
    runs/            a run at work: started, driven to its next pause, answered, resumed, forked
    testing.py       in-memory twins of the ports, for tests of custom parts
    graphs/          the conversation graph, and in it retrieval and reporter, one file per node
    tools/           what a step of a plan may call, one file per tool
    language/        reading a question and writing an answer without a model, for any corpus
    events.py        what a run tells while it runs, and the log of its nodes in levels
    views/           every picture and text of a run, as pure functions of rows
    knowledge/       a corpus and its indexes: reading files, linking names, searching, a graph of entities
    models/          chat models, embeddings and rerankers, by name
    ports.py         what nodes and tools may ask for, and how registered parts are called
    records/         what is kept of a run: rows, tape, checkpoints, log, and which process owns it
    settings.py      every number that can be changed
    plans.py         the plan and its steps, and the conditions on fields in them
    state.py         every type that a graph carries
    extensions.py    the parts that are here, and what each brings, by kind and name
    errors.py        everything that is raised on purpose
    text.py          written language: terms, sentences, which one it is, days
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
    raise AttributeError(
        f"module 'workbench' has no attribute {name!r}. It exports: {', '.join(__all__)}."
    )


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
