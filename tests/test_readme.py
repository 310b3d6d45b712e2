"""Both READMEs are true: what they name exists, what exists is named, their Python runs, and they say the same."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

import workbench
from workbench.settings import Settings

PROJECT = Path(__file__).resolve().parent.parent
READMES = ("README.md", "README.zh.md")
ALIAS_PREFIXES = ("MA_", "KB_", "OPENAI_", "POSTGRES_")


@pytest.fixture(params=READMES)
def readme(request: pytest.FixtureRequest) -> str:
    return (PROJECT / request.param).read_text(encoding="utf-8")


def blocks(text: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def commands(group: click.Group, words: tuple[str, ...] = ()) -> Iterator[str]:
    """``kb add``, ``ask``, ...: every command of the command line that does something by itself."""
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from commands(command, (*words, name))
        if not isinstance(command, click.Group) or command.invoke_without_command:
            yield " ".join((*words, name))


def test_every_export_and_command_is_named(readme: str) -> None:
    from workbench.cli import main

    assert not [name for name in workbench.__all__ if not re.search(rf"\b{name}\b", readme)]
    assert not [name for name in commands(main) if f"workbench {name}" not in readme]


def test_every_make_target_is_named_and_exists(readme: str) -> None:
    targets = set(re.findall(r"^([a-z]+):.*## ", (PROJECT / "Makefile").read_text(), re.MULTILINE)) - {"help"}
    assert set(re.findall(r"make ([a-z]+)", readme)) == targets


def test_settings_table_is_the_settings(readme: str) -> None:
    rows = dict(re.findall(r"^\| `WORKBENCH_([A-Z_]+)`[^|]*\| `?(.*?)`? \|", readme, re.MULTILINE))
    defaults = {}
    for name, field in Settings.model_fields.items():
        value = field.default.get_secret_value() if hasattr(field.default, "get_secret_value") else field.default
        defaults[name.upper()] = str(value).lower() if isinstance(value, bool) else str(value)
    assert rows == defaults
    for name, field in Settings.model_fields.items():
        for alias in getattr(field.validation_alias, "choices", ()):
            if str(alias).startswith(ALIAS_PREFIXES):
                assert re.search(rf"`WORKBENCH_{name.upper()}`[^\n]*`{alias}`", readme), f"{alias} of {name}"


def test_links_and_pictures_lead_somewhere(readme: str) -> None:
    links = [link for link in re.findall(r"\]\(([^)#]+)[^)]*\)", readme) if "://" not in link]
    assert links
    assert not [link for link in links if not (PROJECT / link).exists()]
    anchors = re.findall(r"\]\(#([^)]+)\)", readme)
    headings = {re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in re.findall(r"^#+ (.*)$", readme, re.M)}
    assert set(anchors) <= headings


def test_the_chinese_readme_is_a_full_twin() -> None:
    english, chinese = ((PROJECT / name).read_text(encoding="utf-8") for name in READMES)
    levels = [
        re.findall(r"^(#+) ", re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S), re.M) for text in (english, chinese)
    ]
    assert levels[0] == levels[1]
    for language in ("python", "sh"):
        bare = [[re.sub(r"\s*#.*", "", block) for block in blocks(text, language)] for text in (english, chinese)]
        assert bare[0] == bare[1], f"the {language} blocks differ beyond their comments"
    tables = [[line.count("|") for line in text.splitlines() if line.startswith("|")] for text in (english, chinese)]
    assert tables[0] == tables[1], "the tables differ in rows or columns"


def test_ci_runs_the_test_command_of_the_readme(readme: str) -> None:
    assert "make test" in readme
    assert "\nmake test\nmake full SLICE=" in (PROJECT / ".ci" / "run").read_text()


@pytest.mark.slow
def test_the_python_of_the_readme_runs(tmp_path: Path) -> None:
    shutil.copytree(PROJECT / "data", tmp_path / "data")
    script = tmp_path / "readme.py"
    script.write_text(
        "\n".join(blocks((PROJECT / "README.md").read_text(encoding="utf-8"), "python")), encoding="utf-8"
    )
    environment = {**os.environ, "WORKBENCH_NAMES": "rules"}  # the quick way to index; the answers' words do not matter
    done = subprocess.run([sys.executable, script], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
