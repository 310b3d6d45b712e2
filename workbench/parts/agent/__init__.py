"""An agent that drives the tools of a knowledge base by itself, on the tape of a recorded graph."""

from workbench.extensions import Part

PART = Part("agent", __name__, workbench={"agent": "agent:agent"})
