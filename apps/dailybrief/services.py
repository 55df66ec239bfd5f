"""Services: each process is either the web service or the worker, and can't change its role.

k2dailybrief-web      serves the pages, adds feeds, triggers slots by hand; never schedules
k2dailybrief-worker   schedules and runs the jobs; only one is active at a time
"""

from __future__ import annotations

from typing import Literal

Service = Literal["k2dailybrief-web", "k2dailybrief-worker"]
WEB: Service = "k2dailybrief-web"
WORKER: Service = "k2dailybrief-worker"

_current: Service | None = None


class WrongService(Exception):
    """This process is already the other service."""

    code = "wrong_service"


def declare(service: Service) -> None:
    """Declare which service this process is."""
    global _current
    if _current not in (None, service):
        raise WrongService(f"this process is {_current} and can't also be {service}; start {service} by itself")
    _current = service


def current() -> Service | None:
    return _current
