// Third-party peers: the PyPI packages `varlink` as the client and `ELM327-emulator` as the adapter.

import CLinux
import Foundation
import Testing

extension WholeHouse {
  @Suite("Third-party peers") struct PeerTests {
    private static let tests = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent().path

    @Test func `the varlink package works with the daemon`() throws {
      let house = try House()
      let (daemon, _) = try house.ev()
      #expect(wait { house.get("battery-voltage") != nil })
      let contract = "\(Self.tests)/../Sources/Varlink/io.vehicled.varlink"
      let outcome = house.run(House.python, ["\(Self.tests)/Peers/contract.py", house.socket, contract])
      #expect(outcome.status == 0, "\(outcome.errors)")
      #expect(outcome.lines == ["introspection", "status", "get", "describe", "call", "errors", "watch", "record", "connect"])
      #expect(daemon.isRunning)
    }

    @Test func `a scenario with public captures of an E-GMP car gives its values`() throws {
      let house = try House()
      let port = try freePort()
      // The emulator loads scenarios from, and logs to, the directory it runs in.
      try FileManager.default.copyItem(atPath: "\(Self.tests)/Peers/egmp.py", toPath: "\(house.directory)/egmp.py")
      let emulator = try Program(
        House.python, ["-m", "elm", "-i", "127.0.0.1", "-n", "\(port)", "-b", "\(house.directory)/elm.out"],
        in: house.directory,
        input: "merge egmp\nscenario egmp\n")
      try house.write("[device.ev]\nkind = \"obd\"\nlink = \"tcp:127.0.0.1:\(port)\"\n")
      let daemon = try house.daemon()
      #expect(wait(seconds: 20) { house.get("rpm") == "4363" }, "\(emulator.complaints)\n\(daemon.complaints)")
      for (property, value) in [
        "rpm-2": "0", "state-of-charge": "55.5", "battery-voltage": "715.7", "battery-current": "0.7", "battery-temperature-max": "1",
        "battery-temperature-min": "-1", "aux-battery-voltage": "12.8", "inverter-voltage": "717", "request": "220101",
      ] {
        #expect(house.get(property) == value, "\(property)")
      }
      // The emulator answers `?` to a response count above 6, and identifies as an STN chip but hangs on STN commands: polling continues
      // without both.
      let polls = Int(house.get("polls") ?? "") ?? 0
      #expect(wait(seconds: 40) { (Int(house.get("polls") ?? "") ?? 0) > polls + 200 }, "\(daemon.complaints)")
      emulator.end()
    }

    @Test func `the emulator's default car is polled directly`() throws {
      let house = try House()
      let port = try freePort()
      let emulator = try Program(
        House.python, ["-m", "elm", "-i", "127.0.0.1", "-n", "\(port)", "-s", "car", "-b", "\(house.directory)/elm.out"],
        in: house.directory, input: "")
      try house.write("[device.car]\nkind = \"obd\"\nlink = \"tcp:127.0.0.1:\(port)\"\n")
      let daemon = try house.daemon()
      for property in ["rpm", "speed", "coolant-temperature", "intake-air-temperature", "vin"] {
        #expect(wait(seconds: 40) { house.get(property) != nil }, "\(property)\n\(emulator.complaints)\n\(daemon.complaints)")
      }
      #expect(house.get("vehicle")?.hasPrefix("standard OBD-II") == true)
      // It identifies as an STN chip but does not respond to STN commands: this is detected once, and polling continues.
      let polls = Int(house.get("polls") ?? "") ?? 0
      #expect(wait(seconds: 60) { (Int(house.get("polls") ?? "") ?? 0) > polls + 400 }, "\(daemon.complaints)")
      #expect(Int(house.get("timeouts") ?? "") ?? 99 <= 2, "\(house.vehiclectl("status", "car").output)")
      #expect(house.get("rpm") != nil && house.get("coolant-temperature") != nil)
      emulator.end()
    }

    /// A free port.
    private func freePort() throws -> UInt16 {
      let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
      defer { close(descriptor) }
      var address = sockaddr_in()
      address.sin_family = sa_family_t(AF_INET)
      address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
      var length = socklen_t(MemoryLayout<sockaddr_in>.size)
      let bound = withUnsafeMutablePointer(to: &address) {
        $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
          bind(descriptor, $0, length) == 0 && getsockname(descriptor, $0, &length) == 0
        }
      }
      try #require(bound)
      return UInt16(bigEndian: address.sin_port)
    }
  }
}
