// A smart mirror end to end: the real programs, a message bus, and a mock BlueZ with a simulated ESP32.

import Foundation
import Testing

extension WholeHouse {
  @Suite("Mirror") struct MirrorTests {
    /// A simulated mirror and a daemon.
    private struct Hall {
      static let key = "0123456789ABCDEF"
      static let iv = "hex:46454443424139383736353433323130"
      let house: House
      let bus: Program
      let environment: [String: String]
      let mirror: Program
      let daemon: Program

      init(_ arguments: String..., options: String = "username = \"Ada\"") throws {
        house = try House()
        (bus, environment) = try house.bus()
        for (name, text) in [("key", "ascii:\(Self.key)\n"), ("iv", Self.iv)] {
          try house.write(text, to: "\(house.directory)/\(name)")
          try #require(chmod("\(house.directory)/\(name)", 0o600) == 0)
        }
        mirror = try house.start(
          "vehiclesim",
          [
            "mirror", "--on", "ble:unix:path=\(house.directory)/bus", "-v", "--key-file", "\(house.directory)/key", "--iv-file",
            "\(house.directory)/iv",
          ] + arguments)
        let (program, directory) = (mirror, house.directory)
        try #require(wait { program.printed.contains("\n") }, "the simulator prints nothing: \(program.complaints)")
        #expect(program.printed.contains("ble:ESP32-BLE-Server"))
        try house.write(Self.configuration(directory, options))
        daemon = try house.daemon(environment: environment)
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
        let devices = (try? house.vehiclectl("status", "mirror", "--json").json())?["devices"] as? [[String: Any]]
        return devices?.first?["state"] as? String ?? ""
      }

      var status: String { house.vehiclectl("status", "mirror").output }
      func shows(_ words: String) -> Bool { mirror.complaints.contains("the display shows \(words)") }
    }

    @Test func `the light is set, and set again on every connection`() throws {
      let hall = try Hall()
      #expect(wait { hall.state == "connected" }, "\(hall.status)")
      #expect(hall.status.contains("profile C0FE/3DEE") && hall.status.contains("with response"), "\(hall.status)")
      let set = hall.house.vehiclectl("set", "led", "70")
      #expect(set.status == 0, "\(set.errors)")
      #expect(hall.house.get("led") == "70" && hall.house.get("sent-led") == "70")
      #expect(wait { hall.shows("Ada: Bright 70.0") }, "\(hall.mirror.complaints)")
      #expect(hall.house.vehiclectl("set", "led", "101").status == 2)
      // While out of reach the value is stored, and sent when the mirror is connected again.
      #expect(hall.house.vehiclectl("disconnect", "mirror").status == 0)
      let pending = hall.house.vehiclectl("set", "led", "35")
      #expect(pending.status == 0 && (pending.output + pending.errors).contains("pending"), "\(pending)")
      #expect(hall.house.vehiclectl("connect", "mirror").status == 0)
      #expect(wait { hall.shows("Ada: Bright 35.0") }, "\(hall.mirror.complaints)")
      // A daemon that was killed.
      hall.daemon.end(SIGKILL)
      let second = try hall.house.daemon(environment: hall.environment)
      #expect(hall.house.get("led") == "35")
      #expect(wait { hall.house.get("sent-led") == "35" }, "\(hall.status)")
      #expect(second.end() == 0)
      #expect(!hall.mirror.complaints.contains("crash"), "\(hall.mirror.complaints)")
      withExtendedLifetime(hall.bus) {}
    }

    @Test func `every client on the bus can read the last written value`() throws {
      let hall = try Hall()
      #expect(wait { hall.state == "connected" }, "\(hall.status)")
      let characteristic = "/org/bluez/hci0/dev_AA_BB_CC_00_11_22/service1/char12"
      let read = hall.house.run(
        "/usr/bin/busctl",
        [
          "--address=\(hall.environment["DBUS_SYSTEM_BUS_ADDRESS"] ?? "")", "call", "org.bluez", characteristic,
          "org.bluez.GattCharacteristic1", "ReadValue", "a{sv}", "0",
        ])
      // "Name: Ada" in hex digits: d4d1…
      #expect(read.output.hasPrefix("ay 32 100 52 100 49 "), "\(read)")
    }

