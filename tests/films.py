"""The film workspace of the tests: indexed once for all of them, and lent to each under a workspace of its own."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from filelock import FileLock

from tests.servers import Reply, ScriptedServer, scripted_server
from workbench.session import Workbench

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
