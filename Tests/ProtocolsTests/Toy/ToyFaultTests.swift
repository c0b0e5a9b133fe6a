import Protocols
import Testing

@testable import Peers

/// The faults of the simulated toy, each on its own.
@Suite struct ToyFaultTests {
  @Test func `redial closes the connection after the ok three times`() throws {
    var host = try ToyHost.connected("redial")
    for round in 1...3 {
      host.send("ok")
      #expect(host.sent.count == round && host.isUp.isEmpty)
      host.run(for: 150 * .millisecond)
    }
    host.provide("18:Home:password")
    #expect(host.sent == ["ok", "ok", "ok", "ok"] && host.led == .pink && host.dials.count == 4)
  }

  @Test func `early closes the connection before the ok`() throws {
    var host = try ToyHost.connected("early")
    host.send("ok")
    #expect(host.sent.isEmpty && host.isUp.isEmpty)
    host.run(for: 150 * .millisecond)
    host.provide("18:Home:password")
    #expect(host.sent == ["ok"] && host.led == .pink)
  }

  @Test func `mute connects and sends nothing`() throws {
    var host = try ToyHost.connected("mute:2")
    for _ in 1...2 {
      host.send("ok")
      host.run(for: 60 * .second)
      #expect(host.sent.isEmpty && host.isUp == [ToyHost.phone])
      host.disconnect()
      host.run(for: 150 * .millisecond)
    }
    host.provide("18:Home:password")
    #expect(host.led == .pink)
    var later = try ToyHost.connected("mute:@1")
    later.send("ok")
    #expect(later.sent.isEmpty)
    later.disconnect()
    later.run(for: 150 * .millisecond)
    later.send("ok")
    #expect(later.sent == ["ok"], "only once after the start time")
  }

  @Test func `split sends the ok in two segments`() throws {
    var host = try ToyHost.connected("split")
    host.send("ok")
    #expect(host.sent == ["o"])
    host.run(for: 100 * .millisecond)
    #expect(host.sent == ["o", "k"])
    host.run(for: 1001 * .millisecond)
    host.send("18:Home:password")
    #expect(host.led == .pink)
  }

  @Test(arguments: [("newline", ["ok\n"]), ("yes", ["ok", "yes"]), ("no", ["ok", "no"]), ("silent", ["ok"]), ("reset", ["ok"])])
  func `other faults change its messages and how it disconnects`(_ fault: String, _ sent: [String]) throws {
    var host = try ToyHost.connected(fault)
    host.provide("18:Home:password")
    #expect(host.sent == sent && host.led == .pink)
    #expect(host.isUp.isEmpty == (fault != "silent"))
    #expect(host.closings.first?.isReset == (fault == "silent" ? nil : fault == "reset"))
    host.run(for: 10 * .second)
    #expect(host.led == .green)
  }

  @Test(arguments: 1...20) func `random bytes on both connections do not crash the toy`(_ seed: Int) throws {
    var random = SeededRandom(seed: UInt64(seed))
    let pieces = ["ok", "18:Home:password", ":", "\"", "HTTP/1.1 200 OK\r\n\r\n\"A\"", "\r\n", "\u{0}ü"]
    let faults = ToyFaultKind.allCases.filter { _ in Int.random(in: 0..<9, using: &random) == 0 }.map(\.rawValue)
    var host = try ToyHost(faults: faults) {
      $0.presses = (0..<20).map { Nanoseconds($0) * 40 * .second }
      $0.throwEvery = 7 * .second
      $0.listensAt = seed.isMultiple(of: 4) ? "127.0.0.1:8080" : nil
    }
    for _ in 0..<500 {
      let text = (0..<Int.random(in: 0...3, using: &random)).map { _ in pieces.randomElement(using: &random) ?? "" }.joined()
      let isThere = Int.random(in: 0..<4, using: &random) > 0
      (host.phoneIsThere, host.serverIsThere) = (isThere, isThere)
      host.answer = { _ in isThere ? text : nil }
      if host.isListening, host.isUp.isEmpty { host.connect() }
      if host.isUp.contains(ToyHost.phone) { host.send(text) }
      if host.isUp.contains(ToyHost.phone), !isThere { host.disconnect() }
      host.give(.sent(UInt32.random(in: 0...9, using: &random), failure: nil))
      host.run(for: Nanoseconds.random(in: 0...4 * .second, using: &random))
    }
    #expect(host.events.count > 20)
  }

  @Test func `faults are parsed, or rejected with a message`() throws {
    for (form, _) in ToyFault.table {
      let name = form.split(separator: "[")[0]
      #expect(try ToyFault(String(name)).kind.rawValue == String(name))
    }
    #expect(try ToyFault("redial:5") == ToyFault(.redial, .every(5)))
    for wrong in ["", "x", "redial:0", "early:@0", "mute:1:2", "split:1", "reset:"] {
      #expect(throws: ValueError.self, "\(wrong)") { _ = try ToyFault(wrong) }
    }
  }
}
