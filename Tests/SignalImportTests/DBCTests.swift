// DBC files: the imported signals, mistakes with their lines, and hostile input.

import Testing

@testable import Peers
@testable import Protocols
@testable import SignalImport

@Suite struct DBCTests {
  private func read(_ text: String) throws -> ImportedCANSignals { try ImportedCANSignals(Array(text.utf8)) }

  private static let start = """
    VERSION "1"
    NS_ :
    \tCM_
    \tBA_DEF_
    \tVAL_
    BS_:
    BU_: A B

    """

  /// A file with one message of eight bytes.
  private func file(_ signals: String, _ rest: String = "") -> String { Self.start + "BO_ 1001 Msg: 8 A\n" + signals + "\n" + rest + "\n" }

  private func section(_ signal: String, _ rest: String = "") throws -> Setup.Subsection? {
    try read(file(signal, rest)).signals.first?.section
  }

  @Test func `a signal becomes a section`() throws {
    let found = try read(
      file(
        " SG_ BatteryTemp_1 : 16|12@1- (0.5,-40) [-40|100] \"degC\" B",
        """
        CM_ SG_ 1001 BatteryTemp_1 "Temperature
        of \\"cell\\" 1";
        BA_DEF_ BO_ "GenMsgCycleTime" INT 0 65535;
        BA_DEF_DEF_ "GenMsgCycleTime" 200;
        BA_ "GenMsgCycleTime" BO_ 1001 100;
        VAL_ 1001 BatteryTemp_1 2047 "sensor fault" ;
        """))
    #expect(found.skipped.isEmpty && found.notes.isEmpty, "\(found.skipped)")
    #expect(
      found.file(from: "a b.dbc", device: "bus").split(separator: "\n").dropFirst(3).joined(separator: "\n") == """
        [can-signal.battery-temp-1]
        can-id = "3E9"
        bits = "16|12@1-"
        factor = 0.5
        offset = -40
        labels = ["2047: sensor fault"]
        unit = "°C"
        min = -40
        max = 100
        cycle-time = 100
        help = "Temperature of \\"cell\\" 1"
        devices = ["bus"]
        """)
  }

  @Test func `types follow from the conversion and the texts of values`() throws {
    let type = { (signal: String, rest: String) in try section(signal, rest)?.options["type"] }
    #expect(try type(" SG_ A : 0|1@1+ (1,0) [0|1] \"\" B", "") == .string("bool"))
    #expect(try type(" SG_ A : 0|8@1+ (2,0) [0|1] \"\" B", "") == .string("int"))
    #expect(try type(" SG_ A : 0|8@1+ (0.1,0) [0|1] \"\" B", "") == .string("float"))
    #expect(try type(" SG_ A : 0|64@1+ (1,0) [0|1] \"\" B", "") == .string("float"))
    #expect(try type(" SG_ A : 0|3@1+ (1,0) [0|7] \"\" B", "VAL_ 1001 A 0 \"Park\" 1 \"Drive\" ;") == .string("string"))
    #expect(try type(" SG_ A : 0|8@1+ (1,0) [0|255] \"\" B", "VAL_ 1001 A 255 \"SNA\" ;") == .string("int"))
    let float = try section(" SG_ A : 0|32@1- (1,0) [0|0] \"V\" B", "SIG_VALTYPE_ 1001 A : 1;")
    #expect(float?.options["encoding"] == .string("float") && float?.options["min"] == nil)
  }

  /// The type and the labels of a signal with these bits, conversion and range, unit and texts.
  private func labels(_ signal: String, _ texts: String) throws -> [String] {
    let options = try section(" SG_ A : \(signal) B", "VAL_ 1001 A \(texts) ;")?.options ?? [:]
    let labels = if case .list(let labels)? = options["labels"] { labels } else { [String]() }
    return [options["type"]?.text ?? ""] + labels
  }

  @Test func `a text of a valid number does not make the number absent`() throws {
    #expect(try labels("0|8@1+ (0.5,0) [0|100] \"km/h\"", "0 \"standstill\" 255 \"SNA\"") == ["float", "255: SNA"])
    #expect(
      try labels("0|8@1+ (1,0) [0|100] \"\"", "0 \"off\" 1 \"minimum\" 254 \"error\" 255 \"SNA\"") == ["int", "254: error", "255: SNA"])
    #expect(try labels("0|8@1+ (1,0) [0|0] \"%\"", "0 \"closed\" 255 \"fully open\"") == ["int"])
    #expect(try labels("0|5@1+ (1,0) [0|31] \"\"", "0 \"none\" 31 \"SNA\"") == ["int", "31: SNA"])
    #expect(try labels("0|32@1- (1,0) [0|0] \"V\"", "0 \"off\"") == ["int"])
    let found = try read(file(" SG_ A : 0|8@1+ (0.5,0) [0|100] \"km/h\" B", "VAL_ 1001 A 0 \"standstill\" 255 \"SNA\" ;"))
    #expect(found.notes.map(\.message) == ["the texts of valid values are left out: 0: standstill"])
    let float = try section(" SG_ A : 0|32@1- (1,0) [0|0] \"V\" B", "SIG_VALTYPE_ 1001 A : 1;\nVAL_ 1001 A 0 \"off\" ;")
    #expect(float?.options["labels"] == nil)
  }

  @Test func `the texts of the largest numbers are reasons if they say so, also with a range of all bits`() throws {
    #expect(
      try labels("0|8@1+ (1,0) [0|255] \"%\"", "253 \"x\" 254 \"Fehler\" 255 \"Signal not available\"")
        == ["int", "254: Fehler", "255: Signal not available"])
    #expect(try labels("0|16@1- (0.01,0) [-327.68|327.67] \"V\"", "-32768 \"SNA\" 32767 \"high\"") == ["float", "-32768: SNA"])
    // Tesla writes the bits of signed numbers.
    #expect(try labels("0|16@1- (0.00125,0) [-40.9575|40.9575] \"m/s^2\"", "32768 \"SNA\"") == ["float", "-32768: SNA"])
    // 0.1 × 3 is not exactly 0.3.
    #expect(try labels("0|8@1+ (0.1,0) [0|0.3] \"V\"", "3 \"high\" 4 \"invalid\"") == ["float", "4: invalid"])
    // Ford: the range includes the number; Tesla: no range, and 0; Volkswagen: in German.
    #expect(
      try labels("0|16@1+ (1,0) [0|65533] \"kilopascal\"", "65535 \"Not_Supported\" 65534 \"Invalid\" 65533 \"Unknown\"")
        == ["int", "65535: Not_Supported", "65534: Invalid", "65533: Unknown"])
    #expect(
      try labels("0|12@1+ (0.01,-20.5) [0|0] \"Nm\"", "0 \"x\" 4095 \"SNA\" 4094 \"UNDEFINABLE_DATA\"")
        == ["float", "4095: SNA", "4094: UNDEFINABLE_DATA"])
    #expect(
      try labels("0|5@1+ (5,0) [0|150] \"mph\"", "31 \"NONE\" 0 \"UNKNOWN_SNA\"") == ["int", "31: NONE", "0: UNKNOWN_SNA"])
    #expect(
      try labels("0|8@1+ (1,0) [0|255] \"Unit_KiloMeterPerHour\"", "255 \"kein_Wert_im_Speicher\"")
        == ["int", "255: kein_Wert_im_Speicher"])
  }

  @Test func `texts of all or most values are the names of an enumeration`() throws {
    let string = { (signal: String, texts: String) in try labels(signal, texts).first == "string" }
    #expect(try string("0|3@1+ (1,0) [0|7] \"\"", "0 \"INVALID\" 1 \"P\" 2 \"R\" 3 \"N\" 4 \"D\" 7 \"SNA\""))
    #expect(try string("0|2@1+ (1,0) [0|3] \"\"", "0 \"off\" 1 \"on\" 2 \"error\" 3 \"not available\""))
    #expect(try string("0|1@1+ (1,0) [0|1] \"\"", "0 \"valid\" 1 \"invalid\""))
    #expect(try string("0|2@1+ (1,0) [0|3] \"code\"", "0 \"a\" 1 \"b\" 2 \"c\" 3 \"d\""))
    #expect(try string("0|4@1+ (1,0) [0|5] \"\"", "1 \"a\" 2 \"b\" 3 \"c\" 15 \"SNA\""))
    #expect(try string("0|8@1+ (1,0) [0|255] \"\"", "0 \"a\" 1 \"b\" 7 \"c\""))
    // A range that no author has adapted.
    #expect(try string("0|3@1+ (1,0) [0|1] \"\"", "0 \"a\" 1 \"b\" 2 \"c\" 3 \"d\""))
    // Ranges that contradict the names (Tesla, Volkswagen), and names that do not begin with 0 or 1.
    #expect(try string("0|4@1+ (1,0) [4|14] \"\"", "0 \"DRIVE_OFF\" 1 \"DRIVE_ON\" 3 \"LOAD_SHED\" 2 \"SHUTTING_DOWN\""))
    #expect(try string("0|4@1+ (1,0) [8|15] \"\"", "1 \"DM_COMFORT\" 3 \"DM_SPORT\" 2 \"DM_STANDARD\" 4 \"RWD_COMFORT\""))
    #expect(try string("0|8@1+ (1,0) [0|15] \"SED\"", "2 \"a\" 3 \"b\" 4 \"c\" 29 \"d\""))
    #expect(try string("0|4@1+ (1,0) [0|15] \"\"", "5 \"P\" 6 \"R\" 7 \"N\" 8 \"D\""))
    #expect(try labels("0|6@1+ (1,0) [5|33] \"\"", "0 \"low\" 55 \"high\" 57 \"off\"").first == "int")
    #expect(try labels("0|10@1+ (1,0) [1|1021] \"\"", "0 \"a\" 1022 \"b\" 1023 \"c\"").first == "int")
    #expect(try labels("0|1@1+ (1,0) [0|1] \"\"", "1 \"error\"") == ["bool"])
    #expect(try labels("0|8@1+ (1,0) [300|400] \"\"", "255 \"SNA\"") == ["int", "255: SNA"])
  }

  @Test func `a text that denies a fault is no reason`() throws {
    #expect(try labels("0|8@1+ (0.5,0) [0|100] \"%\"", "200 \"Full no fault\" 255 \"Fault\"") == ["float", "255: Fault"])
    #expect(try labels("0|8@1+ (0.5,0) [0|100] \"%\"", "200 \"Default\" 255 \"Error\"") == ["float", "255: Error"])
  }

  @Test func `units become symbols, however they are written`() {
    for (text, unit) in [
      ("km / h", "km/h"), ("Unit_KiloMeterPerHour", "km/h"), ("deg/s", "°/s"), ("Degrees C", "°C"), ("celsius", "°C"), ("meters", "m"),
      ("m/s2", "m/s²"), ("Unit_NewtoMeter", "Nm"), ("Unit_MeterPerSeconSquar", "m/s²"), ("U/min", "rpm"), ("V", "V"), ("S", "S"),
      ("MPH", "mph"), ("pix/sec", "pix/sec"),
      ("kWs", "kWs"), ("Nms", "Nms"), ("MV", "MV"), ("KW", "kW"), ("volts", "V"),
    ] {
      #expect(DBCUnits.unit(text) == unit, "\(text)")
    }
    for text in ["", " ", "-", "Unit_None", "SED", "yes/no", "Unitless", "bits"] { #expect(DBCUnits.unit(text) == nil, "\(text)") }
  }

  @Test func `limits that the bits cannot exceed are left out`() throws {
    let limits = { (range: String) in
      let options = try section(" SG_ A : 0|8@1+ (0.5,-10) [\(range)] \"V\" B")?.options
      return [options?["min"]?.number, options?["max"]?.number]
    }
    #expect(try limits("0|0") == [nil, nil] && limits("-10|117.5") == [nil, nil] && limits("-5|200") == [-5, nil])
    #expect(try limits("5|1") == [nil, nil] && limits("-100|100") == [nil, 100])
  }

  @Test func `identifiers of 29 bits, and signals of several messages with the same name`() throws {
    let text =
      Self.start
      + "BO_ 2566843904 One: 8 A\n SG_ Speed : 0|8@1+ (1,0) [0|0] \"kph\" B\n SG_ Frames : 8|8@1+ (1,0) [0|0] \"\" B\n"
      + "BO_ 100 Two: 8 A\n SG_ Speed : 0|8@1+ (1,0) [0|0] \"km/h\" B\n SG_ speed : 8|8@1+ (1,0) [0|0] \"\" B\n"
    let found = try read(text)
    #expect(found.signals.map(\.name) == ["one-speed", "own-frames", "two-speed", "speed"])
    #expect(found.signals.map { $0.section.options["can-id"] } == ["18FEEE00", "18FEEE00", "064", "064"].map { .string($0) })
    #expect(found.signals[0].section.options["unit"] == .string("km/h"))
  }

  @Test func `an identifier that does not fit into 11 bits is read as one of 29 bits, with a note`() throws {
    func message(_ number: UInt64, _ name: String) -> String { "BO_ \(number) \(name): 8 A\n SG_ \(name)1 : 0|8@1+ (1,0) [0|0] \"\" B\n" }
    let found = try read(
      Self.start + message(0x18FE_EE00, "One") + message(0x98FE_EF00, "Two") + message(0x7FF, "Three") + message(0x800, "Four")
        + message(0x98FE_EE00, "Again") + message(0x2000_0000, "Invalid"))
    #expect(found.signals.map { $0.section.options["can-id"] } == ["18FEEE00", "18FEEF00", "7FF", "00000800"].map { .string($0) })
    #expect(found.notes.map(\.place) == ["line 8 (One)", "line 14 (Four)"], "\(found.notes)")
    #expect(
      found.notes.first?.message == "the identifier 18FEEE00 does not fit into 11 bits, so it is read as one of 29 bits; check it")
    #expect(found.skipped.map(\.place) == ["line 16", "line 18"], "\(found.skipped)")
  }

  @Test func `multiplexing becomes conditions, which can depend on each other`() throws {
    let signals = """
       SG_ Mux M : 0|4@1+ (1,0) [0|0] "" B
       SG_ Inner m3M : 8|4@1+ (1,0) [0|0] "" B
       SG_ Plain m1 : 16|8@1+ (1,0) [0|0] "" B
       SG_ Deep m0 : 24|8@1+ (1,0) [0|0] "" B
      """
    let found = try read(file(signals, "SG_MUL_VAL_ 1001 Deep Inner 0-1, 5-5;\nSG_MUL_VAL_ 1001 Inner Mux 3-3;"))
    #expect(found.skipped.isEmpty, "\(found.skipped)")
    let conditions = found.signals.map { $0.section.options["when"] }
    #expect(
      conditions == [
        nil, .list(["0|4@1+: 3"]), .list(["0|4@1+: 1"]), .list(["8|4@1+: 0-1, 5", "0|4@1+: 3"]),
      ])
    let loop = try read(file(" SG_ A m0M : 0|4@1+ (1,0) [0|0] \"\" B", "SG_MUL_VAL_ 1001 A A 0-1;"))
    #expect(loop.count == 0 && loop.skipped.first?.message.hasPrefix("its multiplexers select each other") == true)
    let outside = try read(file(" SG_ Mux M : 0|4@1+ (1,0) [0|0] \"\" B\n SG_ A m16 : 8|8@1+ (1,0) [0|0] \"\" B"))
    #expect(outside.skipped.map(\.message) == ["its multiplexer Mux has 4 bits and is never 16; correct one of the two"])
    let wide = try read(
      file(" SG_ Mux M : 0|4@1+ (1,0) [0|0] \"\" B\n SG_ A m1 : 8|8@1+ (1,0) [0|0] \"\" B", "SG_MUL_VAL_ 1001 A Mux 9-99;"))
    #expect(wide.signals.last?.section.options["when"] == .list(["0|4@1+: 9-15"]))
    let none = try read(file(" SG_ A m0 : 0|4@1+ (1,0) [0|0] \"\" B"))
    #expect(none.skipped.first?.message == "the message has no multiplexer; mark one with M, or add SG_MUL_VAL_")
  }

  private static let mistakes: [(String, Int, String)] = [
    ("BO_ 1001 Msg: 8 A\n SG_ A : 0|8@1 (1,0) [0|1] \"\" B", 9, "expected + (unsigned) or - (signed) after the byte order, not ("),
    ("BO_ 1001 Msg: 8 A\n SG_ A : 60|8@1+ (1,0) [0|1] \"\" B", 9, "A: bits 60|8 are not within the 8 bytes of the message"),
    ("BO_ 1 M: 2 A\n SG_ A : 16|8@1+ (1,0) [0|1] \"\" B", 9, "A: bits 16|8 are not within the 2 bytes of the message; correct them"),
    ("BO_ 1 M: 64 A\n SG_ A : 99|8@1+ (1,0) [0|1] \"\" B", 9, "A: bits 99|8 are not within the 8 bytes of the message; only"),
    ("BO_ 536870912 Msg: 8 A", 8, "536870912 is not the number of a message; use the identifier"),
    ("BO_ 1 A: 8 A\nBO_ 1 B: 8 A", 9, "message 1 is already defined; remove one of the two"),
    (
      "BO_ 1 A: 8 A\n SG_ A : 0|8@1+ (1,0) [0|1] \"\" B\n SG_ A : 0|8@1+ (1,0) [0|1] \"\" B", 10, "signal A is already defined"
    ),
    ("BO_ 1 A 8 A", 8, "expected :, not 8"),
    ("BO_ 1 A: 8 A\n SG_ A X : 0|8@1+ (1,0) [0|1] \"\" B", 9, "X is not a multiplexer indicator; write M, m0 or m0M before the colon"),
    ("VAL_ 1 A 0 \"x\" ;\nrubbish here", 9, "not a statement of a DBC file; remove it, or comment it out with //"),
    ("VAL_ 1 A 0 \"x\"", 9, "expected a value, or ; at the end of the statement, not BO_"),
    ("SIG_VALTYPE_ 1 A", 9, "expected the type of the value, 0 to 3, not BO_"),
  ]

  @Test(arguments: mistakes)
  func `a mistake is reported with its line, and the rest is read`(_ text: String, _ line: Int, _ words: String) throws {
    let found = try read(Self.start + text + "\nBO_ 99 Last: 8 A\n SG_ Last : 0|8@1+ (1,0) [0|1] \"\" B\n")
    #expect(found.skipped.map(\.place) == ["line \(line)"] && found.skipped[0].message.hasPrefix(words), "\(found.skipped)")
    #expect(found.signals.last?.name == "last", "\(found.signals.map(\.name))")
  }

  @Test func `Latin-1, UTF-8 with a byte order mark, and lines of DOS are read`() throws {
    let text = file(" SG_ A : 0|8@1+ (0.5,0) [0|0] \"°C\" B").replacing("\n", with: "\r\n")
    let latin = text.unicodeScalars.map { UInt8($0.value) }
    #expect(try ImportedCANSignals(latin).signals.first?.section.options["unit"] == .string("°C"))
    #expect(try ImportedCANSignals([0xEF, 0xBB, 0xBF] + Array(text.utf8)).signals.first?.section.options["unit"] == .string("°C"))
    #expect(ImportedCANSignals.isDBC(latin) && !ImportedCANSignals.isDBC(Array("{\"commands\": []}".utf8)))
    #expect(!ImportedCANSignals.isDBC(Array("Name,ShortName,ModeAndPID".utf8)))
  }

  @Test func `texts in Windows-1252 are decoded`() throws {
    let text = Array(file(" SG_ A : 0|8@1+ (1,0) [0|0] \"?\" B", "CM_ SG_ 1001 A \"? ? ? ?\";").utf8)
    var replacements: [UInt8] = [0x80, 0x80, 0x93, 0x99, 0x81]
    let bytes = text.map { $0 == UInt8(ascii: "?") ? replacements.removeFirst() : $0 }
    let options = try ImportedCANSignals(bytes).signals.first?.section.options
    #expect(options?["unit"] == .string("€") && options?["help"] == .string("€ “ ™ \u{FFFD}"))
  }

  @Test(arguments: ["\r", "\r\n", "\n"]) func `lines can end with CR, CR LF or LF`(_ end: String) throws {
    let text = file("// a comment\n SG_ A : 0|8@1+ (1,0) [0|0] \"\" B", "CM_ SG_ 1001 A \"two\nlines\";\nrubbish here")
    let found = try read(text.replacing("\n", with: end))
    #expect(found.signals.map(\.name) == ["a"] && found.signals[0].section.options["help"] == .string("two lines"))
    #expect(found.skipped.map(\.place) == ["line 13"], "\(found.skipped)")
    #expect(ImportedCANSignals.isDBC(Array(text.replacing("\n", with: end).utf8)))
  }

  @Test func `hostile files end with an error, not with the memory`() throws {
    #expect(throws: ValueError.self) { try ImportedCANSignals([UInt8](repeating: 0x20, count: ImportedSignals.maxFileSize + 1)) }
    let quotes = try read(Self.start + String(repeating: "\\\"\n", count: 5000))
    #expect(quotes.count == 0 && quotes.skippedCount <= 501)
    #expect(try read("BO_ 1 A: 8 A\n" + String(repeating: " SG_ x\n", count: 2000)).notes.first?.message.hasPrefix("more than") == true)
    let many = try read(
      Self.start + (0..<2000).map { "BO_ \($0) M\($0): 8 A\n SG_ S\($0) : 0|8@1+ (1,0) [0|0] \"\" B\n" }.joined())
    #expect(many.count == 2000)
    #expect(try read("VERSION \"\"\n").failure == "no signals found; check that the file has BO_ and SG_ statements")
  }

  @Test func `damaged files do not trap the importer, and cut ones give the signals before the cut`() throws {
    var random = SeededRandom(seed: 5)
    let whole = Array(BusTraffic.demoDBC.utf8)
    var imported = 0
    for _ in 0..<2000 {
      var bytes = whole
      for _ in 0...Int.random(in: 0..<6, using: &random) {
        let at = Int.random(in: 0..<bytes.count, using: &random)
        switch Int.random(in: 0..<4, using: &random) {
        case 0: bytes[at] = .random(in: 0...255, using: &random)
        case 1: bytes.remove(at: at)
        case 2: bytes.removeLast(min(bytes.count - 1, Int.random(in: 0..<40, using: &random)))
        default: bytes.insert(.random(in: 32...126, using: &random), at: at)
        }
      }
      let found = try ImportedCANSignals(bytes)
      imported += found.count
      #expect(found.file(from: "x").utf8.allSatisfy { $0 >= 0x20 || $0 == lineFeed })
    }
    #expect(imported > 10_000)
  }

  @Test func `the demonstration file is imported whole`() throws {
    let found = try read(BusTraffic.demoDBC)
    #expect(found.count == 12 && found.skipped.isEmpty && found.notes.isEmpty, "\(found.skipped)")
    let file = DBCFile(Array(BusTraffic.demoDBC.utf8))
    #expect(file.messages.map(\.cycleTime) == [10, 50, 100, 1000])
  }

  @Test(
    arguments: [
      (["VehicleData"], ["vehicle-speed", "gear"]), (["vehicle-speed"], ["vehicle-speed"]), (["VehicleSpeed"], ["vehicle-speed"]),
      (["engine*"], ["engine-speed", "throttle", "alive-counter", "coolant-temperature"]),
      (["Pressure*Left", "Gear"], ["gear", "pressure-front-left", "pressure-rear-left"]), (["*"], nil), ([], nil),
      (["[GT]*r*"], ["throttle", "gear", "wheel", "pressure-front-left", "temperature-front-left", "pressure-front-right"]),
    ] as [([String], [String]?)])
  func `patterns select messages and signals`(_ patterns: [String], _ expected: [String]?) throws {
    let found = try ImportedCANSignals(Array(BusTraffic.demoDBC.utf8), only: patterns)
    let names = found.signals.map(\.name)
    if let expected { #expect(Array(names.prefix(6)) == expected) } else { #expect(names.count == 12) }
    #expect(names.count + found.unselectedCount == 12 && found.skipped.isEmpty)
  }

  @Test func `a selected signal keeps the condition on its multiplexer, and a pattern without a match is an error`() throws {
    let found = try ImportedCANSignals(Array(BusTraffic.demoDBC.utf8), only: ["PressureRearLeft"])
    #expect(found.signals.first?.section.options["when"] == .list(["0|2@1+: 2"]))
    let error = #expect(throws: ValueError.self) { try ImportedCANSignals(Array(BusTraffic.demoDBC.utf8), only: ["Warp", "x?"]) }
    #expect(
      error?.description.hasPrefix("no message or signal matches \"Warp\", \"x?\"; use names of the file, such as EngineData") == true)
  }
}
