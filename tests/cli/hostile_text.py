"""Hostile text: markup, control characters and escape sequences."""

ESCAPE = "\x1b[31mred\x1b[0m"
TITLE = "\x1b]0;owned\x07"
CONTROL = "a\rb\x08c\x7f\x9b2J"
BACKWARDS = "\u202etxt.exe\u2066"
MARKUP = "[red]x[/red] [link=file:///]y[/] [/]"
EMOJI = ":boom: 👩‍👩‍👧"
ALL = " ".join((ESCAPE, TITLE, CONTROL, BACKWARDS, MARKUP, EMOJI, "\u2028 \u200f"))

CONTROLLING = {*map(chr, range(32)), "\x7f", *map(chr, range(0x80, 0xA0)), "\u202e", "\u2066", "\u200f", "\u2028"} - {
    "\n"
}


def control_characters(text: str) -> set[str]:
    """The characters of a text that would control a terminal."""
    return {char for char in text if char in CONTROLLING}
