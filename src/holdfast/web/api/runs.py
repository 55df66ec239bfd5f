"""/api/runs: submit, search, inspect, cancel and repeat runs."""
# No `from __future__ import annotations` in endpoint modules: FastAPI could not resolve the local name `site`.

from collections.abc import Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated, Any, Literal

from fastapi import APIRouter, Depends, Header, Query, Request, Response
from pydantic import Field, StringConstraints

from holdfast.jobs.registry import OWN
from holdfast.runs.snapshot import find_ended
from holdfast.support.errors import InvalidPolicy
from holdfast.values.filters import Count
from holdfast.values.pages import Page, SearchPage
from holdfast.web.api.filters import FilterBody, FilterQuery, Key, PageQuery
from holdfast.web.api.shapes import MOST, Done, Instant, Name, RequestBody, Run, RunId, State, Text, Why
from holdfast.web.auth.authentication import Who

if TYPE_CHECKING:
    from holdfast.web.site import Site

LONGEST = 10 * 366 * 86_400.0  # seconds of a delay
TagName = Annotated[str, StringConstraints(min_length=1, max_length=200)]
TagValue = Annotated[str, StringConstraints(max_length=1000)]

# Only ASCII: other bytes in a header have no defined encoding, so the same key could be read as two different ones.
IdempotencyKey = Annotated[str, StringConstraints(min_length=1, max_length=200, pattern=r"^[\x20-\x7e]+$")]


class Submit(RequestBody):
    """A run to submit; omitted options have the job's defaults."""

    job: Name = Field(examples=["app.greet"])
    args: dict[str, Any] = Field(default={}, examples=[{"name": "Ada"}])
    queue: Name | None = None
    priority: Annotated[int, Field(ge=-1_000_000, le=1_000_000)] | None = Field(
        default=None, description="Runs with a higher priority start first."
    )
    key: Key | None = Field(
        default=None, description="At most `key_limit` runs (by default one) with the same key run at once."
    )
    delay: Annotated[float, Field(ge=0, le=LONGEST)] | None = Field(
        default=None, description="Start this many seconds later."
    )
    due_at: Instant | None = Field(default=None, description="Start at this time or later; use instead of `delay`.")
    tags: dict[TagName, TagValue] = Field(default={}, max_length=50, description="Tags to search by.")
    depends_on: list[RunId] = Field(default=[], max_length=1000, description="Runs that must have succeeded first.")
    unique: Literal["queued", "active"] | None = Field(
        default=None,
        description="Return an existing run of the same key or arguments, if it has not started (`queued`) or not "
        "ended (`active`).",
    )


class Cancel(RequestBody):
    reason: Text = Field(default="cancelled", description="The reason, stored with the run.")


class CancelMatching(FilterBody):
    reason: Text = Field(default="cancelled", description="The reason, stored with every cancelled run.")


