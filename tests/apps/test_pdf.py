"""PDFs, as records and extraction read them: each character once, none lost; cut is only what is not all there."""

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


def drawn(draw: Callable[[Any], object]) -> bytes:
    kept = io.BytesIO()
    canvas = Canvas(kept, invariant=1)
    draw(canvas)
    canvas.save()
    return kept.getvalue()


def words(*placed: tuple[float, float, str], font: str = "Helvetica", size: float = 12) -> bytes:
    def draw(canvas: Any) -> None:
        canvas.setFont(font, size)
        for left, bottom, text in placed:
            canvas.drawString(left, bottom, text)

    return drawn(draw)


@pytest.fixture(params=["records", "extraction"])
def reader(request: pytest.FixtureRequest, tmp_path: Path) -> Reader:
    """The text of the first page of a document, or the word for what is wrong with it."""

    def records(content: bytes) -> str:
        (tmp_path / "file").write_bytes(content)
        try:
            return record(tmp_path / "file", "pdf")[0]
        except NotRecorded as error:
            return error.why.replace("CORRUPT", "DAMAGED")

    def extraction(content: bytes) -> str:
        try:
            return extract(content, most_pages=10, most_characters=10_000).pages[0].text
        except NotExtracted as error:
            return error.reason.replace("UNREADABLE", "DAMAGED")

    return records if request.param == "records" else extraction


OVERLAPPING = {
    "a box over another": words((60, 700, "First box of text"), (62, 703, "Second box over it"), (60, 600, "Below")),
    "lines closer than their letters": words((60, 700, "Alpha one"), (60, 695, "Beta two"), (60, 690, "Gamma three")),
    "a stamp across the page": drawn(
        lambda canvas: [
            canvas.setFont("Helvetica", 12),
            canvas.drawString(60, 700, "Invoice total 100"),
            canvas.setFont("Helvetica", 60),
            canvas.drawString(50, 690, "DRAFT"),
        ]
    ),
}


@pytest.mark.parametrize("name", OVERLAPPING)
def test_where_boxes_overlap_each_character_is_read_once(name: str, reader: Reader) -> None:
    content = OVERLAPPING[name]
    own = pdf.text_of(pdf.open_pdf(content)[0].get_textpage())
    assert sorted(reader(content).split()) == sorted(own.split())


def test_letters_that_are_drawn_one_by_one_are_words(reader: Reader) -> None:
    def draw(canvas: Any) -> None:
        left = 60.0
        for letter in "Hello wide world":
            canvas.drawString(left, 700, letter)
            left += canvas.stringWidth(letter, "Helvetica", 12)

    assert reader(drawn(draw)) == "Hello wide world"


@pytest.mark.parametrize(
    ("font", "text"), [("HeiseiMin-W3", JAPANESE), ("STSong-Light", CHINESE), ("HYSMyeongJo-Medium", KOREAN)]
)
@pytest.mark.parametrize(("bottom", "size"), [(700, 12), (333.337, 10.77), (50.01, 9), (20.006, 8)])
def test_letters_of_a_font_without_an_extent_are_not_lost(
    font: str, text: str, bottom: float, size: float, reader: Reader
) -> None:
    """The font is not in the file: PDFium knows the letters, but not how high they are, and rounds their boxes away."""
    pdfmetrics.registerFont(UnicodeCIDFont(font))
    found = reader(words((100, bottom + 20, text), (100, bottom, text[::-1]), font=font, size=size))
    assert found.split() == [text, text[::-1]]


def test_a_pair_is_found_where_letters_have_no_place() -> None:
    pdfmetrics.registerFont(UnicodeCIDFont("STSong-Light"))
    content = words((100, 50.01, f"{CHINESE}: {CHINESE}"), font="STSong-Light", size=9)
    [pair] = extract(content, most_pages=1, most_characters=100).pairs
    assert (pair.name, pair.value) == (CHINESE, CHINESE)


WHOLE = words((60, 700, "All of it"))
MARK = WHOLE.rindex(b"%%EOF")


@pytest.mark.parametrize(
    "content",
    [
        WHOLE,
        WHOLE + b"\n<!-- sent by a server that adds to what it sends -->" * 200,
        WHOLE[:MARK],  # the table of its objects is there, and where it is
        b"\n\n" + WHOLE,
    ],
    ids=["whole", "with something behind it", "without its last mark", "with something before it"],
)
def test_a_file_that_has_all_of_its_objects_is_read(content: bytes, reader: Reader) -> None:
    assert reader(content) == "All of it"


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (WHOLE[: len(WHOLE) // 2], "TRUNCATED"),
        (WHOLE[: MARK - 12], "TRUNCATED"),
        (WHOLE + WHOLE[: len(WHOLE) // 2], "TRUNCATED"),  # a later version of it was cut
        (WHOLE[:9], "TRUNCATED"),
        (b"%PDF-1.7\nDear Ann, this is a letter and no PDF. " + b"It only says so. " * 300, "DAMAGED"),
        (b"%PDF-1.7\n" + bytes(range(256)) * 40 + b"\n%%EOF" + b"\n" * 5000, "DAMAGED"),
    ],
    ids=["half", "without its end", "half of an update", "a header", "a letter", "noise"],
)
def test_only_what_is_cut_is_said_to_be_cut(content: bytes, fault: str, reader: Reader) -> None:
    assert reader(content) == fault
