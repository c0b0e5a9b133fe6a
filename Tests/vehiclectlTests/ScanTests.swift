// scan: what is listed, and the exit status, if Bluetooth is unavailable.

import Protocols
import Testing
import Varlink

@testable import vehiclectl

@Suite struct ScanTests {
  /// The failure of a scan by a daemon without Bluetooth that sees these serial ports.
  private func scan(_ arguments: String..., ports: [String]) throws -> Failure? {
    let server = try SocketServer { _, parameters in
      let found = (parameters["transport"]?.string == "ble" ? [] : ports).map {
        Contract.Scan.Result(found: .init(transport: "serial", address: $0, name: nil, rssi: nil, kind: nil, time: 0), searching: true)
      }
      let end =
        parameters["transport"]?.string == "serial"
        ? VarlinkReply.message(Contract.Scan.Result(searching: false))
        : VarlinkReply.message(.deviceError(device: "", code: "bluetooth", message: "no system bus"))
      return .send(found.flatMap { VarlinkReply.message($0, continues: true) } + end)
    }
    defer { server.stop() }
    let command = try #require(try VehicleCtl.command(of: ["scan", "-q", "--socket", server.path] + arguments) as? ScanCommand)
    do { try command.perform(Output(command.common)) } catch { return error as? Failure }
    return nil
  }

  @Test func `missing Bluetooth is a failure only if there is nothing to list`() throws {
    #expect(try scan(ports: ["/dev/ttyUSB0"]) == nil && scan("--json", ports: ["/dev/ttyUSB0"]) == nil)
    #expect(try scan("serial", ports: []) == nil)
    #expect(try scan(ports: [])?.exitCode == 1)
    #expect(try scan("ble", ports: ["/dev/ttyUSB0"])?.message == "no system bus")
  }
}
