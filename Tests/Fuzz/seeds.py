"""Writes the seeds of the fuzzers: replies of real cars from the vectors of the tests, complete dialogues from the recordings, messages
of longboards and of the RC car, responses of servers, Varlink calls and replies, and the example configuration.
Usage: seeds.py DIRECTORY."""

import json
import pathlib
import re
import sys

root = pathlib.Path(__file__).resolve().parents[2]
# The steps of Dialogue.swift; the first five are those of ELComm.swift, too.
RECEIVE, WAKE, ADVANCE, DISCONNECT, CONNECT, REQUEST, CANCEL, SET_UP, FLOOD, WAKE_EARLY, RESTORE = (bytes([code]) for code in range(0x80, 0x8B))


def vectors():
    """The replies of OBDVectors.swift: its quoted lines, with the line ends of an adapter."""
    text = (root / "Tests/ProtocolsTests/OBD/OBDVectors.swift").read_text()
    for name, lines in re.findall(r"static let (\w+) = reply\((.*?)\)\n", text, re.S):
        yield name, "\r".join(re.findall(r'"([^"]*)"', lines)).encode() + b"\r\r>"
    for name, lines in re.findall(r"static let (\w+) = \[UInt8\]\((.*?)utf8", text, re.S):
        text = re.sub(r'[\s"\\+()]', "", lines).rstrip(".").replace("|", "\r")
        yield name, text.encode()


def dialogues():
    """The bytes received from the adapter in each recording, with a wake before each reply."""
    for path in sorted((root / "Tests/Recordings/obd").glob("*.ndjson")):
        lines = [json.loads(line) for line in path.read_text().splitlines()[1:]]
        yield path.stem, b"\0" + b"".join(WAKE + bytes.fromhex(line["hex"]) + RECEIVE for line in lines if line["dir"] == "rx")


messages = ["255$255$0$0.00", "12$88$1$0.35", "-3$-355$1$-0.01", "8$122$1$12.40", "8$0$0$12.40", "12$88$1$0.35$7$ok", "OK+CONN7"]


def board_dialogues():
    """Messages of a longboard, requested and unsolicited, whole and in pieces, with buzzer commands in between."""
    on, off, buzz, sent, name = (bytes([code]) for code in (0x85, 0x86, 0x87, 0x89, 0x8C))
    for index, message in enumerate(text.encode() for text in messages):
        turn = WAKE + sent + message + RECEIVE
        yield f"requested-{index}", b"\4" + sent + message + RECEIVE + turn * 3 + on + turn * 3 + off + turn * 3 + buzz + b"\1" + turn * 8
        yield f"unsolicited-{index}", b"\0" + (message + RECEIVE + sent + ADVANCE + b"\x1a") * 4 + DISCONNECT + CONNECT + WAKE + turn + buzz + b"\x09" + turn
        yield f"pieces-{index}", b"\14" + message[:5] + RECEIVE + message[5:] + RECEIVE + sent + message * 3 + RECEIVE + sent + b"Torq" + name + sent


formulas = ["Signed(BB)*256+BC", "{J:5} ? 1 : absent", "(A*256+B)/10", "float32(A,B,C,D)", "signed(A << 8 | B, 16) % 7", "min(A,B) > 3 && !C || ~A & 0x1F == 2", "((v<8)+u)/1.5e2"]


def blocks():
    """Input of Blocks.swift: ten rows one µs apart, with all of them or a difference in a row set, and a column of integers; samples."""
    times, everything, integers = [1, 2, 2] + [0] * 8, [10, 0] + [0] * 10, [1, 0] + [0] * 10
    parts = lambda *all: bytes(byte for part in all for byte in [len(part), *part])
    for layout in (0, 0x80):
        yield f"whole-{layout}", bytes([2, 10, layout | 5, 1]) + parts(times, [0], everything, integers)
        yield f"difference-{layout}", bytes([3, 10, layout | 6, 0x11]) + parts(times, [1, 1, 97], everything, [10, 1, 0, 0], integers)
    for kind in range(8):
        yield f"samples-{kind}", bytes([5 + 8 * (kind % 2)]) + b"".join(bytes([kind | 8 | 16 * (index % 3), 51]) + b"ab,c\0%03d" % index for index in range(40))


