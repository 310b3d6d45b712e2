"""What is declared is what is used, and blind questions are those that were frozen."""

from __future__ import annotations

import ast
import hashlib
import re
import subprocess
import sys
import tomllib
import zipfile
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from rattler import MatchSpec

from tests.blind import BLIND, rows

ALLOWED_KEYS = {"name", "channels", "dependencies"}
# Declared for what they bring besides an import: the lab itself, widgets' front end, the kernel, engines and plug-ins.
USED_WITHOUT_IMPORT = {
    "jupyterlab": "`make lab`", "ipykernel": "the kernel that notebooks run in",
    "ipywidgets": "fixed by the design; widgets/ comes with its own issue",
    "papermill": "experiments/ runs under its command",
    "threadpoolctl": "keeps the sentence encoder to one thread, by itself",
    "langgraph-cli": "started in a process of its own, by a test", "xllamacpp": "started in a process of its own",
    "editables": "the editable install that make does", "hatchling": "builds the wheel",
    "import-linter": "`make lint`", "ruff": "`make lint`", "mypy": "`make types`", "sphinx": "`make docs`",
    "sphinx-click": "an extension of sphinx", "myst-nb": "an extension of sphinx",
    "pydata-sphinx-theme": "a theme of sphinx", "nbval": "a plug-in of pytest",
    "pytest-asyncio": "a plug-in of pytest", "pytest-cov": "a plug-in of pytest",
    "pytest-xdist": "a plug-in of pytest", "pandas-stubs": "read by mypy", "types-networkx": "read by mypy",
    "mlflow-skinny": "experiments/interchange.py", "evalstats": "a test takes it by name",
    "types-pyyaml": "read by mypy",
}  # fmt: skip


@pytest.fixture(scope="module")
def pyproject(project: Path) -> dict:
    return tomllib.loads((project / "pyproject.toml").read_text())


@pytest.fixture(scope="module")
def environment(project: Path) -> dict:
    return yaml.safe_load((project / "environment.yml").read_text())


def requirements(lines: list[str]) -> dict[str, tuple[str, ...]]:
    """Canonical name -> its version specifiers, sorted."""
    parsed = [Requirement(line) for line in lines]
    return {canonicalize_name(r.name): tuple(sorted(map(str, r.specifier))) for r in parsed}


def declared(pyproject: dict, *extras: str) -> dict[str, tuple[str, ...]]:
    optional = pyproject["project"]["optional-dependencies"]
    return requirements(
        [*pyproject["project"]["dependencies"], *(line for extra in extras for line in optional[extra])]
    )


def test_environment_has_only_what_conda_knows(environment: dict) -> None:
    assert set(environment) == ALLOWED_KEYS
    assert [type(item) for item in environment["dependencies"]].count(dict) == 1, "one pip section"


def test_environment_says_the_same_as_pyproject(environment: dict, pyproject: dict) -> None:
    *conda, pip = environment["dependencies"]
    assert pip["pip"][-1] == "-e ."
    specs = [MatchSpec(line, strict=True) for line in conda]
    conda_lines = [f"{spec.name.normalized} {spec.version or ''}" for spec in specs]
    wanted = declared(pyproject, "offline") | requirements([f"python {pyproject['project']['requires-python']}", "pip"])
    assert requirements([*conda_lines, *pip["pip"][:-1]]) == wanted


def test_lock_has_every_dependency_pinned_by_hash_and_no_address(project: Path, pyproject: dict) -> None:
    lock = (project / "requirements" / "lock.txt").read_text()
    pinned = {canonicalize_name(name) for name in re.findall(r"^([\w.-]+)(?:\[.*\])?==", lock, re.MULTILINE)}
    assert set(declared(pyproject, "offline", "eval", "test", "postgres")) <= pinned
    for file in ("lock.txt", "local.txt", "apart.txt", "build.txt", "uv.txt"):
        text = (project / "requirements" / file).read_text()
        assert not re.search(r"://|--(extra-)?index|--find-links", text), f"{file} holds an address"
        blocks = re.split(r"\n(?=\S)", text.strip())
        assert all("--hash=sha256:" in block for block in blocks), f"{file} has an entry without a hash"


def test_local_models_are_the_ones_of_the_extra(project: Path, pyproject: dict) -> None:
    [server] = pyproject["project"]["optional-dependencies"]["local"]
    assert f"{server} " in (project / "requirements" / "local.txt").read_text()


providers_of = cache(packages_distributions)


