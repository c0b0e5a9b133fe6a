import Peers
import Testing

@testable import Protocols

/// Which health and weather values are sent to the mirror, and when.
@Suite struct MirrorUpdateTests {
  @Test func `the first update comes after two seconds, the next ones every interval`() throws {
    var rig = try MirrorRig.collecting()
    rig.start(restored: MirrorRig.allOn)
    rig.observeAll()
    rig.run(for: 1900 * .millisecond)
    #expect(rig.texts == ["Connected", "Name: Ada"] && rig.status == "sending")
    rig.forget()
    rig.run(for: 200 * .millisecond)
    let cycle = [
      "Name: Ada", "Heart: 72.4", "CaloB: 310.25", "StepC: 4321.00", "DistW: 1.94", "TempF: 68", "Humid: 43", "Condi: Partly cloudy",
      "UVInd: 5",
    ]
    #expect(rig.texts == cycle)
    #expect(rig.text("sent-heart-rate") == "72.4" && rig.text("sent-distance") == "3.122" && rig.text("sent-temperature") == "20.3")
    rig.forget()
    rig.run(for: 59 * .second)
    #expect(rig.texts.isEmpty)
    rig.run(for: 2 * .second)
    #expect(rig.texts == cycle)
    let known = rig.mirror.display.profiles["Ada"] ?? [:]
    #expect(known["Heart"] == "72" && known["TempF"] == "68" && known["Condi"] == "Partly cloudy" && known["DistW"] == "1.94")
    #expect(rig.mirror.failures.isEmpty && rig.mirror.unreadTags.isEmpty)
  }

  @Test func `values that are not permitted, unknown or implausible are not sent`() throws {
    var rig = try MirrorRig.collecting()
    rig.start()
    #expect(rig.observing.count == 8 && rig.observing.contains("sky.uv-index"))
    rig.observeAll()
    rig.set("send", .bool(true))
    #expect(rig.code() == "collection-off")
    rig.set("health", .bool(true), id: 2)
    #expect(rig.report(2)?.text?.contains("no value is permitted yet") == true)
    rig.set("send", .bool(true), id: 3)
    rig.run(for: 10 * .second)
    rig.forget()
    rig.sendNow(id: 4)
    let refused = CommandError.refused(code: .noData, "no value is permitted: vehiclectl set DEVICE.send-heart-rate on")
    #expect(rig.error(4) == refused && rig.texts.isEmpty)
    rig.set("send-steps", .bool(true), id: 5)
    rig.set("send-heart-rate", .bool(true), id: 6)
    rig.give(.observed(reference: "band.heart-rate", .absent("stale")))
    rig.run(for: 3 * .second)
    #expect(rig.texts == ["Name: Ada", "StepC: 4321.00"])
    for (index, value) in [Value.float(.nan), .float(.infinity), .float(-5), .float(1e300), .string("many"), .list(["1"])].enumerated() {
      rig.observe("phone.steps", value)
      rig.sendNow(id: CommandID(10 + index))
      #expect(rig.code(CommandID(10 + index)) == "no-data")
    }
    #expect(rig.notes.contains { $0.hasPrefix("value cannot be sent: phone.steps") } && !rig.notes.contains { $0.contains("1e+300") })
    rig.set("send-steps", .bool(false), id: 30)
    rig.observe("phone.steps", .int(5))
    rig.sendNow(id: 31)
    let stale = CommandError.refused(code: .noData, "no value to send: band.heart-rate: stale")
    #expect(rig.error(31) == stale)
  }

  @Test func `collection cannot be switched on without configured sources`() throws {
    var rig = try MirrorRig()
    rig.start(for: .second)
    rig.set("health", .bool(true))
    rig.set("weather", .bool(true), id: 2)
    #expect(rig.code() == "not-configured" && rig.code(2) == "not-configured")
    rig.set("health", .bool(false), id: 3)
    #expect(rig.outcome(3) == .success(Report()) && rig.observing.isEmpty)
    rig.sendNow(id: 4)
    #expect(rig.code(4) == "collection-off")
  }

  @Test func `new weather is sent soon, health with the next update`() throws {
    var rig = try MirrorRig.collecting()
    rig.start(restored: MirrorRig.allOn)
    rig.observeAll()
    rig.run(for: 20 * .second)
    rig.forget()
    rig.observe("band.heart-rate", .float(90))
    rig.run(for: 10 * .second)
    #expect(rig.texts.isEmpty)
    rig.observe("sky.condition", .string("Rain"))
    rig.run(for: 2100 * .millisecond)
    #expect(rig.texts.contains("Condi: Rain") && rig.texts.contains("Heart: 90.0"))
    // A constantly changing temperature is rate-limited, and values that look the same on the mirror are not sent.
    let last = try #require(rig.sends.last).at
    rig.forget()
    for tenth in 0..<280 {
      rig.observe("sky.temperature", .float(20.3 + Double(tenth) / 10))
      rig.run(for: 100 * .millisecond)
    }
    #expect(rig.texts.isEmpty)
    rig.run(for: 4 * .second)
    #expect(try #require(rig.sends.first).at - last >= 30 * .second && rig.texts.contains("TempF: 118"))
    rig.run(for: 65 * .second)
    rig.forget()
    rig.observe("sky.temperature", .float(48.3))
    rig.run(for: 20 * .second)
    #expect(rig.texts.isEmpty)
  }

