// Mocks for the driving tests: a car behind a daemon's socket, a pseudo-terminal, a stick whose events are letters.

import CLinux
import Glibc
import Protocols
import Synchronization
import Varlink

@testable import vehiclectl

/// A mock car that records calls; a closure of the test replies.
final class DrivenCar: Sendable {
  struct ReceivedCall: Equatable {
    var action: String
    var roll: Double?
    var pitch: Double?
    var hasLease: Bool
  }

  struct Record {
    var calls: [ReceivedCall] = []
    var holder: Int32 = -1
    /// The connection of Watch.
    var watcher: Int32 = -1
    /// The connection of the last Stop.
    var stopper: Int32 = -1
    /// The connection of the last Continue.
    var continuer: Int32 = -1
    var leases = 0
    /// Setpoints under the last lease.
    var tilts = 0
    var watched: [String] = []
    /// The button changes, in order.
    var presses: [String] = []
  }

  static let schema = Contract.Schema(
    device: "rover", kind: "rc-car",
    Schema(
      properties: [Property("left-button", .bool, access: .write, help: ""), Property("right-button", .bool, access: .write, help: "")],
      actions: [DriveSchemaTests.tilt, Action("continue", motion: true, help: ""), Action("stop", help: "")]))
  private static let snapshot = Contract.Device(
    name: "rover", kind: "rc-car", state: "ready",
    readings: ["left-button", "right-button"].map { Contract.Reading(device: "rover", property: $0) })
  static let driveSchema = DriveSchema(device: "rover", schema)
  static let answered = Answer.send(VarlinkReply.message(Contract.Call.Result(Report())))

  private let record = Mutex(Record())

  // The copy shares no memory with the original: ThreadSanitizer does not see the reference counts that make it safe to share it.
  var calls: [ReceivedCall] { record.withLock { $0.calls.map { $0 } } }
  var tilts: Int { record.withLock { $0.tilts } }
  var leases: Int { record.withLock { $0.leases } }
  var watched: [String] { record.withLock { $0.watched } }

  var presses: [String] { record.withLock { $0.presses } }

  func endLease(_ reason: String) {
    SocketServer.send(record.withLock { $0.holder }, VarlinkReply.message(.leaseLost(device: "rover", reason: reason)))
  }

  /// Replies to the last Stop.
  func confirmStop() {
    SocketServer.send(record.withLock { $0.stopper }, VarlinkReply.message(Contract.Call.Result(Report())))
  }

  /// Replies to the last Continue.
  func confirmContinue() {
    SocketServer.send(record.withLock { $0.continuer }, VarlinkReply.message(Contract.Call.Result(Report())))
  }

  func answer(_ connection: Int32, _ method: String, _ parameters: JSON, then: (ReceivedCall, DrivenCar) -> Answer) -> Answer {
    switch method {
    case Contract.Describe.name: return .send(VarlinkReply.message(Contract.Describe.Result(schemas: [Self.schema])))
    case Contract.Drive.name:
      let lease = record.withLock {
        $0.holder = connection
        $0.leases += 1
        $0.tilts = 0
        return $0.leases
      }
      return .send(VarlinkReply.message(Contract.Drive.Result(lease: "token\(lease)", state: "driving"), continues: true))
    case Contract.Watch.name:
      if case .array(let names)? = parameters["references"] { record.withLock { $0.watched = names.compactMap(\.string) } }
      record.withLock { $0.watcher = connection }
      return .send(VarlinkReply.message(Contract.Watch.Result(sequence: 0, snapshot: [Self.snapshot]), continues: true))
    case Contract.Set.name:
      guard let name = parameters["property"]?.string, case .bool(let isDown)? = parameters["value"]?["bool"] else {
        return .sendAndClose([])
      }
      record.withLock { $0.presses.append("\(name) \(isDown ? "on" : "off")") }
      if name == "right-button" {
        return .send(VarlinkReply.message(.deviceError(device: "rover", code: "no-buttons", message: "the car wants no buttons now")))
      }
      let reading = Contract.Reading(device: "rover", property: name, value: .bool(isDown))
      // As the daemon does: the snapshot may be processed after the reply, the change comes after the snapshot.
      SocketServer.send(
        record.withLock { $0.watcher }, VarlinkReply.message(Contract.Watch.Result(sequence: 1, changes: [reading]), continues: true))
      return .send(VarlinkReply.message(Contract.Set.Result(reading: reading)))
    case Contract.Call.name:
      func angle(_ name: String) -> Double? {
        switch parameters["arguments"]?[name]?["float"] {
        case .float(let value): value
        case .int(let value): Double(value)
        default: nil
        }
      }
      let call = ReceivedCall(
        action: parameters["action"]?.string ?? "", roll: angle("roll"), pitch: angle("pitch"),
        hasLease: parameters["lease"]?.string?.hasPrefix("token") == true)
      record.withLock {
        $0.calls.append(call)
        if call.action == "stop" { $0.stopper = connection }
        if call.action == "continue" { $0.continuer = connection }
        if call.action == "tilt", parameters["lease"]?.string == "token\($0.leases)" { $0.tilts += 1 }
      }
      return then(call, self)
    default: return .sendAndClose([])
    }
  }
}

