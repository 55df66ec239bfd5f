"""/runs/ID: the page of one run, with its log, artifacts and actions."""
# No `from __future__ import annotations` in endpoint modules: FastAPI could not resolve the local name `site`.

import json
import shlex
from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter, Depends, Form, Query, Request, Response
from fastapi.responses import RedirectResponse

from holdfast.runs import events
from holdfast.support.text import steers
from holdfast.values.runs import Snapshot
from holdfast.web.auth.authentication import Who
from holdfast.web.dashboard import previews, timeline, tracebacks

if TYPE_CHECKING:
    from holdfast.web.site import Site

LINES = 500  # log lines per response
ARTIFACTS = 200
COPIED = 20_000  # characters of arguments; a run with longer ones offers no command to copy
LOGGED = ("LOG", "STEP_RETRIED")


def router(site: "Site") -> APIRouter:
    pages = site.resource("/runs")
    hf = site.hf

    @pages.get("/{run_id}", name="holdfast.run")
    def run(request: Request, run_id: str, who: Annotated[Who, Depends(site.viewer)]) -> Response:
        details = hf.run_details(run_id)
        found = details.run
        refusal = hf.jobs.refusal(found.job, found.policy)
        artifacts = hf.artifacts.of(found.id, limit=ARTIFACTS + 1)
        recorded = [event for _, event in details.recorded]
        return site.render(
            request,
            who,
            "run.html",
            run=found,
            details=details,
            timeline=timeline.of(details, now=hf.clock.now()),
            chain=tracebacks.chain(found.error) if found.error else (),
            arguments=found.arguments,
            artifacts=[(one, previews.kind_of(one)) for one in artifacts[:ARTIFACTS]],
            more_artifacts=len(artifacts) > ARTIFACTS,
            log=[event for event in recorded if event.kind in LOGGED],
            happened=[event for event in recorded if event.kind not in ("LOG", "PROGRESS")],
            progress=next((event.data for event in reversed(recorded) if event.kind == "PROGRESS"), None),
            renewed_at=None if found.expires_at is None else found.expires_at - hf.settings.lease,
            refusal=refusal,
            cli=None if refusal else as_command(found),
            curl=None if refusal else as_curl(found, str(request.url_for("holdfast.api.submit"))),
            may_steer=who.may("operator"),
        )

    @pages.get("/{run_id}/log", name="holdfast.run.log")
    def log(
        request: Request,
        run_id: str,
        who: Annotated[Who, Depends(site.viewer)],
        after: Annotated[int, Query(ge=0, le=2**62)] = 0,
    ) -> Response:
        """Return the log lines after an event, for a page that follows the log."""
        found = hf.read(lambda tx: events.of(tx, run_id, after=after, limit=LINES))
        log = [event for _, event in found if event.kind in LOGGED]
        response = site.render(request, who, "run_log.html", log=log)
        response.headers["Holdfast-After"] = str(found[-1][0] if found else after)
        response.headers["Holdfast-More"] = "1" if len(found) == LINES else "0"
        return response

    @pages.get("/{run_id}/artifacts/{name}", name="holdfast.run.preview")
    def preview(request: Request, run_id: str, name: str, who: Annotated[Who, Depends(site.viewer)]) -> Response:
        """Return the preview of an artifact, which the page inserts."""
        artifact = hf.artifacts.get(run_id, name)
        return site.render(request, who, "run_preview.html", artifact=artifact, preview=previews.of(artifact))

    @pages.post("/{run_id}/cancel", name="holdfast.run.cancel")
    def cancel(
        request: Request,
        run_id: str,
        who: Annotated[Who, Depends(site.operator)],
        reason: Annotated[str, Form(max_length=1000)] = "",
    ) -> Response:
        hf.cancel(run_id, reason=reason.strip() or f"cancelled by {who.name}", by=who.name)
        return RedirectResponse(request.url_for("holdfast.run", run_id=run_id).path, 303)

    @pages.post("/{run_id}/again", name="holdfast.run.again")
    def again(request: Request, run_id: str, who: Annotated[Who, Depends(site.operator)]) -> Response:
        new = hf.again(run_id, by=who.name)
        return RedirectResponse(request.url_for("holdfast.run", run_id=new.id).path, 303)

    return pages


def as_command(run: Snapshot) -> str | None:
    """Return the command that submits a run like this one, or None if no command can."""
    given = _copied(run)
    if given is None:
        return None
    options = [f"--queue {word(run.queue)}"] + ([f"--key {word(run.key)}"] if run.key else [])
    return f"holdfast submit APP {word(run.job)} --json-args {shlex.quote(given)} {' '.join(options)}"


def word(text: str) -> str:
    """Quote a word for a shell, with control characters escaped.

    If an escape sequence were pasted unchanged, it could end the paste and run the text after it as a command.
    """
    if not any(map(steers, text)):
        return shlex.quote(text)
    spelled = (f"\\U{ord(char):08x}" if steers(char) or char in "\\'" else char for char in text)
    return f"$'{''.join(spelled)}'"


def as_curl(run: Snapshot, url: str) -> str | None:
    """Return the curl command that submits a run like this one. The user sets HOLDFAST_TOKEN to their own token."""
    given = _copied(run)
    if given is None:
        return None
    key = {"key": run.key} if run.key else {}
    body = json.dumps({"job": run.job, "args": json.loads(given), "queue": run.queue, **key})
    return (
        f"curl {shlex.quote(url)} -H \"Authorization: Bearer $HOLDFAST_TOKEN\" -H 'Content-Type: application/json'"
        f" -d {shlex.quote(body)}"
    )


def _copied(run: Snapshot) -> str | None:
    if run.kind in ("stage", "segment", "build"):
        return None
    text = json.dumps(run.arguments or {}, default=str)
    return text if len(text) <= COPIED else None
