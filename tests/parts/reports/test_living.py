"""An update of a report writes only the sections whose evidence changed."""

import asyncio
import os
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests import forked
from tests.harbour import TITLES, TOPIC, harbour, prompt_of, title_of, writes
from tests.servers import scripted_server
from tests.shelves import CORE, PROJECT, environment, opened, workbench
from workbench.errors import WorkbenchError
from workbench.session import Workbench

TEXTS = {
    "bridge": "The Long Bridge has 40 arches. It was built in 1902 of red stone.",
    "storm": "The storm of 1911 broke two arches of the Long Bridge.",
    "light": "The lighthouse stands at the mouth of the harbour. Its lamp burns oil.",
    "ferry": "The ferry crosses the harbour 4 times a day. A ferry ticket costs two marks.",
    "fish": "Herring is landed at the harbour in autumn. The fish market opens at five.",
}

ADDED = "A ferry ticket costs two marks. Children cross on the ferry for one mark."


class Harbour:
    """A workspace of a few documents, each a file that can be changed, added and removed."""

    def __init__(self, wb: Workbench, folder: Path):
        self.wb, self.folder, self.topic = wb, folder, "The harbour: bridge, ferry, fish"
        folder.mkdir()
        self.put(**TEXTS)

    def put(self, **told: str) -> None:
        """Documents by name; what is empty goes."""
        for name, text in told.items():
            file = self.folder / f"{name}.md"
            file.write_text(f"# {name.capitalize()}\n\n{text}\n", encoding="utf-8") if text else file.unlink()
        self.wb.add_knowledge("harbour", [self.folder])

    def report(self, **options: object):
        return self.wb.report(self.topic, kb="harbour", **options).report


@pytest.fixture
def wb(tmp_path: Path) -> Iterator[Workbench]:
    with opened(tmp_path / "workspace") as one:
        yield one


@pytest.fixture
def town(wb: Workbench, tmp_path: Path) -> Harbour:
    return Harbour(wb, tmp_path / "harbour")


def sections(report) -> dict[str, str]:
    return {one["title"]: one["text"] for one in report.sections}


def written(report) -> set[str]:
    return {one["title"] for one in report.sections if not one["reused"]}


def same_but(before, after, *titles: str) -> bool:
    """Whether all sections but these are equal to the byte, and only these were written."""
    one, other = sections(before), sections(after)
    others = all(one[title] == other[title] for title in one if title not in titles)
    return others and written(after) == set(titles) and after.metrics["sections_written"] == len(titles)


def test_only_the_section_of_a_document_that_changed_came_or_went_is_written(town):
    old = town.report()
    assert old.consistency["contradictions"] == []
    town.put(ferry=TEXTS["ferry"].replace("4 times", "6 times"))
    changed = old.update().report
    assert same_but(old, changed, "Ferry") and "6 times" in changed.text and "4 times" not in changed.text
    assert changed.run.plan.plan_id == old.run.plan.plan_id
    assert changed.update().report.cache_hit
    town.put(Tariff=ADDED)
    more = changed.update().report
    assert same_but(changed, more, "Ferry") and "Children cross" in more.text
    town.put(Survey="The Long Bridge has 42 arches.")
    both = more.update().report
    assert same_but(more, both, "Bridge")
    town.put(storm="")
    less = both.update().report
    assert same_but(both, less, "Bridge") and "The storm" not in less.text


def test_an_outline_of_a_person_stays(town):
    run = town.wb.report(town.topic, kb="harbour", review={"outline"})
    first = run.review["action_requests"][0]["args"]["sections"]
    run.edit(sections=[{**first[1], "title": "Ferry crossing"}, first[0]])
    assert run.status == "done"
    old = run.report
    town.put(survey="The Long Bridge has 42 arches. The bridge was measured.")
    new = old.update().report
    assert [one["title"] for one in new.sections] == ["Ferry crossing", "Bridge"]
    assert same_but(old, new, "Bridge") and "42 arches" in sections(new)["Bridge"]


def test_a_capsule_gives_the_report_again_where_there_is_no_corpus(town, tmp_path):
    old = town.report()
    town.put(Tariff=ADDED)
    new = old.update()
    for report in (old, new.report):
        capsule = town.wb.export(report.run.run_id, tmp_path / f"{report.run.run_id}.zip")
        with opened(tmp_path / "empty") as other:
            run = other.import_capsule(capsule)
            again = other.replay(run.run_id).report
            assert run.report.text == again.text == report.text and again.sections == report.sections
            for form in ("md", "html"):
                first = report.write(tmp_path / f"a.{form}", replace=True).read_bytes()
                assert run.report.write(tmp_path / f"r.{form}", replace=True).read_bytes() == first
            assert again.write(tmp_path / "again.md", replace=True).read_text(encoding="utf-8") == report.text
            with pytest.raises(WorkbenchError, match="harbour"):
                run.report.update()


def test_the_terminal_shows_what_changed_and_writes_the_update(town, tmp_path):
    old = town.report().run.run_id
    town.put(Tariff=ADDED)
    town.wb.close()
    where = tmp_path / "workspace"
    done = workbench(where, "report", "--update", old, "-o", str(tmp_path / "new.md"))
    assert done.returncode == 0, done.stderr
    assert "Sections written: 1" in done.stderr
    assert "Children cross on the ferry" in (tmp_path / "new.md").read_text(encoding="utf-8")
    assert workbench(where, "report", "Topic", "--update", old).returncode == 2


KILLED = """
import os, sys
from tests.shelves import opened
from workbench.parts.reports import graph as report

real = report.checked
async def dying(*given):
    await real(*given)
    os.kill(os.getpid(), 9)
if sys.argv[3] == "die":
    report.checked = dying
with opened(sys.argv[1]) as wb:
    print(wb.run(sys.argv[2]).report.update().run_id)
"""