def answers():
    """Input of the parsers of Answers.swift, after a byte that selects the parser and the HTTP status."""
    weather = {
        "current_units": {"temperature_2m": "°C", "relative_humidity_2m": "%", "weather_code": "wmo code", "uv_index": ""},
        "current": {"temperature_2m": 12.4, "relative_humidity_2m": 61, "weather_code": 3, "uv_index": 4.85},
    }
    place = {"results": [{"name": "Oslo", "latitude": 59.9, "longitude": 10.75, "country": "Norway"}]}
    fact = {"trivia": {"id": 1, "text": "Honey never spoils.", "upvotes": 2, "downvotes": 0}, "userVote": 1}
    user = {"id": 18, "name": "Ada", "email": "ada@example.org", "triviaCount": 499, "token": "00ff"}
    old = [{"triviaId": 5, "triviaText": "Old.", "userAction": -1}]
    stored = {"user": 18, "time": 5, "triviaHistory": [fact]}
    for index, (kind, body) in enumerate(
        [(0, weather), (0, place), (0, {"error": True, "reason": "no"}), (5, user), (5, {"triviaHistory": [fact, fact]}), (5, fact), (5, old),
         (5, {"message": "Invalid UserId"}), (14, user), (14, stored), (14, [{"user": 18, "fact": 1, "vote": 1}])]
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
    dbc = """VERSION ""
NS_ :
\tCM_
BO_ 1001 Msg: 8 A
 SG_ Mux M : 0|4@1+ (1,0) [0|0] "" B
 SG_ Temp_1 m3 : 16|12@0- (0.5,-40) [-40|100] "degC" B
 SG_ Volts m3M : 32|32@1- (1,0) [0|0] "V" B
CM_ SG_ 1001 Temp_1 "a \\"b\\"";
BA_ "GenMsgCycleTime" BO_ 1001 100;
VAL_ 1001 Mux 0 "off" 1 "on" ;
SIG_VALTYPE_ 1001 Volts : 1;
SG_MUL_VAL_ 1001 Temp_1 Mux 3-3, 5-7;
"""
    yield "dbc", bytes([0x40]) + dbc.encode()
    yield "stored", bytes([0xE0]) + b"steps 4321 20522 1773147900000000\nheart-rate 72 20522 1773147900000000\n"
    yield "heart-rate", bytes([0xA0]) + bytes.fromhex("1E485F0040030003")
    fix = {"class": "TPV", "device": "/dev/a", "mode": 3, "time": "2026-06-01T12:00:00.000Z", "lat": 63.43, "lon": 10.39, "altMSL": 123.0, "speed": 15.0, "eph": 3.8}
    sky = {"class": "SKY", "device": "/dev/a", "nSat": 2, "uSat": 1, "satellites": [{"PRN": 1, "used": True}, {"PRN": 2, "used": False}]}
    devices = {"class": "DEVICES", "devices": [{"class": "DEVICE", "path": "/dev/a", "activated": 0}]}
    yield "gpsd", bytes([0x90]) + b"\r\n".join(json.dumps(one).encode() for one in (devices, fix, sky, {"class": "ERROR", "message": "no"}))
    yield "gpsd-nan", bytes([0x90]) + b'{"class":"TPV","mode":2,"lat":1,"lon":2,"epx":nan,"epy":-inf,"time":1780315217.5}'
    yield "running", bytes([0xC0]) + bytes.fromhex("070003B4640039300000")


# Replies of an ELM327 without data, and negative responses of ECUs.
statuses = [
    "NO DATA", "SEARCHING...", "STOPPED", "CAN ERROR", "BUS INIT: ...OK", "BUS INIT: ERROR", "UNABLE TO CONNECT", "BUS BUSY", "BUFFER FULL",
    "<RX ERROR", "<DATA ERROR", "FB ERROR", "LV RESET", "ACT ALERT", "LP ALERT", "ERR94", "ELM327 v1.5", "?", "OK", "7EC037F2231", "7EC037F2278",
    "7EC037F2221", "7EC037F2233", "7E804410C0D74",
]
# The steps of VESC.swift.
V_RECEIVE, V_WAKE, V_ADVANCE, V_DISCONNECT, V_CONNECT, V_COMMAND, V_CANCEL, V_SENT, V_LEASE, V_RELEASE, V_RESPOND, V_RESTORE, V_ESCAPE = (
    bytes([code]) for code in range(0xC0, 0xCD)
)


def escaped(data):
    """Received bytes, those that would be steps with an escape before them."""
    return b"".join(V_ESCAPE + bytes([byte]) if byte & 0xF0 == 0xC0 else bytes([byte]) for byte in data)


def vesc_frames():
    """The frames of VESCFrameTests.swift."""
    text = (root / "Tests/ProtocolsTests/Longboard/VESCFrameTests.swift").read_text()
    values = re.search(r'static let values =\s*"([^"]*)"', text).group(1)
    for name, digits in re.findall(r'static let (\w+) = hex\("([^"]*)"\)', text):
        yield name, bytes.fromhex(digits.replace("\\(values)", values))


def car_frames():
    """The frames of the car in CarRig.swift."""
    text = (root / "Tests/ProtocolsTests/Car/CarRig.swift").read_text()
    vectors = text[text.index("enum CarVector") :].replace('"\n    + "', "")
    for name, frame in re.findall(r'static let (\w+) =\s*"([^"]*)"', vectors):
        yield name, frame.replace("\\r\\n", "\r\n").encode()


def car_sessions():
    """Sessions of the RC car: connected, driven, with commands and stops, over a link that completes every send."""
    receive, wake, advance, disconnect, connect, command, sent, lease, release, video, message, tilt, stop = (
        bytes([code]) for code in (0xC0, 0xC1, 0xC2, 0xC3, 0xC4, 0xC5, 0xC7, 0xC8, 0xC9, 0xCA, 0xCD, 0xCE, 0xCF)
    )
    frames = dict(car_frames())
    completed = (sent + b"\0" + wake) * 3
    connected = completed + frames["gyro"] + receive + completed + frames["modes"] + receive + completed
    drive = lease + (tilt + b"\x02" + completed) * 3 + (tilt + b"\x1b" + completed + wake) * 4
    for index, name in enumerate(frames):
        yield name, bytes([index]) + completed + frames[name][:9] + receive + frames[name][9:] + receive + completed
    yield "drive", b"\0" + connected + drive + release + completed * 2 + drive + advance + b"\x1d" + wake + completed * 2 + drive + stop + completed + command + b"\x0a" + completed + drive
    yield "documented", b"\4" + connected + drive + command + b"\x22" + completed + release + completed * 3
    yield "broken", b"\0" + connected + command + b"\x11" + completed * 2 + drive + release + completed * 2 + command + b"\x12" + completed * 2
    yield "video", b"\1" + connected + command + b"\x04" + completed + video + b"\0" + video + b"\1" + wake + video + b"\0" + video + b"\2" + completed + drive + disconnect + connect
    yield "lines", b"\1" + connected + b"Laps: 3;Driver: Ann;Temperature: 48,3 C" + message + b"\2" + wake + command + b"\x0d" + completed + frames["status"] + receive
    yield "commands", b"\x12" + connected + command + b"\x0b" + (completed + b"about it" + message + b"\3") * 4 + b"hello" + command + b"\x0f" + completed + command + b"\x10" + completed * 2


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


def can():
    """Frames in each form, and the frames of messages, after a byte that selects the parser."""
    lines = b"t7DF8020100000000000\rT18DB33F1802010C0000000000\rz\rr7E88\r\x07V1013\rF24\rt7E8441050A1F1234\r"
    yield "slcan", b"\x07" + lines
    yield "slcan-whole", b"\x1f" + lines
    yield "candump", b"\x40(1436509052.249713) can0 7E0#0322010100000000\n(0.000001) vcan0 18DAF110#03.7F.22.78 R\n(5.5) x 20000044#0020000000000000\n(1.000000) c 7E0#R8\n"
    frames = [(0x7E8, b"\x06A\0\xbe\x1f\xa8\x13"), (0x98DAF110, b"\x10\x14I\2\0001G1"), (0x20000044, b"\0\x20" + bytes(6)), (0x400007E0, b"")]
    yield "socket", b"\x60" + b"".join(word.to_bytes(4, "little") + bytes([len(data), 0, 0, 0]) + data.ljust(8, b"\0") for word, data in frames)
    message = [b"\x10\x14ABCDEF", b"\x21GHIJKLM", b"\x22NOPQRST"]
    for options in range(0, 8, 3):
        yield f"received-{options}", bytes([0x80 | options]) + b"".join(b"\x08" + frame for frame in message) + b"\x42\1Z\xc8" + message[0]
        yield f"sent-{options}", bytes([0xC0 | options]) + b"\0\x40" + b"\1\0\0" + b"\0\3\xf2" + b"\0\0\0"
        yield f"long-{options}", bytes([0xC0 | options]) + b"\x0f\xff" + b"\0\0\0"


def seeds():
    replies = dict(vectors()) | {f"status-{index}": status.encode() + b"\r\r>" for index, status in enumerate(statuses)}
    for name, reply in replies.items():
        yield f"replies/{name}", reply
        yield f"dialogue/{name}", b"\0" + SET_UP + WAKE + reply[:30] + RECEIVE + reply[30:] + RECEIVE + WAKE + reply + RECEIVE
        yield f"dialogue/request-{name}", b"\4" + SET_UP + b"010C" + REQUEST + b"\2" + WAKE + (b"OK\r>" + RECEIVE) * 4 + reply + RECEIVE + (b"OK\r>" + RECEIVE) * 4
    for name, dialogue in dialogues():
        yield f"dialogue/{name}", dialogue
    for name, dialogue in board_dialogues():
        yield f"elcomm/{name}", dialogue
    yield "dialogue/steps", b"\1" + b"2101" + RESTORE + SET_UP + b"7" + FLOOD + ADVANCE + b"\x24" + WAKE_EARLY + DISCONNECT + CONNECT + b"ATRV" + REQUEST + b"\0" + CANCEL + b"\0"
    frames = dict(vesc_frames())
    identify = escaped(frames["firmware600"][3:-3]) + V_RESPOND
    limits = escaped(b"\x3f\x80\0\0" * 10 + b"\x0e\x40\x10\0\0\x3d\xae\x14\x7b") + V_RESPOND
    fast = escaped(bytes.fromhex("000101FC00000100000000C8016000001B58000010000178035200")) + V_RESPOND
    setup = escaped(bytes(70)) + V_RESPOND
    values = escaped(frames["values600"][3:-3]) + V_RESPOND
    for name, frame in frames.items():
        yield f"vesc/{name}", b"\0" + escaped(frame) + V_RECEIVE + V_SENT + b"\0" + V_WAKE + escaped(frame[:20]) + V_RECEIVE + escaped(frame[20:]) + V_RECEIVE
    session = identify + limits + (V_WAKE + setup + V_WAKE + values + V_WAKE + fast)
    yield "vesc/session", b"\4" + session + (V_WAKE + fast) * 5 + V_DISCONNECT + V_CONNECT + session
    yield "vesc/drive", b"\4" + session + V_LEASE + V_COMMAND + b"\x24" + V_SENT + b"\0" + V_WAKE + V_COMMAND + b"\x25" + V_SENT + b"\0" + V_ADVANCE + b"\x1d" + V_WAKE + V_SENT + b"\0"
    yield "vesc/mode", b"\x30" + session + V_COMMAND + b"\1" + limits + V_WAKE + V_RESPOND + limits + V_COMMAND + b"\2" + V_COMMAND + b"\0" + limits
    for name, session in car_sessions():
        yield f"car/{name}", session
    for index, call in enumerate(calls):
        message = json.dumps(call).encode()
        yield f"varlink/{index}", bytes([index]) + message + b"\0" + message
    for name, answer in answers():
        yield f"answers/{name}", answer
    for name, content in can():
        yield f"can/{name}", content
    for name, content in blocks():
        yield f"blocks/{name}", content
    yield "toml/example", (root / "etc/vehicled.toml").read_bytes()


for name, content in seeds():
    path = pathlib.Path(sys.argv[1]) / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
tokens = [status.encode() for status in statuses] + [b"\r>", SET_UP, WAKE + b"OK\r>" + RECEIVE, b"1902", b"22F190", b"ATSH7E4", b"{\"", b"\\ud83d\\ude00", b"1e999", b"$88$1$0.35", b"#$#", b"signed16(", b"{A:3}", b"ModeAndPID", b"\"blsb\": true", b"%^%", b"Gyro#$#0.05%^%", b": 1 V;"]
tokens += re.findall(rb'"\w+":', b" ".join(json.dumps(call).encode() for call in calls))
(pathlib.Path(sys.argv[1]) / "words").write_text("".join('"' + "".join(f"\\x{byte:02x}" for byte in token) + '"\n' for token in sorted(set(tokens))))
