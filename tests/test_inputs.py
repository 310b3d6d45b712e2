"""Whatever people, scripts and broken files give is answered, or refused in words: no traceback, loss or hang."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from tests import bad_inputs
from tests.bad_inputs import FILMS, PLAN, WHEN
from tests.cases import load
from tests.shelves import CORE, environment
from workbench.cli import main
from workbench.errors import RunError, WorkbenchError
from workbench.knowledge.library import check_name
from workbench.language.question import read
from workbench.plans import Plan
from workbench.runs.asking import LONGEST_MESSAGE
from workbench.session import Workbench
from workbench.settings import Settings, all_settings
from workbench.text import clean, detect_language, fold, sentences, terms, visible
from workbench.tools.registry import check

PIECES = (
    WHEN, "喜宴哪一年上映？", "推荐几部类似《喜宴》的电影", "Ang Lee", " ", "\n", "\x00", "\x1b[31m", "\ud800",
    "\u202e", "\u200b", "\ufeff", "\u2028", "\u0301" * 40, "👩‍👩‍👧‍👦", "《", "》", "“", '"', "\\", "../", "{", "]",
    "<script>alert(1)</script>", "${x}", "%s", "before 1990", "1990年代以后", "1e999", "NaN", "null", "compare", "和",
    "and", "not", "NEAR(", "*", "?", "; DROP TABLE runs; --", "。", ",", "..", "；", "=", "&", "\r\n", "臥虎藏龍",
)  # fmt: skip
NAMES = st.sampled_from(
    ("film", "films", "", "general", "../film", "fi\x00lm", "\ud800", "喜宴", "x" * 300, "film ", "FILM", ".")
)
NUMBERS = st.sampled_from((0, -1, 2**63 - 1, 2**63, 10**30, 0.5, -0.0, 1e308, float("nan"), float("inf")))
SHORT = st.lists(st.sampled_from(PIECES), max_size=4).map("".join)
TEXTS = (
    st.lists(st.sampled_from(PIECES), max_size=20).map(" ".join)
    | st.text()
    | st.builds(lambda piece, times: piece * times, st.sampled_from(PIECES), st.sampled_from((1_000, 20_000)))
)
VALUES = st.recursive(
    SHORT | NUMBERS | st.none() | st.booleans(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(SHORT, inner, max_size=3),
    max_leaves=6,
)


@st.composite
def changed(draw: Any, one: Any) -> Any:
    """A JSON value with one place in it replaced, dropped, renamed or doubled."""
    how = draw(st.sampled_from(("inside", "inside", "inside", "replaced", "dropped", "doubled")))
    if not one or not isinstance(one, (dict, list)) or how == "replaced":
        return draw(VALUES)
    if isinstance(one, dict):
        name = draw(st.sampled_from(sorted(one)))
        rest = {key: value for key, value in one.items() if key != name}
        if how == "inside":
            return {**one, name: draw(changed(one[name]))}
        return rest if how == "dropped" else {**rest, draw(SHORT): one[name]}
    place = draw(st.integers(0, len(one) - 1))
    more = {"inside": [draw(changed(one[place]))], "dropped": [], "doubled": [one[place], one[place]]}[how]
    return [*one[:place], *more, *one[place + 1 :]]


@st.composite
def bent(draw: Any, raw: bytes) -> bytes:
    """The bytes with some of them changed, cut or doubled."""
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(raw)))
        put = draw(st.binary(max_size=1) | st.sampled_from((b"\x00", b'"', b"\xff\xfe", b"[" * 50, raw[at:])))
        raw = raw[:at] + put + raw[at + draw(st.integers(0, 2)) :]
    return raw.replace(b"\n", b" ")


def seldom(share: int) -> settings:
    """So many times fewer examples, of what takes long."""
    return settings(max_examples=max(2, settings().max_examples // share))


@contextmanager
def fed() -> Iterator[None]:
    """What is fed is answered, or refused by an error of ours with a text, in good time."""
    began = time.monotonic()
    try:
        yield
    except (WorkbenchError, ValidationError) as error:
        assert str(error).strip(), "refused without a word"
    assert time.monotonic() - began < 60


class Place:
    """An open workspace that knows two films, and a run that waits there."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.wb = Workbench.open(folder / "ws", **CORE)
        self.wb.add_knowledge("film", [FILMS])
        self._paused: Any = None

    def paused(self) -> Any:
        if self._paused is None or self._paused.status != "paused":
            self._paused = self.wb.ask(WHEN, kb="film", review={"plan"}, session="p")
        return self._paused

    def loaded(self, name: str, raw: bytes) -> Any:
        (self.folder / name).write_bytes(raw)
        return load([self.folder / name])


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    made = Place(tmp_path_factory.mktemp("inputs"))
    yield made
    made.wb.close()


RECORD = {"id": "other", "text": "text", "year": 1990, "aliases": ["x"], "names": {"A": ["B"]}}
BAD_LINES = (
    st.binary(max_size=80).map(lambda raw: raw.replace(b"\n", b" "))
    | bent(json.dumps(RECORD).encode())
    | changed(RECORD).map(lambda record: json.dumps(record).encode())
)


