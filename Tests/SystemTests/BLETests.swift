// Bluetooth Low Energy links end to end: a real message bus with a mock BlueZ.

import Foundation
import Testing

extension WholeHouse {
  @Suite("BLE") struct BLETests {
    /// A message bus, a peripheral, and a daemon that is configured to connect to it.
    private struct Air {
      let house: House
      let bus: Program
      let environment: [String: String]
      let peripheral: Program
      let daemon: Program

      init(_ arguments: String..., link: String = "ble:Veepeak") throws { try self.init(arguments: arguments, link: link) }

      init(arguments: [String], link: String) throws {
        house = try House()
        (bus, environment) = try house.bus()
        peripheral = try house.peripheral(arguments)
        try house.write("[device.ev]\nkind = \"obd\"\nlink = \"\(link)\"\n")
        daemon = try house.daemon(environment: environment)
      }

      var isPolled: Bool { house.get("ev.rpm") != nil }

      func status() throws -> (state: String, link: [String: Any], details: [String: String]) {
        let devices = try #require(house.vehiclectl("status", "ev", "--json").json()["devices"] as? [[String: Any]])
        let link = try #require((devices.first?["links"] as? [[String: Any]])?.first)
        return (devices.first?["state"] as? String ?? "", link, link["details"] as? [String: String] ?? [:])
      }

      var reason: String { (try? status())?.link["reason"] as? String ?? "" }

      /// Calls the mock BlueZ over the bus.
      func busctl(_ arguments: String...) -> Outcome {
        house.run("/usr/bin/busctl", ["--address=\(environment["DBUS_SYSTEM_BUS_ADDRESS"] ?? "")"] + arguments)
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
      let air = try Air("--mtu", "185")
      #expect(wait { air.isPolled })
      let (state, link, details) = try air.status()
      #expect(state == "polling" && link["state"] as? String == "up")
      #expect(details["profile"] == "FFF0/FFF1/FFF2" && details["mtu"] == "185")
      #expect(details["write"] == "without response, by descriptor" && details["notify"] == "by descriptor")
      #expect(details["peer"] == "\"Veepeak\" (AA:BB:CC:00:11:22)" && details["signal"]?.hasPrefix("-60 dBm") == true)
      #expect(air.house.vehiclectl("status", "ev").output.contains("mtu 185"))
      // While connected, the scan is off.
      #expect(air.property("/org/bluez/hci0", "Adapter", "Discovering") == "b false")
      #expect(air.house.vehiclectl("do", "ev.query", "ATI").output.contains("ELM327"))
      #expect(air.daemon.end() == 0)
      #expect(wait { air.property(Air.device, "Device", "Connected") == "b false" })
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
      let air = try Air(arguments: arguments, link: link)
      #expect(wait { air.isPolled }, "\(air.reason)")
    }

    @Test(arguments: [
      "drop:400", "slow:800", "abort:2", "busy:1", "churn", "service-change:60", "no-descriptors", "empty:7", "odd-replies",
    ]) func theAirHasItsFaults(_ fault: String) throws {
      let air = try Air("--radio-fault", fault)
      #expect(wait(seconds: 20) { air.isPolled }, "\(air.reason)")
      #expect(wait(seconds: 20) { Int(air.house.get("ev.polls") ?? "") ?? 0 > 60 }, "\(air.reason)")
      #expect(wait { air.isPolled })
      #expect(air.daemon.isRunning)
    }

