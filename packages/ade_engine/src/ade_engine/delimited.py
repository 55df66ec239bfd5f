"""Delimited texts such as CSV: guesses encoding, delimiter and quote character, then streams the lines."""

from __future__ import annotations

import codecs
import csv
import io
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from ade_engine.errors import InputError
from ade_engine.limits import Limits, exceeded
from ade_engine.loading import Reading
from ade_engine.sheets import Document, Sheet
from ade_engine.values import Line, Value

CHUNK = 1 << 20
SAMPLE_LINES = 200
MAX_LINE_LENGTH = 4 << 20
DELIMITERS = (",", ";", "\t", "|")
BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


def open_text(path: Path, reading: Reading, limits: Limits) -> Document:
    """Open a delimited text as a document of one sheet."""
    encoding = reading.encoding or guess_encoding(path)
    sample = read_sample(path, encoding)
    if not "".join(sample).strip():
        raise InputError("input_empty", "the file contains only white space")
    skipped = 0
    delimiter = reading.delimiter
    if sample[0].strip("\ufeff\r\n").lower().startswith("sep=") and len(sample[0].strip("\ufeff\r\n")) == 5:
        delimiter, skipped = delimiter or sample[0].strip("\ufeff\r\n")[-1], 1
    quote = guess_quote(sample[skipped:])
    delimiter = delimiter or guess_delimiter(sample[skipped:], quote)
    size = path.stat().st_size
    position = [0]

    def lines() -> Iterator[Line]:
        with path.open("rb") as raw:
            text = io.TextIOWrapper(raw, encoding, newline="")
            yield from rows(text, delimiter, quote, skipped, limits, lambda: position.__setitem__(0, raw.tell()))

    sheet = Sheet("Sheet1", False, lines, lambda: round(min(1.0, position[0] / size), 3))
    facts = {"encoding": encoding, "delimiter": delimiter}
    return Document("csv", (sheet,), facts | ({"quote": quote} if quote != '"' else {}))


def guess_encoding(path: Path) -> str:
    """Return the encoding of the byte order mark, else UTF-8 if the whole file is valid, else cp1252 or latin-1."""
    with path.open("rb") as file:
        head = file.read(4096)
        for mark, encoding in BYTE_ORDER_MARKS:
            if head.startswith(mark):
                return encoding
        if b"\x00" in head:
            return guess_utf_16(head)
        file.seek(0)
        decoder = codecs.getincrementaldecoder("utf-8")()
        western = True
        try:
            while chunk := file.read(CHUNK):
                refuse_binary(chunk)
                decoder.decode(chunk)
            decoder.decode(b"", final=True)
            return "utf-8"
        except UnicodeDecodeError:
            file.seek(0)
            while chunk := file.read(CHUNK):
                refuse_binary(chunk)
                western = western and not any(byte in chunk for byte in (b"\x81", b"\x8d", b"\x8f", b"\x90", b"\x9d"))
    return "cp1252" if western else "latin-1"


def guess_utf_16(head: bytes) -> str:
    """Recognise UTF-16 without a byte order mark: in Western text, every second byte is zero."""
    even, odd = head[0::2].count(0), head[1::2].count(0)
    half = len(head) // 2
    if odd > 0.4 * half and even < 0.1 * half:
        return "utf-16-le"
    if even > 0.4 * half and odd < 0.1 * half:
        return "utf-16-be"
    raise not_text()


def refuse_binary(chunk: bytes) -> None:
    if (
        b"\x00" in chunk
        or sum(chunk.count(byte) for byte in (b"\x01", b"\x02", b"\x03", b"\x04", b"\x05", b"\x06")) > 8
    ):
        raise not_text()


def not_text() -> InputError:
    return InputError("input_not_a_spreadsheet", "the file is neither a workbook nor a text file")


def read_sample(path: Path, encoding: str) -> list[str]:
    try:
        with path.open("r", encoding=encoding, newline="") as text:
            lines = (text.readline(65_536) for _ in range(SAMPLE_LINES))
            return [line for line in lines if line]
    except UnicodeError as error:
        raise InputError("input_damaged", f"the file is not encoded in {encoding}: {error}") from error


def guess_quote(sample: list[str]) -> str:
    """Return the double quote, or the single quote if only single quotes are used."""
    text = "".join(sample)
    single = sum(text.count(f"{mark}'") for mark in DELIMITERS)
    return "'" if single > 2 and '"' not in text and single >= text.count("'") / 4 else '"'


def guess_delimiter(sample: list[str], quote: str) -> str:
    """Return the delimiter that splits the most lines into the same number of fields, preferring more fields."""
    best, chosen = (0.0, 0), ","
    for delimiter in DELIMITERS:
        if not any(delimiter in line for line in sample):
            continue
        try:
            counts = Counter(
                len(fields) for fields in csv.reader(sample, delimiter=delimiter, quotechar=quote) if any(fields)
            )
        except csv.Error:
            continue
        total = sum(counts.values())
        split = {width: count for width, count in counts.items() if width > 1}
        if split:
            width = max(split, key=lambda one: (split[one], one))
            if (score := (round(split[width] / total, 2), width)) > best:
                best, chosen = score, delimiter
    return chosen


def rows(
    text: io.TextIOWrapper, delimiter: str, quote: str, skipped: int, limits: Limits, on_progress: object
) -> Iterator[Line]:
    csv.field_size_limit(limits.max_cell_characters)
    reader = csv.reader(physical_lines(text, on_progress), delimiter=delimiter, quotechar=quote)
    number = 0
    try:
        for number, fields in enumerate(reader, start=1):
            if number > skipped and any(fields):
                cells = tuple([value_of(field) for field in fields])
                if any(cell is not None for cell in cells):
                    yield Line(number, cells)
    except csv.Error as error:
        if "field limit" in str(error):
            raise exceeded(
                "max_cell_characters",
                limits.max_cell_characters,
                f"a field in row {number + 1} is too long, perhaps because a closing quote is missing",
                row=number + 1,
            ) from error
        raise InputError("input_damaged", f"row {number + 1} can't be read: {error}", row=number + 1) from error
    except UnicodeError as error:
        raise InputError(
            "input_damaged", f"the text can't be decoded after row {number}: {error}", row=number
        ) from error


def physical_lines(text: io.TextIOWrapper, on_progress: object) -> Iterator[str]:
    """Yield the lines of the file, limited in length so that a file without line ends can't fill the memory."""
    count = 0
    while line := text.readline(MAX_LINE_LENGTH + 1):
        if len(line) > MAX_LINE_LENGTH:
            raise exceeded("max_cell_characters", MAX_LINE_LENGTH, f"line {count + 1} has too many characters")
        count += 1
        if count % 1000 == 0 and callable(on_progress):
            on_progress()
        yield line


def value_of(field: str) -> Value:
    return (field if field.strip() else None) if field else None
