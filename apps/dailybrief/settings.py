"""Settings: what can be set, from `DAILYBRIEF_*` variables, checked at start.

Where the database is, the engine's own `HOLDFAST_URL` says.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import Field, field_validator

from apps.dailybrief.cron_trigger import WallClock
from apps.shared.settings import AppSettings, Names, Seconds

Period = Annotated[Seconds, Field(gt=timedelta(0))]
One = Annotated[int, Field(ge=1, le=1)]

GRACE = timedelta(seconds=300)
INSTANCES = "How many of its runs may be under way at once: only 1, because no two runs of a job overlap."
COALESCE = "Of several slots that are due at once only the latest runs."
MISFIRE = "How late a slot may be claimed, and how long after its claim its run may begin."
SAME = "The same for this job."


class Settings(AppSettings):
    """Every knob with its default. Durations are seconds in the environment."""

    prefix = "DAILYBRIEF_"

    timezone: str = Field(default="UTC", description="Whose clock the schedules and the day of a brief follow.")

    ingestion_at: str = Field(default="*/10 * * * *", description="When feeds are read: cron, by `timezone`.")
    ingestion_expected: Period = Field(
        default=timedelta(minutes=5),
        description="The longest that a reading should take; it is stopped after twice that.",
    )
    ingestion_max_instances: One = Field(default=1, description=INSTANCES)
    ingestion_coalesce: bool = Field(default=True, description=COALESCE)
    ingestion_misfire_grace_time: Period = Field(default=GRACE, description=MISFIRE)

    clustering_at: str = Field(default="5-59/10 * * * *", description="When articles are grouped.")
    clustering_expected: Period = Field(default=timedelta(minutes=5), description="The same for grouping.")
    clustering_max_instances: One = Field(default=1, description=SAME)
    clustering_coalesce: bool = Field(default=True, description=SAME)
    clustering_misfire_grace_time: Period = Field(default=GRACE, description=SAME)

    retention_at: str = Field(default="30 3 * * *", description="When old articles are deleted.")
    retention_expected: Period = Field(default=timedelta(minutes=10), description="The same for deleting.")
    retention_max_instances: One = Field(default=1, description=SAME)
    retention_coalesce: bool = Field(default=True, description=SAME)
    retention_misfire_grace_time: Period = Field(default=GRACE, description=SAME)

    publishing_at: str = Field(
        default="55 23 * * *", description="When the brief of the day is published; the day's last job."
    )
    publishing_expected: Period = Field(default=timedelta(minutes=2), description="The same for publishing.")
    publishing_max_instances: One = Field(default=1, description=SAME)
    publishing_coalesce: bool = Field(default=True, description=SAME)
    publishing_misfire_grace_time: Period = Field(default=GRACE, description=SAME)

    unknown_instances: Literal["fail", "leave"] = Field(
        default="fail",
        description="Whether a worker that starts also fails what was left running by one that no one knows.",
    )

    bind: str = Field(default="127.0.0.1:8710", description="Where Gunicorn listens.")
    allowed_hosts: Names = Field(
        default=(), description="Names that the site goes by besides those of this machine's loopback."
    )

    allow_private_addresses: bool = Field(
        default=False,
        description="Fetch from loopback, link-local and private addresses too. For trying out; never in production.",
    )
    user_agent: str = Field(default="dailybrief/1.0", min_length=1, description="How it introduces itself to feeds.")
    fetch_timeout: Period = Field(default=timedelta(seconds=20), description="How long one feed may take, all in all.")
    fetch_concurrency: int = Field(default=16, ge=1, le=200, description="Feeds that are fetched at once.")
    host_pause: Period = Field(
        default=timedelta(seconds=1), description="The least time between two requests to one host."
    )
    max_feed_bytes: int = Field(default=5_000_000, ge=1000, description="The largest feed, after decompression.")
    max_redirects: int = Field(default=5, ge=0, le=20, description="How many redirects are followed.")
    max_articles_per_feed: int = Field(default=200, ge=1, description="How many articles one fetch takes, the newest.")

    embedding: Literal["wordllama", "text"] = Field(
        default="wordllama", description="How articles are compared: by the model, or by their words alone."
    )
    cluster_window: Period = Field(
        default=timedelta(hours=72), description="How far apart articles of one event may be published."
    )

    retain_articles: Period = Field(
        default=timedelta(days=30), description="How long articles are kept that no published brief refers to."
    )
    brief_events: int = Field(default=20, ge=1, le=200, description="How many events a brief has at most.")

    @field_validator("timezone")
    @classmethod
    def _zone_exists(cls, value: str) -> str:
        try:
            ZoneInfo(value)
        except (ZoneInfoNotFoundError, ValueError, OSError):
            raise ValueError(f"there is no time zone {value!r}") from None
        return value

    @field_validator("ingestion_at", "clustering_at", "retention_at", "publishing_at")
    @classmethod
    def _times_make_sense(cls, value: str) -> str:
        WallClock(value, ZoneInfo("UTC"))
        return value

    @property
    def zone(self) -> ZoneInfo:
        return ZoneInfo(self.timezone)
