"""Tokens: create, check and revoke API tokens and sessions, and `hf.passes`."""

from __future__ import annotations

import hashlib
from datetime import datetime, timedelta

from holdfast.runs import audit
from holdfast.runtime import Runtime
from holdfast.store.transaction import Transaction
from holdfast.support.errors import InvalidArguments, PassExists, PassNotFound
from holdfast.support.validation import MAX_NAME, as_duration, is_name
from holdfast.values.tokens import ROLES, Pass, Role

MANY = 10_000


class Passes:
    """The passes of one Holdfast: tokens for people and programs, and the sessions that they began."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime

    def add(
        self, name: str, *, role: Role = "viewer", expires: timedelta | float | None = None, by: str | None = None
    ) -> str:
        """A new token for someone who has none, for ever or for so long; it is shown this once and never again."""
        lasts = as_duration(expires)

        def add(tx: Transaction) -> str:
            secret = add_token(tx, name, role=role, lasts=lasts)
            audit.record(tx, by, "add pass", name=name, role=role)
            return secret

        return self._runtime.do(add)

    def list(self) -> list[Pass]:
        """Every token and session that is still good, without its secret."""
        return self._runtime.read(list_tokens)

    def remove(self, name: str, *, by: str | None = None) -> None:
        """Take back someone's token; the sessions that it began end with it, everywhere, within seconds."""

        def remove(tx: Transaction) -> None:
            revoke_token(tx, name)
            audit.record(tx, by, "remove pass", name=name)

        self._runtime.do(remove)


def add_token(tx: Transaction, name: str, *, role: Role, lasts: timedelta | None) -> str:
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


def revoke_token(tx: Transaction, name: str) -> None:
    """Take back someone's token, and end the sessions that it began."""
    if tx.run("delete_passes_of", name=name) == 0:
        raise PassNotFound(f"no one called {name!r} has a token")


def find_token(tx: Transaction, digest: str) -> Pass | None:
    """The pass that this is the digest of, if it is still good."""
    row = tx.one("find_pass", digest=digest, now=tx.now)
    return None if row is None else Pass(**row)


def list_tokens(tx: Transaction) -> list[Pass]:
    """Everyone's tokens and sessions that are still good."""
    return [Pass(**row) for row in tx.all("list_passes", now=tx.now, limit=MANY)]


def delete_expired(tx: Transaction) -> int:
    """Remove those that have run out."""
    return tx.run("delete_expired_passes", now=tx.now)


def digest(*secrets: str) -> str:
    """What of a secret is stored and compared. A secret of 256 random bits needs no salt and no slowness."""
    return hashlib.sha256("\0".join(secrets).encode()).hexdigest()


def _insert(tx: Transaction, digest: str, name: str, role: str, kind: str, expires_at: datetime | None) -> int:
    return tx.run("insert_pass", digest=digest, name=name, role=role, kind=kind, now=tx.now, expires_at=expires_at)


def _check(name: str, role: str, lasts: timedelta | None) -> None:
    if not is_name(name) or not name.isprintable():
        raise InvalidArguments(f"a name is printable text of 1 to {MAX_NAME} characters")
    if role not in ROLES:
        raise InvalidArguments(f"there is no role {role!r}; a role is {', '.join(ROLES)}")
    if lasts is not None and not timedelta(0) < lasts <= timedelta(days=36_500):
        raise InvalidArguments("a token lasts more than 0 seconds and at most 100 years")
