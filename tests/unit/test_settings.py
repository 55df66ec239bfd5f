"""Settings: defaults, the environment, durations and errors."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from holdfast.support import settings
from holdfast.support.errors import (
    InvalidSetting,
)


def test_the_default_settings_need_no_environment() -> None:
    loaded = settings.load({}, environ={})
    assert loaded.lease == timedelta(seconds=15)
    assert loaded.poll_interval == timedelta(seconds=1)
    assert loaded.renew_every == timedelta(seconds=5)
    assert (loaded.table_prefix, loaded.synchronous, loaded.sqlite_module) == ("holdfast_", "full", "sqlite3")


def test_arguments_win_over_the_environment_and_none_means_not_given() -> None:
    environ = {"HOLDFAST_LEASE": "30", "HOLDFAST_POLL_INTERVAL": "2", "HOLDFAST_SINGLE_PROCESS": "true", "OTHER": "x"}
    loaded = settings.load({"lease": 60, "poll_interval": None}, environ=environ)
    assert (loaded.lease, loaded.poll_interval, loaded.single_process) == (
        timedelta(seconds=60),
        timedelta(seconds=2),
        True,
    )


@pytest.mark.parametrize("value", [20, 20.0, timedelta(seconds=20), "20", "20.0", "PT20S"])
def test_a_duration_is_seconds_or_a_timedelta(value: Any) -> None:
    assert settings.load({"lease": value}, environ={}).lease == timedelta(seconds=20)


def test_all_invalid_settings_are_reported_at_once() -> None:
    with pytest.raises(InvalidSetting) as caught:
        settings.load({"concurrency": 0, "prefix": "!", "nonsense": 1}, environ={})
    assert all(name in str(caught.value) for name in ("concurrency", "prefix", "nonsense"))
