"""What sections and searches at once save, with a model and tools of one second: ``python -m tests.report_speed``.

Everything is measured in neighbouring pairs, A B A B, and what is told is the median of their ratios and its range over
all pairs: as a 95 % interval it needs six of them. ``max_concurrency`` 1 is one after another.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.harbour import TOLD, TOPIC, harbour, prompt_of, writes
from tests.pairs import interval
from tests.servers import scripted_server
from tests.shelves import CORE
from workbench.plans import Plan, PlanStep
from workbench.session import Workbench

SECONDS = 1.0
MODES = ("sequential", "adaptive", "parallel")


def sections(folder: Path, concurrency: int) -> tuple[float, float, int]:
    """Seconds from the first section's request to the check of all, and of the whole report; most requests at once."""
    with scripted_server() as server:
        server.respond = lambda request: replace(writes(request), delay_s=SECONDS)
        told = {**CORE, "writer_model": "openai:m", "chat_base_url": server.url, "max_concurrency": concurrency}
        with Workbench.open(folder, **told) as wb:
            wb.ask("What is landed at the harbour?", kb="harbour")  # warm
            server.requests.clear()
            server.times.clear()
            began = time.monotonic()
            run = wb.report(TOPIC, kb="harbour", cached=False)
            whole = time.monotonic() - began
            asked = [(t, prompt_of(r)) for t, r in zip(server.times, server.requests, strict=True)]
            starts = [t for t, name in asked if name == "section"]
            after = next(t for t, name in asked if name == "abstract")
            assert run.report.status == "completed" and len(starts) == len(TOLD), run.report.status
            assert {one["by"] for one in run.report.sections} == {"openai:m"}
            together = max(sum(s <= t < s + SECONDS for s in starts) for t in starts)
            return after - starts[0], whole, together


def searches(wb: Workbench, mode: str) -> float:
    """Seconds of a plan of four searches, of which two say that they cannot run beside others."""
    names = ("beside", "beside", "alone", "alone")
    steps = [
        PlanStep(step_id=f"s{n}", objective="", tool=name, tool_input={"query": f"harbour {n}"})
        for n, name in enumerate(names)
    ]
    plan: Any = Plan(problem_statement="harbour", steps=steps, execution_mode=mode)
    began = time.monotonic()
    run = wb.ask("What is told of the harbour?", kb="harbour", plan=plan, settings={"max_iterations": 1})
    assert run.status == "done" and len(run.records) == len(names), run.error
    return time.monotonic() - began


def slow(wb: Workbench) -> None:
    """Tools that take a second; one of them is nobody's neighbour."""
    for name, beside in (("beside", True), ("alone", False)):

        @wb.tools.tool(name=name, description="takes a second", parallel=beside)
        async def search(query: str) -> list[str]:
            await asyncio.sleep(SECONDS)
            return [f"The harbour is told of in {query}."]


def ratios(pairs: list[tuple[float, float]]) -> str:
    """Both medians, and how many times faster the second is."""
    first, second = (statistics.median(one[side] for one in pairs) for side in (0, 1))
    return f"{first:8.2f} s {second:8.2f} s   {interval([a / b for a, b in pairs])}"


def main() -> None:
    """Print how many times faster at once is."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=6)
    count = parser.parse_args().pairs

    def line(what: str, told: str) -> None:
        print(f"{what:42}{told}", flush=True)

    print(f"{len(TOLD)} sections, {SECONDS:g} s a reply, {os.cpu_count()} cores, {count} pairs\n")
    line("", f"{'one':>8}   {'other':>8}     one/other [all pairs]")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "workspace"
        with Workbench.open(folder, **CORE) as wb:
            wb.add_knowledge("harbour", [harbour(Path(name) / "harbour")])
        found = [(sections(folder, 1), sections(folder, 4)) for _ in range(count)]
        assert all((a[2], b[2]) == (1, len(TOLD)) for a, b in found), [(a[2], b[2]) for a, b in found]
        line("sections: one after another / at once", ratios([(a[0], b[0]) for a, b in found]))
        line("whole report", ratios([(a[1], b[1]) for a, b in found]))
        with Workbench.open(folder, **CORE) as wb:
            slow(wb)
            searches(wb, "parallel")
            times = [{mode: searches(wb, mode) for mode in MODES} for _ in range(count)]
        for one, other in (MODES[:2], MODES[1:], MODES[::2]):
            line(f"searches: {one} / {other}", ratios([(t[one], t[other]) for t in times]))


if __name__ == "__main__":
    main()
