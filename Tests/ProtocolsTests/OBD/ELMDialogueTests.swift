import Testing

@testable import Protocols

@Suite struct ELMDialogueTests {
  static func asking(_ command: String = "ATE0") -> ELMDialogue {
    var dialogue = ELMDialogue()
    dialogue.begin(Array("\(command)\r".utf8), deadline: 5 * .second)
    return dialogue
  }

  static func body(_ dialogue: ELMDialogue) -> String { printable(dialogue.reply[dialogue.bodyStart...]) }

  @Test func onlyThePromptEndsAReply() {
    var dialogue = Self.asking()
    #expect(!dialogue.receive(Array("ATE0\rOK\r".utf8), at: 1).replied)
    #expect(dialogue.deadline == 5 * .second)
    #expect(dialogue.receive(Array("\r>".utf8), at: 2).replied)
    #expect(lines(of: dialogue.reply[dialogue.bodyStart...]) == [Array("OK".utf8)])
    #expect(dialogue.isIdle && dialogue.deadline == nil)
  }

  @Test(arguments: ["OK\r\r>", "ATE0\rOK\r\r>", "ATE0\r\nOK\r\n\r\n>", " ATE0\rOK\r>", "ATE0OK>", "\rATE0\r\rOK\r\r>", "OK>"])
  func anEchoOfTheCommandIsRecognisedInEveryForm(_ reply: String) {
    var dialogue = Self.asking()
    _ = dialogue.receive(Array(reply.utf8), at: 1)
    #expect(lines(of: dialogue.reply[dialogue.bodyStart...]) == [Array("OK".utf8)])
  }

  @Test func anEchoOfAnotherCommandStays() {
    var dialogue = Self.asking("2201019")
    _ = dialogue.receive(Array("220101\r7EC0462010155\r\r>".utf8), at: 1)
    #expect(Self.body(dialogue) == "220101|7EC0462010155||")
  }

  @Test func nulsAreIgnoredAnywhere() {
    var dialogue = Self.asking()
    #expect(!dialogue.receive([0, 0], at: 1).replied)
    #expect(dialogue.receive([0] + Array("O".utf8) + [0] + Array("K\r".utf8) + [0, prompt, 0], at: 2).replied)
    #expect(dialogue.reply == Array("OK\r".utf8))
    #expect(!dialogue.hasUnexpectedText)
  }

  @Test func aStaleDeadlineNeverEndsTheNextCommand() {
    var dialogue = Self.asking()
    _ = dialogue.receive(Array("OK\r>".utf8), at: 4 * .second)
    dialogue.begin(Array("ATL0\r".utf8), deadline: 9 * .second)
    #expect(dialogue.expire(at: 5 * .second) == .nothing)
    #expect(dialogue.expire(at: 8 * .second) == .nothing)
    #expect(dialogue.expire(at: 9 * .second) == .timedOut)
    #expect(dialogue.expire(at: 9 * .second) == .nothing)
  }

  @Test func textAfterAPromptIsNotJoinedToTheNextReply() {
    var dialogue = Self.asking()
    let arrival = dialogue.receive(Array("OK\r\r>7EC21EF6F0000000000\r".utf8), at: 1)
    #expect(arrival.replied)
    #expect(dialogue.hasUnexpectedText)
    #expect(dialogue.unexpectedText == Array("7EC21EF6F0000000000".utf8))
    dialogue.resynchronise(at: 1)
    #expect(dialogue.expire(at: 100 * .millisecond) == .nothing)
    #expect(dialogue.expire(at: 1 + 100 * .millisecond) == .resynchronised)
    #expect(!dialogue.hasUnexpectedText)
  }

  @Test func drainingWaitsForQuietAndGivesUpWithout() {
    var dialogue = Self.asking()
    dialogue.resynchronise(at: 0)
    var now: Instant = 0
    for _ in 0..<40 {
      now += 90 * .millisecond
      #expect(dialogue.expire(at: now) == .nothing)
      _ = dialogue.receive(Array("STOPPED\r\r>".utf8), at: now)
    }
    #expect(dialogue.expire(at: now + 100 * .millisecond) == .resynchronised)
    dialogue.resynchronise(at: now)
    let end = now + 5 * .second
    var expiry = ELMDialogue.Expiry.nothing
    while expiry == .nothing && now < end + .second {
      now += 50 * .millisecond
      _ = dialogue.receive([0x55], at: now)
      expiry = dialogue.expire(at: now)
    }
    #expect(expiry == .neverQuiet)
    #expect(now == end)
  }

  @Test func unsuccessfulDrainsBecomeLonger() {
    var dialogue = Self.asking()
    var quiet: [Nanoseconds] = []
    for _ in 0..<6 {
      dialogue.resynchronise(at: 0)
      quiet.append((dialogue.deadline ?? 0) / .millisecond)
      #expect(dialogue.expire(at: .second) == .resynchronised)
    }
    #expect(quiet == [100, 200, 400, 800, 800, 800])
    dialogue.noteUsableReply()
    dialogue.resynchronise(at: 0)
    #expect(dialogue.deadline == 100 * .millisecond)
  }

  @Test(arguments: ["\r\rLV RESET\r\r>", "ELM327 v1.5\r\r>", "LP ALERT\r>", "\rERR94\r\r>"])
  func anUnsolicitedRestartOrSleepIsReported(_ text: String) {
    var dialogue = ELMDialogue()
    var status: ELMStatus?
    for byte in text.utf8 { status = dialogue.receive([byte], at: 0).unsolicited ?? status }
    #expect(status != nil)
    var asking = Self.asking()
    #expect(asking.receive(Array("OK\r\r>\(text)".utf8), at: 0).unsolicited == status)
  }

  @Test func anActivityAlertChangesNothing() {
    var dialogue = ELMDialogue()
    #expect(dialogue.receive(Array("\rACT ALERT\r\r>".utf8), at: 0).unsolicited == nil)
    #expect(!dialogue.hasUnexpectedText)
  }

  @Test func tenMegabytesWithoutAPromptNeedBoundedMemory() {
    var dialogue = Self.asking()
    var idle = ELMDialogue()
    let chunk = [UInt8](repeating: 0x37, count: 4096)
    var overflows = 0
    for round in 0..<2560 {
      if dialogue.receive(chunk, at: 0).overflowed { overflows += 1; dialogue.resynchronise(at: 0) }
      if round < 100 { _ = idle.receive(chunk, at: 0) }
      #expect(dialogue.reply.count <= ELMDialogue.maxReplyLength && idle.unexpectedText.count <= 256)
    }
    #expect(overflows == 1)
    #expect(idle.hasUnexpectedText)
  }
}
