"""What the fuzzers begin with: replies of real cars from the tests' vectors, whole dialogues from the recordings, a few
messages of a longboard, calls and replies of the socket, and the example configuration. Usage: seeds.py DIRECTORY."""

import json
import pathlib
import re
import sys

root = pathlib.Path(__file__).resolve().parents[2]
HEAR, WAKE, PASS, DOWN, UP, ASK, CANCEL, SET_UP, FLOOD, EARLY, RESTORE = (bytes([code]) for code in range(0x80, 0x8B))


def vectors():
    """The replies of OBDVectors.swift: its quoted lines, each ended as an adapter ends it."""
    text = (root / "Tests/ProtocolsTests/OBD/OBDVectors.swift").read_text()
    for name, lines in re.findall(r"static let (\w+) = reply\((.*?)\)\n", text, re.S):
        yield name, "\r".join(re.findall(r'"([^"]*)"', lines)).encode() + b"\r\r>"
    for name, lines in re.findall(r"static let (\w+) = \[UInt8\]\((.*?)utf8", text, re.S):
        text = re.sub(r'[\s"\\+()]', "", lines).rstrip(".").replace("|", "\r")
        yield name, text.encode()


def dialogues():
    """Every recording as the bytes that the adapter said, with a wake before each reply."""
    for path in sorted((root / "Tests/Recordings/obd").glob("*.ndjson")):
        lines = [json.loads(line) for line in path.read_text().splitlines()[1:]]
        yield path.stem, b"\0" + b"".join(WAKE + bytes.fromhex(line["hex"]) + HEAR for line in lines if line["dir"] == "rx")


messages = ["255$255$0$0.00", "12$88$1$0.35", "-3$-355$1$-0.01", "8$122$1$12.40", "8$0$0$12.40", "12$88$1$0.35$7$ok", "OK+CONN7"]


def rides():
    """A longboard's messages, asked for and unasked, whole and in pieces, with the buzzer on between."""
    down, up, on, off, buzz, taken, name, pass_ = (bytes([code]) for code in (0x83, 0x84, 0x85, 0x86, 0x87, 0x89, 0x8C, 0x82))
    for index, message in enumerate(text.encode() for text in messages):
        turn = WAKE + taken + message + HEAR
        yield f"asked-{index}", b"\4" + taken + message + HEAR + turn * 3 + on + turn * 3 + off + turn * 3 + buzz + b"\1" + turn * 8
        yield f"unasked-{index}", b"\0" + (message + HEAR + taken + pass_ + b"\x1a") * 4 + down + up + WAKE + turn + buzz + b"\x09" + turn
        yield f"pieces-{index}", b"\14" + message[:5] + HEAR + message[5:] + HEAR + taken + message * 3 + HEAR + taken + b"Torq" + name + taken


formulas = ["Signed(BB)*256+BC", "{J:5} ? 1 : absent", "(A*256+B)/10", "float32(A,B,C,D)", "signed(A << 8 | B, 16) % 7", "min(A,B) > 3 && !C || ~A & 0x1F == 2", "((v<8)+u)/1.5e2"]


def answers():
    """What servers, sensors and disks say, behind a byte that says which of them it is."""
    weather = {
        "current_units": {"temperature_2m": "°C", "relative_humidity_2m": "%", "weather_code": "wmo code", "uv_index": ""},
        "current": {"temperature_2m": 12.4, "relative_humidity_2m": 61, "weather_code": 3, "uv_index": 4.85},
    }
    place = {"results": [{"name": "Oslo", "latitude": 59.9, "longitude": 10.75, "country": "Norway"}]}
    fact = {"trivia": {"id": 1, "text": "Honey never spoils.", "upvotes": 2, "downvotes": 0}, "userVote": 1}
    user = {"id": 18, "name": "Ada", "email": "ada@example.org", "triviaCount": 499, "token": "00ff"}
    old = [{"triviaId": 5, "triviaText": "Old.", "userAction": -1}]
    kept = {"user": 18, "time": 5, "triviaHistory": [fact]}
    for index, (kind, body) in enumerate(
        [(0, weather), (0, place), (0, {"error": True, "reason": "no"}), (5, user), (5, {"triviaHistory": [fact, fact]}), (5, fact), (5, old),
         (5, {"message": "Invalid UserId"}), (14, user), (14, kept), (14, [{"user": 18, "fact": 1, "vote": 1}])]
    ):
        for status in [0, 5] if kind < 14 else [0]:
            yield f"json-{index}-{status}", bytes([kind << 4 | status]) + json.dumps(body, ensure_ascii=False).encode()
    for index, formula in enumerate(formulas):
        yield f"formula-{index}", bytes([0x30]) + formula.encode() + b"\n" + bytes(range(0, 250, 4))
        yield f"torque-{index}", bytes([0x40]) + f'Name,ShortName,ModeAndPID,Equation,Min Value,Max Value,Units,Header\r\n"a, b",b,220101,"{formula}",0,9,C,7E4\n'.encode()
    field = {"id": "A_B", "name": "x", "fmt": {"bix": 37, "len": 14, "sign": True, "mul": 0.5, "div": 3, "add": -3, "nullmin": 0, "nullmax": 99, "min": -9, "max": 9, "unit": "volts"}}
    gear = {"id": "G", "name": "x", "fmt": {"bix": 8, "len": 16, "blsb": True, "map": {"0": "off", "1": {"value": "ON", "description": "on"}}}}
    command = {"hdr": "DA10", "rax": "11", "cmd": {"22": "0101"}, "freq": 0.1, "filter": {"from": 2020, "to": 2022}, "signals": [field, gear]}
    yield "signals", bytes([0x40]) + json.dumps({"commands": [command]}).encode()
    yield "kept", bytes([0xE0]) + b"steps 4321 20522 1773147900000000\nheart-rate 72 20522 1773147900000000\n"
    yield "heart-rate", bytes([0xA0]) + bytes.fromhex("1E485F0040030003")
    yield "running", bytes([0xC0]) + bytes.fromhex("070003B4640039300000")


