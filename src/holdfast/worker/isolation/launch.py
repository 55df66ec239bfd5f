"""Process: a run in a process of its own, killable whatever it does.

    started ──▶ answers ──▶ its group is killed ──▶ gone ──▶ the outcome
        └─ told to stop: SIGTERM ── kill_grace ──▶ SIGKILL ──▶ gone ──▶ the outcome

The outcome is given only when the process, its group and its descendants are gone, so the next run of its key never
overlaps it. What the process asks for (steps, events, artifacts) is written here, through the fence.
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
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from holdfast.artifacts.backends import absolute
from holdfast.engine import Holdfast
from holdfast.runs.outcomes import Failed, Outcome
from holdfast.support import django_bridge, telemetry
from holdfast.support.errors import InvalidPolicy
from holdfast.worker.execute import Judge
from holdfast.worker.in_flight import RunInFlight
from holdfast.worker.isolation import job_address, messages
from holdfast.worker.isolation.channels import Channels
from holdfast.worker.isolation.output import Output
from holdfast.worker.isolation.supervisor import line
from holdfast.worker.run_services import LocalRunServices
from holdfast.worker.shared_memory import SharedMemory

log = logging.getLogger("holdfast.worker")

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Child:
    """One run's process, from its start to its end."""

    def __init__(
        self, hf: Holdfast, running: RunInFlight, desk: LocalRunServices, judge: Judge, board: SharedMemory | None
    ) -> None:
        self._hf, self._running, self._desk, self._judge, self._board = hf, running, desk, judge, board
        # Nearer to the end of the lease than the watch, which stops in an orderly way: this is the net below it.
        self._margin = hf.settings.lease.total_seconds() / 20
        self._lock = threading.Lock()
        self._control: socket.socket | None = None
        self._told_at: float | None = None
        self._pid: int | None = None
        self._outcome: Outcome | None = None
        self._gone: tuple[str, int | None] | None = None
        self._output = {name: Output(name, desk, level=hf.settings.log_level) for name in ("stdout", "stderr")}

    def run(self) -> tuple[Outcome, str]:
        """Start it, serve it until it is gone; its outcome, and what was done to end it."""
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
        hf = self._hf
        return {
            "sys_path": sys.path,
            "sys_argv": sys.argv,
            "django": django_bridge.is_set_up(),
            "address": asdict(job_address.find(self._running.job)),
            "claim": messages.claim_to_wire(self._running.claim),
            "max_result_bytes": hf.settings.max_result_bytes,
            "artifacts": absolute(hf.settings.artifacts),
            "offset": (hf.clock.now() - _EPOCH).total_seconds() - hf.clock.elapsed(),
            "root_level": logging.getLogger().level,
            "log_level": getattr(logging, hf.settings.log_level.upper()),
            "trace": telemetry.current(),
        }

    def _begin(self, channels: Channels, start: messages.Message) -> None:
        with self._lock:
            self._control = channels.control
            self._say_until()
            if self._running.stopped is not None:
                self._say_stop()
        with contextlib.suppress(ConnectionError):  # it is gone already: how, its supervisor tells
            channels.desk.sendall(line(start))

    def _say_until(self) -> None:
        running = self._running
        self._say({"until": running.lease_until, "last": running.last, "margin": self._margin})

    def _say_stop(self) -> None:
        if self._told_at is None:
            self._told_at = self._hf.clock.elapsed()
        grace = self._hf.settings.kill_grace.total_seconds()
        self._say({"kill_in": 0 if self._running.stopped == "lost" else grace})

    def _say(self, message: messages.Message) -> None:
        """To the supervisor; without waiting, because the heartbeat and the watch speak here."""
        if self._control is not None:
            with contextlib.suppress(OSError):
                self._control.send(line(message), socket.MSG_DONTWAIT)

    # What the two ends say

    def _heard(self, told: messages.Message | None) -> None:
        """The supervisor speaks, or is gone (None)."""
        match told:
            case {"pid": pid}:
                self._pid = pid
            case {"gone": why, "status": status}:
                self._gone = (why, status)
            case None if self._gone is None:
                # The process dies with its supervisor; what it had started is for us to kill.
                if self._pid is not None:
                    with contextlib.suppress(ProcessLookupError, PermissionError):
                        os.killpg(self._pid, signal.SIGKILL)
                self._gone = ("unsupervised", None)

    def _asked(self, told: messages.Message) -> messages.Message | None:
        """The process speaks; what to reply."""
        match told:
            case {"tell": kind, "data": data, "at": at}:
                self._desk.tell(kind, data, at=at and datetime.fromisoformat(at))
            case {"outcome": outcome}:
                self._outcome = messages.outcome_from_wire(outcome, self._running.claim, self._hf.redactor)
                with self._lock:
                    self._say({"kill_in": 0})  # it has nothing more to do, nor has anything that it left behind
            case {"ask": what, "number": number}:
                try:
                    return {"number": number, "answer": self._answer(what, told)}
                except Exception as error:
                    return {"number": number, **messages.error_to_wire(error)}
        return None

    def _answer(self, what: str, told: messages.Message) -> Any:
        match what:
            case "steps":
                return self._desk.steps()
            case "results":
                return [asdict(result) for result in self._desk.results(told["run_ids"])]
            case "inputs":
                return self._desk.inputs(told["question"], told["names"])
            case "submit_child":
                return self._desk.submit_child(messages.submission_from_wire(told["submission"]), told["name"])
            case "remember":
                return self._desk.remember(messages.step_from_wire(told["step"]))
            case "forget":
                return self._desk.forget(told["name"])
            case "recall":
                found = self._desk.recall(told["name"])
                return None if found is None else messages.artifact_to_wire(found)
            case "scratch":
                part, path = self._desk.scratch()
                return [part, str(path)]
            case "keep":
                kept = self._desk.keep(told["name"], Path(told["path"]), part=told["part"])
                return messages.artifact_to_wire(kept)
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
        after = self._hf.clock.elapsed() - (self._told_at or self._hf.clock.elapsed())
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
