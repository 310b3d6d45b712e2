"""Replies to one call: each is a fork, and one is chosen by vote, by a judge or by a function."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.parts.evaluate.test_answers import questions, wb
from tests.servers.roles import responder
from tests.servers.scripted import Reply
from workbench.errors import RunError
from workbench.parts.evaluate.samples import sample

__all__ = ["questions", "wb"]

RIGHT, WRONG = "Mei Lan built it in 1993 [1].", "By Mei Lan [1]."


def completions(*texts: str) -> Reply:
    choices = [
        {"index": n, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
        for n, text in enumerate(texts)
    ]
    usage = {"prompt_tokens": 7, "completion_tokens": 5, "total_tokens": 12}
    body = {"id": "1", "object": "chat.completion", "created": 1, "model": "m", "choices": choices, "usage": usage}
    return Reply(body=json.dumps(body).encode())


def ask(wb: Any, server: Any, first: str = WRONG) -> Any:
    server.respond = lambda _: Reply([first])
    return wb.ask("Who built the kiln?", kb="notes")


@pytest.mark.parametrize("takes_n", [True, False])
def test_answers_are_forks_and_the_vote_chooses(wb, server, takes_n) -> None:
    run, others = ask(wb, server), iter([RIGHT, RIGHT, "1993 [1]."])

    def respond(request: dict[str, Any]) -> Reply:
        if request.get("n") and not takes_n:
            return Reply(status=400, message="n is not supported")
        return completions(RIGHT, RIGHT, "1993 [1].") if request.get("n") else completions(next(others))

    server.respond, asked = respond, len(server.requests)
    several = sample(run, "writer", 4)
    assert several.best.answer == RIGHT and several.runs[0] is run and several.counts == (1, 2, 1)
    assert len(server.requests) - asked == (1 if takes_n else 4), "one request where the server takes n"
    assert several.best.run_id != run.run_id and all(
        r.get("replayed") for r in several.best.records if r["status"] != "skipped"
    )
    assert wb.replay(several.best.run_id).answer == RIGHT
    assert list(several.to_frame()["times"]) == [1, 2, 1]


def test_a_function_or_a_judge_chooses(wb, server) -> None:
    run = ask(wb, server)
    server.respond = lambda _: completions(RIGHT, RIGHT)
    assert sample(run, "writer", 3, choose=lambda run: len(run.answer)).best.answer == RIGHT
    with pytest.raises(RunError, match="WORKBENCH_MODELS__JUDGE"):
        sample(run, "writer", 3, choose="judge")
    with pytest.raises(RunError, match="0 calls of planner"):
        sample(run, "planner", 3)


def test_plans_are_sampled_and_a_judge_chooses(wb, server) -> None:
    def plan(query: str) -> dict[str, Any]:
        return {"steps": [{"name": "look", "objective": "look", "tool": "keyword_search", "query": query}]}

    def judge(text: str) -> dict[str, Any]:
        return {"correct": True, "faithful": "1993" in text.partition("<answer>")[2], "reason": ""}

    roles, other = responder(planner=lambda _: plan("zzz"), judge=judge), json.dumps(plan("kiln Mei Lan"))
    server.respond = lambda request: completions(other, other) if "n" in request else roles(request)
    models = {"planner": "openai:m", "writer": "rules"}
    run = wb.ask("When was the kiln built?", kb="notes", models=models, settings={"max_iterations": 1})
    several = sample(run, "planner", 3, choose="openai:m")
    assert several.counts == (1, 2) and several.best.plan.steps[0].tool_input["query"] == "kiln Mei Lan"
    assert "1993" in several.best.answer
