"""Any LangGraph graph on a tape: recorded, paused, replayed, forked and compared by one line."""

from workbench.extensions import Part

PART = Part(
    "record",
    __name__,
    commands={"record": "commands:record"},
    workbench={"record": "agent:record", "read_traces": "traces:read_traces"},
    cells={
        f"{__name__}.agent:RecordedGraph": "bench:GraphBench",
        f"{__name__}.agent:GraphRun": "bench:bench_of_run",
    },
    views={"graph_run": "looking:PARTS"},
    services={"record": "store:GraphRuns"},
)
