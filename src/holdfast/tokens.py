"""Tokens: create, check and revoke API tokens and sessions, and the namespace `hf.tokens`."""

from __future__ import annotations

import hashlib
from datetime import datetime, timedelta

from holdfast.runs import audit
from holdfast.runtime import Runtime
from holdfast.store.transaction import Transaction
from holdfast.support.errors import InvalidArguments, TokenExists, TokenNotFound
from holdfast.support.validation import MAX_NAME, as_duration, is_name
from holdfast.values.tokens import ROLES, Role, Token

MANY = 10_000


class Tokens:
    """The tokens of one Holdfast, for people and programs, and the sessions that were started with them."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime

    def add(
        self, name: str, *, role: Role = "viewer", expires: timedelta | float | None = None, by: str | None = None
    ) -> str:
        """Create a token under a new name and return its secret, which can't be read again.

        `expires` is how long the token is valid; without it, the token does not expire.
        """
        valid_for = as_duration(expires)

        def add(tx: Transaction) -> str:
            secret = add_token(tx, name, role=role, valid_for=valid_for)
            audit.record(tx, by, "add token", name=name, role=role)
            return secret

        return self._runtime.do(add)

    def list(self) -> list[Token]:
        """Return every valid token and session, without secrets."""
        return self._runtime.read(list_tokens)

    def remove(self, name: str, *, by: str | None = None) -> None:
        """Revoke a token. All sessions that were started with it end within seconds."""

        def remove(tx: Transaction) -> None:
            revoke_token(tx, name)
            audit.record(tx, by, "remove token", name=name)

        self._runtime.do(remove)


def add_token(tx: Transaction, name: str, *, role: Role, valid_for: timedelta | None) -> str:
    """Create a token under a new name and return its secret, which is not stored."""
    _check(name, role, valid_for)
    secret = f"hf_{tx.ids.secret()}"
    expires_at = None if valid_for is None else tx.now + valid_for
    if not _insert(tx, digest(secret), name, role, "token", expires_at):
        raise TokenExists(f"{name!r} already has a token; remove it first, or choose another name")
    return secret


def sign_in(tx: Transaction, name: str, *, role: Role, expires_at: datetime, digest: str) -> None:
    """Start a session after its token has been checked."""
    _insert(tx, digest, name, role, "session", expires_at)


def sign_out(tx: Transaction, digest: str) -> None:
    """End a session."""
    tx.put("delete_token", digest=digest)


def revoke_token(tx: Transaction, name: str) -> None:
    """Delete a token and the sessions that were started with it."""
    if tx.run("delete_tokens_of", name=name) == 0:
        raise TokenNotFound(f"there is no token named {name!r}")


def find_token(tx: Transaction, digest: str) -> Token | None:
    """Return the valid token or session with this digest, if there is one."""
    row = tx.one("find_token", digest=digest, now=tx.now)
    return None if row is None else Token(**row)


def list_tokens(tx: Transaction) -> list[Token]:
    """Return all valid tokens and sessions."""
    return [Token(**row) for row in tx.all("list_tokens", now=tx.now, limit=MANY)]


def delete_expired(tx: Transaction) -> int:
    """Delete expired tokens and sessions, and return their number."""
    return tx.run("delete_expired_tokens", now=tx.now)


def digest(*secrets: str) -> str:
    """Return the digest under which a secret is stored. 256 random bits need neither a salt nor a slow hash."""
    return hashlib.sha256("\0".join(secrets).encode()).hexdigest()


def _insert(tx: Transaction, digest: str, name: str, role: str, kind: str, expires_at: datetime | None) -> int:
    return tx.run("insert_token", digest=digest, name=name, role=role, kind=kind, now=tx.now, expires_at=expires_at)


def _check(name: str, role: str, valid_for: timedelta | None) -> None:
    if not is_name(name) or not name.isprintable():
        raise InvalidArguments(f"a token name must be printable text of 1 to {MAX_NAME} characters")
    if role not in ROLES:
        raise InvalidArguments(f"there is no role {role!r}; known: {', '.join(ROLES)}")
    if valid_for is not None and not timedelta(0) < valid_for <= timedelta(days=36_500):
        raise InvalidArguments("a token must be valid for more than 0 seconds and at most 100 years")
