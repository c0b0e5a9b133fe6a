// The fast writer writes the same JSON as the coders.

import Testing

@testable import Protocols
@testable import Varlink

@Suite struct ReadingWriterTests {
  static let values: [Value?] = [
    nil, .bool(true), .bool(false), .int(0), .int(.min), .int(.max), .int(-7), .int(3737), .float(0), .float(-0.5), .float(56.4),
    .float(0.1 + 0.2),
    .float(1e300), .float(-1e-300), .float(.greatestFiniteMagnitude), .float(.leastNonzeroMagnitude), .float(0.000001),
    .float(9_007_199_254.740991),
    .float(9_007_199_254.740993), .float(1e15), .float(-123456.000001), .float(.nan), .float(.infinity), .string(""), .string("eco"),
    .string("\"\\\n\r\t\u{1}\u{1f}\u{7f}é漢🚗/"), .string("a\0b"), .list([]), .list(["a", "", "b\"c"]),
  ]

  @Test(arguments: values) func `a written reading decodes to the same value as one of the coders`(_ value: Value?) throws {
    for (unit, time, age, reason) in [
      (nil, nil, nil, nil), ("km/h", 1_790_000_000_123_456, 0.012345, "stale"), ("°C", -1, .nan, nil),
      (nil, .min, -2.2250738585072014e-308, "a"),
    ]
      as [(String?, Int?, Double?, String?)]
    {
      let expected = Contract.Reading(device: "ev", property: "x", value: value, unit: unit, time: time, age: age, reason: reason)
      var body: [UInt8] = []
      ReadingWriter.list("changes", to: &body) {
        ReadingWriter.reading(
          EncodedDevice(device: "ev"), EncodedProperty(property: "x", unit: unit), value: value, time: time, age: age, reason: reason,
          to: &$0)
      }
      var bytes: [UInt8] = []
      ReadingWriter.watchReply(sequence: 17, time: 1_790_000_000_123_456, body: body, to: &bytes)
      let reply = try VarlinkReply(Array(bytes.dropLast()))
      #expect(bytes.last == 0 && reply.continues)
      #expect(
        try reply.parameters(as: Contract.Watch.Result.self)
          == Contract.Watch.Result(sequence: 17, time: 1_790_000_000_123_456, changes: [expected]))
    }
  }

  @Test func `replies have several lists or none`() throws {
    let events = [
      Contract.Event(device: "ev", name: "note", text: "a \"b\"", time: 5), Contract.Event(device: "ev", name: "n", text: "", time: 6),
    ]
    let (start, head) = (EncodedDevice(device: "e\"v"), EncodedProperty(property: "x"))
    var body: [UInt8] = []
    ReadingWriter.list("changes", to: &body) { out in
      for number in 0..<3 {
        ReadingWriter.separate(&out)
        ReadingWriter.reading(start, head, value: .int(number), to: &out)
      }
    }
    ReadingWriter.list("events", to: &body) { out in
      for event in events {
        ReadingWriter.separate(&out)
        ReadingWriter.event(device: event.device, name: event.name, text: event.text, time: event.time, to: &out)
      }
    }
    var bytes: [UInt8] = []
    ReadingWriter.watchReply(sequence: 0, time: 5, body: body, to: &bytes)
    ReadingWriter.watchReply(sequence: 1, time: -6, to: &bytes)
    ReadingWriter.reply(body: [], to: &bytes)
    var framing = VarlinkFraming()
    framing.append(bytes)
    let first = try #require(try framing.next { try VarlinkReply($0).parameters(as: Contract.Watch.Result.self) })
    #expect(first.changes?.map(\.value) == [.int(0), .int(1), .int(2)] && first.changes?[0].device == "e\"v" && first.events == events)
    let second = try #require(try framing.next { try VarlinkReply($0).parameters(as: Contract.Watch.Result.self) })
    #expect(second == Contract.Watch.Result(sequence: 1, time: -6))
    #expect(try framing.next() == Array("{\"parameters\":{}}".utf8))
  }

  @Test func `random doubles round-trip`() throws {
    var generator = Seeded(state: 7)
    for round in 0..<20_000 {
      let bits = Double(bitPattern: generator.next())
      let number =
        round % 2 == 0 ? bits : Double(Int32(truncatingIfNeeded: generator.next())) / [1, 10, 100, 1000][Int(generator.next() % 4)]
      guard number.isFinite else { continue }
      var bytes: [UInt8] = []
      bytes.append(json: number)
      let text = String(decoding: bytes, as: UTF8.self)
      #expect(Double(text) == number)
      if number.rounded() == number, number.magnitude < 1e15 { #expect(!text.contains(".") && !text.contains("e")) }
    }
  }
}

/// Reproducible random numbers (splitmix64).
struct Seeded: RandomNumberGenerator {
  var state: UInt64

  mutating func next() -> UInt64 {
    state &+= 0x9e37_79b9_7f4a_7c15
    var z = state
    z = (z ^ (z >> 30)) &* 0xbf58_476d_1ce4_e5b9
    z = (z ^ (z >> 27)) &* 0x94d0_49bb_1331_11eb
    return z ^ (z >> 31)
  }
}
