import Testing

@testable import Protocols

/// Which replies to a poll are responses, and the handling of the others.
@Suite struct OBDAnswerTests {
  @Test func theOtherRequestIsTriedAfterARejectionAndStored() {
    for refusal in ["7EC037F2211AAAAAAAA\r\r>", "7EC037F2212\r\r>", "7EC037F2231\r\r>", "7EC037F2233\r\r>", "?\r\r>", "NO DATA\r\r>"] {
      var rig = AdapterRig()
      rig.adapter.answer("220101", refusal)
      rig.adapter.answer("2101", bytes: Vector.soul)
      rig.adapter.answer("21019", bytes: Vector.soul)
      rig.start(for: 2 * .second)
      rig.run(for: 10 * .second)
      #expect(rig.heard("220101") == 1, "\(refusal)")
      #expect(rig.number("battery-voltage") == 369.7)
      #expect(rig.stored == ["request": "2101"])
      #expect(rig.text("request") == "2101")
      #expect(rig.faults.isEmpty)
    }
  }

  /// Some of the responses are negative, or all for a while.
  @Test(arguments: [1, 6]) func `a detected vehicle stays the same when it rejects requests`(count: Int) {
    var rig = AdapterRig()
    let refusals = [[UInt8]](repeating: Array("7EC037F2212\r\r>".utf8), count: count)
    rig.adapter.answer("220101", bytes: Vector.ev6)
    rig.adapter.replies["2201019"] = [Vector.ev6] + refusals + [Vector.ev6]
    rig.start(for: 2 * .second)
    rig.run(for: 60 * .second)
    #expect(rig.heard("2101") == 0)
    #expect(rig.number("rpm") == 4363 && rig.text("request") == "220101" && rig.text("vehicle")?.contains("e-gmp") == true)
  }

  @Test(arguments: ["DATA ERROR", "7EC103E620101EFFBE7\r7EC21EF6F00<DATA ERROR", "<RX ERROR", "7EC103E62BUFFER FULL", "FFBUFFERFULL"])
  func anUnusableReplyIsPublishedAndGivesNoValue(_ text: String) {
    var rig = AdapterRig()
    rig.adapter.answer("220101", "\(text)\r\r>", String(decoding: Vector.ev6, as: UTF8.self))
    rig.start()
    rig.run(untilHeard: "220101", times: 2)
    #expect(rig.number("rpm") == nil && rig.number("bad-replies") == 1)
    #expect(rig.text("last-bad-reply") == text.replacing("\r", with: "|") + "||")
    #expect(rig.adapter.stops == 0)
    rig.run(for: .second)
    #expect(rig.number("rpm") == 4363 && rig.number("bad-replies") == 1)
  }

  @Test(arguments: [
    "7EA037F2231\r\r>", "7EC0462010200\r\r>", "7EC0459020000\r\r>", "OK\r\r>", "VENDOR MODE\r\r>", "STOPPED\r\r>", ">", "7EC037F1911\r\r>",
    "7EC04620101FF\r\r>",
  ])
  func aReplyToAnotherRequestIsNoResponse(_ text: String) {
    var rig = AdapterRig()
    rig.adapter.answer("220101", text, String(decoding: Vector.ev6, as: UTF8.self))
    rig.start()
    rig.run(untilHeard: "220101", times: 2)
    #expect(rig.number("rpm") == nil && rig.number("bad-replies") == 1)
    rig.run(for: .second)
    #expect(rig.number("rpm") == 4363)
  }

  @Test func contradictoryResponsesAreRejected() {
    let twice = String(decoding: Vector.ev6.dropLast(2), as: UTF8.self) + String(decoding: Vector.kona, as: UTF8.self)
    var rig = AdapterRig()
    rig.adapter.answer("220101", twice)
    rig.start(for: 2 * .second)
    #expect(rig.number("rpm") == nil && (rig.number("bad-replies") ?? 0) > 1)
  }

