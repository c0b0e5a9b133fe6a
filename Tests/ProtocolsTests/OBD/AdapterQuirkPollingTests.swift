// Every fault and clone quirk of the simulated adapter against the machine, with cars whose values never change: no wrong value is ever
// published, and polling continues where possible.

import Testing

@testable import Peers
@testable import Protocols

@Suite struct AdapterQuirkPollingTests {
  private static func bytes(_ hex: String) -> [UInt8] {
    let digits = hex.utf8.filter { $0 != space }
    return stride(from: 0, to: digits.count - 1, by: 2).map { hexValue(digits[$0]) << 4 | hexValue(digits[$0 + 1]) }
  }

  /// A Kona while driving: obd-pids V1.
  static let kona = ScriptedCar(responses: [
    [0x22, 0x01, 0x01]: [
      Reply(
        id: 0x7EC,
        payload: bytes(
          "620101FFF7E7 FF820000000003 00780EA8151515 151515000015BF 0BBF4100008A00 01A09F00019C65 000097E6000093 6B011C17660D01 76033803380BB8"
        ))
    ]
  ])
  static let petrol = VehiclePollingTests.car([
    "0100": [(0x7E8, "410008180001"), (0x7E9, "410000180000")], "0120": [(0x7E8, "412000000000")],
    "010C0D": [(0x7E8, "410C0D740D32"), (0x7E9, "410C0D740D32")], "010C": [(0x7E8, "410C0D74")], "010D": [(0x7E8, "410D32")],
    "0105": [(0x7E8, "410564")], "03": [(0x7E8, "43010133"), (0x7E9, "4300")], "07": [(0x7E8, "4700")], "0A": [(0x7E8, "4A00")],
  ])

  @Test func `frames without line ends are read if nothing else is missing`() {
    let lines = Vector.ev6.split(whereSeparator: isLineEnd).filter { $0.count > 4 }
    let glued = Array(lines.joined()) + [carriageReturn]
    var reader = ReplyReader()
    let outcome = reader.read(glued)
    #expect(outcome == .messages && reader.messages.count == 1 && reader.messages[0].length == 62)
    let whole = reader.payload
    for place in glued.indices.dropLast() {
      var damaged = glued
      damaged.remove(at: place)
      let dropped = reader.read(damaged)
      #expect(dropped != .messages, "without digit \(place)")
      damaged.insert(contentsOf: [glued[place], glued[place]], at: place)
      let doubled = reader.read(damaged)
      #expect(doubled != .messages, "with digit \(place) twice")
    }
    // A frame that is missing or repeated.
    var outcomes: [ReplyReader.Outcome] = []
    for frame in lines.indices {
      var others = lines
      others.remove(at: frame)
      outcomes.append(reader.read(Array(others.joined())))
      others.insert(contentsOf: [lines[frame], lines[frame]], at: frame)
      outcomes.append(reader.read(Array(others.joined())))
    }
    #expect(!outcomes.contains(.messages))
    let again = reader.read(glued)
    #expect(again == .messages && reader.payload == whole)
  }

  static let faults = AdapterFaultKind.allCases.map {
    $0 == .negativeResponse ? "nrc:22" : $0.takesCode ? "\($0.rawValue):0C" : $0.rawValue
  }
  /// Faults that can only be reported.
  static let hopeless: Set = ["hang", "babble", "disconnect"]

