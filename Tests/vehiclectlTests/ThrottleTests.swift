// The hold-to-run throttle in virtual time, and the setpoints that it makes of a schema.

import Protocols
import Testing
import Varlink

@testable import vehiclectl

@Suite struct ThrottleTests {
  /// A throttle after key events at these times.
  private func throttle(_ direction: Double = 1, brakes: Bool = false, at times: Double...) -> Throttle {
    var throttle = Throttle()
    for time in times { throttle.press(direction, isDown: false, brakes: brakes, at: time) }
    return throttle
  }

  @Test func `one press of a terminal's key opens nothing, its repeats do`() {
    #expect([0, 0.1, 0.3, 2].allSatisfy { throttle(at: 0).value(at: $0) == 0 })
    let held = throttle(at: 0, 0.5, 0.53, 0.56, 0.59)
    #expect(held.value(at: 0.5) == 0 && abs(held.value(at: 0.6) - 0.1) < 1e-9, "it rises")
    let long = throttle(at: 0, 0.5, 0.68, 0.86, 1.04, 1.22, 1.4, 1.58)
    #expect(long.value(at: 1.58) == 1)
    #expect(throttle(at: 0, 1.1).value(at: 1.2) == 0, "too late for a repeat")
  }

  @Test func `keys that are read together count as one press`() {
    #expect(throttle(at: 0, 0, 0, 0).value(at: 0.1) == 0)
    // After a delay of the network all that was queued arrives at once.
    #expect(throttle(at: 0, 0.5, 5, 5, 5).value(at: 5.1) == 0)
    // An open throttle stays open.
    #expect(throttle(at: 0, 0.5, 0.6, 0.6).value(at: 0.7) > 0)
    #expect(throttle(at: 0, 0.5, 0.5).value(at: 0.6) > 0)
  }

  @Test(arguments: 0..<200) func `the setpoint zero is sent at most a quarter of a second after the last key event`(_ seed: Int) throws {
    var random = Seeded(state: UInt64(seed))
    var board = try #require(control(Self.current, Self.brake))
    var scheduler = SetPointScheduler(at: 0)
    // A key that repeats 6 to 30 times a second, and a device that replies within 45 ms. The loop wakes up to 2 ms late.
    let interval = Double.random(in: 1 / 30.0...0.16, using: &random)
    let keys = [0.0] + (0..<Int.random(in: 1...60, using: &random)).map { 0.5 + Double($0) * interval }
    let last = keys[keys.count - 1]
    var (now, pressed, repliedAt) = (0.0, 0, 0.0)
    var sent: [(at: Double, DriveRequest)] = []
    while now < last + 1 {
      now += Double.random(in: 0.0005...0.002, using: &random)
      while pressed < keys.count, keys[pressed] <= now {
        board.press(.forward, isDown: false, at: keys[pressed])
        pressed += 1
      }
      if scheduler.sentAt != nil, now >= repliedAt { scheduler.replyReceived() }
      guard scheduler.markSentIfDue(at: now) else { continue }
      sent.append((now, board.setPoint(nil, limit: 1, at: now)))
      repliedAt = now + Double.random(in: 0.001...0.045, using: &random)
    }
    let zero = try #require(sent.last { $0.1 != board.neutral }.flatMap { open in sent.first { $0.at > open.at } })
    #expect(zero.1 == board.neutral && zero.at <= last + Throttle.releaseTime && Throttle.releaseTime <= 0.25, "\(zero.at - last)")
  }

  @Test(arguments: 0..<200) func `it is zero at the latest a quarter of a second after the last key event`(_ seed: Int) {
    var random = Seeded(state: UInt64(seed))
    var throttle = Throttle()
    var now = 0.0
    for _ in 0..<40 {
      now += Double.random(in: 0...0.7, using: &random)
      if Int.random(in: 0..<12, using: &random) == 0 { throttle.release() }
      throttle.press(Bool.random(using: &random) ? 1 : -1, isDown: false, brakes: false, at: now)
      #expect(abs(throttle.value(at: now)) <= 1)
      #expect(throttle.value(at: now + 0.25) == 0 && throttle.value(at: now + 10) == 0)
    }
  }

  @Test func `the brake acts at once and bridges the time to the first repeat`() {
    let brake = throttle(-1, brakes: true, at: 0)
    #expect(brake.value(at: 0.2) < 0 && brake.value(at: 0.59) < 0 && brake.value(at: 0.61) == 0)
    var both = throttle(at: 0, 0.5, 0.55)
    both.press(-1, isDown: false, brakes: true, at: 0.57)
    #expect(both.value(at: 0.57) == 0 && both.value(at: 0.6) < 0, "it replaces the throttle")
    both.release()
    #expect(both.value(at: 0.6) == 0)
    both.press(-1, isDown: false, brakes: true, at: 0.61)
    #expect(both.value(at: 0.7) < 0, "a stop never blocks the brake")
  }

  @Test func `after a stop a held key must be released first`() {
    var held = throttle(at: 0, 0.5, 0.53)
    held.release()
    for repetition in 1...20 {
      held.press(1, isDown: false, brakes: false, at: 0.53 + Double(repetition) / 30)
      #expect(held.value(at: 0.55 + Double(repetition) / 30) == 0)
    }
    for time in [2, 2.5, 2.53] { held.press(1, isDown: false, brakes: false, at: time) }
    #expect(held.value(at: 2.6) > 0)
  }

