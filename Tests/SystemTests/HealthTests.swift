// Health data end to end: values that a script sets, a Gadgetbridge export in the state directory, and sensors over BLE.

import Foundation
import Testing

extension WholeHouse {
  @Suite("Health") struct HealthTests {
    private static func properties(_ house: House) throws -> [String: Any] {
      let devices = try #require(house.vehiclectl("status", "phone", "--json").json()["devices"] as? [[String: Any]])
      return try #require(devices.first)
    }

    /// A time zone in which it is between 12:00 and 13:00, so that no test runs past midnight.
    private static var noon: [String: String] {
      let hour = Int(Date().timeIntervalSince1970) / 3600 % 24
      return ["TZ": "NOON\(hour - 12 < 0 ? "" : "+")\(hour - 12)"]
    }

    @Test func `the help of a sensor lists its faults`() throws {
      let house = try House()
      func help(_ sensor: String) -> String { house.run("\(House.programs)/vehiclesim", [sensor, "--help"]).output }
      for fault in ["no-contact", "intervals", "energy"] {
        #expect(help("heart-rate").contains(fault) && !help("running").contains(fault), "\(fault)")
      }
      #expect(help("running").contains("overlong") && help("running").contains("silence"))
    }

    @Test func `values that a script sets are published and survive a restart`() throws {
      let house = try House()
      try house.write("[device.phone]\nkind = \"health\"\nheart-rate-max-age = 5\n")
      let first = try house.daemon(environment: Self.noon)
      let status = house.vehiclectl("status", "phone")
      #expect(status.status == 0 && status.lines.first == "phone (health): ready")
      let absent = house.vehiclectl("get", "phone.distance")
      #expect(absent.status == 1 && absent.output.isEmpty && absent.errors.contains("no data for today"))
      #expect(house.vehiclectl("set", "phone.steps", "4321").status == 0 && house.get("steps") == "4321")
      #expect(house.vehiclectl("set", "phone.active-energy", "250.5").output == "phone.active-energy: 250.5 kcal\n")
      #expect(house.vehiclectl("set", "steps", "-1").status == 2 && house.vehiclectl("set", "steps-source", "x").status == 2)
      #expect(house.get("steps-source")?.hasPrefix("set by hand at ") == true)
      #expect(house.vehiclectl("set", "heart-rate", "72").status == 0 && house.get("heart-rate") == "72")
      #expect(wait { house.get("heart-rate") == nil })
      #expect(try Self.properties(house)["state"] as? String == "live")
      for verb in ["connect", "disconnect"] {
        let outcome = house.vehiclectl(verb, "phone")
        #expect(outcome.status == 1 && outcome.errors.contains("the device has no link"))
      }
      // Acknowledged values are not lost.
      first.end(SIGKILL)
      let second = try house.daemon(environment: Self.noon)
      #expect(wait { house.get("steps") == "4321" && house.get("active-energy") == "250.5" })
      #expect(second.end() == 0)
    }

