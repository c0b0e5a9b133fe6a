import Peers
import Protocols
import Testing

/// Setup of the simulated toy, with the flaws of the firmware.
@Suite struct ToyPeerTests {
  private static let ms = Nanoseconds.millisecond

  @Test func `setup matches the firmware byte for byte`() throws {
    var host = try ToyHost { $0.network = SimulatedWiFiNetwork("HomeNet", password: "pa:ss word") }
    #expect(host.led == .orange)
    host.run(for: 2 * .second)
    #expect(host.led == .white && host.sent.isEmpty)
    host.send("ok")
    #expect(host.sent == ["ok"])
    host.run(for: 1001 * Self.ms)
    let packet: [UInt8] = [
      0x31, 0x38, 0x3A, 0x48, 0x6F, 0x6D, 0x65, 0x4E, 0x65, 0x74, 0x3A, 0x70, 0x61, 0x3A, 0x73, 0x73, 0x20, 0x77, 0x6F, 0x72, 0x64,
    ]
    host.give(.received(ToyHost.phone, packet))
    #expect(host.isUp.isEmpty && host.closings.count == 1 && host.closings.first?.isReset == false)
    #expect(host.led == .pink && host.sent == ["ok"], "it closes the connection without a reply")
    host.run(for: 2999 * Self.ms)
    #expect(host.led == .pink)
    host.run(for: Self.ms)
    #expect(host.led == .green && host.machine.isOnline && host.logged("user \"18\", network \"HomeNet\", password \"pa:ss word\""))
    #expect(host.file("u.txt") == "18" && host.file("esp8266.txt") == "HomeNet\npa:ss word")
  }

  @Test func `it retries the connection every half second without end`() throws {
    var host = try ToyHost()
    host.phoneIsThere = false
    host.run(for: 62 * .second)
    #expect(host.dials.count == 121 && host.led == .white)
    #expect(zip(host.dials, host.dials.dropFirst()).allSatisfy { $1 - $0 == 500 * Self.ms })
    host.phoneIsThere = true
    host.run(for: .second)
    host.send("ok")
    #expect(host.sent == ["ok"])
  }

  @Test func `the first packet must arrive within two seconds`() throws {
    var early = try ToyHost.connected()
    early.run(for: 1999 * Self.ms)
    early.send("ok")
    #expect(early.sent == ["ok"])
    var late = try ToyHost.connected()
    late.run(for: 2000 * Self.ms)
    late.give(.received(ToyHost.phone, Array("ok".utf8)))
    #expect(late.sent.isEmpty && late.isUp.isEmpty)
    late.run(for: 150 * Self.ms)
    #expect(late.dials.count == 2 && late.isUp == [ToyHost.phone])
    var muted = try ToyHost.connected()
    muted.disconnect()
    muted.run(for: 1999 * Self.ms)
    #expect(muted.dials.count == 1, "it does not detect that the phone has closed")
    muted.run(for: 200 * Self.ms)
    #expect(muted.dials.count == 2)
  }

  @Test(arguments: ["OK", "ok\n", "o", "okok", "ok18:Home:password", ""]) func `a packet other than ok closes the connection`(
    _ packet: String
  ) throws {
    var host = try ToyHost.connected()
    host.send(packet)
    #expect(host.sent.isEmpty && host.isUp.isEmpty && host.logged("not ok"))
    host.run(for: 150 * Self.ms)
    #expect(host.isUp == [ToyHost.phone] && host.led == .white)
    host.send("Ok")
    #expect(host.logged("2 times so far"))
    host.run(for: 150 * Self.ms)
    host.send("ok")
    #expect(host.sent == ["ok"])
  }

  @Test func `credentials that arrive while it is busy are lost`() throws {
    for (wait, isReceived) in [(999, false), (1001, true)] {
      var host = try ToyHost.connected()
      host.send("ok")
      host.run(for: Nanoseconds(wait) * Self.ms)
      host.send("18:Home:password")
      #expect((host.led == .pink) == isReceived)
      #expect(host.logged("garbled and lost") != isReceived)
      host.run(for: 60 * .second)
      #expect((host.led == .green) == isReceived)
    }
  }

