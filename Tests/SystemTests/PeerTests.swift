// Third-party peers: the PyPI packages `varlink` as the client and `ELM327-emulator` as the adapter, and gpsd.

import CLinux
import Foundation
import Testing

extension EndToEnd {
  @Suite("Third-party peers") struct PeerTests {
    private static let tests = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent().path

    @Test func `the varlink package works with the daemon`() throws {
      let rig = try Rig()
      let (daemon, _) = try rig.ev()
      #expect(wait { rig.get("battery-voltage") != nil })
      let contract = "\(Self.tests)/../Sources/Varlink/io.vehicled.varlink"
      let outcome = rig.run(Rig.python, ["\(Self.tests)/Peers/contract.py", rig.socket, contract])
      #expect(outcome.status == 0, "\(outcome.errors)")
      #expect(outcome.lines == ["introspection", "status", "get", "describe", "call", "errors", "watch", "record", "connect"])
      #expect(daemon.isRunning)
    }

    @Test func `a scenario with public captures of an E-GMP car gives its values`() throws {
      let rig = try Rig()
      let port = try freePort()
      // The emulator loads scenarios from, and logs to, the directory it runs in.
      try FileManager.default.copyItem(atPath: "\(Self.tests)/Peers/egmp.py", toPath: "\(rig.directory)/egmp.py")
      let emulator = try Program(
        Rig.python, ["-m", "elm", "-i", "127.0.0.1", "-n", "\(port)", "-b", "\(rig.directory)/elm.out"],
        in: rig.directory,
        input: "merge egmp\nscenario egmp\n")
      try rig.write("[device.ev]\nkind = \"obd\"\nlink = \"tcp:127.0.0.1:\(port)\"\n")
      let daemon = try rig.daemon()
      #expect(wait(seconds: 20) { rig.get("rpm") == "4363" }, "\(emulator.stderr)\n\(daemon.stderr)")
      for (property, value) in [
        "rpm-2": "0", "state-of-charge": "55.5", "battery-voltage": "715.7", "battery-current": "0.7", "battery-temperature-max": "1",
        "battery-temperature-min": "-1", "aux-battery-voltage": "12.8", "inverter-voltage": "717", "request": "220101",
      ] {
        #expect(rig.get(property) == value, "\(property)")
      }
      // The emulator answers `?` to a frame count above 6, and identifies as an STN chip but hangs on STN commands: polling continues
      // without both.
      let polls = Int(rig.get("polls") ?? "") ?? 0
      #expect(wait(seconds: 40) { (Int(rig.get("polls") ?? "") ?? 0) > polls + 200 }, "\(daemon.stderr)")
      emulator.end()
    }

    @Test func `gpsd with an NMEA receiver gives the position`() throws {
      let rig = try Rig()
      let receiver = try Program(Rig.python, ["\(Self.tests)/Peers/nmea.py"], in: rig.directory, input: "fix\n")
      try #require(wait { receiver.stdout.contains("\n") }, "\(receiver.stderr)")
      let source = "tcp://127.0.0.1:\(receiver.stdout.prefix { $0 != "\n" })"
      let port = try freePort()
      let start = { try Program("/usr/sbin/gpsd", ["-N", "-n", "-S", "\(port)", source], in: rig.directory) }
      let first = try start()
      try rig.write("[device.gps]\nkind = \"position\"\nlink = \"tcp:127.0.0.1:\(port)\"\n")
      let daemon = try rig.daemon()
      #expect(wait(seconds: 40) { rig.get("gps.altitude") != nil }, "\(first.stderr)\n\(daemon.stderr)")
      for (property, value) in [
        ("fix", "3d"), ("latitude", "63.43"), ("longitude", "10.39"), ("altitude", "123"), ("speed", "18.5"), ("track", "90"),
        ("satellites-used", "8"), ("satellites-seen", "8"), ("receiver", source),
      ] {
        #expect(wait { rig.get("gps.\(property)") == value }, "\(property): \(rig.get("gps.\(property)") ?? "none")")
      }
      #expect(rig.get("gps.gpsd-version") != nil && rig.get("gps.bad-messages") == "0")
      receiver.writeInput("void\n")
      #expect(wait { rig.get("gps.fix") == "none" } && rig.vehiclectl("get", "gps.latitude").errors.contains("no fix"))
      receiver.writeInput("fix\n")
      #expect(wait { rig.get("gps.latitude") == "63.43" })
      // gpsd restarts, and then loses its receiver. SIGTERM is blocked in programs that the tests start, unless they unblock it.
      first.end(SIGKILL)
      #expect(wait { rig.get("gps.latitude") == nil })
      let second = try start()
      #expect(wait(seconds: 40) { rig.get("gps.latitude") == "63.43" }, "\(second.stderr)")
      receiver.end(SIGKILL)
      #expect(wait(seconds: 20) { rig.vehiclectl("get", "gps.latitude").errors.contains("gpsd has no GPS receiver") })
      second.end(SIGKILL)
    }

    @Test func `the emulator's default car is polled directly`() throws {
      let rig = try Rig()
      let port = try freePort()
      let emulator = try Program(
        Rig.python, ["-m", "elm", "-i", "127.0.0.1", "-n", "\(port)", "-s", "car", "-b", "\(rig.directory)/elm.out"],
        in: rig.directory, input: "")
      try rig.write("[device.car]\nkind = \"obd\"\nlink = \"tcp:127.0.0.1:\(port)\"\n")
      let daemon = try rig.daemon()
      for property in ["rpm", "speed", "coolant-temperature", "intake-air-temperature", "vin"] {
        #expect(wait(seconds: 40) { rig.get(property) != nil }, "\(property)\n\(emulator.stderr)\n\(daemon.stderr)")
      }
      #expect(rig.get("vehicle")?.hasPrefix("standard OBD-II") == true)
      // It identifies as an STN chip but does not respond to STN commands: this is detected once, and polling continues.
      let polls = Int(rig.get("polls") ?? "") ?? 0
      #expect(wait(seconds: 60) { (Int(rig.get("polls") ?? "") ?? 0) > polls + 400 }, "\(daemon.stderr)")
      #expect(Int(rig.get("timeouts") ?? "") ?? 99 <= 2, "\(rig.vehiclectl("status", "car").output)")
      #expect(rig.get("rpm") != nil && rig.get("coolant-temperature") != nil)
      emulator.end()
    }
  }
}
