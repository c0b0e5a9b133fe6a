import Testing

@testable import Protocols

/// The bits of signals, their values, and the keys of their sections.
@Suite struct CANSignalTests {
  static func signal(_ name: String = "x", id: String = "3E9", bits: String, _ options: [String: Value] = [:]) -> Setup.Subsection {
    Setup.Subsection(name, ["can-id": .string(id), "bits": .string(bits)].merging(options) { $1 })
  }

  private func problems(_ section: Setup.Subsection) -> [String] {
    var problems: [OptionError] = []
    #expect((CANSignal(section, &problems) == nil) == !problems.isEmpty)
    return problems.map { "\($0.option ?? "-"): \($0.message)" }
  }

  /// The content for these bytes.
  private func content(_ bytes: [UInt8], _ bits: String, _ options: [String: Value] = [:]) throws -> Reading.Content {
    var problems: [OptionError] = []
    let signal = try #require(CANSignal(Self.signal(bits: bits, options), &problems), "\(problems)")
    return signal.reader.content(signal.reader.bits(in: CANFrame(signal.identifier, bytes).packed))
  }

  @Test(arguments: [
    ("0|8@1+", 0x11), ("8|16@1+", 0x3322), ("4|8@1+", 0x21), ("7|8@0+", 0x11), ("7|16@0+", 0x1122), ("3|8@0+", 0x12), ("63|1@1+", 1),
    ("56|8@1-", -120), ("63|8@0-", -120), ("60|4@1-", -8), ("7|64@0-", 0x1122_3344_5566_7788), ("0|32@1+", 0x4433_2211),
    ("11|9@0+", 70), ("0|64@1-", -8_613_303_245_920_329_199),
  ])
  func `bits are numbered as in DBC files`(_ bits: String, _ expected: Int) throws {
    let field = try CANBitField(bits)
    let bytes: [UInt8] = [0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88]
    let raw = field.raw(in: CANFrame(CANIdentifier(number: 1, is29Bit: false), bytes).packed)
    #expect(field.isSigned ? Int(field.signed(raw)) == expected : raw == UInt64(expected), "\(raw)")
    #expect(field.text == bits)
  }

  @Test func `fields of every position and length agree with a decoder that reads single bits`() throws {
    var random = SystemRandomNumberGenerator()
    for start in 0..<64 {
      for length in 1...64 {
        for isLittleEndian in [true, false] {
          guard let field = CANBitField(start: start, length: length, isLittleEndian: isLittleEndian, isSigned: false) else { continue }
          let bytes = (0..<8).map { _ in UInt8.random(in: 0...255, using: &random) }
          var (expected, bit): (UInt64, Int) = (0, start)
          for step in 0..<length {
            let value = UInt64(bytes[bit / 8] >> UInt8(bit % 8) & 1)
            if isLittleEndian {
              expected |= value << UInt64(step)
              bit += 1
            } else {
              expected = expected << 1 | value
              bit = bit % 8 == 0 ? bit + 15 : bit - 1
            }
          }
          let frame = CANFrame(CANIdentifier(number: 1, is29Bit: false), bytes)
          #expect(field.raw(in: frame.packed) == expected, "\(field.text)")
          let last = isLittleEndian ? (start + length - 1) / 8 : (start / 8 * 8 + 7 - start % 8 + length - 1) / 8
          #expect(field.minCount == last + 1)
        }
      }
    }
  }

  @Test(arguments: [
    "", "0|8", "0|8@1", "0|8@2+", "a|8@1+", "0|0@1+", "0|65@1+", "60|5@1+", "0|2@0+0", "56|2@0+", "-1|8@1+", "0|8@1*", "64|1@1+",
  ])
  func `invalid fields are rejected with the remedy`(_ text: String) {
    #expect(throws: ValueError.self) { try CANBitField(text) }
  }

