"""The forms of a report's review points: the outline as a tree, a section as it is written, the whole as it reads."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import ipywidgets

from workbench.parts.reports.citing import STYLES
from workbench.parts.reports.outline import placed
from workbench.parts.reports.showing import preview
from workbench.records import proposals
from workbench.state import Data, Json
from workbench.views.labels import Labels
from workbench.views.page import el, glyph
from workbench.widgets.form import Fields
from workbench.widgets.panel import Pick, display_if, on_change, press_button
from workbench.widgets.proposal import Form, Heard, ticked

_MOST_EVIDENCE = 100
"""Pieces that can be ticked at a section; what it has beyond them stays with it."""


class OutlineForm(Form):
    """The title, and the sections as a tree: each can be renamed, moved, removed, and given other evidence.

    Attributes:
        evidence: the pieces there are.
        rows: the sections, in order.
        add: the button for one more.
    """

    keeps = True
    shown = ("title",)

    def __init__(self, request: Data, labels: Labels, heard: Heard):
        super().__init__(request, labels, heard)
        self.evidence = request.get("evidence") or ()
        self._before = {**self._before, "sections": placed(self._before["sections"])}
        self.rows: list[_Row] = []
        self._list, self._note = ipywidgets.VBox().add_class("wb-outline"), Pick()
        self.add = press_button(labels("section_add"), self._add, "wb-section-add")
        self.box.children = (*self.box.children, self._list, self._note, self.add)
        self._show(self._before["sections"])

    @property
    def faults(self) -> int:
        """Return how many fields cannot be sent: a section without a title, or no section at all."""
        return len(self._wrong) + sum(not row.title.value.strip() for row in self.rows) + (not self.rows)

    def edits(self, plan: Data | None) -> Json:
        """Return the title, and all the sections where one of them is not as it was."""
        sections = self.sections
        changed = {"sections": sections} if sections != self._before["sections"] else {}
        return {**super().edits(plan), **changed}

    def restore(self, edits: Data) -> None:
        """Show what was edited before the kernel ended."""
        self._fields.show({"title": edits.get("title", self._before["title"])})
        self._show(edits.get("sections", self._before["sections"]))
        self.changed()

    @property
    def sections(self) -> list[Json]:
        """Return the sections as they stand in the form, with ids that say where."""
        return [dict(one) for one in placed([row.section() for row in self.rows])]  # type: ignore[misc]

    def move(self, row: _Row, step: int) -> None:
        """Before the section above, or behind the one below; what is part of it goes along."""
        at = self.rows.index(row)
        end = _end(self.rows, at)
        others = self.rows[:at] + self.rows[end:]
        alike = [i for i, one in enumerate(others) if one.depth == row.depth and (i < at) == (step < 0)]
        if alike:
            to = alike[-1] if step < 0 else _end(others, alike[0])
            self.rows = others[:to] + self.rows[at:end] + others[to:]
            self._arranged()

    def inset(self, row: _Row, step: int) -> None:
        """One level in or out, with what is part of it."""
        at = self.rows.index(row)
        most = self.rows[at - 1].depth + 1 if at else 0
        if not 0 <= row.depth + step <= most:
            return
        for one in self.rows[at : _end(self.rows, at)]:
            one.depth += step
        self._arranged()

    def remove(self, row: _Row) -> None:
        """Without this section; its parts go up a level."""
        at = self.rows.index(row)
        for one in self.rows[at + 1 : _end(self.rows, at)]:
            one.depth -= 1
        self.rows.remove(row)
        self._arranged()

    def _schema(self, schema: Data) -> Data:
        return _required(title=_TITLE)

    def _show(self, sections: Sequence[Data]) -> None:
        self.rows = [_Row(section, section["section_id"].count("."), self, self._labels) for section in sections]
        self._arrange()

    def _add(self) -> None:
        self.rows.append(_Row({}, 0, self, self._labels))
        self._arranged()
        self.rows[-1].title.focus()

    def _arranged(self) -> None:
        self._arrange()
        self.changed()

    def _arrange(self) -> None:
        for row, one in zip(self.rows, self.sections, strict=True):
            row.number(one["section_id"])
        self._list.children = [row.box for row in self.rows]
        none = el("p.wb-alert", glyph("invalid", self._labels), " ", self._labels("sections_none"), role="alert")
        self._note.show(el("div", None if self.rows else none))


def _end(rows: Sequence[_Row], at: int) -> int:
    """Return where the next section begins that is no part of this one."""
    return next((i for i in range(at + 1, len(rows)) if rows[i].depth <= rows[at].depth), len(rows))


class _Row:
    """A section of the outline.

    Attributes:
        depth: below how many others it stands.
        fields: what can be written: ``title`` and ``summary``.
        pieces: the boxes of its evidence, by id, once they were opened.
    """

    def __init__(self, section: Data, depth: int, form: OutlineForm, labels: Labels):
        self.depth, self._section, self._form, self._labels = depth, section, form, labels
        self._number = ipywidgets.HTML()
        texts = {name: section.get(name, "") for name in ("title", "summary")}
        schema = _required(**{name: {"type": "string"} for name in texts})
        self.fields = Fields(schema, labels, lambda _: form.changed(), title=lambda name: labels(f"field_{name}"))
        self.fields.show(texts)
        self.title = self.fields.fields["title"].control.widget
        self.pieces: dict[str, ipywidgets.Checkbox] = {}
        self._had: list[str] = list(section.get("evidence_ids", []))
        does: Sequence[tuple[str, str, Callable[[], None]]] = (
            ("up", "↑", lambda: form.move(self, -1)),
            ("down", "↓", lambda: form.move(self, 1)),
            ("out", "←", lambda: form.inset(self, -1)),
            ("in", "→", lambda: form.inset(self, 1)),
            ("remove", "✕", lambda: form.remove(self)),
        )
        self.buttons = {
            name: press_button(sign, do, "wb-quiet", "wb-small-button", told=labels(f"section_{name}"))
            for name, sign, do in does
        }
        self.open = ipywidgets.ToggleButton(False, description="").add_class("wb-quiet")
        self._ticks = ipywidgets.VBox().add_class("wb-ticks")
        on_change(self.open, self._opened)
        top = ipywidgets.HBox([self._number, *self.buttons.values()]).add_class("wb-section-bar")
        self.box = ipywidgets.VBox([top, self.fields.box, self.open, self._ticks]).add_class("wb-section-row")
        self._told()

    def section(self) -> Json:
        """It as it stands; its id has as many dots as its place is deep."""
        own = {**self.fields.value, "evidence_ids": self.evidence, "section_id": "." * self.depth}
        return {**self._section, **own}

    @property
    def evidence(self) -> list[str]:
        """Ids of its pieces: those that it had, in their order, then those that were ticked."""
        if not self.pieces:
            return list(self._had)
        kept = [one for one in self._had if one not in self.pieces or self.pieces[one].value]
        return kept + [one for one, box in self.pieces.items() if box.value and one not in self._had]

    def number(self, section_id: str) -> None:
        """Show where it stands."""
        self._number.value = el("b", section_id)
        self.box.layout.margin = f"0 0 0 {18 * self.depth}px"

    def _opened(self) -> None:
        """The boxes are made when somebody wants to see them: a long outline has thousands."""
        if self.open.value and not self.pieces:
            pieces = sorted(self._form.evidence, key=lambda one: one["result_id"] not in self._had)[:_MOST_EVIDENCE]
            for piece in pieces:
                words = f"{piece['title']} · {piece['begins'][:90]}…"
                on = piece["result_id"] in self._had
                self.pieces[piece["result_id"]] = ticked(words, self._ticked, piece["begins"], on)
            self._ticks.children = tuple(self.pieces.values())
        display_if(self._ticks, self.open.value)

    def _ticked(self) -> None:
        self._told()
        self._form.changed()

    def _told(self) -> None:
        counted = {"n": len(self.evidence), "of": len(self._form.evidence)}
        self.open.description = self._labels("section_rests_on", **counted)


_TITLE = {"type": "string", "pattern": r"\S", "maxLength": 300}


def _required(**properties: Data) -> Data:
    return {"properties": properties, "required": [*properties]}


class SectionForm(Form):
    """The heading and the text of a section; its statements and sources stand above."""

    keeps = True

    def __init__(self, request: Data, labels: Labels, heard: Heard):
        super().__init__(request, labels, heard)
        self._fields.box.add_class("wb-writing")

    def _schema(self, schema: Data) -> Data:
        return _required(title=_TITLE, text={**_TITLE, "maxLength": 200_000})

    def edits(self, plan: Data | None) -> Json:
        """Return the title and the text, each where it is not as it was."""
        return proposals.differing(self._before, self._fields.value)


class ReportForm(SectionForm):
    """The title and the citation style, and the report as it reads."""

    def __init__(self, request: Data, labels: Labels, heard: Heard):
        super().__init__(request, labels, heard)
        self.preview = Pick(preview(str(self._proposed["final_report"]), labels))
        self.box.children = (*self.box.children, self.preview)

    def _schema(self, schema: Data) -> Data:
        return _required(title=_TITLE, style={"type": "string", "enum": list(STYLES)})
