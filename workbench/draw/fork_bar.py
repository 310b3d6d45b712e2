"""The band under which an edited plan of a finished run becomes a new run."""

from __future__ import annotations

from workbench.draw.page import Picture, button, el
from workbench.labels import Labels


def fork_bar(edits: int, problems: int, labels: Labels) -> Picture:
    """What pressing will do: a fork with so many edits; or how many problems are to be mended first."""
    fork = labels("fork_edits", n=edits)
    told = labels("problems_to_mend", n=problems) if problems else labels("fork_edits_told")
    buttons = [button(fork, "fork", cls="wb-primary", disabled=problems > 0), button(labels("discard"), "discard")]
    words = el("div", el("p", told), el("div", buttons, cls="wb-bar"), cls="wb-main")
    return Picture(el("div", words, cls="wb-band wb-run", role="group", aria_label=fork))
