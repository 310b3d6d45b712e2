"""The rules of the house, held by tests: directions, doors, sizes, the map, the saved face.

``pytest tests/test_architecture.py --update-saved`` writes the files under ``tests/saved`` anew; read the diff.
"""

from __future__ import annotations

import ast
import inspect
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from langgraph.graph.state import CompiledStateGraph

import workbench
from workbench.settings import Settings

PROJECT = Path(__file__).resolve().parent.parent
PACKAGE = PROJECT / "workbench"
SOURCES = sorted(PACKAGE.rglob("*.py"))
NOT_NAMES_OF_ROOMS = {"base", "core", "factory", "helpers", "manager", "utils"}
HEAVY = {
    "chromadb",
    "langgraph",
    "langchain_core",
    "langchain_openai",
    "plotly",
    "ipywidgets",
    "pandas",
    "networkx",
    "spacy",
}


def parsed() -> Iterator[tuple[str, ast.Module]]:
    for path in SOURCES:
        yield str(path.relative_to(PROJECT)), ast.parse(path.read_text(encoding="utf-8"))


# --- directions and weight ---


def test_imports_run_downwards_and_libraries_enter_by_their_doors() -> None:
    command = [sys.executable, "-c", "from importlinter.cli import lint_imports_command; lint_imports_command()"]
    done = subprocess.run([*command, "--no-cache"], cwd=PROJECT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(
    "statement",
    [
        "import workbench",
        "from workbench import Plan, PlanStep, Settings, WorkbenchError",
        "import workbench.cli",
        "import click.testing, workbench.cli; click.testing.CliRunner().invoke(workbench.cli.main, ['--help'])",
    ],
)
def test_starting_loads_nothing_heavy(statement: str) -> None:
    code = f"import sys; {statement}\nimport json; print('\\n' + json.dumps([*sys.modules]))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not set(json.loads(done.stdout.splitlines()[-1])) & HEAVY


# --- the map ---


def mapped_files() -> list[str]:
    """The files that the package docstring names, in its order; a folder's line stands for its ``__init__.py``."""
    found, folder = [], ""
    for line in str(workbench.__doc__).partition("down this page:")[2].splitlines():
        if place := re.match(r" {4}([a-z_]+)(\.py|/) ", line):
            folder = f"{place[1]}/" if place[2] == "/" else ""
            found.append(f"{folder}__init__.py" if folder else f"{place[1]}.py")
        else:
            found += [folder + file for file in re.findall(r"[a-z_]+\.py", line)]
    return found


def test_map_names_every_file_once() -> None:
    on_disk = {str(path.relative_to(PACKAGE)) for path in SOURCES} - {"__init__.py"}
    mapped = mapped_files()
    missing, gone = sorted(on_disk - set(mapped)), sorted(set(mapped) - on_disk)
    assert not (missing or gone), f"the map in workbench/__init__.py misses {missing} and still names {gone}"
    assert len(mapped) == len(on_disk), "the map names a file twice"


def walked_files(graph: CompiledStateGraph) -> list[str]:
    """The files of a graph's nodes, each before those it leads to, loops left out; a child graph is its first node."""
    edges = sorted(graph.get_graph().edges, key=lambda edge: edge.target, reverse=True)
    seen: set[str] = set()
    order: list[str] = []

    def visit(node: str) -> None:
        if node not in seen:
            seen.add(node)
            for edge in edges:
                if edge.source == node:
                    visit(edge.target)
            order.insert(0, node)

    visit("__start__")
    files = []
    for node in order:
        if node in graph.builder.nodes:
            runnable = graph.builder.nodes[node].runnable
            if isinstance(runnable, CompiledStateGraph):
                files += walked_files(runnable)[:1]
            else:
                path = Path(inspect.getfile(inspect.unwrap(getattr(runnable, "afunc", None) or runnable.func)))
                files.append(str(path.relative_to(PACKAGE)))
    return [*dict.fromkeys(files)]


def graphs() -> dict[str, CompiledStateGraph]:
    from workbench.graphs.conversation import build_conversation
    from workbench.graphs.retrieval import build_retrieval

    return {"conversation": build_conversation(), "retrieval": build_retrieval().compile()}


@pytest.mark.parametrize(
    ("name", "own_file"), [("conversation", "conversation.py"), ("retrieval", "retrieval/graph.py")]
)
def test_map_is_in_the_order_in_which_a_message_walks(name: str, own_file: str) -> None:
    walked = [file for file in walked_files(graphs()[name]) if file != own_file]
    assert len(walked) > 3
    assert walked == sorted(walked, key=mapped_files().index)


@pytest.mark.parametrize("name", ["conversation", "retrieval"])
def test_graphs_are_drawn_as_saved(name: str, saved) -> None:
    saved(f"{name}.mmd", graphs()[name].get_graph(xray=1).draw_mermaid())


# --- the face ---


def face() -> str:
    """Every public name of the package with its signature, and the public members of its classes."""
    lines = []
    for name in workbench.__all__:
        value = getattr(workbench, name)
        if not inspect.isclass(value):
            lines.append(f"{name}: {type(value).__name__}")
            continue
        bases = ", ".join(base.__name__ for base in value.__bases__ if base is not object)
        lines.append(f"class {name}({bases})")
        if issubclass(value, BaseException):
            continue
        fields = getattr(value, "model_fields", {})
        lines += [f"    {field}: {_annotation(info.annotation)}" for field, info in fields.items()]
        for member, kind in sorted(vars(value).items()):
            if member.startswith("_") or member in {*fields, "model_config"}:
                continue
            function = getattr(kind, "__func__", kind)
            if isinstance(kind, property):
                lines.append(f"    {member}: property")
            elif inspect.isfunction(function):
                prefix = {classmethod: "classmethod ", staticmethod: "staticmethod "}.get(type(kind), "")
                lines.append(f"    {prefix}{member}{inspect.signature(function)}")
    return "\n".join(lines) + "\n"


def _annotation(annotation: object) -> str:
    return (
        annotation.__name__ if isinstance(annotation, type) and annotation.__module__ == "builtins" else str(annotation)
    )


def test_public_names_and_signatures_are_as_saved(saved) -> None:
    saved("api.txt", face())


def test_about_ten_exports_sorted_and_known_to_dir() -> None:
    assert len(workbench.__all__) <= 14
    assert set(workbench.__all__) <= set(dir(workbench))
    with pytest.raises(AttributeError, match="Workbench"):
        workbench.Workbenhc  # noqa: B018 - the access is the test


# --- nothing fails silently ---


def broad_handlers(tree: ast.Module) -> Iterator[ast.ExceptHandler]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ExceptHandler):
            types = node.type.elts if isinstance(node.type, ast.Tuple) else [node.type]
            if any(t is None or (isinstance(t, ast.Name) and t.id in {"Exception", "BaseException"}) for t in types):
                yield node


