"""/runs: the list of runs with its filter, and actions on all matching runs."""
# No `from __future__ import annotations` in endpoint modules: FastAPI could not resolve the local name `site`.

import json
from typing import TYPE_CHECKING, Annotated, Literal

from fastapi import APIRouter, Depends, Form, Request, Response
from fastapi.responses import RedirectResponse

from holdfast.operate.changes import run_markers
from holdfast.support.errors import InvalidArguments
from holdfast.values.filters import STATES, Count, RunFilter
from holdfast.values.pages import SearchPage
from holdfast.values.pipelines import note
from holdfast.values.runs import Snapshot
from holdfast.web.auth.authentication import Who
from holdfast.web.dashboard.filter_query import FIELDS, FilterQuery, parse

if TYPE_CHECKING:
    from holdfast.app import Holdfast
    from holdfast.web.site import Site

LIMIT = 50
EMPTY: SearchPage[Snapshot] = SearchPage(items=(), next=None, searched=0, until=None)
ID = 26


def router(site: "Site") -> APIRouter:
    pages = site.resource("/runs")
    hf = site.hf

    @pages.get("", name="holdfast.runs")
    def runs(request: Request, who: Annotated[Who, Depends(site.viewer)]) -> Response:
        """Return one page of runs, with a tab and a count for each state."""
        if "q" in request.query_params:
            return RedirectResponse(_search_target(hf, request, request.query_params["q"].strip()), 303)
        query, wrong = parse(request.query_params), None
        page, run_filter = EMPTY, RunFilter()
        try:
            run_filter = query.filter
            page = hf.search(run_filter, limit=LIMIT, after=query.after)
        except InvalidArguments as error:
            wrong = str(error)
        progress = hf.pipelines.progress(page.items)
        return site.render(
            request,
            who,
            "runs.html",
            filter_query=query,
            words={name: query.words.get(name, "") for name in FIELDS},
            run_filter=run_filter,
            page=page,
            counts=None if query.narrowed else hf.counts(),
            # The counts include stages and segments, because counting without them takes a hundred times as long.
            parts_counted=not (query.narrowed or query.parts) and bool(hf.pipelines.list(limit=1)),
            states=STATES,
            wrong=wrong,
            progress=progress,
            notes={run.id: note(run, progress.get(run.id)) for run in page.items},
            jobs=sorted(hf.jobs),
            refusal=None if run_filter.job is None else hf.jobs.refusal(run_filter.job),
            may_steer=who.may("operator") and wrong is None,
        )

    @pages.get("/tabs", name="holdfast.runs.tabs")
    def tabs(request: Request, who: Annotated[Who, Depends(site.viewer)]) -> Response:
        """Return the tabs for a filter. The page loads them later, because counting takes longer than searching."""
        query = parse(request.query_params)
        counts = hf.counts(query.filter)
        return site.render(request, who, "runs_tabs.html", filter_query=query, counts=counts, states=STATES)

    @pages.get("/matching", name="holdfast.runs.matching")
    def matching(
        request: Request, action: Literal["cancel", "again"], who: Annotated[Who, Depends(site.operator)]
    ) -> Response:
        """Return the number of matching runs, and a form that confirms the action."""
        run_filter = parse(request.query_params).filter
        if action == "again" and run_filter.job is not None:
            hf.jobs.require_open(run_filter.job)
        counts = [hf.count(one) for one in _affected(run_filter, action)]
        count = Count(sum(one.number for one in counts), any(one.more for one in counts))
        template = "runs_matching.html" if "hx-request" in request.headers else "runs_confirm.html"
        return site.render(request, who, template, action=action, count=count, filter=json.dumps(run_filter.to_json()))

    @pages.post("/matching", name="holdfast.runs.bulk")
    def bulk(
        request: Request,
        who: Annotated[Who, Depends(site.operator)],
        action: Annotated[Literal["cancel", "again"], Form()],
        filter: Annotated[str, Form(max_length=20_000)],
        reason: Annotated[str, Form(max_length=1000)] = "",
    ) -> Response:
        """Start a background run that performs the action, and redirect to it."""
        try:
            run_filter = RunFilter.from_json(json.loads(filter))
        except (ValueError, TypeError, AttributeError):
            raise InvalidArguments("filter must be the JSON that the page provides") from None
        if action == "cancel":
            run = hf.bulk.cancel(run_filter, reason=reason.strip() or f"cancelled by {who.name}", by=who.name)
        else:
            run = hf.bulk.again(run_filter, by=who.name)
        return RedirectResponse(request.url_for("holdfast.run", run_id=run.id).path, 303)

    return pages


def _affected(run_filter: RunFilter, action: str) -> list[RunFilter]:
    """Return a filter for each state that the action applies to: unfinished runs to cancel, ended runs to repeat."""
    states = STATES[:2] if action == "cancel" else STATES[2:]
    return [run_filter.in_state(state) for state in states if run_filter.state in (None, state)]


def _search_target(hf: "Holdfast", request: Request, text: str) -> str:
    """Return the page that a search leads to: a run by the start of its id, the runs of a job, or the runs of a key."""
    runs = request.url_for("holdfast.runs").path
    lower = text.lower()
    if 4 <= len(lower) <= ID and lower.isalnum() and lower.isascii():
        ids = hf.find_ids(lower, limit=2) if len(lower) < ID else [*hf.read(lambda tx: run_markers(tx, [lower]))]
        if len(ids) == 1:
            return str(request.url_for("holdfast.run", run_id=ids[0]).path)
    if not text:
        return str(runs)
    jobs = [name for name in hf.jobs if name == text or name.rpartition(".")[2] == text]
    word = {"job": jobs[0]} if len(jobs) == 1 else {"key": text}
    return f"{runs}?{FilterQuery(words=word).query()}"
