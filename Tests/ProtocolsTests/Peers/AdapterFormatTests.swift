// What the simulated adapter prints, byte for byte.

import Peers
import Protocols
import Testing

@Suite("The simulated adapter prints")
struct AdapterFormatTests {
  @Test("a short reply in every setting")
  func shortReply() throws {
    var host = try VirtualHost()
    host.ask("ATSP6")
    #expect(host.ask("0100") == "0100\r41 00 08 18 00 01 \r\r>")
    host.ask("ATE0")
    #expect(host.ask("0100") == "41 00 08 18 00 01 \r\r>")
    host.ask("ATS0")
    #expect(host.ask("0100") == "410008180001\r\r>")
    host.ask("ATL1")
    #expect(host.ask("0100") == "410008180001\r\n\r\n>")
    host.ask("ATH1")
    #expect(host.ask("0100") == "7E806410008180001AA\r\n\r\n>")
    host.ask("ATS1")
    host.ask("ATL0")
    #expect(host.ask("0100") == "7E8 06 41 00 08 18 00 01 AA \r\r>")
    host.ask("ATD1")
    #expect(host.ask("0100") == "7E8 8 06 41 00 08 18 00 01 AA \r\r>")
    host.ask("ATD0")
    host.ask("ATH0")
    host.ask("ATCAF0")
    #expect(host.ask("020100") == "06 41 00 08 18 00 01 AA \r\r>")
  }

  @Test("a long reply in every setting")
  func longReply() throws {
    var host = try VirtualHost()
    host.ask("ATE0")
    host.ask("ATSP6")
    let vin = "\r0: 49 02 01 4B 4E 41 \r1: 43 33 38 31 41 56 4E \r2: 35 30 30 30 30 34 32 \r\r>"
    #expect(host.ask("0902") == "014" + vin)
    host.ask("ATS0")
    #expect(host.ask("0902") == "014\r0:4902014B4E41\r1:4333383141564E\r2:35303030303432\r\r>")
    host.ask("ATH1")
    #expect(host.ask("0902") == "7E810144902014B4E41\r7E8214333383141564E\r7E82235303030303432\r\r>")
    host.ask("ATS1")
    #expect(host.ask("0902") == "7E8 10 14 49 02 01 4B 4E 41 \r7E8 21 43 33 38 31 41 56 4E \r7E8 22 35 30 30 30 30 34 32 \r\r>")
    host.ask("ATCFC0")
    #expect(host.ask("0902") == "7E8 10 14 49 02 01 4B 4E 41 \r\r>", "no flow control frame was sent")
  }

  @Test("messages of 62 and 61 bytes in nine lines of padded frames")
  func batteryRecords() throws {
    for (car, request, head, length) in [
      (ElectricCar.Model.eGMP, "220101", [0x62, 0x01, 0x01] as [UInt8], 62), (.ioniq28, "2101", [0x61, 0x01], 61),
    ] {
      var host = try VirtualHost.ready(car: ElectricCar(car))
      let reply = host.ask(request)
      #expect(reply.split(separator: "\r").filter { $0.hasPrefix("7EC") }.count == 9)
      #expect(VirtualHost.message(in: reply)?.count == length)
      #expect(VirtualHost.message(in: reply)?.starts(with: head) == true)
      host.ask("ATH0")
      let lines = host.ask(request).split(separator: "\r")
      #expect(lines.map { $0.prefix(2) } == [length == 62 ? "03" : "03", "0:", "1:", "2:", "3:", "4:", "5:", "6:", "7:", "8:", ">"])
      #expect(lines.first == (length == 62 ? "03E" : "03D"))
      #expect(lines.last == ">" && lines[9].count == 16)
    }
  }

