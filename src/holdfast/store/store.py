"""Store: opens transactions, manages connections, and translates a driver's errors into Holdfast's.

On an embedded database, the writers of one process take turns on one connection, because they would otherwise compete
for the file's lock, which is unfair. On a server, each transaction has its own connection from the pool.
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

FOLLOW_EVERY = 60.0  # seconds between clock measurements; keeps a process without heartbeats at the database's time
WAIT_BEFORE_FORK = 1.0  # seconds that a fork waits for a transaction of another thread
CONFLICTS = 8  # how many times a transaction is tried before StoreBusy is raised


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
        """Raises an error if this database must not be used now."""
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
        """Log warnings about the database, once per process. Called when a worker or a server starts."""
        for warning in self.dialect.warnings():
            if warning not in _warned:
                _warned.add(warning)
                log.warning("%s", warning)

    def require_safe(self) -> None:
        """Raise StoreUnsafe if this process must not write any more."""
        if self.dialect.unsafe is not None:
            raise self.dialect.unsafe

    def do(
        self,
        verb: Callable[[Transaction], T],
        *,
        patience: timedelta | None = None,
        own_patience: timedelta | None = None,
    ) -> T:
        """Run `verb` in its own transaction; try again if the database rolled it back because of a conflict.

        `patience` is how long to wait for a lock; by default, as long as the settings say. `own_patience` is how long
        to wait for a lock that this process holds: if the calling thread itself holds it, waiting is useless.
        """
        for left in range(CONFLICTS, 0, -1):
            try:
                with self.transaction(patience=patience, own_patience=own_patience) as tx:
                    tx.again = left < CONFLICTS
                    return verb(tx)
            except Conflict as conflict:
                if left == 1:
                    raise StoreBusy(
                        f"the database rolled this transaction back {CONFLICTS} times because of conflicts with "
                        f"others; nothing was written: {conflict}"
                    ) from conflict
        raise AssertionError

    def read(self, verb: Callable[[Transaction], T]) -> T:
        """Run `verb` in a transaction that only reads."""
        with self.reading() as tx:
            return verb(tx)

    def once(self, verb: Callable[[Transaction], T], *, write: bool) -> T:
        """Run a verb that is a single statement, which needs no `begin` and no `commit`."""
        with (
            self._dated(),
            self._writing() if write else contextlib.nullcontext(),
            self._connection(write=write) as connection,
        ):
            result = verb(self._begun(self.dialect.alone(connection), self.queries))
            if write:
                self.dialect.committed(connection)
            return result

    @contextlib.contextmanager
    def transaction(
        self, *, patience: timedelta | None = None, own_patience: timedelta | None = None
    ) -> Iterator[Transaction]:
        """Open a transaction. Commit it at the end, then send its notifications; roll it back after an error."""
        with (
            self._dated(),
            self._writing(patience),
            self._open(write=True, patience=patience, own_patience=own_patience) as tx,
        ):
            yield tx
        self.commits += tx.wrote
        if tx.counted:
            self.counters.add_all(tx.counted)
        if tx.notified or tx.ended:
            self.on_commit(tx.notified, tx.ended)

    @contextlib.contextmanager
    def reading(self) -> Iterator[Transaction]:
        """Open a transaction that only reads and never waits for a writer."""
        with self._open(write=False) as tx:
            yield tx

    def join(self, caller: Caller, verb: Callable[[Transaction], T]) -> T:
        """Run `verb` in a transaction that the caller began on its own connection and will end.

        Every use of a caller's transaction goes through this method. It checks that the driver is supported, that the
        connection is to the store's database, and that a transaction is open.
        """
        try:
            session, style = self.dialect.join(caller)
            queries = self.queries.styled(style)
            self._require_same_database(self._begun(session, queries))
            self.dialect.enter(caller, session)
            tx = self._begun(session, queries, owned=False)
            result = verb(tx)
            self.dialect.announce_joined(tx)
            return result
        except Exception as error:
            translated = self.dialect.translate(error)
            if translated is error:
                raise
            if isinstance(translated, Conflict):
                raise StoreBusy(f"the database rolled your transaction back; begin it again: {translated}") from error
            raise translated from error

    def _require_same_database(self, tx: Transaction) -> None:
        theirs = tx.one("find_database")
        assert theirs is not None
        if theirs == self._database:
            return
        # Read our own identity: this is the first call, or a restart of the server may have changed it.
        ours = self._database = self.read(lambda tx: tx.one("find_database"))
        assert ours is not None
        if theirs != ours:
            raise WrongConnection(f"this connection is to {self.dialect.elsewhere(ours, theirs)}")

    def reserved(self) -> contextlib.AbstractContextManager[None]:
        """Let this thread use a connection without waiting for a free one.

        It is for the engine's own few threads: a worker must renew its leases even if all connections are in use.
        """
        self._after_fork()
        return self._pool.turn(waits=False)

    def follow_clock(self) -> None:
        """Measure the offset between this host's clock and the database's."""
        with self._connection(write=False) as connection:
            self._follow(connection)

    def about(self) -> tuple[About, timedelta]:
        """Return the versions of the server and driver, and how far the server's clock is ahead of this host's."""
        with self._connection(write=False) as connection:
            ours = self.clock.wall()
            theirs = self.dialect.server_time(connection, self.clock)
            return self.dialect.about(connection), theirs - (ours + (self.clock.wall() - ours) / 2)

    def backup(self, path: Path, *, progress: Progress) -> Backup:
        """Copy the database to a new file while it is in use."""
        with self._connection(write=False) as connection:
            return self.dialect.backup(connection, path, progress=progress)

    def announce(self, names: set[str]) -> None:
        """Notify other processes. Errors are ignored: a process without a notification finds work at its next poll."""
        with contextlib.suppress(HoldfastError), self._connection(write=False) as connection:
            self.dialect.announce(connection, names)

    def listen(self, stopping: threading.Event) -> Iterator[set[str]]:
        """Yield the names that other processes notify, on a separate connection; {""} stands for all names."""
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
        """Close all idle connections."""
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
    def _dated(self) -> Iterator[None]:
        """Add to a StoreBusy when the wait began, so that several errors about one lock can be recognised."""
        began = self.clock.elapsed()
        try:
            yield
        except StoreBusy as busy:
            busy.since = began
            raise

    @contextlib.contextmanager
    def _writing(self, patience: timedelta | None = None) -> Iterator[None]:
        self._after_fork()
        if not self.dialect.one_writer:
            yield
            return
        turn = self._turn
        if not turn.acquire(timeout=-1 if patience is None else patience.total_seconds()):
            raise StoreBusy("the database is locked by another thread of this process; nothing was written")
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
                # Read the clock after the lock is taken: waiting for the lock must not make the time outdated.
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
        """Open a connection, or take an idle one, and keep it for later use unless it broke."""
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
                    pool.close_idle()  # most likely all of them are broken
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
        """Return an idle connection that is still open, or None."""
        while (connection := self._pool.take()) is not None and not self.dialect.is_open(connection):
            self.dialect.close(connection)
        return connection

    def _forked(self) -> None:
        # Replace the connections on their next use, not now: the child may first have to leave a transaction.
        self._in_new_child = True

    def _after_fork(self) -> None:
        """In a forked child, replace everything inherited: it must not use its parent's connections."""
        if self._in_new_child:
            inherited = [*self._pool.idle, *([] if self._writer is None else [self._writer])]
            self._reset()
            self.dialect.after_fork_in_child(inherited)
            self._inherited = inherited  # keep a reference: closing them would break the parent's connections

    def _before_fork(self) -> None:
        """Wait for the current transaction to end, so that a child inherits no connection that is in use."""
        self._held_for_fork = self._turn.acquire(timeout=WAIT_BEFORE_FORK)
        self._pool.before_fork()
        self.dialect.before_fork()

    def _after_fork_in_parent(self) -> None:
        self.dialect.after_fork_in_parent()
        self._pool.after_fork_in_parent()
        if self._held_for_fork:
            self._turn.release()
