import FoundationEssentials
import Testing

@testable import Peers
@testable import Protocols

/// Vehicle profiles: captures of cars give their values, the VIN selects the profile, and whole cars are polled.
@Suite struct VehicleProfileTests {
  /// The response of an ECU, as lines of an adapter, and the values that it gives; null: no value.
  struct Capture: Decodable {
    let request: String
    let response: [String]
    let values: [String: RecordedDialogue.Expected]
  }

  private struct Captures: Decodable {
    let source: String
    let captures: [Capture]
  }

  private static func captures(_ name: String) throws -> Captures {
    let folder = #filePath.dropLast("ProtocolsTests/OBD/VehicleProfileTests.swift".count) + "Recordings/profiles/"
    return try JSONDecoder().decode(Captures.self, from: Data(contentsOf: URL(filePath: folder + name + ".json")))
  }

  @Test(arguments: VehicleProfile.all.map(\.name)) func `captures of cars give their values`(_ name: String) throws {
    let profile = try #require(VehicleProfile(name: name))
    let captures = try Self.captures(name)
    #expect(captures.source.hasPrefix("OBDb/") && captures.captures.count > 5)
    for capture in captures.captures {
      let layout = try #require(
        profile.layouts(on: profile.bus).first { $0.request.request == SignalRequest.builtIn(capture.request).bytes }, "\(capture.request)")
      var reader = ReplyReader()
      let lines = Array(capture.response.joined(separator: "\r").utf8)
      #expect(reader.read(lines, addressByte: layout.request.target.addressBytes.receivedByte) == .messages, "\(capture.response)")
      let prefix = layout.request.responsePrefix
      guard
        case .message(let answer) = reader.answer(withPrefix: prefix, from: layout.request.target, previousResponder: nil)
      else {
        Issue.record("\(capture.response)")
        continue
      }
      let data = Array(reader.bytes(of: answer).dropFirst(prefix.count))
      for (signal, expected) in capture.values {
        let row = try #require(layout.rows.first { $0.dataRow.property.name == signal }, "\(signal)").dataRow
        let content: Reading.Content =
          switch data.withUnsafeBufferPointer({ row.read($0) }) {
          case .value(let value): .value(value)
          case .absent(let absence): .absent(absence.message)
          }
        #expect(expected.matches(content), "\(capture.request) \(signal): \(content)")
      }
    }
  }

  // MARK: Tables

  @Test func `signals have the type and unit that other cars have under the same name`() throws {
    let rows = BMSRecord.entries.map(\.dataRow) + ManufacturerRecord.all.flatMap(\.rows)
    let known = Dictionary(rows.map { ($0.property.name, $0.property) }) { first, _ in first }
    for signal in VehicleProfile.all.flatMap(\.signals) {
      let property = signal.row.property
      #expect(property.group != .general && property.help.isEmpty == false)
      guard let other = known[property.name] else { continue }
      // The BMS of an MEB car reports its temperatures with fractions.
      #expect(property.type == other.type || property.unit == "°C", "\(property.name)")
      #expect(property.unit == other.unit && property.group == other.group, "\(property.name)")
    }
  }

  @Test func `each profile has the values from which trips are computed`() {
    for profile in VehicleProfile.all {
      let names = Set(profile.signals.map(\.name))
      #expect(names.isSuperset(of: ["battery-current", "battery-voltage", "state-of-charge"]), "\(profile.name)")
      #expect(profile.hasStandardPIDs || names.contains("speed"), "\(profile.name)")
    }
  }

  @Test(arguments: [
    ("SJNFAAZE0U6012345", "nissan-leaf"), ("1N4AZ1CP7KC308251", "nissan-leaf"), ("JN1AZ4EH0FM330001", nil),
    ("WVGZZZE2ZNP009103", "vw-meb"), ("WVGDMPE2XNP000456", "vw-meb"), ("WVWZZZE1ZMP000968", "vw-meb"), ("VSSZZZK1ZNP123456", "vw-meb"),
    ("VSSZZZKMZMR000001", nil), ("WVWZZZ1KZAW000042", nil), ("1G1FY6S08N4120995", "chevrolet-bolt"), ("1G1BE5SM0H7100001", nil),
    ("VF1AG000164000001", nil), ("SJNFAA", nil), ("WBY8P2C0XL7D12345", "bmw-i3"), ("WBY33AW09NFM00001", nil),
  ])
  func `the VIN selects the profile`(_ vin: String, _ name: String?) { #expect(VehicleProfile(vin: vin, on: .can)?.name == name) }

  @Test func `a Zoe is recognised only if it has 29-bit IDs`() {
    #expect(VehicleProfile(vin: "VF1AG000164000001", on: OBDProtocol(number: 7))?.name == "renault-zoe")
  }

  // MARK: Whole cars

  private static let id4 = "Volkswagen MEB (ID.3, ID.4, ID.5, ID.7, Born, Enyaq) (18DAF101)"

  @Test func `an ID.4 is recognised by its VIN through an ELM327`() throws {
    var rig = try VehicleRig(ManufacturerCar(.id4))
    rig.run(for: 60 * .second)
    #expect(rig.status == "polling" && rig.fault == nil && rig.text("vehicle") == Self.id4, "\(rig.fault ?? "")")
    #expect(rig.text("vin") == "WVGZZZE2ZMP000042" && rig.number("speed") != nil && rig.number("battery-current") != nil)
    #expect(
      rig.number("odometer") ?? 0 > 21_000 && rig.number("cell-voltage-max-cell") == 82 && rig.number("battery-temperature-min") != nil)
    let names = rig.machine.schema.properties.map(\.name)
    #expect(Set(names).count == names.count && !names.contains("hybrid-battery-remaining"))
    #expect(String(decoding: rig.disk["ecus"] ?? [], as: UTF8.self).contains("profile vw-meb\n"))
    // The requests of the profile have their own periods, and the ECU's priority byte is set for them.
    #expect((30...55).contains(rig.count("221E3D", last: 10 * .second)) && (7...11).contains(rig.count("22028C", last: 10 * .second)))
    #expect(rig.sentCommands.contains { $0.command == "ATCP17" } && rig.sentCommands.contains { $0.command == "ATSHFC007B" })
    // After a restart, the properties are declared before the VIN is known.
    let restarted = try VehicleRig(ManufacturerCar(.id4), disk: rig.disk)
    #expect(restarted.machine.schema.properties.contains { $0.name == "battery-current" })
  }

  @Test func `an ID.4 is recognised by its VIN through a CAN adapter`() throws {
    var rig = try FramesRig(ManufacturerCar(.id4))
    rig.run(for: 60 * .second)
    #expect(rig.status == "polling" && rig.fault == nil && rig.text("vehicle") == Self.id4, "\(rig.fault ?? "")")
    #expect(rig.number("speed") != nil && rig.number("battery-voltage") != nil && rig.number("state-of-charge-display") != nil)
    #expect(rig.number("cell-voltage-min-cell") == 4 && rig.text("charging") == "off")
    #expect(rig.number("bad-replies") == 0 && rig.absence("aux-battery-voltage") != nil)
  }

  @Test func `another VIN ends the profile`() throws {
    var rig = try VehicleRig(ManufacturerCar(.id4))
    rig.run(for: 20 * .second)
    var other = try VehicleRig(PetrolCar(.can29), disk: rig.disk)
    other.run(for: 60 * .second)
    #expect(other.status == "polling" && other.text("vehicle") == "standard OBD-II (18DAF110, 18DAF111)")
    #expect(!other.machine.schema.properties.contains { $0.name == "battery-current" })
    #expect(!String(decoding: other.disk["ecus"] ?? [], as: UTF8.self).contains("profile"))
  }

  @Test func `vehicle = generic selects no profile`() throws {
    var rig = try VehicleRig(ManufacturerCar(.id4), vehicle: .generic)
    rig.run(for: 20 * .second)
    #expect(rig.text("vehicle") == "standard OBD-II (18DAF101)" && rig.number("hybrid-battery-remaining") != nil)
  }

  @Test func `a configured profile adds to the standard PIDs`() throws {
    let profile = try #require(VehicleProfile(name: "vw-meb"))
    var rig = try VehicleRig(ManufacturerCar(.id4), vehicle: .profile(profile))
    rig.run(for: 20 * .second)
    #expect(rig.text("vehicle") == Self.id4 && rig.number("speed") != nil && rig.number("battery-current") != nil)
  }

  private static let leafNames = [
    "speed", "rpm", "battery-current", "battery-power", "state-of-charge", "odometer", "tyre-pressure-rear-left", "aux-battery-voltage",
    "state-of-health", "battery-temperature-max",
  ]

  @Test func `a Leaf, which has no standard PIDs, is polled through an ELM327 if it is configured`() throws {
    let leaf = VehicleChoice.profile(try #require(VehicleProfile(name: "nissan-leaf")))
    var rig = try VehicleRig(ManufacturerCar(.leaf), vehicle: leaf)
    #expect(rig.machine.schema.properties.contains { $0.name == "battery-power" })
    rig.run(for: 60 * .second)
    #expect(rig.status == "polling" && rig.fault == nil && rig.text("vehicle") == "Nissan Leaf" && rig.text("request") == "2101")
    #expect(rig.text("protocol") == "ISO 15765-4 (CAN 11 bit, 500 kbit/s)" && rig.text("ignition") == "on")
    for name in Self.leafNames { #expect(rig.number(name) != nil, "\(name): \(rig.absence(name) ?? "")") }
    #expect((40...52).contains(rig.count("2101", last: 10 * .second)), "\(rig.count("2101", last: 10 * .second))")
    #expect(!rig.sentCommands.contains { $0.command.hasPrefix("01") || $0.command.hasPrefix("09") })
  }

  @Test func `a Leaf is polled through a CAN adapter, and paused while it does not respond`() throws {
    let leaf = VehicleChoice.profile(try #require(VehicleProfile(name: "nissan-leaf")))
    let ignition = Ignition([Ignition.Turn(.off, at: 60 * .second)])
    var rig = try FramesRig(ManufacturerCar(.leaf, ignition), vehicle: leaf)
    rig.run(for: 50 * .second)
    #expect(rig.status == "polling" && rig.fault == nil && rig.text("gear") != nil, "\(rig.fault ?? "")")
    for name in Self.leafNames { #expect(rig.number(name) != nil, "\(name): \(rig.absence(name) ?? "")") }
    rig.run(for: 300 * .second)
    #expect(rig.status != "polling" && rig.number("speed") == nil && rig.number("odometer") != nil, "\(rig.status)")
  }
}
