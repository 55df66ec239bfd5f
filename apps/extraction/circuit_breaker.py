"""Circuit breaker: stops calls to a failing service, so that it does not use up every document's attempts.

    closed ──failures in a row──▶ open until … ──over──▶ one may try ──well──▶ closed
                                    ▲                        │ fails: open again, for twice as long
                                    └────────────────────────┘

It is a row of the database, so all processes know. Who tries and dies is followed by another after a pause.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import TypeVar

from sqlalchemy import select, update
from sqlalchemy.orm import Session

from apps.extraction.analysis import Unreadable
from apps.extraction.providers import BlobMissing, Trouble
from apps.extraction.tables import Service
from apps.shared.database import Database

T = TypeVar("T")
LONGEST = timedelta(minutes=15)
SERVICES = ("blobs", "documents", "reader", "embeddings", "local model")


class Away(Exception):
    """The service is left alone for a while: nothing was asked."""

    def __init__(self, provider: str, wait: timedelta) -> None:
        super().__init__(f"{provider} is left alone for {wait.total_seconds():.0f} s, because it failed too often")
        self.wait = wait


class CircuitBreaker:
    """`pause` is how long a service is left alone after `failures` in a row; each time twice as long."""

    def __init__(self, database: Database, *, failures: int, pause: timedelta, now: Callable[[], datetime]) -> None:
        self._database, self._most, self._pause, self._now = database, failures, pause, now

    def ask(self, provider: str, question: Callable[[], T]) -> T:
        """What the service answers, or Away; what it comes to is noted."""
        on_trial = self._enter(provider)
        try:
            answer = question()
        except Trouble as error:
            if error.alive:
                self._well(provider)
            else:
                self._failed(provider, str(error), on_trial=on_trial)
            raise
        except (Unreadable, BlobMissing):
            self._well(provider)  # it has answered, and says no
            raise
        self._well(provider)
        return answer

    def _enter(self, provider: str) -> bool:
        """Whether the caller is the one who tries if it is back. Of many who ask when the pause is over, one may."""
        now = self._now()
        with self._database.read() as session:
            open_until = session.scalar(select(Service.open_until).where(Service.name == provider))
        if open_until is None:
            return False
        if open_until > now:
            raise Away(provider, open_until - now)
        with self._database.write() as session:
            # Whoever moves the time on has the trial; the others wait for what it comes to.
            taken = session.execute(
                update(Service)
                .where(Service.name == provider, Service.open_until == open_until)
                .values(open_until=now + self._pause)
            )
        if taken.rowcount != 1:  # type: ignore[attr-defined]
            raise Away(provider, self._pause)
        return True

    def _well(self, provider: str) -> None:
        with self._database.read() as session:
            found = session.get(Service, provider)
            if found is None or (found.failures == 0 and found.open_until is None):
                return
        with self._database.write() as session:
            row = self._locked(session, provider)
            row.failures, row.open_until, row.said = 0, None, None

    def _failed(self, provider: str, said: str, *, on_trial: bool) -> None:
        now = self._now()
        with self._database.write() as session:
            row = self._locked(session, provider)
            if not on_trial and row.open_until is not None:
                return  # it asked before the others failed: that is no news
            row.failures, row.said = row.failures + 1, said[:1000]
            beyond = row.failures - self._most
            if beyond >= 0:
                row.open_until = now + min(self._pause * 2 ** min(beyond, 10), LONGEST)

    def _locked(self, session: Session, provider: str) -> Service:
        row = session.scalar(select(Service).where(Service.name == provider).with_for_update())
        assert row is not None, f"{provider} is none of {SERVICES}"
        return row
