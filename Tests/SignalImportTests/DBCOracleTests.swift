// Every signal of every message in cantools' own test files, decoded by cantools and by the importer's definitions, from random frames.

import Foundation
import Testing

@testable import Protocols
@testable import SignalImport

@Suite struct DBCOracleTests {
  private struct Frame: Decodable {
    var file: String
    var message: UInt32
    var bytes: String
    var signals: [String: Value]

    /// The number and, if there is one, the text of a value.
    struct Value: Decodable {
      var number: Double?
      var text: String?

      init(from decoder: any Decoder) throws {
        var container = try decoder.unkeyedContainer()
        number = try container.decodeIfPresent(Double.self)
        text = try container.decodeIfPresent(String.self)
      }
    }
  }

  /// The signals of a message by the names of the file.
  private typealias Signals = [String: CANSignal]

  private static let python = ProcessInfo.processInfo.environment["VEHICLED_PYTHON"]
  private static let tests = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()

  @Test(.enabled(if: python != nil, "set VEHICLED_PYTHON to a python with the package cantools"))
  func `random frames give the same values as with cantools`() throws {
    let folder = Self.tests.appendingPathComponent("Recordings/dbc")
    let files = try FileManager.default.contentsOfDirectory(atPath: folder.path).filter { $0.hasSuffix(".dbc") }.sorted()
    let paths = files.map { folder.appendingPathComponent($0).path }
    var definitions: [String: [CANIdentifier: Signals]] = [:]
    for (file, path) in zip(files, paths) { definitions[file] = try self.signals(of: Array(Data(contentsOf: URL(fileURLWithPath: path)))) }
    var (compared, frames, labels, absent): (Int, Int, Int, Int) = (0, 0, 0, 0)
    for line in try run(paths).split(separator: UInt8(ascii: "\n")) {
      let frame = try JSONDecoder().decode(Frame.self, from: Data(line))
      let identifier = CANIdentifier(number: frame.message & 0x1FFF_FFFF, is29Bit: frame.message >> 31 == 1)
      guard let signals = definitions[frame.file]?[identifier] else {
        #expect(frame.signals.isEmpty, "\(frame.file): no message \(identifier.text)")
        continue
      }
      let text = "\(identifier.text)#\(frame.bytes)"
      let received = try #require(CANFrame(candump: Array(text.utf8)))
      frames += 1
      for (name, signal) in signals {
        let place = "\(frame.file) \(name) \(text)"
        let isContained = signal.conditions.allSatisfy { $0.isMet(by: received.packed, count: received.count) }
        #expect(isContained == (frame.signals[name] != nil), "\(place)")
        guard isContained, let expected = frame.signals[name] else { continue }
        compared += 1
        switch signal.reader.content(signal.reader.bits(in: received.packed)) {
        case .value(.string(let value)):
          labels += 1
          #expect(value == visible(expected.text ?? "", limit: 64), "\(place)")
        case .value(.bool(let value)): #expect(value == (expected.number != 0), "\(place)")
        case .value(let value):
          let (number, other) = (try #require(value.number), try #require(expected.number, "\(place)"))
          let tolerance = 1e-9 * max(abs(number), abs(other))
          #expect(number == other || abs(number - other) <= tolerance, "\(place): \(number), not \(other)")
        case .absent(let reason):
          absent += 1
          if reason == CANValueReader.outOfRange {
            let number = try #require(expected.number)
            #expect(signal.property.range?.contains(number) == false, "\(place): \(number)")
          } else if reason == CANValueReader.noNumber {
            #expect(expected.number == nil, "\(place)")
          } else if reason.hasPrefix("no label for") {
            #expect(expected.text == nil, "\(place)")
          } else {
            #expect(reason == visible(expected.text ?? "", limit: 64), "\(place)")
          }
        }
      }
      let missing = frame.signals.keys.filter { signals[$0] == nil }
      #expect(missing.isEmpty, "\(frame.file): \(missing)")
    }
    #expect(frames > 5000 && compared > 20_000 && labels > 100 && absent > 100, "\(frames) \(compared) \(labels) \(absent)")
    print("compared \(compared) values of \(frames) frames with cantools: \(labels) labels, \(absent) without a value")
  }

  private func signals(of bytes: [UInt8]) throws -> [CANIdentifier: Signals] {
    var result: [CANIdentifier: Signals] = [:]
    for message in DBCFile(bytes).messages {
      let multiplexing = DBCMultiplexing(message)
      for signal in message.signals {
        guard let conditions = try? multiplexing.conditions(of: signal),
          var imported = try? ImportedCANSignal(signal, of: message, conditions: conditions)
        else { continue }
        imported.name = "x"
        var problems: [OptionError] = []
        let decoded = try #require(CANSignal(imported.section, &problems), "\(signal.name): \(problems)")
        result[message.identifier, default: [:]][signal.fullName] = decoded
      }
    }
    return result
  }

  /// The output of cantools for these files.
  private func run(_ paths: [String]) throws -> Data {
    let program = Process()
    program.executableURL = URL(fileURLWithPath: try #require(Self.python))
    program.arguments = [Self.tests.appendingPathComponent("Peers/dbc.py").path] + paths
    let output = Pipe()
    program.standardOutput = output
    try program.run()
    let data = output.fileHandleForReading.readDataToEndOfFile()
    program.waitUntilExit()
    #expect(program.terminationStatus == 0)
    return data
  }
}
