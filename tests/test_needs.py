"""What an answer needs is written down, looked up after each pass and steered by a person; over three kinds of text."""

from __future__ import annotations

import json
from typing import Any

import pytest

from workbench import Workbench
from workbench.errors import InvalidAnswer
from workbench.plans import Plan, PlanStep
from workbench.views import review
from workbench.views.labels import Labels
from workbench.views.labels.sentences import needs_sentence
from workbench.views.markup import family
from workbench.views.review import needs_text
from workbench.views.run import answer

TEXTS = {
    "Salt Mill": "Salt Mill is a mill on the Aire. It was built by Titus Salt in 1853.",
    "Titus Salt": "Titus Salt was a manufacturer. He died in Lightcliffe.",
    "Lightcliffe": "Lightcliffe is a village east of Halifax.",
    "Weir": "A weir is a low dam across a river.",
    "盐仓": "盐仓是运河边的一座仓库，由沈万和建造。",
    "沈万和": "沈万和是商人，晚年在扬州去世。",
}
NOTES = {
    "kiln-4": ("Kiln 4 fires at 1,240 degrees. Its owner is Ida Brandt.", {"owner": "Ida Brandt", "year": 2019}),
    "kiln-7": ("Kiln 7 is cold until the spring.", {"owner": "Ole Lund", "year": 2021}),
}
MORE = {
    "kiln-9": ("Kiln 9 was rebuilt after the flood. It burns birch.", {"year": 2022, "city": "Oslo"}),
    "窑十二": ("窑十二烧白瓷，由林青看管。", {"owner": "林青", "year": 2018, "city": "景德镇"}),
}
ASKED = "Where did the builder of Salt Mill die?"


@pytest.fixture(scope="module")
def wb(tmp_path_factory):
    folder = tmp_path_factory.mktemp("needs")
    texts = {title: (text, {}) for title, text in TEXTS.items()}
    with Workbench.open(folder / "ws", embedding_model="hashing") as wb:
        for name, rows in {"texts": texts, "notes": NOTES, "mixed": texts | NOTES | MORE}.items():
            lines = [{"id": title, "title": title, "text": text, **fields} for title, (text, fields) in rows.items()]
            (folder / f"{name}.jsonl").write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
            wb.add_knowledge(name, [folder / f"{name}.jsonl"])
        yield wb


def entries(run: Any) -> dict[str, Any]:
    """Need -> its line in the last reflection."""
    return {entry["need"]: entry for entry in run.reflections[-1]["signals"]["needs"]}


@pytest.mark.parametrize(
    ("question", "base", "expected"),
    [
        (ASKED, "texts", {"Salt Mill": "name", "builder": "words", "die": "words", "an answer: a place": "answer"}),
        ("盐仓的建造者在哪里去世？", "texts", {"盐仓": "name", "答案：地点": "answer"}),
        ("Who is the owner of kiln-4?", "notes", {"kiln-4": "name", "owner of kiln-4": "field"}),
        ("List the kilns since 2020", "notes", {"year since 2020": "condition", "every item that fits": "all"}),
    ],
)
def test_needs_are_read_from_what_the_corpus_knows(wb, question, base, expected) -> None:
    found = entries(wb.ask(question, kb=base))
    assert expected.items() <= {need: entry["kind"] for need, entry in found.items()}.items()


def test_needs_are_the_criteria_of_the_plan_and_every_one_has_a_line(wb) -> None:
    run = wb.ask(ASKED, kb="texts")
    found = entries(run)
    assert list(found) == run.plan.acceptance_criteria
    mill = found["Salt Mill"]
    results = {result["result_id"] for result in run.evidence}
    assert mill["met"] >= 0.5 and mill["title"] == "Salt Mill" and set(mill["by"]) <= results
    assert all(0 <= entry["met"] <= 1 for entry in found.values())


@pytest.mark.parametrize(
    ("question", "unmet"),
    [
        ("Compare kiln-4 and kiln-7", []),
        ("Compare kiln-4 with another kiln", ["two sides to compare"]),
        ("比较窑十二", ["可对比的两方"]),
    ],
)
def test_a_comparison_of_one_side_is_not_met(wb, question, unmet) -> None:
    run = wb.ask(question, kb="mixed")
    assert [need for need, entry in entries(run).items() if entry["met"] < 0.5] == unmet


LANGUAGES = {"Compare kiln-4 and kiln-7": "en", "Compare kiln-4 with another kiln": "en", "窑十二的看管人是谁？": "zh"}


