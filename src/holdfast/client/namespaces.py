"""The doors of a client: what there is besides runs, as the doors of `Holdfast` say it."""

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
from holdfast.values.statistics import Counter, FailureGroup, JobTotals, Overview, Sample, Series
from holdfast.values.tokens import Pass, Role
from holdfast.values.workers import Task, WorkerInfo

if TYPE_CHECKING:
    from holdfast.jobs.job import Job

SMALL = 1 << 20  # bytes of a file that is kept in memory


class Door:
    def __init__(self, wire: Wire) -> None:
        self._wire = wire


class SteeringDoor(Door):
    def __init__(self, wire: Wire, handle: Handle) -> None:
        super().__init__(wire)
        self._handle = handle

    def _run(self, said: Any) -> Run[Any]:
        return self._handle(decoding.snapshot(said))


class Artifacts(Door):
    """The files that runs have made."""

    def of(self, run: RunLike, *, limit: int | None = None, after: str | None = None) -> list[Artifact]:
        """What a run has made; of a pipeline, what all its stages and segments have.

        All of it, or a page of at most `limit`; `after` is the address of the last one before.
        """
        path = ("runs", id_of(run), "artifacts")
        return pages(
            lambda last, most: decoding.page(Artifact, self._wire.get(*path, after=last, limit=most)),
            limit=2**31 - 1 if limit is None else limit,
            first=after,
        )

    def get(self, run: RunLike, name: str) -> Artifact:
        """One artifact of a run, or ArtifactNotFound."""
        for artifact in self.of(run):
            if artifact.name == name:
                return artifact
        raise ArtifactNotFound(f"run {id_of(run)} has no artifact {name!r}")

    def open(self, run: RunLike, name: str, *, verify: bool = False) -> BinaryIO:
        """Its content, to read: a copy of it, here; with `verify` its checksum is checked first."""
        digest = hashlib.sha256()
        with contextlib.ExitStack() as failing:
            file = failing.enter_context(tempfile.SpooledTemporaryFile(SMALL))
            with self._wire.stream("runs", id_of(run), "artifacts", name) as response:
                for block in response.iter_bytes(BLOCK):
                    digest.update(block)
                    file.write(block)
            if verify and response.headers.get("etag") != f'"{digest.hexdigest()}"':
                raise ArtifactCorrupt(f"{name} of run {id_of(run)} is not as it was written; make it again")
            file.seek(0)
            failing.pop_all()
            return cast(BinaryIO, file)


class Builds(SteeringDoor):
    """The builds of a server; one is named by a Build that was read before, or by a run (or its id) that made it."""

    def get(self, which: Build | RunLike) -> Build:
        """A build as it stands now, or BuildNotFound."""
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
        """The newest makings first; `before` continues after the run of the last one of the page before."""
        chosen: dict[str, Any] = {"job": None if job is None else job_name(job), "state": state}
        chosen |= {"scope": scope, "fingerprint": fingerprint}
        found = pages(
            lambda last, most: decoding.page(dict, self._wire.get("builds", **chosen, before=last, limit=most)),
            limit=limit,
            first=None if before is None else id_of(before),
        )
        return [self.get(one["run_id"]) if one["cut"] else decoding.build(one) for one in found]

    def history(self, which: Build | RunLike) -> builtins.list[Snapshot]:
        """The runs that made it, the newest first."""
        made = self._wire.get("builds", _named(which))["runs"]
        return [decoding.listed(self._wire, run) for run in made]

    def uses(self, found: Sequence[Build]) -> Mapping[str, int]:
        """How many runs needed each of these, by the run that made it; one that no one needs is not in it."""
        said = {one.run_id: int(self._wire.get("builds", one.run_id)["build"]["uses"]) for one in found}
        return {run_id: uses for run_id, uses in said.items() if uses}

    def invalidate(self, which: Build | RunLike, *, because: str | None = None) -> Build:
        """Call it stale: the next who asks for it has it made anew."""
        return decoding.build(self._wire.post("builds", _named(which), "invalidate", body={"because": because}))

    def rebuild(self, which: Build | RunLike) -> Run[Any]:
        """Make it anew, now; the new run. The earlier one stays in history."""
        return self._run(self._wire.post("builds", _named(which), "rebuild"))


class Bulk(SteeringDoor):
    """Each of these is a run that any worker takes up; its result says how many matched, were done and were skipped."""

    def cancel(self, filter: RunFilter, *, reason: str = "cancelled") -> Run[dict[str, int]]:
        """Cancel every run that the filter means and that has not ended."""
        return self._run(self._wire.post("runs", "cancel", body=_body(filter) | {"reason": reason}))

    def again(self, filter: RunFilter) -> Run[dict[str, int]]:
        """Submit every run that the filter means and that has ended once more, each once."""
        return self._run(self._wire.post("runs", "again", body=_body(filter)))


class Keys(Door):
    """The keys that someone holds or waits for."""

    def list(self, *, limit: int = 100, after: str = "") -> list[Key]:
        """Keys that someone holds or waits for, in their order; `after` continues after the last of the page before."""
        return pages(
            lambda last, most: decoding.page(Key, self._wire.get("keys", after=last, limit=most)),
            limit=limit,
            first=after,
        )


class Passes(Door):
    """Who may look and steer."""

    def add(self, name: str, *, role: Role = "viewer", expires: timedelta | float | None = None) -> str:
        """A new token for someone who has none; it is shown this once and never again."""
        lasts = as_duration(expires)
        body = {"name": name, "role": role, "expires": None if lasts is None else lasts.total_seconds()}
        return str(self._wire.post("passes", body=body)["token"])

    def list(self) -> list[Pass]:
        """Every token and session that is still good, without its secret."""
        return decoding.items(Pass, self._wire.get("passes"))

    def remove(self, name: str) -> None:
        """Take back someone's token; the sessions that it began end with it."""
        self._wire.delete("passes", name)


