"""Audit entries as values: who did what by hand."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any

from pydantic import Field

from holdfast.values.fields import described

MAX_BY, MAX_TEXT = 200, 1000


@described
@dataclass(frozen=True, kw_only=True)
class Operation:
    """What someone did by hand, recorded in the transaction that did it."""

    by: str
    action: Annotated[str, Field(examples=["cancel"])]
    what: dict[str, Any]
    """To what it was done, and with what words."""
    run_id: str | None
    happened_at: datetime
    cursor: str
    """Give it as `before` to read what was done earlier."""
