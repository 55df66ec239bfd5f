"""python -m apps.ade.submit_samples: adds the samples, submits each once, then one of them now and then."""

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
from apps.ade.jobs import database, given, hf
from apps.ade.tables import Configuration, Document, Run, Workspace
from apps.shared.ids import new_id
from apps.shared.stop_signal import stop_event
from holdfast import QueueFull

SAMPLES = Path(__file__).parent / "samples"
WORKSPACE = "Samples"
BY = {
    "invoices-march-2026.xlsx": "supplier-invoices",
    "open-items-by-region.xlsx": "supplier-invoices",
    "rechnungen-quartal-1.csv": "supplier-invoices",
    "supplier-ledger-jan-feb.xlsx": "supplier-invoices",
    "vendor-invoices-export.csv": "supplier-invoices",
    "personal-export.csv": "employee-roster",
    "staff-list-march.xlsx": "employee-roster",
}
"""Which configuration each sample is for."""

log = logging.getLogger("ade.submit_samples")


def main() -> int:
    logging.basicConfig(level="INFO", stream=sys.stdout, format="%(asctime)s %(message)s")
    stop = stop_event()
    with hf:
        with database.write() as session:
            asked = bring(session)
        log.info("ready: %d samples are there, %d of them to be normalised", len(BY), len(asked))
        keep_asking(asked, pause=lambda: stop.wait(given.samples_every.total_seconds()))
    return 0


def keep_asking(first: list[str], *, pause: Callable[[], bool]) -> None:
    """RequestBody for these at once, then for one sample after each pause, until a pause says that it is over."""
    for name in first:
        ask(name)
    for name in itertools.cycle(sorted(BY)):
        if pause():
            break
        ask(name)


def bring(session: Session) -> list[str]:
    """See that the samples are there; the names of those that no run has had yet."""
    workspace = session.scalar(select(Workspace).where(Workspace.name == WORKSPACE))
    if workspace is None:
        workspace = Workspace(id=new_id(datetime.now(UTC)), name=WORKSPACE, created_at=datetime.now(UTC))
        session.add(workspace)
        session.flush()
    workspace_id = workspace.id
    for folder in sorted((SAMPLES / "configurations").iterdir()):
        if folder.is_dir() and _configuration(session, workspace_id, folder.name) is None:
            configurations.create(session, workspace_id, name=folder.name, files=files_in(folder))
    unseen = []
    for name in BY:
        document = _document(session, workspace_id, name)
        if document is None:
            document = _add(session, workspace_id, SAMPLES / "documents" / name)
        if session.scalar(select(Run.id).where(Run.input_document_id == document.id).limit(1)) is None:
            unseen.append(name)
    return unseen


def ask(name: str) -> None:
    """Have one sample normalised."""
    try:
        with database.write() as session:
            workspace = session.scalars(select(Workspace).where(Workspace.name == WORKSPACE)).one()
            configuration = _configuration(session, workspace.id, BY[name])
            document = _document(session, workspace.id, name)
            assert configuration is not None
            assert document is not None
            run_id = runs.submit(session, configuration.id, document.id)
    except QueueFull:
        log.info("the queue is full")
    else:
        log.info("run %s: %s by %s", run_id, name, BY[name])


def files_in(folder: Path) -> dict[str, str]:
    """The files of a configuration's folder; not what tools leave there."""
    found = [file for kind in ("*.toml", "*.py") for file in sorted(folder.rglob(kind))]
    return {str(file.relative_to(folder)): file.read_text("utf-8") for file in found}


def _configuration(session: Session, workspace_id: str, name: str) -> Configuration | None:
    return session.scalar(
        select(Configuration).where(Configuration.workspace_id == workspace_id, Configuration.name == name)
    )


def _document(session: Session, workspace_id: str, name: str) -> Document | None:
    wanted = select(Document).where(Document.workspace_id == workspace_id, Document.name == name)
    return session.scalars(wanted.order_by(Document.id).limit(1)).first()


def _add(session: Session, workspace_id: str, path: Path) -> Document:
    content = path.read_bytes()
    kind = documents.kind_of(content[:4096])
    assert kind is not None, f"{path} is no spreadsheet"
    return documents.add(
        session,
        workspace_id,
        name=path.name,
        media_type=kind,
        size=len(content),
        sha256=hashlib.sha256(content).hexdigest(),
        path=path,
    )


if __name__ == "__main__":
    sys.exit(main())
