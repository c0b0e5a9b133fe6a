import Testing

@testable import Protocols

@Suite struct OBDPollingTests {
  static let off = "no response from the vehicle: it may be off"

  @Test func tenMinutesOfPollingDoNotDriftFromTheGrid() {
    var rig = AdapterRig(phase: 0.3, at: 123_456_789)
    rig.adapter.sleepFor("2201019", 12 * .millisecond)
    rig.start(for: 2 * .second)
    let before = rig.heard("2201019")
    rig.run(for: 600 * .second)
    let polls = rig.adapter.heard.filter { $0.command == "2201019" }
    #expect(polls.count - before == 12000)
    #expect(polls.suffix(12000).allSatisfy { ($0.at - 15 * .millisecond) % (50 * .millisecond) == 0 })
    #expect(rig.number("missed") == 0)
    #expect(rig.number("poll-rate") == 20)
    #expect(rig.number("round-trip") == 12 && rig.number("round-trip-p99") == 12)
    #expect(rig.number("lateness") == 0 && rig.number("lateness-p99") == 0)
  }

  @Test func aReplySlowerThanTheGridCoalescesAndSlotsThatPassAreMissed() {
    var rig = AdapterRig()
    rig.adapter.sleepFor("220101", 120 * .millisecond)
    rig.adapter.sleepFor("2201019", 120 * .millisecond)
    rig.start(for: 2 * .second)
    let before = rig.adapter.heard.count
    let missed = rig.machine.router.vehicle.polling.scheduler.pace.missed
    rig.run(for: 60 * .second)
    let polls = rig.adapter.heard.dropFirst(before)
    #expect(abs(polls.count - 500) <= 1)
    #expect(abs(rig.machine.router.vehicle.polling.scheduler.pace.missed - missed - 700) <= 2)
    #expect(zip(polls, polls.dropFirst()).allSatisfy { $1.at - $0.at == 120 * .millisecond })
    #expect(rig.adapter.stops == 0)
  }

  @Test func oneLateReplyIsMadeUpForOnceAndNeverBeyondTheRate() {
    var rig = AdapterRig()
    rig.start(for: 2 * .second)
    rig.run(for: 5 * .millisecond)
    rig.adapter.sleepFor("2201019", 80 * .millisecond)
    rig.run(for: 60 * .millisecond)
    rig.adapter.sleepFor("2201019", .millisecond)
    let start = rig.adapter.heard.last?.at ?? 0
    rig.run(for: 500 * .millisecond)
    let times = rig.adapter.heard.filter { $0.at > start }.map { ($0.at - start) / .millisecond }
    #expect(Array(times.prefix(3)) == [80, 100, 150])
    #expect(rig.machine.router.vehicle.polling.scheduler.pace.missed == 0)
  }

  @Test func backToBackTheNextRequestFollowsTheReply() {
    var rig = AdapterRig(rate: 0)
    rig.start(for: 2 * .second)
    let before = rig.adapter.heard.count
    rig.run(for: .second)
    #expect(rig.adapter.heard.count - before == 1000)
    #expect(rig.absence("lateness") == "polling as fast as possible")
    #expect(rig.number("poll-rate") == 1000)
  }

  @Test func unusableRepliesAreReportedAndPollsAreCounted() {
    var rig = AdapterRig(vehicle: .eGMP)
    rig.adapter.answer("220101", "7EC0462010100\r\r>")
    rig.start()
    rig.run(for: 10 * .second)
    #expect(rig.status == "degraded")
    #expect(rig.fault?.hasPrefix("the adapter's replies are unusable (response too short)") == true)
    #expect(rig.number("polls") ?? 0 > 10)
    rig.adapter.answer("220101", bytes: Vector.ev6)
    rig.run(for: 3 * .second)
    #expect(rig.status == "polling" && rig.fault == nil)
  }

  @Test func aVehicleThatAlwaysSendsResponsePendingIsSilent() {
    var rig = AdapterRig()
    rig.adapter.answer("220101", "7EC037F2278\r\r>")
    rig.start()
    rig.run(for: 20 * .second)
    #expect(rig.status == "car-silent" && rig.fault?.contains("retrying every second") == true)
    #expect(rig.number("polls") ?? 0 > 10)
  }

  @Test func aSilentAdapterIsReportedAtTheFirstTimeout() {
    var rig = AdapterRig()
    rig.start(for: 2 * .second)
    rig.adapter.isMute = true
    rig.run(for: 6 * .second)
    #expect(rig.status == "degraded" && rig.fault == AdapterSession.silentMessage)
    rig.adapter.isMute = false
    rig.run(for: 15 * .second)
    #expect(rig.status == "polling" && rig.fault == nil)
  }

