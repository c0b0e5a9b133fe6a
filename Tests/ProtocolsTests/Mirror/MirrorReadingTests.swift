import Testing

@testable import Peers
@testable import Protocols

/// The display reads at its own times: whatever its phase, a value must reach the profile for which it is sent.
@Suite struct MirrorReadingTests {
  private static func rig(_ random: inout SeededRandom, _ more: [String: Value] = [:]) throws -> MirrorRig {
    var rig = try MirrorRig.collecting(more, phase: Int64(random.next() % 1000) * .millisecond)
    rig.linkDelay = Int64(5 + random.next() % 150) * .millisecond
    return rig
  }

  private static func pause(_ random: inout SeededRandom, below milliseconds: UInt64) -> Nanoseconds {
    Int64(random.next() % milliseconds) * .millisecond
  }

  private static let switches = MirrorRig.allOn.filter { $0.key != "send" }

  @Test(arguments: 0..<4) func `a value reaches the profile of the name that was set before it`(_ seed: UInt64) throws {
    var random = SeededRandom(seed: seed)
    for run in 0..<50 {
      var rig = try Self.rig(&random)
      rig.start(restored: Self.switches, for: 10 * .second)
      rig.set("led", .int(30), id: 1)
      rig.observe("phone.steps", .int(100))
      rig.run(for: Self.pause(&random, below: 2000))
      rig.sendNow(id: 2)
      rig.run(for: Self.pause(&random, below: 8000))
      rig.set("username", .string("Bob"), id: 3)
      rig.run(for: Self.pause(&random, below: 500))
      rig.set("led", .int(60), id: 4)
      rig.observe("phone.steps", .int(200))
      rig.sendNow(id: 5)
      rig.run(for: 30 * .second)
      let profiles = rig.mirror.display.profiles
      #expect(profiles["Ada"]?["Bright"] == "30.0" && profiles["Bob"]?["Bright"] == "60.0", "\(run): \(profiles)")
      #expect(profiles["Ada"]?["StepC"] == "100.00" && profiles["Bob"]?["StepC"] == "200.00", "\(run): \(profiles)")
      #expect(rig.mirror.display.enrolled == ["Ada", "Bob"] && rig.mirror.failures.isEmpty)
      #expect((1...5).allSatisfy { rig.report($0).map { $0.text?.hasPrefix("pending") != true } == true }, "\(rig.results)")
    }
  }

  @Test(arguments: 0..<4) func `a value reaches its profile across reconnections and restarts`(_ seed: UInt64) throws {
    var random = SeededRandom(seed: 100 + seed)
    for run in 0..<30 {
      var rig = try Self.rig(&random)
      rig.start(restored: ["led": Array("10".utf8)], for: 10 * .second)
      rig.set("led", .int(30), id: 1)
      rig.run(for: 400 * .millisecond + Self.pause(&random, below: 4000))
      if run % 2 == 0 {
        rig.disconnect()
        rig.set("username", .string("Bob"), id: 2)
        rig.set("led", .int(60), id: 3)
        rig.connect()
        rig.run(for: 30 * .second)
      } else {
        try rig.restart(["username": .string("Bob")])
        rig.set("led", .int(60), id: 3)
        rig.run(for: 30 * .second)
      }
      let profiles = rig.mirror.display.profiles
      #expect(profiles["Ada"]?["Bright"] == "30.0" && profiles["Bob"]?["Bright"] == "60.0", "\(run): \(profiles)")
      #expect(rig.mirror.failures.isEmpty)
    }
  }

  @Test(arguments: 0..<4) func `no heart rate is lost when other values are sent at almost the same time`(_ seed: UInt64) throws {
    var random = SeededRandom(seed: 200 + seed)
    for run in 0..<100 {
      var rig = try Self.rig(&random)
      rig.start(restored: Self.switches, for: 10 * .second)
      rig.observe("band.heart-rate", .float(50))
      rig.set("led", .int(30), id: 1)
      rig.run(for: Self.pause(&random, below: 6000))
      rig.sendNow(id: 2)
      rig.run(for: Self.pause(&random, below: 4000))
      rig.observe("band.heart-rate", .float(51))
      rig.sendNow(id: 3)
      rig.run(for: 20 * .second)
      #expect(rig.mirror.display.profiles["Ada"]?["Heart"] == "51", "\(run): \(rig.sends)")
      #expect(rig.texts.count { $0 == "Heart: 51.0" } <= 2 && rig.machine.nextWake == nil)
    }
  }

