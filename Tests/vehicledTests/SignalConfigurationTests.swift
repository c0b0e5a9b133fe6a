// Custom signals in the configuration: in a device's section and in signals.d, and the location of each mistake.

import ConfigurationFiles
import Foundation
import Protocols
import SignalImport
import Testing

@testable import Peers
@testable import vehicled

@Suite struct SignalConfigurationTests {
  private static let car = """
    [device.ev]
    kind = "obd"
    link = "tcp:h:1"
    [device.ev.signal.mine]
    request = "220101"
    value = "(A*256+B)/10"
    [device.van]
    kind = "obd"
    link = "tcp:h:2"

    """

  /// The problems of these files, without the folder's path.
  private func problems(_ files: [String: String], in main: String = car) throws -> [String] {
    let folder = try Folder()
    let path = try folder.write(main)
    for (name, text) in files { try folder.write(text, to: "signals.d/\(name).toml") }
    do throws(ConfigurationError) {
      _ = try Configuration.load(path, kinds: registry)
      return []
    } catch {
      return error.problems.map { $0.description.replacingOccurrences(of: folder.path + "/", with: "") }
    }
  }

  private func names(_ configuration: Configuration) -> [String: [String]] {
    Dictionary(uniqueKeysWithValues: configuration.devices.map { ($0.name, ($0.sections["signal"] ?? []).map(\.name)) })
  }

