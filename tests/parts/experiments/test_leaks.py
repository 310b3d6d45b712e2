"""What a cell depends on: each changed alone, none is taken for the other."""

from __future__ import annotations

import shutil
import typing
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, Literal

import pytest
from langchain_core.language_models import FakeListChatModel
from pydantic import SecretStr

from tests.parts.experiments.test_experiments import QUESTIONS, opened, place  # noqa: F401, a fixture
from workbench.parts.experiments import cells
from workbench.parts.experiments.experiment import Experiment
from workbench.parts.experiments.spec import check_spec
from workbench.runs.asking import RunOptions
from workbench.session import Workbench
from workbench.settings import all_settings, model_name

STEP = {"step_id": "s", "objective": "o", "tool": "keyword_search", "tool_input": {"query": "mill"}}
OPTIONS: dict[str, Any] = {
    "kb": ["other"], "user": "bob", "worker": "mill:naive_rag_agent:retrieve_only", "thresholds": {"min_evidence": 7},
    "as_of": "1900", "known": "1900", "reviewer": "rules", "decisions": [{"point": "plan", "action": "approve"}],
    "models": {"writer": "rules"}, "prompts": {"writer.en": {"system": "Be short."}},
    "plan": {"problem_statement": "q", "steps": [STEP]}, "settings": {"max_iterations": 1},
    "report": {"report_type": "short"}, "review": ["plan"],
}  # fmt: skip
NO_LEAK = {"session", "incognito", "debug"}
"""Options of a run that an experiment sets itself, or that only say what is shown."""


def another(name: str) -> Any:
    """Another value than a setting's own, made from its type."""
    field = all_settings().model_fields[name]
    if field.annotation is bool:
        return not field.default
    if typing.get_origin(field.annotation) is Literal:
        return next(value for value in typing.get_args(field.annotation) if value != field.default)
    if field.annotation in (int, float):
        return field.default / 2 if 0 < field.default < 1 else field.default + 1
    return {"writer": "rules"} if name == "models" else "another"


SETTINGS = [name for name, field in all_settings().model_fields.items() if field.annotation is not SecretStr]
PROMPTS = [f"{role}.{language}" for role in ("writer", "planner", "reflector", "router") for language in ("en", "zh")]
ENVIRONMENT = ["WORKBENCH_MERGE", "MA_MAX_ITERATIONS", "KB_FOLDER", "OPENAI_ORGANIZATION", "OPENAI_BASE_URL"]


def _prompt(name: str, wb: Workbench, patch: pytest.MonkeyPatch) -> None:
    wb.prompts[name] = {"system": "Be short."}


def _variable(name: str, wb: Workbench, patch: pytest.MonkeyPatch) -> None:
    patch.setenv(name, "another")


