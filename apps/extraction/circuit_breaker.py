"""Circuit breaker: stops calls to a failing service, so that it does not use up every document's attempts.

    closed ──failures in a row──▶ open ──pause over──▶ one trial call ──succeeds──▶ closed
                                    ▲                        │ fails: open again, for twice as long
                                    └────────────────────────┘

The state is a row in the database, so all processes share it. If the process that makes the trial call dies, another
process makes the call after a further pause.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import TypeVar

from sqlalchemy import select, update
from sqlalchemy.orm import Session

from apps.extraction.analysis import Unreadable
from apps.extraction.providers import BlobMissing, ServiceError
from apps.extraction.tables import Service
from apps.shared.database import Database

T = TypeVar("T")
MAX_PAUSE = timedelta(minutes=15)
SERVICES = ("blobs", "documents", "reader", "embeddings", "local model")


class CircuitOpen(Exception):
    """The service failed too often and is not called for a while."""

    def __init__(self, provider: str, wait: timedelta) -> None:
        super().__init__(
            f"{provider}: not called, because it failed too often; try again in {wait.total_seconds():.0f} s"
        )
        self.wait = wait


class CircuitBreaker:
    """After `failures` in a row, a service is not called for `pause`. Each failed trial call doubles the pause."""

    def __init__(self, database: Database, *, failures: int, pause: timedelta, now: Callable[[], datetime]) -> None:
        self._database, self._max_failures, self._pause, self._now = database, failures, pause, now

    def call(self, provider: str, request: Callable[[], T]) -> T:
        """Call a service and record whether it is reachable; raise CircuitOpen if it must not be called now."""
        is_trial = self._enter(provider)
        try:
            answer = request()
        except ServiceError as error:
            if error.reachable:
                self._succeeded(provider)
            else:
                self._failed(provider, str(error), is_trial=is_trial)
            raise
        except (Unreadable, BlobMissing):
            self._succeeded(provider)  # the service answered, even if the answer is a refusal
            raise
        self._succeeded(provider)
        return answer

    def _enter(self, provider: str) -> bool:
        """Raise CircuitOpen if the circuit is open; return True if this call is the trial call."""
        now = self._now()
        with self._database.read() as session:
            open_until = session.scalar(select(Service.open_until).where(Service.name == provider))
        if open_until is None:
            return False
        if open_until > now:
            raise CircuitOpen(provider, open_until - now)
        with self._database.write() as session:
            # Only one caller can change `open_until`. It makes the trial call; the others get CircuitOpen.
            moved = session.execute(
                update(Service)
                .where(Service.name == provider, Service.open_until == open_until)
                .values(open_until=now + self._pause)
            )
        if moved.rowcount != 1:  # type: ignore[attr-defined]
            raise CircuitOpen(provider, self._pause)
        return True

    def _succeeded(self, provider: str) -> None:
        with self._database.read() as session:
            service = session.get(Service, provider)
            if service is None or (service.failures == 0 and service.open_until is None):
                return
        with self._database.write() as session:
            row = self._locked(session, provider)
            row.failures, row.open_until, row.last_error = 0, None, None

    def _failed(self, provider: str, error: str, *, is_trial: bool) -> None:
        now = self._now()
        with self._database.write() as session:
            row = self._locked(session, provider)
            if not is_trial and row.open_until is not None:
                return  # the call began before the circuit opened
            row.failures, row.last_error = row.failures + 1, error[:1000]
            excess = row.failures - self._max_failures
            if excess >= 0:
                row.open_until = now + min(self._pause * 2 ** min(excess, 10), MAX_PAUSE)

    def _locked(self, session: Session, provider: str) -> Service:
        row = session.scalar(select(Service).where(Service.name == provider).with_for_update())
        assert row is not None, f"{provider} is not one of {SERVICES}"
        return row
