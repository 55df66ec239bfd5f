"""Remote jobs: the jobs of a server, by name, and how to submit them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Self

from holdfast.client import decoding
from holdfast.client.transport import Wire
from holdfast.jobs.options import Options, checked_dependencies
from holdfast.runs.handle import Run
from holdfast.support.errors import InvalidPolicy
from holdfast.support.validation import as_duration
from holdfast.values.policies import Unique
from holdfast.values.runs import Snapshot

Handle = Callable[[Snapshot], Run[Any]]


@dataclass(frozen=True)
class RemoteJob:
    """A job of a server; `arguments` is the JSON Schema of its arguments."""

    name: str
    options: Options
    arguments: Mapping[str, Any]
    _wire: Wire = field(repr=False)
    _handle: Handle = field(repr=False)
    _given: Mapping[str, Any] = field(default_factory=dict)

    def submit(self, **kwargs: Any) -> Run[Any]:
        """Submit a run. It is durable when this returns."""
        body = {"job": self.name, "args": kwargs} | {**self._given}
        key = body.pop("idempotency_key", None)
        if key is not None and not (key.isascii() and key.isprintable()):
            raise InvalidPolicy("over HTTP an idempotency key must be printable ASCII, because it is sent as a header")
        answer = self._wire.post("runs", body=body, headers={"Idempotency-Key": key} if key is not None else None)
        return self._handle(decoding.snapshot(answer))

    def using(
        self,
        *,
        queue: str | None = None,
        priority: int | None = None,
        key: str | Callable[..., str | None] | None = None,
        delay: timedelta | float | None = None,
        due_at: datetime | None = None,
        depends_on: Iterable[Any] | None = None,
        idempotency_key: str | None = None,
        unique: Unique | None = None,
        tags: Mapping[str, str] | None = None,
    ) -> Self:
        """Return the same job with other options for its submissions.

        `key` is the key itself, or a function without arguments that returns it.
        """
        duration = as_duration(delay)
        if due_at is not None and due_at.tzinfo is None:
            raise InvalidPolicy("due_at must be a datetime with a time zone")
        given = {
            "queue": queue,
            "priority": priority,
            "key": key() if callable(key) else key,
            "delay": None if duration is None else duration.total_seconds(),
            "due_at": None if due_at is None else due_at.astimezone(UTC).isoformat(),
            "depends_on": None if depends_on is None else list(checked_dependencies(depends_on) or ()),
            "idempotency_key": idempotency_key,
            "unique": unique,
            "tags": None if tags is None else dict(tags),
        }
        options = {name: value for name, value in given.items() if value is not None}
        return replace(self, _given={**self._given, **options})


class Jobs:
    """The jobs of a server."""

    def __init__(self, wire: Wire, handle: Handle) -> None:
        self._wire, self._handle = wire, handle
        self._known: dict[str, RemoteJob] = {}

    def __getitem__(self, name: str) -> RemoteJob:
        """Return a job by its name, or raise UnknownJob."""
        if name not in self._known:
            self._known[name] = self._job(self._wire.get("jobs", name))
        return self._known[name]

    def get(self, name: str) -> RemoteJob | None:
        return self[name] if name in self.names() else None

    def __iter__(self) -> Iterator[str]:
        return iter(self.names())

    def names(self) -> list[str]:
        """Return the names of the jobs that the server has now."""
        self._known = {data["name"]: self._job(data) for data in self._wire.get("jobs")["items"]}
        return sorted(self._known)

    def _job(self, data: Mapping[str, Any]) -> RemoteJob:
        options = Options(queue=data["queue"], priority=data["priority"])
        return RemoteJob(data["name"], options, data["arguments"], self._wire, self._handle)
