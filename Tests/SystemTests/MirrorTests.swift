// A smart mirror end to end: the real programs, a message bus, and a mock BlueZ with a simulated ESP32.

import Foundation
import Testing

extension EndToEnd {
  @Suite("Mirror") struct MirrorTests {
    /// A simulated mirror and a daemon.
    private struct MirrorRig {
      static let key = "0123456789ABCDEF"
      static let iv = "hex:46454443424139383736353433323130"
      let rig: Rig
      let bus: Program
      let environment: [String: String]
      let mirror: Program
      let daemon: Program

      init(_ arguments: String..., options: String = "username = \"Ada\"") throws {
        rig = try Rig()
        (bus, environment) = try rig.bus()
        for (name, text) in [("key", "ascii:\(Self.key)\n"), ("iv", Self.iv)] {
          try rig.write(text, to: "\(rig.directory)/\(name)")
          try #require(chmod("\(rig.directory)/\(name)", 0o600) == 0)
        }
        mirror = try rig.start(
          "vehiclesim",
          [
            "mirror", "--on", "ble:unix:path=\(rig.directory)/bus", "-v", "--key-file", "\(rig.directory)/key", "--iv-file",
            "\(rig.directory)/iv",
          ] + arguments)
        let (program, directory) = (mirror, rig.directory)
        try #require(wait { program.stdout.contains("\n") }, "the simulator prints nothing: \(program.stderr)")
        #expect(program.stdout.contains("ble:ESP32-BLE-Server"))
        try rig.write(Self.configuration(directory, options))
        daemon = try rig.daemon(environment: environment)
      }

      static func configuration(_ directory: String, _ options: String) -> String {
        """
        [device.mirror]
        kind = "mirror"
        link = "ble:ESP32-BLE-Server"
        key-file = "\(directory)/key"
        iv-file = "\(directory)/iv"
        \(options)

        """
      }

      var state: String {
        let devices = (try? rig.vehiclectl("status", "mirror", "--json").json())?["devices"] as? [[String: Any]]
        return devices?.first?["state"] as? String ?? ""
      }

      var status: String { rig.vehiclectl("status", "mirror").output }
      func shows(_ words: String) -> Bool { mirror.stderr.contains("the display shows \(words)") }
    }

    @Test func `the light is set, and set again on every connection`() throws {
      let setup = try MirrorRig()
      #expect(wait { setup.state == "connected" }, "\(setup.status)")
      #expect(setup.status.contains("profile C0FE/3DEE") && setup.status.contains("with response"), "\(setup.status)")
      let set = setup.rig.vehiclectl("set", "led", "70")
      #expect(set.status == 0, "\(set.errors)")
      #expect(setup.rig.get("led") == "70" && setup.rig.get("sent-led") == "70")
      #expect(wait { setup.shows("Ada: Bright 70.0") }, "\(setup.mirror.stderr)")
      #expect(setup.rig.vehiclectl("set", "led", "101").status == 2)
      // While out of reach the value is stored, and sent when the mirror is connected again.
      #expect(setup.rig.vehiclectl("disconnect", "mirror").status == 0)
      let pending = setup.rig.vehiclectl("set", "led", "35")
      #expect(pending.status == 0 && (pending.output + pending.errors).contains("pending"), "\(pending)")
      #expect(setup.rig.vehiclectl("connect", "mirror").status == 0)
      #expect(wait { setup.shows("Ada: Bright 35.0") }, "\(setup.mirror.stderr)")
      // A daemon that was killed.
      setup.daemon.end(SIGKILL)
      let second = try setup.rig.daemon(environment: setup.environment)
      #expect(setup.rig.get("led") == "35")
      #expect(wait { setup.rig.get("sent-led") == "35" }, "\(setup.status)")
      #expect(second.end() == 0)
      #expect(
        !setup.mirror.stderr.contains("crash") && !setup.mirror.stderr.contains("corrupted data"), "\(setup.mirror.stderr)")
      withExtendedLifetime(setup.bus) {}
    }

    @Test func `every client on the bus can read the last written value`() throws {
      let setup = try MirrorRig()
      #expect(wait { setup.state == "connected" }, "\(setup.status)")
      let characteristic = "/org/bluez/hci0/dev_AA_BB_CC_00_11_22/service1/char12"
      let read = setup.rig.run(
        "/usr/bin/busctl",
        [
          "--address=\(setup.environment["DBUS_SYSTEM_BUS_ADDRESS"] ?? "")", "call", "org.bluez", characteristic,
          "org.bluez.GattCharacteristic1", "ReadValue", "a{sv}", "0",
        ])
      // The last message, encrypted, in 32 hex digits; more than one follows the connection.
      let digits = read.output.split(separator: " ").dropFirst(2).compactMap { UInt8($0.trimmingCharacters(in: .newlines)) }
      #expect(read.output.hasPrefix("ay 32 ") && digits.count == 32, "\(read)")
      #expect(digits.allSatisfy { (48...57).contains($0) || (97...102).contains($0) }, "\(read)")
    }

