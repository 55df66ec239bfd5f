"""The tour that ./run starts: a worker on an embedded SQLite file, sample jobs of every kind, and what becomes of them.

    ./run                        a fresh file in a temporary folder
    ./run --database work.db     a file of your own

Without a terminal it prints a line whenever a run changes its state.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from holdfast import Context, Holdfast, Retry, Run, Worker

STYLES = {
    "queued": "yellow",
    "running": "cyan",
    "succeeded": "green",
    "failed": "red",
    "timed_out": "red",
    "cancelled": "magenta",
}
AT_MOST = timedelta(seconds=30)  # it takes about 8


@dataclass
class Sample:
    """One run of the tour, and what it is there to show."""

    title: str
    lesson: str
    run: Run[Any]
    done: float = 0
    note: str = ""


def main() -> int:
    parser = argparse.ArgumentParser(description="Holdfast at work: sample jobs on an embedded SQLite file.")
    parser.add_argument("--database", type=Path, help="the SQLite file to use (default: a fresh temporary one)")
    database = parser.parse_args().database or Path(tempfile.mkdtemp(prefix="holdfast-tour-")) / "tour.db"
    console = Console()
    console.print(Text(f"Holdfast works on sqlite:///{database.resolve()}", style="bold"), soft_wrap=True)
    hf = Holdfast(f"sqlite:///{database.resolve()}", tick=0.25, shutdown_grace=1)
    jobs = Jobs(hf)
    try:
        with hf, Worker(hf, concurrency=6):
            samples = submit_samples(jobs)
            cancel_later(samples["cancelled"].run, after=3)
            watch(console, hf, list(samples.values()))
            finish(console, hf, list(samples.values()), database.resolve())
    except KeyboardInterrupt:
        console.print("\nstopped; running work was given a moment to finish, the rest is still queued in the file")
        return 130
    return 0


class Jobs:
    """The sample jobs. An application of yours would define them at module level."""

    def __init__(self, hf: Holdfast) -> None:
        self.failures = 0

        @hf.job(name="resize")
        def resize(ctx: Context, pictures: int) -> int:
            for number in range(pictures):
                ctx.check()
                ctx.progress(number, pictures, f"picture {number + 1}")
                time.sleep(0.25)
            ctx.progress(pictures, pictures, "all resized")
            return pictures

        @hf.job(name="import_feed")
        def import_feed(address: str) -> None:
            raise ValueError(f"{address} is not a feed")

        @hf.job(name="send_mail", max_attempts=3, retry=Retry(delay=timedelta(seconds=2), jitter=0))
        def send_mail(to: str) -> str:
            self.failures += 1
            if self.failures == 1:
                raise ConnectionError("the mail server is busy")
            return f"sent to {to}"

        @hf.job(name="index", key="document")
        def index(document: str, version: int) -> int:
            time.sleep(1.5)
            return version

        @hf.job(name="crawl", timeout=3)
        def crawl(ctx: Context, site: str) -> None:
            while not ctx.cancelled:
                time.sleep(0.05)

        @hf.job(name="report")
        def report(ctx: Context, month: str) -> None:
            while True:
                ctx.check()
                time.sleep(0.05)

        self.resize, self.import_feed, self.send_mail = resize, import_feed, send_mail
        self.index, self.crawl, self.report = index, crawl, report


def submit_samples(jobs: Jobs) -> dict[str, Sample]:
    """Queue one of each kind. A submit is durable when it returns; the worker starts at once."""
    versions = [jobs.index.submit(document="handbook", version=version) for version in (1, 2, 3)]
    return {
        "slow": Sample("a slow job", "tells how far it is by ctx.progress", jobs.resize.submit(pictures=24)),
        "failing": Sample(
            "a job that fails",
            "ended with its error, for good; 'holdfast runs again' makes a new run of it",
            jobs.import_feed.submit(address="not-a-feed"),
        ),
        "retried": Sample(
            "a job that fails once",
            "max_attempts=3: the first attempt failed, it waited 2 s and was tried again",
            jobs.send_mail.submit(to="ada@example.org"),
        ),
        "keyed 1": Sample("one key, first", "key='document': no two runs of one document at a time", versions[0]),
        "keyed 2": Sample("one key, second", "waited for its turn while the first held the key", versions[1]),
        "keyed 3": Sample("one key, third", "oldest first: its turn came last", versions[2]),
        "timed out": Sample(
            "a job that hangs", "timeout=3: it was over its window and was stopped", jobs.crawl.submit(site="example")
        ),
        "cancelled": Sample(
            "a job we cancel",
            "cancelled from outside while it ran; it was told and stopped",
            jobs.report.submit(month="May"),
        ),
        "delayed": Sample(
            "a job for later",
            "delay=5: it waited until it was due",
            jobs.resize.using(delay=5).submit(pictures=2),
        ),
    }


def cancel_later(run: Run[Any], *, after: float) -> None:
    timer = threading.Timer(after, run.cancel, kwargs={"reason": "the tour cancels this one"})
    timer.daemon = True
    timer.start()


def watch(console: Console, hf: Holdfast, samples: list[Sample]) -> None:
    """Look a few times a second until all have ended."""
    started = time.monotonic()
    with shown(console) as show:
        while True:
            look(hf, samples)
            show(samples)
            if all(sample.run.snapshot.ended for sample in samples):
                return
            if time.monotonic() - started > AT_MOST.total_seconds():
                raise SystemExit(f"the tour did not end within {AT_MOST}; 'holdfast runs list' shows what is left")
            time.sleep(0.1)


def look(hf: Holdfast, samples: list[Sample]) -> None:
    for sample in samples:
        if sample.run.refresh().snapshot.ended:
            sample.done = 1.0 if sample.run.state == "succeeded" else sample.done
            sample.note = ""
            continue
        sample.note = hf.why(sample.run.id).reasons[0] if sample.run.state == "queued" else ""
        told = [event.data for event in hf.story(sample.run.id) if event.kind == "PROGRESS"]
        if told and told[-1]["total"]:
            sample.done, sample.note = told[-1]["done"] / told[-1]["total"], told[-1]["note"]


@contextlib.contextmanager
def shown(console: Console) -> Iterator[Callable[[list[Sample]], None]]:
    """A live table in a terminal; elsewhere a line for every change."""
    if console.is_terminal:
        with Live(console=console, refresh_per_second=12, transient=True) as live:
            yield lambda samples: live.update(live_table(samples, console.width))
        return
    before: dict[str, str] = {}

    def show(samples: list[Sample]) -> None:
        for sample in samples:
            if before.get(sample.run.id) != sample.run.state:
                before[sample.run.id] = sample.run.state
                waits = f": {sample.note}" if sample.run.state == "queued" and sample.note else ""
                print(f"{sample.title:<22} {sample.run.state}{waits}", flush=True)

    yield show


def live_table(samples: list[Sample], room: int) -> Group:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for name, width in (("", 21), ("STATE", 9), ("", 16), ("WHAT IT DOES OR WAITS FOR", max(10, room - 52))):
        table.add_column(Text(name, style="bold"), width=width, no_wrap=True, overflow="ellipsis")
    for sample in samples:
        bar = ProgressBar(total=1, completed=sample.done, width=16, pulse=False)
        empty = Text(" " * 16)
        table.add_row(
            Text(sample.title),
            Text(sample.run.state, style=STYLES[sample.run.state]),
            bar if sample.run.state == "running" or sample.done else empty,
            Text(sample.note, style="dim"),
        )
    return Group(Text(), table)


def finish(console: Console, hf: Holdfast, samples: list[Sample], database: Path) -> None:
    """What happened, why, and where to go from here."""
    print_results(console, samples)
    problems = hf.verify()
    sound = "every run is in exactly one place" if not problems else f"{len(problems)} problems!"
    url, failed = f"sqlite:///{database}", samples[1].run.id
    lines = [
        "",
        f"verify: {sound}",
        "",
        "The file stays where it is. Look at it with the command line (.venv/bin/holdfast):",
        f"  holdfast runs list {url}",
        f"  holdfast runs show {url} {failed}",
        "Then write a job of your own: docs/guide/first-steps.md, examples/hello.py.",
    ]
    for line in lines:
        console.print(Text(line), soft_wrap=True)


def print_results(console: Console, samples: list[Sample]) -> None:
    console.print()
    if not console.is_terminal:
        for sample in samples:
            print(f"{sample.title:<22} {sample.run.state:<10} {took(sample):>6}  {sample.lesson}")
        return
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for name, width in (("", 21), ("ENDED", 9), ("TOOK", 5), ("TRIES", 5), ("WHY", max(20, console.width - 48))):
        table.add_column(Text(name, style="bold"), width=width)
    for sample in samples:
        table.add_row(
            Text(sample.title),
            Text(sample.run.state, style=STYLES[sample.run.state]),
            took(sample),
            str(sample.run.snapshot.tries),
            Text(sample.lesson),
        )
    console.print(table)


def took(sample: Sample) -> str:
    snapshot = sample.run.snapshot
    if snapshot.started_at is None or snapshot.finished_at is None:
        return ""
    return f"{(snapshot.finished_at - snapshot.started_at).total_seconds():.1f} s"


if __name__ == "__main__":
    sys.exit(main())
