"""Tests etc/fleet/decode.py and ingest.py: python3 Tests/Fleet/test_fleet.py [CLASS[.TEST]...]

The tests of ingest.py need paho-mqtt, and that of the pipeline mosquitto and victoria-metrics; they are skipped without them. The encoder
is written after docs/history.md and docs/fleet.md, independently of the one in Swift and of the decoder. All connections are on loopback.
"""

import base64, collections, glob, itertools, json, math, os, pathlib, random, shutil, socket, struct, subprocess, sys, tempfile, time
import unittest, urllib.request, zlib

ROOT = pathlib.Path(__file__).resolve().parents[2]
FLEET = ROOT / "etc/fleet"
sys.dont_write_bytecode = True
sys.path.insert(0, str(FLEET))
import decode  # noqa: E402

try:
    import ingest
except ImportError:
    ingest = None
MOSQUITTO = shutil.which("mosquitto", path=os.environ.get("PATH", "") + ":/usr/sbin")
DATABASE = shutil.which("victoria-metrics")

# The encoder.

def crc32c(data):
    """CRC-32C bit by bit, from RFC 3720."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF

def leb(number):
    encoded = bytearray()
    while number >= 128:
        encoded.append(number % 128 + 128)
        number //= 128
    return bytes(encoded + bytes([number]))

def zigzag(number):
    """A signed integer; differences wrap around at 64 bits."""
    number = (number + 2**63) % 2**64 - 2**63
    return leb(2 * number if number >= 0 else -2 * number - 1)

def text(string):
    return leb(len(string.encode())) + string.encode()

def deflated(data):
    compressor = zlib.compressobj(9, wbits=-15)
    stored = compressor.compress(data) + compressor.flush()
    return stored if len(stored) < len(data) else data

def table(strings):
    """A dictionary of strings, and the index of each."""
    distinct = list(dict.fromkeys(strings))
    return leb(len(distinct)) + b"".join(map(text, distinct)), {string: leb(index) for index, string in enumerate(distinct)}

def differences(numbers, size=1):
    return b"".join(zigzag(number - (numbers[index - size] if index >= size else 0)) for index, number in enumerate(numbers))

def scaled(number, decimals):
    """The number as an integer with decimals, or None if the number cannot be restored from it exactly."""
    if not math.isfinite(number) or abs(number) * 10**decimals > 2**53:
        return None
    integer = round(number * 10**decimals)
    restored = float(integer) / 10**decimals
    return integer if struct.pack("d", restored) == struct.pack("d", number) else None

def encode_values(kind, values):
    """The encoding of a column, and its values."""
    if kind == "bool":
        return 0, bytes(values)
    if kind == "int":
        return 1, differences(values)
    if kind == "float":
        for decimals in range(10):
            integers = [scaled(value, decimals) for value in values]
            if None not in integers:
                return 2, bytes([decimals]) + differences(integers)
        patterns = [struct.unpack(">Q", struct.pack(">d", value))[0] for value in values]
        changes = [(pattern ^ previous).to_bytes(8, "big") for pattern, previous in zip(patterns, [0, *patterns])]
        return 3, bytes(change[plane] for plane in range(8) for change in changes)
    if kind == "string":
        head, index = table(values)
        return 4, head + b"".join(index[value] for value in values)
    if kind == "decimals":
        digits = [element.partition(".") for value in values for element in value]
        decimals = max(len(fraction) for _, _, fraction in digits)
        integers = [int(whole + fraction.ljust(decimals, "0")) for whole, _, fraction in digits]
        size = len(values[0])
        return 5, bytes([decimals]) + leb(size) + differences(integers, size)
    head, index = table(element for value in values for element in value)
    return 6, head + b"".join(leb(len(value)) + b"".join(index[element] for element in value) for value in values)

def ascending(numbers):
    return b"".join(leb(number - previous - 1) for number, previous in zip(numbers, [-1, *numbers]))

def encode_parts(start, columns, bases=True):
    """The rows, the row set of each series, and the parts of a block. `columns`: ID to (type, {time: value or Absent})."""
    times = sorted({moment for _, samples in columns.values() for moment in samples})
    changes, last, step = [], start, 0
    for row, moment in enumerate(times):
        changes.append(moment - last - step)
        last, step = moment, moment - last if row else 0
    zeros = max(number for number in range(10) if number == 0 or any(changes) and all(change % 10**number == 0 for change in changes))
    changes = [2 * change if change >= 0 else -2 * change - 1 for change in (change // 10**zeros for change in changes)]
    width = max([1] + [(change.bit_length() + 7) // 8 for change in changes])
    planes = bytes(change >> 8 * plane & 0xFF for plane in range(width) for change in changes)
    contents = [content for _, (_, samples) in sorted(columns.items()) for content in samples.values()]
    reasons, reason_index = table(content.reason for content in contents if isinstance(content, Absent))
    row_of = {moment: row for row, moment in enumerate(times)}
    sets = {tuple(row_of[moment] for moment in sorted(samples)) for _, samples in columns.values()}
    sets = sorted(sets, key=lambda rows: (-len(rows), rows))
    encoded_sets = []
    for number, rows in enumerate(sets):
        added, removed = sorted(set(rows) - set(sets[0])), [index for index, row in enumerate(sets[0]) if row not in rows]
        if bases and number > 0:
            encoded_sets.append(leb(len(rows)) + leb(1) + leb(len(added)) + ascending(added) + leb(len(removed)) + ascending(removed))
        else:
            encoded_sets.append(leb(len(rows)) + leb(0) + ascending(rows))
    encoded_columns, set_of = [], {}
    for number, (kind, samples) in sorted(columns.items()):
        contents = [samples[moment] for moment in sorted(samples)]
        encoding, values = encode_values(kind, [content for content in contents if not isinstance(content, Absent)])
        absent = [index for index, content in enumerate(contents) if isinstance(content, Absent)]
        skipped = (leb(index - previous - 1) + reason_index[contents[index].reason] for index, previous in zip(absent, [-1, *absent]))
        encoded_columns.append(bytes([encoding]) + leb(len(absent)) + b"".join(skipped) + values)
        set_of[number] = sets.index(tuple(row_of[moment] for moment in sorted(samples)))
    return len(times), set_of, [bytes([width + 16 * zeros]) + planes, reasons, *encoded_sets, *encoded_columns]

def encode_block(start, end, row_count, set_of, parts, layout=0, size_of=len):
    """A block of these parts. `size_of` returns the size that the header of a section states."""
    head = bytes([layout]) + zigzag(start) + leb(end - start) + leb(row_count) + leb(len(parts) - 2 - len(set_of)) + leb(len(set_of))
    for number, previous in zip(sorted(set_of), [0, *sorted(set_of)]):
        head += leb(number - previous) + leb(set_of[number])
    sections = b""
    for part in parts if layout == 1 else [b"".join(map(leb, map(len, parts))) + b"".join(parts)]:
        stored = deflated(part)
        head += leb(size_of(part)) + leb(len(stored)) + struct.pack("<I", crc32c(stored))
        sections += stored
    head = b"VSB1" + leb(len(head)) + head
    return head + struct.pack("<I", crc32c(head)) + sections

def encode_batch(block, series, vehicle="van-17", device="ev", session="1f9a03c2", sequence=1, synchronised=True, header=None):
    if header is None:
        header = {"vehicle": vehicle, "device": device, "session": session, "sequence": sequence, "synchronised": synchronised}
        header = json.dumps({**header, "series": series}).encode()
    stored = deflated(header)
    content = leb(len(header)) + leb(len(stored)) + stored + block
    return b"VFB1" + struct.pack("<I", crc32c(content)) + content

Absent = collections.namedtuple("Absent", "reason")
TYPES = {"decimals": "list"}  # of a type of the encoder in the header

def batch(start, end, columns, names=None, layout=0, bases=True, **header):
    """A batch of columns, and the samples that a decoder returns."""
    names = names or {number: (f"property-{number}", None if number % 2 else "km/h") for number in columns}
    series = [[number, names[number][0], TYPES.get(kind, kind), names[number][1]] for number, (kind, _) in columns.items()]
    payload = encode_batch(encode_block(start, end, *encode_parts(start, columns, bases), layout=layout), series, **header)
    samples = []
    for number, (_, contents) in sorted(columns.items()):
        for moment, content in contents.items():
            value, reason = (None, content.reason) if isinstance(content, Absent) else (content, None)
            samples.append((moment, names[number][0], TYPES.get(columns[number][0], columns[number][0]), names[number][1], value, reason))
    return payload, samples

T0 = 1_774_656_063_969_627  # µs; a time of the recordings
ALL = {
    1: ("bool", {T0 + 1_000_000 * n: n % 3 == 0 for n in range(30)}),
    2: ("int", {T0 + 1_000_000 * n + n * n: n * 1000 - 5 for n in range(30)}),
    3: ("int", {T0: 2**63 - 1, T0 + 5: -(2**63), T0 + 7: 2**63 - 1, T0 + 9: 0}),
    5: ("float", {T0 + 1_000_000 * n: (7348 + n) / 10 for n in range(29)}),
    6: ("float", {T0 + 1_000_000 * n: math.sin(n) if n != 3 else -0.0 for n in range(30)}),
    7: ("string", {T0 + 1_000_000 * n: "parked" if n < 20 else "fährt, \"schnell\"\n" for n in range(30)}),
    8: ("decimals", {T0 + 1_000_000 * n: ["3.84", f"{-n}" if n else "0", "-0.001", f"{n}.5"] for n in range(30)}),
    9: ("list", {T0: [], T0 + 1_000_000: ["P0A1F", "P0420"], T0 + 2_000_000: ["P0420", "", "03"]}),
    11: ("float", {T0 + 1_000_000 * n: Absent("timeout") if n % 4 == 0 else Absent("stale") if n == 29 else n / 4 for n in range(30)}),
    12: ("string", {T0 - 90_000_000: "valid at the start", T0 + 4_000_001: Absent("stale")}),
    300: ("bool", {T0: Absent("not supported"), T0 + 1: Absent("timeout")}),
    2**31 - 1: ("float", {T0 + 1_000_000 * n: 1e300 for n in range(1, 30)}),
}

def contents(decoded):
    return [tuple(sample[key] for key in ("time", "property", "type", "unit", "value", "reason")) for sample in decoded["samples"]]

def same(samples):
    """Samples in a form that can be compared: NaN equals itself, -0.0 does not equal 0.0, and 1 does not equal 1.0."""
    return sorted(map(repr, samples))

class Decoding(unittest.TestCase):
    def check(self, columns, start=T0, end=T0 + 30_000_000, **options):
        for layout, bases in itertools.product((0, 1), (True, False)):
            payload, samples = batch(start, end, columns, layout=layout, bases=bases, **options)
            decoded = decode.decode(payload)
            self.assertEqual(same(contents(decoded)), same(samples))
            self.assertEqual([sample["time"] for sample in decoded["samples"]], sorted(sample[0] for sample in samples))
            self.assertEqual((decoded["start"], decoded["end"]), (start, end))
        return decoded

    def test_all_encodings(self):
        parts = encode_parts(T0, ALL)[2]
        self.assertEqual({part[0] for part in parts[-len(ALL):]}, set(range(7)))
        decoded = self.check(ALL, sequence=2**40, synchronised=False)
        header = {key: decoded[key] for key in ("vehicle", "device", "session", "sequence", "synchronised")}
        self.assertEqual(header, {"vehicle": "van-17", "device": "ev", "session": "1f9a03c2", "sequence": 2**40, "synchronised": False})

    def test_each_encoding_alone(self):
        for number, column in ALL.items():
            self.check({number: column})

    def test_special_numbers(self):
        self.check({1: ("float", {T0: math.nan, T0 + 1: math.inf, T0 + 2: -math.inf, T0 + 3: 5e-324, T0 + 4: -0.0})})
        self.check({1: ("float", {T0: 0.1, T0 + 1: 1e-9, T0 + 2: -2**53 / 10})})

    def test_times(self):
        self.check({1: ("int", {-(2**62): 1, 0: 2, 2**62: 3})}, start=0, end=2**63 - 1)
        self.check({1: ("int", {-5: 1})}, start=-(2**63), end=0)
        self.check({}, start=0, end=0)
        self.check({4: ("int", {0: 1})}, start=0, end=0)
        for unit in (1, 10, 10**6, 10**9, 10**12):
            self.check({1: ("int", {unit * moment: moment for moment in (-7, 0, 3, 4, 11)})}, start=-8 * unit, end=12 * unit)

    def test_random_columns(self):
        generator = random.Random(7)
        for _ in range(60):
            rows = sorted(generator.sample(range(T0, T0 + 30_000_000), generator.randint(1, 60)))
            columns = {}
            for number in sorted(generator.sample(range(1000), generator.randint(1, 12))):
                kind, make = generator.choice([
                    ("bool", lambda: generator.random() < 0.5), ("int", lambda: generator.randint(-(2**63), 2**63 - 1)),
                    ("float", lambda: round(generator.uniform(-1e4, 1e4), 2)), ("float", generator.random),
                    ("string", lambda: generator.choice(["", "ä", "on", "off"])),
                    ("list", lambda: [generator.choice("abc") for _ in range(generator.randint(0, 3))])])
                chosen = rows if generator.random() < 0.5 else sorted(generator.sample(rows, generator.randint(1, len(rows))))
                absent = {row: Absent(generator.choice(["stale", "timeout"])) for row in chosen if generator.random() < 0.1}
                columns[number] = (kind, {row: absent.get(row) or make() for row in chosen})
            self.check(columns)

    def test_text_of_decimals(self):
        texts = [(0, 0, "0"), (0, 9, "0"), (-50, 2, "-0.5"), (384, 2, "3.84"), (38400, 4, "3.84"), (1, 9, "0.000000001"), (100, 0, "100"),
                 (-(2**63), 9, "-9223372036.854775808"), (1000, 2, "10")]
        for integer, decimals, expected in texts:
            column = bytes([5, 0, decimals, 1]) + zigzag(integer)
            block = encode_block(0, 0, 1, {1: 0}, [b"\1\0", leb(0), leb(1) + leb(0) + leb(0), column])
            self.assertEqual(decode.decode(encode_batch(block, [[1, "x", "list", None]]))["samples"][0]["value"], [expected])

    def test_crc(self):
        # The vectors of RFC 3720, B.4.
        vectors = {bytes(32): 0x8A9136AA, b"\xff" * 32: 0x62A8AB43, bytes(range(32)): 0x46DD794E, b"123456789": 0xE3069283, b"": 0}
        for data, crc in vectors.items():
            self.assertEqual((decode.crc32c(data), crc32c(data)), (struct.pack("<I", crc), crc))

    def test_recordings(self):
        """The blocks of the recordings are complete: every sample has a type that suits its series."""
        kinds, count = {"bool": bool, "int": int, "float": float, "string": str, "list": list}, 0
        for path in sorted(glob.glob(str(ROOT / "Tests/Recordings/history/*.blocks")))[:6]:
            for line in pathlib.Path(path).read_text().splitlines()[1:]:
                recorded = json.loads(line)
                series = [[entry["id"], entry["property"], entry["type"], entry.get("unit")] for entry in recorded["series"]]
                decoded = decode.decode(encode_batch(base64.b64decode(recorded["block"]), series))
                kind_of = {(name, unit): kinds[kind] for _, name, kind, unit in series}
                for moment, name, _, unit, value, reason in contents(decoded):
                    self.assertTrue(type(value) is kind_of[name, unit] if reason is None else value is None)
                    self.assertLessEqual(moment, decoded["end"])
                count += len(decoded["samples"])
        self.assertEqual(count, 497_332)

    def test_command(self):
        payload, samples = batch(T0, T0 + 1, ALL)
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "batch")
            path.write_bytes(payload)
            command = [sys.executable, FLEET / "decode.py"]
            by_file = subprocess.run([*command, path], capture_output=True, text=True, check=True).stdout
            by_input = subprocess.run([*command, "-"], capture_output=True, input=payload, check=True).stdout.decode()
            path.write_bytes(payload[:-1])
            damaged = subprocess.run([*command, path], capture_output=True, text=True)
        self.assertEqual(by_file, by_input)
        lines = [json.loads(line) for line in by_file.splitlines()]
        self.assertEqual(len(lines), len(samples))
        self.assertEqual({line["type"] for line in lines}, {"bool", "int", "float", "string", "list"})
        self.assertEqual((damaged.returncode, damaged.stdout), (1, ""))
        self.assertRegex(damaged.stderr, "^cannot decode .*: batch: checksum mismatch\n$")

class Damage(unittest.TestCase):
    """Damaged input raises ValueError with the name of the part, in bounded time and memory."""

    SMALL = {1: ("bool", {T0: True, T0 + 9: False}), 2: ("float", {T0: 1.5, T0 + 9: Absent("stale")}), 3: ("string", {T0: "on"}),
             4: ("decimals", {T0: ["1.5", "2"], T0 + 9: ["1.6", "2"]}), 5: ("list", {T0 + 9: ["x", "y"]}), 6: ("float", {T0: 0.1 + 0.2})}
    PLACE = r"^(batch|header|head of the block|content|times|reasons|row set|column of series \d+): "

    def setUp(self):
        self.started = time.monotonic()

    def tearDown(self):
        self.assertLess(time.monotonic() - self.started, 120)

    def rejects(self, payload, problem=""):
        with self.assertRaisesRegex(ValueError, self.PLACE + problem):
            decode.decode(payload)

    def outcome(self, payload):
        """Whether the payload is decoded; otherwise the error must name the part."""
        try:
            decode.decode(payload)
            return True
        except ValueError as error:
            self.assertRegex(str(error), self.PLACE)
            return False

    def test_flipped_and_truncated_batches(self):
        for layout in (0, 1):
            payload, _ = batch(T0, T0 + 9, self.SMALL, layout=layout)
            for position in range(len(payload)):
                self.rejects(payload[:position])
                for bits in (0x01, 0x80, 0xFF):
                    self.rejects(payload[:position] + bytes([payload[position] ^ bits]) + payload[position + 1:])
            self.rejects(payload + b"\0")

    def test_flipped_and_truncated_blocks(self):
        """The checksums of the block detect what that of the batch does not, such as an error of the sender."""
        for layout in (0, 1):
            row_count, set_of, parts = encode_parts(T0, self.SMALL)
            block = encode_block(T0, T0 + 9, row_count, set_of, parts, layout)
            series = [[number, "x", TYPES.get(kind, kind), None] for number, (kind, _) in self.SMALL.items()]
            decode.decode(encode_batch(block, series))
            for position in range(len(block)):
                self.rejects(encode_batch(block[:position], series))
                self.rejects(encode_batch(block[:position] + bytes([block[position] ^ 0x10]) + block[position + 1:], series))
            self.rejects(encode_batch(block + b"\0", series), "trailing data")

    def test_flipped_parts(self):
        """Parts with valid checksums but arbitrary contents."""
        row_count, set_of, parts = encode_parts(T0, self.SMALL)
        series = [[number, "x", TYPES.get(kind, kind), None] for number, (kind, _) in self.SMALL.items()]
        decoded = 0
        for layout, number in itertools.product((0, 1), range(len(parts))):
            for position in range(len(parts[number])):
                for value in (0, 1, 2, 3, 7, 0x7F, 0x80, 0xFF):
                    part = parts[number][:position] + bytes([value]) + parts[number][position + 1:]
                    changed = parts[:number] + [part] + parts[number + 1:]
                    decoded += self.outcome(encode_batch(encode_block(T0, T0 + 9, row_count, set_of, changed, layout), series))
                truncated = parts[:number] + [parts[number][:position]] + parts[number + 1:]
                self.rejects(encode_batch(encode_block(T0, T0 + 9, row_count, set_of, truncated, layout), series))
        self.assertGreater(decoded, 100)

    def test_random_bytes(self):
        generator = random.Random(11)
        series = [[number, "x", "float", None] for number in range(20)]
        for _ in range(3000):
            noise = generator.randbytes(generator.randint(0, 60))
            self.outcome(noise)
            self.outcome(encode_batch(noise, series))
            head = bytes([generator.randint(0, 1), *generator.choices([0, 1, 2, 5, 127, 128, 255], k=generator.randint(3, 30))])
            head = b"VSB1" + leb(len(head)) + head
            self.outcome(encode_batch(head + struct.pack("<I", crc32c(head)) + noise, series))

    def test_headers(self):
        payload, _ = batch(T0, T0 + 9, {1: self.SMALL[1]})
        block = payload[payload.index(b"VSB1"):]
        good = {"vehicle": "v", "device": "d", "session": "s", "sequence": 1, "synchronised": True, "series": [[1, "x", "bool", None]]}
        header = json.dumps({**good, "later": [1], "note": ""}).encode()
        self.assertEqual(len(decode.decode(encode_batch(block, None, header=header))["samples"]), 2)
        bad = [{key: good[key] for key in good if key != missing} for missing in good]
        values = (None, 0, -1, 1.5, "", [], {}, [[]], "a\nb", True, 2**70)
        bad += [{**good, key: value} for key in good for value in values if (key, value) != ("synchronised", True)]
        bad += [{**good, "series": [entry]} for entry in (
            [1, "x", "bool"], [1, "x", "int", None], [1, "x", "bool", 5], [[], "x", "bool", None], [2, "x", "bool", None],
            [1, "", "bool", None], [1, "x", "bool", "\u0000"], 5, "abcd")]
        bad += [{**good, "series": [[1, "x", "bool", None]] * 2}, {**good, "vehicle": "\ud800"}, [], 5, None]
        for header in bad:
            with self.subTest(header=header):
                self.rejects(encode_batch(block, None, header=json.dumps(header).encode()))
        for header in (b"", b"{", b"\xff\xfe", b"[" * 100_000, b"9" * 100_000, json.dumps(good).encode("utf-16"), b"{" + b" " * (2 << 20)):
            self.rejects(encode_batch(block, None, header=header))

    def bomb(self, head, *contents, series=1):
        """A block with this head (after the layout), whose sections have these contents."""
        head, sections = bytes([1]) + head, b""
        for content in contents:
            stored = deflated(content)
            head += leb(len(content)) + leb(len(stored)) + struct.pack("<I", crc32c(stored))
            sections += stored
        head = b"VSB1" + leb(len(head)) + head
        block = head + struct.pack("<I", crc32c(head)) + sections
        payload = encode_batch(block, [[number, "x", "bool", None] for number in range(1, series + 1)])
        started = time.monotonic()
        self.rejects(payload)
        self.assertLess(time.monotonic() - started, 60)

    def test_small_batches_that_request_much(self):
        rows = 1 << 18
        head = lambda sets, columns, rows=rows: leb(0) + leb(0) + leb(rows) + leb(sets) + leb(columns)
        times = bytes([1]) + bytes([2]) + bytes(rows - 1)
        full = leb(rows) + leb(0) + bytes(rows)
        # More rows, sets, columns or bytes than allowed.
        self.bomb(leb(0) + leb(0) + leb(2**63) + leb(0) + leb(0))
        self.bomb(head(2**40, 0))
        self.bomb(head(0, 2**40))
        self.bomb(head(0, 0, 0) + leb(2**40) + leb(0) + bytes(4))
        self.bomb(head(0, 0, 9 << 20), bytes([1]) + bytes(9 << 20), leb(0))
        # Row sets that refer to a large one, and columns that use it.
        derived, columns = leb(rows) + leb(1) + leb(0) + leb(0), 2000
        empty = [bytes([0, 0])] * columns
        directory = b"".join(leb(1) + leb(index) for index in range(columns))
        self.bomb(head(columns, columns) + directory, times, leb(0), full, *[derived] * (columns - 1), *empty, series=columns)
        directory = b"".join(leb(1) + leb(0) for _ in range(columns))
        self.bomb(head(1, columns) + directory, times, leb(0), full, *empty, series=columns)
        # Long tables and lists.
        column = bytes([6, 0]) + leb(1) + text("a") + leb(2**62)
        self.bomb(head(1, 1, 1) + leb(1) + leb(0), bytes([1, 0]), leb(0), leb(1) + leb(0) + leb(0), column)
        self.bomb(head(1, 1, 1) + leb(1) + leb(0), bytes([1, 0]), leb(2**62), leb(1) + leb(0) + leb(0), column)
        self.bomb(head(1, 1, 1) + leb(1) + leb(0), bytes([1, 0]), leb(0), leb(1) + leb(0) + leb(0), bytes([5, 0, 0]) + leb(2**40))
        self.bomb(head(1, 1, 1) + leb(1) + leb(0), bytes([1, 0]), leb(0), leb(1) + leb(0) + leb(0), bytes([5, 0, 0]) + leb(0))

    def test_sizes(self):
        row_count, set_of, parts = encode_parts(T0, self.SMALL)
        series = [[number, "x", TYPES.get(kind, kind), None] for number, (kind, _) in self.SMALL.items()]
        for layout, change in itertools.product((0, 1), (-1, 1, 1 << 22)):
            size_of = lambda part: max(0, len(part) + change)
            self.rejects(encode_batch(encode_block(T0, T0 + 9, row_count, set_of, parts, layout, size_of), series))
        self.rejects(b"VFB1" + bytes(11 << 20))

@unittest.skipUnless(ingest, "paho-mqtt is not installed")
class Ingesting(unittest.TestCase):
    def test_lines(self):
        columns = {1: ("float", {T0: 1.5, T0 + 7: Absent("stale"), T0 + 9: math.nan}), 2: ("bool", {T0: True, T0 + 9: False}),
                   3: ("int", {T0: -7}), 4: ("string", {T0 + 9: 'a "b"\\\n'}), 5: ("list", {T0 + 9: ["x", "y"]})}
        names = {1: ("battery-voltage", "V"), 2: ("ready", None), 3: ("rpm", "rpm"), 4: ("state", None), 5: ("dtcs", None)}
        decoded = decode.decode(batch(T0, T0 + 9, columns, names, vehicle="van 17,=\\")[0])
        start = "vehicled,tenant=a\\,b,vehicle=van\\ 17\\,\\=\\\\,device=ev"
        numbers = f"{start} battery-voltage=1.5,ready=1,rpm=-7 {T0}000\n{start} ready=0"
        self.assertEqual(ingest.lines(decoded, "a,b", False).decode(), f"{numbers} {T0 + 9}000\n")
        self.assertEqual(ingest.lines(decoded, "a,b", True).decode(), f'{numbers},state="a \\"b\\"\\\\\\n",dtcs="x, y" {T0 + 9}000\n')
        unsynchronised = ingest.lines({**decoded, "synchronised": False}, "t", False).decode()
        self.assertEqual(unsynchronised.count(",device=ev,clock=unsynchronised "), 2)

    def sequences(self, timeout=0):
        reports, sequences = [], ingest.Sequences(timeout)
        self.addCleanup(setattr, ingest, "log", ingest.log)
        ingest.log = reports.append
        return reports, sequences

    def test_gaps(self):
        reports, sequences = self.sequences()
        for number in (10, 11, 15, 20, 17, 13, 18):
            self.assertFalse(sequences.is_repeat("tvs", number))
            sequences.add("tvs", number)
            self.assertTrue(sequences.is_repeat("tvs", number))
        sequences.report()
        gaps = [(int(report.split()[5]), int(report.split()[7])) for report in reports]
        self.assertEqual(gaps, [(12, 12), (14, 14), (16, 16), (19, 19)])
        self.assertFalse(sequences.is_repeat("tvs", 12), "a batch that arrives after the report is written")
        sequences.next_report = 0
        sequences.report()
        self.assertEqual(len(reports), 4)

    def test_gaps_that_are_filled(self):
        reports, sequences = self.sequences(timeout=0.2)
        for number in (1, 5, 4, 2, 3, 6):
            sequences.add("tvs", number)
            sequences.next_report = 0
            sequences.report()
        time.sleep(0.3)
        sequences.next_report = 0
        sequences.report()
        self.assertEqual(reports, [])

    def test_memory_of_sequences(self):
        reports, sequences = self.sequences(timeout=600)
        for number in range(1, 4000, 2):
            sequences.add("tvs", number * 2**40)
        self.assertEqual((len(sequences.sessions["tvs"][1]), len(sequences.sessions["tvs"][2])), (ingest.MAX_SEEN, ingest.MAX_GAPS))

class Publisher:
    """A client of MQTT 3.1.1 that publishes with QoS 1 and sends a message again until it is acknowledged."""

    def __init__(self, port):
        self.port, self.socket, self.mid = port, None, 0

    def packet(self, kind, body):
        self.socket.sendall(bytes([kind]) + leb(len(body)) + body)

    def received(self):
        head = self.socket.recv(2, socket.MSG_WAITALL)
        body = self.socket.recv(head[1], socket.MSG_WAITALL) if len(head) == 2 else b""
        if len(head) < 2 or len(body) < head[1]:
            raise OSError("connection closed")
        return head[0], body

    def close(self):
        if self.socket:
            self.socket.close()
        self.socket = None

    def publish(self, topic, payload):
        self.mid, flags = self.mid % 60_000 + 1, 0x32
        for _ in range(200):
            try:
                if self.socket is None:
                    self.socket = socket.create_connection(("127.0.0.1", self.port), timeout=5)
                    self.packet(0x10, b"\0\x04MQTT\x04\x02" + struct.pack(">H", 600) + b"\0\x09publisher")
                    self.received()
                self.packet(flags, struct.pack(">H", len(topic)) + topic.encode() + struct.pack(">H", self.mid) + payload)
                while self.received() != (0x40, struct.pack(">H", self.mid)):
                    pass
                return
            except OSError:
                self.close()
                flags = 0x3A
                time.sleep(0.1)
        raise OSError("the broker does not accept messages")

def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]

@unittest.skipUnless(ingest and MOSQUITTO and DATABASE, "paho-mqtt, mosquitto or victoria-metrics is not installed")
class Pipeline(unittest.TestCase):
    """Batches of several vehicles, while the broker, the database and the ingest program are stopped and started."""

    VEHICLES = [("acme", "van-1"), ("acme", "van-2"), ("acme", "van-3"), ("umbrella", "van-1"), ("umbrella", "bus 4,=")]
    ROUNDS = 40
    NAMES = {1: ("speed", "km/h"), 2: ("ready", None), 3: ("rpm", "rpm"), 4: ("state", None), 5: ("battery-voltage", "V")}

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="fleet-test."))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        (self.folder / "broker").mkdir()
        (self.folder / "damaged").mkdir()
        self.broker_port, self.database_port = free_port(), free_port()
        (self.folder / "mosquitto.conf").write_text(
            f"listener {self.broker_port} 127.0.0.1\nallow_anonymous true\nuser root\nmax_queued_messages 0\n"
            f"persistence true\npersistence_location {self.folder}/broker/\n")
        self.processes = {}
        self.addCleanup(lambda: [self.stop(name) for name in list(self.processes)])
        self.expected = collections.defaultdict(dict)

    def command(self, name):
        if name == "broker":
            return [MOSQUITTO, "-c", self.folder / "mosquitto.conf"]
        if name == "database":
            return [DATABASE, f"-storageDataPath={self.folder}/database", f"-httpListenAddr=127.0.0.1:{self.database_port}",
                    "-retentionPeriod=1", "-dedup.minScrapeInterval=1ms", "-memory.allowedPercent=5"]
        return [sys.executable, FLEET / "ingest.py", "--broker", f"mqtt://127.0.0.1:{self.broker_port}",
                "--database", f"http://127.0.0.1:{self.database_port}", "--keep", self.folder / "damaged", "--gap-timeout", "5"]

    def start(self, name):
        with open(self.folder / f"{name}.log", "ab") as log:
            self.processes[name] = subprocess.Popen(self.command(name), stdout=log, stderr=log)

    def stop(self, name, kill=False):
        process = self.processes.pop(name)
        process.kill() if kill else process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            raise

    def log(self, name):
        return (self.folder / f"{name}.log").read_text(errors="replace")

    def get(self, path):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.database_port}{path}", timeout=30) as response:
            return response.read().decode()

    def stored(self):
        """The samples in the database: the series to a list of times in ms and values."""
        self.get("/internal/force_flush")
        found = collections.defaultdict(list)
        query = urllib.parse.urlencode({"match[]": '{__name__=~"vehicled_.+"}', "start": T0 // 10**6 - 1, "end": T0 // 10**6 + 86_400})
        for line in self.get("/api/v1/export?" + query).splitlines():
            series = json.loads(line)
            found[tuple(sorted(series["metric"].items()))] += zip(series["timestamps"], series["values"])
        return found

    def batch(self, tenant, vehicle, number):
        """The batch of a vehicle with this sequence number; its samples are expected in the database."""
        start = self.base + (number - 1) * 30_000_000
        seed = 100 * self.VEHICLES.index((tenant, vehicle))
        rows = [start + 1_000_000 * n for n in range(30)]
        columns = {
            1: ("float", {row: (number * 30 + n + seed) / 10 for n, row in enumerate(rows)}),
            2: ("bool", {row: (n + number) % 5 == 0 for n, row in enumerate(rows) if n % 2}),
            3: ("int", {row: Absent("stale") if n == 7 else number * 1000 + n for n, row in enumerate(rows)}),
            4: ("string", {rows[0]: "driving"}),
            5: ("float", {rows[0]: round(math.pi * number, 4), rows[9]: 399.7}),
        }
        if number > 1:
            columns[5][1][start - 21_000_000] = 399.7  # the value that is valid at the start
        payload, samples = batch(start, start + 30_000_000, columns, self.NAMES, vehicle=vehicle, session=f"{seed:08x}", sequence=number)
        return payload, samples

    def expect(self, tenant, vehicle, samples):
        for moment, name, _, _, value, _ in samples:
            if isinstance(value, (bool, int, float)):
                labels = {"__name__": f"vehicled_{name}", "tenant": tenant, "vehicle": vehicle, "device": "ev"}
                self.expected[tuple(sorted(labels.items()))][moment // 1000] = float(value)

    def test_pipeline(self):
        self.base = int(time.time() - 7200) * 1_000_000
        global T0
        T0 = self.base - 60_000_000
        for name in ("broker", "database", "ingest"):
            self.start(name)
        deadline = time.monotonic() + 20
        while "connected" not in self.log("ingest"):
            self.assertLess(time.monotonic(), deadline, self.log("ingest"))
            time.sleep(0.1)
        publisher, published = Publisher(self.broker_port), 0
        self.addCleanup(publisher.close)
        events = {
            30: lambda: self.stop("ingest", kill=True), 55: lambda: self.start("ingest"),
            70: lambda: self.stop("database"), 95: lambda: self.start("database"),
            110: lambda: self.stop("broker"),
            125: lambda: self.stop("database"), 130: lambda: self.stop("ingest", kill=True), 135: lambda: self.start("ingest"),
            145: lambda: self.start("database"),
        }
        late = []
        for number in range(1, self.ROUNDS + 1):
            for tenant, vehicle in self.VEHICLES:
                payload, samples = self.batch(tenant, vehicle, number)
                topic = f"fleet/v1/{tenant}/{vehicle}/b"
                if (vehicle, number) == ("van-3", 35):
                    continue  # the vehicle has dropped this batch
                self.expect(tenant, vehicle, samples)
                if (vehicle, number) == ("van-2", 34):
                    late.append((topic, payload))
                    continue
                publisher.publish(topic, payload)
                published += 1
                if published % 7 == 0:
                    publisher.publish(topic, payload)
                events.pop(published, lambda: None)()
                if "broker" not in self.processes:
                    time.sleep(0.5)
                    self.start("broker")
                time.sleep(0.01)
            if number == 37:
                publisher.publish(*late[0])
            if number == 20:
                publisher.publish("fleet/v1/acme/van-1/b", payload[:40] + b"?" + payload[41:])
                publisher.publish("fleet/v1/acme/van-1/b", self.batch("acme", "van-2", 1)[0])
        self.assertEqual(events, {})
        # While the database does not respond, ingest waits for up to 30 s.
        deadline, found = time.monotonic() + 90, {}
        while time.monotonic() < deadline:
            found = self.stored()
            if sum(map(len, found.values())) >= sum(map(len, self.expected.values())) and "are missing" in self.log("ingest"):
                break
            time.sleep(1)
        self.assertEqual(set(found), set(self.expected), self.log("ingest"))
        for series, samples in self.expected.items():
            self.assertEqual(sorted(found[series]), sorted(samples.items()), series)
        # Anything that ingest writes from now on would be a repeat.
        time.sleep(6)
        self.assertEqual({series: sorted(samples) for series, samples in self.stored().items()},
                         {series: sorted(samples.items()) for series, samples in self.expected.items()})
        missing = [line for line in self.log("ingest").splitlines() if line.endswith("are missing")]
        gaps = [line.split(" of session")[0] for line in missing]
        self.assertEqual(gaps, ["vehicle van-3 of acme: batches 35 to 35"], self.log("ingest"))
        self.assertEqual(self.log("ingest").count("damaged batch on 'fleet/v1/acme/van-1/b': batch: checksum mismatch"), 1)
        self.assertEqual(self.log("ingest").count("damaged batch on 'fleet/v1/acme/van-1/b': vehicle van-2 has used"), 1)
        self.assertEqual(len(os.listdir(self.folder / "damaged")), 2)
        self.replay()

    def replay(self):
        """Saved batches can be written again, and only those that are not damaged."""
        payload, samples = self.batch("acme", "van-1", self.ROUNDS + 1)
        self.expect("acme", "van-1", samples)
        saved = self.folder / "damaged" / (urllib.parse.quote("fleet/v1/acme/van-1/b", safe="") + "@1.vfb")
        saved.write_bytes(payload)
        files = sorted((self.folder / "damaged").iterdir())
        result = subprocess.run([*self.command("ingest"), "--replay", *files], capture_output=True, text=True)
        self.assertEqual((result.returncode, result.stderr.count("cannot replay")), (1, 1), result.stderr)
        # The batch of van-2 in the topic of van-1 is intact, and its values are those of van-2.
        self.assertEqual(subprocess.run([*self.command("ingest"), "--tenant", "acme", "--replay", saved]).returncode, 0)
        self.assertEqual({series: sorted(samples) for series, samples in self.stored().items()},
                         {series: sorted(samples.items()) for series, samples in self.expected.items()})

class Programs(unittest.TestCase):
    def test_lengths(self):
        for name, limit in (("decode.py", 100), ("ingest.py", 150)):
            lines = (FLEET / name).read_text().splitlines()
            self.assertLessEqual(len(lines), limit, name)
            self.assertLessEqual(max(map(len, lines)), 140, name)

if __name__ == "__main__":
    unittest.main(verbosity=2)
