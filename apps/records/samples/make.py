"""Make the samples that are not plain text: `python -m apps.records.samples.make`. Needs the `dev` extra."""

from __future__ import annotations

import io
from pathlib import Path

import docx
from PIL import Image, ImageDraw
from reportlab.lib import pagesizes, pdfencrypt
from reportlab.lib.styles import getSampleStyleSheet
from reportlab.lib.utils import ImageReader
from reportlab.pdfgen.canvas import Canvas
from reportlab.platypus import PageBreak, Paragraph, SimpleDocTemplate, Spacer, Table

HERE = Path(__file__).parent
STYLES = getSampleStyleSheet()

INVOICE = (
    "# Malerbetrieb Sonnleitner GmbH",
    "Ringstraße 40, 85049 Ingolstadt<br/>Telefon: +49 841 555-2210<br/>buero@maler-sonnleitner.example",
    "Frau<br/>Annette Kirschner<br/>Birkenweg 11<br/>85055 Ingolstadt",
    "# Rechnung Nr. RE-2026-0417",
    "Rechnungsdatum: 14.09.2026<br/>Kundennummer: 20931<br/>Leistungszeitraum: 24.08.2026 – 04.09.2026",
    "Sehr geehrte Frau Kirschner,",
    "für die Malerarbeiten in Ihrem Haus berechnen wir wie vereinbart:",
    [
        ["Pos.", "Bezeichnung", "Menge", "Einzelpreis", "Betrag EUR"],
        ["1", "Fassade reinigen und grundieren", "1", "1.150,00", "1.150,00"],
        ["2", "Fassade streichen, zwei Anstriche", "1", "3.480,00", "3.480,00"],
        ["3", "Gerüst, Wochen", "2", "310,00", "620,00"],
    ],
    "/",
    [
        ["", "Zwischensumme", "", "", "5.250,00"],
        ["", "zzgl. 19 % MwSt.", "", "", "997,50"],
        ["", "Gesamtbetrag", "", "", "6.247,50 EUR"],
    ],
    "Bitte überweisen Sie den Gesamtbetrag bis zum 28. September 2026 auf das Konto",
    "IBAN DE46 1005 0000 1234 5678 90, BIC BELADEBEXXX<br/>USt-IdNr.: DE312288469",
    "Mit freundlichen Grüßen<br/>Ludwig Sonnleitner<br/>Geschäftsführer",
)
WRONG_SUM = (
    "# Fairview Office Supplies Inc.",
    "880 Commerce Way, Dayton, OH 45402<br/>Phone (937) 555-0121",
    "# INVOICE",
    "Invoice No.: FO-77123<br/>Invoice Date: October 1, 2026<br/>Due Date: October 31, 2026",
    "Bill To:<br/>Gregory Stanton<br/>Miller Dental Group<br/>15 Oak Street<br/>Dayton, OH 45409",
    [
        ["Description", "Qty", "Price", "Amount"],
        ["Desk lamp, adjustable", "4", "$38.50", "$154.00"],
        ["Office chair", "2", "$219.00", "$438.00"],
        ["Delivery", "1", "$25.00", "$25.00"],
        ["Subtotal", "", "", "$617.00"],
        ["Sales tax (7%)", "", "", "$43.19"],
        ["TOTAL DUE", "", "", "$680.19"],
    ],
    "Wire transfers to IBAN DE46 1005 0000 1234 5678 91. Questions? Contact Monica Fields at billing@fairview.example.",
)
CLAIM = (
    "# Harbour Mutual Insurance",
    "# HOUSEHOLD CLAIM FORM",
    "Policy Number: HH-3310-4472<br/>Claim Number: CLM-2026-00981",
    "<b>Policyholder</b>",
    "Name: Deborah Whitlock<br/>Telephone: 020 7946 0301<br/>Email: d.whitlock@post.example<br/>"
    "Date of birth: 17/06/1969",
    "<b>Details of the Incident</b>",
    "Date of loss: 22/10/2026<br/>A pipe in the bathroom burst while we were away. Our neighbour Patrick Moran "
    "turned off the water and called the fire brigade.",
    "<b>Damage</b>",
    [
        ["Carpet, living room", "£860.00"],
        ["Bookshelf and books", "£415.50"],
        ["Drying of the floor", "£1,240.00"],
        ["Total amount claimed", "£2,515.50"],
    ],
    "Signed: Deborah Whitlock<br/>Date: 26 October 2026",
)
REPORT = (
    "# Klinikum am Stadtgarten, Abteilung für Chirurgie",
    "Chefärztin: Prof. Dr. med. Renate Vollmer",
    "Entlassungsbrief",
    "Patient: Georg Haberland, geb. am 05.02.1958",
    "Fallnummer: 26-117340, Versichertennummer: K509266137",
    "Stationäre Behandlung vom 02.11.2026 bis zum 07.11.2026.",
    "## Diagnosen",
    "Akute Appendizitis (K35.3)",
    "## Anamnese",
    "Der Patient stellte sich am 02.11.2026 mit Schmerzen im rechten Unterbauch vor.",
    "## Therapie und Verlauf",
    "Laparoskopische Appendektomie am 3. November 2026 durch Dr. Simon Albers. Der Verlauf war ohne Komplikationen.",
    "## Medikation",
    "Ibuprofen 400 mg 1-1-1, Pantoprazol 20 mg 1-0-0",
    "## Empfehlung",
    "Wir bitten um Kontrolle der Wunde in einer Woche. Körperliche Schonung bis zum 28.11.2026.",
    "Mit freundlichen Grüßen",
    "Prof. Dr. med. Renate Vollmer",
)
CONTRACT = (
    "# CONSULTING AGREEMENT",
    "This Agreement is made on 5 October 2026 by and between Tidewater Energy Ltd, represented by Imogen Castle "
    '(the "Client"), and Dr. Rafael Moreno (the "Consultant").',
    "## 1. Services",
    "The Consultant shall advise the Client on the siting of coastal wind turbines.",
    "## 2. Term",
    "This Agreement commences on 1 November 2026 and continues until 31 October 2027 unless terminated earlier.",
    "## 3. Fees",
    "The Client shall pay £950 per day, at most GBP 76,000.00 in total.",
    "## 4. Termination",
    "Either party may terminate this Agreement by giving 30 days' written notice.",
    "## 5. Governing Law",
    "This Agreement is governed by the laws of Scotland.",
    [["Signed: Imogen Castle", "Signed: Rafael Moreno"]],
)


