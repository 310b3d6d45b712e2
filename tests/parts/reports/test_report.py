"""A report: planned and searched as any question, written section by section, every sentence with its source."""

import json
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from tests.cases import tables
from tests.harbour import harbour
from tests.servers import Reply, ScriptedServer
from tests.servers.roles import passages, responder, role_of
from tests.shelves import jsonl, workbench
from workbench.errors import WorkbenchError
from workbench.language.citing import statements
from workbench.models.chat import close_chat_model, open_chat_model
from workbench.parts.reports import kinds
from workbench.parts.reports.kinds import ReportType, register_report_type
from workbench.parts.reports.writer import Draft, section_by_model
from workbench.plans import Plan, PlanStep
from workbench.ports import Context
from workbench.records.tape import Tape, read
from workbench.runs.run import Run
from workbench.runs.stored import live_steps
from workbench.session import Workbench
from workbench.state import RetrievalResult
from workbench.testing import memory_context

EN, ZH = "The films of Ang Lee: families, food and exile", "李安的电影：家庭与传统"


def body(text: str) -> str:
    """The sections of a report, without what stands behind them."""
    return re.split(r"\n## (?:References|参考文献)", text)[0]


@pytest.fixture(scope="module")
def english(shared_wb: Workbench) -> Run:
    """Return a report that several tests read."""
    return shared_wb.report(EN, kb="film")


@pytest.mark.parametrize(("topic", "wanted"), [(EN, ["Families", "Food", "Exile"]), (ZH, ["家庭", "传统"])])
def test_every_sentence_has_a_source_that_is_there_and_says_so(shared_wb, english, topic, wanted):
    run = english if topic == EN else shared_wb.report(topic, kb="film")
    report, told = run.report, run.report.to_dict()
    assert report.status == told["status"] == "completed"
    assert [one["title"] for one in report.sections][: len(wanted)] == wanted
    pieces = {r["result_id"]: r for r in run.evidence}
    for section in report.sections:
        assert set(section["evidence_ids"]) <= pieces.keys()
        for claim in section["claims"]:
            assert claim["verdict"] == "supported" and set(claim["evidence_ids"]) <= pieces.keys()
    said = [s for section in report.sections for s in statements(section["text"])]
    assert len(said) > 10 and all(re.search(r"\[\d+\]", s) for s in said)
    marks = {int(n) for n in re.findall(r"\[(\d+)\]", body(report.text))}
    references = told["report"]["references"].splitlines()
    assert marks == {int(re.match(r"\[(\d+)\]", line)[1]) for line in references}  # type: ignore[index]
    by_place = {c["n"]: c["result_id"] for c in run.citations}
    assert set(by_place) == marks and set(by_place.values()) <= pieces.keys()


def test_all_that_hold_the_conditions_are_used_and_nothing_is_said_twice(english):
    run = english
    about = [r["metadata"] for r in run.evidence]
    directed = {m["doc_id"] for m in about if "Ang Lee" in m.get("fields", {}).get("directors", [])}
    used = {i for section in run.report.sections for i in section["evidence_ids"]}
    assert {r["metadata"]["doc_id"] for r in run.evidence if r["result_id"] in used} >= directed and len(directed) == 13
    said = [claim["text"] for section in run.report.sections for claim in section["claims"]]
    assert len(said) == len(set(said))
    assert "The corpus says nothing on “Exile”." in run.report.text
    assert [step.step_id for step in run.plan.steps][-3:] == ["step_2_families", "step_3_food", "step_4_exile"]
    found = run.report.chapters[0]["text"]
    assert found == "> No passage names: Exile.", "below the title"
    told = {chapter["name"]: chapter["text"] for chapter in run.report.chapters}
    assert told["introduction"].startswith("This report is on 13 films (director is Ang Lee), from 1992 to 2019. It")
    years = re.findall(r"^\*\*[^*]+\*\* \((\d{4})\): ", told["1"], re.M)
    assert len(years) == 5 and years == sorted(years) and "1 value differs" in told["appendix"]
    films = {c["heading"]: c["text"] for c in run.report.chapters}["## 13 films (director is Ang Lee)"].splitlines()
    assert len(films) == 13 and all(re.fullmatch(r"- .+ \(\d{4}\) \[\d+\]", line) for line in films)
    [pair] = run.report.consistency["contradictions"]
    assert pair["first"] == "Pushing Hands: its field year says 1992" and "is a 1991 comedy-drama" in pair["second"]
    assert "## Values that differ\n\n- Pushing Hands: its field year says 1992 [" in run.report.text


