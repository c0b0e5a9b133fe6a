import MachineTesting
import Peers
import Testing

@testable import Protocols

/// The machine with a simulated gpsd, in virtual time.
@Suite("Position") struct PositionTests {
  private typealias Rig = Host<PositionMachine, PeerLink<GPSD>>

  private static let ofFix = [
    "latitude", "longitude", "speed", "track", "altitude", "horizontal-accuracy", "vertical-accuracy", "fix-time",
  ]

  private func rig(_ faults: String..., rate: Double = 1, gps: String? = nil, maxAge: Int = 5) throws -> Rig {
    var options: [String: Value] = ["max-age": .int(maxAge)]
    if let gps { options["gps"] = .string(gps) }
    let machine = try #require(try Kind.position.make(Setup(options: options)) as? PositionMachine)
    var rig = Rig(machine, PeerLink(GPSD(rate: rate, faults: try faults.map { try GPSDFault($0) })))
    rig.start()
    rig.connect()
    return rig
  }

  /// A host whose other end does nothing; the test plays gpsd.
  private func bare(gps: String? = nil) throws -> Rig {
    var rig = try rig("mute", gps: gps)
    rig.receive(#"{"class":"VERSION","release":"3.22"}"#)
    return rig
  }

  @Test func `the position is published while the receiver drives in a loop`() throws {
    var rig = try rig()
    #expect(rig.status == "listening" && rig.text("gpsd-version") == "3.22" && rig.sends.count == 1)
    rig.run(for: 1500 * .millisecond)
    #expect(rig.status == "live" && rig.text("fix") == "3d" && rig.text("receiver") == "/dev/ttyUSB0" && rig.fault == nil)
    #expect(rig.number("latitude").map { abs($0 - 63.4301248) < 1e-6 } == true && rig.number("longitude") == 10.39)
    #expect(rig.number("speed") == 50 && rig.number("track") == 0 && rig.number("altitude") == 123)
    #expect(rig.number("horizontal-accuracy") == 3.8 && rig.number("vertical-accuracy") == 4.6)
    #expect(rig.text("fix-time") == "2026-06-01T12:00:01.000Z")
    #expect(rig.number("satellites-used") == 9 && rig.number("satellites-seen") == 12)
    rig.run(for: 288 * .second)
    #expect(rig.seen["track"] == ["0", "90", "180", "270"] && rig.number("bad-messages") == 0)
    #expect(rig.number("latitude").map { abs($0 - 63.43) < 0.001 } == true)
    #expect(rig.statuses == ["waiting", "connecting", "listening", "live"] && rig.sends.count == 1)
  }

  @Test(arguments: [
    "split:2", "cut:4", "garbage:2", "long:5", "nan:2", "sparse:2", "early:1", "error:3", "old", "2d", "second", "no-fix:20:3000",
    "frozen:20:3000", "silence:20:3000", "hang:20:3000", "unplug:20:3000",
  ]) func `the position is published despite these faults`(_ fault: String) throws {
    var rig = try rig(fault)
    rig.run(for: 118_500 * .millisecond)
    #expect(rig.status == "live" && rig.number("latitude") != nil && rig.text("receiver") == "/dev/ttyUSB0", "\(rig.values)")
    let isDamaged = ["cut", "garbage", "long"].contains { fault.hasPrefix($0) }
    #expect((rig.number("bad-messages") ?? 0 > 0) == isDamaged)
    #expect((rig.number("altitude") == nil) == (fault == "2d"))
    #expect(rig.resets.isEmpty && rig.fault == nil)
  }

  @Test func `old versions report other fields`() throws {
    var rig = try rig("old")
    rig.run(for: 2 * .second)
    #expect(rig.number("altitude") == 123 && rig.number("horizontal-accuracy") == 5)
    #expect(rig.number("satellites-used") == 9 && rig.number("satellites-seen") == 12)
  }

  @Test func `without a fix there is no position`() throws {
    var rig = try rig("no-fix:@5:10000")
    rig.run(for: 4500 * .millisecond)
    #expect(rig.number("latitude") != nil)
    rig.run(for: 1 * .second)
    #expect(rig.status == "no-fix" && rig.text("fix") == "none" && rig.fault == nil)
    for name in Self.ofFix { #expect(rig.absence(name)?.hasPrefix("no fix: the receiver needs a clear view") == true, "\(name)") }
    #expect(rig.number("satellites-seen") == 12)
    rig.run(for: 11 * .second)
    #expect(rig.status == "live" && rig.text("fix") == "3d" && rig.number("latitude") != nil)
  }

  @Test func `a receiver that falls silent has no position`() throws {
    var rig = try rig("silence:@5:60000")
    rig.run(for: 8 * .second)
    #expect(rig.number("latitude") != nil && rig.sends.count == 1)
    rig.run(for: 1 * .second)
    #expect(rig.status == "silent" && rig.fault == "no report of the GPS receiver; check it with gpsmon")
    for name in Self.ofFix + ["fix"] { #expect(rig.absence(name) == rig.fault, "\(name)") }
    rig.run(for: 40 * .second)
    #expect(rig.resets.isEmpty && rig.sends.count == 4, "gpsd still responds")
    rig.run(for: 20 * .second)
    #expect(rig.status == "live" && rig.fault == nil && rig.number("latitude") != nil)
  }

  @Test func `a position that is repeated expires`() throws {
    var rig = try rig("frozen:@5:20000", maxAge: 3)
    rig.run(for: 6500 * .millisecond)
    #expect(rig.number("latitude") != nil)
    rig.run(for: 1 * .second)
    #expect(rig.status == "no-fix" && rig.absence("latitude") == "the receiver repeats an old position; if this persists, reconnect it")
    rig.run(for: 20 * .second)
    #expect(rig.status == "live" && rig.number("latitude") != nil)
  }

  @Test func `a gpsd that hangs is disconnected`() throws {
    var rig = try rig("hang:@5")
    rig.run(for: 23 * .second)
    #expect(rig.absence("latitude") != nil && rig.resets.isEmpty)
    rig.run(for: 1 * .second)
    #expect(rig.resets == ["gpsd does not respond; check it: systemctl status gpsd"] && rig.status == "failing")
    rig.connect()
    rig.run(for: 2 * .second)
    #expect(rig.status == "live" && rig.fault == nil)
  }

  @Test func `a restart of gpsd`() throws {
    var rig = try rig("restart:@5")
    rig.run(for: 6 * .second)
    #expect(rig.status == "waiting" && rig.absence("latitude") == "gpsd restarts" && rig.machine.nextWake == nil)
    rig.connect()
    rig.run(for: 2 * .second)
    #expect(rig.status == "live" && rig.number("latitude") != nil)
  }

  @Test func `a receiver that is unplugged, and plugged in again`() throws {
    var rig = try rig("unplug:@5:30000")
    rig.run(for: 5500 * .millisecond)
    #expect(rig.status == "no-receiver" && rig.fault?.hasPrefix("gpsd has no GPS receiver; connect one") == true)
    for name in Self.ofFix + ["fix"] { #expect(rig.absence(name) == rig.fault, "\(name)") }
    #expect(rig.absence("receiver") == "the receiver /dev/ttyUSB0 was disconnected" && rig.number("satellites-used") == nil)
    rig.run(for: 31 * .second)
    #expect(rig.status == "live" && rig.text("receiver") == "/dev/ttyUSB0" && rig.number("latitude") != nil)
    #expect(rig.resets.isEmpty)
  }

  @Test func `a gpsd without a receiver is asked again`() throws {
    var rig = try rig("no-receiver")
    #expect(rig.status == "no-receiver" && rig.absence("latitude")?.hasPrefix("gpsd has no GPS receiver") == true)
    rig.run(for: 61 * .second)
    #expect(rig.resets.isEmpty && rig.sends.count == 5 && rig.statuses.count == 4, "\(rig.statuses)")
    // A receiver that is added is opened by a new subscription.
    rig.receive(#"{"class":"DEVICE","path":"/dev/a","activated":"2026-06-01T12:00:00.000Z"}"#)
    #expect(rig.sends.count == 6)
  }

  @Test(arguments: [
    ("ssh", "the server is not gpsd; check link, usually tcp:localhost:2947"),
    ("nmea", "the server sends NMEA 0183 instead of gpsd's JSON; "),
    ("mute", "no reply from gpsd: another program may be listening on this port; check link, usually tcp:localhost:2947"),
  ]) func `another server is named, and nothing is sent to it`(_ fault: String, _ message: String) throws {
    var rig = try rig(fault)
    rig.isTranscribed = true
    rig.run(for: 10 * .second)
    #expect(rig.status == "failing" && rig.fault?.hasPrefix(message) == true && rig.resets == [rig.fault])
    #expect(rig.absence("latitude") == rig.fault && rig.sends.isEmpty)
    #expect(!rig.output.joined().contains("6325"), "the position in NMEA is not shown")
    // The message remains until another attempt fails otherwise.
    rig.connect()
    #expect(rig.fault?.hasPrefix(message) == true)
    rig.disconnect("refused")
    #expect(fault != "mute" || rig.fault == nil && rig.status == "waiting")
  }

  @Test func `the first receiver with a fix is used, for as long as it has one`() throws {
    var rig = try bare()
    let fix = { (path: String, latitude: Int, second: Int) in
      #"{"class":"TPV","device":"\#(path)","mode":3,"time":"2026-06-01T12:00:\#(second)Z","lat":\#(latitude),"lon":1}"#
    }
    rig.receive(#"{"class":"TPV","device":"/dev/a","mode":1}"#)
    #expect(rig.text("receiver") == "/dev/a" && rig.status == "no-fix")
    rig.receive(fix("/dev/b", 2, 10))
    #expect(rig.text("receiver") == "/dev/b" && rig.number("latitude") == 2)
    rig.receive(fix("/dev/a", 1, 11))
    #expect(rig.text("receiver") == "/dev/b" && rig.number("latitude") == 2)
    rig.receive(#"{"class":"TPV","device":"/dev/b","mode":1}"#)
    #expect(rig.absence("latitude") != nil)
    rig.receive(fix("/dev/a", 1, 12))
    #expect(rig.text("receiver") == "/dev/a" && rig.number("latitude") == 1)
    rig.receive(#"{"class":"SKY","device":"/dev/b","uSat":3}"#)
    #expect(rig.number("satellites-used") == nil)
    // A silent receiver is replaced even by one without a fix.
    rig.run(for: 4 * .second)
    rig.receive(#"{"class":"TPV","device":"/dev/b","mode":1}"#)
    #expect(rig.number("latitude") == 1)
    rig.run(for: 2 * .second)
    rig.receive(#"{"class":"TPV","device":"/dev/b","mode":1}"#)
    #expect(rig.status == "no-fix" && rig.text("receiver") == "/dev/b")
  }

  @Test func `a receiver that gpsd no longer lists is withdrawn`() throws {
    var rig = try bare()
    rig.receive(#"{"class":"DEVICES","devices":[{"path":"/dev/a"}]}"#)
    rig.receive(#"{"class":"TPV","device":"/dev/a","mode":3,"lat":1,"lon":1}"#)
    #expect(rig.text("receiver") == "/dev/a" && rig.number("latitude") == 1)
    rig.receive(#"{"class":"DEVICES","devices":[]}"#)
    #expect(rig.absence("receiver") == "gpsd no longer lists the receiver" && rig.number("latitude") == nil)
    #expect(rig.status == "no-receiver")
  }

  @Test func `only the configured receiver is used`() throws {
    var rig = try bare(gps: "/dev/b")
    rig.receive(#"{"class":"DEVICES","devices":[{"path":"/dev/a"},{"path":"/dev/c"}]}"#)
    #expect(rig.fault == "gpsd has no receiver /dev/b; connect it, or set gps to one that gpsd has: /dev/a, /dev/c")
    rig.receive(#"{"class":"TPV","device":"/dev/a","mode":3,"lat":1,"lon":1}"#)
    #expect(rig.number("latitude") == nil && rig.status == "no-receiver")
    rig.receive(#"{"class":"DEVICE","path":"/dev/b","activated":"2026-06-01T12:00:00.000Z"}"#)
    #expect(rig.status == "listening" && rig.fault == nil)
    rig.receive(#"{"class":"TPV","device":"/dev/b","mode":3,"lat":2,"lon":1}"#)
    #expect(rig.number("latitude") == 2)
    rig.receive(#"{"class":"TPV","mode":3,"lat":3,"lon":1}"#)
    #expect(rig.number("latitude") == 2, "a report without a receiver is ambiguous")
  }

  @Test func `a value that is missing in one report is withdrawn only if it stays missing`() throws {
    var rig = try bare()
    rig.receive(#"{"class":"TPV","mode":3,"lat":1,"lon":1,"altMSL":7,"speed":1}"#)
    #expect(rig.number("altitude") == 7 && rig.absence("track") == "not reported by the receiver")
    rig.run(for: 1 * .second)
    rig.receive(#"{"class":"TPV","mode":2,"lat":1,"lon":1}"#)
    #expect(rig.text("fix") == "3d" && rig.number("altitude") == 7)
    rig.run(for: 1 * .second)
    rig.receive(#"{"class":"TPV","mode":2,"lat":1,"lon":1}"#)
    #expect(rig.text("fix") == "2d" && rig.absence("altitude") == "the fix is 2d" && rig.absence("speed") == "not reported by the receiver")
    rig.receive(#"{"class":"TPV","mode":3,"eph":4}"#)
    #expect(rig.number("latitude") == 1, "a report without coordinates changes nothing")
  }

  @Test func `a fix without coordinates is no position`() throws {
    var rig = try bare()
    rig.receive(#"{"class":"TPV","mode":3,"eph":4}"#)
    #expect(rig.status == "no-fix" && rig.absence("latitude")?.hasPrefix("the receiver reports a fix without coordinates") == true)
  }

  @Test func `no message contains a coordinate`() throws {
    var rig = try rig("garbage:3", "cut:4", "error:5", "no-fix:10:3000", "unplug:20:9000", rate: 5)
    rig.isTranscribed = true
    rig.run(for: 30 * .second)
    let names = PositionProperty.allCases.filter { $0 == .latitude || $0 == .longitude }.map {
      PositionProperty.table(maxAge: 1)[$0.rawValue].name
    }
    let values = names.reduce(Set<String>()) { $0.union(rig.seen[$1] ?? []) }
    #expect(values.count > 10)
    for text in rig.output where !values.contains(text) { #expect(!text.contains("63.4") && !text.contains("10.39"), "\(text)") }
    #expect(!(rig.events + rig.notes + rig.faults + rig.resets).joined().contains("63.4"))
  }

  @Test func `commands are rejected, and stopping ends at once`() throws {
    var rig = try rig()
    rig.run(for: 2 * .second)
    rig.set("latitude", .float(1))
    #expect(rig.code() == "read-only")
    rig.give(.stopping)
    #expect(rig.hasStopped && rig.absence("latitude") == "the daemon is stopping" && rig.machine.nextWake == nil)
  }

  @Test(arguments: ["", " ", "/dev/tty USB0", "\u{7}", String(repeating: "x", count: 129)])
  func `a receiver that cannot be one is an error`(_ path: String) {
    let error = #expect(throws: OptionError.self) { _ = try Kind.position.make(Setup(options: ["gps": .string(path)])) }
    #expect(error?.option == "gps" && error?.message.contains("/dev/ttyUSB0") == true)
  }
}

extension Host where Subject == PositionMachine {
  fileprivate mutating func receive(_ line: String) { give(.received(.main, Array((line + "\r\n").utf8))) }
}
