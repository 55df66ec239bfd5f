"""Scenes: the narration and the contents of one segment of a video."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Scene:
    """One segment of the video: its narration, and what is shown meanwhile."""

    title: str
    narration: str
    points: tuple[str, ...] = ()
    picture: str | None = None
    code: str | None = None
    opening: bool = False
    """True for the title card."""

    def as_json(self) -> dict[str, Any]:
        return asdict(self) | {"points": list(self.points)}

    @staticmethod
    def from_json(data: dict[str, Any]) -> Scene:
        return Scene(**{**data, "points": tuple(data["points"])})
