"""Sections and outlines by a model, well-behaved and hostile: what is asked, what is kept of it, what is marked."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from tests.servers import Reply, ScriptedServer
from tests.servers.roles import passages, responder, role_of
from workbench.errors import WorkbenchError
from workbench.language.support import statements
from workbench.models.chat import close_chat_model, open_chat_model
from workbench.parts.reports.writer import Draft, section_by_model
from workbench.ports import Context
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


@LANGUAGES
async def test_more_pieces_are_written_in_passes_that_see_the_end_of_what_stands_there(language, context, server):
    writes(server)
    draft = await section(context(), pieces(19, language), language)
    assert draft and asked(server) == ["section"] * 3 and numbers(draft.text) == list(range(1, 20))
    ends = [m.partition("<answer>")[2].partition("</answer>")[0] for m in map(user, server.requests)]
    assert all(len(end) < 800 + 100 for end in ends)
    assert SAYS[language].format(n=8).rstrip(".。") in ends[1] and not numbers(ends[1])


def user(request: dict[str, Any]) -> str:
    return str(request["messages"][-1]["content"])


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


async def test_an_address_of_no_source_is_taken_out_and_noted(context, server) -> None:
    writes(
        server, section=lambda _: {"text": "It burns [1]. See https://evil.example/x?y=1, and www.evil.example [1]."}
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
