"""Scripts: parses the Markdown that describes a video, scene by scene.

    # Title                      the title card; a paragraph below it is spoken there
    ## Scene                     starts a scene, which becomes a segment
    A paragraph.                 narration, spoken and shown as captions
    - a point                    appears during the narration
    ![description](name)         a picture that was uploaded under that name
    ```python                    code, shown as it is

Other Markdown, and text that does not fit on a slide, is refused with the line that contains it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field

from markdown_it import MarkdownIt
from markdown_it.token import Token

from apps.factory.scenes import Scene
from apps.factory.text_fitting import Face, has_letter

MAX_LENGTH, MAX_SCENES, MAX_WORDS, MAX_LETTERS = 100_000, 60, 150, 1_500
MAX_POINTS, MAX_POINT_LENGTH, MAX_TITLE_LENGTH = 6, 120, 120
MAX_LETTERS_SHOWN = 5
CODE_LINES, CODE_COLUMNS = 16, 72
POINTS = frozenset(f"{kind}_{end}" for kind in ("bullet_list", "list_item", "paragraph") for end in ("open", "close"))
PICTURE = re.compile(r"[a-z0-9][a-z0-9_-]{0,59}")


@dataclass(frozen=True, kw_only=True)
class Fault:
    """An error in a script: a stable code, the line, and what to do."""

    code: str
    line: int
    message: str

    def __str__(self) -> str:
        return f"line {self.line}: {self.message}"


class ScriptInvalid(Exception):
    """The script has errors; `faults` lists all of them."""

    def __init__(self, faults: Sequence[Fault]) -> None:
        super().__init__("; ".join(map(str, faults)))
        self.faults = tuple(faults)


@dataclass(frozen=True, kw_only=True)
class Script:
    title: str
    scenes: tuple[Scene, ...]


@dataclass
class _Draft:
    """A scene while the script is being parsed."""

    title: str
    line: int
    opening: bool = False
    narration: list[str] = field(default_factory=list)
    points: list[str] = field(default_factory=list)
    picture: str | None = None
    code: str | None = None


def parse(text: str, *, pictures: Collection[str] = ()) -> Script:
    """Parse a script, or raise ScriptInvalid with every fault. `pictures` are the names that it may show."""
    if len(text) > MAX_LENGTH:
        raise ScriptInvalid(
            [Fault(code="script_too_long", line=1, message=f"a script may have at most {MAX_LENGTH:,} characters")]
        )
    if (at := text.find("\0")) >= 0:
        message = "the script contains a zero byte; remove it"
        raise ScriptInvalid([Fault(code="letter_unknown", line=text.count("\n", 0, at) + 1, message=message)])
    reader = _Reader(pictures)
    reader.read(
        MarkdownIt("commonmark").parse(text.removeprefix("\ufeff"))
    )  # the byte order mark that some editors write
    if reader.faults:
        raise ScriptInvalid(sorted(reader.faults, key=lambda fault: fault.line))
    return Script(title=reader.drafts[0].title, scenes=tuple(map(_scene, reader.drafts)))


def _scene(draft: _Draft) -> Scene:
    return Scene(
        title=draft.title,
        narration=" ".join(draft.narration) or draft.title,
        points=tuple(draft.points),
        picture=draft.picture,
        code=draft.code,
        opening=draft.opening,
    )


class _Reader:
    """Reads the blocks of a script, and collects scenes and faults."""

    def __init__(self, pictures: Collection[str]) -> None:
        self.drafts: list[_Draft] = []
        self.faults: list[Fault] = []
        self._pictures = pictures

    def read(self, tokens: Sequence[Token]) -> None:
        for first, block in _blocks(tokens):
            line = first.map[0] + 1 if first.map else 1
            self._kinds().get(first.type, self._unknown)(block, line)
            self._letters(block, line)
        if not self.drafts:
            self._fault("title_missing", 1, "a script must begin with its title: # Title")
        elif len(self.drafts) == 1:
            self._fault("scene_missing", self.drafts[0].line, "a script needs at least one scene: ## Scene")
        if len(self.drafts) > MAX_SCENES + 1:
            line = self.drafts[MAX_SCENES].line
            self._fault("too_many_scenes", line, f"a script may have at most {MAX_SCENES} scenes")
        for draft in self.drafts:
            self._check(draft)

    def _kinds(self) -> dict[str, Callable[[Sequence[Token], int], None]]:
        return {
            "heading_open": self._heading,
            "paragraph_open": self._paragraph,
            "bullet_list_open": self._points,
            "fence": self._code,
            "hr": lambda block, line: None,
        }

    def _heading(self, block: Sequence[Token], line: int) -> None:
        title, level = _plain(block), block[0].tag
        if _images(block):
            return self._fault("picture_in_text", line, "a picture must be in a paragraph of its own")
        if not title:
            return self._fault("title_empty", line, "a heading needs a text")
        if len(title) > MAX_TITLE_LENGTH:
            return self._fault("title_too_long", line, f"a heading may have at most {MAX_TITLE_LENGTH} characters")
        if level == "h1" and self.drafts:
            return self._fault("title_twice", line, "a script has only one title (#); scenes begin with ##")
        if level == "h2" and not self.drafts:
            return self._fault("title_missing", line, "a script must begin with its title (#), before the scenes (##)")
        if level not in ("h1", "h2"):
            return self._fault("heading_unknown", line, "only # (the title) and ## (a scene) can be headings")
        self.drafts.append(_Draft(title=title, line=line, opening=level == "h1"))
        return None

    def _paragraph(self, block: Sequence[Token], line: int) -> None:
        draft = self._draft(line)
        inline, images = block[1].children or [], _images(block)
        if not images:
            draft.narration.append(_plain(block))
        elif len(images) > 1 or any(token.type == "text" and token.content.strip() for token in inline):
            self._fault("picture_in_text", line, "a picture must be in a paragraph of its own")
        else:
            self._picture(draft, str(images[0].attrs.get("src", "")), line)

    def _picture(self, draft: _Draft, name: str, line: int) -> None:
        if draft.opening:
            return self._fault("title_card_full", line, "the title card can't show a picture; put it in a scene")
        if draft.picture is not None:
            return self._fault("picture_twice", line, "a scene can show only one picture")
        if not PICTURE.fullmatch(name) or name not in self._pictures:
            names = ", ".join(sorted(self._pictures)) or "none yet"
            return self._fault("picture_unknown", line, f"there is no picture {name[:60]!r}; available: {names}")
        draft.picture = name
        return None

    def _points(self, block: Sequence[Token], line: int) -> None:
        draft = self._draft(line)
        if draft.opening:
            return self._fault("title_card_full", line, "the title card can't show points; put them in a scene")
        if any(token.type.endswith("list_open") for token in block[1:]):
            return self._fault("points_nested", line, "points can't be nested")
        for token in block:
            at = (token.map or [line - 1])[0] + 1
            if token.type == "inline":
                self._point(draft, token, at)
            elif token.type not in POINTS and token.nesting >= 0:
                self._unknown([token], at)
        return None

    def _point(self, draft: _Draft, token: Token, line: int) -> None:
        point = _plain([token])
        if _images([token]):
            self._fault("picture_in_text", line, "a picture must be in a paragraph of its own")
        if len(point) > MAX_POINT_LENGTH:
            self._fault("point_too_long", line, f"a point may have at most {MAX_POINT_LENGTH} characters")
        if point:
            draft.points.append(point)

    def _code(self, block: Sequence[Token], line: int) -> None:
        draft, code = self._draft(line), block[0].content.rstrip().expandtabs(4)
        if draft.opening:
            return self._fault("title_card_full", line, "the title card can't show code; put it in a scene")
        if draft.code is not None:
            return self._fault("code_twice", line, "a scene can show only one block of code")
        lines = code.split("\n")
        if len(lines) > CODE_LINES or max(map(len, lines)) > CODE_COLUMNS:
            self._fault("code_too_long", line, f"code may have at most {CODE_LINES} lines of {CODE_COLUMNS} characters")
        draft.code = code
        return None

    def _unknown(self, block: Sequence[Token], line: int) -> None:
        kind = block[0].type.removesuffix("_open").replace("_", " ")
        self._fault(
            "part_unknown", line, f"a script can't contain a {kind}; use narration, points (-), pictures and code"
        )

    def _letters(self, block: Sequence[Token], line: int) -> None:
        """Refuse characters that the typeface lacks: they would be drawn as empty boxes."""
        code = block[0].type == "fence"
        face = Face.CODE if code else Face.PLAIN
        text = block[0].content.expandtabs(4).replace("\n", " ") if code else _plain(block)
        missing = sorted({letter for letter in text if not has_letter(letter, face)})
        if missing:
            shown = ", ".join(f"{letter!r} (U+{ord(letter):04X})" for letter in missing[:MAX_LETTERS_SHOWN])
            more = " …" if len(missing) > MAX_LETTERS_SHOWN else ""
            self._fault("letter_unknown", line, f"the typeface lacks {shown}{more}; remove or replace these characters")

    def _draft(self, line: int) -> _Draft:
        if not self.drafts:
            self._fault("title_missing", line, "a script must begin with its title: # Title")
            self.drafts.append(_Draft(title="?", line=line, opening=True))
        return self.drafts[-1]

    def _check(self, draft: _Draft) -> None:
        narration = " ".join(draft.narration) or (draft.title if draft.opening else "")
        words, letters = len(narration.split()), len(narration)
        if not any(map(str.isalnum, narration)):
            self._fault("narration_missing", draft.line, f"scene {draft.title!r} has no narration; add a paragraph")
        if words > MAX_WORDS or letters > MAX_LETTERS:
            limit = f"at most {MAX_WORDS} words and {MAX_LETTERS:,} characters, not {words:,} and {letters:,}"
            self._fault("scene_too_long", draft.line, f"the narration of a scene may have {limit}")
        if len(draft.points) > MAX_POINTS:
            self._fault("too_many_points", draft.line, f"a scene may have at most {MAX_POINTS} points")
        shown = [part for part in (draft.points, draft.picture, draft.code) if part]
        if (draft.picture and draft.code) or len(shown) > 2:
            self._fault("scene_full", draft.line, "a scene can show points with a picture or with code, but not both")

    def _fault(self, code: str, line: int, message: str) -> None:
        self.faults.append(Fault(code=code, line=line, message=message))


def _blocks(tokens: Sequence[Token]) -> Iterator[tuple[Token, Sequence[Token]]]:
    """Yield the top-level blocks, each with its first token and all its tokens."""
    begin = 0
    for end, token in enumerate(tokens):
        if token.level == 0 and token.nesting <= 0:
            yield tokens[begin], tokens[begin : end + 1]
            begin = end + 1


def _images(tokens: Sequence[Token]) -> list[Token]:
    return [child for token in tokens for child in token.children or [] if child.type == "image"]


def _plain(tokens: Sequence[Token]) -> str:
    """Return the text without markup; characters that can't be printed become spaces."""
    inline = [child for token in tokens for child in token.children or []]
    text = "".join(" " if child.type.endswith("break") else child.content for child in inline if child.type != "image")
    return " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())
