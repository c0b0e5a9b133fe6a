// Rarely polled requests whose responses are lost: the first retry follows soon, and later ones at growing intervals.

import Testing

@testable import Peers
@testable import Protocols

@Suite struct LostResponseTests {
  /// The request for the odometer, which is polled every 60 s.
  private static let cluster: UInt32 = 0x7C6

  /// An electric car whose instrument cluster does not respond until this time.
  private static func car(silentUntil end: Instant) -> SilencedCar { SilencedCar { _, address, now in address == cluster && now < end } }

  @Test func `one lost response does not cost a rarely polled value a minute`() throws {
    var rig = try VehicleRig(Self.car(silentUntil: 4 * .second))
    rig.run(for: 4 * .second)
    #expect(rig.status == "polling" && rig.number("odometer") == nil && rig.count("22B002", last: 4 * .second) == 1)
    rig.run(for: 5 * .second)
    #expect(rig.number("odometer") != nil)
  }

  @Test func `one lost response is repeated over frames`() throws {
    var rig = try FramesRig(Self.car(silentUntil: .second))
    rig.run(for: .second)
    #expect(rig.status == "polling" && rig.number("odometer") == nil && rig.sent("t7C6").count == 1)
    rig.run(for: 4 * .second)
    #expect(rig.number("odometer") != nil)
  }

  @Test func `an ECU that never responds is asked once more, and then rarely`() throws {
    var rig = try FramesRig(Self.car(silentUntil: .max))
    rig.run(for: 100 * .second)
    #expect(rig.sent("t7C6").count == 2)
    rig.run(for: 200 * .second)
    #expect(rig.sent("t7C6").count == 3)
  }
}
