// Each quirk of poor adapters, and each fault of replies, by name.

import Peers
import Protocols
import Testing

@Suite("A quirk of the simulated adapter")
struct AdapterQuirkTests {
  private let record = "2201019"

  @Test(
    "is an unknown command, or one without effect",
    arguments: [
      ("no-adaptive", "ATAT2", "?"), ("no-masks", "ATCRA7EX", "?"), ("no-masks", "ATCM7FF", "?"), ("no-masks", "ATCF7E8", "?"),
      ("no-masks", "ATCRA7EC", "OK"), ("no-masks", "ATCFC1", "OK"), ("no-flow-control", "ATFCSH7E4", "?"),
      ("no-flow-control", "ATCFC0", "?"),
      ("no-long", "ATAL", "?"), ("no-memory", "ATM0", "?"), ("fixed-monitor", "ATCSM1", "?"), ("ignore-headers", "ATH1", "OK"),
      ("ignore-spaces", "ATS0", "OK"), ("ignore-filter", "ATCRA7E8", "OK"), ("ignore-filter", "ATCM7FF", "OK"),
      ("ignore-timing", "ATST01", "OK"), ("ignore-timing", "ATAT0", "OK"), ("false-version", "ATI", "ELM327 v2.1"),
      ("no-repeat", "", "?"),
    ])
  func command(fault: String, command: String, answer: String) throws {
    var host = try VirtualHost.open(ElectricCar(), fault)
    #expect(host.ask(command) == answer + "\r\r>")
  }

  @Test func `accepted commands without effect`() throws {
    var host = try VirtualHost.ready("ignore-headers", "ignore-spaces")
    #expect(host.ask(record).hasPrefix("03E\r0: 62 01 01 "))
    host = try VirtualHost.ready("ignore-filter", "ignore-timing")
    host.ask("ATCRA7E8")
    host.ask("ATAT2")
    host.ask("ATST01")
    #expect(VirtualHost.message(in: host.ask("220101"))?.count == 62)
    #expect(host.duration("220101") == 46_500 * .microsecond)
  }

  @Test("false-version and noisy-banner: V11's banner")
  func banner() throws {
    var host = try VirtualHost("noisy-banner")
    host.send("ATZ\r")
    host.run(for: .second)
    #expect(host.printed() == Array("ATZ\r".utf8) + [0xFC] + Array("\r\rELM327 v1.5\r\r>".utf8))
    host = try VirtualHost("false-version")
    #expect(host.ask("ATZ") == "ATZ\r\r\rELM327 v2.1\r\r>")
  }

  @Test("no-lf-cr loses every line end: V6's form")
  func lineEnds() throws {
    var host = try VirtualHost.open(ElectricCar(), "no-lf-cr", after: ["ATE0", "ATS0", "ATSH7E4"])
    #expect(host.ask("ATI") == "ELM327 v1.5>")
    let reply = host.ask("220101")
    #expect(reply.hasPrefix("03E0:620101EFFBE71:") && reply.hasSuffix(">") && !reply.contains("\r"))
  }

  @Test("odd-lf answers LF, tpa0-lockup and once-only stop responding")
  func oddities() throws {
    var host = try VirtualHost.ready("odd-lf", "tpa0-lockup")
    host.send("\n")
    #expect(host.text() == "?\r\r>")
    host.send("ATTPA0\r")
    host.run(for: 60 * .second)
    host.send("ATZ\r")
    host.run(for: 60 * .second)
    #expect(host.text() == "")
    host = try VirtualHost("once-only")
    #expect(host.ask("ATI") == "ATI\rELM327 v1.5\r\r>")
    host.give(.linkChanged(.main, .down("out of reach")))
    host.give(.linkChanged(.main, .up(maximumSend: nil)))
    host.send("ATI\r")
    host.run(for: 10 * .second)
    #expect(host.text() == "")
  }

  @Test("late-prompt delays the prompt after its reply")
  func latePrompt() throws {
    var host = try VirtualHost.ready("late-prompt:80")
    host.send("ATI\r")
    host.run(for: 79 * .millisecond)
    #expect(host.text() == "ELM327 v1.5\r\r")
    host.run(for: .millisecond)
    #expect(host.text() == ">")
    #expect(host.duration(record) == 98_500 * .microsecond)
  }

