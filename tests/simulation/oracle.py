"""The oracle: checks after every commit, and at the end of a history, that no rule is violated.

A simulation finds only the errors that its oracle checks for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, TypeGuard

from tests.simulation.features import CAPACITY, CONCURRENCY, NARROW, PERIOD, RATE, STARTS

from holdfast import Holdfast
from holdfast.values.policies import policy_from_json

if TYPE_CHECKING:
    from tests.simulation.processes import Process, WorkerProcess
    from tests.simulation.world import World


class Violation(Exception):
    """A state or an action that must never occur."""


@dataclass(frozen=True)
class Commit:
    process: Process
    role: str
    now: datetime


@dataclass(frozen=True, slots=True)
class Place:
    """A run's row in waits, ready or leases."""

    place: str
    key: str | None
    claim: int
    attempt: int
    takeovers: int
    key_limit: int = 1
    number: int = 0
    missing: int = 0
    due_at: datetime | None = None
    holder: str | None = None
    expires_at: datetime | None = None
    deadline_at: datetime | None = None
    expired_seen_at: datetime | None = None
    started_at: datetime | None = None
    cancelled: bool = False


@dataclass
class Picture:
    """The contents of the database at one moment."""

    runs: dict[str, tuple[Any, ...]] = field(default_factory=dict)
    places: dict[str, Place] = field(default_factory=dict)
    outcomes: dict[str, tuple[Any, ...]] = field(default_factory=dict)
    key_locks: dict[tuple[str, int], str | None] = field(default_factory=dict)
    dependencies: dict[str, int] = field(default_factory=dict)
    steps: dict[tuple[str, str], int] = field(default_factory=dict)
    counted: set[str] = field(default_factory=set)
    pending_actions: int = 0
    """Build requests and cancellations of children that an orchestrator has not processed yet."""


