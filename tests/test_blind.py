"""The blind questions are those that were frozen, and their gold stands in the corpora."""

import hashlib
import re

import pytest

from .blind import BLIND, SETS, corpus, questions, rows


def test_the_blind_sets_are_those_that_were_frozen():
    """A vocabulary may change its form, the corpora and the gold may not."""
    frozen = (BLIND / "SHA256SUMS").read_text(encoding="utf-8").splitlines()
    files = [path for path in BLIND.rglob("*") if path.is_file() and path.suffix in (".jsonl", ".csv", ".md", ".rst")]
    found = [f"{hashlib.sha256(p.read_bytes()).hexdigest()}  {p.relative_to(BLIND).as_posix()}" for p in files]
    assert {line for line in found if not line.endswith("  README.md")} == set(frozen)


@pytest.mark.parametrize("name", SETS)
def test_gold_stands_in_the_document_it_names(name):
    texts = {key: re.sub(r"\s+", " ", text) for key, (_, text) in corpus(name).items()}
    assert abs(sum(1 if q["split"] == "dev" else -1 for q in questions(name))) <= 1
    for q in questions(name):
        listed = q.get("list", {})
        for point in (*q["must"], *listed.get("exact", ()), *listed.get("may", ())):
            where = [texts[cite].lower() for cite in point["cite"]]
            assert point["cite"] and any(say.lower() in text for say in point["say"] for text in where), (
                q["id"],
                point,
            )
        assert q["refuse"] == (not (q["must"] or listed or q.get("number"))), q["id"]
        assert set(q.get("number", {}).get("cite", ())) <= texts.keys()


def test_negations_name_what_may_appear_and_what_may_not():
    for q in rows(BLIND / "negation.jsonl"):
        never, exact = ({cite for item in q[part] for cite in item["cite"]} for part in ("never", "exact"))
        assert never and exact and not never & exact and never | exact <= corpus(q["corpus"]).keys(), q["id"]
        assert any(condition["op"] in ("ne", "not_in") for condition in q["conditions"])


def test_the_reworded_questions_are_those_that_were_frozen():
    """Only those in ``fitting`` are of the half that constants are fitted on."""
    folder = BLIND.parent / "reworded"
    for line in (folder / "SHA256SUMS").read_text(encoding="utf-8").splitlines():
        digest, name = line.split("  ")
        assert hashlib.sha256((folder / name).read_bytes()).hexdigest() == digest
        asked = rows(folder / name)
        fits = name.startswith("fitting/")
        assert len(asked) == (30 if fits else 60)
        assert all(q["gold"] and len({q["question"], q["en"], q["zh"]}) == 3 for q in asked)
        last = {hashlib.sha256(f"half {q['id']}".encode()).hexdigest()[-1] for q in asked}
        assert last <= set("02468ace" if fits else "13579bdf")