  @Test func aSlowGridHasARateToo() {
    var rig = AdapterRig(rate: 0.1)
    rig.start()
    rig.run(for: 60 * .second)
    #expect(rig.number("poll-rate") == 0.1)
  }

  @Test func aVehicleThatAnswersNeitherRequestIsPolledAtGrowingIntervals() {
    var rig = AdapterRig(vehicle: .hkmcEV)
    rig.adapter.answer("220101", "NO DATA\r\r>")
    rig.start()
    rig.run(for: 300 * .second)
    let asked = rig.adapter.heard.filter { $0.command == "220101" }.map(\.at)
    let gaps = zip(asked, asked.dropFirst()).map { ($1 - $0 + .second / 2) / .second }
    #expect(Array(gaps.prefix(7)) == [1, 2, 5, 10, 30, 60, 60])
    #expect(rig.heard("2101") == rig.heard("220101"))
    #expect(rig.status == "car-silent" && rig.fault == Self.off)
    #expect(rig.absence("rpm") == Self.off)
    rig.adapter.answer("220101", bytes: Vector.ev6)
    rig.run(for: 61 * .second)
    #expect(rig.status == "polling" && rig.fault == nil && rig.number("rpm") == 4363)
    #expect(rig.heard("ATZ") == 1)
  }

  @Test func threeTimesNoDataWithdrawsTheValuesAndOneResponseRestoresThem() {
    var rig = AdapterRig()
    rig.start(for: 2 * .second)
    rig.adapter.answer("220101", "NO DATA\r\r>")
    rig.adapter.answer("2201019", "NO DATA\r\r>")
    let polls = rig.adapter.heard.count
    rig.run(for: 150 * .millisecond)
    #expect(rig.number("rpm") == 4363)
    rig.run(for: 100 * .millisecond)
    // One request with a count and three without: only the latter show that the vehicle is silent.
    #expect(rig.adapter.heard.count - polls == 4)
    #expect(rig.status == "car-silent" && rig.absence("rpm") == Self.off && rig.absence("poll-rate") == Self.off)
    #expect(rig.text("request") == "220101")
    rig.adapter.answer("220101", bytes: Vector.ev6)
    rig.run(for: 2 * .second)
    #expect(rig.status == "polling" && rig.number("rpm") == 4363)
    #expect(rig.absence("ignition") == "not reported by this car")
    #expect(rig.heard("2101") == 0)
  }

  @Test(arguments: [
    ("CAN ERROR", ELMStatus.canError), ("UNABLE TO CONNECT", .unableToConnect), ("SEARCHING...\rUNABLE TO CONNECT", .unableToConnect),
    ("FB ERROR", .feedbackError), ("BUS INIT: ...ERROR", .busInitError),
  ])
  func aFailedBusBacksOffAtOnceWithItsMessage(_ text: String, _ status: ELMStatus) {
    var rig = AdapterRig()
    rig.start(for: 2 * .second)
    rig.adapter.answer("2201019", "\(text)\r\r>")
    rig.adapter.answer("220101", "\(text)\r\r>")
    rig.run(for: 60 * .millisecond)
    #expect(rig.status == "car-silent" && rig.fault == status.message && rig.absence("rpm") == status.message)
    let polls = rig.adapter.heard.count
    rig.run(for: 30 * .second)
    #expect((4...6).contains(rig.adapter.heard.count - polls))
    #expect(rig.heard("ATZ") == 1)
  }

  @Test(arguments: ["BUS BUSY", "BUS ERROR"]) func aDisturbedBusIsRetriedAndThenReinitialised(_ text: String) {
    var rig = AdapterRig()
    rig.start(for: 2 * .second)
    rig.adapter.answer("2201019", "\(text)\r\r>")
    rig.run(for: 90 * .millisecond)
    #expect(rig.faults.isEmpty)
    rig.run(for: 1200 * .millisecond)
    #expect(rig.faults.count == 1)
    rig.adapter.answer("2201019", bytes: Vector.ev6)
    rig.run(for: 2 * .second)
    #expect(rig.heard("ATZ") == 2 && rig.status == "polling" && rig.fault == nil)
  }

  @Test func aTimeoutResynchronisesAndTheNextSlotPolls() {
    var rig = AdapterRig()
    rig.start(for: 2 * .second)
    rig.adapter.answer("2201019", "")
    rig.run(for: 60 * .millisecond)
    let count = rig.adapter.heard.count
    rig.run(for: 4900 * .millisecond)
    #expect(rig.adapter.heard.count == count)
    rig.run(for: 300 * .millisecond)
    #expect(rig.number("timeouts") == 1)
    #expect(rig.adapter.heard[count].command == "220101")
    #expect(rig.heard("ATZ") == 1)
    #expect(rig.machine.router.vehicle.polling.scheduler.pace.missed >= 99)
  }

