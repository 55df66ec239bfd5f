"""A fresh database for each measurement."""

from __future__ import annotations

import itertools
from pathlib import Path

import psycopg
from tests.postgres import PostgresServer


class Databases:
    def __init__(self, folder: Path, server: PostgresServer) -> None:
        self._folder, self._server = folder, server
        self._numbers = itertools.count()

    def fresh(self, store: str) -> str:
        """Create an empty database of this kind, and return its URL."""
        name = f"bench{next(self._numbers)}"
        if store == "sqlite":
            return f"sqlite:///{self._folder / name}.db"
        with psycopg.connect(self._server.url, autocommit=True) as connection:
            connection.execute(f"create database {name}")
        return self._server.url_of(name)
