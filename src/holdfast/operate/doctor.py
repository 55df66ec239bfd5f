"""Doctor: checks the versions, the database, the clock, the schema and the workers.

It changes no runs. Only the checks of commits and workers need the tables.
"""

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

Verdict = Literal["ok", "warning", "error"]
COMMITS = 5
PAGE = 1000
SLOW = timedelta(milliseconds=50)


@dataclass(frozen=True, kw_only=True)
class Check:
    """The result of one check: its value, whether that is in order, and what to do if it is not."""

    name: str
    value: str
    verdict: Verdict = "ok"
    advice: str = ""


def check(store: Store, settings: Settings) -> list[Check]:
    """Run all checks. Those that need the tables are left out if the schema is not up to date."""
    checks = [
        Check(name="python", value=f"{platform.python_implementation()} {platform.python_version()}"),
        Check(name="holdfast", value=__version__),
    ]
    if (unsafe := store.dialect.unsafe) is not None:
        return [*checks, Check(name="database", value=store.dialect.name, verdict="error", advice=str(unsafe))]
    about, ahead = store.about()
    checks += [
        Check(
            name="database",
            value=about.server,
            verdict="warning" if about.advice else "ok",
            advice="; ".join(about.advice),
        ),
        Check(name="driver", value=about.driver),
        _clock(ahead),
    ]
    current, latest = migrate.version(store), migrate.latest(store.dialect.name)
    checks.append(_schema(current, latest, at_first_use=settings.auto_migrate))
    if current == latest:
        checks += [_commit(store), *_workers(store)]
    return checks


def artifacts(store: Store, artifact_store: ArtifactStore) -> list[Finding]:
    """Find artifacts whose file is missing or differs from its checksum."""
    findings, last = [], ("", "")
    while True:
        page = store.read(lambda tx: tx.all("read_artifacts", folder=last[0], name=last[1], limit=PAGE))  # noqa: B023
        for row in page:
            artifact = Artifact(**row).at(artifact_store)
            try:
                artifact.check()
            except (ArtifactNotFound, ArtifactCorrupt) as error:
                # Report it only if its row is unchanged: the artifact may have been replaced or removed meanwhile.
                if store.read(lambda tx: tx.one("find_artifact", folder=artifact.folder, name=artifact.name)) == row:  # noqa: B023
                    findings.append(Finding(problem=error.code, run_id=artifact.run_id, detail=str(error)))
        if len(page) < PAGE:
            return findings
        last = (page[-1]["folder"], page[-1]["name"])


def _clock(ahead: timedelta) -> Check:
    seconds = ahead.total_seconds()
    advice = (
        ""
        if abs(ahead) <= JUMP
        else "set the clock of this host or of the database; meanwhile Holdfast uses the time of the database"
    )
    return Check(
        name="clock",
        value=f"the database is {abs(seconds):.3f} s {'ahead of' if seconds >= 0 else 'behind'} this host",
        verdict="warning" if advice else "ok",
        advice=advice,
    )


def _schema(current: int | None, latest: int, *, at_first_use: bool) -> Check:
    if current == latest:
        return Check(name="tables", value=f"version {current}")
    if current is not None and current > latest:
        return Check(
            name="tables",
            value=f"version {current}; this Holdfast supports up to {latest}",
            verdict="error",
            advice="upgrade Holdfast in this environment",
        )
    value = "none" if current is None else f"version {current}; this Holdfast needs {latest}"
    if at_first_use:
        return Check(
            name="tables",
            value=value,
            verdict="warning",
            advice="run 'holdfast migrate'; otherwise the first use migrates them",
        )
    return Check(name="tables", value=value, verdict="error", advice="run 'holdfast migrate'")


def _commit(store: Store) -> Check:
    """Measure how long a durable commit takes, by updating the version row without changing it."""
    durations = []
    for _ in range(COMMITS):
        before = store.clock.elapsed()
        store.do(lambda tx: tx.all("lock_schema"))
        durations.append(store.clock.elapsed() - before)
    median = timedelta(seconds=statistics.median(durations))
    advice = "" if median <= SLOW else "commits are slow, and each submission waits for one; check the disk and network"
    return Check(
        name="commit",
        value=f"{median.total_seconds() * 1000:.1f} ms (median of {COMMITS})",
        verdict="warning" if advice else "ok",
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
    concurrency = sum(worker.concurrency for worker in alive)
    return [
        Check(
            name="workers",
            value=f"{len(alive)} alive, concurrency {concurrency}: {', '.join(worker.id for worker in alive[:5])}"
            + (" …" if len(alive) > 5 else ""),
            verdict="error" if unsafe else "warning" if mixed else "ok",
            advice="; ".join([*unsafe, *([mixed] if mixed else [])]),
        )
    ]
