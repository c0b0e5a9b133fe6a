import Testing

@testable import Protocols

/// Values that users and scripts set, across midnight, restarts and clock changes.
@Suite struct HealthTests {
  private static let hour: Nanoseconds = 3600 * .second

  @Test func `a set value is stored, then published with its source`() throws {
    var rig = try HealthRig()
    rig.start()
    #expect(rig.absence("steps") == "no data for today: vehiclectl set DEVICE.steps VALUE" && rig.status == "ready")
    #expect(rig.absence("heart-rate") == "no measurement in the last 120 s: vehiclectl set DEVICE.heart-rate BPM")
    #expect(rig.machine.nextWake == nil, "nothing is due without values")
    let (steps, energy) = (rig.set("steps", 4321), rig.set("active-energy", 250.5))
    #expect(rig.isDone(steps) && rig.isDone(energy) && rig.status == "live")
    #expect(rig.number("steps") == 4321 && rig.number("active-energy") == 250.5 && rig.number("distance") == nil)
    #expect(rig.text("steps-source") == "set by hand at 14:05")
    rig.set("steps", 0)
    #expect(rig.number("steps") == 0)
  }

  @Test func `a set completes when it is stored, and further sets are stored together`() throws {
    var rig = try HealthRig()
    rig.diskIsQuick = false
    rig.start()
    let ids = (1...20).map { rig.set("steps", Double($0)) }
    #expect(rig.stores == 1 && rig.results.isEmpty && rig.number("steps") == nil)
    rig.finishStore()
    #expect(rig.number("steps") == 1 && rig.isDone(ids[0]) && rig.results.count == 1 && rig.stores == 2)
    rig.finishStore()
    #expect(rig.number("steps") == 20 && ids.allSatisfy(rig.isDone) && rig.stores == 2)
    rig.diskWorks = false
    let failed = rig.set("steps", 99)
    rig.finishStore()
    #expect(rig.results[failed]?.count == 1 && !rig.isDone(failed) && rig.number("steps") == 20)
    rig.diskWorks = true
    let last = rig.set("distance", 3.5)
    rig.finishStore()
    #expect(rig.isDone(last) && rig.number("steps") == 20 && rig.number("distance") == 3.5)
  }

  @Test func `sums end at local midnight, not at midnight UTC`() throws {
    var rig = try HealthRig()
    rig.start()
    rig.set("steps", 4321)
    rig.run(for: 9 * Self.hour + 54 * 60 * .second)
    #expect(rig.number("steps") == 4321)
    rig.run(for: 61 * .second)
    #expect(rig.absence("steps")?.hasPrefix("no data for today") == true && rig.status == "ready")
    #expect(rig.machine.nextWake == nil)
    rig.set("steps", 10)
    #expect(rig.number("steps") == 10)
    #expect(rig.timeRequests < 150)
  }

  @Test func `sums are restored on the same day, but not on the next`() throws {
    var rig = try HealthRig()
    rig.start()
    rig.set("steps", 4321)
    rig.set("heart-rate", 72)
    try rig.restart(after: 60 * .second)
    #expect(rig.number("steps") == 4321 && rig.number("heart-rate") == 72 && rig.text("steps-source") == "set by hand at 14:05")
    #expect(rig.ages["steps"] == 60 * .second && rig.ages["heart-rate"] == 60 * .second)
    rig.run(for: 61 * .second)
    #expect(rig.number("heart-rate") == nil)
    try rig.restart(after: 3 * Self.hour)
    #expect(rig.number("steps") == 4321 && rig.number("heart-rate") == nil)
    // The clock was behind by an hour and is corrected.
    rig.wall += 3_600_000_000
    rig.run(for: 301 * .second)
    #expect(rig.ages["steps"].map { $0 > 4 * Self.hour } == true)
    try rig.restart(after: 12 * Self.hour)
    #expect(rig.number("steps") == nil)
  }

  @Test(arguments: [
    "steps many 20522 1773147900000000\nactive-energy 5 20522 1773147900000000\n", "steps", "\u{0}", String(repeating: "x\n", count: 9),
  ])
  func `damaged stored values are reported, and the others are restored`(_ stored: String) throws {
    var rig = try HealthRig()
    rig.start(restored: [HealthStore.key: Array(stored.utf8)])
    #expect(rig.events.count == 1 && rig.number("steps") == nil)
    #expect((rig.number("active-energy") == 5) == stored.contains("active-energy"))
  }

