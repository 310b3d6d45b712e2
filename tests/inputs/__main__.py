"""Feed generated inputs to the product and print, by class, what became of them; ends with 1 if anything broke."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

from tests.inputs.feeds import KINDS, REFUSED, Kind, Lost, Place

COLUMNS = ("given", "answered", "refused", "tracebacks", "hangs", "lost")
SHOWN = 5
"""How many broken inputs of a class are printed whole."""


class Hang(BaseException):
    """An input took longer than it may; not an Exception, so that nothing on the way takes it for its own."""


def feed_all(place: Place, count: int, seed: int, tell: Any = None) -> dict[str, Counter[str]]:
    """Feed about ``count`` inputs; counts by class. The same seed gives the same inputs."""
    counts: dict[str, Counter[str]] = {}
    for name, kind in KINDS.items():
        counts[name] = counted = Counter(dict.fromkeys(COLUMNS, 0))
        for number in range(max(1, round(count * kind.share))):
            counted["given"] += 1
            became, why = feed_one(place, kind, Random(f"{seed}/{name}/{number}"))
            counted[became] += 1
            if became in ("tracebacks", "hangs", "lost") and counted[became] <= SHOWN and tell:
                tell(f"{name}, {seed}/{number}: {became}: {why}")
    gone = place.lost()
    counts["questions"]["lost"] += gone
    return counts


def feed_one(place: Place, kind: Kind, rng: Random) -> tuple[str, str]:
    """What became of one input, and why."""
    begun = time.monotonic()
    signal.setitimer(signal.ITIMER_REAL, kind.limit_s * 4)  # a real hang; one that only takes long is seen below
    try:
        became, why = ("answered" if kind.feed(place, rng) else "refused"), ""
    except REFUSED as error:
        became, why = ("refused", "") if str(error).strip() else ("lost", "refused without a word")
    except Lost as error:
        became, why = "lost", str(error)[:1000]
    except Hang:
        became, why = "hangs", "stopped"
    except Exception as error:
        became, why = "tracebacks", "".join(traceback.format_exception(error)[-4:])[-1500:]
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    took = time.monotonic() - begun
    return ("hangs", f"{took:.1f} s") if took > kind.limit_s and became in ("answered", "refused") else (became, why)


def _stop(*_: object) -> None:
    raise Hang


def table(counts: dict[str, Counter[str]]) -> str:
    total = sum(counts.values(), Counter(dict.fromkeys(COLUMNS, 0)))
    rows = [*counts.items(), ("all", {name: total[name] for name in COLUMNS})]
    lines = [f"{'class':<28}" + "".join(f"{name:>12}" for name in COLUMNS)]
    return "\n".join(lines + [f"{name:<28}" + "".join(f"{row[c]:>12,}" for c in COLUMNS) for name, row in rows])


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.inputs", description=__doc__)
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    begun = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        place = Place(Path(folder))
        (inner := Path(folder, "a", "b", "c", "d")).mkdir(parents=True)
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [os.getcwd(), os.environ.get("PYTHONPATH")]))
        os.chdir(inner)  # "../.." is a path that is drawn too
        try:
            counts = feed_all(place, asked.count, asked.seed, lambda line: print(line, flush=True))
        finally:
            place.wb.close()
            os.chdir(folder)
    print(table(counts))
    print(f"seed {asked.seed}, {time.monotonic() - begun:,.0f} s")
    return int(any(row[bad] for row in counts.values() for bad in ("tracebacks", "hangs", "lost")))


if __name__ == "__main__":
    from workbench.settings import Settings

    Settings.model_config["env_file"] = None
    os.environ["ANONYMIZED_TELEMETRY"] = "False"
    signal.signal(signal.SIGALRM, _stop)
    sys.exit(main())
