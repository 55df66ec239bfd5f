"""Filters: a selection of runs as a value that can be stored and shared."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from typing import Any, Literal, Self, get_args

from holdfast.support import json_text
from holdfast.support.errors import InvalidArguments
from holdfast.values.fields import described
from holdfast.values.runs import Snapshot, State

Order = Literal["newest", "submitted"]
"""newest: the run that ended last comes first if the filter has a final state and no parent, otherwise the run that was
submitted last. submitted: the run that was submitted last always comes first."""


@described
@dataclass(frozen=True, slots=True)
class Count:
    """How many runs there are. With `more` there may be more, because not all were examined."""

    number: int
    more: bool


ENDED: tuple[str, ...] = get_args(State)


OPEN = ("queued", "running")


STATES = (*OPEN, *ENDED)


MAX_TEXT, MAX_PATHS, MAX_PARTS = 1000, 10, 10


Scalar = str | int | float | bool | None


_PART = re.compile(r"[A-Za-z0-9_-]{1,100}")


@dataclass(frozen=True, kw_only=True)
class RunFilter:
    """Matches runs that satisfy every given field.

    parent  the id of a pipeline, to match its stages and segments, or of a run, to match its children
    parts   False leaves out the stages and segments of pipelines
    since   submitted at this time or later
    until   submitted before this time
    error   a text that the error contains; case does not matter
    args    argument → value. A path with dots selects a value inside an argument, and a number an item of a list:
            {"options.size": 64}. Values are compared as text: "64" matches 64, and "null" also matches a missing value
    """

    state: str | None = None
    job: str | None = None
    queue: str | None = None
    key: str | None = None
    tag: tuple[str, str] | None = None
    parent: str | None = None
    parts: bool = True
    since: datetime | None = None
    until: datetime | None = None
    error: str | None = None
    args: Mapping[str, Scalar] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.state is not None and self.state not in STATES:
            raise InvalidArguments(f"there is no state {self.state!r}; the states are {', '.join(STATES)}")
        for name in ("job", "queue", "key", "parent", "error"):
            _check_text(getattr(self, name), name)
        if not isinstance(self.parts, bool):
            raise InvalidArguments(f"parts must be True or False, not {self.parts!r}")
        if self.tag is not None:
            self._check_tag()
        for name in ("since", "until"):
            _check_instant(getattr(self, name), name)
        self._check_args()

    def _check_tag(self) -> None:
        if not isinstance(self.tag, tuple | list) or len(self.tag) != 2:
            raise InvalidArguments(f"tag must be a name and a value, not {self.tag!r}")
        for part in self.tag:
            if part is None:
                raise InvalidArguments("tag must be a name and a value, both text")
            _check_text(part, "tag")
        object.__setattr__(self, "tag", (self.tag[0], self.tag[1]))

    def _check_args(self) -> None:
        if not isinstance(self.args, Mapping) or len(self.args) > MAX_PATHS:
            raise InvalidArguments(f"args must map at most {MAX_PATHS} arguments to their values")
        for path, value in self.args.items():
            parts = path.split(".") if isinstance(path, str) else []
            if not 0 < len(parts) <= MAX_PARTS or not all(_PART.fullmatch(part) for part in parts):
                raise InvalidArguments(
                    f"args: {path!r} is not a path; use letters, digits, - and _, with dots between the parts"
                )
            if not isinstance(value, str | int | float | bool | None):
                raise InvalidArguments(f"args: the value of {path} must be text, a number, true, false or null")
            _check_text(_text(value), f"args: {path}")

    @property
    def plain(self) -> bool:
        """Whether the filter gives at most one of state, job and parent, and nothing else."""
        others = (self.queue, self.key, self.tag, self.since, self.until, self.error)
        if any(each is not None for each in others) or self.args or not self.parts:
            return False
        return sum(each is not None for each in (self.state, self.job, self.parent)) <= 1

    @property
    def without_state(self) -> Self:
        """The same filter for any state."""
        return replace(self, state=None)

    def in_state(self, state: str | None) -> Self:
        """Return the same filter for another state."""
        return replace(self, state=state)

    def fits(self, run: Snapshot) -> bool:
        """Whether a run, which may have changed since it was found, is in the filter's state."""
        return self.state is None or run.state == self.state

    @property
    def tag_pattern(self) -> str | None:
        """The pattern that finds the tag in the JSON text of all tags."""
        return None if self.tag is None else like(self.tag)

    @property
    def paths(self) -> Iterator[tuple[str, list[str], str]]:
        """Yield each compared argument: its JSON path, the parts of the path, and the value as text."""
        for path, value in self.args.items():
            parts = path.split(".")
            steps = (f"[{part}]" if part.isdigit() else f'."{part}"' for part in parts)
            yield f"${''.join(steps)}", parts, _text(value)

    def to_json(self) -> dict[str, Any]:
        """Return the given fields as JSON values."""
        given = {each.name: getattr(self, each.name) for each in fields(self)}
        given = {name: value for name, value in given.items() if value is not None and value != {}}
        if self.parts:
            del given["parts"]
        return {name: _json(value) for name, value in given.items()}

    @classmethod
    def from_json(cls, given: Mapping[str, Any]) -> Self:
        """Return the filter that `to_json` wrote."""
        if unknown := set(given) - {each.name for each in fields(cls)}:
            raise InvalidArguments(f"a filter has no field {', '.join(sorted(unknown))}")
        values = dict(given)
        for name in ("since", "until"):
            if isinstance(text := values.get(name), str):
                try:
                    values[name] = datetime.fromisoformat(text)
                except ValueError:
                    raise InvalidArguments(
                        f"{name} must be a time like 2026-06-01T12:00:00+00:00, not {text!r}"
                    ) from None
        return cls(**values)


def like(tag: tuple[str, str]) -> str:
    """Return the SQL `like` pattern that finds a tag in the JSON text of all tags."""
    text = json_text.compact(dict([tag]))[1:-1]
    for special in "~%_[":
        text = text.replace(special, f"~{special}")
    return f"%{text}%"


def _check_text(value: object, name: str) -> None:
    if value is not None and not (isinstance(value, str) and len(value) <= MAX_TEXT and json_text.storable(value)):
        raise InvalidArguments(f"{name} must be text of at most {MAX_TEXT} characters, without NUL and lone surrogates")


def _check_instant(value: object, name: str) -> None:
    if value is not None and not (isinstance(value, datetime) and value.tzinfo is not None):
        raise InvalidArguments(f"{name} must be a datetime with a time zone, not {value!r}")


def _text(value: Scalar) -> str:
    return value if isinstance(value, str) else json_text.compact(value)


def _json(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
    return dict(value) if isinstance(value, Mapping) else list(value) if isinstance(value, tuple) else value
