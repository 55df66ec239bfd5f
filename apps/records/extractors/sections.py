"""Sections: find the headings of a document."""

from __future__ import annotations

import re
from collections.abc import Iterator

from apps.records.extractors.fields import FoundField, Hints

PARAGRAPH = re.compile(r"(?P<title>§ ?\d{1,3}[a-z]?\.? [A-ZÄÖÜ][^\n]{1,70}?)\s*")
NUMBERED = re.compile(
    r"(?P<title>(?:\d{1,2}(?:\.\d{1,2}){0,2}\.?|[IVX]{1,4}\.|Article \d{1,3}\.?) [A-ZÄÖÜ][^\n]{1,70}?)\s*"
)
KNOWN = re.compile(
    r"(?P<title>(?:diagnos(?:is|es|en|e)|(?:haupt|neben)diagnosen?|anamnese|(?:clinical |medical |"
    r"past medical )?history|"
    r"(?:klinischer )?befunde?|findings|examination|untersuchung(?:sbefund)?|impression|assessment|"
    r"beurteilung|epikrise|"
    r"therapie(?: und verlauf)?|verlauf|treatment|procedures?|procedere|medi(?:kation|cations?)(?: (?:on|"
    r"at) discharge)?|"
    r"allerg(?:ies|ien)|empfehlung(?:en)?|recommendations?|plan|follow-?up|laboratory|labor(?:werte|befund)?|technique|comparison|"
    r"background|summary|conclusion|introduction|scope|schadenhergang|details of the (?:accident|incident|loss)|"
    r"circumstances|policyholder|witnesses|damage(?:s)?|costs?|zusammenfassung|sachverhalt|begründung))(?P<mark>\s*:)?",
    re.IGNORECASE,
)
PLAIN = re.compile(r"(?P<title>[A-ZÄÖÜ][\w'’&/,-]*(?: [\w'’&/,-]+){0,5})\s*:?\s*")
_WITH_SECTIONS = ("contract", "medical_report", "claim", "other")
_NO_TITLE = re.compile(
    r"(?:dear|sehr geehrte|hallo|hi|mit |yours|best|kind|sincerely|herrn?|frau|mr|mrs|ms|signed|date|"
    r"zwischen|und)\b|.*\d",
    re.IGNORECASE,
)


def find(text: str, hints: Hints) -> Iterator[FoundField]:
    """Yield the headings of a page: numbered ones, well-known ones, and short lines above a text."""
    lines = text.split("\n")
    offset, any_text = 0, False
    for index, line in enumerate(lines):
        found = _title(lines, index, hints.kind, first=not any_text)
        any_text = any_text or bool(line.strip())
        if found is not None:
            match, confidence = found
            start, end = offset + match.start("title"), offset + match.end("title")
            yield FoundField(
                kind="section",
                name="section",
                value=match["title"],
                text=match["title"],
                start=start,
                end=end,
                confidence=confidence,
            )
        offset += len(line) + 1


def _title(lines: list[str], index: int, kind: str, *, first: bool) -> tuple[re.Match[str], float] | None:
    line = lines[index]
    if not line.strip() or line[0] in " \t" or len(line) > 400:
        return None
    if match := PARAGRAPH.fullmatch(line):
        return match, 0.98
    above = lines[index - 1].strip() if index else ""
    below = lines[index + 1].strip() if index + 1 < len(lines) else ""
    if (
        kind in ("contract", "other")
        and not above
        and (match := NUMBERED.fullmatch(line))
        and _is_title(match["title"])
    ):
        return match, 0.9
    match = KNOWN.match(line)
    if match and kind != "invoice" and (match["mark"] or match.end() == len(line.rstrip())):
        return match, 0.95
    if first or above or not below or kind not in _WITH_SECTIONS:
        return None
    plain = PLAIN.fullmatch(line)
    if plain and kind in ("claim", "medical_report") and not _NO_TITLE.match(line) and len(below) > len(line) / 2:
        return plain, 0.7
    return None


def _is_title(title: str) -> bool:
    """Tell a numbered title from a sentence or a row that begins with a number."""
    return not re.search(r"[.;,]$|\d[.,]\d{2}", title) and len(title.split()) <= 9
