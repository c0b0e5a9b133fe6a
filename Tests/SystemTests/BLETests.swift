// Bluetooth Low Energy links end to end: a real message bus with a mock BlueZ.

import Foundation
import Testing

extension EndToEnd {
  @Suite("BLE") struct BLETests {
    /// A message bus, a peripheral, and a daemon that is configured to connect to it.
    private struct BLERig {
      let rig: Rig
      let bus: Program
      let environment: [String: String]
      let peripheral: Program
      let daemon: Program

      init(_ arguments: String..., link: String = "ble:Veepeak") throws { try self.init(arguments: arguments, link: link) }

      init(arguments: [String], link: String) throws {
        rig = try Rig()
        (bus, environment) = try rig.bus()
        peripheral = try rig.peripheral(arguments)
        try rig.write("[device.ev]\nkind = \"obd\"\nlink = \"\(link)\"\n")
        daemon = try rig.daemon(environment: environment)
      }

      var isPolled: Bool { rig.get("ev.rpm") != nil }

      func status(of device: String = "ev") throws -> (state: String, link: [String: Any], details: [String: String]) {
        let devices = try #require(rig.vehiclectl("status", device, "--json").json()["devices"] as? [[String: Any]])
        let link = try #require((devices.first?["links"] as? [[String: Any]])?.first)
        return (devices.first?["state"] as? String ?? "", link, link["details"] as? [String: String] ?? [:])
      }

      var reason: String { reason(of: "ev") }

      func reason(of device: String) -> String { (try? status(of: device))?.link["reason"] as? String ?? "" }

      /// Calls the mock BlueZ over the bus.
      func busctl(_ arguments: String...) -> Outcome {
        rig.run("/usr/bin/busctl", ["--address=\(environment["DBUS_SYSTEM_BUS_ADDRESS"] ?? "")"] + arguments)
      }

      func property(_ path: String, _ interface: String, _ name: String) -> String {
        busctl("get-property", "org.bluez", path, "org.bluez.\(interface)1", name).output.trimmingCharacters(in: .newlines)
      }

      func power(_ isOn: Bool) {
        let outcome = busctl("set-property", "org.bluez", "/org/bluez/hci0", "org.bluez.Adapter1", "Powered", "b", "\(isOn)")
        #expect(outcome.status == 0, "\(outcome.errors)")
      }

      var descriptors: Int { (try? FileManager.default.contentsOfDirectory(atPath: "/proc/\(daemon.pid)/fd").count) ?? -1 }
      static let device = "/org/bluez/hci0/dev_AA_BB_CC_00_11_22"
    }

    @Test func `a car is polled over BLE, and the status has details of the link`() throws {
      let setup = try BLERig("--mtu", "185")
      #expect(wait { setup.isPolled })
      let (state, link, details) = try setup.status()
      #expect(state == "polling" && link["state"] as? String == "up")
      #expect(details["profile"] == "FFF0/FFF1/FFF2" && details["mtu"] == "185")
      #expect(details["write"] == "without response, by descriptor" && details["notify"] == "by descriptor")
      #expect(details["peer"] == "\"Veepeak\" (AA:BB:CC:00:11:22)" && details["signal"]?.hasPrefix("-60 dBm") == true)
      #expect(setup.rig.vehiclectl("status", "ev").output.contains("mtu 185"))
      // While connected, the scan is off.
      #expect(setup.property("/org/bluez/hci0", "Adapter", "Discovering") == "b false")
      #expect(setup.rig.vehiclectl("do", "ev.query", "ATI").output.contains("ELM327"))
      #expect(setup.daemon.end() == 0)
      #expect(wait { setup.property(BLERig.device, "Device", "Connected") == "b false" })
    }

