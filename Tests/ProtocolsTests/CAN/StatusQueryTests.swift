// The status queries of the obd kind to a slcan adapter.

import Testing

@testable import Protocols

@Suite struct StatusQueryTests {
  private enum Event { case begin, expire, status, bell }

  /// Returns whether each reply was the awaited one, and whether the adapter may reply to more queries.
  private static func run(_ events: Event...) -> (awaited: [Bool], isSupported: Bool) {
    var query = StatusQuery()
    var awaited: [Bool] = []
    for event in events {
      switch event {
      case .begin: query.begin(latency: 0, at: 0)
      case .expire:
        query.expired()
        query.cancel()
      case .status: awaited.append(query.replied(isStatus: true))
      case .bell: awaited.append(query.replied(isStatus: false))
      }
    }
    return (awaited, query.isSupported)
  }

  @Test func `a reply after the end of its wait is not that of the next query`() {
    #expect(Self.run(.begin, .expire, .begin, .status, .status) == ([false, true], true))
    #expect(Self.run(.begin, .expire, .status, .begin, .status) == ([false, true], true))
  }

  @Test func `after a reply that was lost, the third query is answered`() {
    #expect(Self.run(.begin, .expire, .begin, .status, .expire, .begin, .status) == ([false, true], true))
  }

  @Test func `an adapter that replies with BEL, or not at all, has no late status`() {
    #expect(Self.run(.begin, .expire, .begin, .bell) == ([true], true))
    #expect(Self.run(.begin, .expire, .begin, .expire, .begin, .expire) == ([], false))
  }
}
