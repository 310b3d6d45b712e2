"""The fixtures of the browser's tests: one JupyterLab, one Chromium, notebooks that a test opens."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from tests.browser.lab import Browser, Lab, Notebook, chromium, jupyterlab
from workbench.session import Workbench

FAILED = pytest.StashKey[bool]()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "browser" in getattr(item, "fixturenames", ()):
            item.add_marker("browser")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    report = yield
    if report.when == "call":
        item.stash[FAILED] = report.failed
    return report


@pytest.fixture(scope="package")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """JupyterLab over the folder that holds every ``tmp_path`` of this worker."""
    with jupyterlab(tmp_path_factory.getbasetemp(), tmp_path_factory.mktemp("jupyterlab")) as started:
        yield started


@pytest.fixture(scope="package")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with chromium(tmp_path_factory.mktemp("chromium")) as opened:
        yield opened


@pytest.fixture
def notebook(
    browser: Browser, lab: Lab, tmp_path: Path, request: pytest.FixtureRequest
) -> Iterator[Callable[..., Notebook]]:
    """``notebook(cells, name="notebook")`` opens a new notebook in ``tmp_path``; see ``tests/browser/lab.py``."""
    browser.seen.forget()
    opened: list[Notebook] = []

    def make(cells: Sequence[str], name: str = "notebook") -> Notebook:
        opened.append(lab.open(browser, tmp_path / f"{name}.ipynb", cells))
        return opened[-1]

    failed = True
    try:
        yield make
        failed = request.node.stash.get(FAILED, True)
        if failed:
            for notebook in opened:
                notebook.screenshot(notebook.file.with_suffix(".failed.png"))
        else:
            browser.seen.clean()
    finally:
        for notebook in opened:
            notebook.close(failed)
        lab.end_kernels(tmp_path)


@pytest.fixture
def store(workspace: Path) -> Iterator[Workbench]:
    """The same workspace, open in this process too: what is there when the page says that it is."""
    with Workbench.open(workspace) as opened:
        yield opened
