"""Namespaces of the client: the same as those of `Holdfast`, over HTTP."""

from __future__ import annotations

import builtins
import contextlib
import hashlib
import tempfile
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, BinaryIO, cast

from holdfast.client import decoding
from holdfast.client.decoding import pages
from holdfast.client.jobs import Handle
from holdfast.client.transport import BLOCK, Wire
from holdfast.runs.handle import Run, RunLike, id_of
from holdfast.support.errors import ArtifactCorrupt, ArtifactNotFound
from holdfast.support.validation import as_duration, job_name
from holdfast.values.artifacts import Artifact
from holdfast.values.builds import Build
from holdfast.values.filters import RunFilter
from holdfast.values.keys import Key
from holdfast.values.queues import UNSET, Queue, Unset
from holdfast.values.runs import Snapshot
from holdfast.values.schedules import ScheduleInfo, Slot
from holdfast.values.statistics import Counter, FailureGroup, Gauge, JobTotals, Overview, Series
from holdfast.values.tokens import Role, Token
from holdfast.values.workers import ActiveRun, WorkerInfo

if TYPE_CHECKING:
    from holdfast.jobs.job import Job

SMALL = 1 << 20  # up to this many bytes, a file is kept in memory


class Namespace:
    def __init__(self, wire: Wire) -> None:
        self._wire = wire


class OperatorNamespace(Namespace):
    def __init__(self, wire: Wire, handle: Handle) -> None:
        super().__init__(wire)
        self._handle = handle

    def _run(self, data: Any) -> Run[Any]:
        return self._handle(decoding.snapshot(data))


class Artifacts(Namespace):
    """The files that runs have published."""

    def of(self, run: RunLike, *, limit: int | None = None, after: str | None = None) -> list[Artifact]:
        """List the artifacts of a run; for a pipeline, those of all its stages and segments.

        It returns all of them, or at most `limit`. `after` is the address of the last artifact of the previous page.
        """
        path = ("runs", id_of(run), "artifacts")
        return pages(
            lambda last, most: decoding.page(Artifact, self._wire.get(*path, after=last, limit=most)),
            limit=2**31 - 1 if limit is None else limit,
            first=after,
        )

    def get(self, run: RunLike, name: str) -> Artifact:
        """Return an artifact of a run, or raise ArtifactNotFound."""
        for artifact in self.of(run):
            if artifact.name == name:
                return artifact
        raise ArtifactNotFound(f"run {id_of(run)} has no artifact {name!r}")

    def open(self, run: RunLike, name: str, *, verify: bool = False) -> BinaryIO:
        """Download an artifact and open the copy for reading. With `verify` its checksum is checked first."""
        digest = hashlib.sha256()
        with contextlib.ExitStack() as failing:
            file = failing.enter_context(tempfile.SpooledTemporaryFile(SMALL))
            with self._wire.stream("runs", id_of(run), "artifacts", name) as response:
                for block in response.iter_bytes(BLOCK):
                    digest.update(block)
                    file.write(block)
            if verify and response.headers.get("etag") != f'"{digest.hexdigest()}"':
                raise ArtifactCorrupt(
                    f"artifact {name} of run {id_of(run)} does not match its checksum; run the job again"
                )
            file.seek(0)
            failing.pop_all()
            return cast(BinaryIO, file)


