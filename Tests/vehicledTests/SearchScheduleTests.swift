// When a search scans in addition to the advertisement monitor.

import Protocols
import Testing

@testable import vehicled

@Suite("Search schedule") struct SearchScheduleTests {
  private func scans(_ since: Int64, _ now: Int64) -> Bool { SearchSchedule.scans(since: since * .second, now: now * .second) }

  @Test func `a search scans at first, then briefly once a minute`() {
    let began: Int64 = 1210  // 10 s after a full minute
    let seconds = (began..<began + 300).filter { scans(began, $0) }
    #expect(seconds.prefix(15) == Array(began..<began + 15)[...])
    let starts: [Int64] = [1260, 1320, 1380, 1440, 1500]
    #expect(Array(seconds.dropFirst(15)) == starts.flatMap { Array($0..<$0 + 5) })
  }

  @Test func `the next change is never missed and always later`() {
    for began: Int64 in [1200, 1203, 1210, 1250, 1259] {
      var now = began * .second
      while now < (began + 300) * .second {
        let next = SearchSchedule.nextChange(since: began * .second, now: now)
        #expect(next > now)
        let before = SearchSchedule.scans(since: began * .second, now: now)
        for moment in stride(from: now, to: next, by: Int(.second / 2)) {
          #expect(SearchSchedule.scans(since: began * .second, now: moment) == before)
        }
        now = next
      }
    }
  }
}
