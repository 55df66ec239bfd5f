"""/editions: the published briefs, which never change: as a page, Markdown, HTML and JSON feed."""
# No postponed annotations: FastAPI could not resolve `site`, which the endpoints use as a closure.

import json
from datetime import date
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request, Response
from fastapi.responses import JSONResponse
from sqlalchemy import select
from sqlalchemy.orm import Session

from apps.dailybrief.settings import Settings
from apps.dailybrief.tables import Edition
from apps.shared.database import Database
from holdfast.web import Problem, Site, Who, wants_page

MAX_EDITIONS = 400


def router(site: Site, *, database: Database, settings: Settings) -> APIRouter:
    pages = site.resource("/editions", tags=["editions"])

    def get(session: Session, day: date) -> Edition:
        query = select(Edition).where(Edition.day == day, Edition.time_zone == settings.timezone)
        found = session.scalar(query)
        if found is None:
            raise Problem("edition_not_found", f"the brief of {day} is not published", status=404)
        return found

    def respond(day: date, column: str, media_type: str) -> Response:
        with database.read() as session:
            edition = get(session, day)
            headers = {"ETag": f'"{edition.sha256}-{column}"'}
            return Response(getattr(edition, column), media_type=media_type, headers=headers)

    @pages.get("", name="editions")
    def editions(request: Request, who: Annotated[Who, Depends(site.viewer)]) -> Response:
        """All editions, the newest first."""
        own_zone = select(Edition).where(Edition.time_zone == settings.timezone)
        with database.read() as session:
            found = session.scalars(own_zone.order_by(Edition.day.desc()).limit(MAX_EDITIONS)).all()
            if not wants_page(request):
                return JSONResponse({"editions": [to_json(one) for one in found]})
            return site.render(request, who, "editions.html", editions=found)

    @pages.get("/{day}.md", name="edition.markdown")
    def markdown(day: date, who: Annotated[Who, Depends(site.viewer)]) -> Response:
        return respond(day, "markdown", "text/markdown; charset=utf-8")

    @pages.get("/{day}.json", name="edition.json")
    def json_feed(day: date, who: Annotated[Who, Depends(site.viewer)]) -> Response:
        return respond(day, "json_feed", "application/feed+json; charset=utf-8")

    @pages.get("/{day}.html", name="edition.html")
    def html(day: date, who: Annotated[Who, Depends(site.viewer)]) -> Response:
        return respond(day, "html", "text/html; charset=utf-8")

    @pages.get("/{day}", name="edition")
    def edition(request: Request, day: date, who: Annotated[Who, Depends(site.viewer)]) -> Response:
        """One edition, with links to its formats."""
        with database.read() as session:
            found = get(session, day)
            if not wants_page(request):
                return JSONResponse(to_json(found))
            items = [(one["title"], keep_times(one["content_html"])) for one in json.loads(found.json_feed)["items"]]
            return site.render(request, who, "edition.html", edition=found, items=items)

    return pages


def keep_times(text: str) -> str:
    """Mark the times so that the page does not convert them to the reader's time zone."""
    return text.replace("<time ", '<time data-form="printed" ')


def to_json(edition: Edition) -> dict[str, Any]:
    return {
        "day": edition.day.isoformat(),
        "time_zone": edition.time_zone,
        "title": edition.title,
        "published_at": edition.published_at.isoformat(),
        "sha256": edition.sha256,
        "forms": {form: f"/editions/{edition.day}.{form}" for form in ("md", "html", "json")},
    }
