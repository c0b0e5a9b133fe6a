// Vehicles that are not in use, and those whose battery is low.

import Testing
import Varlink

@Suite("Vehicles that are not in use") struct DeviceUseTests {
  @Test(arguments: ["car-asleep", "parked", "adapter-asleep"])
  func `a fault of a vehicle at rest is no problem, unless its battery is low`(_ state: String) {
    #expect(Contract.Device.isAtRest(state: state))
    for fault in [nil, "no response from the vehicle", "the vehicle has not been used for 600 s: it is polled every 30 s"] {
      #expect(Contract.Device.isNotInUse(state: state, fault: fault))
    }
    #expect(!Contract.Device.isNotInUse(state: state, fault: "the 12 V battery is low (min-voltage = 11.8): polling is suspended"))
  }

  @Test(arguments: ["polling", "car-silent", "no-car", "degraded", "waiting", ""])
  func `a vehicle in any other state is in use`(_ state: String) {
    #expect(!Contract.Device.isAtRest(state: state) && !Contract.Device.isNotInUse(state: state, fault: nil))
  }
}
