"""Child: executes a run in its own process. It asks its worker for everything and never uses the database itself.

SIGTERM raises in the main thread, as Ctrl-C does, so `finally` and `with` blocks run; after the grace period the
process is killed.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import itertools
import logging
import os
import signal
import socket
import sys
import threading
from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import cached_property
from pathlib import Path
from queue import SimpleQueue
from types import FrameType
from typing import Any

from holdfast.artifacts.backends import open_artifact_store
from holdfast.artifacts.backends.base import ArtifactStore
from holdfast.jobs.job import Job
from holdfast.runs.claim import Claim
from holdfast.runs.outcomes import Failed, Outcome, Succeeded
from holdfast.runs.submission import Submission
from holdfast.support import django_bridge, telemetry
from holdfast.support.clock import EPOCH, SystemClock
from holdfast.support.errors import InvalidPolicy, NotGuarded
from holdfast.support.ids import Ids
from holdfast.values.artifacts import Artifact
from holdfast.values.runs import Result, Step
from holdfast.worker.context import RunContext, retry_of
from holdfast.worker.execute import Judge, aexecute, execute
from holdfast.worker.isolation import job_address, messages
from holdfast.worker.isolation.job_address import Address
from holdfast.worker.isolation.supervisor import Lines, line
from holdfast.worker.run_log import RunLog


class Terminated(BaseException):
    """The run's process was told to stop. Not an Exception: code that goes on after any error must stop too."""


def main(channel: socket.socket, start: messages.Message) -> None:
    """Execute the run, send its outcome, and exit without running exit handlers."""
    services = RemoteRunServices(channel, offset=start["offset"], artifacts=start["artifacts"])
    signal.signal(signal.SIGTERM, services.told_to_stop)
    for stream in (sys.stdout, sys.stderr):
        # Lines reach the worker at once, even if the process is killed next.
        stream.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    outcome = _outcome(services, start)
    if services.stopped() is not None and not isinstance(outcome, Succeeded):
        services.close()
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGTERM)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    telemetry.flush()
    services.answer(outcome)
    os._exit(0)


def _outcome(services: RemoteRunServices, start: messages.Message) -> Outcome:
    claim = messages.claim_from_wire(start["claim"])
    logging.getLogger().setLevel(start["root_level"])
    try:
        if start["django"]:
            django_bridge.set_up()
        job = job_address.load(Address(**start["address"]))
    except BaseException as error:
        logging.getLogger("holdfast.worker").debug("loading failed", exc_info=True)
        told = str(error) if isinstance(error, NotGuarded) else _text(error)
        return Failed("JOB_NOT_LOADED", f"its process could not load job {claim.lease.ticket.job}: {told}")
    judge = Judge(job.runtime.redactor, job.runtime.ids, max_result_bytes=start["max_result_bytes"])
    context = RunContext(
        claim,
        services,
        job=job,
        retry=retry_of(job, claim),
        max_result_bytes=start["max_result_bytes"],
        first=claim.lease.attempt == 1,
    )
    _capture(context, level=start["log_level"])
    try:
        with telemetry.going_on(start["trace"], job.runtime.redactor.text):
            if inspect.iscoroutinefunction(job.fn):
                return asyncio.run(_in_loop(job, claim, context, judge, services))
            return execute(job, claim, context, judge)
    except BaseException as error:  # SIGTERM outside of the job's function
        return judge.failure(job, claim, error)


async def _in_loop(
    job: Job[..., Any], claim: Claim, context: RunContext, judge: Judge, services: RemoteRunServices
) -> Outcome:
    work = asyncio.ensure_future(aexecute(job, claim, context, judge))

    def stop() -> None:
        services.interrupted()
        work.cancel()

    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop)
    if services.stopped() is not None:
        work.cancel()
    return await work


