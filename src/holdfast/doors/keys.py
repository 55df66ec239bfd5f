"""hf.keys: who holds what, and who waits for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast import keys
from holdfast.keys import Key
from holdfast.options import check_limit

if TYPE_CHECKING:
    from holdfast.engine import Holdfast


class Keys:
    """The keys of one Holdfast that someone holds or waits for."""

    def __init__(self, hf: Holdfast) -> None:
        self._hf = hf

    def list(self, *, limit: int = 100, after: str = "") -> list[Key]:
        """Keys that someone holds or waits for, in their order; `after` continues after the last of the page before."""
        check_limit(limit)
        return self._hf.read(lambda tx: keys.listed(tx, limit=limit, after=after))
