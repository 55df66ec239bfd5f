"""/runs: runs by what they are, and what can be done to all of them at once."""
# No postponed annotations in files of endpoints: FastAPI could not see the `site` that they close over.

import json
from typing import TYPE_CHECKING, Annotated, Literal

from fastapi import APIRouter, Depends, Form, Request, Response
from fastapi.responses import RedirectResponse

from holdfast.support.errors import InvalidArguments
from holdfast.values.filters import STATES, Count, RunFilter
from holdfast.values.pages import SearchPage
from holdfast.values.pipelines import note
from holdfast.values.runs import Snapshot
from holdfast.web.auth.authentication import Who
from holdfast.web.dashboard.filter_query import FIELDS, Asked, asked

if TYPE_CHECKING:
    from holdfast.app import Holdfast
    from holdfast.web.site import Site

LIMIT = 50
NOTHING: SearchPage[Snapshot] = SearchPage(items=(), next=None, searched=0, until=None)
ID = 26


def router(site: "Site") -> APIRouter:
    pages = site.resource("/runs")
    hf = site.hf

    @pages.get("", name="holdfast.runs")
    def runs(request: Request, who: Annotated[Who, Depends(site.viewer)]) -> Response:
        """One page of them, with tabs that say how many there are in each state."""
        if "q" in request.query_params:
            return RedirectResponse(_found(hf, request, request.query_params["q"].strip()), 303)
        wanted, wrong = asked(request.query_params), None
        page, meant = NOTHING, RunFilter()
        try:
            meant = wanted.filter
            page = hf.search(meant, limit=LIMIT, after=wanted.after)
        except InvalidArguments as error:
            wrong = str(error)
        far = hf.pipelines.progress(page.items)
        return site.render(
            request,
            who,
            "runs.html",
            asked=wanted,
            words={name: wanted.words.get(name, "") for name in FIELDS},
            meant=meant,
            page=page,
            counts=None if wanted.narrowed else hf.counts(),
            # To leave the parts out, each run would have to be looked up: a hundred times as long.
            parts_counted=not (wanted.narrowed or wanted.parts) and bool(hf.pipelines.list(limit=1)),
            states=STATES,
            wrong=wrong,
            far=far,
            notes={run.id: note(run, far.get(run.id)) for run in page.items},
            jobs=sorted(hf.jobs),
            refusal=None if meant.job is None else hf.jobs.refusal(meant.job),
            may_steer=who.may("operator") and wrong is None,
        )

    @pages.get("/tabs", name="holdfast.runs.tabs")
    def tabs(request: Request, who: Annotated[Who, Depends(site.viewer)]) -> Response:
        """The tabs of a filter: to count what it means takes longer than to show a page of it, so they come later."""
        wanted = asked(request.query_params)
        return site.render(request, who, "runs_tabs.html", asked=wanted, counts=hf.counts(wanted.filter), states=STATES)

    @pages.get("/matching", name="holdfast.runs.matching")
    def matching(
        request: Request, action: Literal["cancel", "again"], who: Annotated[Who, Depends(site.operator)]
    ) -> Response:
        """How many runs match, and a form that does it to all of them."""
        wanted = asked(request.query_params).filter
        if action == "again" and wanted.job is not None:
            hf.jobs.require_open(wanted.job)
        counts = [hf.count(one) for one in _meant(wanted, action)]
        count = Count(sum(one.number for one in counts), any(one.more for one in counts))
        template = "runs_matching.html" if "hx-request" in request.headers else "runs_asked.html"
        return site.render(request, who, template, action=action, count=count, filter=_words(wanted))

    @pages.post("/matching", name="holdfast.runs.bulk")
    def bulk(
        request: Request,
        who: Annotated[Who, Depends(site.operator)],
        action: Annotated[Literal["cancel", "again"], Form()],
        filter: Annotated[str, Form(max_length=20_000)],
        reason: Annotated[str, Form(max_length=1000)] = "",
    ) -> Response:
        """Begin a run in the background that does it, and go there."""
        try:
            wanted = RunFilter.from_json(json.loads(filter))
        except (ValueError, TypeError, AttributeError):
            raise InvalidArguments("filter is the JSON that the page sent along") from None
        if action == "cancel":
            run = hf.bulk.cancel(wanted, reason=reason.strip() or f"cancelled by {who.name}", by=who.name)
        else:
            run = hf.bulk.again(wanted, by=who.name)
        return RedirectResponse(request.url_for("holdfast.run", run_id=run.id).path, 303)

    return pages


def _meant(wanted: RunFilter, action: str) -> list[RunFilter]:
    """What can be cancelled has not ended; what can be done again has."""
    states = STATES[:2] if action == "cancel" else STATES[2:]
    return [wanted.in_state(state) for state in states if wanted.state in (None, state)]


def _words(wanted: RunFilter) -> str:
    return json.dumps(wanted.to_json())


def _found(hf: "Holdfast", request: Request, text: str) -> str:
    """Where a search leads: a run by the beginning of its id, the runs of a job, or those of a key."""
    runs = request.url_for("holdfast.runs").path
    lower = text.lower()
    if 4 <= len(lower) <= ID and lower.isalnum() and lower.isascii():
        ids = hf.beginning(lower, limit=2) if len(lower) < ID else [*hf.marks([lower])]
        if len(ids) == 1:
            return str(request.url_for("holdfast.run", run_id=ids[0]).path)
    if not text:
        return str(runs)
    jobs = [name for name in hf.jobs if name == text or name.rpartition(".")[2] == text]
    word = {"job": jobs[0]} if len(jobs) == 1 else {"key": text}
    return f"{runs}?{Asked(words=word).query()}"
