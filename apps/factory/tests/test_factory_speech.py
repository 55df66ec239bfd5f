"""Speech: every word has its time, and the same text gives the same samples, with each synthesiser."""

from __future__ import annotations

import os
import subprocess
from itertools import pairwise
from pathlib import Path

import pytest
from apps.factory import encoding, speech
from apps.factory.formats import RATE, Format

PROGRAM = """#!/bin/sh
case "$*" in
*--version*) echo "eSpeak NG text-to-speech: 1.51  Data at: /usr/lib" ;;
*"-v en-us "*) cat > /dev/null; cat {folder}/speech.wav ;;
*) echo "Error: The specified espeak-ng voice does not exist." >&2; exit 1 ;;
esac
"""
TEXT = "The lighthouse has been dark since 1987, isn't it — naïve? A job is claimed once."


@pytest.fixture(autouse=True)
def _real_ffmpeg() -> None:
    """Clear the cached path of ffmpeg: an earlier test may have set a wrapper."""
    encoding.program.cache_clear()
    encoding.version.cache_clear()


@pytest.mark.parametrize("synthesiser", ["espeak-ng", speech.TONE])
def test_the_same_text_is_spoken_with_the_same_samples_and_word_times(
    synthesiser: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if synthesiser == speech.TONE:
        monkeypatch.setattr(speech, "synthesiser", lambda: speech.TONE)
    spoken = speech.speak(TEXT, voice="en-us", pace=200)
    speech.speak("Something else in between.", voice="en-us", pace=120)
    assert spoken == speech.speak(TEXT, voice="en-us", pace=200)
    assert spoken.synthesiser.startswith(synthesiser)
    assert [word.text for word in spoken.words] == TEXT.split()
    assert spoken.words[0].start_ms == 0
    assert all(one.start_ms <= one.end_ms == other.start_ms for one, other in pairwise(spoken.words))
    assert spoken.words[-1].end_ms == pytest.approx(spoken.milliseconds, abs=2)
    assert any(spoken.samples)
    slower = speech.speak(TEXT, voice="en-us", pace=100)
    assert slower.milliseconds > spoken.milliseconds * 1.4


def test_an_unknown_voice_is_a_clear_error() -> None:
    with pytest.raises(speech.VoiceUnknown, match="no voice 'xx'"):
        speech.check("xx")
    speech.check("en-us")


def test_the_program_speaks_if_the_library_is_not_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The test uses a fake `espeak-ng`, which knows only one voice and always prints the same wave file."""
    (tmp_path / "speech.wav").write_bytes(speech.as_wave(bytes(range(1, 101)) * 500))
    (tmp_path / "espeak-ng").write_text(PROGRAM.format(folder=tmp_path))
    (tmp_path / "espeak-ng").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.setattr(speech, "_loader", lambda: None)
    speech.synthesiser.cache_clear()
    try:
        spoken = speech.speak("ab cdef", voice="en-us", pace=200)
        assert (spoken.synthesiser, spoken.samples) == ("espeak-ng 1.51 (program)", bytes(range(1, 101)) * 500)
        assert [(word.text, word.start_ms) for word in spoken.words] == [("ab", 0), ("cdef", spoken.milliseconds // 3)]
        with pytest.raises(speech.VoiceUnknown):
            speech.check("xx")
    finally:
        speech.synthesiser.cache_clear()


def test_samples_survive_a_round_trip_through_a_wave_file() -> None:
    samples = bytes(range(200))
    assert speech.from_wave(speech.as_wave(samples)) == samples


def test_encoding_is_deterministic_and_a_failure_leaves_no_ffmpeg(tmp_path: Path) -> None:
    video_format, wave = Format(width=160, height=90, fps=5), tmp_path / "sound.wav"
    wave.write_bytes(speech.as_wave(speech.speak("Hello there.", voice="en-us", pace=300).samples))
    pictures = [bytes([number * 8]) * (160 * 90 * 3) for number in range(10)]
    for name in ("one", "two"):
        encoding.encode(tmp_path / name, pictures, wave, video_format)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()
    with pytest.raises(encoding.EncodingFailed, match=r"sound\.nothing"):
        encoding.encode(tmp_path / "three", pictures, tmp_path / "sound.nothing", video_format)
    with pytest.raises(ZeroDivisionError):
        encoding.encode(tmp_path / "four", (bytes(1 // number) for number in (1, 0)), wave, video_format)
    running = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
    assert str(tmp_path) not in running, "ffmpeg is still running after a failure"


def test_quiet_and_loud_sound_get_the_same_loudness_without_clipping() -> None:
    loud = speech.speak("The sea rises twice a day, and falls again.", voice="en-us", pace=200).samples
    quiet = b"".join(
        (int.from_bytes(loud[at : at + 2], "little", signed=True) // 4).to_bytes(2, "little", signed=True)
        for at in range(0, len(loud), 2)
    )
    gains = [encoding.gain_for(speech.as_wave(samples)) for samples in (loud, quiet)]
    assert gains[1] - gains[0] == pytest.approx(12, abs=0.5)
    assert encoding.gain_for(speech.as_wave(bytes(2 * RATE))) == encoding.MAX_GAIN
