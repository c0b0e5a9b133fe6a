// Wi-Fi setup of the toy, with the simulated toy and its faults, and with other peers that connect to the port.

import Peers
import Testing

@testable import Protocols

@Suite struct ToyWifiTests {
  private static let home: [String: Value] = ["ssid": .string("HomeNet"), "password": .string("pa:ss word")]

  private static func rig(_ faults: String..., press: Nanoseconds = 5 * .second) throws -> ToyRig {
    var rig = try ToyRig.loggedIn()
    var settings = SimulatedToySettings(phone: "tcp:192.168.4.2:8080", server: "tcp:10.0.0.1:80")
    settings.presses = [press]
    settings.network = SimulatedWiFiNetwork("HomeNet", password: "pa:ss word")
    settings.faults = try faults.map { try ToyFault($0) }
    rig.toy = TriviaToy(settings)
    rig.giveToy(.started(restored: [:], wall: WallTime(microseconds: 0)))
    return rig
  }

  @Test func `the toy joins, and the port is closed afterwards`() throws {
    var rig = try Self.rig()
    let id = rig.run("wifi", Self.home)
    #expect(rig.isListening && rig.status == "setting-up" && rig.text("wifi-setup") == "listening")
    rig.run(for: 60 * .second)
    let report = try #require(rig.report(id))
    #expect(
      report.text?.contains("green: connected, purple: failed. Then switch the toy off and on: it plays for user 18 only after that")
        == true)
    #expect(rig.toy?.led == .green && !rig.isListening && !rig.isConnected && rig.text("wifi-setup") == "sent" && rig.status == "ready")
    #expect(rig.sends.map(\.text) == ["ok", "18:HomeNet:pa:ss word"] && rig.sends.map(\.secret) == [false, true])
    #expect(rig.sends[1].at - rig.sends[0].at >= .second, "the toy ignores bytes for a moment")
    let progress = try #require(rig.progress[id])
    #expect(progress.count >= 8 && progress.allSatisfy { $0.progress != nil })
    let texts = progress.compactMap(\.text).map { String($0.prefix(24)) }.reduce(into: [String]()) { if $0.last != $1 { $0.append($1) } }
    let expected = ["300 s left to press", "a peer has connected", "the toy is ready", "sending the credentials"]
    #expect(texts.count == 4 && zip(texts, expected).allSatisfy { $0.hasPrefix($1) }, "\(texts)")
    #expect(!rig.output.contains { $0.contains("pa:ss word") } && !"\(rig.machine)".contains("pa:ss"))
    rig.run(for: 600 * .second)
    #expect(rig.results[id]?.count == 1 && rig.machine.nextWake == nil)
  }

  @Test(arguments: ["split", "redial:1", "early:1", "yes", "no", "silent", "reset"])
  func `the credentials are sent once despite every fault of the toy`(
    _ fault: String
  ) throws {
    var rig = try Self.rig(fault)
    let id = rig.run("wifi", Self.home)
    rig.run(for: 120 * .second)
    #expect(rig.report(id)?.text?.hasPrefix("sent; check the toy's LED") == true, "\(rig.refusal(id)) \(rig.notes)")
    #expect(rig.sends.filter(\.secret).count == 1 && !rig.isListening)
    if ["yes", "no"].contains(fault) { #expect(rig.notes.contains { $0.contains("from the toy") && $0.hasSuffix(fault) }) }
  }

  @Test func `a network that the toy cannot join is sent like any other`() throws {
    var rig = try Self.rig()
    let id = rig.run("wifi", ["ssid": .string("Nachbar, 5"), "password": .string("12345678")])
    rig.run(for: 60 * .second)
    #expect(rig.report(id)?.text?.contains("comma in the name:") == true && rig.toy?.led == .purple)
  }

  @Test func `only ok is accepted, in one piece or in two`() throws {
    var rig = try ToyRig.loggedIn()
    let id = rig.run("wifi", ["ssid": .string("Café")])
    rig.connect()
    #expect(rig.sends.map(\.text) == ["ok"])
    rig.send("o")
    rig.run(for: 5 * .second)
    rig.send("k")
    rig.run(for: 1199 * .millisecond)
    #expect(rig.sends.count == 1 && rig.text("wifi-setup") == "settling")
    rig.run(for: 2 * .millisecond)
    #expect(rig.sends.last?.text == "18:Café:" && rig.sends.last?.secret == true)
    rig.run(for: 14 * .second)
    #expect(rig.results[id] == nil)
    rig.run(for: .second)
    #expect(rig.report(id) != nil, "the toy accepts the credentials without a reply")
  }

  @Test(arguments: ["ok\n", "OK", "okok", "no", "\0", String(repeating: "o", count: 5000)])
  func `a peer that does not reply ok is disconnected after a timeout, and the next one is served`(_ text: String) throws {
    var rig = try ToyRig.loggedIn()
    let id = rig.run("wifi", Self.home)
    rig.connect()
    rig.send(text)
    rig.run(for: 9 * .second)
    #expect(rig.isConnected && rig.sends.count == 1)
    rig.run(for: 2 * .second)
    #expect(!rig.isConnected && rig.isListening && rig.results[id] == nil && rig.text("wifi-setup") == "listening")
    rig.connect()
    rig.send("ok")
    rig.run(for: 2 * .second)
    #expect(rig.sends.last?.secret == true && rig.notes.allSatisfy { $0.utf8.count < 300 })
    rig.disconnect("gone")
    #expect(rig.report(id) != nil)
  }

  @Test func `a peer that disconnects does not end the setup`() throws {
    var rig = try ToyRig.loggedIn()
    let id = rig.run("wifi", Self.home)
    for _ in 0..<50 {
      rig.connect()
      rig.disconnect("gone")
      #expect(rig.results[id] == nil)
    }
    rig.run(for: 2 * .second)
    #expect(rig.progress[id]?.last?.text?.hasSuffix("; disconnected 50 times") == true)
    rig.connect()
    for _ in 0..<1000 { rig.send("spam") }
    #expect(rig.notes.count == 1, "one note per connection")
    rig.disconnect("gone")
    rig.connect()
    rig.send("ok")
    rig.run(for: 2 * .second)
    #expect(rig.sends.last?.secret == true)
    rig.cancel(id)
    #expect(rig.text("wifi-setup") == "sent", "the credentials were sent before the command was cancelled")
  }

  @Test func `the setup fails if no toy connects within five minutes`() throws {
    var rig = try ToyRig.loggedIn()
    let id = rig.run("wifi", Self.home)
    rig.run(for: 299 * .second)
    #expect(rig.results[id] == nil && (rig.progress[id]?.count ?? 0) >= 299)
    rig.run(for: 2 * .second)
    #expect(rig.code(id) == "no-toy" && !rig.isListening && rig.text("wifi-setup") == "idle")
  }

  @Test func `an interrupt closes the port`() throws {
    var rig = try ToyRig.loggedIn()
    let first = rig.run("wifi", Self.home)
    #expect(rig.code(rig.run("wifi", Self.home)) == "busy", "only one setup can run")
    rig.connect()
    rig.cancel(first)
    #expect(!rig.isListening && !rig.isConnected && rig.text("wifi-setup") == "idle" && rig.results[first] == nil)
    let second = rig.run("wifi", Self.home)
    #expect(rig.isListening)
    rig.give(.stopping)
    #expect(!rig.isListening && rig.code(second) == "not-connected" && rig.hasStopped)
  }

  @Test func `a port in use is reported with its owner`() throws {
    var rig = try ToyRig.loggedIn()
    rig.listenFailure = "port 8080 is in use by python3 (process 7): stop it first"
    let id = rig.run("wifi", Self.home)
    #expect(rig.code(id) == "cannot-listen" && rig.refusal(id).contains("python3 (process 7)") && rig.text("wifi-setup") == "idle")
  }

  @Test func `a rejected peer is reported in the progress`() throws {
    var rig = try ToyRig.loggedIn()
    let id = rig.run("wifi", Self.home)
    rig.give(.linkChanged("toy", .refused("192.168.1.9, which is not in 192.168.4.0/24")))
    rig.run(for: 2 * .second)
    #expect(
      rig.progress[id]?.last { $0.text != nil }?.text?.hasSuffix("rejected 192.168.1.9, which is not in 192.168.4.0/24: check toy-network")
        == true)
    #expect(rig.isListening && rig.outcome(id) == nil)
  }

  @Test func `with an address, the machine connects to the toy`() throws {
    var rig = try ToyRig.loggedIn()
    let id = rig.run("wifi", Self.home.merging(["dial": .string("192.168.4.1")]) { $1 })
    #expect(rig.openedURL == "tcp:192.168.4.1:8080" && !rig.isListening)
    rig.give(.linkChanged("toy", .down("cannot reach 192.168.4.1:8080: connection refused")))
    rig.run(for: 2 * .second)
    #expect(
      rig.progress[id]?.last { $0.text != nil }?.text
        == "connecting to the toy at 192.168.4.1:8080: cannot reach 192.168.4.1:8080: connection refused, 300 s left")
    rig.connect()
    rig.send("ok")
    rig.run(for: 2 * .second)
    rig.disconnect("gone")
    #expect(rig.report(id)?.text?.hasPrefix("sent") == true && rig.openedURL == nil)
    for wrong in [
      "", "a b", "http://x", "host", "::::", "192.168.4.1:0", "192.168.4.1:99999", ":8080", "192.168.4.1:1:2", "192.168.5.1", "8.8.8.8",
    ] {
      #expect(rig.code(rig.run("wifi", Self.home.merging(["dial": .string(wrong)]) { $1 })) == "dial")
    }
  }

  @Test(arguments: [
    ("", "12345678", "ssid"), ("a:b", "12345678", "ssid"), ("a\"b", "12345678", "ssid"), ("a\\b", "", "ssid"), ("a\r", "", "ssid"),
    (String(repeating: "x", count: 33), "", "ssid"), (String(repeating: "é", count: 17), "", "ssid"), ("HomeNet", "1234567", "password"),
    ("HomeNet", String(repeating: "x", count: 64), "password"), ("HomeNet", "1234\"5678", "password"),
    ("HomeNet", "1234\\5678", "password"),
    ("HomeNet", "1234\n5678", "password"), ("HomeNet", "1234\u{0}5678", "password"), ("H\u{FFFD}", "12345678", "ssid"),
  ]) func `credentials that the toy cannot handle are rejected at once`(_ ssid: String, _ password: String, _ argument: String)
    throws
  {
    var rig = try ToyRig.loggedIn()
    let id = rig.run("wifi", ["ssid": .string(ssid), "password": .string(password)])
    #expect(rig.code(id) == argument && !rig.isListening && !rig.refusal(id).contains("5678"))
  }

  @Test func `allowed credentials are sent byte for byte`() throws {
    let longest = try ToyCredentials(user: 18, ssid: String(repeating: "é", count: 16), password: String(repeating: "x", count: 63))
    #expect(longest.bytes.count == 99)
    #expect(try ToyCredentials(user: 18, ssid: "HomeNet", password: "pa:ss word").bytes == Array("18:HomeNet:pa:ss word".utf8))
    #expect(
      try ToyCredentials(user: .max, ssid: String(repeating: "x", count: 32), password: String(repeating: "y", count: 63)).bytes.count
        <= 128)
    #expect(try ToyCredentials(user: 1, ssid: " a ", password: "").bytes == Array("1: a :".utf8))
  }

  @Test func `setup requires a login`() throws {
    var rig = try ToyRig()
    rig.start()
    #expect(rig.code(rig.run("wifi", Self.home)) == "needs-login" && !rig.isListening)
  }
}
