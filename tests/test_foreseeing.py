"""What a person is told before approving: what models took in past runs from there on, beside what budgets leave."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.servers import Reply, ScriptedServer, scripted_server
from tests.servers.roles import responder
from tests.test_roles import CORE, GOOD, KEY, NOTES, QUESTION, step
from workbench.records.foreseeing import FEWEST, MOST, exceeds, foreseen
from workbench.records.store import RunStore
from workbench.session import Workbench
from workbench.views.labels import Labels
from workbench.views.outline import run_text
from workbench.views.review import forecast_text
from workbench.views.review import foreseen as drawn
from workbench.widgets.review import Review

PRICES = '["openai:m"]\ninput = 1000.0\noutput = 2000.0\n'


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    with scripted_server(Reply(["nothing"])) as running:
        running.respond = responder(**GOOD)
        yield running


@pytest.fixture
def bench(tmp_path: Path, server: ScriptedServer) -> Iterator[Callable[..., Workbench]]:
    opened: list[Workbench] = []
    notes = tmp_path / "notes"
    notes.mkdir()
    for name, text in NOTES.items():
        (notes / f"{name}.md").write_text(f"# {name}\n\n{text}\n", encoding="utf-8")
    (tmp_path / "prices.toml").write_text(PRICES, encoding="utf-8")

    def make(**settings: Any) -> Workbench:
        for wb in opened:
            wb.close()
        told = {"chat_model": "openai:m", "chat_base_url": server.url, "chat_api_key": KEY, **CORE}
        wb = Workbench.open(tmp_path / "w", **told, prices=str(tmp_path / "prices.toml"), **settings)
        if "notes" not in wb.knowledge.names():
            wb.add_knowledge("notes", [notes])
        opened.append(wb)
        return wb

    yield make
    opened[-1].close()


def asks(wb: Workbench, times: int = FEWEST, **more: Any) -> list[Any]:
    return [wb.ask(QUESTION, kb="notes", **more) for _ in range(times)]


def test_with_no_past_calls_that_is_what_is_said(bench) -> None:
    run = bench().ask(QUESTION, kb="notes", review=["plan"])
    assert run.review["expected"] == {"runs": 0, "total": {}, "roles": {}, "left": {}}
    assert "no past calls to tell from (0 of the 5" in run_text(run.to_dict())
    assert "没有过去的调用" in forecast_text(run.review, Labels("zh"))[0]


def test_rules_alone_are_told_nothing(bench) -> None:
    run = bench().ask(QUESTION, kb="notes", review=["plan"], models={"all": "rules"})
    assert "expected" not in run.review and forecast_text(run.review, Labels("en")) == ("", [], [])


def test_past_runs_tell_what_is_left_to_pay_at_the_plan_and_after_reflecting(bench, server) -> None:
    wb = bench()
    done = asks(wb)
    assert [call["role"] for call in done[-1].calls()] == ["planner", "grader", "reflector", "writer", "checker"]
    run = wb.ask(QUESTION, kb="notes", review=["plan", "reflect"])
    told = run.review["expected"]
    assert told["runs"] == FEWEST and told["total"]["calls"] == [4, 4, 4], "all but the planner's"
    assert (told["total"]["input"], told["total"]["output"]) == ([28, 28, 28], [20, 20, 20])
    assert told["total"]["tokens"] == [48, 48, 48] and told["total"]["money"] == [0.068, 0.068, 0.068]
    assert sorted(told["roles"]) == ["checker", "grader", "reflector", "writer"]
    assert told["roles"]["writer"]["tokens"] == [12, 12, 12] and told["total"]["seconds"][0] > 0
    text = run_text(run.to_dict())
    assert "Models from here on, as in 5 past runs (8 in 10 between): calls 4 · tokens read 28 · written 20" in text
    assert "money 0.0680" in text and "writer: calls 1 · tokens read 7" in text
    panel = Review(Labels("zh"))
    panel.show(run.to_dict())
    assert "依据过去 5 次运行" in panel.forecast.html and "写作：调用 1 次" in panel.forecast.html
    run.approve()
    assert run.review["point"] == "reflect"
    assert run.review["expected"]["total"]["calls"] == [2, 2, 2], "writing and checking are left"
    assert run.approve().status == "done"


def test_other_models_tell_nothing_and_a_fork_and_a_replay_have_what_was_told(bench, server) -> None:
    wb = bench()
    asks(wb)
    other = wb.ask(QUESTION, kb="notes", review=["plan"], models={"writer": "rules"})
    assert other.review["expected"]["runs"] == 0
    first = wb.ask(QUESTION, kb="notes", review=["plan"])
    shown = first.review["expected"]
    first.approve()
    assert wb.ask(QUESTION, kb="notes", review=["plan"]).review["expected"]["runs"] == FEWEST + 1
    assert first.fork(at="0-plan").review["expected"] == shown
    asked = len(server.requests)
    replay = wb.replay(first.run_id)
    kept = [effect for effect in replay.tape() if (effect.kind, effect.name) == ("memory", "costs")]
    assert [effect.value["runs"] for effect in kept] == [FEWEST] and len(server.requests) == asked
    assert wb.ask(QUESTION, kb="notes", review=["plan"]).review["expected"]["runs"] == FEWEST + 1, (
        "what a tape answered cost nothing and tells nothing"
    )


def test_going_on_and_stopping_are_told_apart(bench, server) -> None:
    passes = {"n": 0}

    def reflector(text: str) -> dict[str, Any]:
        passes["n"] += 1
        more = [step("Mei Lan born")] if passes["n"] % 2 else []
        return {"needs": [], "enough": not more, "steps": more, "reasoning": ""}

    server.respond = responder(**{**GOOD, "reflector": reflector})
    wb = bench()
    for run in asks(wb):
        assert [r["should_continue"] for r in run.reflections] == [True, False]
    run = wb.ask(QUESTION, kb="notes", review=["reflect"])
    more = run.review["expected"]["total"]["calls"]
    run.approve()
    assert run.review["point"] == "reflect" and run.review["expected"]["total"]["calls"][1] < more[1]
    assert run.review["expected"]["runs"] == FEWEST


def test_more_than_the_budget_leaves_is_said(bench) -> None:
    asks(bench())
    run = bench(token_budget=40, money_budget=0.5).ask(QUESTION, kb="notes", review=["plan"])
    told = run.review["expected"]
    assert told["left"] == {"tokens": 28, "money": pytest.approx(0.483)}
    assert exceeds(told) == {"tokens": "likely"}
    assert "More than is left of the budget: 28 tokens." in run_text(run.to_dict())
    assert "超出预算余额：28 个词元。" in drawn(run.review, Labels("zh"))
    run.approve()
    again = bench().ask(QUESTION, kb="notes", review=["plan"]).review["expected"]
    assert again["runs"] == FEWEST, "a run that its budget cut short tells too little"


def test_an_interval_holds_what_most_runs_took() -> None:
    told = foreseen([{"writer": {"calls": 1, "input": 100 * n, "tokens": 100 * n}} for n in range(1, 11)])
    assert told["total"]["tokens"] == [190, 550, 910] and told["total"]["calls"] == [1, 1, 1]


def test_one_search_of_an_index_however_many_runs_there_are(tmp_path: Path) -> None:
    store = RunStore(tmp_path / "w.db")
    with store._db.conn as connection:
        rows = ((f"run{n}", "plan", '{"writer":"m"}', f'{{"writer":{{"calls":{n}}}}}') for n in range(20_000))
        connection.executemany("INSERT INTO costs VALUES (?, ?, ?, ?)", rows)
    found = store.costs("plan", {"writer": "m"})
    assert len(found) == MOST and found[0] == {"writer": {"calls": 19_999}}
    sql = "EXPLAIN QUERY PLAN SELECT cost FROM costs WHERE point = ? AND who = ? ORDER BY rowid DESC LIMIT 100"
    (how,) = [row[3] for row in store._db.conn.execute(sql, ("plan", "x"))]
    assert how == "SEARCH costs USING INDEX costs_by_point (point=? AND who=?)"
    store.remove(["run19999"])
    assert store.costs("plan", {"writer": "m"})[0]["writer"]["calls"] == 19_998
    store.close()
