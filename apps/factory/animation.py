"""Animation: a slide in time. Layers come in one after another, captions follow the voice, the end fades out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from PIL import Image, ImageDraw

from apps.factory.captions import Cue
from apps.factory.formats import Format
from apps.factory.slides import INK, NIGHT, SMALLEST, Layer, Slide
from apps.factory.text_fitting import Box, fit, font, width

IN, OUT = 450, 300  # milliseconds that a layer takes to come, and the slide to go
STEPS = 8


def frames(slide: Slide, cues: Sequence[Cue], shape: Format, count: int) -> Iterator[bytes]:
    """So many pictures, row by row in red, green and blue."""
    total = count * 1000 // shape.fps
    begins = _begins(slide, total)
    seen: tuple[object, ...] | None = None
    content = b""
    for number in range(count):
        now = number * 1000 // shape.fps
        # What a picture shows is decided in steps, so that equal pictures are known as such and drawn once.
        steps = tuple(_step(now - begin, IN) for begin in begins)
        gone = _step(now - (total - OUT), OUT)
        spoken = _spoken(cues, now)
        if (steps, gone, spoken) != seen:
            seen = (steps, gone, spoken)
            content = _drawn(slide, steps, gone, spoken, cues).tobytes()
        yield content


def _begins(slide: Slide, total: int) -> list[int]:
    """When each layer appears: heading and pictures at once, points spread over the time of the voice."""
    points = [layer for layer in slide.layers if layer.name.startswith("point")]
    share = max(0, total - IN - OUT) * 7 // 10 // max(1, len(points))
    order = {id(layer): number for number, layer in enumerate(points)}
    return [200 + order[id(layer)] * share if id(layer) in order else 0 for layer in slide.layers]


def _step(elapsed: int, whole: int) -> int:
    return 0 if elapsed <= 0 else min(STEPS, -(-elapsed * STEPS // whole))


def _spoken(cues: Sequence[Cue], now: int) -> tuple[int, int] | None:
    """Which cue is shown, and which of its words is being spoken."""
    for number, cue in enumerate(cues):
        if cue.begins <= now < cue.ends:
            word = max((place for place, one in enumerate(cue.words) if one.begins <= now), default=0)
            return number, word
    return None


def _drawn(
    slide: Slide, steps: Sequence[int], gone: int, spoken: tuple[int, int] | None, cues: Sequence[Cue]
) -> Image.Image:
    image = slide.ground.copy()
    for layer, step in zip(slide.layers, steps, strict=True):
        _come(image, layer, step)
    if spoken is not None:
        _caption(image, slide, cues[spoken[0]], spoken[1])
    if gone:
        image = Image.blend(image, slide.ground, gone / STEPS)
    return image


def _come(image: Image.Image, layer: Layer, step: int) -> None:
    """Draw a layer on its way in: from the right and from nothing, slower towards its place."""
    if step == 0:
        return
    left = (1 - step / STEPS) ** 2
    shift = round(layer.box.width * 0.08 * left)
    mask = layer.image.getchannel("A").point([round(value * (1 - left)) for value in range(256)])
    image.paste(layer.image, (layer.box.left + shift, layer.box.top), mask)


def _caption(image: Image.Image, slide: Slide, cue: Cue, word: int) -> None:
    """The words of a cue on a dark band, the one that is spoken in the accent's colour."""
    box = slide.captions
    text = fit(
        cue.text, into=(box.width - box.height // 2, box.height * 3 // 4), largest=box.height // 2, smallest=SMALLEST
    )
    band = Box(
        box.left + (box.width - text.width) // 2 - box.height // 4, box.top, text.width + box.height // 2, box.height
    )
    shade = Image.new("RGBA", (band.width, band.height), (0, 0, 0, 0))
    canvas = ImageDraw.Draw(shade)
    canvas.rounded_rectangle((0, 0, band.width - 1, band.height - 1), band.height // 5, fill=(*NIGHT, 200))
    spoken, top = 0, (band.height - text.height) // 2
    for number, line in enumerate(text.lines):
        left = (band.width - width(line, text.size)) / 2
        for part in line.split(" "):
            colour = slide.accent if spoken == word else INK
            canvas.text((left, top + number * text.line_height), part, fill=colour, font=font(text.size))
            left += font(text.size).getlength(f"{part} ")
            spoken += 1
    image.paste(shade, (band.left, band.top), shade)
