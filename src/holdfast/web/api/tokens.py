"""/api/tokens: create, list and revoke tokens. A token is shown once, when it is created."""
# No `from __future__ import annotations` in endpoint modules: FastAPI could not resolve the local name `site`.

from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter, Depends
from pydantic import Field

from holdfast.values.pages import Page
from holdfast.values.tokens import Role, Token
from holdfast.web.api.shapes import Name, RequestBody, Shape
from holdfast.web.auth.authentication import Who

if TYPE_CHECKING:
    from holdfast.web.site import Site

LONGEST = 10 * 366 * 86_400.0  # seconds


class NewToken(RequestBody):
    name: Name = Field(description="The owner of the token; recorded with every change made with it.", examples=["ada"])
    role: Role = "viewer"
    expires: Annotated[float, Field(gt=0, le=LONGEST)] | None = Field(
        default=None, description="Valid for this many seconds; without it, until it is revoked."
    )


class CreatedToken(Shape):
    name: str
    role: Role
    token: str = Field(description="The secret; it is never shown again.")


def router(site: "Site") -> APIRouter:
    tokens = site.resource("/tokens", tags=["tokens"])
    hf = site.hf

    @tokens.get("", name="holdfast.api.tokens", summary="List valid tokens and sessions")
    def list_tokens(who: Annotated[Who, Depends(site.admin)]) -> Page[Token]:
        return Page.whole(hf.tokens.list())

    @tokens.post("", status_code=201, name="holdfast.api.create_token", summary="Create a token")
    def create_token(body: NewToken, who: Annotated[Who, Depends(site.admin)]) -> CreatedToken:
        """The name must not have a token yet."""
        token = hf.tokens.add(body.name, role=body.role, expires=body.expires, by=who.name)
        return CreatedToken(name=body.name, role=body.role, token=token)

    @tokens.delete("/{name:path}", status_code=204, name="holdfast.api.revoke_token", summary="Revoke a token")
    def revoke_token(name: Name, who: Annotated[Who, Depends(site.admin)]) -> None:
        """Sessions that were started with it end, too."""
        hf.tokens.remove(name, by=who.name)

    return tokens
