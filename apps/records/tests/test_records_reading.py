"""Reading files: types are recognised by content, and an unreadable file fails with a reason."""

from __future__ import annotations

import contextlib
import io
import random
import time
import zipfile
from email.message import EmailMessage
from pathlib import Path

import docx
import pytest
from apps.records.file_types import guess_media_type, kind_of
from apps.records.readers import normalise, read
from apps.records.readers.limits import Limits
from apps.records.tests.records_server import SAMPLES
from apps.records.unreadable import Unreadable
from docx.oxml import parse_xml
from docx.oxml.ns import nsdecls
from reportlab.pdfgen.canvas import Canvas

PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 8


def write(folder: Path, content: bytes, name: str = "file") -> Path:
    path = folder / name
    path.write_bytes(content)
    return path


def pdf(*pages: str, **options: object) -> bytes:
    buffer = io.BytesIO()
    canvas = Canvas(buffer, invariant=1, **options)
    for page in pages:
        if page:
            canvas.drawString(72, 700, page)
        canvas.showPage()
    canvas.save()
    return buffer.getvalue()


def word(*paragraphs: str) -> bytes:
    buffer = io.BytesIO()
    document = docx.Document()
    for paragraph in paragraphs:
        document.add_paragraph(paragraph)
    document.save(buffer)
    return buffer.getvalue()


