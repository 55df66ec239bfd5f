"""Submissions: what a submitter asks for, before it is a run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING, TypeAlias

from holdfast.runs.queue_entry import QueueEntry
from holdfast.support import json_text, telemetry
from holdfast.support.errors import Unreadable
from holdfast.values.builds import Wish
from holdfast.values.policies import Policy

CHILD = "child"
"""The stage of every run that another one submitted; no stage of a pipeline has this name."""

if TYPE_CHECKING:
    from holdfast.runs.build_once import BuildMatch
    from holdfast.store.transaction import Row, Transaction


@dataclass(frozen=True, slots=True, kw_only=True)
class Submission:
    """What a submitter asks for.

    `after` maps the runs that it needs to whether they must have succeeded, `wishes` does so for builds, and `needed`
    names both in the order given. With `build` it asks for that build: its run is got, or created if there is none.
    """

    run_id: str
    created_at: datetime | None = None
    """When its run was created, where an earlier transaction has said so."""
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
    after: Mapping[str, int] = field(default_factory=dict)
    wishes: Mapping[Wish, int] = field(default_factory=dict)
    needed: tuple[str | Wish, ...] = ()
    build: Wish | None = None
    spare: int | None = None
    errand: str | None = None
    kind: str | None = None
    parent_id: str | None = None
    stage: str | None = None
    segment: str | None = None
    trace: str | None = field(default_factory=telemetry.current)
    """Where whoever submits it stands in a trace."""
    by: str | None = None
    """Who asks for it, where that is written down."""
    dependencies: str | None = None
    """How it depends on each of `needed`, once builds have given way to the runs that make them."""
    family: tuple[Submission, ...] = ()
    """Runs that come with it and may need each other; they are submitted if it is."""

    @property
    def needs(self) -> set[str]:
        """The runs that must be there before it and its family are."""
        family = {member.run_id for member in self.family}
        return {needed for one in (self, *self.family) for needed in one.after} - family

    @property
    def digest(self) -> str:
        """What `unique` goes by: the key, or the arguments where there is none."""
        arguments = arguments_of(self.args) if self.family else self.args
        return json_text.digest("args" if self.key is None else "key", self.key or arguments, size=16)

    @property
    def ticket(self) -> QueueEntry:
        return QueueEntry(
            run_id=self.run_id,
            job=self.job,
            queue=self.queue,
            rank=-self.priority,
            key=self.key,
            key_limit=self.policy.key_limit,
        )


Draft: TypeAlias = Callable[[Callable[[], str], datetime | None], Submission]
"""Makes a submission, of what gives new ids and the time at which its run is created."""


class Pending:
    """A submission on its way to the database.

    The first transaction that tries to write it makes its id and its time, so that runs are in the order in which they
    are written. If no one knows whether that transaction was committed, the next one keeps both: one id is one run.
    """

    def __init__(self, draft: Draft, *, by: str | None = None) -> None:
        self._draft, self._by = draft, by
        self._made: Submission | None = None
        self.sent = False
        """Whether it may have been written."""

    def within(self, tx: Transaction) -> Submission:
        """The submission, for this transaction to write."""
        if self._made is None or not self.sent:
            made = self._draft(tx.new_id, tx.created_at)
            self._made = made if self._by is None else replace(made, by=self._by)
        return self._made


def stored(submission: Submission, now: datetime) -> Row:
    """The run as it is stored."""
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
        "needed": _needed(submission),
        "dependencies": submission.dependencies or _dependencies(submission),
        "key_limit": submission.policy.key_limit,
        "audit": int(submission.policy.audit),
        "trace": submission.trace,
        "created_at": submission.created_at or now,
    }


def settled(submission: Submission, found: Mapping[Wish, BuildMatch]) -> Submission:
    """The submission with runs in place of the builds that were found; one that is ready needs no waiting for."""
    if not submission.wishes:
        return submission
    after = dict(submission.after)
    for wish, must in submission.wishes.items():
        if wish in found and not found[wish].met:
            after[found[wish].run_id] = must or after.get(found[wish].run_id, 0)
    return replace(
        submission,
        after=after,
        wishes={wish: must for wish, must in submission.wishes.items() if wish not in found},
        dependencies=_dependencies(submission),
        needed=tuple(
            found[needed].run_id if isinstance(needed, Wish) and needed in found else needed
            for needed in submission.needed
        ),
    )


def asks(submission: Submission) -> Iterator[Row]:
    """What an orchestrator has to get or create; its number is its place among all that the run needs."""
    for wish, must in submission.wishes.items():
        number = submission.needed.index(wish)
        yield wish.row() | {"run_id": submission.run_id, "number": number, "must_succeed": int(must)}


def arguments_of(args: str) -> str:
    """What a pipeline was given, without the rest of its plan."""
    return json_text.compact(json_text.load(args).get("arguments"))


def tags_of(text: str) -> dict[str, str]:
    """The stored tags of a run, or Unreadable."""
    found = json_text.mapping(text)
    if not all(isinstance(value, str) for value in found.values()):
        raise Unreadable("not tags: a value is no text")
    return found


def needed_of(text: str | None) -> tuple[str | None, ...]:
    """What a run needs, as it is stored, or Unreadable; None for a build that is yet to be found."""
    found = [] if text is None else json_text.load(text)
    if not isinstance(found, list) or not all(one is None or isinstance(one, str) for one in found):
        raise Unreadable("not a list of runs")
    return tuple(found)


def depended_on(needed: str | None, dependencies: str | None) -> Iterator[tuple[str | Wish, bool]]:
    """What a stored run needs, in order, and whether each must succeed; a build as a wish for it. Or Unreadable."""
    ids = needed_of(needed)
    try:
        told = [0] * len(ids) if dependencies is None else json_text.load(dependencies)
        for one, how in zip(ids, told, strict=True):
            if isinstance(how, dict):
                yield Wish.of(how), bool(how["must_succeed"])
            elif one is not None:
                yield one, bool(how)
    except (KeyError, TypeError, ValueError) as error:
        raise Unreadable(f"not what a run depends on: {error!r}") from None


def _needed(submission: Submission) -> str | None:
    """All that the run needs, as it was given; a build that is yet to be found leaves its place empty."""
    needed = submission.needed or tuple(submission.after)
    return json_text.compact([one if isinstance(one, str) else None for one in needed]) if needed else None


def _dependencies(submission: Submission) -> str | None:
    """How the run depends on what it needs, in the same order: whether a run must succeed, and a build in full.

    `again` makes a submission of it that waits as this one does.
    """
    if not submission.needed:
        return None
    return json_text.compact([_dependency(submission, one) for one in submission.needed])


def _dependency(submission: Submission, needed: str | Wish) -> int | dict[str, object]:
    if isinstance(needed, str):
        return int(submission.after.get(needed, False))
    return needed.row() | {"must_succeed": int(submission.wishes[needed])}


def with_dependencies_of(tx: Transaction, submission: Submission, run_id: str) -> Submission:
    """The submission with what this run depends on: the same builds, and its runs, which it waits for if they go on."""
    row = tx.one("get_dependencies", id=run_id)
    assert row is not None
    needed = dict(depended_on(row["needed"], row["dependencies"]))
    ids = [one for one in needed if isinstance(one, str)]
    open_ids = {row["id"] for row in tx.all("find_runs", ids=ids)} if ids else set()
    open_ids -= {row["run_id"] for row in tx.all("find_outcomes", ids=ids)} if ids else set()
    return replace(
        submission,
        needed=tuple(needed),
        after={one: must for one, must in needed.items() if isinstance(one, str) and one in open_ids},
        wishes={one: must for one, must in needed.items() if isinstance(one, Wish)},
    )
