"""The filter of the runs page, as it is encoded in the query of its URL."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from urllib.parse import urlencode

from starlette.datastructures import QueryParams

from holdfast.support.errors import InvalidArguments
from holdfast.values.filters import RunFilter

FIELDS = ("state", "job", "queue", "key", "tag", "parent", "since", "until", "error", "arg")
TRAIL = 20  # how many pages the link "Newer" can go back
_BETWEEN = "~"


@dataclass(frozen=True, kw_only=True)
class FilterQuery:
    """The parameters of a query, as written; `trail` holds the cursors of the previous pages."""

    words: Mapping[str, str] = field(default_factory=dict)
    parts: bool = False
    after: str | None = None
    trail: tuple[str, ...] = ()

    @property
    def filter(self) -> RunFilter:
        """The filter that the parameters describe; raises InvalidArguments if they are malformed."""
        words = self.words
        return RunFilter(
            **{name: words.get(name) for name in ("state", "job", "queue", "key", "parent", "error")},
            parts=self.parts or "parent" in words or "job" in words,
            tag=_pair(words["tag"], "tag") if "tag" in words else None,
            since=instant(words["since"], "since") if "since" in words else None,
            until=instant(words["until"], "until") if "until" in words else None,
            args=dict(_pair(one, "argument") for one in words.get("arg", "").split(",") if one.strip()),
        )

    @property
    def narrowed(self) -> bool:
        """Whether the query filters by anything but the state."""
        return any(name != "state" for name in self.words)

    def query(self, **changed: str | None) -> str:
        """Return the query string for the first page, with some parameters changed."""
        words = {name: value for name, value in {**self.words, **changed}.items() if value}
        return urlencode(words | ({"parts": "1"} if self.parts else {}))

    def older(self, next: str) -> str:
        return urlencode(
            [*self._words, ("after", next), ("trail", _BETWEEN.join([*self.trail, self.after or ""][-TRAIL:]))]
        )

    @property
    def newer(self) -> str:
        *before, last = self.trail or ("",)
        cursors = [("after", last)] if last else []
        return urlencode([*self._words, *cursors, *([("trail", _BETWEEN.join(before))] if before else [])])

    @property
    def _words(self) -> list[tuple[str, str]]:
        return [*self.words.items(), *([("parts", "1")] if self.parts else [])]


def parse(query: QueryParams) -> FilterQuery:
    """Read the filter from a query; unknown parameters are ignored."""
    words = {name: text for name in FIELDS if (text := query.get(name, "").strip())}
    trail = (
        tuple(query["trail"].split(_BETWEEN))[-TRAIL:] if query.get("trail") is not None and query.get("after") else ()
    )
    return FilterQuery(words=words, parts=query.get("parts") == "1", after=query.get("after") or None, trail=trail)


def _pair(text: str, what: str) -> tuple[str, str]:
    name, equals, value = text.strip().partition("=")
    if not (name and equals):
        raise InvalidArguments(f"{what}: write NAME=VALUE, not {text!r}")
    return name.strip(), value.strip()


def instant(text: str, what: str) -> datetime:
    """Parse a time from a form field; without a time zone it is UTC."""
    try:
        at = datetime.fromisoformat(text.strip())
        return at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
    except (ValueError, OverflowError):
        raise InvalidArguments(f"{what} must be a time in UTC such as 2026-06-01T12:00, not {text!r}") from None
