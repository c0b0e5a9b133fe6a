"""Generates Swift tables from the data files in the folders Vehicles of Sources/Protocols/OBD and CANBus: generate.py FOLDER FILE...

A TOML file becomes rows (DataRow) of a manufacturer's data records, a vehicle profile, the PIDs of SAE J1979, or the signals of a vehicle on
a CAN bus; a text file becomes a string. hyundai.toml, nissan-leaf.toml, sae-j1979.toml and tesla-model-3.toml explain their keys. An invalid
entry ends the build with the name of the file and of the entry.
"""

import fnmatch
import json
import pathlib
import re
import sys
import tomllib

SIGNAL_KEYS = {
    "value", "type", "decimals", "labels", "unit", "min", "max", "length", "valid", "retained", "help",  # keys of signals.d
    "group", "rank",  # set by [groups] and [ranks] of the file
    "request", "period", "families", "except", "each", "padding", "swift", "scaled-by",
}
PROFILE_KEYS = {"name", "title", "vins", "bits", "standard", "replaces"}
CAN_PROFILE_KEYS = {"name", "title", "bit-rate"}
CAN_SIGNAL_KEYS = {  # those of signals.d
    "can-id", "bits", "multiplier", "when", "encoding", "factor", "offset", "decimals", "type", "labels", "unit", "min", "max", "cycle-time",
    "retained", "group", "rank", "help",
}
RECORD_KEYS = {"header", "reply", "extended-address", "tester-address", "request", "period", "length", "valid", "signal"}


class InvalidEntry(Exception):
    pass


def byte_position(name):
    """The position of a byte by its name: A is 0, AA is 26."""
    position = 0
    for letter in name:
        position = position * 26 + ord(letter) - 64
    return position - 1


