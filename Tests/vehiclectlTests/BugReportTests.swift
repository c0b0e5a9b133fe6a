// bugreport: the recordings of several devices.

import Protocols
import Synchronization
import Testing
import Varlink

@testable import vehiclectl

@Suite struct BugReportTests {
  @Test func `devices are recorded at the same time, with progress`() throws {
    let recorders = Mutex<[(connection: Int32, device: String)]>([])
    let server = try SocketServer { connection, method, parameters in
      switch method {
      case VarlinkService.GetInfo.name:
        return .send(
          VarlinkReply.message(VarlinkService.GetInfo.Result(vendor: "", product: "vehicled", version: "1", url: "", interfaces: [])))
      case Contract.Diagnose.name: return .send(VarlinkReply.message(Contract.Diagnose.Result(findings: [])))
      case Contract.Status.name:
        let devices = [("ev", "up"), ("van", "up"), ("bus", "down"), ("car", "up")].map {
          Contract.Device(name: $0, kind: "obd", state: "polling", links: [.init(name: "main", url: "pty", state: $1, since: 0)])
        }
        return .send(VarlinkReply.message(Contract.Status.Result(devices: devices)))
      case Contract.Describe.name: return .send(VarlinkReply.message(Contract.Describe.Result(schemas: [])))
      case Contract.Statistics.name: return .send(VarlinkReply.message(Contract.Statistics.Result(statistics: [])))
      case Contract.Record.name where parameters["device"]?.string == "car":
        return .send(VarlinkReply.message(.notConnected(device: "car", reason: "link down")))
      case Contract.Record.name:
        // Nothing is sent before both are recorded.
        recorders.withLock {
          $0.append((connection, parameters["device"]?.string ?? ""))
          guard $0.count == 2 else { return }
          for (connection, device) in $0 {
            SocketServer.send(connection, VarlinkReply.message(Contract.Record.Result(line: "frame of \(device)"), continues: true))
          }
        }
        return .nothing
      default: return .sendAndClose([])
      }
    }
    defer { server.stop() }
    var report = BugReport()
    var shown: [String?] = []
    func connect() throws(Failure) -> Client { try Client(path: server.path, timeout: 15) }
    try report.addDaemonSections(connect(), seconds: 1, progress: { shown.append($0) }, connect: connect)
    let text = report.lines.joined(separator: "\n")
    for device in ["ev", "van"] { #expect(text.contains("== links of \(device), 1 s ==\nframe of \(device)\n"), "\(text)") }
    #expect(text.contains("== links of car, 1 s ==\n(car is not connected") && !text.contains("== links of bus"))
    #expect(shown.first == "recording 3 devices: 1 s left" && shown.last == .some(nil))
  }
}
