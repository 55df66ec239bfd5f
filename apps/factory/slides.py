"""Slides: where everything of a scene stands, and how it looks.

A slide is layers: the ground, the heading, each point, the picture or the code. `animation` brings them in one by one;
where they come to stand is decided here, and nothing stands outside the frame or on the captions.
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

INK, SOFT, NIGHT = (240, 244, 248), (182, 196, 210), (13, 20, 30)
THEMES: tuple[tuple[Colour, Colour, Colour], ...] = (
    ((16, 44, 72), (8, 20, 38), (255, 196, 92)),
    ((38, 30, 76), (14, 12, 34), (126, 214, 255)),
    ((14, 62, 60), (6, 24, 30), (255, 158, 122)),
    ((70, 26, 52), (26, 10, 26), (150, 226, 170)),
    ((40, 54, 70), (16, 22, 30), (255, 224, 130)),
)
MOST_PIXELS = 20_000_000
SMALLEST = 9


class PictureInvalid(Exception):
    """What was handed in can't be shown."""


@dataclass(frozen=True, kw_only=True)
class Layer:
    """Something that appears as one: drawn on its own, as large as its box, and put there."""

    name: str
    box: Box
    image: Image.Image


@dataclass(frozen=True, kw_only=True)
class Slide:
    ground: Image.Image
    layers: tuple[Layer, ...]
    accent: Colour
    captions: Box

    def whole(self) -> Image.Image:
        """All of it, as it stands in the end."""
        drawn = self.ground.copy()
        for layer in self.layers:
            drawn.paste(layer.image, (layer.box.left, layer.box.top), layer.image)
        return drawn


def theme(scene: Scene) -> tuple[Colour, Colour, Colour]:
    """Colours that follow from the scene alone: no other scene changes them."""
    return THEMES[sha256(scene.title.encode()).digest()[0] % len(THEMES)]


