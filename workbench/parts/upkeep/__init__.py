"""The files of a workspace: what is damaged and its fix, what can be freed, a copy of the whole."""

from workbench.extensions import Part

PART = Part(
    "upkeep",
    __name__,
    commands={
        "doctor": "commands:doctor",
        "gc": "commands:gc",
        "backup": "commands:backup",
    },
    workbench={"gc": "files:gc", "backup": "files:backup"},
)
