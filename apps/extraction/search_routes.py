"""Search routes: find the passages that answer a question."""
# No `from __future__ import annotations` here: FastAPI could not resolve annotations that use the local `site`.

import math
from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request, Response

from apps.extraction import schemas
from apps.extraction.circuit_breaker import CircuitOpen
from apps.extraction.clean_text import plain
from apps.extraction.jobs import breaker, embedder, store
from apps.extraction.providers import ServiceError
from apps.extraction.search import MAX_QUESTION, Match, answer, marks
from holdfast.web import Problem, Site, Who, wants_page


def router(site: Site) -> APIRouter:
    routes = site.resource(tags=["search"])

    @routes.get("/search", name="extraction.search", response_model=schemas.SearchResult)
    def search_passages(
        request: Request,
        who: Annotated[Who, Depends(site.viewer)],
        q: Annotated[str, Query(max_length=MAX_QUESTION)] = "",
        limit: Annotated[int, Query(ge=1, le=50)] = 10,
    ) -> Response | schemas.SearchResult:
        """Find the passages that answer a question best, best first."""
        question = plain(q, MAX_QUESTION)
        matches = _search(question, limit)
        if wants_page(request):
            shown = [(match, marks(match.passage.text, match.matched)) for match in matches]
            return site.render(request, who, "search.html", question=question, shown=shown)
        return schemas.SearchResult(question=question, passages=[_passage_view(match) for match in matches])

    return routes


def _search(question: str, limit: int) -> list[Match]:
    if not question:
        return []
    try:
        [vector] = breaker.call(embedder().name, lambda: embedder().embed([question]))
    except CircuitOpen as error:
        wait = {"Retry-After": str(math.ceil(error.wait.total_seconds()))}
        raise Problem("embeddings_unavailable", str(error), status=503, headers=wait) from error
    except ServiceError as error:
        raise Problem("embeddings_unavailable", str(error), status=503) from error
    return answer(store, question, vector, limit=limit)


def _passage_view(match: Match) -> schemas.PassageView:
    passage = match.passage
    return schemas.PassageView(
        document_id=passage.document_id,
        document=passage.name,
        page=passage.page,
        start=passage.start,
        end=passage.end,
        text=passage.text,
        score=round(match.score, 4),
        alike=match.alike,
    )
