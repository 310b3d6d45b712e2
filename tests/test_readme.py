"""The READMEs and the docs are true and short: what they name exists, what exists is named, their snippets run."""

import re
import runpy
import sys
import tomllib
from collections.abc import Iterator
from contextlib import chdir
from importlib import invalidate_caches
from pathlib import Path
from types import SimpleNamespace

import pytest
from click.testing import CliRunner

import workbench
from tests import snippets
from tests.snippets import FENCE, PROJECT, READMES, pages, read
from workbench.settings import all_settings

NOT_OURS = {"WORKBENCH_WORKSPACE", "WORKBENCH_LOCAL_MODEL"}
MOST_LINES, MOST_WORDS, MOST_CHARACTERS = 150, 80, 260
"""Of a README; of a paragraph in English; of a paragraph in Chinese."""
PAGES = pages()
MOST_COLUMNS = 88
MADE = {"docs/explanation/bad-input.md", "docs/architecture.md"}
"""Written by a command."""


def targets() -> set[str]:
    return set(re.findall(r"^([a-z]+):.*## ", read("Makefile"), re.MULTILINE)) - {"help"}


def paragraphs(page: str) -> Iterator[str]:
    """Yield the text between blank lines: no code, table, list of pages or comment; a list item is one of its own."""
    bare = re.sub(r"^```.*?^```$", "", read(page), flags=re.MULTILINE | re.DOTALL)
    for block in re.split(r"\n\s*\n|\n(?=- |\d+\. )", bare):
        if block.strip() and not block.lstrip().startswith(("|", "<!--", "#")):
            yield re.sub(r"\]\([^)]*\)", "]", block)


@pytest.mark.parametrize("page", READMES)
def test_a_readme_is_short_and_says_what_was_asked_for(page: str) -> None:
    text = read(page)
    assert len(text.splitlines()) <= MOST_LINES
    assert text.count("](notebooks/images/") == 1
    for word in ("make demo", "make test", "papermill", "LICENSE", "docs/tutorial/index.md", "docs/howto/index.md"):
        assert word in text, word


@pytest.mark.parametrize("page", PAGES)
def test_a_page_is_short(page: str) -> None:
    for paragraph in paragraphs(page):
        chinese = len(re.findall(r"[\u4e00-\u9fff]", paragraph))
        assert chinese <= MOST_CHARACTERS, paragraph
        assert chinese or len(paragraph.split()) <= MOST_WORDS, paragraph
    if page.startswith("docs/") and page not in MADE:
        assert sum(len(paragraph.split()) for paragraph in paragraphs(page)) <= 600
    lines = [line for snippet in snippets.snippets(page) for line in snippet.text.splitlines()]
    assert not [line for line in lines if len(line) > MOST_COLUMNS and "nightly.lock" not in line]  # of a crontab


@pytest.mark.parametrize("page", PAGES)
def test_what_a_page_names_exists(page: str) -> None:
    text = read(page)
    assert {line: unknown for line in snippets.commands(page) if (unknown := snippets.unknown_of(line))} == {}
    variables = set(re.findall(r"\bWORKBENCH_[A-Z_]+?[A-Z](?=__|\b)", text)) - NOT_OURS
    assert variables <= {f"WORKBENCH_{name.upper()}" for name in all_settings().model_fields}
    assert set(re.findall(r"`make ([a-z]+)|^make ([a-z]+)", text)) <= {(name, "") for name in targets()}
    named = {extra for group in re.findall(r"workbench\[([a-z,-]+)\]", text) for extra in group.split(",")}
    assert named <= set(tomllib.loads(read("pyproject.toml"))["project"]["optional-dependencies"])

    links = [link for link in re.findall(r"\]\(([^)#]+)[^)]*\)", FENCE.sub("", text)) if "://" not in link]
    assert not [link for link in links if not (PROJECT / page).parent.joinpath(link).exists()]
    files = re.findall(r"`((?:tests|experiments|docs|data|notebooks|workbench)/[\w./-]+)`", text)
    assert not [name for name in files if not (PROJECT / name.rstrip("/")).exists()]


