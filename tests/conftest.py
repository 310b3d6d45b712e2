"""What holds for every test: strict checkpoints, no telemetry, one thread a model, nothing of one's own settings."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

# Before anything is imported: LangGraph, Chroma and the numeric libraries read these once.
os.environ.update(
    LANGGRAPH_STRICT_MSGPACK="true",  # a checkpoint that holds more than plain data is an error
    ANONYMIZED_TELEMETRY="False",
    LANGSMITH_TRACING="false",
    HF_HUB_OFFLINE="1",
    JUPYTER_PREFER_ENV_PATH="1",
    JUPYTER_PLATFORM_DIRS="1",
    OMP_NUM_THREADS="1",  # two spinning threads on two busy cores are many times slower than one
    OPENBLAS_NUM_THREADS="1",
    MKL_NUM_THREADS="1",
    OMP_WAIT_POLICY="PASSIVE",
)
# Said to the tests, not to the product.
KEPT = {f"WORKBENCH_{name}" for name in ("LOCAL_MODEL", "TEST_FILMS", "TEST_POSTGRES_DSN", "TEST_QUESTIONS")}
for variable in {*os.environ} - KEPT:
    if variable.startswith(("WORKBENCH_", "MA_", "POSTGRES_", "OPENAI_")) or variable == "KB_AUTO_ROUTE":
        del os.environ[variable]

# The files whose tests walk the nodes of the graphs: coverage is traced in them alone, which saves a third of the time.
WALK_NODES = {"models", "enrichment", "every_answer", "readings", "fusion", "chain", "retrieval_graph"}
WALK_NODES |= {"widgets", "session", "roles", "every_role", "needs", "agent", "report"}

# The files whose tests start processes, servers or kernels: they are slow, and `make test` runs them.
START_PROCESSES = {"notebooks", "experiments", "two_at_once", "models", "agent", "forgetting", "living", "maintenance"}
START_PROCESSES |= {"storm", "parts", "readme", "inputs", "vectors", "graphs", "http", "mcp", "roles", "every_role"}
START_PROCESSES |= {"injected", "enrichment", "cli", "compare", "capsule", "hostile", "bench"}

from tests.films import calls, film_index, opens, server, shared_wb, shelf, wb, workspace  # noqa: E402, F401 - for every test
from workbench.settings import Settings  # noqa: E402 - only now is the environment what tests are to see

# `make full` draws many, and `HYPOTHESIS_PROFILE=long pytest tests/test_properties.py` very many.
_SLOW = [HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
settings.register_profile("few", max_examples=15, deadline=None, suppress_health_check=_SLOW)
settings.register_profile("many", max_examples=100, deadline=None, suppress_health_check=_SLOW)
settings.register_profile("long", max_examples=5_000, deadline=None, suppress_health_check=_SLOW)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "few"))

Settings.model_config["env_file"] = None  # a person's own .env stays out of the tests


@pytest.fixture(scope="session")
def project() -> Path:
    return Path(__file__).resolve().parent.parent


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--all", action="store_true", help="with the slow tests and those in a browser")
    parser.addoption("--update-saved", action="store_true", help="write the files under tests/saved again")
    parser.addoption("--slice", metavar="K/N", help="run the Kth of N parts of the chosen tests")


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Leave the slow tests out where nothing is named: `pytest` alone takes less than three minutes."""
    nothing_is_named = config.args_source is config.ArgsSource.TESTPATHS and config.option.markexpr == "not full"
    if nothing_is_named and not config.getoption("--all"):
        config.option.markexpr += " and not slow and not browser"


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Pass over the helpers of the tests, in which ``--doctest-modules`` would look for examples."""
    helper = collection_path.suffix == ".py" and not collection_path.name.startswith("test_")
    return True if helper and Path(__file__).parent in collection_path.parents else None


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> Iterator[None]:
    """Leave most cases of a sweep to ``make full``, and put what takes long first: the browser, then slow files."""
    sweeps: dict[str, list[pytest.Item]] = {}
    for item in items:
        if item.path.stem.removeprefix("test_") in START_PROCESSES:
            item.add_marker("slow")
        if item.get_closest_marker("few") and not item.get_closest_marker("full"):
            sweeps.setdefault(item.nodeid.partition("[")[0], []).append(item)
    for cases in sweeps.values():
        [few] = cases[0].get_closest_marker("few").args
        for number, item in enumerate(cases):
            if number * few % len(cases) >= few:  # those that stay are drawn evenly
                item.add_marker("full")
    yield  # -m and -k
    if chosen := config.getoption("--slice"):
        part, parts = map(int, chosen.split("/"))
        config.hook.pytest_deselected(items=[item for number, item in enumerate(items) if number % parts != part - 1])
        items[:] = items[part - 1 :: parts]
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: 0 if item.path.parent.name == "browser" else 1 if item.path in slow else 2)
    for item in items:
        if item.path.stem.removeprefix("test_") not in WALK_NODES:
            item.add_marker("no_cover")


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """A file stays on one worker, and every test in the browser on one: it waits while another worker computes."""
    from xdist.scheduler import LoadScopeScheduling

    class OneBrowser(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file = nodeid.split("::", 1)[0]
            if "test_kills_" in nodeid:  # of the storm, each by itself
                return nodeid
            return "browser" if file.startswith("tests/browser/") else file

    return OneBrowser(config, log)


@pytest.fixture
def saved(request: pytest.FixtureRequest, project: Path) -> Callable[[str, str], None]:
    """``saved(name, text)`` compares with ``tests/saved/name``, or writes it under ``--update-saved``."""

    def compare(name: str, text: str) -> None:
        path = project / "tests" / "saved" / name
        if request.config.getoption("--update-saved"):
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
        fix = "if the change is meant: pytest tests/test_architecture.py --update-saved"
        assert path.exists(), f"{path} is missing; {fix}"
        assert text == path.read_text(encoding="utf-8"), f"{path.name} says otherwise; {fix}"

    return compare
