"""The document of a run is what its published schema says, in every status."""

import json

import jsonschema
import pytest

from tests import handmade
from workbench.records.document import SCHEMA_FILE, RunDocument, json_schema, run_document, schema_text

ASKED_FOR = ["run_id", "status", "answer", "citations", "route_decision", "plan", "records", "reflections", "review"]
ASKED_FOR += ["statistics", "stop_reason", "message", "session_id", "decisions", "error", "kb_prefix"]


def fresh():
    nothing = dict.fromkeys(["answer", "error", "stop_reason", "review", "route_decision", "plan", "merged"])
    empty = {name: [] for name in ["citations", "records", "reflections", "decisions", "log"]}
    return handmade.run(status="running", **nothing, **empty, statistics={})


def test_the_published_schema_is_the_generated_one():
    assert SCHEMA_FILE.read_text("utf-8") == schema_text(), (
        "python -m workbench.records.document > workbench/records/run.schema.json"
    )


@pytest.mark.parametrize("run", [handmade.run(), handmade.paused(), fresh()], ids=["done", "paused", "fresh"])
def test_documents_keep_to_the_schema(run):
    document = run_document(run)
    jsonschema.Draft202012Validator(json_schema()).validate(document)
    assert json.loads(json.dumps(document)) == document
    # Where a date was in play; of an answer without a model; joined by Run.to_dict.
    sometimes = {"as_of", "answer_kind", "execution_log"}
    assert set(document) == set(RunDocument.__annotations__) - sometimes


def test_a_script_finds_what_it_needs():
    document = run_document(handmade.run())
    assert set(ASKED_FOR) <= set(document)
    assert [step["step_id"] for step in document["plan"]["steps"]][:2] == ["step_0_喜宴", "step_1_饮食男女"]
    assert [(c["n"], c["source"]["licence"]) for c in document["citations"]] == [
        (1, "CC BY-SA 4.0"),
        (2, "CC BY-SA 4.0"),
    ]
    first = document["evidence"][0]
    assert (first["n"], first["title"]) == (1, "The Wedding Banquet")
    assert first["tools"] == ["hybrid_search", "naive_search"]


def test_the_schema_refuses_what_it_does_not_know():
    document = {**run_document(handmade.run()), "status": "somehow", "extra": 1}
    problems = {error.message for error in jsonschema.Draft202012Validator(json_schema()).iter_errors(document)}
    assert len(problems) == 2


def test_a_plan_may_come_as_json_already():
    as_json = run_document(handmade.run(plan=handmade.plan().dump()))
    assert as_json["plan"] == run_document(handmade.run())["plan"]
