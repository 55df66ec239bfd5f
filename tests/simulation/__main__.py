"""Replay histories: `python -m tests.simulation --seed 17 [--count 100] [--postgres] [--verbose]`."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

from tests.postgres import postgres_server
from tests.simulation.database import Database, postgres_database, sqlite_database
from tests.simulation.world import SMALLER, World


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--count", type=int, default=1, help="how many histories to run, with consecutive seeds from --seed"
    )
    parser.add_argument("--postgres", action="store_true")
    parser.add_argument("--verbose", action="store_true", help="print every move")
    given = parser.parse_args()
    failures = 0
    started = time.monotonic()
    with _databases(postgres=given.postgres) as database:
        for seed in range(given.seed, given.seed + given.count):
            with database(seed) as opened:
                odds = SMALLER if given.postgres else None
                world = World(seed, opened, odds=odds, verbose=given.verbose)
                failure = world.run()
            if failure is not None:
                failures += 1
                print(failure)
            elif given.count == 1:
                print(f"seed {seed}: no violation; {world.count} moves, {world.commits} commits")
    print(f"{given.count} histories, {failures} with a violation, {time.monotonic() - started:.1f} s")
    return 1 if failures else 0


@contextmanager
def _databases(*, postgres: bool) -> Iterator[Callable[[int], AbstractContextManager[Database]]]:
    if not postgres:
        yield lambda seed: sqlite_database()
        return
    with postgres_server(18, "--fsync=off") as server:
        yield lambda seed: postgres_database(server.url, f"sim{seed}_")


if __name__ == "__main__":
    sys.exit(main())
