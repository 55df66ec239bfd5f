"""Reading PDFs, in records and in extraction: each character is read once, and a broken file fails with its reason."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from apps.extraction.analysis import Unreadable as NotExtracted
from apps.extraction.read_pdf import read as extract
from apps.records.readers import read as record
from apps.records.unreadable import Unreadable as NotRecorded
from apps.shared import pdf
from reportlab.pdfbase import pdfmetrics
from reportlab.pdfbase.cidfonts import UnicodeCIDFont
from reportlab.pdfgen.canvas import Canvas

Reader = Callable[[bytes], str]
JAPANESE, CHINESE, KOREAN = "日本語の文書です", "合同编号一二三", "계약서번호"


def draw_pdf(draw: Callable[[Any], object]) -> bytes:
    file = io.BytesIO()
    canvas = Canvas(file, invariant=1)
    draw(canvas)
    canvas.save()
    return file.getvalue()


def pdf_with(*texts: tuple[float, float, str], font: str = "Helvetica", size: float = 12) -> bytes:
    def draw(canvas: Any) -> None:
        canvas.setFont(font, size)
        for left, bottom, text in texts:
            canvas.drawString(left, bottom, text)

    return draw_pdf(draw)


@pytest.fixture(params=["records", "extraction"])
def reader(request: pytest.FixtureRequest, tmp_path: Path) -> Reader:
    """A function that returns the text of the first page of a PDF, or the reason why it can't be read."""

    def records(content: bytes) -> str:
        (tmp_path / "file").write_bytes(content)
        try:
            return record(tmp_path / "file", "pdf")[0]
        except NotRecorded as error:
            return error.failure_type.replace("CORRUPT", "DAMAGED")

    def extraction(content: bytes) -> str:
        try:
            return extract(content, most_pages=10, most_characters=10_000).pages[0].text
        except NotExtracted as error:
            return error.failure_type.replace("UNREADABLE", "DAMAGED")

    return records if request.param == "records" else extraction


OVERLAPPING = {
    "a box over another": pdf_with((60, 700, "First box of text"), (62, 703, "Second box over it"), (60, 600, "Below")),
    "lines closer than their letters": pdf_with(
        (60, 700, "Alpha one"), (60, 695, "Beta two"), (60, 690, "Gamma three")
    ),
    "a stamp across the page": draw_pdf(
        lambda canvas: [
            canvas.setFont("Helvetica", 12),
            canvas.drawString(60, 700, "Invoice total 100"),
            canvas.setFont("Helvetica", 60),
            canvas.drawString(50, 690, "DRAFT"),
        ]
    ),
}


@pytest.mark.parametrize("name", OVERLAPPING)
def test_each_character_of_overlapping_boxes_is_read_once(name: str, reader: Reader) -> None:
    content = OVERLAPPING[name]
    expected = pdf.text_of(pdf.open_pdf(content)[0].get_textpage())
    assert sorted(reader(content).split()) == sorted(expected.split())


def test_letters_drawn_one_by_one_are_joined_into_words(reader: Reader) -> None:
    def draw(canvas: Any) -> None:
        left = 60.0
        for letter in "Hello wide world":
            canvas.drawString(left, 700, letter)
            left += canvas.stringWidth(letter, "Helvetica", 12)

    assert reader(draw_pdf(draw)) == "Hello wide world"


@pytest.mark.parametrize(
    ("font", "text"), [("HeiseiMin-W3", JAPANESE), ("STSong-Light", CHINESE), ("HYSMyeongJo-Medium", KOREAN)]
)
@pytest.mark.parametrize(("bottom", "size"), [(700, 12), (333.337, 10.77), (50.01, 9), (20.006, 8)])
def test_letters_of_a_font_that_is_not_embedded_are_not_lost(
    font: str, text: str, bottom: float, size: float, reader: Reader
) -> None:
    """PDFium knows these letters but not their height, and drops their boxes."""
    pdfmetrics.registerFont(UnicodeCIDFont(font))
    read_text = reader(pdf_with((100, bottom + 20, text), (100, bottom, text[::-1]), font=font, size=size))
    assert read_text.split() == [text, text[::-1]]


def test_a_name_and_value_pair_is_found_when_letters_have_no_position() -> None:
    pdfmetrics.registerFont(UnicodeCIDFont("STSong-Light"))
    content = pdf_with((100, 50.01, f"{CHINESE}: {CHINESE}"), font="STSong-Light", size=9)
    [pair] = extract(content, most_pages=1, most_characters=100).pairs
    assert (pair.name, pair.value) == (CHINESE, CHINESE)


WHOLE = pdf_with((60, 700, "All of it"))
MARK = WHOLE.rindex(b"%%EOF")


@pytest.mark.parametrize(
    "content",
    [
        WHOLE,
        WHOLE + b"\n<!-- added by the server -->" * 200,
        WHOLE[:MARK],  # the object table and the reference to it are still there
        b"\n\n" + WHOLE,
    ],
    ids=["complete", "with bytes after the end", "without the end mark", "with bytes before the start"],
)
def test_a_file_with_all_of_its_objects_is_read(content: bytes, reader: Reader) -> None:
    assert reader(content) == "All of it"


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (WHOLE[: len(WHOLE) // 2], "TRUNCATED"),
        (WHOLE[: MARK - 12], "TRUNCATED"),
        (WHOLE + WHOLE[: len(WHOLE) // 2], "TRUNCATED"),  # the second half of an incremental update is missing
        (WHOLE[:9], "TRUNCATED"),
        (b"%PDF-1.7\nDear Ann, this is a letter and not a PDF. " + b"It only claims to be one. " * 200, "DAMAGED"),
        (b"%PDF-1.7\n" + bytes(range(256)) * 40 + b"\n%%EOF" + b"\n" * 5000, "DAMAGED"),
    ],
    ids=["half", "without the end", "half an update", "only the header", "a letter", "noise"],
)
def test_a_truncated_file_is_told_apart_from_a_damaged_one(content: bytes, fault: str, reader: Reader) -> None:
    assert reader(content) == fault