words = [
    "NO DATA", "SEARCHING...", "STOPPED", "CAN ERROR", "BUS INIT: ...OK", "BUS INIT: ERROR", "UNABLE TO CONNECT", "BUS BUSY", "BUFFER FULL",
    "<RX ERROR", "<DATA ERROR", "FB ERROR", "LV RESET", "ACT ALERT", "LP ALERT", "ERR94", "ELM327 v1.5", "?", "OK", "7EC037F2231", "7EC037F2278",
    "7EC037F2221", "7EC037F2233", "7E804410C0D74",
]
# Steps of the VESC's fuzzer; bytes that would steer are escaped.
HEARD, WOKEN, PASSED, LOST, BACK, ASKED, GONE, TAKEN, LEASED, LEFT, ANSWERED, KEPT, ESCAPED = (bytes([code]) for code in range(0xC0, 0xCD))


def escaped(data):
    return b"".join(ESCAPED + bytes([byte]) if byte & 0xF0 == 0xC0 else bytes([byte]) for byte in data)


def vesc_frames():
    """The frames of the tests' vectors."""
    text = (root / "Tests/ProtocolsTests/Longboard/VESCFrameTests.swift").read_text()
    values = re.search(r'static let values =\s*"([^"]*)"', text).group(1)
    for name, digits in re.findall(r'static let (\w+) = hex\("([^"]*)"\)', text):
        yield name, bytes.fromhex(digits.replace("\\(values)", values))


def car_frames():
    """What the car says in the tests' vectors."""
    text = (root / "Tests/ProtocolsTests/Car/CarRig.swift").read_text()
    vectors = text[text.index("enum CarVector") :].replace('"\n    + "', "")
    for name, frame in re.findall(r'static let (\w+) =\s*"([^"]*)"', vectors):
        yield name, frame.replace("\\r\\n", "\r\n").encode()


def car_drives():
    """A car that greets, is driven, asked and stopped, with the link taking every write."""
    hear, wake, pass_, down, up, ask, sent, lease, leave, picture, escape, speak, tilt, stop = (
        bytes([code]) for code in (0xC0, 0xC1, 0xC2, 0xC3, 0xC4, 0xC5, 0xC7, 0xC8, 0xC9, 0xCA, 0xCC, 0xCD, 0xCE, 0xCF)
    )
    frames = dict(car_frames())
    taken = (sent + b"\0" + wake) * 3
    greet = taken + frames["gyro"] + hear + taken + frames["modes"] + hear + taken
    drive = lease + (tilt + b"\x02" + taken) * 3 + (tilt + b"\x1b" + taken + wake) * 4
    for index, name in enumerate(frames):
        yield name, bytes([index]) + taken + frames[name][:9] + hear + frames[name][9:] + hear + taken
    yield "drive", b"\0" + greet + drive + leave + taken * 2 + drive + pass_ + b"\x1d" + wake + taken * 2 + drive + stop + taken + ask + b"\x0a" + taken + drive
    yield "documented", b"\4" + greet + drive + ask + b"\x22" + taken + leave + taken * 3
    yield "broken", b"\0" + greet + ask + b"\x11" + taken * 2 + drive + leave + taken * 2 + ask + b"\x12" + taken * 2
    yield "video", b"\1" + greet + ask + b"\x04" + taken + picture + b"\0" + picture + b"\1" + wake + picture + b"\0" + picture + b"\2" + taken + drive + down + up
    yield "lines", b"\1" + greet + b"Laps: 3;Driver: Ann;Temperature: 48,3 C" + speak + b"\2" + wake + ask + b"\x0d" + taken + frames["status"] + hear
    yield "ask", b"\x12" + greet + ask + b"\x0b" + (taken + b"about it" + speak + b"\3") * 4 + b"hello" + ask + b"\x0f" + taken + ask + b"\x10" + taken * 2


