// At a wrong baud rate both sides receive what a UART makes of the bits: garbage, or nothing.

import Testing

@testable import Protocols

extension [UInt8] {
  /// The bytes received at another baud rate than they were sent, back to back: 8N1, least significant bit first.
  func sent(at sender: Int, heardAt receiver: Int) -> [UInt8] {
    guard sender != receiver else { return self }
    let bits: [Bool] = flatMap { byte -> [Bool] in [false] + (0..<8).map { byte >> $0 & 1 == 1 } + [true] }
    let level = { (time: Double) in
      let index = Int(time * Double(sender))
      return index >= bits.count || bits[index]
    }
    var heard: [UInt8] = []
    var free = 0.0
    for index in bits.indices where !bits[index] && (index == 0 || bits[index - 1]) {
      let start = Double(index) / Double(sender)
      let sample = { (bit: Int) in level(start + (Double(bit) + 0.5) / Double(receiver)) }
      guard start >= free, !sample(0) else { continue }
      heard.append((0..<8).reduce(0) { $0 | (sample($1 + 1) ? 1 << $1 : 0) })
      free = start + 9.5 / Double(receiver)
    }
    return heard
  }
}

@Suite("The speed of a serial line") struct OBDSpeedTests {
  static let link = "serial:/dev/ttyUSB0"
  static let order = [38400, 9600, 230_400, 115_200, 57600, 19200, 500_000, 1_000_000, 2_000_000]

  /// A link that starts at 38400 baud, and an adapter with this rate.
  func rig(adapter baud: Int, link: String = link) -> AdapterRig {
    var rig = AdapterRig(link: link)
    rig.baud = 38400
    rig.adapterBaud = baud
    return rig
  }

  func stored(_ text: String) -> [String: [UInt8]] { ["baud": Array(text.utf8)] }

  @Test func `a wrong baud rate garbles`() {
    let banner = Array("ELM327 v1.5\r\r>".utf8)
    for (sender, receiver) in [(9600, 38400), (38400, 9600), (115_200, 38400), (38400, 115_200), (57600, 38400)] {
      let heard = banner.sent(at: sender, heardAt: receiver)
      #expect(!heard.isEmpty && heard != banner)
    }
    // Within the tolerance of two crystals.
    #expect(banner.sent(at: 38400, heardAt: 39000) == banner)
  }

  @Test(arguments: order) func `an adapter is found at every usual baud rate, which is stored`(_ baud: Int) {
    var rig = rig(adapter: baud)
    rig.start()
    rig.run(for: 40 * .second)
    #expect(rig.status == "polling" && rig.number("rpm") == 4363)
    #expect(rig.bauds == Array(Self.order[...(Self.order.firstIndex(of: baud) ?? 0)].dropFirst()))
    #expect(rig.stored["baud"] == "\(baud) serial:/dev/ttyUSB0")
    #expect(rig.faults.isEmpty && rig.resets.isEmpty, "\(rig.faults)")
  }

  @Test func `the stored baud rate is tried first`() {
    var rig = rig(adapter: 115_200)
    rig.start(restored: stored("115200 serial:/dev/ttyUSB0"))
    #expect(rig.bauds == [115_200])
    rig.run(for: 2 * .second)
    #expect(rig.commands.first == "ATZ" && rig.heard("ATZ") == 1)
    #expect(rig.status == "polling" && rig.stored["baud"] == nil)
    // Also after reconnecting; every link starts at the usual rate.
    rig.give(.linkChanged(.main, .down("unplugged")))
    rig.connect()
    rig.run(for: 2 * .second)
    #expect(rig.bauds == [115_200, 115_200] && rig.heard("ATZ") == 2 && rig.status == "polling")
  }

  @Test(arguments: [
    "115200 serial:/dev/ttyUSB1", "115200 serial:/dev/ttyUSB0?baud=115200", "115200", "", " ", "1200 serial:/dev/ttyUSB0",
    "x serial:/dev/ttyUSB0", "-1 serial:/dev/ttyUSB0",
  ])
  func `a stored baud rate that is invalid or of another link is ignored`(_ text: String) {
    var rig = rig(adapter: 38400)
    rig.start(restored: stored(text))
    rig.run(for: 2 * .second)
    #expect(rig.bauds.isEmpty && rig.status == "polling")
    #expect(rig.stored["baud"] == "38400 serial:/dev/ttyUSB0")
  }

  @Test func `another adapter at the same port is found`() {
    var rig = rig(adapter: 38400)
    rig.start(restored: stored("9600 serial:/dev/ttyUSB0"))
    rig.run(for: 40 * .second)
    #expect(rig.bauds == [9600, 38400] && rig.status == "polling" && rig.fault == nil)
    #expect(rig.stored["baud"] == "38400 serial:/dev/ttyUSB0")
  }

