"""Parametrised notebooks: what their parameters are, whether values fit, and their execution by papermill."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from workbench.errors import WorkbenchError
from workbench.experiments import check, declared, results
from workbench.state import Json


def checked(notebook: str | Path, values: Mapping[str, Any]) -> Json:
    """Return the parameters for a notebook, in the types that its cell of parameters declares.

    Raises:
        WorkbenchError: the notebook has no such parameter, or the value is of another type; it lists the known ones.
    """
    import nbformat

    try:
        read = nbformat.read(notebook, as_version=4)
    except (OSError, ValueError) as error:
        raise WorkbenchError(f"{notebook} cannot be read as a notebook: {error}") from None
    sources = [cell.source for cell in read.cells if "parameters" in cell.metadata.get("tags", [])]
    if not sources:
        raise WorkbenchError(f"{notebook} has no cell tagged `parameters`, so nothing in it can vary.")
    return check(declared(sources[0]), values, str(notebook))


def execute(notebook: str | Path, output: Path, values: Mapping[str, Any]) -> tuple[Json, str]:
    """Execute a notebook with parameters, and return its results and why it failed.

    A notebook that fails is kept with its error.
    """
    import papermill
    from papermill.exceptions import PapermillExecutionError

    output.parent.mkdir(parents=True, exist_ok=True)
    error = ""
    try:
        papermill.execute_notebook(
            str(notebook), str(output), checked(notebook, values), progress_bar=False, log_output=False
        )
    except PapermillExecutionError as failure:
        error = f"{failure.ename}: {failure.evalue}"
    return results(output), error
