"""What remembering costs, each figure beside its aim and the plain way: sending all messages, or the last ones alone.

    python experiments/memory_costs.py [--only tokens,assembly,growth,together,many] [--most 100000] [--json]

``tokens``: of the conversation in the prompt of turn 51, in English and Chinese, with answers of ``--length`` tokens.
``assembly``: the whole node ``recall`` on 10,000 messages, a hundred questions. ``growth``: the same, and bytes of
disk, by number of messages; an exponent of 1 is linear, 0 constant. ``together``: ten conversations ask a small corpus
at once, five times: from each question to its stored answer; ``cpu`` is what a turn takes of a processor.
``many``: how much the process grows by a hundred conversations of fifty turns, each asked. Messages are sentences of a
seed, their vectors drawn near those of real ones. No language model takes part. Times are of this machine: read ratios.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import os
import random
import statistics
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from langgraph.runtime import Runtime

from workbench.models.embeddings import TextModel, text_model
from workbench.parts.memory.recall import Recalling, recall
from workbench.parts.memory.store import MemoryStore
from workbench.ports import Context
from workbench.records.tape import estimated_tokens
from workbench.session import Workbench

PARTS = ("tokens", "assembly", "growth", "together", "many")
SIZES = (100, 1_000, 10_000, 100_000)
CALLS, AT_ONCE, MANY, TURNS = 100, 10, 100, 50
LENGTH = 182
"""Tokens of an answer: fifty turns are about 8,000 then, as the requirement has them."""
_PAGE = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4_096
_SUBJECTS = [
    "harbour",
    "kiln",
    "orchard",
    "ledger",
    "beacon",
    "quarry",
    "loom",
    "cistern",
    "viaduct",
    "glacier",
]
_SAID = (
    "was measured again|lies north of the old town|needs two people|had been closed for a year"
    "|is older than it looks"
)
_ZH = ["港口", "窑炉", "果园", "账本", "灯塔", "采石场", "织机", "蓄水池", "高架桥", "冰川"]
_ZH_SAID = "又测量了一次|在老城北面|需要两个人|关闭了一年|比看上去要老"


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", default=",".join(PARTS))
    parser.add_argument(
        "--most", type=int, default=SIZES[-1], help="messages of the longest conversation"
    )
    parser.add_argument(
        "--length", type=int, default=LENGTH, help="tokens of an answer in `tokens`"
    )
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    asked = [part for part in options.only.split(",") if part]
    if unknown := set(asked) - set(PARTS):
        sys.exit(f"There is no part {', '.join(sorted(unknown))}. Known: {', '.join(PARTS)}.")
    if len(asked) > 1:  # each in a process of its own: none is warm, or large, by another
        given = ["--most", str(options.most), "--length", str(options.length), "--json"]
        found: dict[str, Any] = {}
        for part in asked:
            sys.stderr.write(f"{part} ...\n")
            done = subprocess.run(
                [sys.executable, __file__, "--only", part, *given],
                stdout=subprocess.PIPE,
                check=True,
            )
            found |= json.loads(done.stdout)
    else:
        found = {part: measured(part, options.most, options.length) for part in asked}
    sys.stdout.write((json.dumps(found, indent=1) if options.json else text(found)) + "\n")


def measured(part: str, most: int = SIZES[-1], length: int = LENGTH) -> dict[str, Any]:
    """One part."""
    sizes = [size for size in SIZES if size <= most]
    of: dict[str, Callable[[], dict[str, Any]]] = {
        "tokens": lambda: tokens(length),
        "assembly": lambda: assembly(min(10_000, most)),
        "growth": lambda: growth(sizes),
        "together": together,
        "many": many,
    }
    return of[part]()


@contextmanager
def opened(**settings: Any) -> Iterator[Workbench]:
    """An empty workspace that is gone afterwards."""
    own = {"memory_core": True, "postgres_dsn": "", "metrics": ""}
    with TemporaryDirectory() as folder, Workbench.open(folder, **{**own, **settings}) as wb:
        yield wb


# --- Tokens, and whether anything is lost by them ---


def answer(draw: random.Random, language: str, length: int) -> str:
    """An answer of about so many tokens, of sentences that are drawn."""
    told = list[str]()
    while estimated_tokens(told) < length:
        if language == "zh":
            told.append(
                f"{draw.choice(_ZH)}{draw.randint(2, 900)}{draw.choice(_ZH_SAID.split('|'))}。"
            )
        else:
            told.append(
                f"The {draw.choice(_SUBJECTS)} of {draw.randint(2, 900)} {draw.choice(_SAID.split('|'))}."
            )
    return ("" if language == "zh" else " ").join(told)


_ASKED = {
    "en": ("How old is the {}? #{}", "How is glass made?"),
    "zh": ("{}有多久的历史？ #{}", "玻璃是怎么做成的？"),
}


def tokens(length: int = LENGTH, each: int = 4, **settings: Any) -> dict[str, Any]:
    """Tokens of turn 51 with memory, with all messages, with the last ones; over ``each`` conversations a language."""
    counted: dict[str, list[int]] = {"memory": [], "all": [], "window": []}
    parts = Counter[str]()
    with opened(**settings) as wb:
        for language in _ASKED:
            for number in range(each):
                for name, count in _turn_51(wb, language, number, length, parts):
                    counted[name].append(count)
    mean = {name: statistics.mean(some) for name, some in counted.items()}
    return {
        "conversations": len(counted["all"]),
        "tokens": {name: round(value) for name, value in mean.items()},
        "saved": round(100 * (1 - mean["memory"] / mean["all"]), 1),
        "parts": {part: round(n / len(counted["all"])) for part, n in sorted(parts.items())},
        "aim": "91 % saved",
    }


def _turn_51(
    wb: Workbench, language: str, number: int, length: int, parts: Counter[str]
) -> Iterator[tuple[str, int]]:
    """Tokens by what is sent."""
    from workbench.parts.memory.recall import bring_up

    context = wb.ports()
    draw = random.Random(number)
    user = f"{language} {number}"
    store: Any = MemoryStore(context.conversations)
    conversation = store.get_or_create_conversation_id(user, "s")
    question, last = _ASKED[language]
    for turn in range(TURNS):
        text = question.format(draw.choice(_ZH if language == "zh" else _SUBJECTS), turn)
        asked = store.append_message(conversation, "user", text)
        store.append_message(
            conversation, "assistant", answer(draw, language, length), answers=asked
        )
        if turn % 3 == 2:
            asyncio.run(bring_up(context, store, conversation, user))
    context.memory.embed(conversation)  # type: ignore[attr-defined]
    messages = store.list_messages(conversation)
    sent = {"all": messages, "window": messages[-context.settings.history_window :]}
    run = wb.ask(last, kb="general", user=user, session="s")
    for part in run.state["remembered"]:
        parts[part["part"]] += part["tokens"] if part["kept"] else 0
    yield from (
        (name, sum(estimated_tokens(m["content"]) for m in some)) for name, some in sent.items()
    )
    yield "memory", sum(part["tokens"] for part in run.state["remembered"] if part["kept"])


# --- Time and room ---


def vectors(model: TextModel, texts: Sequence[str]) -> list[Any]:
    """The vectors of real sentences, and of their copies that differ by a number, near those."""
    import numpy as np

    bases = [text.partition(" #")[0] for text in texts]
    different = list(dict.fromkeys(bases))
    of = dict(zip(different, model.array(different), strict=True))
    drawn = np.random.default_rng(7)
    rows = (of[base] + drawn.normal(0, 0.01, len(of[base])) for base in bases)
    return [(row / np.linalg.norm(row)).astype(np.float32) for row in rows]


def fill(context: Context, user: str, messages: int) -> str:
    """A conversation of so many messages, with its vectors; its id."""
    store: Any = MemoryStore(context.conversations)
    model = text_model(context.settings)
    conversation = store.get_or_create_conversation_id(user, "s")
    draw = random.Random(7)
    for number in range(store.count_messages(conversation) // 2, messages // 2):
        text = (
            f"How old is the {draw.choice(_SUBJECTS)} {draw.choice(_SAID.split('|'))}? #{number}"
        )
        asked = store.append_message(conversation, "user", text)
        told = f"The {draw.choice(_SUBJECTS)} {draw.choice(_SAID.split('|'))}. #{number}"
        store.append_message(conversation, "assistant", told, answers=asked)
    new = store.episodes(conversation)
    rows = vectors(
        model, [e[part] for e in new for part in ("user_message", "assistant_message")]
    )
    of = (rows[2 * n].tobytes() + rows[2 * n + 1].tobytes() for n in range(len(new)))
    store.save_vectors(zip((e["id"] for e in new), of, strict=True), model.name)
    return conversation


def assembled(
    context: Context, conversation: str, user: str, calls: int = CALLS
) -> dict[str, float]:
    """Milliseconds of the node ``recall``: the first call, which reads the conversation, and those after it."""
    draw = random.Random(3)
    seconds = list[float]()
    runtime = Runtime(context=context)
    for _ in range(calls + 1):
        message = f"What is known of the {draw.choice(_SUBJECTS)} by {draw.randint(2, 900)}?"
        state: Any = {"message": message, "user_id": user, "conversation_id": conversation}
        begun = time.perf_counter()
        asyncio.run(recall(state, runtime))
        seconds.append(1000 * (time.perf_counter() - begun))
    first = seconds[0]
    rest = sorted(seconds[1:])
    figures = {
        "first": first,
        "mean": statistics.mean(rest),
        "p95": rest[int(0.95 * len(rest))],
        "max": rest[-1],
    }
    return {name: round(value, 1) for name, value in figures.items()}


def assembly(messages: int = 10_000, calls: int = CALLS, **settings: Any) -> dict[str, Any]:
    """The node ``recall`` on one long conversation, with memory and with the window alone."""
    with opened(**settings) as wb:
        context = wb.ports()
        conversation = fill(context, "ann", messages)
        ours = assembled(context, conversation, "ann", calls)
        off = {"memory_core": False, "memory_summary": False, "memory_episodes": False}
        alone = replace(context, settings=context.settings.model_copy(update=off))
        plain: Any = Recalling(MemoryStore(context.conversations), alone.settings)  # type: ignore[arg-type]
        window = assembled(replace(alone, memory=plain), conversation, "ann", calls)
    aim = "mean under 100 ms, none over 500"
    return {"messages": messages, "calls": calls, "ms": ours, "window_ms": window, "aim": aim}


def growth(sizes: Sequence[int] = SIZES, calls: int = CALLS, **settings: Any) -> dict[str, Any]:
    """Milliseconds and bytes by number of messages, and their exponents from the first size to the last."""
    rows = []
    for size in sizes:
        with opened(**settings) as wb:
            context = wb.ports()
            conversation = fill(context, "ann", size)
            found = assembled(
                context, conversation, "ann", calls if size < SIZES[-1] else calls // 5
            )
            kept = sum(path.stat().st_size for path in Path(wb.path).glob("workbench.db*"))
            rows.append(
                {"messages": size, **found, "bytes": kept, "bytes_a_message": round(kept / size)}
            )
    step = math.log(sizes[-1] / sizes[0])
    made: dict[str, Any] = {
        "sizes": rows,
        "window": "constant: the last messages are read by an index",
    }
    if step:
        made["exponents"] = {
            n: round(math.log(rows[-1][n] / rows[0][n]) / step, 2) for n in ("mean", "bytes")
        }
    return made


def together(conversations: int = AT_ONCE, questions: int = 5, **settings: Any) -> dict[str, Any]:
    """Whole turns of conversations that are held at once, and of one that has the machine to itself."""
    with TemporaryDirectory() as folder, opened(**settings) as wb:
        rows = [
            {"id": f"d{n}", "title": f"Report {n}", "text": f"The {s} {w}."}
            for n, (s, w) in enumerate(_pairs())
        ]
        corpus = Path(folder) / "reports.jsonl"
        corpus.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
        wb.add_knowledge("reports", [corpus])
        context = wb.ports()
        for n in range(conversations):
            fill(context, f"user {n}", 2 * TURNS)

        async def turn(number: int, k: int) -> float:
            asked = f"What about the {_SUBJECTS[(number + k) % len(_SUBJECTS)]}?"
            begun = time.perf_counter()
            run = await wb.start(
                asked, kb="reports", user=f"user {number}", session="s"
            ).aio.wait()
            if run.status != "done":
                raise RuntimeError(f"A question ended as {run.status}: {run.error}")
            return time.perf_counter() - begun

        async def all_at_once(k: int) -> list[float]:
            return await asyncio.gather(*(turn(n, k) for n in range(conversations)))

        for n in range(conversations):  # what is loaded once, and each conversation's turns
            asyncio.run(turn(n, -1))
        alone = [asyncio.run(turn(0, k)) for k in range(questions)]
        used = time.process_time()
        found = [seconds for k in range(questions) for seconds in asyncio.run(all_at_once(k))]
        used = time.process_time() - used
    figures = {
        "mean": statistics.mean(found),
        "p95": sorted(found)[int(0.95 * len(found))],
        "alone": statistics.mean(alone),
    }
    figures["cpu"] = used / len(found)
    return {
        "conversations": conversations,
        "turns": len(found),
        "ms": {name: round(1000 * value, 1) for name, value in figures.items()},
        "aim": "mean under 600 ms",
    }


def _pairs() -> list[tuple[str, str]]:
    return [(subject, said) for subject in _SUBJECTS for said in _SAID.split("|")]


def many(conversations: int = MANY, turns: int = TURNS, **settings: Any) -> dict[str, Any]:
    """How much memory the process takes more, once that many conversations have been asked of."""
    with opened(**settings) as wb:
        context = wb.ports()
        warm = fill(context, "warm", 2 * turns)
        assembled(context, warm, "warm", 5)
        before = resident()
        for n in range(conversations):
            user = f"user {n}"
            assembled(context, fill(context, user, 2 * turns), user, 3)
        grown = resident() - before
    return {
        "conversations": conversations,
        "turns": turns,
        "mb": round(grown / 1e6, 1),
        "aim": "200 MB",
    }


def resident() -> int:
    """Bytes of this process in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * _PAGE


