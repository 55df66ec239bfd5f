"""Commands accept a unique prefix of an id."""

from __future__ import annotations

import pytest
from tests.cli.conftest import Invoke, json_output
from tests.listing import runs_of

from holdfast import Holdfast
from holdfast.testing import FakeClock


@pytest.fixture
def run_ids(hf: Holdfast, clock: FakeClock) -> list[str]:
    """Two runs, created so far apart that their ids differ after a few characters."""
    job = hf.job(name="work")(lambda: None)
    first = job.submit()
    clock.advance(40 * 86_400)
    return [first.id, job.submit().id]


def common_length(one: str, other: str) -> int:
    return next(at for at, (a, b) in enumerate(zip(one, other, strict=True)) if a != b)


def test_a_unique_prefix_of_an_id_is_enough(holdfast: Invoke, url: str, run_ids: list[str]) -> None:
    first, second = run_ids
    enough = max(common_length(first, second) + 1, 4)
    assert json_output(holdfast("runs", "show", url, first[:enough], "--json"))["id"] == first
    assert json_output(holdfast("runs", "why", url, second[:-1], "--json"))["id"] == second
    assert json_output(holdfast("runs", "again", url, second[:enough], "--json"))["again_of"] == second
    assert json_output(holdfast("runs", "cancel", url, first[:enough], "--json")) == {"id": first, "state": "cancelled"}
    assert holdfast("runs", "follow", url, first[:enough]).exit_code == 1
    assert holdfast("artifacts", "list", url, first[:enough]).exit_code == 0


def test_an_ambiguous_prefix_is_refused_and_lists_matching_ids(
    holdfast: Invoke, hf: Holdfast, url: str, run_ids: list[str]
) -> None:
    more = [hf.submit("work").id for _ in range(3)]
    beginning = more[0][:20]
    assert all(run_id.startswith(beginning[:10]) for run_id in more)
    refused = holdfast("runs", "cancel", url, beginning[:10])
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert f"matches several runs: {run_ids[1]}, {more[0]}, {more[1]} …; give more" in refused.stderr
    assert {run.state for run in runs_of(hf)} == {"queued"}
