"""Measure a sweep of notebooks in warm kernels beside stock papermill: ``python -m experiments.kernels --runs 40``.

Each run is one empty notebook that imports the workbench, as the notebooks here do. Both ways run one notebook after
the other in this process and leave an executed copy of each; the time is wall clock, and the server that warm kernels
are forked from is counted.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path
from typing import Any

import nbformat
import papermill

from workbench import Workbench

IMPORT = "from workbench import Workbench\nfrom workbench.parts.experiments.notebook import parameters, result"


def write_notebook(folder: Path) -> Path:
    """Write a notebook with one parameter that asks nothing."""
    cells = [
        nbformat.v4.new_code_cell("number: int = 0", metadata={"tags": ["parameters"]}),
        nbformat.v4.new_code_cell(f"{IMPORT}\nparameters(globals())\nresult('number', number)"),
    ]
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    path = folder / "empty.ipynb"
    nbformat.write(nbformat.v4.new_notebook(cells=cells, metadata=kernel), path)
    return path


def run_warm(path: Path, folder: Path, numbers: list[int]) -> float:
    """Return the seconds of a sweep here."""
    spec: dict[str, Any] = {
        "name": "warm",
        "notebook": str(path),
        "grid": {"number": numbers},
        "measure": "number",
    }
    with Workbench.open(folder / "w", embedding_model="hashing") as wb:
        began = time.perf_counter()
        status = wb.experiments.run(spec, progress=lambda *_: None).status()
        seconds = time.perf_counter() - began
    assert status["done"] == len(numbers), status
    return seconds


def run_stock(path: Path, folder: Path, numbers: list[int]) -> float:
    """Return the seconds of papermill alone, with a kernel that is started for each run."""
    began = time.perf_counter()
    for number in numbers:
        papermill.execute_notebook(
            path, folder / f"{number}.ipynb", {"number": number}, progress_bar=False
        )
    return time.perf_counter() - began


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=40)
    numbers = list(range(parser.parse_args().runs))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path = write_notebook(folder)
        warm = run_warm(path, folder, numbers)
        stock = run_stock(path, folder, numbers)
    print("| notebooks | warm kernels, s | stock papermill, s | times |\n|--:|--:|--:|--:|")
    print(f"| {len(numbers)} | {warm:.1f} | {stock:.1f} | {stock / warm:.1f} |")


if __name__ == "__main__":
    main()
