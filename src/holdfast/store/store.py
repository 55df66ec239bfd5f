"""Store: opens transactions, keeps connections, and turns a driver's errors into ours.

On an embedded database the writers of one process take turns on one connection (they would only wait for each other
in the file's lock, unfairly). Otherwise each transaction has a connection from the pool.
"""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from holdfast.store.counters import Counters
from holdfast.store.dialects.base import About, Caller, Conflict, Dialect, Session
from holdfast.store.pool import Pool
from holdfast.store.queries import Queries
from holdfast.store.transaction import Row, Transaction
from holdfast.support.atfork import on_fork
from holdfast.support.clock import Clock
from holdfast.support.errors import HoldfastError, StoreBusy, StoreUnavailable, WrongConnection
from holdfast.support.ids import Ids

if TYPE_CHECKING:
    from holdfast.store.dialects.backup import Backup, Progress

log = logging.getLogger("holdfast.store")

T = TypeVar("T")

_warned: set[str] = set()

FOLLOW_EVERY = 60.0  # seconds: who has no heartbeat (a client) would drift away from the database's time
WAIT_BEFORE_FORK = 1.0  # seconds that a fork waits for a transaction of another thread
CONFLICTS = 8  # how often the same transaction may lose a deadlock before we say so


class Store:
    _writer: Any

    def __init__(
        self,
        dialect: Dialect,
        queries: Queries,
        *,
        clock: Clock,
        ids: Ids,
        max_connections: int,
        busy_timeout: timedelta,
    ) -> None:
        self.dialect, self.queries, self.clock, self.ids = dialect, queries, clock, ids
        self._max_connections, self._busy_timeout = max_connections, busy_timeout
        self.on_commit: Callable[[set[str], list[str]], None] = lambda names, ended: None
        self.counters = Counters(self)
        self.check: Callable[[], None] = lambda: None
        """Raises if this database must not be used now."""
        self.keeps_idle = True
        """Whether connections stay open between two transactions."""
        self.bounded: set[str] = set()
        self.commits = 0
        self._database: Row | None = None
        self._followed_at = clock.elapsed()
        self._reset()
        if dialect.one_writer:
            on_fork(self._forked, before=self._before_fork, parent=self._after_fork_in_parent)
        else:
            on_fork(self._forked)

    def warn(self) -> None:
        """Log what is risky about the database, once in a process. Called where a worker or a server starts."""
        for warning in self.dialect.warnings():
            if warning not in _warned:
                _warned.add(warning)
                log.warning("%s", warning)

    def require_safe(self) -> None:
        """Raise why this process may write no more, if that is so."""
        if self.dialect.unsafe is not None:
            raise self.dialect.unsafe

    def do(
        self,
        verb: Callable[[Transaction], T],
        *,
        patience: timedelta | None = None,
        own_patience: timedelta | None = None,
    ) -> T:
        """Run `verb` in a transaction of its own; again if the database undid it, because of a deadlock or a conflict.

        `patience` is how long to wait for a lock, if not as long as the settings say. `own_patience` is how long to
        wait for one that this process holds: it may be the calling thread's own.
        """
        for left in range(CONFLICTS, 0, -1):
            try:
                with self.transaction(patience=patience, own_patience=own_patience) as tx:
                    tx.again = left < CONFLICTS
                    return verb(tx)
            except Conflict as conflict:
                if left == 1:
                    raise StoreBusy(
                        f"the database undid this transaction {CONFLICTS} times, because it conflicted with others; "
                        f"nothing was written: {conflict}"
                    ) from conflict
        raise AssertionError

    def read(self, verb: Callable[[Transaction], T]) -> T:
        """Run `verb` in a transaction that only reads."""
        with self.reading() as tx:
            return verb(tx)

    def once(self, verb: Callable[[Transaction], T], *, write: bool) -> T:
        """Run a verb that is a single statement: it needs no `begin` and no `commit` around it."""
        with self._writing() if write else contextlib.nullcontext(), self._connection(write=write) as connection:
            answer = verb(self._begun(self.dialect.alone(connection), self.queries))
            if write:
                self.dialect.committed(connection)
            return answer

    @contextlib.contextmanager
    def transaction(
        self, *, patience: timedelta | None = None, own_patience: timedelta | None = None
    ) -> Iterator[Transaction]:
        """All of it or nothing; its notifications are passed on after the commit."""
        with self._writing(patience), self._open(write=True, patience=patience, own_patience=own_patience) as tx:
            yield tx
        self.commits += tx.wrote
        if tx.counted:
            self.counters.add_all(tx.counted)
        if tx.notified or tx.ended:
            self.on_commit(tx.notified, tx.ended)

    @contextlib.contextmanager
    def reading(self) -> Iterator[Transaction]:
        """A transaction that only reads; never waits for a writer."""
        with self._open(write=False) as tx:
            yield tx

    def join(self, caller: Caller, verb: Callable[[Transaction], T]) -> T:
        """Run `verb` in a transaction that the caller began, on its connection, and will end.

        Every way of joining comes through here: the driver is one that we know, the database is the store's, and a
        transaction is open.
        """
        try:
            session, style = self.dialect.join(caller)
            queries = self.queries.styled(style)
            self._require_same_database(self._begun(session, queries))
            self.dialect.enter(caller, session)
            tx = self._begun(session, queries, owned=False)
            answer = verb(tx)
            self.dialect.announce_joined(tx)
            return answer
        except Exception as error:
            translated = self.dialect.translate(error)
            if translated is error:
                raise
            if isinstance(translated, Conflict):
                raise StoreBusy(f"the database undid your transaction; begin it again: {translated}") from error
            raise translated from error

    def _require_same_database(self, theirs: Transaction) -> None:
        found = theirs.one("find_database")
        assert found is not None
        if found == self._database:
            return
        # The first time; or ours is not the same any more, because its server was restarted.
        ours = self._database = self.read(lambda tx: tx.one("find_database"))
        assert ours is not None
        if found != ours:
            raise WrongConnection(f"this connection is to {self.dialect.elsewhere(ours, found)}")

    def reserved(self) -> contextlib.AbstractContextManager[None]:
        """Inside, this thread never waits for a free connection. For the engine's own threads, of which there are few:
        whatever uses up the connections must not keep a worker from renewing its leases."""
        self._after_fork()
        return self._pool.turn(waits=False)

    def follow_clock(self) -> None:
        """Measure the offset between this host's clock and the database's."""
        with self._connection(write=False) as connection:
            self._follow(connection)

    def about(self) -> tuple[About, timedelta]:
        """What stands behind us, and how far its clock is ahead of this host's."""
        with self._connection(write=False) as connection:
            ours = self.clock.wall()
            theirs = self.dialect.server_time(connection, self.clock)
            return self.dialect.about(connection), theirs - (ours + (self.clock.wall() - ours) / 2)

    def backup(self, path: Path, *, progress: Progress) -> Backup:
        """Copy the database to a new file while it is in use."""
        with self._connection(write=False) as connection:
            return self.dialect.backup(connection, path, progress=progress)

    def announce(self, names: set[str]) -> None:
        """Tell other processes; a hint, so a failure is theirs to make up for at their next tick."""
        with contextlib.suppress(HoldfastError), self._connection(write=False) as connection:
            self.dialect.announce(connection, names)

    def listen(self, stopping: threading.Event) -> Iterator[set[str]]:
        """The names that other processes notify, on a connection of its own; {""} means: look at everything."""
        self._after_fork()
        self.check()
        connection = self.dialect.connect()
        try:
            yield from self.dialect.listen(connection, stopping, lambda: self.commits)
        except Exception as error:
            raise self.dialect.translate(error) from error
        finally:
            self.dialect.close(connection)

    def close(self) -> None:
        """Close the connections that no one is using just now."""
        self._after_fork()
        self._pool.close_idle()
        writer, self._writer = self._writer, None
        if writer is not None:
            self.dialect.checkpoint(writer)
            self.dialect.close(writer)

    def _reset(self) -> None:
        self._in_new_child = False
        self._pool = Pool(self.dialect.close, self.clock.elapsed, limit=self._max_connections, wait=self._busy_timeout)
        self._writer = None
        self._turn = threading.Lock()

    @contextlib.contextmanager
    def _writing(self, patience: timedelta | None = None) -> Iterator[None]:
        self._after_fork()
        if not self.dialect.one_writer:
            yield
            return
        turn = self._turn
        if not turn.acquire(timeout=-1 if patience is None else patience.total_seconds()):
            raise StoreBusy("the database is locked, or another thread of this process writes; nothing was written")
        try:
            yield
        finally:
            turn.release()

    def _follow(self, connection: Any) -> None:
        asked = self.clock.elapsed()
        theirs = self.dialect.server_time(connection, self.clock)
        self._followed_at = self.clock.elapsed()
        self.clock.follow(theirs, asked=asked, answered=self._followed_at)

    @contextlib.contextmanager
    def _open(
        self, *, write: bool, patience: timedelta | None = None, own_patience: timedelta | None = None
    ) -> Iterator[Transaction]:
        with self._connection(write=write) as connection:
            if self.clock.elapsed() - self._followed_at > FOLLOW_EVERY:
                self._follow(connection)
            try:
                session = self.dialect.begin(connection, write=write, patience=patience, own_patience=own_patience)
                # Read when the lock is ours: what is promised from now on must not be old before it is written.
                tx = self._begun(session, self.queries)
                yield tx
                self.dialect.commit(connection)
            except BaseException:
                self.dialect.rollback(connection)
                raise
            if tx.wrote:
                self.dialect.committed(connection)

    def _begun(self, session: Session, queries: Queries, *, owned: bool = True) -> Transaction:
        now = self.clock.now()
        return Transaction(session, queries, self.dialect, now=now, ids=self.ids, owned=owned, bounded=self.bounded)

    @contextlib.contextmanager
    def _connection(self, *, write: bool) -> Iterator[Any]:
        """A connection that goes back to where it came from, unless it broke."""
        self._after_fork()
        self.check()
        alone = write and self.dialect.one_writer
        pool = self._pool
        with pool.turn(waits=not alone):
            connection: Any = None
            try:
                if alone:
                    connection, self._writer = self._writer, None
                else:
                    connection = self._from_idle()
                if connection is None:
                    connection = self.dialect.connect()
                yield connection
            except Exception as error:
                translated = self.dialect.translate(error)
                if isinstance(translated, StoreUnavailable) and connection is not None:
                    self.dialect.close(connection)
                    connection = None
                    pool.close_idle()  # what cut one off has most likely cut off all of them
                if translated is error:
                    raise
                raise translated from error
            finally:
                if connection is not None and not (self.keeps_idle and self.dialect.is_open(connection)):
                    self.dialect.close(connection)
                elif connection is not None and alone:
                    self._writer = connection
                elif connection is not None:
                    pool.keep(connection)

    def _from_idle(self) -> Any:
        """One that was not cut off while it lay idle, if there is one."""
        while (connection := self._pool.take()) is not None and not self.dialect.is_open(connection):
            self.dialect.close(connection)
        return connection

    def _forked(self) -> None:
        # Replace the connections when they are next needed: the child may be inside a transaction that it must leave.
        self._in_new_child = True

    def _after_fork(self) -> None:
        """Replace everything that a child process inherited: it must not use its parent's connections."""
        if self._in_new_child:
            inherited = [*self._pool.idle, *([] if self._writer is None else [self._writer])]
            self._reset()
            self.dialect.after_fork_in_child(inherited)
            self._inherited = inherited  # closed by its parent, which still uses it

    def _before_fork(self) -> None:
        """Fork between two transactions, so that a child inherits no connection that is in use."""
        self._held_for_fork = self._turn.acquire(timeout=WAIT_BEFORE_FORK)
        self._pool.before_fork()
        self.dialect.before_fork()

    def _after_fork_in_parent(self) -> None:
        self.dialect.after_fork_in_parent()
        self._pool.after_fork_in_parent()
        if self._held_for_fork:
            self._turn.release()
