"""Parametrised notebooks: parameters that are checked, results by name, and their execution.

In a notebook, after the cell that is tagged ``parameters``::

    parameters(globals(), paths=["corpus"])
    ...
    result("answer", run.answer)

and afterwards, anywhere::

    results("out.ipynb")["answer"]
"""

from __future__ import annotations

import ast
import os
import re
import uuid
from collections.abc import Iterable, Mapping, Sequence
from glob import glob
from pathlib import Path
from typing import Any, NamedTuple

from workbench.errors import WorkbenchError, shown
from workbench.state import Data, Json

MIME = "application/json"
_KIND = re.compile(r"(?:\b(?:int|float|str|bool|list|dict|None)\b|[\[\], |])+")
"""A type that is made of built-in ones; any other allows every value."""


class Parameter(NamedTuple):
    """A parameter of a notebook: its type as its cell writes it, else that of its default."""

    kind: str
    default: Any


def declared(source: str) -> dict[str, Parameter]:
    """Return the parameters that a cell declares, by name: ``top_k: int = 8``, or ``top_k = 8``.

    >>> declared("top_k: int = 8\\nnames: list[str] = []")["names"]
    Parameter(kind='list[str]', default=[])

    Raises:
        WorkbenchError: a default is not a plain value.
    """
    parameters_by_name = {}
    for statement in ast.parse(source).body:
        kind = ""
        match statement:
            case ast.AnnAssign(ast.Name(name), annotation, value):
                kind = ast.unparse(annotation)
            case ast.Assign([ast.Name(name), *_], value):
                pass
            case _:
                continue
        try:
            default = None if value is None else ast.literal_eval(value)
        except ValueError:
            raise WorkbenchError(
                f"The default of {name} is computed. Give a plain value: a number, text, list."
            ) from None
        parameters_by_name[name] = Parameter(kind or type(default).__name__, default)
    return parameters_by_name


def check(declared: Mapping[str, Parameter], values: Data, where: str = "The notebook") -> Json:
    """Return the given values in the declared types; text becomes a list or a number where one is declared.

    >>> check({"names": Parameter("list[str]", [])}, {"names": '["a"]'})
    {'names': ['a']}

    Raises:
        WorkbenchError: a name is not declared, or a value does not fit; it lists the known ones.
    """
    from pydantic import TypeAdapter, ValidationError

    listed = ", ".join(f"{name}: {parameter.kind}" for name, parameter in declared.items())
    checked = {}
    for name, value in values.items():
        if name not in declared:
            raise WorkbenchError(f"{where} has no parameter {name!r}. Known: {listed}.")
        kind: Any = declared[name].kind
        adapter = TypeAdapter(kind if _KIND.fullmatch(kind) else Any)
        try:
            try:
                checked[name] = adapter.validate_python(value, strict=True)
            except ValidationError:  # the command line gives text only
                checked[name] = adapter.validate_python(_read(value), strict=True)
        except ValidationError as error:
            raise WorkbenchError(
                f"{where}: {name} is {shown(value)}, but {error.errors()[0]['msg'].lower()}. Known: {listed}."
            ) from None
    return checked


def _read(value: Any) -> Any:
    """Return text as the list, mapping or number that it is in YAML."""
    import yaml

    try:
        return yaml.safe_load(value) if isinstance(value, str) else value
    except yaml.YAMLError:
        return value


def _assignments(source: str) -> dict[str, Parameter]:
    """Return the parameters of a cell of nothing but plain assignments; none of any other cell."""
    try:
        statements = ast.parse(source).body
        if all(isinstance(s, (ast.Assign, ast.AnnAssign)) for s in statements):
            return declared(source)
        return {}
    except (SyntaxError, WorkbenchError):
        return {}


