"""Whether a text answers a question: the words, names and conditions that it must speak of, and which of them it does.

By words alone, so it says what is missing, and not whether what is said is true. For names, and for words in another
language than the text's, a knowledge base gives their other names.

The tool ``reflection`` holds what an earlier step found against the question and searches nothing itself. A plan gives
it that as ``{"found": {"$from": "step_0_search.results"}}``; its log and its output name what is missing. Where
``WORKBENCH_REFLECTION_ALLOW_RETRY`` is set, the dispatcher does that step again, asking for what is missing too, and
what it had found before does not count any more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import chain

from pydantic import Field
from typing_extensions import TypedDict

from workbench.language.question import read
from workbench.ports import KnowledgeBase, ToolLog
from workbench.state import Json, Question
from workbench.text import CJK, fold, stem, terms
from workbench.tools.tool import FunctionTool, Search, ToolOutput

PASS_SHARE = 0.6
"""The share of keywords that must be covered."""
Meant = Callable[[str], Iterable[str]]
"""What else a keyword may be called."""


class AnswerValidation(TypedDict):
    """What a text says of what was asked.

    Attributes:
        keywords: names, values that fields must have, and content words of the question, in this order.
        covered: those of which the text speaks.
        missing: the others.
        coverage: the share that is covered, 1 where nothing is asked for by name or word.
        passed: whether every name is covered, and ``PASS_SHARE`` of all.
    """

    keywords: list[str]
    covered: list[str]
    missing: list[str]
    coverage: float
    passed: bool


def validate(reading: Question, text: str, meant: Meant | None = None) -> AnswerValidation:
    """Hold a text against what its question asks.

    Args:
        reading: of the question.
        text: an answer, or the evidence for one.
        meant: what else a keyword may be called: aliases of names, words of another language.

    >>> reading = {"names": [{"name": "Salt Mill", "surface": "Salt Mill"}], "words": ["builder", "died"],
    ...            "conditions": [{"field": "place", "op": "eq", "value": "Saltaire"}]}
    >>> found = validate(reading, "Salt Mill was built in Saltaire.", lambda word: {"builder": ["built"]}.get(word, ()))
    >>> found["covered"], found["missing"], found["coverage"], found["passed"]
    (['Salt Mill', 'Saltaire', 'builder'], ['died'], 0.75, True)
    >>> validate({"names": [], "words": ["建造者"], "conditions": []}, "盐仓由沈万和建造。")["passed"]
    True
    """
    words, folded = frozenset(map(stem, terms(text))), fold(text)
    also = meant or (lambda _: ())
    names = dict.fromkeys(name["name"] for name in reading["names"])
    surfaces = {name["name"]: name["surface"] for name in reading["names"]}
    by_keyword = {name: _is_named([name, surfaces[name], *also(name)], folded) for name in names}
    for condition in reading["conditions"]:
        if condition["op"] in ("eq", "contains"):
            value = str(condition["value"])
            by_keyword[value] = _is_named([value, *also(value)], folded)
    for word in reading["words"]:
        by_keyword.setdefault(word, any(_says(keyword, words) for keyword in [word, *also(word)]))
    covered = [keyword for keyword, so in by_keyword.items() if so]
    missing = [keyword for keyword, so in by_keyword.items() if not so]
    share = round(len(covered) / len(by_keyword), 6) if by_keyword else 1.0
    passed = bool(text.strip()) and share >= PASS_SHARE and all(by_keyword[name] for name in names)
    return AnswerValidation(keywords=list(by_keyword), covered=covered, missing=missing, coverage=share, passed=passed)


def meant_by(question: str, base: KnowledgeBase) -> Meant:
    """Return what a knowledge base knows a question's keywords by: other writings of names and values, near words."""
    related, about = base.words(question)["similar"], base.about()
    values = [
        [value, *(word for words in called.values() for word in words)]
        for field in about["fields"]
        for value, called in field["values_called"].items()
    ]
    groups = [*values, *([*group.get("en", ()), *group.get("zh", ())] for group in about["lexicon"])]

    def meant(keyword: str) -> Iterable[str]:
        key, entity = fold(keyword), base.entity(keyword)
        names = [entity["name"], *entity["aliases"]] if entity else []
        nearby = (word for nearby, words in related.items() if fold(nearby) in key for word, _ in words)
        return [*names, *(word for group in groups if key in map(fold, group) for word in group), *nearby]

    return meant


def _is_named(writings: Sequence[str], folded: str) -> bool:
    return any(key in folded for writing in writings if (key := fold(writing)))


def _says(word: str, words: frozenset[str]) -> bool:
    own = set(map(stem, terms(word)))
    # The share of its pairs of signs that a text must have of a Chinese word: it may be cut another way there.
    return bool(own) and len(own & words) >= (0.5 if CJK.search(word) else 1) * len(own)


# the tool


class ReflectionInput(Search):
    """What was found, by ``$from``."""

    found: list[Json] = Field(default_factory=list, description="Results of an earlier step, by $from")


class ReflectionOutput(ToolOutput):
    """What it speaks of; ``results`` stay empty: nothing new was found."""

    keywords: list[str] = Field(default_factory=list, description="What an answer must speak of")
    covered: list[str] = Field(default_factory=list, description="What it does")
    missing: list[str] = Field(default_factory=list, description="What it does not")
    coverage: float = Field(1.0, description="The share that is covered, 0 to 1")
    passed: bool = Field(True, description="Whether that is enough")


def reflection(tool_input: ReflectionInput, knowledge: KnowledgeBase, log: ToolLog) -> ReflectionOutput:
    """Hold the evidence against the question."""
    with log("validate", pieces=len(tool_input.found)) as detail:
        text = "\n".join(map(_result_text, tool_input.found))
        validation = validate(read(tool_input.query, [knowledge]), text, meant_by(tool_input.query, knowledge))
        detail |= {"coverage": validation["coverage"], "passed": validation["passed"], "missing": validation["missing"]}
        if not validation["passed"]:
            detail["error"] = f"not covered: {', '.join(validation['missing']) or 'nothing was found'}"
    return ReflectionOutput(**validation)


def _result_text(result: Json) -> str:
    """Return the title, the text and the typed fields of a result."""
    metadata = result.get("metadata", {})
    values = [value for value in (metadata.get("fields") or {}).values() if value not in (None, "")]
    lists = (value if isinstance(value, list) else [value] for value in values)
    return " ".join([f"{metadata.get('title') or ''}.", str(result.get("evidence") or ""), *map(str, chain(*lists))])


TOOL = FunctionTool(
    name="reflection",
    planned=False,
    description="Checks whether what an earlier step found speaks of all that is asked, and says what is missing.",
    input_schema=ReflectionInput,
    output_schema=ReflectionOutput,
    function=reflection,
    calibration="Nothing is scored: coverage is the share of the question's names, conditions and words.",
)
