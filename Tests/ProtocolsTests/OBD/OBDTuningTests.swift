// Adaptation to the adapter: timeouts are tuned, requests to STN chips carry the header, and response pending extends the timeout.

import Testing

@testable import Peers
@testable import Protocols

@Suite struct OBDTuningTests {
  @Test func `tuning finds the fastest safe setting, reports it, and stores it for this adapter`() throws {
    var rig = try VehicleRig(ElectricCar(.eGMP))
    rig.run(for: 10 * .second)
    let report = try rig.report("tune", for: 60 * .second)
    #expect(report.columns == ["setting", "median ms", "max ms", "answered", ""] && report.rows.count == 6)
    #expect(report.rows.first?[0] == "AT1 ST32" && report.rows.first?.last == "before")
    let now = try #require(report.rows.first { $0.last == "now" })
    #expect(Double(now[1]) ?? 99 < (Double(report.rows[0][1]) ?? 0) * 0.8 && now[3] == "24 of 24")
    #expect(report.text?.hasPrefix("median round trip without a frame count: ") == true)
    #expect(rig.progress[1]?.first?.text == "trying AT1 ST32" && rig.status == "polling" && rig.fault == nil)
    rig.run(for: 10 * .second)
    #expect(rig.count("220101", last: 5 * .second) >= 99 && rig.number("bad-replies") == 0)
    let stored = try #require(rig.disk["timing"])
    #expect(String(decoding: stored, as: UTF8.self).hasSuffix("ELM327 v1.5"))
    var again = try VehicleRig(ElectricCar(.eGMP), disk: rig.disk)
    again.run(for: 10 * .second)
    #expect(again.sentCommands.contains { $0.command.hasPrefix("ATAT") || $0.command.hasPrefix("ATST") } && again.status == "polling")
    var other = try VehicleRig(ElectricCar(.eGMP), chip: .stn, disk: rig.disk)
    other.run(for: 10 * .second)
    #expect(!other.sentCommands.contains { $0.command == "ATAT2" || $0.command.hasPrefix("ATST") })
  }

  @Test func `a setting that loses responses is rejected`() throws {
    // The ECU takes 60 ms: with ST0C and ST06 the adapter has timed out by then.
    var rig = try VehicleRig(ElectricCar(.eGMP), latency: 60 * .millisecond)
    rig.run(for: 20 * .second)
    let report = try rig.report("tune", for: 60 * .second)
    let tooFast = report.rows.filter { $0[0] == "AT0 ST06" || $0[0] == "AT0 ST0C" }
    // With ST06 the response comes during the next request: it looks fast, but the first one was lost.
    #expect(tooFast.count == 2 && tooFast.allSatisfy { $0[3] != "24 of 24" && $0.last == "" }, "\(report.rows)")
    #expect(report.rows.contains { $0.last == "now" || $0.last == "before, now" } && rig.status == "polling")
    rig.run(for: 5 * .second)
    #expect(rig.fault == nil && rig.number("rpm") != nil)
  }

  @Test func `tuning needs a vehicle that responds, and ends with it`() throws {
    var asleep = try VehicleRig(ElectricCar(.eGMP, Ignition([Ignition.Turn(.off, at: 0)])))
    asleep.run(for: 20 * .second)
    let refused = asleep.act("tune")
    guard case .failure(.refused(code: .notPolling, _))? = refused else { Issue.record("\(String(describing: refused))"); return }
    var rig = try VehicleRig(ElectricCar(.eGMP, Ignition([Ignition.Turn(.off, at: 12 * .second)])))
    rig.run(for: 10 * .second)
    let ended = rig.act("tune", for: 30 * .second)
    guard case .failure(.refused(code: .noAnswer, _))? = ended else { Issue.record("\(String(describing: ended))"); return }
    #expect(rig.machine.router.vehicle.polling.timeout.timing == .initial && rig.disk["timing"] == nil)
  }

  @Test func `a stored setting that is too fast for this vehicle is not used`() throws {
    let stored = Array("0 6 ELM327 v1.5".utf8)
    var rig = try VehicleRig(ElectricCar(.eGMP), latency: 60 * .millisecond, disk: ["timing": stored])
    rig.run(for: 60 * .second)
    #expect(rig.status == "polling" && rig.number("rpm") != nil)
    for damaged in ["", "0 6", "9 50 ELM327 v1.5", "0 0 ELM327 v1.5", "0 999 ELM327 v1.5", "x y ELM327 v1.5"] {
      var rig = try VehicleRig(ElectricCar(.eGMP), disk: ["timing": Array(damaged.utf8)])
      rig.run(for: 5 * .second)
      #expect(rig.status == "polling" && rig.machine.router.vehicle.polling.timeout.timing == .initial)
    }
  }

  @Test func `a request to an STN chip carries the header if that saves retargeting`() throws {
    var plain = try VehicleRig(ElectricCar(.eGMP))
    plain.run(for: 60 * .second)
    var rig = try VehicleRig(ElectricCar(.eGMP), chip: .stn)
    rig.run(for: 60 * .second)
    #expect(rig.sentCommands.contains { $0.command.hasPrefix("STPX H:7E2,D:22E004,R:1") })
    #expect(rig.fault == nil && rig.number("bad-replies") == 0 && rig.number("pedal-position") != nil)
    let retargets = { (rig: VehicleRig) in rig.sentCommands.count { $0.at > 30 * .second && $0.command.hasPrefix("ATSH") } }
    #expect(retargets(rig) < retargets(plain) / 2, "\(retargets(rig)) of \(retargets(plain))")
    for name in plain.values.keys where plain.number(name) != nil { #expect(rig.number(name) != nil, "\(name)") }
    // An adapter that does not reply to it, like a well-known simulator.
    var mute = try VehicleRig(ElectricCar(.eGMP), chip: .stn, mute: ["STPX"])
    mute.run(for: 60 * .second)
    #expect(mute.sentCommands.count { $0.command.hasPrefix("STPX") } == 1 && mute.number("pedal-position") != nil && mute.faults.isEmpty)
    #expect(mute.status == "polling" && mute.number("timeouts") == 1)
    var again = try VehicleRig(ElectricCar(.eGMP), chip: .stn, mute: ["STPX"], disk: mute.disk)
    again.run(for: 60 * .second)
    #expect(!again.sentCommands.contains { $0.command.hasPrefix("STPX") } && again.number("pedal-position") != nil)
    // An adapter that identifies as an STN chip without being one.
    var clone = try VehicleRig(ElectricCar(.eGMP), chip: .stn, unknown: ["STPX"])
    clone.run(for: 60 * .second)
    #expect(clone.sentCommands.count { $0.command.hasPrefix("STPX") } == 1 && clone.number("pedal-position") != nil && clone.fault == nil)
  }

  @Test func `response pending extends the timeout`() throws {
    var rig = try VehicleRig(ElectricCar(.eGMP), faults: ["nrc-78:1:700"])
    rig.run(for: 60 * .second)
    #expect(rig.number("rpm") != nil && rig.sentCommands.contains { $0.command == "ATSTFF" })
    let report = try rig.report("query", ["request": .string("220105")])
    #expect(report.rows.last?[1].hasPrefix("62 01 05") == true)
  }
}
