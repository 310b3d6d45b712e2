"""Directives and roles that docutils alone does not know, as Sphinx and its extensions have them: kept as text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from docutils import nodes
from docutils.parsers.rst import Directive, directives, roles

from workbench.state import Json

_CODE = "prompt ipython testcode testoutput testsetup doctest graphviz mermaid plantuml uml bash"
_LITERAL = frozenset(_CODE.split())
_SHOWN = ("version", "deprecated")
"""Directives whose name a reader sees."""


class _AnyOption(Json):
    def __missing__(self, name: str) -> Any:
        return directives.unchanged


class _Unknown(Directive):
    """The argument of a directive as a paragraph, and its body."""

    optional_arguments, final_argument_whitespace, has_content = 1, True, True
    option_spec = _AnyOption(name=directives.unchanged)

    def run(self) -> list[nodes.Node]:
        """Return the nodes."""
        argument = " ".join(self.arguments)
        head = f"{self.name} {argument}" if self.name.startswith(_SHOWN) else argument
        inline, messages = self.state.inline_text(head, self.lineno)
        box = nodes.container()
        if self.name in _LITERAL and self.content:
            box += nodes.literal_block("", "\n".join(self.content))
        else:
            self.state.nested_parse(self.content, self.content_offset, box)
        return [*([nodes.paragraph(head, "", *inline)] if head else []), *messages, *box.children]


def _role(name: str, raw: str, text: str, *rest: Any, **more: Any) -> tuple[list[nodes.Node], list[nodes.Node]]:
    shown = re.sub(r"\s*<[^<>]*>$", "", text).lstrip("~!")
    return [nodes.literal(raw, shown) if ":" in name else nodes.inline(raw, shown)], []


@contextmanager
def keep_unknown() -> Iterator[None]:
    """Let docutils keep what it does not know, while the block runs."""
    of_directive, of_role = directives.directive, roles.role

    def directive(name: str, language: Any, document: Any) -> Any:
        known_directive, messages = of_directive(name, language, document)
        return known_directive or _Unknown, [] if known_directive is None else messages

    def role(name: str, language: Any, line: int, reporter: Any) -> Any:
        known_role, messages = of_role(name, language, line, reporter)
        return known_role or _role, [] if known_role is None else messages

    directives.directive, roles.role = directive, role
    try:
        yield
    finally:
        directives.directive, roles.role = of_directive, of_role
