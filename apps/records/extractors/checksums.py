"""Checksums: validate the check digits of numbers with python-stdnum.

Importing the library takes longer than reading most documents, so each function imports only what it needs.
"""

from __future__ import annotations

import re


def iban_length(country: str) -> int | None:
    """Return the length of the IBANs of a country, or None if the country has no IBANs."""
    from stdnum import numdb

    # The registry describes the part after the check digits as '8!n10!n': eight digits, then ten.
    [(_, entry)] = numdb.get("iban").info(country)
    return 4 + sum(map(int, re.findall(r"\d+", entry["bban"]))) if entry else None


def is_valid_iban(value: str) -> bool:
    from stdnum import iban

    # Skip the rules for the bank codes of each country: an old document may name a bank that no longer exists.
    return iban.is_valid(value, check_country=False)


def is_valid_vat_id(value: str) -> bool | None:
    """Whether the check digits of a VAT id are right; None if the rule of its country is not known."""
    from stdnum import get_cc_module

    country = "ch" if value.startswith("CHE") else value[:2].lower()
    module = get_cc_module(country, "uid" if country == "ch" else "vat")
    return None if module is None else bool(module.is_valid(value))


def is_valid_insurance_number(value: str) -> bool:
    """Whether a German health insurance number is valid: a letter, eight digits, a check digit. Not in stdnum."""
    from stdnum import luhn

    if re.fullmatch("[A-Z][0-9]{9}", value) is None:
        return False
    return luhn.checksum(f"{ord(value[0]) - 64:02d}{value[1:9]}0") == int(value[9])


def is_valid_nhs_number(value: str) -> bool:
    """Whether the number of a patient in England is valid."""
    from stdnum.gb import nhs

    return nhs.is_valid(value)
