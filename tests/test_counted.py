"""Each figure of a run is one number, wherever it stands: bench, page, terminal, JSON, timeline, comparison."""

from __future__ import annotations

import re
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests.servers import Reply, only, scripted_server
from workbench.cli import main
from workbench.records.timeline import bars, busy_ms, span_ms
from workbench.runs.recording import found_pieces
from workbench.runs.run import Run
from workbench.session import Workbench
from workbench.views.labels import Labels, labels_for
from workbench.views.labels.sentences import duration_text, savings_text, tokens_text
from workbench.views.outline import run_html
from workbench.views.run import answer, evidence, head

QUESTION = "Compare The Wedding Banquet and Eat Drink Man Woman"


def words(html: str) -> str:
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]+>", " ", html)))


def agrees(wb: Workbench, run: Run) -> dict[str, Any]:
    """The figures of a run that is done, after every place that shows one of them was seen to show the same."""
    document, labels = run.to_dict(), labels_for(run.message)
    told, evidence_of = document["figures"], found_pieces(run)
    seen = bars(document["log"], document["records"], document["decisions"])
    assert told["total_s"] >= max(told["retrieval_s"], told["generation_s"]) > 0
    assert told["retrieval_s"] == pytest.approx(run.state["merged"]["statistics"]["total_duration_ms"] / 1000, abs=1e-6)
    assert told["retrieval_s"] == pytest.approx(run.state["retrieval_ms"] / 1000, abs=1e-6)
    if not told["saved_calls"]:
        folded = sum(bar.end_ms - bar.start_ms for bar in seen if bar.kind in ("waiting", "stopped"))
        assert 1000 * told["total_s"] == pytest.approx(span_ms(seen) - folded, abs=0.1)
        assert 1000 * told["retrieval_s"] == pytest.approx(busy_ms(b for b in seen if b.kind == "step"), abs=0.1)
    took, saved = duration_text(told, labels), savings_text(told, labels)
    shown = CliRunner().invoke(main, ["show", run.run_id, "--workspace", str(wb.path)], catch_exceptions=False).output
    places = {
        "head": words(head(document, labels).html),
        "page": words(run_html(document)),
        "terminal": " ".join(shown.split()),
        "compared": " ".join(str(wb.compare(run, run)).split()),
    }
    assert [name for name, text in places.items() if took not in text] == []
    beside = wb.compare(run, run).to_dict()
    assert {name: beside["cost"][0][name] for name in told} == told
    assert (
        run.to_dict()["figures"]["saved_calls"] == told["saved_calls"]
        and run.to_dict()["figures"]["saved_s"] == told["saved_s"]
    )
    if told["saved_calls"]:
        assert [name for name, text in places.items() if saved not in text] == []
    assert told["found"] == len(evidence_of) == run.state["merged"]["statistics"]["total_retrieved"]
    assert told["evidence"] == len(run.evidence) == run.state["merged"]["statistics"]["total_evidence_count"]
    assert told["in_prompt"] == run.state["merged"]["statistics"]["used"] == sum(p["in_prompt"] for p in evidence_of)
    assert told["cited"] == sum(p["fate"] == "cited" for p in evidence_of)
    assert labels("answer_sources", n=told["cited"]) in words(answer(document, labels).html)
    assert labels("evidence_kept", **told) in words(evidence(evidence_of, told, labels).html)
    assert labels("evidence", n=told["evidence"], used=told["in_prompt"]) in places["page"]
    return told


def test_every_figure_of_runs_and_forks_is_one_number_wherever_it_stands(wb: Workbench) -> None:
    parallel, paused = wb.ask(QUESTION, kb="film"), wb.ask(QUESTION, kb="film", review=["plan", "reflect"])
    while paused.status == "paused":
        paused.approve()
    told = agrees(wb, parallel)
    cited = next(piece for piece in found_pieces(parallel) if piece["fate"] == "cited")
    sentence = "It was directed by Ang Lee."
    drawn = evidence([cited], told, Labels("en"), chosen=cited["key"], sentence=sentence).rows[cited["key"]]
    assert "<mark>Ang Lee</mark>" in drawn and "Cited for" in drawn and sentence in drawn
    assert told["calls"] == sum(r["status"] != "skipped" for r in parallel.records) > 1 and not told["saved_calls"]
    agrees(wb, paused)
    for fork in (paused.fork(decision={"action": "reject"}, at="1-reflect"), wb.replay(parallel.run_id)):
        made = agrees(wb, fork)
        assert made["calls"] == 0 < made["saved_calls"] and made["retrieval_s"] == 0
    assert (made["saved_calls"], made["saved_s"]) == (told["calls"], told["retrieval_s"])


@pytest.mark.parametrize("counted", [True, False], ids=["the server counts", "it does not"])
def test_tokens_are_the_servers_own_count_or_about(workspace: Path, counted: bool) -> None:
    chunks = ["The Wedding Banquet ", "is of 1993 [1]."]
    usage = {"prompt_tokens": 1290, "completion_tokens": 8, "total_tokens": 1298} if counted else None
    with (
        scripted_server(Reply(chunks, usage=usage)) as server,
        Workbench.open(
            workspace, chat_model="openai:scripted", chat_base_url=server.url, chat_api_key="k", **only("writer")
        ) as wb,
    ):
        run = wb.ask(QUESTION, kb="film")
        told = agrees(wb, run)
        assert run.answer == "".join(chunks) and told["cited"] == 1
        [effect] = [e for e in run.tape() if e.tokens]
        assert effect.counted == counted and (effect.tokens == 1298 or not counted)
        cost = wb.compare(run, run)
        shown = tokens_text(effect.tokens, not counted, Labels("en"))
        assert shown.startswith("about ") != counted
        assert shown in str(cost)
        fork = run.fork()
        assert wb.compare(run, fork).cost[1]["saved_tokens"] == effect.tokens