  @Test func aResponseOfAnotherECUIsRejected() {
    let other = String(decoding: Vector.ev6, as: UTF8.self).replacing("7EC", with: "7EB")
    var rig = AdapterRig()
    rig.adapter.answer("220101", other)
    rig.start(for: 2 * .second)
    #expect(rig.number("rpm") == nil && (rig.number("bad-replies") ?? 0) > 1)
  }

  @Test func aLateResponseOfAnotherServiceIsSkipped() {
    let late = "7EC0459020000AAAAAA\r" + String(decoding: Vector.ev6, as: UTF8.self)
    var rig = AdapterRig()
    rig.adapter.answer("220101", late)
    rig.start()
    rig.run(untilHeard: "220101", times: 2)
    #expect(rig.number("rpm") == 4363 && rig.number("bad-replies") == 0)
  }

  @Test func pendingInTheSameReplyIsFollowedByTheResponse() {
    var rig = AdapterRig()
    rig.adapter.answer("220101", "7EC037F2278AAAAAAAA\r" + String(decoding: Vector.ev6, as: UTF8.self))
    rig.start()
    rig.run(untilHeard: "220101", times: 2)
    #expect(rig.number("rpm") == 4363)
  }

  @Test func negativeResponsesNeverBecomeValues() {
    let expected: [(code: String, silent: Bool, next: ClosedRange<Int64>?)] = [
      ("21", false, 50...50), ("78", false, 1000...1050), ("22", true, 1000...1050), ("10", true, 1000...1050), ("36", true, nil),
    ]
    for (code, silent, next) in expected {
      var rig = AdapterRig()
      rig.start(for: 2 * .second)
      let ev6 = String(decoding: Vector.ev6, as: UTF8.self)
      rig.adapter.answer("2201019", "7EC037F22\(code)AAAAAAAA\r\r>", ev6)
      let first = rig.adapter.heard.count
      rig.run(for: 60 * .millisecond)
      #expect((rig.status == "car-silent") == silent, "\(code)")
      #expect((rig.number("rpm") == nil) == silent)
      rig.run(for: 5 * .second)
      let later = rig.adapter.heard.dropFirst(first).map(\.at)
      if let next {
        #expect(later.count > 1 && next.contains((later[1] - later[0]) / .millisecond), "\(code)")
      } else {
        #expect(later.count == 1)
      }
      #expect(rig.number("bad-replies") == 0)
    }
    var busy = AdapterRig()
    busy.adapter.answer("220101", "7EC037F2221\r\r>")
    busy.start(for: 2 * .second)
    #expect(busy.status == "car-silent")
  }

  @Test func theCountDigitIsLearnedFromTheFirstFullReply() {
    var rig = AdapterRig()
    rig.start(for: 2 * .second)
    #expect(rig.heard("220101") == 1 && rig.heard("2201019") > 10)
  }

  @Test func anAdapterThatDoesNotKnowTheCountDigitIsNeverAskedAgain() {
    var rig = AdapterRig()
    rig.adapter.answer("2201019", "?\r\r>")
    rig.start(for: 2 * .second)
    rig.run(for: 60 * .second)
    #expect(rig.heard("2201019") == 1 && rig.heard("220101") > 1200)
    #expect(rig.number("bad-replies") == 0 && rig.faults.isEmpty)
  }

  @Test(arguments: ["7EC103E620101EFFBE7\r\r>", "NO DATA\r\r>", "7EC037F2213\r\r>", ""])
  func aFailedCountIsRelearnedAtGrowingIntervals(_ reply: String) {
    var rig = AdapterRig()
    rig.adapter.answer("2201019", reply)
    rig.start()
    rig.run(untilHeard: "2201019", times: 5)
    let polls = rig.commands.filter { $0.hasPrefix("2201") }
    let runs = polls.split(separator: "2201019", omittingEmptySubsequences: false).map(\.count)
    #expect(Array(runs.prefix(5)) == [1, 1, 16, 256, 256])
    #expect(rig.heard("ATZ") == 1)
  }
}
