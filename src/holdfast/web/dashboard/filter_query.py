"""What a page about runs is asked for: a filter as it stands in an address, to be shared and to go on from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from urllib.parse import urlencode

from starlette.datastructures import QueryParams

from holdfast.support.errors import InvalidArguments
from holdfast.values.filters import RunFilter

FIELDS = ("state", "job", "queue", "key", "tag", "parent", "since", "until", "error", "arg")
TRAIL = 20  # pages that "newer" leads back over
_BETWEEN = "~"


@dataclass(frozen=True, kw_only=True)
class Asked:
    """The words of an address, as they were written; `trail` are the cursors of the pages before this one."""

    words: Mapping[str, str] = field(default_factory=dict)
    parts: bool = False
    after: str | None = None
    trail: tuple[str, ...] = ()

    @property
    def filter(self) -> RunFilter:
        """What they mean, or InvalidArguments."""
        words = self.words
        return RunFilter(
            **{name: words.get(name) for name in ("state", "job", "queue", "key", "parent", "error")},
            parts=self.parts or "parent" in words or "job" in words,
            tag=_pair(words["tag"], "tag") if "tag" in words else None,
            since=_instant(words.get("since"), "since"),
            until=_instant(words.get("until"), "until"),
            args=dict(_pair(one, "argument") for one in words.get("arg", "").split(",") if one.strip()),
        )

    @property
    def narrowed(self) -> bool:
        """Whether anything but the state is asked for."""
        return any(name != "state" for name in self.words)

    def query(self, **changed: str | None) -> str:
        """The same address with other words, on its first page."""
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


def asked(query: QueryParams) -> Asked:
    """What an address asks for; what it does not know is left out."""
    words = {name: text for name in FIELDS if (text := query.get(name, "").strip())}
    trail = (
        tuple(query["trail"].split(_BETWEEN))[-TRAIL:] if query.get("trail") is not None and query.get("after") else ()
    )
    return Asked(words=words, parts=query.get("parts") == "1", after=query.get("after") or None, trail=trail)


def _pair(text: str, what: str) -> tuple[str, str]:
    name, equals, value = text.strip().partition("=")
    if not (name and equals):
        raise InvalidArguments(f"{what}: write NAME=VALUE, not {text!r}")
    return name.strip(), value.strip()


def _instant(text: str | None, what: str) -> datetime | None:
    """A time without a zone is UTC."""
    if text is None:
        return None
    try:
        at = datetime.fromisoformat(text)
        return at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
    except (ValueError, OverflowError):
        raise InvalidArguments(f"{what} is a time like 2026-06-01T12:00, not {text!r}") from None