  @Test func aResponseAfterItsDeadlineIsNoValue() {
    var rig = AdapterRig()
    rig.adapter.answer("220101", "")
    rig.start()
    rig.run(untilHeard: "220101")
    rig.now += 5 * .second
    rig.give(.received(.main, Vector.ev6))
    #expect(rig.number("rpm") == nil && rig.number("timeouts") == 1)
  }

  @Test func threeConsecutiveTimeoutsReinitialiseTheAdapter() {
    var rig = AdapterRig()
    rig.start(for: 2 * .second)
    rig.adapter.answer("2201019", "")
    rig.adapter.answer("220101", "")
    rig.run(for: 16200 * .millisecond)
    #expect(rig.number("timeouts") == 3)
    #expect(rig.heard("ATZ") == 2)
    #expect(rig.fault == "the adapter does not respond; check its power")
    rig.adapter.answer("220101", bytes: Vector.ev6)
    rig.run(for: 2 * .second)
    #expect(rig.status == "polling" && rig.fault == nil)
  }

  @Test func tenConsecutiveUnusableRepliesReinitialiseTheAdapter() {
    var rig = AdapterRig()
    rig.adapter.answer("220101", "garbage\r\r>")
    rig.start()
    rig.run(untilHeard: "ATZ", times: 2)
    #expect(rig.number("bad-replies") == 10 && rig.heard("220101") == 10)
    #expect(rig.fault?.contains("unknown text") == true)
    #expect(rig.resets.isEmpty)
  }

  @Test func unexpectedTextIsDrainedBeforeTheNextRequest() {
    var rig = AdapterRig()
    rig.start(for: 2 * .second)
    rig.run(for: 10 * .millisecond)
    let polls = rig.adapter.heard.count
    rig.hear("7EC2765010080770002\r7EC28CD11")
    rig.run(for: 90 * .millisecond)
    #expect(rig.adapter.heard.count == polls)
    rig.run(for: 200 * .millisecond)
    #expect(rig.adapter.heard.count > polls && rig.number("bad-replies") == 1 && rig.adapter.stops == 0)
  }

  @Test func aLinkThatBreaksLeavesNothingDue() {
    var rig = AdapterRig()
    rig.start(for: 2 * .second)
    rig.give(.linkChanged(.main, .down("unplugged")))
    #expect(rig.machine.nextWake == nil)
    rig.hear("7EC0462010155\r\r>")
    rig.run(for: 60 * .second)
    rig.connect()
    rig.run(for: 2 * .second)
    #expect(rig.heard("ATZ") == 2 && rig.status == "polling")
    // The adapter's capabilities are valid for one connection.
    #expect(rig.heard("220101") == 2)
  }

  @Test func theFirstPollOfARunIsNeitherLateNorAreSlotsMissedBeforeIt() {
    var pace = Pace(rate: 10, phase: 0.5)
    for _ in 0..<2 {
      pace.begin(at: 1_049 * .millisecond)
      #expect(pace.due == 950 * .millisecond)
      #expect(pace.recordPoll(at: 1_060 * .millisecond) == nil)
      #expect(pace.due == 1_150 * .millisecond && pace.missed == 0)
    }
    #expect(pace.recordPoll(at: 1_151 * .millisecond) == .millisecond)
    #expect(pace.recordPoll(at: 1_551 * .millisecond) == .millisecond)
    #expect(pace.missed == 3)
  }

  @Test func percentilesAreTakenOverTheLastTenSecondsOr256Polls() {
    var timing = Timing(period: 50 * .millisecond)
    for index in 0..<300 {
      let roundTrip = Int64(index) * .microsecond
      timing.add(answered: Int64(index) * .millisecond + roundTrip, roundTrip: roundTrip, lateness: nil)
    }
    let summary = timing.summary(at: .second)
    #expect(summary.roundTrip?.median == 172 * .microsecond && summary.roundTrip?.p99 == 297 * .microsecond && summary.lateness == nil)
    #expect(summary.rate == 1000)
    #expect(timing.summary(at: 60 * .second).roundTrip == nil)
    // A slow first response, off the grid, does not count for the rate.
    var grid = Timing(period: 50 * .millisecond)
    grid.add(answered: 40 * .millisecond, roundTrip: 30 * .millisecond, lateness: nil)
    for slot in 1...20 { grid.add(answered: Int64(slot) * 50 * .millisecond, roundTrip: .millisecond, lateness: 0) }
    #expect(grid.summary(at: .second).rate == 20)
  }
}
