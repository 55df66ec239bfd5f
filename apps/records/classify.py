"""Classify: decide the class of a document by the words that such documents usually contain."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

OTHER = "other"
MIN_SCORE = 3.0  # a document with less evidence has the class `other`
BEGINNING = 1500  # words in the first characters count twice, because a document usually begins by saying what it is

WORDS: dict[str, dict[str, float]] = {
    "invoice": {
        r"\binvoice\b": 2,
        r"\brechnung\b": 2,
        r"\brechnungs(?:nummer|datum|betrag|-?nr)": 2.5,
        r"\bliquidation\b": 1.5,
        r"\binvoice (?:no|number|date)": 2.5,
        r"\bgesamtbetrag\b": 1,
        r"\bzwischensumme\b|\bsubtotal\b": 1.5,
        r"\b(?:total|amount|balance) due\b": 1.5,
        r"\bm(?:wst|ehrwertsteuer)\b|\bvat\b|\bsales tax\b": 1,
        r"\bbill to\b": 1.5,
        r"\bumsatzsteuer|\bust-id": 0.5,
        r"\bzahlbar\b|\bpayment is due\b": 1,
        r"\bleistungszeitraum\b": 1,
        r"\bgoä\b": 1,
        r"\bcredit note\b|\bgutschrift\b": 1,
    },
    "contract": {
        r"\bagreement\b": 1.5,
        r"\bcontract\b": 0.8,
        r"\b\w{0,30}vertrag\b": 1.5,
        r"\bthe parties\b|\beither party\b|\bvertragsparteien\b": 1.5,
        r"\bby and between\b|\bis made\b.{0,40}\bbetween\b": 2,
        r"\bgoverning law\b|\bgoverned by\b": 1.5,
        r"\btermination\b|\bkündigung\w*": 1,
        r"^[ \t]*§ ?\d+": 2,
        r"\bin witness whereof\b": 2,
        r"\bhereinafter\b|\bim folgenden\b|\bnachfolgend\b": 1.5,
        r"\bshall\b": 0.7,
        r"\bmiet(?:er|sache|verhältnis)": 1,
        r"\barbeit(?:nehmer|geber)": 1,
        r"\bconfidential\w*": 0.5,
    },
    "medical_report": {
        r"\bdiagnos(?:is|es|en|e)\b": 2,
        r"\bpatient(?:in|en)?\b": 1.5,
        r"\banamnese\b": 2,
        r"\bbefund\w*": 1.5,
        r"\btherapie\b": 1,
        r"\bdischarge summary\b|\bentlassungsbrief\b|\barztb(?:rief|ericht)\b": 3,
        r"\bradiology report\b|\bfindings\b|\bimpression\b": 1.5,
        r"\bmedi(?:kation|cations?)\b": 1.5,
        r"\bhospital\b|\bklinik(?:um)?\b": 0.7,
        r"\bphysician\b|\bconsultant\b|\bchefarzt\b": 1,
        r"\bicd-10\b|\b[A-Z]\d{2}\.\d\b": 1,
        r"\b\d+ mg\b": 1,
        r"\bexamination\b|\buntersuchung\b": 0.7,
        r"\bbeurteilung\b|\bepikrise\b": 1,
        r"\bmrn\b|\bnhs number\b": 1,
        r"\bmri\b|\bct scan\b|\bx-ray\b|\bekg\b": 0.7,
    },
    "claim": {
        r"\bclaim form\b": 3,
        r"\bclaim (?:for|under)\b|\breport (?:a |the )?(?:claim|damage|loss|accident|theft)\b": 2,
        r"\bschaden (?:melden|anzeigen)\b": 2,
        r"\bloss occurred\b": 1,
        r"\bschaden(?:meldung|anzeige)\b": 3.5,
        r"\bclaim (?:number|reference|no)": 2.5,
        r"\bschadennummer\b": 2.5,
        r"\bpolicy(?:holder| no| number)": 1.5,
        r"\bversicherungs(?:schein|nehmer)\w*": 2,
        r"\bdate of loss\b|\bschadentag\b": 2,
        r"\bclaimant\b": 2,
        r"\bamount claimed\b|\btotal claimed\b": 2,
        r"\baccident\b|\bunfall\b": 0.7,
        r"\bschadenhergang\b|\bschadenhöhe\b": 1.5,
        r"\binsur(?:ed|ance)\b": 0.7,
        r"\bdamaged?\b|\bbeschädigt\w*": 0.5,
    },
    "letter": {
        r"^[ \t]*dear\b|^[ \t]*sehr geehrte": 2.5,
        r"^[ \t]*(?:hi|hello|hallo|liebe[rs]?) \w+,": 2,
        r"^[ \t]*yours (?:sincerely|faithfully|truly)": 2.5,
        r"^[ \t]*(?:best|kind|warm) regards": 2.5,
        r"^[ \t]*mit freundlichen\b.{0,20}grü(?:ß|ss)en": 2.5,
        r"^[ \t]*sincerely": 2,
        r"\bour ref\b|\bunser zeichen\b|\baktenzeichen\b": 1,
        r"^subject:|^betreff:": 1,
        r"^from: |^to: ": 0.7,
        r"\bi am writing\b|\bthank you for your\b|\bvielen dank für ihr": 1.5,
        r"\bthanks for your\b": 1,
    },
}
PATTERNS = {
    kind: [(re.compile(pattern, re.IGNORECASE | re.MULTILINE), weight) for pattern, weight in table.items()]
    for kind, table in WORDS.items()
}
# Most documents also look like letters, so evidence for any other class counts more.
OTHER_THAN_LETTER = 1.35


@dataclass(frozen=True, kw_only=True)
class Classification:
    """The class of a document, the confidence in it (`score`, 0 to 1), and the words that decided (`evidence`)."""

    kind: str
    score: float
    evidence: list[str]


def classify(pages: Sequence[str]) -> Classification:
    """Return the class with the most evidence, or `other` if there is too little."""
    text = "\n".join(pages)[:200_000]
    found = {kind: _evidence(table, text) for kind, table in PATTERNS.items()}
    scores = {
        kind: sum(weight for weight, _ in evidence) * (1 if kind == "letter" else OTHER_THAN_LETTER)
        for kind, evidence in found.items()
    }
    best, most = max(scores.items(), key=lambda item: item[1])
    if most < MIN_SCORE:
        return Classification(kind=OTHER, score=round(1 - most / (2 * MIN_SCORE), 2), evidence=[])
    second = max(score for kind, score in scores.items() if kind != best)
    heaviest = sorted(found[best], key=lambda item: -item[0])[:6]
    return Classification(
        kind=best,
        score=round(min(0.99, most / (most + second) * min(1.0, 0.6 + most / 30)), 2),
        evidence=[" ".join(words.split()) for _, words in heaviest],
    )


def _evidence(table: list[tuple[re.Pattern[str], float]], text: str) -> list[tuple[float, str]]:
    """Return the weight and the first match of each pattern that occurs; further matches add 15 % each, up to three."""
    found = []
    for pattern, weight in table:
        matches = [match for match, _ in zip(pattern.finditer(text), range(4), strict=False)]
        if matches:
            early = 2.0 if matches[0].start() < BEGINNING else 1.0
            found.append((weight * early * (1 + 0.15 * (len(matches) - 1)), matches[0][0]))
    return found