@pytest.mark.parametrize("question", LANGUAGES)
def test_what_is_said_of_the_needs_at_the_pause_is_said_when_the_run_is_done(wb, question) -> None:
    run = wb.ask(question, kb="mixed", review="reflect")
    labels = Labels(LANGUAGES[question])
    said = needs_sentence(run.reflections[-1]["signals"]["needs"], labels)
    band = str(review.band(run.to_dict(), labels, "", {}))
    assert said in band and said in run.reflections[-1]["reasoning"]
    run.approve()
    assert run.status == "done" and said in str(answer(run.to_dict(), labels)) and said in str(run)


def test_only_what_was_checked_is_green() -> None:
    def sign(kind: str, met: float = 0.9, **more: str) -> str:
        need = {"need": "older", "kind": kind, "met": met, "said": "", **more}
        return needs_text([{"signals": {"needs": [need]}}], Labels("en"))[0]

    assert sign("name") == sign("field") == sign("words", said="confirmed") == "✓"
    assert sign("words") == sign("answer") == "●", "likeness is no check"
    assert sign("words", verdict="met") == "✓" and sign("name", 0.1) == sign("words", said="open", met=0.1) == "!"
    assert {family("done"), family("success")} == {"idle", "done"}, "that a run has ended says nothing of its answer"


def test_an_added_need_is_searched_for_until_it_is_met_or_settled(wb) -> None:
    run = wb.ask(ASKED, kb="texts", review=["reflect"], thresholds={"min_probability": 0.0, "min_evidence": 1})
    wool = "the price of the wool"
    run.edit(needs={wool: "open"})
    assert run.status == "paused" and entries(run)[wool]["said"] == "open"
    proposal = run.reflections[-1]
    assert proposal["should_continue"] and wool in proposal["reasoning"]
    assert any(wool in step["tool_input"]["query"] for step in proposal["next_steps"])
    run.edit(needs={wool: "struck"})
    after = run.reflections[-1]
    assert entries(run)[wool]["said"] == "struck"
    assert not any(wool in step["tool_input"]["query"] for step in after["next_steps"])
    assert [decision["edits"] for decision in run.decisions] == [{"needs": {wool: "open"}}, {"needs": {wool: "struck"}}]
    while run.status == "paused":
        run.approve()
    assert wb.replay(run.run_id).status == "done", "decisions on needs are replayed from the tape"


def test_a_criterion_that_an_edit_of_the_plan_adds_or_takes_out_is_said_of_the_need(wb) -> None:
    run = wb.ask(ASKED, kb="texts", review=["plan", "reflect"])
    kept = [text for text in run.plan.acceptance_criteria if text != "die"]
    run.edit(plan=run.plan.model_copy(update={"acceptance_criteria": [*kept, "the wool"]}))
    said = {text: entry["said"] for text, entry in entries(run).items() if entry["said"]}
    assert said == {"the wool": "open", "die": "struck"}


def test_what_a_person_settles_is_missing_no_more(wb) -> None:
    run = wb.ask("Who is the owner of kiln-9?", kb="mixed", review=["reflect"])
    assert run.reflections[-1]["signals"]["missing_fields"] and unsettled(run)
    run.edit(needs=dict.fromkeys(unsettled(run), "struck"))
    seen = run.reflections[-1]
    assert not seen["signals"]["missing_fields"] and not seen["should_continue"]


def unsettled(run: Any) -> list[str]:
    return [need for need, entry in entries(run).items() if entry["met"] < 0.5 and not entry["said"]]


def test_what_cannot_be_said_of_a_need_is_refused_and_the_run_waits(wb) -> None:
    run = wb.ask(ASKED, kb="texts", review=["reflect"])
    for given in ({"die": "maybe"}, {" ": "open"}, {"x" * 501: "open"}, ["die"]):
        with pytest.raises(InvalidAnswer, match="needs"):
            run.edit(needs=given)
    assert run.status == "paused" and not run.decisions


@pytest.mark.parametrize(
    ("criterion", "met"),
    [
        ("at least 2 sources", True), ("至少 2 个来源", True), ("min_evidence_count: 2", True),
        ("at least 50 sources", False), ("Lightcliffe", True), ("the price of the wool", False),
    ],
)  # fmt: skip
def test_a_criterion_of_one_s_own_binds_until_it_is_struck(wb, criterion, met) -> None:
    enough = {"min_evidence": 1, "min_top_score": 0, "min_probability": 0}
    step = PlanStep(step_id="s", objective=ASKED, tool="hybrid_search", tool_input={"query": ASKED})
    plan = Plan(steps=[step], acceptance_criteria=[criterion])
    run = wb.ask(ASKED, kb="texts", plan=plan, review=["reflect"], thresholds=enough)
    line = entries(run)[criterion]
    assert (line["met"] >= 0.5, line["said"]) == (met, "open")
    if not met:
        assert run.reflections[-1]["stop_reason"] != "quality_satisfied"
        run.edit(needs={criterion: "struck"})
        assert criterion not in run.reflections[-1]["reasoning"]


