"""Services: there are two, and a process is one of them for as long as it lives.

k2dailybrief-web      shows, takes in feeds, triggers a slot by hand; never schedules
k2dailybrief-worker   schedules and runs the jobs; one is active at a time
"""

from __future__ import annotations

from typing import Literal

Service = Literal["k2dailybrief-web", "k2dailybrief-worker"]
WEB: Service = "k2dailybrief-web"
WORKER: Service = "k2dailybrief-worker"

_this: Service | None = None


class WrongService(Exception):
    """This process is the other service already."""

    code = "wrong_service"


def become(service: Service) -> None:
    """Say which service this process is, once and for ever."""
    global _this
    if _this not in (None, service):
        raise WrongService(f"this process is {_this}, and can't be {service} too: start that one by itself")
    _this = service


def this() -> Service | None:
    return _this
