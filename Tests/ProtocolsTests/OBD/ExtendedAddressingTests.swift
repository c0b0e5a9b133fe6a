// Requests whose frames begin with an address byte (ISO 15765-2, extended and mixed addressing), over an ELM327 and over frames. The frames of
// BMW are those of a capture of OBDb (BMW-i3, 2017, 6F1.607.22DDBF); the addresses of Toyota are those of OBDb's Corolla Hybrid.

import MachineTesting
import Testing

@testable import Peers
@testable import Protocols

@Suite struct ExtendedAddressingTests {
  private static let cells: [UInt8] = [0x62, 0xDD, 0xBF, 0x0E, 0x0A, 0x0E, 0x23]

  private static func signal(
    _ name: String, _ request: String, _ header: String, _ bytes: ISOTPAddressing, reply: String? = nil, _ value: String
  ) throws -> CustomSignal {
    CustomSignal(
      name, try SignalRequest(request, allowRaw: false), header: CANIdentifier(header), reply: reply.flatMap { CANIdentifier($0) },
      addressBytes: bytes, try Expression(value), help: "own")
  }

  private static func bmw() throws -> [CustomSignal] {
    [
      try signal("cell-minimum", "22DDBF", "6F1", .extended(target: 0x07), "(A*256+B)/1000"),
      try signal("cell-maximum", "22DDBF", "6F1", .extended(target: 0x07), "(C*256+D)/1000"),
      try signal("short", "22DDBC", "6F1", .extended(target: 0x07), "A"),
    ]
  }

  /// A car that also answers the standard, as the detection requires.
  private static func car(_ address: UInt32, _ id: UInt32, ecu: UInt8, tester: UInt8, _ own: [[UInt8]: [UInt8]]) -> ScriptedCar {
    func reply(_ bytes: UInt8...) -> [Reply] { [Reply(id: 0x7E8, payload: bytes)] }
    var responses: [[UInt8]: [Reply]] = [
      [0x01, 0x00]: reply(0x41, 0x00, 0x00, 0x18, 0x00, 0x00), [0x01, 0x0C, 0x0D]: reply(0x41, 0x0C, 0x0D, 0x74, 0x0D, 0x32),
    ]
    for (request, payload) in own { responses[request] = [Reply(id: id, payload: payload, addressByte: tester)] }
    return ScriptedCar(padding: 0xFF, extended: (address, ecu), responses: responses)
  }

  private static func bmwCar() -> ScriptedCar {
    car(0x6F1, 0x607, ecu: 0x07, tester: 0xF1, [[0x22, 0xDD, 0xBF]: cells, [0x22, 0xDD, 0xBC]: [0x62, 0xDD, 0xBC, 0x2A]])
  }

  @Test func `frames have the address byte in both directions, also the flow control`() throws {
    var rig = try FramesRig(Self.bmwCar(), signals: try Self.bmw())
    rig.run(for: 20 * .second)
    #expect(rig.number("cell-minimum") == 3.594 && rig.number("cell-maximum") == 3.619 && rig.number("short") == 42)
    #expect(rig.number("bad-replies") == 0 && rig.fault == nil, "\(rig.fault ?? "")")
    #expect(!rig.sent("t6F18070322DDBF000000").isEmpty && !rig.sent("t6F180730000000000000").isEmpty)
  }

  @Test func `an ELM327 gets the address bytes, and its lines are read without them`() throws {
    var rig = try VehicleRig(Self.bmwCar(), signals: try Self.bmw())
    rig.run(for: 20 * .second)
    #expect(rig.number("cell-minimum") == 3.594 && rig.number("cell-maximum") == 3.619 && rig.number("short") == 42)
    #expect(rig.number("bad-replies") == 0 && rig.fault == nil, "\(rig.fault ?? "")")
    let commands = rig.sentCommands.map(\.command)
    let first = try #require(commands.firstIndex(of: "ATSH6F1"))
    let steps = ["ATSH6F1", "ATCEA07", "ATTAF1", "ATFCSH6F1", "ATFCSD07300000", "ATFCSM1", "ATCRA607"]
    #expect(commands[first...].starts(with: steps), "\(commands[first...].prefix(8))")
    // The other requests need frames without the byte.
    #expect(commands[first...].contains("ATCEA") && rig.number("rpm") == 861)
  }

