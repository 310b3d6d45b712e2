"""The notebook's side of an experiment: parameters that are checked, and results by name.

In a notebook that papermill runs, after the cell that is tagged ``parameters``::

    parameters(globals())
    ...
    result("answer", run.answer)

and afterwards, anywhere::

    results("out.ipynb")["answer"]
"""

from __future__ import annotations

import ast
import typing
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from workbench.errors import WorkbenchError, shown
from workbench.state import Json

MIME = "application/json"


class Parameter(NamedTuple):
    """A parameter of a notebook: its type as its cell declares it, else that of its default."""

    kind: Any
    default: Any


def declared(source: str) -> dict[str, Parameter]:
    """Return the parameters that a cell declares, by name: ``top_k: int = 8``, or ``top_k = 8``.

    >>> declared("top_k: int = 8\\nnames: list[str] = []")["names"]
    Parameter(kind=list[str], default=[])

    Raises:
        WorkbenchError: a default is not a plain value.
    """
    parameters_by_name = {}
    for statement in ast.parse(source).body:
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            name, value, kind = statement.target.id, statement.value, _kind(statement.annotation)
        elif isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
            name, value, kind = statement.targets[0].id, statement.value, None
        else:
            continue
        try:
            default = None if value is None else ast.literal_eval(value)
        except ValueError:
            raise WorkbenchError(
                f"The default of {name} is computed. Give a plain value: a number, text, list."
            ) from None
        parameters_by_name[name] = Parameter(kind or type(default), default)
    return parameters_by_name


def _kind(annotation: ast.expr) -> Any:
    """Return the type of an annotation that is made of built-in types; anything else allows every value."""
    if isinstance(annotation, ast.Name):
        return {"int": int, "float": float, "str": str, "bool": bool, "list": list, "dict": dict}.get(
            annotation.id, Any
        )
    if isinstance(annotation, ast.Subscript):
        inside = annotation.slice.elts if isinstance(annotation.slice, ast.Tuple) else [annotation.slice]
        return _kind(annotation.value)[tuple(map(_kind, inside))]
    if isinstance(annotation, ast.BinOp):
        return typing.Union[_kind(annotation.left), _kind(annotation.right)]  # noqa: UP007
    return type(None) if isinstance(annotation, ast.Constant) and annotation.value is None else Any


def check(declared: Mapping[str, Parameter], values: Mapping[str, Any], where: str = "The notebook") -> Json:
    """Return the given values in the declared types; text becomes a list or a number where one is declared.

    >>> check({"names": Parameter(list[str], [])}, {"names": '["a"]'})
    {'names': ['a']}

    Raises:
        WorkbenchError: a name is not declared, or a value does not fit; it lists the known ones.
    """
    from pydantic import TypeAdapter, ValidationError

    listed = ", ".join(f"{name}: {getattr(p.kind, '__name__', p.kind)}" for name, p in declared.items())
    checked = {}
    for name, value in values.items():
        if name not in declared:
            raise WorkbenchError(f"{where} has no parameter {name!r}. Known: {listed}.")
        kind = declared[name].kind
        try:
            checked[name] = TypeAdapter(kind).validate_python(_read(value, kind))
        except ValidationError as error:
            raise WorkbenchError(
                f"{where}: {name} is {shown(value)}, but {error.errors()[0]['msg'].lower()}. Known: {listed}."
            ) from None
    return checked


def _read(value: Any, kind: Any) -> Any:
    """Return text as the list, dict or number that is declared: the command line gives text only."""
    if isinstance(value, str) and (typing.get_origin(kind) or kind) in (list, dict, int, float, bool):
        try:
            return ast.literal_eval(value)
        except (ValueError, SyntaxError):
            return value
    return value


def _parameters_in(source: str) -> dict[str, Parameter]:
    """Return the parameters of a cell of nothing but plain assignments; none of any other cell."""
    try:
        statements = ast.parse(source).body
        return declared(source) if all(isinstance(s, (ast.Assign, ast.AnnAssign)) for s in statements) else {}
    except (SyntaxError, WorkbenchError):
        return {}


def parameters(names: dict[str, Any]) -> Json:
    """Check what papermill, a runner or a person put into the parameters, and return all of them.

    Args:
        names: ``globals()`` of the notebook; values that were given as text are converted.

    Raises:
        WorkbenchError: a name that the cell of parameters does not declare, or a value of another type.
    """
    cells = [source for source in names.get("In", []) if source.strip()]
    declared_names: dict[str, Parameter] = {}
    injected: Json = {}
    for source in cells:
        if source.lstrip().startswith("# Parameters"):  # papermill's injected cell
            injected |= {name: parameter.default for name, parameter in declared(source).items()}
        elif not declared_names:
            declared_names = _parameters_in(source)
    now = {name: names[name] for name in declared_names if name in names}
    checked = check(declared_names, {**now, **injected}, "This notebook")
    names.update(checked)
    return checked


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
        raise WorkbenchError(f"The result {name!r} cannot be kept as JSON: {error}. Give plain data.") from None
    display({MIME: value}, raw=True, metadata={"workbench": {"name": name}})


def results(notebook: str | Path) -> Json:
    """Return every value that an executed notebook stored, by name.

    Raises:
        WorkbenchError: the file is missing or not a notebook.
    """
    import nbformat

    try:
        read = nbformat.read(notebook, as_version=4)
    except (OSError, nbformat.reader.NotJSONError, nbformat.ValidationError) as error:
        raise WorkbenchError(f"{notebook} cannot be read as a notebook: {error}") from None
    values = {}
    for cell in read.cells:
        for output in cell.get("outputs", []):
            name = output.get("metadata", {}).get("workbench", {}).get("name")
            if name is not None:
                values[name] = output["data"][MIME]
    return values
