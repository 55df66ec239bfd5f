"""/api/audit: the audit log of operator actions."""
# No `from __future__ import annotations` in endpoint modules: FastAPI could not resolve the local name `site`.

from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter, Depends

from holdfast.values.audit import AuditEntry
from holdfast.values.pages import Page
from holdfast.web.api.shapes import USUAL, Cursor, Limit
from holdfast.web.auth.authentication import Who

if TYPE_CHECKING:
    from holdfast.web.site import Site


def router(site: "Site") -> APIRouter:
    audit = site.resource("/audit", tags=["audit"])
    hf = site.hf

    @audit.get("", name="holdfast.api.audit", summary="List operator actions, the newest first")
    def list_audit_entries(
        who: Annotated[Who, Depends(site.viewer)], before: Cursor | None = None, limit: Limit = USUAL
    ) -> Page[AuditEntry]:
        """Each entry says who did what, and when. Pass `next` as `?before=` for the next page."""
        return Page.of(hf.audit_log(limit=limit, before=before), limit=limit, cursor=lambda done: done.cursor)

    return audit
