"""One run in which every role asks a model: replayed, forked role by role, and with each role failing in every way."""

import json
import logging
import shutil
from base64 import b64encode
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote
from zipfile import ZipFile

import pytest
from langchain_openai import ChatOpenAI
from pydantic import SecretStr

from tests.servers import Reply, ScriptedServer, scripted_replies
from tests.servers.roles import needs, responder, role_of
from tests.shelves import fill
from tests.test_models import notes_of
from tests.test_roles import CORE, NOTES, step
from workbench.errors import RunError
from workbench.futures.replay import full_document
from workbench.parts.serve import metrics
from workbench.records.tape import canonical
from workbench.runs.stored import snapshot
from workbench.session import Workbench
from workbench.settings import ROLES

KEY = "sk-secret-of-every-role-9914"
FIRST, SECOND = "Where was the person born who built the east kiln?", "And who fired it in 1850?"
ORDER = ["router", "follow_up", "planner", "reflector", "rewriter", "reflector", "writer", "checker"]
"""The calls of the run: nothing is found at first, so that the question is said again."""


def reflects(text: str) -> dict[str, Any]:
    """Enough as soon as there is a passage; without one it knows no step, so that the rules say what to do."""
    enough = "[1] " in text
    told = [{"need": n, "verdict": "met", "passages": [1]} for n, _ in enumerate(needs(text), 1)] if enough else []
    return {"needs": told, "enough": enough, "steps": [], "reasoning": "As I see it."}


GOOD: dict[str, Callable[[str], Any]] = {
    "router": lambda _: {"bases": ["notes"], "reason": "kilns"},
    "follow_up": lambda _: {"question": "Who fired the east kiln of 1850?"},
    "planner": lambda _: {"steps": [step("zzz", "keyword_search")], "acceptance_criteria": ["Mei Lan built"]},
    "rewriter": lambda _: {"query": "east kiln builder"},
    "reflector": reflects,
    "writer": lambda _: "Mei Lan was born in Jingdezhen [1].",
    "checker": lambda _: {"sentences": [{"sentence": 1, "verdict": "supported"}]},
    "judge": lambda _: {"correct": True, "faithful": True, "reason": ""},
}


