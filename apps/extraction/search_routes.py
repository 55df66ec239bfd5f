"""/search: the passages that answer a question."""
# No postponed annotations in files of endpoints: FastAPI could not see the `site` that they close over.

import math
from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request, Response

from apps.extraction import schemas
from apps.extraction.circuit_breaker import Away
from apps.extraction.clean_text import plain
from apps.extraction.jobs import breaker, embedder, store
from apps.extraction.providers import Trouble
from apps.extraction.search import LONGEST, Found, answer, marks
from holdfast.web import Problem, Site, Who, wants_page


def router(site: Site) -> APIRouter:
    finding = site.resource(tags=["search"])

    @finding.get("/search", name="extraction.search", response_model=schemas.SearchResult)
    def search_passages(
        request: Request,
        who: Annotated[Who, Depends(site.viewer)],
        q: Annotated[str, Query(max_length=LONGEST)] = "",
        limit: Annotated[int, Query(ge=1, le=50)] = 10,
    ) -> Response | schemas.SearchResult:
        """The passages whose meaning is nearest to a question, best first."""
        asked = plain(q, LONGEST)
        found = _found(asked, limit)
        if wants_page(request):
            shown = [(one, marks(one.passage.text, one.words)) for one in found]
            return site.render(request, who, "search.html", question=asked, shown=shown)
        return schemas.SearchResult(question=asked, passages=[_told(one) for one in found])

    return finding


def _found(question: str, limit: int) -> list[Found]:
    if not question:
        return []
    try:
        [vector] = breaker.ask(embedder().name, lambda: embedder().embed([question]))
    except Away as error:
        wait = {"Retry-After": str(math.ceil(error.wait.total_seconds()))}
        raise Problem("embeddings_unavailable", str(error), status=503, headers=wait) from error
    except Trouble as error:
        raise Problem("embeddings_unavailable", str(error), status=503) from error
    return answer(store, question, vector, limit=limit)


def _told(found: Found) -> schemas.PassageView:
    passage = found.passage
    return schemas.PassageView(
        document_id=passage.document_id,
        document=passage.name,
        page=passage.page,
        start=passage.start,
        end=passage.end,
        text=passage.text,
        score=round(found.score, 4),
        alike=found.alike,
    )
