"""/api/operations: who did what by hand, and when."""
# No postponed annotations in files of endpoints: FastAPI could not see the `site` that they close over.

from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter, Depends

from holdfast.values.audit import Operation
from holdfast.values.pages import Page
from holdfast.web.api.shapes import USUAL, Cursor, Limit
from holdfast.web.auth.authentication import Who

if TYPE_CHECKING:
    from holdfast.web.site import Site


def router(site: "Site") -> APIRouter:
    operations = site.resource("/operations", tags=["operations"])
    hf = site.hf

    @operations.get("", name="holdfast.api.operations", summary="Who did what by hand, the newest first")
    def list_operations(
        who: Annotated[Who, Depends(site.viewer)], before: Cursor | None = None, limit: Limit = USUAL
    ) -> Page[Operation]:
        """Go on by ?before=."""
        return Page.of(hf.operations(limit=limit, before=before), limit=limit, cursor=lambda done: done.cursor)

    return operations