  @Test func `a heart rate expires even if the wall clock is set`() throws {
    var rig = try HealthRig(["heart-rate-max-age": .float(30)])
    rig.start()
    rig.set("heart-rate", 72)
    rig.wall -= 86_400_000_000
    rig.run(for: 29 * .second)
    #expect(rig.number("heart-rate") == 72)
    rig.run(for: 2 * .second)
    #expect(rig.absence("heart-rate") == "no measurement in the last 30 s: vehiclectl set DEVICE.heart-rate BPM")
    rig.set("heart-rate", 72)
    #expect(rig.number("heart-rate") == 72 && rig.published["heart-rate"] == 4)
    // A value with a time in the future is not restored.
    rig.wall += 400 * 86_400_000_000
    rig.set("heart-rate", 80)
    rig.wall -= 400 * 86_400_000_000
    try rig.restart()
    #expect(rig.number("heart-rate") == nil)
  }

  @Test func `after a boot with a wrong clock, the day's values are restored once the clock is right`() throws {
    var rig = try HealthRig()
    rig.start()
    rig.set("steps", 4321)
    let truth = rig.wall
    rig.wall = 0
    try rig.restart()
    #expect(rig.number("steps") == nil)
    rig.wall = truth + 60_000_000
    rig.run(for: 301 * .second)
    #expect(rig.number("steps") == 4321)
    // The clock is set forward past midnight.
    rig.wall += 12 * 3_600_000_000
    rig.run(for: 301 * .second)
    #expect(rig.number("steps") == nil)
  }

  @Test func `time zones and daylight saving move midnight`() throws {
    var rig = try HealthRig()
    rig.start()
    rig.set("steps", 4321)
    // In Auckland it is already the next day.
    rig.utcOffset = 12 * 3600
    rig.run(for: 301 * .second)
    #expect(rig.number("steps") == nil)
    rig.utcOffset = 3600
    rig.set("steps", 5000)
    // Daylight saving time begins: midnight is an hour earlier.
    rig.utcOffset = 7200
    rig.run(for: 8 * Self.hour + 40 * 60 * .second)
    #expect(rig.number("steps") == 5000)
    rig.run(for: 15 * 60 * .second)
    #expect(rig.number("steps") == nil)
  }

  @Test func `midnight is correct on a day with a change to daylight saving time`() {
    // Berlin, 2026-03-29: midnight at 23:00 UTC of the day before, summer time from 01:00 UTC.
    let midnight: Int64 = 1_774_738_800
    var clock = DayClock(WallTime(microseconds: (midnight + 600) * 1_000_000, utcOffset: 3600), at: 0)
    #expect(clock.midnight == midnight)
    let later = WallTime(microseconds: (midnight + 36_000) * 1_000_000, utcOffset: 7200, midnight: midnight)
    #expect(DayClock(later, at: 0).midnight == midnight, "a start after the change gives the same midnight")
    let wasSet = clock.set(later, at: 35_400 * .second)
    #expect(clock.midnight == midnight && !wasSet && clock.timeOfDay(of: later.microseconds) == "11:00")
    let untilMidnight: Int64 = 23 * 3600 - 600
    #expect(clock.nextDay == untilMidnight * .second)
    let jumped = clock.set(WallTime(microseconds: 0), at: 35_401 * .second)
    #expect(jumped && clock.day == 0 && clock.midnight == 0)
    for extreme in [Int64.min, .max] {
      for offset in [Int.min, 0, .max] {
        let clock = DayClock(WallTime(microseconds: extreme, utcOffset: offset), at: .max)
        #expect(clock.timeOfDay(of: extreme).count == 5)
        #expect(clock.age(of: .min, at: .max) >= 0 && clock.age(of: .max, at: 0) == 0)
      }
    }
  }

  @Test func `an estimated distance is marked as such, and replaced by a set one`() throws {
    var rig = try HealthRig(["step-length": .float(0.75)])
    rig.start()
    #expect(rig.number("distance") == nil)
    rig.set("steps", 4000)
    #expect(rig.number("distance") == 3)
    #expect(rig.text("distance-source") == "estimated from steps of 0.75 m (set by hand at 14:05)")
    rig.set("distance", 2.8)
    #expect(rig.number("distance") == 2.8 && rig.text("distance-source") == "set by hand at 14:05")
  }

