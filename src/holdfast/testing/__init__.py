"""Tools for tests: a clock that the test advances, runs that move only when the test says so, and faults.

With pytest, the fixtures `holdfast_clock` and `holdfast_url` are available once Holdfast is installed.
"""

from holdfast.testing.clock import FakeClock
from holdfast.testing.faults import Fault, Faults
from holdfast.testing.manual import Manual, ManualWorker

__all__ = ["FakeClock", "Fault", "Faults", "Manual", "ManualWorker"]
