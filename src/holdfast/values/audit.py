"""Audit entries as values: who did what by hand."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

MAX_BY, MAX_TEXT = 200, 1000


@dataclass(frozen=True, kw_only=True)
class Operation:
    """What an operator did: `action` is the verb ("cancel"), `what` says to what, and with what words.

    cursor  give it as `before` to read what was done earlier
    """

    by: str
    action: str
    what: dict[str, Any]
    run_id: str | None
    happened_at: datetime
    cursor: str