  @Test func `send-now sends an update at once and completes when it is acknowledged`() throws {
    var rig = try MirrorRig.collecting()
    rig.linkDelay = 100 * .millisecond
    rig.start(restored: MirrorRig.allOn.filter { $0.key != "send" }, for: .second)
    rig.observe("phone.steps", .int(7))
    rig.observe("sky.humidity", .float(99.9))
    #expect(rig.status == "connected")
    rig.forget()
    rig.sendNow()
    rig.run(for: 150 * .millisecond)
    #expect(rig.outcome() == nil)
    rig.run(for: .second)
    #expect(
      rig.texts == ["Name: Ada", "StepC: 7.00", "Humid: 99"]
        && rig.report()?.text?.hasPrefix("2 values acknowledged; stand in front") == true)
    rig.run(for: 200 * .second)
    #expect(rig.texts.count == 3)
    rig.disconnect("out of reach")
    rig.sendNow(id: 2)
    #expect(rig.error(2) == .notConnected("out of reach"))
  }

  @Test func `an update that is interrupted by a lost link fails its commands`() throws {
    var rig = try MirrorRig.collecting()
    rig.start(restored: MirrorRig.allOn, for: .second)
    rig.observeAll()
    rig.linkDelay = 300 * .millisecond
    rig.sendNow()
    rig.run(for: .second)
    rig.disconnect("out of reach")
    #expect(rig.error() == .notConnected("out of reach"))
    rig.linkDelay = 0
    rig.forget()
    rig.run(for: 100 * .second)
    #expect(rig.texts.isEmpty)
    // The whole session starts again.
    rig.connect()
    rig.run(for: 3 * .second)
    #expect(rig.texts.prefix(3) == ["Connected", "Name: Ada", "Name: Ada"] && rig.texts.count == 11)
  }

  @Test func `the interval and the switches are stored, and take effect when they are set`() throws {
    var rig = try MirrorRig.collecting(["interval": .int(600)])
    rig.start(for: .second)
    rig.observe("phone.steps", .int(7))
    for (id, name) in ["health", "send-steps", "send"].enumerated() { rig.set(name, .bool(true), id: CommandID(id + 1)) }
    rig.run(for: 10 * .second)
    rig.forget()
    rig.set("interval", .int(5), id: 9)
    rig.run(for: 16 * .second)
    #expect(rig.texts.filter { $0 == "StepC: 7.00" }.count == 3 && rig.text("interval") == "5")
    rig.set("send", .bool(false), id: 10)
    rig.forget()
    rig.run(for: 60 * .second)
    #expect(rig.texts.isEmpty && rig.status == "connected")
    rig.set("send", .bool(true), id: 11)
    try rig.restart(["username": .string("Ada"), "health": .list(["phone.steps"])], for: .second)
    #expect(rig.text("interval") == "5" && rig.text("send") == "on" && rig.status == "sending")
  }

  // MARK: Withdrawn values

  private static let evening: Int64 = (20_000 * 86_400 + 86_340) * 1_000_000
  private static let sums = ["phone.steps", "phone.active-energy", "phone.distance"]

  private static func midnight(_ rig: inout MirrorRig) {
    for reference in sums { rig.give(.observed(reference: reference, .absent("nothing yet today"))) }
  }

  @Test func `the totals of yesterday are withdrawn once`() throws {
    var rig = try MirrorRig.collecting()
    rig.wall = Self.evening
    rig.start(restored: MirrorRig.allOn)
    rig.observeAll()
    rig.run(for: 30 * .second)
    // On the same day the mirror's value is not withdrawn.
    rig.give(.observed(reference: "phone.steps", .absent("link down")))
    rig.run(for: 29 * .second)
    rig.forget()
    Self.midnight(&rig)
    rig.run(for: 120 * .second)
    let zeros = ["CaloB: 0.0", "StepC: 0", "DistW: 0"]
    #expect(zeros.allSatisfy { zero in rig.texts.count { $0 == zero } == 1 }, "\(rig.texts)")
    #expect(rig.text("sent-steps") == "0" && rig.mirror.display.profiles["Ada"]?["StepC"] == "0" && rig.mirror.failures.isEmpty)
    rig.observe("phone.steps", .int(12))
    rig.run(for: 70 * .second)
    #expect(rig.mirror.display.profiles["Ada"]?["StepC"] == "12.00")
  }

  /// `told` is the name of the key in earlier versions.
  @Test(arguments: ["acknowledged", "told"]) func `the totals of yesterday are withdrawn after a restart`(_ key: String) throws {
    var rig = try MirrorRig.collecting()
    rig.wall = Self.evening - 3_600_000_000
    rig.start(restored: MirrorRig.allOn)
    rig.observeAll()
    rig.run(for: 30 * .second)
    rig.wall += 6 * 3_600_000_000
    rig.disk[key] = rig.disk.removeValue(forKey: "acknowledged")
    try rig.restart(["username": .string("Ada"), "health": .list(Self.sums)])
    Self.midnight(&rig)
    rig.run(for: 70 * .second)
    #expect(rig.texts.filter { $0.hasPrefix("StepC") } == ["StepC: 0"])
    #expect(rig.disk["told"] == nil)
  }

  @Test func `unknown weather is withdrawn where the mirror supports that`() throws {
    var rig = try MirrorRig.collecting()
    rig.start(restored: MirrorRig.allOn)
    rig.observeAll()
    rig.run(for: 10 * .second)
    rig.forget()
    for metric in MirrorMetric.weather { rig.give(.observed(reference: "sky.\(metric.rawValue)", .absent("stale"))) }
    rig.give(.observed(reference: "band.heart-rate", .absent("stale")))
    rig.run(for: 200 * .second)
    #expect(rig.texts.count { $0 == "Condi: n/a" } == 1 && rig.texts.count { $0 == "UVInd: 0" } == 1)
    #expect(!rig.texts.contains { $0.hasPrefix("TempF") || $0.hasPrefix("Humid") || $0.hasPrefix("Heart") })
    #expect(rig.text("sent-condition") == "n/a" && rig.mirror.display.profiles["Ada"]?["Condi"] == "n/a")
    rig.observe("sky.condition", .string("Rain"))
    rig.run(for: 70 * .second)
    #expect(rig.mirror.display.profiles["Ada"]?["Condi"] == "Rain")
  }

  @Test func `switches that are set without a connection are pending`() throws {
    var rig = try MirrorRig.collecting()
    rig.give(.started(restored: [:], wall: WallTime(microseconds: 0)))
    rig.set("weather", .bool(true))
    rig.set("send", .bool(true), id: 2)
    #expect(rig.report()?.text?.hasPrefix("pending") == true && rig.report(2)?.text?.hasPrefix("pending") == true)
  }

  @Test func `missing weather is reported`() throws {
    var rig = try MirrorRig.collecting()
    rig.start(for: .second)
    for metric in MirrorMetric.weather {
      rig.give(.observed(reference: "sky.\(metric.rawValue)", .absent("there is no sky.\(metric.rawValue)")))
    }
    rig.set("weather", .bool(true))
    #expect(rig.report()?.text == "no value yet; sky.temperature: there is no sky.temperature")
  }

  // MARK: Options

  @Test(
    arguments: [
      (["health": .list(["phone.mood"])], "health"), (["health": .list(["phone.steps", "band.steps"])], "health"),
      (["health": .list(["sky.temperature"])], "health"), (["weather": .string("Sky!")], "weather"),
      (["weather": .string("sky.temperature")], "weather"),
      (["username": .string("O'Neill")], "username"),
    ] as [([String: Value], String)])
  func `invalid options are reported by name`(_ options: [String: Value], _ option: String) {
    let error = #expect(throws: OptionError.self) { try MirrorMachine(MirrorRig.setup(options)) }
    #expect(error?.option == option)
  }

  @Test func `key and IV are required and checked, except in the plain profile`() throws {
    #expect(throws: OptionError.self) { try MirrorMachine(Setup()) }
    var setup = MirrorRig.setup([:])
    setup.secrets["iv-file"] = nil
    #expect(throws: OptionError.self) { try MirrorMachine(setup) }
    setup = MirrorRig.setup([:])
    setup.secrets["iv-file"] = SecretBytes(Array("FEDCBA9876543210".utf8))
    let error = #expect(throws: OptionError.self) { try MirrorMachine(setup) }
    #expect(error?.option == "iv-file" && error?.message.contains("FEDC") == false)
    setup = MirrorRig.setup([:])
    setup.options["profile"] = .string("plain")
    #expect(throws: OptionError.self) { try MirrorMachine(setup) }
    _ = try MirrorMachine(Setup(options: ["profile": .string("plain")]))
    let published = try #require(Kind.mirror.warning?(MirrorRig.setup([:])))
    #expect(published.contains("same IV") && published.contains("public"))
    setup = MirrorRig.setup([:])
    setup.secrets["key-file"] = SecretBytes(Array("hex:000102030405060708090a0b0c0d0e0f".utf8))
    let custom = try #require(Kind.mirror.warning?(setup))
    #expect(custom.contains("same IV") && !custom.contains("public") && !custom.contains("key"))
    #expect(Kind.mirror.warning?(Setup(options: ["profile": .string("plain")]))?.contains("is not encrypted") == true)
  }
}