calls = [
    {"method": "io.vehicled.Get", "parameters": {"references": ["ev.rpm", "x"]}, "more": False},
    {"method": "io.vehicled.Set", "parameters": {"device": "d", "property": "p", "value": {"float": -1.5e3}, "lease": None}, "oneway": True},
    {"method": "io.vehicled.Call", "parameters": {"device": "d", "action": "a", "arguments": {"x": {"list": ["é\n"]}, "y": {"int": 7}}}},
    {"method": "io.vehicled.Watch", "parameters": {"references": ["ev"], "minimumIntervalMilliseconds": 50}, "more": True},
    {"method": "io.vehicled.Drive", "parameters": {"device": "d", "deadlineMilliseconds": 200}, "more": True},
    {"method": "org.varlink.service.GetInfo"},
    {"error": "io.vehicled.Timeout", "parameters": {"milliseconds": 5000}},
    {"parameters": {"text": "x", "progress": 0.5, "columns": ["a"], "rows": [{"cells": ["1"]}], "data": "AAEC"}, "continues": True},
    {"parameters": {"sequence": 1, "changes": [{"device": "ev", "property": "rpm", "value": {"int": 1}, "ageMilliseconds": 3}]}},
    {"parameters": {"schemas": [{"device": "ev", "kind": "obd", "actions": [], "properties": [
        {"name": "rpm", "type": "int", "unit": "rpm", "minimum": -1, "maximum": 1, "writable": False, "motion": False, "help": ""}]}]}},
]


def seeds():
    replies = dict(vectors()) | {f"word-{index}": word.encode() + b"\r\r>" for index, word in enumerate(words)}
    for name, reply in replies.items():
        yield f"replies/{name}", reply
        yield f"dialogue/{name}", b"\0" + SET_UP + WAKE + reply[:30] + HEAR + reply[30:] + HEAR + WAKE + reply + HEAR
        yield f"dialogue/ask-{name}", b"\4" + SET_UP + b"010C" + ASK + b"\2" + WAKE + (b"OK\r>" + HEAR) * 4 + reply + HEAR + (b"OK\r>" + HEAR) * 4
    for name, dialogue in dialogues():
        yield f"dialogue/{name}", dialogue
    for name, ride in rides():
        yield f"elcomm/{name}", ride
    yield "dialogue/steps", b"\1" + b"2101" + RESTORE + SET_UP + b"7" + FLOOD + PASS + b"\x24" + EARLY + DOWN + UP + b"ATRV" + ASK + b"\0" + CANCEL + b"\0"
    frames = dict(vesc_frames())
    identify = escaped(frames["firmware600"][3:-3]) + ANSWERED
    limits = escaped(b"\x3f\x80\0\0" * 10 + b"\x0e\x40\x10\0\0\x3d\xae\x14\x7b") + ANSWERED
    fast = escaped(bytes.fromhex("000101FC00000100000000C8016000001B58000010000178035200")) + ANSWERED
    setup = escaped(bytes(70)) + ANSWERED
    values = escaped(frames["values600"][3:-3]) + ANSWERED
    for name, frame in frames.items():
        yield f"vesc/{name}", b"\0" + escaped(frame) + HEARD + TAKEN + b"\0" + WOKEN + escaped(frame[:20]) + HEARD + escaped(frame[20:]) + HEARD
    ride = identify + limits + (WOKEN + setup + WOKEN + values + WOKEN + fast)
    yield "vesc/ride", b"\4" + ride + (WOKEN + fast) * 5 + LOST + BACK + ride
    yield "vesc/drive", b"\4" + ride + LEASED + ASKED + b"\x24" + TAKEN + b"\0" + WOKEN + ASKED + b"\x25" + TAKEN + b"\0" + PASSED + b"\x1d" + WOKEN + TAKEN + b"\0"
    yield "vesc/mode", b"\x30" + ride + ASKED + b"\1" + limits + WOKEN + ANSWERED + limits + ASKED + b"\2" + ASKED + b"\0" + limits
    for name, drive in car_drives():
        yield f"car/{name}", drive
    for index, call in enumerate(calls):
        message = json.dumps(call).encode()
        yield f"varlink/{index}", bytes([index]) + message + b"\0" + message
    for name, answer in answers():
        yield f"answers/{name}", answer
    yield "toml/example", (root / "etc/vehicled.toml").read_bytes()


for name, content in seeds():
    path = pathlib.Path(sys.argv[1]) / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
texts = [word.encode() for word in words] + [b"\r>", SET_UP, WAKE + b"OK\r>" + HEAR, b"1902", b"22F190", b"ATSH7E4", b"{\"", b"\\ud83d\\ude00", b"1e999", b"$88$1$0.35", b"#$#", b"signed16(", b"{A:3}", b"ModeAndPID", b"\"blsb\": true", b"%^%", b"Gyro#$#0.05%^%", b": 1 V;"]
texts += re.findall(rb'"\w+":', b" ".join(json.dumps(call).encode() for call in calls))
(pathlib.Path(sys.argv[1]) / "words").write_text("".join('"' + "".join(f"\\x{byte:02x}" for byte in text) + '"\n' for text in sorted(set(texts))))