def main() -> None:
    pdf("invoice.pdf", INVOICE)
    pdf("invoice-that-does-not-add-up.pdf", WRONG_SUM)
    pdf("claim.pdf", CLAIM)
    pdf("locked.pdf", CLAIM, password="not to be known")
    whole = (HERE / "invoice.pdf").read_bytes()
    (HERE / "cut-off.pdf").write_bytes(whole[: len(whole) // 2])
    scan("scan.pdf")
    word("discharge.docx", REPORT)
    word("contract.docx", CONTRACT)


def pdf(name: str, parts: tuple[str | list[list[str]], ...], *, password: str | None = None) -> None:
    encryption = pdfencrypt.StandardEncryption(password) if password else None
    document = SimpleDocTemplate(str(HERE / name), pagesize=pagesizes.A4, encrypt=encryption, invariant=1, title=name)
    flow = []
    for part in parts:
        match part:
            case list():
                flow.append(Table(part, hAlign="LEFT"))
            case "/":
                flow.append(PageBreak())
            case _:
                style = "Heading2" if part.startswith("# ") else "Normal"
                flow.append(Paragraph(part.removeprefix("# "), STYLES[style]))
        flow.append(Spacer(1, 9))
    document.build(flow)


def scan(name: str) -> None:
    """Make a PDF whose only page is an image of a letter, so that it contains no text."""
    picture = Image.new("L", (620, 877), 255)
    pen = ImageDraw.Draw(picture)
    for row, line in enumerate(("Dear Sir or Madam,", "this page is only a picture.", "Yours faithfully")):
        pen.text((70, 90 + 40 * row), line, fill=0)
    packed = io.BytesIO()
    picture.save(packed, "PNG")
    packed.seek(0)
    canvas = Canvas(str(HERE / name), pagesize=pagesizes.A4, invariant=1)
    canvas.drawImage(ImageReader(packed), 0, 0, *pagesizes.A4)
    canvas.save()


def word(name: str, parts: tuple[str | list[list[str]], ...]) -> None:
    document = docx.Document()
    for part in parts:
        if isinstance(part, list):
            table = document.add_table(rows=len(part), cols=len(part[0]))
            for row, cells in zip(table.rows, part, strict=True):
                for cell, text in zip(row.cells, cells, strict=True):
                    cell.text = text
        elif part.startswith("#"):
            document.add_heading(part.lstrip("# "), level=part.index(" "))
        else:
            document.add_paragraph(part)
    document.save(str(HERE / name))


if __name__ == "__main__":
    main()
