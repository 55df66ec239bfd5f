"""hf.passes: who may look and steer over HTTP."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from holdfast import operations, passes
from holdfast.options import as_duration
from holdfast.passes import Pass, Role
from holdfast.store.transaction import Transaction

if TYPE_CHECKING:
    from holdfast.engine import Holdfast


class Passes:
    """The passes of one Holdfast: tokens for people and programs, and the sessions that they began."""

    def __init__(self, hf: Holdfast) -> None:
        self._hf = hf

    def add(
        self, name: str, *, role: Role = "viewer", expires: timedelta | float | None = None, by: str | None = None
    ) -> str:
        """A new token for someone who has none, for ever or for so long; it is shown this once and never again."""
        lasts = as_duration(expires)

        def add(tx: Transaction) -> str:
            secret = passes.add(tx, name, role=role, lasts=lasts)
            operations.record(tx, by, "add pass", name=name, role=role)
            return secret

        return self._hf.do(add)

    def list(self) -> list[Pass]:
        """Every token and session that is still good, without its secret."""
        return self._hf.read(passes.listed)

    def remove(self, name: str, *, by: str | None = None) -> None:
        """Take back someone's token; the sessions that it began end with it, everywhere, within seconds."""

        def remove(tx: Transaction) -> None:
            passes.remove(tx, name)
            operations.record(tx, by, "remove pass", name=name)

        self._hf.do(remove)
