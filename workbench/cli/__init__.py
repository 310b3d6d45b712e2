"""The command line: a thin skin over the session. Commands import what is heavy when they run, so that help is instant.

Results go to standard output, everything for the person to standard error. Exit codes: 0 done, 1 failed, 2 wrong usage,
3 paused, 4 interrupted.
"""

from __future__ import annotations

import click

from workbench.cli.ask import ask, resume
from workbench.cli.futures import compare, export, fork, import_, replay
from workbench.cli.knowledge import demo, kb
from workbench.cli.page import Main
from workbench.cli.runs import cancel, feedback, remove, runs, show

EPILOG = "Exit codes: 0 done, 1 failed, 2 wrong usage, 3 paused, 4 interrupted."
SPINE = (
    *(demo, kb, ask, resume, cancel, show, runs, remove, compare, fork, replay, export, import_),
    feedback,
)


@click.group(
    cls=Main,
    epilog=EPILOG,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(package_name="workbench", message="%(prog)s %(version)s")
def main() -> None:
    """Ask a corpus a question, see the plan before it runs, decide, and keep the whole run."""


for _command in SPINE:
    main.add_command(_command)