@cache
def imported(folder: Path) -> dict[str, str]:
    """Canonical distribution name -> one file that imports it."""
    own = {"workbench", "tests", "experiments", "conftest"} | {path.stem for path in folder.rglob("*.py")}
    providers = providers_of()
    found = {}
    for path in sorted(folder.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.level == 0:
                names = [str(node.module)]
            else:
                continue
            for top in {name.partition(".")[0] for name in names} - own - sys.stdlib_module_names:
                [*distributions] = {canonicalize_name(name) for name in providers.get(top, [top])}
                found |= dict.fromkeys(distributions, str(path.relative_to(folder.parent)))
    return found


# What comes with a declared distribution and is part of its public face.
BROUGHT_ALONG = {
    "langgraph-checkpoint": "langgraph",
    "langgraph-prebuilt": "langgraph",
    "langgraph-sdk": "langgraph",
    "aiosqlite": "langgraph-checkpoint-sqlite",
    "nbclient": "papermill",
    "traitlets": "ipywidgets",
    "psutil": "ipykernel",
    "mcp-types": "mcp",
    "torch": "sentence-transformers",
    "transformers": "sentence-transformers",
    "anyio": "mcp",
    # one namespace of many distributions
    "opentelemetry-api": "opentelemetry-sdk",
    "opentelemetry-semantic-conventions": "opentelemetry-sdk",
    "opentelemetry-proto": "opentelemetry-exporter-otlp-proto-http",
    "opentelemetry-exporter-http-transport": "opentelemetry-exporter-otlp-proto-http",
    "opentelemetry-exporter-otlp-common": "opentelemetry-exporter-otlp-proto-http",
    "opentelemetry-exporter-otlp-proto-common": "opentelemetry-exporter-otlp-proto-http",
    "opentelemetry-exporter-otlp-proto-grpc": "opentelemetry-exporter-otlp-proto-http",
    "opentelemetry-exporter-prometheus": "opentelemetry-exporter-otlp-proto-http",
}


def test_every_import_is_declared(project: Path, pyproject: dict) -> None:
    package = declared(
        pyproject, "offline", "local", "postgres", "eval", "tracing", "metrics", "mcp", "http", "lancedb", "reports",
        "cross-encoder", "optuna", "dask", "apprise",
    )  # fmt: skip
    for folder, allowed in (("workbench", package), ("tests", package | declared(pyproject, "test"))):
        strangers = {
            name: where
            for name, where in imported(project / folder).items()
            if name not in allowed and BROUGHT_ALONG.get(name) not in allowed
        }
        assert not strangers, f"imported and not declared in pyproject.toml: {strangers}"


def test_every_declaration_is_used(project: Path, pyproject: dict) -> None:
    used = set(imported(project / "workbench")) | set(imported(project / "tests"))
    unused = set(declared(pyproject, *pyproject["project"]["optional-dependencies"])) - used - set(USED_WITHOUT_IMPORT)
    assert not unused, f"declared and never imported: {sorted(unused)}; take it out, or say here what it is for"


@pytest.mark.full
def test_wheel_holds_the_package_and_not_the_corpus(project: Path, tmp_path: Path) -> None:
    build = "from hatchling.build import build_wheel; import sys; print(build_wheel(sys.argv[1]))"
    done = subprocess.run(
        [sys.executable, "-c", build, str(tmp_path)], cwd=project, check=True, capture_output=True, text=True
    )
    names = zipfile.ZipFile(tmp_path / done.stdout.split()[-1]).namelist()
    package = [name for name in names if name.startswith("workbench/")]
    assert set(names) - set(package) == {name for name in names if ".dist-info/" in name}, "only the package is in it"
    on_disk = {
        str(path.relative_to(project))
        for path in (project / "workbench").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert set(package) == on_disk
    assert any(name.endswith("licenses/LICENSE") for name in names)


KINDS = (".jsonl", ".csv", ".md", ".rst", ".canvas")


def test_the_blind_sets_are_those_that_were_frozen():
    """A vocabulary may change its form, the corpora and the gold may not."""
    frozen = (BLIND / "SHA256SUMS").read_text(encoding="utf-8").splitlines()
    files = [path for path in BLIND.rglob("*") if path.is_file() and path.suffix in KINDS]
    found = [f"{hashlib.sha256(p.read_bytes()).hexdigest()}  {p.relative_to(BLIND).as_posix()}" for p in files]
    assert {line for line in found if not line.endswith("README.md")} == set(frozen)


def test_the_reworded_questions_are_those_that_were_frozen():
    """Only those in ``fitting`` are of the half that constants are fitted on."""
    folder = BLIND.parent / "reworded"
    for line in (folder / "SHA256SUMS").read_text(encoding="utf-8").splitlines():
        digest, name = line.split("  ")
        assert hashlib.sha256((folder / name).read_bytes()).hexdigest() == digest
        asked = rows(folder / name)
        fits = name.startswith("fitting/")
        assert len(asked) == (30 if fits else 60)
        assert all(q["gold"] and len({q["question"], q["en"], q["zh"]}) == 3 for q in asked)
        last = {hashlib.sha256(f"half {q['id']}".encode()).hexdigest()[-1] for q in asked}
        assert last <= set("02468ace" if fits else "13579bdf")


FOLDER = Path(__file__).resolve().parent.parent / "experiments" / "questions"


def test_corpora_and_questions_are_those_that_were_frozen():
    frozen = (FOLDER / "SHA256SUMS").read_text(encoding="utf-8").splitlines()
    files = [path for path in FOLDER.rglob("*") if path.is_file() and path.name not in ("README.md", "SHA256SUMS")]
    present = {f"{hashlib.sha256(p.read_bytes()).hexdigest()}  {p.relative_to(FOLDER).as_posix()}" for p in files}
    assert present == set(frozen)
