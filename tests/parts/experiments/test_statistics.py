"""What differences are worth, and where a right answer was lost."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, ChatResult

from tests.parts.experiments.test_experiments import opened
from workbench.parts.experiments import statistics
from workbench.parts.experiments.statistics import detectable, differences, error_of_look, live_differences
from workbench.session import Workbench
from workbench.settings import model_name


def scores(values: list[float]) -> dict[str, float]:
    return {str(number): value for number, value in enumerate(values)}


def test_a_difference_is_claimed_where_the_questions_show_it() -> None:
    base = scores([0.0] * 30 + [1.0] * 30)
    better = differences({"a": base, "b": scores([1.0] * 60)}, "a", 5)["b"]
    assert better.decision.startswith("better by at least 3") and better.mean == 50
    assert differences({"a": scores([1.0] * 400), "b": scores([1.0] * 400)}, "a", 5)["b"].decision == (
        "no difference of more than 5"
    )
    assert differences({"a": base, "b": dict(base)}, "a", 5)["b"].decision.startswith("not decided")

    def decision(n: int) -> str:
        return differences({"a": scores([0.5] * n), "b": scores([1.0, 0.1] * (n // 2))}, "a", 5)["b"].decision

    assert decision(100) == "not decided, about 215 more questions would" and decision(330).startswith("better")
    result = differences({"a": {"1": 1.0, "2": 0.0}, "b": {"2": 1.0, "3": 1.0}}, "a", 5)["b"]
    assert (result.n, result.mean) == (1, 100)
    assert "no question was finished by both" in differences({"a": {}, "b": {"1": 1.0}}, "a", 5)["b"].decision
    base, other = scores([0.0] * 20), scores([1.0] * 20)
    alone = differences({"a": base, "b": other}, "a", 5)["b"]
    together = differences({"a": base, "b": other}, "a", 5, dict.fromkeys(base, "one conversation"))["b"]
    assert alone.p < 0.001 < together.p and together.decision.startswith("not decided")
    few = differences({"a": scores([0.0] * 30), "b": scores([1.0] * 30)}, "a", 5)["b"]
    assert few.decision == "better" and few.low == 100
    alike = differences({"a": scores([1.0] * 30), "b": scores([1.0] * 30)}, "a", 20)["b"]
    assert alike.decision.startswith("not decided")


def test_looks_spend_the_error_and_see_what_is_large() -> None:
    spent = sum(map(error_of_look, range(10_000))) + statistics.ERROR * statistics.LIVE
    assert spent == pytest.approx(statistics.ERROR, abs=1e-6)
    base, other = scores([0.0] * 80), scores([1.0, 1.0, 1.0, 0.0] * 20)
    apart = live_differences({"a": base, "b": other}, "a", 5)["b"]
    assert apart.decision.startswith("better by at least") and 0 < apart.low < 75 < apart.high
    assert live_differences({"a": base, "b": {}}, "a", 5)["b"].decision.startswith("not decided")
    assert detectable(400, 1) < detectable(100, 1) < detectable(100, 10)


BUILDERS = {"Moss": "Ann Lee", "Fern": "Bea Orr", "Reed": "Cal Ivy", "Sedge": "Dan Roe"}
GOLD = "{builder} built {mill} Mill in the year 1821. It has three floors, a barn, a pond and a road to the next town."
NEARER = "{mill} Mill is a mill. {mill} Mill is liked. Who walks to {mill} Mill comes to {mill} Mill on foot."
SILENT, WRONG = "Answer only: I cannot say.", "Say only how many floors it has."


class Obedient(BaseChatModel):
    """A writer that cites the piece in which a mill was built, and obeys what its prompt says."""

    @property
    def _llm_type(self) -> str:
        return "obedient"

    def _generate(self, messages: list[Any], *_: Any, **__: Any) -> ChatResult:
        text = "\n".join(str(message.content) for message in messages)
        mill = re.findall(r"Who built (\w+) Mill", text)[-1]
        number = next((n for n, piece in re.findall(r"\[(\d+)\] ([^\[]+)", text) if f"built {mill} Mill" in piece), "")
        said = f"{mill} Mill has three floors" if WRONG in text else f"{BUILDERS[mill]} built {mill} Mill"
        answer = "I cannot say." if SILENT in text or not number else f"{said} [{number}]."
        return ChatResult(generations=[ChatGeneration(message=AIMessage(answer))])


@pytest.fixture(scope="module")
def bases(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workbench]:
    """A base with every document, and one that has lost those that answer."""
    folder = tmp_path_factory.mktemp("why")
    for kind, text in (("gold", GOLD), ("nearer", NEARER)):
        (folder / kind).mkdir()
        for mill, builder in BUILDERS.items():
            (folder / kind / f"{mill}_{kind}.md").write_text(text.format(mill=mill, builder=builder))
    with opened(folder) as wb:
        wb.add_knowledge("all", [folder / "gold", folder / "nearer"])
        wb.add_knowledge("lost", [folder / "nearer"])
        yield wb


def sought(query: str) -> dict[str, Any]:
    step = {"step_id": "s", "objective": "o", "tool": "keyword_search", "tool_input": {"query": query}}
    return {"problem_statement": query, "steps": [step]}


WRITER = {"models": {"writer": model_name("chat_model", Obedient())}}
FAULTS: dict[str, tuple[dict[str, Any], str, str]] = {
    "a lost document": ({"kb": "lost"}, "not in the corpus", ""),
    "a step that takes too few": ({"step_top_k": 1, "max_iterations": 1}, "not found", "step_top_k=2"),
    "a plan for something else": ({"plan": sought("lighthouse"), "max_iterations": 1}, "not found", "max_iterations=2"),
    "a merge that keeps too few": (
        {"merge_max_results": 1}, "cut in the merge", "merge_max_results="
    ),
    "a window that is cut": (
        {**WRITER, "merge_max_characters": 150}, "beyond the prompt", "merge_max_characters="
    ),
    "a plan that a person rejected": (
        {"reviewer": [{"point": "plan", "action": "reject", "who": "ann"}]}, "lost by a decision", "approve "
    ),
    "a plan that a person changed": (
        {"reviewer": [{"point": "plan", "action": "edit", "who": "ann", "edits": {"plan": sought("lighthouse")}}],
         "max_iterations": 1},
        "lost by a decision", "approve ",
    ),
    "a prompt that silences": (
        {**WRITER, "prompts": {"writer.en": {"user": "$question " + SILENT}}}, "in the prompt, not used",
        "prompt writer.en as shipped",
    ),
    "a prompt that misleads": (
        {**WRITER, "prompts": {"writer.en": {"user": "$question " + WRONG}}}, "used, and the answer is wrong",
        "prompt writer.en as shipped",
    ),
}  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
def test_the_place_of_a_planted_loss_is_named_and_the_smallest_change_mends_it(bases: Workbench, fault: str) -> None:
    planted, place, change = FAULTS[fault]
    question = {"id": "moss", "question": "Who built Moss Mill?", "answer": "Ann Lee", "gold": ["Moss_gold.md"]}
    sweep = {"name": "planted", "kb": planted.get("kb", "all"), "questions": [question]}
    base = {name: value for name, value in planted.items() if name != "kb"}
    [row] = bases.experiments.run({**sweep, "base": base}).why(fix=True).to_dict("records")
    assert (row["stage"], row["document"]) == (place, "Moss_gold.md")
    assert row["mended_by"].startswith(change) and bool(row["mended_by"]) == bool(change), row["mended_by"]
    assert not change or "Ann Lee" in bases.run(row["mended_run"]).answer
