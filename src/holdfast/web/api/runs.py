"""/api/runs: look at runs and steer them."""
# No postponed annotations in files of endpoints: FastAPI could not see the `site` that they close over.

from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Depends

from holdfast.web.access import Who
from holdfast.web.problems import resource

if TYPE_CHECKING:
    from holdfast.web.site import Site


def router(site: "Site") -> APIRouter:
    runs = resource("/runs", tags=["runs"])
    hf = site.hf

    @runs.get("/{run_id}", name="holdfast.api.run")
    def get_run(run_id: str, who: Annotated[Who, Depends(site.viewer)]) -> dict[str, Any]:
        """One run."""
        snapshot = hf.snapshot(run_id)
        return {"id": snapshot.id, "state": snapshot.state}

    return runs