@given(st.lists(st.none() | BAD_LINES, max_size=8))
def test_a_good_line_is_never_lost_among_bad_ones(place: Place, rows: list[bytes | None]) -> None:
    good = [f"good-{n}" for n, row in enumerate(rows) if row is None]
    lines = [row or json.dumps({"id": f"good-{n}", "text": "one"}).encode() for n, row in enumerate(rows)]
    lines = [line for line, row in zip(lines, rows, strict=True) if row != b""]
    loaded = place.loaded("a.jsonl", b"\n" + b"\n".join(lines))
    assert [d.doc_id for d in loaded.documents if d.doc_id.startswith("good-")] == good
    assert all(problem["line"] for problem in loaded.problems)
    assert len(loaded.documents) + len(loaded.problems) == sum(bool(line.strip()) for line in lines)


@given(bent(b'2,"some text",x'), bent(b"3,other"))
def test_rows_with_odd_quotes_are_read(place: Place, one: bytes, other: bytes) -> None:
    place.loaded("a.csv", b"\n".join([b"id,text", b"g1,fine", one, other, b"g4,last"]))


@given(
    st.binary() | TEXTS.map(lambda text: text.encode("utf-8", "surrogatepass")) | bent(b"---\nid: a\n---\n# T\ntext"),
    st.sampled_from(("", "utf-16", "gb18030", "utf-8-sig")),
    st.sampled_from(("md", "txt", "csv", "jsonl", "jsonl.gz", "markdown", "tsv")),
)
def test_any_bytes_are_read_under_any_name(place: Place, raw: bytes, encoding: str, ending: str) -> None:
    raw = raw.decode("utf-8", "replace").encode(encoding) if encoding else raw
    loaded = place.loaded(f"a.{ending}", raw)
    assert loaded.documents or loaded.problems or not raw.strip() or ending not in ("txt", "md"), "nothing is said"


@seldom(5)
@given(st.lists(changed({**RECORD, "directors": ["Ang Lee"]}), min_size=3, max_size=3))
def test_what_is_loaded_is_in_the_base(place: Place, records: list[Any]) -> None:
    with fed():
        wanted = {
            d.doc_id for d in place.loaded("kb.jsonl", b"\n".join(json.dumps(r).encode() for r in records)).documents
        }
        report = place.wb.add_knowledge("wild", [place.folder / "kb.jsonl"])
        count = place.wb.knowledge.get("wild").about()["counts"]["documents"]
        assert count == len(wanted) or (count > len(wanted) and report.problems)


@given(changed(PLAN).flatmap(changed))
def test_plans_are_loaded_and_each_problem_has_its_fix(place: Place, wrong: Any) -> None:
    with fed():
        plan = Plan.load(wrong)
        problems = check(plan, place.wb.tools)
        assert all(problem["message"] and problem["fix"] for problem in problems)
        if not problems:
            plan.topological_order()
            plan.critical_path()
            plan.diff(Plan.load(PLAN))


@given(st.sampled_from([*all_settings().model_fields, "nothing"]), VALUES, SHORT)
def test_settings_take_it_or_say_why(name: str, value: Any, text: str) -> None:
    with fed():
        Settings.load(**{name: value})
    text = text.replace("\x00", "").encode("utf-8", "replace").decode()
    with fed(), patch.dict(os.environ, {f"WORKBENCH_{name.upper()}": text}):
        Settings.load()


DOORS: tuple[Callable[[Place, Any], object], ...] = (
    lambda place, name: check_name(name), lambda place, name: place.wb.run(name),
    lambda place, name: place.wb.tools[name], lambda place, name: place.wb.knowledge.get(name),
    lambda place, name: place.wb.runs.list(name), lambda place, name: place.wb.runs.list(3, session_id=name),
    lambda place, name: place.wb.clear(session=str(name)), lambda place, name: place.wb.runs.remove(name),
    lambda place, name: place.wb.knowledge.remove(f"no{name}"), lambda place, name: place.wb.add_knowledge(name, []),
    lambda place, name: place.wb.add_knowledge("other", [name] if isinstance(name, str) and len(name) > 2 else [7]),
)  # fmt: skip


@given(st.sampled_from(DOORS), NAMES | SHORT | VALUES)
def test_names_that_are_none_are_refused(place: Place, door: Callable[[Place, Any], object], name: Any) -> None:
    with fed():
        door(place, name)


@given(TEXTS.map(lambda text: clean(text)[:4_000]))
def test_a_text_is_cut_folded_and_linked_without_a_loss(place: Place, text: str) -> None:
    base = place.wb.knowledge.get("film")
    for look in (fold, terms, detect_language):
        look(text)
    assert clean(text) == text and "\x00" not in text and not {"\x1b", "\u202e"} & set(visible(text))
    assert "".join("".join(sentences(text)).split()) == "".join(text.split())
    found = read(text, [base])["names"]
    assert all(text[name["start"] : name["end"]] == name["surface"] for name in found)
    spans = sorted((name["start"], name["end"]) for name in found)
    assert not any(second[0] < first[1] for first, second in pairwise(spans)), "names overlap"
    assert all(0 <= mention["start"] < mention["end"] <= len(text) for mention in base.link(text))


