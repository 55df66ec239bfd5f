"""Captions: decide when each word is shown, on the slides and in the subtitle file."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

MAX_WIDTH = 42  # characters
MAX_MILLISECONDS = 4_000
SENTENCE_ENDS = (".", "!", "?", ";", ":")


@dataclass(frozen=True)
class Word:
    """A word with the time at which it is spoken."""

    text: str
    start_ms: int
    end_ms: int

    def later(self, by: int) -> Word:
        return Word(self.text, self.start_ms + by, self.end_ms + by)


@dataclass(frozen=True)
class Cue:
    """Words that are shown together, as one caption."""

    words: tuple[Word, ...]

    @property
    def text(self) -> str:
        return " ".join(word.text for word in self.words)

    @property
    def start_ms(self) -> int:
        return self.words[0].start_ms

    @property
    def end_ms(self) -> int:
        return self.words[-1].end_ms


def cues(words: Iterable[Word]) -> list[Cue]:
    """Split words into cues: at the end of each sentence, and where a cue would be too wide or too long."""
    result: list[Cue] = []
    sentence: list[Word] = []
    for word in words:
        sentence.append(word)
        if word.text.endswith(SENTENCE_ENDS):
            result += _balanced(sentence)
            sentence = []
    return result + _balanced(sentence)


def _balanced(sentence: Sequence[Word]) -> list[Cue]:
    """Split a sentence into as few cues as possible, of about the same width."""
    fewest = _split(sentence, MAX_WIDTH)
    for max_width in range(max((len(word.text) for word in sentence), default=0), MAX_WIDTH):
        if len(split := _split(sentence, max_width)) == len(fewest):
            return split
    return fewest


def _split(sentence: Sequence[Word], max_width: int) -> list[Cue]:
    result: list[Cue] = []
    line: list[Word] = []
    for word in sentence:
        too_wide = len(" ".join(one.text for one in (*line, word))) > max_width
        if line and (too_wide or word.end_ms - line[0].start_ms > MAX_MILLISECONDS):
            result.append(Cue(tuple(line)))
            line = []
        line.append(word)
    return [*result, Cue(tuple(line))] if line else result


def srt(lines: Sequence[Cue]) -> str:
    """Return the cues as a SubRip file, numbered and with times."""
    return "".join(
        f"{number}\n{_time(cue.start_ms)} --> {_time(cue.end_ms)}\n{_escaped(cue.text)}\n\n"
        for number, cue in enumerate(lines, 1)
    )


def _time(milliseconds: int) -> str:
    seconds, rest = divmod(milliseconds, 1000)
    return f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02},{rest:03}"


def _escaped(text: str) -> str:
    """Replace arrows, because players would read a line with `-->` as a time."""
    return text.replace("-->", "→")
