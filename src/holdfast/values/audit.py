"""Audit entries as values: actions that people took, with the person's name."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any

from pydantic import Field

from holdfast.values.fields import described

MAX_BY, MAX_TEXT = 200, 1000


@described
@dataclass(frozen=True, kw_only=True)
class AuditEntry:
    """An action that a person took, recorded in the transaction that performed it."""

    by: str
    action: Annotated[str, Field(examples=["cancel"])]
    details: dict[str, Any]
    """What the action was applied to, and its options."""
    run_id: str | None
    happened_at: datetime
    cursor: str
    """Pass it as `before` to read earlier entries."""
