"""Files, good and bad: what they are is told by what is in them, and what can't be read says why in a word."""

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
from apps.records.file_types import kind_of, likely
from apps.records.readers import read, tidy
from apps.records.readers.limits import Limits
from apps.records.unreadable import Unreadable
from docx.oxml import parse_xml
from docx.oxml.ns import nsdecls
from reportlab.pdfgen.canvas import Canvas
from tests.apps.records.serving import SAMPLES

PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 8


def written(folder: Path, content: bytes, name: str = "file") -> Path:
    path = folder / name
    path.write_bytes(content)
    return path


def pdf(*pages: str, **options: object) -> bytes:
    packed = io.BytesIO()
    canvas = Canvas(packed, invariant=1, **options)
    for page in pages:
        if page:
            canvas.drawString(72, 700, page)
        canvas.showPage()
    canvas.save()
    return packed.getvalue()


def word(*paragraphs: str) -> bytes:
    packed = io.BytesIO()
    document = docx.Document()
    for paragraph in paragraphs:
        document.add_paragraph(paragraph)
    document.save(packed)
    return packed.getvalue()


def archive(parts: dict[str, bytes]) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as made:
        for name, content in parts.items():
            made.writestr(name, content)
    return packed.getvalue()


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
    "with a mark": ("\ufeffGrüße".encode(), "txt", ["Grüße"]),
    "utf-16": ("Grüße".encode("utf-16"), "txt", ["Grüße"]),
    "windows-1252": ("Schöne Grüße aus München – 5 €".encode("cp1252"), "txt", ["Schöne Grüße aus München – 5 €"]),
    "two pages of text": (b"one\x0ctwo", "txt", ["one", "two"]),
    "a letter that begins like a message": (b"Dear Ann,\nTo: be or not\n", "txt", ["Dear Ann,\nTo: be or not"]),
}


@pytest.mark.parametrize("name", GOOD)
@pytest.mark.parametrize("called", ["file", "file.exe", "../../file.pdf"])
def test_a_file_is_what_is_in_it_whatever_it_is_called(name: str, called: str, tmp_path: Path) -> None:
    content, kind, pages = GOOD[name]
    path = written(tmp_path, content, Path(called).name)
    assert likely(content[:4096]) is not None
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
def test_what_is_none_of_ours_is_known_as_that(content: bytes, tmp_path: Path) -> None:
    assert kind_of(written(tmp_path, content)) is None


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_a_long_text_in_any_letters_is_text(encoding: str, tmp_path: Path) -> None:
    path = written(tmp_path, ("x" + "Уважаемая Анна! " * 100_000).encode(encoding))
    assert likely(path.read_bytes()[:4096]) == "text/plain"
    assert kind_of(path) == "txt"


def test_a_file_that_turns_out_to_be_no_text_after_a_long_beginning_is_none(tmp_path: Path) -> None:
    path = written(tmp_path, b"words " * 300_000 + b"\x00\x01\x02" * 100)
    assert likely(path.read_bytes()[:4096]) == "text/plain"
    assert kind_of(path) is None


