"""The rules of the house, held by tests: directions, doors, rooms, budgets, the saved face, no word of films."""

import ast
import inspect
import io
import json
import re
import subprocess
import sys
import tokenize
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import workbench
from experiments import house
from workbench.settings import all_settings

PROJECT = Path(__file__).resolve().parent.parent
PACKAGE = PROJECT / "workbench"
SOURCES = sorted(PACKAGE.rglob("*.py"))
NOT_NAMES_OF_ROOMS = {"base", "core", "factory", "helpers", "manager", "utils"}
HEAVY = {"chromadb", "langgraph", "langchain_core", "langchain_openai", "plotly", "ipywidgets", "pandas", "networkx"}


@cache
def parsed() -> list[tuple[str, ast.Module]]:
    return [(str(path.relative_to(PROJECT)), ast.parse(path.read_text(encoding="utf-8"))) for path in SOURCES]


def test_imports_run_downwards_and_libraries_enter_by_their_doors() -> None:
    command = [sys.executable, "-c", "from importlinter.cli import lint_imports_command; lint_imports_command()"]
    done = subprocess.run([*command, "--no-cache"], cwd=PROJECT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_starting_loads_nothing_heavy() -> None:
    code = (
        "import json, sys; from workbench import Plan, PlanStep, Settings, WorkbenchError\n"
        "import click.testing, workbench.cli; click.testing.CliRunner().invoke(workbench.cli.main, ['--help'])\n"
        "print(json.dumps([*sys.modules]))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not set(json.loads(done.stdout.splitlines()[-1])) & HEAVY


def test_the_map_names_every_room_and_keeps_to_the_floors() -> None:
    rooms, sentences = house.files(), house.sentences()
    assert list(sentences) == [room for floor in house.floors() for room in floor] and set(sentences) == set(rooms)
    modules = [room for room in rooms if (PACKAGE / f"{room}.py").exists()]
    assert len(modules) + 1 <= 12, "the first floor holds at most 12 modules"  # and the package's own face
    assert len(rooms) - len(modules) <= 15, "and at most 15 folders"
    deepest = max(len(path.relative_to(PACKAGE).parts) for path in SOURCES)
    assert deepest <= 3, "two floors of folders"
    assert not {path.stem for path in PACKAGE.rglob("*")} & NOT_NAMES_OF_ROOMS


def test_the_package_keeps_to_its_budget() -> None:
    budget, count = house.settings()["tool"]["house"]["tokens"], sum(house.measured().values())
    assert count <= budget, f"{count:,} tokens, {budget:,} allowed. Delete something."


def test_the_page_of_the_architecture_is_up_to_date() -> None:
    told = house.PAGE.read_text(encoding="utf-8")
    assert house.page(told) == told, "run `make house`"
    named = re.findall(r"`([a-z_]+/[a-z_/]+\.py|[a-z_]+\.py)`", told + (PROJECT / "CONTRIBUTING.md").read_text())
    assert not [file for file in named if not any((root / file).exists() for root in (PACKAGE, PROJECT))]


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
        ours = [base for base in reversed(value.__mro__) if base.__module__.startswith("workbench")]
        for member, kind in sorted({name: kind for base in ours for name, kind in vars(base).items()}.items()):
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
    assert len(workbench.__all__) <= 14 and set(workbench.__all__) <= set(dir(workbench))
    with pytest.raises(AttributeError, match="Workbench"):
        workbench.Workbenhc  # noqa: B018 - the access is the test


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


def test_notebooks_are_small_and_hold_no_error() -> None:
    for path in (p for folder in ("notebooks", "experiments") for p in (PROJECT / folder).rglob("*.ipynb")):
        assert path.stat().st_size < 1_000_000, f"{path.name} is over a megabyte"
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        assert not [o for cell in cells for o in cell.get("outputs", []) if o["output_type"] == "error"], path.name


def test_every_setting_is_read_somewhere() -> None:
    read = {
        node.attr
        for file, tree in parsed()
        if not file.endswith("/settings.py")
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute)
        and "settings" in (getattr(node.value, "id", "") or getattr(node.value, "attr", "")).lower()
    }
    unread = set(all_settings().model_fields) - read - {"models"}
    assert not unread, f"settings that nothing reads: {sorted(unread)}"


HOUSE = Path(workbench.__file__).parent
TMDB = HOUSE / "parts" / "sources" / "tmdb.py"
"""Allowed: it reads the answers of one database of films, for bases whose vocabulary asks for it, and no other."""
# Genres, types, roles, stars, scripts and sequels are of books, music and games too.
WORDS = re.compile(
    r"(?<![a-z])(?:films?|filming|filmed|filmmak\w+|movies?|cinema\w*|directors?|directorial|actors?"
    r"|directed(?![_ ](?:acyclic|graph))|actress(?:es)?"
    r"|casts?|starred|starring|screenplays?|screenwrit\w+|box office)(?![a-z])"
    "|电影|影片|片子|片名|片长|影院|影迷|影评|导演|执导|演员|主演|出演|参演|饰演|编剧|剧本|票房|上映|喜宴|李安|诺兰"
    "|wedding banquet|ang lee|nolan",
    re.IGNORECASE,
)


def said(path: Path) -> str:
    """What a file says: of Python not ``typing.cast``, and of SQL not ``CAST``."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        tokens = tokenize.generate_tokens(io.StringIO(text).readline)
        text = " ".join(token.string for token in tokens if token.string != "cast")
    return re.sub(r"\bCAST\b", "", text)


def test_no_file_of_the_package_holds_a_word_of_films():
    files = [path for path in HOUSE.rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    assert len(files) > 150 and {".py", ".txt", ".toml", ".json", ".css"} <= {path.suffix for path in files}
    found = {
        str(path.relative_to(HOUSE)): sorted({word.lower() for word in WORDS.findall(said(path))})
        for path in files
        if path.with_suffix(".py") != TMDB
    }
    assert {name: words for name, words in found.items() if words} == {}
