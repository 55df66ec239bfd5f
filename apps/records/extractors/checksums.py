"""Checksums: whether a number that carries one is right; None where its rule is not known here."""

from __future__ import annotations


def iban_is_right(value: str) -> bool:
    """ISO 13616: the rest by 97 is one when letters count from ten and the first four stand last."""
    turned = value[4:] + value[:4]
    return turned.isalnum() and int("".join(str(int(character, 36)) for character in turned)) % 97 == 1


def vat_id_is_right(value: str) -> bool | None:
    """The German and the British ones are known."""
    digits = value[2:]
    if value.startswith("DE") and digits.isdigit():
        product = 10
        for digit in digits[:-1]:
            product = 2 * ((int(digit) + product) % 10 or 10) % 11
        return (11 - product) % 10 == int(digits[-1])
    if value.startswith("GB") and digits.isdigit() and len(digits) == 9:
        total = sum(int(digit) * weight for digit, weight in zip(digits[:7], range(8, 1, -1), strict=True))
        return (total + int(digits[7:])) % 97 in (0, 42)
    return None


def insurance_number_is_right(value: str) -> bool:
    """The number of a person insured in Germany: a letter, eight figures and a check figure."""
    if len(value) != 10 or not value[0].isascii() or not value[0].isupper() or not value[1:].isdigit():
        return False
    digits = f"{ord(value[0]) - 64:02d}{value[1:9]}"
    products = [int(digit) * (1 + index % 2) for index, digit in enumerate(digits)]
    return sum(product // 10 + product % 10 for product in products) % 10 == int(value[9])


def nhs_number_is_right(value: str) -> bool:
    """The number of a patient in England: ten figures, the last of which checks the others."""
    if len(value) != 10 or not value.isdigit():
        return False
    total = sum(int(digit) * weight for digit, weight in zip(value[:9], range(10, 1, -1), strict=True))
    return (11 - total % 11) % 11 == int(value[9])
