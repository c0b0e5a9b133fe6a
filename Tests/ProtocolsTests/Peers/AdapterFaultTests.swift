// Every fault acts as described and at its time, and is reproducible with its seed.

import Peers
import Protocols
import Testing

@Suite("A fault of the simulated adapter")
struct AdapterFaultTests {
  @Test("is parsed from text")
  func parse() throws {
    #expect(try AdapterFault("garbage:10") == AdapterFault(.garbage, .every(10)))
    #expect(try AdapterFault("garbage") == AdapterFault(.garbage, .every(10)))
    #expect(try AdapterFault("lv-reset:@30") == AdapterFault(.lvReset, .after(30 * .second)))
    for text in ["latency:30", "latency"] { #expect(try AdapterFault(text) == AdapterFault(.latency, duration: 30 * .millisecond)) }
    #expect(try AdapterFault("hang:50:4000") == AdapterFault(.hang, .every(50), duration: 4 * .second))
    #expect(try AdapterFault("hang:50") == AdapterFault(.hang, .every(50)))
    #expect(try AdapterFault("echo") == AdapterFault(.echo))
    #expect(AdapterFault.table.count == AdapterFault.Kind.allCases.count)
  }

  @Test(
    "is rejected with a suggestion",
    arguments: [
      "", "bla", "latency:", "latency:0", "latency:-3", "latency:x", "latency:99999999999999999999", "garbage:0", "garbage:@",
      "garbage:@-1", "garbage:@0",
      "garbage:10:5", "echo:1", "hang:1:2:3", "hang::5", "split:@3", " echo", "echo:",
    ])
  func refuse(text: String) {
    let error = #expect(throws: ValueError.self) { try AdapterFault(text) }
    #expect(error?.description.contains(": ") == true && error?.description.contains("\n") == false)
  }

  @Test(
    "acts on every Nth reply",
    arguments: [
      ("no-data:3", "NO DATA\r\r>"), ("stopped:3", "STOPPED\r\r>"), ("can-error:3", "CAN ERROR\r\r>"),
    ])
  func replacement(fault: String, text: String) throws {
    var host = try VirtualHost.ready(fault)
    for turn in 1...9 {
      let reply = host.ask("2201019")
      #expect((reply == text) == (turn % 3 == 0))
      host.ask("ATI")
    }
  }

  @Test("with a start time acts once")
  func once() throws {
    var host = try VirtualHost.ready("no-data:@2")
    #expect(host.ask("2201019") != "NO DATA\r\r>")
    host.run(for: 2 * .second)
    #expect(host.ask("2201019") == "NO DATA\r\r>")
    #expect(host.ask("2201019") != "NO DATA\r\r>")
  }

  @Test("with a start time counts from the start of the drive, and does not act on a later adapter")
  func onceInARun() throws {
    for (pluggedIn, applies) in [(1, true), (2, true), (3, false)] as [(Nanoseconds, Bool)] {
      var host = try VirtualHost("no-data:@2", start: pluggedIn * .second)
      host.ask("ATE0")
      host.ask("ATSP6")
      if pluggedIn < 2 { #expect(host.ask("010D") == "41 0D 00 \r\r>") }
      host.run(for: 3500 * .millisecond - host.now)
      #expect((host.ask("010D") == "NO DATA\r\r>") == applies, "\(pluggedIn)")
      host.run(for: 10 * .second)
      #expect(host.ask("010D") != "NO DATA\r\r>", "once")
    }
  }

  @Test("latency delays replies")
  func latency() throws {
    var host = try VirtualHost.ready("latency:300")
    #expect(host.duration("2201019") == 318_500 * .microsecond)
    #expect(VirtualHost.message(in: host.ask("2201019"))?.count == 62)
  }

  @Test("lost-prompt omits only the prompt, and the adapter is ready")
  func lostPrompt() throws {
    var host = try VirtualHost.ready("lost-prompt:2")
    host.ask("2201019")
    let reply = host.ask("2201019")
    #expect(VirtualHost.message(in: reply)?.count == 62 && reply.hasSuffix("\r\r"))
    host.run(for: .second)
    #expect(host.ask("ATI") == "ELM327 v1.5\r\r>")
  }

  @Test("garbage is inserted into the reply, which is complete without it")
  func garbage() throws {
    var host = try VirtualHost.ready("garbage:2")
    for turn in 1...20 {
      host.send("2201019\r")
      host.run(for: .second)
      let bytes = host.printed()
      let noise = bytes.filter { $0 == 0 || $0 >= 0x80 }
      #expect(turn % 2 == 0 ? (1...6).contains(noise.count) : noise.isEmpty)
      #expect(bytes.last == 0x3E)
      #expect(VirtualHost.message(in: String(decoding: bytes.filter { $0 > 0 && $0 < 0x80 }, as: UTF8.self))?.count == 62)
    }
  }

  @Test("split sends the same bytes in small pieces with gaps")
  func split() throws {
    var host = try VirtualHost.ready("split:3")
    host.send("2201019\r")
    host.run(for: .second)
    #expect(host.sends.count > 20)
    #expect(host.sends.allSatisfy { (1...60).contains($0.bytes.count) })
    #expect(VirtualHost.message(in: host.text())?.count == 62)
  }

  @Test("echo acknowledges ATE0 and continues to echo")
  func echo() throws {
    var host = try VirtualHost("echo")
    #expect(host.ask("ATE0") == "ATE0\rOK\r\r>")
    #expect(host.ask("ATI") == "ATI\rELM327 v1.5\r\r>")
  }

  @Test("lv-reset loses all settings")
  func lvReset() throws {
    var host = try VirtualHost.ready("lv-reset:1")
    #expect(host.ask("220101") == "LV RESET\r\r>")
    #expect(host.ask("ATI") == "ATI\rELM327 v1.5\r\r>")
  }

  @Test("hang ignores input for its time, or for ever")
  func hang() throws {
    var host = try VirtualHost.ready("hang:2:4000")
    host.ask("2201019")
    host.send("2201019\r")
    host.run(for: 3_999 * .millisecond)
    host.send(" ATI\r")
    #expect(host.text() == "" && host.machine.nextWake == nil)
    host.run(for: .millisecond)
    #expect(host.ask("ATI") == "ELM327 v1.5\r\r>")
    host = try VirtualHost.ready("hang:1")
    host.send("2201019\r")
    host.run(for: 1_000_000 * .second)
    host.send("ATZ\r")
    host.run(for: 10 * .second)
    #expect(host.text() == "")
    host.give(.linkChanged(.main, .down("unplugged")))
    host.give(.linkChanged(.main, .up(maximumSend: nil)))
    #expect(host.ask("ATI") == "ATI\rELM327 v1.5\r\r>", "a power cycle resets it")
  }

  @Test("disconnect ends the link after half a reply")
  func disconnect() throws {
    var host = try VirtualHost.ready("disconnect:1")
    host.send("2201019\r")
    host.run(for: .second)
    #expect(!host.resets.isEmpty)
    #expect(host.text().utf8.count == 91)
    host.send("ATI\r")
    #expect(host.text() == "", "there is no adapter")
  }

  @Test("no-count answers a counted request with ?")
  func noCount() throws {
    var host = try VirtualHost.ready("no-count")
    #expect(host.ask("2201019") == "?\r\r>")
    #expect(VirtualHost.message(in: host.ask("220101"))?.count == 62)
  }

  @Test("clone rejects commands as poor clones do, and works without them")
  func clone() throws {
    var host = try VirtualHost("clone", chip: .stn)
    host.ask("ATE0")
    host.ask("ATSP6")
    for command in ["ATS0", "ATH1", "ATCRA7EC", "ATCRA", "STI"] { #expect(host.ask(command) == "?\r\r>") }
    #expect(host.ask("010D") == "41 0D 00 \r\r>")
  }

  @Test("babble sends bytes without end and without a prompt")
  func noiseBurst() throws {
    var host = try VirtualHost.ready("babble:1")
    host.send("220101\r")
    host.run(for: 10 * .second)
    host.send("ATZ\r")
    host.run(for: .second)
    let bytes = host.printed()
    #expect(bytes.count > 1_000_000 && !bytes.contains(0x3E))
  }

  @Test("is the same with the same seed, and different with another")
  func determinism() throws {
    func session(_ seed: UInt64) throws -> [UInt8] {
      var host = try VirtualHost.ready("garbage:2", "split", "lost-prompt:7", seed: seed)
      for _ in 0..<50 {
        host.send("2201019\r")
        host.run(for: 100 * .millisecond)
      }
      return host.printed()
    }
    #expect(try session(7) == session(7))
    #expect(try session(7) != session(8))
  }

  @Test("does not make the adapter crash on random bytes", arguments: 1...20 as ClosedRange<UInt64>)
  func hostile(seed: UInt64) throws {
    var host = try VirtualHost("garbage:3", "split", "lost-prompt:5", "lv-reset:11", "hang:17:50", seed: seed)
    var state = seed
    for _ in 0..<3_000 {
      state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
      let words = [
        "ATSH", "ATCRA", "ATFCSD", "220101", "0100", "\r", "\r", "X", "9", "AT", "ATSP", "ATZ", "CAF0", "\u{FF}", "ATFCSM1", "02", "ST",
      ]
      host.send(words[Int(state >> 33) % words.count])
      if state >> 60 == 0 { host.run(for: Nanoseconds(state >> 40)) }
      _ = host.printed()
    }
    host.run(for: 10 * .second)
    host.send("\rATZ\r")
    host.run(for: .second)
    #expect(host.text().hasSuffix(">"))
  }
}
