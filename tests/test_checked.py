"""A statement held against what it cites, by rules."""

from __future__ import annotations

import pytest

from workbench.language.support import checked

TEXTS = {"kiln": "The kiln was built in 1993 by Mei Lan.", "茶馆": "《茶馆》由老舍写成。", "glaze": "A glaze has iron."}


@pytest.mark.parametrize(
    ("said", "verdict"),
    [
        ("The kiln was built in 1993 [1].", "supported"), ("The kiln was built in 1883 [1].", "unsupported"),
        ("The kiln was not built in 1993 [1].", "unsupported"), ("The kiln was built in 1993.", "uncited"),
        ("The kiln was built in 1993 [2].", "unsupported"), ("《茶馆》由老舍写成 [3]。", "supported"),
        ("《茶馆》不是老舍写成的 [3]。", "unsupported"), ("《茶馆》于1957年由老舍写成 [3]。", "unsupported"),
    ],
)  # fmt: skip
def test_a_statement_is_held_against_what_it_cites(said: str, verdict: str) -> None:
    sources = {n: f"{name}\n{text}" for n, (name, text) in enumerate(TEXTS.items(), 1)}
    sources = {1: sources[1], 2: sources[3], 3: sources[2]}
    [one] = checked(said, sources)
    assert one.verdict == verdict, one


def test_what_states_nothing_is_not_checked() -> None:
    assert not checked("The corpus does not say. What was it? These are:", {})
    assert not checked("资料库中没有提到。", {})
