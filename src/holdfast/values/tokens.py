"""Tokens and roles as values."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal, get_args

from holdfast.values.fields import described

Role = Literal["viewer", "operator", "admin"]


ROLES: tuple[Role, ...] = get_args(Role)
"""Each may do what those before it may: look; also submit, cancel, pause, trigger; also limits and passes."""


@described
@dataclass(frozen=True, slots=True, kw_only=True)
class Pass:
    """A token, or a session that one began; never its secret."""

    name: str
    role: Role
    kind: Literal["token", "session"]
    made_at: datetime
    expires_at: datetime | None
