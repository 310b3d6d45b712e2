"""Many trials, as many at once as there are processors, and the table.

python -m tests.storm [--kills 300] [--seed 1] [--workers 2] [--only "a fact"]
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from tests.storm.storm import Storm
from tests.storm.trial import Outcome


def main() -> int:
    """Print the table; 1 when anything was lost, doubled, repeated or answered otherwise."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=300, help="at least so many")
    parser.add_argument("--seed", type=int, default=1, help="draws scenarios and moments")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, help="trials at once")
    parser.add_argument("--only", default="", help="scenarios whose name begins so")
    given = parser.parse_args()
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="storm-") as folder, Storm(Path(folder), given.seed, given.only) as storm:
        print(f"seed {given.seed}: {storm.prepared()}", flush=True)
        outcomes = []
        for outcome in storm.trials(given.kills, given.workers):
            outcomes.append(outcome)
            for fault in outcome.faults:
                print(f"! {outcome.scenario}, {outcome.moments}: {fault}", flush=True)
        show(outcomes, storm, time.monotonic() - began)
    return 1 if any(outcome.faults for outcome in outcomes) else 0


def show(outcomes: list[Outcome], storm: Storm, seconds: float) -> None:
    """Kills by scenario, then the four counts."""
    kills = [kill for outcome in outcomes for kill in outcome.kills]
    for name, count in sorted(Counter(name for _, _, name in kills).items()):
        print(f"{name:<40}{count:>6}")
    hit, known = {where for kind, where, _ in kills if kind == "write"}, storm.gaps()
    print(f"\ntrials {len(outcomes)}, kills {len(kills)}; between two writes {len(hit & known)} of {len(known)}")
    for name in ("lost", "doubled", "repeated", "wrong"):
        print(f"{name:<10}{sum(len(getattr(outcome, name)) for outcome in outcomes):>6}")
    print(f"{seconds:.0f} s")


if __name__ == "__main__":
    sys.exit(main())
