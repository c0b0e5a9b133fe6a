// Electric cars that were taken for standard vehicles, because their BMS did not respond during detection.

import Testing

@testable import Peers
@testable import Protocols

@Suite struct BMSCheckTests {
  private static let known = ["request": Array("220101".utf8)]
  private static let electric = "electric Hyundai or Kia (e-gmp)"

  /// A car whose BMS responds from this time on.
  private static func car(respondingFrom time: Instant) -> SilencedCar { SilencedCar { _, address, now in address == 0x7E4 && now < time } }

  @Test func `a car that is known to be electric is recognised when its BMS responds`() throws {
    var rig = try VehicleRig(Self.car(respondingFrom: 60 * .second), disk: Self.known)
    rig.run(for: 50 * .second)
    #expect(rig.status == "polling" && rig.text("vehicle") == "standard OBD-II (7E8)", "\(rig.status) \(rig.text("vehicle") ?? "")")
    rig.run(for: 100 * .second)
    #expect(rig.text("vehicle") == Self.electric && rig.number("state-of-charge-display") != nil)
    #expect(rig.notes.contains { $0.contains("the electric car responds") })
  }

  @Test func `a car that is known to be electric is recognised over frames`() throws {
    var rig = try FramesRig(Self.car(respondingFrom: 60 * .second), disk: Self.known)
    rig.run(for: 50 * .second)
    #expect(rig.status == "polling" && rig.text("vehicle") == "standard OBD-II (7E8)", "\(rig.status) \(rig.text("vehicle") ?? "")")
    rig.run(for: 100 * .second)
    #expect(rig.text("vehicle") == Self.electric && rig.number("state-of-charge-display") != nil)
  }

  @Test func `one lost response after a reconnection does not make it a standard vehicle for long`() throws {
    var rig = try FramesRig(Self.car(respondingFrom: 0))
    rig.run(for: 20 * .second)
    #expect(rig.text("vehicle") == Self.electric)
    rig.disconnect()
    rig.surroundings = SLCANLink(SLCANAdapter(car: Self.car(respondingFrom: rig.now + .second), isInstant: false, faults: []))
    rig.connect()
    rig.run(for: 30 * .second)
    #expect(rig.text("vehicle") == Self.electric && rig.number("state-of-charge-display") != nil, "\(rig.statuses) \(rig.notes)")
  }

  @Test func `other cars are not asked for BMS data after detection`() throws {
    var rig = try FramesRig(PetrolCar(.can11))
    rig.run(for: 20 * .second)
    let before = rig.sent("t7E4").count
    rig.run(for: 900 * .second)
    #expect(rig.text("vehicle")?.hasPrefix("standard OBD-II") == true && rig.sent("t7E4").count == before)
  }
}
