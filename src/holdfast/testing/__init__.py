"""For tests of code that uses Holdfast: a clock that a test sets, an engine that moves only when told,
and faults.

With pytest, the fixtures `holdfast_clock` and `holdfast_url` are there as soon as Holdfast is installed.
"""

from holdfast.testing.clock import FakeClock
from holdfast.testing.faults import Fault, Faults
from holdfast.testing.manual import Manual, ManualWorker

__all__ = ["FakeClock", "Fault", "Faults", "Manual", "ManualWorker"]