def router(site: "Site") -> APIRouter:
    runs = site.resource("/runs", tags=["runs"])
    hf = site.hf

    @runs.post("", status_code=201, name="holdfast.api.submit", summary="Submit a run")
    def submit_run(
        body: Submit,
        request: Request,
        response: Response,
        who: Annotated[Who, Depends(site.operator)],
        idempotency_key: Annotated[
            IdempotencyKey | None, Header(description="Submitting again with the same ASCII text returns the same run.")
        ] = None,
    ) -> Run:
        """The run is durable when this returns. A full queue returns 429 with `Retry-After`, and nothing is stored."""
        if body.job.startswith(OWN):
            raise InvalidPolicy(f"{body.job} can't be submitted; use POST /runs/cancel or POST /runs/again")
        hf.jobs.require_open(body.job)
        job = hf.jobs[body.job].using(
            queue=body.queue,
            priority=body.priority,
            key=None if body.key is None else lambda **_: body.key,
            delay=None if body.delay is None else timedelta(seconds=body.delay),
            due_at=body.due_at,
            depends_on=body.depends_on or None,
            idempotency_key=idempotency_key,
            unique=body.unique,
            tags=body.tags or None,
        )
        run = job.submit_by(who.name, job.arguments.from_json(body.args))
        response.headers["Location"] = request.url_for("holdfast.api.run", run_id=run.id).path
        return Run.of(run.snapshot)

    @runs.get("", name="holdfast.api.runs", summary="Search runs, the newest first")
    def list_runs(query: Annotated[PageQuery, Query()], who: Annotated[Who, Depends(site.viewer)]) -> SearchPage[Run]:
        """Each request searches a limited number of runs, so a page may be short and still have a `next`. `searched`
        and `until` say how far it has searched. Pass `next` as `?after=` to continue."""
        page = hf.search(
            query.run_filter(), limit=query.limit, after=query.after, order=query.order, before=query.before
        )
        found = tuple(Run.of(run, whole=False) for run in page.items)
        return SearchPage(items=found, next=page.next, searched=page.searched, until=page.until)

    @runs.get("/count", name="holdfast.api.count", summary="Count matching runs")
    def count_runs(query: Annotated[FilterQuery, Query()], who: Annotated[Who, Depends(site.viewer)]) -> Count:
        """Examines at most 10,000 runs; `more` is true if there are more."""
        return hf.count(query.run_filter())

    @runs.get("/counts", name="holdfast.api.counts", summary="Count matching runs by state")
    def count_states(
        query: Annotated[FilterQuery, Query()], who: Annotated[Who, Depends(site.viewer)]
    ) -> Mapping[State, Count]:
        """The state in the filter is ignored."""
        return hf.counts(query.run_filter())  # type: ignore[return-value]

    @runs.get("/ids", name="holdfast.api.ids", summary="Find run ids by prefix")
    def find_ids(
        prefix: Annotated[str, Query(min_length=4, max_length=26, pattern="^[0-9a-z]+$")],
        who: Annotated[Who, Depends(site.viewer)],
        limit: Annotated[int, Query(ge=1, le=10)] = 3,
    ) -> Page[str]:
        """The oldest first. Lets people write only the first characters of an id."""
        return Page.whole(hf.find_ids(prefix, limit=limit))

    @runs.get("/open", name="holdfast.api.open", summary="Find which of these runs have not ended")
    def find_open(
        id: Annotated[list[RunId], Query(min_length=1, max_length=MOST)], who: Annotated[Who, Depends(site.viewer)]
    ) -> Page[str]:
        """For a client that waits for many runs. Runs that do not exist are left out, too."""
        ended = hf.read(lambda tx: find_ended(tx, id))
        return Page.whole(run_id for run_id in id if run_id not in ended)

    @runs.post("/cancel", status_code=202, name="holdfast.api.cancel_matching", summary="Cancel all matching runs")
    def cancel_matching(body: CancelMatching, who: Annotated[Who, Depends(site.operator)]) -> Run:
        """Starts a background run that cancels the runs and reports its progress. It skips runs submitted later."""
        return Run.of(hf.bulk.cancel(body.run_filter(), reason=body.reason, by=who.name).snapshot)

    @runs.post("/again", status_code=202, name="holdfast.api.again_matching", summary="Run all matching runs again")
    def again_matching(body: FilterBody, who: Annotated[Who, Depends(site.operator)]) -> Run:
        """Starts a background run that submits a new run for each matching run and reports its progress."""
        return Run.of(hf.bulk.again(body.run_filter(), by=who.name).snapshot)

    @runs.get("/{run_id}", name="holdfast.api.run", summary="Get a run")
    def get_run(run_id: RunId, who: Annotated[Who, Depends(site.viewer)]) -> Run:
        return Run.of(hf.snapshot(run_id))

    @runs.get("/{run_id}/why", name="holdfast.api.why", summary="Explain the state of a run")
    def why_run(run_id: RunId, who: Annotated[Who, Depends(site.viewer)]) -> Why:
        """Says in sentences what the run waits for, which worker runs it, or how it ended."""
        answer = hf.why(run_id)
        return Why.model_validate({"id": answer.run.id, "state": answer.run.state, "reasons": list(answer.reasons)})

    @runs.post("/{run_id}/cancel", name="holdfast.api.cancel", summary="Cancel a run")
    def cancel_run(run_id: RunId, body: Cancel, who: Annotated[Who, Depends(site.operator)]) -> Done:
        """Returns the new state: `cancelled` if the run was queued, `running` if its worker will stop it soon,
        or the final state if it had already ended."""
        state = hf.cancel(run_id, reason=body.reason, by=who.name)
        return Done.model_validate({"id": run_id, "state": state})

    @runs.post("/{run_id}/again", status_code=201, name="holdfast.api.again", summary="Run again")
    def again_run(run_id: RunId, who: Annotated[Who, Depends(site.operator)]) -> Run:
        """Submits a new run of the same job with the same arguments. The old run does not change."""
        return Run.of(hf.again(run_id, by=who.name).snapshot)

    return runs
