"""/live: the stream that tells a page when something that it shows has changed."""
# No `from __future__ import annotations` in endpoint modules: FastAPI could not resolve the local name `site`.

from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter, Depends, Query, Response

from holdfast.web.auth.authentication import Who
from holdfast.web.routes import resource

if TYPE_CHECKING:
    from holdfast.web.site import Site


def router(site: "Site") -> APIRouter:
    pages = resource(site)

    @pages.get("/live", name="holdfast.live")
    async def live(
        who: Annotated[Who, Depends(site.viewer)], topics: Annotated[str, Query(max_length=5000)] = "runs"
    ) -> Response:
        """Send `changed` with the topics that have changed, at most twice a second."""
        return site.streams.topics([topic.strip() for topic in topics.split(",") if topic.strip()])

    return pages