    @Test func `a user name is required, and setting one warns about pictures`() throws {
      let hall = try Hall(options: "")
      #expect(wait { hall.state == "needs-username" && hall.status.contains("mtu") }, "\(hall.status)")
      #expect(hall.status.contains("vehiclectl set mirror.username NAME"))
      let early = hall.house.vehiclectl("set", "led", "70")
      #expect(early.status == 1 && early.errors.contains("username"), "\(early.errors)")
      #expect(hall.house.vehiclectl("set", "mirror.username", "O'Neill").status == 2)
      #expect(hall.house.vehiclectl("set", "mirror.username", "Łucja").status == 2)
      let named = hall.house.vehiclectl("set", "mirror.username", "Grace H")
      #expect(named.status == 0 && (named.output + named.errors).contains("after the next value"), "\(named)")
      #expect(hall.state == "connected" && hall.house.get("sent-name") == "Grace H")
      let lit = hall.house.vehiclectl("set", "led", "10")
      #expect(lit.status == 0 && (lit.output + lit.errors).contains("stand in front of the mirror"), "\(lit)")
      #expect(wait { hall.mirror.complaints.contains("unknown name \"Grace H\": the display takes 11 pictures") })
      #expect(hall.house.vehiclectl("do", "mirror.send-now").status == 1)
    }

    @Test func `the key and the sent messages are redacted in every output`() throws {
      let hall = try Hall(options: "username = \"Ada\"\nrecord = true")
      #expect(wait { hall.state == "connected" }, "\(hall.status)")
      #expect(hall.house.vehiclectl("set", "led", "70").status == 0)
      let file = "\(hall.house.directory)/session.ndjson"
      let recorder = try hall.house.start(
        "vehiclectl", ["--socket", hall.house.socket, "record", "--seconds", "3", "mirror", file])
      #expect(wait { FileManager.default.fileExists(atPath: file) })
      #expect(hall.house.vehiclectl("set", "led", "71").status == 0)
      #expect(wait { !recorder.isRunning })
      let recorded = try String(contentsOfFile: file, encoding: .utf8)
      let outputs = [hall.status, hall.house.vehiclectl("status", "--json").output, hall.house.vehiclectl("doctor").output, recorded]
      #expect(outputs[2].contains("weakly encrypted") && hall.daemon.complaints.contains("weakly encrypted"))
      // "Name: Ada" as it is sent over the air.
      for text in outputs + [hall.daemon.complaints] {
        #expect(!text.contains(Hall.key) && !text.contains("d4d147bf") && !text.contains("4142434445"), "\(text)")
      }
      #expect(hall.mirror.complaints.contains("d4d147bf"))
    }

    @Test(arguments: ["refuse:7", "drop-writes:5", "no-answer:6"]) func whatTheAirDoesIsMended(_ fault: String) throws {
      let hall = try Hall("--radio-fault", fault)
      #expect(wait { hall.state == "connected" }, "\(hall.status)")
      for percent in [10, 20, 30, 40] {
        let set = hall.house.vehiclectl("set", "led", "\(percent)")
        #expect(set.status == 0, "\(percent): \(set.errors)")
      }
      #expect(wait(seconds: 40) { hall.house.get("sent-led") == "40" }, "\(hall.status)")
      #expect(wait(seconds: 20) { hall.shows("Ada: Bright 40.0") }, "\(hall.mirror.complaints)")
    }

    @Test func aPeerThatIsNoMirrorIsNamed() throws {
      let hall = try Hall("--radio-fault", "no-characteristic")
      #expect(wait { hall.status.contains("no service that this kind knows") }, "\(hall.status)")
      let twins = try Hall("--also", "ESP32-BLE-Server")
      #expect(wait { twins.status.contains("2 peripherals match \"ESP32-BLE-Server\"") }, "\(twins.status)")
    }

    @Test func `the configuration check rejects unsafe and invalid keys`() throws {
      let house = try House()
      try house.write("ascii:0123456789ABCDEF", to: "\(house.directory)/key")
      try house.write("ascii:0123456789", to: "\(house.directory)/iv")
      chmod("\(house.directory)/key", 0o644)
      chmod("\(house.directory)/iv", 0o600)
      try house.write(Hall.configuration(house.directory, ""))
      let check = { house.run("\(House.programs)/vehicled", ["--config", house.configuration, "--check-config"]) }
      let open = check()
      #expect(open.status != 0 && (open.output + open.errors).contains("chmod 600"), "\(open)")
      chmod("\(house.directory)/key", 0o600)
      let short = check()
      #expect(short.status != 0 && (short.output + short.errors).contains("exactly 16 ASCII characters"), "\(short)")
      #expect(!(short.output + short.errors).contains("0123456789"))
      try house.write(Hall.iv, to: "\(house.directory)/iv")
      chmod("\(house.directory)/iv", 0o600)
      let good = check()
      #expect(good.status == 0, "\(good)")
      try house.write(Hall.configuration(house.directory, "profile = \"plain\""))
      #expect((check().output + check().errors).contains("remove it"))
      try house.write("[device.mirror]\nkind = \"mirror\"\nlink = \"ble:ESP32-BLE-Server\"\n")
      #expect((check().output + check().errors).contains("key-file: is missing"))
    }
  }
}
