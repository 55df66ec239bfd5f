"""Captions: which words are to be read when, on the slides and in a file beside the video."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

WIDEST = 42
LONGEST = 4_000  # milliseconds
ENDS = (".", "!", "?", ";", ":")


@dataclass(frozen=True)
class Word:
    """A word and when it is spoken, in milliseconds."""

    text: str
    begins: int
    ends: int

    def later(self, by: int) -> Word:
        return Word(self.text, self.begins + by, self.ends + by)


@dataclass(frozen=True)
class Cue:
    """Words that are shown together."""

    words: tuple[Word, ...]

    @property
    def text(self) -> str:
        return " ".join(word.text for word in self.words)

    @property
    def begins(self) -> int:
        return self.words[0].begins

    @property
    def ends(self) -> int:
        return self.words[-1].ends


def cues(words: Iterable[Word]) -> list[Cue]:
    """Words in lines that can be read: a new one where a sentence ends, or where it would be too wide or too long."""
    found: list[Cue] = []
    sentence: list[Word] = []
    for word in words:
        sentence.append(word)
        if word.text.endswith(ENDS):
            found += _even(sentence)
            sentence = []
    return found + _even(sentence)


def _even(sentence: Sequence[Word]) -> list[Cue]:
    """A sentence in as few lines as it takes, and none much shorter than the others."""
    few = _broken(sentence, WIDEST)
    for widest in range(max((len(word.text) for word in sentence), default=0), WIDEST):
        if len(found := _broken(sentence, widest)) == len(few):
            return found
    return few


def _broken(sentence: Sequence[Word], widest: int) -> list[Cue]:
    found: list[Cue] = []
    line: list[Word] = []
    for word in sentence:
        wide = len(" ".join(one.text for one in (*line, word))) > widest
        if line and (wide or word.ends - line[0].begins > LONGEST):
            found.append(Cue(tuple(line)))
            line = []
        line.append(word)
    return [*found, Cue(tuple(line))] if line else found


def srt(lines: Sequence[Cue]) -> str:
    """The file that players read: numbered, with times, one cue after another."""
    return "".join(
        f"{number}\n{_time(cue.begins)} --> {_time(cue.ends)}\n{_harmless(cue.text)}\n\n"
        for number, cue in enumerate(lines, 1)
    )


def _time(milliseconds: int) -> str:
    seconds, rest = divmod(milliseconds, 1000)
    return f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02},{rest:03}"


def _harmless(text: str) -> str:
    """What would be taken for a line of times is told with another arrow."""
    return text.replace("-->", "→")
