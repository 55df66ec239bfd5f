"""Formats: size, frame rate, voice and speaking pace of a video."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

RATE = 22_050
"""Samples per second of every sound track. It is a multiple of each frame rate, so sound and pictures end together."""


class Format(BaseModel):
    """The format of a video."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    width: int = Field(default=640, ge=160, le=1920, multiple_of=2)
    height: int = Field(default=360, ge=90, le=1080, multiple_of=2)
    fps: Literal[5, 10, 15, 25, 30] = 15
    voice: str = Field(default="en-us", pattern=r"^[a-z]{2,3}(-[a-z0-9]{1,12}){0,3}$")
    pace: int = Field(default=165, ge=80, le=400, description="Words per minute.")

    @model_validator(mode="after")
    def _check_ratio(self) -> Format:
        if not 1.2 <= self.width / self.height <= 2.5:
            raise ValueError("the width must be 1.2 to 2.5 times the height")
        return self

    @property
    def samples_per_frame(self) -> int:
        return RATE // self.fps

    def frames(self, samples: int) -> int:
        """Return how many frames are as long as this number of samples, rounded up."""
        return max(1, -(-samples // self.samples_per_frame))
