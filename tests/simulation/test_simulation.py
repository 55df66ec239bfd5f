"""Complete histories with crashes, pauses past the lease, lost replies, a locked database and clock jumps.

A failing seed prints its number and its last moves; `make sim SEED=…` replays it.
"""

from __future__ import annotations

import itertools

import pytest
from tests.postgres import PostgresServer
from tests.simulation.database import postgres_database, sqlite_database
from tests.simulation.world import BLOCKED, CHURNING, SMALLER, Odds, World

PROVES = ("S3", "L5", "L6", "L7", "P2", "P3", "P8", "Q12")
SHARE = 10
STALLING = Odds(features=0, stall=0.2, crash=0, pause=0, clock_step=0, shutdown=0, operations=12, chaos_for=90)
_numbers = itertools.count()


@pytest.mark.contract(*PROVES)
@pytest.mark.parametrize("first", range(1, 161, SHARE))
def test_every_run_ends_once_whatever_happens(first: int) -> None:
    for seed in range(first, first + SHARE):
        run_history(seed)


@pytest.mark.contract(*PROVES)
def test_every_run_ends_once_even_if_processes_stall_all_the_time() -> None:
    for seed in range(21, 41):
        with sqlite_database() as database:
            failure = World(seed, database, odds=STALLING).run()
        assert failure is None, str(failure)


@pytest.mark.contract(*PROVES)
@pytest.mark.timeout(120)
def test_lost_runs_are_taken_over_even_if_no_worker_lives_as_long_as_a_lease() -> None:
    for seed in range(1, 6):
        with sqlite_database() as database:
            failure = World(seed, database, odds=CHURNING).run()
        assert failure is None, str(failure)


@pytest.mark.contract(*PROVES)
@pytest.mark.timeout(120)
def test_no_run_is_lost_while_the_database_is_locked_for_longer_than_a_lease() -> None:
    for seed in range(1, 7):
        with sqlite_database() as database:
            failure = World(seed, database, odds=BLOCKED).run()
        assert failure is None, str(failure)


@pytest.mark.contract(*PROVES, "Q18")
@pytest.mark.parametrize("seed", range(1, 5))
def test_every_run_ends_once_on_postgres(seed: int, postgres: PostgresServer) -> None:
    run_history_on_postgres(seed, postgres)


@pytest.mark.long
@pytest.mark.contract(*PROVES)
@pytest.mark.parametrize("first", range(1_000, 6_000, 100))
@pytest.mark.timeout(600)
def test_every_run_ends_once_in_thousands_of_histories(first: int) -> None:
    for seed in range(first, first + 100):
        run_history(seed)


@pytest.mark.long
@pytest.mark.contract(*PROVES)
@pytest.mark.parametrize("first", range(1_000, 1_100, 10))
@pytest.mark.timeout(600)
def test_every_run_ends_once_in_many_histories_on_postgres(first: int, postgres: PostgresServer) -> None:
    for seed in range(first, first + 10):
        run_history_on_postgres(seed, postgres)


def test_the_same_seed_replays_the_same_history(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same seed makes the same moves in any process, so that a violation can be reproduced."""
    monkeypatch.setattr("socket.gethostname", lambda: "host")
    histories = []
    for pid in (3, 4, 4):  # an earlier version pruned within this history, but only with pid 4
        monkeypatch.setattr("os.getpid", lambda pid=pid: pid)
        with sqlite_database() as database:
            world = World(18, database)
            assert world.run() is None
        histories.append((world.count, world.commits, list(world.moves)))
    assert histories[0] == histories[1] == histories[2]


def run_history(seed: int) -> None:
    with sqlite_database() as database:
        failure = World(seed, database).run()
    assert failure is None, str(failure)


def run_history_on_postgres(seed: int, server: PostgresServer) -> None:
    with postgres_database(server.url, f"sim{next(_numbers)}_") as database:
        failure = World(seed, database, odds=SMALLER).run()
    assert failure is None, f"{failure} (on PostgreSQL: add --postgres)"
