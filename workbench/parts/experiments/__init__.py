"""Sweeps of settings over questions, or of parameters over a notebook, and comparisons that end with a decision."""

from workbench.extensions import Part

PART = Part(
    "experiments",
    __name__,
    commands={"experiment": "commands:experiment"},
    workbench={"experiments": "experiment:experiments"},
    run={"what_if": "what_if:what_if"},
    services={"experiments": "store:Stored"},
)