def _setting(name: str, wb: Workbench, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(wb, "settings", wb.settings.model_copy(update={name: another(name)}))


def version_one(query: str) -> list[str]:
    """Find the mill."""
    return ["Moss Mill"]


def version_two(query: str) -> list[str]:
    """Find the mill."""
    return ["Fern Mill"]


async def handler(state: Any, context: Any) -> str:
    return "42"


class Sampled(FakeListChatModel):
    temperature: float = 0.0

    @property
    def _identifying_params(self) -> dict[str, Any]:
        return {"temperature": self.temperature}


MODEL = Sampled(responses=["Ann Lee [1]."])
MODELS = {"writer": model_name("models.writer", MODEL)}
SWEEP: dict[str, Any] = {
    "name": "leak", "kb": "mill", "questions": QUESTIONS[:1],
    "base": {"user": "ann", "max_iterations": 2, "models": MODELS},
}  # fmt: skip
Plant = Callable[[Workbench, pytest.MonkeyPatch], object]


def tool(wb: Workbench, function: Callable[[str], list[str]]) -> None:
    wb.tools.tool(function, name="own_tool", replace=True)


PLANTS: dict[str, tuple[str, Plant]] = {
    "corpus": ("corpus", lambda wb, _: wb.add_knowledge("mill", [wb.path.parent / "changing"])),
    "a fact of the user": ("memory", lambda wb, _: wb.memory.core_memory_update("name", "Ann", user="ann")),
    "the user's archive": ("memory", lambda wb, _: wb.memory.archival_memory_insert("Ann likes mills.", user="ann")),
    "a tool's code": ("tools", lambda wb, _: tool(wb, version_two)),
    "another tool": ("tools", lambda wb, _: wb.tools.tool(version_one, name="second_tool")),
    "a reranker": ("tools", lambda wb, _: wb.register("reranker", lambda query, texts: [1.0] * len(texts))),
    "a handler": ("tools", lambda wb, _: wb.register("handler", handler, kb="other")),
    "a model's sampling": ("models", lambda wb, patch: patch.setattr(MODEL, "temperature", 1.0)),
    "code of the package": ("code", lambda wb, patch: patch.setattr(cells, "code_version", lambda: "another")),
    **{f"prompt {name}": ("prompts", partial(_prompt, name)) for name in PROMPTS},
    **{f"variable {name}": ("environment", partial(_variable, name)) for name in ENVIRONMENT},
    **{f"setting {name}": ("settings", partial(_setting, name)) for name in SETTINGS},
}
SPECS: dict[str, tuple[str, dict[str, Any]]] = {
    "gold": ("question", {"questions": [{**QUESTIONS[0], "answer": "Bea Orr"}]}),
    "words": ("question", {"questions": [{**QUESTIONS[0], "question": "Who made Moss Mill?"}]}),
    "reviewer": ("reviewer", {"reviewer": "rules"}),
    "decisions": ("reviewer", {"reviewer": [{"point": "reflect", "action": "approve"}]}),
    "kb": ("corpus", {"kb": "other"}),
    **{f"option {name}": ("parameters", {"base": {name: value}}) for name, value in OPTIONS.items()},
    **{
        f"parameter {name}": ("parameters", {"base": {name: another(name)}}) for name in SETTINGS if name not in OPTIONS
    },
}


@pytest.fixture
def done(place: Path, tmp_path: Path) -> Iterator[Experiment]:  # noqa: F811
    """An experiment that has ended, in a workspace of its own."""
    shutil.copytree(place / "w", tmp_path / "w")
    (tmp_path / "changing").mkdir()
    (tmp_path / "changing" / "other.md").write_text("Fern Mill was built by Bea Orr.")
    with opened(tmp_path) as wb:
        wb.add_knowledge("other", [tmp_path / "changing"])
        tool(wb, version_one)
        yield wb.experiments.run(SWEEP)


def proof(experiment: Experiment, spec: dict[str, Any] | None = None) -> dict[str, str]:
    """What the cell depends on, by part."""
    again = Experiment(experiment._wb, experiment._store.tables, check_spec(spec or SWEEP))
    return dict(again.proof(again.variants[0], again.questions[0], 0))


def differing(one: dict[str, str], other: dict[str, str]) -> set[str]:
    return {part for part in one if one[part] != other[part]}


def test_every_option_and_setting_is_in_the_table() -> None:
    assert set(OPTIONS) | NO_LEAK == set(RunOptions.model_fields)
    assert len(PLANTS) + len(SPECS) >= 150


def test_whatever_a_cell_depends_on_changes_that_part_of_its_proof_alone(done, monkeypatch):
    wb, first, missed = done._wb, proof(done), dict[str, Any]()
    assert proof(done) == first and done.stale(done.cells()) == {}
    for name, (part, spec) in SPECS.items():
        base = {**SWEEP["base"], **spec.get("base", {})}
        parts = differing(first, proof(done, {**SWEEP, **spec, "base": base}))
        if part not in parts or len(parts - {"parameters", "memory"}) > 1:
            missed[name] = parts
    for name, (part, plant) in PLANTS.items():
        with monkeypatch.context() as patch:
            before = proof(done)
            plant(wb, patch)
            if (parts := differing(before, proof(done))) != {part}:
                missed[name] = parts
    assert missed == {}
    assert {"corpus", "memory", "tools", "prompts"} <= set(done.stale(done.cells())), "what stays changed is said"


def test_configurations_that_differ_in_an_option_share_no_tape_unless_a_fork_can_set_it(done: Experiment) -> None:
    alone = {name for name, value in OPTIONS.items() if done.shared({name: value}) != done.shared({})}
    assert set(OPTIONS) - alone == {"settings", "thresholds", "reviewer", "decisions", "review"}
    settings = {name for name in SETTINGS if done.shared({name: another(name)}) != done.shared({})}
    assert {"models", "memory_top_k", "memory_scope"} <= settings and "max_iterations" not in settings


@pytest.mark.full
@pytest.mark.parametrize("name", [name for name in SETTINGS if all_settings().model_fields[name].annotation is not str])
def test_a_cell_that_differs_in_one_setting_has_the_bytes_of_a_run_alone(done: Experiment, name: str) -> None:
    ways = [{}, {f"settings.{name}": another(name)}]
    for order in (ways, ways[::-1]):
        sweep = {**SWEEP, "name": f"one_{len(order[0])}", "configurations": order, "base": {}}
        both = done._wb.experiments.run(sweep)
        assert both.check(1) == [], (name, order)
