// Public captures, reproduced byte for byte by the simulated adapter with a car that answers like the captured one. The banner with
// noise is tested with the quirks.

import Peers
import Testing

@testable import Protocols

@Suite("The simulated adapter prints captures of")
struct AdapterVectorTests {
  /// A car with a single reply.
  private func car(
    _ request: String, _ answer: [UInt8], from id: UInt32 = 0x7EC, padding: UInt8? = 0, on bus: DiagnosticBus = .can11
  ) -> ScriptedCar {
    ScriptedCar(bus, padding: padding, responses: [Self.bytes(request): [Reply(id: id, payload: answer)]])
  }

  private static func bytes(_ text: String) -> [UInt8] {
    let digits = text.utf8.map(hexValue)
    return stride(from: 0, to: digits.count - 1, by: 2).map { digits[$0] << 4 | digits[$0 + 1] }
  }

  private static func text(_ vector: [UInt8]) -> String { String(decoding: vector, as: UTF8.self) }

  @Test(
    "battery data records with headers",
    arguments: [
      ("220101", Vector.kona, 0), ("220101", Vector.ev6, 0), ("220101", Vector.wallbox, 0), ("220105", Vector.wallboxRecord05, 0xAA),
      ("2101", Vector.ioniq, 0),
    ] as [(String, [UInt8], UInt8)])
  func records(request: String, vector: [UInt8], padding: UInt8) throws {
    let message = try #require(VirtualHost.message(in: Self.text(vector)))
    var host = try VirtualHost.open(car(request, message, padding: padding))
    #expect(host.ask(request) == Self.text(vector))
  }

  @Test("a battery data record with spaces")
  func spaces() throws {
    let message = try #require(VirtualHost.message(in: Self.text(Vector.soul).replacing(" ", with: "")))
    var host = try VirtualHost.open(car("2101", message), after: ["ATE0", "ATH1"])
    #expect(host.ask("2101") == Self.text(Vector.soul))
  }

  @Test("a battery data record without line ends")
  func lineEnds() throws {
    let pieces: [Substring] = Self.text(Vector.glued).dropLast().dropFirst(3).split(separator: ":")
    let digits = pieces.dropFirst().enumerated().map { $0 == pieces.count - 2 ? String($1) : String($1.dropLast()) }.joined()
    var host = try VirtualHost.open(car("220101", Self.bytes(digits)), "no-lf-cr", after: ["ATE0", "ATS0"])
    #expect(host.ask("220101") == Self.text(Vector.glued))
  }

  @Test("four interleaved replies and a negative response without headers")
  func interleaved() throws {
    let lines: [Substring] = Self.text(Vector.interleaved).split(separator: "\r")
    /// The payload whose numbered lines are at these positions, one for each number.
    func payload(_ length: Int, _ places: [Int]) -> [UInt8] {
      let digits = places.enumerated().map { number, place in
        lines.filter { $0.hasPrefix("\(number):") }.dropFirst(place).first?.dropFirst(2) ?? ""
      }
      return Array(Self.bytes(digits.joined()).prefix(length))
    }
    let tick = Nanoseconds.microsecond
    let answers = [
      Reply(id: 0x7ED, payload: payload(44, [0, 0, 0, 0, 0, 0, 0])),
      Reply(id: 0x7EA, payload: payload(30, [1, 1, 1, 1, 1]), delay: 100 * tick),
      Reply(id: 0x7EC, payload: payload(61, [2, 2, 2, 3, 2, 1, 1, 0, 0]), delay: 180 * tick, pause: 1535 * tick),
      Reply(id: 0x7EB, payload: payload(22, [3, 3, 3, 2]), delay: 300 * tick),
      Reply(id: 0x7E8, payload: [0x7F, 0x21, 0x12], delay: 1680 * tick),
    ]
    var host = try VirtualHost.open(ScriptedCar(responses: [[0x21, 0x01]: answers]), after: ["ATE0", "ATS0"])
    #expect(host.ask("2101") == Self.text(Vector.interleaved))
    host.ask("ATH1")
    host.ask("ATCRA7EC")
    #expect(host.ask("2101") == Self.text(Vector.ioniq))
  }

  @Test("several PIDs, and one PID with several frames")
  func parameters() throws {
    let several = try #require(VirtualHost.message(in: Self.text(Vector.multi)))
    var host = try VirtualHost.open(car("0101030406070C", several, from: 0x7E8))
    #expect(host.ask("0101030406070C3") == Self.text(Vector.multi))
    let long = try #require(VirtualHost.message(in: Self.text(Vector.parameter78)))
    host = try VirtualHost.open(car("0178", long, from: 0x7E8))
    #expect(host.ask("0178") == Self.text(Vector.parameter78))
  }

  @Test("two ECUs with 29-bit identifiers and unpadded frames")
  func longIdentifiers() throws {
    let answers = [0x18DA_F111, 0x18DA_F11D].map { Reply(id: $0, payload: [0x41, 0x0C, 0x0D, 0x74]) }
    var host = try VirtualHost.open(ScriptedCar(.can29, padding: nil, responses: [[0x01, 0x0C]: answers]), after: ["ATE0", "ATH1"])
    #expect(host.ask("010C") == Self.text(Vector.long))
  }

  @Test("a K-line after protocol detection")
  func kLine() throws {
    var host = try VirtualHost(car: car("0100", [0x41, 0x00, 0xBE, 0x3E, 0xF8, 0x11], from: 0x10, on: .kwp))
    for command in ["ATE0", "ATH1", "ATSP0"] { host.ask(command) }
    #expect(host.ask("0100") == Self.text(Vector.kLine))
  }

  @Test("a VIN without headers")
  func vin() throws {
    var host = try VirtualHost.open(car("0902", [0x49, 0x02, 0x01] + Array("1D4GP00R55B123456".utf8), from: 0x7E8), after: ["ATE0"])
    let lines: [Substring] = Self.text(Vector.vehicleNumber).split(separator: "\r")
    #expect(host.lines("0902") == lines.dropLast().enumerated().map { $0 == 0 ? String($1) : $1 + " " })
  }
}
