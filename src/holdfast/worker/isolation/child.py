"""Child: executes a run in its own process. It never uses the database; it sends requests to its worker instead.

SIGTERM raises an exception in the main thread, as Ctrl-C does, so `finally` and `with` blocks run. After the grace
period the process is killed.
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
from holdfast.runs.claim import ClaimedRun
from holdfast.runs.outcomes import Failed, Outcome, Succeeded
from holdfast.runs.submission import Submission
from holdfast.support import django_bridge, telemetry
from holdfast.support.clock import EPOCH, SystemClock
from holdfast.support.errors import InvalidPolicy, NotGuarded
from holdfast.support.ids import Ids
from holdfast.values.artifacts import Artifact
from holdfast.values.runs import Result, Step
from holdfast.worker.context import RunContext, retry_of
from holdfast.worker.execute import OutcomeDecider, aexecute, execute
from holdfast.worker.isolation import job_address, messages
from holdfast.worker.isolation.job_address import Address
from holdfast.worker.isolation.supervisor import Lines, line
from holdfast.worker.run_log import RunLog


class Terminated(BaseException):
    """Raised when the run is stopped. Not an Exception, so that `except Exception` does not swallow it."""


def main(channel: socket.socket, start: messages.Message) -> None:
    """Execute the run, send its outcome, and exit without running exit handlers."""
    services = RemoteRunServices(channel, offset=start["offset"], artifacts=start["artifacts"])
    signal.signal(signal.SIGTERM, services.on_sigterm)
    for stream in (sys.stdout, sys.stderr):
        # Lines reach the worker at once, even if the process is killed right after.
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
    services.send_outcome(outcome)
    os._exit(0)


def _outcome(services: RemoteRunServices, start: messages.Message) -> Outcome:
    claimed = messages.claim_from_wire(start["claimed"])
    logging.getLogger().setLevel(start["root_level"])
    try:
        if start["django"]:
            django_bridge.set_up()
        job = job_address.load(Address(**start["address"]))
    except BaseException as error:
        logging.getLogger("holdfast.worker").debug("could not load the job", exc_info=True)
        text = str(error) if isinstance(error, NotGuarded) else _text(error)
        return Failed("JOB_NOT_LOADED", f"the process could not load job {claimed.lease.entry.job}: {text}")
    decider = OutcomeDecider(job.runtime.redactor, job.runtime.ids, max_result_bytes=start["max_result_bytes"])
    context = RunContext(
        claimed,
        services,
        job=job,
        retry=retry_of(job, claimed),
        max_result_bytes=start["max_result_bytes"],
        first=claimed.lease.claim == 1,
    )
    _capture(context, level=start["log_level"])
    try:
        with telemetry.going_on(start["trace"], job.runtime.redactor.text):
            if inspect.iscoroutinefunction(job.fn):
                return asyncio.run(_in_loop(job, claimed, context, decider, services))
            return execute(job, claimed, context, decider)
    except BaseException as error:  # SIGTERM outside of the job's function
        return decider.failure(job, claimed, error)


async def _in_loop(
    job: Job[..., Any], claimed: ClaimedRun, context: RunContext, decider: OutcomeDecider, services: RemoteRunServices
) -> Outcome:
    work = asyncio.ensure_future(aexecute(job, claimed, context, decider))

    def stop() -> None:
        services.interrupted()
        work.cancel()

    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop)
    if services.stopped() is not None:
        work.cancel()
    return await work


class RemoteRunServices:
    """The run services of a separate process, which requests them from its worker over a socket.

    Separate threads read and write the socket, so that an exception raised by a signal can't cut a message in half.
    """

    def __init__(self, channel: socket.socket, *, offset: float, artifacts: str) -> None:
        self._channel = channel
        self._clock, self._ids = SystemClock(), Ids()
        self._artifacts = artifacts
        self._epoch = EPOCH + timedelta(seconds=offset)
        self._interrupted = threading.Event()
        self._stopped: str | None = None
        self._numbers = itertools.count()
        self._requests: dict[int, SimpleQueue[messages.Message]] = {}
        self._outbox: SimpleQueue[messages.Message | None] = SimpleQueue()
        self._writer = threading.Thread(target=self._write, name="holdfast-services-writer", daemon=True)
        self._writer.start()
        threading.Thread(target=self._read, name="holdfast-services-reader", daemon=True).start()

    def on_sigterm(self, number: int, frame: FrameType | None) -> None:
        """Handle SIGTERM. Only the first one raises, so that clean-up code is not interrupted again."""
        if self._stopped is None:
            self.interrupted()
            raise Terminated("the run was stopped")

    def interrupted(self) -> None:
        """Mark the run as stopped and wake a `wait`."""
        self._stopped = "the worker stopped its process"
        self._interrupted.set()

    def send_outcome(self, outcome: Outcome) -> None:
        """Send the outcome as the last message."""
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
        self._interrupted.wait(seconds)

    def steps(self) -> dict[str, str]:
        steps: dict[str, str] = self._request("steps")
        return steps

    def results(self, run_ids: Sequence[str]) -> list[Result]:
        return [messages.from_wire(Result, result) for result in self._request("results", run_ids=list(run_ids))]

    def inputs(self, what: str, names: Sequence[str]) -> dict[str, str]:
        inputs: dict[str, str] = self._request("inputs", what=what, names=list(names))
        return inputs

    def submit_child(self, submission: Submission, name: str) -> str:
        return str(self._request("submit_child", submission=messages.submission_to_wire(submission), name=name))

    def remember(self, step: Step) -> None:
        self._request("remember", step=messages.to_wire(step))

    def forget(self, name: str) -> bool:
        return bool(self._request("forget", name=name))

    def record_event(self, kind: str, data: dict[str, Any], *, at: datetime | None = None) -> None:
        self._outbox.put({"event": kind, "data": data, "at": at and at.isoformat()})

    def finish(self, result: str, connection: Any) -> None:
        raise InvalidPolicy(
            "ctx.finish does not work with isolation='process': use isolation='thread' or an async function"
        )

    @cached_property
    def _artifact_store(self) -> ArtifactStore:
        return open_artifact_store(self._artifacts)

    def recall(self, name: str) -> Artifact | None:
        artifact = self._request("recall", name=name)
        return None if artifact is None else messages.from_wire(Artifact, artifact).at(self._artifact_store)

    def scratch(self) -> tuple[str, Path]:
        part, path = self._request("scratch")
        return part, Path(path)

    def keep(self, name: str, content: bytes | Path, *, part: str | None = None) -> Artifact:
        if isinstance(content, bytes):
            part, path = self.scratch()
            try:
                path.write_bytes(content)
                return self.keep(name, path, part=part)
            finally:
                with contextlib.suppress(OSError):
                    path.unlink()  # still there if it was refused or not written completely
        kept = self._request("keep", name=name, path=str(content.absolute()), part=part)
        return messages.from_wire(Artifact, kept).at(self._artifact_store)

    def _request(self, request: str, **values: Any) -> Any:
        """Send a request and wait for its reply; raise the error if the worker replies with one."""
        number, replies = next(self._numbers), SimpleQueue[messages.Message]()
        self._requests[number] = replies
        self._outbox.put({"request": request, "number": number, **values})
        message = replies.get()
        if "error" in message:
            raise messages.error_from_wire(message)
        return message["reply"]

    def _write(self) -> None:
        while (message := self._outbox.get()) is not None:
            self._channel.sendall(line(message))

    def _read(self) -> None:
        lines = Lines()
        while piece := self._channel.recv(1 << 16):
            for message in lines.feed(piece):
                self._requests.pop(message["number"]).put(message)


def _capture(context: RunContext, *, level: int) -> None:
    root = logging.getLogger()
    for handler in root.handlers[:]:
        # A printed record would be stored a second time, as output.
        if isinstance(handler, logging.StreamHandler) and handler.stream in (sys.stdout, sys.stderr):
            root.removeHandler(handler)
    root.addHandler(RunLog(lambda: context, level=level))  # every record of this process belongs to the one run
    logging.getLogger("holdfast.run").setLevel(level)  # so that records of ctx.log are stored, as in the worker


def _text(error: BaseException) -> str:
    import traceback

    return "".join(traceback.format_exception(error))
