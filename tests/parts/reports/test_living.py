"""An update of a report writes only the sections whose evidence changed."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests import forked
from tests.shelves import CORE, PROJECT, environment, opened, workbench
from workbench.errors import WorkbenchError
from workbench.session import Workbench

EN = {
    "bridge": "The Long Bridge has 40 arches. It was built in 1902 of red stone.",
    "storm": "The storm of 1911 broke two arches of the Long Bridge.",
    "light": "The lighthouse stands at the mouth of the harbour. Its lamp burns oil.",
    "ferry": "The ferry crosses the harbour 4 times a day. A ferry ticket costs two marks.",
    "fish": "Herring is landed at the harbour in autumn. The fish market opens at five.",
}
ZH = {
    "长桥": "长桥有40个桥拱。长桥建于1902年，用红色石头砌成。",
    "风暴": "1911年的风暴毁坏了长桥的两个桥拱。",
    "灯塔": "灯塔位于港口入口处。灯塔的灯用油点燃。",
    "渡船": "渡船每天横渡港口4次。渡船票价为两马克。",
    "鱼市": "鱼市每天早上五点开门。秋天在鱼市出售鲱鱼。",
}
TOPICS = {"en": "The harbour: bridge, ferry, fish", "zh": "港口：长桥、渡船、鱼市"}


class Harbour:
    """A workspace of a few documents, each a file that can be changed, added and removed."""

    def __init__(self, wb: Workbench, folder: Path, language: str):
        self.wb, self.folder, self.topic = wb, folder, TOPICS[language]
        folder.mkdir()
        self.put(**(EN if language == "en" else ZH))

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
def harbour(wb: Workbench, tmp_path: Path) -> Callable[[str], Harbour]:
    return lambda language: Harbour(wb, tmp_path / "harbour", language)


def sections(report) -> dict[str, str]:
    return {one["title"]: one["text"] for one in report.sections}


def written(report) -> set[str]:
    return {one["title"] for one in report.sections if not one["reused"]}


def flat(text: str) -> str:
    """Without the blanks that Chinese text has around numbers."""
    return re.sub(r"(?<=[一-鿿]) | (?=[一-鿿])", "", text)


def same_but(before, after, *titles: str) -> bool:
    """Whether all sections but these are equal to the byte, and only these were written."""
    one, other = sections(before), sections(after)
    others = all(one[title] == other[title] for title in one if title not in titles)
    return others and written(after) == set(titles) and after.metrics["sections_written"] == len(titles)


CHANGED = {
    "en": ("ferry", "4 times", "6 times", "Ferry", "The ferry crosses the harbour {} a day."),
    "zh": ("渡船", "4次", "6次", "渡船", "渡船每天横渡港口{}。"),
}


ADDED = {
    "en": ("Tariff", "A ferry ticket costs two marks. Children cross on the ferry for one mark.", "Ferry"),
    "zh": ("票价", "渡船票价为两马克。儿童乘渡船只需一马克。", "渡船"),
}
OPPOSED = {
    "en": ("Survey", "The Long Bridge has 42 arches.", "The Long Bridge has 40 arches."),
    "zh": ("测量", "长桥有42个桥拱。", "长桥有40个桥拱。"),
}


@pytest.mark.parametrize("language", ["en", "zh"])
def test_only_the_section_of_a_document_that_changed_came_or_went_is_written(harbour, language):
    town, texts = harbour(language), EN if language == "en" else ZH
    bridge = "Bridge" if language == "en" else "长桥"
    old = town.report()
    assert old.consistency["contradictions"] == []
    name, before, after, title, _ = CHANGED[language]
    town.put(**{name: texts[name].replace(before, after)})
    changed = old.update().report
    assert same_but(old, changed, title) and after in flat(changed.text) and before not in flat(changed.text)
    assert changed.run.plan.plan_id == old.run.plan.plan_id
    assert changed.update().report.cache_hit
    name, text, title = ADDED[language]
    town.put(**{name: text})
    more = changed.update().report
    _, second = re.findall(r"[^.。 ][^.。]*[.。]", text)
    assert same_but(changed, more, title) and second[:8] in flat(more.text)
    name, said, against = OPPOSED[language]
    town.put(**{name: said})
    both = more.update().report
    assert [{flat(one["first"]), flat(one["second"])} for one in both.consistency["contradictions"]] == [
        {said, against}
    ]
    assert same_but(more, both, bridge)
    name, text = list(texts.items())[1]
    town.put(**{name: ""})
    less = both.update().report
    assert same_but(both, less, bridge) and text[:6] not in flat(less.text)


def test_an_outline_of_a_person_stays(harbour):
    town = harbour("en")
    run = town.wb.report(town.topic, kb="harbour", review={"outline"})
    first = run.review["action_requests"][0]["args"]["sections"]
    run.edit(sections=[{**first[1], "title": "Ferry crossing"}, first[0]])
    assert run.status == "done"
    old = run.report
    town.put(survey="The Long Bridge has 42 arches. The bridge was measured.")
    new = old.update().report
    assert [one["title"] for one in new.sections] == ["Ferry crossing", "Bridge"]
    assert same_but(old, new, "Bridge") and "42 arches" in sections(new)["Bridge"]


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_capsule_gives_the_report_again_where_there_is_no_corpus(harbour, tmp_path, language):
    town = harbour(language)
    old = town.report()
    town.put(**{ADDED[language][0]: ADDED[language][1]})
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


def test_the_terminal_shows_what_changed_and_writes_the_update(harbour, tmp_path):
    town = harbour("en")
    old = town.report().run.run_id
    name, text, _ = ADDED["en"]
    town.put(**{name: text})
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


def test_an_update_that_is_killed_goes_on_and_two_at_once_are_two_reports(harbour, tmp_path):
    town = harbour("en")
    old = town.report()
    text, before = old.text, sections(old)
    town.put(ferry=EN["ferry"].replace("4 times", "6 times"))
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
        assert all(
            {t: s for t, s in sections(one).items() if t != "Ferry"}.items() <= before.items() for one in reports
        )