  @Test func `numbers are converted without binary rounding errors`() throws {
    #expect(try content([3], "0|8@1+", ["factor": .float(0.1)]) == .value(.float(0.3)))
    #expect(try content([123], "0|8@1+", ["factor": .float(0.01), "offset": .float(-0.4)]) == .value(.float(0.83)))
    #expect(try content([7], "0|8@1+", ["factor": .float(0.00390625)]) == .value(.float(0.02734375)))
    #expect(try content([10], "0|8@1+", ["factor": .float(1e-20)]) == .value(.float(1e-19)))
    #expect(try content([0], "0|8@1+", ["factor": .float(-1)]) == .value(.float(0)))
    #expect(try content([0xFF], "0|8@1-", ["type": .string("int"), "factor": .float(5), "offset": .float(-40)]) == .value(.int(-45)))
    #expect(try content([1], "0|1@1+", ["type": .string("bool")]) == .value(.bool(true)))
  }

  @Test func `unsigned numbers of 64 bits are never negative`() throws {
    let bytes: [UInt8] = [0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF]
    let int: [String: Value] = ["type": .string("int")]
    #expect(try content(bytes, "0|64@1+", int) == .absent("too large for type int"))
    #expect(try content(bytes, "0|64@1-", int) == .value(.int(-1)))
    #expect(try content([0, 0, 0, 0, 0, 0, 0, 0x80], "0|64@1+", int.merging(["offset": .float(-8)]) { $1 }) == .value(.int(.max - 7)))
    #expect(try content(bytes, "0|64@1+", int.merging(["max": .float(100)]) { $1 }) == .absent("outside the configured range"))
    #expect(try content(bytes, "0|64@1+", int.merging(["labels": .list(["-1: none"])]) { $1 }) == .absent("too large for type int"))
    let string: [String: Value] = ["type": .string("string"), "labels": .list(["0: a"])]
    #expect(try content(bytes, "0|64@1+", string) == .absent("no label for 18446744073709551615"))
  }

  @Test func `numbers of IEEE 754 are read`() throws {
    let half = Float(-0.5).bitPattern
    let bytes = [UInt8](withUnsafeBytes(of: half.littleEndian) { Array($0) })
    #expect(try content(bytes, "0|32@1-", ["encoding": .string("float"), "factor": .float(2)]) == .value(.float(-1)))
    let big = [UInt8](withUnsafeBytes(of: (1.5).bitPattern.bigEndian) { Array($0) })
    #expect(try content(big, "7|64@0-", ["encoding": .string("float")]) == .value(.float(1.5)))
    #expect(try content([0, 0, 0xC0, 0x7F], "0|32@1-", ["encoding": .string("float")]) == .absent("not a number"))
  }

  @Test func `a number is multiplied by a second one, and rounded`() throws {
    // 385.12 V and 8.2 A.
    let bytes: [UInt8] = [0x70, 0x96, 0xAE, 0xFF]
    let power: [String: Value] = ["multiplier": .string("0|16@1+"), "factor": .float(-1e-6)]
    #expect(try content(bytes, "16|16@1-", power) == .value(.float(3.157984)))
    #expect(try content(bytes, "16|16@1-", power.merging(["decimals": .int(2)]) { $1 }) == .value(.float(3.16)))
    #expect(try content(bytes, "0|16@1+", ["factor": .float(0.01), "decimals": .int(0)]) == .value(.float(385)))
    #expect(try content([0xFF, 0x7F], "0|16@1-", ["factor": .float(1.609344), "decimals": .int(0)]) == .value(.float(52733)))
  }

  @Test func `labels give the numbers that mean on and off`() throws {
    let options: [String: Value] = ["type": .string("bool"), "labels": .list(["1: off", "3: on"])]
    #expect(try content([3], "0|2@1+", options) == .value(.bool(true)))
    #expect(try content([1], "0|2@1+", options) == .value(.bool(false)))
    #expect(try content([2], "0|2@1+", options) == .absent("no label for 2"))
  }

