import MachineTesting
import Testing

@testable import Peers
@testable import Protocols

/// The `can` machine on a simulated bus, in virtual time.
@Suite struct CANBusTests {
  private typealias Rig = Host<CANBusMachine, PeerLink<BusListener>>

  private static func signals(_ sections: [Setup.Subsection]) throws -> [CANSignal] {
    var problems: [OptionError] = []
    let signals = sections.compactMap { CANSignal($0, &problems) }
    try #require(problems.isEmpty, "\(problems)")
    return signals
  }

  private static let sections = [
    CANSignalTests.signal("speed", bits: "0|16@1+", ["factor": .float(0.01), "cycle-time": .float(100)]),
    CANSignalTests.signal("gear", bits: "16|4@1+", ["type": .string("string"), "labels": .list(["0: park"]), "cycle-time": .float(100)]),
    CANSignalTests.signal("odometer", id: "18FEEE00", bits: "7|24@0+", ["retained": .bool(true)]),
    CANSignalTests.signal("left", id: "4A0", bits: "8|8@1+", ["when": .list(["0|2@1+: 0"]), "cycle-time": .float(200)]),
    CANSignalTests.signal("right", id: "4A0", bits: "8|8@1+", ["when": .list(["0|2@1+: 1-2"]), "cycle-time": .float(200)]),
    CANSignalTests.signal("wheel", id: "4A0", bits: "0|2@1+", ["type": .string("int"), "cycle-time": .float(200)]),
    CANSignalTests.signal("event", id: "100", bits: "0|8@1+"),
  ]