    @Test func `the link recovers from the loss of BlueZ, adapter and bus without leaking descriptors`() throws {
      let air = try Air()
      #expect(wait { air.isPolled })
      let before = air.descriptors
      // bluetoothd.
      air.peripheral.end(SIGKILL)
      #expect(wait { air.reason.contains("BlueZ is not running") })
      #expect(air.house.get("ev.rpm") == nil)
      let second = try air.house.peripheral()
      #expect(wait { air.isPolled })
      // The adapter.
      air.power(false)
      #expect(wait { air.reason.contains("powered off: bluetoothctl power on") })
      air.power(true)
      #expect(wait { air.isPolled })
      // The bus, and bluetoothd with it.
      air.bus.end(SIGKILL)
      second.end(SIGKILL)
      #expect(wait { air.reason.contains("no system bus") })
      unlink("\(air.house.directory)/bus")
      let bus = try air.house.bus()
      let third = try air.house.peripheral()
      #expect(wait(seconds: 30) { air.isPolled })
      #expect(wait { air.descriptors <= before })
      withExtendedLifetime((bus, third)) {}
    }

    @Test func `the daemon survives the loss of BlueZ at any moment`() throws {
      let air = try Air()
      #expect(wait { air.isPolled })
      let before = air.descriptors
      var peripheral = air.peripheral
      // From the first advertisement to the middle of a poll.
      for round in 0..<14 {
        peripheral.end(SIGKILL)
        peripheral = try air.house.peripheral(round % 2 == 0 ? [] : ["--radio-fault", "churn"])
        usleep(UInt32(round) * 150_000)
        #expect(air.daemon.isRunning)
      }
      #expect(wait(seconds: 40) { air.isPolled }, "\(air.reason)")
      #expect(wait { air.descriptors <= before })
    }

    @Test func `the status reports a missing system bus`() throws {
      let house = try House()
      try house.write("[device.ev]\nkind = \"obd\"\nlink = \"ble:Veepeak\"\n")
      let daemon = try house.daemon(environment: ["DBUS_SYSTEM_BUS_ADDRESS": "unix:path=\(house.directory)/bus"])
      #expect(wait { house.vehiclectl("status").output.contains("no system bus") })
      #expect(daemon.isRunning)
    }

    @Test func `a scan reports its duration and the devices in range, and ends with the daemon`() throws {
      let air = try Air("--name", "Other\u{1b}[2Jcar")
      #expect(wait { (try? air.status())?.details["last-seen"]?.contains("AA:BB") == true })
      let (_, link, details) = try air.status()
      #expect(link["state"] as? String == "connecting" && link["reason"] as? String == "searching for \"Veepeak\"")
      #expect(details["searching"]?.hasSuffix(" s") == true && details["last-seen"]?.contains("\u{1b}") == false)
      #expect(air.property("/org/bluez/hci0", "Adapter", "Discovering") == "b true")
      air.daemon.end(SIGKILL)
      #expect(wait { air.property("/org/bluez/hci0", "Adapter", "Discovering") == "b false" })
    }

    @Test func aSearchThatIsRefusedIsSaidAndTriedAgain() throws {
      let air = try Air("--radio-fault", "busy:2")
      #expect(wait { air.reason.contains("cannot scan: operation already in progress") })
      #expect(wait { air.isPolled }, "\(air.reason)")
    }

    @Test func aSearchThatBlueZBeganWithoutSayingSoIsEndedAndBegunAnew() throws {
      let air = try Air("--radio-fault", "mute:1", link: "ble:Nobody")
      #expect(wait { air.reason.contains("cannot scan: no reply") })
      #expect(wait { air.reason == "searching for \"Nobody\"" }, "\(air.reason)")
      #expect(air.house.vehiclectl("scan", "ble", "--seconds", "1").output.contains("Veepeak"))
      #expect(air.house.vehiclectl("disconnect", "ev").status == 0)
      #expect(wait { air.property("/org/bluez/hci0", "Adapter", "Discovering") == "b false" })
    }

    @Test func `a peripheral that another client uses is not connected`() throws {
      let air = try Air("--also", "Sena Helmet,connected", "-v", link: "ble:auto")
      #expect(wait { air.isPolled }, "\(air.reason)")
      air.daemon.end()
      #expect(air.peripheral.complaints.contains("Connect"))
      #expect(!air.peripheral.complaints.contains("dev_66_55_44_33_22_00 "))
    }

