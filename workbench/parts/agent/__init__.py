"""Agents over a knowledge base: a model with tools, or retrieval alone, also as a node of any graph."""

from workbench.extensions import Part

PART = Part(
    "agent",
    __name__,
    nodes={"first_turn": "turn:first_turn", "next_turn": "turn:next_turn"},
    tools={"think": "turn:THINK"},
    workbench={
        "agent": "turn:agent",
        "agents": "pool:agents",
        "retrieval_graph": "pool:retrieval_graph",
    },
)
