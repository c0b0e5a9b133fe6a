// Reformatted replies of some adapters and middleware that are still unambiguous.

import Testing

@testable import Peers
@testable import Protocols

@Suite struct OddFormatTests {
  typealias Read = ReplyReaderTests.Read

  /// A Kona whose other ECUs send negative responses, without line ends: a public capture.
  static let konaAmongNegativeResponses =
    "7F22127F22127F22127F22127F221203E0:620101FFF7E71:FF8A00000000832:00240ED71713133:141713000010C14:22C12800008B005:00450B0000434B6:000019A80000187:1200200EE70D018:7B0000000003E8"

  @Test func `negative responses of other ECUs glued before a long message are skipped`() throws {
    var reader = ReplyReader()
    let outcome = reader.read(Array(Self.konaAmongNegativeResponses.utf8))
    #expect(outcome == .messages && reader.messages.count == 1 && reader.messages.first?.length == 62)
    #expect(reader.payload.starts(with: [0x62, 0x01, 0x01, 0xFF, 0xF7, 0xE7, 0xFF, 0x8A]))
    var complete = 0
    for start in 1..<30 {
      // A truncated negative response is rejected.
      let outcome = reader.read(Array(Self.konaAmongNegativeResponses.utf8.dropFirst(start)))
      #expect((outcome == .messages) == (start % 6 == 0), "\(start)")
      complete += outcome == .messages ? 1 : 0
    }
    #expect(complete == 4)
    for prefix in ["412212", "7E2212", "7F221", "7F22127F"] {
      let outcome = reader.read(Array((prefix + Self.konaAmongNegativeResponses.dropFirst(30)).utf8))
      #expect(outcome != .messages, "\(prefix)")
    }
  }

  @Test func `a car with negative responses without headers and line ends is polled`() throws {
    let kona = AdapterQuirkPollingTests.kona
    let answers = (0..<3).map { Reply(id: 0x7E8 + $0, payload: [0x7F, 0x22, 0x12]) } + kona.replies(to: [0x22, 0x01, 0x01], at: 0x7E4, 0)
    var rig = try VehicleRig(
      ScriptedCar(responses: [[0x22, 0x01, 0x01]: answers]), faults: ["ignore-headers", "ignore-filter", "ignore-spaces", "no-lf-cr"])
    rig.run(for: 20 * .second)
    #expect(rig.seen["rpm"] == ["824"] && rig.status == "polling", "\(rig.fault ?? "")")
  }

  @Test func `K-line lines without checksums are read once it is certain that there are none`() {
    for line in ["84 F1 10 41 0C 0D 74", "80 F1 10 04 41 0C 0D 74", "48 6B 10 41 0C 0D 74"] {
      #expect(ReplyReaderTests.reason(line) != nil)
      var reader = ReplyReader()
      reader.expectChecksums(false)
      let outcome = reader.read(Array(line.utf8))
      #expect(outcome == .messages && reader.payload == [0x41, 0x0C, 0x0D, 0x74])
      // One byte too few or too many is not a line.
      for damaged in [String(line.dropLast(3)), line + " 00"] {
        let outcome = reader.read(Array(damaged.utf8))
        #expect(outcome != .messages, "\(damaged)")
      }
    }
  }

  @Test(arguments: [DiagnosticBus.kwp, .iso9141]) func `an adapter that prints no checksums is polled`(_ bus: DiagnosticBus) throws {
    var rig = try VehicleRig(PetrolCar(bus), faults: ["no-checksum"])
    rig.run(for: 180 * .second)
    #expect(rig.status == "polling" && rig.fault == nil && rig.number("rpm") != nil && rig.number("speed") != nil, "\(rig.fault ?? "")")
    let codes = try rig.report("dtc", for: 20 * .second).rows
    #expect(rig.text("vin") != nil && codes.count > 1)
  }

  @Test(arguments: [DiagnosticBus.kwp, .iso9141, .can11, .can29]) func `an adapter that always searches is polled`(_ bus: DiagnosticBus)
    throws
  {
    var rig = try VehicleRig(PetrolCar(bus), faults: ["ignore-protocol"])
    rig.run(for: 180 * .second)
    #expect(rig.status == "polling" && rig.fault == nil && rig.number("rpm") != nil && rig.number("speed") != nil, "\(rig.fault ?? "")")
    var again = try VehicleRig(PetrolCar(bus), faults: ["ignore-protocol"], disk: rig.disk)
    again.run(for: 120 * .second)
    #expect(again.status == "polling" && again.fault == nil && again.number("rpm") != nil)
  }

