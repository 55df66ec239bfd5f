"""Name lists: common given names (mostly English and German), and capitalised words that are not names."""

from __future__ import annotations

from pathlib import Path

HERE = Path(__file__).parent
GIVEN = frozenset((HERE / "given_names.txt").read_text("utf-8").split())
NOT_NAMES = frozenset((HERE / "not_names.txt").read_text("utf-8").split())

COMPANY = (
    r"(?:GmbH|AG|KG|OHG|UG|SE|eG|mbH|e\.V\.|Ltd|LLC|LLP|Inc|PLC|plc|Corp|Company|& ?(?:Partner|Co|Sons|Söhne)|"
    r"Insurance|Versicherung|Hospital|Klinikum|Solicitors|Consulting|Bank|School|University|Imaging)\b"
)
