// Conditions of alerts: their syntax, and their evaluation in virtual time.

import Observations
import Protocols
import Testing
import Trips

@testable import vehicled_history

@Suite struct AlertTests {
  private static let second: Int64 = 1_000_000

  /// An alert and the time.
  private struct Rig {
    var evaluator: AlertEvaluator
    var now: Int64 = 0
    var reports = 0

    init(_ text: String, isReported: Bool = false) throws {
      evaluator = AlertEvaluator(try AlertCondition(text), isReported: isReported, at: 0)
    }

    var state: AlertEvaluator.State { evaluator.state }

    mutating func observe(_ property: String, _ content: Reading.Content, of device: String = "ev", unit: String? = nil) {
      evaluator.observe(Observation(device: device, property: property, unit: unit, time: now, content: content), at: now)
      update()
    }

    mutating func observe(_ property: String, _ value: Value, of device: String = "ev", unit: String? = nil) {
      observe(property, .value(value), of: device, unit: unit)
    }

    mutating func update() { if evaluator.update(at: now).isRaised { reports += 1 } }

    /// Lets time pass, in seconds; the evaluator is updated when it is due.
    mutating func wait(_ seconds: Int64) {
      let end = now + seconds * second
      while let due = evaluator.due, due <= end {
        now = max(now, due)
        update()
        if evaluator.due == due { break }
      }
      now = end
    }
  }

  @Test func `a comparison is raised once, and again only after it did not hold`() throws {
    var rig = try Rig("state-of-charge >= 80")
    rig.update()
    #expect(rig.state == .unknown)
    rig.observe("state-of-charge", .float(79.5), unit: "%")
    #expect(rig.state == .ok && rig.reports == 0)
    rig.observe("state-of-charge", .float(80), unit: "%")
    #expect(rig.state == .raised && rig.reports == 1)
    #expect(rig.evaluator.text == "state-of-charge >= 80 (ev.state-of-charge: 80 %)")
    rig.observe("state-of-charge", .absent("link down"))
    #expect(rig.state == .unknown)
    rig.observe("state-of-charge", .int(81))
    #expect(rig.state == .raised && rig.reports == 1, "the connection was lost meanwhile: nothing new")
    rig.observe("state-of-charge", .int(70))
    rig.observe("state-of-charge", .int(90))
    #expect(rig.state == .raised && rig.reports == 2)
  }

  @Test func `an alert that was reported before a restart is not reported again`() throws {
    var rig = try Rig("speed > 130", isReported: true)
    rig.observe("speed", .int(140))
    #expect(rig.state == .raised && rig.reports == 0)
  }

  @Test func `for requires that the condition holds without interruption`() throws {
    var rig = try Rig("aux-battery-voltage < 11.9 for 10min")
    rig.observe("aux-battery-voltage", .float(11.8))
    rig.wait(599)
    #expect(rig.state == .ok)
    rig.observe("aux-battery-voltage", .float(12.1))
    rig.observe("aux-battery-voltage", .float(11.5))
    rig.wait(599)
    #expect(rig.state == .ok && rig.reports == 0)
    rig.wait(1)
    #expect(rig.state == .raised && rig.reports == 1)
  }

  @Test func `a count that rises holds for a minute, also when the connection was lost between`() throws {
    var rig = try Rig("dtc-count rose")
    rig.observe("dtc-count", .int(1))
    #expect(rig.state == .ok)
    rig.observe("dtc-count", .absent("link down"))
    rig.evaluator.discardValues()
    rig.update()
    #expect(rig.state == .unknown)
    rig.observe("dtc-count", .int(2))
    #expect(rig.state == .raised && rig.reports == 1)
    rig.wait(60)
    #expect(rig.state == .ok)
    rig.observe("dtc-count", .int(1))
    #expect(rig.state == .ok && rig.reports == 1)
  }