def test_everything_is_listed_described_and_plain() -> None:
    assert targets() <= set(re.findall(r"`make ([a-z]+)", read("CONTRIBUTING.md")))
    assert set(workbench.__all__) <= set(re.findall(r"^   (\w+)$", read("docs/reference/api.md"), re.MULTILINE))
    listed = {
        str((PROJECT / page).parent.joinpath(f"{line}.md").resolve().relative_to(PROJECT))
        for page in PAGES
        for tree in re.findall(r"^```\{toctree\}\n(.*?)^```$", read(page), re.MULTILINE | re.DOTALL)
        for line in tree.splitlines()
        if line and not line.startswith(":")
    }
    assert {page for page in PAGES if page.startswith("docs/")} - listed == {"docs/index.md"}
    page = runpy.run_path(str(PROJECT / "docs" / "_ext" / "settings_rows.py"))
    assert not [row["name"] for row in page["rows"]() if not row["meaning"]]
    described = {name for name, field in all_settings().model_fields.items() if field.description}
    assert not described & set(page["NOTES"])
    terms = re.findall(r"^\| ([a-z -]+) \| [\u4e00-\u9fff]", read("docs/reference/glossary.md"), re.MULTILINE)[1:]
    assert len(terms) >= 40 and terms == sorted(terms)
    elsewhere = " ".join(read(page) for page in PAGES if not page.endswith("glossary.md")).lower()
    assert not [term for term in terms if not re.search(rf"\b{re.sub('y$', '', term)}", elsewhere)]
    dialect = re.compile(r"\b(?:mend|mends|anew|at hand|of one's own|by itself|lets? go of)\b")
    assert not [(page, found[0]) for page in PAGES if page not in MADE and (found := dialect.search(read(page)))]
    assert "\nmake test\nmake full SLICE=" in (PROJECT / ".ci" / "run").read_text()
    assert "make docs" in (PROJECT / ".github" / "workflows" / "test.yml").read_text()


def test_the_part_of_the_recipe_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from workbench import extensions
    from workbench.cli import main

    for snippet in snippets.snippets("docs/howto/write-a-part.md"):
        if snippet.language == "python":
            file = tmp_path / snippet.text.splitlines()[0].removeprefix("# ")
            file.parent.mkdir(exist_ok=True)
            file.write_text(snippet.text, encoding="utf-8")
        elif snippet.language == "toml":
            entries = tomllib.loads(snippet.text)["project"]["entry-points"]["workbench.parts"]
            lines = ["[workbench.parts]", *(f"{name} = {value}" for name, value in entries.items())]
            info = tmp_path / "wordcount-0.1.dist-info"
            info.mkdir()
            (info / "METADATA").write_text("Metadata-Version: 2.1\nName: wordcount\nVersion: 0.1\n")
            (info / "entry_points.txt").write_text("\n".join(lines))
    monkeypatch.syspath_prepend(str(tmp_path))
    invalidate_caches()
    extensions.parts.cache_clear()
    try:
        assert extensions.provided("run", "word_count")(SimpleNamespace(answer="one two")) == 2
        assert "What stands between" in CliRunner().invoke(main, ["words"]).output
    finally:
        main.commands.pop("words", None)
        monkeypatch.undo()
        extensions.parts.cache_clear()
        for name in [name for name in sys.modules if name.partition(".")[0] == "wordcount"]:
            del sys.modules[name]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory, film_index: Path) -> Path:
    return snippets.prepared(tmp_path_factory.mktemp("snippets"), film_index)


@pytest.mark.slow
@pytest.mark.few(8)
@pytest.mark.parametrize("page", [page for page in PAGES if snippets.runnable(page)])
def test_the_snippets_of_a_page_run(page: str, place: Path) -> None:
    with chdir(place):
        snippets.run(page)
