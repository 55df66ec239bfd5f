"""Two hosts on one database and one artifact store: both use an environment that one of them has built."""

from __future__ import annotations

import secrets
import shutil
from pathlib import Path
from typing import Any

import pytest
from apps.ade.tests.ade_service import Service, stores
from apps.ade.tests.test_ade_environments import files_with_dependency, wheel

pytestmark = pytest.mark.timeout(300)


@pytest.mark.parametrize("own_url", stores(long="postgres"), indirect=True)
@pytest.mark.contract("Q4", "Q5", "Q11", "Q20")
def test_a_host_restores_an_environment_and_a_lost_one_is_built_again(own_url: str, tmp_path: Path) -> None:
    """The second host has no package index, so it must take the environment from the artifact store."""
    wheel(tmp_path / "wheels")
    installs: dict[str, Any] = {"uv_no_index": 1, "uv_find_links": tmp_path / "wheels"}
    with Service(own_url, tmp_path / "one", **installs) as one:
        workspace = one.workspace(f"hosts {secrets.token_hex(4)}")
        document = one.document(workspace)
        configuration = one.configuration(workspace, "greets", files_with_dependency())
        first = one.ended(one.submit(configuration, document)["id"])
        assert (first["status"], first["message"]) == ("succeeded", None)

    with Service(own_url, tmp_path / "two", uv_no_index=1) as two:
        second = two.ended(two.submit(configuration, document)["id"])
        assert (second["status"], second["message"]) == ("succeeded", None)
        log = two.log_of(second["id"])
        assert "the environment is restored" in log
        assert not any("creating an environment" in line or "installing" in line for line in log)
        [build_run] = build_runs(two)

        shutil.rmtree(tmp_path / "two" / "environments")
        [archive] = (tmp_path / "artifacts").rglob("environment.tar.gz")
        archive.write_bytes(archive.read_bytes()[:-1000] + bytes(1000))
        lost = two.ended(two.submit(configuration, document)["id"])
        assert lost["status"] == "failed"
        assert lost["message"].startswith("the environment was lost: ")
        assert lost["message"].endswith("does not match its checksum")
        build = two.get(f"/builds/{lost['build_id']}")
        assert build["status"] == "failed"
        assert build["message"].startswith("the environment was lost: ")
        assert [run["id"] for run in build_runs(two)] == [build_run["id"]]

    with Service(own_url, tmp_path / "one", **installs) as one:
        again = one.ended(one.submit(configuration, document)["id"])
        assert (again["status"], again["build"]["status"], again["build"]["message"]) == ("succeeded", "ready", None)
        assert again["build_id"] == first["build_id"]
        assert len(build_runs(one)) == 2
        assert one.get(f"/runs/{lost['id']}")["status"] == "failed"


def build_runs(one: Service) -> list[dict[str, Any]]:
    """Return the Holdfast runs that have executed builds."""
    items: list[dict[str, Any]] = one.get("/holdfast/api/runs", job="ade.environment")["items"]
    return items
