// Mocks for the tests of a throttle: a board behind a daemon's socket, a keyboard whose events are letters.

import CLinux
import Glibc
import Protocols
import Synchronization
import Varlink

@testable import vehiclectl

/// A mock board that records setpoints; a closure of the test replies.
final class DrivenBoard: Sendable {
  /// A setpoint: the property and its value; the lease is checked.
  struct SetPoint: Equatable {
    var property: String
    var value: Double
  }

  private struct Record {
    var values: [SetPoint] = []
    var holder: Int32 = -1
    /// The connection of the last setpoint.
    var driver: Int32 = -1
  }

  static let schema = Schema(properties: [
    Property("speed", .float, unit: "km/h", group: .drive, rank: .headline, help: ""),
    Property("motor-current", .float, unit: "A", group: .drive, rank: .main, help: ""),
    Property("mosfet-temperature", .float, unit: "°C", group: .temperatures, rank: .main, help: ""),
    Property("target-current", .float, unit: "A", range: -10...10, access: .motion, group: .drive, help: ""),
    Property("brake-current", .float, unit: "A", range: 0...10, access: .motion, group: .drive, help: ""),
  ])
  static let described = Contract.Schema(device: "board", kind: "longboard", schema)
  static let answered = Answer.send(
    VarlinkReply.message(Contract.Set.Result(reading: Contract.Reading(device: "board", property: "target-current", value: .float(0)))))

  private let record = Mutex(Record())

  var values: [SetPoint] { record.withLock { $0.values } }
  var driver: Int32 { record.withLock { $0.driver } }
  /// The largest throttle so far.
  var peak: Double { values.filter { $0.property == "target-current" }.map(\.value).max() ?? 0 }

  func endLease(_ reason: String) {
    SocketServer.send(record.withLock { $0.holder }, VarlinkReply.message(.leaseLost(device: "board", reason: reason)))
  }

  func answer(_ connection: Int32, _ method: String, _ parameters: JSON, then: (SetPoint, DrivenBoard) -> Answer) -> Answer {
    switch method {
    case Contract.Describe.name: return .send(VarlinkReply.message(Contract.Describe.Result(schemas: [Self.described])))
    case Contract.Drive.name:
      record.withLock { $0.holder = connection }
      return .send(VarlinkReply.message(Contract.Drive.Result(lease: "token", state: "driving"), continues: true))
    case Contract.Watch.name:
      func reading(_ name: String, _ value: Double, _ unit: String) -> Contract.Reading {
        Contract.Reading(device: "board", property: name, value: .float(value), unit: unit, age: 0)
      }
      let board = Contract.Device(
        name: "board", kind: "longboard", state: "driving",
        readings: [
          reading("speed", 12.5, "km/h"), reading("motor-current", 3.9, "A"), reading("mosfet-temperature", 41, "°C"),
          Contract.Reading(device: "board", property: "target-current", reason: "no setpoint"),
        ])
      return .send(VarlinkReply.message(Contract.Watch.Result(sequence: 0, snapshot: [board]), continues: true))
    case Contract.Set.name:
      guard let property = parameters["property"]?.string, parameters["lease"]?.string == "token" else { return .sendAndClose([]) }
      let value: Double =
        switch parameters["value"]?["float"] {
        case .float(let value): value
        case .int(let value): Double(value)
        default: .nan
        }
      let setPoint = SetPoint(property: property, value: value)
      record.withLock {
        $0.values.append(setPoint)
        $0.driver = connection
      }
      return then(setPoint, self)
    default: return .sendAndClose([])
    }
  }
}

/// A keyboard whose events are letters on a pipe: `F` and `f` press and release the forward key.
final class LetterKeyboard: Keyboard {
  let descriptors: [Int32]
  private var isForwardDown = false

  init(_ descriptor: Int32) { descriptors = [descriptor] }

  func isDown(_ direction: Steering.Direction) -> Bool { direction == .forward && isForwardDown }

  func read() throws(Failure) {
    var bytes = [UInt8](repeating: 0, count: 16)
    let count = Glibc.read(descriptors[0], &bytes, bytes.count)
    guard count > 0 else { throw .other("letters is gone") }
    for byte in bytes[..<count] { isForwardDown = byte == UInt8(ascii: "F") }
  }
}