class Oracle:
    def __init__(self, world: World) -> None:
        self._world, self._database = world, world.database
        self.names: dict[str, str] = {}
        self.rolled_back: set[str] = set()
        self.overlap_possible = False
        self._seen = self._reading = Picture()
        self._stamp: object = None
        self._event = 0
        self._undecided: set[str] = set()
        self._accepted: dict[str, None] = {}
        self._idempotent: dict[str, str] = {}
        self._not_before: dict[str, tuple[float, timedelta]] = {}
        self._claims: Counter[str] = Counter()
        self._cancelled_at: dict[str, int] = {}
        self._steps_at_start: dict[tuple[str, int], set[str]] = {}
        self._problems: list[str] = []
        self._starts: list[datetime] = []
        self._results: dict[str, int] = {}

    # Called by processes

    def accepted(self, run_id: str, idempotency_key: str | None) -> None:
        """A client has learned that its submission is committed."""
        if idempotency_key is not None and self._idempotent.setdefault(idempotency_key, run_id) != run_id:
            self.alarm(f"two runs have idempotency key {idempotency_key}")
        self._accepted[run_id] = None
        self._undecided.discard(run_id)

    def not_before(self, run_id: str, elapsed: float) -> None:
        """Check that a delayed run is not ready before this time, unless the database's clock jumps before then."""
        self._not_before[run_id] = (elapsed, self._world.offset)

    def expects(self, run_id: str, result: int) -> None:
        """Set the result that the run must have if it succeeds."""
        self._results[run_id] = result

    def undecided(self, run_ids: Iterable[str]) -> None:
        """These runs were submitted in a transaction that is still open."""
        self._undecided.update(run_ids)

    def refused(self, run_ids: Iterable[str]) -> None:
        self.rolled_back.update(run_ids)

    def known(self) -> list[str]:
        return list(self._accepted)

    def started(self, run_id: str, claim: int) -> None:
        self.overlap_possible = True
        self._steps_at_start[run_id, claim] = {name for run, name in self._seen.steps if run == run_id}

    def step_begins(self, run_id: str, claim: int, name: str) -> None:
        if name in self._steps_at_start[run_id, claim]:
            self.alarm(f"{self.name(run_id)}: {name} is executed again, though its result was stored")

    def cancelled(self, run_id: str, state: str) -> None:
        """A client has cancelled a run, and got this state as the answer."""
        place = self._seen.places.get(run_id)
        if state == "running" and place is not None and run_id not in self._cancelled_at:
            self.alarm(f"{self.name(run_id)}: an accepted cancel is not in the database")
        if state not in ("running", "cancelled") and self._seen.outcomes.get(run_id, ("",))[0] != state:
            self.alarm(f"{self.name(run_id)}: cancel returned {state!r}, which is wrong")

    def alarm(self, problem: str) -> None:
        self._problems.append(problem)

    def name(self, run_id: str) -> str:
        return self.names.setdefault(run_id, f"run-{len(self.names)}")

    def _named(self, run_ids: Iterable[str]) -> str:
        return ", ".join(self.name(run_id) for run_id in run_ids)

    # Checks

    def check(self, commit: Commit | None) -> None:
        """Check the rules. Called after every move; reads the database only if it may have changed."""
        if self._problems:
            raise Violation(self._problems[0])
        if self.overlap_possible:
            self._no_two_at_once()
        if commit is None:
            return
        stamp = self._database.stamp()
        if stamp == self._stamp:
            self._check_without_changes()
            return
        self._stamp = stamp
        before, now = self._seen, self._read()
        self._reading = now
        self._note_moves(before, now)
        self._in_one_place(now)
        self._keys(now)
        self._limits(now)
        self._queue_limits(before, now)
        self._require(before.runs.items() <= now.runs.items(), "the row of a run was changed or deleted")
        self._require(before.outcomes.items() <= now.outcomes.items(), "an outcome was changed or deleted")
        for run_id in now.runs.keys() - before.outcomes.keys():
            if before.places.get(run_id) != now.places.get(run_id) or run_id in now.outcomes:
                self._moved(run_id, before, now, commit)
        self._key_order(before, now, commit)
        self._writes(before, now)
        self._seen = now
        self._taken_over_in_time(now)
        self._too_early()

    def _check_without_changes(self) -> None:
        """Check what processes have done since the last check, against the rows of that check."""
        self._in_one_place(self._seen)
        self._limits(self._seen)
        self._too_early()

    def _too_early(self) -> None:
        for run_id, (elapsed, offset) in list(self._not_before.items()):
            place = self._seen.places.get(run_id)
            if self._world.elapsed >= elapsed or self._world.offset != offset:
                del self._not_before[run_id]
            elif place is not None:
                self._require(place.place == "waits", f"{self.name(run_id)} is {place.place} before its time")

    def idle(self) -> bool:
        nothing_left = not self._seen.places and not self._seen.pending_actions
        return nothing_left and all(run_id in self._seen.outcomes for run_id in self._accepted)

    def final(self, hf: Holdfast) -> None:
        """Check that every run has ended and that nothing is left over."""
        stuck = {self.name(run_id): place for run_id, place in self._seen.places.items()}
        self._require(not stuck, f"these runs never end: {stuck}")
        lost = [self.name(run_id) for run_id in self._accepted if run_id not in self._seen.outcomes]
        self._require(not lost, f"these runs were accepted but have no outcome: {lost}")
        self._require(not self._seen.dependencies, "dependencies are left over")
        self._require(not self._seen.pending_actions, "a pending action of an orchestrator was never done")
        for run_id, result in self._results.items():
            state, found = self._seen.outcomes[run_id][0], self._seen.outcomes[run_id][6]
            fits = state != "succeeded" or found == str(result)
            self._require(fits, f"{self.name(run_id)} has the result {found}, not {result}")
        held = [key for key, run_id in self._seen.key_locks.items() if run_id is not None]
        self._require(not held, f"these keys are held by runs that have ended: {held}")
        problems = hf.verify()
        self._require(not problems, f"verify finds {problems}")

    def _read(self) -> Picture:
        instant = self._database.instant
        rows = self._database.rows(*_PICTURE)
        runs, outcomes, key_locks, dependencies, build_requests, cancellations = rows[:6]
        counted, steps, ready, waits, leases = rows[6:]
        picture = Picture(
            runs={row[0]: row[1:] for row in runs},
            outcomes={row[0]: row[1:] for row in outcomes},
            key_locks={(row[0], row[1]): row[2] for row in key_locks},
            dependencies=dict(Counter(row[0] for row in [*dependencies, *build_requests])),
            counted={row[0] for row in counted},
            pending_actions=len(build_requests) + len(cancellations),
            steps={(row[0], row[1]): row[2] for row in steps},
        )
        found = [(row[0], Place("ready", *row[1:])) for row in ready]
        for row in waits:
            waiting: dict[str, Any] = {"missing": row[6], "due_at": instant(row[7])}
            found.append((row[0], Place("waits", *row[1:6], **waiting)))
        for row in leases:
            held: dict[str, Any] = {"holder": row[7], "expires_at": instant(row[8]), "cancelled": row[9] is not None}
            held |= {"started_at": instant(row[10]), "deadline_at": instant(row[11])}
            held["expired_seen_at"] = instant(row[12])
            found.append((row[0], Place("leases", *row[1:7], **held)))
        for run_id, place in found:
            if run_id in picture.places:
                raise Violation(f"{self.name(run_id)} is in {picture.places[run_id].place} and in {place.place}")
            picture.places[run_id] = place
        return picture

    def _note_moves(self, before: Picture, now: Picture) -> None:
        for run_id in sorted(now.runs.keys() - before.outcomes.keys()):
            was, is_ = _where(before, run_id), _where(now, run_id)
            if was != is_:
                place = now.places.get(run_id)
                more = f" claim {place.claim} attempt {place.attempt}" if place is not None else ""
                more += f" on {self.names.get(place.holder)}" if place is not None and place.holder else ""
                key = f" [{now.runs[run_id][0]}]" if now.runs[run_id][0] else ""
                self._world.note(f"{self.name(run_id)}{key}: {was} → {is_}{more}")

    def _no_two_at_once(self) -> None:
        self.overlap_possible = False
        runs: set[str] = set()
        key_locks: set[tuple[str, int]] = set()
        for process in self._world.processes:
            for run_id, _, lock in process.executing() if _works(process) else ():
                self._require(run_id not in runs, f"{self.name(run_id)} is executed twice at the same time")
                self._require(
                    lock is None or lock not in key_locks, f"two runs with key lock {lock} are executed at once"
                )
                runs.add(run_id)
                if lock is not None:
                    key_locks.add(lock)

    def _in_one_place(self, now: Picture) -> None:
        twice = now.places.keys() & now.outcomes.keys()
        self._require(not twice, f"{self._named(twice)}: in two places")
        somewhere = now.places.keys() | now.outcomes.keys()
        self._require(now.runs.keys() <= somewhere, f"{self._named(now.runs.keys() - somewhere)}: in no place")
        self._require(somewhere <= now.runs.keys(), f"{self._named(somewhere - now.runs.keys())}: never submitted")
        back = now.runs.keys() & self.rolled_back
        self._require(not back, f"{self._named(back)}: rolled back, but in the database")
        lost = self._accepted.keys() - now.runs.keys()
        self._require(not lost, f"{self._named(lost)}: accepted, but not in the database")
        missing = {run_id: place.missing for run_id, place in now.places.items() if place.missing}
        self._require(
            missing == now.dependencies, f"dependencies left are {missing}, but the table has {now.dependencies}"
        )

    def _keys(self, now: Picture) -> None:
        left_waits: set[tuple[str, int]] = set()
        for run_id, place in now.places.items():
            if place.key is not None and place.place in ("ready", "leases"):
                lock = (place.key, place.number)
                self._require(now.key_locks.get(lock) == run_id, f"{self.name(run_id)} does not hold key lock {lock}")
                self._require(
                    1 <= place.number <= place.key_limit, f"{self.name(run_id)} has key lock {lock} beyond its limit"
                )
                self._require(lock not in left_waits, f"two runs with key lock {lock} have left waits")
                left_waits.add(lock)
        for key, held_by in now.key_locks.items():
            self._require(held_by is None or held_by in now.places, f"{key} is held by a run that has ended")

    def _limits(self, now: Picture) -> None:
        holders: Counter[str] = Counter()
        for run_id, place in now.places.items():
            if place.holder is not None:
                holders[place.holder] += 1
            if self._seen.places.get(run_id) == place:
                continue
            policy = policy_from_json(now.runs[run_id][1])
            self._require(
                0 <= place.attempt <= policy.max_attempts, f"{self.name(run_id)} has {place.attempt} attempts"
            )
            poison = place.takeovers > policy.max_takeovers + policy.max_attempts
            self._require(not poison, f"{self.name(run_id)} was taken over {place.takeovers} times")
        limit = self._world.odds.concurrency
        for process in self._world.processes:
            # A worker that stopped a run because it could not renew may claim again before the old lease is removed.
            active = holders[_holder_of(process) or ""] - len(process.abandoned(now.places)) if _works(process) else 0
            self._require(active <= limit, f"{process.name} has {active} leases, more than its concurrency {limit}")

    def _queue_limits(self, before: Picture, now: Picture) -> None:
        """No queue exceeds its capacity or concurrency, and no build has two unfinished runs."""
        narrow = {run_id for run_id in now.places if now.runs[run_id][3] == NARROW}
        self._require(
            now.counted == narrow,
            f"capacity counts {self._named(now.counted)}, but the queue has {self._named(narrow)}",
        )
        self._require(len(narrow) <= CAPACITY, f"{len(narrow)} runs in a queue with capacity {CAPACITY}")
        leased = [run_id for run_id in narrow if now.places[run_id].place == "leases"]
        self._require(
            len(leased) <= CONCURRENCY, f"{len(leased)} running runs in a queue with concurrency {CONCURRENCY}"
        )
        made = Counter(run[4] for run_id, run in now.runs.items() if run[5] == "build" and run_id in now.places)
        self._require(all(count == 1 for count in made.values()), f"a build has two unfinished runs: {made}")

    def _rate(self, run_id: str, place: Place, now: Picture) -> None:
        """Check that a rate is not exceeded; after a clock jump it may be."""
        if now.runs[run_id][2] != "rated" or self._world.jumped or place.started_at is None:
            return
        self._starts = sorted([*self._starts, place.started_at])
        for first, last in zip(self._starts, self._starts[STARTS:], strict=False):
            self._require(last - first >= PERIOD, f"{STARTS + 1} starts within {last - first}, but the rate is {RATE}")

    def _moved(self, run_id: str, before: Picture, now: Picture, commit: Commit) -> None:
        name = self.name(run_id)
        was, place = before.places.get(run_id), now.places.get(run_id)
        if place is not None and place.place == "leases":
            self._leased(run_id, was, place, commit)
        elif place is not None:
            self._require(run_id not in self._cancelled_at, f"{name} was cancelled and is in {place.place}")
        if was is not None and was.place == "leases" and (place is None or place.place != "leases"):
            self._left_a_lease(run_id, was, now, commit)
            if place is not None and place.place == "waits" and place.key is not None:
                strict = policy_from_json(now.runs[run_id][1]).key_order == "strict"
                self._require(
                    (run_id in now.key_locks.values()) == strict,
                    f"{name} waits for a retry and {'lost' if strict else 'kept'} its key lock",
                )
        if was is not None and place is not None:
            self._require(place.claim >= was.claim, f"{name}: its claim number decreased")
        if was is not None and was.place == "waits" and place is not None and place.place != "waits":
            self._require(was.due_at is None or was.due_at <= commit.now, f"{name} is ready before its time")
            self._require(
                was.missing == 0 or commit.role == "orchestrator", f"{name} is ready before its dependencies ended"
            )
            if _role(commit) == "worker":
                self._key_passed_on(run_id, place, before, now, commit)
        role = _role(commit)
        move = (_where(before, run_id), _where(now, run_id))
        self._require(
            move[0] == move[1] or move in _MOVES[role], f"{name}: {role} moved it from {move[0]} to {move[1]}"
        )
        if (outcome := now.outcomes.get(run_id)) and outcome[1] in ("PROCESS_TERMINATED", "TAKEOVER_LIMIT"):
            self._require(self._claims[run_id] > 0, f"{name}: {outcome[1]}, but no worker ever claimed it")

    def _key_passed_on(self, run_id: str, place: Place, before: Picture, now: Picture, commit: Commit) -> None:
        """A worker may move a run out of waits only with a key lock that a run of its own has just released."""
        earlier = before.key_locks.get((place.key or "", place.number))
        was = before.places.get(earlier or "")
        own = was is not None and was.holder == _holder(commit)
        released = own and now.places.get(earlier or "") != was
        self._require(released, f"{self.name(run_id)}: a worker that had no key lock to pass on moved it out of waits")

    def _leased(self, run_id: str, was: Place | None, place: Place, commit: Commit) -> None:
        name, mine = self.name(run_id), _holder(commit)
        # A run that is retried at once may start in the same commit if no other run waits for its key.
        again = was is not None and was.holder == mine and place.claim > was.claim and place.key is not None
        if was is None or was.place != "leases" or again:
            self._require(was is not None, f"{name} was started in the commit that submitted it")
            self._require(
                place.claim == self._claims[run_id] + 1,
                f"{name}: claim number {place.claim} was used again or does not follow the last one",
            )
            self._require(place.holder == mine, f"{name} was claimed for another worker")
            self._require(not _stops(commit.process), f"{name} was claimed by a worker that is shutting down")
            self._rate(run_id, place, self._reading)
            self._claims[run_id] = place.claim
        else:
            same = (was.claim, was.holder) == (place.claim, place.holder)
            self._require(same, f"{name}: another worker took its lease without a new claim")
            renewed = was.expires_at != place.expires_at
            self._require(not renewed or place.holder == mine, f"{name}: another worker renewed its lease")
        if place.cancelled:
            self._cancelled_at.setdefault(run_id, place.claim)
        cancelled_at = self._cancelled_at.get(run_id)
        self._require(
            cancelled_at is None or cancelled_at == place.claim, f"{name} was started again after it was cancelled"
        )

    def _left_a_lease(self, run_id: str, was: Place, now: Picture, commit: Commit) -> None:
        name = self.name(run_id)
        if commit.role == "orchestrator":
            assert was.expires_at is not None
            self._require(was.expires_at < commit.now, f"{name}: its lease was removed before it expired")
            seen_for = commit.now - was.expired_seen_at if was.expired_seen_at is not None else timedelta(0)
            renew_every = commit.process.hf.settings.renew_every
            self._require(seen_for >= renew_every, f"{name}: its lease was removed too soon after it was seen expired")
            self._require(not self._world.odds.all_live, f"{name}: its lease was removed, although its worker is alive")
            self._recovered(run_id, was, now)
            executing = {(run, claim) for p in self._world.processes if _works(p) for run, claim, _ in p.executing()}
            self._require(
                (run_id, was.claim) not in executing, f"{name}: its lease was removed while its worker was executing it"
            )
        else:
            self._require(was.holder == _holder(commit), f"{name} was finished by a worker that has no lease on it")

    def _recovered(self, run_id: str, was: Place, now: Picture) -> None:
        """A lease that expired before the deadline means a crash; a run that is then requeued loses no attempt."""
        assert was.expires_at is not None
        policy, name = policy_from_json(now.runs[run_id][1]), self.name(run_id)
        if was.cancelled or (was.deadline_at is not None and was.deadline_at <= was.expires_at):
            return
        state = _where(now, run_id)
        self._require(state != "timed_out", f"{name} is timed out, but its worker was lost before the deadline")
        if policy.on_crash == "requeue" and state != "failed":
            attempt = now.places[run_id].attempt
            self._require(attempt == was.attempt - 1, f"{name}: the loss of its worker used up an attempt")

    def _taken_over_in_time(self, now: Picture) -> None:
        """Takeover happens in time, even if workers live only for a short time."""
        within = self._world.odds.takeover_within
        for run_id, place in now.places.items() if within is not None else ():
            if place.expires_at is not None:
                late = (self._world.time() - place.expires_at).total_seconds()
                self._require(
                    late <= (within or 0), f"{self.name(run_id)}: its expired lease is not removed, {late:.0f} s late"
                )

    def _key_order(self, before: Picture, now: Picture, commit: Commit) -> None:
        """A key lock goes to the oldest due run that waits for the key."""
        for (key, number), run_id in now.key_locks.items():
            if run_id is None or before.key_locks.get((key, number)) == run_id:
                continue
            older = [
                other
                for other, place in before.places.items()
                if place.place == "waits"
                and place.key == key
                and place.missing == 0
                and (place.due_at is None or place.due_at <= commit.now)
                and other < run_id
                and place.key_limit >= number
                and now.places.get(other) == place
                and other not in now.key_locks.values()  # a strict run that kept its key lock waits only for its time
            ]
            self._require(not older, f"{self.name(run_id)} overtook {[self.name(o) for o in older]} for {key}")

    def _writes(self, before: Picture, now: Picture) -> None:
        """Steps and events are written only for a claim that still has its lease."""
        for (run_id, step), claim in now.steps.items():
            if (run_id, step) not in before.steps:
                self._fenced(before, run_id, claim, step)
            else:
                unchanged = before.steps[run_id, step] == claim
                self._require(unchanged, f"{self.name(run_id)}: {step} was overwritten")
        out_of_turn, events = self._database.rows(
            f"select run_id from holdfast_waits where reason in ({_CLAIMED_OUT_OF_TURN})",
            f"select id, run_id, kind, claim from holdfast_events where id > {self._event} order by id",
        )
        for (run_id,) in out_of_turn:
            raise Violation(f"{self.name(run_id)}: claimed although it was not its turn")
        for number, run_id, kind, claim in events:
            self._event = number
            if claim is not None:
                self._fenced(before, run_id, claim, kind)

    def _fenced(self, before: Picture, run_id: str, claim: int, what: str) -> None:
        place = before.places.get(run_id)
        held = place is not None and place.place == "leases" and place.claim == claim
        self._require(held, f"{self.name(run_id)}: the stale claim {claim} wrote {what}")

    def _require(self, condition: bool, problem: str) -> None:
        if not condition:
            raise Violation(problem)


