"""Where a command reads and writes: results on standard output, all else on standard error; five exit codes."""

from __future__ import annotations

import json
import os
import shlex
import sys
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property, wraps
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from workbench.errors import PlanError, WorkbenchError, WorkspaceError
from workbench.extensions import load, paths
from workbench.state import Json, Progress
from workbench.text import to_json, visible, visible_json

if TYPE_CHECKING:
    from rich.console import Console

    from workbench.session import Workbench
    from workbench.views.blocks import Block


DONE, FAILED, USAGE, PAUSED, INTERRUPTED = range(5)
EXIT_CODES: Mapping[str, int] = {
    "done": DONE,
    "paused": PAUSED,
    "interrupted": INTERRUPTED,
    "running": INTERRUPTED,
}
"""Status of a run -> exit code; any other status is 1."""


class Pair(click.ParamType):
    """``field=value`` from the command line."""

    name = "field=value"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> Any:
        """Split the field from its value."""
        field, sign, text = str(value).partition("=")
        if not field or not sign:
            self.fail(f"{value!r} is not a pair. Write it as field=value.", param, ctx)
        return field, text


def parse_points(review: str) -> str | list[str]:
    """Read ``plan,reflect``, or ``all``."""
    if review == "all":
        return review
    return [point.strip() for point in review.split(",") if point.strip()]


class JsonFile(click.ParamType):
    """A file with a JSON object; ``-`` is standard input."""

    name = "file"

    def __init__(self, example: str):
        self._example = example

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> Any:
        """Read the object."""
        try:
            with click.open_file(value, encoding="utf-8") as file:
                # Characters of a JSON file that are read: a larger one breaks in its middle, and is refused as no
                # JSON.
                return json_object(file.read(2**22 + 1), self._example)
        except UnicodeDecodeError:
            self.fail(f"{value} is not UTF-8.", param, ctx)
        except ValueError as error:
            self.fail(f"{value}: {error}", param, ctx)
        except OSError as error:
            self.fail(f"{value} cannot be read: {error.strerror}.", param, ctx)


def json_object(text: str, example: str = '{"query": "..."}') -> Json:
    """Parse a JSON object.

    Raises:
        ValueError: says where the JSON breaks, or what it is not.
    """
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        raise ValueError(
            f"line {error.lineno}, column {error.colno}: this is not JSON: {error.msg}."
        ) from None
    except (ValueError, RecursionError) as error:
        raise ValueError(f"it cannot be used: {error}. Give plain JSON values.") from None
    if not isinstance(value, dict):
        raise ValueError(f"it is no JSON object. Write it as {example}.")
    return value


class Page:
    """What one command needs of its surroundings: the workspace, and how to write."""

    def __init__(self, workspace: str, as_json: bool):
        self.workspace = Path(workspace).expanduser()
        self.as_json = as_json

    @cached_property
    def out(self) -> Console:
        """For results."""
        return _console(sys.stdout)

    @cached_property
    def err(self) -> Console:
        """For everything that is not the result."""
        return _console(sys.stderr)

    @property
    def watched(self) -> bool:
        """Return whether a person sees progress."""
        return sys.stderr.isatty() and not self.as_json

    @property
    def progress(self) -> Progress | None:
        """Return what says how far long work is, where a person sees it; None elsewhere."""

        def tell(name: str, done: int, total: int) -> None:
            if done == total or done % 20 == 0:
                self.say(f"{name}: {done} of {total}", "dim")

        return tell if self.watched else None

    @property
    def person(self) -> bool:
        """Return whether a person can be asked."""
        return self.watched and sys.stdin.isatty()

    def open(self, *, make: bool = False) -> Workbench:
        """Open the workspace; a missing one is made only by commands that put something into it."""
        if not make and not self.workspace.exists():
            raise WorkspaceError(
                f"There is no workspace at {self.workspace}. Make one with `workbench demo` or "
                "`workbench kb add NAME PATH...`, or name another with --workspace DIR."
            )
        from workbench.session import Workbench

        return Workbench.open(self.workspace)

    def result(self, document: Any) -> None:
        """Print the one document of ``--json``."""
        click.echo(visible_json(json.dumps(document, ensure_ascii=False, indent=2)))

    def present(self, result: Any, document: Any = None) -> None:
        """Print something that has a document for a script (its own, or this) and blocks for a person."""
        if self.as_json:
            self.result(document or result.to_dict())
        else:
            self.show(result.blocks())

    def give(self, document: Any, *lines: str) -> None:
        """Print the one document of ``--json``, or say these lines to the person."""
        if self.as_json:
            self.result(document)
            return
        for line in lines:
            self.say(line)

    def table(
        self,
        document: Any,
        columns: Sequence[str],
        rows: Iterable[Sequence[str]],
        empty: str = "",
    ) -> None:
        """Print the one document of ``--json``, or rows under columns (``name`` or ``name:kind``), or why none are."""
        from workbench.views.blocks import Column, Table

        if self.as_json:
            self.result(document)
        elif rows := tuple(map(tuple, rows)):
            heads = (name.partition(":") for name in columns)
            self.show(
                [
                    Table(
                        "",
                        tuple(
                            Column(name, kind or "text", whole=bool(kind))
                            for name, _, kind in heads
                        ),
                        rows,
                    )
                ]
            )
        else:
            self.say(empty)

    def show(self, blocks: Iterable[Block], console: Console | None = None) -> None:
        """Print blocks with an empty line between them; bare text when another program reads it."""
        from workbench.views.terminal import plain, renderable

        console = console or self.out
        if not console.is_terminal:
            click.echo(plain(blocks, console.width, wrap=False), file=console.file)
            return
        for block in blocks:
            console.print(renderable(block), "")

    def say(self, text: str, style: str = "") -> None:
        """Print a line for the person on standard error; without a style it has the colour of its sign."""
        from rich.text import Text

        from workbench.views.terminal import sign_look

        self.err.print(Text(visible(text), style or sign_look(text)), soft_wrap=True)

    def command(self, *words: str) -> str:
        """Return a command line that can be pasted, for this workspace."""
        elsewhere = (
            []
            if self.workspace == Path(default_workspace())
            else ["--workspace", str(self.workspace)]
        )
        return shlex.join(["workbench", *words, *elsewhere])


