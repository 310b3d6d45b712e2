"""What holds for every input: plans, reducers, running to the end, merging, names, loaders.

``HYPOTHESIS_PROFILE=long pytest tests/test_properties.py`` draws many more.
"""

from __future__ import annotations

import json
import tempfile
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.inputs.feeds import FILMS, LIGHT
from workbench.errors import PlanError
from workbench.graphs.execute import make_record, unended
from workbench.graphs.retrieval import next_wave
from workbench.knowledge.reading import corpus
from workbench.language.names import names_in
from workbench.language.question import read
from workbench.plans import Plan, PlanBudget, PlanStep, last_records, unkeepable
from workbench.session import Workbench
from workbench.state import keyed
from workbench.text import clean, detect_language, fold, sentences, terms, visible
from workbench.tools.registry import ToolRegistry, check

TEXT = st.text(st.characters(), max_size=60)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=12,
)
TOOLS = ToolRegistry()


@st.composite
def dags(draw: st.DrawFn) -> Plan:
    """A plan without a fault, its steps in any order."""
    steps = []
    for n in range(draw(st.integers(0, 9))):
        before = sorted(draw(st.sets(st.integers(0, n - 1), max_size=3))) if n else []
        steps.append(
            PlanStep(
                step_id=f"s{n}",
                objective="o",
                tool=draw(st.sampled_from(["naive_search", "local_search"])),
                tool_input={"query": "q"},
                depends_on=[f"s{b}" for b in before],
                priority=draw(st.integers(1, 3)),
                condition=draw(st.sampled_from(["always", "always", "if_insufficient"])),
                budget=PlanBudget(max_retries=draw(st.integers(0, 2))),
            )
        )
    mode = draw(st.sampled_from(["sequential", "parallel", "adaptive"]))
    return Plan(steps=draw(st.permutations(steps)), execution_mode=mode)


@given(dags())
def test_a_plan_comes_back_from_its_json_and_differs_in_nothing(plan: Plan) -> None:
    again = Plan.load(json.loads(json.dumps(plan.dump())))
    assert again == plan and again.plan_id == plan.plan_id
    assert plan.diff(again) == {"added": [], "removed": [], "changed": {}, "plan": {}}
    assert plan.problems() == []


@given(dags(), st.data())
def test_a_cycle_is_named_and_never_ordered(plan: Plan, data: st.DataObject) -> None:
    pairs = [(s.step_id, d) for s in plan.steps for d in s.depends_on]
    if not pairs:
        return
    late, early = data.draw(st.sampled_from(pairs))
    bad = plan.replace(early, depends_on=[*plan.step(early).depends_on, late])
    assert any("Cycle" in p["message"] for p in bad.problems())
    with pytest.raises(PlanError, match="Cycle"):
        bad.topological_order()


def test_ten_thousand_steps_are_refused_at_once() -> None:
    steps = [
        PlanStep(step_id=f"s{n}", objective="", tool="naive_search", depends_on=[f"s{n - 1}"] * (n > 0))
        for n in range(10_000)
    ]
    (found,) = Plan(steps=steps).problems()
    assert "10,000 steps" in found["message"] and found["fix"]


@given(JSON)
def test_any_json_as_a_tools_input_is_a_plan_or_a_problem(value: object) -> None:
    plan = Plan(steps=[PlanStep(step_id="a", objective="o", tool="naive_search", tool_input={"query": value})])
    problems = check(plan, TOOLS)
    assert all(p["message"] and p["fix"] for p in problems)
    if not problems:
        assert isinstance(value, str) or set(value) == {"$from"}
        json.dumps(plan.dump()).encode()


def test_what_holds_itself_is_refused() -> None:
    inside: dict = {}
    inside["again"] = inside
    assert "nested deeper" in unkeepable(inside)


ROWS = st.lists(st.fixed_dictionaries({"id": st.integers(0, 4), "v": st.integers()}), max_size=8)


@given(ROWS, ROWS)
def test_a_reducer_doubles_nothing_keeps_the_order_and_lets_the_newest_win(old: list, new: list) -> None:
    reduce = keyed("id")
    once = reduce(reduce(None, old), new)
    assert reduce(once, new) == once
    assert [r["id"] for r in once] == list(dict.fromkeys(r["id"] for r in [*old, *new]))
    assert {r["id"]: r["v"] for r in once} == {r["id"]: r["v"] for r in [*old, *new]}


@given(ROWS)
def test_the_last_attempt_counts_in_whatever_order_records_come(rows: list) -> None:
    step = PlanStep(step_id="a", objective="", tool="t")
    records = [make_record(step, attempt, 1, "skipped", "") for attempt in dict.fromkeys(r["v"] for r in rows)]
    assert last_records(records) == last_records(reversed(records))