@pytest.mark.parametrize(("topic", "said", "field"), tables("report/styles", end="\n")["comparisons"])
def test_a_comparison_opens_with_a_table_of_fields_and_is_on_nothing_else(shared_wb, topic, said, field):
    report = shared_wb.report(topic, kb="film", cached=False).report
    opening, first = report.chapters[0]["text"], report.sections[0]
    lines = opening[opening.index("|") :].splitlines()
    assert lines[0].count("|") == 4 and set(lines[1]) == set("|- ") and lines[-1].startswith(said)
    assert all(re.fullmatch(r"\|(?: [^|]+ \|){3}", line) for line in lines[2:-2])
    assert field in first["text"] and {claim["verdict"] for claim in first["claims"]} == {"supported"}
    titles = {citation["source"]["title"] for citation in report.run.citations}
    assert titles <= {"The Ice Storm", "Brokeback Mountain", "Crouching Tiger, Hidden Dragon"} and len(titles) == 2


def test_two_sources_of_one_title_that_differ_are_both_named(wb, tmp_path):
    rows = [{"id": i, "title": "Salt Mill", "year": year, "text": text} for i, year, text in (
        ("a", 1853, "Salt Mill is a mill on the Aire."), ("b", 1855, "Salt Mill is a large mill in Saltaire."),
    )]  # fmt: skip
    wb.add_knowledge("mills", [jsonl(tmp_path / "mills.jsonl", rows)])
    report = wb.report("Salt Mill: place", kb="mills", cached=False, review=[]).report
    while report.run.status == "paused":
        report = report.run.approve().report
    [pair] = report.consistency["contradictions"]
    assert {pair["first"], pair["second"]} == {f"Salt Mill: its field year says {year}" for year in (1853, 1855)}
    assert len({*pair["sources"]}) == 2 and "Salt Mill: its field year says 1853 [" in report.text


def test_the_result_has_the_names_of_the_requirement(wb):
    run = wb.report(EN, kb="film", assumptions=["Only films count."], report_type="short", style="bibtex")
    told = json.loads(json.dumps(run.report.to_dict()))
    expected = {"status", "response", "planner", "execution_records", "report", "report_context", "errors", "metrics"}
    assert expected <= told.keys()
    spec = told["planner"]["plan_spec"]
    assert spec["assumptions"].count("Only films count.") == 1
    assert {"task_id", "task_type", "description", "status"} <= spec["task_graph"]["nodes"][0].keys()
    assert {task["status"] for task in spec["task_graph"]["nodes"]} == {"success"}
    record = told["execution_records"][0]
    assert record["tool_calls"][0]["tool"] == record["worker_type"] and record["reflection"]["reasoning"]
    assert told["input"] == EN and [one["role"] for one in told["messages"]] == ["user", "assistant"]
    assert told["execution_context"]["current_task_id"] is None
    assert told["execution_context"]["reflection_retry_counts"] == {}
    assert told["planner"]["plan_context"]["domain_context"] == "film"
    assert record["evidence"] and record["metadata"]["latency_seconds"] >= 0
    assert told["report_id"] == f"{spec['plan_id']}:{spec['version']}:short"
    assert told["report"]["outline"]["sections"][0].keys() >= {"title", "summary", "evidence_ids"}
    assert {"planning_seconds", "execution_seconds", "reporting_seconds"} <= told["metrics"].keys()
    assert "@misc{" in told["response"]


def test_a_second_report_takes_over_what_did_not_change_and_says_where_nothing_is_found(wb, tmp_path):
    wb.add_knowledge("harbour", [harbour(tmp_path / "harbour")])
    topic = "The harbour: bridge, ferry, fish"
    first, again = (wb.report(topic, kb="harbour").report for _ in range(2))
    assert again.cache_hit and again.text == first.text and again.metrics["sections_written"] == 0
    assert not wb.report(topic, kb="harbour", cached=False).report.cache_hit
    report = wb.report("Quantum chromodynamics", kb="harbour").report
    assert report.sections == [] and "Nothing here clearly answers this" in report.text


