"""``workbench export``, ``workbench import``, ``workbench replay`` and ``workbench make-test``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from workbench.cli.page import FAILED, Page, Text, paged

_FILE = click.Path(path_type=Path, dir_okay=False)


@click.command()
@click.argument("run_id", type=Text())
@click.argument("path", type=_FILE, metavar="FILE.zip")
@paged
def export(page: Page, run_id: str, path: Path) -> None:
    """Seal an ended run in a file.

    It replays anywhere, without the corpus. No secret is in it.
    """
    with page.open() as wb:
        wb.export(run_id, path)
    size = path.expanduser().stat().st_size
    if page.as_json:
        page.result({"run_id": run_id, "path": str(path), "bytes": size})
    else:
        page.say(f"✓ {path} ({size / 1e6:,.2f} MB)", "green")


@click.command("import")
@click.argument("path", type=_FILE, metavar="FILE.zip")
@click.option("--as-new", is_flag=True, help="Give it a new id, when another run has its own.")
@paged
def import_(page: Page, path: Path, as_new: bool) -> None:
    """Bring in a run that was exported; the same one here already is left as it is."""
    from workbench.futures.capsule import read

    sealed = read(path.expanduser())["run"]["run_id"]
    with page.open(make=True) as wb:
        new = as_new or not wb.has_run(sealed)
        run = wb.import_capsule(path, as_new=as_new)
        told = {"run_id": run.run_id, "status": run.status, "message": run.message}
    if page.as_json:
        page.result({**told, "new": new})
        return
    page.say(f"✓ Run {run.run_id} is {'brought in' if new else 'here already, with the same content'}.", "green")
    page.say(page.command("show", run.run_id))


@click.command()
@click.argument("run_id", type=Text())
@click.option(
    "--mode", type=click.Choice(["replay", "regression", "check"]), default="replay", show_default=True,
    help="All from the tape; models asked again; or routed, planned and merged by today's code.",
)  # fmt: skip
@click.option(
    "--corpus", type=click.Choice(["check", "tape"]), default="check", show_default=True,
    help="Compare the corpus that is here with the recorded one, or do not look at it.",
)  # fmt: skip
@paged
def replay(page: Page, run_id: str, mode: Any, corpus: Any) -> int | None:
    """Replay a run from its tape.

    Where it does not fit, the first point that differs is named: what was expected, and what came.
    """
    from workbench.errors import Divergence

    with page.open() as wb:
        try:
            again = wb.replay(run_id, mode, corpus)
        except Divergence as found:
            if page.as_json:
                page.result({"run_id": run_id, "mode": mode, "divergence": found.to_dict()})
            else:
                page.say(str(found), "red")
            return FAILED
        told = {"run_id": run_id, "mode": mode, "divergence": None, "replay": again.run_id, "answer": again.answer}
    if page.as_json:
        page.result(told)
        return None
    same = {"replay": "the same bytes", "regression": "the same tools", "check": "the same course"}[mode]
    page.say(f"✓ {same}: {page.command('show', told['replay'])}", "green")
    return None


@click.command("make-test")
@click.argument("run_id", type=Text())
@click.option("-o", "--output", type=_FILE, metavar="FILE.py", help="The file [default: tests/test_run_RUN_ID.py].")
@paged
def make_test(page: Page, run_id: str, output: Path | None) -> None:
    """Write a run as a pytest file.

    Its capsule lies beside it; the test fails when today's code takes another course.
    """
    with page.open() as wb:
        path = wb.make_test(run_id, output)
    if page.as_json:
        page.result({"run_id": run_id, "path": str(path), "capsule": str(path.with_suffix(".zip"))})
    else:
        page.say(f"✓ {path} and {path.with_suffix('.zip').name}. Run it: pytest {path}", "green")
