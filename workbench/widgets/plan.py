"""The plan editor: the steps of a run, the form of the one that is chosen, and what was changed.

No mode: change a field and the plan is another one, with its problems next to the fields, until it is run or let go.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import ipywidgets
import traitlets
from markupsafe import Markup

from workbench.plans import Plan, PlanBudget, PlanStep, fresh_id, needed, problem, renamed
from workbench.ports import Tool
from workbench.state import Data, Json
from workbench.views.labels import Labels
from workbench.views.page import draw, joined
from workbench.views.plan import PlanView, problem_text, steps
from workbench.views.plan_graph import Changes, plan_changes, plan_faults, plan_forecast, plan_graph
from workbench.widgets.draft import Draft, RunPlan, duplicated, mended, moved, only, released, up_to
from workbench.widgets.form import Fields, Said, names, text, toggle
from workbench.widgets.panel import Event, Panel, Pick, display_if

if TYPE_CHECKING:
    from workbench.runs.fork import Forecast

SCOPES = ("only", "to", "rest")
_SELDOM = ("top_k", "kb_prefix")
"""Inputs that the step's budget and the run give anyway: shown when a step has them, or as JSON."""
_CONDITIONS = {"form_always": "always", "step_if_insufficient": "if_insufficient", "step_held": "held"}


class StepForm:
    """The fields of one step, by the schema of ``PlanStep`` and of the input of its tool.

    Args:
        labels: the words.
        tools: what a step may call, by name.
        heard: told the path of what a person changed, as ``budget.top_k``, and the value of the field.

    Attributes:
        box: the widget.
        head: the step's name; pressing tells ``duplicate``, ``remove`` and ``close``.
        foot: pressing tells a scope: ``only``, ``to``, ``rest``.
        form: the form; ``fields`` are its fields, by name.
    """

    def __init__(self, labels: Labels, tools: Mapping[str, Tool], heard: Callable[[str, Any], None]):
        self._labels, self._tools = labels, tools
        self._inputs: dict[str, Fields] = {}
        self._locked = ""
        self.head, self.foot = Pick(), Pick()
        schema = PlanStep.model_json_schema()
        schema["properties"]["tool"] = {"enum": list(tools)}

        def titled(name: str) -> str:
            return labels(f"form_{name}")

        budget = Fields(PlanBudget.model_json_schema(), labels, title=titled, blank={})
        own = {
            "step_id": text(ipywidgets.Text()),
            "condition": toggle([(labels(word), value) for word, value in _CONDITIONS.items()]),
            "depends_on": names(labels("form_depends_hint")),
            "tool_input": self._inputs_of(""),
            "budget": budget,
        }
        self.form = Fields(
            {**schema, "required": list(schema["properties"])},
            labels,
            lambda path: heard(path, self.fields[path.partition(".")[0]].value),
            title=titled,
            own=own,
        )
        self.fields = self.form.fields
        boxes = {name: field.box for name, field in self.fields.items()}
        numbers = [*(field.box for field in budget.fields.values()), boxes["priority"]]
        inside = [
            *(self.head, boxes["step_id"], boxes["objective"]),
            ipywidgets.HBox([boxes["tool"], boxes["condition"]]).add_class("wb-pair"),
            *(boxes["tool_input"], boxes["depends_on"]),
            ipywidgets.HBox(numbers).add_class("wb-numbers"),
            self.foot,
        ]
        self.box = ipywidgets.VBox(inside).add_class("wb-step-form")

    def show(self, step: PlanStep | None, locked: str = "", again: bool = False) -> None:
        """Show a step, or nothing.

        Args:
            step: the step.
            locked: why it cannot be changed; empty when it can.
            again: whether what is being typed is let go, since this is another step.
        """
        if step is None:
            display_if(self.box, False)
            return
        self.fields["tool_input"].adopt(self._inputs_of(step.tool))
        values = step.model_dump()
        if self.fields["step_id"].fault and not again:
            values["step_id"] = self.fields["step_id"].value  # a name that was not given stays as it is typed
        self.form.show(values, again)
        self._locked = locked
        self.form.disable(bool(locked))
        if step.tool in self._tools:
            self.fields["tool"].control.widget.tooltip = self._tools[step.tool].description
        self.head.show(draw("plan.step_head", self._labels, step_id=step.step_id, locked=locked))
        display_if(self.box, True)  # not before it is filled: somebody may type at once

    def say(self, said: Mapping[str, Sequence[Said]], runnable: bool) -> None:
        """Show messages next to the fields, by path, and whether the plan can be run."""
        self.form.say(said)
        shut = {s: bool(self._locked) for s in SCOPES} | {"rest": self._locked in ("running", "ended")}
        scopes = [(scope, shut[scope] or not runnable) for scope in SCOPES]
        self.foot.show(draw("plan.step_foot", self._labels, scopes=scopes))

    def _inputs_of(self, tool: str) -> Fields:
        if tool not in self._inputs:
            schema = self._tools[tool].input_schema.model_json_schema() if tool in self._tools else {}
            self._inputs[tool] = Fields(schema, self._labels, without=_SELDOM, blank={}, writable=True)
        return self._inputs[tool]