# --- For people ---


def text(found: dict[str, Any]) -> str:
    """A few lines a part."""
    lines = []
    if one := found.get("tokens"):
        lines += [f"tokens in turn 51 ({one['conversations']} conversations; aim: {one['aim']})"]
        lines += [f"  {n:<10}{one['tokens'][n]:>8,}" for n in ("memory", "window", "all")]
        lines += [f"  saved {one['saved']} %; of what: {one['parts']}"]
    if one := found.get("assembly"):
        lines += [
            f"assembly at {one['messages']:,} messages, {one['calls']} calls (aim: {one['aim']})"
        ]
        lines += [
            f"  {name:<10}" + _ms(one[key])
            for name, key in (("memory", "ms"), ("window", "window_ms"))
        ]
    if one := found.get("growth"):
        lines += ["growth"]
        lines += [
            f"  {r['messages']:>8,}  {_ms(r)}  {r['bytes']:>12,} bytes, {r['bytes_a_message']:,} each"
            for r in one["sizes"]
        ]
        lines += [f"  exponents: {one['exponents']}"] if "exponents" in one else []
    if one := found.get("together"):
        lines += [
            f"{one['conversations']} conversations at once, {one['turns']} turns (aim: {one['aim']})",
            f"  {_ms(one['ms'])}",
        ]
    if one := found.get("many"):
        lines += [
            f"{one['conversations']} conversations of {one['turns']} turns: {one['mb']} MB more (aim: {one['aim']})"
        ]
    return "\n".join(lines)


def _ms(figures: dict[str, float]) -> str:
    return "".join(
        f"{n} {figures[n]:,.1f} ms  "
        for n in ("first", "mean", "p95", "max", "alone", "cpu")
        if n in figures
    )


if __name__ == "__main__":
    main()
