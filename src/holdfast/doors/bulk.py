"""hf.bulk: do something to all runs that a filter means, in the background."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from holdfast import bulks, operations, runs
from holdfast.errors import InvalidArguments
from holdfast.filters import RunFilter
from holdfast.handles import Run
from holdfast.searches import Count
from holdfast.store.transaction import Transaction

if TYPE_CHECKING:
    from holdfast.engine import Holdfast


class Bulk:
    """Each of these is a run that any worker takes up; its result says how many matched, were done and were skipped.

    Runs that are submitted after it, and bulks themselves, are not meant.
    """

    def __init__(self, hf: Holdfast) -> None:
        self._hf = hf

    def cancel(self, filter: RunFilter, *, reason: str = "cancelled", by: str | None = None) -> Run[dict[str, int]]:
        """Cancel every run that the filter means and that has not ended."""
        return self._submit(bulks.CANCEL, filter, by, reason=reason)

    def again(self, filter: RunFilter, *, by: str | None = None) -> Run[dict[str, int]]:
        """Submit every run that the filter means and that has ended once more, each once.

        Runs of jobs with `only_from_code` are skipped; a filter that names such a job is refused.
        """
        if isinstance(filter, RunFilter) and filter.job is not None:
            self._hf.jobs.require_open(filter.job)
        return self._submit(bulks.AGAIN, filter, by)

    def counts(self, filter: RunFilter) -> Mapping[str, Count]:
        """How many runs `cancel` and `again` would be about now."""
        names = {"cancel": bulks.CANCEL, "again": bulks.AGAIN}
        fits = {verb: filter.state is None or filter.state in bulks.states_of(name) for verb, name in names.items()}
        return self._hf.read(
            lambda tx: {
                verb: bulks.counted(tx, bulks.meant_by(name, filter)) if fits[verb] else Count(0, False)
                for verb, name in names.items()
            }
        )

    def _submit(self, name: str, filter: RunFilter, by: str | None, **more: str) -> Run[dict[str, int]]:
        if not isinstance(filter, RunFilter):
            raise InvalidArguments(f"a filter is a RunFilter, not {filter!r}")
        bulks.meant_by(name, filter)
        operations.check(by)
        hf, job = self._hf, self._hf.jobs[name]
        hf.start()
        given: dict[str, Any] = {"filter": filter.to_json(), "by": by, **more}
        now = hf.clock.now()
        draft = job.draft(job.options, (), given, now=now)

        def submit(tx: Transaction) -> str:
            [answer] = runs.submit(tx, [draft(tx.new_id, None)])
            if not isinstance(answer, str):
                raise answer
            operations.record(tx, by, name.rpartition(".")[2], run_id=answer, filter=filter.to_json(), **more)
            return answer

        return hf.get(hf.do(submit))
