// Rarely polled requests whose responses are lost: the first retry follows soon, and later ones at growing intervals.

import Testing

@testable import Peers
@testable import Protocols

@Suite struct LostResponseTests {
  /// The request for the odometer, which is polled every 60 s.
  private static let cluster: UInt32 = 0x7C6

  /// An electric car whose instrument cluster does not respond in this time.
  private static func car(silentFrom start: Instant = 0, until end: Instant) -> SilencedCar {
    SilencedCar { _, address, now in address == cluster && now >= start && now < end }
  }

  @Test func `one lost response does not cost a rarely polled value a minute`() throws {
    var rig = try VehicleRig(Self.car(until: 4 * .second))
    rig.run(for: 4 * .second)
    #expect(rig.status == "polling" && rig.number("odometer") == nil && rig.count("22B002", last: 4 * .second) == 1)
    rig.run(for: 8 * .second)
    #expect(rig.number("odometer") != nil)
  }

  @Test func `one lost response is repeated over frames`() throws {
    var rig = try FramesRig(Self.car(until: .second))
    rig.run(for: .second)
    #expect(rig.status == "polling" && rig.number("odometer") == nil && rig.sent("t7C6").count == 1)
    rig.run(for: 6 * .second)
    #expect(rig.number("odometer") != nil)
  }

  @Test func `an ECU that is silent for seconds does not lose the values that it had`() throws {
    var rig = try FramesRig(Self.car(silentFrom: 30 * .second, until: 100 * .second))
    rig.run(for: 30 * .second)
    #expect(rig.number("odometer") != nil)
    rig.run(for: 70 * .second)
    // Two responses, each with a flow control, and the two requests without one.
    #expect(rig.number("odometer") != nil && rig.sent("t7C6").count == 6)
    rig.run(for: 200 * .second)
    #expect(rig.number("odometer") != nil)
  }

  @Test func `a switched-off car whose cluster is silent first keeps its odometer`() throws {
    var rig = try FramesRig(SilencedCar { _, address, now in now > 100 * .second || address == Self.cluster && now > 50 * .second })
    rig.run(for: 300 * .second)
    #expect(rig.number("odometer") != nil && rig.number("speed") == nil)
  }

  @Test func `a request is unanswered if its ECU is silent for two periods`() {
    for (period, misses) in [(60, 3), (1, 2)] as [(Int64, Int)] {
      var request = PollRequest(.bms, [0x22, 0xB0, 0x02], period: period * .second)
      for miss in 1...3 {
        request.recordMiss(at: 0, took: 200 * .millisecond)
        #expect(request.isUnanswered == (miss >= misses) && request.isRetriedSoon == (miss == 1), "\(period) s, \(miss)")
      }
    }
  }

  @Test func `a lost response costs the frame count and the measured duration only once`() {
    var request = PollRequest(.bms, [0x22, 0xB0, 0x02], period: 60 * .second)
    request.recordResponse(at: 0, took: 20 * .millisecond, frames: 3, from: nil)
    #expect(request.frameCount.frames == 3)
    for _ in 0..<2 { request.recordMiss(at: .second, took: 200 * .millisecond) }
    request.recordResponse(at: 2 * .second, took: 20 * .millisecond, frames: 3, from: nil)
    #expect(request.frameCount.frames == 3 && request.duration == 20 * .millisecond)
  }

  @Test func `requests that were not answered are sent after a silence, though they fit no gap`() {
    var queue = RequestQueue()
    queue.replace(with: [PollRequest(.bms, [0x22, 0xB0, 0x02], period: 60 * .second)])
    let addressing = ECUAddressing(bus: .can, target: .bms)
    let adapter = RequestQueue.AdapterState(
      addressing: addressing, fastAddressing: addressing, supportsSTPX: false, isFrameInterface: false)
    for now in [0, 100] as [Int64] { queue.recordAbort(0, took: .second, isRepeated: false, at: now * .second) }
    queue.fastRequestAnswered(afterSilence: true, isLate: false, at: 110 * .second)
    #expect(queue.pick(at: 110 * .second, gap: 25 * .millisecond, adapter) == 0)
    queue.recordSent(0, at: 110 * .second, gap: 25 * .millisecond, adapter)
    queue.recordAbort(0, took: .second, isRepeated: false, at: 111 * .second)
    queue.fastRequestAnswered(afterSilence: false, isLate: false, at: 112 * .second)
    #expect(queue.pick(at: 112 * .second, gap: 25 * .millisecond, adapter) == nil)
  }

  @Test func `an ECU that never responds is asked once more, and then rarely`() throws {
    var rig = try FramesRig(Self.car(until: .max))
    rig.run(for: 100 * .second)
    #expect(rig.sent("t7C6").count == 2)
    rig.run(for: 200 * .second)
    #expect(rig.sent("t7C6").count == 3)
  }
}
