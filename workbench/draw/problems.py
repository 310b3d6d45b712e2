"""What is wrong with a plan, in the words of a language, from its kind and its values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from workbench.labels import Labels

_MOST_NAMED = 6
_RULES = {
    "greater_than_equal": ("rule_least", "ge"),
    "greater_than": ("rule_more", "gt"),
    "less_than_equal": ("rule_most", "le"),
    "less_than": ("rule_less", "lt"),
    "string_too_short": ("rule_short", "min_length"),
    "too_short": ("rule_short", "min_length"),
    "string_too_long": ("rule_long", "max_length"),
    "too_long": ("rule_long", "max_length"),
    "literal_error": ("rule_one_of", "expected"),
    "enum": ("rule_one_of", "expected"),
}


def problem_text(problem: Mapping[str, Any], labels: Labels) -> str:
    """What is wrong and the mend; the English of the problem itself where its kind has no words here.

    >>> from workbench.plans import Plan, PlanStep
    >>> step = PlanStep(step_id="a", objective="", tool="t", depends_on=["a"])
    >>> problem_text(Plan(steps=[step]).problems()[0], Labels("zh"))
    '循环依赖：a → a。请去掉。'
    """
    kind, values = problem.get("kind"), problem.get("values", {})
    if kind == "cycle":
        size = len(values["path"]) - 1
        word = {1: "problem_cycle_one", 2: "problem_cycle"}.get(size, "problem_cycle_many")
        return labels(word, path=_cycle(values["path"], labels))
    english = f"{problem['message']} {problem['mend']}".strip()
    if labels.language == "en" or not kind:
        return english
    if kind == "input":
        told = labels(f"problem_{values['rule']}", **values)
        if f"problem_{values['rule']}" in ("problem_missing", "problem_extra_forbidden"):
            return f"{problem['step_id']}{labels('colon')}{told}"
        told = labels("problem_input", name=values["name"], value=values["value"], rule=_rule(values, labels))
        return f"{problem['step_id']}{labels('colon')}{told}"
    told = labels(f"problem_{kind}", **values, step=problem["step_id"])
    return english if told == f"problem {kind}".replace("_", " ") else told


def _rule(values: Mapping[str, Any], labels: Labels) -> str:
    rule = str(values["rule"])
    if rule in _RULES:
        word, limit = _RULES[rule]
        return labels(word, limit=values["limits"].get(limit, ""))
    wanted = rule.removesuffix("_type").removesuffix("_parsing")
    word = f"rule_{wanted}"
    told = labels(word)
    return labels("rule_other") if told == word.replace("_", " ") else told


def _cycle(path: list[str], labels: Labels) -> str:
    """``a → b → back``; a long one is cut in its middle."""
    named = path[:-1]
    if len(named) > _MOST_NAMED:
        named = [*named[: _MOST_NAMED - 1], labels("and_more", n=len(named) - _MOST_NAMED + 1)]
    return " → ".join([*named, labels("problem_back", first=path[0])])
