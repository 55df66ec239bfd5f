"""/: the overview."""

from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter, Depends, Request, Response

from holdfast.web.access import Who

if TYPE_CHECKING:
    from holdfast.web.site import Site


def router(site: "Site") -> APIRouter:
    pages = site.resource()

    @pages.get("/", name="holdfast.overview")
    def overview(request: Request, who: Annotated[Who, Depends(site.viewer)]) -> Response:
        return site.render(request, who, "overview.html")

    return pages
