#!/usr/bin/env python3
"""Decodes fleet batches (docs/fleet.md, docs/history.md). decode.py FILE... prints samples as lines of JSON; - is standard input."""
import decimal, functools, itertools, json, struct, sys, zlib
MAX_PAYLOAD, MAX_HEADER, MAX_SIZE, MAX_ROWS, MAX_COLUMNS, MAX_SAMPLES = 10 << 20, 1 << 20, 8 << 20, 1 << 20, 1 << 14, 1 << 19
KEYS = {"vehicle": str, "device": str, "session": str, "sequence": int, "synchronised": bool, "series": list}
TYPES = ["bool", "int", "float", "float", "string", "list", "list"]  # of the values in each encoding
CRC_TABLE = [functools.reduce(lambda entry, _: entry >> 1 ^ (entry & 1) * 0x82F63B78, range(8), byte) for byte in range(256)]
def crc32c(data):
    crc = functools.reduce(lambda crc, byte: crc >> 8 ^ CRC_TABLE[(crc ^ byte) & 0xFF], data, 0xFFFFFFFF)
    return (crc ^ 0xFFFFFFFF).to_bytes(4, "little")
def check(condition, problem):
    if not condition: raise ValueError(problem)
def signed(numbers): return [number >> 1 ^ -(number & 1) for number in numbers]  # zigzag
def sums(numbers): return [(total + 2**63) % 2**64 - 2**63 for total in itertools.accumulate(numbers)]  # 64 bits, wrapping around
def ascending(skips): return [index + skipped for index, skipped in enumerate(itertools.accumulate(skips))]
def inflate(data, size, crc=None):
    result = data if len(data) == size else zlib.decompressobj(-15).decompress(data, size + 1)
    check(len(result) == size and crc in (None, crc32c(data)), "a section is damaged")
    return result
class Reader:  # of one part of a batch
    def __init__(self, part, data): self.part, self.data, self.position = part, data, 0
    def bytes(self, count):
        check(count <= len(self.data) - self.position, "truncated")
        self.position += count
        return self.data[self.position - count:self.position]
    def number(self, limit=2**64 - 1):
        byte, self.position = self.data[self.position], self.position + 1
        number = byte if byte < 128 else byte - 128 + 128 * self.number()
        check(number <= limit, "a number is out of range")
        return number
    def numbers(self, count): return [self.number() for _ in range(count)]
    def strings(self): return [str(self.bytes(self.number()), "utf-8") for _ in range(self.number())]
def read_block(batch, position):  # Returns the start, the end, the number of rows, the row set of each series, and readers.
    magic, head = batch.bytes(4), Reader("head of the block", batch.bytes(batch.number()))
    check(magic == b"VSB1" and crc32c(batch.data[position:batch.position]) == batch.bytes(4), "the head of the block is damaged")
    layout, (start,), duration = head.bytes(1)[0], signed(head.numbers(1)), head.number()
    row_count, set_count, column_count = head.number(MAX_ROWS), head.number(MAX_COLUMNS), head.number(MAX_COLUMNS)
    columns = [(head.number(), head.number(set_count - 1)) for _ in range(column_count)]
    columns = dict(zip(itertools.accumulate(step for step, _ in columns), (row_set for _, row_set in columns)))
    names = ["times", "reasons", *["row set"] * set_count, *(f"column of series {series}" for series in columns)]
    sections = [(head.number(MAX_SIZE), head.number(), head.bytes(4)) for _ in (names if layout == 1 else ["content"])]
    check(layout < 2 and len(columns) == column_count and sum(size for size, _, _ in sections) <= MAX_SIZE, "invalid, or too large")
    parts = [inflate(batch.bytes(stored), size, crc) for size, stored, crc in sections]
    content = Reader("content", parts[0] if layout == 0 else b"")
    if layout == 0: parts = [content.bytes(size) for size in content.numbers(len(names))]
    return start, start + duration, row_count, columns, [*map(Reader, names, parts), batch, head, content]
