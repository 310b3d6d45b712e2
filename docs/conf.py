"""Build the site with ``make docs``: warnings are errors, notebooks are shown as committed, nothing is fetched."""

from __future__ import annotations

import re
import sys
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any

import click
from docutils import nodes

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE / "_ext"), str(HERE.parent)]

from workbench.cli import main  # noqa: E402 - only now is it found

project = "Workbench"
copyright = "the Workbench authors, Apache-2.0"
html_title = "Workbench"

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx_click",
    "flowchart",
    "settings_table",
]
# The source folder is the project: a link leads to the same file here and on a code forge.
root_doc = "docs/index"
include_patterns = ["docs/**", "notebooks/**", "CONTRIBUTING.md"]
exclude_patterns = [
    ".*",
    "build",
    "data",
    "experiments",
    "requirements",
    "tests",
    "workbench",
    "README*",
    "CHANGELOG.md",
]
exclude_patterns += ["docs/_*", "**/.ipynb_checkpoints"]
templates_path = [str(HERE / "_templates")]

# Markdown and notebooks
nb_execution_mode = "off"
myst_enable_extensions = ["colon_fence"]
myst_fence_as_directive = ["mermaid"]
myst_heading_anchors = 3
nb_ipywidgets_js = {}  # the page fetches no scripts; the HTML beside a widget is what is shown
nb_mime_priority_overrides = [
    ("html", "text/html", 5),
    ("html", "application/vnd.jupyter.widget-view+json", None),
]
# Notebooks begin with one title; their outputs bring headings and languages of their own.
suppress_warnings = [
    "myst.header",
    "mystnb.unknown_mime_type",
    "misc.highlighting_failure",
]

smartquotes = False  # "--review" has two hyphens

# The API, from the code
default_role = "code"
toc_object_entries_show_parents = "hide"
autosummary_generate = True
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_class_signature = "separated"
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 100
autodoc_default_options = {
    "exclude-members": "__init__, __new__, model_config, model_post_init"
}
napoleon_google_docstring = True
napoleon_use_ivar = True
napoleon_custom_sections = [("Options", "params_style")]

# The page
html_theme = "pydata_sphinx_theme"
html_static_path = ["_static"]
html_extra_path = ["_extra"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "logo": {"text": "Workbench"},
    "show_nav_level": 2,
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "secondary_sidebar_items": {"**": ["page-toc"], "docs/index": []},
    "footer_start": ["copyright"],
    "footer_end": [],
    "header_links_before_dropdown": 5,
}
html_sidebars = {"docs/index": []}


def tidied(
    app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]
) -> None:
    """Make reStructuredText of a docstring, in which the options of ``RunOptions`` are indented otherwise."""
    begin = next(
        (n for n, line in enumerate(lines) if line.strip() == "Options:"), None
    )
    if begin is not None:
        indent = len(lines[begin]) - len(lines[begin].lstrip())
        whole = list[str]()
        for line in lines:
            if whole and len(whole) > begin and line and not line.startswith(" "):
                whole[-1] += f" {line}"
            else:
                whole.append(line[indent:] if line.startswith(" " * indent) else line)
        lines[:] = whole
    blocks = [
        list(block)
        for _, block in groupby(
            lines, key=lambda line: line.lstrip()[:1] in ("|", "├", "│", "└")
        )
    ]
    for before, block in pairwise([[""], *blocks]):
        if len(block) > 2 and block[1].startswith("| ---"):
            rows = [line.strip("| ").split(" | ") for line in (block[0], *block[2:])]
            cells = [
                f"   {'* -' if n == 0 else '  -'} {cell}"
                for row in rows
                for n, cell in enumerate(row)
            ]
            block[:] = ["", ".. list-table::", "   :header-rows: 1", "", *cells, ""]
        elif "──" in block[0]:  # the tree of errors; the line before it is its root
            block[:] = [
                "",
                "::",
                "",
                f"   {before.pop()}",
                *(f"   {line}" for line in block),
                "",
            ]
    lines[:] = [line for block in blocks for line in block]
    lines[:] = [re.sub(r"``(\w+)``s\b", r"``\1``\\ s", line) for line in lines]


def without_blanks(app: Any, doctree: nodes.document, name: str) -> None:
    """Take out the blank box that a widget leaves behind the HTML that stands for it."""
    for block in list(doctree.findall(nodes.literal_block)):
        if not block.astext().strip():
            block.parent.remove(block)


def without_common_options(
    app: Any, context: click.Context, lines: list[str]
) -> None:
    """Leave out what every command takes; the page says it once."""
    starts = [n for n, line in enumerate(lines) if line.startswith(".. option::")] + [
        len(lines)
    ]
    for begin, end in reversed(list(pairwise(starts))):
        if lines[begin].startswith((".. option:: --workspace", ".. option:: --json")):
            del lines[begin:end]


def setup(app: Any) -> None:
    no_command = click.Context(main)
    for name in main.list_commands(
        no_command
    ):  # those of parts are loaded when they are asked for
        main.add_command(main.get_command(no_command, name), name)
    app.connect("sphinx-click-process-options", without_common_options)
    app.connect("autodoc-process-docstring", tidied, priority=400)
    app.connect("doctree-resolved", without_blanks)