  @Test func `a link with a fixed baud rate keeps it`() {
    var rig = rig(adapter: 9600)
    rig.baud = nil
    rig.adapter.isMute = true
    rig.start(restored: stored("9600 serial:/dev/ttyUSB0"))
    rig.run(for: 60 * .second)
    #expect(rig.bauds.isEmpty && rig.heard("ATZ") == 3)
    #expect(rig.resets == [AdapterSession.silentMessage] && rig.fault == AdapterSession.silentMessage)
  }

  @Test func `without a reply the tried baud rates are reported once`() {
    var rig = rig(adapter: 38400)
    rig.adapter.isMute = true
    let message =
      "no adapter responds at 38400, 9600, 230400, 115200, 57600, 19200, 500000, 1000000, 2000000 baud; "
      + "check its power and wiring, or add ?baud=N to the link"
    rig.start()
    rig.run(for: 20 * .second)
    #expect(rig.faults.isEmpty && rig.resets.isEmpty)
    rig.run(for: 10 * .second)
    #expect(rig.resets == [message] && rig.faults == [message] && rig.status == "degraded")
    #expect(rig.bauds == Array(Self.order.dropFirst()) && rig.heard("ATZ") == 1)
    #expect(rig.machine.nextWake == nil)
    // Again from the start once the link is up.
    rig.give(.linkChanged(.main, .down(message)))
    rig.connect()
    rig.run(for: 30 * .second)
    #expect(rig.resets == [message, message] && rig.faults == [message] && rig.bauds.count == 16)
    rig.give(.linkChanged(.main, .down(message)))
    rig.adapter.isMute = false
    rig.connect()
    rig.run(for: 2 * .second)
    #expect(rig.status == "polling" && rig.fault == nil)
  }

  @Test func `an adapter without power is tried three times at its own baud rate`() {
    var rig = rig(adapter: 9600)
    rig.adapter.isMute = true
    rig.start(restored: stored("9600 serial:/dev/ttyUSB0"))
    rig.run(for: 6 * .second)
    #expect(rig.bauds == [9600] && rig.fault == AdapterSession.silentMessage)
    rig.run(for: 54 * .second)
    #expect(rig.heard("ATZ") == 3 && rig.resets.count == 1)
    #expect(rig.faults.count == 2 && rig.fault?.hasPrefix("no adapter responds at 9600, 38400, 230400, ") == true)
    // The same error is not reported again.
    rig.give(.linkChanged(.main, .down(rig.resets[0])))
    rig.connect()
    rig.run(for: 60 * .second)
    #expect(rig.faults.count == 2 && rig.resets.count == 2)
  }

  @Test func `an adapter that replied on this link is tried at no other baud rate`() {
    var rig = rig(adapter: 9600)
    rig.start()
    rig.run(for: 20 * .second)
    #expect(rig.status == "polling")
    rig.adapter.isMute = true
    rig.run(for: 120 * .second)
    #expect(rig.bauds == [9600] && rig.resets == [AdapterSession.silentMessage])
  }

  @Test func `a link that is never quiet at one baud rate is tried at the next`() {
    var rig = rig(adapter: 9600)
    rig.adapter.isMute = true
    rig.start()
    rig.run(for: 5100 * .millisecond)
    for _ in 0..<300 where rig.bauds.count < 2 {
      rig.hear("\u{7F}U")
      rig.run(for: 20 * .millisecond)
    }
    #expect(rig.bauds == [9600, 230_400] && rig.resets.isEmpty)
  }

  @Test func `a link that breaks meanwhile starts over`() {
    var rig = rig(adapter: 57600)
    rig.start()
    rig.run(for: 8 * .second)
    #expect(rig.bauds == [9600, 230_400])
    rig.give(.linkChanged(.main, .down("unplugged")))
    rig.run(for: 60 * .second)
    #expect(rig.bauds.count == 2)
    rig.connect()
    rig.run(for: 20 * .second)
    #expect(rig.bauds == [9600, 230_400, 9600, 230_400, 115_200, 57600] && rig.status == "polling")
    rig.give(.stopping)
    rig.run(for: 60 * .second)
    #expect(rig.bauds.count == 6)
  }

  @Test func `the kind passes its link`() throws {
    let machine = try Kind.obd.make(Setup(links: [.main: Self.link])) as? OBDMachine
    #expect(machine?.router.session.setups.baudRate.link == Self.link)
  }
}
