"""The form of a proposal at a review point, and the edits that follow from it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import ipywidgets

from workbench.records import proposals
from workbench.state import Data, Json
from workbench.views.labels import Labels, need_state
from workbench.views.markup import cut, draw, el, step_name
from workbench.views.plan import document_titles, needs_in_words
from workbench.views.review import need_verdict
from workbench.widgets.form import Control, Fields, choice, fold, text
from workbench.widgets.panel import on_change, set_class

Listener = Callable[[], None]


class Form:
    """The editable fields of a request, with the faults of their values.

    Args:
        request: the request of a run.
        labels: the words.
        listener: called when a person changed something.

    Attributes:
        box: the widget.
        keeps: whether edits are saved until they are sent.
        shown: the properties that are shown; None for all.
    """

    keeps = False
    shown: Sequence[str] | None = None

    def __init__(self, request: Data, labels: Labels, listener: Listener):
        self._labels = labels
        self._listener = listener
        self._proposed = proposals.proposal(request)
        self._before = proposals.in_force(request)
        schema = dict(self._schema(proposals.schema(request)))
        values = self._before
        if self.shown is not None:
            properties = schema.get("properties", {})
            schema["properties"] = {
                name: properties[name] for name in self.shown if name in properties
            }
            values = {
                name: values[name]
                for name in schema["properties"]
                if values.get(name) not in (None, "")
            }
        self._required = schema.get("required", ())
        self._fields = Fields(schema, labels, self.changed, title=self._title, own=self._own())
        self._fields.show(values)
        if field := self._fields.fields.get(proposals.LIMITS):
            limits = fold(self._title(field.name), field.control.widget)
            field.box.children = (limits, *field.box.children[1:])
        title = labels("edit_first" if self._fields.fields else "nothing_proposed")
        heading = ipywidgets.HTML(el("div.wb-dim.wb-strong", title))
        self.box = ipywidgets.VBox([heading, self._fields.box])

    @property
    def faults(self) -> int:
        """Return the number of faults, which keep the answer from being sent."""
        return len(self._fields.faults)

    def edits(self, plan: Data | None) -> Json:
        """Return the differences to the proposal; ``plan`` is the plan as edited next to this form."""
        return proposals.differing(self._before, self._fields.value, self._required)

    def restore(self, edits: Data) -> None:
        """Show saved edits."""
        self._fields.show({**self._fields.value, **edits})
        self.changed()

    def changed(self, path: str = "") -> None:
        """Show why typed text is invalid, and report a change by a person."""
        self._fields.report({})
        self._listener()

    def _schema(self, schema: Data) -> Data:
        return schema

    def _own(self) -> dict[str, Control]:
        """Return the controls of fields that have another one than that of their type."""
        return {}

    def _title(self, name: str) -> str:
        get = self._labels.get
        return get(f"field_{name}", get(f"edited_{name}", name))


class ClarifyForm(Form):
    """One field per question, with its options; for an empty one the assumption holds."""

    shown = ("answers", "query")

    def edits(self, plan: Data | None) -> Json:
        """Return the answers, and the query where it changed."""
        typed = self.answers.value
        answers = {name: value.strip() for name, value in typed.items() if value.strip()}
        changed = super().edits(plan)
        changed.pop("answers", None)
        return {**changed, "answers": answers} if answers else changed

    def _schema(self, schema: Data) -> Data:
        self._before.pop("answers", None)  # it has its own control, which begins empty
        return schema

    def _own(self) -> dict[str, Control]:
        questions = {
            question["question_id"]: question for question in self._proposed["questions"]
        }
        own = {}
        for name, question in questions.items():
            hint = self._labels("assumed_unless", what=question["assumed"])
            box = ipywidgets.Combobox(
                options=question["options"], placeholder=hint[:200], tooltip=hint[:500]
            )
            own[name] = text(box)
        texts = {name: question["question"] for name, question in questions.items()}
        properties = {name: {"description": cut(words, 200)} for name, words in texts.items()}
        schema = {"properties": properties}
        self.answers = Fields(
            schema, self._labels, title=lambda name: cut(texts[name], 120), own=own
        )
        return {"answers": self.answers}


class PlanForm(Form):
    """The query and the thresholds at a plan or its next steps; the plan is edited next to the form."""

    shown = ("query", proposals.LIMITS)

    def edits(self, plan: Data | None) -> Json:
        """Return the plan, the query, the thresholds, each when it changed."""
        changed = super().edits(plan)
        if plan is not None and plan["steps"] != self._proposed["plan"]["steps"]:
            changed = {"plan": dict(plan), **changed}
        if not str(changed.get("query", "")).strip():
            changed.pop("query", None)
        return changed


class ReflectForm(Form):
    """The next steps, the rewritten query, thresholds, needs, and whether to continue, at a reflection."""

    shown = (proposals.NEEDS, "rewrite_query", proposals.LIMITS)

    def __init__(
        self,
        request: Data,
        document: Data,
        labels: Labels,
        listener: Listener,
    ):
        """Offer the needs of a run's document, and the held steps of its plan, without those that ran."""
        self._needs = proposals.ledger(document)
        self._document = document
        super().__init__(request, labels, listener)
        recorded = document.get("plan") or {"steps": []}
        titles = document_titles(document)
        ran = {record["step_id"] for record in document["records"]}
        self._recorded = {step["step_id"] for step in recorded["steps"]}
        self._goes_on = False
        activated = self._proposed["activate"]
        held_back = [
            step["step_id"]
            for step in recorded["steps"]
            if step.get("condition") == "held" and step["step_id"] not in ran
        ]
        self._wakes = {
            name: ipywidgets.Checkbox(
                name in activated,
                description=labels("wake_step", step=step_name(name, titles))[:200],
                indent=False,
            )
            for name in dict.fromkeys([*held_back, *activated])
        }
        for box in self._wakes.values():
            on_change(box, listener)
        self.box.children = [*self._wakes.values(), self._fields.box]

    def go_on(self) -> None:
        """Keep searching, as a person chose."""
        self._goes_on = True
        self.changed()

    def changed(self, path: str = "") -> None:
        """Report a change by a person."""
        for field in self.needs.fields.values():
            set_class(field.box, "wb-yours", field.value)
        super().changed(path)

    def edits(self, plan: Data | None) -> Json:
        """Return the differences to the reflection; steps of ``plan`` that are not recorded are the next steps."""
        steps = self._proposed["next_steps"]
        if plan is not None:
            steps = [step for step in plan["steps"] if step["step_id"] not in self._recorded]
        woken = [name for name, box in self._wakes.items() if box.value]
        typed = self._fields.value
        query = str(typed.get("rewrite_query") or "")
        changed = proposals.next_pass(self._proposed, steps, woken, query, self._goes_on)
        judged = proposals.differing(
            self._before, {name: typed.get(name) for name in proposals.JUDGED_BY}
        )
        needs = judged.get(proposals.NEEDS, {})
        if added := needs.pop("", "").strip()[: proposals.LONGEST_NEED]:
            needs[added] = "open"
        return {**changed, **{name: value for name, value in judged.items() if value}}

    def _schema(self, schema: Data) -> Data:
        self._before[proposals.NEEDS] = {
            **{need["need"]: need["said"] for need in self._needs},
            "": "",
        }
        properties = {**schema.get("properties", {}), proposals.NEEDS: {}}
        return {**schema, "properties": properties}

    def _own(self) -> dict[str, Control]:
        labels = self._labels
        verdicts = [(labels(f"need_{verdict}"), verdict) for verdict in proposals.VERDICTS]
        own: dict[str, Control] = {}
        titles = {"": labels("need_another")}
        needs = needs_in_words(self._document)
        for n, need in enumerate(self._needs):
            name = need["need"]
            # a verdict can be changed, but not withdrawn
            none = [] if need["said"] else [(labels(f"need_{need_state(need)}"), "")]
            own[name] = choice([*none, *verdicts])
            titles[name] = draw(
                "review.need",
                labels,
                n=n + 1,
                need=needs[n],
                verdict=need_verdict(need, labels),
                document=self._document,
            )
        own[""] = text(ipywidgets.Text(placeholder=labels("need_another_hint")))
        schema = {"properties": {need: {} for need in own}, "required": [*own]}
        self.needs = Fields(schema, labels, title=titles.__getitem__, own=own)
        self.needs.box.add_class("wb-needs")
        return {proposals.NEEDS: self.needs}
