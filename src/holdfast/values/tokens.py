"""Tokens and roles as values."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal, get_args

Role = Literal["viewer", "operator", "admin"]


ROLES: tuple[Role, ...] = get_args(Role)
"""Each may do what those before it may: look; also submit, cancel, pause, trigger; also limits and passes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pass:
    """What someone was given to come in with; the secret itself is known to no one but them."""

    name: str
    role: Role
    kind: Literal["token", "session"]
    made_at: datetime
    expires_at: datetime | None
