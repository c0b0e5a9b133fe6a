import FoundationEssentials
import Testing

@testable import Protocols

/// Recorded dialogues give the values that stand beside them.
@Suite struct OBDRecordingTests {
  struct Line: Decodable {
    var t: Int64?
    var dir: String?
    var hex: String?
    var kind: String?

    var bytes: [UInt8] {
      let digits = (hex ?? "").compactMap { $0.hexDigitValue.map(UInt8.init) }
      return stride(from: 0, to: digits.count - 1, by: 2).map { digits[$0] << 4 | digits[$0 + 1] }
    }
  }

  enum Expected: Decodable, Equatable {
    case absent, bool(Bool), number(Double), text(String)

    init(from decoder: any Decoder) throws {
      let value = try decoder.singleValueContainer()
      if value.decodeNil() {
        self = .absent
      } else if let bool = try? value.decode(Bool.self) {
        self = .bool(bool)
      } else if let number = try? value.decode(Double.self) {
        self = .number(number)
      } else {
        self = .text(try value.decode(String.self))
      }
    }

    func matches(_ content: Reading.Content?) -> Bool {
      switch (self, content) {
      case (.absent, .absent?): true
      case (.bool(let expected), .value(.bool(let value))?): expected == value
      case (.text(let expected), .value(.string(let value))?): expected == value
      case (.number(let expected), .value(let value)?): value.number == expected
      default: false
      }
    }
  }

  static let folder = String(#filePath.dropLast("OBDRecordingTests.swift".count)) + "../../Recordings/obd/"
  static let names = ["kona-2023-driving", "ev6-2022-cold", "ev6-2022-wallbox", "soul-30kwh-no-ats0", "e-gmp-no-line-ends"]

  static func data(_ file: String) throws -> Data { try Data(contentsOf: URL(filePath: folder + file)) }

  @Test(arguments: names, [0.0, 0.4, 0.9]) func aRecordingGivesTheValuesBesideIt(_ name: String, _ phase: Double) throws {
    let lines = try Self.data("\(name).ndjson").split(separator: 10).map { try JSONDecoder().decode(Line.self, from: Data($0)) }
    let expected = try JSONDecoder().decode([String: Expected].self, from: Self.data("\(name).json"))
    #expect(lines.first?.kind == "obd")
    var machine = OBDMachine(phase: phase)
    var effects = Effects()
    var values: [String: Reading.Content] = [:]
    var sent: [[UInt8]] = []
    let give = { (input: Input, now: Instant) in
      effects.removeAll()
      machine.handle(input, at: now, &effects)
      for reading in effects.readings { values[machine.schema.properties[reading.property].name] = reading.content }
      for effect in effects.list { if case .send(_, let bytes, _, _) = effect { sent.append(bytes) } }
    }
    for line in lines.dropFirst() {
      let now = line.t ?? 0
      while let wake = machine.nextWake, wake < now { give(.wake, max(wake, 0)) }
      switch line.dir {
      case "rx": give(.received(.main, line.bytes), now)
      case "state": give(.linkChanged(.main, .up(maximumSend: nil)), now)
      default: break
      }
    }
    for (property, value) in expected {
      #expect(value.matches(values[property]), "\(property): \(String(describing: values[property]))")
    }
    #expect(sent.starts(with: lines.filter { $0.dir == "tx" }.map(\.bytes)))
  }
}
