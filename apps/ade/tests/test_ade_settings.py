"""Settings of ade: names, defaults, and a clear message for each invalid value."""

from __future__ import annotations

import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest
from apps.ade import settings
from apps.shared.tests.serving import ROOT

from holdfast import InvalidSetting


@pytest.mark.contract("Q8", "Q9")
def test_settings_have_defaults() -> None:
    loaded = settings.Settings.load({})
    assert (loaded.max_concurrency, loaded.queue_size) == (2, None)
    assert (loaded.build_timeout, loaded.run_timeout_seconds) == (timedelta(minutes=10), timedelta(minutes=5))


def test_settings_are_read_from_variables() -> None:
    loaded = settings.Settings.load(
        {
            "ADE_MAX_CONCURRENCY": "5",
            "ADE_QUEUE_SIZE": "7",
            "ADE_BUILD_TIMEOUT": "1.5",
            "ADE_RUN_TIMEOUT_SECONDS": "30",
            "APP_FOLDER": "/somewhere",
        }
    )
    assert (loaded.max_concurrency, loaded.queue_size, loaded.folder) == (5, 7, Path("/somewhere"))
    assert (loaded.build_timeout.total_seconds(), loaded.run_timeout_seconds.total_seconds()) == (1.5, 30)
    assert settings.Settings.load({"ADE_QUEUE_SIZE": ""}).queue_size is None


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("ADE_MAX_CONCURRENCY", "0"),
        ("ADE_MAX_CONCURRENCY", "two"),
        ("ADE_QUEUE_SIZE", "-1"),
        ("ADE_QUEUE_SIZE", "0"),
        ("ADE_BUILD_TIMEOUT", "soon"),
        ("ADE_RUN_TIMEOUT_SECONDS", "0"),
        ("ADE_RUN_TIMEOUT_SECONDS", "nan"),
    ],
)
def test_an_invalid_value_is_reported_with_its_variable(variable: str, value: str) -> None:
    with pytest.raises(InvalidSetting, match=f"{variable}: .*{value}"):
        settings.Settings.load({variable: value})


def test_the_service_does_not_start_with_an_invalid_setting(tmp_path: Path) -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "holdfast", "serve", "apps.ade.web:site", "--port", "0"],
        cwd=ROOT,
        env={"PATH": "/usr/bin:/bin", "ADE_QUEUE_SIZE": "many", "HOLDFAST_URL": f"sqlite:///{tmp_path}/ade.db"},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert ended.returncode != 0
    assert "ADE_QUEUE_SIZE" in ended.stderr
    assert "'many'" in ended.stderr
    assert list(tmp_path.iterdir()) == []