class RemoteRunServices:
    """The services of a run whose worker is at the other end of a socket.

    Threads of our own read and write it, so that an exception raised by a signal can't leave half a message behind.
    """

    def __init__(self, channel: socket.socket, *, offset: float, artifacts: str) -> None:
        self._channel = channel
        self._clock, self._ids = SystemClock(), Ids()
        self._artifacts = artifacts
        self._epoch = EPOCH + timedelta(seconds=offset)
        self._told = threading.Event()
        self._stopped: str | None = None
        self._numbers = itertools.count()
        self._asked: dict[int, SimpleQueue[messages.Message]] = {}
        self._outbox: SimpleQueue[messages.Message | None] = SimpleQueue()
        self._writer = threading.Thread(target=self._write, name="holdfast-services-writer", daemon=True)
        self._writer.start()
        threading.Thread(target=self._read, name="holdfast-services-reader", daemon=True).start()

    def told_to_stop(self, number: int, frame: FrameType | None) -> None:
        """The handler of SIGTERM; it raises once, so that cleaning up is not disturbed again."""
        if self._stopped is None:
            self.interrupted()
            raise Terminated("the run was told to stop")

    def interrupted(self) -> None:
        self._stopped = "its process was told to"
        self._told.set()

    def answer(self, outcome: Outcome) -> None:
        """Send the outcome, the last message."""
        self._outbox.put({"outcome": messages.outcome_to_wire(outcome)})
        self.close()

    def close(self) -> None:
        """Wait until every message has been sent."""
        self._outbox.put(None)
        self._writer.join()

    def now(self) -> datetime:
        return self._epoch + timedelta(seconds=self._clock.elapsed())

    def fraction(self) -> float:
        return self._ids.fraction()

    def stopped(self) -> str | None:
        return self._stopped

    def wait(self, seconds: float) -> None:
        self._told.wait(seconds)

    def steps(self) -> dict[str, str]:
        found: dict[str, str] = self._ask("steps")
        return found

    def results(self, run_ids: Sequence[str]) -> list[Result]:
        return [messages.from_wire(Result, told) for told in self._ask("results", run_ids=list(run_ids))]

    def inputs(self, what: str, names: Sequence[str]) -> dict[str, str]:
        found: dict[str, str] = self._ask("inputs", question=what, names=list(names))
        return found

    def submit_child(self, submission: Submission, name: str) -> str:
        return str(self._ask("submit_child", submission=messages.submission_to_wire(submission), name=name))

    def remember(self, step: Step) -> None:
        self._ask("remember", step=messages.to_wire(step))

    def forget(self, name: str) -> bool:
        return bool(self._ask("forget", name=name))

    def tell(self, kind: str, data: dict[str, Any], *, at: datetime | None = None) -> None:
        self._outbox.put({"tell": kind, "data": data, "at": at and at.isoformat()})

    def finish(self, result: str, connection: Any) -> None:
        raise InvalidPolicy("a job in a process of its own can't end in its own transaction: use a thread or async")

    @cached_property
    def _artifact_store(self) -> ArtifactStore:
        return open_artifact_store(self._artifacts)

    def recall(self, name: str) -> Artifact | None:
        found = self._ask("recall", name=name)
        return None if found is None else messages.from_wire(Artifact, found).at(self._artifact_store)

    def scratch(self) -> tuple[str, Path]:
        part, path = self._ask("scratch")
        return part, Path(path)

    def keep(self, name: str, content: bytes | Path, *, part: str | None = None) -> Artifact:
        if isinstance(content, bytes):
            part, path = self.scratch()
            try:
                path.write_bytes(content)
                return self.keep(name, path, part=part)
            finally:
                with contextlib.suppress(OSError):
                    path.unlink()  # if it was refused, or was not written whole
        kept = self._ask("keep", name=name, path=str(content.absolute()), part=part)
        return messages.from_wire(Artifact, kept).at(self._artifact_store)

    def _ask(self, what: str, **values: Any) -> Any:
        number, reply = next(self._numbers), SimpleQueue[messages.Message]()
        self._asked[number] = reply
        self._outbox.put({"ask": what, "number": number, **values})
        told = reply.get()
        if "error" in told:
            raise messages.error_from_wire(told)
        return told["answer"]

    def _write(self) -> None:
        while (message := self._outbox.get()) is not None:
            self._channel.sendall(line(message))

    def _read(self) -> None:
        lines = Lines()
        while piece := self._channel.recv(1 << 16):
            for told in lines.feed(piece):
                self._asked.pop(told["number"]).put(told)


def _capture(context: RunContext, *, level: int) -> None:
    root = logging.getLogger()
    for handler in root.handlers[:]:
        # Printed, a record would reach the run a second time, as output.
        if isinstance(handler, logging.StreamHandler) and handler.stream in (sys.stdout, sys.stderr):
            root.removeHandler(handler)
    root.addHandler(RunLog(lambda: context, level=level))  # every record of this process belongs to the one run
    logging.getLogger("holdfast.run").setLevel(level)  # as the worker does, so that ctx.log is kept


def _text(error: BaseException) -> str:
    import traceback

    return "".join(traceback.format_exception(error))
