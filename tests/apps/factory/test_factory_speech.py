"""Speech: every word has its time, and the same text the same samples, whoever speaks."""

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
*"-v en-us "*) cat > /dev/null; cat {folder}/said.wav ;;
*) echo "Error: The specified espeak-ng voice does not exist." >&2; exit 1 ;;
esac
"""
TEXT = "The lighthouse has been dark since 1987, isn't it — naïve? A job is claimed once."


@pytest.fixture(autouse=True)
def _real_ffmpeg() -> None:
    """Another test of this process may have called it while a plant's own ffmpeg was set."""
    encoding.program.cache_clear()
    encoding.version.cache_clear()


@pytest.mark.parametrize("who", ["espeak-ng", speech.TONE])
def test_a_text_is_spoken_word_by_word_and_the_same_again(who: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if who == speech.TONE:
        monkeypatch.setattr(speech, "synthesiser", lambda: speech.TONE)
    spoken = speech.speak(TEXT, voice="en-us", pace=200)
    speech.speak("Something else in between.", voice="en-us", pace=120)
    assert spoken == speech.speak(TEXT, voice="en-us", pace=200)
    assert spoken.synthesiser.startswith(who)
    assert [word.text for word in spoken.words] == TEXT.split()
    assert spoken.words[0].begins == 0
    assert all(one.begins <= one.ends == other.begins for one, other in pairwise(spoken.words))
    assert spoken.words[-1].ends == pytest.approx(spoken.milliseconds, abs=2)
    assert any(spoken.samples)
    slower = speech.speak(TEXT, voice="en-us", pace=100)
    assert slower.milliseconds > spoken.milliseconds * 1.4


def test_a_voice_that_is_not_there_is_a_clear_error() -> None:
    with pytest.raises(speech.VoiceUnknown, match="no voice 'xx'"):
        speech.check("xx")
    speech.check("en-us")


def test_the_program_speaks_where_the_library_is_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stand-in that says what the program does: a wave of a length that it did not know, and no voice but one."""
    (tmp_path / "said.wav").write_bytes(speech.as_wave(bytes(range(1, 101)) * 500))
    (tmp_path / "espeak-ng").write_text(PROGRAM.format(folder=tmp_path))
    (tmp_path / "espeak-ng").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.setattr(speech, "_loader", lambda: None)
    speech.synthesiser.cache_clear()
    try:
        spoken = speech.speak("ab cdef", voice="en-us", pace=200)
        assert (spoken.synthesiser, spoken.samples) == ("espeak-ng 1.51 (program)", bytes(range(1, 101)) * 500)
        assert [(word.text, word.begins) for word in spoken.words] == [("ab", 0), ("cdef", spoken.milliseconds // 3)]
        with pytest.raises(speech.VoiceUnknown):
            speech.check("xx")
    finally:
        speech.synthesiser.cache_clear()


def test_a_wave_comes_back_as_it_was() -> None:
    samples = bytes(range(200))
    assert speech.from_wave(speech.as_wave(samples)) == samples


def test_a_segment_encoded_twice_has_the_same_bytes_and_one_that_can_not_be_is_an_error(tmp_path: Path) -> None:
    shape, wave = Format(width=160, height=90, fps=5), tmp_path / "sound.wav"
    wave.write_bytes(speech.as_wave(speech.speak("Hello there.", voice="en-us", pace=300).samples))
    pictures = [bytes([number * 8]) * (160 * 90 * 3) for number in range(10)]
    for name in ("one", "two"):
        encoding.encode(tmp_path / name, pictures, wave, shape)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()
    with pytest.raises(encoding.EncodingFailed, match=r"sound\.nothing"):
        encoding.encode(tmp_path / "three", pictures, tmp_path / "sound.nothing", shape)
    with pytest.raises(ZeroDivisionError):
        encoding.encode(tmp_path / "four", (bytes(1 // number) for number in (1, 0)), wave, shape)
    running = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
    assert str(tmp_path) not in running, "whatever goes wrong, ffmpeg is gone"


def test_quiet_and_loud_sound_come_to_the_same_loudness_and_nothing_is_cut_off() -> None:
    loud = speech.speak("The sea rises twice a day, and falls again.", voice="en-us", pace=200).samples
    quiet = b"".join(
        (int.from_bytes(loud[at : at + 2], "little", signed=True) // 4).to_bytes(2, "little", signed=True)
        for at in range(0, len(loud), 2)
    )
    gains = [encoding.gain_for(speech.as_wave(samples)) for samples in (loud, quiet)]
    assert gains[1] - gains[0] == pytest.approx(12, abs=0.5)
    assert encoding.gain_for(speech.as_wave(bytes(2 * RATE))) == encoding.MOST_GAIN