MOST_VERSIONS = 3
"""Earlier versions that can be brought back."""
PAUSE_S = 0.15
"""Seconds without a keystroke after which a plan is checked."""
Problem = Json


class PlanEditor(Panel):
    """A plan that can be edited.

    Args:
        labels: the words.
        check: everything that is wrong with a plan.
        tools: what a step may call, by name.
        forecast: what running a plan will take; None where no one knows.
        history: every version of the plan so far (``Run.plan_history``).

    Attributes:
        plan: the plan as it stands (``Plan.dump()``).
        problems: what is wrong with it (``plans.problem`` each); empty when it can be run.
        chosen: the id of the step whose form is shown; empty for none.
        foreseen: what running the plan will take, or the last plan that could be run; None when nothing is known.
        asked: ``{"scope", "plan", "n"}`` when a person wants to run this step ``only``, up ``to`` it, or the ``rest``.
        region: the widget with the steps, the changes and the forecast.
        form: the widget with the form of the chosen step.
    """

    plan = traitlets.Dict()
    problems: Any = traitlets.List()
    chosen = traitlets.Unicode("")

    def __init__(
        self,
        labels: Labels,
        check: Callable[[Plan], list[Problem]],
        tools: Mapping[str, Tool],
        forecast: Callable[[Plan], Forecast | None] | None = None,
        history: Callable[[], Sequence[Data]] = tuple,
    ):
        super().__init__(labels)
        self._check, self._tools, self._foresee = check, tools, forecast
        self._history, self._versions = history, dict[str, Data]()
        self._run_plan, self._draft = RunPlan(), Draft(Plan())
        self._live: Mapping[str, float] = {}
        self.foreseen: Forecast | None = None
        self._checked: Plan | None = None
        self._published: Plan | None = None
        self._found: list[Problem] = []
        self._editable, self._graph = False, False
        self._shown_step, self._visits = "", 0
        self._pause: asyncio.TimerHandle | None = None
        self.bar, self.list, self.below = Pick(), Pick(), Pick()
        self.fields = StepForm(labels, tools, self._typed)
        for part in (self.bar, self.list, self.below, self.fields.head, self.fields.foot):
            part.on_event(self.pressed)
        self.region = ipywidgets.VBox([self.bar, self.list, self.below]).add_class("wb-plan")
        self.form = self.fields.box
        self.observe(lambda _: self._chose(), "chosen")
        self._draw()

    # what it shows

    def show(self, document: Data, live: Mapping[str, float] = {}, editable: bool = False) -> None:
        """Show the plan of a run.

        Edits are kept, and what is being typed, as long as it is the same version of the same run's plan.

        Args:
            document: the run's (``Run.to_dict()``).
            live: seconds since the call began, for each step that runs now.
            editable: whether anything may be changed.
        """
        before, self._run_plan = self._run_plan, RunPlan.of(document, editable)
        self._live, self._editable = live, editable
        another = before.key != self._run_plan.key
        if editable and (before.status, before.records) != (self._run_plan.status, self._run_plan.records):
            self._checked = None  # the run has moved: what is ahead is another
        if another:
            self._draft, self._checked, self.foreseen = Draft(self._run_plan.plan), None, None
            self._versions = {str(row["version"]): row for row in self._history()}
            if self.chosen not in self._draft.plan.by_id():
                self.chosen = ""
        self.settle(again=another)

    @property
    def edits(self) -> int:
        """Return how many changes there are against what was shown."""
        return self._draft.changes().count

    # what is done with it

    def _add(self) -> None:
        """Add a step, chosen at once."""
        plan, query = self._draft.plan, self._run_plan.query
        tool = "hybrid_search" if "hybrid_search" in self._tools else next(iter(self._tools), "")
        step_id = fresh_id(plan, "new")
        objective = self.labels("step_new_objective", query=query[:200])
        step = PlanStep(step_id=step_id, objective=objective, tool=tool, tool_input={"query": query})
        self._edit(plan.adding(step))
        self.chosen = step_id

    def _turn(self, way: str) -> None:
        """Undo, redo or discard edits."""
        was = self._draft.origin(self.chosen)
        getattr(self._draft, way)()
        if self.chosen not in self._draft.plan.by_id():
            self.chosen = self._draft.now(was) if was else ""
        self.settle(again=True)

    def pressed(self, event: Event) -> None:
        """Do what a button, a row or a key of the editor tells."""
        key, known = event.key or self.chosen, self._draft.plan.by_id()
        if event.kind in ("steps", "graph"):
            self._graph = event.kind == "graph"
            self._draw()
        elif event.kind == "choose":
            self.chosen = event.key if event.key in known else ""
        elif event.kind == "close" or (event.kind == "escape" and self.chosen):
            self.chosen = ""
        elif not self._editable:
            return
        elif event.kind in ("undo", "redo", "discard"):
            self._turn(event.kind)
        elif event.kind == "add":
            self._add()
        elif event.kind in SCOPES:
            self.run_part(event.kind)
        elif event.kind == "version" and event.key in self._versions:
            self._bring_back(Plan.load(self._versions[event.key]["plan"]))
        elif key in known:
            self._on_step(event.kind, key, event.before)

    def _bring_back(self, earlier: Plan) -> None:
        """An earlier version as an edit, to be seen, run or taken back; what is proposed or cannot change stays."""
        stay = {self._draft.now(step_id) for step_id in self._run_plan.proposed}
        fixed = {s.step_id: s for s in self._draft.plan.steps if s.step_id in stay or self._lock(s.step_id)}
        steps = [fixed.pop(step.step_id, step) for step in earlier.steps]
        self._edit(self._draft.plan.model_copy(update={"steps": [*fixed.values(), *steps]}))

    def _on_step(self, kind: str, key: str, before: str) -> None:
        plan = self._draft.plan
        if kind == "duplicate":
            copied, new = duplicated(plan, key)
            self._edit(copied)
            self.chosen = new
        elif self._lock(key):
            return
        elif kind == "remove":
            self._edit(plan.without(key))
            if self.chosen == key:
                self.chosen = ""
        elif kind == "move" and key != before:
            self._edit(moved(plan, key, before))

    def run_part(self, scope: str) -> None:
        """Ask to run a part of the plan, once it can be run."""
        self.settle()
        plan = self._draft.plan
        if self.problems or not plan.steps or (scope != "rest" and self.chosen not in plan.by_id()):
            return
        fixed = {step_id for step_id in plan.by_id() if self._lock(step_id)}
        if scope == "rest":
            plan = released(plan, fixed)
        else:
            plan = {"only": only, "to": up_to}[scope](self._as_recorded(), self.chosen, self._done() | fixed)
        self.ask(scope=scope, plan=plan.dump())

    def _done(self) -> set[str]:
        """Return the ids of steps that have ended well, as they are called now."""
        ended = Plan.ends(self._draft.base, self._run_plan.records)
        return {now for was, end in ended.items() if end in ("success", "partial") and (now := self._draft.now(was))}

    def _as_recorded(self) -> Plan:
        """Return the plan, where other steps that are done stand as they were when they ran."""
        before = self._draft.shown().by_id()
        back = self._done() - needed(self._draft.plan, self.chosen)
        steps = [before[s.step_id] if s.step_id in back else s for s in self._draft.plan.steps]
        return self._draft.plan.model_copy(update={"steps": steps})

    # what is typed

    def _typed(self, name: str, value: Any) -> None:
        step_id, plan = self.chosen, self._draft.plan
        if step_id not in plan.by_id() or self._lock(step_id):
            return
        key = (self._visits, name)
        if name == "step_id":
            self._rename(step_id, str(value), key)
        else:
            self._draft.do(plan.replace(step_id, **{name.partition(".")[0]: value}), key)
        self._published = self._draft.plan
        self.plan = self._published.dump()
        self._soon()

    def _rename(self, old: str, new: str, key: Any) -> None:
        """A name that is taken or empty is told and not given: references would follow it into another step."""
        plan = self._draft.plan
        known, fault = plan.by_id(), ""
        if not new.strip():
            fault = self.labels("problem_no_id", place=list(known).index(old) + 1)
        elif new != old and new in known:
            fault = self.labels("problem_used_twice", step=new)
        elif new != old:
            self._draft.do(renamed(plan, {old: new}), key, {old: new})
            self._shown_step = self.chosen = new
        self.fields.fields["step_id"].fault = fault

    def _edit(self, plan: Plan) -> None:
        self._draft.do(plan)
        self.settle()

    def _chose(self) -> None:
        if self._shown_step == self.chosen:
            return
        self._shown_step, self._visits = self.chosen, self._visits + 1
        self.settle(again=True)

    def _soon(self) -> None:
        """Check a moment after the last keystroke; at once where nothing would wake us."""
        if self._pause:
            self._pause.cancel()
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            self.settle()
        else:
            self._pause = loop.call_later(PAUSE_S, self.settle)

    def settle(self, again: bool = False) -> None:
        """Check the plan, unless it is the one that was checked, and show everything."""
        if self._pause:
            self._pause.cancel()
        plan = self._draft.plan
        if plan is not self._checked:
            self._checked = plan
            self._found = self._check(plan) if plan.steps else []
            if self._foresee and plan.steps and not self._found:
                self.foreseen = self._foresee(plan)
        step = plan.by_id().get(self.chosen)
        self.fields.show(step, self._lock(self.chosen), again)
        typed = self.fields.form.faults if step else {}
        faults = [problem(self.chosen, name, f"{self.chosen}: {text}", "", "typed") for name, text in typed.items()]
        with self.hold_trait_notifications():  # who hears of the plan sees its problems too
            if plan is not self._published:
                self._published, self.plan = plan, plan.dump()
            self.problems = [*self._found, *faults]
        self._draw()

    # how it looks

    def _lock(self, step_id: str) -> str:
        return self._run_plan.locks.get(self._draft.origin(step_id), "" if self._editable else "running")

    def _view(self, changes: Changes) -> PlanView:
        draft, run_plan = self._draft, self._run_plan
        new = {step.step_id for step in changes.added}
        named = ((draft.now(record["step_id"]) or record["step_id"], record) for record in run_plan.records)
        rows = self.foreseen["steps"] if self.foreseen else []
        return PlanView(
            draft.plan,
            self.labels,
            records=[{**record, "step_id": now} for now, record in named if now not in changes.changed],
            proposed={*map(draft.now, run_plan.proposed), *(new if run_plan.proposed else ())},
            live=self._live,
            expected={row["step_id"]: row["p50_s"] for row in rows if row["p50_s"]},
            problems=self.problems,
            marks={**dict.fromkeys(changes.changed, "edited"), **dict.fromkeys(new, "new")},
            chosen=self.chosen,
            movable={step_id for step_id in draft.plan.by_id() if not self._lock(step_id)},
            stands=self._run_plan.status,
        )

    def _draw(self) -> None:
        changes = self._draft.changes()
        view = self._view(changes)
        self.list.show(plan_graph(view) if self._graph else steps(view))
        self.bar.show(self._bar(changes.count))
        whole = [problem_text(p, self.labels) for p in self.problems if not p["step_id"]]
        words = [plan_faults(whole, self.labels), plan_changes(changes, self.labels)]
        if self.foreseen:
            words.append(plan_forecast(self.foreseen, not self.problems, self.labels))
        self.below.show(joined(words))
        self._say()

    def _bar(self, edits: int) -> Markup:
        labels, plan, shown = self.labels, self._draft.plan, self._draft.base.version
        words = [labels("plan_version", n=shown), labels("steps", n=len(plan.steps))]
        if edits:
            words.append(labels("plan_edits", n=edits))
        earlier = [row for row in self._versions.values() if row["version"] < shown][-MOST_VERSIONS:]
        return draw(
            "plan.bar",
            labels,
            facts=" · ".join(words) if plan.steps else labels("plan_empty"),
            editable=self._editable,
            undoable=self._draft.undoable,
            redoable=self._draft.redoable,
            versions=earlier,
            graph=self._graph,
        )

    def _say(self) -> None:
        """Put the problems of the chosen step next to its fields, each with its fix."""
        said: dict[str, list[Said]] = {}
        for one in self.problems:
            concerned = (one["step_id"], *one["values"].get("path", ()))
            if self.chosen and self.chosen in concerned and one["kind"] != "typed":
                said.setdefault(one["field"], []).append(self._said(one, self.chosen))
        self.fields.say(said, runnable=not self.problems)

    def _said(self, one: Problem, step_id: str) -> Said:
        mend = None if self._lock(step_id) else mended(self._draft.plan, one, step_id)
        text = problem_text(one, self.labels)
        if mend is None:
            return Said(text)
        verb, what, plan = mend
        return Said(text, self.labels(f"mend_{verb}", what=what), lambda: self._edit(plan))