def compose(scene: Scene, shape: Format, *, picture: bytes | None = None) -> Slide:
    """Lay a scene out: its layers in the order in which they appear."""
    top, bottom, accent = theme(scene)
    unit = shape.height / 18
    margin = round(unit)
    across = shape.width - 2 * margin
    captions = Box(margin, round(unit * 15.3), across, round(unit * 2))
    ground = _ground(shape, top, bottom)
    if scene.opening:
        layers = _opening(scene, Box(margin, round(unit * 3), across, round(unit * 11)), unit, accent)
        return Slide(ground=ground, layers=tuple(layers), accent=accent, captions=captions)
    heading = fit(
        scene.title,
        into=(across, round(unit * 2.6)),
        largest=round(unit * 1.7),
        smallest=SMALLEST,
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
    return Slide(ground=ground, layers=tuple(layers), accent=accent, captions=captions)


def open_picture(content: bytes) -> Image.Image:
    """A picture as Pillow has it, or PictureInvalid; one that would fill the memory is not unpacked."""
    try:
        with Image.open(io.BytesIO(content), formats=("PNG", "JPEG")) as found:
            if found.width * found.height > MOST_PIXELS:
                raise PictureInvalid(f"a picture has at most {MOST_PIXELS:,} points")
            return ImageOps.exif_transpose(found).convert("RGB")
    except PictureInvalid:
        raise
    except Exception as error:
        raise PictureInvalid(f"it is no PNG or JPEG that can be read: {error}") from error


def save(image: Image.Image, path: Path, *, width: int | None = None) -> None:
    """Write a JPEG, made smaller if it is wider than this."""
    if width is not None and image.width > width:
        image = image.resize((width, image.height * width // image.width), Image.Resampling.LANCZOS)
    image.convert("RGB").save(path, "JPEG", quality=85, optimize=False)


def _ground(shape: Format, top: Colour, bottom: Colour) -> Image.Image:
    drawn = Image.new("RGB", (1, shape.height))
    for row in range(shape.height):
        part = row / max(1, shape.height - 1)
        drawn.putpixel((0, row), tuple(round(a + (b - a) * part) for a, b in zip(top, bottom, strict=True)))
    return drawn.resize((shape.width, shape.height), Image.Resampling.NEAREST)


def _layer(name: str, box: Box) -> tuple[Layer, ImageDraw.ImageDraw]:
    image = Image.new("RGBA", (max(1, box.width), max(1, box.height)), (0, 0, 0, 0))
    return Layer(name=name, box=box, image=image), ImageDraw.Draw(image)


def _inside(box: Box) -> Box:
    """The same box as its own layer sees it."""
    return Box(0, 0, box.width, box.height)


def _opening(scene: Scene, box: Box, unit: float, accent: Colour) -> list[Layer]:
    title = fit(
        scene.title,
        into=(box.width - round(unit), round(unit * 7)),
        largest=round(unit * 3),
        smallest=SMALLEST,
        face=Face.HEAVY,
    )
    bar, canvas = _layer("bar", Box(box.left, box.top, max(3, round(unit * 0.35)), title.height))
    canvas.rectangle((0, 0, bar.box.width, bar.box.height), fill=accent)
    words, canvas = _layer("heading", Box(box.left + round(unit), box.top, box.width - round(unit), title.height))
    draw(canvas, title, _inside(words.box), INK)
    return [bar, words]


def _heading(heading: FittedText, box: Box, accent: Colour) -> Layer:
    layer, canvas = _layer("heading", box)
    draw(canvas, heading, Box(0, 0, box.width, heading.height), INK)
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
    size = min(fit(point, into=room, largest=round(unit * 1.25), smallest=SMALLEST).size for point in points)
    layers, top = [], box.top
    for number, point in enumerate(points):
        text = fit(point, into=room, largest=size, smallest=SMALLEST)
        height = min(each, max(text.height, mark) + round(unit * 0.2))
        layer, canvas = _layer(f"point {number}", Box(box.left, top, box.width, height))
        middle = text.line_height // 2
        canvas.rectangle((0, middle - mark // 2, mark, middle + mark // 2), fill=accent)
        draw(canvas, text, Box(indent, 0, *room), INK)
        layers.append(layer)
        top += min(each, height + round(unit * 0.5))
    return layers


def _code(code: str, box: Box, unit: float, accent: Colour) -> Layer:
    """Letters in cells of one width: code stands in columns."""
    lines = code.split("\n")
    pad, columns = round(unit * 0.5), max(map(len, lines))
    cell = min((box.width - 2 * pad) / max(columns, 1), (box.height - 2 * pad) / len(lines) / 2.1, unit * 0.62)
    size, step = max(5, int(cell / 0.6)), max(1, int(cell * 2.1))
    panel = Box(box.left, box.top, box.width, min(box.height, step * len(lines) + 2 * pad))
    layer, canvas = _layer("code", panel)
    canvas.rounded_rectangle((0, 0, panel.width - 1, panel.height - 1), pad, fill=(*NIGHT, 235), outline=(*accent, 120))
    for row, line in enumerate(lines):
        for column, letter in enumerate(line):
            colour = SOFT if line.lstrip().startswith("#") else accent if letter in "()[]{}=:@.,+-*/<>" else INK
            place = (pad + (column + 0.5) * cell, pad + (row + 0.5) * step)
            canvas.text(place, letter, fill=colour, font=font(size, Face.CODE), anchor="mm")
    return layer


def _picture(content: bytes, box: Box, unit: float) -> Layer:
    found = ImageOps.contain(open_picture(content), (box.width, box.height), Image.Resampling.LANCZOS)
    place = Box(box.left + (box.width - found.width) // 2, box.top, found.width, found.height)
    layer, _ = _layer("picture", place)
    mask = Image.new("L", found.size, 0)
    ImageDraw.Draw(mask).rounded_rectangle((0, 0, found.width - 1, found.height - 1), round(unit * 0.4), fill=255)
    layer.image.paste(found, (0, 0), mask)
    return layer


def _halves(box: Box, gap: int) -> tuple[Box, Box]:
    left = (box.width - gap) * 46 // 100
    return (
        Box(box.left, box.top, left, box.height),
        Box(box.left + left + gap, box.top, box.width - gap - left, box.height),
    )