  @Test(arguments: [
    "", "steps", "steps x 1 2", "steps 5 99999999999999999999 1", "steps -1 1 1", "steps nan 1 1", "\u{0}\u{1}", "speed 1 1 1",
    "heart-rate 72 1 -9223372036854775808", "heart-rate 72 0 9223372036854775807", "steps 1e300 1 1",
  ]) func `a damaged file yields no values`(_ text: String) throws {
    var machine = HealthMachine(try HealthSettings(Setup()))
    var effects = Effects()
    let wall = WallTime(microseconds: HealthRig.afternoon, utcOffset: 3600)
    machine.handle(.started(restored: ["values": Array(text.utf8)], wall: wall), at: 0, &effects)
    #expect(effects.readings.allSatisfy { if case .absent = $0.content { true } else { false } })
    #expect(machine.nextWake.map { $0 > 0 } != false)
  }

  @Test func `a stopping machine completes every command once`() throws {
    var rig = try HealthRig()
    rig.diskIsQuick = false
    rig.start()
    let ids = [rig.set("steps", 1), rig.set("steps", 2)]
    rig.give(.stopping)
    rig.finishStore()
    rig.finishStore()
    #expect(rig.hasStopped && ids.allSatisfy { rig.results[$0]?.count == 1 && !rig.isDone($0) })
    #expect(rig.disk["values"].map { String(decoding: $0, as: UTF8.self).hasPrefix("steps 2 ") } == true)
  }

  @Test func `invalid options are reported by name`() {
    func wrong(_ options: [String: Value]) -> String? {
      do throws(OptionError) { _ = try HealthSettings(Setup(options: options)) } catch { return error.option }
      return nil
    }
    for name in ["", "a/b", ".x", "../y"] { #expect(wrong(["gadgetbridge": .string(name)]) == "gadgetbridge") }
    #expect(wrong(["gadgetbridge-device": .string("Mi Band 4")]) == "gadgetbridge-device")
    #expect(wrong(["gadgetbridge": .string("Gadgetbridge")]) == nil)
  }

  @Test func `no order of inputs crashes the machine, and every command completes once`() throws {
    for seed in 1...10 {
      var dice = OBDRobustnessTests.Dice(state: UInt64(seed) &* 0x2545_F491_4F6C_DD1D)
      var machine = HealthMachine(try HealthSettings(Setup(options: ["gadgetbridge": .string("g"), "step-length": .float(0.7)])))
      var effects = Effects()
      var (now, lastID, stores): (Instant, CommandID, Int) = (Int64(dice.below(1 << 40)), 0, 0)
      var completions: [CommandID: Int] = [:]
      for _ in 0..<2000 {
        now &+= [0, .millisecond, .second, 61 * .second, 20 * 3600 * .second][dice.below(5)]
        effects.removeAll()
        let wall = WallTime(microseconds: [0, .max, .min, HealthRig.afternoon][dice.below(4)], utcOffset: [0, .max, 3600][dice.below(3)])
        let input: Input
        switch dice.below(9) {
        case 0: input = .started(restored: ["values": [UInt8(dice.below(256))]], wall: wall)
        case 1, 2: input = .time(wall)
        case 3, 4:
          lastID += 1
          input = .perform(lastID, .set(property: dice.below(9) - 1, .float(Double(dice.below(400)))))
        case 5 where stores > 0:
          stores -= 1
          input = .stored(key: "values", failure: dice.below(3) == 0 ? "no space" : nil)
        case 6:
          input = .rows(
            QueryID(dice.below(40)), [.missing, .unchanged, .failed("x"), .rows([[nil]], FileStamp(size: 1, modified: 1))][dice.below(4)])
        default: input = .wake
        }
        machine.handle(input, at: now, &effects)
        for effect in effects.list {
          if case .complete(let id, _) = effect { completions[id, default: 0] += 1 }
          if case .store = effect { stores += 1 }
        }
        #expect(stores <= 1)
      }
      effects.removeAll()
      machine.handle(.stopping, at: now, &effects)
      for effect in effects.list { if case .complete(let id, _) = effect { completions[id, default: 0] += 1 } }
      #expect((1...max(lastID, 1)).allSatisfy { completions[$0] == 1 }, "seed \(seed)")
    }
  }
}
