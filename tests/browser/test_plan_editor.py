"""The plan editor in JupyterLab: typed into, dragged through by keys, and read by a screen reader's names."""

from __future__ import annotations

from tests.browser.lab import Notebook

CELL = """
import ipywidgets
from workbench.views.labels import Labels
from workbench.plans import Plan, PlanStep
from workbench.tools.registry import ToolRegistry, check
from workbench.widgets.panel import Root
from workbench.widgets.plan import PlanEditor

tools = ToolRegistry()
ids = ["step_0_a", "step_1_b", "step_2_c"]
plan = Plan(
    steps=[
        PlanStep(step_id=i, objective=f"About {i} $x^2$ <b>b</b>", tool="hybrid_search", tool_input={"query": i})
        for i in ids
    ]
).replace(ids[2], depends_on=ids[:2])
review = {"action_requests": [{"name": "plan", "args": {}}], "review_configs": [], "point": "plan"}
document = {"run_id": "r", "status": "paused", "message": "Who?", "plan": plan.dump(), "records": [], "review": review}
editor = PlanEditor(Labels("en"), lambda one: check(one, tools), tools)
editor.show(document, editable=True)
root = Root([ipywidgets.Box([editor.region, editor.form]).add_class("wb-plan-editor")])
root.sheet.on_event(editor.pressed)
root
"""


def kernel(nb: Notebook, expression: str, wanted: object) -> None:
    """Wait until the kernel says so."""
    found = None
    for _ in range(100):
        found = nb.kernel(expression)
        if found == wanted:
            return
        nb.page.wait_for_timeout(50)
    raise AssertionError(f"{expression} is {found!r}, not {wanted!r}")


def test_a_cycle_is_made_seen_and_fixed_by_one_click(notebook):
    nb = notebook([CELL])
    nb.run_all()
    root = nb.page.locator(".wb-root")
    root.get_by_role("option").nth(0).click()
    objective = root.get_by_label("Objective")
    objective.click()
    objective.press("Control+End")
    objective.press_sequentially(" am")
    kernel(nb, "editor.plan['steps'][0]['objective']", "About step_0_a $x^2$ <b>b</b> am")
    assert nb.eval("document.activeElement.tagName") == "TEXTAREA", "what is typed into keeps its focus"
    depends = root.get_by_label("Depends on")
    depends.fill("step_2_c")
    depends.press("Enter")
    alert = root.get_by_role("alert")
    alert.wait_for()
    assert "Cycle: step_0_a → step_2_c → back. Remove one of these." in alert.inner_text()
    nb.wait("document.querySelector('[aria-invalid=true]')")
    described = nb.eval(
        "document.getElementById(document.querySelector('[aria-invalid=true]').getAttribute('aria-describedby')).innerText"
    )
    assert "\nCycle" in described  # behind its sign
    assert root.locator(".wb-dag-cycle").count() and root.locator(".wb-step.wb-bad").count() == 2
    alert.get_by_role("button", name="Remove step_2_c").click()
    kernel(nb, "(editor.problems, editor.plan['steps'][0]['depends_on'])", ([], []))
    nb.wait("!document.querySelector('[aria-invalid=true]') && !document.querySelector('.wb-dag-cycle')")
    limit = root.get_by_label("Top k")
    limit.fill("0")
    alert.wait_for()
    assert "top_k is 0" in alert.inner_text()
    alert.get_by_role("button", name="Change to 50").click()
    nb.wait("!document.querySelector('.wb-alert')")
    assert limit.input_value() == "50"
