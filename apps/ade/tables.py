"""Tables: ade's own data. The states of runs and builds are stored only in Holdfast's tables.

The views `ade_runs` and `ade_builds` join these tables with Holdfast's for SQL clients. `migrations` creates the tables
and the views.

workspaces ─┬─ documents ── contents           the bytes of documents by their digest, in pieces
            └─ configurations ── versions      the files of a configuration, as each version was saved
                      └── builds               one per configuration and fingerprint
                             └── runs          one document, one configuration, one build; the id is Holdfast's run id
"""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import ForeignKey, Index, Integer, LargeBinary, String, Unicode, UnicodeText, UniqueConstraint
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from apps.shared.database import Instant

ID = String(40)
DIGEST = String(64)


class Base(DeclarativeBase):
    """All of ade's tables."""


class Workspace(Base):
    __tablename__ = "ade_workspaces"

    id: Mapped[str] = mapped_column(ID, primary_key=True)
    name: Mapped[str] = mapped_column(Unicode(200), unique=True)
    created_at: Mapped[datetime] = mapped_column(Instant)


class Content(Base):
    """A piece of a document's bytes; documents with the same bytes share it."""

    __tablename__ = "ade_contents"

    sha256: Mapped[str] = mapped_column(DIGEST, primary_key=True)
    number: Mapped[int] = mapped_column(Integer, primary_key=True)
    piece: Mapped[bytes] = mapped_column(LargeBinary)


class Document(Base):
    __tablename__ = "ade_documents"

    id: Mapped[str] = mapped_column(ID, primary_key=True)
    workspace_id: Mapped[str] = mapped_column(ForeignKey(Workspace.id), index=True)
    name: Mapped[str] = mapped_column(Unicode(255))
    media_type: Mapped[str] = mapped_column(String(100))
    size: Mapped[int] = mapped_column(Integer)
    sha256: Mapped[str] = mapped_column(DIGEST)
    created_at: Mapped[datetime] = mapped_column(Instant)


class Configuration(Base):
    __tablename__ = "ade_configurations"
    __table_args__ = (UniqueConstraint("workspace_id", "name"),)

    id: Mapped[str] = mapped_column(ID, primary_key=True)
    workspace_id: Mapped[str] = mapped_column(ForeignKey(Workspace.id), index=True)
    name: Mapped[str] = mapped_column(Unicode(200))
    version: Mapped[int] = mapped_column(Integer)
    created_at: Mapped[datetime] = mapped_column(Instant)


class Version(Base):
    """The files of a configuration as they were saved, as JSON: path → text."""

    __tablename__ = "ade_versions"

    configuration_id: Mapped[str] = mapped_column(ForeignKey(Configuration.id), primary_key=True)
    number: Mapped[int] = mapped_column(Integer, primary_key=True)
    digest: Mapped[str] = mapped_column(DIGEST)
    files: Mapped[str] = mapped_column(UnicodeText, deferred=True)
    created_at: Mapped[datetime] = mapped_column(Instant)


class Build(Base):
    """An environment for the runs of a configuration; `version` is one version that has the files it was built from."""

    __tablename__ = "ade_build_rows"
    __table_args__ = (UniqueConstraint("configuration_id", "fingerprint"),)

    id: Mapped[str] = mapped_column(ID, primary_key=True)
    configuration_id: Mapped[str] = mapped_column(ForeignKey(Configuration.id))
    version: Mapped[int] = mapped_column(Integer)
    fingerprint: Mapped[str] = mapped_column(DIGEST)
    created_at: Mapped[datetime] = mapped_column(Instant)


class Run(Base):
    """One execution of the engine for one document, with one configuration and one build."""

    __tablename__ = "ade_run_rows"
    __table_args__ = (Index("ix_ade_run_rows_configuration", "configuration_id", "id"),)

    id: Mapped[str] = mapped_column(ID, primary_key=True)
    workspace_id: Mapped[str] = mapped_column(ForeignKey(Workspace.id))
    configuration_id: Mapped[str] = mapped_column(ForeignKey(Configuration.id))
    version: Mapped[int] = mapped_column(Integer)
    input_document_id: Mapped[str] = mapped_column(ForeignKey(Document.id))
    build_id: Mapped[str] = mapped_column(ForeignKey(Build.id), index=True)
    created_at: Mapped[datetime] = mapped_column(Instant)
