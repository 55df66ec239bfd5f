"""Runs every measurement on SQLite and PostgreSQL, in interleaved rounds, and prints the medians as a table."""

from __future__ import annotations

import argparse
import contextlib
import json
import statistics
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from rich.console import Console
from rich.table import Column, Table
from tests.postgres import postgres_server

from bench import drain, pages, pickup, raw, startup, submit, takeover, waiting
from bench.databases import Databases

MEASUREMENTS = {
    "submit one by one, runs/s": submit.one_by_one,
    "submit from 16 threads, runs/s": submit.from_threads,
    "submit_many of 1,000, runs/s": submit.many,
    "raw insert of 1,000, rows/s": raw.insert,
    "drain, 1 worker, -c 100, threads, runs/s": drain.threads,
    "drain, 1 worker, -c 100, async, runs/s": drain.coroutines,
    "drain, 1 worker, -c 8, threads, runs/s": drain.few_threads,
    "drain, 2 workers, -c 100, runs/s": drain.two_workers,
    "drain, keyed, 1,000 keys, runs/s": drain.keyed,
    "drain with no waiting runs, runs/s": waiting.beside_none,
    "drain with 100,000 runs waiting for one key, runs/s": waiting.beside_one_key,
    "drain with 100,000 runs waiting for 10,000 keys, runs/s": waiting.beside_many_keys,
    "runs of one key, one after another, runs/s": waiting.of_one_key,
    "raw claim + finish, batches of 100, runs/s": raw.drain,
    "pick-up by another process, p50 ms": pickup.median,
    "pick-up by another process, p99 ms": pickup.worst,
    "takeover of 1 run after kill -9, lease 2 s, s": takeover.after_kill,
    "takeover of 10 of 1,000 runs, lease 2 s, s": takeover.among_a_thousand,
    "pages with 1,000,000 finished runs, slowest ms": pages.slowest,
    "start of an application, × import pydantic": startup.of_an_application,
    "start of the command, × import pydantic": startup.of_the_command,
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default="", help="run only the measurements whose name contains this text")
    parser.add_argument("--json", type=Path, help="also write every figure to this file")
    options = parser.parse_args()
    chosen = {name: measure for name, measure in MEASUREMENTS.items() if options.only in name}
    figures: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    with databases() as fresh_databases:
        for number in range(options.rounds):
            for name, measure in chosen.items():
                for store in ("sqlite", "postgres"):
                    figures[name][store].append(measure(fresh_databases.fresh(store)))
                    print(f"round {number + 1}: {name}, {store}: {figures[name][store][-1]:,.1f}", flush=True)
    show(figures)
    if options.json:
        options.json.write_text(json.dumps(figures, indent=2))


@contextlib.contextmanager
def databases() -> Iterator[Databases]:
    with tempfile.TemporaryDirectory(prefix="holdfast-bench-") as folder, postgres_server(18) as server:
        yield Databases(Path(folder), server)


def show(figures: dict[str, dict[str, list[float]]]) -> None:
    table = Table(
        Column("measurement", no_wrap=True), "SQLite (FULL)", "PostgreSQL 18 (fsync)", title="medians; durable commits"
    )
    for name, stores in figures.items():
        cells = [f"{statistics.median(stores[store]):,.1f}" for store in ("sqlite", "postgres")]
        table.add_row(name, *cells)
    Console().print(table)


if __name__ == "__main__":
    main()
