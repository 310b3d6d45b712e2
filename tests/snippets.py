"""The snippets of the READMEs and the docs: found, checked and run.

``python -m tests.snippets PAGE...`` runs those of some pages, or of all, in the present folder. A page's Python is one
script, run in this process in a folder with ``data``, ``experiments`` and ``my-workspace``, which knows the films.
Lines of a ``sh`` block that begin with ``workbench`` are run in the same workspace; ``RUN_ID`` is the newest run. A
``text`` block behind a snippet is what it prints, where ``...`` stands for anything. ``<!-- not run: REASON -->``
before a block exempts it; its commands and options must exist all the same.
"""

import contextlib
import doctest
import io
import re
import shlex
import shutil
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import click
from click.testing import CliRunner

PROJECT = Path(__file__).resolve().parent.parent
READMES = ("README.md", "README.zh.md")
FENCE = re.compile(
    r"^(?P<mark><!-- not run: (?P<reason>.+?) -->\n)?```(?P<language>\w+)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL
)
COMMAND = re.compile(r"`(workbench [a-z][^`]*)`")


class Snippet(NamedTuple):
    """One fenced block of a page."""

    page: str
    line: int
    language: str
    text: str
    reason: str
    """Why it is not run; empty: it is."""


def pages() -> list[str]:
    """Return every page of prose, relative to the project."""
    docs = sorted((PROJECT / "docs").rglob("*.md"))
    return [*READMES, "CONTRIBUTING.md", *(str(path.relative_to(PROJECT)) for path in docs)]


def read(page: str) -> str:
    return (PROJECT / page).read_text(encoding="utf-8")


def snippets(page: str) -> list[Snippet]:
    """Return the fenced blocks of a page, in order."""
    text = read(page)
    return [
        Snippet(page, text.count("\n", 0, match.start()) + 1, match["language"], match["text"], match["reason"] or "")
        for match in FENCE.finditer(text)
    ]


def shell_lines(text: str) -> list[str]:
    """Return the commands of a shell block: continued lines joined, comments left out."""
    joined = re.sub(r"\\\n\s*", "", text)
    lines = [re.sub(r"(^|\s+)#.*", "", line).strip() for line in joined.splitlines()]
    return [line for line in lines if line]


def unknown_of(line: str) -> str:
    """Return what a ``workbench`` command line names that does not exist, else ""."""
    from workbench.cli import main

    words = shlex.split(line)[1:]
    command: click.Command = main
    while isinstance(command, click.Group) and words and not words[0].startswith("-"):
        found = command.get_command(click.Context(command), words[0])
        if found is None:
            return words[0]
        command, words = found, words[1:]
    options = {name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)}
    return next(
        (word for word in words if word.startswith("--") and word.partition("=")[0] not in {*options, "--help"}), ""
    )


def prepared(folder: Path, film_index: Path) -> Path:
    """Make the folder in which snippets run; the index of the films is copied, since snippets may add to it."""
    for name in ("data", "experiments", "notebooks"):
        (folder / name).symlink_to(PROJECT / name, target_is_directory=True)
    (folder / "build").mkdir()
    shutil.copytree(film_index / "knowledge", folder / "my-workspace" / "knowledge")
    return folder


def _run_shell(line: str) -> str:
    from workbench import Workbench
    from workbench.cli import main

    if "RUN_ID" in line:
        with Workbench.open("my-workspace") as wb:
            line = line.replace("RUN_ID", wb.runs.list(limit=1)[0].run_id)
    done = CliRunner(env={"WORKBENCH_WORKSPACE": "my-workspace"}).invoke(
        main, shlex.split(line)[1:], prog_name="workbench"
    )
    if done.exit_code not in (0, 3):
        raise AssertionError(f"{line}\n{done.output}") from done.exception
    return done.stdout


def _check_output(snippet: Snippet, printed: str) -> None:
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    expected = "\n".join("..." if line.strip() == "…" else line for line in snippet.text.splitlines()) + "\n"
    if not doctest.OutputChecker().check_output(expected, printed, flags):
        raise AssertionError(f"{snippet.page}:{snippet.line} says\n{snippet.text}\nand this was printed:\n{printed}")


def run(page: str) -> None:
    """Run a page's snippets in the present folder.

    Raises:
        AssertionError: a command failed, or something else was printed than the page says.
    """
    names: dict[str, Any] = {"__name__": "__main__"}
    printed: str | None = None
    for snippet in snippets(page):
        if snippet.reason:
            printed = None
        elif snippet.language == "python":
            out = io.StringIO()
            code = compile("\n" * snippet.line + snippet.text, str(PROJECT / page), "exec")
            with contextlib.redirect_stdout(out):
                exec(code, names)  # noqa: S102 - the page's own code
            printed = out.getvalue()
        elif snippet.language == "sh":
            printed = "".join(_run_shell(line) for line in shell_lines(snippet.text) if line.startswith("workbench "))
        elif snippet.language == "text":
            if printed is not None:
                _check_output(snippet, printed)
            printed = None
        elif snippet.language == "toml":
            tomllib.loads(snippet.text)


def runnable(page: str) -> bool:
    """Check whether a page has anything to run."""
    return any(not snippet.reason and snippet.language in ("python", "sh") for snippet in snippets(page))


def commands(page: str) -> Iterator[str]:
    """Yield every command line of the workbench that a page shows, in blocks and in its text."""
    for snippet in snippets(page):
        if snippet.language == "sh":
            yield from (line for line in shell_lines(snippet.text) if line.startswith("workbench "))
    yield from COMMAND.findall(FENCE.sub("", read(page)))


if __name__ == "__main__":
    import time
    import traceback

    for name in sys.argv[1:] or pages():
        begun = time.perf_counter()
        try:
            run(name)
        except Exception:
            traceback.print_exc()
        print(f"{time.perf_counter() - begun:6.1f} s  {name}", file=sys.stderr)