@given(dags(), st.data())
def test_every_step_ends_once_and_nothing_waits_for_ever(plan: Plan, data: st.DataObject) -> None:
    records, activated = [], data.draw(st.sets(st.sampled_from([s.step_id for s in plan.steps] or ["x"])))
    state = {"plan": plan.dump(), "iteration": 1, "activated": sorted(activated)}
    for _ in range(100):
        reasons = plan.blocked_steps(records, activated)
        records += [make_record(plan.step(i), 1, 1, "skipped", "", error=why) for i, why in reasons.items()]
        wave = next_wave(plan, records, activated, TOOLS)
        if not wave:
            break
        assert len(wave) == 1 or plan.execution_mode != "sequential"
        for step in wave:
            attempt = last_records(records).get(step.step_id, {"attempt": 0})["attempt"] + 1
            status = data.draw(st.sampled_from(["success", "partial", "failed", "timeout", "cancelled"]))
            records.append({**make_record(step, attempt, 1, "skipped", ""), "status": status})
    ends = plan.ends(records)
    left = unended({**state, "records": records}, "over", stops=True)
    assert set(ends) | set(left) == set(plan.by_id()) and not set(ends) & set(left)
    assert len({(r["step_id"], r["attempt"]) for r in records}) == len(records)
    unasked = {s.step_id for s in plan.steps if s.condition == "if_insufficient" and s.step_id not in activated}
    for waiting in left:
        assert waiting in unasked or any(d in left for d in plan.step(waiting).dependencies())


@pytest.fixture(scope="module")
def films(tmp_path_factory: pytest.TempPathFactory):
    folder = tmp_path_factory.mktemp("films")
    (folder / "f.jsonl").write_text("\n".join(map(json.dumps, FILMS)), "utf-8")
    with Workbench.open(folder / "ws", **LIGHT) as wb:
        wb.add_knowledge("film", [folder / "f.jsonl"])
        yield wb.knowledge.get("film")


PHRASES = st.lists(
    st.sampled_from(["喜宴", "《", "》", "Ang Lee", "李安", " and ", "和", "“", "”", "1993", "的导演"]) | TEXT
).map("".join)


@given(PHRASES)
def test_a_name_stands_where_it_is_said_to_stand(films, text: str) -> None:
    text = clean(text)
    found = names_in(text, [films])
    assert all(text[n["start"] : n["end"]] == n["surface"] for n in found)
    assert all(one["end"] <= two["start"] for one, two in pairwise(found))
    for mention in films.link(text):
        assert 0 <= mention["start"] < mention["end"] <= len(text)
    read(text, [films])


@given(st.text(st.characters(), max_size=200))
def test_texts_of_any_kind_are_read_and_shown(text: str) -> None:
    safe = clean(text)
    assert (clean(safe) == safe and safe.encode() and "\x00" not in safe) or not safe
    assert "\x1b" not in visible(text) and "\u202e" not in visible(text)
    assert "".join("".join(sentences(safe)).split()) == "".join(safe.split())
    assert fold(safe) is not None and terms(safe) is not None and detect_language(safe) in ("zh", "en")


@given(st.sampled_from(["a.jsonl", "a.csv", "a.md", "a.txt", "a.jsonl.gz"]), st.binary(max_size=300))
@example("a.csv", b"\n")
def test_any_bytes_give_documents_or_problems(name: str, raw: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, name)
        path.write_bytes(raw)
        loaded = corpus.load([path])
    assert all(p["reason"] and p["file"] == str(path) for p in loaded.problems)
    assert all(d.digest() and d.text.encode() for d in loaded.documents)


@given(st.lists(st.binary(max_size=80).map(lambda raw: raw.replace(b"\n", b"")) | st.none() | JSON, max_size=8))
def test_a_good_line_is_never_lost_among_bad_ones(rows: list) -> None:
    lines, good = [], []
    for number, row in enumerate(rows):
        if row is None:
            good.append(f"good-{number}")
            lines.append(json.dumps({"id": good[-1], "text": f"text {number}"}).encode())
        else:
            lines.append(row if isinstance(row, bytes) else json.dumps({"text": "x", "m": row}).encode())
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "a.jsonl")
        path.write_bytes(b"\n" + b"\n".join(lines))
        loaded = corpus.load([path])
    assert [d.doc_id for d in loaded.documents if d.doc_id.startswith("good-")] == good
    accounted = len(loaded.documents) + len(loaded.problems)
    assert accounted == sum(bool(line.strip()) for line in lines)
