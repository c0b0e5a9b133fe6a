// OBDb's signal sets and Torque's tables: the imported signals, and the reasons for skipped ones.

import Testing

@testable import Peers
@testable import Protocols
@testable import SignalImport

@Suite struct SignalImportTests {
  private func read(_ text: String) throws -> ImportedSignals { try ImportedSignals(Array(text.utf8)) }

  /// One field of a signal set.
  private func set(_ format: String, command: String = #""hdr": "7E4", "cmd": {"22": "0101"}, "freq": 1"#) -> String {
    #"{"commands": [{\#(command), "signals": [{"id": "X_Y", "name": "The name", "fmt": {\#(format)}}]}]}"#
  }

  private func field(_ format: String) throws -> ImportedSignal? { try read(set(format)).signals.first }

  private static let fields: [(String, String)] = [
    (#""len": 8, "max": 255, "unit": "scalar""#, "A"),
    (#""bix": 32, "len": 8, "max": 100, "div": 2, "unit": "percent""#, "E/2"),
    (#""bix": 424, "len": 16, "sign": true, "max": 20000, "unit": "rpm""#, "signed(BB*256 + BC, 16)"),
    (#""bix": 8, "len": 8, "sign": true, "max": 100, "unit": "celsius""#, "signed(B)"),
    (#""bix": 8, "len": 16, "mul": 0.5, "add": -3, "max": 9, "unit": "volts""#, "(B*256 + C)*0.5 - 3"),
    (#""bix": 32, "len": 16, "blsb": true, "sign": true, "div": 64, "max": 9, "unit": "kilometersPerHour""#, "signed(F*256 + E, 16)/64"),
    (#""bix": 35, "len": 1, "max": 1, "unit": "offon""#, "{E:4}"),
    (#""bix": 4, "len": 4, "max": 15, "unit": "scalar""#, "(A & 15)"),
    (#""len": 4, "max": 15, "unit": "scalar""#, "(A >> 4)"),
    (#""bix": 2, "len": 3, "max": 15, "unit": "scalar""#, "((A >> 3) & 7)"),
    (#""bix": 5, "len": 14, "max": 15, "unit": "scalar""#, "(A & 7)*2048 + B*8 + (C >> 5)"),
    (#""bix": 32, "len": 8, "div": 5, "max": 51, "nullmin": 0, "unit": "psi""#, "E/5 > 0 ? E/5 : absent"),
    (#""bix": 32, "len": 8, "max": 51, "nullmin": 0, "nullmax": 255, "unit": "psi""#, "E > 0 && E < 255 ? E : absent"),
  ]

  @Test(arguments: fields) func `a bit field becomes a formula`(_ format: String, _ formula: String) throws {
    let signal = try #require(try field(format))
    #expect(signal.value == formula)
    #expect(throws: Never.self) { _ = try Expression(signal.value) }
  }

  @Test func `the formula of a bit field gives its value at any position`() throws {
    var random = SeededRandom(seed: 3)
    for _ in 0..<2000 {
      let (start, length) = (Int.random(in: 0..<40, using: &random), Int.random(in: 1...53, using: &random))
      let signed = length > 1 && Bool.random(using: &random)
      let signal = try #require(try field(#""bix": \#(start), "len": \#(length), "sign": \#(signed), "max": 9e15, "unit": "scalar""#))
      let data = (0..<12).map { _ in UInt8.random(in: 0...255, using: &random) }
      var expected = 0
      for bit in start..<start + length { expected = expected << 1 | Int(data[bit / 8] >> (7 - bit % 8) & 1) }
      if signed, expected >= 1 << (length - 1) { expected -= 1 << length }
      let expression = try Expression(signal.value)
      let outcome = data.withUnsafeBufferPointer { expression.evaluate($0) }
      guard length < 53 || signed else { continue }  // a Double is exact up to 2^53
      #expect(outcome == .number(Double(expected)), "\(signal.value)")
    }
  }

  @Test func `the keys of a command apply to its signals`() throws {
    let command = #""hdr": "DA10", "rax": "11", "cmd": {"21": "05"}, "freq": 0.01, "filter": {"from": 2019, "to": 2021, "years": [2024]}"#
    let signal = try #require(try read(set(#""len": 8, "min": -5, "max": 50, "unit": "celsius""#, command: command)).signals.first)
    #expect(
      signal.lines == [
        "# for model years 2019 to 2021, 2024", "[signal.x-y]", "request = \"2105\"", "header = \"18DA10F1\"", "reply = \"18DAF111\"",
        "value = \"A\"", "type = \"int\"", "unit = \"°C\"", "min = -5", "max = 50", "period = 0.05", "help = \"The name\"",
      ])
    let around = #""hdr": "7E0", "cmd": {"01": "0C"}, "freq": 9999, "filter": {"from": 2024, "to": 2021}"#
    let other = try #require(try read(set(#""len": 8, "max": 50, "unit": "scalar""#, command: around)).signals.first)
    #expect(other.comments == ["for model years until 2021, from 2024 on"] && other.period == 3600 && other.request == "010C")
  }

  // The identifiers in OBDb's own tests.
  @Test(arguments: [
    (#""hdr": "DA10", "rax": "10""#, "18DA10F1", nil), (#""hdr": "DA10", "rax": "11""#, "18DA10F1", "18DAF111"),
    (#""hdr": "DA10", "rax": "10", "pri": "14""#, "14DA10F1", "14DAF110"),
    (#""hdr": "FC00", "rax": "FE007B", "pri": "17", "tst": "7B""#, "17FC007B", "17FE007B"),
    (#""hdr": "D016", "rax": "1EC60E80", "pri": "1D", "tst": "30""#, "1DD01630", "1EC60E80"),
    (#""hdr": "D016", "rax": "1EC60E80""#, "18D016F1", "1EC60E80"), (#""hdr": "7E0", "rax": "7E8""#, "7E0", nil),
    (#""hdr": "7E0", "rax": "7EA""#, "7E0", "7EA"),
  ])
  func `request and response addresses match OBDb's decoder`(
    _ command: String, _ header: String, _ reply: String?
  ) throws {
    let found = try read(set(#""len": 8, "max": 50, "unit": "scalar""#, command: command + #", "cmd": {"22": "DA2C"}, "freq": 1"#))
    #expect(found.signals.first?.header == header && found.signals.first?.reply == reply && found.skipped.isEmpty)
  }

  // Values that OBDb's decoder clamps are absent here: its min is 0 if missing, and max is ignored unless it is above min.
  @Test(arguments: [
    (#""len": 16, "sign": true, "div": 100, "max": 20"#, 0, 20, true), (#""len": 8, "add": -40, "max": 215"#, 0, 215, true),
    (#""len": 8, "mul": -1, "max": 9"#, 0, 9, true), (#""len": 8, "max": 100"#, nil, 100, false),
    (#""len": 8, "sign": true, "min": -100, "max": 100"#, -100, 100, false), (#""len": 8, "sign": true, "max": 0"#, nil, nil, true),
    (#""len": 8, "min": 3, "max": 3"#, nil, nil, true),
  ])
  func `limits match OBDb's decoder, and assumed ones are noted`(
    _ format: String, _ minimum: Double?, _ maximum: Double?, _ isNoted: Bool
  ) throws {
    let found = try read(set(format + #", "unit": "percent""#))
    let signal = try #require(found.signals.first)
    #expect(signal.minimum == minimum && signal.maximum == maximum && found.notes.count == (isNoted ? 1 : 0), "\(found.notes)")
  }

  @Test func `a value that OBDb would clamp to 0 is absent`() throws {
    let found = try read(set(#""len": 16, "sign": true, "div": 100, "max": 20, "unit": "percent""#))
    var problems: [OptionError] = []
    let section = try #require(found.signals.first).section
    let row = try #require(CustomSignal(section, of: Setup(), &problems)).row
    let decoded = { (bytes: [UInt8]) in bytes.withUnsafeBufferPointer { row.read($0) } }
    #expect(decoded([0xFF, 0xF9]) == .absent(.outOfRange) && decoded([0x00, 0x07]) == .value(.float(0.07)))
  }

  @Test func `a model year selects only its signals`() throws {
    func command(_ id: String, _ filter: String) -> String {
      #"{"hdr": "7E4", "cmd": {"22": "0101"}, "freq": 1\#(filter), "signals": [{"id": "\#(id)", "fmt": {"len": 8, "max": 9}}]}"#
    }
    let commands = [
      command("ALL", ""), command("EMPTY", #", "filter": {}"#), command("RANGE", #", "filter": {"from": 2019, "to": 2021}"#),
      command("ONE", #", "filter": {"from": 2020, "to": 2020}"#), command("UNTIL", #", "filter": {"to": 2018}"#),
      command("FROM", #", "filter": {"from": 2022}"#), command("AROUND", #", "filter": {"from": 2022, "to": 2018}"#),
      command("LISTED", #", "filter": {"to": 2010, "years": [2017, 2020]}"#),
      command("DEBUG", #", "dbgfilter": {"from": 2015, "to": 2016}"#),
    ]
    let bytes = Array(#"{"commands": [\#(commands.joined(separator: ","))]}"#.utf8)
    let names = { (year: Int?) in try ImportedSignals(bytes, year: year).signals.map(\.name) }
    #expect(try names(2017) == ["all", "empty", "until", "around", "listed", "debug"])
    #expect(try names(2020) == ["all", "empty", "range", "one", "listed", "debug"])
    #expect(try names(2023) == ["all", "empty", "from", "around", "debug"])
    #expect(try names(nil).count == commands.count)
    let found = try ImportedSignals(bytes, year: 2020)
    #expect(found.skipped.map(\.place) == ["UNTIL", "FROM", "AROUND"] && found.notes.isEmpty)
    #expect(found.skipped[0].message == "request 220101 to 7E4: only for model years until 2018, not 2020")
    #expect(try ImportedSignals(bytes).notes.map(\.place) == ["filter"])
  }

  // As in OBDb's BMW i3 and Corolla Hybrid.
  @Test(arguments: [
    (#""hdr": "6F1", "rax": "607", "eax": "07", "cmd": {"22": "DDBC"}"#, ["reply = \"607\"", "extended-address = \"07\""]),
    (
      #""hdr": "750", "rax": "758", "eax": "2a", "tst": "2A", "cmd": {"21": "30"}"#,
      ["extended-address = \"2A\"", "tester-address = \"2A\""]
    ),
  ]) func `extended addresses become keys`(_ command: String, _ lines: [String]) throws {
    let found = try read(set(#""len": 8, "max": 1, "unit": "scalar""#, command: command))
    #expect(found.count == 1 && lines.allSatisfy { found.signals[0].lines.contains($0) }, "\(found.signals.first?.lines ?? [])")
  }

  // As in OBDb's BMW i3, with a damaged address.
  @Test func `a set without usable requests is still a signal set, and the error names the request`() throws {
    let command = #""hdr": "6F1", "rax": "607", "eax": "7", "fcm1": true, "cmd": {"22": "DDBC"}, "freq": 1"#
    let found = try read(set(#""len": 16, "max": 100, "div": 10, "unit": "percent""#, command: command))
    #expect(found.count == 0)
    #expect(found.failure == "X_Y: request 22DDBC to 6F1: extended address 7 (eax) is not a byte of two hex digits")
    #expect(try read(#"{"commands": []}"#).failure.contains("describes nothing yet"))
    let refused = try read(set(#""len": 8, "max": 1, "unit": "scalar""#, command: #""hdr": "7E4", "cmd": {"2E": "0101"}"#))
    #expect(refused.failure.hasPrefix("X_Y: request 2E0101: service 2E"), "\(refused.failure)")
  }

  @Test func `maps become numbers with help texts, flags become booleans, and ambiguous flags are noted`() throws {
    let gear = try read(set(#""len": 3, "map": {"0": {"value": "P", "description": "Park"}, "1": "Reverse"}"#))
    #expect(gear.signals.first?.help == "The name: 0 Park, 1 Reverse" && gear.notes.count == 1)
    #expect(try field(#""len": 1, "max": 1, "unit": "noyes""#)?.type == .bool)
    let yesno = try read(set(#""len": 1, "max": 1, "unit": "yesno""#))
    #expect(yesno.signals.first?.type == .int && yesno.notes.count == 1)
  }

  private static let refused: [(String, String)] = [
    (#""len": 80, "max": 1, "unit": "ascii""#, "more than a number can"), (#""len": 8, "max": 1, "unit": "ascii""#, "a text signal"),
    (#""max": 1, "unit": "scalar""#, "length"), (#""len": 0, "max": 1, "unit": "scalar""#, "length"),
    (#""bix": -1, "len": 8, "max": 1, "unit": "scalar""#, "position"), (#""bix": 6000, "len": 8, "max": 1, "unit": "scalar""#, "beyond ZZ"),
    (#""len": 8, "div": 0, "max": 1, "unit": "scalar""#, "divides by zero"), (#""len": 8, "mul": "x", "max": 1"#, "mul is not a number"),
    (#""bix": 4, "len": 16, "blsb": true, "max": 1, "unit": "scalar""#, "little-endian"),
    (#""len": 1, "sign": true, "max": 1"#, "cannot be signed"),
    (#""len": 8, "min": 5, "max": 1, "unit": "scalar""#, "less than min"),
  ]

  @Test(arguments: refused) func `unsupported formats are skipped with the reason`(_ format: String, _ words: String) throws {
    let found = try read(set(format))
    #expect(found.count == 0 && found.skipped.count == 1 && found.skipped[0].place == "X_Y")
    #expect(found.skipped[0].message.contains(words), "\(found.skipped[0].message)")
  }

  @Test(arguments: [
    #""hdr": "7E4", "cmd": {"2E": "0101"}"#, #""hdr": "7E4", "cmd": {"22": "01"}"#, #""hdr": "7E4", "eax": "1", "cmd": {"22": "0101"}"#,
    #""hdr": "7E4", "din": "03", "cmd": {"22": "0101"}"#, #""hdr": "7E", "cmd": {"22": "0101"}"#, #""cmd": {"22": "0101"}"#,
    #""hdr": "7E4""#,
    #""hdr": "7E4", "cmd": {"22": "0101", "21": "01"}"#, #""hdr": "7E4", "rax": "x", "cmd": {"22": "0101"}"#,
    #""hdr": "6B0", "proto": "9141-2", "cmd": {"22": "0101"}"#,
  ])
  func `commands that cannot be sent are skipped`(_ command: String) throws {
    let found = try read(set(#""len": 8, "max": 1, "unit": "scalar""#, command: command))
    #expect(found.count == 0 && found.skipped.map(\.place) == ["X_Y"])
  }

  @Test func `names are made from ids and are unique`() throws {
    let ids = ["EV6_TP.FL", "ev6-tp-fl", "RPM", "123", "__", "É_à", String(repeating: "long_", count: 30)]
    let signals = ids.map { #"{"id": "\#($0)", "fmt": {"len": 8, "max": 9, "unit": "scalar"}}"# }.joined(separator: ",")
    let found = try read(#"{"commands": [{"hdr": "7E4", "cmd": {"22": "0101"}, "freq": 1, "signals": [\#(signals)]}]}"#)
    let names = found.signals.map(\.name)
    #expect(names.prefix(6) == ["ev6-tp-fl", "ev6-tp-fl-2", "own-rpm", "signal", "signal-2", "signal-3"])
    #expect(names.last?.utf8.count ?? 99 <= CustomSignal.maxNameLength && Set(names).count == ids.count)
  }

  @Test func `quotes are escaped and line breaks are removed in generated files`() throws {
    let text = set(#""len": 8, "max": 1, "unit": "scalar""#).replacing("The name", with: #"a\"]\n[x]\u2028b\\"#)
    let file = try read(text).file(from: "a\nb", device: "ev")
    #expect(file.contains(#"help = "a\"][x]b\\""#) && file.contains("# Signals imported by vehiclectl import from ab.\n"), "\(file)")
    #expect(file.hasSuffix("devices = [\"ev\"]\n"))
  }

  @Test func `unknown formats are reported`() throws {
    for text in ["", " \n", "{", "{}", #"{"commands": 5}"#, "\u{1}\u{2}"] {
      #expect(throws: ValueError.self) { _ = try read(text) }
    }
    #expect(throws: ValueError.self) { _ = try ImportedSignals([UInt8](repeating: 0x20, count: ImportedSignals.maxFileSize + 1)) }
    #expect(try read(#"{"commands": [5, {}, {"signals": [7]}]}"#).skipped.count == 3)
  }

  @Test func `random bytes do not trap the importer`() {
    var random = SeededRandom(seed: 11)
    let seeds = [
      set(#""bix": 5, "len": 14, "mul": 0.5, "add": -3, "nullmin": 1, "map": {"1": "x"}, "sign": true, "max": 1, "unit": "volts""#),
      "Name,ShortName,ModeAndPID,Equation,Min Value,Max Value,Units,Header\n\"a, b\",b,220101,Signed(BB)*256+{J:5}+((v<8)+u),0,9,C,7E4\n",
    ]
    var imported = 0
    for index in 0..<6000 {
      var bytes = Array(seeds[index % 2].utf8)
      for _ in 0...Int.random(in: 0..<4, using: &random) where !bytes.isEmpty {
        let at = Int.random(in: 0..<bytes.count, using: &random)
        switch Int.random(in: 0..<3, using: &random) {
        case 0: bytes[at] = .random(in: 0...255, using: &random)
        case 1: bytes.remove(at: at)
        default: bytes.insert(.random(in: 32...126, using: &random), at: at)
        }
      }
      guard let found = try? ImportedSignals(bytes) else { continue }
      imported += found.count
      let lines = found.file(from: "x").utf8
      #expect(lines.allSatisfy { $0 >= 0x20 || $0 == lineFeed })
    }
    #expect(imported > 100)
  }
}
