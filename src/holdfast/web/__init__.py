"""holdfast.web: the API, the dashboard, and the building blocks for an application's own pages.

app = FastAPI(lifespan=hf.lifespan)
app.include_router(hf.router(), prefix="/holdfast")        # API and dashboard

site = Site(hf, templates=…)                               # with pages of your own: `holdfast serve app:site`
"""

from holdfast.values.tokens import Role
from holdfast.web.asgi import create_app
from holdfast.web.auth.authentication import Who
from holdfast.web.live.streams import Streams
from holdfast.web.problems import Problem
from holdfast.web.routes import is_open, takes, wants_page
from holdfast.web.site import Site
from holdfast.web.uploads import IMAGES, PDF, Received, Upload, magic

__all__ = [
    "IMAGES",
    "PDF",
    "Problem",
    "Received",
    "Role",
    "Site",
    "Streams",
    "Upload",
    "Who",
    "create_app",
    "is_open",
    "magic",
    "takes",
    "wants_page",
]
