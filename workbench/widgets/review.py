"""The review panel: what is to be decided, why, the form, and the answer that follows from what is in it."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from typing import Any

import ipywidgets
import traitlets

from workbench.errors import WorkbenchError
from workbench.extensions import load, paths
from workbench.graphs.reviewers import answer
from workbench.records import proposals
from workbench.state import Data, Json
from workbench.views.labels import Labels
from workbench.views.page import NOTHING, draw
from workbench.views.plan_graph import plan_forecast
from workbench.views.review import band, why
from workbench.widgets.panel import Pick, display_if, on_change, press_button
from workbench.widgets.proposal import ClarifyForm, Form, Heard, PlanForm, ReflectForm


class Review(traitlets.HasTraits):
    """Decides at a review point. There is no edit mode: who changes something edits, and the button says so.

    Attributes:
        response: the answer in the shape of LangChain's middleware; a fresh one at every press.
        region: the widget: ``band`` over ``inside``.
        primary: the button that sends what is in the form.
        stop: the button that stops here.
        note: why; kept with the decision.
    """

    response = traitlets.Dict()

    def __init__(self, labels: Labels, runs: Any = None):
        """``runs`` is ``wb.runs``; with it a note that is typed and not sent is there again after a restart."""
        super().__init__()
        self._runs = runs
        self._labels, self._document, self._request = labels, Json(), Json()
        self._plan: Data | None = None
        self._problems, self._sent = 0, False
        self._form: Form | None = None
        self._kept = ""
        self._asked = ("", "")
        self.band, self.why, self.refusal, self.forecast = Pick(), Pick(), Pick(), Pick()
        self.form = ipywidgets.VBox()
        self.note = ipywidgets.Text(description=labels("decision_note"), placeholder=labels("why"))
        self.primary = press_button("", self.submit, "wb-primary")
        self.stop = press_button("", lambda: self._send("reject"))
        self.respond = press_button(labels("respond_dots"), lambda: self._responding(True), "wb-quiet")
        self.message = ipywidgets.Textarea(description=labels("respond_field"), rows=2)
        self.send = press_button(labels("respond_send"), lambda: self._send("respond"), "wb-primary")
        self.back = press_button(labels("respond_back"), lambda: self._responding(False), "wb-quiet")
        on_change(self.message, self._update)
        self.note.observe(lambda change: self._keep("note", change.new), "value")
        rows = ([self.primary, self.stop, self.respond], [self.send, self.back])
        answers, sending = (ipywidgets.HBox(row).add_class("wb-buttons") for row in rows)
        self._saying = ipywidgets.VBox([self.message, sending])
        inside = [self.why, self.form, self.note, self.refusal, self._saying, answers, self.forecast]
        self.inside = ipywidgets.VBox(inside).add_class("wb-review-inside")
        self.region = ipywidgets.VBox([self.band, self.inside]).add_class("wb-review")

    def show(
        self,
        document: Data,
        *,
        plan: Data | None = None,
        problems: Sequence[Data] = (),
        forecast: Data | None = None,
    ) -> None:
        """Show what a run asks. The same question shown again keeps what was typed.

        Args:
            document: of a run, with its ``review``.
            plan: the plan as it was edited next to this panel, None when it was not. At a reflection its steps beyond
                the recorded plan are the next ones.
            problems: what is wrong with that plan; nothing can be sent until it is fixed.
            forecast: what running it will take.
        """
        self._document, self._request = dict(document), dict(document["review"])
        self._plan, self._problems = plan, len(problems)
        asked = (str(document["run_id"]), str(self._request.get("review_id", "")))
        if asked != self._asked:
            self._asked = asked
            self._begin_anew()
        self.why.show(why(document, self._labels))
        if not problems:  # else the last forecast stays
            forecast = None if proposals.kind(self._request) in paths("forms") else forecast
            steps = plan_forecast(forecast, True, self._labels) if forecast else None
            self.forecast.show(steps or NOTHING)
        self._set_sent(False)

    def refuse(self, message: str) -> None:
        """Tell that the answer was not taken, and why; everything that was typed stays."""
        self.refusal.show(draw("review.refused", self._labels, message=message) if message else NOTHING)
        self._set_sent(False)

    def submit(self) -> None:
        """Send the primary answer; what is wrong keeps it from being sent."""
        if self._saying.layout.display is None and self.message.value.strip():
            self._send("respond")
        elif not self.primary.disabled:
            edits = self._edits()
            self._send("edit" if edits else "approve", edits)

    def _begin_anew(self) -> None:
        """Another question: nothing is typed yet."""
        run_id, review_id = self._asked
        self.note.value = self._runs.draft(run_id, f"note {review_id}") if self._runs else ""
        self.message.value = ""
        self.refusal.show()
        ran = {record["step_id"] for record in self._document["records"]}
        self._form = form_of(self._request, self._document.get("plan"), self._labels, self._update, ran)
        self._kept = self._runs.draft(run_id, f"form {review_id}") if self._runs and self._form.keeps else ""
        if self._kept:
            self._form.restore(json.loads(self._kept))
        self.form.children = [self._form.box]
        kind = proposals.kind(self._request)
        known = self._labels.known
        self.stop.description = known(f"stop_{kind}", self._labels("stop_here"))
        self.stop.tooltip = known(f"stop_{kind}_told", self._labels("stop_here_told"))
        self.message.description = known(f"respond_{kind}", self._labels("respond_field"))
        taken = proposals.allowed(self._request)
        for widget, kind in ((self.stop, "reject"), (self.respond, "respond"), (self.form, "edit")):
            display_if(widget, kind in taken)
        self._responding(False)

    def _keep(self, what: str, text: str) -> None:
        run_id, review_id = self._asked
        if self._runs and review_id:
            try:
                self._runs.save_draft(run_id, f"{what} {review_id}", text)
            except WorkbenchError as error:
                self.refuse(str(error))

    def _edits(self) -> Json:
        if self._form is None or "edit" not in proposals.allowed(self._request):
            return {}
        return self._form.edits(self._plan)

    def _update(self) -> None:
        """Say what the primary button will do now."""
        if self._form is None:
            return
        edits = self._edits()
        if self._form.keeps and self._kept != (now := json.dumps(edits, ensure_ascii=False) if edits else ""):
            self._kept = now
            self._keep("form", now)
        wrong = self._problems + self._form.faults
        self.band.show(band(self._request, self._labels, wrong))
        self.primary.description = primary(self._request, edits, wrong, self._labels)
        missing = not edits and "approve" not in proposals.allowed(self._request)
        self.primary.disabled = bool(wrong) or missing or self._sent
        self.send.disabled = not self.message.value.strip() or self._sent

    def _responding(self, opened: bool) -> None:
        display_if(self._saying, opened)
        if opened:
            self.message.focus()

    def _set_sent(self, sent: bool) -> None:
        """While an answer is on its way nothing more can be sent."""
        self._sent = self.stop.disabled = self.respond.disabled = sent
        self._update()

    def _send(self, kind: str, edits: Data | None = None) -> None:
        point, message = proposals.point(self._request), self.message.value if kind == "respond" else ""
        given = answer(kind, point=point, edits=edits, message=message, note=self.note.value)
        self.refusal.show()
        self._set_sent(True)
        with self.hold_trait_notifications():  # the same answer once more is an answer too
            self.response = {}
            self.response = given


def form_of(request: Data, recorded: Data | None, labels: Labels, heard: Heard, ran: Collection[str] = ()) -> Form:
    """The form of this request; of a point that is not known, every field of its schema. ``ran`` are ids of steps."""
    kind = proposals.kind(request)
    if kind == "reflect":
        return ReflectForm(request, recorded or {"steps": []}, labels, heard, ran)
    made: dict[str, type[Form]] = {"": Form, "clarify": ClarifyForm}
    forms = paths("forms")
    form: type[Form] = load(forms[kind]) if kind in forms else made.get(kind, PlanForm)
    return form(request, labels, heard)


def primary(request: Data, edits: Data, wrong: int, labels: Labels) -> str:
    """Return what the primary button says: what will happen when it is pressed."""
    point, proposed = proposals.kind(request), proposals.proposal(request)
    if wrong:
        return labels("problems_to_mend", n=wrong)
    if not edits:
        return _approving(point, proposed, request.get("ahead"), labels)
    if point != "clarify" and set(edits) <= {"query", "struck"}:
        return labels("plan_anew") if "query" in edits else labels("plan_without", n=len(edits["struck"]))
    verb = {"plan": "run", "step": "run", "outline": "write", "section": "keep"}.get(point, "go")
    if point == "reflect":
        goes_on = proposals.will_go_on(proposed, edits)
        verb = "judge" if set(edits) <= set(proposals.JUDGED_BY) else "run" if goes_on else "answer"
    return labels(f"{verb}_with_edits")


def _approving(point: str, proposed: Data, ahead: Sequence[str] | None, labels: Labels) -> str:
    if point == "clarify":
        return labels("approve_assumed")
    if point in paths("forms"):
        return labels(f"approve_{point}", n=len(proposed.get("sections", ())))
    if point == "reflect" and not proposed["should_continue"]:
        return labels("approve_answer")
    if not point or ahead is None:  # a graph of one's own, or a pause from before requests said what will run
        return labels("approve_other")
    return labels("approve_run" if ahead else "approve_run_none", n=len(ahead))
