"""Registry: the jobs of one Holdfast, by name."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any

from holdfast.jobs.job import Job
from holdfast.support.errors import InvalidPolicy, JobExists, OnlyFromCode, UnknownJob
from holdfast.support.validation import did_you_mean
from holdfast.values.policies import Policy

OWN, OPERATIONS = "holdfast.", "operations"  # the prefix and the queue of Holdfast's own jobs
BULK = (f"{OWN}cancel_matching", f"{OWN}again_matching")  # the jobs behind `hf.bulk`


class Registry:
    """The jobs of one Holdfast."""

    def __init__(self) -> None:
        self._jobs: dict[str, Job[..., Any]] = {}
        self._own: Mapping[str, Callable[[], Job[..., Any]]] = {}

    def bring(self, own: Mapping[str, Callable[[], Job[..., Any]]]) -> None:
        """Add Holdfast's own jobs, each made at its first use. They can be found and served, but are not listed."""
        self._own = {name: cache(make) for name, make in own.items()}

    def add(self, job: Job[..., Any]) -> None:
        if job.name.startswith(OWN):
            raise InvalidPolicy(f"job names that begin with {OWN!r} are reserved; choose another name")
        if job.name in self._jobs:
            raise JobExists(f"two functions have the job name {job.name!r}; give one of them name=…")
        self._jobs[job.name] = job

    def __getitem__(self, name: str) -> Job[..., Any]:
        if (found := self.get(name)) is not None:
            return found
        hint = did_you_mean(name, self._jobs) or f"; known: {', '.join(sorted(self._jobs)) or 'none'}"
        raise UnknownJob(f"no job named {name!r} is registered here{hint}")

    def get(self, name: str) -> Job[..., Any] | None:
        return self._own[name]() if name in self._own else self._jobs.get(name)

    def refusal(self, name: str, stored: Policy | None = None) -> OnlyFromCode | None:
        """Return an error if only the application's own code may start runs of this job, otherwise None.

        The declaration of the job decides. If the job is not declared here, the policy of its run, `stored`, decides.
        """
        job = self.get(name)
        policy = stored if job is None else job.options.policy
        if policy is None or not policy.only_from_code:
            return None
        where = "" if policy.start_at is None else f"; start one at {policy.start_at}"
        return OnlyFromCode(f"only the application itself can start runs of {name}{where}", start_at=policy.start_at)

    def require_open(self, name: str, stored: Policy | None = None) -> None:
        """Raise OnlyFromCode if only the application's own code may start runs of this job."""
        if (refusal := self.refusal(name, stored)) is not None:
            raise refusal

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self._jobs))

    def names(self) -> list[str]:
        return sorted(self._jobs)

    @property
    def declared(self) -> int:
        """How many jobs are declared; the number never decreases."""
        return len(self._jobs)

    def served(self) -> list[str]:
        """Return the names of all jobs that a worker may claim, including Holdfast's own."""
        return sorted([*self._jobs, *self._own])
