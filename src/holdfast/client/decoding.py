"""Decoding: turns the JSON of a server's answer into the values that `Holdfast` returns."""

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

MOST = 200  # the most items that a server returns in one page


def value(kind: type[T], data: Any) -> T:
    """Decode a value of this kind. Fields that this version does not know are ignored."""
    adapter: TypeAdapter[T] = _adapter(kind)  # type: ignore[arg-type]
    try:
        return adapter.validate_python(data)
    except ValidationError as error:
        fault = error.errors()[0]["msg"]
        raise ServerUnavailable(f"the server's answer is not a valid {kind.__name__}: {fault}") from error


def page(kind: type[T], data: Any) -> Page[T]:
    return value(Page[kind], data)  # type: ignore[valid-type]


def pages(read: Callable[[str | None, int], Page[T]], *, limit: int, first: str | None) -> list[T]:
    """Return up to `limit` items. Call `read(after, limit)` for one page after another until there are enough."""
    items: list[T] = []
    last = first
    while True:
        # An invalid limit is sent as it is; the server refuses it.
        page = read(last, min(limit - len(items), MOST))
        items += page.items
        last = page.next
        if last is None or len(items) >= limit:
            return items


def items(kind: type[T], data: Any) -> list[T]:
    """Decode a list that has a single page."""
    return list(page(kind, data).items)


def snapshot(data: Mapping[str, Any]) -> Snapshot:
    """Decode a run. Its result becomes JSON text; only a run that succeeded has one."""
    result = as_json(data["result"]) if data["state"] == "succeeded" else None
    return value(Snapshot, {**data, "result": result, "policy": policy_from_json(json_text.compact(data["policy"]))})


def listed(wire: Wire, data: Mapping[str, Any]) -> Snapshot:
    """Decode a run of a list. If the list shortened its values, read the run itself."""
    return snapshot(wire.get("runs", data["id"]) if data["cut"] else data)


def build(data: Mapping[str, Any]) -> Build:
    succeeded = data["finished_at"] is not None and data["failure_type"] is None
    return value(Build, {**data, "result": as_json(data["result"]) if succeeded else None})


def as_json(result: Any) -> str:
    return str(pydantic_core.to_json(result), "utf-8")


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)
