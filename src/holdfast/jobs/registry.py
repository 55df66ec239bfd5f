"""Registry: the jobs of one Holdfast, by name."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any

from holdfast.jobs.job import Job
from holdfast.support.errors import InvalidPolicy, JobExists, OnlyFromCode, UnknownJob
from holdfast.support.validation import did_you_mean
from holdfast.values.policies import Policy

OWN, OPERATIONS = "holdfast.", "operations"  # what our own jobs' names begin with, and the queue that they go to


class Registry:
    """The jobs that one Holdfast knows."""

    def __init__(self) -> None:
        self._jobs: dict[str, Job[..., Any]] = {}
        self._own: Mapping[str, Callable[[], Job[..., Any]]] = {}

    def bring(self, own: Mapping[str, Callable[[], Job[..., Any]]]) -> None:
        """Know our own jobs too: they are found and served, but not listed; each is made when first asked for."""
        self._own = {name: cache(make) for name, make in own.items()}

    def add(self, job: Job[..., Any]) -> None:
        if job.name.startswith(OWN):
            raise InvalidPolicy(f"names that begin with {OWN!r} are our own; call the job something else")
        if job.name in self._jobs:
            raise JobExists(f"two functions claim the job name {job.name!r}; give one of them name=…")
        self._jobs[job.name] = job

    def __getitem__(self, name: str) -> Job[..., Any]:
        if (found := self.get(name)) is not None:
            return found
        likely = did_you_mean(name, self._jobs) or f"; known: {', '.join(sorted(self._jobs)) or 'none'}"
        raise UnknownJob(f"no job named {name!r} is registered here{likely}")

    def get(self, name: str) -> Job[..., Any] | None:
        return self._own[name]() if name in self._own else self._jobs.get(name)

    def refusal(self, name: str, stored: Policy | None = None) -> OnlyFromCode | None:
        """Why no one but the application's own code may start runs of this job; None if anyone may.

        What is declared here decides. A job that is not declared here is judged by `stored`, the policy of its run.
        """
        job = self.get(name)
        policy = stored if job is None else job.options.policy
        if policy is None or not policy.only_from_code:
            return None
        where = "" if policy.start_at is None else f"; start one at {policy.start_at}"
        return OnlyFromCode(f"only the application itself starts runs of {name}{where}", start_at=policy.start_at)

    def require_open(self, name: str, stored: Policy | None = None) -> None:
        """Raise OnlyFromCode unless anyone may start runs of this job."""
        if (refusal := self.refusal(name, stored)) is not None:
            raise refusal

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self._jobs))

    def names(self) -> list[str]:
        return sorted(self._jobs)

    @property
    def declared(self) -> int:
        """How many jobs were declared; a job is never taken back."""
        return len(self._jobs)

    def served(self) -> list[str]:
        """All that a worker may claim: these, and our own."""
        return sorted([*self._jobs, *self._own])