def archive(parts: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as zipped:
        for name, content in parts.items():
            zipped.writestr(name, content)
    return buffer.getvalue()


def mail(body: str, *, depth: int = 0, html: str | None = None, attachments: int = 0) -> bytes:
    message = EmailMessage()
    message["From"], message["To"], message["Subject"] = "a@b.example", "c@d.example", "Grüße"
    message.set_content(body)
    if html is not None:
        message.clear_content()
        message.set_content(html, subtype="html")
    for number in range(attachments):
        message.add_attachment(f"attached {number}", filename=f"{number}.txt")
    for _ in range(depth):
        outer = EmailMessage()
        outer["From"], outer["To"] = "a@b.example", "c@d.example"
        outer.set_content("see below")
        outer.add_attachment(message)
        message = outer
    return message.as_bytes()


def unpacked(content: bytes, **changed: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(content)) as opened:
        return {name: changed.get(Path(name).stem, opened.read(name)) for name in opened.namelist()}


GOOD = {
    "pdf": (pdf("first page", "second page"), "pdf", ["first page", "second page"]),
    "docx": (word("one", "two"), "docx", ["one\ntwo"]),
    "eml": (mail("the body"), "eml", ["From: a@b.example\nTo: c@d.example\nSubject: Grüße\n\nthe body"]),
    "eml with html": (
        mail("", html="<p>Dear <b>Ann</b>,</p><script>no()</script><table><tr><td>a<td>1,00</table>"),
        "eml",
        ["From: a@b.example\nTo: c@d.example\nSubject: Grüße\n\nDear Ann,\n\na   1,00"],
    ),
    "utf-8": ("Grüße".encode(), "txt", ["Grüße"]),
    "utf-8 with a byte order mark": ("\ufeffGrüße".encode(), "txt", ["Grüße"]),
    "utf-16": ("Grüße".encode("utf-16"), "txt", ["Grüße"]),
    "windows-1252": ("Schöne Grüße aus München – 5 €".encode("cp1252"), "txt", ["Schöne Grüße aus München – 5 €"]),
    "two pages of text": (b"one\x0ctwo", "txt", ["one", "two"]),
    "a letter that begins like a message": (b"Dear Ann,\nTo: be or not\n", "txt", ["Dear Ann,\nTo: be or not"]),
}


@pytest.mark.parametrize("name", GOOD)
@pytest.mark.parametrize("called", ["file", "file.exe", "../../file.pdf"])
def test_a_file_type_is_recognised_by_content_and_not_by_name(name: str, called: str, tmp_path: Path) -> None:
    content, kind, pages = GOOD[name]
    path = write(tmp_path, content, Path(called).name)
    assert guess_media_type(content[:4096]) is not None
    assert kind_of(path) == kind
    assert read(path, kind) == pages


@pytest.mark.parametrize(
    "content",
    [
        PNG,
        b"\x7fELF" + bytes(2000),
        archive({"a.txt": b"not a document"}),
        bytes(range(256)) * 20,
        b"GIF89a" + bytes(300),
    ],
    ids=["png", "elf", "zip", "noise", "gif"],
)
def test_unsupported_files_are_recognised(content: bytes, tmp_path: Path) -> None:
    assert kind_of(write(tmp_path, content)) is None


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_a_long_text_in_any_script_is_text(encoding: str, tmp_path: Path) -> None:
    path = write(tmp_path, ("x" + "Уважаемая Анна! " * 100_000).encode(encoding))
    assert guess_media_type(path.read_bytes()[:4096]) == "text/plain"
    assert kind_of(path) == "txt"


def test_a_file_with_binary_data_after_a_long_text_is_not_text(tmp_path: Path) -> None:
    path = write(tmp_path, b"words " * 300_000 + b"\x00\x01\x02" * 100)
    assert guess_media_type(path.read_bytes()[:4096]) == "text/plain"
    assert kind_of(path) is None


WHOLE_PDF, WHOLE_DOCX = pdf("first page"), word("one")
SMALL = Limits(pages=3, characters=1000, unpacked=5_000_000, parts=40, depth=3)
BAD = {
    "an encrypted pdf": ((SAMPLES / "locked.pdf").read_bytes(), "ENCRYPTED"),
    "a pdf of pictures": ((SAMPLES / "scan.pdf").read_bytes(), "IMAGE_ONLY"),
    "a pdf without text": (pdf("", ""), "EMPTY"),
    "a pdf cut in the middle": (WHOLE_PDF[: len(WHOLE_PDF) // 2], "TRUNCATED"),
    "a pdf cut before its end": (WHOLE_PDF[:-40], "TRUNCATED"),
    "only the beginning of a pdf": (b"%PDF-1.4\n", "TRUNCATED"),
    "a pdf of noise": (b"%PDF-1.4\n" + bytes(range(256)) * 40 + b"\n%%EOF\n", "CORRUPT"),
    "a pdf with too many pages": (pdf(*["page"] * 4), "TOO_LARGE"),
    "a pdf with too many characters": (pdf(*["many words " * 60] * 2), "TOO_LARGE"),
    "an empty file": (b"", "EMPTY"),
    "a file of spaces": (b" \n\t \n", "EMPTY"),
    "a text that is too long": (b"word " * 201, "TOO_LARGE"),
    "a text that is far too long": (b"word " * 2000, "TOO_LARGE"),
    "an empty docx": (word(), "EMPTY"),
    "a docx cut in the middle": (WHOLE_DOCX[: len(WHOLE_DOCX) // 2], "TRUNCATED"),
    "a docx with broken xml": (archive(unpacked(WHOLE_DOCX, document=b"<w:document")), "CORRUPT"),
    "a docx without its relations": (archive({"word/document.xml": b"<a/>"}), "CORRUPT"),
    "a docx that grows 200 times": (archive(unpacked(WHOLE_DOCX) | {"word/media.bin": bytes(4_000_000)}), "TOO_LARGE"),
    "a docx that unpacks to 9 MB": (archive(unpacked(WHOLE_DOCX) | {"word/media.bin": bytes(9_000_000)}), "TOO_LARGE"),
    "a docx of many parts": (archive(unpacked(WHOLE_DOCX) | {f"x/{n}": b"x" for n in range(60)}), "TOO_LARGE"),
    "a docx that is too long": (word("word " * 300), "TOO_LARGE"),
    "messages within messages": (mail("deep", depth=5), "TOO_LARGE"),
    "a message with many attachments": (mail("many", attachments=60), "TOO_LARGE"),
    "a message cut off": (mail("body", attachments=2)[:-60], "TRUNCATED"),
    "an encrypted message": (
        b"From: a@b.example\nTo: c@d.example\nContent-Type: application/pkcs7-mime\n\nMIIB", "ENCRYPTED"
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_an_unreadable_file_is_refused_with_a_failure_type(name: str, tmp_path: Path) -> None:
    content, failure_type = BAD[name]
    path = write(tmp_path, content)
    kind = kind_of(path)
    assert kind is not None
    with pytest.raises(Unreadable) as raised:
        read(path, kind, limits=SMALL)
    assert raised.value.failure_type == failure_type
    assert str(raised.value)


def test_xml_entities_in_a_docx_are_not_expanded(tmp_path: Path) -> None:
    """These entities would expand to gigabytes, and one would read a file of the server."""
    bomb = b'<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a "' + b"A" * 1000 + b'">'
    for number in range(1, 8):
        inner = f"&a{number - 1 or ''};" * 10
        bomb += f'<!ENTITY a{number} "{inner}">'.encode()
    bomb += b'<!ENTITY file SYSTEM "file:///etc/passwd">]>'
    bomb += (
        b'<w:document xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"><w:body><w:p><w:r><w:t>'
        b"&a7;&file;</w:t></w:r></w:p></w:body></w:document>"
    )
    path = write(tmp_path, archive(unpacked(WHOLE_DOCX, document=bomb)))
    with pytest.raises(Unreadable) as raised:
        read(path, "docx", limits=SMALL)
    assert raised.value.failure_type in ("CORRUPT", "EMPTY", "TOO_LARGE")


def test_tables_and_page_breaks_of_a_docx_are_kept(tmp_path: Path) -> None:
    buffer = io.BytesIO()
    document = docx.Document()
    document.add_paragraph("above")
    table = document.add_table(rows=1, cols=2)
    table.rows[0].cells[0].text, table.rows[0].cells[1].text = "Total", "5,00 EUR"
    document.add_page_break()  # type: ignore[no-untyped-call]
    document.add_paragraph("on the second page")
    document.save(buffer)
    pages = read(write(tmp_path, buffer.getvalue()), "docx")
    assert [page.split() for page in pages] == [["above", "Total", "5,00", "EUR"], ["on", "the", "second", "page"]]


def test_the_values_of_form_fields_in_a_pdf_are_read(tmp_path: Path) -> None:
    buffer = io.BytesIO()
    canvas = Canvas(buffer)
    canvas.drawString(72, 700, "Policy number:")
    canvas.acroForm.textfield(value="HH-3310-4472", x=200, y=695, width=150, height=18)
    canvas.save()
    [page] = read(write(tmp_path, buffer.getvalue()), "pdf")
    assert page.split() == ["Policy", "number:", "HH-3310-4472"]


W = nsdecls("w")


def test_all_visible_text_of_a_docx_is_read_and_no_deleted_text(tmp_path: Path) -> None:
    document = docx.Document()
    document.sections[0].header.paragraphs[0].text = "header"
    document.sections[0].footer.paragraphs[0].text = "footer"
    paragraph = document.add_paragraph("plain")._p
    for wrapped in (
        f"<w:ins {W}><w:r><w:t> inserted</w:t></w:r></w:ins>",
        f"<w:del {W}><w:r><w:delText> deleted</w:delText></w:r></w:del>",
        f"<w:moveFrom {W}><w:r><w:t> moved away</w:t></w:r></w:moveFrom>",
        f"<w:sdt {W}><w:sdtContent><w:r><w:t> control</w:t></w:r></w:sdtContent></w:sdt>",
        f"<w:fldSimple {W}><w:r><w:t> field</w:t></w:r></w:fldSimple>",
        f"<w:r {W}><w:pict><w:txbxContent><w:p><w:r><w:t>box</w:t></w:r></w:p></w:txbxContent></w:pict></w:r>",
    ):
        paragraph.append(parse_xml(wrapped))
    table = document.add_table(rows=1, cols=2)
    table.rows[0].cells[0].merge(table.rows[0].cells[1]).text = "spans both"
    row = "<w:tr><w:tc><w:p><w:r><w:t>a row to fill in</w:t></w:r></w:p></w:tc></w:tr>"
    table._tbl.append(parse_xml(f"<w:sdt {W}><w:sdtContent>{row}</w:sdtContent></w:sdt>"))
    buffer = io.BytesIO()
    document.save(buffer)
    [page] = read(write(tmp_path, buffer.getvalue()), "docx")
    lines = [line for line in page.split("\n") if line]
    assert lines == ["header", "plain inserted control field", "box", "spans both", "a row to fill in", "footer"]


@pytest.mark.parametrize(
    "rows",
    [
        '<w:tr><w:tc><w:tcPr><w:gridSpan w:val="2000000000"/></w:tcPr>{text}</w:tc></w:tr>',
        "<w:tr><w:tc>{text}</w:tc></w:tr>" + "<w:tr><w:tc><w:tcPr><w:vMerge/></w:tcPr><w:p/></w:tc></w:tr>" * 3000,
        "<w:tr><w:tc><w:tbl>" * 30 + "<w:tr><w:tc>{text}</w:tc></w:tr>" + "</w:tbl></w:tc></w:tr>" * 30,
    ],
    ids=["a cell that spans billions of columns", "a cell that spans thousands of rows", "nested tables"],
)
def test_a_hostile_table_is_read_quickly(rows: str, tmp_path: Path) -> None:
    body = f"<w:body><w:tbl>{rows}</w:tbl></w:body>".format(text="<w:p><w:r><w:t>here</w:t></w:r></w:p>")
    content = archive(unpacked(WHOLE_DOCX, document=f"<w:document {W}>{body}</w:document>".encode()))
    started = time.process_time()
    [page] = read(write(tmp_path, content), "docx")
    assert page.split() == ["here"]
    assert time.process_time() - started < 10


def test_a_damaged_docx_raises_only_unreadable(tmp_path: Path) -> None:
    """Any other error from a library would make the run attempt the step again for nothing."""
    chance = random.Random(7)
    for _ in range(60):
        damaged = bytearray(WHOLE_DOCX)
        for _ in range(chance.choice((1, 5, 30))):
            damaged[chance.randrange(len(damaged))] = chance.choice((0, 0xFF, chance.randrange(256)))
        with contextlib.suppress(Unreadable):
            read(write(tmp_path, bytes(damaged)), "docx")


def test_text_is_normalised_and_loses_characters_that_a_database_can_not_store() -> None:
    assert normalise("a\u00a0b\r\nc\rﬁ\x00\u00adu\u0308\ud800") == "a b\nc\nfiü"


@pytest.mark.parametrize(
    "line",
    [
        'To: "',
        "To: a@[",
        "To: " + "(" * 5000,
        "To: " + "a," * 50_000,
        "To: =?utf-8?q?=ZZ?= =?nothing?b?!!?=",
        "Content-Type: ;;;=",
        "Content-Type: text/plain; charset=rot13",
        "Content-Type: multipart/mixed",
    ],
    ids=lambda line: line[:24],
)
def test_a_message_with_a_malformed_header_is_read(line: str, tmp_path: Path) -> None:
    file = tmp_path / "odd.eml"
    file.write_text(f"From: Ann Dale <ann@post.example>\nSubject: odd\n{line}\n\nThe text.\n")
    [page] = read(file, "eml")
    assert page.startswith("From: Ann Dale <ann@post.example>")
    assert page.endswith("The text.")


def test_deeply_nested_messages_are_refused_as_too_large(tmp_path: Path) -> None:
    file = tmp_path / "deep.eml"
    file.write_text("From: a@b\nSubject: s\n" + "Content-Type: message/rfc822\n\nFrom: a@b\nSubject: s\n" * 3000)
    with pytest.raises(Unreadable) as refused:
        read(file, "eml")
    assert refused.value.failure_type == "TOO_LARGE"


@pytest.mark.parametrize(
    "piece",
    ["<!--", "<div>", *(pytest.param(piece, marks=pytest.mark.long) for piece in ("<", "<a b='", "<![CDATA[", "&#"))],
)
def test_hostile_markup_is_read_quickly(piece: str, tmp_path: Path) -> None:
    file = tmp_path / "slow.eml"
    file.write_text(f"From: a@b\nSubject: s\nContent-Type: text/html\n\nhello {piece * 40_000}")
    started = time.process_time()
    [page] = read(file, "eml")
    assert "hello" in page
    assert (
        time.process_time() - started < 10
    )  # a parser that searches the rest of the text for each end tag would take minutes
