"""Uses of a build: how many runs depend on it, and how much time that saved."""

from __future__ import annotations

from datetime import timedelta

import pytest

from holdfast import Holdfast
from holdfast.builds import builds
from holdfast.testing import FakeClock, Manual


def test_each_run_that_depends_on_a_build_is_a_use_and_each_but_one_saves_its_duration(
    hf: Holdfast, manual: Manual, clock: FakeClock
) -> None:
    environment = hf.build(name="environment")(lambda name, fingerprint: clock.advance(60))
    use = hf.job(name="use")(lambda: None)
    busy = environment.request(name="busy", fingerprint="f")
    idle = environment.submit(name="idle", fingerprint="f")
    for _ in range(3):
        use.using(depends_on=[busy]).submit()
    use.using(depends_on=[busy, hf.builds.get(busy).run_id]).submit()
    use.submit()
    manual.run_all()

    found = hf.builds.list()
    busy_build = hf.builds.get(busy)
    assert hf.builds.uses(found) == {busy_build.run_id: 4}
    assert busy_build.saved(4) == 3 * timedelta(seconds=60)
    assert (busy_build.saved(1), busy_build.saved(0)) == (timedelta(0), timedelta(0))
    assert hf.builds.get(idle).saved(2) == timedelta(seconds=60)
    assert hf.builds.uses([]) == {}


def test_a_build_that_is_not_ready_has_saved_nothing(hf: Holdfast) -> None:
    environment = hf.build(name="environment")(lambda name, fingerprint: None)
    environment.submit(name="a", fingerprint="f")
    [build] = hf.builds.list()
    assert build.saved(5) is None


def test_uses_are_counted_over_the_newest_runs_only(hf: Holdfast, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(builds, "RECENT", 2)
    environment = hf.build(name="environment")(lambda name, fingerprint: None)
    use = hf.job(name="use")(lambda: None)
    for _ in range(3):
        use.using(depends_on=[environment.request(name="a", fingerprint="f")]).submit()
    [build] = hf.builds.list()
    assert hf.builds.uses([build]) == {build.run_id: 2}
