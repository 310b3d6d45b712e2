"""The calls of models on the bench; each can be edited, which makes a fork."""

from __future__ import annotations

from collections.abc import Iterable

import ipywidgets
import traitlets

from workbench.records.prompts import NAMES, Prompt, slots
from workbench.runs.calls import Call
from workbench.runs.run import Run
from workbench.runs.stored import prompts_of
from workbench.settings import ROLES, RULES, Settings
from workbench.state import Json
from workbench.views.labels import Labels
from workbench.views.markup import draw, el
from workbench.views.run import changed_lines
from workbench.widgets.form import Fields, text
from workbench.widgets.panel import Panel, Pick, display_if, press_button

_PARTS = ("system", "user")


class Calls(Panel):
    """The prompts and replies of the models of a run; the form of one call replaces the list while it is edited.

    It asks for ``{"edits": {...}}``, as ``Run.fork`` takes them.

    Args:
        labels: the words.
        settings: of the workspace, whose models are offered.

    Attributes:
        opened: whether a call is being edited.
        dock: the bar that sends the edits.
    """

    opened = traitlets.Bool(False)

    def __init__(self, labels: Labels, settings: Settings):
        super().__init__(labels)
        self._calls: dict[str, Call] = {}
        self._run: Run | None = None
        self._settings = settings
        self._call: Call | None = None
        self._prompt: Prompt | None = None
        self._before = dict[str, str]()
        self.list = Pick(listener=lambda event: self.open(event.key))
        self._head = Pick()
        self._model = ipywidgets.Combobox()
        controls = {name: text(ipywidgets.Textarea(rows=6)) for name in ("reply", *_PARTS)}
        controls["model"] = text(self._model)
        self._fields = Fields(
            {"properties": {name: {} for name in controls}, "required": [*controls]},
            labels,
            lambda _: self._changed(),
            title=lambda name: labels(f"call_field_{name}"),
            own=controls,
        )
        self.fields = self._fields.fields
        self.slots = ipywidgets.HTML()
        self.diff = Pick()
        boxes = {name: field.box for name, field in self.fields.items()}
        self.prompt = ipywidgets.VBox(
            [
                ipywidgets.HTML(el("div.wb-strong.wb-small", labels("call_of_role"))),
                *(boxes[part] for part in _PARTS),
                self.slots,
            ]
        )
        self.form = ipywidgets.VBox(
            [self._head, boxes["reply"], self.diff, boxes["model"], self.prompt]
        ).add_class("wb-call-form")
        self.region = ipywidgets.VBox([self.list, self.form])
        self.button = press_button("", self.submit, "wb-primary")
        buttons = [self.button, press_button(labels("respond_back"), self.close)]
        dock = [
            ipywidgets.HTML(el("div.wb-band.wb-small", labels("fork_edits_told"))),
            ipywidgets.HBox(buttons).add_class("wb-buttons"),
        ]
        self.dock = ipywidgets.HBox(dock).add_class("wb-decision").add_class("wb-run")
        self.close()

    def show(self, run: Run, run_calls: Iterable[Call]) -> None:
        """Show the calls of a run; an open form stays, with its text."""
        self._run = run
        self._calls = {call["key"]: call for call in run_calls}
        self.list.show(draw("calls.all", self.labels, calls=[*self._calls.values()]))
        if self._call and self._call["key"] not in self._calls:
            self.close()

    def open(self, key: str) -> None:
        """Edit a call: the form has its prompt and its reply."""
        if (run := self._run) is None or key not in self._calls:
            return
        call = self._calls[key]
        role = call["role"]
        name = call["prompt"].split(" ")[0]
        editable = role in NAMES and name.startswith(f"{role}.")
        # Before the call is set: the widget reports a change.
        self._model.options = model_names(
            self._settings, (call["model"] for call in self._calls.values())
        )
        self._call = call
        self._prompt = prompts_of(run)[name] if editable else None
        self._head.show(draw("calls.edited", self.labels, call=call))
        self._before = {part: getattr(self._prompt, part, "") for part in _PARTS}
        self._before["reply"] = "" if call["failed"] else call["reply"]
        self._fields.show({**self._before, "model": call["model"]}, again=True)
        display_if(self.prompt, self._prompt)
        names = ", ".join(f"${name}" for name in (slots(role) if editable else ()))
        self.slots.value = el("div.wb-dim.wb-small", self.labels("call_slots", slots=names))
        self._changed()
        self._show_form(True)
        self.fields["reply"].control.widget.focus()

    def close(self) -> None:
        """Return to the list and discard what was typed."""
        self._call = None
        self._show_form(False)

    def _show_form(self, opened: bool) -> None:
        display_if(self.form, opened)
        display_if(self.list, not opened)
        self.opened = opened

    def submit(self) -> None:
        """Ask for the fork, unless nothing was changed."""
        if edits := self.edits:
            self.ask(edits=edits)

    @property
    def edits(self) -> Json:
        """Return the changes to the call, as a fork takes them."""
        call = self._call
        edits = Json()
        if call is None:
            return edits
        changed = self._changed_texts()
        if "reply" in changed:
            edits |= {"at": call["place"], "result": changed.pop("reply")}
        if self._prompt and changed:
            edits["prompts"] = {self._prompt.name: changed}
        model = self._fields.value["model"].strip()
        if model != call["model"]:
            edits["models"] = {call["role"]: model}
        return edits

    def _changed_texts(self) -> dict[str, str]:
        typed = self._fields.value
        return {name: typed[name] for name in self._before if typed[name] != self._before[name]}

    def _changed(self) -> None:
        edits = self.edits
        pairs = [(self._before[name], text) for name, text in self._changed_texts().items()]
        self.diff.show(draw("calls.diff", pairs=[changed_lines(*pair) for pair in pairs]))
        words = self.labels("call_rerun", n=len(pairs) + ("models" in edits))
        self.button.description = words if edits else self.labels("call_nothing_edited")
        self.button.disabled = not edits


def model_names(settings: Settings, answered: Iterable[str] = ()) -> list[str]:
    """Return the models to choose from: none, the configured ones, and those that answered."""
    names = (settings.chat_model, *map(settings.role_model, ROLES), *answered)
    return [RULES, *dict.fromkeys(name for name in names if ":" in name)]
