"""``workbench backup``, ``workbench gc``, and ``workbench doctor``: what is wrong, each with its fix."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, cast

import click

from workbench.cli.page import DONE, FAILED, Page, paged
from workbench.errors import WorkbenchError

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

    from workbench.settings import Settings


@click.command()
@click.argument("path", type=click.Path(path_type=Path))
@paged
def backup(page: Page, path: Path) -> None:
    """Copy the workspace into the new folder PATH; runs may be at work meanwhile."""
    with page.open() as wb:
        page.give(
            {"path": str(wb.backup(path))},
            f"✓ Copied to {path}. It opens with --workspace {path}.",
        )


@click.command()
@click.option(
    "--older-than",
    type=click.FloatRange(min=0),
    metavar="DAYS",
    help="Also free runs that ended more than DAYS days ago.",
)
@click.option(
    "--keep", type=click.IntRange(min=0), metavar="N", help="Keep only the newest N ended runs."
)
@click.option(
    "--tapes",
    is_flag=True,
    help="Also free the tapes of ended runs, which can then no longer be replayed.",
)
@click.option("--yes", is_flag=True, help="Do it; without it nothing changes.")
@paged
def gc(page: Page, yes: bool, **options: Any) -> None:
    """List what is not needed any more and, with --yes, free it.

    Runs that run, wait for an answer or were interrupted are never touched.
    """
    with page.open() as wb:
        freed = wb.gc(yes=yes, **options)
    total = sum(part["bytes"] for part in freed)
    page.table(
        {"done": yes, "bytes": total, "freed": freed},
        ("count:number", "MB:number", "what"),
        (
            (
                f"{f['count']:,}",
                f"{f['bytes'] / 1e6:,.2f}",
                "\n".join(filter(None, (f["kind"], f["detail"]))),
            )
            for f in freed
        ),
        "Nothing to free.",
    )
    if freed and not page.as_json:
        size = f"{total / 1e6:,.2f} MB"
        page.say(
            f"✓ Freed {size}." if yes else f"{size} can be freed. {page.command('gc', '--yes')}"
        )


SIGNS = {"ok": "✓", "note": "!", "problem": "✗"}


class Check(NamedTuple):
    """One thing looked at. ``note`` is fine but could be better; ``problem`` makes the command fail."""

    name: str
    state: Literal["ok", "note", "problem"]
    detail: str
    fix: str = ""


@click.command()
@click.option(
    "--ask",
    is_flag=True,
    help="Ask the models' servers whether they take JSON schemas and call tools.",
)
@paged
def doctor(page: Page, ask: bool) -> int:
    """Say what is wrong in the workspace or could be better, each with its fix."""
    checks = list(examine(page.workspace, ask))
    healthy = all(check.state != "problem" for check in checks)
    document = {"ok": healthy, "checks": [check._asdict() for check in checks]}
    rows = (
        (SIGNS[c.state], c.name, c.detail + (f"\n→ {c.fix}" if c.fix else "")) for c in checks
    )
    page.table(document, (":status", "what:strong", "found"), rows)
    return DONE if healthy else FAILED


def examine(workspace: Path, ask: bool) -> Iterator[Check]:
    """Yield every check, in the order in which things are needed."""
    from workbench.settings import Settings

    yield _full_text()
    try:
        settings = Settings.load()
    except WorkbenchError as error:
        yield Check("settings", "problem", str(error), "Correct the variable, or remove it.")
        return
    yield _settings()
    looks = {"embeddings": _embeddings, "chat model": _chat, "workspace": _workspace}
    looks |= {"models": _served} if ask else {}
    if workspace.is_dir():
        looks |= {"files": _files, "knowledge": _knowledge}
    for name, look in looks.items():
        try:
            yield from look(workspace, settings)
        except WorkbenchError as error:  # an error of ours names its own fix
            yield Check(name, "problem", str(error))


def _full_text() -> Check:
    import sqlite3

    try:
        with sqlite3.connect(":memory:") as connection:
            connection.execute("CREATE VIRTUAL TABLE found USING fts5(text)")
    except sqlite3.OperationalError as error:
        fix = (
            "Use a Python whose SQLite has FTS5; those of python.org, conda-forge and Debian do."
        )
        return Check(
            "full text search", "problem", f"SQLite {sqlite3.sqlite_version}: {error}", fix
        )
    return Check("full text search", "ok", f"SQLite {sqlite3.sqlite_version} with FTS5")


def _settings() -> Check:
    names = sorted(
        name
        for name in os.environ
        if name.startswith(("WORKBENCH_", "MA_")) or name == "OPENAI_API_KEY"
    )
    files = [".env"] if Path(".env").is_file() else []
    return Check("settings", "ok", ", ".join([*names, *files]) or "defaults")


def _embeddings(_: Path, settings: Settings) -> Iterator[Check]:
    from workbench.models.embeddings import text_model

    name = text_model(settings).name
    if name == "hashing":
        fix = "pip install 'workbench[offline]', or set WORKBENCH_EMBEDDING_MODEL=openai:NAME"
        yield Check("embeddings", "note", "hashing: words, not meaning", fix)
    else:
        yield Check("embeddings", "ok", name)


def _chat(_: Path, settings: Settings) -> Iterator[Check]:
    from workbench.models.chat import require_chat_model
    from workbench.settings import ROLES

    roles: dict[str, list[str]] = {}
    for role in ROLES:
        if name := settings.role_model(role):
            require_chat_model(settings, role)
            roles.setdefault(name, []).append(role)
    if roles:
        detail = "; ".join(
            f"{name} ({', '.join(role_names)})" for name, role_names in roles.items()
        )
        yield Check("chat model", "ok", detail)
    else:
        detail = "none: every role has its deterministic default, and answers are sentences of the evidence"
        yield Check(
            "chat model", "note", detail, "To ask a model, set WORKBENCH_CHAT_MODEL=openai:NAME"
        )


def _served(_: Path, settings: Settings) -> Iterator[Check]:
    """Ask each model once with a form like a plan's, and once with a tool."""
    from workbench.graphs.planner import plan_form
    from workbench.models.chat import Limits, open_chat_model, probe
    from workbench.models.wire import Patience
    from workbench.settings import ROLES
    from workbench.tools.hybrid import TOOL
    from workbench.tools.langchain import as_function, model_input

    form = plan_form({TOOL.name: TOOL}, [], 3)
    tool = as_function(TOOL, model_input(TOOL, []))
    roles = {
        settings.role_model(role): role for role in reversed(ROLES) if settings.role_model(role)
    }
    for name, role in roles.items():
        try:
            model = cast("BaseChatModel", open_chat_model(settings, role))
            can = asyncio.run(probe(model, form, tool, Limits(seconds=60, patience=Patience(0))))
        except WorkbenchError as error:
            yield Check(f"model {name}", "problem", str(error))
            continue
        schema = (
            "takes JSON schemas"
            if can["schema"]
            else "takes no JSON schema: forms are asked for in words"
        )
        tools = "calls tools" if can["tools"] else "calls no tools: the agent is asked by a form"
        yield Check(f"model {name}", "ok" if all(can.values()) else "note", f"{schema}; {tools}")


