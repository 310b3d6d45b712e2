"""The review panel: the question, the reasons, the form, and the answer that follows from it."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import ipywidgets
import traitlets

from workbench.errors import PlanError, WorkbenchError
from workbench.extensions import load, paths
from workbench.graphs.review import amended
from workbench.graphs.reviewers import answer
from workbench.plans import Plan, PlanStep
from workbench.records import proposals
from workbench.state import Data, Json
from workbench.views.labels import Labels
from workbench.views.markup import NOTHING, draw
from workbench.views.plan_graph import forecast_text
from workbench.views.review import band, why
from workbench.widgets.panel import Pick, display_if, on_change, press_button, set_class
from workbench.widgets.proposal import ClarifyForm, Form, Listener, PlanForm, ReflectForm

if TYPE_CHECKING:
    from workbench.runs.forecast import Forecast


class Review(traitlets.HasTraits):
    """The answer to a request of a run. There is no edit mode: a change in the form makes the answer an edit.

    Attributes:
        response: the answer in the shape of LangChain's middleware; a new one at every press.
        inside: the reasons and the form.
        dock: the question and its buttons.
        primary: the button that sends the form.
        search: the button that keeps searching.
        stop: the button that stops here.
        note: a reason, saved with the decision.
    """

    response = traitlets.Dict()

    def __init__(
        self,
        labels: Labels,
        runs: Any = None,
        forecast: Callable[[Plan, Collection[str]], Forecast | None] = lambda *_: None,
    ):
        """Build the panel.

        Args:
            labels: the words.
            runs: ``wb.runs``; with it an unsent note survives a restart.
            forecast: returns the forecast for a plan, some of whose steps are woken.
        """
        super().__init__()
        self._runs = runs
        self._forecast = forecast
        self._labels = labels
        self._sent = False
        self._form: Form | None = None
        self._key = ("", "")
        self.band = Pick()
        self.why = Pick()
        self.refusal = Pick()
        self.form = ipywidgets.VBox()
        self.note = ipywidgets.Text(
            description=labels("decision_note"), placeholder=labels("why")
        )
        self.primary = press_button("", self.submit, "wb-primary")
        self.stop = press_button("", lambda: self.decide("reject"))
        self.search = press_button(labels("search_on"), self._search)
        self.respond = press_button(
            labels("respond_dots"),
            lambda: self._open_message(True),
            "wb-quiet",
            tooltip=labels("respond_told"),
        )
        self.message = ipywidgets.Textarea(description=labels("respond_field"), rows=2)
        self.send = press_button(
            labels("respond_send"), lambda: self.decide("respond"), "wb-primary"
        )
        self.back = press_button(
            labels("respond_back"), lambda: self._open_message(False), "wb-quiet"
        )
        on_change(self.message, self._update)
        self.note.observe(lambda change: self._save_draft("note", change.new), "value")
        rows = ([self.primary, self.search, self.stop, self.respond], [self.send, self.back])
        answers, sending = (ipywidgets.HBox(row).add_class("wb-buttons") for row in rows)
        self._message_box = ipywidgets.VBox([self.message, sending]).add_class("wb-message")
        self.inside = ipywidgets.VBox([self.why, self.form, self.note]).add_class(
            "wb-review-inside"
        )
        self.dock = ipywidgets.VBox(
            [
                self.refusal,
                self._message_box,
                ipywidgets.HBox([self.band, answers]).add_class("wb-decision"),
            ]
        )

    def show(
        self,
        document: Data,
        *,
        plan: Data | None = None,
        problems: Sequence[Data] = (),
    ) -> None:
        """Show the request of a run. The same request shown again does not disturb what was typed.

        Args:
            document: of a run, with its ``review``, and the ``pieces`` that it has found.
            plan: the plan as edited next to this panel, None without edits. At a reflection its steps that are not
                recorded are the next ones.
            problems: of that plan; nothing can be sent until they are fixed.
        """
        self._document = dict(document)
        self._request = dict(document["review"])
        self._plan = plan
        self._problems = problems
        key = (str(document["run_id"]), str(self._request.get("review_id", "")))
        if key != self._key:
            self._key = key
            self._begin()
        self.why.show(why(document, self._labels))
        self._set_sent(False)

    def refuse(self, message: str) -> None:
        """Show why the answer was refused; everything that was typed stays."""
        self.refusal.show(
            draw("review.refused", self._labels, message=message) if message else NOTHING
        )
        self._set_sent(False)

    def submit(self) -> None:
        """Send the primary answer, unless something prevents it."""
        if self._message_box.layout.display is None and self.message.value.strip():
            self.decide("respond")
        elif not self.primary.disabled:
            edits = self._edits()
            self.decide("edit" if edits else "approve", edits)

    def _begin(self) -> None:
        """Show another request, with the drafts of an earlier session."""
        labels = self._labels
        kind = proposals.kind(self._request)
        self._foreseen: tuple[Any, str] = (None, "")
        self.note.value, self.message.value = self._saved_draft("note"), ""
        self.refusal.show()
        self._form = make_form(self._request, self._document, labels, self._update)
        self._draft = self._saved_draft("form") if self._form.keeps else ""
        if self._draft:
            self._form.restore(json.loads(self._draft))
        self.form.children = [self._form.box]
        self.stop.description = labels.get(f"stop_{kind}", labels("stop_here"))
        self.stop.tooltip = labels.get(f"stop_{kind}_told", labels("stop_here_told"))
        self.message.description = labels.get(f"respond_{kind}", labels("respond_field"))
        allowed = proposals.allowed(self._request)
        display_if(self.respond, "respond" in allowed)
        display_if(self.form, "edit" in allowed)
        display_if(self._message_box, False)

    def _saved_draft(self, part: str) -> str:
        run_id, review_id = self._key
        return str(self._runs.draft(run_id, f"{part} {review_id}")) if self._runs else ""

    def _save_draft(self, part: str, text: str) -> None:
        run_id, review_id = self._key
        if self._runs and review_id:
            try:
                self._runs.save_draft(run_id, f"{part} {review_id}", text)
            except WorkbenchError as error:
                self.refuse(str(error))

    def _edits(self) -> Json:
        if self._form is None or "edit" not in proposals.allowed(self._request):
            return {}
        return self._form.edits(self._plan)

    def _update(self) -> None:
        """Update the buttons, and save the draft of the form."""
        if self._form is None:
            return
        edits = self._edits()
        draft = json.dumps(edits, ensure_ascii=False) if edits else ""
        if self._form.keeps and draft != self._draft:
            self._draft = draft
            self._save_draft("form", draft)
        faults = len(self._problems) + self._form.faults
        next_step = self._labels("problems_to_mend", n=faults) if faults else self._next(edits)
        self.band.show(band(self._document, self._labels, next_step, edits, self._problems))
        self.primary.description = primary(self._request, edits, self._labels)
        allowed = proposals.allowed(self._request)
        # to stop is offered where the run would go on, and to search where it would answer
        answers = next_step == self._labels("next_answer")
        display_if(self.stop, "reject" in allowed and not answers)
        display_if(self.search, "edit" in allowed and answers)
        display_if(self.primary, not self._problems)  # the band has the way to the first one
        set_class(self.stop, "wb-quiet", self._problems)
        missing = not edits and "approve" not in allowed
        self.primary.disabled = bool(faults) or missing or self._sent
        self.send.disabled = not self.message.value.strip() or self._sent

    def _next(self, edits: Data) -> str:
        """Return what happens once this is sent: what the run will do, not what was proposed."""
        request = self._request
        labels = self._labels
        kind = proposals.kind(request)
        if kind not in ("plan", "reflect"):
            return labels("clock")
        if kind == "reflect" and edits and set(edits) <= set(proposals.JUDGED_BY):
            return labels("next_judged")
        if kind == "reflect" and not proposals.will_go_on(proposals.proposal(request), edits):
            return labels("next_answer")
        if "query" in edits:
            return labels("next_plan")
        plan, woken = next_plan(request, self._document, edits)
        if (plan, woken) != self._foreseen[0]:
            with suppress(
                PlanError
            ):  # a plan that is still to be checked: the last forecast stays
                forecast = self._forecast(plan, woken)
                self._foreseen = (
                    (plan, woken),
                    forecast_text(forecast, labels) if forecast else labels("clock"),
                )
        return self._foreseen[1]

    def _search(self) -> None:
        if isinstance(self._form, ReflectForm):
            self._form.go_on()
        self.primary.focus()

    def _open_message(self, opened: bool) -> None:
        display_if(self._message_box, opened)
        (self.message if opened else self.respond).focus()

    def _set_sent(self, sent: bool) -> None:
        """Disable the buttons while an answer is on its way."""
        self._sent = self.stop.disabled = self.respond.disabled = sent
        self._update()

    def decide(self, kind: str, edits: Data | None = None) -> None:
        """Send an answer."""
        point = proposals.point(self._request)
        message = self.message.value if kind == "respond" else ""
        response = answer(kind, point=point, edits=edits, message=message, note=self.note.value)
        self.refusal.show()
        self._set_sent(True)
        with self.hold_trait_notifications():  # an equal answer is a new one too
            self.response = {}
            self.response = response


def make_form(request: Data, document: Data, labels: Labels, listener: Listener) -> Form:
    """Return the form of a request of a run; for a custom graph every field of its schema."""
    kind = proposals.kind(request)
    if kind == "reflect":
        return ReflectForm(request, document, labels, listener)
    own: dict[str, type[Form]] = {"": Form, "clarify": ClarifyForm}
    forms = paths("forms")
    form: type[Form] = load(forms[kind]) if kind in forms else own.get(kind, PlanForm)
    return form(request, labels, listener)


def next_plan(request: Data, document: Data, edits: Data) -> tuple[Plan, Sequence[str]]:
    """Return the plan that an answer with these edits leads to, and the steps that it wakes."""
    proposal: Any = proposals.proposal(request)
    if proposals.kind(request) != "reflect":
        return Plan.load({**proposal, **edits}["plan"]), ()
    plan = Plan.load(document["plan"])
    changed = amended(proposal, edits, document["query"], plan)
    steps = [
        PlanStep.model_validate(s)
        for s in changed["next_steps"]
        if s["step_id"] not in plan.by_id()
    ]
    return plan.adding(*steps), changed["activate"]


def primary(request: Data, edits: Data, labels: Labels) -> str:
    """Return the text of the primary button: what happens when it is pressed."""
    point = proposals.kind(request)
    proposal = proposals.proposal(request)
    ahead = request.get("ahead")
    if not edits:
        if point in paths("forms"):
            return labels(f"approve_{point}", n=len(proposal.get("sections", ())))
        if point == "clarify":
            return labels("approve_assumed")
        if point == "reflect" and not proposal["should_continue"]:
            return labels("approve_answer")
        if not point or ahead is None:  # a custom graph
            return labels("approve_other")
        return labels("approve_run" if ahead else "approve_run_none", n=len(ahead))
    if point != "clarify" and set(edits) == {"query"}:
        return labels("plan_anew")
    verb = {"plan": "run", "step": "run", "outline": "write"}.get(point, "go")
    if point == "reflect" and set(edits) <= set(proposals.JUDGED_BY):
        verb = "judge"
    elif point == "reflect":
        verb = "run" if proposals.will_go_on(proposal, edits) else "answer"
    return labels(f"{verb}_with_edits")
