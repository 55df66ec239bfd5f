"""The local reader: layout, tables, pairs, and unreadable documents with their reasons."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pypdf
import pytest
from apps.extraction import samples
from apps.extraction.analysis import Analysis, Unreadable, check_size
from apps.extraction.fields import fields
from apps.extraction.providers import ServiceError
from apps.extraction.providers.local_documents import LocalDocuments
from apps.extraction.read_pdf import read
from apps.extraction.tests.conftest import pdf
from reportlab.pdfgen.canvas import Canvas

SAMPLES = Path(samples.__file__).parent


def read_here(content: bytes, *, pages: int = 2000, characters: int = 10_000_000) -> Analysis:
    """Read in this process, which is safe because the tests make the documents."""
    return read(content, most_pages=pages, most_characters=characters)


def encrypted() -> bytes:
    writer = pypdf.PdfWriter(clone_from=io.BytesIO(pdf("Secret.")))
    writer.encrypt("a password", algorithm="AES-256")
    return _written(writer)


def _written(writer: Any) -> bytes:
    file = io.BytesIO()
    writer.write(file)
    return file.getvalue()


def test_a_page_is_read_with_its_pairs_and_tables() -> None:
    analysis = read_here((SAMPLES / "invoice.pdf").read_bytes())
    values = {field.name: field.value for field in fields(analysis)}
    assert values["Supplier"] == "Northwater Chandlers Ltd"
    assert values["Due date"] == "2 April 2031"
    [table] = analysis.tables
    assert (table.rows, table.columns) == (4, 4)
    assert {cell.text for cell in table.cells if cell.row == 2} == {"Brass lamp glass", "2", "310.00", "620.00"}


def test_paragraphs_are_separated_by_empty_lines() -> None:
    text = read_here((SAMPLES / "lease.pdf").read_bytes()).pages[0].text
    assert text.splitlines()[:7] == [
        "Lease of the boat house at Skarholm",
        "",
        "Landlord: Lighthouse Trust of Skarholm",
        "Tenant: Ingrid Solberg",
        "Rent: 640.00 EUR a month",
        "",
        "1. The tenant may keep up to three boats in the house. Engines are to be drained before",
    ]


def columns(*texts: str) -> bytes:
    """Make a page with texts side by side, the lines of each a little lower than those of the previous one."""
    file = io.BytesIO()
    canvas = Canvas(file, invariant=1)
    canvas.drawString(60, 780, "A heading above the columns, " + "as wide as the page " * 4)
    for number, text in enumerate(texts):
        for row, line in enumerate(text.splitlines()):
            canvas.drawString(60 + 500 / len(texts) * number, 740 - 16 * row - 3 * number, line)
    canvas.drawString(60, 500, "And a line below them, " + "as wide as the page " * 4)
    canvas.save()
    return file.getvalue()


@pytest.mark.parametrize("count", [2, 3])
def test_columns_are_read_one_after_the_other(count: int) -> None:
    texts = ["\n".join(f"Line {row} of column {number} is prose" for row in range(6)) for number in range(count)]
    [page] = read_here(columns(*texts)).pages
    heading, *parts, below = page.text.split("\n\n")
    assert parts == texts
    assert (heading[:9], below[:10]) == ("A heading", "And a line")
    assert read_here(columns(*texts)).tables == []


def test_columns_without_prose_are_a_table() -> None:
    names, values = (f"Anchor chain of sort {row}" for row in range(6)), (f"{row}00.00 EUR" for row in range(6))
    analysis = read_here(columns("\n".join(names), "\n".join(values)))
    assert [(table.rows, table.columns) for table in analysis.tables] == [(6, 2)]
    assert "Anchor chain of sort 3   300.00 EUR" in analysis.pages[0].text


def test_a_name_is_not_taken_for_the_value_of_another_name() -> None:
    analysis = read_here(columns("Bill to:\nAda\nDue:", "Ship to:\nBob\nnow"))
    assert {field.name: field.value for field in fields(analysis)} == {"Ada": "Bob", "Due": "now"}


def test_pages_without_text_are_kept() -> None:
    analysis = read_here(pdf("One.", "", "Three."))
    assert [page.text for page in analysis.pages] == ["One.", "", "Three."]


@pytest.mark.parametrize(
    ("content", "failure_type"),
    [
        (lambda: b"PK\x03\x04 not a PDF at all", "NOT_A_PDF"),
        (encrypted, "ENCRYPTED"),
        (lambda: pdf("Cut off. " * 50)[:700], "TRUNCATED"),
        (lambda: b"%PDF-1.7\n" + os.urandom(2000) + b"\n%%EOF", "UNREADABLE"),
        (lambda: pdf(""), "IMAGE_ONLY"),
        (lambda: (SAMPLES / "scan.pdf").read_bytes(), "IMAGE_ONLY"),
        (lambda: pdf(*["x"] * 41), "TOO_MANY_PAGES"),
        (lambda: pdf(*["many words " * 8] * 30), "TOO_LONG"),
    ],
    ids=["not a pdf", "encrypted", "truncated", "broken", "blank", "scan", "pages", "long"],
)
def test_an_unreadable_document_is_refused_with_a_failure_type(content: Callable[[], bytes], failure_type: str) -> None:
    with pytest.raises(Unreadable) as unreadable:
        read_here(content(), pages=40, characters=2000)
    assert unreadable.value.failure_type == failure_type


@pytest.mark.contract("X6")
def test_two_thousand_pages_are_read_and_one_more_is_not() -> None:
    most = read_here(pdf(*["A page."] * 2000))
    assert len(most.pages) == 2000
    assert len(check_size(Analysis.from_json(most.to_json()), most_pages=2000, most_characters=20_000).pages) == 2000
    with pytest.raises(Unreadable) as unreadable:
        read_here(pdf(*["A page."] * 2001))
    assert "2,001 pages" in str(unreadable.value)


def test_a_page_that_takes_for_ever_is_stopped_at_the_timeout() -> None:
    """Forms are nested 40 levels deep, and each draws the next one eight times."""
    writer = pypdf.PdfWriter()
    inner: Any = None
    name = pypdf.generic.NameObject
    for depth in range(40):
        form = pypdf.generic.StreamObject()
        form._data = b"BT /F 1 Tf (x) Tj ET" if inner is None else b"/I Do " * 8
        form[name("/Type")], form[name("/Subtype")] = name("/XObject"), name("/Form")
        form[name("/BBox")] = pypdf.generic.ArrayObject(pypdf.generic.NumberObject(n) for n in (0, 0, 600, 800))
        if inner is not None:
            objects = pypdf.generic.DictionaryObject({name("/I"): inner})
            form[name("/Resources")] = pypdf.generic.DictionaryObject({name("/XObject"): objects})
        inner = writer._add_object(form)
        del depth
    page = writer.add_blank_page(600, 800)
    page[name("/Resources")] = pypdf.generic.DictionaryObject(
        {name("/XObject"): pypdf.generic.DictionaryObject({name("/I"): inner})}
    )
    stream = pypdf.generic.StreamObject()
    stream._data = b"/I Do"
    page[name("/Contents")] = writer._add_object(stream)
    content = _written(writer)
    with pytest.raises(Unreadable) as unreadable:
        LocalDocuments(timeout=2, most_pages=10, most_characters=1000).result("", lambda: content)
    assert unreadable.value.failure_type == "TOO_SLOW"


def test_the_reader_process_gets_no_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EXTRACTION_OPENAI_KEY", "a-key")
    monkeypatch.setattr(sys, "executable", "/usr/bin/env")
    environment: dict[str, Any] = {}

    def run(command: list[str], **options: Any) -> subprocess.CompletedProcess[bytes]:
        environment.update(options["env"])
        return subprocess.CompletedProcess(command, 1, b"", b"")

    monkeypatch.setattr(subprocess, "run", run)
    with pytest.raises(ServiceError, match="code 1"):
        LocalDocuments(timeout=4, most_pages=10, most_characters=1000).result("", lambda: b"")
    assert "EXTRACTION_OPENAI_KEY" not in environment


def test_hostile_metadata_and_long_lines_are_read_as_text() -> None:
    writer = pypdf.PdfWriter(clone_from=io.BytesIO(pdf("Name: " + "x" * 5000, "<script>alert(1)</script> {{ 7*7 }}")))
    writer.add_metadata({"/Title": "\x00<script>" * 1000, "/Author": "../../etc/passwd"})
    analysis = read_here(_written(writer))
    assert analysis.pages[1].text == "<script>alert(1)</script> {{ 7*7 }}"
    assert max(len(field.value) for field in fields(analysis)) <= 5000
