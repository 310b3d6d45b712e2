"""The benchmark of memory: what it counts, at a small scale; times are printed by it and asserted by nobody."""

from __future__ import annotations

import importlib
import json
import random
import sys
from pathlib import Path

import pytest

from workbench.records.tape import estimated_tokens

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "experiments"))
memory_costs = importlib.import_module("memory_costs")

HASHING = {"embedding_model": "hashing", "rerank_model": "none"}


@pytest.mark.parametrize("language", ["en", "zh"])
def test_answers_are_as_long_in_either_language(language):
    length = estimated_tokens(memory_costs.answer(random.Random(1), language, 150))
    assert 150 <= length < 175


def test_tokens_stay_few_however_long_the_conversation_was():
    found = memory_costs.tokens(each=1, **HASHING)
    assert found["conversations"] == 2 and found["saved"] > 80
    assert found["tokens"]["window"] <= found["tokens"]["memory"] < found["tokens"]["all"] / 5
    assert sum(found["parts"].values()) == pytest.approx(found["tokens"]["memory"], abs=3)


def test_the_other_parts_measure_what_they_say_and_are_told():
    made = {
        "assembly": memory_costs.assembly(40, 3, **HASHING),
        "growth": memory_costs.growth((20, 80), 2, **HASHING),
        "together": memory_costs.together(2, 2, **HASHING),
        "many": memory_costs.many(2, 10, **HASHING),
    }
    small, large = made["growth"]["sizes"]
    assert (
        small["messages"] == 20
        and large["bytes"] > small["bytes"]
        and set(made["growth"]["exponents"]) == {"mean", "bytes"}
    )
    assert made["together"]["turns"] == 4 and made["assembly"]["calls"] == 3 and made["many"]["conversations"] == 2
    told = memory_costs.text(json.loads(json.dumps(made)))
    assert "40 messages, 3 calls" in told and "exponents" in told and "2 conversations at once, 4 turns" in told
