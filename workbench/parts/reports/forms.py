"""The form of a report's outline: its title, and a line per section."""

from __future__ import annotations

import ipywidgets

from workbench.parts.reports.writer import placed
from workbench.records import proposals
from workbench.state import Data, Json
from workbench.views.labels import Labels
from workbench.widgets.form import Control
from workbench.widgets.proposal import Form

_INDENT = "  "


class OutlineForm(Form):
    """The title, and the sections: lines that can be changed, moved, removed and added."""

    keeps = True

    def edits(self, plan: Data | None) -> Json:
        """Return the title, and all the sections where one of them changed."""
        return proposals.differing(self._before, self._fields.value)

    def _schema(self, schema: Data) -> Data:
        self._before = {**self._before, "sections": placed(self._before["sections"])}
        title = {"type": "string", "pattern": r"\S", "maxLength": 300}
        return {
            "properties": {"title": title, "sections": {}},
            "required": ["title", "sections"],
        }

    def _own(self) -> dict[str, Control]:
        return {"sections": _section_lines(self._labels)}


def _section_lines(labels: Labels) -> Control:
    """Return a control with a line for each section: indented by its level, its number, its title.

    The number says which section a line was, wherever it is moved to: its summary and evidence go along.
    """
    by_number: dict[str, Data] = {}

    def parse(text: str) -> list[Json]:
        sections = []
        for line in filter(str.strip, text.splitlines()):
            number, _, title = line.strip().partition(" ")
            section = by_number.get(number)
            title = title.strip() if section else line.strip()
            if not title:
                raise ValueError(labels("wrong_minLength"))
            level = (len(line) - len(line.lstrip())) // len(_INDENT)
            sections.append({**(section or {}), "title": title, "section_id": "." * level})
        if not sections:
            raise ValueError(labels("sections_none"))
        return placed(sections)  # type: ignore[arg-type, return-value]

    def show(sections: list[Data]) -> str:
        by_number.clear()
        by_number.update({section["section_id"]: section for section in sections})
        return "\n".join(
            f"{_INDENT * number.count('.')}{number} {section['title']}"
            for number, section in by_number.items()
        )

    return Control(ipywidgets.Textarea(rows=10), [], parse, show)
