// Third-party peers: the PyPI packages `varlink` as the client, `ELM327-emulator` as the adapter, `python-can` and `can-isotp` as the client of
// a CAN adapter, `udsoncan` as an ECU, and gpsd.

import CLinux
import Foundation
import Testing

extension EndToEndServices {
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
        #expect(wait { rig.get(property) == value }, "\(property)")
      }
      // The emulator answers `?` to a frame count above 6, and identifies as an STN chip but hangs on STN commands: polling continues
      // without both.
      let polls = Int(rig.get("polls") ?? "") ?? 0
      #expect(wait(seconds: 40) { (Int(rig.get("polls") ?? "") ?? 0) > polls + 200 }, "\(daemon.stderr)")
      emulator.end()
    }

    @Test(arguments: ["slcan:pty", "slcan:tcp:127.0.0.1:0"])
    func `python-can reads a car through the simulated CAN adapter`(_ place: String) throws {
      let rig = try Rig()
      let (_, link) = try rig.simulator(on: place)
      let channel = link.replacing("slcan:serial:", with: "").replacing("slcan:tcp:", with: "socket://")
      let outcome = rig.run(Rig.python, ["\(Self.tests)/Peers/slcan_client.py", channel])
      #expect(
        outcome.lines == ["version (10, 13)", "serial number A123", "response 7E8#06410008180001AA", "record 62 bytes, 620101"],
        "\(outcome.lines) \(outcome.errors)")
    }

    @Test func `an ECU of can-isotp and udsoncan is polled over slcan`() throws {
      let rig = try Rig()
      let ecu = try Program(Rig.python, ["-u", "\(Self.tests)/Peers/uds_ecu.py"], in: rig.directory, input: "")
      try #require(wait(seconds: 20) { ecu.stdout.contains("\n") }, "\(ecu.stderr)")
      try rig.write(
        """
        [device.car]
        kind = "obd"
        link = "slcan:tcp:127.0.0.1:\(ecu.stdout.prefix { $0 != "\n" })"
        vehicle = "generic"
        [device.car.signal.last-byte]
        request = "22D001"
        header = "7E0"
        value = "CV"
        length = 100
        [device.car.signal.late]
        request = "22D002"
        header = "7E0"
        value = "A"
        """)
      let daemon = try rig.daemon()
      for (property, value) in [
        "rpm": "1726", "speed": "50", "coolant-temperature": "83", "vin": "WVWZZZ1KZAW000001", "vehicle": "standard OBD-II (7E8)",
        // The response has 100 bytes, in blocks of two frames that are 2 ms apart.
        "last-byte": "99",
        // The response follows half a second after a "response pending".
        "late": "42",
      ] {
        #expect(wait(seconds: 20) { rig.get(property) == value }, "\(property): \(rig.get(property) ?? "none")\n\(daemon.stderr)")
      }
      #expect(rig.vehiclectl("do", "car.query", "22F190F190F190", "7E0").status == 0)
      let rejected = rig.vehiclectl("do", "car.query", "22FFFF", "7E0")
      #expect((rejected.output + rejected.errors).contains("31"), "\(rejected)")
      ecu.end(SIGKILL)
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
