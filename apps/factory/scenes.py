"""Scenes: what a segment of a video says and shows, as stages hand it to each other."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Scene:
    """One segment of the video: what is said, and what is shown meanwhile."""

    title: str
    narration: str
    points: tuple[str, ...] = ()
    picture: str | None = None
    code: str | None = None
    opening: bool = False
    """Whether it is the title card."""

    def as_json(self) -> dict[str, Any]:
        return asdict(self) | {"points": list(self.points)}

    @staticmethod
    def from_json(found: dict[str, Any]) -> Scene:
        return Scene(**{**found, "points": tuple(found["points"])})
