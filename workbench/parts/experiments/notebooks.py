"""Parametrised notebooks: what their parameters are, whether values fit, and their execution by papermill."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from workbench.errors import WorkbenchError
from workbench.parts.experiments.notebook import (
    Parameter,
    check,
    declared,
    read_notebook,
    results,
)
from workbench.state import Json


def parameters_of(notebook: str | Path) -> dict[str, Parameter]:
    """Return the parameters that a notebook declares in its cell of parameters.

    Raises:
        WorkbenchError: it is no notebook, or has no such cell.
    """
    cells = read_notebook(notebook).cells
    sources = [cell.source for cell in cells if "parameters" in cell.metadata.get("tags", [])]
    if not sources:
        raise WorkbenchError(
            f"{notebook} has no cell tagged `parameters`, so nothing in it can vary."
        )
    return declared(sources[0])


def checked(notebook: str | Path, values: Mapping[str, Any]) -> Json:
    """Return the parameters for a notebook, in the types that its cell of parameters declares.

    Raises:
        WorkbenchError: the notebook has no such parameter, or the value is of another type; it lists the known ones.
    """
    return check(parameters_of(notebook), values, str(notebook))


def execute(
    notebook: str | Path, output: Path, values: Mapping[str, Any], folder: Path
) -> tuple[Json, str]:
    """Execute a notebook with parameters in a warm kernel in a folder, and return its results and why it failed.

    A notebook that fails is kept with its error. A kernel that dies is started once more.
    """
    import papermill
    from nbclient.exceptions import DeadKernelError
    from papermill.exceptions import PapermillExecutionError

    from workbench.parts.experiments.kernels import WarmKernels

    output.parent.mkdir(parents=True, exist_ok=True)
    parameters = checked(notebook, values)
    for _ in range(2):
        error = ""
        try:
            papermill.execute_notebook(
                str(notebook), str(output), parameters, progress_bar=False, log_output=False,
                kernel_manager_class=WarmKernels, resources={"metadata": {"path": str(folder)}},
            )  # fmt: skip
        except PapermillExecutionError as failure:
            error = f"{failure.ename}: {failure.evalue}"
        except DeadKernelError:
            error = "The kernel died."
            continue
        break
    return results(output), error