@pytest.fixture(scope="module")
def indexed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two knowledge bases and a first exchange, so that there is something to route and to follow up."""
    folder = tmp_path_factory.mktemp("every") / "w"
    with Workbench.open(folder, **CORE) as wb:
        fill(wb, NOTES)
        fill(wb, {"Boats": "A boat floats."}, "boats")
        wb.ask(FIRST, session="s", kb="notes")
    return folder


@pytest.fixture
def bench(tmp_path: Path, indexed: Path, server: ScriptedServer, opens: Any) -> Callable[..., Workbench]:
    place = Path(shutil.copytree(indexed, tmp_path / "w", ignore=shutil.ignore_patterns("knowledge")))
    (place / "knowledge").symlink_to(indexed / "knowledge", target_is_directory=True)
    server.respond = responder(**GOOD)
    told = {"chat_model": "openai:m", "chat_base_url": server.url, "chat_api_key": KEY, **CORE}
    return lambda **settings: opens(place, **{**told, **settings})


def ask(wb: Workbench, **options: Any) -> Any:
    """The run in which every role is asked: a follow-up without a named knowledge base."""
    return wb.ask(SECOND, session="s", **options)


def other(said: Any) -> Any:
    """A role that says something else, in the same form."""
    return lambda text: said


def test_a_replay_of_every_role_is_the_same_bytes_with_the_server_off(bench, server) -> None:
    wb = bench()
    run = ask(wb)
    roles = [call["role"] for call in run.calls()]
    assert [*sorted(roles[:2], reverse=True), *roles[2:]] == ORDER and run.status == "done", "the first two at once"
    asked, told = len(server.requests), canonical(full_document(run))
    server.respond = lambda _: Reply(status=500)
    assert canonical(full_document(wb.replay(run.run_id))) == told and len(server.requests) == asked
    wb.close()
    with Workbench.open(wb.path, **CORE) as offline:
        assert canonical(full_document(offline.replay(run.run_id))) == told, "in another session, without any model"
    assert len(server.requests) == asked


OTHERWISE: dict[str, tuple[Any, list[str]]] = {
    "router": ({"bases": ["notes"], "reason": "clay"}, []),
    "follow_up": ({"question": "Who fired the west kiln?"}, ORDER[2:7]),
    "planner": ({"steps": [step("Mei Lan")], "acceptance_criteria": ["Mei Lan"]}, ["reflector", *ORDER[6:]]),
    "rewriter": ({"query": "Mei Lan"}, ["reflector", "writer"]),
    "reflector": ({"needs": [], "enough": True, "steps": [], "reasoning": "Fine."}, []),
    "writer": ("The kiln burns coal [1].", ["checker"]),
    "checker": ({"sentences": [{"sentence": 1, "verdict": "partly"}]}, []),
    "judge": ({"correct": False, "faithful": False, "reason": ""}, []),
}
"""What each role says otherwise, and who at least must be asked again for it."""


@pytest.mark.parametrize("role", [role for role in ROLES if role in OTHERWISE])
@pytest.mark.few(3)
def test_a_fork_with_one_prompt_changed_makes_no_call_that_does_not_depend_on_it(role, bench, server) -> None:
    wb = bench()
    run = ask(wb)
    stricter = {role: {"system": wb.prompts[role].system + "\nBe strict."}}
    before = len(server.requests)
    fork = run.fork(prompts=stricter)
    made = list(map(role_of, server.requests[before:]))
    assert made == [role] * ORDER.count(role), "the same reply: nothing behind it is asked"
    assert [c["role"] for c in fork.calls() if not c["replayed"]] == made and fork.answer == run.answer
    said, again = OTHERWISE[role]
    server.respond = responder(**{**GOOD, role: other(said)})
    before = len(server.requests)
    run.fork(prompts={role: {"system": wb.prompts[role].system + "\nBe stricter."}})
    made = list(map(role_of, server.requests[before:]))
    assert set(again) <= set(made) and made[:1] == ([role] if role in ORDER else [])
    depends = {one for one in made if ORDER.index(one) < ORDER.index(role)} if role in ORDER else set(made)
    assert depends <= ({"reflector"} if role == "rewriter" else set()), "nothing before it is asked"


REFUSAL = {"index": 0, "message": {"role": "assistant", "content": None, "refusal": "I will not."}}
REFUSED = {"id": "x", "created": 0, "model": "m", "object": "chat.completion", "choices": [REFUSAL]}
FAILS = scripted_replies("roles", KEY)
FAILS["refusal"] = (Reply(body=json.dumps(REFUSED).encode()), {"tries": 1, "words": "refus"})
FAILS["endless"] = (Reply(["word "] * 100), {"tries": 1, "words": "WORKBENCH_CHAT_MAX_CHARACTERS"})
FAILS["endless"][1]["settings"] = {"chat_max_characters": 300}
"""What the server does, how often it is asked, what is told, and with which limits; the writer: test_models."""
SAYS_SO: dict[str, Callable[[Any], Any]] = {
    "router": lambda run: run.state["route_decision"]["reason"],
    "follow_up": lambda run: [c["reply"] for c in run.calls().by_role("follow_up") if c["failed"]],
    "planner": lambda run: [run.plan.metadata["instead_of"], run.plan.metadata["refused"]],
    "rewriter": lambda run: run.reflections[0]["signals"]["rewrite_note"],
    "reflector": lambda run: [r["signals"]["model_refused"] for r in run.reflections],
    "checker": lambda run: [c["reply"] for c in run.calls().by_role("checker") if c["failed"]],
}
"""Where the record of a run says that a role's model was not followed."""


# Roles that fill in a form ask in one way: each way with one of them, each role once.
PAIRS = [("planner", way) for way in FAILS] + [
    pair for pair in zip(SAYS_SO, FAILS, strict=False) if pair[0] != "planner"
]


@pytest.mark.parametrize(("role", "way"), PAIRS)
@pytest.mark.few(5)
def test_a_server_that_fails_leaves_the_role_to_its_default_and_is_told(role, way, bench, server) -> None:
    reply, case = FAILS[way]
    server.respond = responder(**{**GOOD, role: other(reply)})
    run = ask(bench(**case.get("settings", {})))
    assert run.status == "done", run.error
    asked = sum(role_of(request) == role for request in server.requests)
    times = len(run.calls().by_role(role)) or 1
    assert asked == case["tries"] * times, "no more often than the table of docs/explanation/models-that-fail.md says"
    assert case["words"] in json.dumps(SAYS_SO[role](run))
    assert KEY not in json.dumps([run.to_dict(), run.calls(), notes_of(run)])
    if role == "checker":
        assert run.state["support"] and not any(one["judge"] for one in run.state["support"]), "the rules checked"


