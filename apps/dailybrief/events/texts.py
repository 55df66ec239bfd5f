"""Texts: the words, names and numbers of a headline and its summary."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from functools import cached_property, lru_cache

WORD = re.compile(r"\d+(?:[.,:]\d+)*|[^\W\d_]+(?:['’-][^\W\d_]+)*")
SENTENCE = re.compile(r"""(?:(?<=[.!?…])|(?<=[.!?…]["'»«”’)]))\s+(?=["'«»„“‘(]*[A-ZÄÖÜÉÈÀ0-9])""")
STEM = 6
LONGEST = 2000  # only this many characters of an article are used

# Words that say nothing about the event: function words, weekdays, and words that occur in every report.
ENGLISH = """
a about above after again against ago all also am an and any are as at away back be because been before being below
between both but by can could did do does doing down during each early even ever every few first for from further
get gets go goes going had has have having he her here hers him his how i if in into is it its just last late later
least left let like made make makes many may me might more most much must my near nearly new next no none nor not
now of off on once one only or other our out over own people per put said same say says see seen set she should
since so some still such take takes taken than that the their them then there these they this those three through
time to told too two under until up upon us very was way we week well were what when where which while who whom
whose why will with within would year years yet you your day days monday tuesday wednesday thursday friday saturday
sunday morning night afternoon evening midnight today yesterday tomorrow official officials according reported
report reports announced showed shows show
"""
GERMAN = """
aber alle allem allen aller alles als also am an ander andere anderen auch auf aus bei beim bin bis bist da damit
dann das dass dein dem den denn der des die dies diese diesem diesen dieser dieses doch dort du durch ein eine einem
einen einer eines er erst es etwas fur gegen hab habe haben hat hatte hatten ihr ihre ihrem ihren ihrer im in ins
ist ja jede jedem jeden jeder jetzt kann kein keine konnen konnte mehr mein mit muss mussen nach nicht nichts noch
nun nur ob oder ohne rund sehr sein seine seinem seinen seiner seit sich sie sind so soll sollen uber um und uns
unter vom von vor war waren was weiter wenn wer werden wie wieder will wir wird wo wurde wurden zu zum zur zwei drei
montag dienstag mittwoch donnerstag freitag samstag sonntag uhr laut teilte sagte
"""
STOP_WORDS = frozenset((ENGLISH + GERMAN).split())


@lru_cache(maxsize=2**16)
def fold(word: str) -> str:
    """Lower-case a word and remove accents, hyphens and the possessive: `Müller's` becomes `muller`."""
    plain = unicodedata.normalize("NFKD", word.replace("ß", "ss")).lower()
    plain = "".join(letter for letter in plain if not unicodedata.combining(letter)).replace("’", "'")
    return plain.removesuffix("'s").rstrip("'").replace("'", "").replace("-", "")


def sentences(text: str) -> list[str]:
    """The sentences of a plain text, in order."""
    return [found for part in SENTENCE.split(text) if (found := " ".join(part.split()))]


@dataclass(frozen=True)
class Words:
    """The words of one article.

    full     every word that is not a stop word
    stems    the first letters of these words, so that `explodes` matches `explode` and `Streik` matches `Streikende`
    names    words with a capital that don't start a sentence
    numbers  6.8, 4,000, 2:19:44
    """

    full: frozenset[str]
    names: frozenset[str]
    numbers: frozenset[str]

    @cached_property
    def stems(self) -> frozenset[str]:
        return frozenset(word[:STEM] for word in self.full)

    @cached_property
    def long(self) -> frozenset[str]:
        """The words that are longer than their stem; the other words already count as stems."""
        return frozenset(word for word in self.full if len(word) > STEM)

    @staticmethod
    @lru_cache(maxsize=2**14)
    def of(title: str, summary: str) -> Words:
        full, names, numbers = set[str](), set[str](), set[str]()
        for text in (title, *sentences(summary[:LONGEST])):
            found = WORD.findall(text[:LONGEST])
            headline_case = _is_headline_case(found)
            for position, word in enumerate(found):
                if word[0].isdigit():
                    numbers.add(word.replace(",", "."))
                    continue
                folded = fold(word)
                if len(folded) < 2 or folded in STOP_WORDS:
                    continue
                full.add(folded)
                if position > 0 and word[0].isupper() and not headline_case:
                    names.add(folded)
        return Words(frozenset(full), frozenset(names), frozenset(numbers))


def _is_headline_case(words: list[str]) -> bool:
    """Whether Nearly Every Word Has a Capital, so that capitals don't mark names."""
    long = [word for word in words[1:] if len(word) > 3 and word[0].isalpha()]
    return len(long) > 3 and sum(word[0].isupper() for word in long) > 0.8 * len(long)
