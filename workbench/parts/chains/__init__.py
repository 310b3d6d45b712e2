"""Several hops: chains along titles and shared phrases, weighed with the search, and research that follows them."""

from workbench.extensions import Part

PART = Part(
    "chains",
    __name__,
    tools={
        "chain_exploration": "chain:TOOL",
        "deep_research": "chain:DEEP",
        "deeper_research": "chain:DEEPER",
    },
    nodes={"chain_steps": "merging:chain_steps", "joint_scores": "merging:joint_scores"},
)