  @Test func `the credentials must arrive within 54464 ms`() throws {
    for (wait, isReceived) in [(54_463, true), (54_465, false)] {
      var host = try ToyHost.connected()
      host.send("ok")
      host.run(for: .second)
      host.run(for: Nanoseconds(wait) * Self.ms)
      #expect(host.isUp.isEmpty != isReceived)
      if isReceived { host.send("18:Home:password") } else { #expect(host.logged("the button must be pressed again")) }
      #expect(host.led == (isReceived ? .pink : .purple))
      host.run(for: 100 * .second)
      #expect(host.led == (isReceived ? .green : .purple) && host.dials.count == 1)
    }
    #expect(ToyTiming.real.credentials == 54_464 * Self.ms)
  }

  @Test func `another press of the button restarts the setup`() throws {
    var host = try ToyHost { $0.presses = [0, 10 * .second, 70 * .second] }
    host.run(for: 2 * .second)
    host.send("ok")
    host.run(for: 60 * .second)
    #expect(host.led == .purple && host.dials.count == 1, "the button is ignored in setup mode")
    host.run(for: 8 * .second)
    #expect(host.led == .white && host.dials.count == 2)
    host.provide("18:Home:password")
    #expect(host.led == .pink)
    var unpressed = try ToyHost { $0.presses = [] }
    unpressed.run(for: 60 * .second)
    #expect(unpressed.led == .purple && unpressed.dials.isEmpty && unpressed.machine.nextWake == nil)
  }

  @Test func `at most 128 bytes of a packet are read`() throws {
    for (length, isWhole) in [(128, true), (129, false)] {
      let password = String(repeating: "x", count: 62) + "!"
      let head = "18:\(String(repeating: "n", count: 32)):"
      let user = String(repeating: "1", count: length - head.utf8.count - password.utf8.count)
      var host = try ToyHost.connected { $0.network = SimulatedWiFiNetwork(String(repeating: "n", count: 32), password: password) }
      host.provide(user + head + password)
      #expect(host.logged("only the first 128 count") != isWhole)
      host.run(for: 10 * .second)
      #expect(host.led == (isWhole ? .green : .purple))
      #expect(host.file("u.txt") == user + "18")
    }
  }

  @Test func `later packets are ignored`() throws {
    var host = try ToyHost.connected("silent") { $0.network = SimulatedWiFiNetwork("Home", password: "password") }
    host.provide("18:Home:pass")
    host.send("word")
    #expect(host.logged("never read"))
    host.run(for: 10 * .second)
    #expect(host.led == .purple)
  }

  @Test(arguments: [
    ("18:Home:pass:word", "18", "Home", "pass:word"), ("18:Home:", "18", "Home", ""), (" 18: Home : pass ", " 18", " Home ", " pass "),
    ("18:password", "18", "password", "password"), ("password", "password", "password", "password"), ("::password", "", "", "password"),
    ("18:Wohnküche:password", "18", "Wohnküche", "password"), ("", "", "", ""),
  ]) func `fields are split at colons as by the firmware`(_ packet: String, _ user: String, _ network: String, _ password: String) throws {
    var host = try ToyHost.connected()
    host.provide(packet)
    #expect(host.logged("user \"\(user)\", network \"\(network)\", password \"\(password)\""))
  }

  @Test func `quotes, backslashes, commas and line breaks break the chip's command`() throws {
    for (packet, words) in [
      ("18:Ho\"me:password", "AT+CWJAP=\"Ho\"me\",\"password\""), ("18:Home:pass\\word", "AT+CWJAP=\"Home\",\"pass\\word\""),
      ("18:Ho,me:password", "AT+CWJAP=\"Ho,me\",\"password\""),
      ("18:Home:password\r\nAT+RST", "AT+CWJAP=\"Home\",\"password, and then AT+RST\""),
    ] {
      var host = try ToyHost.connected()
      host.provide(packet)
      #expect(host.logged("injected: the chip executes \(words)"))
      host.run(for: 9999 * Self.ms)
      #expect(host.led == .pink)
      host.run(for: Self.ms)
      #expect(host.led == .purple && host.file("esp8266.txt") == nil)
    }
  }

  @Test(arguments: [
    ("18:Home:password", ToyLED.green), ("18:home:password", .purple), ("18:Home:passwort", .purple), ("18:Home: password", .purple),
    ("18:Home:", .purple),
  ]) func `it joins only with the exact network name and password`(_ packet: String, _ led: ToyLED) throws {
    var host = try ToyHost.connected { $0.network = SimulatedWiFiNetwork("Home", password: "password") }
    host.provide(packet)
    host.run(for: 3 * .second)
    #expect(host.led == led)
  }

  @Test func `it joins an open network, and the length of names is counted in bytes`() throws {
    let name = String(repeating: "ü", count: 16)
    for (network, led) in [("Open", ToyLED.green), (name, .green), (name + "!", .purple)] {
      var host = try ToyHost.connected { $0.network = SimulatedWiFiNetwork(network) }
      host.provide("18:\(network):")
      host.run(for: 3 * .second)
      #expect(host.led == led, "\(network)")
    }
  }

  @Test func `a colon ends the network's name`() throws {
    var host = try ToyHost.connected { $0.network = SimulatedWiFiNetwork("Ho:me", password: "password") }
    host.provide("18:Ho:me:password")
    host.run(for: 3 * .second)
    #expect(host.led == .purple && host.logged("network \"Ho\", password \"me:password\""))
  }

  @Test func `joining fails with invalid credentials, or after ten seconds`() throws {
    for packet in ["18::password", "18:\(String(repeating: "n", count: 33)):password", "18:Home:seven77"] {
      var host = try ToyHost.connected()
      host.provide(packet)
      host.run(for: 10 * .second)
      #expect(host.led == .purple, "\(packet)")
    }
    for (seconds, led) in [(10, ToyLED.green), (11, .purple)] {
      var host = try ToyHost.connected { $0.joinsAfter = Nanoseconds(seconds) * .second }
      host.provide("18:Home:password")
      host.run(for: 10 * .second)
      #expect(host.led == led)
    }
  }

  @Test func `a new user takes effect after a power cycle`() throws {
    var host = try ToyHost(change: {
      $0.user = "3"
      $0.throwEvery = 20 * .second
    })
    host.run(for: 2 * .second)
    host.provide("18:Home:password")
    host.run(for: 23 * .second)
    #expect(host.requestTexts.first?.hasPrefix("GET /Trivia/3 ") == true && host.logged("switched off and on"))
    var again = try ToyHost(card: host.disk) {
      $0.presses = []
      $0.throwEvery = 20 * .second
    }
    again.run(for: 22 * .second)
    #expect(again.requestTexts.first?.hasPrefix("GET /Trivia/18 ") == true)
    var elsewhere = try ToyHost(card: host.disk) {
      $0.presses = []
      $0.network = SimulatedWiFiNetwork("Home", password: "another one")
    }
    elsewhere.run(for: 2 * .second)
    #expect(elsewhere.led == .purple && elsewhere.machine.user == "18")
  }

  @Test func `in the documented dialect it listens`() throws {
    var host = try ToyHost { $0.listensAt = "127.0.0.1:8080" }
    host.run(for: 60 * .second)
    #expect(host.isListening && host.dials.isEmpty && host.led == .white)
    host.connect()
    host.send("hello")
    #expect(host.isUp.isEmpty && host.isListening)
    host.connect()
    host.send("ok")
    host.run(for: 1001 * Self.ms)
    host.send("18:Home:password")
    #expect(host.sent == ["ok"] && !host.isListening && host.led == .pink)
  }
}
