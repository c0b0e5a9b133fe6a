import Testing

@testable import Protocols

/// Decoding of messages: split everywhere, without separators, and damaged.
@Suite struct ELCommDecoderTests {
  static let vectors: [(String, ELCommMessage)] = [
    ("255$255$0$0.00", ELCommMessage(speed: 255, battery: 255, connected: false, distance: 0)),
    ("12$88$1$0.35", ELCommMessage(speed: 12, battery: 88, connected: true, distance: 35)),
    ("-3$-355$1$-0.01", ELCommMessage(speed: -3, battery: -355, connected: true, distance: -1)),
    ("8$122$1$12.40", ELCommMessage(speed: 8, battery: 122, connected: true, distance: 1240)),
    ("8$0$0$12.40", ELCommMessage(speed: 8, battery: 0, connected: false, distance: 1240)),
    ("0$0$1$0.00", ELCommMessage(speed: 0, battery: 0, connected: true, distance: 0)),
    ("-1$100$1$-327.68", ELCommMessage(speed: -1, battery: 100, connected: true, distance: -32768)),
  ]

  static func read(_ text: String, with decoder: inout ELCommDecoder) -> [ELCommMessage] {
    Array(text.utf8).compactMap { decoder.decode($0) }
  }

  static func read(_ text: String) -> (messages: [ELCommMessage], decoder: ELCommDecoder) {
    var decoder = ELCommDecoder()
    let messages = read(text, with: &decoder)
    return (messages, decoder)
  }

  @Test func `every message is decoded, and any other one after it`() {
    for (text, message) in Self.vectors {
      #expect(Self.read(text).messages == [message])
      for (next, second) in Self.vectors {
        var (messages, decoder) = Self.read(text + next)
        if abs(second.speed - message.speed) > 5, messages == [message] {
          // Its speed may have digits of a part that was cut off, unless the next one, after a pause, is similar.
          #expect(decoder.badRuns == 1)
          decoder.close()
          #expect(Self.read(next, with: &decoder) == [second], "\(text)\(next)\(next)")
        } else {
          #expect(messages == [message, second] && decoder.badRuns == 0 && decoder.extra.isEmpty, "\(text)\(next)")
        }
      }
      #expect(Self.read(text + "\r\n" + text + " " + text + "\0").messages == [message, message, message])
    }
  }

  @Test func `a part of a message is not a message`() {
    for (text, message) in Self.vectors {
      for cut in 1..<text.count {
        #expect(Self.read(String(text.prefix(cut))).messages.isEmpty)
        var decoder = ELCommDecoder()
        let remnant = String(text.dropFirst(cut))
        // A part that is itself a valid message differs only by its speed.
        let isWhole = remnant.split(separator: "$", omittingEmptySubsequences: false).count == 4 && !remnant.hasPrefix("$")
        let messages = Self.read(remnant, with: &decoder)
        #expect(messages.isEmpty || isWhole, "\(remnant)")
        // Digits before a speed, without a separator, make it invalid; the next message is decoded.
        let next = Self.read(text, with: &decoder)
        decoder.close()
        #expect(next == [message] || next.isEmpty && Self.read(text, with: &decoder) == [message], "\(text) after \(remnant)")
      }
    }
  }

  @Test(arguments: ["300$88$1$1.10", "-300$88$1$1.10", "999$88$1$1.10", "312$88$1$1.10", "12$88$1$99999.99", "12$88$1$327.68"])
  func `impossible values are not decoded`(_ text: String) {
    #expect(Self.read(text).messages.isEmpty)
  }

  @Test func `a lost end of a message affects at most the next message`() {
    for (text, message) in Self.vectors {
      for cut in 1..<text.count {
        var decoder = ELCommDecoder()
        _ = Self.read(String(text.prefix(cut)), with: &decoder)
        decoder.flush()
        #expect(decoder.badRuns == 1)
        #expect(Self.read(text, with: &decoder) == [message])
      }
    }
  }

  @Test func `ambiguous input is decoded as documented`() {
    var decoder = ELCommDecoder()
    #expect(Self.read("12$88$1", with: &decoder).isEmpty && Self.read("$0.35", with: &decoder).map(\.distance) == [35])
    #expect(Self.read("12$88$1$0.3512$88$1$0.35").messages.map(\.distance) == [35, 35])
    #expect(Self.read("1$0.3512$88$1$0.35").messages == [Self.vectors[1].1])
    #expect(Self.read("0.104$88$1$0.35").messages.map(\.speed) == [4])
    #expect(Self.read("\0").decoder.badRuns == 0)
    #expect(Self.read("OK+CONN12$88$1$0.35").messages == [Self.vectors[1].1])
    #expect(Self.read("5512$88$1$0.35").messages.isEmpty)
  }