def byte_name(position):
    return chr(65 + position) if position < 26 else chr(64 + position // 26) + chr(65 + position % 26)


def elements(entry):
    """The elements of a list, or of a string such as "6...16", "J...P AN...AQ" or "0x02...0x04"."""
    if isinstance(entry, list):
        return entry
    found = []
    for part in entry.split():
        first, last = (part.split("...") * 2)[:2]
        if first.startswith("0x"):
            found += [f"{n:02X}" for n in range(int(first, 16), int(last, 16) + 1)]
        elif first.isdigit():
            found += [str(n) for n in range(int(first), int(last) + 1)]
        else:
            found += [byte_name(n) for n in range(byte_position(first), byte_position(last) + 1)]
    return found


def substituted(entry, values):
    """The entry with $NAME replaced in all its strings, keys included."""
    if isinstance(entry, str):
        return re.sub(r"\$(\w+)", lambda match: values.get(match[1], match[0]), entry)
    if isinstance(entry, list):
        return [substituted(element, values) for element in entry]
    if isinstance(entry, dict):
        return {substituted(key, values): substituted(value, values) for key, value in entry.items()}
    return entry


def expanded(entry):
    """The copies of an entry, one for each element of its lists. With `padding`, a value is absent if its byte and all
    later bytes of the list are 0.
    """
    lists = {name: elements(value) for name, value in entry.get("each", {}).items()}
    if len({len(values) for values in lists.values()}) > 1:
        raise InvalidEntry("the lists of each have different lengths")
    rest = {key: value for key, value in entry.items() if key != "each"}
    for index in range(len(next(iter(lists.values()), [0]))):
        copy = substituted(rest, {name: values[index] for name, values in lists.items()})
        if copy.pop("padding", False):
            copy["value"] = " || ".join(lists["byte"][index:]) + f" ? {copy['value']} : unreported"
        yield copy


def signals(table):
    """The signals with their names. The copies of adjacent signals with the same lists alternate."""
    entries = [{"name": name, **entry} for name, entry in table.items()]
    while entries:
        count = 1
        while count < len(entries) and "each" in entries[0] and entries[count].get("each") == entries[0]["each"]:
            count += 1
        for copies in zip(*(list(expanded(entry)) for entry in entries[:count])):
            yield from copies
        entries = entries[count:]


def arranged(data, found):
    """The signals with group and rank: those of the first pattern in [groups] and [ranks] that matches the name."""
    for signal in found:
        for key, table in (("group", "groups"), ("rank", "ranks")):
            matches = [item for item, patterns in data[table].items() if any(fnmatch.fnmatchcase(signal["name"], p) for p in patterns)]
            if not matches and key == "group":
                raise InvalidEntry(f"{signal['name']}: no pattern of [groups] matches the name")
            if matches:
                signal.setdefault(key, matches[0])
    return found


def text(value):
    return json.dumps(value, ensure_ascii=False)


def row(signal):
    """The Swift literal of a DataRow. It becomes a constant of its own: the type checker is slow on large array literals."""
    name = signal["name"]
    if unknown := set(signal) - SIGNAL_KEYS - {"name"}:
        raise InvalidEntry(f"{name}: unknown keys {', '.join(sorted(unknown))}")
    for key in ("help",) if "swift" in signal else ("value", "help"):
        if key not in signal:
            raise InvalidEntry(f"{name}: {key} is missing")
    if "swift" in signal:
        source = f".function({signal['swift']})"
    elif "scaled-by" in signal:
        source = f".scaled({text(signal['value'])}, by: .{signal['scaled-by']})"
    else:
        source = f".formula({text(signal['value'])})"
    parts = [text(name), f".{signal.get('type', 'float')}", source]
    if "unit" in signal:
        parts.append(f"unit: {text(signal['unit'])}")
    if "min" in signal:
        parts.append(f"range: {signal['min']}...{signal['max']}")
    if "decimals" in signal:
        parts.append(f"decimals: {signal['decimals']}")
    if "labels" in signal:
        labels = [label.split(": ", 1) for label in signal["labels"]]
        parts.append("labels: [" + ", ".join(f"{int(key)}: {text(label)}" for key, label in labels) + "]")
    if "length" in signal:
        parts.append(f"length: {signal['length']}")
    if "valid" in signal:
        parts.append(f"valid: {text(signal['valid'])}")
    if signal.get("retained"):
        parts.append("retained: true")
    parts.append(f"group: .{signal['group']}")
    if "rank" in signal:
        parts.append(f"rank: .{signal['rank']}")
    return f"DataRow({', '.join(parts)}, help: {text(signal['help'])})"


def bytes_of(request):
    return "[" + ", ".join(f"0x{byte:02X}" for byte in bytes.fromhex(request)) + "]"


def manufacturer(data):
    """The data records of a manufacturer, and the rows of the record that is polled at the device's rate."""
    families = data["families"]
    output, calls = [], []
    for record in [copy for entry in data["record"] for copy in expanded(entry)]:
        whole = {key: record[key] for key in ("length", "valid") if key in record}
        found = arranged(data, [{**whole, **signal} for signal in signals(record["signal"])])
        lines = [f"    let row{index} = {row(signal)}" for index, signal in enumerate(found)]
        if "table" in record:
            entries = [
                f"BMSRecord.Entry(row{index}" + (f", absentIn: .{families[signal['except']]})" if "except" in signal else ")")
                for index, signal in enumerate(found)
            ]
            output += [f"extension {record['table']} {{", f"  static let entries: [{record['table']}.Entry] = {{", *lines]
            output += [f"    return [{', '.join(entries)}]", "  }()", "}", ""]
            continue
        function = f"{data['table']}{len(calls)}"
        records = []
        for family, request in record["requests"].items():
            rows = [f"row{index}" for index, signal in enumerate(found) if family in signal.get("families", [family])]
            records.append(
                f"      ManufacturerRecord(0x{record['header']}, {bytes_of(request)}, every: {record['period']}, .{families[family]}, "
                f"[{', '.join(rows)}]),")
        calls.append(f"{function}()")
        output += ["extension ManufacturerRecord {", f"  private static func {function}() -> [ManufacturerRecord] {{", *lines]
        output += ["    return [", *records, "    ]", "  }", "}", ""]
    output += ["extension ManufacturerRecord {", f"  static let {data['table']}: [ManufacturerRecord] = {{"]
    output += ["    var records: [ManufacturerRecord] = []", *(f"    records += {call}" for call in calls), "    return records", "  }()", "}"]
    return output


def check_keys(name, entry, required, known):
    if unknown := set(entry) - known:
        raise InvalidEntry(f"{name}: unknown keys {', '.join(sorted(unknown))}")
    for key in required:
        if key not in entry:
            raise InvalidEntry(f"{name}: {key} is missing")


def identifier(digits):
    if not re.fullmatch("[0-7][0-9A-F]{2}|[01][0-9A-F]{7}", digits):
        raise InvalidEntry(f"{digits} is not a CAN identifier of 3 or 8 hex digits")
    return f"CANIdentifier(number: 0x{digits}, is29Bit: {text(len(digits) == 8)})"


def address_bytes(record):
    """The argument with the address bytes of the frames, if they have any."""
    bytes = [f"{name}: 0x{record[key]}" for key, name in (("extended-address", "target"), ("tester-address", "tester")) if key in record]
    return f".extended({', '.join(bytes)}), " if bytes else ""


def constant(name):
    """The name of the Swift constant of a profile."""
    return re.sub("-(.)", lambda match: match[1].upper(), name)


def profile(data):
    """A vehicle profile. Its signals are those of its records, one request each."""
    head = data["profile"]
    check_keys("[profile]", head, ("name", "title"), PROFILE_KEYS)
    for vin in head.get("vins", []):
        if not re.fullmatch("[0-9A-HJ-NPR-Z?]{3,17}", vin):
            raise InvalidEntry(f"{vin} is not the beginning of a VIN, with ? for any character")
    lines, names = [], set()
    for record in [copy for entry in data["record"] for copy in expanded(entry)]:
        request = record.get("request", "[[record]]")
        check_keys(request, record, ("header", "reply", "request", "period", "signal"), RECORD_KEYS)
        if not re.fullmatch("21[0-9A-F]{2}|22[0-9A-F]{4}", request):
            raise InvalidEntry(f"{request} is not a request of service 21 or 22")
        whole = {key: record[key] for key in ("length", "valid") if key in record}
        for signal in arranged(data, [{**whole, **signal} for signal in signals(record["signal"])]):
            if signal["name"] in names:
                raise InvalidEntry(f"{signal['name']}: two records have this signal")
            names.add(signal["name"])
            lines += [
                f"    signals.append(CustomSignal({row(signal)}, .builtIn({text(request)}), header: {identifier(record['header'])}, "
                f"reply: {identifier(record['reply'])}, {address_bytes(record)}period: {round(record['period'] * 1000)} * .millisecond))"]
    name = constant(head["name"])
    output = ["extension VehicleProfile {", f"  private static func {name}Signals() -> [CustomSignal] {{"]
    output += ["    var signals: [CustomSignal] = []", *lines, "    return signals", "  }", ""]
    options = [f"vins: {text(head.get('vins', []))}", f"bits: {head.get('bits', 'nil')}", f"hasStandardPIDs: {text(head.get('standard', True))}"]
    output += [f"  static let {name} = VehicleProfile("]
    output += [f"    {text(head['name'])}, {text(head['title'])}, {', '.join(options)}, replaces: {text(head.get('replaces', []))},"]
    return output + [f"    signals: {name}Signals())", "}"]


def option(key, value):
    """The Swift literal of the value of a key, with the type that the configuration parser gives it."""
    if isinstance(value, list):
        return ".list([" + ", ".join(map(text, value)) + "])"
    if isinstance(value, (str, bool)):
        return f".{'string' if isinstance(value, str) else 'bool'}({text(value)})"
    return f".{'int' if key in ('rank', 'decimals') else 'float'}({value})"


def can_profile(data):
    """The signals of a vehicle on a CAN bus, as sections of the configuration, which the daemon parses like those of signals.d."""
    head = data["profile"]
    check_keys("[profile]", head, ("name", "title", "bit-rate"), CAN_PROFILE_KEYS)
    lines = []
    for name, signal in data["can-signal"].items():
        check_keys(name, signal, ("can-id", "bits", "group", "help"), CAN_SIGNAL_KEYS)
        options = ", ".join(f"{text(key)}: {option(key, value)}" for key, value in signal.items())
        lines.append(f"    sections.append(Setup.Subsection({text(name)}, [{options}]))")
    name = constant(head["name"])
    output = ["extension CANProfile {", f"  private static func {name}Sections() -> [Setup.Subsection] {{"]
    output += ["    var sections: [Setup.Subsection] = []", *lines, "    return sections", "  }", ""]
    output += [f"  package static let {name} = CANProfile("]
    return output + [f"    {text(head['name'])}, {text(head['title'])}, bitRate: {head['bit-rate']}, sections: {name}Sections())", "}"]


def standard(data):
    """The PIDs of SAE J1979, at most sixteen per function, because the compiler is slow on large functions."""
    parameters = {pid: {"length": length} for pid, length in data["lengths"].items()}
    for signal in arranged(data, list(signals(data["signal"]))):
        request, length, period = signal.pop("request"), signal.pop("length"), signal.pop("period", 5)
        if not re.fullmatch("01[0-9A-F]{2}", request):
            raise InvalidEntry(f"{signal['name']}: {request} is not a PID of service 01")
        parameter = parameters.setdefault(request[2:], {"length": length, "period": period})
        if (parameter["length"], parameter["period"]) != (length, period):
            raise InvalidEntry(f"{signal['name']}: another signal of {request} has another length or period")
        parameter.setdefault("rows", []).append(row(signal))
    groups = {}
    for pid, parameter in sorted(parameters.items()):
        period = round(parameter.get("period", 5) * 1000)
        lines = [f"    let rows{pid}: [DataRow] = [", *(f"      {item}," for item in parameter.get("rows", [])), "    ]"]
        lines.append(f"    found.append(StandardParameter(0x{pid}, {parameter['length']}, every: {period} * .millisecond, rows{pid}))")
        groups.setdefault(pid[0], []).extend(lines)
    output = [f"extension {data['table']} {{"]
    for group, lines in groups.items():
        output += [f"  private static func group{group}(_ found: inout [{data['table']}]) {{", *lines, "  }", ""]
    output += [f"  static let table: [{data['table']}] = {{", f"    var found: [{data['table']}] = []"]
    return output + [*(f"    group{group}(&found)" for group in groups), "    return found", "  }()", "}"]


def trouble_codes(content):
    """The lines as one string, which the daemon splits on first use."""
    lines = [line for line in content.splitlines() if line and not line.startswith("#")]
    for line in lines:
        if not re.fullmatch(r"[PCBU][0-3][0-9A-F]{3} (-|[a-z]\d) \S.*", line):
            raise InvalidEntry(f"{line}: not a code, a pattern and a subject")
    return ["extension TroubleCode {", '  static let table = #"""', *(f"    {line}" for line in lines), '    """#', "}"]


def main(folder, files):
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for file in map(pathlib.Path, files):
        try:
            content = file.read_text(encoding="utf-8")
            if file.suffix == ".txt":
                lines = trouble_codes(content)
            else:
                data = tomllib.loads(content)
                if "can-signal" in data:
                    lines = can_profile(data)
                elif "profile" in data:
                    shown = tomllib.loads((file.parent / "hyundai.toml").read_text(encoding="utf-8"))
                    lines = profile({"groups": shown["groups"], "ranks": shown["ranks"], **data})
                else:
                    lines = manufacturer(data) if "record" in data else standard(data)
        except (InvalidEntry, KeyError, ValueError) as error:
            sys.exit(f"{file}: error: {error}; correct the entry")
        output = f"// Generated from {file.name}: edit that file instead.\n\n" + "\n".join(lines) + "\n"
        (folder / f"{file.stem}.swift").write_text(output, encoding="utf-8")


main(sys.argv[1], sys.argv[2:])
