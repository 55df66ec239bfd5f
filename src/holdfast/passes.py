"""Passes: who may look and steer. A token is for a program or to sign in with, a session is what signing in leaves.

Only digests are stored: who can read the database can't act as someone else.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal, get_args

from holdfast import codec
from holdfast.errors import InvalidArguments, PassExists, PassNotFound
from holdfast.store.transaction import Row, Transaction

Role = Literal["viewer", "operator", "admin"]
ROLES: tuple[Role, ...] = get_args(Role)
"""Each may do what those before it may: look; also submit, cancel, pause, trigger; also limits and passes."""

MAX_NAME = 200
MANY = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Pass:
    """What someone was given to come in with; the secret itself is known to no one but them."""

    name: str
    role: Role
    kind: Literal["token", "session"]
    made_at: datetime
    expires_at: datetime | None


def add(tx: Transaction, name: str, *, role: Role, lasts: timedelta | None) -> str:
    """Give a token to someone who has none; its secret, which is never seen again."""
    _check(name, role, lasts)
    secret = f"hf_{tx.ids.secret()}"
    expires_at = None if lasts is None else tx.now + lasts
    if not _insert(tx, digest(secret), name, role, "token", expires_at):
        raise PassExists(f"{name!r} has a token already; remove it first, or choose another name")
    return secret


def sign_in(tx: Transaction, name: str, *, role: Role, expires_at: datetime, digest: str) -> None:
    """Begin a session of someone whose token was good."""
    _insert(tx, digest, name, role, "session", expires_at)


def sign_out(tx: Transaction, digest: str) -> None:
    """End a session."""
    tx.put("delete_pass", digest=digest)


def remove(tx: Transaction, name: str) -> None:
    """Take back someone's token, and end the sessions that it began."""
    if tx.run("delete_passes_of", name=name) == 0:
        raise PassNotFound(f"no one called {name!r} has a token")


def find(tx: Transaction, digest: str) -> Pass | None:
    """The pass that this is the digest of, if it is still good."""
    row = tx.one("find_pass", digest=digest, now=tx.now)
    return None if row is None else _pass(row)


def listed(tx: Transaction) -> list[Pass]:
    """Everyone's tokens and sessions that are still good."""
    return [_pass(row) for row in tx.all("list_passes", now=tx.now, limit=MANY)]


def forget(tx: Transaction) -> int:
    """Remove those that have run out."""
    return tx.run("delete_expired_passes", now=tx.now)


def digest(*secrets: str) -> str:
    """What of a secret is stored and compared. A secret of 256 random bits needs no salt and no slowness."""
    return hashlib.sha256("\0".join(secrets).encode()).hexdigest()


def _insert(tx: Transaction, digest: str, name: str, role: str, kind: str, expires_at: datetime | None) -> int:
    return tx.run("insert_pass", digest=digest, name=name, role=role, kind=kind, now=tx.now, expires_at=expires_at)


def _pass(row: Row) -> Pass:
    return Pass(**row)


def _check(name: str, role: str, lasts: timedelta | None) -> None:
    if not isinstance(name, str) or not 0 < len(name) <= MAX_NAME or not codec.storable(name) or not name.isprintable():
        raise InvalidArguments(f"a name is printable text of 1 to {MAX_NAME} characters")
    if role not in ROLES:
        raise InvalidArguments(f"there is no role {role!r}; a role is {', '.join(ROLES)}")
    if lasts is not None and not timedelta(0) < lasts <= timedelta(days=36_500):
        raise InvalidArguments("a token lasts more than 0 seconds and at most 100 years")
