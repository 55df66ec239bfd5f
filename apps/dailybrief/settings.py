"""Settings from the environment variables `DAILYBRIEF_*`, checked at start.

The engine's own variable `HOLDFAST_URL` names the database.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import Field, field_validator

from apps.dailybrief.cron_trigger import WallClockTrigger
from apps.shared.settings import AppSettings, Names, Seconds

Period = Annotated[Seconds, Field(gt=timedelta(0))]
One = Annotated[int, Field(ge=1, le=1)]

GRACE = timedelta(seconds=300)
INSTANCES = "How many runs of the job may be active at once. Only 1 is allowed: runs of a job never overlap."
COALESCE = "If several slots are due at once, run only the latest."
MISFIRE = "How late a slot may be claimed, and how long after the claim its run may start."
SAME = "Same as for ingestion."


class Settings(AppSettings):
    """All settings with their defaults. Durations are seconds in the environment."""

    prefix = "DAILYBRIEF_"

    timezone: str = Field(default="UTC", description="The time zone of the schedules and of the day of a brief.")

    ingestion_at: str = Field(
        default="*/10 * * * *", description="When feeds are read: a cron expression in `timezone`."
    )
    ingestion_expected: Period = Field(
        default=timedelta(minutes=5),
        description="How long reading all feeds should take; the job is stopped after twice that time.",
    )
    ingestion_max_instances: One = Field(default=1, description=INSTANCES)
    ingestion_coalesce: bool = Field(default=True, description=COALESCE)
    ingestion_misfire_grace_time: Period = Field(default=GRACE, description=MISFIRE)

    clustering_at: str = Field(default="5-59/10 * * * *", description="When articles are grouped into events.")
    clustering_expected: Period = Field(default=timedelta(minutes=5), description="How long grouping should take.")
    clustering_max_instances: One = Field(default=1, description=SAME)
    clustering_coalesce: bool = Field(default=True, description=SAME)
    clustering_misfire_grace_time: Period = Field(default=GRACE, description=SAME)

    retention_at: str = Field(default="30 3 * * *", description="When old articles are deleted.")
    retention_expected: Period = Field(default=timedelta(minutes=10), description="How long deleting should take.")
    retention_max_instances: One = Field(default=1, description=SAME)
    retention_coalesce: bool = Field(default=True, description=SAME)
    retention_misfire_grace_time: Period = Field(default=GRACE, description=SAME)

    publishing_at: str = Field(
        default="55 23 * * *",
        description="When the brief of the day is published; schedule it as the last job of a day.",
    )
    publishing_expected: Period = Field(default=timedelta(minutes=2), description="How long publishing should take.")
    publishing_max_instances: One = Field(default=1, description=SAME)
    publishing_coalesce: bool = Field(default=True, description=SAME)
    publishing_misfire_grace_time: Period = Field(default=GRACE, description=SAME)

    unknown_instances: Literal["fail", "leave"] = Field(
        default="fail",
        description="What a starting worker does with runs that an unregistered worker left: `fail` or `leave` them.",
    )

    bind: str = Field(default="127.0.0.1:8710", description="The address on which Gunicorn listens.")
    allowed_hosts: Names = Field(
        default=(), description="Host names of the site, in addition to `localhost` and loopback addresses."
    )

    allow_private_addresses: bool = Field(
        default=False,
        description="Also fetch from loopback, link-local and private addresses. Only for demos, never in production.",
    )
    user_agent: str = Field(default="dailybrief/1.0", min_length=1, description="The user agent of requests for feeds.")
    fetch_timeout: Period = Field(default=timedelta(seconds=20), description="How long fetching one feed may take.")
    fetch_concurrency: int = Field(default=16, ge=1, le=200, description="How many feeds are fetched at once.")
    host_pause: Period = Field(
        default=timedelta(seconds=1), description="The minimum time between two requests to one host."
    )
    max_feed_bytes: int = Field(
        default=5_000_000, ge=1000, description="The maximum size of a feed after decompression."
    )
    max_redirects: int = Field(default=5, ge=0, le=20, description="How many redirects are followed.")
    max_articles_per_feed: int = Field(
        default=200, ge=1, description="How many articles of a feed are stored per fetch, the newest first."
    )

    embedding: Literal["wordllama", "text"] = Field(
        default="wordllama",
        description="How articles are compared: with the model `wordllama`, or by their words alone (`text`).",
    )
    cluster_window: Period = Field(
        default=timedelta(hours=72), description="The maximum time between the articles of one event."
    )

    retain_articles: Period = Field(
        default=timedelta(days=30), description="How long articles that are in no edition are kept."
    )
    brief_events: int = Field(default=20, ge=1, le=200, description="The maximum number of events in a brief.")

    @field_validator("timezone")
    @classmethod
    def _zone_exists(cls, value: str) -> str:
        try:
            ZoneInfo(value)
        except (ZoneInfoNotFoundError, ValueError, OSError):
            raise ValueError(f"no time zone is named {value!r}; use a name such as Europe/Berlin") from None
        return value

    @field_validator("ingestion_at", "clustering_at", "retention_at", "publishing_at")
    @classmethod
    def _is_cron_expression(cls, value: str) -> str:
        WallClockTrigger(value, ZoneInfo("UTC"))
        return value

    @property
    def zone(self) -> ZoneInfo:
        return ZoneInfo(self.timezone)