  private static func traffic(_ lines: [(Nanoseconds, String)], period: Nanoseconds? = nil) throws -> BusTraffic {
    BusTraffic(try lines.map { ($0 * .millisecond, try #require(CANFrame(candump: Array($1.utf8)))) }, period: period)
  }

  /// A listener that has opened its channel.
  private static func rig(
    _ traffic: BusTraffic, bitRate: Int? = 500_000, port: CANBusMachine.Port = .slcan, faults: [BusListener.Fault] = []
  ) throws -> Rig {
    var rig = Rig(CANBusMachine(try signals(sections), port, bitRate: bitRate), PeerLink(BusListener(traffic, faults: faults)))
    rig.start()
    rig.connect()
    return rig
  }

  @Test func `values are published as frames arrive, and nothing but commands of the adapter is sent`() throws {
    var rig = try Self.rig(try Self.traffic([(0, "3E9#102700"), (50, "3E9#112701"), (60, "18FEEE00#000102"), (70, "100#07")]))
    #expect(rig.status == "connecting" && rig.absence("speed") == "no frame 3E9 received yet")
    rig.run(for: 130 * .millisecond)
    #expect(rig.status == "listening" && rig.number("speed") == 100 && rig.text("gear") == "park")
    rig.run(for: 100 * .millisecond)
    #expect(rig.number("speed") == 100.01 && rig.absence("gear") == "no label for 1" && rig.number("odometer") == 258)
    #expect(rig.text("adapter") == "slcan V1013")
    let sent = rig.sends.map { String(decoding: $0.bytes, as: UTF8.self) }
    #expect(sent == ["C\rC\r", "V\r", "S6\r", "L\r"])
  }

  @Test func `only changed values are published, and unchanged ones once per second`() throws {
    let frames = (0..<30).map { (Nanoseconds($0) * 100, "3E9#1027\($0 < 15 ? "00" : "0F")") }
    var rig = try Self.rig(try Self.traffic(frames))
    rig.run(for: 250 * .millisecond)
    let before = try #require(rig.published["speed"])
    rig.run(for: 2700 * .millisecond)
    #expect(rig.published["speed"] == before + 2 && rig.number("speed") == 100)
  }

  @Test func `values expire after three cycle times, and a retained one stays`() throws {
    var rig = try Self.rig(try Self.traffic([(0, "3E9#102700"), (0, "18FEEE00#000102"), (0, "100#07")]))
    rig.run(for: 390 * .millisecond)
    #expect(rig.number("speed") == 100)
    rig.run(for: 20 * .millisecond)
    #expect(rig.absence("speed") == "no frame 3E9 for 0.3 s" && rig.absence("gear") == "no frame 3E9 for 0.3 s")
    #expect(rig.number("event") == 7 && rig.number("odometer") == 258)
    rig.run(for: 3 * .second)
    #expect(rig.absence("event") == "no frame 100 for 3 s" && rig.number("odometer") == 258)
    #expect(rig.status == "car-asleep" && rig.fault == nil)
  }

  @Test func `the declared lifetimes allow for the second in which an unchanged value is not published again`() throws {
    let machine = CANBusMachine(try Self.signals(Self.sections), .socket, bitRate: nil)
    let lifetimes = Dictionary(uniqueKeysWithValues: machine.schema.properties.map { ($0.name, $0.lifetime) })
    #expect(lifetimes["speed"] == .fresh(1300 * .millisecond) && lifetimes["event"] == .fresh(4 * .second))
    #expect(lifetimes["left"] == .fresh(2200 * .millisecond) && lifetimes["wheel"] == .fresh(1600 * .millisecond), "of two variants")
    #expect(lifetimes["odometer"] == .retained && lifetimes["adapter"] == .whileUp)
  }

  @Test func `a multiplexer selects the signals of a frame`() throws {
    var rig = try Self.rig(try Self.traffic([(0, "4A0#000A"), (100, "4A0#010B"), (200, "4A0#030C"), (300, "4A0#020D"), (400, "4A0#01")]))
    rig.run(for: 150 * .millisecond)
    #expect(rig.number("left") == 10 && rig.absence("right") == "no frame 4A0 with this signal received yet" && rig.number("wheel") == 0)
    rig.run(for: 200 * .millisecond)
    #expect(rig.number("left") == 10 && rig.number("right") == 11 && rig.number("wheel") == 3)
    rig.run(for: 100 * .millisecond)
    #expect(rig.number("right") == 13 && rig.number("wheel") == 2)
    rig.run(for: 100 * .millisecond)
    #expect(rig.absence("right") == "frame 4A0 is too short" && rig.number("wheel") == 1)
    // Two signals share the frames, so each is awaited for twice as long.
    rig.run(for: 800 * .millisecond)
    #expect(rig.absence("left") == "no frame 4A0 with this signal for 1.2 s")
  }

  @Test func `frames are counted`() throws {
    let frames = (0..<100).map { (Nanoseconds($0) * 10, "123#0102030405060708") }
    var rig = try Self.rig(try Self.traffic(frames))
    rig.run(for: 1200 * .millisecond)
    #expect(rig.number("frames") == 100 && rig.number("frame-rate") == 100)
    // 135 bits are the most that a frame of eight bytes can have.
    #expect(rig.number("bus-load") == 2.7 && rig.absence("error-frames") == "not reported by slcan adapters")
    rig.run(for: 2 * .second)
    #expect(rig.number("frame-rate") == 0 && rig.number("bus-load") == 0)
    let wakes = rig.wakes
    rig.run(for: 60 * .second)
    #expect(rig.wakes - wakes <= 4, "while the bus is silent, the channel is opened once a minute: \(rig.wakes - wakes)")
  }

  @Test func `a silent bus and a wrong bit rate are faults with a remedy`() throws {
    var rig = try Self.rig(try Self.traffic([(0, "3E9#102700")]), faults: [.noTraffic])
    rig.run(for: 4 * .second)
    #expect(rig.status == "silent" && rig.fault?.hasPrefix("no frames on the CAN bus: switch the vehicle on") == true)
    rig = try Self.rig(try Self.traffic([(0, "3E9#102700")]), bitRate: 250_000)
    rig.run(for: 4 * .second)
    #expect(rig.status == "silent" && rig.fault?.hasPrefix("errors on the CAN bus, and no frames: the bit rate is wrong") == true)
    rig.disconnect("unplugged")
    #expect(rig.status == "waiting" && rig.fault == nil)
  }

  @Test func `a channel that was closed is opened again, without a change of state`() throws {
    // The adapter was restarted before the channel is opened again after 5 s, or after that.
    for (time, reopening) in [(4 * Nanoseconds.second, 6 * Nanoseconds.second), (8 * .second, 67 * .second)] {
      var rig = try Self.rig(try Self.traffic([(0, "3E9#102700")]))
      rig.run(for: time)
      #expect(rig.status == "car-asleep")
      let statuses = rig.statuses
      rig.surroundings.peer = BusListener(try Self.traffic((50..<100).map { ($0 * 100, "3E9#102700") }))
      rig.run(for: reopening - time)
      #expect(rig.statuses == statuses && rig.fault == nil)
      rig.run(for: 6 * .second)
      #expect(rig.status == "listening" && rig.number("speed") == 100)
    }
  }

  @Test func `an adapter that no longer replies is a fault`() throws {
    var rig = try Self.rig(try Self.traffic([(0, "3E9#102700")]))
    rig.run(for: 4 * .second)
    #expect(rig.status == "car-asleep")
    rig.surroundings = PeerLink(BusListener(.demo), takesBytes: true)
    rig.run(for: 65 * .second)
    #expect(rig.status == "silent" && rig.fault == SLCANOpening.silentMessage, "\(rig.status) \(rig.fault ?? "")")
  }

  @Test func `frames end the silence`() throws {
    var rig = try Self.rig(try Self.traffic([(4500, "3E9#102700")]))
    rig.run(for: 4500 * .millisecond)
    #expect(rig.status == "silent" && rig.fault != nil)
    rig.run(for: 250 * .millisecond)
    #expect(rig.status == "listening" && rig.fault == nil && rig.number("speed") == 100)
  }

  @Test func `an adapter that rejects listening only is a fault, and is not opened otherwise`() throws {
    var rig = try Self.rig(try Self.traffic([(0, "3E9#102700")]), faults: [.rejectsListening])
    rig.run(for: 5 * .second)
    #expect(rig.status == "failed" && rig.fault?.hasPrefix("the CAN adapter rejects listening only (command L)") == true)
    rig.run(for: 8 * .second)
    let sent = rig.sends.map { String(decoding: $0.bytes, as: UTF8.self) }
    #expect(sent == ["C\rC\r", "V\r", "S6\r", "L\r", "C\rC\r", "V\r", "S6\r", "L\r"] && rig.absence("speed") != nil)
  }

  @Test func `an adapter that ignores the command for listening only is a fault with a remedy`() throws {
    var rig = try Self.rig(try Self.traffic([(0, "3E9#102700")]), faults: [.ignoresListening])
    rig.run(for: 70 * .second)
    #expect(rig.status == "silent" && rig.fault?.hasPrefix("no frames, and the CAN adapter does not acknowledge the command L") == true)
    #expect(!rig.sends.contains { $0.bytes == SLCAN.open })
  }

  @Test func `an adapter that acknowledges the command for listening late is not taken for one that ignores it`() throws {
    var rig = try Self.rig(try Self.traffic([]), faults: [.ignoresListening])
    rig.run(for: 700 * .millisecond)
    #expect(rig.status == "listening")
    rig.give(.received(.main, Array("\r".utf8)))
    rig.run(for: 4 * .second)
    #expect(rig.status == "silent" && rig.fault?.contains("command L") == false, "\(rig.status) \(rig.fault ?? "")")
  }

  @Test func `the fault of a failed opening ends when the next one succeeds`() throws {
    let traffic = try Self.traffic([(0, "3E9#102700")])
    var rig = try Self.rig(traffic, faults: [.rejectsListening])
    rig.run(for: 5 * .second)
    #expect(rig.status == "failed" && rig.fault != nil)
    rig.surroundings.peer = BusListener(traffic)
    rig.run(for: 6 * .second)
    #expect(rig.status == "listening" && rig.fault == nil)
  }

  @Test func `a retained value stays although its frame does not come on later connections`() throws {
    var rig = try Self.rig(try Self.traffic([(0, "18FEEE00#000102"), (0, "100#07")]))
    rig.run(for: 300 * .millisecond)
    #expect(rig.number("odometer") == 258 && rig.number("event") == 7)
    rig.surroundings.peer = BusListener(try Self.traffic([(0, "3E9#102700")]))
    for _ in 0..<2 {
      rig.disconnect()
      rig.connect()
      rig.run(for: 300 * .millisecond)
      #expect(rig.status == "listening" && rig.number("odometer") == 258 && rig.absence("event") == "no frame 100 received yet")
    }
  }

  @Test func `the channel is closed at the end`() throws {
    var rig = try Self.rig(try Self.traffic([(0, "3E9#102700")]))
    rig.run(for: 200 * .millisecond)
    rig.give(.stopping)
    #expect(rig.hasStopped && rig.sends.last?.bytes == Array("C\r".utf8))
  }

  @Test func `frames of the kernel and its reports of errors are read`() throws {
    var rig = Rig(CANBusMachine(try Self.signals(Self.sections), .socket, bitRate: nil), PeerLink(BusListener(.demo)))
    rig.start()
    rig.give(.linkChanged(.main, .up(maximumSend: nil)))
    let frame = try #require(CANFrame(candump: Array("3E9#102700".utf8)))
    rig.give(.received(.main, SocketCAN.bytes(of: frame)))
    #expect(rig.number("speed") == 100 && rig.text("adapter") == "SocketCAN")
    #expect(rig.absence("bus-load") == "the bit rate of the bus is not known; set bit-rate")
    var error = SocketCAN.bytes(of: CANFrame(CANIdentifier(number: 0x80, is29Bit: true), [UInt8](repeating: 0, count: 8)))
    error[3] = 0x20  // the flag of error frames instead of that of 29 bits
    rig.give(.received(.main, error))
    rig.run(for: 4 * .second)
    #expect(rig.number("error-frames") == 1 && rig.number("frames") == 1)
    #expect(rig.status == "silent" && rig.fault?.hasPrefix("errors on the CAN bus, and no frames") == true)
    #expect(rig.sends.isEmpty)
  }

  @Test func `signals are read-only`() throws {
    var rig = try Self.rig(try Self.traffic([(0, "3E9#102700")]))
    let id = rig.perform(.set(property: 0, .string("x")))
    #expect(rig.code(id) == "read-only" || rig.error(id) != nil)
  }

  @Test func `random bytes and frames are survived`() throws {
    var rig = try Self.rig(.demo)
    var random = SeededRandom(seed: 3)
    rig.run(for: 200 * .millisecond)
    for _ in 0..<2000 {
      let bytes = (0..<Int(random.next() % 40)).map { _ in UInt8(truncatingIfNeeded: random.next()) }
      rig.give(.received(.main, random.next() % 2 == 0 ? bytes : SLCAN.text(of: .random(&random))))
    }
    rig.run(for: 2 * .second)
    #expect(rig.status == "listening" && (rig.number("bad-messages") ?? 0) > 0)
  }
}