  @Test func `a keyboard opens it at once, without repeats, and closes it with the release`() {
    var throttle = Throttle()
    throttle.press(1, isDown: true, brakes: false, at: 0)
    throttle.update { _ in true }
    #expect(abs(throttle.value(at: 0.5) - 0.5) < 1e-9 && throttle.value(at: 60) == 1)
    throttle.update { $0 < 0 }
    #expect(throttle.value(at: 60) == 0)
    throttle.update { _ in true }
    #expect(throttle.value(at: 61) == 0, "only the terminal opens it")
    throttle.press(1, isDown: true, brakes: false, at: 62)
    #expect(throttle.value(at: 62.5) == 0.5)
  }

  @Test func `repeats that arrive after the release of a keyboard open nothing`() {
    var throttle = Throttle()
    throttle.press(1, isDown: true, brakes: false, at: 0)
    for time in [0.5, 0.53] { throttle.press(1, isDown: true, brakes: false, at: time) }
    throttle.update { _ in false }
    for time in [0.54, 0.57, 0.6] { throttle.press(1, isDown: false, brakes: false, at: time) }
    #expect(throttle.value(at: 0.61) == 0)
    throttle.press(1, isDown: true, brakes: false, at: 0.65)
    #expect(throttle.value(at: 0.7) > 0, "pressed again")
  }

  @Test func `a keyboard that misses the key falls back to its repeats`() {
    var throttle = Throttle()
    throttle.press(1, isDown: true, brakes: false, at: 0)
    throttle.press(1, isDown: false, brakes: false, at: 0.5)
    #expect(throttle.value(at: 0.69) > 0 && throttle.value(at: 0.71) == 0)
  }

  // MARK: Setpoints

  private static let current = Property("target-current", .float, unit: "A", range: -10...10, access: .motion, help: "")
  private static let brake = Property("brake-current", .float, unit: "A", range: 0...8, access: .motion, help: "")
  private static let duty = Property("target-duty", .float, unit: "%", range: -100...100, access: .motion, help: "")

  private func control(_ properties: Property...) -> ThrottleControl? { ThrottleControl(properties.map { Contract.Property($0) }) }

  @Test func `a schema with a target has a throttle, its range is the maximum`() throws {
    var board = try #require(control(Self.current, Self.brake, Self.duty))
    #expect(board.neutral == .set(property: "target-current", .float(0)) && board.setPoint(nil, limit: 1, at: 0) == board.neutral)
    for time in [0, 0.5, 0.65, 0.8] { board.press(.forward, isDown: false, at: time) }
    #expect(board.setPoint(nil, limit: 0.5, at: 0.9) == .set(property: "target-current", .float(2)))
    board.press(.left, isDown: false, at: 0.9)
    #expect(board.setPoint(nil, limit: 0.5, at: 0.94) == .set(property: "target-current", .float(2.2)))
    board.press(.backward, isDown: false, at: 1)
    #expect(board.setPoint(nil, limit: 0.1, at: 1.5) == .set(property: "brake-current", .float(4)), "the limit is not for the brake")
    board.release()
    #expect(board.setPoint(nil, limit: 1, at: 1.5) == board.neutral)
    #expect(board.setPoint(Deflection(forward: 0.5), limit: 0.2, at: 9) == .set(property: "target-current", .float(1)))
    #expect(board.setPoint(Deflection(forward: -1, turn: 1), limit: 0.2, at: 9) == .set(property: "brake-current", .float(8)))
  }

  @Test func `without a brake the other key drives backwards, if the target allows it`() throws {
    var board = try #require(control(Self.duty))
    for time in [0, 0.5] { board.press(.backward, isDown: false, at: time) }
    #expect(board.setPoint(nil, limit: 0.5, at: 0.6) == .set(property: "target-duty", .float(-5)))
    let ahead = try #require(control(Property("target-speed", .float, range: 0...5, access: .motion, help: ""), Self.brake))
    #expect(
      ahead.setPoint(Deflection(forward: -1), limit: 1, at: 0) == .set(property: "target-speed", .float(0)), "the brake has another unit")
  }

  @Test func `a schema without a usable target has none`() {
    #expect(control() == nil && control(Self.brake) == nil)
    for property in [
      Property("target-current", .float, range: -10...10, access: .write, help: ""),
      Property("target-current", .float, access: .motion, help: ""),
      Property("target-current", .float, range: 1...10, access: .motion, help: ""),
      Property("target-current", .string, access: .motion, help: ""),
    ] {
      #expect(control(property) == nil)
    }
  }

  @Test func `bars show what was sent`() throws {
    let board = try #require(control(Self.current, Self.brake))
    #expect(board.bars(nil).map(\.text) == [nil, nil])
    let driven = board.bars(.set(property: "target-current", .float(2.5)))
    #expect(driven.map(\.text) == ["2.5 A", "0 A"] && driven.map(\.share) == [0.25, 0] && driven.map(\.name) == ["throttle", "brake"])
    #expect(board.bars(.set(property: "brake-current", .float(8))).map(\.share) == [0, 1])
    let duty = try #require(control(Self.duty))
    #expect(
      duty.bars(.set(property: "target-duty", .float(-50))) == [
        DriveBar(name: "throttle", text: "-50 %", share: -0.5, isSigned: true, remark: "of 100 %")
      ])
  }

  /// SplitMix64.
  private struct Seeded: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
      state &+= 0x9E37_79B9_7F4A_7C15
      var z = state
      z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
      z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
      return z ^ (z >> 31)
    }
  }
}
