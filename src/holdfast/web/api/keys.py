"""/api/keys: list keys, with the runs that hold them and the number of runs that wait for them."""
# No `from __future__ import annotations` in endpoint modules: FastAPI could not resolve the local name `site`.

from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter, Depends
from pydantic import StringConstraints

from holdfast.values.keys import Key
from holdfast.values.pages import Page
from holdfast.web.api.shapes import USUAL, Limit
from holdfast.web.auth.authentication import Who

if TYPE_CHECKING:
    from holdfast.web.site import Site

After = Annotated[str, StringConstraints(max_length=400, pattern=r"^[^\x00]*$")]


def router(site: "Site") -> APIRouter:
    keys = site.resource("/keys", tags=["keys"])
    hf = site.hf

    @keys.get("", name="holdfast.api.keys", summary="List keys that runs hold or wait for")
    def list_keys(who: Annotated[Who, Depends(site.viewer)], after: After = "", limit: Limit = USUAL) -> Page[Key]:
        """Sorted by key. Pass `next` as `?after=` for the next page."""
        return Page.of(hf.keys.list(limit=limit, after=after), limit=limit, cursor=lambda key: key.key)

    return keys
