"""/api/passes: who may look and steer. Secrets are shown once, when they are made."""
# No postponed annotations in files of endpoints: FastAPI could not see the `site` that they close over.

from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter, Depends
from pydantic import Field

from holdfast.values.pages import Page
from holdfast.values.tokens import Pass, Role
from holdfast.web.api.shapes import Ask, Name, Shape
from holdfast.web.auth.authentication import Who

if TYPE_CHECKING:
    from holdfast.web.site import Site

LONGEST = 10 * 366 * 86_400.0  # seconds


class Give(Ask):
    name: Name = Field(description="Whose it is; it stands with all that they do.", examples=["ada"])
    role: Role = "viewer"
    expires: Annotated[float, Field(gt=0, le=LONGEST)] | None = Field(
        default=None, description="For so many seconds; for ever, if it is left out."
    )


class Given(Shape):
    name: str
    role: Role
    token: str = Field(description="It is shown this once and never again.")


def router(site: "Site") -> APIRouter:
    passes = site.resource("/passes", tags=["passes"])
    hf = site.hf

    @passes.get("", name="holdfast.api.passes", summary="Every token and session that is still good")
    def list_passes(who: Annotated[Who, Depends(site.admin)]) -> Page[Pass]:
        return Page.whole(hf.passes.list())

    @passes.post("", status_code=201, name="holdfast.api.give_pass", summary="Give someone a token")
    def give_pass(asked: Give, who: Annotated[Who, Depends(site.admin)]) -> Given:
        """To someone who has none. Whoever has the token may do what its role may."""
        token = hf.passes.add(asked.name, role=asked.role, expires=asked.expires, by=who.name)
        return Given(name=asked.name, role=asked.role, token=token)

    @passes.delete("/{name:path}", status_code=204, name="holdfast.api.take_pass", summary="Take someone's token back")
    def take_pass(name: Name, who: Annotated[Who, Depends(site.admin)]) -> None:
        """The sessions that it began end with it."""
        hf.passes.remove(name, by=who.name)

    return passes
