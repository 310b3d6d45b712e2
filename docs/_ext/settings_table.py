"""The directive ``settings-table``: one row per field of ``workbench.settings.Settings``, in the order of the code."""

from __future__ import annotations

from typing import Any

from docutils import nodes
from docutils.statemachine import StringList
from settings_rows import rows
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective


def _code(text: str) -> str:
    return f"`{text}`" if text else ""


class SettingsTable(SphinxDirective):
    def run(self) -> list[nodes.Node]:
        lines = ["| variable | default | meaning |", "| --- | --- | --- |"]
        for row in rows():
            also = f" (also {_code(row['alias'])})" if row["alias"] else ""
            meaning = row["meaning"].replace("|", "\\|")
            lines.append(
                f"| {_code(row['name'])} | {_code(row['default'])} | {meaning}{also} |"
            )
        node = nodes.container(classes=["settings"])
        self.state.nested_parse(StringList(lines, "settings"), 0, node)
        return [node]


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_directive("settings-table", SettingsTable)
    return {"parallel_read_safe": True}
