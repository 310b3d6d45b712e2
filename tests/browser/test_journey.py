"""The journey for which the bench exists, by clicking and typing; after each click the run is read from the store."""

from playwright.sync_api import expect

from tests.browser.bench_page import OPEN, QUESTION, BenchPage, newest
from workbench.runs.stored import origin_of


def test_ask_edit_decide_fork_compare(notebook, workspace, store, tmp_path):
    nb = notebook([OPEN, 'wb.bench(kb="film")'])
    nb.run_all()
    page, bench = nb.page, BenchPage(nb.page)

    bench.ask(QUESTION)
    first = newest(store, "paused", decided=0)
    assert first.review["point"] == "plan" and first.records == []

    bench.press("Add step")
    steps = [step.step_id for step in first.plan.steps]
    expect(bench.steps).to_have_count(len(steps) + 1)
    bench.fill("Objective", "The fathers in both films")
    bench.fill("Query", "father family tradition")
    new = bench.steps.last.get_attribute("data-key")
    assert store.run(first.run_id).plan == first.plan  # nothing is kept before it is sent

    bench.depends(steps[0], new)
    bench.choose(new)
    bench.depends(new, steps[0])
    expect(bench.alert.first).to_contain_text("Cycle")
    expect(bench.alert.first).to_contain_text("Which should run first?")
    described = (
        "document.getElementById(document.querySelector('[aria-invalid=true]').getAttribute('aria-describedby'))"
    )
    assert "Cycle" in nb.eval(f"{described}.innerText") and page.locator(".wb-dag-cycle").count()
    expect(bench.primary).to_have_count(0)
    bench.fix()
    nb.wait("!document.querySelector('[aria-invalid=true]') && !document.querySelector('.wb-dag-cycle')")
    objective = bench.root.get_by_label("Objective", exact=True)
    objective.press_sequentially("!")
    assert nb.eval("document.activeElement.tagName") == "TEXTAREA", "what is typed into keeps its focus"
    objective.press("Backspace")
    expect(bench.primary).to_be_enabled()
    expect(bench.primary).to_contain_text("Run as edited")
    bench.press("Run as edited")

    second = newest(store, "paused", decided=1)
    assert second.review["point"] == "reflect"
    assert [version["author"] for version in second.plans] == ["planner", "person"]
    added = second.plan.step(new)
    assert added.objective == "The fathers in both films" and added.tool_input["query"] == "father family tradition"
    assert {record["step_id"] for record in second.records} == {*steps, new}

    bench.press("Keep searching")
    bench.fill("Rewritten query", "Zhu family tradition modernity")
    bench.note("The fathers are the point")
    bench.press("Run as edited")
    third = newest(store, "paused", decided=2)
    assert third.review["point"] == "reflect"
    decision = third.decisions[-1]
    assert decision["action"] == "edit" and decision["note"] == "The fathers are the point"
    assert decision["edits"]["rewrite_query"] == "Zhu family tradition modernity"

    bench.press("Approve")
    done = newest(store, "done", decided=3)
    assert done.answer and done.citations
    expect(page.locator(".wb-answer")).to_contain_text(done.answer[2:40])

    bench.fork("reflect", "edited by you")
    fork = newest(store, "paused", decided=1, runs=2)
    assert origin_of(fork) == done.run_id and fork.review["point"] == "reflect"
    bench.press("Approve")
    ended = newest(store, "done", decided=2, runs=2)
    assert ended.decisions[-1]["action"] == "approve" and ended.to_dict()["figures"]["saved_calls"] >= len(steps)

    bench.view("Compare")
    compared = store.compare(done.run_id, ended.run_id)
    assert compared.parts["where"] == "decision"
    beside = page.locator(".wb-futures")
    for run, letter in ((done, "A"), (ended, "B")):
        expect(beside.locator(f'[data-key="{run.run_id}"] .wb-letter').first).to_have_text(letter)