def test_an_update_that_is_killed_goes_on_and_two_at_once_are_two_reports(town, tmp_path):
    old = town.report()
    text, before = old.text, sections(old)
    town.put(ferry=TEXTS["ferry"].replace("4 times", "6 times"))
    town.wb.close()
    where = tmp_path / "workspace"
    words = [sys.executable, "-c", KILLED, str(where), old.run.run_id]
    told = {"env": {**environment(), **{f"WORKBENCH_{k.upper()}": v for k, v in CORE.items()}}, "cwd": PROJECT}
    assert forked.run([*words, "die"], **told).returncode == -signal.SIGKILL
    with opened(where) as wb:
        run = wb.runs.list()[0]
        assert run.status == "interrupted" and wb.run(old.run.run_id).report.text == text
        new = run.resume().report
        assert new.status == "completed" and written(new) == {"Ferry"}
    both = [forked.Popen([*words, "live"], stdout=subprocess.PIPE, text=True, **told) for _ in range(2)]
    ids = {one.communicate(timeout=120)[0].strip() for one in both}
    assert len(ids) == 2 and [one.returncode for one in both] == [0, 0]
    with opened(where) as wb:
        reports = [wb.run(one).report for one in ids]
        assert {one.text for one in reports} == {new.text} and wb.run(old.run.run_id).report.text == text
        del before["Ferry"]
        assert all(before.items() <= sections(one).items() for one in reports)


KILLS = (
    "outliner before", "outliner behind", "review_outline paused", "review_outline behind",
    "section behind", "consistency behind", "assemble before", "assemble behind",
)  # fmt: skip
MORE = "herring"
SLOW = "Ferry"


def settings(url: str) -> dict[str, Any]:
    return {**CORE, "chat_base_url": url or "http://127.0.0.1:9/v1", "models": {"writer": "openai:m" if url else ""}}


def go_on(wb: Workbench) -> Any:
    """Begin the report, or go on with it: a section more is asked for at its outline, and the end is approved."""
    runs = wb.runs.list()
    run = runs[0] if runs else wb.report(TOPIC, kb="harbour", review={"outline"})
    if run.status == "interrupted":
        run.resume()
    elif runs and run.status == "paused":
        run.respond(MORE) if not run.decisions else run.approve()
    return run


def go_on_and_die(folder: str, url: str, calls: str, kill: str) -> None:
    """What the process does that is killed."""
    from workbench.parts.reports import graph as report

    node, when = kill.split()
    if when != "paused":
        real = getattr(report, node)

        async def dying(given: Any, runtime: Any) -> None:
            if when == "behind":
                change = await real(given, runtime)
            if node == "section":
                if given["section"]["title"] != SLOW:
                    return change
                await asyncio.sleep(1.5)  # the others are done and kept by then
            os.kill(os.getpid(), signal.SIGKILL)

        dying.__name__ = node  # a node of the graph is called as its function
        setattr(report, node, dying)
    noting(report, Path(calls))
    with Workbench.open(folder, **settings(url)) as wb:
        run = go_on(wb)
        while when != "paused" and run.status == "paused":
            go_on(wb)
        assert (run.status, when) == ("paused", "paused") and kill.startswith(f"review_{run.review['point']}")
        os.kill(os.getpid(), signal.SIGKILL)


def noting(report: Any, calls: Path, write: Any = setattr) -> None:
    """Each section that the rules write leaves a line."""
    text = report.section_text

    def noted(one: Any, *rest: Any) -> str:
        with calls.open("a") as file:
            file.write(f"{one['title']}\n")
        return str(text(one, *rest))

    write(report, "section_text", noted)


@pytest.fixture(scope="module")
def indexed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("report-kill")
    with opened(folder / "workspace") as wb:
        wb.add_knowledge("harbour", [harbour(folder / "harbour")])
    return folder / "workspace"


@pytest.mark.parametrize("writer", ["rules", pytest.param("model", marks=pytest.mark.full)])
def test_killed_at_every_node_it_reads_as_if_undisturbed(indexed, tmp_path, monkeypatch, writer):
    from workbench.parts.reports import graph as report

    for name in ("killed", "undisturbed"):
        shutil.copytree(indexed, tmp_path / name)
    calls = tmp_path / "calls"
    with scripted_server() as server:
        server.respond = writes
        url = server.url if writer == "model" else ""
        for kill in KILLS:
            killed = forked.call(go_on_and_die, str(tmp_path / "killed"), url, str(calls), kill)
            assert killed.wait() == -signal.SIGKILL, kill
        noting(report, calls, monkeypatch.setattr)
        with Workbench.open(tmp_path / "killed", **settings(url)) as wb:
            run = go_on(wb)
            assert (run.status, run.report.status) == ("done", "completed")
            assert [d["point"] for d in run.decisions] == ["outline", "outline"]
            text, steps = run.report.text, Counter(r["step_id"] for r in run.records)
        asked = Counter((prompt_of(r), title_of(r)) for r in server.requests)
        written = Counter(calls.read_text().split()) if calls.exists() else Counter()
        with Workbench.open(tmp_path / "undisturbed", **settings(url)) as wb:
            run = go_on(wb)
            while run.status == "paused":
                go_on(wb)
            assert run.report.text == text and Counter(r["step_id"] for r in run.records) == steps
    sections = {title: n for (name, title), n in asked.items() if name == "section"} if url else written
    assert sections == {**dict.fromkeys([*TITLES, "Herring"], 1), SLOW: 2}, "only the one that was at work"
    assert not (written if url else asked)