  @Test func `zeros after a short message without headers are padding`() throws {
    let car = VehiclePollingTests.car([
      "0100": [(0x7E8, "410008180000")], "010C0D": [(0x7E8, "410C0D740D32")], "0105": [(0x7E8, "410564")],
      "03": [(0x7E8, "43010133")], "07": [(0x7E8, "4700")], "0A": [(0x7E8, "4A00")],
    ])
    var rig = try VehicleRig(car, faults: ["ignore-headers", "pad-zeros"])
    rig.run(for: 20 * .second)
    #expect(rig.seen["rpm"] == ["861"] && rig.seen["speed"] == ["50"] && rig.seen["coolant-temperature"] == ["60"])
    #expect(rig.status == "polling" && rig.number("bad-replies") == 0)
    let codes = try rig.report("dtc").rows
    #expect(codes.map { $0[1] } == ["P0133"])
    for damaged in ["43030133000000", "43010133000001", "430101330000"] {
      let bytes = stride(from: 0, to: damaged.count, by: 2).compactMap { UInt8(damaged.dropFirst($0).prefix(2), radix: 16) }
      #expect(
        TroubleCode.read(bytes[...], onCAN: true) == .malformed("the number of codes does not match the response length"), "\(damaged)")
    }
    // With headers, or with other bytes than zeros, the length is wrong.
    for (bytes, hasNoHeaders) in [
      ("0C0D74000000", false), ("0C0D74000001", true), ("0C0D740000", true), ("0C0D7400", true), ("000000000000", true),
    ] {
      let data = stride(from: 0, to: bytes.count, by: 2).compactMap { UInt8(bytes.dropFirst($0).prefix(2), radix: 16) }
      let end = data.withUnsafeBufferPointer {
        ReplyReader.end(of: [PollRequest.Parameter(number: 0x0C, length: 2)], in: $0, hasNoHeaders: hasNoHeaders)
      }
      #expect(end == nil, "\(bytes)")
    }
  }

  // MARK: An STN chip's one-line requests

  @Test func `STPX is never sent to an adapter that is not an STN chip`() throws {
    for car in [PetrolCar(.can11), PetrolCar(.can29)] {
      var rig = try VehicleRig(car)
      // Another manufacturer's ECU at 7E4 responds during detection; after that every reply is good.
      rig.run(for: 20 * .second)
      let badReplies = rig.number("bad-replies")
      rig.run(for: 100 * .second)
      #expect(rig.status == "polling" && !rig.sentCommands.contains { $0.command.hasPrefix("STPX") })
      #expect(rig.number("timeouts") == 0 && rig.number("bad-replies") == badReplies)
    }
  }

  @Test func `functional requests are not sent with STPX`() throws {
    var rig = try VehicleRig(PetrolCar(.can11), chip: .stn)
    rig.run(for: 120 * .second)
    #expect(rig.sentCommands.contains { $0.command == "0902" || $0.command.hasPrefix("0100") })
    #expect(!rig.sentCommands.contains { $0.command.hasPrefix("STPX H:7DF") })
    #expect(rig.text("vehicle") == "standard OBD-II (7E8, 7E9)" && rig.text("calibration-ids-2") != nil)
  }

  @Test func `STPX without a reply is sent once and never again`() throws {
    var rig = try VehicleRig(PetrolCar(.can11), chip: .stn, faults: ["ignore-stpx"])
    rig.run(for: 120 * .second)
    #expect(rig.sentCommands.count { $0.command.hasPrefix("STPX") } <= 1 && rig.status == "polling" && rig.number("timeouts") ?? 0 <= 1)
    let before = rig.sentCommands.count { $0.command.hasPrefix("STPX") }
    rig.reconnect()
    rig.run(for: 60 * .second)
    #expect(rig.sentCommands.count { $0.command.hasPrefix("STPX") } == before)
  }
}
