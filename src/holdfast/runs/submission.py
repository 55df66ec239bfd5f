"""Submissions: requests for new runs, before they are stored."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING, TypeAlias

from holdfast.runs.queue_entry import QueueEntry
from holdfast.support import json_text, telemetry
from holdfast.support.errors import Unreadable
from holdfast.values.builds import BuildRequest
from holdfast.values.policies import Policy

CHILD = "child"
"""The stage of every child run; no stage of a pipeline has this name."""

if TYPE_CHECKING:
    from holdfast.runs.build_once import BuildMatch
    from holdfast.store.transaction import Row, Transaction


@dataclass(frozen=True, slots=True, kw_only=True)
class Submission:
    """A request for a new run.

    `dependencies` maps the runs that it depends on to whether they must succeed; `build_requests` does so for builds.
    `depends_on` lists both in the order given. With `build`, the submission only gets or creates that build.
    """

    run_id: str
    created_at: datetime | None = None
    """When the run was created, if an earlier transaction has already set that."""
    job: str
    queue: str
    priority: int
    key: str | None
    args: str
    policy: Policy
    tags: str = "{}"
    idempotency_key: str | None = None
    unique: str | None = None
    again_of: str | None = None
    due_at: datetime | None = None
    dependencies: Mapping[str, int] = field(default_factory=dict)
    build_requests: Mapping[BuildRequest, int] = field(default_factory=dict)
    depends_on: tuple[str | BuildRequest, ...] = ()
    build: BuildRequest | None = None
    failures_allowed: int | None = None
    pending_action: str | None = None
    kind: str | None = None
    parent_id: str | None = None
    stage: str | None = None
    segment: str | None = None
    traceparent: str | None = field(default_factory=telemetry.current)
    """The trace context of the submitting code."""
    by: str | None = None
    """The operator to name in the audit log, if any."""
    dependency_terms: str | None = None
    """How the run depends on each of `depends_on`, as JSON; set when builds are replaced by their runs."""
    family: tuple[Submission, ...] = ()
    """Runs that are submitted together with this one and may depend on each other, such as the stages of a pipeline."""

    @property
    def required_runs(self) -> set[str]:
        """The existing runs that the submission and its family depend on."""
        family = {member.run_id for member in self.family}
        return {depends_on for one in (self, *self.family) for depends_on in one.dependencies} - family

    @property
    def digest(self) -> str:
        """The digest that `unique` compares: that of the key or, if there is no key, of the arguments."""
        arguments = arguments_of(self.args) if self.family else self.args
        return json_text.digest("args" if self.key is None else "key", self.key or arguments, size=16)

    @property
    def entry(self) -> QueueEntry:
        return QueueEntry(
            run_id=self.run_id,
            job=self.job,
            queue=self.queue,
            rank=-self.priority,
            key=self.key,
            key_limit=self.policy.key_limit,
        )


Draft: TypeAlias = Callable[[Callable[[], str], datetime | None], Submission]
"""Makes a submission. It gets a function that returns new ids, and the creation time of the run."""


class Pending:
    """A submission that is about to be written.

    The first transaction that tries to write it sets its id and creation time, so that runs are ordered by when they
    are written. If it is unknown whether that transaction was committed, the next one reuses both, so that a retry
    creates no second run.
    """

    def __init__(self, draft: Draft, *, by: str | None = None) -> None:
        self._draft, self._by = draft, by
        self._made: Submission | None = None
        self.sent = False
        """Whether the submission may have been committed."""

    def within(self, tx: Transaction) -> Submission:
        """Return the submission for this transaction to write."""
        if self._made is None or not self.sent:
            made = self._draft(tx.new_id, tx.created_at)
            self._made = made if self._by is None else replace(made, by=self._by)
        return self._made


def stored(submission: Submission, now: datetime) -> Row:
    """Return the row of the run."""
    return {
        "id": submission.run_id,
        "job": submission.job,
        "queue": submission.queue,
        "priority": submission.priority,
        "run_key": submission.key,
        "args": submission.args,
        "policy": submission.policy.to_json(),
        "tags": submission.tags,
        "idempotency_key": submission.idempotency_key,
        "again_of": submission.again_of,
        "kind": submission.kind,
        "parent_id": submission.parent_id,
        "stage": submission.stage,
        "segment": submission.segment,
        "depends_on": _depends_on(submission),
        "dependency_terms": submission.dependency_terms or _dependency_terms(submission),
        "key_limit": submission.policy.key_limit,
        "keep_forever": int(submission.policy.keep_forever),
        "traceparent": submission.traceparent,
        "created_at": submission.created_at or now,
    }


def with_builds(submission: Submission, found: Mapping[BuildRequest, BuildMatch]) -> Submission:
    """Replace each build in `found` with its run. A build that has succeeded adds no dependency."""
    if not submission.build_requests:
        return submission
    dependencies = dict(submission.dependencies)
    for request, must in submission.build_requests.items():
        if request in found and not found[request].met:
            dependencies[found[request].run_id] = must or dependencies.get(found[request].run_id, 0)
    return replace(
        submission,
        dependencies=dependencies,
        build_requests={request: must for request, must in submission.build_requests.items() if request not in found},
        dependency_terms=_dependency_terms(submission),
        depends_on=tuple(
            found[depends_on].run_id if isinstance(depends_on, BuildRequest) and depends_on in found else depends_on
            for depends_on in submission.depends_on
        ),
    )


def build_request_rows(submission: Submission) -> Iterator[Row]:
    """Return the builds that an orchestrator has to get or create; `number` is the position in `depends_on`."""
    for request, must in submission.build_requests.items():
        number = submission.depends_on.index(request)
        yield request.row() | {"run_id": submission.run_id, "number": number, "must_succeed": int(must)}


def arguments_of(args: str) -> str:
    """Return the arguments of a pipeline from its stored plan."""
    return json_text.compact(json_text.load(args).get("arguments"))


def tags_of(text: str) -> dict[str, str]:
    """Read the stored tags of a run, or raise Unreadable."""
    tags = json_text.mapping(text)
    if not all(isinstance(value, str) for value in tags.values()):
        raise Unreadable("not tags: a value is not text")
    return tags


def read_depends_on(text: str | None) -> tuple[str | None, ...]:
    """Read the stored dependencies of a run, or raise Unreadable; None stands for a build that has no run yet."""
    ids = [] if text is None else json_text.load(text)
    if not isinstance(ids, list) or not all(one is None or isinstance(one, str) for one in ids):
        raise Unreadable("not a list of runs")
    return tuple(ids)


def _read_terms(depends_on: str | None, terms: str | None) -> Iterator[tuple[str | BuildRequest, bool]]:
    """Read the dependencies of a stored run, in order, each with whether it must succeed; or raise Unreadable."""
    ids = read_depends_on(depends_on)
    try:
        loaded = [0] * len(ids) if terms is None else json_text.load(terms)
        for run_id, term in zip(ids, loaded, strict=True):
            if isinstance(term, dict):
                yield BuildRequest.of(term), bool(term["must_succeed"])
            elif run_id is not None:
                yield run_id, bool(term)
    except (KeyError, TypeError, ValueError) as error:
        raise Unreadable(f"not the dependencies of a run: {error!r}") from None


def _depends_on(submission: Submission) -> str | None:
    """Return the dependencies in the order given, as JSON; null stands for a build that has no run yet."""
    depends_on = submission.depends_on or tuple(submission.dependencies)
    return json_text.compact([one if isinstance(one, str) else None for one in depends_on]) if depends_on else None


def _dependency_terms(submission: Submission) -> str | None:
    """Return as JSON, in the order of `depends_on`, whether each run must succeed, and each build request in full.

    Running a run again uses this to create the same dependencies.
    """
    if not submission.depends_on:
        return None
    return json_text.compact([_dependency_term(submission, one) for one in submission.depends_on])


def _dependency_term(submission: Submission, depends_on: str | BuildRequest) -> int | dict[str, object]:
    if isinstance(depends_on, str):
        return int(submission.dependencies.get(depends_on, False))
    return depends_on.row() | {"must_succeed": int(submission.build_requests[depends_on])}


def with_dependencies_of(tx: Transaction, submission: Submission, run_id: str) -> Submission:
    """Return the submission with the dependencies of run `run_id`: all builds, and the runs that have not ended."""
    row = tx.one("get_dependency_terms", id=run_id)
    assert row is not None
    depends_on = dict(_read_terms(row["depends_on"], row["dependency_terms"]))
    ids = [one for one in depends_on if isinstance(one, str)]
    open_ids = {row["id"] for row in tx.all("find_runs", ids=ids)} if ids else set()
    open_ids -= {row["run_id"] for row in tx.all("find_outcomes", ids=ids)} if ids else set()
    return replace(
        submission,
        depends_on=tuple(depends_on),
        dependencies={one: must for one, must in depends_on.items() if isinstance(one, str) and one in open_ids},
        build_requests={one: must for one, must in depends_on.items() if isinstance(one, BuildRequest)},
    )
