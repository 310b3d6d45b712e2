"""The fusion graph over two sources, and JSON Canvases: asked, worked on, drawn and written."""

from workbench.extensions import Part

PART = Part(
    "fusion",
    __name__,
    settings="settings:FusionSettings",
    tools={"fusion_search": "graph:TOOL"},
    commands={"fusion": "commands:fusion", "canvas": "commands:canvas"},
    readers={".canvas": "canvas:read"},
    workbench={"fusion": "graph:fusion", "canvas": "canvases:canvas"},
    run={"fusion": "graph:outcome"},
)
