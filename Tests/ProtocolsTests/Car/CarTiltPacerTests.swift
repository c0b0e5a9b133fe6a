import Testing

@testable import Protocols

/// How often tilts go out: as they come, but never faster than the car asked for.
@Suite struct CarTiltPacerTests {
  private static let interval: Nanoseconds = 16_666_667

  /// Drives with one set-point a period, jitter included, and gives when each was asked for and when tilts went out.
  private static func drive(
    every period: Nanoseconds, jitter: Int = 0, count: Int, _ options: [String: Value] = ["status-interval": .float(0)]
  ) -> (asked: [Instant], sent: [Instant], rig: CarRig) {
    var rig = CarRig.driving(options, for: 500 * .millisecond, tellsModes: false)
    var dice = OBDRobustnessTests.Dice(state: 5)
    rig.run(for: 100 * .millisecond)
    let start = rig.now
    var asked: [Instant] = []
    for step in 0..<count {
      let due = start + Int64(step) * period + Int64(dice.below(jitter + 1)) * .microsecond
      rig.run(for: max(due - rig.now, 0))
      asked.append(rig.now)
      _ = rig.tilt(0.3 + Double(step % 100) / 1000, 0)
    }
    let end = rig.now
    return (asked, rig.writes.filter { $0.at >= start && $0.at <= end && $0.text.hasPrefix("Gyro") }.map(\.at), rig)
  }

  @Test func aDriverAtTheCarsOwnRateIsLetThroughAtOnce() {
    let (asked, sent, rig) = Self.drive(every: Self.interval, count: 600)
    #expect(sent == asked && rig.lost.isEmpty)
  }

  /// The first set-point waits for the pause behind Continue, wherever in the driver's own rhythm that ends.
  @Test func whereverTheDriversRhythmBeginsHeIsLetThroughAtOnce() {
    for shift in 0..<16 {
      var rig = CarRig.ready(tellsModes: false)
      rig.give(.leaseBegan(deadline: 300 * .millisecond))
      rig.run(for: Int64(shift) * .millisecond)
      _ = rig.act(.proceed)
      rig.run(for: Int64(16 - shift) * .millisecond)
      rig.drive(for: .second)
      let start = rig.now
      rig.drive(for: .second)
      let ticks = (0..<60).map { tick in start + Int64(tick) * (Nanoseconds.second / 60) }
      #expect(rig.writes.suffix(60).map(\.at) == ticks, "\(shift)")
    }
  }

  @Test func jitterOfAFewMillisecondsIsLetThrough() {
    let (asked, sent, rig) = Self.drive(every: Self.interval, jitter: 3000, count: 600)
    #expect(sent == asked && rig.lost.isEmpty)
  }

  @Test func aFasterDriverNeverExceedsTheRateAndTheNewestWins() {
    let (asked, sent, rig) = Self.drive(every: 5 * .millisecond, count: 2000)
    let time = Double(asked[asked.count - 1] - asked[0]) / 1e9
    #expect(Double(sent.count) <= time * 60 + 2 && Double(sent.count) >= time * 60 - 2)
    // In no second more than one beyond the rate, and that only at the start.
    for index in sent.indices.dropFirst(60) { #expect(sent[index] - sent[index - 60] >= (index < 62 ? 59 : 60) * Self.interval) }
    #expect(rig.lost.isEmpty)
    // Everybody was answered, and none before its tilt or a newer one was out.
    var last = rig
    last.run(for: 50 * .millisecond)
    #expect(last.results.values.allSatisfy { $0.count == 1 })
    #expect(last.tilts.last?.hasPrefix(" 0.399000") == true)
  }

  @Test func whoPausesAgainAndAgainDoesNotMakeTheStreamFasterThanTheRate() {
    // Just slower than the repetition: every second tilt is one.
    let (asked, sent, rig) = Self.drive(every: Self.interval * 8 / 5, count: 400)
    let time = Double(asked[asked.count - 1] - asked[0]) / 1e9
    #expect(Double(sent.count) <= time * 60 + 2 && rig.lost.isEmpty)
    for asked in asked { #expect(sent.contains(asked)) }
  }

  @Test func theLastOneIsSaidAgainUntilTheHandleLapses() {
    var rig = CarRig.driving(for: 500 * .millisecond, tellsModes: false)
    rig.run(for: 210 * .millisecond)
    let start = rig.now
    _ = rig.tilt(0.7, 0)
    rig.run(for: 500 * .millisecond)
    let times = rig.times(since: start, "Gyro")
    // One at once, then after one and a half intervals, then every interval; then the handle lapses.
    #expect(times.prefix(4) == [0, 25, 41, 58] && (times.last ?? 0) >= 280 && (times.last ?? 0) < 300)
    #expect(rig.lost == ["no set-point for 300 ms"])
    #expect(rig.times(since: start, "Stop") == [300, 360, 420])
  }

  @Test func theCarsIntervalIsHonouredAndClamped() {
    for (text, rate) in [
      ("0.05", 20.0), ("0.001", 100), ("1e9", 5), ("0.2", 5), ("0.1", 10), ("1e-05", 100), ("0.0166666666667", 60), (" 0.02 ", 50),
    ] {
      var rig = CarRig.ready(tellsModes: false)
      rig.hear("Gyro#$#\(text)%^%\r\n")
      #expect(rig.number("tilt-rate").map { ($0 * 100).rounded() / 100 } == rate, "\(text)")
      rig.give(.leaseBegan(deadline: 2 * .second))
      _ = rig.tilt(0.4, 0)
      rig.run(for: .second)
      let start = rig.now
      _ = rig.tilt(0.4, 0)
      rig.run(for: .second)
      #expect(abs(Double(rig.times(since: start, "Gyro").count) - rate) <= 2, "\(text)")
    }
  }

  @Test(arguments: ["nan", "-1", "0", "", "inf", "0,0166", "-0.0", "1;2", "soon"]) func aRateThatIsNoneIsIgnoredWithANote(_ text: String) {
    var rig = CarRig.ready(tellsModes: false)
    rig.hear("Gyro#$#\(text)%^%\r\n")
    #expect(rig.number("tilt-rate") == 60 && rig.notes.last?.contains("ignored: tilt interval") == true && rig.number("bad-frames") == 0)
  }

  @Test func theConfiguredRateGoesBeforeTheCars() {
    let (_, sent, rig) = Self.drive(every: 5 * .millisecond, count: 400, ["status-interval": .float(0), "tilt-rate": .float(20)])
    #expect(rig.number("tilt-rate") == 20 && (39...42).contains(sent.count))
  }

  @Test func whatMayBeUnacknowledgedFollowsFromDeadlineAndRate() {
    var rig = CarRig.driving(for: 500 * .millisecond, tellsModes: false)
    #expect(rig.most.last == 17 * 41)
    rig.hear("Gyro#$#0.2%^%\r\n")
    rig.drive(for: .second)
    #expect(rig.most.last == 8 * 41)
  }
}