  @Test("the banner after ATZ with the echo on again, and defaults after ATD and ATWS")
  func reset() throws {
    var host = try VirtualHost()
    #expect(host.ask("ATE0") == "ATE0\rOK\r\r>")
    host.ask("ATH1")
    #expect(host.ask("ATZ") == "\r\rELM327 v1.5\r\r>")
    #expect(host.ask("ATI") == "ATI\rELM327 v1.5\r\r>")
    host.ask("ATE0")
    #expect(host.ask("ATWS") == "\r\rELM327 v1.5\r\r>")
    host.ask("ATE0")
    #expect(host.ask("ATD") == "OK\r\r>")
    #expect(host.ask("at @ 1") == "at @ 1\rOBDII to RS232 Interpreter\r\r>", "spaces and case do not matter")
  }

  @Test(
    "OK or ? to settings, and ? to unknown commands",
    arguments: [
      ("ATL0", "OK"), ("ATM0", "OK"), ("ATAT2", "OK"), ("ATST32", "OK"), ("ATAL", "OK"), ("ATAR", "OK"), ("ATCAF1", "OK"), ("ATCFC1", "OK"),
      ("ATTP6", "OK"), ("ATSPA6", "OK"), ("ATSH0007E4", "OK"), ("ATCRA7EX", "OK"), ("ATCRA", "OK"), ("ATFCSH7E4", "OK"),
      ("ATFCSD300000", "OK"),
      ("ATFCSM0", "OK"), ("ATRV", "14.4V"), ("ATDP", "AUTO"), ("ATDPN", "A0"), ("ATFCSM1", "?"), ("ATSH7E", "?"), ("ATSP", "?"),
      ("ATSPX", "?"),
      ("ATAT3", "?"), ("ATST", "?"), ("ATSTGG", "?"), ("ATCRAX", "?"), ("ATFCSD3", "?"), ("ATFOO", "?"), ("AT", "?"), ("STI", "?"),
      ("HELLO", "?"),
      ("1", "?"), ("0102030405060708", "?"), (String(repeating: "A", count: 10_000), "?"),
    ])
  func answers(command: String, answer: String) throws {
    var host = try VirtualHost()
    host.ask("ATE0")
    #expect(host.ask(command) == "\(answer)\r\r>")
  }

  @Test("the identity of an STN chip, and the detected protocol")
  func identity() throws {
    var host = try VirtualHost(chip: .stn)
    host.ask("ATE0")
    #expect(host.ask("STI").hasPrefix("STN"))
    #expect(host.ask("0100") == "SEARCHING...\r41 00 08 18 00 01 \r\r>")
    #expect(host.ask("0100") == "41 00 08 18 00 01 \r\r>", "the search is over")
    #expect(host.ask("ATDPN") == "A6\r\r>")
    #expect(host.ask("ATDP") == "AUTO, ISO 15765-4 (CAN 11/500)\r\r>")
    host.ask("ATSP3")
    #expect(host.ask("0100") == "BUS INIT: ...ERROR\r\r>")
    host.ask("ATTP8")
    #expect(host.ask("0100") == "CAN ERROR\r\r>")
    host.ask("ATZ")
    #expect(host.ask("ATDPN") == "ATDPN\r3\r\r>", "the protocol of ATSP survives a reset, that of ATTP does not")
    host.ask("ATM0")
    host.ask("ATSP6")
    host.ask("ATZ")
    #expect(host.ask("ATDPN") == "ATDPN\r3\r\r>", "without memory the protocol is not stored")
  }

  @Test("the last reply again for a single CR, and nothing for LF and NUL")
  func repeatedCommand() throws {
    var host = try VirtualHost()
    host.ask("ATE0")
    #expect(host.ask("ATRV") == "14.4V\r\r>")
    #expect(host.ask("") == "14.4V\r\r>")
    #expect(host.ask("\n\0AT\nI") == "ELM327 v1.5\r\r>")
    host.ask("ATZ")
    host.ask("ATE0")
    host.ask("ATZ")
    #expect(host.ask("") == "\r\r>", "a reset forgets it; the echo is the first CR")
  }
}