def _workspace(workspace: Path, _: Settings) -> Iterator[Check]:
    place = workspace if workspace.exists() else workspace.absolute().parent
    elsewhere = "Name another place with --workspace DIR."
    if workspace.exists() and not workspace.is_dir():
        yield Check("workspace", "problem", f"{workspace} is a file", elsewhere)
    elif not os.access(place, os.W_OK):
        yield Check("workspace", "problem", f"{place} cannot be written", elsewhere)
    elif workspace.exists():
        size = sum(file.stat().st_size for file in workspace.rglob("*") if file.is_file())
        yield Check("workspace", "ok", f"{workspace}, {size / 1e6:,.1f} MB")
    else:
        make = "workbench demo, or workbench kb add NAME PATH..."
        yield Check("workspace", "note", f"{workspace} is not there yet", make)


def _files(workspace: Path, settings: Settings) -> Iterator[Check]:
    from workbench.knowledge.library import Library
    from workbench.parts.upkeep.files import faults_in, left_behind, to_inspect

    library = Library(workspace / "knowledge", settings)
    for left in left_behind(workspace, library, delete=False):
        yield Check(left.kind, "note", left.detail, "workbench gc --yes")
    yield from (Check(entry.kind, "note", entry.detail) for entry in to_inspect(library))
    faults = list(faults_in(workspace, settings))
    yield from (Check(what, "problem", detail, fix) for what, detail, fix in faults)
    if not faults:
        yield Check("files", "ok", "databases and indexes are whole")


def _knowledge(workspace: Path, settings: Settings) -> Iterator[Check]:
    from workbench.session import Workbench

    with Workbench.open(workspace, settings) as wb:
        for name in wb.knowledge.names():
            try:
                base = wb.knowledge.get(name).inspect()
            except WorkbenchError as error:
                yield Check(f"knowledge {name}", "problem", str(error))
                continue
            counts = ", ".join(f"{count:,} {what}" for what, count in base["counts"].items())
            yield Check(
                f"knowledge {name}",
                "ok",
                f"{counts}; {base['embedding_model']}, {base['search']} search",
            )
        if not wb.knowledge.names():
            yield Check(
                "knowledge", "note", "no knowledge base yet", "workbench kb add NAME PATH..."
            )