    @Test func `further simulators on a bus add their peripherals to the mock BlueZ of the first`() throws {
      let rig = try Rig()
      let (_, environment) = try rig.bus()
      let bus = "ble:unix:path=\(rig.directory)/bus"
      func simulator(_ arguments: String...) throws -> Program {
        let program = try rig.start("vehiclesim", arguments + ["--on", bus])
        try #require(wait { program.stdout.contains("\n") }, "the simulator prints nothing: \(program.stderr)")
        return program
      }
      let first = try simulator("heart-rate")
      let second = try simulator("obd", "--mtu", "185", "--also", "Speaker")
      let third = try simulator("longboard", "--radio-fault", "no-descriptors")
      try rig.write(
        "[device.hr]\nkind = \"heart-rate\"\nlink = \"ble:auto\"\n[device.ev]\nkind = \"obd\"\nlink = \"ble:Veepeak\"\n"
          + "[device.torq]\nkind = \"longboard\"\nlink = \"ble:AA:BB:CC:00:11:24\"\n")
      let daemon = try rig.daemon(environment: environment)
      func isUp(_ device: String) throws -> Bool {
        let devices = try #require(rig.vehiclectl("status", device, "--json").json()["devices"] as? [[String: Any]])
        return (devices.first?["links"] as? [[String: Any]])?.first?["state"] as? String == "up"
      }
      #expect(wait(seconds: 30) { rig.get("ev.rpm") != nil && rig.get("hr.heart-rate") != nil && (try? isUp("torq")) == true })
      #expect(wait { rig.vehiclectl("scan").output.contains("Speaker") })
      // A peripheral disappears with its simulator, and returns with it; the others stay.
      #expect(second.end() == 0)
      #expect(wait { (try? isUp("ev")) == false })
      #expect(try isUp("hr") && isUp("torq"))
      let fourth = try simulator("obd")
      #expect(wait(seconds: 30) { rig.get("ev.rpm") != nil })
      for (arguments, message) in [
        (["--address", "AA:BB:CC:00:11:22"], "another simulator on this bus has the address"),
        (["--radio-fault", "busy:1"], "faults of the adapter"),
      ] {
        let rejected = try rig.start("vehiclesim", ["obd", "--on", bus] + arguments)
        #expect(wait { !rejected.isRunning } && rejected.stderr.contains(message), "\(rejected.stderr)")
      }
      #expect(daemon.end() == 0 && first.end() == 0)
      for program in [third, fourth] { #expect(wait { !program.isRunning } && program.stderr.contains("has ended"), "\(program.stderr)") }
    }

    @Test(
      arguments: [
        ("ble:AA:BB:CC:00:11:22", []), ("ble:Veep*", ["--mtu", "517"]), ("ble:*epea*", ["--writes", "both"]),
        ("ble:auto", ["--also", "HMSoft", "--also", "OBD toy"]), ("ble:auto", ["--also", "OBDII,-40", "--also", "ELM327,-50"]),
        ("ble:auto?response=yes", ["--writes", "both"]), ("ble:Veepeak?response=no", ["--writes", "both"]),
        ("ble:Veepeak", ["--writes", "with-response"]),
        (
          "ble:Veepeak",
          ["--gatt", "6E400001-B5A3-F393-E0A9-E50E24DCCA9E/6E400003-B5A3-F393-E0A9-E50E24DCCA9E/6E400002-B5A3-F393-E0A9-E50E24DCCA9E"]
        ),
        ("ble:Veepeak?service=ABCD", ["--gatt", "ABCD/0001/0002"]), ("ble:Veepeak?write=0002&notify=0001", ["--gatt", "ABCD/0001/0002"]),
        ("ble:Veepeak", ["--gatt", "FFE0/FFE1/FFE1"]),
      ] as [(String, [String])]) func `the peripheral is found by each form of the URL`(_ link: String, _ arguments: [String]) throws
    {
      let setup = try BLERig(arguments: arguments, link: link)
      #expect(wait { setup.isPolled }, "\(setup.reason)")
    }

    @Test(arguments: [
      "no-monitor", "full-monitor", "drop:400", "slow:800", "abort:2", "busy:1", "churn", "service-change:60", "no-descriptors", "empty:7",
      "odd-replies",
    ]) func `the link recovers from radio faults`(_ fault: String) throws {
      let setup = try BLERig("--radio-fault", fault)
      #expect(wait(seconds: 20) { setup.isPolled }, "\(setup.reason)")
      #expect(wait(seconds: 20) { Int(setup.rig.get("ev.polls") ?? "") ?? 0 > 60 }, "\(setup.reason)")
      #expect(wait { setup.isPolled })
      #expect(setup.daemon.isRunning)
    }

    @Test func `the link recovers from the loss of BlueZ, adapter and bus without leaking descriptors`() throws {
      let setup = try BLERig()
      #expect(wait { setup.isPolled })
      let before = setup.descriptors
      // bluetoothd.
      setup.peripheral.end(SIGKILL)
      #expect(wait { setup.reason.contains("BlueZ is not running") })
      #expect(setup.rig.get("ev.rpm") == nil)
      let second = try setup.rig.peripheral()
      #expect(wait { setup.isPolled })
      // The adapter.
      setup.power(false)
      #expect(wait { setup.reason.contains("powered off: bluetoothctl power on") })
      setup.power(true)
      #expect(wait { setup.isPolled })
      // The bus, and bluetoothd with it.
      setup.bus.end(SIGKILL)
      second.end(SIGKILL)
      #expect(wait { setup.reason.contains("no system bus") })
      unlink("\(setup.rig.directory)/bus")
      let bus = try setup.rig.bus()
      let third = try setup.rig.peripheral()
      #expect(wait(seconds: 30) { setup.isPolled })
      #expect(wait { setup.descriptors <= before })
      withExtendedLifetime((bus, third)) {}
    }

    @Test func `the daemon survives the loss of BlueZ at any moment`() throws {
      let setup = try BLERig()
      #expect(wait { setup.isPolled })
      let before = setup.descriptors
      var peripheral = setup.peripheral
      // From the first advertisement to the middle of a poll.
      for round in 0..<14 {
        peripheral.end(SIGKILL)
        peripheral = try setup.rig.peripheral(round % 2 == 0 ? [] : ["--radio-fault", "churn"])
        usleep(UInt32(round) * 150_000)
        #expect(setup.daemon.isRunning)
      }
      #expect(wait(seconds: 40) { setup.isPolled }, "\(setup.reason)")
      #expect(wait { setup.descriptors <= before })
    }

    @Test func `the status reports a missing system bus`() throws {
      let rig = try Rig()
      try rig.write("[device.ev]\nkind = \"obd\"\nlink = \"ble:Veepeak\"\n")
      let daemon = try rig.daemon(environment: ["DBUS_SYSTEM_BUS_ADDRESS": "unix:path=\(rig.directory)/bus"])
      #expect(wait { rig.vehiclectl("status").output.contains("no system bus") })
      #expect(daemon.isRunning)
    }

    @Test func `a scan reports its duration and the devices in range, and ends with the daemon`() throws {
      let setup = try BLERig("--name", "Other\u{1b}[2Jcar")
      #expect(wait { (try? setup.status())?.details["last-seen"]?.contains("AA:BB") == true })
      let (_, link, details) = try setup.status()
      #expect(link["state"] as? String == "connecting" && link["reason"] as? String == "searching for \"Veepeak\"")
      #expect(details["searching"]?.hasSuffix(" s") == true && details["last-seen"]?.contains("\u{1b}") == false)
      #expect(setup.property("/org/bluez/hci0", "Adapter", "Discovering") == "b true")
      setup.daemon.end(SIGKILL)
      #expect(wait { setup.property("/org/bluez/hci0", "Adapter", "Discovering") == "b false" })
    }

    @Test func `a scan that BlueZ refuses is reported and retried`() throws {
      // With an advertisement monitor, the peripheral would be found before the failure is seen.
      let setup = try BLERig("--radio-fault", "busy:3", "--radio-fault", "no-monitor")
      #expect(wait { setup.reason.contains("cannot scan: operation already in progress") })
      #expect(wait(seconds: 20) { setup.isPolled }, "\(setup.reason)")
    }

    @Test func `a scan that BlueZ starts without a reply is stopped and started again`() throws {
      let setup = try BLERig("--radio-fault", "mute:1", link: "ble:Nobody")
      #expect(wait { setup.reason.contains("cannot scan: no reply") })
      #expect(wait { setup.reason == "searching for \"Nobody\"" }, "\(setup.reason)")
      #expect(setup.rig.vehiclectl("scan", "ble", "--seconds", "1").output.contains("Veepeak"))
      #expect(setup.rig.vehiclectl("disconnect", "ev").status == 0)
      #expect(wait { setup.property("/org/bluez/hci0", "Adapter", "Discovering") == "b false" })
    }

    @Test func `a peripheral that another client uses is not connected`() throws {
      let setup = try BLERig("--also", "Sena Helmet,connected", "-v", link: "ble:auto")
      #expect(wait { setup.isPolled }, "\(setup.reason)")
      setup.daemon.end()
      #expect(setup.peripheral.stderr.contains("Connect"))
      #expect(!setup.peripheral.stderr.contains("dev_66_55_44_33_22_00 "))
    }

    @Test func `a scan fails when its adapter is powered off`() throws {
      let setup = try BLERig()
      #expect(wait { setup.isPolled })
      let scan = try setup.rig.start("vehiclectl", ["--socket", setup.rig.socket, "scan", "ble", "--seconds", "20"])
      #expect(wait { scan.stdout.contains("Veepeak") })
      setup.power(false)
      #expect(wait { !scan.isRunning })
      #expect(scan.status(within: 0) == 1 && scan.stderr.contains("hci0 is powered off"), "\(scan.stderr)")
    }

    @Test func `a connection attempt pauses other scans for a limited time`() throws {
      let setup = try BLERig("--radio-fault", "slow:60000", "--also", "HMSoft")
      try setup.rig.write(
        "[device.ev]\nkind = \"obd\"\nlink = \"ble:Veepeak\"\n[device.two]\nkind = \"obd\"\nlink = \"ble:Nobody\"\n")
      #expect(wait { setup.reason.contains("connecting to") })
      #expect(setup.rig.vehiclectl("reload").status == 0)
      let two = { setup.reason(of: "two") }
      #expect(wait { two() == "scan paused while another connection is being made; looking for \"Nobody\"" }, "\(two())")
      #expect(wait(seconds: 20) { two() == "searching for \"Nobody\"" }, "\(two())")
      #expect(setup.rig.vehiclectl("scan", "ble", "--seconds", "1").output.contains("HMSoft"))
      #expect(setup.reason.contains("connecting to"))
    }

    @Test func `two peripherals with the same name require an address`() throws {
      let setup = try BLERig("--also", "Veepeak")
      #expect(wait { setup.reason.contains("2 peripherals match \"Veepeak\"") && setup.reason.contains("66:55:44:33:22:00") })
      try setup.rig.write("[device.ev]\nkind = \"obd\"\nlink = \"ble:aa:bb:cc:00:11:22\"\n")
      #expect(setup.rig.vehiclectl("reload").status == 0)
      #expect(wait { setup.isPolled })
    }

    /// A peripheral that is already connected is not preferred.
    @Test func `a connected peripheral with the same name is also ambiguous`() throws {
      let setup = try BLERig("--also", "Veepeak,connected")
      #expect(wait { setup.reason.contains("2 peripherals match \"Veepeak\"") }, "\(setup.reason)")
    }

    @Test func `a peripheral is used by one link only`() throws {
      let setup = try BLERig(link: "ble:AA:BB:CC:00:11:22")
      #expect(wait { setup.isPolled })
      try setup.rig.write(
        "[device.ev]\nkind = \"obd\"\nlink = \"ble:AA:BB:CC:00:11:22\"\n[device.two]\nkind = \"obd\"\nlink = \"ble:Veepeak\"\n")
      #expect(setup.rig.vehiclectl("reload").status == 0)
      #expect(wait { setup.rig.vehiclectl("status", "two").output.contains("is in use by another device") })
      let since = try setup.status().link["since"] as? Int
      usleep(1_500_000)
      #expect(setup.isPolled)
      #expect(try setup.status().link["since"] as? Int == since)
    }

    @Test func `a recording that starts during a session can be replayed`() throws {
      let setup = try BLERig()
      #expect(wait { Int(setup.rig.get("ev.polls") ?? "") ?? 0 > 60 })
      let file = "\(setup.rig.directory)/ride.ndjson"
      #expect(setup.rig.vehiclectl("record", "--seconds", "4", "ev", file).status == 0)
      try setup.rig.write("[device.ev]\nkind = \"obd\"\nlink = \"replay:\(file)\"\n")
      #expect(setup.rig.vehiclectl("reload").status == 0)
      #expect(wait { Int(setup.rig.get("ev.polls") ?? "") ?? 0 > 50 }, "\(setup.rig.vehiclectl("status", "ev").output)")
      #expect(wait { setup.reason == "the recording has ended" }, "\(setup.rig.vehiclectl("status", "ev").output)")
    }

    @Test(arguments: [
      ("ble:Veepeak?service=1234", "no writable characteristic in service 1234; it has FFF0 (FFF1, FFF2)"),
      ("ble:Veepeak?write=1234", "no characteristic 1234; it has FFF0"),
      ("ble:Veepeak?write=FFF1", "characteristic FFF1 is not writable: it has notify"),
      ("ble:Veepeak?write=FFF2&notify=FFF2", "characteristic FFF2 does not support notify"),
      ("ble:Veepeak?response=yes", "characteristic FFF2 has only write-without-response"),
      ("ble:Veepeak?adapter=hci7", "no Bluetooth adapter hci7: found hci0"),
    ]) func `a URL that does not fit the peripheral is reported`(_ link: String, _ words: String) throws {
      let setup = try BLERig(link: link)
      #expect(wait { setup.reason.contains(words) }, "\(setup.reason)")
      #expect(setup.daemon.isRunning)
    }

    @Test func `a scan lists the devices in range while the link stays up`() throws {
      let setup = try BLERig("--also", "HMSoft", "--also", "OBDII", "--also", "Mirror\u{1b}[31m", "--also", "VESC BLE UART")
      #expect(wait { setup.isPolled })
      let scan = setup.rig.vehiclectl("scan", "ble", "--seconds", "2")
      #expect(scan.status == 0 && !scan.output.contains("\u{1b}"))
      #expect(scan.lines.count == 5 && scan.lines.contains { $0.hasSuffix("VESC BLE UART  longboard") })
      #expect(scan.lines.contains { $0.contains("66:55:44:33:22:00  -80 dBm   HMSoft  longboard") })
      #expect(scan.lines.contains { $0.hasPrefix("ble     66:55:44:33:22:01") && $0.hasSuffix("OBDII  obd") })
      // The connected peripheral does not advertise, but is listed.
      #expect(scan.lines.contains { $0.hasSuffix("Veepeak  obd") })
      let json = setup.rig.vehiclectl("scan", "ble", "--seconds", "1", "--json")
      let first = try #require(json.lines.first)
      let object = try #require(JSONSerialization.jsonObject(with: Data(first.utf8)) as? [String: Any])
      #expect(object["transport"] as? String == "ble" && object["address"] != nil)
      #expect(setup.isPolled)
      #expect(wait { setup.property("/org/bluez/hci0", "Adapter", "Discovering") == "b false" })
      setup.power(false)
      let off = setup.rig.vehiclectl("scan", "ble", "--seconds", "1")
      #expect(off.status == 1 && off.errors.contains("powered off: bluetoothctl power on"))
    }

    @Test func `a peripheral that returns is connected without a scan`() throws {
      // All searches scan at the same time of each minute. The peripheral appears later than that, and after the first scan.
      var time = timespec()
      clock_gettime(CLOCK_MONOTONIC, &time)
      let absence = (18...90).first { (8..<35).contains((time.tv_sec + $0) % 60) } ?? 0
      let setup = try BLERig("-v", "--radio-fault", "away:\(absence)")
      #expect(wait(seconds: Double(absence)) { setup.property("/org/bluez/hci0", "Adapter", "Discovering") == "b false" })
      #expect(setup.reason == "searching for \"Veepeak\"")
      #expect(wait(seconds: Double(absence)) { setup.property(BLERig.device, "Device", "Connected") == "b true" }, "\(setup.reason)")
      #expect(wait { setup.isPolled }, "\(setup.reason)")
      // While no link searches, nothing is registered.
      #expect(wait { setup.peripheral.stderr.contains("UnregisterMonitor") })
      let calls = setup.peripheral.stderr
      #expect(calls.contains("RegisterMonitor") && !calls.contains("no such method"))
    }

    @Test func `the doctor names the fix`() throws {
      let setup = try BLERig()
      #expect(wait { setup.isPolled })
      let well = setup.rig.vehiclectl("doctor")
      #expect(well.status == 0 && well.output.contains("ok       hci0: adapter is powered on"))
      setup.power(false)
      #expect(wait { setup.reason.contains("powered off") })
      let off = setup.rig.vehiclectl("doctor")
      #expect(off.status == 1 && off.output.contains("failed   hci0: adapter is powered off; bluetoothctl power on"))
      setup.peripheral.end(SIGKILL)
      #expect(wait { setup.reason.contains("not running") })
      let gone = setup.rig.vehiclectl("doctor", "--json")
      #expect(gone.status == 1)
      let findings = try #require(gone.json()["findings"] as? [[String: Any]])
      #expect(findings.first { $0["subject"] as? String == "bluetooth" }?["remedy"] as? String == "systemctl start bluetooth")
    }

    @Test func `a long connection attempt can be cancelled`() throws {
      let setup = try BLERig("--radio-fault", "slow:30000")
      #expect(wait { setup.reason.contains("connecting to") })
      #expect(setup.rig.vehiclectl("disconnect", "ev").status == 0)
      #expect(try setup.status().link["state"] as? String == "down")
      // BlueZ has cancelled its connection attempt.
      #expect(wait { setup.busctl("call", "org.bluez", BLERig.device, "org.bluez.Device1", "Disconnect").status == 0 })
      #expect(setup.rig.vehiclectl("connect", "ev").status == 0)
      #expect(wait { setup.reason.contains("connecting to") })
    }
  }
}
