"""Tokens and roles as values."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal, get_args

from holdfast.values.fields import described

Role = Literal["viewer", "operator", "admin"]


ROLES: tuple[Role, ...] = get_args(Role)
"""Each role includes those before it. A viewer reads; an operator also submits, cancels, pauses and triggers; an admin
also sets limits and manages tokens."""


@described
@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """A token, or a session that was started with one, without its secret."""

    name: str
    role: Role
    kind: Literal["token", "session"]
    created_at: datetime
    expires_at: datetime | None
