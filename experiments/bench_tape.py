"""What the tape costs and what it saves, printed: the second part of `make bench`. Nothing here is asserted."""

from __future__ import annotations

import argparse
import asyncio
import statistics
import tempfile
from pathlib import Path
from typing import Any

from experiments.bench import QUESTIONS, ROOT, ms, row, seconds
from workbench import session
from workbench.plans import Plan, PlanStep
from workbench.runs import taped
from workbench.session import Workbench


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--rounds",
        type=int,
        default=5,
        help="times each question is asked with a tape and without",
    )
    run(parser.parse_args().rounds)


def run(rounds: int) -> None:
    """Measure, and print each figure as it comes."""
    with tempfile.TemporaryDirectory() as folder, Workbench.open(Path(folder) / "w") as wb:
        wb.add_knowledge("film", [ROOT / "data" / "films.jsonl"])
        for question in QUESTIONS:
            wb.ask(question, kb="film")
        recording(wb, rounds)
        sizes(wb)
        slow_tools(wb)


def recording(wb: Workbench, rounds: int) -> None:
    """The same questions with a tape and without, one after the other."""
    with_tape = []
    without = []
    for number in range(rounds * len(QUESTIONS)):
        question = QUESTIONS[number % len(QUESTIONS)]
        for kind in (with_tape, without) if number % 2 else (without, with_tape):
            session.run_context = taped.run_context if kind is with_tape else _no_tape  # type: ignore[attr-defined]
            name = f"tape-{number}-{kind is with_tape}"
            kind.append(seconds(lambda q=question, s=name: wb.ask(q, kb="film", session=s)))
    session.run_context = taped.run_context  # type: ignore[attr-defined]
    ratio = statistics.median(a / b for a, b in zip(with_tape, without, strict=True))
    print("\n" + row("a film question, p50", "ms", "baseline"))
    print(
        row(
            "with a tape",
            ms(statistics.median(with_tape)),
            f"{ms(statistics.median(without))} without one",
        )
    )
    print(row("ratio, median of pairs", f"{ratio:.3f}", "aim: under 1.10"))


def _no_tape(run: Any, ports: Any, *_: Any) -> Any:
    return ports


def sizes(wb: Workbench) -> None:
    """What a run's tape takes beside what is kept of the run anyway."""
    store = wb.ports().runs
    print("\n" + row("size of a run", "kB", "baseline: its records and bodies"))
    for run in [*wb.runs.list(limit=1000)][-len(QUESTIONS) :]:
        pages = sum(map(len, store.pages(run.run_id)))  # type: ignore[attr-defined]
        bodies = [
            store.body(run.run_id, r["raw_output_ref"])
            for r in run.records
            if r["raw_output_ref"]
        ]
        kept = len(str(run.records)) + sum(len(str(body)) for body in bodies)
        print(row(run.message[:30], f"{pages / 1000:.1f}", f"{kept / 1000:.0f}"))


def slow_tools(wb: Workbench) -> None:
    """Replay and fork of a run with two seconds of tools."""

    @wb.tools.tool
    async def slow(query: str) -> list[str]:
        """Take half a second."""
        await asyncio.sleep(0.5)
        return [f"{query}: The Wedding Banquet, 1993."]

    steps = [
        PlanStep(step_id=f"s{n}", objective="", tool="slow", tool_input={"query": f"q{n}"})
        for n in range(4)
    ]
    plan = Plan(steps=steps, execution_mode="sequential")

    @wb.register("planner")
    async def fixed(query: str, decision: Any, knowledge: Any, tools: Any) -> Plan:
        return plan

    options: dict[str, Any] = {
        "kb": "film",
        "thresholds": {"min_evidence": 0, "min_top_score": 0},
    }
    live = seconds(lambda: wb.ask("喜宴", **options))
    run = wb.ask("喜宴", **options)
    replay = min(seconds(lambda: wb.replay(run.run_id)) for _ in range(3))
    edited = plan.replace("s3", tool_input={"query": "otherwise"})
    fork = seconds(lambda: run.fork(plan=edited))
    print("\n" + row("a run with 2 s of tools", "seconds", "baseline"))
    print(
        row(
            "replayed",
            f"{replay:.3f}",
            f"{live:.2f} live: {live / replay:.0f} times as fast (aim: 10)",
        )
    )
    print(row("forked, one of four steps", f"{fork:.3f}", f"{live:.2f} asked anew"))


if __name__ == "__main__":
    main()