class Builds(OperatorNamespace):
    """The builds of a server. The methods take a Build, or a run (or run id) that built it."""

    def get(self, which: Build | RunLike) -> Build:
        """Return the current state of a build, or raise BuildNotFound."""
        return decoding.build(self._wire.get("builds", _named(which))["build"])

    def list(
        self,
        *,
        job: Job[..., Any] | str | None = None,
        scope: str | None = None,
        fingerprint: str | None = None,
        state: str | None = None,
        limit: int = 50,
        before: RunLike | None = None,
    ) -> builtins.list[Build]:
        """List builds, those with the newest runs first. `before` is the run of the last build of the previous page."""
        chosen: dict[str, Any] = {"job": None if job is None else job_name(job), "state": state}
        chosen |= {"scope": scope, "fingerprint": fingerprint}
        found = pages(
            lambda last, most: decoding.page(dict, self._wire.get("builds", **chosen, before=last, limit=most)),
            limit=limit,
            first=None if before is None else id_of(before),
        )
        return [self.get(one["run_id"]) if one["cut"] else decoding.build(one) for one in found]

    def history(self, which: Build | RunLike) -> builtins.list[Snapshot]:
        """Return the runs that built a build, newest first."""
        runs = self._wire.get("builds", _named(which))["runs"]
        return [decoding.listed(self._wire, run) for run in runs]

    def uses(self, found: Sequence[Build]) -> Mapping[str, int]:
        """Count the runs that depend on each build, by the id of the build's run. Builds without uses are left out."""
        counts = {one.run_id: int(self._wire.get("builds", one.run_id)["build"]["uses"]) for one in found}
        return {run_id: uses for run_id, uses in counts.items() if uses}

    def invalidate(self, which: Build | RunLike, *, reason: str | None = None) -> Build:
        """Mark a build as stale, so that the next request rebuilds it."""
        return decoding.build(self._wire.post("builds", _named(which), "invalidate", body={"reason": reason}))

    def rebuild(self, which: Build | RunLike) -> Run[Any]:
        """Rebuild a build now, and return the new run. The earlier run stays in the history."""
        return self._run(self._wire.post("builds", _named(which), "rebuild"))


class Bulk(OperatorNamespace):
    """Actions on all runs that match a filter. Each is a background run that any worker executes.

    Its result says how many runs matched, how many the action was applied to and how many were skipped.
    """

    def cancel(self, filter: RunFilter, *, reason: str = "cancelled") -> Run[dict[str, int]]:
        """Cancel every matching run that has not ended."""
        return self._run(self._wire.post("runs", "cancel", body=_body(filter) | {"reason": reason}))

    def again(self, filter: RunFilter) -> Run[dict[str, int]]:
        """Run every matching finished run again, once each."""
        return self._run(self._wire.post("runs", "again", body=_body(filter)))


class Keys(Namespace):
    """The keys that runs hold or wait for."""

    def list(self, *, limit: int = 100, after: str = "") -> list[Key]:
        """List the keys that runs hold or wait for, in order. `after` is the last key of the previous page."""
        return pages(
            lambda last, most: decoding.page(Key, self._wire.get("keys", after=last, limit=most)),
            limit=limit,
            first=after,
        )


class Tokens(Namespace):
    """The tokens of the HTTP API and the dashboard."""

    def add(self, name: str, *, role: Role = "viewer", expires: timedelta | float | None = None) -> str:
        """Create a token under a new name and return its secret, which can't be read again."""
        duration = as_duration(expires)
        body = {"name": name, "role": role, "expires": None if duration is None else duration.total_seconds()}
        return str(self._wire.post("tokens", body=body)["token"])

    def list(self) -> list[Token]:
        """List the valid tokens and sessions, without their secrets."""
        return decoding.items(Token, self._wire.get("tokens"))

    def remove(self, name: str) -> None:
        """Revoke a token, and end the sessions that were started with it."""
        self._wire.delete("tokens", name)


class Queues(Namespace):
    """The queues of a server, their pauses and limits."""

    def list(self) -> list[Queue]:
        """List every queue that has unfinished runs, a pause, a limit, refused submissions or a live worker."""
        return decoding.items(Queue, self._wire.get("queues"))

    def get(self, name: str) -> Queue:
        """Return a queue. An unknown queue has no runs, no pause and no limits."""
        return decoding.value(Queue, self._wire.get("queues", name))

    def pause(self, name: str, *, note: str | None = None) -> None:
        """Stop workers from claiming runs of a queue until `resume`. Runs that have started continue."""
        self._wire.post("queues", name, "pause", body={"note": note})

    def resume(self, name: str) -> None:
        """End the pause of a queue."""
        self._wire.post("queues", name, "resume")

    def limit(
        self, name: str, *, max_queued: int | Unset | None = UNSET, concurrency: int | Unset | None = UNSET
    ) -> None:
        """Change the limits of a queue for all processes; None removes a limit. `*` means all queues together."""
        limits = {"max_queued": max_queued, "concurrency": concurrency}
        body = {name: limit for name, limit in limits.items() if limit is not UNSET}
        self._wire.post("queues", name, "limit", body=body)


