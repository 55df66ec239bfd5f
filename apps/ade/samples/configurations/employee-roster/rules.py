"""Employee rosters: one row per person, with one name, one department and a yearly salary."""

from __future__ import annotations

from datetime import date as Day  # noqa: N812
from decimal import Decimal

from names import tidy_name

from ade_engine import (
    Column,
    Row,
    Rules,
    between,
    date,
    decimal,
    headers,
    looks_like_dates,
    looks_like_numbers,
    looks_like_words,
    lower,
    matches,
    pattern,
    text,
    unique,
)

rules = Rules(day_first=True, decimal=".", min_columns=3)

rules.field(
    "employee_id",
    label="Employee ID",
    required=True,
    detectors=[
        headers(
            "employee id | employee number | staff id | staff number | personnel number",
            "payroll number | id | personalnummer | mitarbeiternummer | matricule",
        ),
        matches(r"[A-Z]{0,3}-?\d{2,8}", score=0.2),
    ],
    transforms=[text],
    validators=[unique],
)
rules.field(
    "first_name",
    output=False,
    detectors=[headers("first name | given name | forename | vorname | prenom"), looks_like_words(score=0.1)],
    transforms=[text],
)
rules.field(
    "last_name",
    output=False,
    detectors=[
        headers("last name | surname | family name | nachname | familienname | nom"),
        looks_like_words(score=0.1),
    ],
    transforms=[text],
)
rules.field(
    "name",
    required=True,
    detectors=[
        headers("name | full name | employee | employee name | name of employee | mitarbeiter", "staff member"),
        looks_like_words(score=0.1),
    ],
    transforms=[text],
)
rules.field(
    "department",
    detectors=[headers("department | team | cost center | cost centre | abteilung | kostenstelle | service | unit")],
    transforms=[text],
)
rules.field(
    "job_title",
    label="Job title",
    detectors=[headers("job title | position | role | job | title | funktion | stelle | berufsbezeichnung | poste")],
    transforms=[text],
)
rules.field(
    "start_date",
    label="Start date",
    detectors=[
        headers(
            "start date | hire date | date of hire | hired | hired on | joined | joining date",
            "employed since | eintrittsdatum | eintritt | beginn | date d'embauche",
        ),
        looks_like_dates(score=0.3),
    ],
    transforms=[date],
)
rules.field(
    "weekly_hours",
    label="Weekly hours",
    detectors=[
        headers("weekly hours | hours per week | hours | hrs/week | contract hours | wochenstunden", "stunden woche"),
        looks_like_numbers(),
    ],
    transforms=[decimal()],
    validators=[between(1, 60)],
)
rules.field(
    "annual_salary",
    label="Annual salary",
    detectors=[
        headers(
            "annual salary | salary | gross salary | base salary | salary per year | compensation",
            "jahresgehalt | bruttogehalt | gehalt | monthly salary | salary per month | monatsgehalt",
            "salaire",
        ),
        looks_like_numbers(),
    ],
    transforms=[decimal(places=2)],
    validators=[between(0, 1_000_000)],
)
rules.field(
    "email",
    label="E-mail",
    detectors=[headers("e-mail | email | mail | email address"), matches(r"[^@\s]+@[^@\s]+\.[a-z]{2,}", score=0.6)],
    transforms=[lower],
    validators=[pattern(r"[^@\s]+@[^@\s]+\.[a-z]{2,}", "is not an e-mail address")],
)


@rules.detector("start_date")
def is_not_another_date(column: Column) -> float:
    """A column with dates of birth or of leaving is not the start date."""
    title = column.title.lower()
    return -1.0 if any(word in title for word in ("birth", "geburt", "leav", "end", "austritt", "naissance")) else 0.0


@rules.transform("name", blanks=True)
def join_first_and_last(value: str | None, row: Row) -> str | None:
    """Join first and last name where they are in separate columns."""
    parts = [str(part) for part in (row["first_name"], row["last_name"]) if part]
    return tidy_name(value or " ".join(parts)) or None


@rules.transform("department", blanks=True)
def take_from_section(value: str | None, row: Row) -> str | None:
    """In a list grouped by department, a row above each group names the department."""
    return value or (row.section or "").partition(":")[2].strip() or row.section


@rules.row
def convert_monthly_salary(row: Row) -> None:
    """Multiply a salary by twelve if its header says that it is monthly."""
    salary, header = row["annual_salary"], row.headers.get("annual_salary", "").lower()
    if isinstance(salary, Decimal) and any(word in header for word in ("month", "monat", "mensuel")):
        row["annual_salary"] = salary * 12


@rules.check
def start_date_is_plausible(row: Row) -> str | None:
    """Reject start dates before 1950 or after 2100."""
    start = row["start_date"]
    is_plausible = not isinstance(start, Day) or 1950 <= start.year <= 2100
    return None if is_plausible else f"{start} is not a plausible start date"
