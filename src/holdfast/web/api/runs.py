"""/api/runs: submit runs, look at them, steer them."""
# No postponed annotations in files of endpoints: FastAPI could not see the `site` that they close over.

from collections.abc import Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated, Any, Literal

from fastapi import APIRouter, Depends, Header, Query, Request, Response
from pydantic import Field, StringConstraints

from holdfast.jobs.registry import OWN
from holdfast.runs.snapshot import find_ended as over_of
from holdfast.support.errors import InvalidPolicy
from holdfast.values.filters import Count
from holdfast.values.pages import Page, SearchPage
from holdfast.web.api.filters import FilterBody, FilterQuery, Key, PageQuery
from holdfast.web.api.shapes import MOST, Ask, Done, Instant, Name, Run, RunId, State, Text, Why
from holdfast.web.auth.authentication import Who

if TYPE_CHECKING:
    from holdfast.web.site import Site

LONGEST = 10 * 366 * 86_400.0  # seconds of a delay
TagName = Annotated[str, StringConstraints(min_length=1, max_length=200)]
TagValue = Annotated[str, StringConstraints(max_length=1000)]

# A header's text is ASCII: what its other bytes mean is said nowhere, and one key must not come to be two.
IdempotencyKey = Annotated[str, StringConstraints(min_length=1, max_length=200, pattern=r"^[\x20-\x7e]+$")]


class Submit(Ask):
    """A run to be queued; what is left out is as the job says."""

    job: Name = Field(examples=["app.greet"])
    args: dict[str, Any] = Field(default={}, examples=[{"name": "Ada"}])
    queue: Name | None = None
    priority: Annotated[int, Field(ge=-1_000_000, le=1_000_000)] | None = Field(
        default=None, description="Higher goes first."
    )
    key: Key | None = Field(default=None, description="At most one run of a key runs at a time.")
    delay: Annotated[float, Field(ge=0, le=LONGEST)] | None = Field(
        default=None, description="Start so much later, in seconds."
    )
    due_at: Instant | None = Field(default=None, description="Start then or later; instead of `delay`.")
    tags: dict[TagName, TagValue] = Field(default={}, max_length=50, description="For finding it again.")
    after: list[RunId] = Field(default=[], max_length=1000, description="Runs that must have succeeded before.")
    unique: Literal["queued", "active"] | None = Field(
        default=None,
        description="Give back the run of the same key (or arguments) that has not started, or ended.",
    )


class Cancel(Ask):
    reason: Text = Field(default="cancelled", description="Why; it stays with the run.")


class CancelMatching(FilterBody):
    reason: Text = Field(default="cancelled", description="Why; it stays with every run that is cancelled.")


