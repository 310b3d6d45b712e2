"""The blind questions are those that were frozen, and their gold stands in the corpora."""

import hashlib
import re
from datetime import datetime

import pytest

from workbench.text import sentences

from .blind import BLIND, SETS, corpus, questions, rows

KINDS = (".jsonl", ".csv", ".md", ".rst", ".canvas")
CONVERSATIONS = ("film_en", "film_zh", "work_en", "work_zh", "friends_en", "family_zh")


def test_the_blind_sets_are_those_that_were_frozen():
    """A vocabulary may change its form, the corpora and the gold may not."""
    frozen = (BLIND / "SHA256SUMS").read_text(encoding="utf-8").splitlines()
    files = [path for path in BLIND.rglob("*") if path.is_file() and path.suffix in KINDS]
    found = [f"{hashlib.sha256(p.read_bytes()).hexdigest()}  {p.relative_to(BLIND).as_posix()}" for p in files]
    assert {line for line in found if not line.endswith("README.md")} == set(frozen)


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


def _halved(asked, key):
    """Whether every other row is ``dev``, of all sorted by kind and the hash of their id."""
    assert len({row["id"] for row in asked}) == len(asked)
    order = sorted(asked, key=lambda row: (row[key], hashlib.sha256(row["id"].encode()).hexdigest()))
    return [row["split"] for row in order] == ["test" if place % 2 else "dev" for place in range(len(order))]


@pytest.mark.parametrize("name", CONVERSATIONS)
def test_what_is_asked_of_a_conversation_rests_on_its_turns(name):
    turns, asked = rows(BLIND / "memory" / name / "turns.jsonl"), questions(f"memory/{name}")
    texts = {turn["id"]: turn["text"] for turn in turns}
    times = [datetime.fromisoformat(turn["time"]) for turn in turns]
    assert 60 <= len(texts) == len(turns) <= 120 and times == sorted(set(times))
    assert all(turn["id"].startswith(f"{name}:{turn['session']}:") and turn["text"] for turn in turns)
    assert 6 <= len({turn["session"] for turn in turns}) <= 10
    assert len(asked) >= 25 and {q["lang"] for q in asked} == {"en", "zh"} and len({q["type"] for q in asked}) == 7
    assert _halved(asked, "type")
    for q in asked:
        assert q["conv"] == name and set(q["gold"]) <= texts.keys(), q["id"]
        assert bool(q["gold"]) == bool(q["answer"]) == (q["type"] != "abstention"), q["id"]
        assert ("stale" in q) == (q["type"] == "update") and not set(q["answer"]) & set(q.get("stale", ())), q["id"]


def test_topics_of_reports_rest_on_their_documents():
    """The gold of a public set is not here to be looked at."""
    topics, corpora = rows(BLIND / "reports" / "topics.jsonl"), {name: corpus(name) for name in SETS}
    assert len({t["id"] for t in topics}) == len(topics) >= 24
    for half in ("open", "reserved"):
        some = [t for t in topics if t["half"] == half]
        assert {t["lang"] for t in some} == {"en", "zh"} and len({t["corpus"] for t in some}) >= 6
    for t in topics:
        assert t["half"] in ("open", "reserved") and len(t["gold"]) == len(set(t["gold"])) <= 20, t["id"]
        assert {fact["doc"] for fact in t["facts"]} <= set(t["gold"]) and bool(t["facts"]) == bool(t["gold"]), t["id"]
        assert t["corpus"] not in corpora or set(t["gold"]) <= corpora[t["corpus"]].keys(), t["id"]


def test_labels_of_sentences_stand_beside_what_their_document_says():
    labels, corpora = rows(BLIND / "reports" / "labels.jsonl"), {name: corpus(name) for name in SETS}
    assert len({label["sentence"] for label in labels}) == len(labels) == 60
    assert {(label["lang"], label["supported"]) for label in labels} == {
        (x, y) for x in ("en", "zh") for y in (True, False)
    }
    for label in labels:
        assert label["supported"] == (label["kind"] in ("quoted", "paraphrase")), label["id"]
        if documents := corpora.get(label["corpus"]):
            text = documents[label["doc"]][1].replace('\\"', '"').replace("\n", " ")
            assert all(one in text for one in sentences(label["passage"])), label["id"]
