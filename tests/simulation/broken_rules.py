"""Run histories with a broken rule, and find the first violation."""

from __future__ import annotations

import pytest
from tests.simulation.database import sqlite_database
from tests.simulation.world import Odds, World

SEEDS = 40
PLAIN = Odds(features=0)
"""Without other features, violations of the rules of runs, keys and dependencies show soonest."""
SETTLING = Odds(features=0, clock_step=0, settle_for=150)
"""For violations that show as a run that never ends: without clock jumps, less time to settle is enough."""
FEATURES = Odds(clock_step=0, settle_for=150)
Patch = pytest.MonkeyPatch


def found(
    odds: Odds | None = None, *, replaced: dict[str, str] | None = None, seeds: int = SEEDS, first: int = 1
) -> str | None:
    """The first problem in `seeds` histories, or None; `first` is a seed that is known to show it."""
    for seed in range(first, first + seeds):
        with sqlite_database(replaced) as database:
            failure = World(seed, database, odds=odds or PLAIN).run()
        if failure is not None:
            return failure.problem
    return None
