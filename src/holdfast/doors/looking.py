"""What a Holdfast answers about its runs: how they stand and why, searches, counts, news and who did what."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, TypeVar

from holdfast.jobs.job import Job
from holdfast.operate import logs, run_details
from holdfast.operate.explain import explain
from holdfast.operate.run_details import Dossier
from holdfast.operate.search import count_runs, count_states, list_runs, search_runs
from holdfast.operate.timeline import marks, news, signs, story
from holdfast.runs import audit, events, steps
from holdfast.runs.handle import RunLike, id_of
from holdfast.runs.snapshot import find_ids, get_snapshot
from holdfast.store.transaction import Transaction
from holdfast.support.errors import InvalidArguments
from holdfast.support.validation import check_limit, job_name
from holdfast.values.audit import Operation
from holdfast.values.events import Event, Events, News, Signs
from holdfast.values.filters import Count, Order, Page, RunFilter
from holdfast.values.logs import Logs
from holdfast.values.runs import Snapshot, Step, Why

T = TypeVar("T")
EVERYTHING = RunFilter()


class Looking:
    """The questions of one Holdfast; each is bounded, however much history there is."""

    def read(self, verb: Callable[[Transaction], T]) -> T:
        raise NotImplementedError

    def snapshot(self, run: RunLike) -> Snapshot:
        """A run as it stands, or RunNotFound."""
        return self.read(lambda tx: get_snapshot(tx, id_of(run)))

    def list_runs(
        self,
        *,
        state: str | None = None,
        job: Job[..., Any] | str | None = None,
        queue: str | None = None,
        tag: tuple[str, str] | None = None,
        parent: RunLike | None = None,
        parts: bool = True,
        limit: int = 50,
        before: RunLike | None = None,
    ) -> list[Snapshot]:
        """The newest runs first; `before` continues after the last id of the page before.

        `parent` is the pipeline whose stages and segments are wanted, or the run whose children are; without `parts`
        no pipeline's stages and segments are listed.
        """
        check_limit(limit)
        chosen: dict[str, Any] = {"state": state, "job": None if job is None else job_name(job), "queue": queue}
        chosen |= {name: None if run is None else id_of(run) for name, run in (("before", before), ("parent", parent))}
        return self.read(lambda tx: list_runs(tx, **chosen, tag=tag, parts=parts, limit=limit))

    def story(self, run: RunLike) -> list[Event]:
        """Everything that happened to a run, in order."""
        return self.read(lambda tx: story(tx, id_of(run)))

    def why(self, run: RunLike) -> Why:
        """Where a run stands, and what it waits for."""
        return self.read(lambda tx: explain(tx, id_of(run)))

    def dossier(self, run: RunLike) -> Dossier:
        """All that a page about a run shows: why it is where it is, its newest events, its steps, who it belongs to."""
        return self.read(lambda tx: run_details.of(tx, id_of(run)))

    def recorded(self, run: RunLike, *, after: int = 0, limit: int = 500) -> list[tuple[int, Event]]:
        """What was recorded of a run (its log among it) after that number, each with its own."""
        check_limit(limit)
        return self.read(lambda tx: events.of(tx, id_of(run), after=after, limit=limit))

    def search(
        self,
        filter: RunFilter = EVERYTHING,
        *,
        limit: int = 50,
        after: str | None = None,
        order: Order = "newest",
        before: RunLike | None = None,
    ) -> Page:
        """The runs that a filter means, the newest first; `after` is the `next` of the page before.

        Of runs that have ended, who ended last is the newest; with `order="submitted"` who was submitted last is.
        `before` leaves out that run and all that were submitted after it.
        At most 10,000 runs are looked at for a page, so it may have few runs, or none, and still have a next one.
        """
        check_limit(limit)
        bound = "~" if before is None else id_of(before)
        return self.read(
            lambda tx: search_runs(tx, _checked(filter), limit=limit, after=after, bound=bound, order=order)
        )

    def count(self, filter: RunFilter = EVERYTHING) -> Count:
        """How many runs a filter means, if 10,000 of them tell."""
        return self.read(lambda tx: count_runs(tx, _checked(filter)))

    def counts(self, filter: RunFilter = EVERYTHING) -> Mapping[str, Count]:
        """How many runs of each state a filter means; its own state does not count."""
        return self.read(lambda tx: count_states(tx, _checked(filter).without_state))

    def news(self, run: RunLike, *, after: str | None = None, limit: int = 1000) -> News:
        """What has happened to a run since a cursor, which came with the last event that was told."""
        check_limit(limit)
        return self.read(lambda tx: news(tx, id_of(run), after=after, limit=limit))

    def marks(self, runs: Sequence[RunLike]) -> Mapping[str, str]:
        """For each run, by its id, a short text that is another one whenever there may be news of it."""
        return self.read(lambda tx: marks(tx, [id_of(run) for run in runs]))

    def signs(self) -> Signs:
        """Short texts that are other ones whenever anything has changed: cheap to ask for, often."""
        return self.read(signs)

    def events(self, *, after: str | None = None, kinds: Collection[str] | None = None, limit: int = 1000) -> Events:
        """What was recorded of all runs since a cursor, and where to go on; none is left out, whoever commits late."""
        check_limit(limit)
        return self.read(lambda tx: events.everywhere(tx, after=after, kinds=kinds, limit=limit))

    def events_end(self) -> str:
        """The cursor after which `events` tells only what is recorded from now on."""
        return self.read(events.end)

    def logs(
        self, run: RunLike, *, level: str = "DEBUG", text: str | None = None, after: str | None = None, limit: int = 500
    ) -> Logs:
        """A run's log: records of at least this level that contain this text; `after` is the `next` of the page before.

        At most 10,000 of its events are looked at for a page.
        """
        check_limit(limit)
        return self.read(lambda tx: logs.of(tx, id_of(run), level=level, text=text, after=after, limit=limit))

    def steps(self, run: RunLike) -> Sequence[Step]:
        """The steps that a run has done and remembers, in order; `result` is JSON text."""
        return self.read(lambda tx: steps.of(tx, get_snapshot(tx, id_of(run)).id))

    def beginning(self, text: str, *, limit: int = 3) -> Sequence[str]:
        """The ids of runs that begin like that, the oldest first."""
        check_limit(limit)
        return self.read(lambda tx: find_ids(tx, text, limit=limit))

    def operations(self, *, limit: int = 50, before: str | None = None) -> Sequence[Operation]:
        """Who did what by hand, the newest first; `before` is the cursor of the last one of the page before."""
        check_limit(limit)
        return self.read(lambda tx: audit.listed(tx, limit=limit, before=before))


def _checked(filter: RunFilter) -> RunFilter:
    if not isinstance(filter, RunFilter):
        raise InvalidArguments(f"a filter is a RunFilter, not {filter!r}")
    return filter
