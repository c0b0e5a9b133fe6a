import Testing

@testable import Protocols

@Suite struct OBDSetupTests {
  static let setupCommands = ["ATZ", "ATE0", "ATL0", "ATM0", "ATS0", "ATH1", "ATI", "STI", "ATSP6", "ATSH7E4", "ATCRA7EC"]

  @Test func withoutALinkTheStatusIsWaiting() {
    var rig = AdapterRig()
    rig.give(.started(restored: [:], wall: WallTime(microseconds: 0)))
    #expect(rig.status == "waiting")
    rig.connect()
    #expect(rig.status == "starting")
    rig.run(for: 2 * .second)
    #expect(rig.status == "polling")
    rig.give(.linkChanged(.main, .down("unplugged")))
    #expect(rig.status == "waiting")
  }

  @Test func theAdapterIsInitialisedInOrderAndThenPolled() {
    var rig = AdapterRig()
    rig.start()
    #expect(rig.status == "starting")
    rig.run(for: .second)
    #expect(Array(rig.commands.prefix(12)) == Self.setupCommands + ["220101"])
    #expect(rig.text("adapter") == "ELM327 v1.5")
    #expect(rig.status == "polling")
    #expect(rig.fault == nil && rig.faults.isEmpty && rig.notes.isEmpty)
  }

  @Test func theResetIsAwaitedAndNotSleptThrough() {
    var rig = AdapterRig()
    rig.adapter.sleepFor("ATZ", 4900 * .millisecond)
    rig.start()
    rig.run(for: 4899 * .millisecond)
    #expect(rig.commands == ["ATZ"])
    rig.run(for: 100 * .millisecond)
    #expect(rig.status == "polling")
  }

  @Test func echoesAndNoisyBannersAndSplitPromptsDoNotShiftReplies() {
    var rig = AdapterRig()
    rig.adapter.echoes = true
    rig.adapter.answer("ATZ", bytes: Array(Vector.noisyBanner.dropFirst(4)))
    rig.start(for: 2 * .second)
    #expect(rig.number("rpm") == 4363)
    #expect(rig.number("bad-replies") == 0)

    var split = AdapterRig()
    split.adapter.answer("ATE0", "")
    split.start()
    split.run(untilHeard: "ATE0")
    split.hear("ATE0\rOK")
    split.run(for: .second)
    #expect(split.commands.last == "ATE0")
    split.hear("\r\r>")
    split.run(for: .second)
    #expect(split.number("rpm") == 4363)
  }

  @Test(arguments: ["ATS0", "ATH1", "ATCRA7EC", "ATI", "STI", "ATE0", "ATL0"])
  func aCommandThatACloneLacksCostsOnlyItsFeature(_ command: String) {
    var rig = AdapterRig()
    rig.adapter.answer(command, "?\r\r>")
    rig.start(for: 2 * .second)
    #expect(rig.number("rpm") == 4363)
    #expect(rig.faults.isEmpty)
    #expect(rig.notes.contains { $0.contains("does not support \(command.prefix(5))") } == ["ATS0", "ATH1", "ATCRA7EC"].contains(command))
  }

  @Test func withoutMemoryOffTheProtocolIsSetWithoutWritingTheEEPROM() {
    var rig = AdapterRig()
    rig.adapter.answer("ATM0", "?\r\r>")
    rig.start(for: 2 * .second)
    #expect(rig.heard("ATTP6") == 1 && rig.heard("ATSP6") == 0)
    #expect(rig.number("rpm") == 4363)
  }

  @Test(arguments: ["ATSP6", "ATSH7E4"]) func aRejectedProtocolOrHeaderPreventsPolling(_ command: String) {
    var rig = AdapterRig()
    rig.adapter.answer(command, "?\r\r>")
    rig.start()
    rig.run(for: 50 * .second)
    #expect(rig.heard("220101") == 0 && rig.heard("ATZ") == 1)
    #expect(rig.status == "degraded")
    #expect(rig.fault == "the adapter does not support \(command) and cannot be set up safely; use another adapter")
    rig.run(for: 20 * .second)
    #expect(rig.heard("ATZ") == 2)
    #expect(rig.resets.isEmpty)
  }

  @Test func threeSilentSetupsBringTheLinkDown() {
    var rig = AdapterRig()
    rig.adapter.answer("ATZ", "")
    rig.start()
    rig.run(for: 20 * .second)
    #expect(rig.heard("ATZ") == 3)
    #expect(rig.resets == ["the adapter does not respond; check its power"])
    #expect(rig.machine.nextWake == nil)
    rig.adapter.answer("ATZ", "ELM327 v1.5\r\r>")
    rig.give(.linkChanged(.main, .down("reset")))
    #expect(rig.fault == "the adapter does not respond; check its power")
    rig.connect()
    rig.run(for: 2 * .second)
    #expect(rig.status == "polling" && rig.fault == nil)
  }

  @Test(arguments: ["\u{80}\u{93}\u{1F}>", "?\r\r>", "STOPPED\r\r>", ">", "\r\r>"])
  func threeUnreadableSetupsBringTheLinkDown(_ reply: String) {
    var rig = AdapterRig()
    rig.adapter.answer("ATZ", reply)
    rig.start()
    rig.run(for: 20 * .second)
    #expect(rig.heard("ATZ") == 3)
    #expect(rig.resets == ["the adapter's replies are unreadable; check baud rate and wiring"])
    #expect(rig.number("bad-replies") == 3)
  }

