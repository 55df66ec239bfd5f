"""Uses: how many runs needed a build, counted over a bounded number of them; and what one making for all saved."""

from __future__ import annotations

from datetime import timedelta

import pytest

from holdfast import Holdfast
from holdfast.builds import builds
from holdfast.testing import FakeClock, Manual


def test_the_runs_that_needed_a_build_are_its_uses_and_all_but_one_saved_a_making(
    hf: Holdfast, manual: Manual, clock: FakeClock
) -> None:
    environment = hf.build(name="environment")(lambda name, fingerprint: clock.advance(60))
    use = hf.job(name="use")(lambda: None)
    busy = environment.of(name="busy", fingerprint="f")
    idle = environment.submit(name="idle", fingerprint="f")
    for _ in range(3):
        use.using(after=[busy]).submit()
    use.using(after=[busy, hf.builds.get(busy).run_id]).submit()
    use.submit()
    manual.run_all()

    found = hf.builds.list()
    making = hf.builds.get(busy)
    assert hf.builds.uses(found) == {making.run_id: 4}
    assert making.saved(4) == 3 * timedelta(seconds=60)
    assert (making.saved(1), making.saved(0)) == (timedelta(0), timedelta(0))
    assert hf.builds.get(idle).saved(2) == timedelta(seconds=60)
    assert hf.builds.uses([]) == {}


def test_a_build_that_is_not_made_yet_has_saved_nothing(hf: Holdfast) -> None:
    environment = hf.build(name="environment")(lambda name, fingerprint: None)
    environment.submit(name="a", fingerprint="f")
    [build] = hf.builds.list()
    assert build.saved(5) is None


def test_no_more_than_the_newest_are_looked_at(hf: Holdfast, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(builds, "RECENT", 2)
    environment = hf.build(name="environment")(lambda name, fingerprint: None)
    use = hf.job(name="use")(lambda: None)
    for _ in range(3):
        use.using(after=[environment.of(name="a", fingerprint="f")]).submit()
    [build] = hf.builds.list()
    assert hf.builds.uses([build]) == {build.run_id: 2}
