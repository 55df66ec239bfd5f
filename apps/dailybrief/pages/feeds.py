"""/feeds: lists the feeds with the result of the last fetch, adds feeds and removes them."""
# No postponed annotations: FastAPI could not resolve those that use the local `site`.

from datetime import datetime
from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import APIRouter, Depends, Form, Path, Query, Request, Response
from fastapi.responses import JSONResponse, RedirectResponse
from pydantic import BaseModel, ConfigDict, Field

from apps.dailybrief import feed_list
from apps.dailybrief.feed_list import ListedFeed
from apps.dailybrief.feeds import feed_address
from apps.dailybrief.feeds.check_url import BadAddress
from apps.dailybrief.settings import Settings
from apps.shared.database import Database
from holdfast.web import Problem, Site, Who, wants_page

LONGEST = 2000
INGESTION = "rss_ingestion"
FeedId = Annotated[int, Path(ge=1, le=2**31 - 1)]


class NewFeed(BaseModel):
    """The body of a request to add a feed."""

    model_config = ConfigDict(extra="forbid")

    url: str = Field(min_length=1, max_length=LONGEST)


def router(site: Site, *, database: Database, settings: Settings) -> APIRouter:
    pages = site.resource("/feeds", tags=["feeds"])

    def add_feed(url: str, now: datetime) -> tuple[dict[str, Any], bool]:
        with database.write() as session:
            try:
                feed, new = feed_list.add(session, url, settings, now=now)
            except BadAddress as error:
                raise Problem(error.code, str(error), status=422) from None
            return to_json(ListedFeed(feed=feed, articles=0)), new

    def remove_feed(feed_id: int, now: datetime) -> None:
        with database.write() as session:
            try:
                feed_list.remove(session, feed_id, now=now)
            except feed_list.UnknownFeed as error:
                raise Problem(error.code, str(error), status=404) from None

    @pages.get("", name="feeds")
    def feeds(
        request: Request,
        who: Annotated[Who, Depends(site.viewer)],
        refused: Annotated[str, Query(max_length=LONGEST)] = "",
    ) -> Response:
        """Lists all feeds with their last fetch and error. The page also shows why the URL in `refused` was refused."""
        with database.read() as session:
            found = feed_list.list_feeds(session)
            if not wants_page(request):
                return JSONResponse({"feeds": [to_json(one) for one in found]})
            next_at = next((one.next_at for one in site.hf.schedules.list() if one.name == INGESTION), None)
            error = _url_error(refused, settings)
            return site.render(request, who, "feeds.html", feeds=found, refused=refused, error=error, next_at=next_at)

    @pages.post("", name="feeds.add", status_code=201)
    def add(request: Request, body: NewFeed, who: Annotated[Who, Depends(site.operator)]) -> Response:
        """Add a feed; answers 200 instead of 201 if it is in the list already."""
        feed, new = add_feed(body.url, site.hf.clock.now())
        return JSONResponse(feed, status_code=201 if new else 200)

    @pages.post("/add", name="feeds.form", include_in_schema=False)
    def add_by_form(
        request: Request,
        who: Annotated[Who, Depends(site.operator)],
        url: Annotated[str, Form(max_length=LONGEST)] = "",
    ) -> Response:
        page = request.url_for("feeds").path
        try:
            add_feed(url.strip(), site.hf.clock.now())
        except Problem:
            return RedirectResponse(f"{page}?{urlencode({'refused': url.strip()})}", 303)
        return RedirectResponse(page, 303)

    @pages.post("/{feed_id}/remove", name="feeds.remove.form", include_in_schema=False)
    def remove_by_form(request: Request, feed_id: FeedId, who: Annotated[Who, Depends(site.operator)]) -> Response:
        remove_feed(feed_id, site.hf.clock.now())
        return RedirectResponse(request.url_for("feeds").path, 303)

    @pages.delete("/{feed_id}", name="feeds.remove", status_code=204)
    def remove(feed_id: FeedId, who: Annotated[Who, Depends(site.operator)]) -> Response:
        """Remove a feed; its articles stay."""
        remove_feed(feed_id, site.hf.clock.now())
        return Response(status_code=204)

    return pages


def _url_error(url: str, settings: Settings) -> str | None:
    """Return why a URL can't be added, or None if it can."""
    try:
        return None if not url or feed_address(url, settings) else ""
    except BadAddress as error:
        return str(error)


def to_json(listed: ListedFeed) -> dict[str, Any]:
    feed = listed.feed

    def instant(at: datetime | None) -> str | None:
        return at.isoformat() if at is not None else None

    return {
        "id": feed.id,
        "url": feed.url,
        "title": feed.title,
        "articles": listed.articles,
        "added_at": instant(feed.added_at),
        "last_fetch_at": instant(feed.last_fetch_at),
        "last_success_at": instant(feed.last_success_at),
        "last_status": feed.last_status,
        "failures": feed.failures or 0,
        "error_code": feed.error_code,
        "error": feed.error,
    }