/// A pseudo-terminal.
final class PTY: Sendable {
  private let master: Mutex<Int32>
  let slave: Int32

  init() throws {
    var (master, slave): (Int32, Int32) = (-1, -1)
    var window = winsize(ws_row: 20, ws_col: 60, ws_xpixel: 0, ws_ypixel: 0)
    guard openpty(&master, &slave, nil, nil, &window) == 0 else { throw Failure.other("the test has no pty") }
    for end in [master, slave] { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
    self.master = Mutex(master)
    self.slave = slave
  }

  deinit {
    hangUp()
    close(slave)
  }

  /// The path of the device.
  var path: String {
    var name = [CChar](repeating: 0, count: 128)
    guard ttyname_r(slave, &name, name.count) == 0 else { return "" }
    return String(decoding: name.prefix { $0 != 0 }.map { UInt8(truncatingIfNeeded: $0) }, as: UTF8.self)
  }

  /// The output since the last read.
  func shown() -> String {
    master.withLock { master in
      var entry = pollfd(fd: master, events: Int16(POLLIN), revents: 0)
      var bytes = [UInt8](repeating: 0, count: 65_536)
      guard poll(&entry, 1, 0) > 0 else { return "" }
      return String(decoding: bytes[..<max(0, read(master, &bytes, bytes.count))], as: UTF8.self)
    }
  }

  func type(_ text: String) { _ = master.withLock { Output.write(all: Array(text.utf8)[...], to: $0) } }

  func hangUp() {
    master.withLock {
      if $0 >= 0 { close($0) }
      $0 = -1
    }
  }

  var echoes: Bool {
    var state = termios()
    return tcgetattr(slave, &state) == 0 && state.c_lflag & tcflag_t(ECHO) != 0
  }

  var isRaw: Bool {
    var state = termios()
    return tcgetattr(slave, &state) == 0 && state.c_lflag & tcflag_t(ICANON | ECHO) == 0
  }
}

/// A stick whose events are letters on a pipe.
final class LetterStick: GameController {
  let name = "letters"
  let descriptor: Int32
  var isArmed = false
  private var forward = 0.0
  var deflection: Deflection { isArmed ? Deflection(forward: forward) : Deflection() }

  init(_ descriptor: Int32) { self.descriptor = descriptor }

  func read() throws(Failure) -> [GamepadMapping.Press] {
    var bytes = [UInt8](repeating: 0, count: 16)
    let count = Glibc.read(descriptor, &bytes, bytes.count)
    guard count > 0 else { throw .other("letters is gone") }
    return bytes[..<count].compactMap { byte in
      switch byte {
      case UInt8(ascii: "r"): isArmed = true
      case UInt8(ascii: "f"): forward = 1
      case UInt8(ascii: "g"): return .go
      case UInt8(ascii: "s"): return .stop
      default: return .end
      }
      return nil
    }
  }
}