def sure(text: str, **more: Any) -> dict[str, Any]:
    return {"needs": [], "enough": False, "steps": [], "reasoning": "", **more}


def met(need: int, *passages: int) -> Callable[[str], Any]:
    return lambda t: sure(t, needs=[{"need": need, "verdict": "met", "passages": passages}], enough=True)


WRONG: dict[tuple[str, str], tuple[Callable[[str], Any], str]] = {
    ("router", "invents"): (other({"bases": ["vault"], "reason": "x"}), "did not route"),
    ("follow_up", "never stops"): (other({"question": "kiln " * 500}), "as follow_up, so the rules do it"),
    ("planner", "loops"): (other({"steps": [step("a", depends_on=["look"])]}), "llm"),
    ("planner", "never stops"): (other('{"steps": [' + "1," * 20_000), "CHAT_MAX_CHARACTERS"),
    ("planner", "plans 50 steps"): (other({"steps": [step(f"s{n}") for n in range(50)]}), "at most 6"),
    ("planner", "invents a tool"): (other({"steps": [step("x", "rm_rf")]}), "tool"),
    ("reflector", "loops"): (lambda t: sure(t, steps=[step("zzz", "keyword_search")]), "which was made already"),
    ("reflector", "never stops"): (lambda t: sure(t, steps=[step(f"more {len(t)}")]), ""),
    ("reflector", "cites nothing"): (met(1), ""),
    ("reflector", "invents ids"): (met(1, 99), "names [99], and there are passages 1 to"),
    ("writer", "loops"): (other("The kiln burns wood [1]. " * 2_000), "CHAT_MAX_CHARACTERS"),
    ("writer", "invents ids"): (other("The kiln is haunted [99]."), "(without a source)"),
    ("checker", "invents ids"): (other({"sentences": [{"sentence": 40, "verdict": "supported"}]}), ""),
    ("checker", "finds all supported"): (other({"sentences": [{"sentence": 1, "verdict": "supported"}]}), "example"),
}
"""Who is wrong in which way: what it says, and what the record says of it."""


@pytest.mark.parametrize(("role", "way"), WRONG, ids=[f"{role} {way}" for role, way in WRONG])
@pytest.mark.few(7)
def test_a_model_that_is_wrong_ends_and_the_record_says_what_was_overruled(role, way, bench, server) -> None:
    says, words = WRONG[role, way]
    good = {**GOOD, role: says}
    if (role, way) == ("checker", "finds all supported"):
        good["writer"] = other("The kiln is shown at http://kiln.example/east [1].")
    server.respond = responder(**good)
    wb = bench(max_iterations=3)
    run = ask(wb)
    assert run.status == ("failed" if (role, way) == ("writer", "loops") else "done"), run.error
    assert len(server.requests) <= 30 and len(run.reflections) <= 3 and len(run.plan.steps) <= 20
    made = [json.dumps([r["tool"], r["raw_input"]], sort_keys=True) for r in run.records if r["status"] == "success"]
    assert len(made) == len(set(made)), "no search is made twice"
    assert {s.tool for s in run.plan.steps} <= set(wb.tools) and run.state["kb_prefix"] in wb.knowledge.names()
    signals = [r["signals"] for r in run.reflections]
    decided = [run.state["route_decision"], run.plan.metadata, signals, run.answer, run.state["support"], run.error]
    told = json.dumps([decided, notes_of(run)], ensure_ascii=False)
    assert words in told, told
    seen = [entry for r in run.reflections for entry in r["signals"]["needs"]]
    assert all(entry["by"] for entry in seen if entry.get("verdict") == "met"), "met by a passage that there is"
    if run.status == "done" and way in ("cites nothing", "invents ids", "finds all supported") and role == "writer":
        assert {one["verdict"] for one in run.state["support"]} == {"uncited"} and not run.citations
    if way == "finds all supported":
        assert [one["verdict"] for one in run.state["support"]] != ["supported"], (
            "no model outranks an address of no source"
        )


