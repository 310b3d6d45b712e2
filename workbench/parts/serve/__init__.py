"""The workspace for others: over HTTP, by the Model Context Protocol, for a LangGraph server; spans and metrics."""

from workbench.extensions import Part

PART = Part(
    "serve",
    __name__,
    settings="settings:ServeSettings",
    commands={"mcp": "commands:mcp", "serve": "commands:over_http"},
    services={"observers": "metrics:Observers"},
)
