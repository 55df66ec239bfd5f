"""Formats: how large a video is, how many pictures a second it has, and who speaks how fast."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

RATE = 22_050
"""Samples a second of every sound track. Each frame rate divides it, so sound and pictures end together."""


class Format(BaseModel):
    """What is asked of a video beside its script."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    width: int = Field(default=640, ge=160, le=1920, multiple_of=2)
    height: int = Field(default=360, ge=90, le=1080, multiple_of=2)
    fps: Literal[5, 10, 15, 25, 30] = 15
    voice: str = Field(default="en-us", pattern=r"^[a-z]{2,3}(-[a-z0-9]{1,12}){0,3}$")
    pace: int = Field(default=165, ge=80, le=400, description="Words a minute.")

    @model_validator(mode="after")
    def _wide(self) -> Format:
        if not 1.2 <= self.width / self.height <= 2.5:
            raise ValueError("a picture is 1.2 to 2.5 times as wide as it is high")
        return self

    @property
    def samples_a_frame(self) -> int:
        return RATE // self.fps

    def frames(self, samples: int) -> int:
        """How many pictures it takes to cover so many samples."""
        return max(1, -(-samples // self.samples_a_frame))