PASSWORD, PROXY, OWN, TMDB = "p@ss/of:roles-4711", "proxy-pass-4712", "sk-of-an-object-4713", "tmdb-secret-4714"
SECRETS = (KEY, PASSWORD, PROXY, OWN, TMDB)


def spellings(secret: str) -> set[str]:
    """A secret as files may hold it."""
    basic = [b64encode(f"me:{secret}".encode()).decode()]
    return {secret, quote(secret, safe=""), json.dumps(secret)[1:-1], *basic}


def test_no_key_and_no_password_is_in_anything_that_a_full_run_leaves(
    bench, server, tmp_path, monkeypatch, caplog, capfd
) -> None:
    caplog.set_level(logging.DEBUG)
    monkeypatch.setenv("HTTP_PROXY", server.url.replace("//", f"//me:{PROXY}@").removesuffix("/v1"))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    prices = tmp_path / "prices-of-4715.toml"
    prices.write_text('["openai:writer-m"]\ninput = 1.0\noutput = 1.0\n', encoding="utf-8")
    failing = {"reflector", "writer"}

    def echoes(role: str) -> Callable[[str], Any]:
        """A server that tells everything that it was sent when it fails, and what its own address was."""
        key = OWN if role == "checker" else KEY
        sent = json.dumps([server.headers[-1], key, PASSWORD, quote(PASSWORD, safe="")])
        return lambda text: Reply(status=401, message=sent) if role in failing else GOOD[role](text)

    server.respond = lambda request: responder(**{role: echoes(role) for role in GOOD})(request)  # of this request
    away = f"http://me:{quote(PASSWORD, safe='')}@far.invalid/v1"
    far = ChatOpenAI(model="far", api_key=SecretStr(OWN), base_url=away)
    models: dict[str, Any] = {role: f"openai:{role}-m" for role in ROLES}
    wb = bench(
        **{"models": {**models, "checker": far}, "prices": str(prices), "tmdb_key": TMDB, "embedding_api_key": KEY},
        chat_base_url=server.url.replace("//", f"//me:{quote(PASSWORD, safe='')}@"),
    )
    run = ask(wb)
    assert run.status == "failed" and "(key)" in run.error and "(key)" in str(SAYS_SO["reflector"](run))
    told = [run.error, str(run), repr(run), run._repr_mimebundle_()["text/html"], json.dumps(run.to_dict())]
    told += [json.dumps(run.calls())]
    failing.remove("writer")
    failing.add("checker")
    run.resume()
    assert run.status == "done" and "(key)" in str(SAYS_SO["checker"](run)), "through the proxy"
    assert any("proxy-authorization" in headers for headers in server.headers)
    again = run.fork(prompts={"planner": {"system": wb.prompts["planner"].system + " Be strict."}})
    wb.export(run.run_id, tmp_path / "w" / "capsule.zip")
    told += [json.dumps([one.to_dict(), one.calls(), list(one.events())], default=str) for one in (run, again)]
    told += [str(run), repr(run), run._repr_mimebundle_()["text/html"], run.calls()._repr_html_()]
    told += [run.calls().to_frame().to_csv(), str(wb), repr(wb), repr(wb.settings), str(wb.settings)]
    told += [str(metrics.run_spans(snapshot(run))), str(wb.compare(run, again)), str(wb.bench()._repr_mimebundle_())]
    with pytest.raises(RunError, match="is a secret"):
        run.fork(settings={"chat_base_url": f"http://me:{PASSWORD}@other.invalid/v1"})
    with pytest.raises(RunError, match="is a secret"):
        run.fork(settings={"tmdb_key": TMDB})
    files = {f: f.read_bytes() for f in wb.path.rglob("*") if f.is_file()}
    assert any(f.name.endswith("-wal") for f in files), "while it is open"
    wb.close()
    files |= {f.with_suffix(".closed"): f.read_bytes() for f in wb.path.rglob("*") if f.is_file()}
    with ZipFile(tmp_path / "w" / "capsule.zip") as capsule:
        files |= {Path("capsule") / name: capsule.read(name) for name in capsule.namelist()}
    told += [*capfd.readouterr(), *(r.getMessage() for r in caplog.records)]
    for secret in SECRETS:
        for form in spellings(secret):
            assert not [f for f, kept in files.items() if form.encode() in kept], form
            assert not [text[:80] for text in told if form in text], form
    assert not [f for f, kept in files.items() if prices.name.encode() in kept], "where a person's files are"
