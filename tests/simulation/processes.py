"""Processes of a world: workers that execute simulated work, and clients that submit and cancel it."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from tests.simulation.features import NARROW, Features

from holdfast import Context, Holdfast, Job, Retry, TryAgain, Worker
from holdfast.runs.queue_entry import QueueEntry
from holdfast.support.errors import HoldfastError, RunNotFound, StoreBusy, StoreUnavailable, UnknownDependency
from holdfast.support.ids import Ids
from holdfast.testing import Fault, Faults

if TYPE_CHECKING:
    from tests.simulation.oracle import Place
    from tests.simulation.world import World

KEYS = ["alpha", "beta", "gamma"]
TROUBLE = (StoreBusy, StoreUnavailable)


class BoundaryFaults(Faults):
    """Calls the world before every transaction of a process and after its commit; the world may cause a fault."""

    def __init__(self, process: Process) -> None:
        self._process = process
        super().__init__(process.hf)

    def before(self, *, write: bool) -> Fault | None:
        return self._process.world.before_transaction(write=write)

    def after(self, *, write: bool) -> None:
        if write:
            self._process.world.committed()


class HostIds(Ids):
    """Ids of a simulated host: they contain nothing of the real machine, not even the pid."""

    def __init__(self, process: str, *, seed: int) -> None:
        super().__init__(seed=seed)
        self._process = process

    def holder(self, name: str) -> str:
        return f"{self._process}:1:{name}:{self.token()}"


class Process:
    """One process with its own engine, clock and threads."""

    hf: Holdfast

    def __init__(self, world: World, name: str) -> None:
        from tests.simulation.world import HostClock

        self.world, self.name = world, name
        self.dead = False
        self.paused_until: float | None = None
        self.blocked_until = 0.0
        self.just_resumed = False
        """True from the end of a pause until its watch thread checks leases again: the heartbeat may renew them first.

        A guardian would have killed `holdfast worker`; this worker is inside an application, which no guardian kills.
        """
        self.watch_delay = 0
        """How many moves its threads make before its watch thread goes first again."""
        self.hf = world.database.engine(HostClock(world), HostIds(name, seed=world.random.getrandbits(32)))
        self.job: Job[..., Any] = self.hf.job(name="work")(self.work)
        self.features = Features(self)
        BoundaryFaults(self)
        on_commit = self.hf.store.on_commit
        self.hf.store.on_commit = lambda names, ended: None if world.notification_is_lost() else on_commit(names, ended)

    @property
    def now(self) -> datetime:
        return self.hf.clock.now()

    def main(self) -> None:
        raise NotImplementedError

    def work(self, ctx: Context, number: int) -> dict[str, int]:
        raise AssertionError("a client does no work")

    def pass_time(self) -> None:
        raise AssertionError("a client does no work")

    def maybe_fail(self, chance: float) -> None:
        raise AssertionError("a client does no work")

    def checks_leases(self) -> bool:
        """Whether its watch thread now stops runs whose leases have expired."""
        return True

    def die(self) -> None:
        """End at once, as if killed; the operating system closes its connections."""
        if not self.dead:
            self.dead = True
            self.world.remove_threads(self)
            with contextlib.suppress(Exception):
                self.hf._store.close()


class WorkerProcess(Process):
    def __init__(self, world: World, name: str) -> None:
        super().__init__(world, name)
        self.worker: Worker | None = None
        self.leaving = False
        self.executing_now: set[tuple[str, int]] = set()
        self.ever_executed: set[tuple[str, int]] = set()

    def main(self) -> None:
        worker = self.hf.worker(queues=["default", "builds", NARROW], concurrency=self.world.odds.concurrency)
        self.world.oracle.names[worker.id] = self.name
        try:
            worker.start()
        except TROUBLE:
            self.world.kill(self)
            return
        self.worker = worker

    def leave(self) -> None:
        """Shut down in an orderly way."""
        self.leaving = True
        self.world.spawn(self._stop, name="stop", process=self)

    def executing(self) -> list[tuple[str, int, tuple[str, int] | None]]:
        """What this process executes now: run, claim, and key lock."""
        if self.worker is None or self.dead or self.paused_until is not None or self.just_resumed:
            return []
        return [
            (running.lease.run_id, running.lease.claim, _key_lock(running.lease.entry))
            for running in self.worker.in_flight.all()
            if not running.ended and (running.lease.run_id, running.lease.claim) in self.executing_now
        ]

    def checks_leases(self) -> bool:
        return self.worker is None or self.worker._deadlines._check_leases_from <= self.hf.clock.elapsed()

    def abandoned(self, places: Mapping[str, Place]) -> list[str]:
        """Runs that this worker has given up, or never began to execute, although it still holds their leases."""
        if self.worker is None:
            return []
        in_flight = {(running.lease.run_id, running.lease.claim) for running in self.worker.in_flight.all()}
        return [
            run_id
            for run_id, place in places.items()
            if place.holder == self.worker.id
            and (run_id, place.claim) in self.ever_executed | self.worker._loop.completer.lost
            and (run_id, place.claim) not in in_flight
        ]

    def work(self, ctx: Context, number: int) -> dict[str, int]:
        world, chance = self.world, self.world.random
        self.executing_now.add((ctx.run.id, ctx.run.claim))
        self.ever_executed.add((ctx.run.id, ctx.run.claim))
        world.oracle.started(ctx.run.id, ctx.run.claim)
        try:
            for step in range(chance.choice([0, 1, 1, 2])):
                ctx.step(f"step-{step}", self._step, ctx, f"step-{step}")
                ctx.progress(step)
            world.sleep(self._long())
            match chance.random():
                case value if value < 0.15:
                    raise ValueError("the work failed")
                case value if value < 0.2:
                    raise TryAgain("later", after=timedelta(seconds=chance.choice([0, 1, 10])))
            return {"number": number}
        finally:
            self.executing_now.discard((ctx.run.id, ctx.run.claim))

    def pass_time(self) -> None:
        self.world.sleep(self._long())

    def maybe_fail(self, chance: float) -> None:
        if self.world.random.random() < chance:
            raise ValueError("the work failed")

    def die(self) -> None:
        if not self.dead and self.worker is not None:
            logging.getLogger().removeHandler(self.worker._run_log)
        super().die()

    def _step(self, ctx: Context, name: str) -> int:
        self.world.oracle.step_begins(ctx.run.id, ctx.run.claim, name)
        self.world.sleep(self._long() / 2)
        return ctx.run.claim

    def _long(self) -> float:
        chance = self.world.random
        return chance.choice([0.0, 0.1, 1.0, chance.uniform(0, 10), chance.uniform(0, 30)])

    def _stop(self) -> None:
        assert self.worker is not None
        self.worker.stop(grace=timedelta(seconds=self.world.random.choice([0, 2, 10])))
        self.die()


def _key_lock(entry: QueueEntry) -> tuple[str, int] | None:
    return None if entry.key is None else (entry.key, entry.key_number)


class Client(Process):
    def main(self) -> None:
        self._offset = self.world.offset
        for _ in range(self.world.odds.operations):
            self.world.sleep(self.world.random.uniform(0, 5))
            operation = self.world.random.choice(
                [self._one] * 2
                + [self._many, self._in_caller_transaction, self._cancel]
                + [self._feature] * self.world.odds.features
            )
            with contextlib.suppress(StoreUnavailable):
                self._until_not_busy(operation)
        self.die()

    def _until_not_busy(self, operation: Any) -> None:
        for _ in range(20):
            try:
                operation()
                return
            except StoreBusy:
                self.world.sleep(0.5)

    def _one(self) -> None:
        chance, oracle = self.world.random, self.world.oracle
        options = self._options()
        number, idempotency_key = chance.randrange(100), None
        if chance.random() < 0.15:
            number = chance.randrange(3)
            idempotency_key = f"only-{number}"
        if chance.random() < 0.03 and oracle.rolled_back:
            self._unknown_dependency(options)
            return
        submitted_at = self.world.elapsed
        run = self.job.using(**options, idempotency_key=idempotency_key).submit(number=number)
        if "delay" in options and idempotency_key is None and self.world.offset == self._offset:
            oracle.not_before(run.id, submitted_at + options["delay"])
        self.world.note(f"submitted {oracle.name(run.id)}")
        oracle.accepted(run.id, idempotency_key)

    def _feature(self) -> None:
        features = self.features
        ask = self.world.random.choice(
            [features.request, features.children, features.pipeline, features.narrow, features.starts, features.single]
        )
        for run_id in ask(self._options()):
            self.world.note(f"{ask.__name__}: submitted {self.world.oracle.name(run_id)}")
            self.world.oracle.accepted(run_id, None)

    def _many(self) -> None:
        number = self.world.random.randrange(2, 5)
        runs = self.job.using(**self._options()).submit_many([{"number": one} for one in range(number)])
        for run in runs:
            self.world.oracle.accepted(run.id, None)

    def _in_caller_transaction(self) -> None:
        """Submit in a caller transaction, which may be committed, rolled back, or lost with this process."""
        world, oracle = self.world, self.world.oracle
        if world.blocked(self):
            return
        try:
            connection = world.database.connection(self.hf)
        except Exception:
            return  # another transaction has locked the database
        try:
            options = self._options()
            if world.odds.features and world.random.random() < 0.3:
                request = self.features.made.request(name="m", fingerprint=world.random.choice(["one", "two"]))
                options["depends_on"] = options.get("depends_on", {}) | {request: True}
            job = self.job.using(connection=connection, **options)
            runs = [job.submit(number=number) for number in range(world.random.choice([1, 1, 3]))]
            oracle.undecided(run.id for run in runs)
            world.sleep(world.random.choice([0.0, 0.0, 0.2, 2.0]))
            if world.random.random() < 0.4:
                connection.rollback()
                world.note(f"rolled back {', '.join(oracle.name(run.id) for run in runs)}")
                oracle.refused(run.id for run in runs)
                return
            connection.commit()
            world.committed()
            for run in runs:
                oracle.accepted(run.id, None)
        finally:
            connection.close()

    def _cancel(self) -> None:
        oracle = self.world.oracle
        known = oracle.known()
        if not known:
            return
        run_id = self.world.random.choice(known[-3:] if self.world.random.random() < 0.7 else known)
        self.world.note(f"cancelling {oracle.name(run_id)}")
        with contextlib.suppress(RunNotFound):
            state = self.hf.cancel(run_id)
            oracle.cancelled(run_id, state)

    def _unknown_dependency(self, options: dict[str, Any]) -> None:
        options["depends_on"] = {sorted(self.world.oracle.rolled_back)[0]: False}
        try:
            self.job.using(**options).submit(number=0)
        except UnknownDependency:
            return
        except HoldfastError:
            raise
        self.world.oracle.alarm("a dependency on a run that does not exist was accepted")

    def _options(self) -> dict[str, Any]:
        chance = self.world.random
        options: dict[str, Any] = {
            "priority": chance.choice([-1, 0, 0, 1]),
            "timeout": chance.choice([None, 8, 20, 20, 120]),
            "on_timeout": chance.choice(["end", "retry"]),
            "on_crash": chance.choice(["requeue", "requeue", "retry", "fail"]),
            "max_attempts": chance.choice([1, 2, 3]),
            "max_takeovers": chance.choice([0, 1, 5]),
            "retry": Retry(step_attempts=1, delay=timedelta(seconds=chance.choice([0, 1, 5]))),
        }
        if chance.random() < 0.6:
            key = chance.choice(KEYS)
            options |= {
                "key": lambda number: key,
                "key_order": chance.choice(["due", "due", "strict"]),
                "key_limit": chance.choice([1, 1, 2, 3]) if key == KEYS[0] else 1,
            }
        if chance.random() < 0.25:
            options["delay"] = chance.choice([0.5, 3, 15])
        known = self.world.oracle.known()
        if known and chance.random() < 0.3:
            depends_on = chance.sample(known[-6:], k=min(len(known[-6:]), chance.choice([1, 1, 2, 3])))
            options["depends_on"] = {run_id: chance.random() < 0.4 for run_id in depends_on}
        return options