def test_what_cannot_be_asked_is_said_and_nothing_of_another_person_is_taken(shared_wb, english):
    assert english.report.text
    assert not shared_wb.report(EN, kb="film", user="bob").report.cache_hit
    wb = shared_wb
    with pytest.raises(WorkbenchError, match="Unknown review point"):
        wb.ask(EN, kb="film", review={"outline"})
    with pytest.raises(WorkbenchError, match="writes no report"):
        wb.ask("Who directed Hulk?", kb="film").report  # noqa: B018
    assert wb.ask("Who directed Hulk?", kb="film", review=None).status == "done"


def test_a_person_decides_at_the_outline_and_a_replay_repeats_it(wb):
    run = wb.report("Ang Lee's films: war, food", kb="film", review={"outline"})
    proposed = run.review["action_requests"][0]["args"]
    assert run.review["point"] == "outline"
    with pytest.raises(WorkbenchError, match="not a piece of the evidence"):
        run.edit(sections=[{**proposed["sections"][0], "evidence_ids": ["nowhere"]}])
    war, food, _ = proposed["sections"]
    run.edit(sections=[{**food, "title": "At table"}, war], title="Two of his subjects")
    assert run.status == "done" and run.report.title == "Two of his subjects"
    assert [s["title"] for s in run.report.sections] == ["At table", "War"]
    assert wb.replay(run.run_id).report.text == run.report.text


def test_a_report_that_is_rejected_before_its_plan_is_not_written_and_says_so(shared_wb):
    run = shared_wb.report("Everything, please.", kb="film", review={"clarify"})
    run.reject()
    assert run.status == "done" and run.report.status == "partial"
    assert not run.report.sections and not run.report.text and not run.records
    assert run.answer.startswith("The reviewer stopped the search")


def test_a_fork_at_the_outline_writes_only_what_it_changes(wb):
    run = wb.report("Ang Lee's films: war, food", kb="film", review={"outline"})
    run.approve()
    fork = run.fork(at=run.decisions[0]["review_id"])
    fork.wait()
    first = fork.review["action_requests"][0]["args"]["sections"]
    fork.edit(sections=first[:1])
    assert fork.status == "done" and [s["title"] for s in fork.report.sections] == ["War"]
    assert live_steps(fork) == []


def test_a_kind_of_one_s_own_is_a_few_lines(wb):
    register_report_type(ReportType("brief", statements=2, parts=frozenset(), wanted=("war", "family")))
    try:
        report = wb.report("The films of Ang Lee", kb="film", report_type="brief").report
        assert [s["title"] for s in report.sections][:2] == ["War", "Family"]
        assert "## Introduction" not in report.text and "## Appendix" not in report.text
    finally:
        kinds._TYPES.pop("brief")


def test_sections_of_a_chinese_report_are_named_in_chinese(shared_wb):
    text = shared_wb.report("李安的电影", kb="film", report_type="short").report.text
    assert "\n## 3. 少年派的奇幻漂流" in text, text


def test_the_terminal_writes_a_file_and_reads_it_again(workspace, tmp_path):
    wanted = (ZH, "--kb", "film", "--type", "short")
    done = workbench(workspace, "report", *wanted, "-o", str(tmp_path / "r.md"), WORKBENCH_EMBEDDING_MODEL="auto")
    assert done.returncode == 0, done.stderr
    text = (tmp_path / "r.md").read_text(encoding="utf-8")
    assert text.startswith("# 李安的电影") and "## 参考文献" in text
    wrong = workbench(
        workspace, "report", ZH, "--kb", "film", "-o", str(tmp_path / "r.docx"), WORKBENCH_EMBEDDING_MODEL="auto"
    )
    assert wrong.returncode != 0 and "not a form of a report" in wrong.stderr