    @Test func `a Gadgetbridge export is read in place`() throws {
      let house = try House()
      let folder = "\(house.directory)/state/import"
      try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
      try house.write(
        "[device.phone]\nkind = \"health\"\ngadgetbridge = \"Gadgetbridge\"\n[device.other]\nkind = \"health\"\ngadgetbridge = \"missing\"\n"
      )
      // A band with samples of a few seconds ago and of yesterday.
      let script = """
        import sqlite3, sys, time
        now = int(time.time())
        base = sqlite3.connect(sys.argv[1])
        base.execute("PRAGMA journal_mode=WAL")
        base.executescript('''CREATE TABLE DEVICE (_id INTEGER PRIMARY KEY, NAME TEXT, IDENTIFIER TEXT);
        INSERT INTO DEVICE VALUES (1, 'Mi Band 4', 'AA:BB:CC:DD:EE:FF');
        CREATE TABLE MI_BAND_ACTIVITY_SAMPLE (TIMESTAMP INTEGER NOT NULL, DEVICE_ID INTEGER NOT NULL, USER_ID INTEGER NOT NULL,
        RAW_INTENSITY INTEGER, STEPS INTEGER NOT NULL, RAW_KIND INTEGER, HEART_RATE INTEGER NOT NULL, PRIMARY KEY (TIMESTAMP, DEVICE_ID));''')
        for at, steps, heart in [(now - 90000, 5000, 60), (now - 5, 12, 71)]:
            base.execute("INSERT INTO MI_BAND_ACTIVITY_SAMPLE VALUES (?, 1, 1, 20, ?, 1, ?)", (at, steps, heart))
        base.commit()
        """
      let made = house.run(House.python, ["-c", script, "\(folder)/Gadgetbridge"])
      #expect(made.status == 0, "\(made.errors)")
      let daemon = try house.daemon(environment: Self.noon)
      #expect(wait { house.get("phone.steps") == "12" }, "\(house.vehiclectl("status", "phone").output)")
      #expect(house.get("phone.heart-rate") == "71")
      #expect(house.get("phone.steps-source")?.hasPrefix("Gadgetbridge: Mi Band 4 at ") == true)
      #expect(house.vehiclectl("get", "phone.distance").errors.contains("Mi Band 4 does not record distance"))
      #expect(try Self.properties(house)["fault"] == nil)
      #expect(house.vehiclectl("status", "other").output.contains("no file missing in import/"))
      // The newer value wins, and the copy is removed.
      #expect(house.vehiclectl("set", "phone.steps", "50").status == 0 && house.get("phone.steps") == "50")
      #expect(!FileManager.default.fileExists(atPath: "\(house.directory)/state/.import"))
      #expect(daemon.end() == 0)
    }

    /// Starts a message bus and a simulated sensor on it.
    private static func air(_ house: House, _ arguments: [String]) throws -> [String: String] {
      let (_, environment) = try house.bus()
      let sensor = try house.start("vehiclesim", arguments + ["--on", "ble:unix:path=\(house.directory)/bus"])
      try #require(wait { sensor.printed.contains("\n") }, "the simulator prints nothing: \(sensor.complaints)")
      return environment
    }

    @Test(arguments: [[], ["--radio-fault", "no-descriptors"], ["--fault", "truncated:3"], ["--fault", "drop:4"]])
    func aStrapIsFoundAndListenedTo(_ arguments: [String]) throws {
      let house = try House()
      let environment = try Self.air(house, ["heart-rate"] + arguments)
      try house.write("[device.strap]\nkind = \"heart-rate\"\nlink = \"ble:Polar*\"\n")
      let daemon = try house.daemon(environment: environment)
      #expect(wait(seconds: 20) { house.get("heart-rate").flatMap(Double.init).map { (60...170).contains($0) } == true })
      if arguments.last == "drop:4" {
        let status = { house.vehiclectl("status", "strap").output }
        #expect(wait(seconds: 20) { status().contains("out of range") }, "\(status())")
        #expect(wait(seconds: 30) { house.get("contact") == "on" })
      }
      if arguments.last == "truncated:3" { #expect(wait { Int(house.get("bad-messages") ?? "") ?? 0 > 0 }) }
      if arguments.isEmpty {
        let devices = try #require(house.vehiclectl("status", "strap", "--json").json()["devices"] as? [[String: Any]])
        let links = devices.first?["links"] as? [[String: Any]]
        let details = links?.first?["details"] as? [String: String] ?? [:]
        #expect(details["profile"] == "180D/2A37" && details["write"] == "never")
      }
      #expect(daemon.end() == 0)
    }

    @Test func `a scan identifies sensors by their services`() throws {
      let house = try House()
      let environment = try Self.air(house, ["running", "--name", "Nameless", "--also", "Polar H9 77"])
      try house.write("[device.foot]\nkind = \"running\"\nlink = \"ble:Nameless\"\n")
      let daemon = try house.daemon(environment: environment)
      #expect(wait(seconds: 20) { house.get("distance") != nil && house.get("cadence") == "160" })
      #expect(house.vehiclectl("disconnect", "foot").status == 0)
      let scan = try house.start("vehiclectl", ["--socket", house.socket, "scan", "ble", "--json"])
      #expect(wait { scan.printed.contains("\"kind\":\"running\"") && scan.printed.contains("\"kind\":\"heart-rate\"") }, "\(scan.printed)")
      scan.end(SIGINT)
      #expect(daemon.end() == 0)
    }
  }
}