def reraises_or_records(handler: ast.ExceptHandler) -> bool:
    """It raises, or it names the exception and uses it: what was caught goes somewhere."""
    inside = [node for statement in handler.body for node in ast.walk(statement)]
    used = any(isinstance(node, ast.Name) and node.id == handler.name for node in inside)
    return any(isinstance(node, ast.Raise) for node in inside) or bool(handler.name and used)


def test_a_broad_except_raises_again_or_records() -> None:
    silent = [
        f"{file}:{h.lineno}" for file, tree in parsed() for h in broad_handlers(tree) if not reraises_or_records(h)
    ]
    assert not silent, f"a broad except that keeps nothing of what it caught: {silent}"
    suppressed = [
        f"{file}:{node.lineno}"
        for file, tree in parsed()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and getattr(node.func, "id", getattr(node.func, "attr", "")) == "suppress"
        and any(isinstance(a, ast.Name) and a.id in {"Exception", "BaseException"} for a in node.args)
    ]
    assert not suppressed, f"suppress(Exception) hides what went wrong: {suppressed}"


@pytest.mark.parametrize(
    ("body", "fine"),
    [
        ("except Exception:\n pass", False),
        ("except Exception as e:\n result = None", False),
        ("except:\n return 1", False),
        ("except (ValueError, Exception):\n log('no')", False),
        ("except Exception as e:\n record(error=str(e))", True),
        ("except BaseException:\n undo()\n raise", True),
    ],
)
def test_the_check_itself(body: str, fine: bool) -> None:
    [handler] = broad_handlers(ast.parse(f"try:\n go()\n{body}"))
    assert reraises_or_records(handler) is fine


# --- sizes ---


def test_no_file_outgrows_its_subject() -> None:
    lines = {str(path.relative_to(PROJECT)): path.read_text().count("\n") for path in SOURCES}
    assert not {file: n for file, n in lines.items() if n >= 750}
    assert not {path.stem for path in PACKAGE.rglob("*")} & NOT_NAMES_OF_ROOMS


def test_notebooks_are_small_and_hold_no_error() -> None:
    for path in (p for folder in ("notebooks", "experiments") for p in (PROJECT / folder).rglob("*.ipynb")):
        assert path.stat().st_size < 1_000_000, f"{path.name} is over a megabyte"
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        assert not [o for cell in cells for o in cell.get("outputs", []) if o["output_type"] == "error"], path.name


# --- settings and checkpoints ---


def test_every_setting_is_read_somewhere() -> None:
    read = {
        node.attr
        for file, tree in parsed()
        if not file.endswith("/settings.py")
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute)
        and "settings" in (getattr(node.value, "id", "") or getattr(node.value, "attr", "")).lower()
    }
    unread = set(Settings.model_fields) - read
    assert not unread, f"settings that nothing reads: {sorted(unread)}"


def test_checkpoints_are_strict_in_every_test() -> None:
    from langgraph.checkpoint.serde import _msgpack

    assert _msgpack.STRICT_MSGPACK_ENABLED


def test_langgraph_json_names_what_is_there() -> None:
    for place in json.loads((PROJECT / "langgraph.json").read_text())["graphs"].values():
        file, name = place.split(":")
        tree = ast.parse((PROJECT / file).read_text())
        assert name in {node.name for node in tree.body if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))}
