// Repeated log lines: three times, then a summary once a minute.

import Protocols
import Testing

@testable import vehicled

@Suite struct LogRateLimiterTests {
  private static let fault = LogRateLimiter.Line(level: .warning, text: "the adapter lost its supply")
  private static let well = LogRateLimiter.Line(level: .notice, text: "fault cleared", isRecovery: true)

  @Test func `frequent lines are summarised once a minute, and the last summary is current`() {
    var limiter = LogRateLimiter()
    var logged: [String] = []
    for second in 0..<600 {
      let now = Instant(second) * .second
      if let due = limiter.due, now >= due { logged += limiter.endMinute(at: now).map(\.text) }
      for line in [Self.fault, Self.well] where limiter.admit(line, at: now) { logged.append(line.text) }
    }
    #expect(logged.prefix(5) == [Self.fault.text, Self.well.text, Self.fault.text, Self.well.text, Self.fault.text])
    #expect(
      logged.dropFirst(5).prefix(2) == [
        "\(Self.fault.text) (repeated 57 times in 1 min)", "\(Self.well.text) (repeated 58 times in 1 min)",
      ])
    #expect(logged.count == 5 + 2 * 9)
    // A minute without lines ends the summaries.
    let last = limiter.endMinute(at: 600 * .second)
    let quiet = limiter.endMinute(at: 660 * .second)
    let isLoggedAgain = limiter.admit(Self.fault, at: 700 * .second)
    #expect(last.last?.text == "\(Self.well.text) (repeated 60 times in 1 min)" && quiet.isEmpty && isLoggedAgain)
  }

  @Test func `events do not suppress lines, nor lines events`() {
    var limiter = LogRateLimiter()
    let events = (0...200).map { LogRateLimiter.Line(level: .notice, text: "event \($0)", event: "code") }
    let lines = (0...20).map { LogRateLimiter.Line(level: .notice, text: "line \($0)") }
    let admitted = (events + lines).filter { limiter.admit($0, at: 0) }
    #expect(admitted == events.dropLast() + lines.dropLast())
  }

  @Test func `a line that is no longer frequent is logged at once`() {
    var limiter = LogRateLimiter()
    for second in 0..<10 { _ = limiter.admit(Self.fault, at: Int64(second) * .second) }
    let first = limiter.endMinute(at: 60 * .second)
    let isAdmitted = limiter.admit(Self.fault, at: 70 * .second)
    let second = limiter.endMinute(at: 120 * .second)
    let isLogged = limiter.admit(Self.fault, at: 180 * .second)
    #expect(first.map(\.text) == ["\(Self.fault.text) (repeated 7 times in 1 min)"])
    #expect(!isAdmitted && second.map(\.text) == ["\(Self.fault.text) (repeated once in 1 min)"] && isLogged)
  }

  @Test func `occasional lines are all logged, and no summary is pending`() {
    var limiter = LogRateLimiter()
    for time in [0, 20, 40] as [Int64] {
      let isLogged = limiter.admit(Self.fault, at: time * .second)
      #expect(isLogged)
    }
    #expect(limiter.due == 60 * .second)
    let summary = limiter.endMinute(at: 60 * .second)
    #expect(summary.isEmpty && limiter.due == nil)
  }

  @Test func `lines whose text changes are limited too`() {
    var limiter = LogRateLimiter()
    let logged = (0..<1000).filter { limiter.admit(LogRateLimiter.Line(level: .warning, text: "\($0) V", link: .main), at: Instant($0)) }
    #expect(logged.count == 20)
    #expect(limiter.endMinute(at: .second).map(\.text) == ["999 V (and 979 other messages in 1 min)"])
  }
}
