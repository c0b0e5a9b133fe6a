// bugreport: the recordings of several devices, of which some fail.

import Protocols
import Synchronization
import Testing
import Varlink

@testable import vehiclectl

@Suite struct BugReportTests {
  /// A daemon with these devices, each with the state of its link; `record` replies to Record.
  private func daemon(
    _ links: [(device: String, state: String)], readings: [Contract.Reading] = [],
    record: @escaping @Sendable (_ connection: Int32, _ device: String) -> Answer
  ) throws -> SocketServer {
    let devices = links.map {
      Contract.Device(
        name: $0.device, kind: $0.device == "frames" ? "can" : "obd", state: "polling",
        links: [.init(name: "main", url: "pty", state: $0.state, since: 0)], readings: readings)
    }
    return try SocketServer { connection, method, parameters in
      switch method {
      case VarlinkService.GetInfo.name:
        .send(
          VarlinkReply.message(VarlinkService.GetInfo.Result(vendor: "", product: "vehicled", version: "1", url: "", interfaces: [])))
      case Contract.Diagnose.name: .send(VarlinkReply.message(Contract.Diagnose.Result(findings: [])))
      case Contract.Status.name: .send(VarlinkReply.message(Contract.Status.Result(devices: devices)))
      case Contract.Describe.name: .send(VarlinkReply.message(Contract.Describe.Result(schemas: [])))
      case Contract.Statistics.name: .send(VarlinkReply.message(Contract.Statistics.Result(statistics: [])))
      case Contract.Record.name: record(connection, parameters["device"]?.string ?? "")
      default: .sendAndClose([])
      }
    }
  }

  private static func line(of device: String) -> [UInt8] {
    VarlinkReply.message(Contract.Record.Result(line: "frame of \(device)"), continues: true)
  }

  @Test func `devices are recorded at the same time, with progress`() throws {
    let recorders = Mutex<[(connection: Int32, device: String)]>([])
    let server = try daemon([("ev", "up"), ("van", "up"), ("bus", "down"), ("frames", "up")]) { connection, device in
      // Nothing is sent before both are recorded.
      recorders.withLock {
        $0.append((connection, device))
        guard $0.count == 2 else { return }
        for (connection, device) in $0 { SocketServer.send(connection, Self.line(of: device)) }
      }
      return .nothing
    }
    defer { server.stop() }
    var report = BugReport()
    var shown: [String?] = []
    func connect() throws(Failure) -> Client { try Client(path: server.path, timeout: 15) }
    try report.addDaemonSections(connect(), seconds: 1, progress: { shown.append($0) }, connect: connect)
    let text = report.lines.joined(separator: "\n")
    for device in ["ev", "van"] { #expect(text.contains("== links of \(device), 1 s ==\nframe of \(device)"), "\(text)") }
    #expect(!text.contains("== links of bus") && !text.contains("== links of frames") && text.contains("== device frames"))
    #expect(shown.first == "recording 2 devices: 1 s left" && shown.last == .some(nil))
  }

  @Test func `positions and unusable replies are redacted, and the traffic of a device with a position is omitted`() throws {
    let readings = [
      Contract.Reading(device: "ev", property: "gps-latitude", value: .float(48.1374), unit: "deg"),
      Contract.Reading(device: "ev", property: "last-bad-reply", value: .string("7E8 21 5A 5A 5A 39 39 30 30|")),
      Contract.Reading(device: "ev", property: "speed", value: .float(50), unit: "km/h"),
    ]
    let server = try daemon([("ev", "up")], readings: readings) { _, device in .send(Self.line(of: device)) }
    defer { server.stop() }
    var report = BugReport()
    func connect() throws(Failure) -> Client { try Client(path: server.path, timeout: 15) }
    try report.addDaemonSections(connect(), seconds: 1, progress: { _ in }, connect: connect)
    let text = report.lines.joined(separator: "\n")
    #expect(text.contains("gps-latitude: … deg\nlast-bad-reply: …\nspeed: 50"), "\(text)")
    #expect(!text.contains("48.1374") && !text.contains("5A 5A") && !text.contains("links of"), "\(text)")
    #expect(text.contains("speed_kilometers_per_hour"), "\(text)")
  }

  @Test func `a device that cannot be recorded has the reason in its section, and the others are recorded`() throws {
    let server = try daemon([("car", "up"), ("gone", "up"), ("full", "up"), ("ev", "up")]) { _, device in
      switch device {
      case "car": .send(VarlinkReply.message(.notConnected(device: "car", reason: "link down")))
      case "gone": .sendAndClose(Self.line(of: "gone"))
      default: .send(Self.line(of: device))
      }
    }
    defer { server.stop() }
    var report = BugReport()
    var connections = 0
    func connect() throws(Failure) -> Client {
      connections += 1
      if connections == 3 { throw .closedWithoutReply }
      return try Client(path: server.path, timeout: 15)
    }
    try report.addDaemonSections(Client(path: server.path, timeout: 15), seconds: 1, progress: { _ in }, connect: connect)
    let text = report.lines.joined(separator: "\n")
    #expect(text.contains("== links of car, 1 s ==\n(car is not connected"), "\(text)")
    #expect(text.contains("== links of gone, 1 s ==\nframe of gone\n(vehicled closed the connection"), "\(text)")
    #expect(text.contains("== links of full, 1 s ==\n(vehicled closed the connection without a reply"), "\(text)")
    #expect(text.contains("== links of ev, 1 s ==\nframe of ev"), "\(text)")
  }
}
