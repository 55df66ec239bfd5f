"""The features that a world uses: shared builds, children, pipelines, a limited queue, a rate, and unique runs."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from holdfast import Context, Job, QueueFull, Retry

if TYPE_CHECKING:
    from tests.simulation.processes import Process

NARROW, CAPACITY, CONCURRENCY = "narrow", 4, 2
RATE, STARTS, PERIOD = "3/20s", 3, timedelta(seconds=20)
PATIENT: dict[str, Any] = {
    "max_attempts": 3,
    "max_takeovers": 5,
    "timeout": 120,
    "retry": Retry(step_attempts=1, delay=0.5),
}


class Features:
    """The jobs of one process that use more features than its job `work`, and functions that submit them."""

    def __init__(self, process: Process) -> None:
        self._process, self._world = process, process.world
        hf = process.hf
        hf.queue(NARROW, max_queued=CAPACITY, concurrency=CONCURRENCY)
        self.made: Any = hf.build(name="made", timeout=60)(self._make)
        self.parent: Job[..., Any] = hf.job(name="parent", **PATIENT | {"max_attempts": 1})(self._gather)
        self.child: Job[..., Any] = hf.job(name="child", **PATIENT)(self._child)
        self.rated: Job[..., Any] = hf.job(name="rated", rate=RATE, **PATIENT)(self._rated)
        self.line = hf.pipeline("line")
        split = self.line.stage(**PATIENT)(self._split)
        piece = self.line.stage(after=split, each="segment", **PATIENT)(self._piece)
        self.line.stage(after=piece, **PATIENT)(self._join)

    # Called by clients

    def request(self, options: dict[str, Any]) -> list[str]:
        """Submit a run of `work` that depends on a shared build."""
        request = self.made.request(name="m", fingerprint=self._world.random.choice(["one", "two"]))
        after = dict(options.pop("depends_on", {})) | {request: True}
        return [self._process.job.using(**options, depends_on=after).submit(number=1).id]

    def children(self, options: dict[str, Any]) -> list[str]:
        return self._counted(self.parent)

    def pipeline(self, options: dict[str, Any]) -> list[str]:
        return self._counted(self.line)

    def narrow(self, options: dict[str, Any]) -> list[str]:
        try:
            return [self._process.job.using(**options | {"queue": NARROW}).submit(number=2).id]
        except QueueFull:
            self._world.note("the limited queue is full")
            return []

    def starts(self, options: dict[str, Any]) -> list[str]:
        return [self.rated.submit(number=number).id for number in range(self._world.random.randrange(1, 4))]

    def single(self, options: dict[str, Any]) -> list[str]:
        options = {name: value for name, value in options.items() if not name.startswith("key")}
        return [self._process.job.using(**options, unique="queued").submit(number=1_000).id]

    def _counted(self, job: Job[..., Any]) -> list[str]:
        count = self._world.random.randrange(4)
        run_id = job.submit(count=count).id
        self._world.oracle.expects(run_id, count)
        return [run_id]

    # Executed by workers

    def _make(self, name: str, fingerprint: str) -> str:
        self._process.pass_time()
        self._process.maybe_fail(0.2)
        return fingerprint

    def _gather(self, ctx: Context, count: int) -> int:
        children = [ctx.submit_child(self.child, number=number) for number in range(count)]
        self._process.maybe_fail(0.15)  # then no parent waits for its children
        return len(ctx.gather(*children, return_exceptions=True))

    def _child(self, number: int) -> int:
        self._process.pass_time()
        self._process.maybe_fail(0.2)
        return number

    def _rated(self, number: int) -> int:
        self._process.maybe_fail(0.2)
        return number

    def _split(self, ctx: Context, count: int) -> Any:
        return ctx.segments(list(range(count)))

    def _piece(self, segment: int) -> int:
        self._process.pass_time()
        self._process.maybe_fail(0.15)
        return segment

    def _join(self, segments: list[int]) -> int:
        return len(segments)
