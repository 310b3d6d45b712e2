"""The calls of models on the bench: seen in a fold, and each can be edited, of which a fork is made."""

from __future__ import annotations

from collections.abc import Iterable

import ipywidgets

from workbench.errors import SettingsError
from workbench.models.chat import require_chat_model
from workbench.records.prompts import LANGUAGES, SLOTS, Prompt, prompt_of
from workbench.runs.calls import Call, model_settings
from workbench.runs.run import Run
from workbench.settings import ROLES, RULES, Settings
from workbench.state import Data, Json
from workbench.views.labels import Labels
from workbench.views.labels.sentences import reason_told
from workbench.views.page import draw, el
from workbench.views.run import calls
from workbench.widgets.form import Fields, Said, text
from workbench.widgets.panel import Event, Panel, Pick, display_if, press_button

_PARTS = ("system", "user")


class Calls(Panel):
    """What the models of a run saw and said; the form of one call takes the place of the list while it is edited.

    It asks for ``{"edits": {...}}``, as ``Run.fork`` takes them.
    """

    def __init__(self, labels: Labels):
        super().__init__(labels)
        self._calls: dict[str, Call] = {}
        self._run: Run | None = None
        self._settings: Settings | None = None
        self._call: Call | None = None
        self._prompt: Prompt | None = None
        self.list, self._head = Pick(heard=self._pressed), Pick(heard=self._pressed)
        self._model = ipywidgets.Combobox()
        areas = {"reply": 6, "system": 8, "user": 8}
        controls = {name: text(ipywidgets.Textarea(rows=rows)) for name, rows in areas.items()}
        controls["model"] = text(self._model)
        schema = {"properties": {name: {} for name in controls}, "required": [*controls]}
        title = lambda name: labels(f"call_field_{name}")  # noqa: E731 - one line says it
        self._fields = Fields(schema, labels, lambda _: self._changed(), title=title, own=controls)
        self.fields = self._fields.fields
        self.slots = ipywidgets.HTML()
        self.button = press_button("", self.submit, "wb-primary")
        words = ipywidgets.HTML(el("div.wb-dim.wb-small", labels("fork_edits_told")))
        boxes = {name: field.box for name, field in self.fields.items()}
        asked = ipywidgets.HTML(el("div.wb-strong.wb-small.wb-call-asked", labels("call_of_role")))
        inside = [self._head, boxes["reply"], asked, boxes["system"], boxes["user"], self.slots]
        self.form = ipywidgets.VBox([*inside, boxes["model"], self.button, words])
        self.form.add_class("wb-call-form")
        self.region = ipywidgets.VBox([self.list, self.form])
        display_if(self.form, False)

    def show(self, run: Run, found: Iterable[Call], settings: Settings) -> None:
        """Show the calls of this run; a form that is open stays, with what was typed in it.

        Args:
            run: the run.
            found: its calls.
            settings: of the workspace, whose models are offered.
        """
        self._run, self._settings = run, settings
        self._calls = {call["key"]: call for call in found}
        self.list.show(calls(list(self._calls.values()), self.labels))
        if self._call and self._call["key"] not in self._calls:
            self.close()

    @property
    def opened(self) -> bool:
        """Return whether a call is being edited."""
        return self._call is not None

    def open(self, key: str) -> None:
        """Edit a call: the form holds what it was asked and what it said."""
        call, run = self._calls.get(key), self._run
        if call is None or run is None:
            return
        name = call["prompt"].split(" ")[0]
        known = call["role"] in SLOTS and name in {f"{call['role']}.{language}" for language in LANGUAGES}
        self._model.options = self._models()  # while nothing is edited yet: it tells of another choice
        self._call, self._prompt = call, run.prompts[name] if known else None
        self._head.show(draw("calls.edited", self.labels, call=call))
        before = {"reply": self._reply, "model": call["model"]}
        before |= {part: getattr(self._prompt, part) if self._prompt else "" for part in _PARTS}
        self._fields.show(before, again=True)
        for part in _PARTS:
            display_if(self.fields[part].box, self._prompt)
        display_if(self.slots, self._prompt)
        slots = ", ".join(f"${slot}" for slot in SLOTS.get(call["role"], ()))
        self.slots.value = el("div.wb-dim.wb-small", self.labels("call_slots", slots=slots))
        self._changed()
        display_if(self.list, False)
        display_if(self.form, True)
        self.fields["reply"].control.widget.focus()

    def close(self) -> None:
        """Back to the list; what was typed is let go."""
        self._call = None
        display_if(self.form, False)
        display_if(self.list, True)

    def submit(self) -> None:
        """Ask for the fork, unless nothing was changed or something is wrong."""
        if self._call and not self.button.disabled:
            self.ask(edits=self.edits)

    @property
    def edits(self) -> Json:
        """Return what of the call is not as it was, as a fork takes it."""
        call, prompt, results = self._call, self._prompt, Json()
        if call is None:
            return results
        typed = self._fields.value
        if typed["reply"] != self._reply:
            results["replies"] = {call["key"]: typed["reply"]}
        if prompt and (texts := {part: typed[part] for part in _PARTS if typed[part] != getattr(prompt, part)}):
            results["prompts"] = {prompt.name: texts}
        if (model := typed["model"].strip()) != call["model"]:
            results["models"] = {call["role"]: model}
        return results

    @property
    def _reply(self) -> str:
        return "" if self._call is None or self._call["failed"] else self._call["reply"]

    def _models(self) -> list[str]:
        """What can be chosen: no model, and every one that is configured or answered; another one can be typed."""
        configured = [self._settings.chat_model, *map(self._settings.model_of, ROLES)] if self._settings else []
        others = [*configured, *(one["model"] for one in self._calls.values())]
        return [RULES, *dict.fromkeys(name for name in others if name and ":" in name)]

    def _changed(self) -> None:
        """What is wrong, next to each field, and what the button will do now."""
        if self._call is None:
            return
        edits = self.edits
        faults = dict(self._faults(edits))
        self._fields.say({name: [Said(fault)] for name, fault in faults.items()})
        count = sum(len(edits.get(name, ())) for name in ("replies", "models"))
        count += sum(map(len, edits.get("prompts", {}).values()))
        words = self.labels("problems_to_mend", n=len(faults)) if faults else self.labels("fork_edits", n=count)
        self.button.description = words if faults or count else self.labels("call_nothing_edited")
        self.button.disabled = bool(faults) or not count

    def _faults(self, edits: Data) -> Iterable[tuple[str, str]]:
        labels = self.labels
        if "replies" in edits and len(edits) > 1:
            yield "reply", labels("call_reply_or_asked")
        for name, texts in edits.get("prompts", {}).items():
            for part, value in texts.items():
                try:
                    prompt_of(name, {part: value}, {name: self._prompt} if self._prompt else {})
                except SettingsError as error:
                    yield part, reason_told(str(error), labels)
        for role, model in edits.get("models", {}).items():
            try:
                if self._settings:
                    require_chat_model(self._settings.model_copy(update=model_settings({role: model})), f"{role}_model")
            except SettingsError as error:
                yield "model", reason_told(str(error), labels)
            if not model:
                yield "model", labels("call_model_unnamed")

    def _pressed(self, event: Event) -> None:
        if event.kind == "edit":
            self.open(event.key)
        elif event.kind == "close":
            self.close()
