"""Checks of ade: every sample was normalised, and what came out is what a careful person would have made of it."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any

from openpyxl import load_workbook

from apps.shared.checks import CheckClient, Checked, difference

SAMPLES = 7
MARCH = "invoices-march-2026.xlsx"
TRAP = '=HYPERLINK("http://example.test","Click")'


def check(client: CheckClient) -> Iterator[Checked]:
    """Wait until each sample has a run that has ended, then look at them."""
    found = client.until(lambda: _first_runs(client), "the first run of every sample has ended")
    states = {name: run["status"] for name, run in found.items()}
    yield Checked(
        what=f"{len(found)} spreadsheets were normalised", fault=difference(set(states.values()), {"succeeded"})
    )
    builds = {run["configuration_id"]: run["build_id"] for run in found.values()}
    yield Checked(
        what="one build for each of two configurations, shared by their runs",
        fault=difference((len(builds), {run["build_id"] for run in found.values()}), (2, set(builds.values()))),
    )
    run = found[MARCH]
    rows = _rows(client, run)
    numbers = [row[1] for row in rows]
    expected = ["BT-10233", "2026/0417", "TE-99812", "X-1001", "2026/0502"]
    yield Checked(what=f"{MARCH}: its invoices, without title, total and notes", fault=difference(numbers, expected))
    yield Checked(what=f"{MARCH}: amounts are numbers", fault=difference(rows[0][4], 1250))
    yield Checked(what=f"{MARCH}: what looks like a formula is text", fault=difference(rows[3][0], TRAP))
    yield Checked(
        what=f"{MARCH}: an invoice sent twice and one that does not add up are rejected",
        fault=difference(run["summary"]["rows_rejected"], 2),
    )
    told = client.http.get(run["events_url"], headers={"Accept": "text/event-stream"}).text
    yield Checked(what="its stream tells how columns were mapped, and ends", fault=_told(told))


def _first_runs(client: CheckClient) -> dict[str, Any] | None:
    """Each sample's first run by the name of its document, once all have ended."""
    answers = [client.http.get(path) for path in ("/documents", "/runs?limit=200")]
    if any(answer.status_code != 200 for answer in answers):
        return None
    names = {document["id"]: document["name"] for document in answers[0].json()["documents"]}
    first = {names[run["input_document_id"]]: run for run in answers[1].json()["runs"]}  # the newest come first
    waits = any(run["status"] in ("queued", "running") for run in first.values())
    return None if len(first) < SAMPLES or waits else first


def _rows(client: CheckClient, run: dict[str, Any]) -> list[list[Any]]:
    content = client.http.get(f"{run['outputs_url']}/output.xlsx").content
    sheet = load_workbook(io.BytesIO(content))["Data"]
    for row in sheet.iter_rows():
        assert all(cell.data_type != "f" for cell in row), "a formula came out"
    return [[cell.value for cell in row] for row in sheet.iter_rows(min_row=2)]


def _told(told: str) -> str | None:
    return None if "is invoice_number" in told and "event: end" in told else f"it said {told[-200:]!r}"
