// Configured overrides of properties: PIDs of one request, data records, properties that are not polled, and priorities.

import Testing

@testable import Peers
@testable import Protocols

@Suite struct PropertyOverrideTests {
  @Test func `a PID is polled with its configured period`() throws {
    let overrides = [
      PropertyOverride("coolant-temperature", period: .second / 2), PropertyOverride("engine-load", period: 10 * .second),
      PropertyOverride("fuel-level", isPolled: false), PropertyOverride("speed", period: .second),
    ]
    var rig = try VehicleRig(PetrolCar(.can11), overrides: overrides)
    rig.run(for: 50 * .second)
    let before = rig.published
    rig.run(for: 10 * .second)
    let updates = rig.published.merging(before) { $0 - $1 }
    #expect(rig.text("request") == "010C" && updates["rpm"].map { $0 >= 199 } == true)
    #expect(updates["coolant-temperature"].map { (18...22).contains($0) } == true)
    #expect(updates["engine-load"].map { (1...2).contains($0) } == true)
    #expect(updates["speed"].map { (9...11).contains($0) } == true)
    #expect(!rig.machine.schema.properties.contains { $0.name == "fuel-level" })
    let coolant = rig.machine.schema.properties.first { $0.name == "coolant-temperature" }
    #expect(coolant?.lifetime == .fresh(2 * .second))
    let load = rig.machine.schema.properties.first { $0.name == "engine-load" }
    #expect(load?.lifetime == .fresh(30 * .second))
  }

  @Test func `nothing is polled at the device's rate if all periods are longer`() throws {
    let overrides = [
      PropertyOverride("rpm", period: 2 * .second), PropertyOverride("speed", period: .second),
      PropertyOverride("engine-load", period: 4 * .second),
    ]
    var rig = try VehicleRig(PetrolCar(.can11), overrides: overrides)
    rig.run(for: 50 * .second)
    let before = rig.published
    rig.run(for: 10 * .second)
    let updates = rig.published.merging(before) { $0 - $1 }
    #expect(rig.status == "polling" && rig.fault == nil && rig.number("rpm") != nil && rig.number("speed") != nil)
    #expect(updates["rpm"].map { (4...6).contains($0) } == true, "\(updates)")
    #expect(updates["speed"].map { (9...11).contains($0) } == true, "\(updates)")
    let maxCount =
      rig.sentCommands.filter { $0.at > rig.now - 10 * .second }.reduce(into: [:]) { $0[$1.command, default: 0] += 1 }.values.max() ?? 0
    #expect(maxCount <= 21, "the most frequent other PIDs are polled twice a second")
    #expect(rig.number("poll-rate").map { $0 < 2.5 } == true)
    // Another car is polled at the device's rate until its own overrides apply.
    let off = [PropertyOverride("rpm", isPolled: false), PropertyOverride("speed", isPolled: false)]
    var without = try VehicleRig(PetrolCar(.can11), overrides: off)
    without.run(for: 60 * .second)
    #expect(without.status == "polling" && !without.machine.schema.properties.contains { $0.name == "rpm" })
    #expect(without.number("poll-rate").map { $0 < 2.5 } == true && without.number("coolant-temperature") != nil)
  }

  @Test func `a data record is polled with the shortest period of its properties`() throws {
    var reference = try VehicleRig(ElectricCar(.eGMP))
    reference.run(for: 30 * .second)
    let overrides = [PropertyOverride("state-of-health", period: .second), PropertyOverride("odometer", isPolled: false)]
    var rig = try VehicleRig(ElectricCar(.eGMP), overrides: overrides)
    rig.run(for: 30 * .second)
    #expect(rig.count("220105", last: 10 * .second) >= 9 && reference.count("220105", last: 10 * .second) < 9)
    #expect(
      !rig.sentCommands.contains { $0.command.hasPrefix("22B002") } && reference.sentCommands.contains { $0.command.hasPrefix("22B002") })
    #expect(rig.number("remaining-energy") != nil && (rig.number("lateness-p99") ?? 99) < 5)
  }

  @Test func `properties with priority come first when there is not enough time for all`() throws {
    let high = ["oil-temperature", "barometric-pressure"].map { PropertyOverride($0, period: .second, priority: .high) }
    var rig = try VehicleRig(PetrolCar(.kwp), overrides: high + [PropertyOverride("ambient-temperature", period: .second, priority: .low)])
    rig.run(for: 240 * .second)
    let counts = ["015C", "0133", "0146"].map { rig.count($0, last: 60 * .second) }
    #expect(counts[0] > 20 && counts[1] > 20 && counts[2] < counts[0] / 2, "\(counts)")
  }

  @Test func `every polled property can be configured`() throws {
    var rig = try VehicleRig(PetrolCar(.can11))
    rig.run(for: 20 * .second)
    let rows = rig.machine.router.vehicle.polling.scheduler.queue.requests.flatMap(\.rows)
    let names = rows.map { rig.machine.schema.properties[$0.position].name }
    #expect(names.contains("calibration-ids-2"))
    var setup = Setup(options: [:])
    setup.sections["property"] = names.map { Setup.Subsection($0, ["period": .float(60)]) }
    #expect(throws: Never.self) { _ = try Kind.obd.make(setup) }
  }

  @Test(arguments: VehicleProfile.all) func `every property of a profile can be configured`(_ profile: VehicleProfile) throws {
    for vehicle in ["auto", profile.name] {
      var setup = Setup(options: ["vehicle": .string(vehicle)])
      setup.sections["property"] = profile.signals.map { Setup.Subsection($0.name, ["period": .float(60)]) }
      #expect(throws: Never.self) { _ = try Kind.obd.make(setup) }
    }
  }

  @Test func `a configured period applies to a property of a profile that has the name of BMS data`() throws {
    let overrides = [PropertyOverride("battery-voltage", period: 10 * .second), PropertyOverride("state-of-charge", isPolled: false)]
    var rig = try VehicleRig(ManufacturerCar(.id4), overrides: overrides)
    rig.run(for: 60 * .second)
    #expect(rig.status == "polling" && rig.number("battery-voltage") != nil && rig.number("state-of-charge-display") != nil)
    #expect(!rig.machine.schema.properties.contains { $0.name == "state-of-charge" })
    #expect((1...3).contains(rig.count("221E3B", last: 20 * .second)), "\(rig.count("221E3B", last: 20 * .second))")
  }

  @Test(arguments: ["e-gmp", "hkmc-ev", "generic"]) func `without a profile, BMS data has no period of its own`(_ vehicle: String) {
    var setup = Setup(options: ["vehicle": .string(vehicle)])
    setup.sections["property"] = [Setup.Subsection("state-of-charge", [:])]
    let message = "state-of-charge is part of the BMS data, which is polled at the device's rate; set rate"
    #expect(throws: OptionError(nil, message)) { _ = try Kind.obd.make(setup) }
  }

  @Test(arguments: [
    ("rpm-2", "rpm-2 is part of the BMS data, which is polled at the device's rate; set rate"),
    ("poll-rate", "poll-rate is not polled from the vehicle; remove the section"),
    ("warp", "no vehicle has a property warp; vehiclectl describe lists them"),
    ("converter-voltage", "converter-voltage has been renamed; write property.dc-dc-voltage"),
  ])
  func `an unknown name is an error`(_ name: String, _ message: String) {
    var setup = Setup(options: [:])
    setup.sections["property"] = [Setup.Subsection(name, [:])]
    #expect(throws: OptionError(nil, message)) { _ = try Kind.obd.make(setup) }
  }
}