    @Test func `a user name is required, and setting one warns about pictures`() throws {
      let setup = try MirrorRig(options: "")
      #expect(wait { setup.state == "needs-username" && setup.status.contains("mtu") }, "\(setup.status)")
      #expect(setup.status.contains("vehiclectl set mirror.username NAME"))
      let early = setup.rig.vehiclectl("set", "led", "70")
      #expect(early.status == 1 && early.errors.contains("username"), "\(early.errors)")
      #expect(setup.rig.vehiclectl("set", "mirror.username", "O'Neill").status == 2)
      #expect(setup.rig.vehiclectl("set", "mirror.username", "Łucja").status == 2)
      let named = setup.rig.vehiclectl("set", "mirror.username", "Grace H")
      #expect(named.status == 0 && (named.output + named.errors).contains("after the next value"), "\(named)")
      #expect(setup.state == "connected" && setup.rig.get("sent-name") == "Grace H")
      let lit = setup.rig.vehiclectl("set", "led", "10")
      #expect(lit.status == 0 && (lit.output + lit.errors).contains("stand in front of the mirror"), "\(lit)")
      #expect(wait { setup.mirror.stderr.contains("unknown name \"Grace H\": the display takes 11 pictures") })
      #expect(setup.rig.vehiclectl("do", "mirror.send-now").status == 1)
    }

    @Test func `the key and the sent messages are redacted in every output`() throws {
      let setup = try MirrorRig(options: "username = \"Ada\"\nrecord = true")
      #expect(wait { setup.state == "connected" }, "\(setup.status)")
      #expect(setup.rig.vehiclectl("set", "led", "70").status == 0)
      let file = "\(setup.rig.directory)/session.ndjson"
      let recorder = try setup.rig.start(
        "vehiclectl", ["--socket", setup.rig.socket, "record", "--seconds", "3", "mirror", file])
      #expect(wait { FileManager.default.fileExists(atPath: file) })
      #expect(setup.rig.vehiclectl("set", "led", "71").status == 0)
      #expect(wait { !recorder.isRunning })
      let recorded = try String(contentsOfFile: file, encoding: .utf8)
      let outputs = [setup.status, setup.rig.vehiclectl("status", "--json").output, setup.rig.vehiclectl("doctor").output, recorded]
      #expect(outputs[2].contains("weakly encrypted") && setup.daemon.stderr.contains("weakly encrypted"))
      // "Name: Ada" as it is sent over the air.
      for text in outputs + [setup.daemon.stderr] {
        #expect(!text.contains(MirrorRig.key) && !text.contains("d4d147bf") && !text.contains("4142434445"), "\(text)")
      }
      #expect(setup.mirror.stderr.contains("d4d147bf"))
    }

    @Test(arguments: ["refuse:7", "drop-writes:5", "no-answer:6"]) func `writes are repeated after radio faults`(_ fault: String) throws {
      let setup = try MirrorRig("--radio-fault", fault)
      #expect(wait { setup.state == "connected" }, "\(setup.status)")
      for percent in [10, 20, 30, 40] {
        let set = setup.rig.vehiclectl("set", "led", "\(percent)")
        #expect(set.status == 0, "\(percent): \(set.errors)")
      }
      #expect(wait(seconds: 40) { setup.rig.get("sent-led") == "40" }, "\(setup.status)")
      #expect(wait(seconds: 20) { setup.shows("Ada: Bright 40.0") }, "\(setup.mirror.stderr)")
    }

    @Test func `a peer that is not a mirror is reported`() throws {
      let setup = try MirrorRig("--radio-fault", "no-characteristic")
      #expect(wait { setup.status.contains("no known service for this kind") }, "\(setup.status)")
      let twins = try MirrorRig("--also", "ESP32-BLE-Server")
      #expect(wait { twins.status.contains("2 peripherals match \"ESP32-BLE-Server\"") }, "\(twins.status)")
    }

    @Test func `the configuration check rejects unsafe and invalid keys`() throws {
      let rig = try Rig()
      try rig.write("ascii:0123456789ABCDEF", to: "\(rig.directory)/key")
      try rig.write("ascii:0123456789", to: "\(rig.directory)/iv")
      chmod("\(rig.directory)/key", 0o644)
      chmod("\(rig.directory)/iv", 0o600)
      try rig.write(MirrorRig.configuration(rig.directory, ""))
      let check = { rig.run("\(Rig.programs)/vehicled", ["--config", rig.configuration, "--check-config"]) }
      let open = check()
      #expect(open.status != 0 && (open.output + open.errors).contains("chmod 600"), "\(open)")
      chmod("\(rig.directory)/key", 0o600)
      let short = check()
      #expect(short.status != 0 && (short.output + short.errors).contains("exactly 16 ASCII characters"), "\(short)")
      #expect(!(short.output + short.errors).contains("0123456789"))
      try rig.write(MirrorRig.iv, to: "\(rig.directory)/iv")
      chmod("\(rig.directory)/iv", 0o600)
      let good = check()
      #expect(good.status == 0, "\(good)")
      try rig.write(MirrorRig.configuration(rig.directory, "profile = \"plain\""))
      #expect((check().output + check().errors).contains("remove it"))
      try rig.write("[device.mirror]\nkind = \"mirror\"\nlink = \"ble:ESP32-BLE-Server\"\n")
      #expect((check().output + check().errors).contains("key-file is missing; write the key to a file"))
    }
  }
}
