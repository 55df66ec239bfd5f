"""Jobs of a server: by their names, to be submitted there."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Self

from holdfast.client import decoding
from holdfast.client.transport import Wire
from holdfast.jobs.options import Options, needs
from holdfast.runs.handle import Run
from holdfast.support.errors import InvalidPolicy
from holdfast.support.validation import as_duration
from holdfast.values.policies import Unique
from holdfast.values.runs import Snapshot

Handle = Callable[[Snapshot], Run[Any]]


@dataclass(frozen=True)
class RemoteJob:
    """A job that a server knows; `arguments` is the JSON Schema of what it takes."""

    name: str
    options: Options
    arguments: Mapping[str, Any]
    _wire: Wire = field(repr=False)
    _handle: Handle = field(repr=False)
    _given: Mapping[str, Any] = field(default_factory=dict)

    def submit(self, **kwargs: Any) -> Run[Any]:
        """Queue a run; it is durable when this returns."""
        body = {"job": self.name, "args": kwargs} | {**self._given}
        key = body.pop("idempotency_key", None)
        if key is not None and not (key.isascii() and key.isprintable()):
            raise InvalidPolicy("over HTTP an idempotency key is printable ASCII")
        said = self._wire.post("runs", body=body, headers={"Idempotency-Key": key} if key is not None else None)
        return self._handle(decoding.snapshot(said))

    def using(
        self,
        *,
        queue: str | None = None,
        priority: int | None = None,
        key: str | Callable[..., str | None] | None = None,
        delay: timedelta | float | None = None,
        due_at: datetime | None = None,
        after: Iterable[Any] | None = None,
        idempotency_key: str | None = None,
        unique: Unique | None = None,
        tags: Mapping[str, str] | None = None,
    ) -> Self:
        """The same job with other options for what is submitted through it. `key` is the key itself, or a function of
        no argument that gives it."""
        lasts = as_duration(delay)
        if due_at is not None and due_at.tzinfo is None:
            raise InvalidPolicy("due_at is a datetime with a time zone")
        given = {
            "queue": queue,
            "priority": priority,
            "key": key() if callable(key) else key,
            "delay": None if lasts is None else lasts.total_seconds(),
            "due_at": None if due_at is None else due_at.astimezone(UTC).isoformat(),
            "after": None if after is None else list(needs(after) or ()),
            "idempotency_key": idempotency_key,
            "unique": unique,
            "tags": None if tags is None else dict(tags),
        }
        said = {name: value for name, value in given.items() if value is not None}
        return replace(self, _given={**self._given, **said})


class Jobs:
    """The jobs that a server knows."""

    def __init__(self, wire: Wire, handle: Handle) -> None:
        self._wire, self._handle = wire, handle
        self._known: dict[str, RemoteJob] = {}

    def __getitem__(self, name: str) -> RemoteJob:
        """A job by its name, or UnknownJob."""
        if name not in self._known:
            self._known[name] = self._job(self._wire.get("jobs", name))
        return self._known[name]

    def get(self, name: str) -> RemoteJob | None:
        return self[name] if name in self.names() else None

    def __iter__(self) -> Iterator[str]:
        return iter(self.names())

    def names(self) -> list[str]:
        """Those that it knows now."""
        self._known = {said["name"]: self._job(said) for said in self._wire.get("jobs")["items"]}
        return sorted(self._known)

    def _job(self, said: Mapping[str, Any]) -> RemoteJob:
        options = Options(queue=said["queue"], priority=said["priority"])
        return RemoteJob(said["name"], options, said["arguments"], self._wire, self._handle)
