"""Slides and captions: layers stay inside the frame, and captions follow the narration."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from apps.factory import animation, captions, slides
from apps.factory.captions import Word
from apps.factory.formats import Format
from apps.factory.scenes import Scene
from apps.factory.scripts import CODE_COLUMNS, CODE_LINES
from apps.factory.stage_work import FullVideo, Segment, SpeechInfo
from apps.factory.text_fitting import Box, fit
from PIL import Image

FORMATS = [Format(width=320, height=180, fps=10), Format(width=160, height=90, fps=10)]
LONG, WIDE = "a rather long sentence that goes on and on " * 3, "W" * 120


def picture(width: int, height: int) -> bytes:
    content = io.BytesIO()
    Image.new("RGB", (width, height), (200, 80, 60)).save(content, "PNG")
    return content.getvalue()


@pytest.mark.parametrize(
    "video_format", FORMATS, ids=lambda video_format: f"{video_format.width}x{video_format.height}"
)
@pytest.mark.parametrize("title", ["Short", WIDE])
@pytest.mark.parametrize("points", [(), (LONG.strip()[:120],) * 6, (WIDE,) * 6])
@pytest.mark.parametrize("shown", ["nothing", "code", "a wide picture", "a tall picture"])
def test_no_layer_leaves_the_slide_or_covers_the_captions(
    video_format: Format, title: str, points: tuple[str, ...], shown: str
) -> None:
    code = "\n".join(["x" * CODE_COLUMNS] * CODE_LINES) if shown == "code" else None
    scene = Scene(title=title, narration="Words.", points=points, code=code)
    content = {"a wide picture": picture(900, 60), "a tall picture": picture(60, 900)}.get(shown)
    slide = slides.compose(scene, video_format, picture=content)

    above = Box(0, 0, video_format.width, slide.captions.top)
    assert Box(0, 0, video_format.width, video_format.height).holds(slide.captions)
    for layer in slide.layers:
        assert above.holds(layer.box), layer.name
        assert layer.image.size == (layer.box.width, layer.box.height)
    boxes = [layer.box for layer in slide.layers]
    for number, one in enumerate(boxes):
        for other in boxes[number + 1 :]:
            apart = (
                one.right <= other.left or other.right <= one.left or one.bottom <= other.top or other.bottom <= one.top
            )
            assert apart, "two layers overlap"


@pytest.mark.parametrize("text", ["word", LONG * 5, WIDE, "a " * 300])
@pytest.mark.parametrize("into", [(300, 60), (60, 20), (20, 200)])
def test_any_text_fits_into_its_box(text: str, into: tuple[int, int]) -> None:
    fitted = fit(text, into=into, largest=40, smallest=9)
    assert fitted.width <= into[0]
    assert fitted.height <= max(into[1], fitted.line_height)


def test_a_title_card_shows_a_bar_and_the_title() -> None:
    slide = slides.compose(Scene(title="Hello", narration="x", opening=True), FORMATS[0])
    assert [layer.name for layer in slide.layers] == ["bar", "heading"]


@pytest.mark.parametrize("content", [b"", b"GIF89a", b"\x89PNG\r\n\x1a\n", picture(10, 10)[:-30]])
def test_other_files_are_refused_as_pictures(content: bytes) -> None:
    with pytest.raises(slides.PictureInvalid):
        slides.open_picture(content)


def test_a_picture_with_too_many_pixels_is_refused() -> None:
    large = io.BytesIO()
    Image.new("1", (5000, 4100)).save(large, "PNG")
    with pytest.raises(slides.PictureInvalid, match="at most 20,000,000 pixels"):
        slides.open_picture(large.getvalue())


WORDS = tuple(
    Word(text, 300 * number, 300 * number + 300)
    for number, text in enumerate(("The", "sea", "rises.", "Twice", "a", "day"))
)


def test_captions_are_short_lines_that_follow_the_words() -> None:
    lines = captions.cues(WORDS)
    assert [(line.text, line.start_ms, line.end_ms) for line in lines] == [
        ("The sea rises.", 0, 900),
        ("Twice a day", 900, 1800),
    ]
    many = captions.cues([Word("something", 200 * number, 200 * number + 200) for number in range(60)])
    assert max(len(line.text) for line in many) <= captions.MAX_WIDTH
    assert max(line.end_ms - line.start_ms for line in many) <= captions.MAX_MILLISECONDS
    assert sum(len(line.words) for line in many) == 60
    assert captions.srt(lines) == (
        "1\n00:00:00,000 --> 00:00:00,900\nThe sea rises.\n\n2\n00:00:00,900 --> 00:00:01,800\nTwice a day\n\n"
    )


def test_no_caption_spans_two_scenes() -> None:
    speech = SpeechInfo(frames=20, milliseconds=2000, synthesiser="", words=WORDS)
    scene = Scene(title="T", narration="x")
    segment = Segment(scene=scene, speech=speech, film=Path(), wave=Path())
    lines = FullVideo(segments=[segment, segment], video_format=FORMATS[0]).cues
    assert [(line.text, line.start_ms) for line in lines] == [
        ("The sea rises.", 0),
        ("Twice a day", 900),
        ("The sea rises.", 2000),
        ("Twice a day", 2900),
    ]


def test_a_sentence_is_split_into_captions_of_similar_length() -> None:
    narration = "When its lease has run out, another one takes over, and only that segment is made again."
    lines = captions.cues(
        [Word(text, 100 * number, 100 * number + 100) for number, text in enumerate(narration.split())]
    )
    assert [line.text for line in lines] == [
        "When its lease has run out,",
        "another one takes over, and only",
        "that segment is made again.",
    ]


def test_an_arrow_in_a_caption_is_replaced() -> None:
    [_, times, text, *_] = captions.srt(captions.cues([Word("a", 0, 100), Word("-->", 100, 200)])).split("\n")
    assert (times.count("-->"), text) == (1, "a →")


def test_the_same_scene_gives_the_same_frames() -> None:
    video_format, scene = FORMATS[1], Scene(title="T", narration="x", points=("a", "b"))
    slide, lines = slides.compose(scene, video_format), captions.cues(WORDS)
    frames = list(animation.frames(slide, lines, video_format, 20))
    assert frames == list(animation.frames(slides.compose(scene, video_format), lines, video_format, 20))
    assert {len(frame) for frame in frames} == {160 * 90 * 3}
    assert frames[0] != frames[5]
    assert frames[5] != frames[10], "another word is spoken, and another point has appeared"
    assert frames[-1] != frames[-4], "the end fades out"
