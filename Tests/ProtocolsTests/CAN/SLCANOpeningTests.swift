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
      commands.append(command == "C\rC\r" ? "C" : command.filter { !$0.isWhitespace })
      let reply: SLCANDecoder.Item =
        commands.last == rejected ? .rejected : commands.last == "V" ? .identity(Array("V1013".utf8)) : .accepted
      var result = opening.receive(reply, at: now)
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
    #expect(
      unset
        == .failed(
          "the CAN adapter rejects listening only (command L); set bit-rate for this device, or update the firmware of the adapter"))
  }

  @Test func `over a slow connection, the reply to an earlier command is not taken for that to a later one`() {
    var opening = SLCANOpening(bitRate: 500_000)
    _ = opening.next(at: 0)
    #expect(opening.expire(at: 100 * .millisecond) == .proceed)
    #expect(opening.next(at: 100 * .millisecond) == SLCAN.version)
    // The replies to the first CR, and to `C`.
    for reply in [SLCANDecoder.Item.accepted, .rejected] { #expect(opening.receive(reply, at: 600 * .millisecond) == nil) }
    #expect(opening.receive(.identity(Array("V1013".utf8)), at: 700 * .millisecond) == .proceed)
    #expect(opening.roundTrip == 600 * .millisecond && opening.version == "V1013")
    #expect(opening.next(at: 700 * .millisecond) == SLCAN.setBitRate(500_000))
    #expect(opening.deadline == 1550 * .millisecond)
    #expect(opening.receive(.accepted, at: 1300 * .millisecond) == .proceed)
    _ = opening.next(at: 1300 * .millisecond)
    #expect(opening.receive(.accepted, at: 1500 * .millisecond) == .opened && opening.roundTrip == 200 * .millisecond)
  }

  /// The result of the opening with a device that replies this to everything.
  private func open(with reply: String) -> SLCANOpening.Result? {
    var (opening, decoder, now) = (SLCANOpening(bitRate: 500_000), SLCANDecoder(), Instant(0))
    for _ in 0..<8 {
      let command = String(decoding: opening.next(at: now), as: UTF8.self)
      var result: SLCANOpening.Result?
      decoder.receive(reply.replacing("ECHO", with: command).utf8) { result = result ?? opening.receive($0, at: now) }
      if result == nil, let deadline = opening.deadline {
        now = deadline
        result = opening.expire(at: now)
      }
      if let result, result != .proceed { return result }
    }
    return nil
  }

  @Test(arguments: ["ECHO?\r\r>", "?\r\r>", "$GPRMC,1,V*0\r\n$GPGSV,1*1\r\n"])
  func `a device that does not speak slcan is reported as such`(_ reply: String) {
    guard case .failed(let reason) = open(with: reply) else { Issue.record("opened"); return }
    #expect(reason.hasPrefix("the device does not speak slcan; check the link"))
  }

  @Test func `damaged lines between frames are no other protocol`() {
    #expect(open(with: "t7E8\rx\ry\rt12321122\r") == .opened)
    guard case .failed = open(with: "t7E8\rx\ry\r") else { Issue.record("opened"); return }
  }

  @Test func `the acknowledgement of the opening is recorded`() {
    func isAcknowledged(_ reply: SLCANDecoder.Item?) -> Bool {
      var (opening, now) = (SLCANOpening(bitRate: nil, listensOnly: true), Instant(0))
      while opening.next(at: now) != SLCAN.listen {
        now = opening.deadline ?? now
        _ = opening.expire(at: now)
      }
      _ = reply.flatMap { opening.receive($0, at: now) }
      return opening.isAcknowledged
    }
    #expect(isAcknowledged(.accepted) && !isAcknowledged(nil) && !isAcknowledged(.rejected))
  }

  @Test func `a commit is a version, as CANable reports it`() {
    var (opening, decoder) = (SLCANOpening(bitRate: nil), SLCANDecoder())
    _ = opening.next(at: 0)
    _ = opening.expire(at: 100 * .millisecond)
    _ = opening.next(at: 100 * .millisecond)
    var result: SLCANOpening.Result?
    decoder.receive("16e7497 https://github.com/normaldotcom/canable2-fw\r".utf8) { result = opening.receive($0, at: 101 * .millisecond) }
    #expect(result == .proceed && opening.version?.hasPrefix("16e7497") == true && opening.hasResponded)
  }

  @Test func `no empty line is sent, with which some adapters repeat the last frame`() {
    var opening = SLCANOpening(bitRate: nil)
    #expect(opening.next(at: 0) == Array("C\rC\r".utf8))
  }

  @Test(arguments: ["", "\r", "z\r", "V1013\r\r"]) func `an adapter that replies little is used`(_ reply: String) {
    #expect(open(with: reply) == .opened)
  }
}
