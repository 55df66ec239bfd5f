"""Builds as values: a build as it was when read, and a request for one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from holdfast.support import json_text
from holdfast.values.policies import Policy, load_policy

STATES = ("queued", "building", "ready", "failed", "cancelled", "stale")


@dataclass(frozen=True, kw_only=True)
class Build:
    """A build as it was when read. `waiting` counts the runs that wait for it."""

    job: str
    scope: str
    fingerprint: str
    run_id: str
    state: str
    stale_at: datetime | None
    reason: str | None
    created_at: datetime
    holder: str | None
    started_at: datetime | None
    finished_at: datetime | None
    failure_type: str | None
    error: str | None
    result: str | None
    waiting: int
    unreadable: str | None = None
    """Which stored values can't be decoded, and why."""

    def saved(self, uses: int) -> timedelta | None:
        """Return the time saved: the build's duration for each use after the first. None if it has not succeeded."""
        if self.started_at is None or self.finished_at is None or self.state not in ("ready", "stale"):
            return None
        return max(0, uses - 1) * (self.finished_at - self.started_at)


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class BuildRequest:
    """A build's identity, and the submission of the run that builds it. `depends_on` accepts it like a run."""

    job: str
    scope: str
    fingerprint: str
    queue: str = field(compare=False, repr=False)
    priority: int = field(compare=False, repr=False)
    args: str = field(compare=False, repr=False)
    policy: Policy = field(compare=False, repr=False)
    tags: str = field(compare=False, repr=False)

    @property
    def key(self) -> str:
        """The key of the build's runs. Only one of them runs at a time, even if the build is stale and is rebuilt."""
        return key_of(self.job, self.scope, self.fingerprint)

    def to_json(self) -> str:
        """Return the submission of the build's run as JSON, so that it can be submitted later."""
        submission = {"queue": self.queue, "priority": self.priority, "args": self.args, "tags": self.tags}
        return json_text.compact(submission | {"policy": self.policy.to_json()})

    def row(self) -> dict[str, Any]:
        """Return the request as a row; `of` reads it."""
        identity = {"job": self.job, "scope": self.scope, "fingerprint": self.fingerprint}
        return identity | {"submission": self.to_json()}

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> BuildRequest:
        submission = json_text.load(row["submission"])
        return cls(
            job=row["job"],
            scope=row["scope"],
            fingerprint=row["fingerprint"],
            **submission | {"policy": load_policy(submission["policy"])},
        )


def key_of(job: str, scope: str, fingerprint: str) -> str:
    """Return the key that all runs of one build share."""
    return f"build:{job}/{json_text.digest(job, scope, fingerprint)}"
