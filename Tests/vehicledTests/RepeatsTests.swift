// What a device says again and again: three times, then once a minute with its number.

import Protocols
import Testing

@testable import vehicled

@Suite struct RepeatsTests {
  private static let fault = Repeats.Line(level: .warning, text: "the adapter lost its supply")
  private static let well = Repeats.Line(level: .notice, text: "all is well again", isRelief: true)

  @Test func `what comes every second is a few lines a minute, and the last of them is true`() {
    var repeats = Repeats()
    var said: [String] = []
    for second in 0..<600 {
      let now = Instant(second) * .second
      if let due = repeats.due, now >= due { said += repeats.end(at: now).map(\.text) }
      for line in [Self.fault, Self.well] where repeats.admits(line, at: now) { said.append(line.text) }
    }
    #expect(said.prefix(5) == [Self.fault.text, Self.well.text, Self.fault.text, Self.well.text, Self.fault.text])
    #expect(
      said.dropFirst(5).prefix(2) == ["\(Self.fault.text) (57 times more in a minute)", "\(Self.well.text) (58 times more in a minute)"])
    #expect(said.count == 5 + 2 * 9)
    // A minute in which nothing came ends it.
    let last = repeats.end(at: 600 * .second)
    let quiet = repeats.end(at: 660 * .second)
    let isSaidAgain = repeats.admits(Self.fault, at: 700 * .second)
    #expect(last.last?.text == "\(Self.well.text) (60 times more in a minute)" && quiet.isEmpty && isSaidAgain)
  }

  @Test func `what was often and is seldom by now is said at once again`() {
    var repeats = Repeats()
    for second in 0..<10 { _ = repeats.admits(Self.fault, at: Int64(second) * .second) }
    let first = repeats.end(at: 60 * .second)
    let held = repeats.admits(Self.fault, at: 70 * .second)
    let second = repeats.end(at: 120 * .second)
    let isSaid = repeats.admits(Self.fault, at: 180 * .second)
    #expect(first.map(\.text) == ["\(Self.fault.text) (7 times more in a minute)"])
    #expect(!held && second.map(\.text) == ["\(Self.fault.text) (once more in a minute)"] && isSaid)
  }

  @Test func `what happens now and then is said each time, and nothing waits for the end of a minute`() {
    var repeats = Repeats()
    for time in [0, 20, 40] as [Int64] {
      let isSaid = repeats.admits(Self.fault, at: time * .second)
      #expect(isSaid)
    }
    #expect(repeats.due == 60 * .second)
    let told = repeats.end(at: 60 * .second)
    #expect(told.isEmpty && repeats.due == nil)
  }

  @Test func `lines that differ each time are no way around it`() {
    var repeats = Repeats()
    let said = (0..<1000).filter { repeats.admits(Repeats.Line(level: .warning, text: "\($0) V", link: .main), at: Instant($0)) }
    #expect(said.count == 20)
    #expect(repeats.end(at: .second).map(\.text) == ["999 V (and 979 others in a minute)"])
  }
}
