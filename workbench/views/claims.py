"""The statements of a report, and how they stand against what they cite: as markup, and in words."""

from __future__ import annotations

import re
from collections.abc import Sequence

from workbench.views.labels import Labels
from workbench.views.page import Data, Markup, el, glyph

_SIGNS = {"supported": "done", "partly": "partial", "unsupported": "invalid", "uncited": "warning"}


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
    rows = [
        el(
            "li",
            glyph(_SIGNS[one["verdict"]], labels, said=False),
            el(
                "div.wb-main",
                el("span", claim_told(one, labels), cls=f"wb-ink wb-{_ink(one)}"),
                " ",
                plain(one["text"]),
            ),
        )
        for one in sorted(claims, key=lambda one: one["verdict"] == "supported")
    ]
    return el("ul.wb-claims", rows, aria_label=labels("claims"))


def standing_told(check: Data, labels: Labels) -> list[str]:
    """How a report stands against its evidence, a sentence each; nothing where it was not checked."""
    if not check:
        return []
    told = [labels("answer_supported", n=check["supported"], of=check["statements"])]
    against = len(check.get("contradictions") or ())
    return [*told, labels("report_contradicts", n=against)] if against else told


def _ink(claim: Data) -> str:
    return {"supported": "done", "unsupported": "fail"}.get(claim["verdict"], "person")