  @Test func `mixed addressing has the same byte in both directions`() throws {
    let signals = [try Self.signal("pressure", "2130", "750", .mixed(0x2A), "B")]
    let car = Self.car(0x750, 0x758, ecu: 0x2A, tester: 0x2A, [[0x21, 0x30]: [0x61, 0x30, 1, 2, 3, 4, 5, 6, 7]])
    var frames = try FramesRig(car, signals: signals)
    frames.run(for: 20 * .second)
    #expect(frames.number("pressure") == 2 && !frames.sent("t75082A02213000000000").isEmpty)
    var text = try VehicleRig(car, signals: signals)
    text.run(for: 20 * .second)
    #expect(text.number("pressure") == 2 && text.sentCommands.contains { $0.command == "ATTA2A" })
  }

  @Test func `a query names the address byte after the header`() throws {
    var frames = try FramesRig(Self.bmwCar())
    frames.run(for: 5 * .second)
    let report = try frames.report("query", ["request": .string("22DDBF"), "header": .string("6F1/07")])
    #expect("\(report)".contains("607") && "\(report)".contains("0E 0A 0E 23"), "\(report)")
    var text = try VehicleRig(Self.bmwCar())
    text.run(for: 5 * .second)
    let id = text.run("query", ["request": .string("22DDBF"), "header": .string("6F1/07")])
    text.run(for: 5 * .second)
    let outcome = try #require(text.outcome(id)).get()
    #expect("\(outcome)".contains("0E 0A 0E 23"), "\(outcome)")
    text.run(for: 5 * .second)
    #expect(text.status == "polling" && text.number("rpm") == 861 && text.sentCommands.contains { $0.command == "ATCEA" })
    #expect(Target("6F1/7") == nil && Target("6F1/") == nil && Target("6F1/07/1") == nil && Target("/07") == nil)
  }

  @Test func `an adapter that does not support the byte loses only these requests`() throws {
    var rig = try VehicleRig(Self.bmwCar(), signals: try Self.bmw(), unknown: ["ATCEA07"])
    rig.run(for: 20 * .second)
    #expect(rig.status == "polling" && rig.number("rpm") == 861)
    #expect(rig.absence("short")?.contains("ATCEA07") == true, "\(rig.absence("short") ?? "-")")
    // Whether frames begin with the byte is not known after this.
    #expect(rig.sentCommands.contains { $0.command == "ATCEA" })
  }

  @Test func `frames for another tester are no part of a reply`() throws {
    var reader = ReplyReader()
    let lines = "607F1100762DDBF0E0A\r607F2037F2231FFFFFF\r607F1210E23FFFFFFFF\r"
    #expect(reader.read(Array(lines.utf8), addressByte: 0xF1) == .messages)
    #expect(reader.messages.map { Array(reader.bytes(of: $0)) } == [Self.cells])
    // A frame carries one byte less.
    #expect(reader.read(Array("607F10762DDBF0E0A0E\r".utf8), addressByte: 0xF1) == .unreadable("frame of wrong length"))
    #expect(reader.read(Array("607F11006010203040506\r".utf8), addressByte: 0xF1) != .messages)
  }

  @Test func `an address has a form that tells the ECUs apart`() {
    let bmw = CANIdentifier(number: 0x6F1, is29Bit: false)
    #expect(Target(bmw, .extended(target: 0x07)).text == "6F1/07" && Target(bmw, .extended(target: 0x07)).reply?.text == "607")
    #expect(Target(bmw, .extended(target: 0x07)) != Target(bmw, .extended(target: 0x12)) && Target(bmw).reply?.text == "6F9")
  }

  @Test(arguments: [
    (#"["extended-address": "7"]"#, "extended-address"), (#"["extended-address": "G7"]"#, "extended-address"),
    (#"["tester-address": "F1"]"#, "tester-address"), (#"["extended-address": "07", "tester-address": "F"]"#, "tester-address"),
    (#"["extended-address": "07", "request": "21010203040506"]"#, "request"),
  ]) func `wrong keys are reported`(_ keys: String, _ named: String) throws {
    let text = try #require(JSONNode(untrusted: Array("{\(keys.dropFirst().dropLast())}".utf8)))
    var options: [String: Value] = ["request": .string("2101"), "header": .string("6F1"), "value": .string("A")]
    for key in text.keys { options[key] = text[key]?.text.map { .string($0) } }
    var problems: [OptionError] = []
    _ = CustomSignal(Setup.Subsection("own", options), of: Setup(), &problems)
    #expect(problems.map(\.option) == [named], "\(problems.map(\.message))")
  }
}