  @Test func `signals from signals.d apply to every device of the kind, or to the devices that they list`() throws {
    let folder = try Folder()
    let path = try folder.write(Self.car + "[device.torq]\nkind = \"longboard\"\nlink = \"tcp:h:3\"\n")
    try folder.write("[signal.all]\nrequest = \"2101\"\nvalue = \"A\"\n", to: "signals.d/a.toml")
    try folder.write("[signal.one]\nrequest = \"2101\"\nvalue = \"B\"\ndevices = [\"van\"]\n", to: "signals.d/b.toml")
    try folder.write("rubbish", to: "signals.d/c.toml~")
    let configuration = try Configuration.load(path, kinds: registry)
    #expect(names(configuration) == ["ev": ["mine", "all"], "van": ["all", "one"], "torq": []])
    let all = try #require(configuration.devices[1].sections["signal"]?.first)
    #expect(
      all.options == [
        "request": .string("2101"), "value": .string("A"), "period": .float(1), "type": .string("float"), "retained": .bool(false),
      ])
    try folder.write("[signal.all]\nrequest = \"2101\"\nvalue = \"C\"\n", to: "signals.d/a.toml")
    #expect(try Configuration.load(path, kinds: registry) != configuration, "a reload detects the change")
  }

  @Test func `different devices can have signals of the same name`() throws {
    let signal = "[signal.x]\nrequest = \"2101\"\nvalue = \"A\"\ndevices = "
    #expect(try problems(["a": signal + "[\"ev\"]", "b": signal + "[\"van\"]"]) == [])
  }

  @Test func `two signals with the same name are reported with both locations`() throws {
    let signal = "[signal.mine]\nrequest = \"2101\"\nvalue = \"A\"\n"
    #expect(
      try problems(["a": signal, "b": signal.replacingOccurrences(of: "mine", with: "x"), "c": signal]) == [
        "signals.d/a.toml:1:9: signal \"mine\" is already defined at v.toml:4:19; rename one of the two",
        "signals.d/c.toml:1:9: signal \"mine\" is already defined at v.toml:4:19; rename one of the two",
        "signals.d/c.toml:1:9: signal \"mine\" is already defined at signals.d/a.toml:1:9; rename one of the two",
      ])
    let twice = try problems(["a": signal + "# it again\n[ signal.mine ]\nvalue = \"B\"\n"])
    #expect(twice.count == 1 && twice[0].hasPrefix("signals.d/a.toml:5:") && twice[0].contains("line 1 already defines it"), "\(twice)")
  }

  private static let mistakes: [(String, String)] = [
    ("[signal.x]\nrequest = \"2101\"\nvalue = \"A + fooo\"", "3:14: value: \"fooo\" is neither a byte"),
    ("[signal.x]\nrequest = \"2101\"\nvalue = 'A/0'", "3:12: value: division by zero; write another divisor"),
    ("[signal.x]\nrequest = \"2101\"\nvalue = \"\\u0041 + foo\"", "3:9: value: character 5: \"foo\" is neither"),
    ("[signal.x]\nrequest = \"2101\"\nvalue = \"\"\"\nA +\"\"\"", "3:9: value: character 4: a value is missing"),
    ("[signal.x]\nrequest = \"2F01\"\nvalue = \"A\"", "2:11: request: service 2F is not a read request; use one of"),
    ("[signal.x]\nrequest = \"22010\"\nvalue = \"A\"", "2:11: request: not a request; write two hex digits"),
    ("[signal.x]\nvalue = \"A\"", "1:9: request is missing; add request = "),
    ("[signal.x]\nrequest = \"2101\"", "1:9: value is missing; add value = "),
    ("[signal.x]\nreqest = \"2101\"", "2:1: unknown key \"reqest\" for signal x; did you mean request?"),
    ("[signal.x]\nheader = 700", "2:10: header: 700 is an integer; put it in quotes"),
    ("[signal.x]\nrequest = \"2101\"\nvalue = \"A\"\nheader = \"7E\"", "4:10: header: not a CAN identifier; write 3 or 8"),
    ("[signal.x]\nperiod = 0", "2:10: period: 0 is out of range; use a number from 0.05 to 3600 s"),
    ("[signal.x]\ntype = \"flot\"", "2:8: type: unknown value \"flot\"; did you mean float?"),
    ("[signal.x]\nrequest = \"2101\"\nvalue = \"A\"\nmin = 5\nmax = 1", "5:7: max: 1 is less than min; swap the two"),
    ("[signal.X]\nrequest = \"2101\"\nvalue = \"A\"", "1:9: invalid signal name \"X\"; use at most 64 lower-case letters"),
    ("[signal.rpm]\nrequest = \"2101\"\nvalue = \"A\"", "1:9: rpm is a property of every device of kind obd; give the signal another"),
    (
      "[signal.x]\nrequest = \"2101\"\nvalue = \"A\"\ndevices = [\"vam\"]",
      "4:11: devices: unknown device \"vam\" of kind obd; did you mean van?"
    ),
    ("[signal.x]\nrequest = \"2101\"\nvalue = \"A\"\ndevices = \"ev\"", "4:11: devices: \"ev\" is a string; write devices = [\"ev\"]"),
    ("[signals.x]\nvalue = \"A\"", "1:2: unknown section \"signals\"; did you mean signal?"),
    ("[device.ev]\nrate = 1", "1:2: unknown section \"device\"; write [signal.NAME] or [can-signal.NAME] and its keys"),
    ("value = \"A\"", "1:1: key \"value\" is outside a section; write [signal.NAME] or [can-signal.NAME]"),
    ("signal = 5", "1:1: signal is a section, not a key; write [signal.NAME]"),
    ("[signal]\nx = 5", "2:1: x is a section, not a key; write [signal.NAME]"),
    ("[signal.x", "1:10: syntax error in table header"),
  ]

  @Test(arguments: mistakes) func `a mistake is reported once, with its line and column`(_ text: String, _ expected: String) throws {
    let found = try problems(["a": text])
    #expect(found.count == 1 && found[0].hasPrefix("signals.d/a.toml:" + expected), "\(found)")
  }

  @Test func `mistakes in several files and sections are reported with file, line and column`() throws {
    let main = Self.car + "[device.van.signal.x]\nrequest = \"04\"\nvalue = \"A ? 1\"\n[signal.y]\nvalue = \"A\"\n"
    let found = try problems(["a": "[signal.b]\nvalue = \"A\"", "b": "[signal.c]\nrequest = \"\"\nvalue = \"B\""], in: main)
    let places = found.map { $0.prefix { $0 != " " } }
    #expect(places == ["v.toml:13:2:", "signals.d/a.toml:1:9:", "signals.d/b.toml:2:11:", "v.toml:11:11:", "v.toml:12:15:"], "\(found)")
    #expect(found[0].contains("belongs in a file of signals.d/; move it there, or write [device.NAME.signal.NAME]"))
  }

  @Test func `signals that apply to no device are also checked`() throws {
    let lone = "[device.torq]\nkind = \"longboard\"\nlink = \"tcp:h:3\"\n"
    #expect(try problems(["a": "[signal.x]\nrequest = \"2101\"\nvalue = \"A\""], in: lone) == [])
    let found = try problems(["a": "[signal.x]\nrequest = \"2101\"\nvalue = \"A+\"\ndevices = [\"torq\"]"], in: lone)
    #expect(found.count == 2 && found[0].contains("or remove the key devices") && found[1].hasPrefix("signals.d/a.toml:3:12: "))
  }

  @Test func `allow-raw permits more services`() throws {
    let signal = ["a": "[signal.x]\nrequest = \"2F0102\"\nvalue = \"A\"\ndevices = [\"van\"]"]
    #expect(try problems(signal).first?.contains("set allow-raw = true for every device") == true)
    #expect(try problems(signal, in: Self.car + "allow-raw = true\n") == [])
  }

  @Test func `signals.d may be missing, but must not be a file`() throws {
    #expect(throws: Never.self) { try ConfigurationFile.all(in: "signals.d", beside: "v.toml", Configuration.examples) }
    let folder = try Folder()
    let path = try folder.write(Self.car)
    try folder.write("", to: "signals.d")
    #expect(throws: ConfigurationError.self) { _ = try Configuration.load(path, kinds: registry) }
  }

  @Test func `imported signals load`() throws {
    let set = """
      {"commands": [{"hdr": "7E4", "rax": "7EC", "cmd": {"22": "0101"}, "freq": 0.01, "filter": {"to": 2020}, "signals": [
        {"id": "A_1", "name": "\\"Quoted\\" \\\\ name", "fmt": {"bix": 5, "len": 14, "mul": 0.5, "add": -3, "min": -3, "max": 8e3, "unit": "volts"}},
        {"id": "A-1", "name": "Ärger\\n", "fmt": {"len": 8, "nullmin": 0, "max": 1e30, "min": -1e-9, "unit": "celsius"}},
        {"id": "RPM", "name": "x", "fmt": {"len": 3, "map": {"0": "off", "1": {"description": "on", "value": "ON"}}}},
        {"id": "L", "name": "x", "fmt": {"len": 1, "unit": "noyes", "max": 1}}
      ]}, {"hdr": "DA10", "cmd": {"21": "01"}, "freq": 99999, "signals": [{"id": "Z", "name": "", "fmt": {"len": 32, "sign": true, "max": 1, "unit": "scalar"}}]}]}
      """
    let table =
      "\u{FEFF}Name,ShortName,ModeAndPID,Equation,Min Value,Max Value,Units,Header\r\n\"1 \"\"a\"\", b\",a,0x220101,((v<8)+u)/10,-1,1,C,Auto\r\n"
    let folder = try Folder()
    let path = try folder.write(Self.car)
    for (index, text) in [set, table].enumerated() {
      let found = try ImportedSignals(Array(text.utf8))
      #expect(found.count == (index == 0 ? 5 : 1) && found.skipped.isEmpty, "\(found.skipped)")
      for device in [nil, "van"] {
        try folder.write(found.file(from: "some file.json", device: device), to: "signals.d/a.toml")
        let configuration = try Configuration.load(path, kinds: registry)
        #expect(configuration.devices[1].sections["signal"]?.count == found.count)
        #expect(configuration.devices[0].sections["signal"]?.count == (device == nil ? found.count + 1 : 1))
      }
    }
  }

  @Test func `imported signals of a DBC file load, for one device or all of kind can`() throws {
    let found = try ImportedCANSignals(Array(BusTraffic.demoDBC.utf8))
    let folder = try Folder()
    let bus = "[device.bus]\nkind = \"can\"\nlink = \"slcan:tcp:h:4\"\n[device.other]\nkind = \"can\"\nlink = \"can:can0\"\n"
    let path = try folder.write(Self.car + bus)
    // Signals of both kinds can be in the same folder, and in the same file.
    try folder.write(
      "[signal.all]\nrequest = \"2101\"\nvalue = \"A\"\n[can-signal.x]\ncan-id = \"3E9\"\nbits = \"0|8@1+\"\n", to: "signals.d/b.toml")
    for device in [nil, "other"] {
      try folder.write(found.file(from: "a.dbc", device: device), to: "signals.d/a.toml")
      let configuration = try Configuration.load(path, kinds: registry)
      let counts = configuration.devices.map { $0.sections["can-signal"]?.count ?? 0 }
      #expect(counts == [0, 0, device == nil ? found.count + 1 : 1, found.count + 1])
      #expect(configuration.devices[0].sections["signal"]?.count == 2)
    }
  }

  @Test func `a mistake in a can-signal is reported with its line and column`() throws {
    let text = "[can-signal.x]\ncan-id = \"3E9\"\nbits = \"60|8@1+\"\n"
    let bus = Self.car + "[device.bus]\nkind = \"can\"\nlink = \"slcan:tcp:h:4\"\n"
    #expect(
      try problems(["a": text], in: bus).map { $0.prefix(43) } == ["signals.d/a.toml:3:8: bits: the bits are not"].map { $0.prefix(43) })
    let rate = try problems([:], in: bus + "bit-rate = 300000\n")
    #expect(rate.count == 1 && rate[0].contains("a slcan adapter has no bit rate 300000; use one of 10000, 20000"), "\(rate)")
  }

  @Test func `the example sets nothing, and loads when uncommented`() throws {
    let text = try String(contentsOfFile: tree("etc/signals.d/example.toml"), encoding: .utf8)
    #expect(try problems(["example": text]) == [])
    let lines = text.split(separator: "\n").map { line in
      guard line.hasPrefix("#"), let next = line.dropFirst().first, next == "[" || next.isLowercase else { return String(line) }
      return String(line.dropFirst())
    }
    let on = lines.joined(separator: "\n")
    #expect(try problems(["example": on]) == [])
    let section = try #require(Kind.obd.sections.first { $0.name == "signal" })
    for option in section.options.map(\.name) + ["devices"] + (Kind.can.sections.first?.options.map(\.name) ?? []) {
      #expect(lines.contains { $0.hasPrefix("\(option) = ") }, "\(option)")
    }
  }

  @Test func `random bytes in a signals.d file do not trap the loader`() throws {
    var random = SeededRandom(seed: 5)
    let seed = Array("[signal.x]\nrequest = \"220101\"\nvalue = \"signed(A*256+B,16)/10\"\nmin = -5\nmax = 1.5\ndevices = [\"ev\"]\n".utf8)
    var read = 0
    for _ in 0..<2000 {
      var bytes = seed
      for _ in 0...Int.random(in: 0..<5, using: &random) { bytes.mutate(using: &random) }
      guard let table = try? TOML.parse(bytes, file: "f") else { continue }
      read += 1
      var check = ConfigurationCheck(kinds: registry, isComplete: true)
      check.shared["signals.d"] = [table]
      _ = check.configuration(try TOML.parse(Array(Self.car.utf8), file: "v"))
      #expect(check.problems.allSatisfy { $0.location.line >= 1 && $0.location.column >= 1 && $0.text.utf8.allSatisfy { $0 >= 0x20 } })
    }
    #expect(read > 100)
  }

  @Test func `devices on the same CAN adapter, or with different bit rates on one interface, are reported`() throws {
    func device(_ name: String, _ link: String, _ rest: String = "", kind: String = "can") -> String {
      "[device.\(name)]\nkind = \"\(kind)\"\nlink = \"\(link)\"\n\(rest)\n"
    }
    let both = "devices a and b have the same link; give each device its own, or use a can: link, which devices can share"
    #expect(
      try problems([:], in: device("a", "slcan:tcp:h:1") + device("b", "slcan:tcp:H:1", kind: "obd")) == ["v.toml:7:8: link: \(both)"])
    let serial = device("a", "slcan:serial:/dev/ttyACM0") + device("b", "slcan:serial:/dev/ttyACM0?baud=9600")
    #expect(try problems([:], in: serial) == ["v.toml:7:8: link: \(both)"])
    #expect(try problems([:], in: device("a", "slcan:tcp:h:1") + device("b", "slcan:tcp:h:2")) == [])
    // The same address without slcan, and written in other ways.
    let plain = try problems([:], in: device("a", "slcan:tcp:h:1") + device("b", "tcp:h:1", kind: "obd"))
    #expect(plain == ["v.toml:7:8: link: devices a and b have the same link; give each device its own"])
    #expect(try problems([:], in: device("a", "tcp:h.:1", kind: "obd") + device("b", "slcan:tcp:h:1")) == ["v.toml:7:8: link: \(both)"])
    for host in ["127.0.0.1", "[::1]", "LocalHost", "[0:0::1]", "[::ffff:127.0.0.1]"] {
      let found = try problems([:], in: device("a", "slcan:tcp:localhost:1") + device("b", "slcan:tcp:\(host):1"))
      #expect(found == ["v.toml:7:8: link: \(both)"], "\(host): \(found)")
    }
    #expect(try problems([:], in: device("a", "slcan:tcp:127.0.0.1:1") + device("b", "slcan:tcp:127.0.0.2:1")) == [])
    #expect(try problems([:], in: device("a", "tcp:h:1", kind: "obd") + device("b", "tcp:h:1", kind: "obd")) == [])
    let (slow, fast) = ("bit-rate = 250000", "bit-rate = 500000")
    #expect(
      try problems([:], in: device("a", "can:can0", slow) + device("b", "can:can0", fast, kind: "obd")) == [
        "v.toml:8:12: bit-rate: devices a and b share can:can0, with 250000 and 500000; set the same value in both"
      ])
    #expect(try problems([:], in: device("a", "can:can0", slow) + device("b", "can:can0", slow) + device("c", "can:can0")) == [])
    #expect(try problems([:], in: device("a", "can:can0", slow) + device("b", "can:can1", fast)) == [])
    let tesla = "vehicle = \"tesla-model-3\""
    #expect(
      try problems([:], in: device("a", "can:can0", slow) + device("b", "can:can0", tesla)) == [
        "v.toml:8:11: bit-rate: devices a and b share can:can0, with 250000 and 500000; set the same value in both"
      ])
    #expect(try problems([:], in: device("a", "can:can0", tesla) + device("b", "can:can0", fast)) == [])
    #expect(try problems([:], in: device("a", "can:can0", "\(tesla)\n\(slow)") + device("b", "can:can0", slow)) == [])
  }
}
