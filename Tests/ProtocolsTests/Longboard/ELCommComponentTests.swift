import Testing

@testable import Protocols

/// The components of the machine, each alone.
@Suite struct ELCommComponentTests {
  // MARK: ELCommDetection

  private static func probe(_ messages: Int, badRuns: Int = 0) -> ELCommDetection.Probe {
    var probe = ELCommDetection.Probe(sent: 0, badRuns: badRuns)
    for _ in 0..<messages { probe.messageReceived() }
    return probe
  }

  @Test func `two probes with the same result decide`() {
    var detection = ELCommDetection()
    detection.begin(hint: nil, isProbeOpen: false)
    #expect(detection.evaluate(Self.probe(2), badRuns: 0, isQuiet: true) == .probe)
    #expect(detection.evaluate(Self.probe(1), badRuns: 0, isQuiet: true) == .probe, "the other dialect")
    #expect(detection.evaluate(Self.probe(1), badRuns: 0, isQuiet: true) == .found(.documented))
  }

  @Test func `one probe confirms the assumed dialect`() {
    var detection = ELCommDetection()
    detection.begin(hint: .asBuilt, isProbeOpen: false)
    // A damaged message is a response as well.
    #expect(detection.evaluate(Self.probe(1, badRuns: 3), badRuns: 4, isQuiet: false) == .found(.asBuilt))
  }

  @Test func `responses after a probe without a response decide nothing`() {
    var detection = ELCommDetection()
    detection.begin(hint: .asBuilt, isProbeOpen: false)
    #expect(detection.evaluate(Self.probe(0), badRuns: 0, isQuiet: true) == .unanswered)
    #expect(detection.evaluate(Self.probe(2), badRuns: 0, isQuiet: true) == .drain)
    #expect(detection.evaluate(Self.probe(2), badRuns: 0, isQuiet: true) == .found(.asBuilt))
  }

  @Test func `a board that sends more than a buffer without a request is documented`() {
    var detection = ELCommDetection()
    detection.drain()
    let verdicts = (0...64).map { _ in detection.countUnsolicited() }
    #expect(verdicts == [Bool](repeating: false, count: 64) + [true])
    detection.drain()
    let isFirstUnusual = detection.countUnsolicited()
    #expect(!isFirstUnusual)
  }

  // MARK: ELCommWriter

  @Test func `only the write in flight ends`() throws {
    var writer = ELCommWriter()
    var effects = Effects()
    #expect(writer.isFree && writer.isFirst && writer.deadline == nil)
    writer.send([45], change: 3, at: 7, &effects)
    #expect(!writer.isFree && !writer.isFirst && writer.deadline == 7 + 5 * .second)
    #expect(writer.end(writer.lastID &+ 1) == nil && !writer.isFree)
    #expect(writer.end(writer.lastID)?.change == 3 && writer.isFree)
    writer.setFailure("busy")
    writer.reset()
    writer.startOver()
    #expect(writer.failure == nil && writer.isFirst)
  }

  // MARK: ELCommReceiver

  @Test func `a flood of messages is degraded until a second without one`() {
    var receiver = ELCommReceiver()
    var effects = Effects()
    func receive(_ count: Int, at now: Instant) {
      receiver.begin(at: now)
      for byte in (0..<count).flatMap({ _ in Array("12$88$1$0.35".utf8) }) { _ = receiver.decode(byte, at: now) }
      receiver.end(hasMessage: true, at: now, &effects)
    }
    receive(1, at: 0)
    #expect(receiver.condition == .live && receiver.messages == 1)
    receive(100, at: 1)
    #expect(receiver.condition == .degraded("more than 100 messages per second: reset the board"))
    receive(1, at: 2 * .second)
    receive(1, at: 4 * .second)
    #expect(receiver.condition == .live && receiver.messages == 103)
  }

  // MARK: ELCommBuzzer

  @Test func `an earlier message does not confirm a change`() {
    var buzzer = ELCommBuzzer(limit: 10 * .second)
    var effects = Effects()
    let before = buzzer.target
    buzzer.perform(1, .on, at: 0, &effects)
    buzzer.confirmed(before.change, at: 0, &effects)
    #expect(buzzer.confirmedState == nil && effects.isEmpty && !buzzer.target.isConfirmed)
    buzzer.confirmed(buzzer.target.change, at: 0, &effects)
    #expect(buzzer.confirmedState == true && effects.list == [.complete(1, .success(Report()))])
  }
}