  @Test func `labels are values of strings, and for numbers the reason why there is none`() throws {
    let labels = Value.list(["0: park", "1: drive"])
    #expect(try content([1], "0|8@1+", ["type": .string("string"), "labels": labels]) == .value(.string("drive")))
    #expect(try content([2], "0|8@1+", ["type": .string("string"), "labels": labels]) == .absent("no label for 2"))
    #expect(try content([255], "0|8@1+", ["labels": .list(["255: sensor fault"])]) == .absent("sensor fault"))
    #expect(try content([0xFF], "0|8@1-", ["labels": .list(["-1: unknown"])]) == .absent("unknown"))
    #expect(try content([200], "0|8@1+", ["max": .float(199)]) == .absent("outside the configured range"))
    #expect(try content([200], "0|8@1+", ["type": .string("int"), "max": .float(199)]) == .absent("outside the configured range"))
  }

  private static let mistakes: [(Setup.Subsection, String)] = [
    (Setup.Subsection("x", ["bits": .string("0|8@1+")]), "-: can-id is missing; add can-id = \"3E9\""),
    (Setup.Subsection("x", ["can-id": .string("3E9")]), "-: bits is missing; add bits = \"16|12@1+\""),
    (signal(id: "3E", bits: "0|8@1+"), "can-id: not a CAN identifier; write 3 or 8 hex digits"),
    (signal(bits: "0|8"), "bits: not a bit field; write START|LENGTH@ORDER"),
    (signal(bits: "60|8@1+"), "bits: the bits are not within the 8 bytes of a frame"),
    (signal(bits: "0|8@1+", ["when": .list(["0|8@1+"])]), "when: \"0|8@1+\" is not a condition; write the bits"),
    (signal(bits: "0|8@1+", ["when": .list(["0|8@1+: 5-3"])]), "when: \" 5-3\" is not a value of a multiplexer"),
    (
      signal(bits: "0|8@1+", ["when": .list(["0|4@1+: 3, 16"])]),
      "when: 0|4@1+ has 4 bits and is never 16; use 0 to 15, or correct the bits"
    ),
    (signal(bits: "0|8@1+", ["when": .list(["0|64@1-: 3", "0|4@1+: 3-20"])]), "when: 0|4@1+ has 4 bits and is never 20"),
    (signal(bits: "0|8@1+", ["encoding": .string("float")]), "encoding: a float has 32 or 64 bits, not 8"),
    (signal(bits: "0|8@1+", ["factor": .float(0)]), "factor: the factor must not be 0"),
    (signal(bits: "0|8@1+", ["type": .string("int"), "factor": .float(0.5)]), "factor: the result is not a whole number"),
    (signal(bits: "0|8@1+", ["type": .string("bool"), "offset": .float(1)]), "offset: only types float and int have it"),
    (signal(bits: "0|8@1+", ["type": .string("string")]), "type: a string needs labels"),
    (signal(bits: "0|8@1+", ["type": .string("bool"), "labels": .list(["0: a"])]), "labels: \"a\" is not on or off; write such as 3: on"),
    (signal(bits: "0|8@1+", ["type": .string("int"), "decimals": .int(1)]), "decimals: only type float has it"),
    (signal(bits: "0|8@1+", ["type": .string("bool"), "multiplier": .string("8|8@1+")]), "multiplier: only type float has it"),
    (signal(bits: "0|8@1+", ["multiplier": .string("8|8")]), "multiplier: not a bit field"),
    (signal(bits: "0|8@1+", ["labels": .list(["a"])]), "labels: \"a\" is not a label"),
    (signal(bits: "0|8@1+", ["min": .float(5), "max": .float(1)]), "max: 1 is less than min"),
    (signal("frame-rate", bits: "0|8@1+"), "-: frame-rate is a property of every device of kind can"),
  ]

  @Test(arguments: mistakes)
  func `a mistake in a section is reported with its key and the remedy`(_ section: Setup.Subsection, _ expected: String) {
    let found = problems(section)
    #expect(found.count == 1 && found[0].hasPrefix(expected), "\(found)")
  }
}
