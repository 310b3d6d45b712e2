"""The films of the tests, indexed once and lent to each test as its own; tools that count their calls or never end."""

import asyncio
import json
import os
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock

from tests.servers import Reply, ScriptedServer, scripted_server
from tests.shelves import CORPORA, jsonl
from workbench.knowledge.library import Library
from workbench.plans import Plan, PlanBudget, PlanStep, parse_condition
from workbench.session import Workbench
from workbench.settings import Settings
from workbench.state import Condition

FILMS = Path(__file__).resolve().parent.parent / "data" / "films.jsonl"


@pytest.fixture(scope="session")
def film_index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the indexed films, shared by every worker process; nobody writes to it afterwards.

    ``WORKBENCH_TEST_FILMS`` names one that ``make test`` made.
    """
    if made := os.environ.get("WORKBENCH_TEST_FILMS"):
        return Path(made).resolve()
    base = tmp_path_factory.getbasetemp()
    shared = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "film-index"
    with FileLock(f"{shared}.lock"):
        if not shared.exists():
            making = shared.with_name("film-index-making")
            with Workbench.open(making) as wb:
                wb.add_knowledge("film", [FILMS])
            making.rename(shared)
    return shared


def knowing_films(folder: Path, film_index: Path) -> Path:
    (folder / "knowledge").mkdir(parents=True)
    (folder / "knowledge" / "film").symlink_to(film_index / "knowledge" / "film", target_is_directory=True)
    return folder


@pytest.fixture
def workspace(tmp_path: Path, film_index: Path) -> Path:
    """A workspace of one's own that knows the films; another base that a test adds to it is its own."""
    return knowing_films(tmp_path / "workspace", film_index)


@pytest.fixture(scope="module")
def shared_wb(tmp_path_factory: pytest.TempPathFactory, film_index: Path) -> Iterator[Workbench]:
    """An open workspace for all tests of a file, each of which looks at its own runs alone."""
    with Workbench.open(knowing_films(tmp_path_factory.mktemp("shared") / "workspace", film_index)) as opened:
        yield opened


@pytest.fixture
def wb(workspace: Path) -> Iterator[Workbench]:
    with Workbench.open(workspace) as opened:
        yield opened


@pytest.fixture
def opens() -> Iterator[Callable[..., Workbench]]:
    """Opens a workspace, as often as is asked; all are closed at the end."""
    with ExitStack() as closing:
        yield lambda folder, **settings: closing.enter_context(Workbench.open(folder, **settings))


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    """A model that says nothing of use until it is told what to say."""
    with scripted_server(Reply(["nothing"])) as running:
        yield running


VOCABULARY = FILMS.with_name("films.vocabulary.toml")
DIRECTORS = {"Ang Lee", "Christopher Nolan", "Steven Spielberg", "Tim Burton", "Spike Lee"}
ESSAYS = {
    "photosynthesis": "Photosynthesis is how plants turn sunlight, water and carbon dioxide into sugar and oxygen.",
    "tea": "Oolong tea is partly oxidised; green tea is not. Tea is made of the leaves of one plant.",
    "bees": "Honey bees dance to tell the others where flowers are. A hive has one queen.",
}


def where(*lines: str) -> list[Condition]:
    """Conditions by their lines: ``where("directors = Ang Lee", "year >= 1994")``."""
    return [parse_condition(line) for line in lines]


@pytest.fixture(scope="session")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Library]:
    """Knowledge bases ``film`` (by five directors, and every tenth of the rest) and ``essays``, to read only."""
    base = tmp_path_factory.getbasetemp()
    shared = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "shelf"
    with FileLock(f"{shared}.lock"):
        if not shared.exists():
            _fill(shared.with_name("shelf-making"))
            shared.with_name("shelf-making").rename(shared)
    library = Library(shared / "kb", Settings.load(**SHELF))
    yield library
    library.close()


SHELF = {"embedding_model": "hashing", "rerank_model": "none"}


def _fill(folder: Path) -> None:
    films = [json.loads(line) for line in FILMS.read_text(encoding="utf-8").splitlines()]
    kept = [film for place, film in enumerate(films) if DIRECTORS & set(film["directors"]) or place % 10 == 0]
    (folder / "essays").mkdir(parents=True)
    for name, text in ESSAYS.items():
        (folder / "essays" / f"{name}.md").write_text(f"# {name.title()}\n\n{text}\n", "utf-8")
    with closing(Library(folder / "kb", Settings.load(**SHELF))) as library:
        library.add("film", [jsonl(folder / "films.jsonl", kept)], vocabulary=VOCABULARY)
        library.add("essays", [folder / "essays"])


def small_base(folder: Path, corpus: str) -> Library:
    """A library with one base, ``base``, of a corpus of the tests."""
    library = Library(folder / "knowledge", Settings.load(embedding_model="hashing"))
    library.add("base", [CORPORA / f"{corpus}.jsonl"], vocabulary=VOCABULARY)
    return library


@pytest.fixture
def calls(wb) -> Counter[str]:
    counted = Counter[str]()

    @wb.tools.tool(name="look", description="looks a thing up")
    async def look(query: str) -> list[dict]:
        counted[query] += 1
        return [{"text": f"{query} was looked up.", "metadata": {"title": query, "doc_id": query}}]

    return counted


def endless(wb: Workbench) -> None:
    """A planner that follows the rules but for two words: SLOW searches until it is stopped, FAIL fails."""
    from workbench.graphs.plan import RulePlanner

    rules, budget = RulePlanner(wb.settings), PlanBudget(timeout_s=600)

    @wb.tools.tool(name="endless", description="never ends by itself")
    async def search(query: str) -> list[str]:
        await asyncio.sleep(600)
        return []

    @wb.register("planner")
    async def planner(query: str, decision: Any, knowledge: Any, tools: Any) -> Plan:
        if "FAIL" in query:
            raise RuntimeError("this planner fails when it is told to")
        if "SLOW" in query:
            step = {"step_id": "slow", "objective": query, "tool": "endless", "tool_input": {"query": query}}
            return Plan(problem_statement=query, steps=[PlanStep(**step, budget=budget)])
        return await rules(query, decision, knowledge, tools)
