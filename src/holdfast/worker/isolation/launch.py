"""Launch: executes a run in a separate process, which can be killed at any time.

    started ──▶ outcome received ──▶ process group killed ──▶ gone ──▶ return the outcome
        └─ stopped: SIGTERM ── kill_grace ──▶ SIGKILL ──▶ gone ──▶ return the outcome

The outcome is returned only when the process, its group and its descendants are gone, so the next run of its key never
overlaps this one. The worker writes the steps, events and artifacts of the process, if it still holds the lease.
"""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import socket
import sys
import threading
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import Any

from holdfast.artifacts.backends import absolute
from holdfast.runs.outcomes import Failed, Outcome
from holdfast.runtime import Runtime
from holdfast.support import django_bridge, telemetry
from holdfast.support.clock import EPOCH
from holdfast.support.errors import InvalidPolicy
from holdfast.values.runs import Step
from holdfast.worker.execute import OutcomeDecider
from holdfast.worker.in_flight import RunInFlight
from holdfast.worker.isolation import job_address, messages
from holdfast.worker.isolation.channels import Channels
from holdfast.worker.isolation.output import Output
from holdfast.worker.isolation.supervisor import line
from holdfast.worker.run_services import LocalRunServices
from holdfast.worker.shared_memory import SharedMemory

log = logging.getLogger("holdfast.worker")


