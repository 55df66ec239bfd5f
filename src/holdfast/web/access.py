"""Access: who asks, and what they may do. Closed by default: without a pass there is nothing but the sign-in page.

viewer      may look
operator    may also cancel, submit, pause, trigger
admin       may also change limits and passes
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from fastapi import Request

from holdfast.engine import Holdfast
from holdfast.web.problems import Problem

Role = Literal["viewer", "operator", "admin"]
ROLES: tuple[Role, ...] = ("viewer", "operator", "admin")


@dataclass(frozen=True)
class Who:
    """Someone who may do what `role` may; `name` stands in the events of what they did."""

    name: str
    role: Role

    def may(self, role: Role) -> bool:
        return ROLES.index(self.role) >= ROLES.index(role)


class Access:
    """Decides who a request is from."""

    def __init__(self, hf: Holdfast, *, token: str | None) -> None:
        self._hf = hf
        self._token = None if token is None else _digest(token)

    def who(self, request: Request) -> Who | None:
        """Whose pass the request carries, if it is a good one."""
        scheme, _, given = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer" and self._token and hmac.compare_digest(_digest(given), self._token):
            return Who("admin", "admin")
        return None

    def need(self, role: Role) -> Callable[[Request], Who]:
        """A dependency: who asks, if they may do what this role may."""

        def allowed(request: Request) -> Who:
            who = self.who(request)
            if who is None:
                raise Problem("not_signed_in", "sign in, or send 'Authorization: Bearer TOKEN'", status=401)
            if not who.may(role):
                raise Problem("not_allowed", f"{who.name} is a {who.role}; this takes a {role}", status=403)
            return who

        return allowed


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()