  @Test(arguments: 0..<4) func `no heart rate is lost when update cycles follow each other closely`(_ seed: UInt64) throws {
    var random = SeededRandom(seed: 300 + seed)
    var rig = try Self.rig(&random, ["interval": .int(5)])
    rig.start(restored: MirrorRig.allOn)
    rig.observeAll()
    var lost = 0
    for beats in 60..<160 {
      rig.observe("band.heart-rate", .int(beats))
      rig.set("led", .int(beats % 100), id: CommandID(beats))
      rig.run(for: 30 * .second + Self.pause(&random, below: 5000))
      // The display must show the current value.
      if rig.mirror.display.profiles["Ada"]?["Heart"] != "\(beats)" { lost += 1 }
    }
    #expect(lost == 0 && rig.mirror.failures.isEmpty)
  }

  @Test func `a heart rate is not repeated without permission`() throws {
    var rig = try MirrorRig.collecting()
    rig.start(restored: Self.switches.merging(["led": Array("10".utf8)]) { $1 }, for: .second)
    rig.observe("band.heart-rate", .float(50))
    rig.sendNow(id: 1)
    rig.run(for: .second)
    rig.set("send-heart-rate", .bool(false), id: 2)
    rig.run(for: 20 * .second)
    #expect(rig.texts.count { $0.hasPrefix("Heart") } == 1 && rig.machine.nextWake == nil)
  }

  /// Reading as in the original, without the machine's precautions.
  @Test func `the display loses a heart rate that is sent while it reads`() {
    func heart(after delay: Nanoseconds) -> String? {
      var mirror = ESP32Mirror(.plain)
      var effects = Effects()
      for (text, moment) in [("Name: Ada", 0), ("Bright: 10.0", 0), ("Heart: 72.0", delay)] {
        mirror.handle(.received(.main, Array(text.utf8)), at: 500 * .millisecond + moment, &effects)
      }
      while let wake = mirror.nextWake, wake < 20 * .second { mirror.handle(.wake, at: wake, &effects) }
      return mirror.display.profiles["Ada"]?["Heart"]
    }
    // The display first requests it 1.1 s after the signal, and again 0.4 s later.
    let lost = (0..<40).filter { heart(after: Int64($0) * 100 * .millisecond) == nil }
    #expect(!lost.isEmpty && lost.count <= 5 && heart(after: 0) == "72" && heart(after: 5 * .second) == "72", "\(lost)")
  }

  @Test func `the first value under a name warns about pictures`() throws {
    var rig = try MirrorRig()
    rig.start(for: .second)
    rig.set("led", .int(40))
    rig.run(for: .second)
    #expect(rig.report()?.text?.contains("stand in front of the mirror") == true)
    rig.set("led", .int(41), id: 2)
    rig.run(for: .second)
    #expect(rig.outcome(2) == .success(Report()))
    // The name alone has no effect until a value follows.
    var dark = try MirrorRig([:])
    dark.start(for: .second)
    dark.set("username", .string("Bob"), id: 1)
    dark.run(for: 10 * .second)
    #expect(dark.report()?.text?.contains("after the next value") == true && dark.mirror.display.enrolled.isEmpty)
    dark.set("led", .int(40), id: 2)
    dark.run(for: 10 * .second)
    #expect(dark.report(2)?.text?.contains("stand in front of the mirror") == true && dark.mirror.display.enrolled == ["Bob"])
    try dark.restart(["username": .string("Bob")], for: .second)
    dark.set("led", .int(41), id: 3)
    dark.run(for: .second)
    #expect(dark.outcome(3) == .success(Report()), "the mirror has had a value under this name")
  }
}
