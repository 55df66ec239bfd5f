"""espeak-ng, the library, as a program of its own: `python espeak.py VOICE PACE < text`.

The library remembers what it said before, and says the same text a little differently then; a new process does not.
Prints a line of JSON, [[letter of the text, millisecond], …] for the words, and then the samples.
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
    """espeak_EVENT of its speak_lib.h."""

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


Heard = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_short), ctypes.c_int, ctypes.POINTER(Event))


def main(voice: str, pace: int, rate: int) -> None:
    loader = importlib.import_module("espeakng_loader")
    library = ctypes.CDLL(loader.get_library_path())
    given = library.espeak_Initialize(SYNCHRONOUS, 0, str(loader.get_data_path()).encode(), NO_EXIT)
    if given != rate:
        sys.exit(f"it speaks {given} samples a second, not {rate}")
    if library.espeak_SetVoiceByName(voice.encode()):
        sys.stderr.write(f"it has no voice {voice!r}")
        sys.exit(NO_VOICE)
    samples, begins = bytearray(), list[tuple[int, int]]()

    def hear(wave: Any, count: int, events: Any) -> int:
        if wave and count > 0:
            samples.extend(ctypes.string_at(wave, 2 * count))
        number = 0
        while events[number].type:
            if events[number].type == WORD:
                begins.append((events[number].position - 1, events[number].milliseconds))
            number += 1
        return 0

    heard = Heard(hear)  # kept for as long as the library may call it
    library.espeak_SetSynthCallback(heard)
    library.espeak_SetParameter(PACE, pace, 0)
    text = sys.stdin.buffer.read()
    failed = library.espeak_Synth(text, len(text) + 1, 0, CHARACTERS, 0, UTF8, None, None)
    if failed or library.espeak_Synchronize() or not samples:
        sys.exit(f"it gave no sound (error {failed})")
    sys.stdout.buffer.write(json.dumps(begins).encode() + b"\n" + samples)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
