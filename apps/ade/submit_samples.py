"""python -m apps.ade.submit_samples: adds the samples, submits each that has no run, then one every 20 seconds."""

from __future__ import annotations

import hashlib
import itertools
import logging
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from sqlalchemy import select
from sqlalchemy.orm import Session

from apps.ade import configurations, documents, runs
from apps.ade.jobs import database, hf, settings
from apps.ade.tables import Configuration, Document, Run, Workspace
from apps.shared.ids import new_id
from apps.shared.stop_signal import stop_event
from holdfast import QueueFull

SAMPLES = Path(__file__).parent / "samples"
WORKSPACE = "Samples"
CONFIGURATION_OF = {
    "invoices-march-2026.xlsx": "supplier-invoices",
    "open-items-by-region.xlsx": "supplier-invoices",
    "rechnungen-quartal-1.csv": "supplier-invoices",
    "supplier-ledger-jan-feb.xlsx": "supplier-invoices",
    "vendor-invoices-export.csv": "supplier-invoices",
    "personal-export.csv": "employee-roster",
    "staff-list-march.xlsx": "employee-roster",
}
"""The configuration that normalises each sample."""

log = logging.getLogger("ade.submit_samples")


def main() -> int:
    logging.basicConfig(level="INFO", stream=sys.stdout, format="%(asctime)s %(message)s")
    stop = stop_event()
    with hf:
        with database.write() as session:
            new = add_samples(session)
        log.info("ready: %d samples, %d of them not normalised yet", len(CONFIGURATION_OF), len(new))
        submit_forever(new, pause=lambda: stop.wait(settings.samples_every.total_seconds()))
    return 0


def submit_forever(first: list[str], *, pause: Callable[[], bool]) -> None:
    """Submit these samples at once, then one sample after each pause, until `pause` returns True."""
    for name in first:
        submit(name)
    for name in itertools.cycle(sorted(CONFIGURATION_OF)):
        if pause():
            break
        submit(name)


def add_samples(session: Session) -> list[str]:
    """Add the samples that are missing, and return the names of those without a run."""
    workspace = session.scalar(select(Workspace).where(Workspace.name == WORKSPACE))
    if workspace is None:
        workspace = Workspace(id=new_id(datetime.now(UTC)), name=WORKSPACE, created_at=datetime.now(UTC))
        session.add(workspace)
        session.flush()
    workspace_id = workspace.id
    for folder in sorted((SAMPLES / "configurations").iterdir()):
        if folder.is_dir() and _configuration(session, workspace_id, folder.name) is None:
            configurations.create(session, workspace_id, name=folder.name, files=files_in(folder))
    without_run = []
    for name in CONFIGURATION_OF:
        document = _document(session, workspace_id, name)
        if document is None:
            document = _add(session, workspace_id, SAMPLES / "documents" / name)
        if session.scalar(select(Run.id).where(Run.input_document_id == document.id).limit(1)) is None:
            without_run.append(name)
    return without_run


def submit(name: str) -> None:
    """Submit a run for one sample."""
    try:
        with database.write() as session:
            workspace = session.scalars(select(Workspace).where(Workspace.name == WORKSPACE)).one()
            configuration = _configuration(session, workspace.id, CONFIGURATION_OF[name])
            document = _document(session, workspace.id, name)
            assert configuration is not None
            assert document is not None
            run_id = runs.submit(session, configuration.id, document.id)
    except QueueFull:
        log.info("did not submit %s: the queue is full", name)
    else:
        log.info("submitted run %s: %s with %s", run_id, name, CONFIGURATION_OF[name])


def files_in(folder: Path) -> dict[str, str]:
    """Read the TOML and Python files of a configuration's folder."""
    files = [file for pattern in ("*.toml", "*.py") for file in sorted(folder.rglob(pattern))]
    return {str(file.relative_to(folder)): file.read_text("utf-8") for file in files}


def _configuration(session: Session, workspace_id: str, name: str) -> Configuration | None:
    return session.scalar(
        select(Configuration).where(Configuration.workspace_id == workspace_id, Configuration.name == name)
    )


def _document(session: Session, workspace_id: str, name: str) -> Document | None:
    query = select(Document).where(Document.workspace_id == workspace_id, Document.name == name)
    return session.scalars(query.order_by(Document.id).limit(1)).first()


def _add(session: Session, workspace_id: str, path: Path) -> Document:
    content = path.read_bytes()
    media_type = documents.kind_of(content[:4096])
    assert media_type is not None, f"{path} is not a spreadsheet"
    return documents.add(
        session,
        workspace_id,
        name=path.name,
        media_type=media_type,
        size=len(content),
        sha256=hashlib.sha256(content).hexdigest(),
        path=path,
    )


if __name__ == "__main__":
    sys.exit(main())
