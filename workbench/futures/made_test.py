"""A run as a test: a file for pytest, with its tape beside it, that fails when today's code takes another course."""

from __future__ import annotations

import re
from pathlib import Path

from workbench.errors import CapsuleError, RunError
from workbench.futures.capsule import capsule
from workbench.futures.sealing import put
from workbench.run import Run
from workbench.runs import RunStore
from workbench.settings import Settings
from workbench.tape import require_whole

_TEXT = '''"""Made by `workbench make-test`: fails when a recorded run takes another course with today's workbench.

It is run again from its tape, without corpus, network and models. Route, plans, steps, judgements, decisions, evidence
and cited sources must come out the same; what a model words is free. The capsule beside this file is a zip.
"""

from pathlib import Path

from workbench import Workbench

CAPSULE = Path(__file__).with_name({capsule})
QUESTION = {question}


def test_{name}(tmp_path: Path) -> None:
    with Workbench.open(tmp_path / "workspace") as wb:
        run = wb.import_capsule(CAPSULE)
        assert run.message.startswith(QUESTION)
        wb.replay(run.run_id, mode="check", corpus="tape")
'''


_LONGEST = 48
"""Of the question in the file, in characters; a Chinese one is two columns wide."""


def made(run: Run, store: RunStore, path: Path, settings: Settings) -> Path:
    """See ``Workbench.make_test``."""
    if run.status != "done":
        raise RunError(f"Run {run.run_id} is {run.status}: only a run that is done can be made into a test.")
    require_whole(run.run_id, run.tape())
    if path.suffix != ".py":
        raise CapsuleError(f"{path} is not a Python file. Name one, as tests/test_{run.run_id}.py.")
    sealed, beside = capsule(run, store, settings), path.with_suffix(".zip")
    put(beside, sealed)
    put(path, text_of(path.stem, beside.name, run.message).encode())
    return path


def text_of(stem: str, capsule: str, question: str) -> str:
    """The file, as a formatter leaves it.

    >>> lines = text_of("test_a-b", "test_a-b.zip", "茶馆哪一年出版？").splitlines()
    >>> print(lines[11], lines[14], sep="\\n")
    QUESTION = "茶馆哪一年出版？"
    def test_a_b(tmp_path: Path) -> None:
    """
    name = re.sub(r"\W", "_", stem).removeprefix("test_") or "run"
    return _TEXT.format(capsule=literal(capsule), question=literal(_begin(question)), name=name)


def literal(text: str) -> str:
    """A text as Python source, in double quotes where that needs no escape; what cannot be seen is spelled out.

    >>> print(literal("It's"), literal('say "yes"'), literal("\u202egnp"))
    "It's" 'say "yes"' "\\u202egnp"
    """
    written = repr(text)
    return written if '"' in text or written[0] == '"' else f'"{written[1:-1]}"'


def _begin(question: str) -> str:
    """As much of a question as fits into a line, without a second kind of quotes."""
    if "'" in question and '"' in question:
        question = question[: question.index('"')]
    while len(literal(question)) > _LONGEST:
        question = question[:-1]
    return question
