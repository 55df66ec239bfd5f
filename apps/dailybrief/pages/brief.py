"""/: today's brief, as it is now."""
# No postponed annotations: FastAPI could not resolve `site`, which the endpoints use as a closure.

from typing import Annotated

from fastapi import APIRouter, Depends, Request, Response
from fastapi.responses import JSONResponse
from sqlalchemy import func, select

from apps.dailybrief import brief_events, editions
from apps.dailybrief.settings import Settings
from apps.dailybrief.tables import Edition, Feed
from apps.shared.database import Database
from holdfast.web import Site, Who, wants_page


def router(site: Site, *, database: Database, settings: Settings) -> APIRouter:
    pages = site.resource("", tags=["brief"])

    @pages.get("/", name="brief")
    def brief(request: Request, who: Annotated[Who, Depends(site.viewer)]) -> Response:
        """The events of today, ranked by the number of sources and the age of the latest article."""
        now = site.hf.clock.now()
        day = brief_events.day_of(now, settings.zone)
        with database.read() as session:
            events = editions.events_of_today(session, settings, now=now)
            edition = session.scalar(select(Edition).where(Edition.day == day, Edition.time_zone == settings.timezone))
            published = day.isoformat() if edition is not None else None
            if not wants_page(request):
                return JSONResponse(
                    {
                        "day": day.isoformat(),
                        "as_of": now.isoformat(),
                        "edition": published,
                        "events": [brief_events.to_json(event) for event in events],
                    }
                )
            fetched_at = session.scalar(select(func.max(Feed.last_success_at)))
            feeds = session.scalar(select(func.count()).select_from(Feed).where(Feed.removed_at.is_(None)))
            failing = session.scalar(
                select(func.count()).select_from(Feed).where(Feed.removed_at.is_(None), Feed.error.is_not(None))
            )
            return site.render(
                request,
                who,
                "brief.html",
                day=day,
                events=events,
                published=published,
                fetched_at=fetched_at,
                feeds=feeds,
                failing=failing,
                articles=sum(len(event.articles) for event in events),
                sources={source for event in events for source in event.sources},
            )

    return pages