@pytest.mark.parametrize("strict", [True, False])
def test_a_signal_that_is_not_strict_runs_what_can_run(wb, strict):
    @wb.register("planner")
    async def planner(query, decision, knowledge, tools) -> Plan:
        said = [("s0", "hybrid_search", []), ("s1", "no_such_tool", []), ("s2", "naive_search", ["s1"])]
        told = {"objective": "", "tool_input": {"query": query}}
        return Plan(
            problem_statement=query, steps=[PlanStep(step_id=i, tool=t, depends_on=d, **told) for i, t, d in said]
        )

    asked = {"kb": "film", "settings": {"strict_plan_signal": strict}}
    run = wb.report("Hulk", **asked)
    if strict:
        assert run.report.status == "failed" and "no_such_tool" in str(run.error)
    else:
        assert run.report.status == "completed" and [s.step_id for s in run.plan.steps] == ["s0"]
        assert run.report.to_dict()["planner"]["signal"]["execution_sequence"] == ["s0"]


QUESTION = {"en": "How are the kilns fired?", "zh": "窑炉是怎样烧制的？"}
TITLE = {"en": "Fuel", "zh": "燃料"}
SAYS = {"en": "Kiln {n} burns {n}00 kilos of dry wood in a day.", "zh": "第{n}座窑炉每天烧掉{n}00公斤干木柴。"}
LANGUAGES = pytest.mark.parametrize("language", ["en", "zh"])


def pieces(count: int, language: str = "en") -> list[RetrievalResult]:
    return [piece(n, SAYS[language].format(n=n)) for n in range(1, count + 1)]


def piece(n: int, text: str, title: str = "", url: str = "") -> RetrievalResult:
    about = {"doc_id": f"d{n}", "title": title, "url": url, "kb_prefix": "notes", "fields": {}}
    kind: Any = {"source_type": "chunk", "granularity": "low_level", "score": 0.9}
    return RetrievalResult(result_id=f"low_level:d{n}#0", source_id=f"d{n}", evidence=text, metadata=about, **kind)


@pytest.fixture
async def context(server: ScriptedServer):
    """Makes contexts with a model that writes, or with other roles too, on a tape."""
    opened = []

    def make(*roles: str, tape: dict[str, Any] | None = None, **settings: Any) -> Context:
        made = memory_context(chat_model="openai:m", chat_base_url=server.url, model_backoff_s=0.01, **settings)
        opened.append(open_chat_model(made.settings))
        models = dict.fromkeys(roles or ("writer",), opened[-1])
        return replace(made, models=models, **(tape or {"tape": Tape(made.runs, "r1")}))

    yield make
    for model in opened:
        await close_chat_model(model)


async def section(context: Context, found: list[RetrievalResult], language: str = "en", **more: Any) -> Draft | None:
    outline: Any = {"title": TITLE[language], "summary": more.pop("summary", "")}
    return await section_by_model(context, QUESTION[language], outline, found, **more)


def repeats(text: str) -> dict[str, str]:
    """A writer that says what each passage says, and cites it."""
    told = [
        f"{body.strip().splitlines()[-1].rstrip('.。')} [{n}]"
        for n, body in passages(text.partition("</evidence>")[0]).items()
    ]
    return {"text": " ".join(f"{one}." for one in told) if re.search("[a-z]{4}", told[0]) else "。".join([*told, ""])}


def claims(text: str) -> dict[str, Any]:
    told = [(n, body.strip().splitlines()[-1]) for n, body in passages(text.partition("</evidence>")[0]).items()]
    return {"claims": [{"text": said, "ids": [n], "entities": [f"Kiln {n}"]} for n, said in told]}


def joins(text: str) -> dict[str, str]:
    """A reducer that keeps every line."""
    lines = re.findall(r"^- (.+?) (\[\d+\])|^(\S.*\[\d+\])$", text.partition("<evidence>")[2], re.M)
    return {"text": "\n".join(f"- {said} {mark}" if said else f"- {whole}" for said, mark, whole in lines)}


WRITES = {"section": lambda text: repeats(text), "map": claims, "reduce": joins}
"""A model that does as it is told. The evidence of a section stands in its instructions."""


