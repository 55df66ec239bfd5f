"""Settings of the factory, and what only a demo may do."""

from __future__ import annotations

import importlib
from datetime import timedelta
from pathlib import Path

import pytest
from apps.factory.settings import read
from fastapi.testclient import TestClient
from tests.apps.factory.plant import Plant, forget

from holdfast import InvalidSetting
from holdfast.web import create_app


def test_settings_come_from_the_environment_and_what_is_wrong_is_told_by_name(tmp_path: Path) -> None:
    found = read({"FACTORY_OUTPUT": str(tmp_path), "FACTORY_RETRY_DELAY": "0.5", "FACTORY_ATTEMPTS": "3"})
    assert (found.output, found.retry_delay, found.attempts) == (tmp_path, timedelta(seconds=0.5), 3)
    assert (found.demo, read({"APP_FOLDER": "/x"}).demo) == (False, True)
    assert read({"APP_FOLDER": "/x"}).output == Path("/x/output")
    (tmp_path / "file").touch()
    wrong = {
        "FACTORY_ATTEMPTS": "0",
        "FACTORY_TIMEOUT": "soon",
        "FACTORY_OUTPUT": str(tmp_path / "file"),
        "FACTORY_COLOUR": "x",
    }
    with pytest.raises(InvalidSetting) as caught:
        read(wrong)
    assert all(name in str(caught.value) for name in wrong)


def test_no_process_starts_with_artifacts_that_ffmpeg_could_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOLDFAST_ARTIFACTS", "s3://bucket/videos")
    forget()
    with pytest.raises(InvalidSetting, match="HOLDFAST_ARTIFACTS"):
        importlib.import_module("apps.factory.jobs")


def test_no_worker_is_killed_where_there_is_no_demo(tmp_path: Path) -> None:
    token = "a token for this test"
    with Plant(f"sqlite:///{tmp_path / 'work.db'}", tmp_path / "plant", HOLDFAST_TOKEN=token) as built:
        site = importlib.import_module("apps.factory.web").site
        with built.hf.worker(queues=["factory"]) as worker:
            client = TestClient(
                create_app(site), base_url="http://127.0.0.1", headers={"Authorization": f"Bearer {token}"}
            )
            answer = client.post(f"/workers/{worker.id}/kill")
            assert (answer.status_code, answer.json()["code"]) == (403, "not_a_demo")
            assert {"/videos", "/videos/{video_id}/editions", "/jobs"} <= set(
                client.get("/openapi.json").json()["paths"]
            )