def router(site: "Site") -> APIRouter:
    runs = site.resource("/runs", tags=["runs"])
    hf = site.hf

    @runs.post("", status_code=201, name="holdfast.api.submit", summary="Queue a run")
    def submit_run(
        asked: Submit,
        request: Request,
        response: Response,
        who: Annotated[Who, Depends(site.operator)],
        idempotency_key: Annotated[
            IdempotencyKey | None, Header(description="The same key gives the same run back; ASCII.")
        ] = None,
    ) -> Run:
        """The run is durable when this answers. A full queue is a 429 with `Retry-After`; nothing was written then."""
        if asked.job.startswith(OWN):
            raise InvalidPolicy(f"{asked.job} is submitted by what it serves: POST /runs/cancel, POST /runs/again")
        hf.jobs.require_open(asked.job)
        job = hf.jobs[asked.job].using(
            queue=asked.queue,
            priority=asked.priority,
            key=None if asked.key is None else lambda **_: asked.key,
            delay=None if asked.delay is None else timedelta(seconds=asked.delay),
            due_at=asked.due_at,
            after=asked.after or None,
            idempotency_key=idempotency_key,
            unique=asked.unique,
            tags=asked.tags or None,
        )
        run = job.submit_by(who.name, job.arguments.from_json(asked.args))
        response.headers["Location"] = request.url_for("holdfast.api.run", run_id=run.id).path
        return Run.of(run.snapshot)

    @runs.get("", name="holdfast.api.runs", summary="Runs that match, the newest first")
    def list_runs(asked: Annotated[PageQuery, Query()], who: Annotated[Who, Depends(site.viewer)]) -> SearchPage[Run]:
        """Every page is bounded, whatever the filter and however much history there is: it says how far it looked. Go
        on by ?after=."""
        page = hf.search(asked.meant(), limit=asked.limit, after=asked.after, order=asked.order, before=asked.before)
        found = tuple(Run.of(run, whole=False) for run in page.items)
        return SearchPage(items=found, next=page.next, searched=page.searched, until=page.until)

    @runs.get("/count", name="holdfast.api.count", summary="How many runs match")
    def count_runs(asked: Annotated[FilterQuery, Query()], who: Annotated[Who, Depends(site.viewer)]) -> Count:
        """Exact up to 10,000 runs looked at."""
        return hf.count(asked.meant())

    @runs.get("/counts", name="holdfast.api.counts", summary="How many runs match, by state")
    def count_states(
        asked: Annotated[FilterQuery, Query()], who: Annotated[Who, Depends(site.viewer)]
    ) -> Mapping[State, Count]:
        """The filter's own state does not count."""
        return hf.counts(asked.meant())  # type: ignore[return-value]

    @runs.get("/ids", name="holdfast.api.ids", summary="The ids that begin like that")
    def find_ids(
        beginning: Annotated[str, Query(min_length=4, max_length=26, pattern="^[0-9a-z]+$")],
        who: Annotated[Who, Depends(site.viewer)],
        limit: Annotated[int, Query(ge=1, le=10)] = 3,
    ) -> Page[str]:
        """The oldest first; for people who write only so much of an id as no other run has."""
        return Page.whole(hf.beginning(beginning, limit=limit))

    @runs.get("/open", name="holdfast.api.open", summary="Which of these runs have not ended")
    def find_open(
        id: Annotated[list[RunId], Query(min_length=1, max_length=MOST)], who: Annotated[Who, Depends(site.viewer)]
    ) -> Page[str]:
        """For a client that waits for many runs. Those that do not exist are left out, too."""
        over = hf.read(lambda tx: over_of(tx, id))
        return Page.whole(run_id for run_id in id if run_id not in over)

    @runs.post("/cancel", status_code=202, name="holdfast.api.cancel_matching", summary="Cancel all that match")
    def cancel_matching(asked: CancelMatching, who: Annotated[Who, Depends(site.operator)]) -> Run:
        """A run in the background that cancels them, with progress; what is submitted from now on is not meant."""
        return Run.of(hf.bulk.cancel(asked.meant(), reason=asked.reason, by=who.name).snapshot)

    @runs.post("/again", status_code=202, name="holdfast.api.again_matching", summary="Do all that match again")
    def again_matching(asked: FilterBody, who: Annotated[Who, Depends(site.operator)]) -> Run:
        """A run in the background that submits one new run for each of them, with progress."""
        return Run.of(hf.bulk.again(asked.meant(), by=who.name).snapshot)

    @runs.get("/{run_id}", name="holdfast.api.run", summary="One run")
    def get_run(run_id: RunId, who: Annotated[Who, Depends(site.viewer)]) -> Run:
        return Run.of(hf.snapshot(run_id))

    @runs.get("/{run_id}/why", name="holdfast.api.why", summary="Why a run is where it is")
    def why_run(run_id: RunId, who: Annotated[Who, Depends(site.viewer)]) -> Why:
        """What it waits for, who runs it, how it ended: in sentences."""
        answer = hf.why(run_id)
        return Why.model_validate({"id": answer.run.id, "state": answer.run.state, "reasons": list(answer.reasons)})

    @runs.post("/{run_id}/cancel", name="holdfast.api.cancel", summary="End a run, or ask it to stop")
    def cancel_run(run_id: RunId, asked: Cancel, who: Annotated[Who, Depends(site.operator)]) -> Done:
        """Its state afterwards: `cancelled` if it had not started, `running` if its worker was asked to stop it, and
        any other if it had ended before."""
        state = hf.cancel(run_id, reason=asked.reason, by=who.name)
        return Done.model_validate({"id": run_id, "state": state})

    @runs.post("/{run_id}/again", status_code=201, name="holdfast.api.again", summary="A new run like that one")
    def again_run(run_id: RunId, who: Annotated[Who, Depends(site.operator)]) -> Run:
        """The same job with the same arguments; the old run stays as it is."""
        return Run.of(hf.again(run_id, by=who.name).snapshot)

    return runs
