"""espeak-ng as a script: `python espeak.py VOICE PACE RATE < text`.

The library keeps state between texts, so it speaks the same text slightly differently later. Use a new process for each
text.

The script prints one line of JSON with the position and the start of each word, [[position, millisecond], …], then the
samples.
"""

from __future__ import annotations

import ctypes
import importlib
import json
import sys
from typing import Any

NO_VOICE = 3
UTF8, WORD, SYNCHRONOUS, NO_EXIT, PACE, CHARACTERS = 1, 1, 2, 0x8000, 1, 1


class Event(ctypes.Structure):
    """The struct `espeak_EVENT` of speak_lib.h."""

    _fields_ = (
        ("type", ctypes.c_int),
        ("identifier", ctypes.c_uint),
        ("position", ctypes.c_int),
        ("length", ctypes.c_int),
        ("milliseconds", ctypes.c_int),
        ("sample", ctypes.c_int),
        ("user_data", ctypes.c_void_p),
        ("id", ctypes.c_char * 8),
    )


SynthCallback = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_short), ctypes.c_int, ctypes.POINTER(Event))


def main(voice: str, pace: int, rate: int) -> None:
    loader = importlib.import_module("espeakng_loader")
    library = ctypes.CDLL(loader.get_library_path())
    sample_rate = library.espeak_Initialize(SYNCHRONOUS, 0, str(loader.get_data_path()).encode(), NO_EXIT)
    if sample_rate != rate:
        sys.exit(f"the sample rate is {sample_rate}, not {rate}")
    if library.espeak_SetVoiceByName(voice.encode()):
        sys.stderr.write(f"there is no voice {voice!r}")
        sys.exit(NO_VOICE)
    samples, word_starts = bytearray(), list[tuple[int, int]]()

    def on_samples(wave: Any, count: int, events: Any) -> int:
        if wave and count > 0:
            samples.extend(ctypes.string_at(wave, 2 * count))
        number = 0
        while events[number].type:
            if events[number].type == WORD:
                word_starts.append((events[number].position - 1, events[number].milliseconds))
            number += 1
        return 0

    callback = SynthCallback(on_samples)  # must stay referenced as long as the library may call it
    library.espeak_SetSynthCallback(callback)
    library.espeak_SetParameter(PACE, pace, 0)
    text = sys.stdin.buffer.read()
    failed = library.espeak_Synth(text, len(text) + 1, 0, CHARACTERS, 0, UTF8, None, None)
    if failed or library.espeak_Synchronize() or not samples:
        sys.exit(f"the text was not spoken (error {failed})")
    sys.stdout.buffer.write(json.dumps(word_starts).encode() + b"\n" + samples)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