class Queues(Door):
    """What queues have, their pauses and limits."""

    def list(self) -> list[Queue]:
        """Every queue that a live worker serves, or that has a run, a pause, a limit or a refusal."""
        return decoding.items(Queue, self._wire.get("queues"))

    def get(self, name: str) -> Queue:
        """One queue as it stands; one of which there is nothing to say has no run, no pause and no limit."""
        return decoding.value(Queue, self._wire.get("queues", name))

    def pause(self, name: str, *, note: str | None = None) -> None:
        """Let nothing of this queue be claimed until `resume`; what runs goes on."""
        self._wire.post("queues", name, "pause", body={"note": note})

    def resume(self, name: str) -> None:
        """Let a paused queue be claimed again."""
        self._wire.post("queues", name, "resume")

    def limit(
        self, name: str, *, max_queued: int | Unset | None = UNSET, concurrency: int | Unset | None = UNSET
    ) -> None:
        """Change limits of a queue (`*` is all of them together), for every process, at once. None lifts one."""
        said = {"max_queued": max_queued, "concurrency": concurrency}
        body = {which: limit for which, limit in said.items() if limit is not UNSET}
        self._wire.post("queues", name, "limit", body=body)


class Schedules(SteeringDoor):
    """What runs by the clock."""

    def list(self) -> Sequence[ScheduleInfo]:
        """Every schedule, its last slot and its next."""
        return decoding.items(ScheduleInfo, self._wire.get("schedules"))

    def get(self, schedule: Job[..., Any] | str) -> ScheduleInfo:
        """One schedule as it stands, or ScheduleNotFound."""
        return decoding.value(ScheduleInfo, self._wire.get("schedules", job_name(schedule)))

    def slots(self, schedule: Job[..., Any] | str, *, last: int = 20, next: int = 5) -> Sequence[Slot]:
        """The last slots and what became of them, then the next ones; in order of time."""
        said = self._wire.get("schedules", job_name(schedule), "slots", last=last, next=next)
        return decoding.items(Slot, said)

    def trigger(self, schedule: Job[..., Any] | str, *, scheduled_for: datetime) -> Run[Any]:
        """Claim a slot by hand; SlotTaken if it has been decided, StillRunning if an earlier run stands in the way,
        NoWorker if no live worker would run it."""
        body = {"scheduled_for": scheduled_for.astimezone(UTC).isoformat()}
        return self._run(self._wire.post("schedules", job_name(schedule), "trigger", body=body))

    def pause(self, schedule: Job[..., Any] | str, *, note: str | None = None) -> None:
        """Let no slot start until `resume`; what runs goes on."""
        self._wire.post("schedules", job_name(schedule), "pause", body={"note": note})

    def resume(self, schedule: Job[..., Any] | str) -> None:
        """Go on; the slots of the pause are late ones."""
        self._wire.post("schedules", job_name(schedule), "resume")


class Statistics(Door):
    """How it goes, in numbers."""

    def overview(self) -> Overview:
        """The queues, the oldest run that is ready, running against capacity, and how it goes just now."""
        return decoding.value(Overview, self._wire.get("statistics", "overview"))

    def series(self, span: timedelta, *, job: Job[..., Any] | str | None = None, queue: str | None = None) -> Series:
        """What ended in the last `span` (up to 30 days), point by point, at most 300 of them."""
        name = None if job is None else job_name(job)
        said = self._wire.get("statistics", "series", span=span.total_seconds(), job=name, queue=queue)
        return decoding.value(Series, said)

    def samples(self, span: timedelta) -> list[Sample]:
        """How much waited and ran in the last `span` (up to 2 days), minute by minute, the oldest first."""
        said = self._wire.get("statistics", "samples", span=span.total_seconds())
        return decoding.items(Sample, said)

    def failures(self, *, limit: int = 20) -> list[FailureGroup]:
        """The newest 1,000 failures in groups that look alike, the largest first."""
        return decoding.items(FailureGroup, self._wire.get("statistics", "failures", limit=limit))

    def jobs(self) -> list[JobTotals]:
        """What has been counted of each job and queue since the beginning."""
        return decoding.items(JobTotals, self._wire.get("statistics", "jobs"))

    def counters(self) -> list[Counter]:
        """Lost leases, takeovers, refusals, missed slots: what no row proves."""
        return decoding.items(Counter, self._wire.get("statistics", "counters"))


class Workers(Door):
    """The live workers, in whatever process."""

    def list(self) -> builtins.list[WorkerInfo]:
        """Every worker that has been heard within its lease, the longest alive first."""
        return [decoding.value(WorkerInfo, one) for one in self._wire.get("workers")["workers"]]

    def get(self, worker_id: str) -> WorkerInfo:
        """One live worker, or WorkerNotFound."""
        return decoding.value(WorkerInfo, self._wire.get("workers", worker_id))

    def tasks(self, *, limit: int = 1000) -> builtins.list[Task]:
        """What runs now, worker by worker."""
        return [decoding.value(Task, one) for one in self._wire.get("workers")["tasks"]][:limit]

    def drain(self, worker_id: str) -> WorkerInfo:
        """Ask a live worker to claim no more, finish what it has, and end; WorkerNotFound if it is not alive."""
        return decoding.value(WorkerInfo, self._wire.post("workers", worker_id, "drain"))


def _named(which: Build | RunLike) -> str:
    return which.run_id if isinstance(which, Build) else id_of(which)


def _body(filter: RunFilter) -> dict[str, Any]:
    given = filter.to_json()
    return given | ({"tag": "=".join(given["tag"])} if "tag" in given else {})
