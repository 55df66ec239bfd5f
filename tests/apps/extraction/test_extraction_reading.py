"""Reading on this machine: layout, tables, pairs, and documents that can't be read, each with its reason."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pypdf
import pytest
from apps.extraction import samples
from apps.extraction.analysis import Analysis, Unreadable, bounded
from apps.extraction.fields import fields
from apps.extraction.providers import Trouble
from apps.extraction.providers.local_documents import LocalDocuments
from apps.extraction.read_pdf import read
from reportlab.pdfgen.canvas import Canvas
from tests.apps.extraction.conftest import pdf

SAMPLES = Path(samples.__file__).parent


def read_here(content: bytes, *, pages: int = 2000, characters: int = 10_000_000) -> Analysis:
    """In this process: what is tried here is no stranger's."""
    return read(content, most_pages=pages, most_characters=characters)


def encrypted() -> bytes:
    writer = pypdf.PdfWriter(clone_from=io.BytesIO(pdf("Secret.")))
    writer.encrypt("a password", algorithm="AES-256")
    return _written(writer)


def drawn(content: bytes) -> bytes:
    """A page with this content, and no more around it than a PDF needs."""
    writer = pypdf.PdfWriter()
    page = writer.add_blank_page(600, 800)
    stream = pypdf.generic.StreamObject()
    stream[pypdf.generic.NameObject("/Filter")] = pypdf.generic.NameObject("/FlateDecode")
    stream._data = zlib.compress(content)
    page[pypdf.generic.NameObject("/Contents")] = writer._add_object(stream)
    return _written(writer)


def _written(writer: Any) -> bytes:
    kept = io.BytesIO()
    writer.write(kept)
    return kept.getvalue()


def test_a_page_is_read_with_its_pairs_and_tables() -> None:
    analysis = read_here((SAMPLES / "invoice.pdf").read_bytes())
    stated = {field.name: field.value for field in fields(analysis)}
    assert stated["Supplier"] == "Northwater Chandlers Ltd"
    assert stated["Due date"] == "2 April 2031"
    [table] = analysis.tables
    assert (table.rows, table.columns) == (4, 4)
    assert {cell.text for cell in table.cells if cell.row == 2} == {"Brass lamp glass", "2", "310.00", "620.00"}


def test_paragraphs_are_told_from_lines() -> None:
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
    """A page with texts beside each other, the lines of each a little lower than those of the one before."""
    kept = io.BytesIO()
    canvas = Canvas(kept, invariant=1)
    canvas.drawString(60, 780, "A heading above the columns, " + "as wide as the page " * 4)
    for number, text in enumerate(texts):
        for row, line in enumerate(text.splitlines()):
            canvas.drawString(60 + 500 / len(texts) * number, 740 - 16 * row - 3 * number, line)
    canvas.drawString(60, 500, "And a line below them, " + "as wide as the page " * 4)
    canvas.save()
    return kept.getvalue()


@pytest.mark.parametrize("count", [2, 3])
def test_columns_are_read_one_after_the_other(count: int) -> None:
    texts = ["\n".join(f"Line {row} of column {number} is prose" for row in range(6)) for number in range(count)]
    [page] = read_here(columns(*texts)).pages
    heading, *told, below = page.text.split("\n\n")
    assert told == texts
    assert (heading[:9], below[:10]) == ("A heading", "And a line")
    assert read_here(columns(*texts)).tables == []


def test_what_stands_beside_each_other_and_is_no_prose_is_a_table() -> None:
    names, values = (f"Anchor chain of sort {row}" for row in range(6)), (f"{row}00.00 EUR" for row in range(6))
    analysis = read_here(columns("\n".join(names), "\n".join(values)))
    assert [(table.rows, table.columns) for table in analysis.tables] == [(6, 2)]
    assert "Anchor chain of sort 3   300.00 EUR" in analysis.pages[0].text


def test_a_name_beside_a_name_is_no_value() -> None:
    analysis = read_here(columns("Bill to:\nAda\nDue:", "Ship to:\nBob\nnow"))
    assert {field.name: field.value for field in fields(analysis)} == {"Ada": "Bob", "Due": "now"}


def test_pages_without_text_stand_among_those_with_text() -> None:
    analysis = read_here(pdf("One.", "", "Three."))
    assert [page.text for page in analysis.pages] == ["One.", "", "Three."]


@pytest.mark.parametrize(
    ("content", "reason"),
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
def test_what_can_t_be_read_says_why(content: Callable[[], bytes], reason: str) -> None:
    with pytest.raises(Unreadable) as unreadable:
        read_here(content(), pages=40, characters=2000)
    assert unreadable.value.reason == reason


@pytest.mark.contract("X6")
def test_two_thousand_pages_are_read_and_one_more_is_not() -> None:
    most = read_here(pdf(*["A page."] * 2000))
    assert len(most.pages) == 2000
    assert len(bounded(Analysis.from_json(most.to_json()), most_pages=2000, most_characters=20_000).pages) == 2000
    with pytest.raises(Unreadable) as unreadable:
        read_here(pdf(*["A page."] * 2001))
    assert "2001 pages" in str(unreadable.value)


def test_a_page_that_takes_for_ever_ends_with_its_reader() -> None:
    """A form that draws itself twice, which draws itself twice, and so on."""
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
    assert unreadable.value.reason == "TOO_SLOW"


def test_a_reader_has_none_of_our_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EXTRACTION_OPENAI_KEY", "a-key")
    monkeypatch.setattr(sys, "executable", "/usr/bin/env")
    seen: dict[str, Any] = {}

    def run(command: list[str], **options: Any) -> subprocess.CompletedProcess[bytes]:
        seen.update(options["env"])
        return subprocess.CompletedProcess(command, 1, b"", b"")

    monkeypatch.setattr(subprocess, "run", run)
    with pytest.raises(Trouble, match="code 1"):
        LocalDocuments(timeout=4, most_pages=10, most_characters=1000).result("", lambda: b"")
    assert "EXTRACTION_OPENAI_KEY" not in seen


def test_hostile_metadata_and_long_lines_are_only_text() -> None:
    writer = pypdf.PdfWriter(clone_from=io.BytesIO(pdf("Name: " + "x" * 5000, "<script>alert(1)</script> {{ 7*7 }}")))
    writer.add_metadata({"/Title": "\x00<script>" * 1000, "/Author": "../../etc/passwd"})
    analysis = read_here(_written(writer))
    assert analysis.pages[1].text == "<script>alert(1)</script> {{ 7*7 }}"
    assert max(len(field.value) for field in fields(analysis)) <= 5000