    @Test func `a scan fails when its adapter is powered off`() throws {
      let air = try Air()
      #expect(wait { air.isPolled })
      let scan = try air.house.start("vehiclectl", ["--socket", air.house.socket, "scan", "ble", "--seconds", "20"])
      #expect(wait { scan.printed.contains("Veepeak") })
      air.power(false)
      #expect(wait { !scan.isRunning })
      #expect(scan.status(within: 0) == 1 && scan.complaints.contains("hci0 is powered off"), "\(scan.complaints)")
    }

    @Test func aConnectionThatIsBeingMadeHoldsOthersUpForAWhileOnly() throws {
      let air = try Air("--radio-fault", "slow:60000", "--also", "HMSoft")
      try air.house.write(
        "[device.ev]\nkind = \"obd\"\nlink = \"ble:Veepeak\"\n[device.two]\nkind = \"obd\"\nlink = \"ble:Nobody\"\n")
      #expect(wait { air.reason.contains("connecting to") })
      #expect(air.house.vehiclectl("reload").status == 0)
      let two = { air.house.vehiclectl("status", "two").output }
      #expect(wait { two().contains("scan paused while another connection is made; looking for \"Nobody\"") }, "\(two())")
      #expect(wait(seconds: 20) { two().contains("searching for \"Nobody\"") && !two().contains("scan paused") }, "\(two())")
      #expect(air.house.vehiclectl("scan", "ble", "--seconds", "1").output.contains("HMSoft"))
      #expect(air.reason.contains("connecting to"))
    }

    @Test func `two peripherals with the same name require an address`() throws {
      let air = try Air("--also", "Veepeak")
      #expect(wait { air.reason.contains("2 peripherals match \"Veepeak\"") && air.reason.contains("66:55:44:33:22:00") })
      try air.house.write("[device.ev]\nkind = \"obd\"\nlink = \"ble:aa:bb:cc:00:11:22\"\n")
      #expect(air.house.vehiclectl("reload").status == 0)
      #expect(wait { air.isPolled })
    }

    /// A peripheral that is already connected is not preferred.
    @Test func `a connected peripheral with the same name is also ambiguous`() throws {
      let air = try Air("--also", "Veepeak,connected")
      #expect(wait { air.reason.contains("2 peripherals match \"Veepeak\"") }, "\(air.reason)")
    }

    @Test func `a peripheral is used by one link only`() throws {
      let air = try Air(link: "ble:AA:BB:CC:00:11:22")
      #expect(wait { air.isPolled })
      try air.house.write(
        "[device.ev]\nkind = \"obd\"\nlink = \"ble:AA:BB:CC:00:11:22\"\n[device.two]\nkind = \"obd\"\nlink = \"ble:Veepeak\"\n")
      #expect(air.house.vehiclectl("reload").status == 0)
      #expect(wait { air.house.vehiclectl("status", "two").output.contains("is in use by another device") })
      let since = try air.status().link["since"] as? Int
      usleep(1_500_000)
      #expect(air.isPolled)
      #expect(try air.status().link["since"] as? Int == since)
    }

    @Test func `a recording that starts during a session can be replayed`() throws {
      let air = try Air()
      #expect(wait { Int(air.house.get("ev.polls") ?? "") ?? 0 > 60 })
      let file = "\(air.house.directory)/ride.ndjson"
      #expect(air.house.vehiclectl("record", "--seconds", "4", "ev", file).status == 0)
      try air.house.write("[device.ev]\nkind = \"obd\"\nlink = \"replay:\(file)\"\n")
      #expect(air.house.vehiclectl("reload").status == 0)
      #expect(wait { Int(air.house.get("ev.polls") ?? "") ?? 0 > 50 }, "\(air.house.vehiclectl("status", "ev").output)")
      #expect(wait { air.reason == "the recording has ended" }, "\(air.house.vehiclectl("status", "ev").output)")
    }

