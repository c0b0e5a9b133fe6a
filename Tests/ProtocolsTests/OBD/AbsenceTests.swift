// Reasons for absence: an ECU that does not respond is not a fault of the vehicle, and the values of a paused vehicle are absent with the
// reason for the pause.

import Testing

@testable import Peers
@testable import Protocols

@Suite struct AbsenceTests {
  @Test func `a property whose ECU does not respond is absent with the reason while others are live`() throws {
    var rig = try VehicleRig(SilencedCar { request, address, _ in address == 0x7E5 || request == [0x09, 0x02] })
    rig.run(for: 70 * .second)
    #expect(rig.status == "polling" && rig.number("rpm") != nil)
    #expect(rig.absence("dc-dc-voltage") == "7E5 does not respond to 22E011" && rig.absence("vin") == "no ECU responds to 0902")
  }

  @Test func `a parked car's values give the reason of the pause, probe after probe`() throws {
    var rig = try VehicleRig(
      PetrolCar(.can11, PauseConditionsTests.turned((.on, 60))), pauseConditions: PauseConditions(minVoltage: 0, idleAfter: 120 * .second))
    rig.run(for: 600 * .second)
    #expect(rig.status == "parked")
    let message = "the vehicle has not been used for 120 s: it is polled every 30 s"
    for name in ["rpm", "speed", "coolant-temperature", "poll-rate"] { #expect(rig.absence(name) == message, "\(name)") }
    rig.run(for: 100 * .second)
    #expect(rig.status == "parked" && rig.absence("rpm") == message && rig.text("fuel-type") == "petrol")
    // What keeps its meaning stays.
    #expect(rig.number("fuel-level") != nil && rig.absence("fuel-level") == nil)
  }
}
