import Foundation
import MachineTesting
import Testing

@testable import Peers
@testable import Protocols

/// Profiles of vehicles on a CAN bus: their tables, captures, and the same definitions decoded by cantools.
@Suite struct CANProfileTests {
  private typealias Rig = MachineTesting.Host<CANBusMachine, PeerLink<BusListener>>

  private static let tests = String(#filePath.dropLast("ProtocolsTests/CANBus/CANProfileTests.swift".count))
  private static let python = ProcessInfo.processInfo.environment["VEHICLED_PYTHON"]

  /// The values of a frame; null: no value.
  private struct Captures: Decodable {
    struct Capture: Decodable {
      let frame: String
      let values: [String: RecordedDialogue.Expected]
    }

    let source: String
    let captures: [Capture]
  }

  /// A frame as cantools decodes it: each signal with its number and its text.
  private struct DecodedFrame: Decodable {
    struct Number: Decodable {
      let number: Double

      init(from decoder: any Decoder) throws {
        var container = try decoder.unkeyedContainer()
        number = try container.decode(Double.self)
      }
    }

    let message: UInt32
    let bytes: String
    let signals: [String: Number]
  }

  private static func signals(_ name: String) throws -> [CANSignal] {
    let profile = try #require(CANProfile(name: name))
    let signals = profile.signals(with: [])
    try #require(signals.count == profile.sections.count, "invalid sections")
    return signals
  }

  /// The contents of the signals that a frame contains.
  private static func contents(_ frame: String, _ signals: [CANSignal]) throws -> [String: Reading.Content] {
    let frame = try #require(CANFrame(candump: Array(frame.utf8)), "\(frame)")
    let contained = signals.filter { signal in
      signal.identifier == frame.identifier && frame.count >= signal.reader.minCount
        && signal.conditions.allSatisfy { $0.isMet(by: frame.packed, count: frame.count) }
    }
    return Dictionary(uniqueKeysWithValues: contained.map { ($0.property.name, $0.reader.content($0.reader.bits(in: frame.packed))) })
  }

  // MARK: Tables

  @Test(arguments: CANProfile.all.map(\.name)) func `the sections of a profile are valid`(_ name: String) throws {
    let profile = try #require(CANProfile(name: name))
    for section in profile.sections {
      var problems: [OptionError] = []
      #expect(CANSignal(section, &problems) != nil, "\(section.name): \(problems)")
    }
    #expect(SLCAN.bitRates.contains(profile.bitRate) && Set(profile.sections.map(\.name)).count == profile.sections.count)
  }

  @Test(arguments: CANProfile.all.map(\.name))
  func `signals have the type, unit and group that other cars have under the same name`(_ name: String) throws {
    let rows = BMSRecord.entries.map(\.dataRow) + ManufacturerRecord.all.flatMap(\.rows)
    let others = rows.map(\.property) + VehicleProfile.all.flatMap(\.signals).map(\.row.property)
    let known = Dictionary(others.map { ($0.name, $0) }) { first, _ in first }
    let signals = try Self.signals(name)
    #expect(signals.count { known[$0.property.name] != nil } >= 20)
    for property in signals.map(\.property) {
      guard let other = known[property.name] else { continue }
      // Temperatures and the speed have fractions.
      #expect(property.type == other.type || (property.type == .float && other.type == .int), "\(property.name)")
      #expect(property.unit == other.unit && property.group == other.group, "\(property.name)")
    }
    let names = Set(signals.map(\.property.name))
    #expect(names.isSuperset(of: ["speed", "gear", "odometer", "battery-current", "battery-voltage", "state-of-charge", "charging"]))
  }

  // MARK: Values

  @Test(arguments: CANProfile.all.map(\.name)) func `captures of cars give their values`(_ name: String) throws {
    let url = URL(filePath: "\(Self.tests)Recordings/profiles/\(name).json")
    let captures = try JSONDecoder().decode(Captures.self, from: Data(contentsOf: url))
    let signals = try Self.signals(name)
    for capture in captures.captures {
      let contents = try Self.contents(capture.frame, signals)
      #expect(capture.values.isEmpty == contents.isEmpty, "\(capture.frame): \(contents)")
      for (signal, expected) in capture.values {
        let content = try #require(contents[signal], "\(capture.frame) \(signal)")
        #expect(expected.matches(content), "\(capture.frame) \(signal): \(content)")
      }
    }
  }

  /// What a number of the definitions means for the properties that are not this number; nil: no value.
  private static func expected(_ property: CANSignal, _ numbers: [String: DecodedFrame.Number]) -> Reading.Content? {
    func number(_ name: String) -> Double? { numbers[name]?.number }
    func rounded(_ value: Double, _ decimals: Double) -> Reading.Content { .value(.float((value * decimals).rounded() / decimals)) }
    func flag(_ name: String, _ on: Set<Double>, of all: ClosedRange<Double>) -> Reading.Content? {
      number(name).flatMap { all.contains($0) ? .value(.bool(on.contains($0))) : nil }
    }
    switch property.property.name {
    case "battery-power":
      guard let volts = number("battery_voltage"), let amperes = number("battery_current") else { return nil }
      return rounded(volts * amperes / 1000, 100)
    case "range": return number("range").map { rounded($0 * 1.609344, 1) }
    case "gear": return number("gear").flatMap { [1: "park", 2: "reverse", 3: "neutral", 4: "drive"][$0] }.map { .value(.string($0)) }
    case "charging-status":
      let texts = ["disconnected", "no-power", "starting", "charging", "complete", "stopped"]
      return number("charging_status").flatMap { $0 < 6 ? .value(.string(texts[Int($0)])) : nil }
    case "brake-pedal": return flag("brake_pedal", [1], of: 0...1)
    case "charging": return flag("charging_status", [3], of: 0...5)
    case "main-relay": return flag("main_relay", [4, 5], of: 1...6)
    case "ac-plug": return flag("plug", [2], of: 0...2)
    case "dc-plug": return flag("plug", [1], of: 0...2)
    default: return number(property.property.name.replacingOccurrences(of: "-", with: "_")).map { .value(.float($0)) }
    }
  }

  @Test(.enabled(if: python != nil, "set VEHICLED_PYTHON to a python with the package cantools"))
  func `random frames of a Tesla give the same values as with cantools`() throws {
    let program = Process()
    program.executableURL = URL(fileURLWithPath: try #require(Self.python))
    program.arguments = ["\(Self.tests)Peers/dbc.py", "\(Self.tests)Recordings/profiles/tesla-model-3.dbc"]
    let output = Pipe()
    program.standardOutput = output
    try program.run()
    let lines = output.fileHandleForReading.readDataToEndOfFile().split(separator: UInt8(ascii: "\n"))
    program.waitUntilExit()
    let signals = try Self.signals("tesla-model-3")
    var compared: Set<String> = []
    for line in lines {
      let frame = try JSONDecoder().decode(DecodedFrame.self, from: Data(line))
      let text = "\(CANIdentifier(number: frame.message, is29Bit: false).text)#\(frame.bytes)"
      let contents = try Self.contents(text, signals)
      for signal in signals where signal.identifier.number == frame.message {
        let name = signal.property.name
        let expected = Self.expected(signal, frame.signals)
        switch (contents[name], expected) {
        case (.value(let value)?, .value(let other)?):
          compared.insert(name)
          guard let number = value.number, let second = other.number else {
            #expect(value == other, "\(text) \(name)")
            continue
          }
          // Rounded values differ by at most half of the last decimal.
          let tenths: Set = [
            "odometer", "charger-voltage", "battery-coolant-temperature", "powertrain-coolant-temperature", "aux-battery-temperature",
          ]
          let tolerance = tenths.contains(name) ? 0.05 : name.hasSuffix("-voltage") ? 0.005 : 0
          #expect(abs(number - second) <= tolerance + 1e-9 * max(abs(number), 1), "\(text) \(name): \(number), not \(second)")
        case (.absent(let reason)?, .value(let other)?):
          let number = try #require(other.number)
          let isOutside = reason == CANValueReader.outOfRange && signal.property.range?.contains(number) == false
          #expect(isOutside || ["not available", "not charging"].contains(reason), "\(text) \(name): \(reason), not \(number)")
        case (.absent(let reason)?, nil): #expect(reason.hasPrefix("no label for"), "\(text) \(name): \(reason)")
        case (nil, nil): break
        default: Issue.record("\(text) \(name): \(String(describing: contents[name])), not \(String(describing: expected))")
        }
      }
    }
    #expect(compared == Set(signals.map(\.property.name)))
  }

  // MARK: A whole car

  private static func setup(_ sections: [Setup.Subsection] = [], link: String = "slcan:tcp:x") -> Setup {
    Setup(options: ["vehicle": .string("tesla-model-3")], sections: ["can-signal": sections], links: [.main: link])
  }

  @Test func `a simulated Tesla drives and charges, and every signal has a value`() throws {
    let machine = try #require(try Kind.can.make(Self.setup()) as? CANBusMachine)
    var rig = Rig(machine, PeerLink(BusListener(BusCar.teslaModel3.traffic)))
    rig.start()
    rig.connect()
    rig.run(for: 5 * .second)
    #expect(rig.status == "listening" && rig.fault == nil && rig.text("gear") == "park" && rig.number("speed") == 0)
    let start = try #require(rig.number("odometer"))
    rig.run(for: 40 * .second)
    #expect(rig.number("speed") == 110.0 && rig.text("gear") == "drive" && (10...40).contains(rig.number("battery-power") ?? 0))
    #expect(rig.number("bus-load") != nil, "the bit rate is that of the profile")
    for section in try #require(CANProfile(name: "tesla-model-3")).sections where section.name != "charging-time" {
      #expect(rig.absence(section.name) == nil, "\(section.name): \(rig.absence(section.name) ?? "")")
    }
    rig.run(for: 45 * .second)
    #expect((rig.number("battery-power") ?? 0) < -10 && rig.text("charging") == "off", "it brakes regeneratively")
    rig.run(for: 40 * .second)
    #expect(rig.text("charging") == "on" && rig.text("charging-status") == "charging" && rig.text("ac-plug") == "on")
    #expect(rig.text("dc-plug") == "off" && rig.number("charging-time") != nil && (rig.number("battery-current") ?? 0) < -25)
    rig.run(for: 60 * .second)
    #expect((rig.number("odometer") ?? 0) - start > 2, "the odometer grows from turn to turn")
  }

  @Test func `a configured signal replaces that of the profile`() throws {
    let own = CANSignalTests.signal("speed", id: "257", bits: "24|8@1+", ["unit": .string("km/h")])
    let machine = try #require(try Kind.can.make(Self.setup([own, CANSignalTests.signal("other", bits: "0|8@1+")])) as? CANBusMachine)
    let properties = machine.schema.properties
    #expect(properties.count { $0.name == "speed" } == 1 && properties.contains { $0.name == "other" })
    #expect(properties.first { $0.name == "speed" }?.help == "Signal in message 257" && properties.contains { $0.name == "gear" })
    let without = try #require(try Kind.can.make(Setup(links: [.main: "slcan:tcp:x"])) as? CANBusMachine)
    #expect(!without.schema.properties.contains { $0.name == "gear" })
  }
}