WHOLE_PDF, WHOLE_DOCX = pdf("first page"), word("one")
SMALL = Limits(pages=3, characters=1000, unpacked=5_000_000, parts=40, depth=3)
BAD = {
    "an encrypted pdf": ((SAMPLES / "locked.pdf").read_bytes(), "ENCRYPTED"),
    "a pdf of pictures": ((SAMPLES / "scan.pdf").read_bytes(), "IMAGE_ONLY"),
    "a pdf without a letter": (pdf("", ""), "EMPTY"),
    "a pdf cut in the middle": (WHOLE_PDF[: len(WHOLE_PDF) // 2], "TRUNCATED"),
    "a pdf cut before its end": (WHOLE_PDF[:-40], "TRUNCATED"),
    "only the beginning of a pdf": (b"%PDF-1.4\n", "TRUNCATED"),
    "a pdf of noise": (b"%PDF-1.4\n" + bytes(range(256)) * 40 + b"\n%%EOF\n", "CORRUPT"),
    "a pdf with too many pages": (pdf(*["page"] * 4), "TOO_LARGE"),
    "a pdf with too many letters": (pdf(*["many words " * 60] * 2), "TOO_LARGE"),
    "an empty file": (b"", "EMPTY"),
    "a file of spaces": (b" \n\t \n", "EMPTY"),
    "a text that is too long": (b"word " * 201, "TOO_LARGE"),
    "a text that is far too long": (b"word " * 2000, "TOO_LARGE"),
    "an empty docx": (word(), "EMPTY"),
    "a docx cut in the middle": (WHOLE_DOCX[: len(WHOLE_DOCX) // 2], "TRUNCATED"),
    "a docx with broken xml": (archive(unpacked(WHOLE_DOCX, document=b"<w:document")), "CORRUPT"),
    "a docx without its relations": (archive({"word/document.xml": b"<a/>"}), "CORRUPT"),
    "a docx that grows": (archive(unpacked(WHOLE_DOCX) | {"word/media.bin": bytes(4_000_000)}), "TOO_LARGE"),
    "a docx that grows beyond all": (archive(unpacked(WHOLE_DOCX) | {"word/media.bin": bytes(9_000_000)}), "TOO_LARGE"),
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
def test_what_can_not_be_read_says_why_in_a_word(name: str, tmp_path: Path) -> None:
    content, why = BAD[name]
    path = written(tmp_path, content)
    kind = kind_of(path)
    assert kind is not None
    with pytest.raises(Unreadable) as raised:
        read(path, kind, limits=SMALL)
    assert raised.value.why == why
    assert str(raised.value)


def test_entities_of_a_docx_are_not_unfolded(tmp_path: Path) -> None:
    """A few lines of XML that would become gigabytes, and one that would read a file of ours."""
    bomb = b'<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a "' + b"A" * 1000 + b'">'
    for number in range(1, 8):
        inner = f"&a{number - 1 or ''};" * 10
        bomb += f'<!ENTITY a{number} "{inner}">'.encode()
    bomb += b'<!ENTITY file SYSTEM "file:///etc/passwd">]>'
    bomb += (
        b'<w:document xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"><w:body><w:p><w:r><w:t>'
        b"&a7;&file;</w:t></w:r></w:p></w:body></w:document>"
    )
    path = written(tmp_path, archive(unpacked(WHOLE_DOCX, document=bomb)))
    with pytest.raises(Unreadable) as raised:
        read(path, "docx", limits=SMALL)
    assert raised.value.why in ("CORRUPT", "EMPTY", "TOO_LARGE")


def test_tables_and_page_breaks_of_a_docx_are_kept(tmp_path: Path) -> None:
    packed = io.BytesIO()
    document = docx.Document()
    document.add_paragraph("above")
    table = document.add_table(rows=1, cols=2)
    table.rows[0].cells[0].text, table.rows[0].cells[1].text = "Total", "5,00 EUR"
    document.add_page_break()  # type: ignore[no-untyped-call]
    document.add_paragraph("on the second page")
    document.save(packed)
    pages = read(written(tmp_path, packed.getvalue()), "docx")
    assert [page.split() for page in pages] == [["above", "Total", "5,00", "EUR"], ["on", "the", "second", "page"]]


def test_what_was_filled_in_a_form_is_read(tmp_path: Path) -> None:
    packed = io.BytesIO()
    canvas = Canvas(packed)
    canvas.drawString(72, 700, "Policy number:")
    canvas.acroForm.textfield(value="HH-3310-4472", x=200, y=695, width=150, height=18)
    canvas.save()
    [page] = read(written(tmp_path, packed.getvalue()), "pdf")
    assert page.split() == ["Policy", "number:", "HH-3310-4472"]


W = nsdecls("w")


def test_all_that_a_reader_of_a_docx_sees_is_read_and_nothing_that_was_deleted(tmp_path: Path) -> None:
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
    packed = io.BytesIO()
    document.save(packed)
    [page] = read(written(tmp_path, packed.getvalue()), "docx")
    lines = [line for line in page.split("\n") if line]
    assert lines == ["header", "plain inserted control field", "box", "spans both", "a row to fill in", "footer"]


@pytest.mark.parametrize(
    "rows",
    [
        '<w:tr><w:tc><w:tcPr><w:gridSpan w:val="2000000000"/></w:tcPr>{text}</w:tc></w:tr>',
        "<w:tr><w:tc>{text}</w:tc></w:tr>" + "<w:tr><w:tc><w:tcPr><w:vMerge/></w:tcPr><w:p/></w:tc></w:tr>" * 3000,
        "<w:tr><w:tc><w:tbl>" * 30 + "<w:tr><w:tc>{text}</w:tc></w:tr>" + "</w:tbl></w:tc></w:tr>" * 30,
    ],
    ids=["a cell that spans all columns there are", "a cell that spans thousands of rows", "tables in tables"],
)
def test_a_table_that_is_made_to_be_large_takes_no_longer(rows: str, tmp_path: Path) -> None:
    body = f"<w:body><w:tbl>{rows}</w:tbl></w:body>".format(text="<w:p><w:r><w:t>here</w:t></w:r></w:p>")
    content = archive(unpacked(WHOLE_DOCX, document=f"<w:document {W}>{body}</w:document>".encode()))
    started = time.process_time()
    [page] = read(written(tmp_path, content), "docx")
    assert page.split() == ["here"]
    assert time.process_time() - started < 10


def test_a_docx_that_was_damaged_anywhere_says_why(tmp_path: Path) -> None:
    """Whatever the libraries make of it: no error of theirs gets out, which would be tried again for nothing."""
    chance = random.Random(7)
    for _ in range(60):
        damaged = bytearray(WHOLE_DOCX)
        for _ in range(chance.choice((1, 5, 30))):
            damaged[chance.randrange(len(damaged))] = chance.choice((0, 0xFF, chance.randrange(256)))
        with contextlib.suppress(Unreadable):
            read(written(tmp_path, bytes(damaged)), "docx")


def test_text_has_one_spelling_and_nothing_that_a_database_can_not_keep() -> None:
    assert tidy("a\u00a0b\r\nc\rﬁ\x00\u00adu\u0308\ud800") == "a b\nc\nfiü"


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
def test_a_message_whose_header_makes_no_sense_is_read_all_the_same(line: str, tmp_path: Path) -> None:
    file = tmp_path / "odd.eml"
    file.write_text(f"From: Ann Dale <ann@post.example>\nSubject: odd\n{line}\n\nThe text.\n")
    [page] = read(file, "eml")
    assert page.startswith("From: Ann Dale <ann@post.example>")
    assert page.endswith("The text.")


def test_messages_within_messages_beyond_what_can_be_followed_are_too_large(tmp_path: Path) -> None:
    file = tmp_path / "deep.eml"
    file.write_text("From: a@b\nSubject: s\n" + "Content-Type: message/rfc822\n\nFrom: a@b\nSubject: s\n" * 3000)
    with pytest.raises(Unreadable) as refused:
        read(file, "eml")
    assert refused.value.why == "TOO_LARGE"


@pytest.mark.parametrize(
    "piece",
    ["<!--", "<div>", *(pytest.param(piece, marks=pytest.mark.long) for piece in ("<", "<a b='", "<![CDATA[", "&#"))],
)
def test_markup_that_is_made_to_be_slow_takes_no_longer(piece: str, tmp_path: Path) -> None:
    file = tmp_path / "slow.eml"
    file.write_text(f"From: a@b\nSubject: s\nContent-Type: text/html\n\nhello {piece * 40_000}")
    started = time.process_time()
    [page] = read(file, "eml")
    assert "hello" in page
    assert time.process_time() - started < 10  # a parser that looks for each end anew takes minutes
