"""Process: a run in a process of its own, killable whatever it does."""

from __future__ import annotations

from holdfast.engine import Holdfast
from holdfast.outcomes import Outcome
from holdfast.worker.desk import RunDesk
from holdfast.worker.execute import Judge
from holdfast.worker.running import Running


class Child:
    def __init__(self, hf: Holdfast, running: Running, desk: RunDesk, judge: Judge) -> None:
        raise NotImplementedError

    def run(self) -> tuple[Outcome, str]:
        raise NotImplementedError

    def stop(self) -> None:
        raise NotImplementedError

    def renewed(self) -> None:
        raise NotImplementedError
