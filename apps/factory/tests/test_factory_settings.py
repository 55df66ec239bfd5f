"""Settings of the factory: variables, invalid values, and the demo mode."""

from __future__ import annotations

import importlib
from datetime import timedelta
from pathlib import Path

import pytest
from apps.factory.settings import read
from apps.factory.tests.instance import FactoryInstance, forget
from fastapi.testclient import TestClient

from holdfast import InvalidSetting
from holdfast.web import create_app


def test_settings_are_read_from_variables_and_errors_name_them(tmp_path: Path) -> None:
    settings = read({"FACTORY_OUTPUT": str(tmp_path), "FACTORY_RETRY_DELAY": "0.5", "FACTORY_ATTEMPTS": "3"})
    assert (settings.output, settings.retry_delay, settings.attempts) == (tmp_path, timedelta(seconds=0.5), 3)
    assert (settings.demo, read({"APP_FOLDER": "/x"}).demo) == (False, True)
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


def test_an_object_storage_for_artifacts_is_refused_at_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOLDFAST_ARTIFACTS", "s3://bucket/videos")
    forget()
    with pytest.raises(InvalidSetting, match="HOLDFAST_ARTIFACTS"):
        importlib.import_module("apps.factory.jobs")


def test_workers_can_be_killed_only_in_a_demo(tmp_path: Path) -> None:
    token = "a token for this test"
    url = f"sqlite:///{tmp_path / 'work.db'}"
    with FactoryInstance(url, tmp_path / "factory", HOLDFAST_ADMIN_TOKEN=token) as instance:
        site = importlib.import_module("apps.factory.web").site
        with instance.hf.worker(queues=["factory"]) as worker:
            client = TestClient(
                create_app(site), base_url="http://127.0.0.1", headers={"Authorization": f"Bearer {token}"}
            )
            answer = client.post(f"/workers/{worker.id}/kill")
            assert (answer.status_code, answer.json()["code"]) == (403, "not_a_demo")
            assert {"/videos", "/videos/{video_id}/editions", "/jobs"} <= set(
                client.get("/openapi.json").json()["paths"]
            )
