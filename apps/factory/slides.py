"""Slides: the layout and the look of a scene.

A slide consists of layers: the background, the heading, each point, the picture or the code. `animation` shows them one
by one; their final positions are decided here. No layer leaves the frame or covers the captions.
"""

from __future__ import annotations

import io
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from PIL import Image, ImageDraw, ImageOps

from apps.factory.formats import Format
from apps.factory.scenes import Scene
from apps.factory.text_fitting import Box, Colour, Face, FittedText, draw, fit, font

TEXT_COLOUR, COMMENT_COLOUR, PANEL_COLOUR = (240, 244, 248), (182, 196, 210), (13, 20, 30)
THEMES: tuple[tuple[Colour, Colour, Colour], ...] = (
    ((16, 44, 72), (8, 20, 38), (255, 196, 92)),
    ((38, 30, 76), (14, 12, 34), (126, 214, 255)),
    ((14, 62, 60), (6, 24, 30), (255, 158, 122)),
    ((70, 26, 52), (26, 10, 26), (150, 226, 170)),
    ((40, 54, 70), (16, 22, 30), (255, 224, 130)),
)
MAX_PIXELS = 20_000_000
MIN_FONT_SIZE = 9


class PictureInvalid(Exception):
    """The picture can't be shown."""


@dataclass(frozen=True, kw_only=True)
class Layer:
    """A part of a slide that appears as one: an image with the size and the position of its box."""

    name: str
    box: Box
    image: Image.Image


@dataclass(frozen=True, kw_only=True)
class Slide:
    background: Image.Image
    layers: tuple[Layer, ...]
    accent: Colour
    captions: Box

    def image(self) -> Image.Image:
        """Return the slide with all its layers in their final positions."""
        drawn = self.background.copy()
        for layer in self.layers:
            drawn.paste(layer.image, (layer.box.left, layer.box.top), layer.image)
        return drawn


def theme(scene: Scene) -> tuple[Colour, Colour, Colour]:
    """Return the colours of a scene. Only its title decides them, so that editing other scenes does not change them."""
    return THEMES[sha256(scene.title.encode()).digest()[0] % len(THEMES)]


def compose(scene: Scene, video_format: Format, *, picture: bytes | None = None) -> Slide:
    """Lay out a scene; its layers are in the order in which they appear."""
    top, bottom, accent = theme(scene)
    unit = video_format.height / 18
    margin = round(unit)
    across = video_format.width - 2 * margin
    captions = Box(margin, round(unit * 15.3), across, round(unit * 2))
    background = _background(video_format, top, bottom)
    if scene.opening:
        layers = _opening(scene, Box(margin, round(unit * 3), across, round(unit * 11)), unit, accent)
        return Slide(background=background, layers=tuple(layers), accent=accent, captions=captions)
    heading = fit(
        scene.title,
        into=(across, round(unit * 2.6)),
        largest=round(unit * 1.7),
        smallest=MIN_FONT_SIZE,
        face=Face.HEAVY,
    )
    layers = [_heading(heading, Box(margin, round(unit * 0.9), across, round(unit * 2.7)), accent)]
    body = Box(margin, round(unit * 4.1), across, round(unit * 10.9))
    shown = picture is not None or scene.code is not None
    left, right = _halves(body, margin) if scene.points and shown else (body, body)
    layers += _points(scene.points, left, unit, accent)
    if scene.code is not None:
        layers.append(_code(scene.code, right, unit, accent))
    if picture is not None:
        layers.append(_picture(picture, right, unit))
    return Slide(background=background, layers=tuple(layers), accent=accent, captions=captions)


def open_picture(content: bytes) -> Image.Image:
    """Decode a picture, or raise PictureInvalid; a picture with too many pixels is not decoded."""
    try:
        with Image.open(io.BytesIO(content), formats=("PNG", "JPEG")) as picture:
            if picture.width * picture.height > MAX_PIXELS:
                raise PictureInvalid(f"a picture may have at most {MAX_PIXELS:,} pixels")
            return ImageOps.exif_transpose(picture).convert("RGB")
    except PictureInvalid:
        raise
    except Exception as error:
        raise PictureInvalid(f"the file is not a readable PNG or JPEG: {error}") from error