def read_values(reader, encoding, count):
    decimals, table = reader.number(9) if encoding in (2, 5) else 0, reader.strings() if encoding in (4, 6) else []
    if encoding == 0: return [byte != 0 for byte in reader.bytes(count)]
    if encoding in (1, 2): return [total if encoding == 1 else float(total) / 10**decimals for total in sums(signed(reader.numbers(count)))]
    if encoding == 3:
        patterns = [int.from_bytes(row, "big") for row in zip(*[reader.bytes(count) for _ in range(8)])]
        return [struct.unpack(">d", struct.pack(">Q", pattern))[0] for pattern in itertools.accumulate(patterns, int.__xor__)]
    if encoding == 4: return [table[index] for index in reader.numbers(count)]
    if encoding == 6: return [[table[index] for index in reader.numbers(reader.number())] for _ in range(count)]
    size = reader.number(MAX_SAMPLES // max(count, 1))
    changes = signed(reader.numbers(count * size))
    numbers = [decimal.Decimal(number).scaleb(-decimals) for index in range(size) for number in sums(changes[index::size])]
    return [[f"{number.normalize():f}" for number in numbers[index::count]] for index in range(count)]

def decode(payload: bytes) -> dict:
    reader = batch = Reader("batch", payload)
    try:
        check(len(payload) <= MAX_PAYLOAD and batch.bytes(4) == b"VFB1" and batch.bytes(4) == crc32c(payload[8:]), "checksum mismatch")
        size, header, sets, samples = batch.number(MAX_HEADER), batch.bytes(batch.number()), [[]], []
        start, end, row_count, columns, readers = read_block(batch, batch.position)
        header = json.loads(str((reader := Reader("header", inflate(header, size))).data, "utf-8"))
        series = {id: (name, kind, unit) for id, name, kind, unit in header["series"] if name and str.isprintable(name + (unit or ""))}
        check(all(type(header[key]) is kind and str(header[key]).isprintable() for key, kind in KEYS.items()), "a key is invalid")
        check(all(header[key] != "" for key in KEYS) and 0 < header["sequence"] < 2**63 and len(series) == len(header["series"]), "invalid")
        reader = readers[0]
        zeros, width = divmod(reader.bytes(1)[0], 16)
        changes = signed(int.from_bytes(row, "little") for row in zip(*[reader.bytes(row_count) for _ in range(width)]))
        times = sums([start, *(change * 10**zeros for change in (*changes[:1], *sums(changes[1:])))])[1:]
        check(0 < width < 9 and zeros < 10 and len(times) == row_count and times == sorted(set(times)), "the rows are not in order")
        reasons = (reader := readers[1]).strings()
        for reader in readers[2:-3 - len(columns)]:  # A row set without a base adds its rows to the empty set.
            count, base = reader.number(MAX_SAMPLES - sum(map(len, sets))), reader.number()
            added = ascending(reader.numbers(reader.number() if base else count))
            removed = set(ascending(reader.numbers(reader.number() if base else 0)))
            sets.append(sorted(added + [row for index, row in enumerate(sets[base]) if index not in removed]))
            check(count == len(set(sets[-1])) == len(sets[base]) + len(added) - len(removed), "the base does not match")
        for reader, (number, index) in zip(readers[-3 - len(columns):], columns.items()):
            rows, (name, kind, unit), encoding = sets[index + 1], series[number], reader.bytes(1)[0]
            absences = [(reader.number(), reasons[reader.number()]) for _ in range(reader.number(len(rows)))]
            absent = dict(zip(ascending(skipped for skipped, _ in absences), (reason for _, reason in absences)))
            values = iter(read_values(reader, encoding, len(rows) - len(absent)))
            check(max(absent, default=-1) < len(rows) <= MAX_SAMPLES - len(samples), "an absence is out of range, or too many samples")
            check(kind == TYPES[encoding] or len(rows) == len(absent), "values of a wrong type")
            contents = [(row, None, absent[index]) if index in absent else (row, next(values), None) for index, row in enumerate(rows)]
            fields = {"property": name, "type": kind, "unit": unit}
            samples += [{"time": times[row], **fields, "value": value, "reason": reason} for row, value, reason in contents]
        for reader in readers: check(reader.position == len(reader.data), "trailing data")
    except (LookupError, RecursionError, TypeError, ValueError, zlib.error) as error: raise ValueError(f"{reader.part}: {error}") from None
    return {**{key: header[key] for key in KEYS}, "start": start, "end": end, "samples": sorted(samples, key=lambda sample: sample["time"])}
if __name__ == "__main__":
    for file in sys.argv[1:]:
        try: batch = decode(open(0 if file == "-" else file, "rb").read(MAX_PAYLOAD + 1))
        except (OSError, ValueError) as error: sys.exit(f"cannot decode {file}: {error}")
        for sample in batch["samples"]: print(json.dumps({"vehicle": batch["vehicle"], "device": batch["device"], **sample}))