_CLAIMED_OUT_OF_TURN = "'another lease already holds its key', 'its row in ready had another key'"

_PICTURE = [
    "select id, run_key, policy, job, queue, args, kind from holdfast_runs",
    "select run_id, state, failure_type, claim, attempt, takeovers, finished_at, result, error from holdfast_outcomes",
    "select run_key, key_number, run_id from holdfast_key_locks",
    "select run_id from holdfast_dependencies",
    "select run_id from holdfast_build_requests",
    "select parent_id from holdfast_child_cancellations",
    "select run_id from holdfast_queue_capacity",
    "select run_id, name, claim from holdfast_steps",
    "select run_id, run_key, claim, attempt, takeovers, key_limit, key_number from holdfast_ready",
    "select run_id, run_key, claim, attempt, takeovers, key_limit, dependencies_left, due_at from holdfast_waits",
    "select run_id, run_key, claim, attempt, takeovers, key_limit, key_number, holder, expires_at, "
    "cancel_requested_at, started_at, deadline_at, expired_seen_at from holdfast_leases",
]

_MOVES = {
    "client": {
        ("nowhere", "ready"),
        ("nowhere", "waits"),
        ("waits", "cancelled"),
        ("ready", "cancelled"),
    },
    "worker": {
        ("ready", "leases"),
        ("waits", "ready"),
        ("waits", "leases"),
        ("ready", "waits"),  # its rate is used up
        ("nowhere", "ready"),  # a child
        ("nowhere", "waits"),
        *(("leases", end) for end in ("waits", "ready", "succeeded", "failed", "cancelled", "timed_out")),
    },
    "orchestrator": {
        ("nowhere", "ready"),  # a segment, or a build requested in a caller transaction
        ("nowhere", "waits"),
        ("waits", "ready"),
        ("waits", "failed"),
        ("waits", "cancelled"),  # a child of a run that did not succeed
        ("ready", "cancelled"),
        *(("leases", end) for end in ("waits", "ready", "failed", "cancelled", "timed_out")),
    },
}


def _where(picture: Picture, run_id: str) -> str:
    if run_id in picture.places:
        return picture.places[run_id].place
    return str(picture.outcomes[run_id][0]) if run_id in picture.outcomes else "nowhere"


def _works(process: Process) -> TypeGuard[WorkerProcess]:
    return hasattr(process, "executing")


def _stops(process: Process) -> bool:
    return _works(process) and process.worker is not None and process.worker._stopping.is_set()


def _role(commit: Commit) -> str:
    if not _works(commit.process):
        return "client"
    return "orchestrator" if commit.role == "orchestrator" else "worker"


def _holder(commit: Commit) -> str | None:
    return _holder_of(commit.process)


def _holder_of(process: Process) -> str | None:
    worker = getattr(process, "worker", None)
    return None if worker is None else worker.id
