"""What growth costs: `python -m experiments.scale`, also part of `make bench`.

Bases of 10^4 and 10^5 passages (``--million`` adds 10^6) are made of a seed: sentences of the films whose names are
drawn anew, so that words are as frequent as in real text and names grow with the corpus; vectors are drawn near those
of real passages, so that no million texts is embedded. Each size is measured in a process of its own: seconds and
bytes of the index, peak memory, milliseconds by tool, how many of the exact best ten HNSW finds. Below stand the
exponents of growth (1 is linear, 0 is constant), and what adding 61 documents to 6,119 costs.

With ``--corpus FILE --questions FILE`` the same is measured on a real set, embedded by the model of the settings.
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import hashlib
import json
import math
import random
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from workbench.knowledge import adding
from workbench.knowledge.library import Library
from workbench.models.embeddings import SentenceEncoder, sentence_encoder
from workbench.settings import Settings
from workbench.tools.registry import ToolRegistry
from workbench.tools.tool import StepLog, read_input

ROOT = Path(__file__).resolve().parent.parent
SIZES = (10_000, 100_000)
MILLION = 1_000_000
OF_A_MILLION = "10^6 passages as well: two hours, and 30 GB of disk"
MORE, BASE = 61, 6_119
TOOLS = (
    *("keyword_search", "naive_search", "hybrid_search", "local_search", "global_search"),
    "chain_exploration",
)
_NAME = re.compile(r"\b[A-Z][\w’'-]+(?: [A-Z][\w’'-]+)+")
_SYLLABLES = [
    "ba",
    "do",
    "ka",
    "li",
    "mo",
    "na",
    "pe",
    "ra",
    "si",
    "to",
    "vu",
    "ze",
    "bri",
    "cal",
    "den",
    "fur",
    "gam",
    "hol",
    "jen",
    "kor",
    "lun",
    "mar",
    "nes",
    "ost",
    "pil",
    "ror",
    "sen",
    "tav",
    "wil",
]


# what is indexed


class Growth:
    """Documents and questions of a seed: the first n are the same whatever the size."""

    def __init__(self, seed: int = 7):
        self._seed = seed
        films = map(json.loads, (ROOT / "data" / "films.jsonl").read_text("utf-8").splitlines())
        self._sentences = [
            said
            for film in films
            for said in re.split(r"(?<=[.!?])\s+", film["overview"])[1:]
            if 40 < len(said) < 200
        ]

    def name(self, number: int) -> str:
        """A name of two words, another one for each number."""
        drawn = random.Random(f"{self._seed} name {number}")
        first = "".join(drawn.choices(_SYLLABLES, k=2))
        last = ""
        rest = number
        while rest or not last:
            rest, digit = divmod(rest, len(_SYLLABLES))
            last += _SYLLABLES[digit]
        return f"{first.title()} {last.title()}"

    def title(self, number: int) -> str:
        """Of document ``number``: a film, or one of the people."""
        return f"The {self.name(number)} Story" if number % 2 else self.name(number)

    def document(self, number: int) -> dict[str, Any]:
        """Two sentences about it, in which earlier documents and other names stand."""
        drawn = random.Random(f"{self._seed} document {number}")
        person = self.title(2 * drawn.randrange(number // 2 + 1))

        def another(match: re.Match[str]) -> str:
            if drawn.random() < 0.4:
                return self.title(drawn.randrange(number + 1))
            return self.name(int(10 ** (drawn.random() * math.log10(10 + number))))

        said = [_NAME.sub(another, drawn.choice(self._sentences)) for _ in range(2)]
        about = (
            f"is a film directed by {person}"
            if number % 2
            else f"is an actor who has worked with {person}"
        )
        return {
            "id": f"s{number}",
            "title": self.title(number),
            "text": f"{self.title(number)} {about}. {' '.join(said)}",
        }

    def write(self, path: Path, numbers: range) -> Path:
        """The documents of these numbers as JSON lines."""
        with path.open("w", encoding="utf-8") as file:
            file.writelines(f"{json.dumps(self.document(n))}\n" for n in numbers)
        return path

    def questions(self, count: int, size: int) -> list[str]:
        """Questions of one and two steps, and of common words."""
        drawn = random.Random(f"{self._seed} questions")
        made = []
        for number in range(count):
            film = self.title(drawn.randrange(size // 2) * 2 + 1)
            said = _NAME.sub("", drawn.choice(self._sentences)).split()
            made.append(
                (
                    f"Who directed {film}?",
                    f"With whom has the director of {film} worked?",
                    f"Which film is about {' '.join(said[:8])}?",
                    f"Films like {film} about {' '.join(said[-4:])}",
                )[number % 4]
            )
        return made


class Drawn(SentenceEncoder):
    """Vectors near those of real passages, drawn by the text: made in no time, and as alike as real ones are."""

    def __init__(self) -> None:
        films = map(json.loads, (ROOT / "data" / "films.jsonl").read_text("utf-8").splitlines())
        self._real = sentence_encoder().array([film["overview"][:300] for film in films][:500])

    def array(self, texts: Sequence[str]) -> np.ndarray:
        return np.array([self._near(text) for text in texts], np.float32).reshape(len(texts), 512)

    def words(self, words: Sequence[str]) -> np.ndarray:
        return self.array(words)

    def _near(self, text: str) -> np.ndarray:
        drawn = np.random.Generator(
            np.random.SFC64(
                int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest())
            )
        )
        a, b = self._real[drawn.integers(len(self._real), size=2)]
        near = a + 0.6 * b + drawn.standard_normal(512, np.float32) * (0.9 / 512**0.5)
        return near / np.float32(np.linalg.norm(near))


# what is measured


def indexed(folder: Path, paths: Sequence[Path], settings: Settings) -> dict[str, Any]:
    """Index these files; seconds, by stage, bytes and peak memory."""
    library = Library(folder, settings)
    stages = dict[str, float]()
    last = ["read", time.perf_counter()]
    begun = time.process_time()

    def tell(stage: str, done: int, total: int) -> None:
        now = time.perf_counter()
        stages[last[0]] = stages.get(last[0], 0.0) + now - last[1]
        last[:] = [stage, now]

    report = library.add("grown", paths, progress=tell)
    library.close()
    held = sum(file.stat().st_size for file in (folder / "grown").rglob("*") if file.is_file())
    return {
        "seconds": report.seconds,
        # what it is on a machine with nothing else to do
        "cpu_s": round(time.process_time() - begun, 1),
        "stages": {stage: round(taken, 1) for stage, taken in stages.items()},
        "mb": round(held / 2**20, 1),
        "peak_mb": peak_mb(),
    }


def asked(
    folder: Path, questions: Sequence[str], settings: Settings, tools: Sequence[str]
) -> dict[str, Any]:
    """Milliseconds of each tool, after two questions that warm it up; the first of all is told by itself."""
    library = Library(folder, settings)
    registry = ToolRegistry()
    base = library.get("grown")
    began = time.perf_counter()
    base.warm()
    told: dict[str, Any] = {
        "warm_s": round(time.perf_counter() - began, 1),
        "counts": base.about()["counts"],
        "ms": {},
    }
    plain: dict[str, Any] = {"bm25": "words", "dense": "meaning"}
    with asyncio.Runner() as runner:
        for name in [*plain, *tools]:
            taken = []
            worked = []
            for question in questions:
                began = time.perf_counter()
                begun = time.process_time()
                if name in plain:
                    base.search(plain[name], question, 100)
                else:
                    tool = registry[name]
                    runner.run(tool(read_input(tool, {"query": question}), base, StepLog()))
                taken.append((time.perf_counter() - began) * 1000)
                worked.append((time.process_time() - begun) * 1000)
            rest = sorted(taken[2:])
            spread = {
                "first": taken[0],
                "p50": statistics.median(rest),
                "p95": rest[int(len(rest) * 0.95)],
            }
            # what it is on a machine with nothing else to do
            spread["cpu p50"] = statistics.median(worked[2:])
            told["ms"][name] = {part: round(value, 1) for part, value in spread.items()}
            print(f"  {name}: {told['ms'][name]}", file=sys.stderr, flush=True)
    told["asked_peak_mb"] = peak_mb()
    exactly = Library(folder, settings.model_copy(update={"exact_search_limit": 10**9}))
    wanted = [set(dict(exactly.get("grown").search("meaning", one, 10))) for one in questions]
    found = [set(dict(base.search("meaning", one, 10))) for one in questions]
    told["recall@10"] = round(
        sum(map(len, map(set.intersection, wanted, found))) / max(sum(map(len, wanted)), 1), 3
    )
    exactly.close()
    library.close()
    return told


def peak_mb() -> int:
    """The most memory that this process has held."""
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)


def one_size(folder: Path, size: int, questions: int, tools: Sequence[str]) -> dict[str, Any]:
    """Everything of one size, in this process; a base that is there is only asked."""
    growth = Growth()
    settings = Settings.load(embedding_model="use")
    known = folder / "indexed.json"
    if not known.exists():
        path = growth.write(folder / "corpus.jsonl", range(size))
        with drawn_vectors():
            known.write_text(json.dumps(indexed(folder / "kb", [path], settings)))
    told = json.loads(known.read_text())
    print(f"{size:,}: {told}", file=sys.stderr, flush=True)
    return {
        "passages": size,
        **told,
        **asked(folder / "kb", growth.questions(questions, size), settings, tools),
    }


class drawn_vectors:
    """Index with drawn vectors inside the block; questions are embedded as ever."""

    def __enter__(self) -> None:
        self._before = adding.open_model
        model = Drawn()
        adding.open_model = lambda *_: model

    def __exit__(self, *_: object) -> None:
        adding.open_model = self._before


def adding_costs(
    folder: Path, settings: Settings, lines: Sequence[str], rounds: int = 3
) -> dict[str, Any]:
    """Seconds of indexing all but the last 61 lines, and of adding those: another 61 each time, the median."""
    library = Library(folder, settings)
    first = folder / "first.jsonl"
    folder.mkdir(parents=True, exist_ok=True)
    first.write_text("".join(lines[: -MORE * rounds]), "utf-8")
    begun = library.add("grown", [first]).seconds
    taken = []
    for number in range(rounds):
        more = folder / f"more-{number}.jsonl"
        start = len(lines) - MORE * (rounds - number)
        more.write_text("".join(lines[start : start + MORE]), "utf-8")
        taken.append(library.add("grown", [more]).seconds)
    library.close()
    all_of_them = begun * len(lines) / (len(lines) - MORE * rounds)
    share = 100 * statistics.median(taken) / all_of_them
    return {
        "documents": len(lines),
        "all_s": round(all_of_them, 1),
        "more_s": taken,
        "percent": round(share, 2),
    }


def of_a_corpus(
    folder: Path, corpus: Path, questions: Path | None, limit: int, tools: Sequence[str]
) -> dict[str, Any]:
    """A real set, with the settings of the environment: indexing, tools, and what a few more documents cost."""
    settings = Settings.load()
    told: dict[str, Any] = {
        "corpus": corpus.name,
        **indexed(folder / "kb", [corpus], settings),
    }
    print(told, file=sys.stderr, flush=True)
    if questions:
        rows = [
            json.loads(line)["question"] for line in questions.read_text("utf-8").splitlines()
        ][:limit]
        told |= asked(folder / "kb", rows, settings, tools)
    return told


def of_more(folder: Path, corpus: Path | None) -> dict[str, Any]:
    """What adding costs: to the documents of a real file, or to made ones."""
    if corpus:
        read = (
            gzip.decompress(corpus.read_bytes())
            if corpus.suffix == ".gz"
            else corpus.read_bytes()
        )
        return {
            "corpus": corpus.name,
            **adding_costs(folder, Settings.load(), read.decode().splitlines(keepends=True)),
        }
    growth = Growth()
    lines = [f"{json.dumps(growth.document(n))}\n" for n in range(BASE + MORE)]
    with drawn_vectors():
        return {
            "corpus": "made",
            **adding_costs(folder, Settings.load(embedding_model="use"), lines),
        }


# what is printed


def rows(found: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """One row a figure: what is measured, each size, and the exponent of its growth from the first to the last."""
    sizes = [one["passages"] for one in found]
    told = []
    for name, value in _figures(found[0]).items():
        values = [value(one) for one in found]
        told.append({"figure": name, **{f"{n:,}": v for n, v in zip(sizes, values, strict=True)}})
        if len(found) > 1 and "recall" not in name:
            told[-1]["exponent"] = round(
                math.log(values[-1] / values[0]) / math.log(sizes[-1] / sizes[0]), 2
            )
            told[-1]["times"] = round(values[-1] / values[0], 1)
    return told


def _figures(one: dict[str, Any]) -> dict[str, Callable[[dict[str, Any]], float]]:
    figures: dict[str, Callable[[dict[str, Any]], float]] = {
        "index, s": lambda o: o["seconds"],
        "index, CPU s": lambda o: o["cpu_s"],
        "index, MB": lambda o: o["mb"],
        "peak memory while indexing, MB": lambda o: o["peak_mb"],
        "peak memory with questions, MB": lambda o: o["asked_peak_mb"],
    }
    for tool in one["ms"]:
        for part in ("p50", "p95", "cpu p50"):
            figures[f"{tool} {part}, ms"] = lambda o, tool=tool, part=part: o["ms"][tool][part]
    return figures | {"HNSW recall@10": lambda o: o["recall@10"]}


def table(told: Sequence[dict[str, Any]]) -> str:
    """Rows as a Markdown table."""
    columns = list(dict.fromkeys(name for row in told for name in row))
    lines = [columns, ["---", *["--:"] * (len(columns) - 1)]]
    lines += [
        [
            f"{row.get(name, ''):,}"
            if name in row and name != "figure"
            else str(row.get(name, ""))
            for name in columns
        ]
        for row in told
    ]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines)


def all_sizes(million: bool) -> list[int]:
    """The sizes that are measured.

    >>> all_sizes(False)
    [10000, 100000]
    """
    return [*SIZES, *([MILLION] if million else [])]


def measure(
    sizes: Sequence[int], questions: int, tools: Sequence[str], folder: Path
) -> list[dict[str, Any]]:
    """Each size in a process of its own, whose memory is its own."""
    found = []
    for size in sizes:
        command = [
            sys.executable,
            "-m",
            "experiments.scale",
            "--one",
            str(size),
            "--questions-each",
            str(questions),
        ]
        command += ["--tools", *tools, "--folder", str(folder / str(size))]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, cwd=ROOT)
        found.append(json.loads(done.stdout))
    return found


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--million", action="store_true", help=OF_A_MILLION)
    parser.add_argument(
        "--questions-each", type=int, default=40, help="how many questions each tool is asked"
    )
    parser.add_argument("--tools", nargs="+", default=list(TOOLS))
    parser.add_argument(
        "--folder",
        type=Path,
        help="where the bases are made, and stay to be asked again; otherwise they go",
    )
    parser.add_argument(
        "--corpus",
        type=Path,
        help="measure this set instead, with the settings of the environment",
    )
    parser.add_argument("--questions", type=Path, help="its questions")
    parser.add_argument("--more", action="store_true", help="only what adding 61 documents costs")
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = given.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        if given.one:
            print(json.dumps(one_size(folder, given.one, given.questions_each, given.tools)))
        elif given.more:
            print(json.dumps(of_more(folder / "more", given.corpus)))
        elif given.corpus:
            told = of_a_corpus(
                folder, given.corpus, given.questions, given.questions_each, given.tools
            )
            print(json.dumps(told, indent=1))
        else:
            print(
                table(
                    rows(
                        measure(
                            all_sizes(given.million), given.questions_each, given.tools, folder
                        )
                    )
                )
            )
            more = of_more(folder / "more", None)
            print(
                f"\nadding {MORE} documents to {BASE:,}: {more['percent']} % of indexing all ({more['more_s']} of "
                f"{more['all_s']} s)"
            )


if __name__ == "__main__":
    main()
