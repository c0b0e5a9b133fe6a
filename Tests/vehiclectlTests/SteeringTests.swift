// From terminal input to angles, and the schedule of setpoints.

import Testing

@testable import vehiclectl

@Suite struct SteeringTests {
  @Test func `keys are decoded across split input, unknown sequences are ignored`() {
    let stream = Array("w\u{1b}[A\u{1b}OB\u{1b}[1;5Cx\u{1b}[5~ü\u{1b}[D\u{1b}\u{1b}[A 70\rcqS\u{1b}[O\u{1b}[I\u{3}\u{4}".utf8)
    let expected: [DriveKey] = [
      .direction(.forward), .direction(.forward), .direction(.backward), .direction(.right), .direction(.left), .direction(.forward), .stop,
      .limit(0.7), .limit(1), .go, .go, .end,
      .direction(.backward), .focusLost, .end, .end,
    ]
    for cut in 0...stream.count {
      var keys = KeyDecoder()
      let found = (keys.decode(stream[..<cut]) + keys.decode(stream[cut...])).compactMap(DriveKey.init)
      #expect(found == expected, "cut at \(cut)")
    }
    for text in ["\u{1b}\u{3}a", "\u{1b}[\u{3}a"] {
      var keys = KeyDecoder()
      let found = keys.decode(Array(text.utf8)).compactMap(DriveKey.init)
      #expect(found == [.end, .direction(.left)])
    }
  }

  @Test func `a press holds for a moment, then returns to level`() {
    var steering = Steering()
    #expect(steering.deflection(at: 0) == Deflection())
    steering.press(.forward, at: 10)
    #expect(steering.deflection(at: 10) == Deflection(forward: 1) && steering.deflection(at: 10.59) == Deflection(forward: 1))
    #expect(abs(steering.deflection(at: 10.7).forward - 0.5) < 1e-9)
    #expect(steering.deflection(at: 10.8).forward < 1e-9 && steering.deflection(at: 1000) == Deflection())
  }

  @Test func `a repeating key is released soon after its last repeat`() {
    var steering = Steering()
    steering.press(.left, at: 0)
    for repetition in 0...15 { steering.press(.left, at: 0.5 + Double(repetition) / 30) }  // until 1.0
    #expect(steering.deflection(at: 1.19).turn == -1 && abs(steering.deflection(at: 1.3).turn + 0.5) < 1e-9)
    #expect(steering.deflection(at: 1.41).turn == 0)
  }

  @Test func `a late repeat finds the key still held`() {
    var steering = Steering()
    steering.press(.forward, at: 0)
    steering.press(.forward, at: 0.66)
    #expect(steering.deflection(at: 0.85).forward == 1 && steering.deflection(at: 1.1).forward == 0)
  }

  @Test func `a key extends a held key of the other axis, not a released one`() {
    var steering = Steering()
    steering.press(.forward, at: 0)
    steering.press(.right, at: 0.3)  // from here on only this one repeats
    for repetition in 0...10 { steering.press(.right, at: 0.8 + Double(repetition) / 30) }
    #expect(steering.deflection(at: 1.2) == Deflection(forward: 1, turn: 1))
    #expect(steering.deflection(at: 1.6) == Deflection())
    steering.press(.forward, at: 5)
    steering.press(.left, at: 5.65)  // on its way back to level already
    #expect(steering.deflection(at: 6) == Deflection(forward: 0, turn: -1))
  }

  @Test func `the opposite key takes effect at once, space releases all keys`() {
    var steering = Steering()
    steering.press(.forward, at: 0)
    steering.press(.backward, at: 0.1)
    #expect(steering.deflection(at: 0.1) == Deflection(forward: -1) && steering.deflection(at: 0.69).forward == -1)
    steering.release()
    #expect(steering.deflection(at: 0.2) == Deflection())
  }

  @Test func `angles are those of the car, zero has no sign`() {
    let full = Deflection(forward: 1, turn: -1).tilt(limit: 1)
    #expect(abs(full.roll - .pi / 4) < 1e-12 && abs(full.pitch + 80 * .pi / 180) < 1e-12)
    let usual = Deflection(forward: -1, turn: 0.5).tilt(limit: 0.4)
    #expect(abs(usual.roll + 0.314159265) < 1e-6 && abs(usual.pitch - 0.279252680) < 1e-6)
    for zero in [Deflection(forward: -0.0, turn: -0.0).tilt(limit: 1), Deflection(forward: -1, turn: -1).tilt(limit: 0)] {
      #expect(zero.roll.sign == .plus && zero.pitch.sign == .plus && zero.roll == 0 && zero.pitch == 0)
    }
  }

  @Test func `setpoints stay on the grid, one in flight, missed slots are skipped`() {
    var scheduler = SetPointScheduler(at: 100, rate: 50)
    let first = scheduler.markSentIfDue(at: 100)
    let second = scheduler.markSentIfDue(at: 100.05)
    #expect(first && !second && scheduler.wake == nil, "the first is not answered")
    scheduler.replyReceived()
    #expect(scheduler.wake == 100.02)
    var sent: [Bool] = []
    for now in [100.05, 100.051, 100.07, 100.0901] {
      sent.append(scheduler.markSentIfDue(at: now))
      scheduler.replyReceived()
    }
    #expect(sent == [true, false, true, true], "a little late moves nothing")
    #expect(abs((scheduler.wake ?? 0) - 100.11) < 1e-9)
    #expect(scheduler.stall(at: 200, deadline: 0.3) == nil)
    scheduler.requestSent(at: 200)
    let behind = scheduler.markSentIfDue(at: 200.2)
    #expect(!behind && scheduler.stall(at: 200.2, deadline: 0.3) == nil)
    #expect(scheduler.stall(at: 200.5, deadline: 0.3).map { abs($0 - 0.5) < 1e-9 } == true)
  }

  @Test(
    arguments: [(nil, 60), (60, 60), (100, 60), (20, 20), (5, 4 / 0.3), (0, 60), (-1, 60), (.nan, 60), (.infinity, 60)]
      as [(Double?, Double)])
  func `the car's rate limit applies as far as the lease allows`(_ wanted: Double?, _ rate: Double) {
    var scheduler = SetPointScheduler(at: 0)
    scheduler.limit(to: wanted, deadline: 0.3)
    #expect(scheduler.rate == rate)
  }
}
