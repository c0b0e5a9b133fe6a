// Plays the recorded dialogues of Tests/Recordings to a machine: each line at its time, and wake-ups at the times that the machine
// requests.

import FoundationEssentials
import Testing

@testable import Protocols

struct RecordedDialogue {
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

  let lines: [Line]
  /// The JSON beside the recording.
  let expected: [String: Expected]

  /// A recording by its path under Tests/Recordings, without its ending.
  init(_ path: String) throws {
    let folder = #filePath.dropLast("ProtocolsTests/RecordedDialogue.swift".count) + "Recordings/"
    func data(_ ending: String) throws -> Data { try Data(contentsOf: URL(filePath: folder + path + ending)) }
    lines = try data(".ndjson").split(separator: 10).map { try JSONDecoder().decode(Line.self, from: Data($0)) }
    expected = try JSONDecoder().decode([String: Expected].self, from: data(".json"))
  }

  /// Plays it to a machine. Its values must be the expected ones, and its sends must start with the recorded ones.
  func play(to machine: some Machine, kind: String) {
    #expect(lines.first?.kind == kind)
    var machine = machine
    var effects = Effects()
    var values: [String: Reading.Content] = [:]
    var sent: [[UInt8]] = []
    func give(_ input: Input, _ now: Instant) {
      effects.removeAll()
      machine.handle(input, at: now, &effects)
      for reading in effects.readings { values[machine.schema.properties[reading.property].name] = reading.content }
      for effect in effects.list {
        switch effect {
        case .send(_, let bytes, let id, _):
          sent.append(bytes)
          if let id { give(.sent(id, failure: nil), now) }
        case .store(let key, _): give(.stored(key: key, failure: nil), now)
        default: break
        }
      }
    }
    give(.started(restored: [:], wall: WallTime(microseconds: 0)), 0)
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
    #expect(!sent.isEmpty && sent.starts(with: lines.filter { $0.dir == "tx" }.map(\.bytes)))
  }
}
