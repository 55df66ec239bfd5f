"""People: find names by cues: a title, a label, a signature, an address or a common given name. No model is used."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from apps.records.extractors.fields import FoundField, Hints
from apps.records.extractors.name_lists import COMPANY, GIVEN, NOT_NAMES

_LATIN = [chr(code) for code in (*range(0xC0, 0x250), *range(0x1E00, 0x1F00))]
_UPPER, _LOWER = "A-ZÄÖÜ", "a-zäöüß"
_OTHERS = [letter for letter in _LATIN if letter not in "ÄÖÜäöüß" and (letter.isupper() or letter.islower())]
PLAIN = str.maketrans({letter: "Q" if letter.isupper() else "q" for letter in _OTHERS})
"""Maps Latin letters that are neither English nor German to Q or q: patterns that list them all compile slowly."""
_TOKEN = rf"[{_UPPER}][{_LOWER}'’]*[{_LOWER}](?:[-'’]?[{_UPPER}][{_LOWER}]+)*"
_MIDDLE = rf"(?: (?:[{_UPPER}]\.|von der|von|van der|van|de la|de|del|der|zu|al|bin|Mc|{_TOKEN}))"
_FULL = rf"(?:{_TOKEN}|(?:[{_UPPER}]\. ?){{1,3}})(?:{_MIDDLE}){{0,2}} ?(?<=[ .]){_TOKEN}"
_TITLES = (
    r"(?:(?:Dr|Prof|Dipl|Ing|med|dent|jur|rer|nat|phil|habil|univ|h\.c|Univ|PD|OÄ|OA|RA|RAin|Sir|Dame|"
    r"Rev)\b\.?(?:-Ing\.)?[ ]?)"
)
_HONORIFIC = (
    r"(?:Mr\.?|Mrs\.?|Ms\.?|Miss|Mx\.?|Herrn?|Frau|Hr\.|Fr\.|Familie|Officer|Judge|Nurse|Kolleg(?:e|in)|"
    r"Colleague|Nachbarin|Nachbar)"
)
_END = rf"(?![{_LOWER}'’@]|-[{_UPPER}])"

_LABELS = {
    "patient": r"Patient(?:in|en)?(?:'?s)?(?: Name)?|Name (?:des|der) Patient\w*",
    "physician": r"Consultant|(?:Referring |Attending |Treating )?Physician|Chef(?:arzt|ärztin)|Behandelnder Arzt",
    "claimant": r"Claimant|Versicherungsnehmer(?:in)?|Insured|Policyholder|Antragsteller(?:in)?|Geschädigter?",
    "tenant": r"Tenant|Mieter(?:in)?",
    "landlord": r"Landlord|Vermieter(?:in)?",
    "sender": r"From|Von|Absender",
    "recipient": r"To|An|Empfänger|Recipient|Bill(?:ed)? To|Attn\.?|Attention|z\. ?Hd\.?",
    "person": (
        r"Name|Customer|Kunde|Kundin|Ansprechpartner(?:in)?|Sachbearbeiter(?:in)?|Bearbeiter(?:in)?|"
        r"Contact(?: Person)?|Engineer|"
        r"Signed|Signature|Unterschrift|By|(?:Dictated|Signed|Prepared|Reported) by|Employee|"
        r"Arbeitnehmer(?:in)?|Vertreter(?:in)?|"
        r"Bei Fragen|Rückfragen an|Witness|Zeuge|Zeugin|Driver|Fahrer(?:in)?|Cc|Inhaber(?:in)?"
    ),
}
LABELLED = tuple(
    (
        name,
        re.compile(
            rf"(?:^|(?<=[\s(]))(?i:{label})[ \t]*:[ \t]*(?:{_HONORIFIC}[ ])?{_TITLES}{{0,5}}(?P<name>{_FULL}){_END}",
            re.MULTILINE,
        ),
    )
    for name, label in _LABELS.items()
)
TITLED = re.compile(
    rf"\b(?:(?:{_HONORIFIC}(?P<alone>[ ]*\n)?[ ]*){{1,2}}{_TITLES}{{0,5}}|{_TITLES}{{1,5}})(?P<name>{_FULL}|"
    rf"{_TOKEN}){_END}"
)
INTRODUCED = re.compile(
    rf"(?i:\b(?:represented by|inh\.|vertreten durch(?: (?:die|den|ihren?) \w+)?|signed by|contact|husband|wife|"
    rf"colleague|engineer,|"
    rf"driver of the other vehicle,))[ ](?P<name>{_FULL}){_END}"
)
CLOSING = re.compile(
    r"^[ \t]*(?:mit (?:freundlich|best|herzlich|kollegial)\w*.{0,30}grü(?:ß|ss)en|(?:freundliche|viele|"
    r"beste|herzliche) grü(?:ß|ss)e|"
    r"hochachtungsvoll|yours (?:sincerely|faithfully|truly)|(?:best|kind|warm)(?:est)? regards|regards|"
    r"sincerely(?: yours)?)\b[ \t,.]*$",
    re.IGNORECASE | re.MULTILINE,
)
_ON_ITS_LINE = re.compile(
    rf"[ \t]*(?:(?:i\. ?[AV]\.|gez\.|{_HONORIFIC})[ ])*{_TITLES}{{0,5}}(?P<name>{_FULL})(?:,? M\.?D\.?)?[ \t]*$"
)
_STREET = re.compile(r"\b\d{1,4}\s?[a-zA-Z]?\b|\b\d{4,5} ", re.IGNORECASE)
_TOWN = re.compile(r"^\s*(?:[A-Z]{1,2}-)?\d{4,5} [A-ZÄÖÜ]|\b[A-Z]{1,2}\d{1,2}[A-Z]? ?\d[A-Z]{2}\b|\b[A-Z]{2} \d{5}\b")
GIVEN_NAME = re.compile(
    rf"(?<![{_UPPER}{_LOWER}-])(?P<name>(?P<given>{_TOKEN})(?: [{_UPPER}]\.)?(?: (?:von|van|de))? {_TOKEN}){_END}"
)
MAX_NAMES = 50
FULL_NAME, FAMILY_NAME = 0.95, 0.86  # confidence in a name after a title or a label
_ROLES = ((re.compile(r"als Vermieter"), "landlord"), (re.compile(r"als Mieter"), "tenant"))


def find(text: str, hints: Hints) -> Iterator[FoundField]:
    """Yield the people of a page, those with the most reliable cue first."""
    plain = text.translate(PLAIN)  # has the same length, so positions are the same in both texts
    for name, pattern in LABELLED:
        for match in pattern.finditer(plain):
            role = "claimant" if hints.kind == "claim" and match[0].lower().startswith("name") else name
            yield from _found(text, match, role, FULL_NAME, min_parts=2)
    for match in TITLED.finditer(plain):
        yield from _found(text, match, _role(text, match), FULL_NAME if " " in match["name"] else FAMILY_NAME)
    for match in INTRODUCED.finditer(plain):
        yield from _found(text, match, "person", 0.85)
    for match in _signatures(plain):
        yield from _found(text, match, "person", 0.9)
    for match in _addressed(plain):
        yield from _found(text, match, "person", 0.8)
    for match in GIVEN_NAME.finditer(plain):
        if match["given"].lower().split("-")[0] in GIVEN:
            yield from _found(text, match, "person", 0.75)


def full_names(fields: Iterable[FoundField]) -> list[str]:
    """Return the different full names among the fields, at most MAX_NAMES."""
    names = dict.fromkeys(field.value for field in fields if field.kind == "person" and " " in field.value)
    return list(names)[:MAX_NAMES]


def find_names(text: str, names: Sequence[str]) -> Iterator[FoundField]:
    """Yield every occurrence of these full names, including those without a cue."""
    if not names:
        return
    for match in re.finditer(rf"(?<!\w)(?P<name>{'|'.join(map(re.escape, names))})(?!\w)", text):
        yield from _found(text, match, "person", 0.8)


def _found(
    text: str, match: re.Match[str], name: str, confidence: float, *, min_parts: int = 1
) -> Iterator[FoundField]:
    start, end = match.span("name")
    parts = text[start:end].split(" ")
    after_cue = confidence in (FULL_NAME, FAMILY_NAME)
    if after_cue:
        # The name may have another word before or after it, as in 'Herr Kollege Kunze'.
        while parts and parts[0].lower() in NOT_NAMES:
            start += len(parts.pop(0)) + 1
        while parts and parts[-1].lower() in NOT_NAMES:
            end -= len(parts.pop()) + 1
    value = text[start:end]
    if (
        len(parts) < (min_parts if after_cue else 2)
        or len(value) > 60
        or any(part.lower() in NOT_NAMES for part in parts)
    ):
        return
    if re.match(rf"[ ]?(?:&[ ])?{COMPANY}", text[end : end + 24]):
        return
    yield FoundField(kind="person", name=name, value=value, text=value, start=start, end=end, confidence=confidence)


def _role(text: str, match: re.Match[str]) -> str:
    """Return the role that the rest of the line gives a person, as in 'Herr Berg als Mieter'."""
    rest = text[match.end() : match.end() + 90].split("\n")[0]
    return next((name for pattern, name in _ROLES if pattern.search(rest)), "person")


def _signatures(text: str) -> Iterator[re.Match[str]]:
    """After each closing such as 'Yours sincerely', yield the first line within six that has only a person's name."""
    for closing in CLOSING.finditer(text):
        for match in _own_lines(text, closing.end(), most=6):
            yield match
            break


def _addressed(text: str) -> Iterator[re.Match[str]]:
    """Yield names alone on their line, above a street and a town, or below 'Bill to' and the like."""
    lines = text.split("\n")
    offset = 0
    for index, line in enumerate(lines):
        match = _ON_ITS_LINE.match(line)
        below = lines[index + 1 : index + 4]
        before = lines[index - 1].strip().lower() if index else ""
        if match and (
            (len(below) > 1 and _STREET.search(below[0]) and any(_TOWN.search(next_line) for next_line in below[1:]))
            or (before.rstrip(":") in ("bill to", "ship to", "to", "an", "attn") and below)
        ):
            whole = _ON_ITS_LINE.match(text, offset, offset + len(line))
            if whole:
                yield whole
        offset += len(line) + 1


def _own_lines(text: str, at: int, *, most: int) -> Iterator[re.Match[str]]:
    for _ in range(most):
        at = text.find("\n", at) + 1
        if at == 0:
            return
        end = text.find("\n", at)
        match = _ON_ITS_LINE.match(text, at, len(text) if end < 0 else end)
        if match:
            yield match
