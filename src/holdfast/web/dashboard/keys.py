"""/keys: who holds what, and who waits for it."""
# No postponed annotations in files of endpoints: FastAPI could not see the `site` that they close over.

from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter, Depends, Query, Request, Response

from holdfast.web.auth.authentication import Who

if TYPE_CHECKING:
    from holdfast.web.site import Site

PAGE = 100


def router(site: "Site") -> APIRouter:
    pages = site.resource()
    hf = site.hf

    @pages.get("/keys", name="holdfast.keys")
    def keys(
        request: Request,
        who: Annotated[Who, Depends(site.viewer)],
        after: Annotated[str, Query(max_length=2000)] = "",
    ) -> Response:
        found = hf.keys.list(limit=PAGE, after=after)
        more = found[-1].key if len(found) == PAGE else None
        return site.render(request, who, "keys.html", keys=found, after=after, more=more)

    return pages
