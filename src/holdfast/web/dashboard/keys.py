"""/keys: the list of keys, with the runs that hold them and the number of runs that wait for them."""
# No `from __future__ import annotations` in endpoint modules: FastAPI could not resolve the local name `site`.

from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter, Depends, Query, Request, Response

from holdfast.values.pages import Page
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
        page = Page.of(hf.keys.list(limit=PAGE, after=after), limit=PAGE, cursor=lambda key: key.key)
        return site.render(request, who, "keys.html", keys=page.items, after=after, more=page.next)

    return pages
