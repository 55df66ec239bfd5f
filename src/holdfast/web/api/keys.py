"""/api/keys: who holds what, and who waits for it."""
# No postponed annotations in files of endpoints: FastAPI could not see the `site` that they close over.

from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Literal

from fastapi import APIRouter, Depends
from pydantic import Field, StringConstraints

from holdfast.web.api.shapes import USUAL, Limit, Shape
from holdfast.web.auth.authentication import Who

if TYPE_CHECKING:
    from holdfast.web.site import Site

After = Annotated[str, StringConstraints(max_length=400, pattern=r"^[^\x00]*$")]


class Holder(Shape):
    run_id: str
    state: Literal["running", "ready", "waits"]
    worker: str | None
    due_at: datetime | None
    started_at: datetime | None


class Key(Shape):
    """A key: how many may hold it at once, who does, how many wait, and since when the oldest of these."""

    key: str
    limit: int
    holders: list[Holder]
    waiting: int
    oldest_at: datetime | None


class Keys(Shape):
    keys: list[Key]
    next: str | None = Field(description="Go on by ?after=; null at the end.")


def router(site: "Site") -> APIRouter:
    keys = site.resource("/keys", tags=["keys"])
    hf = site.hf

    @keys.get("", name="holdfast.api.keys", summary="Keys that someone holds or waits for, in their order")
    def list_keys(who: Annotated[Who, Depends(site.viewer)], after: After = "", limit: Limit = USUAL) -> Keys:
        found = hf.keys.list(limit=limit, after=after)
        following = found[-1].key if len(found) == limit else None
        return Keys(keys=[Key.model_validate(key) for key in found], next=following)

    return keys