  @Test(arguments: faults) func `no fault of an adapter causes a wrong value`(_ fault: String) throws {
    for chip in ELM327Adapter.Personality.allCases {
      var electric = try VehicleRig(Self.kona, chip: chip, faults: [fault], pauseConditions: PauseConditions(idleAfter: 0))
      electric.run(for: 60 * .second)
      #expect(
        electric.seen["rpm"] ?? [] == ["824"] && electric.seen["battery-voltage"] ?? [] == ["375.2"], "\(chip) \(electric.fault ?? "")")
      #expect(electric.seen["state-of-charge"] ?? [] == ["65"])
      var standard = try VehicleRig(Self.petrol, chip: chip, faults: [fault], pauseConditions: PauseConditions(idleAfter: 0))
      standard.run(for: 60 * .second)
      #expect(standard.seen["rpm"] ?? ["861"] == ["861"] && standard.seen["speed"] ?? ["50"] == ["50"], "\(chip) \(standard.fault ?? "")")
      #expect(standard.seen["coolant-temperature"] ?? ["60"] == ["60"])
      if Self.hopeless.contains(fault) { continue }
      #expect(electric.status == "polling" || electric.fault != nil)
      let reason = fault.hasSuffix("pid:0C") ? standard.absence("rpm") : standard.fault
      #expect(standard.number("rpm") == 861 || reason != nil, "\(chip) \(standard.status) \(standard.fault ?? "")")
    }
  }

  @Test(arguments: ["ATDPN", "ATCRA", "ATAT", "ATST", "ATRV", "ATM0", "ATS0", "ATI", "STI"])
  func `an adapter that hangs on a command is used without it`(_ command: String) throws {
    // One car needs protocol detection; the other has two ECUs that must be distinguished.
    for bus in [DiagnosticBus.kwp, .can11] {
      var rig = try VehicleRig(PetrolCar(bus), mute: [command])
      rig.run(for: 240 * .second)
      #expect(rig.status == "polling" && rig.fault == nil && rig.number("rpm") != nil, "\(bus) \(rig.status) \(rig.fault ?? "")")
      #expect(rig.sentCommands.count { $0.command.hasPrefix(command) } <= 2)
      let codes = rig.act("dtc", for: 20 * .second)
      #expect((try codes?.get().rows.count) ?? 0 > 1, "\(bus) \(String(describing: codes))")
    }
    var electric = try VehicleRig(ElectricCar(.eGMP), mute: [command])
    electric.run(for: 120 * .second)
    #expect(
      electric.status == "polling" && electric.fault == nil && electric.number("rpm") != nil && electric.number("pedal-position") != nil)
    #expect(electric.sentCommands.count { $0.command.hasPrefix(command) } <= 2)
  }

  @Test(arguments: [["ATM0", "STI"], ["ATS0", "ATI", "STI"], ["ATM0", "ATS0", "ATL0", "ATST", "ATRV"]])
  func `an adapter that hangs on several commands is used without them`(_ commands: [String]) throws {
    var rig = try VehicleRig(PetrolCar(.can11), mute: Set(commands))
    rig.run(for: 300 * .second)
    #expect(rig.status == "polling" && rig.fault == nil && rig.number("rpm") != nil, "\(rig.status) \(rig.fault ?? "")")
    #expect(!commands.contains("ATRV") || rig.absence("adapter-voltage") == "the adapter does not report it")
  }

  @Test func `a command without a reply once is sent again`() {
    var unanswered = UnansweredCommands()
    let results = [unanswered.recordMissingReply(to: "ATCRA7EC\r".utf8), unanswered.isDisabled("ATCRA")]
    unanswered.recordReply(to: "ATCRA7EA\r".utf8)
    let again = [
      unanswered.recordMissingReply(to: "ATCRA7EC\r".utf8), unanswered.isDisabled("ATCRA"),
      unanswered.recordMissingReply(to: "ATCRA7EA\r".utf8), unanswered.isDisabled("ATCRA"),
    ]
    #expect(results == [false, false] && again == [false, false, true, true])
    // The request must have a header and data.
    #expect(
      !unanswered.recordMissingReply(to: "ATSH7E4\r".utf8) && !unanswered.recordMissingReply(to: "ATSH7E4\r".utf8)
        && !unanswered.recordMissingReply(to: "ATZ\r".utf8))
  }

  /// Features that clones lack or falsely claim: they cost speed at most.
  @Test(arguments: [
    "no-count", "wrong-count", "clone", "no-adaptive", "no-masks", "no-flow-control", "no-long", "no-memory", "no-repeat", "fixed-monitor",
    "ignore-headers", "ignore-spaces", "ignore-filter", "ignore-timing", "false-version", "noisy-banner", "odd-lf", "tpa0-lockup",
    "once-only", "echo", "no-lf-cr", "vendor-text", "stray", "twice", "ignore-protocol", "no-checksum", "pad-zeros", "ignore-stpx",
  ])
  func `a poor clone is polled`(_ quirk: String) throws {
    var rig = try VehicleRig(ElectricCar(.eGMP), faults: [quirk])
    rig.run(for: 60 * .second)
    #expect(rig.status == "polling" && rig.fault == nil && rig.number("rpm") != nil)
    var petrol = try VehicleRig(PetrolCar(.can11), faults: [quirk])
    petrol.run(for: 60 * .second)
    // Without headers two ECUs cannot be distinguished: no value is published.
    if ["clone", "ignore-headers"].contains(quirk) {
      #expect(
        petrol.number("rpm") == nil && petrol.fault?.contains("several ECUs respond, and this adapter does not show which") == true)
    } else {
      #expect(petrol.status == "polling" && petrol.fault == nil && petrol.number("rpm") != nil)
    }
  }
}