  @Test func `words, and, or`() throws {
    var rig = try Rig("mil is on or ev.gear is not park and speed = 0")
    rig.observe("mil", .bool(false))
    rig.observe("gear", .string("drive"))
    #expect(rig.state == .unknown, "the speed is not known")
    rig.observe("speed", .float(0))
    #expect(rig.state == .raised)
    rig.observe("gear", .string("park"))
    #expect(rig.state == .ok)
    rig.observe("gear", .string("drive"), of: "other")
    #expect(rig.state == .ok, "another device")
    rig.observe("mil", .bool(true), of: "other")
    #expect(rig.state == .raised)
  }

  @Test func `a device that is down for an hour`() throws {
    var rig = try Rig("ev is down for 1h")
    rig.observe("state", .string("polling"))
    rig.wait(7200)
    #expect(rig.state == .ok)
    rig.observe("state", .string("connecting"))
    rig.wait(3000)
    rig.observe("state", .string("down"))
    #expect(rig.state == .ok)
    rig.wait(600)
    #expect(rig.state == .raised)
    rig.observe("state", .string("polling"))
    #expect(rig.state == .ok)
  }

  @Test func `the end of a charge`() throws {
    var rig = try Rig("ev.charge ended")
    rig.update()
    #expect(rig.state == .ok)
    rig.evaluator.periodChanged(of: "other", .charge, hasEnded: true, at: rig.now)
    rig.evaluator.periodChanged(of: "ev", .charge, hasEnded: false, at: rig.now)
    rig.evaluator.periodChanged(of: "ev", .trip, hasEnded: true, at: rig.now)
    rig.update()
    #expect(rig.state == .ok)
    rig.evaluator.periodChanged(of: "ev", .charge, hasEnded: true, at: rig.now)
    rig.update()
    #expect(rig.state == .raised && rig.reports == 1)
    rig.wait(60)
    #expect(rig.state == .ok)
  }

  @Test(arguments: [
    ("", 0, "missing property"), ("speed", 5, "missing comparison"), ("speed >", 7, "missing number"),
    ("speed > fast", 8, "\"fast\" is not a number"), ("speed above 5", 6, "unknown comparison \"above\""),
    ("speed > 5 for", 13, "missing duration after for"), ("speed > 5 for 10x", 14, "invalid duration \"10x\""),
    ("speed > 5 for 400d", 14, "invalid duration"), ("speed > 5 for 10 min more", 21, "unexpected \"more\""),
    ("speed > 5 speed", 10, "unexpected \"speed\""), ("mil is", 6, "missing value"), ("speed started", 0, "requires a period"),
    ("a.b.c > 1", 0, "invalid property"), ("speed > 5 and", 13, "missing property"), ("-5 > 1", 0, "invalid property"),
    ("é > 1", 0, "invalid property \"é\""), ("speed > 5 é", 10, "unexpected \"é\""),
    ("ev is not down", 10, "is not supported"), ("speed > inf", 8, "is not a number"),
  ])
  func `a mistake is reported at its place`(_ text: String, _ offset: Int, _ message: String) {
    let error = #expect(throws: AlertSyntaxError.self) { try AlertCondition(text) }
    #expect(error?.offset == offset && error?.message.contains(message) == true, "\(String(describing: error))")
  }

  @Test func `blanks around operators are optional`() throws {
    let expected = try AlertCondition("speed >= 80 and mil is on for 90 s")
    let compact = try AlertCondition("speed>=80   and mil is on for 90s")
    #expect(compact.alternatives == expected.alternatives && compact.duration == expected.duration)
    #expect(expected.duration == 90 * Self.second)
    #expect(
      try AlertCondition("speed == -5").alternatives == [[.compare(.init(device: nil, property: "speed"), .equal, -5)]])
  }

  @Test func `random conditions do not trap the parser`() {
    let words = [
      "speed", "ev.speed", ">=", "<", "is", "not", "on", "and", "or", "for", "10min", "5", "rose", "charge", "ended", ".", "é", "!",
    ]
    var random = SystemRandomNumberGenerator()
    for _ in 0..<3000 {
      let text = (0..<Int.random(in: 0...8, using: &random)).map { _ in words.randomElement(using: &random) ?? "" }.joined(separator: " ")
      if let condition = try? AlertCondition(text) { #expect(!condition.alternatives.isEmpty, "\(text)") }
    }
  }
}
