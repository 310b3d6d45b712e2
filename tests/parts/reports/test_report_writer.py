"""Sections and outlines by a model, well-behaved and hostile: what is asked, what is kept of it, what is marked."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from tests.servers import DEADLINE_S, Reply, ScriptedServer, scripted_server
from tests.servers.roles import passages, responder, role_of
from workbench.errors import WorkbenchError
from workbench.graphs.check import supported, with_marks
from workbench.language.citing import renumbered
from workbench.language.support import lost, statements
from workbench.models.chat import close_chat_model, open_chat_model
from workbench.parts.reports.writer import (
    STRATEGIES,
    Draft,
    abstract_by_model,
    outlined_by_model,
    reduced,
    section_by_model,
)
from workbench.ports import Context
from workbench.records.prompts import SHIPPED
from workbench.records.tape import Tape
from workbench.state import RetrievalResult
from workbench.testing import memory_context

QUESTION = {"en": "How are the kilns fired?", "zh": "窑炉是怎样烧制的？"}
TITLE = {"en": "Fuel", "zh": "燃料"}
SAYS = {"en": "Kiln {n} burns {n}00 kilos of dry wood in a day.", "zh": "第{n}座窑炉每天烧掉{n}00公斤干木柴。"}
LANGUAGES = pytest.mark.parametrize("language", ["en", "zh"])


def pieces(count: int, language: str = "en") -> list[RetrievalResult]:
    return [piece(n, SAYS[language].format(n=n)) for n in range(1, count + 1)]


def piece(n: int, text: str, title: str = "", url: str = "") -> RetrievalResult:
    about = {"doc_id": f"d{n}", "title": title, "url": url, "kb_prefix": "notes", "fields": {}}
    return RetrievalResult(
        result_id=f"low_level:d{n}#0",
        source_id=f"d{n}",
        source_type="chunk",
        granularity="low_level",
        score=0.9,
        evidence=text,
        metadata=about,
    )


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    with scripted_server(Reply(["nothing"])) as running:
        yield running


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
    told = {"question": QUESTION[language], "title": TITLE[language], "summary": ""}
    return await section_by_model(context, **{**told, "pieces": found, **more})


def seen(text: str) -> dict[int, str]:
    return passages(text.partition("</evidence>")[0])


def repeats(text: str) -> dict[str, str]:
    """A writer that says what each passage says, and cites it."""
    told = [f"{body.strip().splitlines()[-1].rstrip('.。')} [{n}]" for n, body in seen(text).items()]
    return {"text": " ".join(f"{one}." for one in told) if re.search("[a-z]{4}", told[0]) else "。".join([*told, ""])}


def claims(text: str) -> dict[str, Any]:
    told = [(n, body.strip().splitlines()[-1]) for n, body in seen(text).items()]
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


# --- how it is written ---


@LANGUAGES
async def test_a_few_pieces_are_written_in_one_call(language, context, server) -> None:
    writes(server)
    draft = await section(context(), pieces(5, language), language, wish="Be brief.", summary="what burns")
    assert draft is not None and asked(server) == ["section"] and not draft.notes
    assert numbers(draft.text) == [1, 2, 3, 4, 5]
    told = "\n".join(str(m["content"]) for m in server.requests[0]["messages"])
    assert "Be brief." in told and "what burns" in told and TITLE[language] in told
    assert ("报告的问题" in told) == (language == "zh")


@LANGUAGES
async def test_more_pieces_are_written_in_passes_that_see_the_end_of_what_stands_there(
    language, context, server
) -> None:
    writes(server)
    draft = await section(context(), pieces(19, language), language)
    assert draft and asked(server) == ["section"] * 3 and numbers(draft.text) == list(range(1, 20))
    ends = [m.partition("<answer>")[2].partition("</answer>")[0] for m in map(user, server.requests)]
    assert all(len(end) < 800 + 100 for end in ends)
    assert SAYS[language].format(n=8).rstrip(".。") in ends[1] and not numbers(ends[1])


def user(request: dict[str, Any]) -> str:
    return str(request["messages"][-1]["content"])


async def test_no_end_is_shown_where_none_is_wanted_and_long_pieces_make_smaller_calls(context, server) -> None:
    writes(server)
    long = [piece(n, f"{'Wood is dry. ' * 300}Kiln {n} burns wood.") for n in range(1, 5)]
    draft = await section(context(section_max_context_characters=0), long)
    assert draft and len(server.requests) == 2, "10,000 characters of evidence a call"
    assert all("Wood is dry" not in user(request) for request in server.requests)


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
    again = replace(live, parts={"reducer": nothing}, tape=Tape(live.runs, "r2", "replay", ["r1"]))
    assert await section(again, pieces(20)) == draft, "a replay takes it from the tape"
    with pytest.raises(WorkbenchError, match="The reducer gave ''"):
        await section(replace(context(), parts={"reducer": nothing}), pieces(20))


@pytest.mark.parametrize("parallel", [True, False])
async def test_batches_are_mapped_at_the_same_time_or_one_after_another(parallel, context, server) -> None:
    batches, open_, most = 5, 0, 0
    told = responder(**WRITES)

    def respond(request: dict[str, Any]) -> Reply:
        """With all of them open at once, none is answered before the last has come."""
        nonlocal open_, most
        open_, most = open_ + 1, max(most, open_ + 1)
        server.changed.notify_all()
        if parallel and role_of(request) == "map":
            assert server.changed.wait_for(lambda: most >= batches, DEADLINE_S)
        open_ -= 1
        return told(request)

    server.respond = respond
    draft = await section(context(parallel_map=parallel), pieces(40))
    assert draft and asked(server).count("map") == batches and most == (batches if parallel else 1)


async def test_the_strategies_by_themselves() -> None:
    made: list[list[str]] = []

    async def reduce(texts):
        made.append([*texts])
        return "".join(texts)

    for strategy in STRATEGIES:
        for count in range(1, 9):
            made.clear()
            letters = list("abcdefgh"[:count])
            assert await reduced(letters, reduce, strategy, 1_000) == "".join(letters) and made
    made.clear()
    await reduced(["a" * 400] * 5, reduce, "collapse", 200)
    assert [len(group) for group in made] == [2, 2, 2, 2], "two fit; four of them do not, and there is an end"
    made.clear()
    await reduced(list("abcd"), reduce, "tree", 1)
    assert made == [["a", "b"], ["c", "d"], ["ab", "cd"]]
    made.clear()
    await reduced(list("abcd"), reduce, "refine", 1)
    assert made == [["a", "b"], ["ab", "c"], ["abc", "d"]]


async def test_a_replay_needs_no_server(context, server) -> None:
    writes(server)
    for count in (5, 19, 40):
        live = context()
        draft = await section(live, pieces(count))
        live.tape.flush("page")
        before = len(server.requests)
        server.respond = lambda _: Reply(status=500)
        tape = Tape(live.runs, "r2", "replay", ["r1"])
        assert await section(replace(live, tape=tape), pieces(count)) == draft and len(server.requests) == before
        calls = [effect for effect in live.tape.calls() if effect.kind == "model"]
        assert len(calls) == len({effect.key for effect in calls}) and {effect.name for effect in calls} == {"writer"}
        writes(server)


async def test_a_budget_holds_between_the_calls(context, server) -> None:
    writes(server)
    draft = await section(context(token_budget=20), pieces(19))
    assert draft and len(server.requests) == 2 and numbers(draft.text) == list(range(1, 17)), "12 tokens a call"
    assert "WORKBENCH_TOKEN_BUDGET" in draft.notes[0]
    assert await section(context(token_budget=1, tape={"tape": context().tape}), []) is None


async def test_the_claims_stand_where_nothing_joins_them(context, server) -> None:
    writes(server, reduce=lambda _: "I would rather not.", map=lambda text: claims(text) if "[5]" in text else "no")
    draft = await section(context(), pieces(20))
    assert draft and draft.notes and "- Kiln 1 burns 100 kilos of dry wood in a day. [1]\n- Kiln 2" in draft.text
    assert numbers(draft.text) == [*range(1, 17)], "the last batch, of four, gave nothing"
    writes(server, map=lambda _: "no")
    nothing = await section(context(), pieces(20))
    assert nothing and not nothing.text and nothing.notes


async def test_without_a_model_or_evidence_nothing_is_asked(context, server) -> None:
    offline = replace(context(), models={})
    assert await section(offline, pieces(3)) is None and await section(context(), []) is None
    assert await outlined_by_model(offline, "x", pieces(3), []) is None
    assert await abstract_by_model(offline, "x", "It burns [1].") is None and not server.requests


# --- models that misbehave ---


async def checked_text(context: Context, text: str, found: list[RetrievalResult], language: str = "en") -> str:
    """A section as the report has it."""
    return with_marks(text, await supported(context, text, found, QUESTION[language]))


GOOD = {"en": "Kiln 1 burns 100 kilos of dry wood in a day [1].", "zh": "第1座窑炉每天烧掉100公斤干木柴 [1]。"}
UNCITED = {"en": "(without a source)", "zh": "（未注明出处）"}
UNSUPPORTED = {"en": "(not in its sources)", "zh": "（来源中没有依据）"}


@LANGUAGES
async def test_sources_that_do_not_exist_are_taken_out_noted_and_marked(language, context, server) -> None:
    invented = {
        "en": "Whales sing at night [99]. See [here](http://evil.example/a) [0].",
        "zh": "鲸鱼在夜里唱歌【99】。",
    }
    writes(server, section=lambda _: {"text": f"{GOOD[language]} {invented[language]}"})
    here = context()
    draft = await section(here, pieces(3, language), language)
    assert draft and len(server.requests) == 1
    assert numbers(draft.text) == [1] and "evil.example" not in draft.text
    assert any("citations of no evidence were removed: [99]" in note for note in draft.notes)
    marked = await checked_text(here, draft.text, pieces(3, language), language)
    assert UNCITED[language] in marked and GOOD[language] in marked


@LANGUAGES
async def test_what_is_mended_is_taken(language, context, server) -> None:
    said = iter([{"text": GOOD[language].replace("[1]", "[7]")}, {"text": GOOD[language]}])
    writes(server, section=lambda _: next(said))
    draft = await section(context(), pieces(3, language), language)
    assert draft and draft.text == GOOD[language] and draft.notes


QUOTES = {
    "en": "The potter says: “Kiln 1 burns 100 kilos of wet coal in a day.” [1] It is so.",
    "zh": "窑工说：“第1座窑炉每天烧掉100公斤湿煤炭。”[1]确实如此。",
}


@LANGUAGES
async def test_a_quotation_that_is_not_there_is_marked(language, context, server) -> None:
    writes(server, section=lambda _: {"text": f"{GOOD[language]} {QUOTES[language]}"})
    server_says = {"sentences": [{"sentence": n, "verdict": "supported"} for n in (1, 2)]}
    here = context("writer", "checker")
    writes(server, section=lambda _: {"text": f"{GOOD[language]} {QUOTES[language]}"}, checker=lambda _: server_says)
    draft = await section(here, pieces(3, language), language)
    assert draft
    found = await supported(here, draft.text, pieces(3, language), QUESTION[language])
    assert [one["verdict"] for one in found] == ["supported", "unsupported", "uncited"], "whatever the checker says"
    marked = with_marks(draft.text, found)
    assert marked.count(UNSUPPORTED[language]) == 1 and marked.count(UNCITED[language]) == 1
    right = {
        "en": "It is said: “Kiln 1 burns 100 kilos of dry wood in a day.” [1]",
        "zh": f"据说：“{SAYS['zh'].format(n=1)}”[1]",
    }
    [one] = await supported(here, right[language], pieces(1, language), QUESTION[language])
    assert one["verdict"] == "supported" and not one["why"]


@pytest.mark.parametrize(
    "sentence, source, wrong",
    [
        ("“The fire is hot and dry” [1].", "He says the FIRE is hot, and dry.", 0),
        ("“The fire is hot and dry” [1].", "He says the fire is cold and dry.", 1),
        ('"The fire is possible to see" [1].', "The fire is impossible to see.", 1),
        ("He called it “Great Fire” [1].", "Something else.", 0),
        ("「火很热也很干燥」[1]。", "他说火很熱，也很乾燥。", 0),
        ("『火很热也很干燥』[1]。", "他说火很冷也很干燥。", 1),
        ("“The fire … is dry” [1].", "The fire, as we saw, is dry.", 0),
    ],
)
def test_quotations_stand_word_for_word(sentence, source, wrong) -> None:
    assert sum(item.startswith("“") for item in lost(sentence, f"Another. {source}")) == wrong


NOTHING: list[Any] = ["", "   ", "…", "[1]", "nothing at all", {"text": ""}, {"text": " \n"}, {"text": "** [1]"}]


async def test_nothing_is_no_section(context, server) -> None:
    here = context()
    for said in NOTHING:
        server.requests.clear()
        writes(server, section=lambda _, said=said: said)
        draft = await section(here, pieces(3))
        assert draft and not draft.text and draft.notes and len(server.requests) == 2, said


HEADINGS = {
    "en": "# Fuel\n\nFuel\n====\n\n## 1. Fuel\n\n**Fuel**\n\n{good}\n\n### Built in 1850 by whales\n\n- {good}\n1. "
    "{good}",
    "zh": "# 燃料\n\n## 一、燃料\n\n**燃料：**\n\n{good}\n\n### 鲸鱼建于1850年\n\n- {good}\n1. {good}",
}


@LANGUAGES
async def test_repeated_headings_are_gone_and_no_heading_says_anything(language, context, server) -> None:
    good = GOOD[language]
    writes(server, section=lambda _: {"text": HEADINGS[language].format(good=good)})
    here = context()
    draft = await section(here, pieces(3, language), language)
    assert draft and draft.text == f"{good}\n\n- {good}\n- {good}"
    assert await checked_text(here, draft.text, pieces(3, language), language) == draft.text


async def test_tables_links_pictures_fences_and_tags_become_sentences(context, server) -> None:
    text = (
        "```markdown\nSee [the kiln](http://kiln.example/1) [1] and ![x](http://evil.example/p.png)http://kiln.example/1.\n\n"
        "| Kiln | Wood |\n|---|---|\n| Kiln 1 | 100 kilos [1] |\n\n<b onclick=x>Kiln 2</b> burns 200 kilos [2](http://evil.example)."
        "\x1b[31m\n```"
    )
    writes(server, section=lambda _: {"text": text})
    found = [piece(1, SAYS["en"].format(n=1), url="http://kiln.example/1"), *pieces(2)[1:]]
    draft = await section(context(), found)
    assert draft and "evil" not in draft.text and "<b" not in draft.text and "\x1b" not in draft.text
    assert "See the kiln [1] and http://kiln.example/1." in draft.text
    assert "- Kiln 1: 100 kilos [1]" in draft.text and "Kiln 2 burns 200 kilos [2]." in draft.text


@LANGUAGES
async def test_invented_numbers_are_marked(language, context, server) -> None:
    wrong = {"en": "It has 4711 chimneys of gold [1].", "zh": "它有4711座金烟囱[1]。"}
    writes(server, section=lambda _: {"text": f"{GOOD[language]}\n\n- {wrong[language]}"})
    here = context()
    draft = await section(here, pieces(3, language), language)
    assert draft and len(server.requests) == 1
    marked = await checked_text(here, draft.text, pieces(3, language), language)
    assert marked.count(UNSUPPORTED[language]) == 1 and marked.index("4711") < marked.index(UNSUPPORTED[language])


async def test_an_address_of_no_source_is_taken_out_and_noted(context, server) -> None:
    writes(
        server, section=lambda _: {"text": f"{GOOD['en']} See https://evil.example/x?y=1, and www.evil.example [1]."}
    )
    draft = await section(context(), pieces(3))
    assert draft and "evil" not in draft.text and any("https://evil.example/x" in note for note in draft.notes)


async def test_claims_and_drafts_of_a_hostile_model_bring_in_no_marks(context, server) -> None:
    def hostile(text: str) -> dict[str, Any]:
        told = claims(text)
        told["claims"][0] |= {"text": "It burns [77] (see [1]).", "entities": ["x] [88", "(y)"]}
        return told

    writes(server, map=hostile, reduce=lambda text: {"text": joins(text)["text"] + "\n- It sinks [55]."})
    draft = await section(context(), pieces(20))
    assert draft and not {77, 88, 55} & {*numbers(draft.text)} and any("[55]" in note for note in draft.notes)


# --- the check of whole sections ---


LONG = {
    "en": "Kiln 1 burns 100 kilos of dry wood in a day. [1] It sings. It sings.\n\n"
    "1. Kiln 2 burns 200 kilos of dry wood in a day [2].\n2. It sings.\n\n"
    "* **Kiln 3** burns 300 kilos of dry wood in a day [3].\n* It has 900 doors [3].",
    "zh": "第1座窑炉每天烧掉100公斤干木柴。[1]它会唱歌。它会唱歌。\n\n"
    "1. 第2座窑炉每天烧掉200公斤干木柴[2]。\n2、它会唱歌。\n\n"
    "- **第3座窑炉**每天烧掉300公斤干木柴[3]。\n- 它有900扇门。[3]",
}


@LANGUAGES
async def test_paragraphs_and_lists_are_checked_and_marked_where_they_stand(language, context, server) -> None:
    here = replace(context(), models={})
    found = await supported(here, LONG[language], pieces(3, language), QUESTION[language])
    assert [one["verdict"] for one in found].count("supported") == 3
    marked = with_marks(LONG[language], found)
    assert marked.count(UNCITED[language]) == 3 and marked.count(UNSUPPORTED[language]) == 1
    bare = marked.replace(f" {UNCITED['en']}", "").replace(f" {UNSUPPORTED['en']}", "")
    assert bare.replace(UNCITED["zh"], "").replace(UNSUPPORTED["zh"], "") == LONG[language]
    assert re.search(r"It sings \(w[^)]*\)\. It sings \(w[^)]*\)\.|唱歌（未[^）]*）。它会唱歌（未[^）]*）。", marked)


async def test_numbers_beyond_the_evidence_stop_no_check(context, server) -> None:
    found = await supported(context("checker"), "It burns [9]. It sinks [0].", pieces(2), "x")
    assert [one["verdict"] for one in found] == ["unsupported", "unsupported"] and not server.requests


async def test_a_checker_is_shown_all_that_is_cited(context, server) -> None:
    long = [piece(n, f"Kiln {n} burns wood. {'It is dry. ' * 200}") for n in range(1, 13)]
    text = "\n".join(f"Kiln {n} burns wood [{n}]." for n in range(1, 13))
    shown_: list[int] = []

    def checker(asked_: str) -> dict[str, Any]:
        sentences = re.findall(r"^(\d+)\. Kiln (\d+) burns wood \[\d+\]\. \(cites (\d+)\)", asked_, re.M)
        for _, kiln, place in sentences:
            assert f"Kiln {kiln} burns" in passages(asked_)[int(place)]
            shown_.append(int(kiln))
        return {"sentences": [{"sentence": int(n), "verdict": "supported"} for n, *_ in sentences]}

    server.respond = responder(checker=checker)
    found = await supported(context("checker"), text, long, "x")
    assert sorted(shown_) == list(range(1, 13)) and len(server.requests) > 1
    assert {one["judge"] for one in found} == {"openai:m"}


# --- outlines and abstracts ---


def part(title: str, *evidence: int) -> dict[str, Any]:
    return {"title": title, "summary": "what burns", "query": "", "evidence": list(evidence)}


@LANGUAGES
async def test_an_outline_names_evidence_that_is_there(language, context, server) -> None:
    server.respond = responder(outline=lambda _: {"sections": [part("# Fuel", 2, 1, 2), part("Heat", 3)]})
    made = await outlined_by_model(context(), QUESTION[language], pieces(3, language), ["wood"])
    assert made == [
        {"title": "Fuel", "summary": "what burns", "query": "Fuel", "evidence": [2, 1]},
        {"title": "Heat", "summary": "what burns", "query": "Heat", "evidence": [3]},
    ]
    assert "wood" in user(server.requests[0]) and ("问题" in user(server.requests[0])) == (language == "zh")


async def test_an_outline_is_mended_once_or_refused(context, server) -> None:
    said = iter([{"sections": [part("Fuel", 9)]}, {"sections": [part("Fuel", 1)]}])
    server.respond = responder(outline=lambda _: next(said))
    made = await outlined_by_model(context(), "x", pieces(3), [])
    assert made and made[0]["evidence"] == [1] and "there is no [9]" in user(server.requests[1])
    for bad in (
        {"sections": []},
        {"sections": [part("Fuel", 0)]},
        {"sections": [part("Fuel")]},
        {"sections": [part("***", 1)]},
        {"sections": [part("Fuel", 1), part("fuel", 2)]},
        {"sections": [part(f"Fuel {n}", 1) for n in range(13)]},
        "nothing",
    ):
        server.requests.clear()
        server.respond = responder(outline=lambda _, bad=bad: bad)
        assert await outlined_by_model(context(), "x", pieces(3), []) is None, bad
        assert len(server.requests) == 2


async def test_an_outline_sees_so_many_pieces_and_no_more(context, server, monkeypatch) -> None:
    server.respond = responder(outline=lambda text: {"sections": [part("Fuel", len(seen(text)))]})
    with monkeypatch.context() as few:
        few.setattr("workbench.parts.reports.writer._MOST_SHOWN", 7)
        made = await outlined_by_model(context(), "x", pieces(40), [])
    assert made and made[0]["evidence"] == [7]
    long = [piece(n, "Wood is dry. " * 200) for n in range(1, 41)]
    made = await outlined_by_model(context(), "x", long, [])
    assert made and 10 < made[0]["evidence"][0] < 30, "as many as a prompt holds, each cut short"


@LANGUAGES
async def test_an_abstract_says_what_the_sections_say(language, context, server) -> None:
    sections = f"{GOOD[language]}\n\n{GOOD[language].replace('[1]', '[2]')}"
    said = {
        "good": f"{GOOD[language]} [99]",
        "empty": "",
        "bare": "Wood.",
    }
    for name, text in said.items():
        server.respond = responder(abstract=lambda _, text=text: {"text": text})
        made = await abstract_by_model(context(), QUESTION[language], sections)
        assert made == (GOOD[language] if name == "good" else None), name


def test_the_prompts_of_a_report_are_there_in_both_languages() -> None:
    for name in ("outline", "section", "map", "reduce", "abstract"):
        assert all((SHIPPED / f"{name}.{language}.toml").is_file() for language in ("en", "zh"))
    assert renumbered("a [1] b [2, 3]", {3: 1}) == ("a b [1]", [1, 2])
