"""Checkups: the ground we stand on, measured. It changes no run and needs no tables."""

from __future__ import annotations

import platform
import socket
import statistics
from dataclasses import dataclass
from datetime import timedelta
from typing import Literal

from holdfast import __version__
from holdfast.artifacts.backends.base import ArtifactStore
from holdfast.runs import workers
from holdfast.store import migrate
from holdfast.store.store import Store
from holdfast.support.clock import JUMP
from holdfast.support.errors import ArtifactCorrupt, ArtifactNotFound
from holdfast.support.settings import Settings
from holdfast.values.artifacts import Artifact
from holdfast.values.runs import Finding

Verdict = Literal["fine", "warning", "wrong"]
COMMITS = 5
PAGE = 1000
SLOW = timedelta(milliseconds=50)


@dataclass(frozen=True, kw_only=True)
class Check:
    """One thing that was looked at: what it is, whether that is fine, and what to do if not."""

    name: str
    value: str
    verdict: Verdict = "fine"
    advice: str = ""


def check(store: Store, settings: Settings) -> list[Check]:
    """Every check there is, those that need the tables only where there are tables."""
    checks = [
        Check(name="python", value=f"{platform.python_implementation()} {platform.python_version()}"),
        Check(name="holdfast", value=__version__),
    ]
    if (unsafe := store.dialect.unsafe) is not None:
        return [*checks, Check(name="database", value=store.dialect.name, verdict="wrong", advice=str(unsafe))]
    about, ahead = store.about()
    checks += [
        Check(
            name="database",
            value=about.server,
            verdict="warning" if about.advice else "fine",
            advice="; ".join(about.advice),
        ),
        Check(name="driver", value=about.driver),
        _clock(ahead),
    ]
    current, latest = migrate.version(store), migrate.latest(store.dialect.name)
    checks.append(_schema(current, latest, at_first_use=settings.migrate))
    if current == latest:
        checks += [_commit(store), *_workers(store)]
    return checks


def artifacts(store: Store, depot: ArtifactStore) -> list[Finding]:
    """Artifacts whose file is not there or not as it was written, and still so at a second look."""
    found, last = [], ("", "")
    while True:
        page = store.read(lambda tx: tx.all("read_artifacts", place=last[0], name=last[1], limit=PAGE))  # noqa: B023
        for row in page:
            artifact = Artifact(**row).at(depot)
            try:
                artifact.check()
            except (ArtifactNotFound, ArtifactCorrupt) as error:
                # It may have been made anew or removed while we read it.
                if store.read(lambda tx: tx.one("find_artifact", place=artifact.place, name=artifact.name)) == row:  # noqa: B023
                    found.append(Finding(problem=error.code, run_id=artifact.run_id, detail=str(error)))
        if len(page) < PAGE:
            return found
        last = (page[-1]["place"], page[-1]["name"])


def _clock(ahead: timedelta) -> Check:
    seconds = ahead.total_seconds()
    advice = "" if abs(ahead) <= JUMP else "Holdfast follows the database's clock; set this host's right all the same"
    return Check(
        name="clock",
        value=f"the database is {abs(seconds):.3f} s {'ahead of' if seconds >= 0 else 'behind'} this host",
        verdict="warning" if advice else "fine",
        advice=advice,
    )


def _schema(current: int | None, latest: int, *, at_first_use: bool) -> Check:
    if current == latest:
        return Check(name="tables", value=f"version {current}")
    if current is not None and current > latest:
        return Check(
            name="tables",
            value=f"version {current}; this code knows up to {latest}",
            verdict="wrong",
            advice="upgrade Holdfast here",
        )
    value = "none" if current is None else f"version {current}; this code needs {latest}"
    if at_first_use:
        return Check(
            name="tables", value=value, verdict="warning", advice="made at the first use, or by 'holdfast migrate'"
        )
    return Check(name="tables", value=value, verdict="wrong", advice="run 'holdfast migrate'")


def _commit(store: Store) -> Check:
    """How long a durable commit takes: the version row is touched, not changed."""
    taken = []
    for _ in range(COMMITS):
        before = store.clock.elapsed()
        store.do(lambda tx: tx.all("lock_schema"))
        taken.append(store.clock.elapsed() - before)
    median = timedelta(seconds=statistics.median(taken))
    advice = "" if median <= SLOW else "each submit and each batch waits for a commit; look at the disk or the network"
    return Check(
        name="commit",
        value=f"{median.total_seconds() * 1000:.1f} ms (median of {COMMITS})",
        verdict="warning" if advice else "fine",
        advice=advice,
    )


def _workers(store: Store) -> list[Check]:
    alive = store.read(workers.live)
    if not alive:
        return [
            Check(name="workers", value="none alive", verdict="warning", advice="start one: holdfast worker app:hf")
        ]
    versions = {worker.version for worker in alive}
    unsafe = [
        f"worker {worker.id}: {problem}; restart it"
        for worker in alive
        if worker.host == socket.gethostname() and (problem := store.dialect.problem_of(worker.pid)) is not None
    ]
    mixed = "" if versions == {__version__} else f"versions differ: {', '.join(sorted(versions | {__version__}))}"
    places = sum(worker.concurrency for worker in alive)
    return [
        Check(
            name="workers",
            value=f"{len(alive)} alive, {places} places: {', '.join(worker.id for worker in alive[:5])}"
            + (" …" if len(alive) > 5 else ""),
            verdict="wrong" if unsafe else "warning" if mixed else "fine",
            advice="; ".join([*unsafe, *([mixed] if mixed else [])]),
        )
    ]
