"""Reports: clarified, outlined, written section by section from evidence, checked, reviewed and printed."""

from workbench.extensions import Part

PART = Part(
    "reports",
    __name__,
    settings="kinds:ReportSettings",
    nodes={
        "reporter": "graph:add_reporter",
        "topic": "kinds:split_topic",
        "options": "report:asked_for",
        "plan": "planning:plan_report",
        "current_records": "planning:current_records",
        "asking_for_missing": "planning:asking_for_missing",
    },
    tools={"reflection": "assembly:TOOL"},
    commands={"report": "commands:report"},
    workbench={"report": "report:write_report"},
    run={"report": "report:report"},
    forms={"outline": "forms:OutlineForm"},
    views={"report": "report:finished", "report_so_far": "report:written_so_far"},
)