  @Test(arguments: [1, 9, 10, 16, 24, -3]) func `a message that was cut off and is repeated without a pause does not change the speed`(
    _ speed: Int
  ) {
    let text = "\(speed)$88$1$0.35"
    for cut in 1..<text.count {
      var decoder = ELCommDecoder()
      _ = Self.read(text, with: &decoder)
      decoder.close()
      let messages = Self.read(String(repeating: String(text.prefix(cut)), count: 20), with: &decoder)
      #expect(messages.allSatisfy { abs($0.speed - speed) <= 5 && $0.battery == 88 }, "\(text.prefix(cut)): \(messages)")
      decoder.close()
      #expect(Self.read(text, with: &decoder).allSatisfy { abs($0.speed - speed) <= 5 }, "\(text.prefix(cut))")
      decoder.flush()
      #expect(Self.read(text, with: &decoder).last?.speed == speed, "\(text.prefix(cut))")
    }
  }

  /// The part may be followed by the next message without a pause: lost bytes, in packets that the Bluetooth module combines. If the last
  /// digits are missing, nothing shows that the distance ends with digits of the next speed.
  @Test(arguments: [1, 9, 10, 16, 24, -3]) func `a message that was cut off does not change the speed of the next one`(_ speed: Int) {
    let text = "\(speed)$88$1$0.35"
    let message = ELCommMessage(speed: speed, battery: 88, connected: true, distance: 35)
    for cut in 1..<text.count {
      var decoder = ELCommDecoder()
      #expect(Self.read(text, with: &decoder) == [message])
      decoder.close()
      let messages = Self.read(text.prefix(cut) + text, with: &decoder)
      #expect(messages.allSatisfy { $0.speed == speed && $0.battery == 88 }, "\(text.prefix(cut))\(text): \(messages)")
      #expect(messages.allSatisfy { $0 == message } || cut >= text.count - 2, "\(text.prefix(cut))\(text): \(messages)")
      decoder.close()
      #expect(Self.read(text, with: &decoder) == [message], "\(text.prefix(cut))\(text)")
    }
  }

  @Test func `a speed that has changed much is that of the second message`() {
    var decoder = ELCommDecoder()
    var speeds: [Int] = []
    // Without their first digits, 16 is nearer to 2, 13 to 3, and 255 to 14.
    for speed in [2, 16, 17, 3, 13, 14, 255, 255, 0, 9, 109, 9] {
      speeds += Self.read("\(speed)$88$1$0.35", with: &decoder).map(\.speed)
      decoder.close()
    }
    #expect(speeds == [2, 17, 3, 14, 255, 0, 9, 9])
    decoder.reset()
    #expect(Self.read("24$88$1$0.35", with: &decoder).map(\.speed) == [24], "on a new link")
  }

  @Test(arguments: [
    ("12$88$1$0.35$7", ["7"]), ("12$88$1$0.35$36.51$ok", ["36.51", "ok"]), ("12$88$1$0.35$", [""]), ("12$88$1$0.35", []),
  ]) func `additional fields are returned`(_ text: String, _ extra: [String]) {
    var (messages, decoder) = Self.read(text)
    #expect(messages == [Self.vectors[1].1])
    decoder.close()
    #expect(decoder.extra == extra && decoder.badRuns == 0)
    #expect(Self.read(text, with: &decoder) == messages)
  }

  @Test func `after additional fields the next message starts at the most plausible speed`() {
    for text in ["12$88$1$0.35$7", "12$88$1$0.35$1", "12$88$1$0.35$36.51", "12$88$1$0.35$ok"] {
      for next in [12, 11, 13] {
        let (messages, decoder) = Self.read(text + "\(next)$88$1$0.36")
        #expect(messages.map(\.speed) == [12, next], "\(text)\(next)")
        #expect(decoder.extra.joined() == text.dropFirst("12$88$1$0.35$".count))
      }
    }
    #expect(Self.read("1$88$1$0.35$7-1$88$1$0.35").messages.map(\.speed) == [1, -1])
  }

  @Test(arguments: [
    "12$88$2$0.35", "12$88$1$0,35", "12$88$1$.35", "--1$88$1$0.35", "12$8 8$1$0.35", "12$$1$0.35", "12$88$1$1234567.00", "a$b$c$d.ef",
    "12$8888$1$0.35", "$88$1$0.35", "12$88$11$0.35", "nan$inf$1$0.35", "12$88$1$0..35",
  ]) func `invalid data yields no message, and the next message is decoded`(_ text: String) {
    var (messages, decoder) = Self.read(text)
    #expect(messages.isEmpty || messages == [ELCommMessage(speed: -1, battery: 88, connected: true, distance: 35)])
    decoder.flush()
    #expect(Self.read("12$88$1$0.35", with: &decoder) == [Self.vectors[1].1])
  }

  @Test func `the buffer is bounded`() {
    for byte in UInt8.min...UInt8.max {
      var decoder = ELCommDecoder()
      for _ in 0..<1_000 {
        if decoder.decode(byte) != nil { Issue.record("\(byte)") }
        if decoder.buffer.count > ELCommDecoder.limit || decoder.lastBad.count > ELCommDecoder.limit { Issue.record("\(byte)") }
      }
      decoder.flush()
      #expect(Self.read("12$88$1$0.35", with: &decoder) == [Self.vectors[1].1])
      #expect(Self.read(String(repeating: "$9", count: 5_000), with: &decoder).isEmpty)
      #expect(decoder.buffer.count <= ELCommDecoder.limit)
    }
  }
}
