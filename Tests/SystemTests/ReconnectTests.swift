// Links that come back at once: a port that is plugged in again, and a network that returns, in a network namespace of its own.

import Foundation
import Testing

extension EndToEnd {
  @Suite("Reconnecting") struct ReconnectTests {
    /// The time until the device's next attempt, in seconds; nil if it does not wait.
    private func delay(_ rig: Rig) -> Double? {
      let devices = try? rig.vehiclectl("status", "ev", "--json").json()["devices"] as? [[String: Any]]
      let next = (devices?.first?["links"] as? [[String: Any]])?.first?["nextAttempt"] as? Double
      return next.map { $0 / 1e6 - Date().timeIntervalSince1970 }
    }

    @Test func `a port that is plugged in again is opened at once`() throws {
      let rig = try Rig()
      let ports = "\(rig.directory)/serial/by-id"
      let (_, link) = try rig.simulator(on: "pty")
      try rig.write("[device.ev]\nkind = \"obd\"\nlink = \"serial:\(ports)/usb-ELM327\"\n")
      let daemon = try rig.daemon()
      defer { withExtendedLifetime(daemon) {} }
      // Later attempts are further apart than the test waits.
      #expect(wait(seconds: 40) { delay(rig).map { $0 > 11 } ?? false }, "\(rig.vehiclectl("status").output)")
      try FileManager.default.createDirectory(atPath: ports, withIntermediateDirectories: true)
      try FileManager.default.createSymbolicLink(
        atPath: "\(ports)/usb-ELM327", withDestinationPath: String(link.dropFirst("serial:".count)))
      #expect(wait { rig.get("ev.rpm") != nil }, "\(rig.vehiclectl("status").output)")
    }

    private static var canMakeNamespaces: Bool {
      geteuid() == 0 && (try? Program("/usr/bin/unshare", ["--net", "ip", "link", "show", "lo"], in: "/").status(within: 5)) == 0
    }

    @Test(.enabled(if: canMakeNamespaces, "only root can make a network namespace, with ip and unshare"))
    func `a network that returns is used at once`() throws {
      let rig = try Rig()
      try rig.write("[device.ev]\nkind = \"obd\"\nlink = \"tcp:10.99.0.1:35000\"\n")
      // The simulator listens on all addresses of the namespace, of which there are none yet.
      let simulator = try Program(
        "/usr/bin/unshare", ["--net", "\(Rig.programs)/vehiclesim", "obd", "--on", "tcp:0.0.0.0:35000"], in: rig.directory)
      defer { simulator.end() }
      #expect(wait { simulator.stdout.contains("\n") }, "\(simulator.stderr)")
      let namespace = "--net=/proc/\(simulator.pid)/ns/net"
      let daemon = try Program(
        "/usr/bin/nsenter",
        [
          namespace, "\(Rig.programs)/vehicled", "--config", rig.configuration, "--socket", rig.socket, "--state",
          "\(rig.directory)/state",
        ], in: rig.directory)
      defer { daemon.end() }
      #expect(wait(seconds: 40) { delay(rig).map { $0 > 11 } ?? false }, "\(rig.vehiclectl("status").output) \(daemon.stderr)")
      func ip(_ arguments: String...) { #expect(rig.run("/usr/bin/nsenter", [namespace, "ip"] + arguments).status == 0) }
      ip("link", "set", "lo", "up")
      ip("address", "add", "10.99.0.1/32", "dev", "lo")
      #expect(wait { rig.get("ev.rpm") != nil }, "\(rig.vehiclectl("status").output)")
    }
  }
}
