"""Count what one act of a user runs through: files and functions of the package, and statements of SQL.

    python experiments/footprint.py [--files]

The acts are a greeting, a question over a small corpus, a click on *Approve* at a pause, and adding two documents.
Every thread counts. A function that is only imported does not. ``--files`` names the files of each act.
"""

from __future__ import annotations

import json
import sqlite3
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import workbench
from workbench.session import Workbench

PACKAGE = str(Path(workbench.__file__).parent)
CORE = {"embedding_model": "hashing", "rerank_model": "none"}


class Profile:
    """The code of the functions of the package that run, in every thread that was started since."""

    def __init__(self) -> None:
        self.codes: set[CodeType] = set()
        threading.setprofile(self.note)
        sys.setprofile(self.note)

    def note(self, frame: FrameType, event: str, _: Any) -> None:
        """Keep the code of a function that is called."""
        if (
            event == "call"
            and frame.f_code.co_filename.startswith(PACKAGE)
            and frame.f_code.co_name != "<module>"
        ):
            self.codes.add(frame.f_code)


def count_statements(act: Callable[[], object]) -> int:
    """Return how many statements of SQL ``act`` runs on connections that it opens."""
    statements: list[str] = []
    connect = sqlite3.connect

    def watched(*args: Any, **options: Any) -> sqlite3.Connection:
        connection = connect(*args, **options)
        connection.set_trace_callback(statements.append)
        return connection

    sqlite3.connect = watched
    try:
        act()
    finally:
        sqlite3.connect = connect
    return len(statements)


def write_documents(path: Path, first: int, count: int) -> Path:
    """Write ``count`` films as JSON lines, numbered from ``first``."""
    films = (
        {"id": f"m{n}", "title": f"Film {n}", "year": 1980 + n, "text": f"Film {n} is film {n}."}
        for n in range(first, first + count)
    )
    path.write_text("".join(json.dumps(film) + "\n" for film in films), encoding="utf-8")
    return path


def main() -> None:
    """Print files, functions and statements of each act."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        corpus = write_documents(folder / "films.jsonl", 0, 30)
        more = write_documents(folder / "more.jsonl", 30, 2)
        with Workbench.open(folder / "workspace", **CORE) as wb:
            wb.add_knowledge("film", [corpus])
        question = "When was Film 7 released?"
        paused: list[Any] = []
        acts: dict[str, Callable[[Workbench], object]] = {
            "hello": lambda wb: wb.ask("Hello!"),
            "a question": lambda wb: wb.ask(question, kb="film"),
            "a pause": lambda wb: paused.append(wb.ask(question, kb="film", review={"reflect"})),
            "approve": lambda wb: paused[0].approve(),
        }
        print(f"{'act':12}{'files':>8}{'functions':>12}")
        profile = Profile()
        with Workbench.open(folder / "workspace", **CORE) as wb:
            wb.ask("What is Film 3?", kb="film")  # what is loaded once is not counted
            time.sleep(1)
            for name, act in acts.items():
                profile.codes.clear()
                act(wb)
                # what a run leaves to the background belongs to it, not to the next one
                time.sleep(1)
                files = {code.co_filename for code in profile.codes}
                print(f"{name:12}{len(files):8}{len(profile.codes):12}")
                if "--files" in sys.argv:
                    print(
                        "   ",
                        " ".join(sorted(str(Path(file).relative_to(PACKAGE)) for file in files)),
                    )
            print(
                f"\ntwo documents: {count_statements(lambda: wb.add_knowledge('film', [more]))} statements of SQL"
            )


if __name__ == "__main__":
    main()