  @Test("wrong-count reads a frame count as one less")
  func wrongCount() throws {
    var host = try VirtualHost.ready("wrong-count")
    #expect(host.lines(record).count == 8)
    #expect(VirtualHost.message(in: host.ask("220101A"))?.count == 62)
  }

  @Test("nrc answers with its negative response code, and is parsed from text")
  func refusal() throws {
    #expect(try AdapterFault("nrc:22") == AdapterFault(.negativeResponse, .every(10), code: 0x22))
    #expect(try AdapterFault("nrc:7f:3") == AdapterFault(.negativeResponse, .every(3), code: 0x7F))
    for text in ["nrc", "nrc:", "nrc:2", "nrc:zz", "nrc:222", "nrc:22:0", "nrc:22:1:1", "nrc:+2"] {
      #expect(throws: ValueError.self) { try AdapterFault(text) }
    }
    var host = try VirtualHost.ready("nrc:22:2")
    #expect(host.lines(record).count == 9)
    #expect(host.lines("220101") == ["7EC037F2222AAAAAAAA"])
  }

  @Test("nrc-78 answers later: within a long timeout, before the reply to the next request, or never")
  func pending() throws {
    var host = try VirtualHost.ready("nrc-78:2")
    host.ask("ATAT0")
    host.ask("ATSTFF")
    #expect(host.lines("220101").count == 9)
    let lines = host.lines("220101")
    #expect(lines.first == "7EC037F2278AAAAAAAA" && lines.count == 10)
    host = try VirtualHost.ready("nrc-78:2")
    host.ask("220101")
    #expect(host.lines("220101") == ["7EC037F2278AAAAAAAA"])
    host.ask("ATSH7E6")
    host.run(for: 200 * .millisecond)
    #expect(host.lines("220101").count == 9, "the reply comes while the adapter listens for another")
    host = try VirtualHost.ready("nrc-78:2:500")
    host.ask("220101")
    #expect(host.lines("220101").count == 1)
    host.run(for: .second)
    #expect(host.lines("220101").count == 9, "only its own frames")
  }

  @Test("interleave puts another ECU's frames between those of the reply")
  func interleave() throws {
    var host = try VirtualHost.ready("interleave:1")
    let lines = host.lines("220101")
    #expect(lines.count == 18)
    #expect(lines.map { String($0.prefix(3)) } == (0..<9).flatMap { _ in ["7EC", "7E8"] })
    host.ask("ATCRA7EC")
    #expect(VirtualHost.message(in: host.ask("220101"))?.count == 62, "a filter helps")
    host.ask("ATCRA")
    host.ask("ATH0")
    #expect(host.lines("220101").count { $0 == "03E" } == 2)
  }

  @Test("stale delays a reply to the next one")
  func stale() throws {
    var host = try VirtualHost.open(ElectricCar(), "stale:2")
    host.ask("ATSH7E0")
    #expect(host.lines("010D") == ["7E803410D00AAAAAAAA"])
    #expect(host.ask("010C") == "NO DATA\r\r>")
    #expect(host.lines("010D") == ["7E804410C0000AAAAAA", "7E803410D00AAAAAAAA"])
    #expect(host.ask("010D") == "NO DATA\r\r>")
  }

  @Test("buffer-full cuts a reply off inside a frame with a message, and silent-overrun without one")
  func overflow() throws {
    var host = try VirtualHost.ready("buffer-full:2")
    let whole = host.ask("220101")
    let reply = host.ask("220101")
    #expect(reply.hasSuffix("BUFFER FULL\r\r>") && !reply.hasSuffix("\rBUFFER FULL\r\r>"))
    #expect(whole.hasPrefix(reply.dropLast(14)) && reply.utf8.count > 80)
    host = try VirtualHost.ready("silent-overrun:1")
    let torn = host.lines("220101")
    #expect(torn.count == 6 && torn.last.map { $0.count < 19 } == true)
  }

  @Test("vendor-text precedes the reply")
  func vendorText() throws {
    var host = try VirtualHost.ready("vendor-text:1")
    #expect(host.lines("220101").first == "VENDOR MODE" && host.lines("220101").count == 10)
  }

  @Test("has its own name and help")
  func table() throws {
    #expect(Set(AdapterFault.table.map(\.help)).count == AdapterFault.Kind.allCases.count)
    for (form, _) in AdapterFault.table {
      let name = String(form.prefix { $0 != "[" }).replacing(":CODE", with: ":10")
      #expect(try AdapterFault(name).kind.syntax == form)
    }
  }
}
