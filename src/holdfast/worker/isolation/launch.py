"""Launch: executes a run in a process of its own, which can be killed at any time.

    started ──▶ outcome received ──▶ its group is killed ──▶ gone ──▶ the outcome
        └─ told to stop: SIGTERM ── kill_grace ──▶ SIGKILL ──▶ gone ──▶ the outcome

The outcome is returned only when the process, its group and its descendants are gone, so the next run of its key never
overlaps it. Steps, events and artifacts of the process are written here, by the worker, if the lease is still ours.
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
from holdfast.worker.execute import Judge
from holdfast.worker.in_flight import RunInFlight
from holdfast.worker.isolation import job_address, messages
from holdfast.worker.isolation.channels import Channels
from holdfast.worker.isolation.output import Output
from holdfast.worker.isolation.supervisor import line
from holdfast.worker.run_services import LocalRunServices
from holdfast.worker.shared_memory import SharedMemory

log = logging.getLogger("holdfast.worker")


class Child:
    """One run's process, from its start to its end."""

    def __init__(
        self,
        runtime: Runtime,
        running: RunInFlight,
        services: LocalRunServices,
        judge: Judge,
        board: SharedMemory | None,
    ) -> None:
        self._runtime, self._running, self._services, self._judge, self._board = (
            runtime,
            running,
            services,
            judge,
            board,
        )
        # Later than `Deadlines`, which stops the run first: this only catches what that missed.
        self._margin = runtime.settings.lease.total_seconds() / 20
        self._lock = threading.Lock()
        self._control: socket.socket | None = None
        self._told_at: float | None = None
        self._pid: int | None = None
        self._outcome: Outcome | None = None
        self._gone: tuple[str, int | None] | None = None
        self._output = {name: Output(name, services, level=runtime.settings.log_level) for name in ("stdout", "stderr")}

    def run(self) -> tuple[Outcome, str]:
        """Start the process and serve it until it is gone; its outcome, and how it was ended."""
        try:
            start = self._start_message()
        except InvalidPolicy as error:
            return Failed("JOB_NOT_LOADED", str(error)), "it was not started"
        except Exception as error:
            log.exception("run %s: its process could not be started", self._running.lease.run_id)
            return self._judge.died(self._running.claim, f"its process could not be started: {error!r}"), "it is gone"
        try:
            with Channels(self._board) as channels:
                self._begin(channels, start)
                channels.serve(self._heard, self._asked, self._output, until=lambda: self._gone is not None)
        except Exception as error:
            log.exception("run %s: its process could not be served", self._running.lease.run_id)
            return self._judge.died(self._running.claim, f"its process could not be served: {error!r}"), "it is gone"
        finally:
            with self._lock:
                self._control = None
        return self._ending()

    def stop(self) -> None:
        """SIGTERM now and SIGKILL after the grace; at once where the lease is lost."""
        with self._lock:
            self._say_stop()

    def renewed(self) -> None:
        with self._lock:
            self._say_until()

    def _start_message(self) -> messages.Message:
        runtime = self._runtime
        return {
            "sys_path": sys.path,
            "sys_argv": sys.argv,
            "django": django_bridge.is_set_up(),
            "address": asdict(job_address.find(self._running.job)),
            "claim": messages.claim_to_wire(self._running.claim),
            "max_result_bytes": runtime.settings.max_result_bytes,
            "artifacts": absolute(runtime.settings.artifacts),
            "offset": (runtime.clock.now() - EPOCH).total_seconds() - runtime.clock.elapsed(),
            "root_level": logging.getLogger().level,
            "log_level": getattr(logging, runtime.settings.log_level.upper()),
            "trace": telemetry.current(),
        }

    def _begin(self, channels: Channels, start: messages.Message) -> None:
        with self._lock:
            self._control = channels.control
            self._say_until()
            if self._running.stopped is not None:
                self._say_stop()
        with contextlib.suppress(ConnectionError):  # the process is gone already; its supervisor says how
            channels.services.sendall(line(start))

    def _say_until(self) -> None:
        running = self._running
        self._say({"until": running.lease_until, "last": running.last, "margin": self._margin})

    def _say_stop(self) -> None:
        if self._told_at is None:
            self._told_at = self._runtime.clock.elapsed()
        grace = self._runtime.settings.kill_grace.total_seconds()
        self._say({"kill_in": 0 if self._running.stopped == "lost" else grace})

    def _say(self, message: messages.Message) -> None:
        """Send to the supervisor without blocking: the heartbeat and `Deadlines` call this."""
        if self._control is not None:
            with contextlib.suppress(OSError):
                self._control.send(line(message), socket.MSG_DONTWAIT)

    # Messages

    def _heard(self, told: messages.Message | None) -> None:
        """Handle a message of the supervisor; None if it is gone."""
        match told:
            case {"pid": pid}:
                self._pid = pid
            case {"gone": why, "status": status}:
                self._gone = (why, status)
            case None if self._gone is None:
                # The process dies with its supervisor; kill what it had started.
                if self._pid is not None:
                    with contextlib.suppress(ProcessLookupError, PermissionError):
                        os.killpg(self._pid, signal.SIGKILL)
                self._gone = ("unsupervised", None)

    def _asked(self, told: messages.Message) -> messages.Message | None:
        """Handle a message of the process; the reply, if it asked."""
        match told:
            case {"tell": kind, "data": data, "at": at}:
                self._services.tell(kind, data, at=at and datetime.fromisoformat(at))
            case {"outcome": outcome}:
                self._outcome = messages.outcome_from_wire(outcome, self._runtime.redactor)
                with self._lock:
                    self._say({"kill_in": 0})  # kill what it left behind, too
            case {"ask": what, "number": number}:
                try:
                    return {"number": number, "answer": self._answer(what, told)}
                except Exception as error:
                    return {"number": number, **messages.error_to_wire(error)}
        return None

    def _answer(self, what: str, told: messages.Message) -> Any:
        match what:
            case "steps":
                return self._services.steps()
            case "results":
                return [messages.to_wire(result) for result in self._services.results(told["run_ids"])]
            case "inputs":
                return self._services.inputs(told["question"], told["names"])
            case "submit_child":
                return self._services.submit_child(messages.submission_from_wire(told["submission"]), told["name"])
            case "remember":
                return self._services.remember(messages.from_wire(Step, told["step"]))
            case "forget":
                return self._services.forget(told["name"])
            case "recall":
                found = self._services.recall(told["name"])
                return None if found is None else messages.to_wire(found)
            case "scratch":
                part, path = self._services.scratch()
                return [part, str(path)]
            case "keep":
                kept = self._services.keep(told["name"], Path(told["path"]), part=told["part"])
                return messages.to_wire(kept)
        raise ValueError(f"a run's process asked for {what!r}")

    # How it ended

    def _ending(self) -> tuple[Outcome, str]:
        assert self._gone is not None
        why, status = self._gone
        if why in ("unrenewed", "orphaned") and self._outcome is None:
            self._running.stop("lost", "its process was killed because its lease was not renewed in time")
        what = self._what_was_done(why, status)
        if self._outcome is not None:
            return self._outcome, what
        tail = self._output["stderr"].tail
        return self._judge.died(self._running.claim, f"{tail}\nits process {_how(status)}".strip()), what

    def _what_was_done(self, why: str, status: int | None) -> str:
        after = self._runtime.clock.elapsed() - (self._told_at or self._runtime.clock.elapsed())
        verb = "killed" if why != "ended" and self._outcome is None else "ended"
        return f"process {verb} {after:.1f} s after it was told to stop"


def _how(status: int | None) -> str:
    if status is None:
        return "was killed together with its supervisor"
    if status >= 0:
        return f"ended with exit code {status} and without an answer"
    try:
        return f"was killed by signal {-status} ({signal.Signals(-status).name})"
    except ValueError:
        return f"was killed by signal {-status}"
