import FoundationEssentials
import Testing

@testable import Protocols

/// Recorded dialogues give the values that stand beside them.
@Suite struct ELCommRecordingTests {
  static let folder = String(#filePath.dropLast("ELCommRecordingTests.swift".count)) + "../../Recordings/longboard/"

  static func data(_ file: String) throws -> Data { try Data(contentsOf: URL(filePath: folder + file)) }

  @Test(arguments: ["elcomm-as-built", "elcomm-documented", "elcomm-latched-off"])
  func `a recording gives the values beside it`(_ name: String) throws {
    let lines = try Self.data("\(name).ndjson").split(separator: 10)
      .map { try JSONDecoder().decode(OBDRecordingTests.Line.self, from: Data($0)) }
    let expected = try JSONDecoder().decode([String: OBDRecordingTests.Expected].self, from: Self.data("\(name).json"))
    #expect(lines.first?.kind == "longboard")
    // Which dialect was found took longer on the day.
    var machine = try ELCommMachine(Setup(options: name == "elcomm-documented" ? ["dialect": .string("documented")] : [:]))
    var effects = Effects()
    var values: [String: Reading.Content] = [:]
    var sent: [[UInt8]] = []
    func give(_ input: Input, _ now: Instant) {
      effects.removeAll()
      machine.handle(input, at: now, &effects)
      for reading in effects.readings { values[machine.schema.properties[reading.property].name] = reading.content }
      for effect in effects.list {
        switch effect {
        case .send(_, let bytes, let id?, _):
          sent.append(bytes)
          give(.sent(id, failure: nil), now)
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
