"""Make the sample PDFs: `python -m apps.extraction.samples.make`. Needs the `dev` extra (reportlab)."""

from __future__ import annotations

from pathlib import Path

from reportlab.lib.pagesizes import A4
from reportlab.pdfgen.canvas import Canvas

HERE = Path(__file__).parent
LEFT, TOP, LINE = 64, 780, 16

INVOICE = [
    "# Invoice 2031-0417",
    "Supplier: Northwater Chandlers Ltd",
    "Customer: Lighthouse Trust of Skarholm",
    "Invoice date: 3 March 2031",
    "Due date: 2 April 2031",
    "",
    "| Item | Quantity | Price | Amount |",
    "| Mooring rope 24 mm | 120 m | 4.10 | 492.00 |",
    "| Brass lamp glass | 2 | 310.00 | 620.00 |",
    "| Marine paint, white | 14 l | 18.50 | 259.00 |",
    "",
    "Total: 1,371.00 EUR",
    "IBAN: DE89 3704 0044 0532 0130 00",
    "",
    "Payment is due within thirty days of the invoice date. Late payments bear interest at",
    "five percent a year. Goods remain ours until they are paid in full.",
]
CONTRACT = [
    "# Service agreement",
    "1. Parties",
    "1.1 Client: Lighthouse Trust of Skarholm",
    "1.2 Contractor: Vik Marine Works AS",
    "",
    "2. Subject",
    "2.1 The contractor overhauls the winch of the slipway and tests it with a load of four tonnes.",
    "2.2 The old chain remains with the client.",
    "",
    "3. Term",
    "3.1 Start: 1 June 2031",
    "3.2 End: 31 August 2031",
    "3.3 Either side may end this agreement with two weeks' notice in writing.",
    "",
    "4. Fee and payment",
    "4.1 Fee: 18,400.00 EUR",
    "4.2 Half of the fee is due at the start, the rest within thirty days of acceptance.",
    "",
    "5. Liability",
    "5.1 The contractor is liable for damage to the slipway up to twice the fee.",
    "",
    "6. Governing law",
    "6.1 This agreement is governed by the law of Norway.",
]
LEASE = [
    "# Lease of the boat house at Skarholm",
    "Landlord: Lighthouse Trust of Skarholm",
    "Tenant: Ingrid Solberg",
    "Rent: 640.00 EUR a month",
    "",
    "1. The tenant may keep up to three boats in the house. Engines are to be drained before",
    "winter, and no fuel may be stored inside.",
    "",
    "2. The lease begins on 1 May 2031 and ends on 30 April 2034. Either side may end it with",
    "three months' notice in writing, to the end of a quarter.",
    "",
    "3. The landlord repairs roof, walls and slipway. The tenant keeps the inside clean and tells",
    "the landlord of any damage within a week of noticing it.",
    "",
    "4. Pets are welcome, but dogs must be kept away from the nesting birds between March and July.",
    "---",
    "# Annex: inventory",
    "| Thing | State |",
    "| Winch | good |",
    "| Two oars | one is cracked |",
    "| Workbench | worn |",
    "",
    "Both sides have walked through the house together and agree with this list.",
]
MANUAL = [
    "# Keeper's manual",
    "Station: Skarholm Light",
    "Revision: 7",
    "",
    "Every morning the keeper winds the clockwork, wipes the lens with spirit and chamois, and notes",
    "barometer, wind and sea in the log. If the pressure falls by more than six millibars in three hours,",
    "the storm ball is hoisted and the harbour office is called by telephone.",
    "",
    "The lamp burns from sunset to sunrise. In fog the horn is sounded twice a minute; its compressor",
    "needs ten minutes to build up pressure, so start it before the fog is thick.",
    "---",
    "# Emergencies",
    "If the mains fail, the diesel generator starts by itself within thirty seconds. If it does not, turn",
    "the red handle, prime the pump five times and press the green button.",
    "",
    "In case of fire leave the tower at once. The extinguishers are for small fires of paint or fuel only.",
    "The assembly point is the flagpole. The rescue boat's call sign is Petrel Four, channel sixteen.",
    "",
    "First aid kits hang in the lamp room and in the kitchen. The nearest doctor is Dr Aaltonen in Vik,",
    "who comes by boat in calm weather and by helicopter otherwise.",
]
REPORT = [
    "# Seal survey, summer 2030",
    "Author: Dr Mira Aaltonen",
    "Period: June to August 2030",
    "",
    "Harbour seals were counted at low tide on forty days. The highest number on one day was 212, the mean",
    "was 148. Compared with the year before, the colony has grown by eleven percent.",
    "",
    "Pups were first seen on 9 June. Of 37 pups, 31 were alive at the end of August; most losses fell",
    "into the week of the storm at midsummer.",
    "",
    "| Month | Days | Mean count | Pups |",
    "| June | 12 | 131 | 29 |",
    "| July | 14 | 152 | 36 |",
    "| August | 14 | 159 | 31 |",
    "",
    "Kayaks that come nearer than a hundred metres make the animals leave the rocks. We suggest a line of",
    "buoys around the western skerry from May to September.",
]


def main() -> None:
    for name, lines in {
        "contract": CONTRACT,
        "invoice": INVOICE,
        "lease": LEASE,
        "manual": MANUAL,
        "survey": REPORT,
    }.items():
        write(HERE / f"{name}.pdf", lines)
    canvas = Canvas(str(HERE / "scan.pdf"), pagesize=A4, invariant=1)
    canvas.rect(LEFT, 300, 460, 400, fill=1)  # a picture without text
    canvas.save()


def write(path: Path, lines: list[str]) -> None:
    """Write a PDF: a line that begins with `# ` is a heading, with `| ` a table row; `---` begins a new page."""
    canvas = Canvas(str(path), pagesize=A4, invariant=1)
    canvas.setTitle(path.stem)
    top = float(TOP)
    for line in lines:
        if line == "---":
            canvas.showPage()
            top = TOP
            continue
        heading = line.startswith("# ")
        canvas.setFont("Helvetica-Bold" if heading else "Helvetica", 16 if heading else 10.5)
        if line.startswith("| "):
            for column, cell in enumerate(line.strip("| ").split(" | ")):
                canvas.drawString(LEFT + 130 * column, top, cell)
        else:
            canvas.drawString(LEFT, top, line.removeprefix("# "))
        top -= LINE * (1.6 if heading else 1)
    canvas.save()


if __name__ == "__main__":
    main()
