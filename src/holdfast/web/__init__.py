"""holdfast.web: the API, the dashboard, and what an application's own pages share with them.

app = FastAPI(lifespan=hf.lifespan)
app.include_router(hf.router(), prefix="/holdfast")        # API and dashboard
"""

from holdfast.passes import Role
from holdfast.web.access import Who
from holdfast.web.asgi import create_app
from holdfast.web.problems import Problem
from holdfast.web.site import Site

__all__ = ["Problem", "Role", "Site", "Who", "create_app"]
