// Cars behind a simulated CAN adapter (slcan), read by the real daemon over TCP and a pseudo-terminal.

import CLinux
import Foundation
import Testing

extension EndToEnd {
  @Suite("CAN adapters") struct CANTests {
    /// A daemon with a car behind a CAN adapter.
    private func car(_ rig: Rig, _ arguments: [String], on place: String = "slcan:tcp:127.0.0.1:0", options: String = "") throws -> String {
      let program = try rig.start("vehiclesim", ["obd", "--on", place] + arguments)
      try #require(wait { program.stdout.contains("\n") }, "the simulator prints nothing: \(program.stderr)")
      let link = program.stdout.split(separator: "\n").first.map(String.init) ?? ""
      try rig.write("[device.car]\nkind = \"obd\"\nlink = \"\(link)\"\nbit-rate = 500000\n\(options)\n")
      _ = try rig.daemon()
      return link
    }

    @Test(arguments: ["slcan:tcp:127.0.0.1:0", "slcan:pty"]) func `an electric car is polled`(_ place: String) throws {
      let rig = try Rig()
      let link = try car(rig, [], on: place)
      #expect(link.hasPrefix(place.hasSuffix("pty") ? "slcan:serial:/dev/pts/" : "slcan:tcp:127.0.0.1:"), "\(link)")
      try #require(wait(seconds: 20) { rig.get("rpm") != nil && rig.get("odometer") != nil }, "\(rig.vehiclectl("status"))")
      let status = rig.vehiclectl("status")
      #expect(status.status == 0 && status.output.hasPrefix("car  polling"), "\(status)")
      #expect(rig.get("vehicle") == "electric Hyundai or Kia (e-gmp)" && rig.get("protocol") == "ISO 15765-4 (CAN 11 bit, 500 kbit/s)")
      #expect(rig.get("adapter") == "slcan V1013" && rig.get("state-of-charge-display") != nil && rig.get("odometer") != nil)
      #expect(rig.vehiclectl("dtc").status == 0)
    }

    @Test(arguments: ["slcan:tcp:127.0.0.1:0", "tcp:127.0.0.1:0"]) func `an ID.4 is recognised by its VIN`(_ place: String) throws {
      let rig = try Rig()
      let program = try rig.start("vehiclesim", ["obd", "--on", place, "--car", "vw-id"])
      try #require(wait { program.stdout.contains("\n") }, "the simulator prints nothing: \(program.stderr)")
      let link = program.stdout.split(separator: "\n").first.map(String.init) ?? ""
      try rig.write("[device.car]\nkind = \"obd\"\nlink = \"\(link)\"\n")
      _ = try rig.daemon()
      try #require(wait(seconds: 20) { rig.get("battery-voltage") != nil && rig.get("odometer") != nil }, "\(rig.vehiclectl("status"))")
      #expect(rig.get("vehicle")?.hasPrefix("Volkswagen MEB") == true && rig.get("speed") != nil)
    }

    @Test(arguments: [[], ["--fault", "no-broadcasts"]]) func `trouble codes of several ECUs are read and cleared`(_ faults: [String])
      throws
    {
      let rig = try Rig()
      _ = try car(rig, ["--car", "petrol", "--key", "on@0"] + faults, options: "vehicle = \"generic\"")
      try #require(wait { rig.get("mil") == "on" })
      #expect(wait { rig.get("vin") != nil })
      let codes = try rig.vehiclectl("dtc", "--json").json()["codes"] as? [[String: Any]] ?? []
      #expect(codes.compactMap { $0["code"] as? String } == ["P0133", "P0171", "P0420", "P0715", "P1899-98", "U0121-87"])
      let cleared = rig.vehiclectl("dtc", "clear", "--yes", "--json")
      #expect((try cleared.json()["results"] as? [[String: Any]])?.compactMap { $0["result"] as? String } == ["cleared", "cleared"])
    }