def parameters(names: Json, paths: Sequence[str] = ()) -> Json:
    """Check what papermill, a runner or a person put into the parameters, and return all of them.

    Relative paths are the workspace's: ``workspace``, and the parameters in ``paths``, become absolute, wherever the
    notebook was started. A cell of assignments right after the cell of parameters counts as values for them.

    Args:
        names: ``globals()`` of the notebook; values that were given as text are converted.
        paths: parameters that are paths of files.

    Raises:
        WorkbenchError: a name that the cell of parameters does not declare, a value of another type, or no such file.
    """
    declared_names = dict[str, Parameter]()
    injected = Json()
    follows = False
    for source in names.get("In", []):
        if not source.strip():
            continue
        cell = _assignments(source)
        is_injected = source.lstrip().startswith("# Parameters")  # by papermill
        # run again after it was edited, too
        if cell and not is_injected and cell.keys() >= declared_names.keys():
            declared_names = cell
            injected = {}
            follows = True
        elif cell and (follows or is_injected):
            injected |= {
                name: names.get(name, parameter.default) for name, parameter in cell.items()
            }
        else:
            follows = False
    now = {name: names[name] for name in declared_names if name in names}
    checked = check(declared_names, {**now, **injected}, "This notebook")
    if "workspace" in checked:
        checked["workspace"] = str(_workspace(checked["workspace"]))
        for name in paths:
            checked[name] = str(_file(name, checked[name], Path(checked["workspace"]).parent))
    names.update(checked)
    return checked


def _workspace(text: str) -> Path:
    """Return the workspace of that name in this folder or the nearest one above; else a new one, in the project."""
    name = Path(text).expanduser()
    folder = Path.cwd()
    if not name.is_absolute() and (variable := os.environ.get("WORKBENCH_WORKSPACE")):
        return Path(variable).resolve()
    folders = [folder, *folder.parents]
    places = [folder for folder in folders if (folder / name).is_dir()]
    places += [folder for folder in folders if (folder / "pyproject.toml").is_file()]
    return ([*places, folder][0] / name).resolve()


def _file(parameter: str, text: str, home: Path) -> Path:
    """Return a file by its path from the folder of the workspace; if none is there, from this one or one above."""
    folders = [home, Path.cwd(), *Path.cwd().parents]
    for folder in folders:
        if (path := folder / Path(text).expanduser()).exists():
            return path.resolve()
    raise WorkbenchError(f"{parameter} is {text!r}, and there is no such file in {home}.")


def conversation(experiment: str) -> dict[str, str]:
    """Return the options of a question under the name of an experiment: a conversation of its own, no memory.

    ``wb.runs.list(session_id=experiment)`` finds its runs.
    """
    return {"session": experiment, "user": f"{experiment} {uuid.uuid4().hex[:8]}"}


def result(name: str, value: Any) -> None:
    """Store a value in the running notebook under a name.

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
        raise WorkbenchError(
            f"The result {name!r} cannot be kept as JSON: {error}. Give plain data."
        ) from None
    display({MIME: value}, raw=True, metadata={"workbench": {"name": name}})


def results(notebook: str | Path) -> Any:
    """Return every value that an executed notebook stored, by name; for a pattern, a table with a row per notebook.

    The columns of the table are the parameters, then the results: ``results("out/*.ipynb")``.

    Raises:
        WorkbenchError: the file is missing or not a notebook.
    """
    if "*" in str(notebook):
        import pandas

        return pandas.DataFrame([_row(path) for path in sorted(glob(str(notebook)))])
    return _stored(read_notebook(notebook).cells)


def read_notebook(path: str | Path) -> Any:
    """Return a notebook.

    Raises:
        WorkbenchError: the file is missing or not a notebook.
    """
    import nbformat

    try:
        return nbformat.read(path, as_version=4)
    except (OSError, ValueError, AttributeError, nbformat.ValidationError) as error:
        raise WorkbenchError(f"{path} cannot be read as a notebook: {error}") from None


def _row(path: str) -> Json:
    read = read_notebook(path)
    values = {"notebook": path}
    for cell in read.cells:
        if {"parameters", "injected-parameters"} & set(cell.metadata.get("tags", [])):
            values |= {
                name: parameter.default for name, parameter in declared(cell.source).items()
            }
    return values | _stored(read.cells)


def _stored(cells: Iterable[Any]) -> Json:
    values = {}
    for cell in cells:
        for output in cell.get("outputs", []):
            name = output.get("metadata", {}).get("workbench", {}).get("name")
            if name is not None:
                values[name] = output["data"][MIME]
    return values


# --- Execution, by papermill ---


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


def checked(notebook: str | Path, values: Data) -> Json:
    """Return the parameters for a notebook, in the types that its cell of parameters declares.

    Raises:
        WorkbenchError: the notebook has no such parameter, or the value is of another type; it lists the known ones.
    """
    return check(parameters_of(notebook), values, str(notebook))


def execute(notebook: str | Path, output: Path, values: Data, folder: Path) -> tuple[Json, str]:
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