  @Test func anAdapterThatIsNeverQuietResetsTheLink() {
    var rig = AdapterRig()
    rig.adapter.answer("ATZ", "STOPPED\r\r>")
    rig.start()
    rig.run(for: 1610 * .millisecond)
    var rounds = 0
    while rig.resets.isEmpty && rounds < 1000 {
      rig.run(for: 20 * .millisecond)
      rig.hear("\u{7F}U")
      rounds += 1
    }
    #expect(rig.resets == ["the adapter's replies are unreadable; check baud rate and wiring"])
  }

  @Test func theNameOfAnSTNChipIsAdded() {
    var rig = AdapterRig()
    rig.adapter.answer("STI", "STN1110 v4.2.0\r\r>")
    rig.start(for: 2 * .second)
    #expect(rig.text("adapter") == "ELM327 v1.5 (STN1110 v4.2.0)")
  }

  @Test(arguments: ["\r\rLV RESET\r\r>", "\r\rELM327 v1.5\r\r>", "ERR94\r\r>"])
  func anAdapterThatRestartedIsReinitialised(_ text: String) {
    var rig = AdapterRig()
    rig.start(for: 2 * .second)
    rig.run(untilHeard: "2201019", times: 3)
    rig.run(for: 10 * .millisecond)
    rig.hear(text)
    #expect(rig.status == "starting")
    #expect(rig.fault != nil)
    rig.run(for: 2 * .second)
    #expect(rig.heard("ATZ") == 2 && rig.heard("ATSH7E4") == 2)
    #expect(rig.status == "polling" && rig.fault == nil)

    var asked = AdapterRig()
    asked.start(for: 2 * .second)
    asked.adapter.answer("2201019", text)
    asked.run(for: 60 * .millisecond)
    asked.adapter.answer("2201019", bytes: Vector.ev6)
    asked.run(for: 2 * .second)
    #expect(asked.heard("ATZ") == 2)
    #expect(asked.status == "polling")
  }

  @Test func theBannerOfAHandledRestartIsNoSecondOne() {
    var rig = AdapterRig()
    rig.adapter.answer("ATM0", "?\r\r>", "OK\r\r>")
    rig.start(for: 2 * .second)
    rig.hear("LV RESET\r\r>")
    rig.run(for: 50 * .millisecond)
    rig.hear("\r\rELM327 v1.5\r\r>")
    rig.run(for: 2 * .second)
    #expect(rig.heard("ATZ") == 2 && rig.status == "polling" && rig.machine.router.session.setups.failures == 0)
    // The capabilities of the adapter are determined again.
    #expect(rig.heard("ATTP6") == 1 && rig.heard("ATSP6") == 1)
    #expect(rig.faults == [ELMStatus.lowVoltageReset.message])
  }

  @Test func anUnnoticedRestartIsDetectedByTheEchoAndReinitialisedOnce() {
    var rig = AdapterRig()
    rig.start(for: 2 * .second)
    rig.adapter.echoes = true
    rig.adapter.answer("220101", "NO DATA\r\r>")
    rig.adapter.answer("2201019", "NO DATA\r\r>")
    rig.run(untilHeard: "ATZ", times: 2)
    rig.run(for: 30 * .second)
    #expect(rig.heard("ATZ") == 2 && rig.status == "car-silent")
    rig.adapter.answer("220101", bytes: Vector.ev6)
    rig.run(for: 60 * .second)
    #expect(rig.heard("ATZ") == 2 && rig.status == "polling" && rig.number("rpm") == 4363)
  }

  @Test func aRestartAfterABrokenFrameIsDetected() {
    var reader = ReplyReader()
    #expect(reader.read(Array("7EC103E62\r\rLV RESET\r\r".utf8)) == .status(.lowVoltageReset))
    #expect(reader.read(Array("7EC2162\rELM327 v1.5\r\r".utf8)) == .status(.banner))
    #expect(reader.read(Array("7EC103E62BUFFER FULL\r\r".utf8)) == .status(.bufferFull))
  }

  @Test func anAdapterThatFallsAsleepIsWokenWithASpace() {
    var rig = AdapterRig()
    rig.start(for: 2 * .second)
    rig.hear("LP ALERT\r\r>")
    rig.run(for: 2900 * .millisecond)
    #expect(rig.heard("ATZ") == 1)
    rig.run(for: 2 * .second)
    #expect(rig.heard("ATZ") == 2)
    #expect(rig.status == "polling")
  }

  @Test func aKnownRequestIsRestoredAndTriedFirst() {
    var rig = AdapterRig()
    rig.adapter.answer("2101", bytes: Vector.soul)
    rig.start(restored: ["request": Array("2101".utf8)])
    rig.run(for: .second)
    #expect(rig.heard("220101") == 0)
    #expect(rig.number("battery-voltage") == 369.7)
    #expect(rig.stored.isEmpty)
    var odd = AdapterRig()
    odd.start(restored: ["request": [0xFF, 0x00], "other": []])
    odd.run(for: .second)
    #expect(odd.number("rpm") == 4363)
    #expect(odd.stored == ["request": "220101"])
  }
}
