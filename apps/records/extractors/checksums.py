"""Checksums: whether a number that carries one is right, by python-stdnum; None where its rule is not known.

The library takes longer to import than many a document to read, so it is imported where a number is found.
"""

from __future__ import annotations

import re


def iban_length(country: str) -> int | None:
    """How many characters an IBAN of a country has, or None if the country has none."""
    from stdnum import numdb

    # The registry writes the part after the check digits as '8!n10!n': eight digits, then ten.
    [(_, known)] = numdb.get("iban").info(country)
    return 4 + sum(map(int, re.findall(r"\d+", known["bban"]))) if known else None


def iban_is_right(value: str) -> bool:
    from stdnum import iban

    # Its own rules for the digits of a country's banks are left out: a printed number may be of a bank that is gone.
    return iban.is_valid(value, check_country=False)


def vat_id_is_right(value: str) -> bool | None:
    from stdnum import get_cc_module

    country = "ch" if value.startswith("CHE") else value[:2].lower()
    module = get_cc_module(country, "uid" if country == "ch" else "vat")
    return None if module is None else bool(module.is_valid(value))


def insurance_number_is_right(value: str) -> bool:
    """The number of a person insured in Germany: a letter, eight digits, a check digit. Not in stdnum."""
    from stdnum import luhn

    if re.fullmatch("[A-Z][0-9]{9}", value) is None:
        return False
    return luhn.checksum(f"{ord(value[0]) - 64:02d}{value[1:9]}0") == int(value[9])


def nhs_number_is_right(value: str) -> bool:
    """The number of a patient in England."""
    from stdnum.gb import nhs

    return nhs.is_valid(value)
