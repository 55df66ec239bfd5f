"""Client: a Holdfast server over HTTP. It has the methods, values and errors of `Holdfast`."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Self

from holdfast.client import decoding, streams
from holdfast.client.decoding import MOST
from holdfast.client.jobs import Jobs
from holdfast.client.namespaces import Artifacts, Builds, Bulk, Keys, Queues, Schedules, Statistics, Tokens, Workers
from holdfast.client.pipelines import Pipelines
from holdfast.client.transport import Wire
from holdfast.runs.handle import Run, RunLike, id_of
from holdfast.runs.result_waiter import Waiter
from holdfast.support import settings
from holdfast.support.clock import Clock, SystemClock
from holdfast.support.errors import RunNotFound
from holdfast.support.validation import job_name
from holdfast.values.audit import AuditEntry
from holdfast.values.events import Event, Events, TimelinePage
from holdfast.values.filters import Count, Order, RunFilter
from holdfast.values.logs import Logs
from holdfast.values.pages import SearchPage
from holdfast.values.runs import Snapshot, Step, Why

if TYPE_CHECKING:
    from holdfast.jobs.job import Job


class Client:
    """A Holdfast server: `with Client("http://127.0.0.1:8700", token="hf_…") as hf: …`.

    The token comes from the argument, the URL (`?token=…`) or the variable HOLDFAST_TOKEN. The audit log names the
    owner of the token, so no method takes `by`. A client may be used from any number of threads.
    """

    def __init__(self, url: str, *, token: str | None = None, timeout: timedelta | float = 30) -> None:
        seconds = timeout.total_seconds() if isinstance(timeout, timedelta) else timeout
        self._wire = Wire(url, token=token, timeout=seconds)
        self.url = self._wire.url
        self.clock: Clock = SystemClock()
        self.settings = settings.load({})
        self.waiter = Waiter(self._find_ended, self._find_snapshots)
        self.jobs = Jobs(self._wire, self._handle)
        self.artifacts = Artifacts(self._wire)
        self.builds = Builds(self._wire, self._handle)
        self.bulk = Bulk(self._wire, self._handle)
        self.keys = Keys(self._wire)
        self.tokens = Tokens(self._wire)
        self.pipelines = Pipelines(self._wire, self._handle)
        self.queues = Queues(self._wire)
        self.schedules = Schedules(self._wire, self._handle)
        self.statistics = Statistics(self._wire)
        self.workers = Workers(self._wire)

    def submit(self, job: Job[..., Any] | str, /, **kwargs: Any) -> Run[Any]:
        """Submit a run of a job, given by its name. `client.jobs[name].using(…)` submits with other options."""
        return self.jobs[job_name(job)].submit(**kwargs)

    def get(self, run: RunLike) -> Run[Any]:
        """Return a run by its id, or raise RunNotFound."""
        return self._handle(self.snapshot(run))

    def snapshot(self, run: RunLike) -> Snapshot:
        """Return the current state of a run, or raise RunNotFound."""
        return decoding.snapshot(self._wire.get("runs", id_of(run)))

    def search(
        self,
        filter: RunFilter | None = None,
        *,
        limit: int = 50,
        after: str | None = None,
        order: Order = "newest",
        before: RunLike | None = None,
    ) -> SearchPage[Snapshot]:
        """Return a page of at most 200 runs that match a filter, newest first.

        `after` is the `next` of the previous page. `order` and `before` mean the same as in `Holdfast.search`.
        """
        query = _query(filter) | {"order": order, "before": None if before is None else id_of(before)}
        answer = self._wire.get("runs", **query, after=after, limit=min(limit, MOST))
        page = decoding.value(SearchPage[dict[str, Any]], answer)
        runs = tuple(decoding.listed(self._wire, run) for run in page.items)
        return SearchPage(items=runs, next=page.next, searched=page.searched, until=page.until)

    def count(self, filter: RunFilter | None = None) -> Count:
        """Count the runs that match a filter. It examines at most 10,000 runs; `more` is true if there are more."""
        return decoding.value(Count, self._wire.get("runs", "count", **_query(filter)))

    def counts(self, filter: RunFilter | None = None) -> Mapping[str, Count]:
        """Count the runs that match a filter, for each state. The `state` of the filter itself is ignored."""
        return decoding.value(dict[str, Count], self._wire.get("runs", "counts", **_query(filter)))

    def find_ids(self, prefix: str, *, limit: int = 3) -> Sequence[str]:
        """Return the run ids that begin with this prefix, oldest first."""
        if not prefix.isascii() or not prefix.isalnum() or not prefix.islower():
            return []
        return list(self._wire.get("runs", "ids", prefix=prefix, limit=limit)["items"])

    def why(self, run: RunLike) -> Why:
        """Explain why a run is in its state: what it waits for, where it runs, or how it ended."""
        answer, snapshot = self._wire.get("runs", id_of(run), "why"), self.snapshot(run)
        return Why(run=snapshot, reasons=tuple(answer["reasons"]))

    def timeline(self, run: RunLike) -> list[Event]:
        """Return all events of a run, in order."""
        events: list[Event] = []
        after: str | None = None
        while True:
            answer = self._wire.get("runs", id_of(run), "events", after=after, limit=MOST)
            events += [decoding.value(Event, event) for event in answer["events"]]
            after = answer["next"]
            if answer["ended"] or not answer["events"]:
                return events

    def timeline_page(
        self, run: RunLike, *, after: str | None = None, limit: int = 1000, wait: float = 0
    ) -> TimelinePage:
        """Return at most 200 events of a run after a cursor.

        It waits up to `wait` seconds for the first event.
        """
        answer = self._wire.get("runs", id_of(run), "events", after=after, limit=min(limit, MOST), wait=wait or None)
        events = tuple((event["cursor"], decoding.value(Event, event)) for event in answer["events"])
        return TimelinePage(events=events, run=self.snapshot(run), ended=answer["ended"])

    def follow(self, run: RunLike, *, after: str | None = None) -> Iterator[tuple[str, Event]]:
        """Yield every event of a run with its cursor, as it happens, until the run has ended.

        If the connection breaks, it reconnects and continues after the last event.
        """
        return streams.follow(self._wire, ("runs", id_of(run), "events"), after=after)

    def events(self, *, after: str | None = None, kinds: Collection[str] | None = None, limit: int = 1000) -> Events:
        """Return at most 200 recorded events of all runs after a cursor, and the cursor to continue from."""
        answer = self._wire.get("events", after=after, kinds=sorted(kinds or ()), limit=min(limit, MOST))
        events = tuple((event["cursor"], decoding.value(Event, event)) for event in answer["events"])
        return Events(events=events, next=answer["next"])

    def logs(
        self, run: RunLike, *, level: str = "DEBUG", text: str | None = None, after: str | None = None, limit: int = 500
    ) -> Logs:
        """Return a page of a run's log: records of at least this level that contain this text.

        `after` is the `next` of the previous page.
        """
        query: dict[str, Any] = {"level": level, "text": text, "after": after, "limit": min(limit, MOST)}
        return decoding.value(Logs, self._wire.get("runs", id_of(run), "logs", **query))

    def steps(self, run: RunLike) -> Sequence[Step]:
        """Return the stored steps of a run, in order. Their `result` is JSON text."""
        steps = self._wire.get("runs", id_of(run), "steps")["items"]
        whole = [self._wire.get("runs", id_of(run), "steps", one["name"]) if one["cut"] else one for one in steps]
        return [decoding.value(Step, one | {"result": decoding.as_json(one["result"])}) for one in whole]

    def audit_log(self, *, limit: int = 50, before: str | None = None) -> Sequence[AuditEntry]:
        """Return the actions of operators, newest first. `before` is the last cursor of the previous page."""
        answer = self._wire.get("audit", limit=min(limit, MOST), before=before)
        return decoding.items(AuditEntry, answer)

    def cancel(self, run: RunLike, *, reason: str = "cancelled") -> str:
        """Cancel a run and return its state. A queued run ends at once; a running one is asked to stop."""
        return str(self._wire.post("runs", id_of(run), "cancel", body={"reason": reason})["state"])

    def again(self, run: RunLike) -> Run[Any]:
        """Submit a new run with the job, arguments and policy of this one. Its `again_of` is the id of this one."""
        return self._handle(decoding.snapshot(self._wire.post("runs", id_of(run), "again")))

    def start(self) -> None:
        """Check that the server answers and accepts the token."""
        self._wire.get("queues")

    def close(self) -> None:
        self._wire.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _handle(self, snapshot: Snapshot) -> Run[Any]:
        return Run(self, snapshot.id, snapshot=snapshot)

    def _find_ended(self, run_ids: Sequence[str]) -> set[str]:
        parts = (run_ids[start : start + MOST] for start in range(0, len(run_ids), MOST))
        return set(run_ids).difference(*(self._wire.get("runs", "open", id=list(part))["items"] for part in parts))

    def _find_snapshots(self, run_ids: Sequence[str]) -> list[Snapshot]:
        snapshots: list[Snapshot] = []
        for run_id in run_ids:
            with contextlib.suppress(RunNotFound):
                snapshots.append(self.snapshot(run_id))
        return snapshots


def _query(filter: RunFilter | None) -> dict[str, Any]:
    given = (filter or RunFilter()).to_json()
    if "tag" in given:
        given["tag"] = "=".join(given["tag"])
    arguments = given.pop("args", {})
    return given | {"arg": [f"{path}={_text(value)}" for path, value in arguments.items()]}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else decoding.as_json(value)