OPTIONS = {
    "kb": "film", "review": ["plan"], "session": "s", "user": "u", "worker": "film",
    "thresholds": {"min_evidence": 1},
}  # fmt: skip


@seldom(3)
@given(TEXTS, st.sampled_from(sorted(OPTIONS)).flatmap(lambda name: changed({name: OPTIONS[name]})))
def test_what_is_asked_is_kept_and_answered(place: Place, text: str, wrong: Any) -> None:
    own = (
        {name: value for name, value in wrong.items() if name in OPTIONS} if isinstance(wrong, dict) else {"kb": wrong}
    )
    for message, options in ((text, {"session": "q"}), (WHEN, own)):
        with fed():
            run = place.wb.ask(message, **{"kb": "film", **options})
            assert run.message == clean(message) and (run.status == "paused" or (run.status == "done" and run.answer))


ANSWER = {
    "decisions": [{"type": "edit", "edited_action": {"name": "plan", "args": {"query": "Ang Lee", "plan": PLAN}}}],
    "note": "n", "who": "w",
}  # fmt: skip


@seldom(3)
@given(changed(ANSWER).flatmap(changed))
def test_an_answer_that_is_refused_leaves_the_pause_as_it_was(place: Place, wrong: Any) -> None:
    run = place.paused()
    with fed():
        try:
            run.answer_review(wrong)
        except WorkbenchError:
            assert run.status == "paused", run.error
            raise
        assert run.status in ("done", "paused"), run.error


LINES = """
ask WORD --kb film | ask x --kb WORD | ask x --review WORD | ask - --kb film
ask x --kb film --session WORD --user WORD | show WORD | resume WORD | WORD
resume PAUSED --edit EDIT | resume PAUSED --respond WORD | remove WORD
runs --limit WORD --session WORD | memory forget --session WORD --yes
kb add WORD EDIT | kb add film2 WORD | eval retrieval --questions EDIT --kb film
"""


@seldom(2)
@given(
    st.sampled_from(LINES.replace("\n", "|").strip("|").split("|")),
    NAMES | SHORT,
    changed({"query": "x", "plan": PLAN}).map(lambda edit: json.dumps(edit).encode()) | st.binary(),
    st.booleans(),
)
def test_the_command_line_ends_with_a_code_and_a_word(
    place: Place, line: Any, word: str, edit: bytes, as_json: bool
) -> None:
    (place.folder / "edit.json").write_bytes(edit)
    word = word.encode("utf-8", "replace").decode().replace("\x00", "")
    own = {"WORD": word, "EDIT": str(place.folder / "edit.json"), "PAUSED": place.paused().run_id}
    words = [*(own.get(part, part) for part in line.split()), "--workspace", str(place.folder / "ws")]
    done = CliRunner(env=environment()).invoke(main, [*words, *(["--json"] if as_json else [])], input=word.encode())
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    assert done.exit_code in (0, 1, 2, 3, 4), done.output
    assert "Traceback (most" not in done.output and "fault of workbench" not in done.output
    assert done.output.strip() or done.exit_code not in (1, 2), "it failed without a word"


GOOD = b'{"id": "good", "text": "kept"}\n'


def test_a_line_of_a_gigabyte_is_passed_over_in_little_memory(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    with path.open("wb") as file:
        file.write(b'{"id": "first", "text": "kept"}\n')
        file.seek(2**30)
        file.write(b"\n" + GOOD)
    code = (
        "import re, sys; from tests.cases import load; found = load([sys.argv[1]]); "
        "print([d.doc_id for d in found.documents], found.problems[0]['line'], found.problems[0]['reason'], "
        "int(re.search(r'VmHWM:\\s+(\\d+)', open('/proc/self/status').read())[1]) // 1024, sep='|')"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(path)],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parent.parent,
    )
    ids, line, reason, megabytes = done.stdout.strip().split("|")
    assert (ids, line) == ("['first', 'good']", "2")
    assert "1,024 MB" in reason and "cut it" in reason
    assert int(megabytes) < 400


@pytest.mark.parametrize("one", ["喜宴和", "《", "e\u0301", "films directed by Ang Lee after 1990 or "])
@pytest.mark.few(2)
def test_the_longest_question_is_answered_in_seconds_and_a_longer_one_refused(place: Place, one: str) -> None:
    longest = LONGEST_MESSAGE
    begun = time.monotonic()
    run = place.wb.ask((one * longest)[:longest], kb="film", session=f"long {one}")
    assert run.status == "done" and time.monotonic() - begun < 60  # 1 to 7 s; the machine may be busy
    begun = time.monotonic()
    with pytest.raises(RunError, match="100,000 characters"):
        place.wb.ask((one * 100_000)[:100_000], kb="film")
    assert time.monotonic() - begun < 1


def test_the_table_says_what_is_printed(project: Path) -> None:
    made = (project / bad_inputs.FILE).read_text("utf-8")
    assert made == bad_inputs.page(), "python -m tests.bad_inputs"
