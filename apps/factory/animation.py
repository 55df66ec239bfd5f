"""Animation: draws the frames of a slide. Layers slide in one by one, captions follow the voice, the end fades out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from PIL import Image, ImageDraw

from apps.factory.captions import Cue
from apps.factory.formats import Format
from apps.factory.slides import MIN_FONT_SIZE, PANEL_COLOUR, TEXT_COLOUR, Layer, Slide
from apps.factory.text_fitting import Box, fit, font, width

FADE_IN, FADE_OUT = 450, 300  # milliseconds that a layer takes to appear, and a slide to fade out
STEPS = 8


def frames(slide: Slide, cues: Sequence[Cue], video_format: Format, count: int) -> Iterator[bytes]:
    """Yield `count` frames as RGB bytes, row by row."""
    total = count * 1000 // video_format.fps
    starts = _layer_starts(slide, total)
    previous: tuple[object, ...] | None = None
    content = b""
    for number in range(count):
        now = number * 1000 // video_format.fps
        # Fades move in a few steps, so that equal frames are recognised and drawn only once.
        steps = tuple(_step(now - start, FADE_IN) for start in starts)
        faded = _step(now - (total - FADE_OUT), FADE_OUT)
        spoken = _spoken(cues, now)
        if (steps, faded, spoken) != previous:
            previous = (steps, faded, spoken)
            content = _draw(slide, steps, faded, spoken, cues).tobytes()
        yield content


def _layer_starts(slide: Slide, total: int) -> list[int]:
    """Return when each layer appears: heading and pictures at once, points spread over the narration."""
    points = [layer for layer in slide.layers if layer.name.startswith("point")]
    share = max(0, total - FADE_IN - FADE_OUT) * 7 // 10 // max(1, len(points))
    order = {id(layer): number for number, layer in enumerate(points)}
    return [200 + order[id(layer)] * share if id(layer) in order else 0 for layer in slide.layers]


def _step(elapsed: int, duration: int) -> int:
    return 0 if elapsed <= 0 else min(STEPS, -(-elapsed * STEPS // duration))


def _spoken(cues: Sequence[Cue], now: int) -> tuple[int, int] | None:
    """Return the number of the cue to show, and of the word in it that is being spoken."""
    for number, cue in enumerate(cues):
        if cue.start_ms <= now < cue.end_ms:
            word = max((index for index, one in enumerate(cue.words) if one.start_ms <= now), default=0)
            return number, word
    return None


def _draw(
    slide: Slide, steps: Sequence[int], faded: int, spoken: tuple[int, int] | None, cues: Sequence[Cue]
) -> Image.Image:
    image = slide.background.copy()
    for layer, step in zip(slide.layers, steps, strict=True):
        _draw_layer(image, layer, step)
    if spoken is not None:
        _draw_caption(image, slide, cues[spoken[0]], spoken[1])
    if faded:
        image = Image.blend(image, slide.background, faded / STEPS)
    return image


def _draw_layer(image: Image.Image, layer: Layer, step: int) -> None:
    """Draw a layer while it fades in: it moves in from the right and slows down towards its final position."""
    if step == 0:
        return
    remaining = (1 - step / STEPS) ** 2
    shift = round(layer.box.width * 0.08 * remaining)
    mask = layer.image.getchannel("A").point([round(value * (1 - remaining)) for value in range(256)])
    image.paste(layer.image, (layer.box.left + shift, layer.box.top), mask)


def _draw_caption(image: Image.Image, slide: Slide, cue: Cue, word: int) -> None:
    """Draw the words of a cue on a dark band, with the spoken word in the accent colour."""
    box = slide.captions
    text = fit(
        cue.text,
        into=(box.width - box.height // 2, box.height * 3 // 4),
        largest=box.height // 2,
        smallest=MIN_FONT_SIZE,
    )
    band = Box(
        box.left + (box.width - text.width) // 2 - box.height // 4, box.top, text.width + box.height // 2, box.height
    )
    shade = Image.new("RGBA", (band.width, band.height), (0, 0, 0, 0))
    canvas = ImageDraw.Draw(shade)
    canvas.rounded_rectangle((0, 0, band.width - 1, band.height - 1), band.height // 5, fill=(*PANEL_COLOUR, 200))
    spoken, top = 0, (band.height - text.height) // 2
    for number, line in enumerate(text.lines):
        left = (band.width - width(line, text.size)) / 2
        for part in line.split(" "):
            colour = slide.accent if spoken == word else TEXT_COLOUR
            canvas.text((left, top + number * text.line_height), part, fill=colour, font=font(text.size))
            left += font(text.size).getlength(f"{part} ")
            spoken += 1
    image.paste(shade, (band.left, band.top), shade)
