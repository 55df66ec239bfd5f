"""Checks of ade: every sample is normalised, and the output has the rows a careful person would expect."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any

from openpyxl import load_workbook

from apps.shared.checks import CheckClient, Checked, difference

SAMPLES = 7
MARCH = "invoices-march-2026.xlsx"
FORMULA = '=HYPERLINK("http://example.test","Click")'


def check(client: CheckClient) -> Iterator[Checked]:
    """Wait until the first run of each sample has ended, then check the results."""
    first_runs = client.until(lambda: _first_runs(client), "the first run of every sample has ended")
    states = {run["status"] for run in first_runs.values()}
    yield Checked(what=f"{len(first_runs)} spreadsheets were normalised", fault=difference(states, {"succeeded"}))
    builds = {run["configuration_id"]: run["build_id"] for run in first_runs.values()}
    yield Checked(
        what="each of the two configurations has one build, shared by its runs",
        fault=difference((len(builds), {run["build_id"] for run in first_runs.values()}), (2, set(builds.values()))),
    )
    run = first_runs[MARCH]
    rows = _rows(client, run)
    numbers = [row[1] for row in rows]
    expected = ["BT-10233", "2026/0417", "TE-99812", "X-1001", "2026/0502"]
    yield Checked(
        what=f"{MARCH}: the output has its invoices, without title, total and notes",
        fault=difference(numbers, expected),
    )
    yield Checked(what=f"{MARCH}: amounts are numbers", fault=difference(rows[0][4], 1250))
    yield Checked(what=f"{MARCH}: text that looks like a formula stays text", fault=difference(rows[3][0], FORMULA))
    yield Checked(
        what=f"{MARCH}: a duplicate invoice and one that does not add up are rejected",
        fault=difference(run["summary"]["rows_rejected"], 2),
    )
    stream = client.http.get(run["events_url"], headers={"Accept": "text/event-stream"}).text
    yield Checked(what="the event stream says how columns were mapped, and ends", fault=_stream_fault(stream))


def _first_runs(client: CheckClient) -> dict[str, Any] | None:
    """Return the first run of each sample by document name, or None until all of them have ended."""
    responses = [client.http.get(path) for path in ("/documents", "/runs?limit=200")]
    if any(response.status_code != 200 for response in responses):
        return None
    names = {document["id"]: document["name"] for document in responses[0].json()["documents"]}
    # The newest run comes first, so the oldest one wins here.
    first = {names[run["input_document_id"]]: run for run in responses[1].json()["runs"]}
    unfinished = any(run["status"] in ("queued", "running") for run in first.values())
    return None if len(first) < SAMPLES or unfinished else first


def _rows(client: CheckClient, run: dict[str, Any]) -> list[list[Any]]:
    content = client.http.get(f"{run['outputs_url']}/output.xlsx").content
    sheet = load_workbook(io.BytesIO(content))["Data"]
    for row in sheet.iter_rows():
        assert all(cell.data_type != "f" for cell in row), "the output contains a formula"
    return [[cell.value for cell in row] for row in sheet.iter_rows(min_row=2)]


def _stream_fault(stream: str) -> str | None:
    complete = "is mapped to invoice_number" in stream and "event: end" in stream
    return None if complete else f"the stream ended with {stream[-200:]!r}"
