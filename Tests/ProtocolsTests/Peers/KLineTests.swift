// The petrol car on each of its buses, as the adapter prints it.

import Peers
import Protocols
import Testing

@Suite("The simulated adapter on other buses")
struct KLineTests {
  @Test("29-bit CAN: functional and physical addresses with 6 and 8 digits, and filters")
  func longIdentifiers() throws {
    var host = try VirtualHost.open(PetrolCar(.can29))
    #expect(host.lines("0100") == ["18DAF110064100BFFFB81300", "18DAF1110641008818000000"])
    #expect(host.lines("010D1") == ["18DAF11003410D0000000000"])
    host.ask("ATSHDA11F1")
    #expect(host.lines("010D") == ["18DAF11103410D0000000000"])
    host.ask("ATCP10")
    #expect(host.lines("010D") == ["NO DATA"], "no ECU accepts that priority")
    host.ask("ATSH18DA10F1")
    #expect(host.lines("010D") == ["18DAF11003410D0000000000"])
    host.ask("ATSH18DB33F1")
    host.ask("ATCRA18DAF111")
    #expect(host.lines("010D") == ["18DAF11103410D0000000000"])
    host.ask("ATCRA18DAF1XX")
    #expect(host.lines("010D").count == 2)
    host.ask("ATCF18DAF110")
    host.ask("ATCM1FFFFFFF")
    #expect(host.lines("010D") == ["18DAF11003410D0000000000"])
    host.ask("ATAR")
    host.ask("ATS1")
    #expect(host.lines("010D").first == "18 DA F1 10 03 41 0D 00 00 00 00 00 ")
    host.ask("ATSP6")
    #expect(host.lines("010D") == ["CAN ERROR"], "the car uses another protocol")
  }

  @Test("a K-line is initialised once, fast or at 5 baud, and again after it was closed")
  func initialisation() throws {
    var host = try VirtualHost.open(PetrolCar(.kwp))
    #expect(host.ask("010D") == "BUS INIT: OK\r83F110410D00D2\r83F111410D00D3\r\r>")
    #expect(host.lines("010D").count == 2)
    host.ask("ATPC")
    #expect(host.lines("010D").first == "BUS INIT: OK")
    host = try VirtualHost.open(PetrolCar(.iso9141))
    host.send("0133\r")
    host.run(for: 1300 * .millisecond)
    #expect(host.text() == "BUS INIT: ..", "dots are printed one by one")
    host.run(for: 2 * .second)
    #expect(host.text() == ".OK\r486B104133659C\r\r>")
    host.ask("ATPC")
    host.ask("ATBI")
    #expect(host.lines("0133") == ["486B104133659C"], "ATBI skips the initialisation")
  }

  @Test("protocol detection finds every bus", arguments: DiagnosticBus.allCases)
  func search(bus: DiagnosticBus) throws {
    var host = try VirtualHost(car: PetrolCar(bus))
    host.ask("ATE0")
    host.ask("ATSPA6")
    #expect(host.lines("0100").first == "SEARCHING...")
    #expect(host.ask("ATDPN") == "A\(bus.rawValue)\r\r>")
    #expect(host.lines("0100") == ["41 00 BF FF B8 13 ", "41 00 88 18 00 00 "])
  }

  @Test("K-lines accept one PID, print headers and a checksum, and can address one ECU")
  func format() throws {
    var host = try VirtualHost.open(PetrolCar(.kwp))
    host.ask("010D")
    #expect(host.lines("0100") == ["86F1104100BFFFB81351", "86F11141008818000069"])
    #expect(host.lines("010C0D") == ["NO DATA"])
    #expect(host.lines("010D1") == ["83F110410D00D2"])
    host.ask("ATSH8111F1")
    #expect(host.lines("010D") == ["83F111410D00D3"])
    host.ask("ATS1")
    #expect(host.lines("010D") == ["83 F1 11 41 0D 00 D3 "])
    host.ask("ATH0")
    #expect(host.lines("010D") == ["41 0D 00 "])
  }

  @Test("VIN and trouble codes take several messages", arguments: [DiagnosticBus.kwp, .iso9141])
  func severalMessages(bus: DiagnosticBus) throws {
    var host = try VirtualHost.open(PetrolCar(bus), after: ["ATE0", "ATS0"])
    host.ask("010D")
    let number = ["49020100000057", "49020256575A5A", "4902035A314B5A", "49020441573030", "49020530303432"]
    #expect(host.lines("0902") == number)
    #expect(host.lines("0901") == ["490105"])
    #expect(host.lines("0900") == ["490001FCC00000", "4900013CC00000"])
    #expect(host.lines("0904").count == 8 && host.lines("0906").count == 2)
    #expect(host.lines("03") == ["43013304200000", "43071500000000"])
    #expect(host.lines("07") == ["47017100000000", "47000000000000"])
    #expect(host.lines("0A") == ["NO DATA"] && host.lines("0600") == ["NO DATA"])
    #expect(host.lines("04") == ["7F0422", "7F0422"])
    #expect(host.lines("020200") == ["4202000133"])
  }

  @Test("a K-line is slow")
  func slow() throws {
    var host = try VirtualHost.open(PetrolCar(.iso9141))
    host.ask("010D")
    let time = host.duration("010D2")
    #expect(time > 100 * .millisecond && time < 200 * .millisecond)
  }
}
