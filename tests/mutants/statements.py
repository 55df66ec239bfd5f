"""Break a statement on purpose: a scenario that passes with the statement as it is must then fail.

The broken text is made from the text of the statement in each dialect. A condition that is not found fails the test,
so a changed statement can't silently stay unbroken. SQL Server's statements are written differently and are
not broken here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from holdfast import Holdfast
from holdfast.store.queries import Queries, sources

Scenario = Callable[[Any], None]
Instead = str | Callable[[re.Match[str]], str]
DIALECTS = ("sqlite", "postgres")
on_both = pytest.mark.parametrize("url", DIALECTS, indirect=True)


def always_true(match: re.Match[str]) -> str:
    """Return a condition that is always true and has the same parameters, so the calls of the statement stay valid."""
    dropped = match[0]
    if dropped.startswith("not exists"):
        return "exists (select 1) or exists"
    if dropped.endswith(" or "):
        return ""
    if dropped.startswith(" or "):
        return " and :now = :now"
    parameters = re.findall(r":([a-z_]+)", dropped)
    return "(" + " and ".join(["1 = 1", *(f"(:{name} = :{name} or 1 = 1)" for name in parameters)]) + ")"


def broken(dialect: str, statement: str, condition: str, instead: Instead = always_true) -> dict[str, str]:
    """Return the name of the statement, with its text in which every match of the condition is replaced."""
    text, count = re.subn(condition, instead, sources(dialect)[statement], flags=re.MULTILINE)
    assert count, f"{statement} ({dialect}) no longer has {condition!r}; change the condition of the mutant"
    return {statement: text}


def use(hf: Holdfast, replaced: dict[str, str]) -> None:
    """Make the engine use these texts instead of its own statements of the same names."""
    if replaced:
        store = hf._store
        prefix, style = store.queries._prefix, store.dialect.style
        store.queries = Queries(store.dialect.name, prefix=prefix, style=style, replaced=replaced)


@dataclass(frozen=True)
class Mutant:
    """A statement without one of its conditions, and a scenario that then fails.

    condition    a regular expression
    fails_with   the exceptions with which the scenario may fail
    """

    statement: str
    condition: str
    scenario: Scenario
    instead: Instead = always_true
    fails_with: tuple[type[BaseException], ...] = (AssertionError,)
    dialects: Sequence[str] = DIALECTS

    def __str__(self) -> str:
        return f"{self.statement}-{self.scenario.__name__}-{self.condition}"

    def is_noticed(self, dialect: str, make_setup: Callable[[dict[str, str]], Any]) -> None:
        """Fail unless the scenario fails with the broken statement."""
        setup = make_setup(broken(dialect, self.statement, self.condition, self.instead))
        with pytest.raises(self.fails_with):
            self.scenario(setup)


def each_scenario(mutants: Iterable[Mutant], others: Iterable[Scenario] = ()) -> pytest.MarkDecorator:
    """Parametrise `scenario` by the scenarios of the mutants, and by others for which there is no mutant."""
    found = {scenario.__name__: scenario for scenario in [*(mutant.scenario for mutant in mutants), *others]}
    return pytest.mark.parametrize("scenario", found.values(), ids=found.keys())


def each_mutant(mutants: Iterable[Mutant]) -> pytest.MarkDecorator:
    """Parametrise `url` and `mutant` by the mutants on each of their dialects."""
    cases = [
        pytest.param(dialect, mutant, id=f"{dialect}-{mutant}") for mutant in mutants for dialect in mutant.dialects
    ]
    return pytest.mark.parametrize(("url", "mutant"), cases, indirect=["url"])
