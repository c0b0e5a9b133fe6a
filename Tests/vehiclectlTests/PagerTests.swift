// The pager of `status`: which one is used and when, on a pseudo-terminal of 20 lines.

import Protocols
import Testing
import Varlink

@testable import vehiclectl

@Suite struct PagerTests {
  private static let properties = (1...40).map { Property("value-\($0)", .int, group: .drive, help: "") }

  /// Runs `status ARGUMENTS` against a daemon with a device of 40 properties. Returns its exit status and the lines shown.
  private func status(_ arguments: [String], pager: String) throws -> (status: Int32, lines: [Substring]) {
    let server = try SocketServer { method, _ in
      let readings = Self.properties.map { Contract.Reading(device: "ev", property: $0.name, value: .int(1), age: 0) }
      switch method {
      case Contract.Describe.name:
        let schema = Contract.Schema(device: "ev", kind: "obd", Schema(properties: Self.properties, actions: []))
        return .send(VarlinkReply.message(Contract.Describe.Result(schemas: [schema])))
      case Contract.Log.name: return .send(VarlinkReply.message(Contract.Log.Result(records: [])))
      default:
        let ev = Contract.Device(name: "ev", kind: "obd", state: "polling", readings: readings)
        return .send(VarlinkReply.message(Contract.Status.Result(devices: [ev])))
      }
    }
    defer { server.stop() }
    let environment = ["VEHICLECTL_PAGER": pager, "PATH": "/usr/bin:/bin"]
    let end = try Program.run(["status", "--socket", server.path] + arguments, on: try PTY(), environment: environment)
    return (end.status, end.shown.split(separator: "\r\n"))
  }

  @Test func `output that is longer than the terminal is shown in the chosen pager`() throws {
    let long = try status(["--all", "ev"], pager: "sed s/^/paged:/")
    #expect(long.status == 0 && long.lines.count > 40 && long.lines.allSatisfy { $0.hasPrefix("paged:") }, "\(long)")
    let short = try status([], pager: "sed s/^/paged:/")
    #expect(short.status == 0 && !short.lines.isEmpty && !short.lines.contains { $0.hasPrefix("paged:") }, "\(short)")
    let plain = try status(["--all", "--no-pager", "ev"], pager: "sed s/^/paged:/")
    #expect(plain.lines.count > 40 && !plain.lines.contains { $0.hasPrefix("paged:") }, "\(plain)")
  }

  @Test(arguments: ["", "cat", "/nonexistent/pager"]) func `without a pager the output is printed whole`(_ pager: String) throws {
    let end = try status(["--all", "ev"], pager: pager)
    #expect(end.status == 0 && end.lines.count > 40 && end.lines.contains { $0.contains("value-40") }, "\(end)")
  }

  @Test func `a pager that ends early is no error`() throws {
    let end = try status(["--all", "ev"], pager: "head -n 3")
    #expect(end.status == 0 && end.lines.count == 3, "\(end)")
  }
}
