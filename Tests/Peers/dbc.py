"""Decodes random frames of the messages of DBC files with cantools.

Usage: dbc.py FILE...; prints one JSON object per frame: the file, the number of the message, the bytes in hex, and its signals with their
numbers and, if they have one, the text of the value.
"""

import json
import random
import sys

import cantools

FRAMES = 40


def frames(path):
    database = cantools.database.load_file(path, strict=False)
    for message in database.messages:
        if message.length > 8 or message.is_container or not message.signals:
            continue
        for count in range(FRAMES):
            data = bytes(random.choice((0, 1, 2, 3, 0xFF, random.randrange(256))) for _ in range(message.length))
            try:
                values = message.decode(data, decode_choices=False, allow_truncated=False)
                texts = message.decode(data, decode_choices=True)
            except Exception:  # no signals for this value of a multiplexer
                continue
            signals = {}
            for name, value in values.items():
                text = None if isinstance(texts[name], (int, float)) else str(texts[name])
                finite = value == value and abs(value) != float("inf")
                signals[name] = [float(value) if finite else None, text]
            number = message.frame_id | (0x80000000 if message.is_extended_frame else 0)
            yield {"file": path.rsplit("/", 1)[-1], "message": number, "bytes": data.hex(), "signals": signals}


random.seed(1)
for path in sys.argv[1:]:
    for frame in frames(path):
        print(json.dumps(frame))
