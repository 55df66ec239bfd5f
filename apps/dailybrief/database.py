"""Database: where the newsroom's tables live: the same database as the engine's, SQLite or PostgreSQL."""

from __future__ import annotations

from sqlalchemy import Engine, create_engine, make_url
from sqlalchemy.orm import Session, sessionmaker

from apps.shared.database import DRIVERS, READ_ONLY, prepare_sqlite
from holdfast import InvalidSetting

Sessions = sessionmaker[Session]

BUSY_TIMEOUT = 30  # seconds that a writer waits for the one before it, on SQLite


def connect(url: str) -> Engine:
    """An engine for `HOLDFAST_URL`. Its transactions are for writing, unless READ_ONLY is among its options."""
    address = make_url(url)
    driver = DRIVERS.get(address.get_backend_name())
    if driver is None:
        raise InvalidSetting("HOLDFAST_URL: the newsroom keeps its tables in SQLite or PostgreSQL")
    if driver != "sqlite":
        return create_engine(address.set(drivername=driver), pool_pre_ping=True, isolation_level="READ COMMITTED")
    engine = create_engine(address, connect_args={"timeout": BUSY_TIMEOUT})
    prepare_sqlite(engine)
    return engine


def writers(engine: Engine) -> Sessions:
    """Sessions that may write. On SQLite each takes the write lock at its first statement: keep them short."""
    return sessionmaker(engine)


def readers(engine: Engine) -> Sessions:
    """Sessions that only read: they wait for nobody, and nobody waits for them."""
    return sessionmaker(engine.execution_options(**{READ_ONLY: True}))
