"""Client: a Holdfast over HTTP. Its methods are those of `Holdfast`, and so are its values and errors."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Self

from holdfast.client import decoding, streams
from holdfast.client.decoding import MOST
from holdfast.client.jobs import Jobs
from holdfast.client.namespaces import Artifacts, Builds, Bulk, Keys, Passes, Queues, Schedules, Statistics, Workers
from holdfast.client.pipelines import Pipelines
from holdfast.client.transport import Wire
from holdfast.runs.handle import Run, RunLike, id_of
from holdfast.runs.result_waiter import Waiter
from holdfast.support import settings
from holdfast.support.clock import Clock, SystemClock
from holdfast.support.errors import RunNotFound
from holdfast.support.validation import job_name
from holdfast.values.audit import Operation
from holdfast.values.events import Event, Events, News
from holdfast.values.filters import Count, Order, RunFilter
from holdfast.values.logs import Logs
from holdfast.values.pages import SearchPage
from holdfast.values.runs import Snapshot, Step, Why

if TYPE_CHECKING:
    from holdfast.jobs.job import Job


class Client:
    """A Holdfast that is served somewhere else: `with Client("http://127.0.0.1:8700", token="hf_…") as hf: …`.

    The token is that of the argument, of the URL (`?token=…`), or of the variable HOLDFAST_TOKEN. What is done through
    it is done by whoever the token was given to, so nothing here takes `by`. One client serves any number of threads.
    """

    def __init__(self, url: str, *, token: str | None = None, timeout: timedelta | float = 30) -> None:
        seconds = timeout.total_seconds() if isinstance(timeout, timedelta) else timeout
        self._wire = Wire(url, token=token, timeout=seconds)
        self.url = self._wire.url
        self.clock: Clock = SystemClock()
        self.settings = settings.load({})
        self.waiter = Waiter(self._over, self._existing)
        self.jobs = Jobs(self._wire, self._handle)
        self.artifacts = Artifacts(self._wire)
        self.builds = Builds(self._wire, self._handle)
        self.bulk = Bulk(self._wire, self._handle)
        self.keys = Keys(self._wire)
        self.passes = Passes(self._wire)
        self.pipelines = Pipelines(self._wire, self._handle)
        self.queues = Queues(self._wire)
        self.schedules = Schedules(self._wire, self._handle)
        self.statistics = Statistics(self._wire)
        self.workers = Workers(self._wire)

    def submit(self, job: Job[..., Any] | str, /, **kwargs: Any) -> Run[Any]:
        """Queue a run of a job by its name. `client.jobs[name].using(…)` submits with other options."""
        return self.jobs[job_name(job)].submit(**kwargs)

    def get(self, run: RunLike) -> Run[Any]:
        """A run by its id, or RunNotFound."""
        return self._handle(self.snapshot(run))

    def snapshot(self, run: RunLike) -> Snapshot:
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
        """The runs that a filter means, the newest first; `after` is the `next` of the page before. At most 200."""
        query = _query(filter) | {"order": order, "before": None if before is None else id_of(before)}
        said = self._wire.get("runs", **query, after=after, limit=min(limit, MOST))
        page = decoding.value(SearchPage[dict[str, Any]], said)
        runs = tuple(decoding.listed(self._wire, run) for run in page.items)
        return SearchPage(items=runs, next=page.next, searched=page.searched, until=page.until)

    def count(self, filter: RunFilter | None = None) -> Count:
        """How many runs a filter means, if 10,000 of them tell."""
        return decoding.value(Count, self._wire.get("runs", "count", **_query(filter)))

    def counts(self, filter: RunFilter | None = None) -> Mapping[str, Count]:
        """How many runs of each state a filter means; its own state does not count."""
        return decoding.value(dict[str, Count], self._wire.get("runs", "counts", **_query(filter)))

    def beginning(self, text: str, *, limit: int = 3) -> Sequence[str]:
        """The ids of runs that begin like that, the oldest first."""
        if not text.isascii() or not text.isalnum() or not text.islower():
            return []
        return list(self._wire.get("runs", "ids", beginning=text, limit=limit)["items"])

    def why(self, run: RunLike) -> Why:
        """Where a run stands, and what it waits for."""
        said, snapshot = self._wire.get("runs", id_of(run), "why"), self.snapshot(run)
        return Why(run=snapshot, reasons=tuple(said["reasons"]))

    def story(self, run: RunLike) -> list[Event]:
        """Everything that happened to a run, in order."""
        told: list[Event] = []
        after: str | None = None
        while True:
            said = self._wire.get("runs", id_of(run), "events", after=after, limit=MOST)
            told += [decoding.value(Event, event) for event in said["events"]]
            after = said["next"]
            if said["ended"] or not said["events"]:
                return told

    def news(self, run: RunLike, *, after: str | None = None, limit: int = 1000, wait: float = 0) -> News:
        """What has happened to a run since a cursor, at most 200 of it; with `wait` as soon as there is something, at
        most so many seconds."""
        said = self._wire.get("runs", id_of(run), "events", after=after, limit=min(limit, MOST), wait=wait or None)
        told = tuple((event["cursor"], decoding.value(Event, event)) for event in said["events"])
        return News(events=told, run=self.snapshot(run), ended=said["ended"])

    def follow(self, run: RunLike, *, after: str | None = None) -> Iterator[tuple[str, Event]]:
        """Every event of a run with its cursor, as it happens, until it has ended; a broken connection is taken up
        again where it was."""
        return streams.follow(self._wire, ("runs", id_of(run), "events"), after=after)

    def events(self, *, after: str | None = None, kinds: Collection[str] | None = None, limit: int = 1000) -> Events:
        """What was recorded of all runs since a cursor, at most 200 of it, and where to go on."""
        said = self._wire.get("events", after=after, kinds=sorted(kinds or ()), limit=min(limit, MOST))
        return Events(
            events=tuple((one["cursor"], decoding.value(Event, one)) for one in said["events"]), next=said["next"]
        )

    def logs(
        self, run: RunLike, *, level: str = "DEBUG", text: str | None = None, after: str | None = None, limit: int = 500
    ) -> Logs:
        """A run's log: records of at least this level that contain this text; `after` is the `next` of a page."""
        query: dict[str, Any] = {"level": level, "text": text, "after": after, "limit": min(limit, MOST)}
        return decoding.value(Logs, self._wire.get("runs", id_of(run), "logs", **query))

    def steps(self, run: RunLike) -> Sequence[Step]:
        """The steps that a run has done and remembers, in order; `result` is JSON text."""
        said = self._wire.get("runs", id_of(run), "steps")["items"]
        whole = [self._wire.get("runs", id_of(run), "steps", one["name"]) if one["cut"] else one for one in said]
        return [decoding.value(Step, one | {"result": decoding.as_json(one["result"])}) for one in whole]

    def operations(self, *, limit: int = 50, before: str | None = None) -> Sequence[Operation]:
        """Who did what by hand, the newest first; `before` is the cursor of the last one of the page before."""
        said = self._wire.get("operations", limit=min(limit, MOST), before=before)
        return decoding.items(Operation, said)

    def cancel(self, run: RunLike, *, reason: str = "cancelled") -> str:
        """End a run that has not started; ask a running one to stop. Its state afterwards."""
        return str(self._wire.post("runs", id_of(run), "cancel", body={"reason": reason})["state"])

    def again(self, run: RunLike) -> Run[Any]:
        """A new run of the same job with the same arguments, which names the one it repeats."""
        return self._handle(decoding.snapshot(self._wire.post("runs", id_of(run), "again")))

    def start(self) -> None:
        """See that the server is there and knows who we are."""
        self._wire.get("queues")

    def close(self) -> None:
        self._wire.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _handle(self, snapshot: Snapshot) -> Run[Any]:
        return Run(self, snapshot.id, snapshot=snapshot)

    def _over(self, run_ids: Sequence[str]) -> set[str]:
        parts = (run_ids[start : start + MOST] for start in range(0, len(run_ids), MOST))
        return set(run_ids).difference(*(self._wire.get("runs", "open", id=list(part))["items"] for part in parts))

    def _existing(self, run_ids: Sequence[str]) -> list[Snapshot]:
        found: list[Snapshot] = []
        for run_id in run_ids:
            with contextlib.suppress(RunNotFound):
                found.append(self.snapshot(run_id))
        return found


def _query(filter: RunFilter | None) -> dict[str, Any]:
    given = (filter or RunFilter()).to_json()
    if "tag" in given:
        given["tag"] = "=".join(given["tag"])
    arguments = given.pop("args", {})
    return given | {"arg": [f"{path}={_text(value)}" for path, value in arguments.items()]}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else decoding.as_json(value)