def test_a_list_that_a_word_did_not_filter_says_so_and_does_not_answer(wb) -> None:
    run = wb.ask("List the notes since 2020 with turquoise glaze", kb="notes")
    assert "kiln-7" in run.answer and "“turquoise”" in run.answer.splitlines()[0]
    assert run.reflections[-1]["signals"]["answered"] is False
    cold = wb.ask("List the notes since 2020 that are cold", kb="notes")
    assert "Kiln 7 is cold" in cold.answer and cold.reflections[-1]["signals"]["answered"] is True


SURE = ("fields", "quotation")
QUESTIONS = """
    What is the budget of kiln-4? | Who is the owner of kiln-4? | Who is the owner of kiln-9? | Who built Salt Mill?
    What is the year of kiln-7? | List the notes since 2020 | List the notes since 2020 with turquoise glaze
    List the notes since 2020 that are cold | How many notes are from Oslo? | How many notes since 2030?
    Which note is the latest? | List the notes in Oslo before 2020 | Compare kiln-4 and kiln-7 | What is a weir?
    Compare the year of kiln-4 and kiln-7 | What does kiln-9 burn? | When was kiln-9 rebuilt? | Where is Lightcliffe?
    At how many degrees does kiln 4 fire? | Where did the builder of Salt Mill die? | Where is Zanzibar?
    Where did the owner of the Zanzibar die? | Who repaired the east window of Salt Mill? | Who is he?
    What colour is Titus Salt's hat? | When did Titus Salt marry? | Recommend a few kilns | Tell me about kiln-7
    Recommend kilns like kiln-4 | I liked kiln-7, what next? | What was it built of? | What is the total of year?
    What is the salary of Ida Brandt? | Which kiln is owned by Ole Lund? | Notes by Ole Lund since 2022
    Which notes have no owner? | quantum chromodynamics lattice | How does kiln-4 differ from Salt Mill?
    盐仓由谁建造？ | 盐仓的建造者在哪里去世？ | 盐仓的屋顶是什么颜色？ | 沈万和是谁？ | 窑十二的看管人是谁？
    窑十二的城市是什么？ | 列出2020年以后的窑 | 有多少个窑在景德镇？ | 桑给巴尔在哪里？ | 推荐几座窑
"""


@pytest.mark.parametrize("question", [q.strip() for q in QUESTIONS.replace("\n", "|").split("|") if q.strip()])
@pytest.mark.few(12)
def test_enough_and_the_needs_and_the_kind_of_the_answer_agree(wb, question) -> None:
    run = wb.ask(question, kb="mixed")
    last, lines = run.reflections[-1], entries(run).values()
    seen, cited = last["signals"], {citation["result_id"] for citation in run.citations}
    sure, enough = run.state["answer_kind"] in SURE, last["stop_reason"] == "quality_satisfied"
    unmet = [entry["need"] for entry in lines if entry["met"] < 0.5]
    assert seen["kind"] == run.state["answer_kind"], "the reflection judges the answer that is written"
    assert not enough or (sure and not unmet), "what is enough answers, and lacks nothing"
    assert all(need in last["reasoning"] for need in unmet), "what is lacking is said"
    short = seen["missing"] or seen["unknown"] or any(seen[s] < seen["thresholds"][t] for s, t in LIMITS if s in seen)
    assert enough or not sure or unmet or short, "a sure answer is enough unless something is named that it lacks"
    for entry in lines:
        assert set(entry["by"]) <= cited, "a need is met by what is shown, with its number"
        assert bool(entry["by"]) <= (entry["met"] >= 0.5) and (entry["by"] or entry["met"] < 0.5 or not cited)
        shown = " ".join(c["sentence"] for c in run.citations if c["result_id"] in entry["by"])
        if entry["kind"] == "words" and entry["met"] == 1.0:
            assert entry["need"][:4].lower() in shown.lower(), "no word is met that no shown sentence says"


LIMITS = (("evidence_count", "min_evidence"), ("top_score", "min_top_score"), ("probability", "min_probability"))