class Child:
    """The process of one run, from its start to its end."""

    def __init__(
        self,
        runtime: Runtime,
        running: RunInFlight,
        services: LocalRunServices,
        decider: OutcomeDecider,
        memory: SharedMemory | None,
    ) -> None:
        self._runtime, self._running, self._services, self._decider, self._memory = (
            runtime,
            running,
            services,
            decider,
            memory,
        )
        # Half the margin of `Deadlines`, which therefore stops a run first; the supervisor is the fallback.
        self._margin = runtime.settings.lease.total_seconds() / 20
        self._lock = threading.Lock()
        self._control: socket.socket | None = None
        self._stopped_at: float | None = None
        self._pid: int | None = None
        self._outcome: Outcome | None = None
        self._gone: tuple[str, int | None] | None = None
        self._output = {
            name: Output(name, services, level=runtime.settings.run_log_level) for name in ("stdout", "stderr")
        }

    def run(self) -> tuple[Outcome, str]:
        """Start the process and serve it until it is gone. Return its outcome, and how the process ended."""
        try:
            start = self._start_message()
        except InvalidPolicy as error:
            return Failed("JOB_NOT_LOADED", str(error)), "process not started"
        except Exception as error:
            return self._died("could not start the process", error)
        try:
            with Channels(self._memory) as channels:
                self._begin(channels, start)
                channels.serve(
                    self._on_supervisor_message,
                    self._on_process_message,
                    self._output,
                    until=lambda: self._gone is not None,
                )
        except Exception as error:
            return self._died("lost contact with the process", error)
        finally:
            with self._lock:
                self._control = None
        return self._ending()

    def stop(self) -> None:
        """Send SIGTERM now and SIGKILL after the grace period; SIGKILL at once if the lease is lost."""
        with self._lock:
            self._send_stop()

    def renewed(self) -> None:
        """Tell the supervisor when the renewed lease ends."""
        with self._lock:
            self._send_lease()

    def _died(self, what: str, error: Exception) -> tuple[Outcome, str]:
        log.error("run %s: %s", self._running.lease.run_id, what, exc_info=error)
        return self._decider.died(self._running.claimed, f"{what}: {error!r}"), "process ended"

    def _start_message(self) -> messages.Message:
        runtime = self._runtime
        return {
            "sys_path": sys.path,
            "sys_argv": sys.argv,
            "django": django_bridge.is_set_up(),
            "address": asdict(job_address.find(self._running.job)),
            "claimed": messages.claim_to_wire(self._running.claimed),
            "max_result_bytes": runtime.settings.max_result_bytes,
            "artifacts": absolute(runtime.settings.artifacts),
            "offset": (runtime.clock.now() - EPOCH).total_seconds() - runtime.clock.elapsed(),
            "root_level": logging.getLogger().level,
            "log_level": getattr(logging, runtime.settings.run_log_level.upper()),
            "trace": telemetry.current(),
        }

    def _begin(self, channels: Channels, start: messages.Message) -> None:
        with self._lock:
            self._control = channels.control
            self._send_lease()
            if self._running.stopped is not None:
                self._send_stop()
        with contextlib.suppress(ConnectionError):  # the process is gone already; its supervisor reports why
            channels.services.sendall(line(start))

    def _send_lease(self) -> None:
        running = self._running
        self._send({"until": running.lease_until, "last": running.last, "margin": self._margin})

    def _send_stop(self) -> None:
        if self._stopped_at is None:
            self._stopped_at = self._runtime.clock.elapsed()
        grace = self._runtime.settings.kill_grace.total_seconds()
        self._send({"kill_in": 0 if self._running.stopped == "lost" else grace})

    def _send(self, message: messages.Message) -> None:
        """Send to the supervisor without blocking, because the heartbeat and `Deadlines` call this."""
        if self._control is not None:
            with contextlib.suppress(OSError):
                self._control.send(line(message), socket.MSG_DONTWAIT)

    # Messages

    def _on_supervisor_message(self, message: messages.Message | None) -> None:
        """Handle a message of the supervisor; None means that the supervisor is gone."""
        match message:
            case {"pid": pid}:
                self._pid = pid
            case {"gone": reason, "status": status}:
                self._gone = (reason, status)
            case None if self._gone is None:
                # The process dies with its supervisor; kill the processes that it started.
                if self._pid is not None:
                    with contextlib.suppress(ProcessLookupError, PermissionError):
                        os.killpg(self._pid, signal.SIGKILL)
                self._gone = ("unsupervised", None)

    def _on_process_message(self, message: messages.Message) -> messages.Message | None:
        """Handle a message of the process. Return the reply, if the message is a request."""
        match message:
            case {"event": kind, "data": data, "at": at}:
                self._services.record_event(kind, data, at=at and datetime.fromisoformat(at))
            case {"outcome": outcome}:
                self._outcome = messages.outcome_from_wire(outcome, self._runtime.redactor)
                with self._lock:
                    self._send({"kill_in": 0})  # also kills the processes that it left behind
            case {"request": name, "number": number}:
                try:
                    return {"number": number, "reply": self._reply(name, message)}
                except Exception as error:
                    return {"number": number, **messages.error_to_wire(error)}
        return None

    def _reply(self, request: str, message: messages.Message) -> Any:
        match request:
            case "steps":
                return self._services.steps()
            case "results":
                return [messages.to_wire(result) for result in self._services.results(message["run_ids"])]
            case "inputs":
                return self._services.inputs(message["what"], message["names"])
            case "submit_child":
                submission = messages.submission_from_wire(message["submission"])
                return self._services.submit_child(submission, message["name"])
            case "remember":
                return self._services.remember(messages.from_wire(Step, message["step"]))
            case "forget":
                return self._services.forget(message["name"])
            case "recall":
                artifact = self._services.recall(message["name"])
                return None if artifact is None else messages.to_wire(artifact)
            case "scratch":
                part, path = self._services.scratch()
                return [part, str(path)]
            case "keep":
                kept = self._services.keep(message["name"], Path(message["path"]), part=message["part"])
                return messages.to_wire(kept)
        raise ValueError(f"unknown request of a run's process: {request!r}")

    # The end

    def _ending(self) -> tuple[Outcome, str]:
        assert self._gone is not None
        reason, status = self._gone
        if reason in ("unrenewed", "orphaned") and self._outcome is None:
            self._running.stop("lost", "the process was killed because its lease was not renewed in time")
        what = self._describe_end(reason)
        if self._outcome is not None:
            return self._outcome, what
        tail = self._output["stderr"].tail
        return self._decider.died(self._running.claimed, f"{tail}\nthe process {_how(status)}".strip()), what

    def _describe_end(self, reason: str) -> str:
        after = self._runtime.clock.elapsed() - (self._stopped_at or self._runtime.clock.elapsed())
        verb = "killed" if reason != "ended" and self._outcome is None else "ended"
        return f"process {verb} {after:.1f} s after the stop signal"


def _how(status: int | None) -> str:
    if status is None:
        return "was killed together with its supervisor"
    if status >= 0:
        return f"ended with exit code {status} without a result"
    try:
        return f"was killed by signal {-status} ({signal.Signals(-status).name})"
    except ValueError:
        return f"was killed by signal {-status}"
