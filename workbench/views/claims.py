"""The statements of a report, and how they stand against what they cite: as markup, and in words."""

from __future__ import annotations

import re
from collections.abc import Sequence

from markupsafe import Markup

from workbench.views.labels import Labels
from workbench.views.page import Data, draw

_SIGNS = {"supported": "done", "partly": "partial", "unsupported": "invalid", "uncited": "warning"}
_INKS = {"supported": "done", "unsupported": "fail"}


def claim_told(claim: Data, labels: Labels) -> str:
    """The verdict on a statement, and why.

    >>> claim_told({"verdict": "unsupported", "why": "1877"}, Labels("en"))
    'not in its sources (1877)'
    """
    verdict = labels(f"claim_{claim['verdict']}")
    return labels("aside", said=verdict, more=claim["why"]) if claim.get("why") else verdict


def plain(text: str) -> str:
    r"""A sentence of Markdown without its emphasis and its backslashes.

    >>> print(plain(r"**Kiln \& Sons**: it is *red*"))
    Kiln & Sons: it is red
    """
    return re.sub(r"\\([!-/:-@\[-`{-~])|\*+", r"\1", text)


def statements(claims: Sequence[Data], labels: Labels) -> Markup:
    """A row for each statement, those without support first; nothing where there is none."""
    if not claims:
        return Markup()
    ordered = sorted(claims, key=lambda one: one["verdict"] == "supported")
    rows = [(one["verdict"], claim_told(one, labels), plain(one["text"])) for one in ordered]
    return draw("review.statements", labels=labels, claims=rows, signs=_SIGNS, inks=_INKS)


def standing_told(check: Data, labels: Labels) -> list[str]:
    """How a report stands against its evidence, a sentence each; nothing where it was not checked."""
    if not check:
        return []
    told = [labels("answer_supported", n=check["supported"], of=check["statements"])]
    against = len(check.get("contradictions") or ())
    return [*told, labels("report_contradicts", n=against)] if against else told
