"""The tree of forks: what was made of which run, what was edited in it; cheap, and safe whatever the rows say."""

from __future__ import annotations

import json

import pytest

from workbench.errors import UnknownRun
from workbench.futures.tree import tree
from workbench.session import Workbench

ENGLISH, CHINESE = "Recommend comedies directed by Ang Lee", "对比《喜宴》和《饮食男女》的风格"


def row(run_id: str, sources: tuple[str, ...] = (), message: str = "Who?", **more) -> dict:
    options = {"review": [], **({"tape": {"mode": "fork", "sources": list(sources)}} if sources else {})}
    return {
        **{"run_id": run_id, "message": message, "status": "done", "created_at": "2026-11-22T00:00:00+00:00"},
        **{"options": {**options, **more}, "steps": None, "calls": None, "decided": 0, "plan": None},
    }


def test_every_run_with_what_was_edited_in_it(wb: Workbench) -> None:
    run = wb.ask(CHINESE, kb="film", review=["plan", "reflect"]).approve()
    run.approve()
    assert run.status == "done"
    step = run.plan.steps[1].step_id
    plan = run.fork(plan=run.plans[0]["plan"].replace(step, objective="别的"), mismatch="rules", rest="rules")
    decision = run.fork(decision={"action": "reject"}, at="1-reflect")
    asked = run.fork(at="0-plan")
    settings = run.fork(settings={"max_iterations": 1}, query=ENGLISH, mismatch="rules", rest="rules")
    again = wb.replay(run.run_id)
    below = decision.fork(review=[])
    other = wb.ask(ENGLISH, kb="film")
    found = wb.runs.tree()
    nodes = {node["run_id"]: node for node in found.nodes}
    assert [(n["run_id"], n["depth"]) for n in found.nodes] == [
        *((other.run_id, 0), (run.run_id, 0), (plan.run_id, 1), (decision.run_id, 1), (below.run_id, 2)),
        *((asked.run_id, 1), (settings.run_id, 1), (again.run_id, 1)),
    ]
    edits = {name: nodes[one.run_id]["edits"] for name, one in
             {"plan": plan, "decision": decision, "asked": asked, "settings": settings, "again": again, "below": below,
              "run": run}.items()}  # fmt: skip
    assert edits == {
        "plan": [{"what": "plan", "added": [], "removed": [], "changed": [step]}],
        "decision": [{"what": "decision", "at": "1-reflect", "action": "reject", "fields": []}],
        "asked": [{"what": "asked_anew", "at": "0"}],
        "settings": [{"what": "query", "query": ENGLISH}, {"what": "settings", "settings": {"max_iterations": 1}}],
        "again": [],
        "below": [{"what": "review", "review": []}],
        "run": [],
    }
    assert nodes[asked.run_id]["status"] == "paused" and nodes[again.run_id]["mode"] == "replay"
    for one in (plan, decision, again):
        saved = nodes[one.run_id]["saved"]
        assert saved["saved_calls"] == one.to_dict()["figures"]["saved_calls"] > 0
        assert saved["saved_s"] == one.to_dict()["figures"]["saved_s"]
    only = wb.runs.tree(below)
    assert (only.here, {n["run_id"] for n in only.nodes}) == (below.run_id, set(nodes) - {other.run_id})
    assert wb.runs.tree(run.run_id).nodes == only.nodes
    assert "重新询问" in str(only) and "决定 2，反思：叫停" in str(only)
    assert json.loads(json.dumps(found.to_dict())) == found.to_dict()
    wb.runs.remove(decision.run_id)
    left = {n["run_id"]: n for n in wb.runs.tree().nodes}
    assert left[below.run_id]["depth"] == 0 and left[below.run_id]["gone"] == [decision.run_id]
    with pytest.raises(UnknownRun):
        wb.runs.tree("nobody")


def test_a_run_that_is_made_of_itself_is_shown_once() -> None:
    rows = [row("c", ("b",)), row("b", ("a", "x")), row("a", ("c",)), row("own", ("own",))]
    found = tree(rows, lambda _: "done")
    assert sorted(node["run_id"] for node in found.nodes) == ["a", "b", "c", "own"]
    (b,) = [node for node in found.nodes if node["run_id"] == "b"]
    assert (b["also"], b["gone"]) == (["x"], ["x"])


def test_a_long_chain_and_hostile_words() -> None:
    hostile = "<img src=x onerror=alert(1)> \x1b[2J\u202e"
    rows = [row(f"r{n}", (f"r{n - 1}",) if n else (), f"{hostile} {n}") for n in range(3000, -1, -1)]
    found = tree(rows, lambda _: "done", "r3000")
    assert [node["depth"] for node in found.nodes] == list(range(3001))
    page, text = found._repr_html_(), str(found)
    assert "<img" not in page and "\x1b" not in page + text and "\u202e" not in page + text
    assert "and 2801 more" in text
