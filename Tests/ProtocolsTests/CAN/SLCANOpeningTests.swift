import Testing

@testable import Protocols

/// The commands that open the channel of a slcan adapter, for sending and for listening only.
@Suite struct SLCANOpeningTests {
  /// The commands up to the end of the opening, and its result. The adapter accepts every command but the rejected one.
  private func open(_ opening: SLCANOpening, rejecting rejected: String? = nil) -> (commands: [String], result: SLCANOpening.Result) {
    var opening = opening
    var commands: [String] = []
    var now: Instant = 0
    while commands.count < 10 {
      let command = String(decoding: opening.next(at: now), as: UTF8.self)
      commands.append(command.filter { !$0.isWhitespace })
      let reply: SLCANDecoder.Item = commands.last == rejected ? .rejected : .accepted
      var result = opening.receive(reply)
      if result == nil, let deadline = opening.deadline {
        now = deadline
        result = opening.expire(at: now)
      }
      if let result, result != .proceed { return (commands, result) }
    }
    return (commands, .proceed)
  }

  @Test func `a channel for listening only is opened with L`() {
    #expect(open(SLCANOpening(bitRate: 500_000)) == (["C", "V", "S6", "O"], .opened))
    #expect(open(SLCANOpening(bitRate: 250_000, listensOnly: true)) == (["C", "V", "S5", "L"], .opened))
    #expect(open(SLCANOpening(bitRate: nil, listensOnly: true)) == (["C", "V", "L"], .opened))
  }

  @Test func `an adapter that rejects L is not opened otherwise`() {
    let (commands, result) = open(SLCANOpening(bitRate: 500_000, listensOnly: true), rejecting: "L")
    #expect(commands == ["C", "V", "S6", "L"])
    #expect(
      result
        == .failed("the CAN adapter rejects listening only (command L); reconnect it, update its firmware, or use another adapter"))
    let unset = open(SLCANOpening(bitRate: nil, listensOnly: true), rejecting: "L").result
    #expect(unset == .failed("the CAN adapter does not open its channel; set bit-rate for this device (500000 in most cars)"))
  }
}