def default_workspace() -> str:
    """``WORKBENCH_WORKSPACE``, or ``.workbench`` where one stands."""
    return os.environ.get("WORKBENCH_WORKSPACE") or ".workbench"


def paged(function: Callable[..., int | None]) -> Callable[..., None]:
    """Add ``--workspace`` and ``--json`` to a command, which gets a ``Page`` first and returns the exit code."""

    @click.option(
        "--workspace", metavar="DIR", default=default_workspace, show_default=".workbench",
        help="Folder that holds everything; also WORKBENCH_WORKSPACE.",
    )  # fmt: skip
    @click.option(
        "--json",
        "as_json",
        is_flag=True,
        help="One JSON document on standard output and nothing else.",
    )
    @wraps(function)
    def command(workspace: str, as_json: bool, **arguments: Any) -> None:
        read = {name: _utf8(value) for name, value in arguments.items()}
        if code := function(Page(_utf8(workspace), as_json), **read):
            click.get_current_context().exit(code)

    return command


def _utf8(value: Any) -> Any:
    """Words of the command line, read as UTF-8 whatever the locale says; paths stay as the system has them."""
    if isinstance(value, tuple):
        return tuple(map(_utf8, value))
    if not isinstance(value, str):
        return value
    try:
        return os.fsencode(value).decode("utf-8")
    except UnicodeError:
        return value


class Main(click.Group):
    """The group whose errors are one line for a person, or one JSON document for a script; never a traceback.

    Commands of parts are imported when they are asked for.
    """

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the commands, those of parts too."""
        return sorted([*super().list_commands(ctx), *paths("commands")])

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command of that name."""
        path = paths("commands").get(cmd_name)
        return load(path) if path else super().get_command(ctx, cmd_name)

    def main(  # type: ignore[override]  # click declares two overloads; this takes what both take
        self, args: Sequence[str] | None = None, prog_name: str | None = None, **extra: Any
    ) -> Any:
        """Run a command and leave with its exit code."""
        words = list(sys.argv[1:] if args is None else args)
        for stream in (sys.stdin, sys.stdout, sys.stderr):
            if hasattr(stream, "reconfigure"):
                stream.reconfigure(encoding="utf-8", errors="backslashreplace")
        sys.exit(_run(super().main, words, prog_name or "workbench", extra, "--json" in words))


def _run(
    main: Callable[..., Any], words: list[str], name: str, extra: Json, as_json: bool
) -> int:
    try:
        return main(words, name, **{**extra, "standalone_mode": False}) or DONE
    except click.UsageError as error:
        usage = StringIO()
        error.show(usage)
        return _fail(error, error.format_message(), as_json, USAGE, usage.getvalue())
    except click.ClickException as error:
        return _fail(error, error.format_message(), as_json)
    except (KeyboardInterrupt, click.Abort) as error:
        return _fail(error, "Interrupted.", as_json, INTERRUPTED)
    except BrokenPipeError:
        # or Python complains once more at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    except WorkbenchError as error:
        return _fail(error, str(error), as_json)
    except Exception as error:
        # shown with its place: the last resort between a fault of ours and a traceback
        if os.environ.get("WORKBENCH_TRACEBACK"):
            raise
        place = traceback.extract_tb(error.__traceback__)[-1]
        message = (
            f"{type(error).__name__}: {error} ({Path(place.filename).name}:{place.lineno}). "
        )
        return _fail(
            error,
            message + "This is a fault of workbench; WORKBENCH_TRACEBACK=1 shows all of it.",
            as_json,
        )


def _fail(
    error: BaseException, message: str, as_json: bool, code: int = FAILED, text: str = ""
) -> int:
    if as_json:
        problems = {"problems": error.problems} if isinstance(error, PlanError) else {}
        failure = {"error": message, "type": type(error).__name__, **problems}
        click.echo(visible_json(to_json(failure)))
    else:
        click.echo(visible(text or f"error: {message}\n"), nl=False, err=True)
    return code


def _console(stream: Any) -> Console:
    from rich.console import Console

    wide = int(os.environ["COLUMNS"]) if os.environ.get("COLUMNS", "").isdigit() else None
    console = Console(
        force_jupyter=False,
        file=stream,
        highlight=False,
        emoji=False,
        width=wide if stream.isatty() else wide or 100,
    )
    if console.width > 120:
        console.width = 120
    return console
