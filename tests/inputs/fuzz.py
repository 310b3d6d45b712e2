"""Fuzzing led by coverage (atheris): ``python -m tests.inputs.fuzz loaders|plans|answers [-max_total_time=30]``.

The arguments after the target are libFuzzer's own. A crash is written to a file and printed; the exit code says so.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from traceback import extract_tb

from pydantic import ValidationError

from workbench.errors import WorkbenchError

INSTALL = "Fuzzing needs a library that is not installed. pip install 'workbench[fuzz]'"


def loaders(raw: bytes) -> None:
    """The first byte chooses the kind of file; the rest is what it holds."""
    from workbench.knowledge.reading import corpus

    if not raw:
        return
    names = ("a.jsonl", "a.csv", "a.md", "a.txt", "a.jsonl.gz", "a.tsv", "a.tsv.gz")
    path = _FOLDER / names[raw[0] % len(names)]
    path.write_bytes(raw[1:])
    corpus.load([path])


def plans(raw: bytes) -> None:
    """The bytes as the JSON of a plan, checked against the tools."""
    from workbench.plans import Plan
    from workbench.tools.registry import ToolRegistry, check

    plan = Plan.load(json.loads(raw))
    if not check(plan, ToolRegistry()):
        plan.topological_order()
        plan.critical_path()


def answers(raw: bytes) -> None:
    """The bytes as the JSON of an answer at each review point, as far as it can be judged without a run."""
    from workbench.graphs.review import EDITS, ReviewAnswer
    from workbench.graphs.reviewers import as_json

    given = as_json(json.loads(raw))
    for edits in EDITS.values():
        ReviewAnswer[edits].model_validate(given)  # type: ignore[valid-type]


TARGETS: dict[str, Callable[[bytes], None]] = {"loaders": loaders, "plans": plans, "answers": answers}
SEEDS = {
    "loaders": [
        b'\x00{"id": "a", "text": "b", "year": 1993, "names": {"a": ["b"]}}\n',
        b'\x01id,text\n1,"a ""b"""\n',
        b"\x02---\ntitle: a\n---\n# b\ntext",
        "\x03推手".encode("gb18030"),
        b"\x05a\tb\tc\n",
    ],
    "plans": [
        b'{"steps": [{"step_id": "a", "objective": "b", "tool": "discover", "tool_input": {"a": {"$from": "b.c"}}}]}'
    ],
    "answers": [
        b'{"decisions": [{"type": "edit", "edited_action": {"name": "plan", "args": {"thresholds": {}}}}], "note": ""}'
    ],
}
_REFUSED = (WorkbenchError, ValidationError, json.JSONDecodeError, UnicodeDecodeError)
_FOLDER = Path()


def _quietly(target: Callable[[bytes], None], raw: bytes) -> None:
    try:
        target(raw)
    except _REFUSED:
        return
    except (ValueError, RecursionError) as error:
        if not any("json" in Path(frame.filename).parts for frame in extract_tb(error.__traceback__)):
            raise  # what json.loads itself does not take is said by the command line


def main(words: list[str]) -> int:
    """The command."""
    global _FOLDER
    if len(words) < 2 or words[1] not in TARGETS:
        print(f"Name what to fuzz: {', '.join(TARGETS)}.", file=sys.stderr)
        return 2
    try:
        import atheris
    except ImportError:
        print(INSTALL, file=sys.stderr)
        return 1
    target = words[1]
    with tempfile.TemporaryDirectory() as folder:
        _FOLDER = Path(folder)
        seeds = _FOLDER / "seeds"
        seeds.mkdir()
        for number, raw in enumerate(SEEDS[target]):
            (seeds / str(number)).write_bytes(raw)
        with atheris.instrument_imports(include=["workbench"]):
            import workbench.graphs.review
            import workbench.graphs.reviewers  # noqa: F401
        options = [f"-artifact_prefix={Path.cwd()}/crash-{target}-", *words[2:]]
        atheris.Setup(["fuzz", *options, str(seeds)], lambda raw: _quietly(TARGETS[target], raw))
        atheris.Fuzz()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
