// Health data end to end: values that a script sets, a Gadgetbridge export in the state directory, and sensors over BLE.

import Foundation
import Testing

extension EndToEnd {
  @Suite("Health") struct HealthTests {
    private static func properties(_ rig: Rig) throws -> [String: Any] {
      let devices = try #require(rig.vehiclectl("status", "phone", "--json").json()["devices"] as? [[String: Any]])
      return try #require(devices.first)
    }

    /// A time zone in which it is between 12:00 and 13:00, so that no test runs past midnight.
    private static var noon: [String: String] {
      let hour = Int(Date().timeIntervalSince1970) / 3600 % 24
      return ["TZ": "NOON\(hour - 12 < 0 ? "" : "+")\(hour - 12)"]
    }

    @Test func `the help of a sensor lists its faults`() throws {
      let rig = try Rig()
      func help(_ sensor: String) -> String { rig.run("\(Rig.programs)/vehiclesim", [sensor, "--help"]).output }
      for fault in ["no-contact", "intervals", "energy"] {
        #expect(help("heart-rate").contains(fault) && !help("foot-pod").contains(fault), "\(fault)")
      }
      #expect(help("foot-pod").contains("overlong") && help("foot-pod").contains("silence"))
    }

    @Test func `values that a script sets are published and survive a restart`() throws {
      let rig = try Rig()
      try rig.write("[device.phone]\nkind = \"health\"\nheart-rate-max-age = 5\n")
      let first = try rig.daemon(environment: Self.noon)
      let status = rig.vehiclectl("status", "phone")
      #expect(status.status == 0 && status.lines.first == "phone (health): ready")
      let absent = rig.vehiclectl("get", "phone.distance")
      #expect(absent.status == 1 && absent.output.isEmpty && absent.errors.contains("no data for today"))
      #expect(rig.vehiclectl("set", "phone.steps", "4321").status == 0 && rig.get("steps") == "4321")
      #expect(rig.vehiclectl("set", "phone.active-energy", "250.5").output == "phone.active-energy: 250.5 kcal\n")
      #expect(rig.vehiclectl("set", "steps", "-1").status == 2 && rig.vehiclectl("set", "steps-source", "x").status == 2)
      #expect(rig.get("steps-source")?.hasPrefix("set by hand at ") == true)
      #expect(rig.vehiclectl("set", "heart-rate", "72").status == 0 && rig.get("heart-rate") == "72")
      #expect(wait { rig.get("heart-rate") == nil })
      #expect(try Self.properties(rig)["state"] as? String == "live")
      for verb in ["connect", "disconnect"] {
        let outcome = rig.vehiclectl(verb, "phone")
        #expect(outcome.status == 1 && outcome.errors.contains("the device has no link"))
      }
      // Acknowledged values are not lost.
      first.end(SIGKILL)
      let second = try rig.daemon(environment: Self.noon)
      #expect(wait { rig.get("steps") == "4321" && rig.get("active-energy") == "250.5" })
      #expect(second.end() == 0)
    }

    @Test func `a Gadgetbridge export is read in place`() throws {
      let rig = try Rig()
      let folder = "\(rig.directory)/state/import"
      try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
      try rig.write(
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
      let made = rig.run(Rig.python, ["-c", script, "\(folder)/Gadgetbridge"])
      #expect(made.status == 0, "\(made.errors)")
      let daemon = try rig.daemon(environment: Self.noon)
      #expect(wait { rig.get("phone.steps") == "12" }, "\(rig.vehiclectl("status", "phone").output)")
      #expect(rig.get("phone.heart-rate") == "71")
      #expect(rig.get("phone.steps-source")?.hasPrefix("Gadgetbridge: Mi Band 4 at ") == true)
      #expect(rig.vehiclectl("get", "phone.distance").errors.contains("Mi Band 4 does not record distance"))
      #expect(try Self.properties(rig)["fault"] == nil)
      #expect(rig.vehiclectl("status", "other").output.contains("no file missing in import/"))
      // The newer value wins, and the copy is removed.
      #expect(rig.vehiclectl("set", "phone.steps", "50").status == 0 && rig.get("phone.steps") == "50")
      #expect(!FileManager.default.fileExists(atPath: "\(rig.directory)/state/.import"))
      #expect(daemon.end() == 0)
    }

    /// Starts a message bus and a simulated sensor on it.
    private static func startSensor(_ rig: Rig, _ arguments: [String]) throws -> [String: String] {
      let (_, environment) = try rig.bus()
      let sensor = try rig.start("vehiclesim", arguments + ["--on", "ble:unix:path=\(rig.directory)/bus"])
      try #require(wait { sensor.stdout.contains("\n") }, "the simulator prints nothing: \(sensor.stderr)")
      return environment
    }

    @Test(arguments: [[], ["--radio-fault", "no-descriptors"], ["--fault", "truncated:3"], ["--fault", "drop:4"]])
    func `a chest strap is found and its values are published`(_ arguments: [String]) throws {
      let rig = try Rig()
      let environment = try Self.startSensor(rig, ["heart-rate"] + arguments)
      try rig.write("[device.strap]\nkind = \"heart-rate\"\nlink = \"ble:Polar*\"\n")
      let daemon = try rig.daemon(environment: environment)
      #expect(wait(seconds: 20) { rig.get("heart-rate").flatMap(Double.init).map { (60...170).contains($0) } == true })
      if arguments.last == "drop:4" {
        let status = { rig.vehiclectl("status", "strap").output }
        #expect(wait(seconds: 20) { status().contains("out of range") }, "\(status())")
        #expect(wait(seconds: 30) { rig.get("contact") == "on" })
      }
      if arguments.last == "truncated:3" { #expect(wait { Int(rig.get("bad-messages") ?? "") ?? 0 > 0 }) }
      if arguments.isEmpty {
        let devices = try #require(rig.vehiclectl("status", "strap", "--json").json()["devices"] as? [[String: Any]])
        let links = devices.first?["links"] as? [[String: Any]]
        let details = links?.first?["details"] as? [String: String] ?? [:]
        #expect(details["profile"] == "180D/2A37" && details["write"] == "never")
      }
      #expect(daemon.end() == 0)
    }

    @Test func `a scan identifies sensors by their services`() throws {
      let rig = try Rig()
      let environment = try Self.startSensor(rig, ["foot-pod", "--name", "Nameless", "--also", "Polar H9 77"])
      try rig.write("[device.foot]\nkind = \"foot-pod\"\nlink = \"ble:Nameless\"\n")
      let daemon = try rig.daemon(environment: environment)
      #expect(wait(seconds: 20) { rig.get("distance") != nil && rig.get("cadence") == "160" })
      #expect(rig.vehiclectl("disconnect", "foot").status == 0)
      let scan = try rig.start("vehiclectl", ["--socket", rig.socket, "scan", "ble", "--json"])
      #expect(wait { scan.stdout.contains("\"kind\":\"foot-pod\"") && scan.stdout.contains("\"kind\":\"heart-rate\"") }, "\(scan.stdout)")
      scan.end(SIGINT)
      #expect(daemon.end() == 0)
    }
  }
}
