"""Retrieval for agents: one that drives the tools of a knowledge base by itself, and a graph for somebody else's."""

from workbench.extensions import Part

PART = Part("agent", __name__, workbench={"agent": "agent:agent", "retrieval_graph": "retrieval:retrieval_graph"})
