"""Values: what a server says, as the values that the engine gives."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, TypeVar

import pydantic_core
from pydantic import TypeAdapter, ValidationError

from holdfast.client.transport import Wire
from holdfast.support import json_text
from holdfast.support.errors import ServerUnavailable
from holdfast.values.builds import Build
from holdfast.values.pages import Page
from holdfast.values.policies import policy_from_json
from holdfast.values.runs import Snapshot

T = TypeVar("T")

MOST = 200  # items of a page that a server gives at once


def value(kind: type[T], said: Any) -> T:
    """A value of the engine from what a server said; what this version does not know of is passed over."""
    adapter: TypeAdapter[T] = _adapter(kind)  # type: ignore[arg-type]
    try:
        return adapter.validate_python(said)
    except ValidationError as error:
        raise ServerUnavailable(f"the server says what is no {kind.__name__}: {error.errors()[0]['msg']}") from error


def page(kind: type[T], said: Any) -> Page[T]:
    return value(Page[kind], said)  # type: ignore[valid-type]


def pages(read: Callable[[str | None, int], Page[T]], *, limit: int, first: str | None) -> list[T]:
    """Up to `limit` items of the pages that `read(after, limit)` gives, going on by their `next`."""
    found: list[T] = []
    last = first
    while True:
        # What can't be a limit is sent as it is, for the server to refuse.
        page = read(last, min(limit - len(found), MOST))
        found += page.items
        last = page.next
        if last is None or len(found) >= limit:
            return found


def items(kind: type[T], said: Any) -> list[T]:
    """All of a list that has one page."""
    return list(page(kind, said).items)


def snapshot(said: Mapping[str, Any]) -> Snapshot:
    """A run; its result as JSON text, which only a run that succeeded has."""
    result = as_json(said["result"]) if said["state"] == "succeeded" else None
    return value(Snapshot, {**said, "result": result, "policy": policy_from_json(json_text.compact(said["policy"]))})


def listed(wire: Wire, said: Mapping[str, Any]) -> Snapshot:
    """A run of a list; one whose values were too long for it is read by itself."""
    return snapshot(wire.get("runs", said["id"]) if said["cut"] else said)


def build(said: Mapping[str, Any]) -> Build:
    made = said["finished_at"] is not None and said["failure_type"] is None
    return value(Build, {**said, "result": as_json(said["result"]) if made else None})


def as_json(result: Any) -> str:
    return str(pydantic_core.to_json(result), "utf-8")


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)
