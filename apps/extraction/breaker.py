"""Breaker: leaves a service alone that keeps failing, so that it does not use up every document's attempts.

    closed ──failures in a row──▶ open until … ──over──▶ one may try ──well──▶ closed
                                    ▲                        │ fails: open again, for twice as long
                                    └────────────────────────┘

It is a row of the database, so all processes know.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

from sqlalchemy import select, update
from sqlalchemy.orm import Session

from apps.database import Database
from apps.extraction.tables import Service

LONGEST = timedelta(minutes=15)


class Breaker:
    """For one service. `pause` is how long it is left alone after `failures` in a row; each time twice as long."""

    def __init__(
        self, database: Database, name: str, *, failures: int, pause: timedelta, now: Callable[[], datetime]
    ) -> None:
        self._database, self._name, self._most, self._pause, self._now = database, name, failures, pause, now

    def wait(self) -> timedelta | None:
        """How long no one is to ask; None if the caller may. Of many who ask when it is over, one may."""
        now = self._now()
        with self._database.read() as session:
            found = session.get(Service, self._name)
        if found is None or found.open_until is None:
            return None
        if found.open_until > now:
            return found.open_until - now
        with self._database.write() as session:
            # Whoever moves the time on has the trial; the others wait for what it comes to.
            taken = session.execute(
                update(Service)
                .where(Service.name == self._name, Service.open_until == found.open_until)
                .values(open_until=now + self._pause)
            )
        return None if taken.rowcount == 1 else self._pause  # type: ignore[attr-defined]

    def succeeded(self) -> None:
        with self._database.read() as session:
            found = session.get(Service, self._name)
        if found is None or (found.failures == 0 and found.open_until is None):
            return
        with self._database.write() as session:
            row = self._locked(session)
            row.failures, row.open_until, row.said = 0, None, None

    def failed(self, said: str) -> None:
        with self._database.write() as session:
            row = self._locked(session)
            row.failures, row.said = row.failures + 1, said[:1000]
            beyond = row.failures - self._most
            if beyond >= 0:
                row.open_until = self._now() + min(self._pause * 2 ** min(beyond, 10), LONGEST)

    def _locked(self, session: Session) -> Service:
        row = session.scalar(select(Service).where(Service.name == self._name).with_for_update())
        if row is None:
            row = Service(name=self._name, failures=0)
            session.add(row)
            session.flush()
        return row