def save(image: Image.Image, path: Path, *, width: int | None = None) -> None:
    """Write a JPEG, scaled down if it is wider than `width`."""
    if width is not None and image.width > width:
        image = image.resize((width, image.height * width // image.width), Image.Resampling.LANCZOS)
    image.convert("RGB").save(path, "JPEG", quality=85, optimize=False)


def _background(video_format: Format, top: Colour, bottom: Colour) -> Image.Image:
    drawn = Image.new("RGB", (1, video_format.height))
    for row in range(video_format.height):
        part = row / max(1, video_format.height - 1)
        drawn.putpixel((0, row), tuple(round(a + (b - a) * part) for a, b in zip(top, bottom, strict=True)))
    return drawn.resize((video_format.width, video_format.height), Image.Resampling.NEAREST)


def _layer(name: str, box: Box) -> tuple[Layer, ImageDraw.ImageDraw]:
    image = Image.new("RGBA", (max(1, box.width), max(1, box.height)), (0, 0, 0, 0))
    return Layer(name=name, box=box, image=image), ImageDraw.Draw(image)


def _inside(box: Box) -> Box:
    """Return the box in the coordinates of its own layer."""
    return Box(0, 0, box.width, box.height)


def _opening(scene: Scene, box: Box, unit: float, accent: Colour) -> list[Layer]:
    title = fit(
        scene.title,
        into=(box.width - round(unit), round(unit * 7)),
        largest=round(unit * 3),
        smallest=MIN_FONT_SIZE,
        face=Face.HEAVY,
    )
    bar, canvas = _layer("bar", Box(box.left, box.top, max(3, round(unit * 0.35)), title.height))
    canvas.rectangle((0, 0, bar.box.width, bar.box.height), fill=accent)
    words, canvas = _layer("heading", Box(box.left + round(unit), box.top, box.width - round(unit), title.height))
    draw(canvas, title, _inside(words.box), TEXT_COLOUR)
    return [bar, words]


def _heading(heading: FittedText, box: Box, accent: Colour) -> Layer:
    layer, canvas = _layer("heading", box)
    draw(canvas, heading, Box(0, 0, box.width, heading.height), TEXT_COLOUR)
    line = max(2, box.height // 24)
    under = min(heading.height + 2 * line, box.height - line)
    canvas.rectangle((0, under, box.width // 5, under + line - 1), fill=accent)
    return layer


def _points(points: tuple[str, ...], box: Box, unit: float, accent: Colour) -> list[Layer]:
    if not points:
        return []
    each, mark = box.height // len(points), max(3, round(unit * 0.4))
    indent = round(unit * 1.1)
    room = (box.width - indent, each - round(unit * 0.25))
    size = min(fit(point, into=room, largest=round(unit * 1.25), smallest=MIN_FONT_SIZE).size for point in points)
    layers, top = [], box.top
    for number, point in enumerate(points):
        text = fit(point, into=room, largest=size, smallest=MIN_FONT_SIZE)
        height = min(each, max(text.height, mark) + round(unit * 0.2))
        layer, canvas = _layer(f"point {number}", Box(box.left, top, box.width, height))
        middle = text.line_height // 2
        canvas.rectangle((0, middle - mark // 2, mark, middle + mark // 2), fill=accent)
        draw(canvas, text, Box(indent, 0, *room), TEXT_COLOUR)
        layers.append(layer)
        top += min(each, height + round(unit * 0.5))
    return layers


def _code(code: str, box: Box, unit: float, accent: Colour) -> Layer:
    """Draw code with all characters in cells of one width, so that columns line up."""
    lines = code.split("\n")
    pad, columns = round(unit * 0.5), max(map(len, lines))
    cell = min((box.width - 2 * pad) / max(columns, 1), (box.height - 2 * pad) / len(lines) / 2.1, unit * 0.62)
    size, step = max(5, int(cell / 0.6)), max(1, int(cell * 2.1))
    panel = Box(box.left, box.top, box.width, min(box.height, step * len(lines) + 2 * pad))
    layer, canvas = _layer("code", panel)
    canvas.rounded_rectangle(
        (0, 0, panel.width - 1, panel.height - 1), pad, fill=(*PANEL_COLOUR, 235), outline=(*accent, 120)
    )
    for row, line in enumerate(lines):
        for column, letter in enumerate(line):
            colour = (
                COMMENT_COLOUR
                if line.lstrip().startswith("#")
                else accent
                if letter in "()[]{}=:@.,+-*/<>"
                else TEXT_COLOUR
            )
            position = (pad + (column + 0.5) * cell, pad + (row + 0.5) * step)
            canvas.text(position, letter, fill=colour, font=font(size, Face.CODE), anchor="mm")
    return layer


def _picture(content: bytes, box: Box, unit: float) -> Layer:
    picture = ImageOps.contain(open_picture(content), (box.width, box.height), Image.Resampling.LANCZOS)
    position = Box(box.left + (box.width - picture.width) // 2, box.top, picture.width, picture.height)
    layer, _ = _layer("picture", position)
    mask = Image.new("L", picture.size, 0)
    ImageDraw.Draw(mask).rounded_rectangle((0, 0, picture.width - 1, picture.height - 1), round(unit * 0.4), fill=255)
    layer.image.paste(picture, (0, 0), mask)
    return layer


def _halves(box: Box, gap: int) -> tuple[Box, Box]:
    left = (box.width - gap) * 46 // 100
    return (
        Box(box.left, box.top, left, box.height),
        Box(box.left + left + gap, box.top, box.width - gap - left, box.height),
    )
