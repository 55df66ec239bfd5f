"""/editions: the briefs that were published, each for ever as it was: as a page, Markdown, HTML and JSON feed."""
# No postponed annotations in files of endpoints: FastAPI could not see the `site` that they close over.

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

MOST = 400


def router(site: Site, *, database: Database, settings: Settings) -> APIRouter:
    pages = site.resource("/editions", tags=["editions"])

    def of(session: Session, day: date) -> Edition:
        wanted = select(Edition).where(Edition.day == day, Edition.time_zone == settings.timezone)
        found = session.scalar(wanted)
        if found is None:
            raise Problem("edition_not_found", f"no brief of {day} has been published", status=404)
        return found

    def sent(day: date, form: str, media_type: str) -> Response:
        with database.read() as session:
            edition = of(session, day)
            headers = {"ETag": f'"{edition.sha256}-{form}"'}
            return Response(getattr(edition, form), media_type=media_type, headers=headers)

    @pages.get("", name="editions")
    def editions(request: Request, who: Annotated[Who, Depends(site.viewer)]) -> Response:
        """What was published, the newest first."""
        wanted = select(Edition).where(Edition.time_zone == settings.timezone).order_by(Edition.day.desc()).limit(MOST)
        with database.read() as session:
            found = session.scalars(wanted).all()
            if not wants_page(request):
                return JSONResponse({"editions": [told(one) for one in found]})
            return site.render(request, who, "editions.html", editions=found)

    @pages.get("/{day}.md", name="edition.markdown")
    def markdown(day: date, who: Annotated[Who, Depends(site.viewer)]) -> Response:
        return sent(day, "markdown", "text/markdown; charset=utf-8")

    @pages.get("/{day}.json", name="edition.json")
    def json_feed(day: date, who: Annotated[Who, Depends(site.viewer)]) -> Response:
        return sent(day, "json_feed", "application/feed+json; charset=utf-8")

    @pages.get("/{day}.html", name="edition.html")
    def html(day: date, who: Annotated[Who, Depends(site.viewer)]) -> Response:
        return sent(day, "html", "text/html; charset=utf-8")

    @pages.get("/{day}", name="edition")
    def edition(request: Request, day: date, who: Annotated[Who, Depends(site.viewer)]) -> Response:
        """One edition: its facts and where its forms are."""
        with database.read() as session:
            found = of(session, day)
            if not wants_page(request):
                return JSONResponse(told(found))
            items = [(one["title"], printed(one["content_html"])) for one in json.loads(found.json_feed)["items"]]
            return site.render(request, who, "edition.html", edition=found, items=items)

    return pages


def printed(text: str) -> str:
    """What was published, with the times that it says: the page must not turn them into the reader's own."""
    return text.replace("<time ", '<time data-form="printed" ')


def told(edition: Edition) -> dict[str, Any]:
    return {
        "day": edition.day.isoformat(),
        "time_zone": edition.time_zone,
        "title": edition.title,
        "published_at": edition.published_at.isoformat(),
        "sha256": edition.sha256,
        "forms": {form: f"/editions/{edition.day}.{form}" for form in ("md", "html", "json")},
    }
