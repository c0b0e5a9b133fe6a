import Testing

@testable import Protocols

/// The rate of tilts: they are sent as they arrive, but never faster than the car requests.
@Suite struct CarTiltPacerTests {
  private static let interval: Nanoseconds = 16_666_667

  /// Drives with one setpoint per period, with jitter; returns the times of the setpoints and of the tilts.
  private static func drive(
    every period: Nanoseconds, jitter: Int = 0, count: Int, _ options: [String: Value] = ["status-interval": .float(0)]
  ) -> (requested: [Instant], sent: [Instant], rig: CarRig) {
    var rig = CarRig.driving(options, for: 500 * .millisecond, reportsModes: false)
    var dice = OBDRobustnessTests.Dice(state: 5)
    rig.run(for: 100 * .millisecond)
    let start = rig.now
    var requested: [Instant] = []
    for step in 0..<count {
      let due = start + Int64(step) * period + Int64(dice.below(jitter + 1)) * .microsecond
      rig.run(for: max(due - rig.now, 0))
      requested.append(rig.now)
      _ = rig.tilt(0.3 + Double(step % 100) / 1000, 0)
    }
    let end = rig.now
    return (requested, rig.writes.filter { $0.at >= start && $0.at <= end && $0.text.hasPrefix("Gyro") }.map(\.at), rig)
  }

  @Test func `setpoints at the car's rate are sent at once`() {
    let (requested, sent, rig) = Self.drive(every: Self.interval, count: 600)
    #expect(sent == requested && rig.lost.isEmpty)
  }

  /// The first setpoint waits for the pause after Continue, which ends at any phase of the setpoints.
  @Test func `setpoints are sent at once, whatever their phase`() {
    for shift in 0..<16 {
      var rig = CarRig.ready(reportsModes: false)
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

  @Test func `a jitter of a few milliseconds causes no delay`() {
    let (requested, sent, rig) = Self.drive(every: Self.interval, jitter: 3000, count: 600)
    #expect(sent == requested && rig.lost.isEmpty)
  }

  @Test func `a faster driver does not exceed the rate, and the newest setpoint is sent`() {
    let (requested, sent, rig) = Self.drive(every: 5 * .millisecond, count: 2000)
    let time = Double(requested[requested.count - 1] - requested[0]) / 1e9
    #expect(Double(sent.count) <= time * 60 + 2 && Double(sent.count) >= time * 60 - 2)
    // No second has more than one setpoint beyond the rate, and only the first one.
    for index in sent.indices.dropFirst(60) { #expect(sent[index] - sent[index - 60] >= (index < 62 ? 59 : 60) * Self.interval) }
    #expect(rig.lost.isEmpty)
    // Every command is complete, and none before its tilt or a newer one was sent.
    var last = rig
    last.run(for: 50 * .millisecond)
    #expect(last.results.values.allSatisfy { $0.count == 1 })
    #expect(last.tilts.last?.hasPrefix(" 0.399000") == true)
  }

  @Test func `repetitions do not exceed the rate`() {
    // Just slower than the repetition: every second tilt is a repetition.
    let (requested, sent, rig) = Self.drive(every: Self.interval * 8 / 5, count: 400)
    let time = Double(requested[requested.count - 1] - requested[0]) / 1e9
    #expect(Double(sent.count) <= time * 60 + 2 && rig.lost.isEmpty)
    for time in requested { #expect(sent.contains(time)) }
  }

  @Test func `the last setpoint is repeated until the deadman timer expires`() {
    var rig = CarRig.driving(for: 500 * .millisecond, reportsModes: false)
    rig.run(for: 210 * .millisecond)
    let start = rig.now
    _ = rig.tilt(0.7, 0)
    rig.run(for: 500 * .millisecond)
    let times = rig.times(since: start, "Gyro")
    // At once, after one and a half intervals, then every interval, until the deadman timer expires.
    #expect(times.prefix(4) == [0, 25, 41, 58] && (times.last ?? 0) >= 280 && (times.last ?? 0) < 300)
    #expect(rig.lost == ["no setpoint for 300 ms"])
    #expect(rig.times(since: start, "Stop") == [300, 360, 420])
  }

  @Test func `the car's interval is used within its limits`() {
    for (text, rate) in [
      ("0.05", 20.0), ("0.001", 100), ("1e9", 5), ("0.2", 5), ("0.1", 10), ("1e-05", 100), ("0.0166666666667", 60), (" 0.02 ", 50),
    ] {
      var rig = CarRig.ready(reportsModes: false)
      rig.receive("Gyro#$#\(text)%^%\r\n")
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

  @Test(arguments: ["nan", "-1", "0", "", "inf", "0,0166", "-0.0", "1;2", "soon"])
  func `an invalid interval is ignored with a note`(_ text: String) {
    var rig = CarRig.ready(reportsModes: false)
    rig.receive("Gyro#$#\(text)%^%\r\n")
    #expect(rig.number("tilt-rate") == 60 && rig.notes.last?.contains("ignored: tilt interval") == true && rig.number("bad-frames") == 0)
  }

  @Test func `the configured rate overrides the car's`() {
    let (_, sent, rig) = Self.drive(every: 5 * .millisecond, count: 400, ["status-interval": .float(0), "tilt-rate": .float(20)])
    #expect(rig.number("tilt-rate") == 20 && (39...42).contains(sent.count))
  }

  @Test func `the limit of unacknowledged bytes follows from deadline and rate`() {
    var rig = CarRig.driving(for: 500 * .millisecond, reportsModes: false)
    #expect(rig.maxUnacknowledged.last == 17 * 41)
    rig.receive("Gyro#$#0.2%^%\r\n")
    rig.drive(for: .second)
    #expect(rig.maxUnacknowledged.last == 8 * 41)
  }
}
