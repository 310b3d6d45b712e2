"""What is declared is what is used, and blind questions are those that were frozen."""

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

from tests.cases import tables

USED_WITHOUT_IMPORT, BROUGHT_ALONG = map(dict, tables("environment", end="\n").values())


@pytest.fixture(scope="module")
def pyproject(project: Path) -> dict:
    return tomllib.loads((project / "pyproject.toml").read_text())


def requirements(lines: list[str]) -> dict[str, tuple[str, ...]]:
    """Canonical name -> its version specifiers, sorted."""
    parsed = [Requirement(line) for line in lines]
    return {canonicalize_name(r.name): tuple(sorted(map(str, r.specifier))) for r in parsed}


def declared(pyproject: dict, *extras: str) -> dict[str, tuple[str, ...]]:
    optional = pyproject["project"]["optional-dependencies"]
    return requirements(
        [*pyproject["project"]["dependencies"], *(line for extra in extras for line in optional[extra])]
    )


def test_environment_says_the_same_as_pyproject(project: Path, pyproject: dict) -> None:
    environment = yaml.safe_load((project / "environment.yml").read_text())
    *conda, pip = environment["dependencies"]
    assert set(environment) == {"name", "channels", "dependencies"} and pip["pip"][-1] == "-e ."
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
    [server] = pyproject["project"]["optional-dependencies"]["local"]
    assert f"{server} " in (project / "requirements" / "local.txt").read_text()


@cache
def imported(folder: Path) -> dict[str, str]:
    """Canonical distribution name -> one file that imports it."""
    own = {"workbench", "tests", "experiments", "conftest"} | {path.stem for path in folder.rglob("*.py")}
    providers = packages_distributions()
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


def test_every_import_is_declared_and_every_declaration_used(project: Path, pyproject: dict) -> None:
    extras = set(pyproject["project"]["optional-dependencies"])
    package = declared(pyproject, *extras - {"test", "docs", "mlflow"})
    for folder, allowed in (("workbench", package), ("tests", package | declared(pyproject, "test"))):
        strangers = {
            name: where
            for name, where in imported(project / folder).items()
            if name not in allowed and BROUGHT_ALONG.get(name) not in allowed and "opentelemetry-" not in name
        }
        assert not strangers, f"imported and not declared in pyproject.toml: {strangers}"
    used = {name for folder in ("workbench", "tests", "experiments") for name in imported(project / folder)}
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
    files = [path for path in (project / "workbench").rglob("*") if path.is_file()]
    assert set(package) == {str(path.relative_to(project)) for path in files if "__pycache__" not in path.parts}
    assert any(name.endswith("licenses/LICENSE") for name in names)


@pytest.mark.parametrize("place", ["data/blind", "experiments/questions"])
def test_corpora_and_questions_are_those_that_were_frozen(project: Path, place: str) -> None:
    """A vocabulary may change its form, the corpora and the gold may not."""
    folder = project / place
    files = [path for path in folder.rglob("*") if path.is_file()]
    files = [path for path in files if path.suffix != ".toml" and path.name not in ("README.md", "SHA256SUMS")]
    found = {f"{hashlib.sha256(p.read_bytes()).hexdigest()}  {p.relative_to(folder).as_posix()}" for p in files}
    assert found == set((folder / "SHA256SUMS").read_text(encoding="utf-8").splitlines())


def test_a_package_that_starts_without_a_library_is_whole_for_others() -> None:
    code = """if True:
        import tempfile; from workbench import Workbench
        Workbench.open(tempfile.mkdtemp()).close()
        import pandas, sqlite_utils; assert pandas.Timestamp in sqlite_utils.db.COLUMN_TYPE_MAPPING"""
    subprocess.run([sys.executable, "-c", code], check=True)