    @Test func `an interface that cannot be used is an error with a remedy`() throws {
      let rig = try Rig()
      let missing = try rig.start("vehiclesim", ["obd", "--on", "can:can99"])
      #expect(missing.status(within: 10) == 1)
      // On a kernel with CAN, and on one without it.
      #expect(missing.stderr.contains("there is no interface can99") || missing.stderr.contains("modprobe can-raw"), "\(missing.stderr)")
      for (arguments, text) in [
        (["--on", "can:"], "write can:INTERFACE"), (["--on", "can:can99", "--fault", "silent"], "fault of a slcan adapter"),
        (["--on", "can:can99", "--name", "x"], "--name is for adapters"),
      ] {
        let program = try rig.start("vehiclesim", ["obd"] + arguments)
        #expect(program.status(within: 10) == 2 && program.stderr.contains(text), "\(program.stderr)")
      }
    }

    @Test func `with --can-socket the daemon passes one socket, or the reason why there is none, and exits`() throws {
      var ends: [CInt] = [-1, -1]
      #expect(socketpair(AF_UNIX, CInt(SOCK_SEQPACKET.rawValue | SOCK_CLOEXEC.rawValue), 0, &ends) == 0)
      defer { for end in ends { close(end) } }
      let process = Process()
      process.executableURL = URL(fileURLWithPath: "\(Rig.programs)/vehicled")
      process.arguments = ["--can-socket"]
      process.standardInput = FileHandle(fileDescriptor: ends[1])
      try process.run()
      process.waitUntilExit()
      var code: Int32 = -1
      var descriptor: CInt = -1
      #expect(process.terminationStatus == 0 && clinux_receive(ends[0], &code, 4, &descriptor) == 4)
      let own = clinux_can_socket()
      #expect(code == -min(0, own) && (descriptor >= 0) == (own >= 0))
      for socket in [descriptor, own] where socket >= 0 { close(socket) }
    }

    @Test func `the doctor names the reason once why a link is down`() throws {
      let rig = try Rig()
      // Accepts connections, and sends nothing.
      let listener = socket(AF_INET, CInt(SOCK_STREAM.rawValue), 0)
      defer { close(listener) }
      var address = sockaddr_in(
        sin_family: sa_family_t(AF_INET), sin_port: 0, sin_addr: in_addr(s_addr: in_addr_t(0x7F00_0001).bigEndian),
        sin_zero: (0, 0, 0, 0, 0, 0, 0, 0))
      var length = socklen_t(MemoryLayout<sockaddr_in>.size)
      let isBound = withUnsafeMutablePointer(to: &address) {
        $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
          bind(listener, $0, length) == 0 && listen(listener, 16) == 0 && getsockname(listener, $0, &length) == 0
        }
      }
      #expect(isBound)
      try rig.write("[device.car]\nkind = \"obd\"\nlink = \"slcan:tcp:127.0.0.1:\(UInt16(bigEndian: address.sin_port))\"\n")
      _ = try rig.daemon()
      let line = { rig.vehiclectl("doctor").output.split(separator: "\n").first { $0.contains("car slcan:") }.map(String.init) ?? "" }
      #expect(
        wait { line().contains(": down: the CAN adapter does not respond; check its power, its baud rate, and that it speaks slcan") })
      #expect(
        wait { line().hasSuffix(": down: the CAN adapter does not respond; check its power, its baud rate, and that it speaks slcan") },
        "\(line())")
    }

    @Test func `a wrong bit rate is a fault with a remedy`() throws {
      let rig = try Rig()
      let program = try rig.start("vehiclesim", ["obd", "--on", "slcan:tcp:127.0.0.1:0"])
      try #require(wait { program.stdout.contains("\n") })
      let link = program.stdout.split(separator: "\n").first.map(String.init) ?? ""
      try rig.write("[device.car]\nkind = \"obd\"\nlink = \"\(link)\"\nbit-rate = 250000\n")
      _ = try rig.daemon()
      #expect(wait { rig.vehiclectl("doctor").output.contains("check bit-rate (250000)") }, "\(rig.vehiclectl("doctor"))")
    }
  }
}
