"""What the code notes, in words: what was edited and by whom, why a step did not run, and what a run took."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from workbench.plans import edit_of
from workbench.state import Data

if TYPE_CHECKING:
    from workbench.views.labels import Labels


_PARTS = (("retrieval_s", "retrieval_took"), ("generation_s", "generation_took"))
_SIGNS = (("added", "+"), ("changed", "~"), ("removed", "−"))
_FIELDS = {
    "answers",
    "plan",
    "query",
    "struck",
    "thresholds",
    "needs",
    "next_steps",
    "activate",
    "rewrite_query",
    "should_continue",
    "title",
    "sections",
    "text",
    "style",
}
_REASONS = (
    (r"not needed", "skip_not_needed"),
    (r"stopped by the reviewer", "stopped_by_reviewer"),
    (r"quality_satisfied", "quality_satisfied"),
    (r"max_iterations_reached", "max_iterations_reached"),
    (r"budget_exhausted", "budget_exhausted"),
    (r"no_further_action", "no_further_action"),
    (r"the time budget of (?P<n>\S+) s is spent", "skip_budget"),
    (r"(?P<step>\S+) failed", "skip_after_failed"),
    (r"(?P<step>\S+) timed out", "skip_after_timeout"),
    (r"(?P<step>\S+) was cancelled", "skip_after_cancelled"),
    (r"(?P<step>\S+) was skipped", "skip_after_skipped"),
    (r"(?P<tool>\S+) took longer than (?P<n>\S+) s", "took_longer"),
    (r"The prompt \S+ names \$(?P<slot>\S+)\. Known to this role: (?P<known>.+)\.", "prompt_slot"),
    (r"WORKBENCH_\w+ is '(?P<model>.*)'\. Known: .*", "call_model_wrong"),
    (r"\w+ of the prompt \S+ has a lone \$\..*", "prompt_dollar"),
)


def plan_edit_told(edit: Mapping[str, Sequence[str]]) -> str:
    """Return which steps an edit adds, changes and takes out.

    >>> plan_edit_told({"added": ["step_3"], "changed": ["step_0"], "removed": []})
    '+step_3 ~step_0'
    """
    return " ".join(f"{sign}{name}" for kind, sign in _SIGNS for name in edit[kind])


def edits_told(edits: Data, proposal: Data, labels: Labels) -> list[str]:
    """Each edit as a name and what it became; a plan by its steps next to the plan that was proposed.

    Args:
        edits: of a decision.
        proposal: what it was an answer to.
        labels: the words.
    """
    return [
        f"{field_told(name, labels)}{labels('colon')}{_value(name, value, proposal)}" for name, value in edits.items()
    ]


def field_told(name: str, labels: Labels) -> str:
    """Return what a field of an answer is called."""
    return labels(f"edit_{name}") if name in _FIELDS else name


def fork_edit_told(edit: Data, labels: Labels) -> str:
    """Return what was edited in a run that was made from another: an entry of ``futures.tree.edits``."""
    what, comma = edit["what"], labels("comma")
    if what == "asked_anew":
        return labels("edit_asked_anew", n=int(edit["at"]) + 1)
    if what == "plan":
        text = plan_edit_told(edit)
    elif what == "decision":
        text = labels(f"did_{edit['action']}")
        if edit["fields"]:
            text = labels("aside", said=text, more=comma.join(field_told(name, labels) for name in edit["fields"]))
    elif what in ("settings", "thresholds", "needs"):
        text = comma.join(f"{name}={json.dumps(value, ensure_ascii=False)}" for name, value in edit[what].items())
    elif what in ("prompts", "replies", "without"):
        text = comma.join(name[:20] for name in edit[what])
    elif what == "review":
        text = comma.join(labels(f"point_{point}") for point in edit["review"]) or "–"
    else:
        text = " ".join(str(edit["query"]).split())
    number, _, point = edit["at"].partition("-") if what == "decision" else ("0", "", "")
    name = labels(f"edit_{what}", n=int(number) + 1, point=labels(f"point_{point}"))
    return f"{name}{labels('colon')}{text[:300]}"


def run_edits_told(node: Data, labels: Labels) -> list[str]:
    """Return what was edited in a run of a tree, where else its steps come from, and which of those runs are gone."""
    words, comma = [fork_edit_told(edit, labels) for edit in node["edits"]], labels("comma")
    words += [labels("also_from", run=comma.join(node["also"]))] if node["also"] else []
    return words + ([labels("is_gone", run=comma.join(node["gone"]))] if node["gone"] else [])


def as_of_told(document: Data, labels: Labels) -> str:
    """Return as of which dates a run asked: of what was true, of what was known."""
    true, known = document["as_of"]
    words = [labels("as_of_told", at=true)] if true else []
    return labels("comma").join([*words, *([labels("known_told", at=known)] if known else [])])


def read_told(run: Data, labels: Labels) -> str:
    """Return how a question was read that leans on earlier ones; empty where it was taken as it stands."""
    return labels("read_alone", query=run["query"]) if run["query"] not in (run["message"], "") else ""


def who_told(who: str, labels: Labels) -> str:
    """Who decided, when it was a person."""
    return labels({"person": "by_person", "fork": "fork"}[who]) if who in ("person", "fork") else who


def reason_told(reason: str, labels: Labels) -> str:
    """Why a step was skipped or took too long; what a tool or library says is unchanged.

    >>> from workbench.views.labels import Labels
    >>> reason_told("not needed", Labels("zh")), reason_told("step_0 timed out", Labels("zh"))
    ('不需要', '前置步骤 step_0 超时')
    """
    for pattern, key in _REASONS:
        if found := re.fullmatch(pattern, reason):
            return labels(key, **found.groupdict())
    return reason


def _value(name: str, value: Any, proposal: Data) -> str:
    if name == "plan" and isinstance(value, Mapping):
        return plan_edit_told(edit_of(proposal.get("plan"), value))
    if name == "next_steps" and isinstance(value, list):
        return " ".join(f"+{step['step_id']}" for step in value)
    if name == "sections" and isinstance(value, list):
        return " · ".join(f"{one.get('section_id', '')} {one['title']}".strip() for one in value)
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True)


def took_told(figures: Data, labels: Labels) -> str:
    """Return how long a run was at work, and what of that went into retrieval and into the answer.

    >>> from workbench.views.labels import Labels
    >>> took_told({"total_s": 10.4, "retrieval_s": 0.389, "generation_s": 9.9}, Labels("en"))
    '10.40 s in all (retrieval 389 ms, answer 9.90 s)'
    """
    parts = [labels(word, span=_span(figures[name])) for name, word in _PARTS if figures[name]]
    within = labels("took_parts", parts=labels("comma").join(parts)) if parts else ""
    return labels("took", span=_span(figures["total_s"])) + within


def saved_told(figures: Data, labels: Labels) -> str:
    """Return how many calls of tools the tape answered, and how long they had taken."""
    calls = figures["saved_calls"]
    return labels("calls_saved", n=calls, span=_span(figures["saved_s"]))


def tokens_told(tokens: int, about: bool, labels: Labels) -> str:
    """Return how many tokens: as the server counted them, or about."""
    return labels("tokens_about", n=f"{tokens:,}") if about else f"{tokens:,}"


def _span(seconds: float) -> str:
    from workbench.views.labels import milliseconds

    return milliseconds(seconds * 1000)
