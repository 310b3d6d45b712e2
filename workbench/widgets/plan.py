"""The plan editor: the steps of a run, the form of the chosen step, and the changes.

There is no edit mode: changing a field changes the plan, with its problems next to the fields, until it is run or
discarded.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import ipywidgets
import traitlets

from workbench.plans import Plan, PlanBudget, PlanStep, fresh_id, problem
from workbench.ports import Tool
from workbench.state import Data, Json
from workbench.views.edits import field_changes
from workbench.views.labels import Labels
from workbench.views.markup import draw, step_name
from workbench.views.plan import (
    PlanView,
    problem_text,
    quoted,
    step_titles,
    steps,
    words_asked,
)
from workbench.views.plan_graph import count_changes, plan_graph
from workbench.widgets.draft import Draft, RunPlan, suggest_fix
from workbench.widgets.form import Control, Fields, Message, fold, step_names
from workbench.widgets.panel import Event, Panel, Pick, display_if

if TYPE_CHECKING:
    from workbench.runs.forecast import Forecast

_SELDOM = ("top_k", "kb_prefix")
"""Inputs that the budget of a step and its run set anyway: shown only when a step has them."""
_CONDITIONS = ("always", "if_insufficient", "held")


class StepForm:
    """The fields of one step, by the schema of ``PlanStep`` and of the input of its tool.

    Args:
        labels: the words.
        tools: the tools that a step may call, by name.
        titles: of the steps of the plan, by id, now and later.
        listener: called with the path of a change, such as ``budget.top_k``, and the value of its field.

    Attributes:
        box: the widget.
        head: the title of the step; its buttons are ``remove`` and ``close``.
        form: the form; ``fields`` are its fields, by name.
    """

    def __init__(
        self,
        labels: Labels,
        tools: Mapping[str, Tool],
        titles: Mapping[str, str],
        listener: Callable[[str, Any], None],
    ):
        self._labels = labels
        self._tools = tools
        self._titles = titles
        self._inputs: dict[str, Fields] = {}
        self.head = Pick()
        schema = PlanStep.model_json_schema()
        del schema["properties"]["step_id"]  # other steps refer to it
        schema["properties"]["tool"] = {"enum": list(tools)}

        def title(name: str) -> str:
            return labels(f"form_{name}")

        budget = Fields(PlanBudget.model_json_schema(), labels, title=title, blank={})
        conditions = ipywidgets.ToggleButtons(
            options=[(labels(f"step_{name}"), name) for name in _CONDITIONS],
            tooltips=[labels(f"step_{name}_told") for name in _CONDITIONS],
        )
        own = {
            "condition": Control(conditions, _CONDITIONS[0]),
            "depends_on": step_names(labels("form_depends_hint"), titles),
            "tool_input": self._input_fields(""),
            "budget": budget,
        }
        self.form = Fields(
            {**schema, "required": list(schema["properties"])},
            labels,
            lambda path: listener(path, self.fields[path.partition(".")[0]].value),
            title=title,
            own=own,
        )
        self.fields = self.form.fields
        boxes = {name: field.box for name, field in self.fields.items()}
        row = ipywidgets.HBox(
            [*(field.box for field in budget.fields.values()), boxes["priority"]]
        ).add_class("wb-numbers")
        self.limits = fold(labels("form_limits"), row)
        inside = [
            self.head,
            boxes["objective"],
            ipywidgets.HBox([boxes["tool"], boxes["condition"]]).add_class("wb-pair"),
            boxes["tool_input"],
            boxes["depends_on"],
            self.limits,
            row,
        ]
        self.box = ipywidgets.VBox(inside).add_class("wb-step-form")

    def show(self, step: PlanStep | None, locked: str = "", again: bool = False) -> None:
        """Show a step, or nothing.

        Args:
            step: the step.
            locked: why it cannot be changed; empty when it can.
            again: whether to discard what is being typed, since this is another step.
        """
        if step is None:
            display_if(self.box, False)
            return
        self.fields["tool_input"].adopt(self._input_fields(step.tool))
        self.form.show(step.model_dump(exclude={"step_id"}), again)
        self.fields["depends_on"].show(step.depends_on, again=True)  # by the titles of today
        self.form.disable(bool(locked))
        if again:
            self.limits.value = step.budget != PlanBudget() or step.priority != 1
        if step.tool in self._tools:
            self.fields["tool"].control.widget.tooltip = self._tools[step.tool].description
        title = self._titles[step.step_id]
        self.head.show(
            draw("plan.step_head", self._labels, step=step, title=title, locked=locked)
        )
        display_if(self.box, True)  # only once it is filled: a person may type at once

    def accepted(self, tool: str, tool_input: Data) -> Json:
        """Return the part of an input that a tool accepts."""
        properties = self._schema(tool).get("properties", tool_input)
        return {name: value for name, value in tool_input.items() if name in properties}

    def _schema(self, tool: str) -> Data:
        return self._tools[tool].input_schema.model_json_schema() if tool in self._tools else {}

    def _input_fields(self, tool: str) -> Fields:
        if tool not in self._inputs:
            schema = self._schema(tool)
            shown = {
                name: spec
                for name, spec in schema.get("properties", {}).items()
                if name not in _SELDOM
            }
            self._inputs[tool] = Fields(
                {**schema, "properties": shown},
                self._labels,
                title=lambda name: self._labels.get(f"input_{name}", name),
                blank={},
            )
        return self._inputs[tool]


PAUSE_S = 0.15
"""Seconds without a keystroke after which a plan is checked."""
Problem = Json


class PlanEditor(Panel):
    """A plan that can be edited.

    Args:
        labels: the words.
        check: returns the problems of a plan.
        tools: the tools that a step may call, by name.
        forecast: returns the forecast for running a plan; None where there is none.

    Attributes:
        plan: the edited plan (``Plan.dump()``).
        problems: its problems (``plans.problem`` each); empty when it can be run.
        chosen: the id of the step whose form is shown; empty for none.
        foreseen: the forecast for the plan, or for the last one that could be run; None without a forecast.
        region: the widget with the steps and the changes.
        form: the widget with the form of the chosen step.
    """

    plan = traitlets.Dict()
    problems: Any = traitlets.List()
    chosen = traitlets.Unicode("")
    foreseen: Any = traitlets.Dict(None, allow_none=True)

    def __init__(
        self,
        labels: Labels,
        check: Callable[[Plan], list[Problem]],
        tools: Mapping[str, Tool],
        forecast: Callable[[Plan], Forecast | None] = lambda _: None,
    ):
        super().__init__(labels)
        self._check = check
        self._tools = tools
        self._forecast = forecast
        self._run_plan = RunPlan()
        self._asked: Mapping[str, str] = {}
        self._titles: dict[str, str] = {}
        self._draft = Draft(Plan())
        self._live: Mapping[str, float] = {}
        self._checked: Plan | None = None
        self._published: Plan | None = None
        self._plan_problems: list[Problem] = []
        self._editable = False
        self._graph = False
        self._visits = 0
        self._pause: asyncio.TimerHandle | None = None
        self.bar = Pick()
        self.list = Pick()
        self.below = Pick()
        self.fields = StepForm(labels, tools, self._titles, self._typed)
        for part in (self.bar, self.list, self.below, self.fields.head):
            part.on_event(self.pressed)
        self.region = ipywidgets.VBox([self.bar, self.list, self.below]).add_class("wb-plan")
        self.form = self.fields.box
        self.observe(lambda _: self._choose(), "chosen")
        self._draw()

    # show

    def show(
        self, document: Data, live: Mapping[str, float] = {}, editable: bool = False
    ) -> None:
        """Show the plan of a run.

        Edits survive, and so does what is being typed, while it is the same version of the same run's plan.

        Args:
            document: of the run (``Run.to_dict()``).
            live: seconds since the call began, for each running step.
            editable: whether anything may be changed.
        """
        before = self._run_plan
        self._run_plan = RunPlan.from_document(document, editable)
        self._asked = words_asked(document)
        self._live = live
        self._editable = editable
        replaced = before.key != self._run_plan.key
        if editable and before != self._run_plan:
            self._checked = None  # the run has moved, and the forecast with it
        if replaced:
            self._draft = Draft(self._run_plan.plan)
            self._checked = None
            self.foreseen = None
        self.settle(again=replaced)

    @property
    def edits(self) -> int:
        """Return the number of changes to the plan that was shown."""
        return count_changes(self._draft.changes())

    # edit

    def pressed(self, event: Event) -> None:
        """Handle a button, a row or a key of the editor."""
        kind = event.kind
        key = event.key or self.chosen
        steps_by_id = self._draft.plan.by_id()
        if kind in ("steps", "graph"):
            self._graph = kind == "graph"
            self._draw()
        elif kind == "choose":
            self.chosen = event.key if event.key in steps_by_id else ""
        elif kind == "close" or (kind == "escape" and self.chosen):
            self.chosen = ""
        elif not self._editable:
            return
        elif kind in ("undo", "discard"):
            getattr(self._draft, kind)()
            self.settle(again=True)
        elif kind == "add":
            self._add()
        elif key not in steps_by_id or self._lock(key):
            return
        elif kind == "remove":
            self._edit(self._draft.plan.without(key))

    def _add(self) -> None:
        plan = self._draft.plan
        query = self._run_plan.query
        tool = "hybrid_search" if "hybrid_search" in self._tools else next(iter(self._tools), "")
        step_id = fresh_id(plan, "new")
        step = PlanStep(step_id=step_id, objective=query, tool=tool, tool_input={"query": query})
        self._edit(plan.adding(step))
        self.chosen = step_id

    def _typed(self, path: str, value: Any) -> None:
        step_id = self.chosen
        plan = self._draft.plan
        if step_id not in plan.by_id() or self._lock(step_id):
            return
        name = path.partition(".")[0]
        fields = {name: value}
        step = plan.step(step_id)
        added = step_id not in self._draft.base.by_id()
        if name == "tool":
            fields["tool_input"] = self.fields.accepted(value, step.tool_input)
        elif name == "objective" and added and step.tool_input.get("query") == step.objective:
            # a new step searches for its objective until its query is edited
            fields["tool_input"] = {**step.tool_input, "query": value}
        self._draft.edit(plan.replace(step_id, **fields), (self._visits, path))
        self._published = self._draft.plan
        self.plan = self._published.dump()
        self._settle_soon()

    def _edit(self, plan: Plan) -> None:
        self._draft.edit(plan)
        self.settle()

    def _choose(self) -> None:
        self._visits += 1
        self.settle(again=True)

    def _settle_soon(self) -> None:
        """Check a moment after the last keystroke; at once without an event loop."""
        if self._pause:
            self._pause.cancel()
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            self.settle()
        else:
            self._pause = loop.call_later(PAUSE_S, self.settle)

    def settle(self, again: bool = False) -> None:
        """Check the plan, unless it was checked already, and show everything."""
        if self._pause:
            self._pause.cancel()
        plan = self._draft.plan
        if self.chosen not in plan.by_id():
            self.chosen = ""
        if plan is not self._checked:
            self._checked = plan
            self._plan_problems = self._check(plan) if plan.steps else []
            if plan.steps and not self._plan_problems:
                self.foreseen = self._forecast(plan)
        step = plan.by_id().get(self.chosen)
        self._titles.clear()
        self._titles.update(step_titles(self._draft.base, plan, asked=self._asked))
        self.fields.show(step, self._lock(self.chosen), again)
        faults = self.fields.form.faults if step else {}
        typed = [
            problem(self.chosen, path, f"{self.chosen}: {text}", "", "typed")
            for path, text in faults.items()
        ]
        with self.hold_trait_notifications():  # observers of the plan see its problems too
            if plan is not self._published:
                self._published = plan
                self.plan = plan.dump()
            self.problems = [*self._plan_problems, *typed]
        self._draw()

    # draw

    def _lock(self, step_id: str) -> str:
        return self._run_plan.locks.get(step_id, "" if self._editable else "running")

    def _view(self, changes: Data) -> PlanView:
        plan = self._draft.plan
        run_plan = self._run_plan
        added = changes["added"]
        rows = self.foreseen["steps"] if self.foreseen else []
        return PlanView(
            plan,
            self.labels,
            self._titles,
            records=[
                record
                for record in run_plan.records
                if record["step_id"] not in changes["changed"]
            ],
            proposed={*run_plan.proposed, *(added if run_plan.proposed else ())},
            live=self._live,
            expected={row["step_id"]: row["p50_s"] for row in rows if row["p50_s"]},
            problems=self.problems,
            marks={**dict.fromkeys(changes["changed"], "edited"), **dict.fromkeys(added, "new")},
            chosen=self.chosen,
        )

    def _draw(self) -> None:
        changes = self._draft.changes()
        labels = self.labels
        view = self._view(changes)
        self.list.show(plan_graph(view) if self._graph else steps(view))
        self.bar.show(
            draw(
                "plan.bar",
                labels,
                edits=count_changes(changes),
                draft=self._draft,
                editable=self._editable,
                graph=self._graph,
            )
        )
        general = [problem_text(fault, labels) for fault in self.problems if not fault["step_id"]]
        below = draw("plan.faults", labels, problems=general)
        if any(changes.values()):
            below += draw(
                "plan.changes",
                labels,
                view=view,
                changes=changes,
                draft=self._draft,
                fields=field_changes,
            )
        self.below.show(below)
        messages: dict[str, list[Message]] = {}
        for fault in self.problems:
            concerned = (fault["step_id"], *fault["values"].get("path", ()))
            if self.chosen and self.chosen in concerned and fault["kind"] != "typed":
                messages.setdefault(fault["field"], []).extend(self._messages(fault))
        self.fields.form.report(messages)

    def _messages(self, fault: Problem) -> Iterator[Message]:
        """Yield a problem with its fix in the chosen step, then the fixes in the other steps of a cycle."""
        titles = quoted(self._titles)
        text = problem_text(fault, self.labels, titles)
        for step_id in dict.fromkeys([self.chosen, *fault["values"].get("path", ())]):
            fix = None if self._lock(step_id) else suggest_fix(self._draft.plan, fault, step_id)
            label = ""
            if fix:
                what = step_name(fix.subject, titles)
                label = self.labels(fix.label, what=what, step=titles[step_id])
            yield Message(text, label, partial(self._apply_fix, fault, step_id))
            text = ""

    def _apply_fix(self, fault: Problem, step_id: str) -> None:
        # to the current plan: it may have been edited since, for the check waits for a pause in typing
        if fix := suggest_fix(self._draft.plan, fault, step_id):
            self._edit(fix.plan)
