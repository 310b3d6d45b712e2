"""Pictures of comparisons, forks and the past: right words and signs, text whatever it says, small at 200 steps."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.test_hostile import ALL, STEERING
from workbench.views.blocks import Table
from workbench.views.comparison import beside, change, lettered
from workbench.views.labels import LANGUAGES, Labels
from workbench.views.markup import draw
from workbench.views.past import checkpoint_list, past_rows
from workbench.views.render import page_html
from workbench.views.runs import runs_table
from workbench.views.terminal import plain

ENGLISH, CHINESE = Labels("en"), Labels("zh")
KINDS = ("added", "removed", "changed", "same", "gained", "lost", "moved", "recited", "shared", "reworded")


def words(html: str) -> str:
    """What is to be read in it."""
    return " ".join(re.sub(r"<[^>]*>", " ", html).split())


def page(document: dict[str, Any], labels: Labels = ENGLISH) -> str:
    return page_html(beside(document, labels), labels, "wb-worked")


def run_of(n: int, text: str = "") -> dict[str, Any]:
    said = f"Who? {text}"
    return {"run_id": f"run{n} {text}", "status": "done", "message": said, "query": said, "kb": "film", "origin": None}


def compared(steps: int, runs: int = 2, text: str = "") -> dict[str, Any]:
    """A comparison of runs, every third step and piece the same; ``text`` stands wherever there is some."""
    others = range(1, runs)
    side = {
        "tool": f"hybrid_search {text}",
        "status": "success",
        "attempts": 1,
        "found": 9,
        "seconds": 0.2,
        "text": text,
    }
    kinds, moves, cites = ("same", "added", "changed"), ("same", "gained", "moved"), ("shared", "lost", "recited")
    found_by = [{"step_id": f"step_{n} {text}", "tool": "t", "rank": 1, "score": 0.5} for n in range(3)]
    citation = {"n": 1, "result_id": "r1", "title": f"Banquet {text}", "url": "", "doc_id": "d", "kb_prefix": "film"}
    decision = {
        **{"review_id": "0-reflect", "point": "reflect", "action": "edit", "edits": {f"query {text}": text or "more"}},
        **{"message": f"words {text}", "who": "person", "note": f"why {text}", "proposed": {"steps": []}},
    }
    cost: dict[str, Any] = {
        "total_s": 0.6,
        "retrieval_s": 0.4,
        "generation_s": 0.1,
        "calls": 6,
        "tokens": 12,
        "about": True,
    }
    cost |= {"evidence": steps, "saved_tokens": 12}
    return {
        "document": "workbench.comparison/1",
        "runs": [run_of(n, text) for n in range(runs)],
        "parts": {"where": "decision", "name": f"0-reflect {text}", "values": [text or "a"] * runs, "differs": []},
        "caveats": [{"what": "settings", "name": f"top_k {text}", "values": [text or "5"] * runs}],
        "plan": [{"changed": {f"step_2 {text}": {"tool_input": [{"query": "a"}, {"q": f"b {text}"}]}}} for _ in others],
        "steps": [
            {
                "step_id": f"step_{n} {text}",
                "same": n % 3 == 0,
                "changes": [kinds[n % 3] for _ in others],
                "sides": [None if n % 3 == 1 else {**side, "replayed": False, "by_hand": False},
                          *({**side, "replayed": n % 3 == 0, "by_hand": False} for _ in others)],
            }
            for n in range(steps)
        ],
        "evidence": [
            {
                "source_id": f"s{n}", "granularity": "chunk", "kb": "film", "title": f"Piece {n} {text}",
                "text_differs": n % 5 == 0,
                "changes": [moves[n % 3] for _ in others],
                "sides": [None if n % 3 == 1 else {"rank": n + 1, "score": 0.5, "found_by": found_by, "tools": []},
                          *({"rank": n + 2, "score": 0.004 if n == 4 else 0.04, "found_by": found_by, "tools": []}
                            for _ in others)],
            }
            for n in range(steps)
        ],
        "decisions": [{"number": 0, "same": False, "differs": ["action"], "sides": [decision] * runs}],
        "claims": [
            {"text": f"Claim {n} {text}", "changes": [cites[n % 3] for _ in others],
             "sides": [{"citations": [citation]}, *(None if n % 3 == 1 else {"citations": []} for _ in others)]}
            for n in range(min(steps, 40))
        ],
        "cost": [{**cost, "saved_calls": 3 * n, "saved_s": 0.2 * n} for n in range(runs)],
    }  # fmt: skip


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_change_has_a_sign_and_a_word(language: str) -> None:
    signs = {kind: change(kind, Labels(language)).split(" ", 1) for kind in KINDS}
    assert {sign for sign, _ in signs.values()} == {"+", "−", "~", "="}
    assert all(len(word) > 1 for _, word in signs.values())
    assert signs["gained"][0] == "+" and signs["lost"][0] == "−" and signs["same"][0] == "="
    assert '<b class="wb-ink wb-run">+ ' in page(compared(3), Labels(language))


def test_what_is_the_same_is_left_out() -> None:
    only = words(page(compared(9)))
    assert "step_1" in only and "Claim 1" in only and "Piece 1" in only
    assert "step_3 hybrid_search" not in only and "3 the same" in only
    assert "Claim 3" in only and "Piece 3 " not in only, "an answer is shown whole"
    assert "Piece 4" not in only and "1 piece scored 0.00 in every run, folded" in only
    assert "Piece 0" in only, "the same place, and another text"


def test_what_differs_is_before_what_is_equal() -> None:
    document = compared(9)
    for part, same in (("claims", "shared"), ("evidence", "same")):
        document[part] = [{**row, "changes": [same], "text_differs": False} for row in document[part]]
    blocks = [block.title for block in beside(document, ENGLISH) if isinstance(block, Table)]
    assert [title.partition(" · ")[0] for title in blocks] == [
        "Steps",
        "Decisions",
        "Answer, claim by claim",
        "Time and cost",
    ]
    assert "Evidence · 9 the same" in words(page(document)) and "Piece 1" not in words(page(document))


def test_numbers_of_each_run() -> None:
    text = words(page(compared(9)))
    assert "6 + 0" in text and "6 + 3" in text
    assert "9 of 9" in text and "0 of 6" in text
    assert "3 recorded calls reused, 200 ms saved, 12 tokens" in text and "about 12" in text
    assert "查询" not in text and "6 + 3" in words(page(compared(9), CHINESE))


def test_what_differs_beside_the_edit_comes_first() -> None:
    document = compared(3)
    document["caveats"].append({"what": "unfinished", "name": "B", "values": ["paused"]})
    head = words(page(document)).partition("Steps")[0]
    for told in ("the setting top_k differs", "B is not finished", "They first differ in decision 0-reflect"):
        assert told in head
    alike = words(page({**document, "parts": None, "caveats": []}))
    assert "No difference" in alike and "differs too" not in alike


@pytest.mark.parametrize("runs", [2, 3, 4])
def test_two_hundred_steps_stay_small(runs: int) -> None:
    document = compared(200, runs)
    first = page(document)
    assert len(first) < 150_000 and "and 93 more" in first
    assert len(plain(beside(document, ENGLISH), 100)) < 100_000
    assert len(words(first).split("step_")) > 20 and ("~ changed B" in words(first)) == (runs > 2)


def test_whatever_they_say_is_text() -> None:
    document = compared(6, 3, ALL)
    checkpoint = {
        "id": "1f1e61e9-97d6-6783-8006-e12ef8231a3a", "graph": ALL, "step": 1, "at": ALL, "ran": [ALL], "next": [ALL],
        "asks": None, "decided": 0,
        "changes": [{"key": ALL, "before": ALL, "after": ALL}, {"key": "records", "added": [ALL], "changed": [ALL]}],
    }  # fmt: skip
    past = {"decisions": [{"review_id": f"0-reflect {ALL}", "point": "reflect", "action": "edit", "edits": {ALL: ALL},
                           "proposal": {}, "message": ALL, "who": ALL, "note": ALL}],
            "records": [], "reflections": [], "evidence": [], "citations": [],
            "figures": {}, "answer": ALL}  # fmt: skip
    moments = past_rows(past, [checkpoint], ENGLISH)
    run = dict.fromkeys(("run_id", "title", "answer", "origin", "kb", "note", "status", "created_at"), ALL)
    cost = {ALL: {"model": ALL, "tokens": 1200, "money": 0.5, "score": 1.0}}
    drawn = [
        draw("past.compared", ENGLISH, runs=lettered(document)),
        page(document),
        runs_table([{**run, "tags": [ALL]}], ENGLISH, total=1, marked=[ALL], costs=cost).html,
        checkpoint_list(moments, ENGLISH, {one.key: f"0-{ALL}" for one in moments}).html,
    ]
    tags = {"b", "button", "circle", "code", "details", "div", "h3", "h4", "i", "li", "p", "path", "rect", "section"}
    tags |= {"span", "strong", "summary", "svg", "table", "tbody", "td", "th", "thead", "tr", "br"}
    for html in drawn:
        assert set(re.findall(r"<([a-zA-Z0-9]+)", html)) <= tags
        assert not re.findall(r"<[^>]*\son[a-z]+\s*=", re.sub(r'"[^"]*"', '""', html))
        assert not STEERING.search(html)
    huge = compared(6, 2, "x" * 1_000_000)
    assert len(page(huge)) < 500_000
