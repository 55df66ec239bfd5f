"""List all runs that match a filter, from all result pages."""

from __future__ import annotations

from typing import Any

from holdfast import Holdfast, RunFilter
from holdfast.client import Client
from holdfast.values.runs import Snapshot


def runs_of(hf: Holdfast | Client, **filter: Any) -> list[Snapshot]:
    """The matching runs, the most recently submitted first."""
    page = hf.search(RunFilter(**filter), limit=200, order="submitted")
    found = list(page.items)
    while page.next is not None:
        page = hf.search(RunFilter(**filter), limit=200, order="submitted", after=page.next)
        found += page.items
    return found
