"""Run histories with a broken rule, and find the first violation."""

from __future__ import annotations

import pytest
from tests.simulation.database import sqlite_database
from tests.simulation.world import Odds, World

SEEDS = 40
PLAIN = Odds(features=0)
"""The rules of runs, keys and needs show themselves best where there is nothing else."""
SETTLING = Odds(features=0, clock_step=0, settle_for=150)
"""For what is found because it never ends: a clock that does not jump back need not be waited for."""
FEATURES = Odds(clock_step=0, settle_for=150)
Patch = pytest.MonkeyPatch


def found(
    odds: Odds | None = None, *, replaced: dict[str, str] | None = None, seeds: int = SEEDS, first: int = 1
) -> str | None:
    """The first thing that goes wrong in so many histories; `first` is a seed that was seen to show it."""
    for seed in range(first, first + seeds):
        with sqlite_database(replaced) as database:
            failure = World(seed, database, odds=odds or PLAIN).run()
        if failure is not None:
            return failure.problem
    return None
