"""Figures are data: equal runs give equal JSON, hostile words stay words, and a status is told without colour."""

import json
import subprocess
import sys

import pytest

from tests import handmade
from workbench.errors import PlanError
from workbench.figures import dag, dag_frame, dag_rows, timeline, timeline_frame
from workbench.figures.paper import COLOURS
from workbench.plans import Plan, PlanStep

RUN = handmade.run()


def as_data(figure):
    return json.loads(figure.to_json())


def words(figure):
    """Every string of a figure's JSON."""

    def walk(value):
        if isinstance(value, str):
            yield value
        for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
            yield from walk(inner)

    return list(walk(as_data(figure)))


def test_steps_stand_in_layers_behind_what_they_wait_for():
    rows = {row["step_id"]: row for row in dag_rows(RUN.plan, RUN.records)}
    assert [row["layer"] for row in rows.values()] == [0, 0, 1, 2]
    assert [row["row"] for row in rows.values()] == [-0.5, 0.5, 0, 0]
    assert rows["step_3_more"]["attempts"] == 2
    assert [row["critical"] for row in rows.values()] == [False, True, True, True]


def test_the_critical_path_is_drawn_heavy_and_conditions_dotted():
    edges = [shape for shape in as_data(dag(RUN.plan, RUN.records))["layout"]["shapes"] if shape["type"] == "path"]
    assert sorted(edge["line"]["width"] for edge in edges) == [1.3, 3, 3]
    assert sum(edge["line"].get("dash") == "dot" for edge in edges) == 1


@pytest.mark.parametrize("status", ["success", "partial", "failed", "timeout", "cancelled", "skipped"])
def test_each_status_has_its_sign_and_word(status):
    record = handmade.record("step_0_喜宴", "hybrid_search", 0, 10, 3, status=status)
    said = words(dag(handmade.plan("Compare"), [record]))
    sign = {"success": "✓", "partial": "◐", "failed": "✗", "timeout": "◷", "cancelled": "⊖", "skipped": "⊘"}[status]
    assert any(text.startswith(sign) for text in said)


def test_a_plan_before_it_runs():
    said = words(dag(handmade.plan("Compare")))
    assert said.count("○ not begun") == 5  # four boxes and the legend
    assert dag(Plan()).to_json()


def test_a_cycle_is_an_error_that_names_the_path():
    steps = [PlanStep(step_id=a, objective="", tool="t", depends_on=[b]) for a, b in ("ab", "ba")]
    with pytest.raises(PlanError, match="Cycle"):
        dag(Plan(steps=steps))


def test_the_timeline_has_three_levels_and_folds_waiting():
    figure = as_data(timeline(RUN.log, RUN.records, RUN.decisions))
    lanes = figure["layout"]["yaxis"]["ticktext"]
    assert len(lanes) == 1 + 5 + 2 * 4  # the graph, the attempts, the inside of the tools that told of it
    hatched = [i for i, shape in enumerate(figure["data"][0]["marker"]["pattern"]["shape"]) if shape]
    assert len(hatched) == 1
    assert [note["text"] for note in figure["layout"]["annotations"]] == ["waiting for a person · 42.03 s"]
    assert figure["layout"]["xaxis"]["range"][1] < 3500


def test_ticks_count_work_and_not_waiting():
    axis = as_data(timeline(RUN.log, RUN.records, RUN.decisions))["layout"]["xaxis"]
    assert axis["ticktext"] == ["0", "500", "1000", "1500", "2000"]
    gaps = [b - a for a, b in zip(axis["tickvals"], axis["tickvals"][1:], strict=False)]
    assert sum(abs(gap - 500) > 1 for gap in gaps) == 1


def test_an_empty_timeline_is_a_figure_too():
    assert as_data(timeline([], []))["data"] == []


def test_equal_data_gives_equal_figures_that_are_small():
    for make in (lambda: dag(RUN.plan, RUN.records), lambda: timeline(RUN.log, RUN.records, RUN.decisions)):
        assert make().to_json() == make().to_json()
        assert len(make().to_json()) < 15_000


def test_what_others_wrote_stays_text():
    hostile = "<a href='javascript:x'>%{x}</a> \x1b[31m \u202egnp.exe"
    steps = [PlanStep(step_id=hostile, objective=hostile * 50, tool=hostile)]
    record = handmade.record(hostile, hostile, 0, 10, 1, error=hostile, status="failed")
    record["sub_steps"][0]["name"] = hostile
    log = [{**handmade.log()[0], "node": hostile}]
    plan = Plan(problem_statement=hostile, steps=steps)
    for figure in (dag(plan, [record]), timeline(log, [record], title=hostile)):
        for text in words(figure):
            assert "<a" not in text
            assert "\x1b" not in text and "\u202e" not in text
        assert not any("hovertemplate" in trace or "texttemplate" in trace for trace in as_data(figure)["data"])


def test_the_data_behind_a_figure_is_a_frame():
    frame = dag_frame(RUN.plan, RUN.records)
    assert list(frame.step_id) == [step.step_id for step in RUN.plan.steps]
    times = timeline_frame(RUN.log, RUN.records, RUN.decisions)
    assert set(times.kind) == {"node", "waiting", "step", "sub_step"}
    assert (times.end_ms >= times.start_ms).all()


def test_ink_can_be_read_on_its_tint():
    def luminance(colour):
        parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        r, g, b = (p / 12.92 if p <= 0.03928 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
        return 0.2126 * r + 0.7152 * g + 0.0722 * b

    for ink, _, tint in COLOURS.values():
        assert (luminance(tint) + 0.05) / (luminance(ink) + 0.05) >= 5.1


def test_plotly_and_pandas_are_imported_when_first_used():
    check = "import sys, workbench.figures; print({'plotly', 'pandas', 'networkx'} & set(sys.modules))"
    assert subprocess.run([sys.executable, "-c", check], capture_output=True, text=True).stdout.strip() == "set()"