class Schedules(OperatorNamespace):
    """The schedules of a server."""

    def list(self) -> Sequence[ScheduleInfo]:
        """List every schedule with its last and next slot."""
        return decoding.items(ScheduleInfo, self._wire.get("schedules"))

    def get(self, schedule: Job[..., Any] | str) -> ScheduleInfo:
        """Return a schedule, or raise ScheduleNotFound."""
        return decoding.value(ScheduleInfo, self._wire.get("schedules", job_name(schedule)))

    def slots(self, schedule: Job[..., Any] | str, *, last: int = 20, next: int = 5) -> Sequence[Slot]:
        """Return the last slots with their outcomes and the next slots, in order of time."""
        answer = self._wire.get("schedules", job_name(schedule), "slots", last=last, next=next)
        return decoding.items(Slot, answer)

    def trigger(self, schedule: Job[..., Any] | str, *, scheduled_for: datetime) -> Run[Any]:
        """Claim a slot now, as the scheduler would, and return its run.

        Raises SlotTaken if the slot already has a run or an outcome, StillRunning if an unfinished run prevents it, and
        NoWorker if no live worker would run it.
        """
        body = {"scheduled_for": scheduled_for.astimezone(UTC).isoformat()}
        return self._run(self._wire.post("schedules", job_name(schedule), "trigger", body=body))

    def pause(self, schedule: Job[..., Any] | str, *, note: str | None = None) -> None:
        """Start no slots until `resume`. Runs that have started continue."""
        self._wire.post("schedules", job_name(schedule), "pause", body={"note": note})

    def resume(self, schedule: Job[..., Any] | str) -> None:
        """End a pause. Slots that came due during the pause count as late."""
        self._wire.post("schedules", job_name(schedule), "resume")


class Statistics(Namespace):
    """The statistics of a server."""

    def overview(self) -> Overview:
        """Return the queues, the age of the oldest ready run, running runs and capacity, and recent throughput."""
        return decoding.value(Overview, self._wire.get("statistics", "overview"))

    def series(self, span: timedelta, *, job: Job[..., Any] | str | None = None, queue: str | None = None) -> Series:
        """Return the runs that ended in the last `span` (up to 30 days), in at most 300 points."""
        name = None if job is None else job_name(job)
        answer = self._wire.get("statistics", "series", span=span.total_seconds(), job=name, queue=queue)
        return decoding.value(Series, answer)

    def gauges(self, span: timedelta) -> list[Gauge]:
        """Return how many runs waited and ran in each minute of the last `span` (up to 2 days), oldest first."""
        answer = self._wire.get("statistics", "gauges", span=span.total_seconds())
        return decoding.items(Gauge, answer)

    def failures(self, *, limit: int = 20) -> list[FailureGroup]:
        """Return the newest 1,000 failures, grouped by similar errors, largest group first."""
        return decoding.items(FailureGroup, self._wire.get("statistics", "failures", limit=limit))

    def jobs(self) -> list[JobTotals]:
        """Return the totals of all time for each job and queue."""
        return decoding.items(JobTotals, self._wire.get("statistics", "jobs"))

    def counters(self) -> list[Counter]:
        """Return the counters of lost leases, takeovers, refused submissions and missed slots."""
        return decoding.items(Counter, self._wire.get("statistics", "counters"))


class Workers(Namespace):
    """The live workers of a server."""

    def list(self) -> builtins.list[WorkerInfo]:
        """List the live workers, the longest running first."""
        return [decoding.value(WorkerInfo, one) for one in self._wire.get("workers")["workers"]]

    def get(self, worker_id: str) -> WorkerInfo:
        """Return a live worker, or raise WorkerNotFound."""
        return decoding.value(WorkerInfo, self._wire.get("workers", worker_id))

    def active_runs(self, *, limit: int = 1000) -> builtins.list[ActiveRun]:
        """List the runs that workers execute now, by worker."""
        return [decoding.value(ActiveRun, one) for one in self._wire.get("workers")["active_runs"]][:limit]

    def drain(self, worker_id: str) -> WorkerInfo:
        """Ask a live worker to finish its runs, claim no more and stop. Raises WorkerNotFound if it is not alive."""
        return decoding.value(WorkerInfo, self._wire.post("workers", worker_id, "drain"))


def _named(which: Build | RunLike) -> str:
    return which.run_id if isinstance(which, Build) else id_of(which)


def _body(filter: RunFilter) -> dict[str, Any]:
    given = filter.to_json()
    return given | ({"tag": "=".join(given["tag"])} if "tag" in given else {})
