"""What is remembered of people and conversations: recalled, noted, summed up, shown, corrected and forgotten."""

from workbench.extensions import Part

PART = Part(
    "memory",
    __name__,
    settings="settings:MemorySettings",
    nodes={
        "recall": "recall:recall",
        "prompt": "recall:prompt_text",
        "with_preferences": "reading:apply_preferences",
        "keep": "recall:keep_noted",
        "acknowledge": "reading:acknowledge",
        "answer": "reading:answer_from_memory",
    },
    commands={"memory": "commands:memory"},
    workbench={"memory": "memories:memory"},
    run={"prompt_parts": "recall:prompt_parts"},
    widgets={"memory": "widget:Knew"},
    services={"memory": "recall:MemoryService"},
)
