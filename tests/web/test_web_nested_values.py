"""Values of the maximum depth are read through every interface."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner
from tests.contract.helpers.nested_values import nested
from tests.listing import runs_of
from tests.web.conftest import Serve

from holdfast import Context, Holdfast
from holdfast.cli import main
from holdfast.client import Client
from holdfast.support.json_text import MAX_DEPTH
from holdfast.testing import Manual

if TYPE_CHECKING:
    pass

DEEPEST = nested(MAX_DEPTH - 1)  # the object with all arguments is one level too


@pytest.fixture
def app(hf: Holdfast) -> Holdfast:
    @hf.job(name="echo")
    def echo(ctx: Context, value: Any) -> Any:
        return ctx.step("wrap", lambda: [value])

    return hf


@pytest.mark.contract("S4")
def test_the_deepest_value_is_read_through_every_interface(app: Holdfast, manual: Manual, serve: Serve) -> None:
    server = serve(app)
    web = server.client("operator")
    answer = web.post("/api/runs", json={"job": "echo", "args": {"value": DEEPEST}})
    assert answer.status_code == 201, answer.text
    run_id = answer.json()["id"]
    manual.run_all()
    result = [DEEPEST]

    assert app.get(run_id).result() == result
    assert (runs_of(app)[0].args, runs_of(app)[0].unreadable) == ({"value": DEEPEST}, None)
    assert web.get(f"/api/runs/{run_id}").json()["result"] == result
    assert web.get("/api/runs").json()["items"][0]["args"] == {"value": DEEPEST}
    assert web.get(f"/api/runs/{run_id}/steps").json()["items"][0]["result"] == result
    with Client(server.url, token=server.token) as client:
        assert client.get(run_id).result() == result
        assert runs_of(client)[0].args == {"value": DEEPEST}
    for path in ("/runs", f"/runs/{run_id}"):
        page = web.get(path, headers={"Accept": "text/html"})
        assert page.status_code == 200
        assert "unreadable" not in page.text
    for words in (["list", app.settings.url], ["show", app.settings.url, run_id]):
        result_of_command = CliRunner().invoke(main, ["runs", *words, "--json"])
        assert result_of_command.exit_code == 0
        document = json.loads(result_of_command.output)
        assert (document["items"][0] if "items" in document else document)["result"] == result
