"""Texts of headers: brings them to a normal form, splits off the unit, and compares them."""

from __future__ import annotations

import re
import unicodedata
from difflib import SequenceMatcher
from functools import lru_cache

CODES = "EUR USD GBP CHF JPY PLN CZK SEK NOK DKK HUF RON BGN TRY CAD AUD NZD CNY INR BRL ZAR"
SIGNS = "€=EUR $=USD £=GBP ¥=JPY zł=PLN kč=CZK fr=CHF sfr=CHF euro=EUR euros=EUR"
CURRENCIES = {code.lower(): code for code in CODES.split()} | dict(pair.split("=") for pair in SIGNS.split())
UNIT_WORDS = (
    "%=% percent=% kg=kg g=g t=t h=h hr=h hrs=h hours=h std=h min=min days=days pcs=pcs stk=pcs m=m km=km l=l "
    "dd/mm/yyyy=dd/mm/yyyy mm/dd/yyyy=mm/dd/yyyy dd.mm.yyyy=dd.mm.yyyy tt.mm.jjjj=dd.mm.yyyy yyyy-mm-dd=yyyy-mm-dd "
    "k€=kEUR teur=kEUR"
)
UNITS = dict(pair.split("=") for pair in UNIT_WORDS.split())
SHORT_WORDS = (
    "no=number nr=number num=number nbr=number #=number №=number numero=number amt=amount qty=quantity inv=invoice "
    "dt=date acct=account acc=account ref=reference desc=description emp=employee dept=department curr=currency "
    "ccy=currency bal=balance pmt=payment tel=phone"
)
WORDS = dict(pair.split("=") for pair in SHORT_WORDS.split())
BRACKETED = re.compile(r"[\(\[]\s*([^()\[\]]*?)\s*[\)\]]\s*\*?$")
TRAILING = re.compile(r"(?:\s+in\s+|\s+en\s+|\s*[/,:]\s*|\s+)(\S+)$", re.IGNORECASE)
CAMEL = re.compile(r"(?<=[a-zà-ÿ])(?=[A-ZÀ-Þ])")
APART = re.compile(r"[^\w#№°º%€$£]+|_+")
COMPOUND = re.compile(r"(\w{4,})nr$")


def unit_of(text: str) -> str | None:
    """Return the unit if the whole text is one: `(EUR)`, `in €`, `%`, `hrs`."""
    bare = text.strip().strip("()[]").strip().lower().removeprefix("in ").strip()
    return CURRENCIES.get(bare) or UNITS.get(bare)


@lru_cache(maxsize=20_000)
def split_unit(header: str) -> tuple[str, str | None]:
    """Return a header without its unit, and the unit: `Amount (EUR)` → `Amount`, `EUR`."""
    header = " ".join(header.split())
    for ending in (BRACKETED, TRAILING):
        if (match := ending.search(header)) and match.start() > 0 and (unit := unit_of(match.group(1))) is not None:
            return header[: match.start()].strip(), unit
    return header, None


@lru_cache(maxsize=20_000)
def normal(text: str) -> str:
    """Return the normal form of a header: `Inv.-No.` and `InvoiceNo` are both `invoice number`."""
    text = text.replace("n°", " # ").replace("N°", " # ").replace("Nº", " # ").replace("nº", " # ")
    text = CAMEL.sub(" ", unicodedata.normalize("NFC", text))
    plain = "".join(sign for sign in unicodedata.normalize("NFKD", text.casefold()) if not unicodedata.combining(sign))
    words = (word for word in APART.split(plain.replace("#", " # ")) if word)
    return " ".join(COMPOUND.sub(r"\1nummer", WORDS.get(word, word)) for word in words)


@lru_cache(maxsize=50_000)
def similarity(one: str, other: str) -> float:
    """Return how similar two normal forms are: 1 if equal, else by their common words, allowing for typing errors."""
    if not one or not other:
        return 0.0
    if one == other or one.replace(" ", "") == other.replace(" ", ""):
        return 1.0
    left, right = one.split(), other.split()
    if len(left) > 12 or len(right) > 12:
        return 0.0
    shared = 0.0
    remaining = list(right)
    for word in left:
        best = max(((word_similarity(word, candidate), candidate) for candidate in remaining), default=(0.0, ""))
        if best[0] > 0:
            shared += best[0]
            remaining.remove(best[1])
    return round(0.92 * 2 * shared / (len(left) + len(right)), 3)


def word_similarity(word: str, other: str) -> float:
    if word == other:
        return 1.0
    if min(len(word), len(other)) < 3 or abs(len(word) - len(other)) > 2:
        return 0.0
    swapped = len(word) > 3 and sorted(word) == sorted(other)
    return 0.95 if swapped or SequenceMatcher(None, word, other, autojunk=False).ratio() >= 0.83 else 0.0