    @Test(arguments: [
      ("ble:Veepeak?service=1234", "no writable characteristic in service 1234; it has FFF0 (FFF1, FFF2)"),
      ("ble:Veepeak?write=1234", "no characteristic 1234; it has FFF0"),
      ("ble:Veepeak?write=FFF1", "characteristic FFF1 is not writable: it has notify"),
      ("ble:Veepeak?write=FFF2&notify=FFF2", "characteristic FFF2 does not support notify"),
      ("ble:Veepeak?response=yes", "characteristic FFF2 has only write-without-response"),
      ("ble:Veepeak?adapter=hci7", "no Bluetooth adapter hci7: found hci0"),
    ]) func `a URL that does not fit the peripheral is reported`(_ link: String, _ words: String) throws {
      let air = try Air(link: link)
      #expect(wait { air.reason.contains(words) }, "\(air.reason)")
      #expect(air.daemon.isRunning)
    }

    @Test func `a scan lists the devices in range while the link stays up`() throws {
      let air = try Air("--also", "HMSoft", "--also", "OBDII", "--also", "Mirror\u{1b}[31m", "--also", "VESC BLE UART")
      #expect(wait { air.isPolled })
      let scan = air.house.vehiclectl("scan", "ble", "--seconds", "2")
      #expect(scan.status == 0 && !scan.output.contains("\u{1b}"))
      #expect(scan.lines.count == 5 && scan.lines.contains { $0.hasSuffix("VESC BLE UART  longboard") })
      #expect(scan.lines.contains { $0.contains("66:55:44:33:22:00  -80 dBm   HMSoft  longboard") })
      #expect(scan.lines.contains { $0.hasPrefix("ble     66:55:44:33:22:01") && $0.hasSuffix("OBDII  obd") })
      // The connected peripheral does not advertise, but is listed.
      #expect(scan.lines.contains { $0.hasSuffix("Veepeak  obd") })
      let json = air.house.vehiclectl("scan", "ble", "--seconds", "1", "--json")
      let first = try #require(json.lines.first)
      let object = try #require(JSONSerialization.jsonObject(with: Data(first.utf8)) as? [String: Any])
      #expect(object["transport"] as? String == "ble" && object["address"] != nil)
      #expect(air.isPolled)
      #expect(wait { air.property("/org/bluez/hci0", "Adapter", "Discovering") == "b false" })
      air.power(false)
      let off = air.house.vehiclectl("scan", "ble", "--seconds", "1")
      #expect(off.status == 1 && off.errors.contains("powered off: bluetoothctl power on"))
    }

    @Test func `the doctor names the fix`() throws {
      let air = try Air()
      #expect(wait { air.isPolled })
      let well = air.house.vehiclectl("doctor")
      #expect(well.status == 0 && well.output.contains("ok       hci0: adapter is powered on"))
      air.power(false)
      #expect(wait { air.reason.contains("powered off") })
      let off = air.house.vehiclectl("doctor")
      #expect(off.status == 1 && off.output.contains("failed   hci0: adapter is powered off; bluetoothctl power on"))
      air.peripheral.end(SIGKILL)
      #expect(wait { air.reason.contains("not running") })
      let gone = air.house.vehiclectl("doctor", "--json")
      #expect(gone.status == 1)
      let findings = try #require(gone.json()["findings"] as? [[String: Any]])
      #expect(findings.first { $0["subject"] as? String == "bluetooth" }?["remedy"] as? String == "systemctl start bluetooth")
    }

    @Test func aConnectThatTakesLongCanBeCancelled() throws {
      let air = try Air("--radio-fault", "slow:30000")
      #expect(wait { air.reason.contains("connecting to") })
      #expect(air.house.vehiclectl("disconnect", "ev").status == 0)
      #expect(try air.status().link["state"] as? String == "down")
      // BlueZ has cancelled its connection attempt.
      #expect(wait { air.busctl("call", "org.bluez", Air.device, "org.bluez.Device1", "Disconnect").status == 0 })
      #expect(air.house.vehiclectl("connect", "ev").status == 0)
      #expect(wait { air.reason.contains("connecting to") })
    }
  }
}
