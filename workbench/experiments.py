"""What an experiment's notebook found, by name: written while it runs, read from the executed notebook afterwards.

In a notebook that papermill runs::

    result("answer", run.answer)

and afterwards, anywhere::

    results("out.ipynb")["answer"]
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from workbench.errors import WorkbenchError
from workbench.state import Json

MIME = "application/json"


def result(name: str, value: Any) -> None:
    """Keep a value in the running notebook under a name.

    Args:
        name: what it is called; the last value of a name counts.
        value: anything that JSON holds.

    Raises:
        WorkbenchError: JSON does not hold the value.
    """
    import json

    from IPython.display import display

    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise WorkbenchError(f"The result {name!r} cannot be kept as JSON: {error}. Give plain data.") from None
    display({MIME: value}, raw=True, metadata={"workbench": {"name": name}})


def results(notebook: str | Path) -> Json:
    """Every value that an executed notebook kept, by name.

    Raises:
        WorkbenchError: the file is missing or no notebook.
    """
    import nbformat

    try:
        read = nbformat.read(notebook, as_version=4)
    except (OSError, nbformat.reader.NotJSONError, nbformat.ValidationError) as error:
        raise WorkbenchError(f"{notebook} cannot be read as a notebook: {error}") from None
    kept = {}
    for cell in read.cells:
        for output in cell.get("outputs", []):
            name = output.get("metadata", {}).get("workbench", {}).get("name")
            if name is not None:
                kept[name] = output["data"][MIME]
    return kept
