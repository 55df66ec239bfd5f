"""/api/operations: who did what by hand, and when."""
# No postponed annotations in files of endpoints: FastAPI could not see the `site` that they close over.

from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Depends
from pydantic import Field

from holdfast.web.api.shapes import USUAL, Cursor, Limit, Shape
from holdfast.web.auth.authentication import Who

if TYPE_CHECKING:
    from holdfast.web.site import Site


class Operation(Shape):
    """What someone did, in the transaction that did it."""

    by: str
    action: str = Field(examples=["cancel"])
    what: dict[str, Any] = Field(description="To what it was done, and with what words.")
    run_id: str | None
    happened_at: datetime
    cursor: str


class Operations(Shape):
    operations: list[Operation]
    next: str | None = Field(description="Go on by ?before=; null at the end.")


def router(site: "Site") -> APIRouter:
    operations = site.resource("/operations", tags=["operations"])
    hf = site.hf

    @operations.get("", name="holdfast.api.operations", summary="Who did what by hand, the newest first")
    def list_operations(
        who: Annotated[Who, Depends(site.viewer)], before: Cursor | None = None, limit: Limit = USUAL
    ) -> Operations:
        found = hf.operations(limit=limit, before=before)
        following = found[-1].cursor if len(found) == limit else None
        return Operations(operations=[Operation.model_validate(one) for one in found], next=following)

    return operations