def writes(server: ScriptedServer, **roles: Callable[[str], Any]) -> None:
    told = responder(**{**WRITES, **roles})

    def respond(request: dict[str, Any]) -> Reply | None:
        if role_of(request) != "section":
            return told(request)
        whole = "\n".join(str(m["content"]) for m in request["messages"])
        said = {**WRITES, **roles}["section"](whole)
        return said if isinstance(said, Reply) else Reply([said if isinstance(said, str) else json.dumps(said)])

    server.respond = respond


def numbers(text: str) -> list[int]:
    return [int(n) for n in re.findall(r"\[(\d+)\]", text)]


def asked(server: ScriptedServer) -> list[str]:
    return [role_of(request) for request in server.requests]


@LANGUAGES
async def test_more_pieces_are_written_in_passes_that_see_the_end_of_what_stands_there(language, context, server):
    writes(server)
    draft = await section(context(), pieces(19, language), language)
    assert draft and asked(server) == ["section"] * 3 and numbers(draft.text) == list(range(1, 20))
    sent = [str(request["messages"][-1]["content"]) for request in server.requests]
    ends = [text.partition("<answer>")[2].partition("</answer>")[0] for text in sent]
    assert all(len(end) < 800 + 100 for end in ends)
    assert SAYS[language].format(n=8).rstrip(".。") in ends[1] and not numbers(ends[1])


CALLS = {"collapse": 1, "refine": 2, "tree": 2}


@LANGUAGES
@pytest.mark.parametrize("strategy", CALLS)
async def test_from_twenty_pieces_on_they_are_mapped_and_reduced(strategy, language, context, server) -> None:
    writes(server)
    draft = await section(context(reduce_strategy=strategy), pieces(20, language), language)
    assert draft and not draft.notes and sorted(numbers(draft.text)) == list(range(1, 21))
    assert asked(server).count("map") == 3 and asked(server).count("reduce") == CALLS[strategy]
    assert statements(draft.text) and "(Kiln" not in draft.text
    server.requests.clear()
    await section(context(reduce_strategy=strategy, mapreduce=False), pieces(20))
    assert asked(server) == ["section"] * 3


async def test_a_reducer_of_ones_own_is_recorded(context, server) -> None:
    writes(server)

    async def halves(texts, reduce):
        return await reduce([await reduce(texts[::2]), await reduce(texts[1::2])])

    async def nothing(texts, reduce):
        return ""

    live = replace(context(), parts={"reducer": halves})
    draft = await section(live, pieces(20))
    assert draft and asked(server).count("reduce") == 3 and sorted(numbers(draft.text)) == list(range(1, 21))
    live.tape.flush("page")
    calls, sent = [effect for effect in live.tape.calls() if effect.kind == "model"], len(server.requests)
    assert len(calls) == len({effect.key for effect in calls}) and {effect.name for effect in calls} == {"writer"}
    server.respond = lambda _: Reply(status=500)
    again = replace(live, parts={"reducer": nothing}, tape=Tape(live.runs, "r2", "replay", [read(live.runs, "r1")]))
    assert await section(again, pieces(20)) == draft and len(server.requests) == sent, "a replay asks nobody"
    writes(server)
    with pytest.raises(WorkbenchError, match="The reducer gave ''"):
        await section(replace(context(), parts={"reducer": nothing}), pieces(20))


async def test_what_a_hostile_model_brings_in_is_taken_out_and_noted(context, server):
    writes(
        server, section=lambda _: {"text": "It burns [1]. See https://evil.example/x?y=1, and www.evil.example [1]."}
    )
    draft = await section(context(), pieces(3))
    assert draft and "evil" not in draft.text and any("https://evil.example/x" in note for note in draft.notes)

    def hostile(text: str) -> dict[str, Any]:
        told = claims(text)
        told["claims"][0] |= {"text": "It burns [77] (see [1]).", "entities": ["x] [88", "(y)"]}
        return told

    writes(server, map=hostile, reduce=lambda text: {"text": joins(text)["text"] + "\n- It sinks [55]."})
    draft = await section(context(), pieces(20))
    assert draft and not {77, 88, 55} & {*numbers(draft.text)} and any("[55]" in note for note in draft.notes)
