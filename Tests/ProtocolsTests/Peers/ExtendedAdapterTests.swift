// Commands of an OBDLink beyond the ELM327's, low power, and addressing and filters on CAN.

import Peers
import Protocols
import Testing

@Suite("The simulated OBDLink")
struct ExtendedAdapterTests {
  @Test("sends a request in one line with STPX, without changing settings")
  func oneShot() throws {
    var host = try VirtualHost.open(ElectricCar(), chip: .stn)
    let reply = host.ask("STPX H:7E4, D:220101, R:1, T:200")
    #expect(VirtualHost.message(in: reply)?.count == 62)
    #expect(host.duration("STPX H:7E4, D:220101, R:1, T:200") == 18_500 * .microsecond, "one message ends the wait")
    #expect(host.duration("STPXH:7E4,D:220101") == 46_500 * .microsecond)
    #expect(host.lines("STPX D:010D") == ["7E803410D00AAAAAAAA"], "without H the header of ATSH applies")
    #expect(host.lines("220101").isEmpty == false && host.ask("STPX H:7E6, D:220101, T:120") == "NO DATA\r\r>")
    #expect(host.duration("STPX H:7E6, D:220101, T:120") == 120 * .millisecond)
    host = try VirtualHost.open(PetrolCar(.can29), chip: .stn)
    #expect(host.lines("STPX H:18DA11F1, D:010D, R:1") == ["18DAF11103410D0000000000"])
    #expect(host.lines("010D").count == 2)
  }

  @Test(
    "does not support",
    arguments: ["STPX", "STPXH:7E4", "STPXD:22010", "STPXH:7E,D:3E", "STPXD:3E,X:1", "STPXD:3E,T:0", "STPTO", "STFOO"])
  func misunderstood(command: String) throws {
    var host = try VirtualHost.open(ElectricCar(), chip: .stn)
    #expect(host.ask(command) == "?\r\r>")
  }

  @Test("waits for the timeout of STPTO, and reports its identity and sleep settings")
  func timeoutsAndIdentity() throws {
    var host = try VirtualHost.open(ElectricCar(), chip: .stn)
    host.ask("ATSH7E6")
    #expect(host.ask("STPTO 77") == "OK\r\r>")
    #expect(host.duration("220101") == 77 * .millisecond)
    host.ask("ATST10")
    #expect(host.duration("220101") == 16 * 4_096 * .microsecond)
    #expect(host.ask("STDI") == "OBDLink r4.2\r\r>")
    #expect(host.ask("STSLU on, off") == "OK\r\r>")
    #expect(host.ask("STSLCS").contains("UART SLEEP: ON"))
    var plain = try VirtualHost.open(ElectricCar())
    for command in ["STPX D:010D", "STPTO 77", "STSLU on,off", "STSLCS", "STDI"] { #expect(plain.ask(command) == "?\r\r>") }
  }

  @Test("sleeps after ATLP with an alert, and restarts with the byte that wakes it")
  func lowPower() throws {
    var host = try VirtualHost.ready()
    #expect(host.ask("ATLP") == "OK\r\r>")
    host.run(for: 900 * .millisecond)
    #expect(host.text() == "")
    host.run(for: 200 * .millisecond)
    #expect(host.text() == "LP ALERT\r\r>")
    #expect(host.ask("ATI") == "ELM327 v1.5\r\r>", "it responds until it sleeps")
    host.run(for: 10 * .second)
    #expect(host.text() == "" && host.machine.nextWake == nil, "no wake-up while it sleeps")
    host.send(" ")
    host.run(for: .second)
    #expect(host.text() == "\r\rELM327 v1.5\r\r>")
    #expect(host.ask("ATI") == "ATI\rELM327 v1.5\r\r>", "its settings are lost")
    host.ask("ATLP")
    host.ask("ATZ")
    host.run(for: 10 * .second)
    #expect(host.text() == "", "a reset in between keeps it awake")
  }

  @Test("settings take 2 ms and the transmission time")
  func settingTime() throws {
    var host = try VirtualHost.ready()
    for command in ["ATSH7E4", "ATCRA7EC", "ATCRA"] { #expect(host.duration(command) == 2 * .millisecond) }
    host = try VirtualHost.ready(baud: 38_400)
    let byte: Nanoseconds = 10 * .second / 38_400
    #expect(host.duration("ATSH7E4") == 2 * .millisecond + (8 + 5) * byte)
  }

  @Test("addresses one ECU or all; their replies interleave, and are ambiguous without headers")
  func severalUnits() throws {
    var host = try VirtualHost.open(PetrolCar())
    #expect(host.lines("0904").map { String($0.prefix(5)) } == ["7E810", "7E910", "7E821", "7E921", "7E822", "7E922"])
    #expect(host.lines("09043").count == 3, "a frame count includes the frames of all ECUs")
    for (setting, source) in [("ATSH7E0", "7E8"), ("ATSH7E1", "7E9"), ("ATSH0007E1", "7E9"), ("ATSH000007E0", "7E8")] {
      host.ask(setting)
      #expect(Set(host.lines("0904").map { String($0.prefix(3)) }) == [source])
    }
    host.ask("ATSH7DF")
    for (settings, sources) in [
      (["ATCRA7E9"], ["7E9"]), (["ATAR"], ["7E8", "7E9"]), (["ATCF7E8", "ATCM7FF"], ["7E8"]), (["ATCM7FE"], ["7E8", "7E9"]),
    ] {
      for setting in settings { host.ask(setting) }
      #expect(Set(host.lines("010D").map { String($0.prefix(3)) }) == Set(sources), "\(settings)")
    }
    host.ask("ATAR")
    host.ask("ATH0")
    #expect(host.lines("0904").map { String($0.prefix(2)) } == ["01", "0:", "01", "0:", "1:", "1:", "2:", "2:"])
    #expect(host.lines("010D") == ["410D00", "410D00"])
  }

  @Test("each frame is printed at its own time")
  func times() throws {
    var host = try VirtualHost.open(PetrolCar())
    host.send("0904\r")
    host.run(for: .second)
    let times = host.sends.map { $0.at - host.sends[0].at }
    let due: [Nanoseconds] = [0, 700, 1500, 2200, 3000, 3700].map { $0 * .microsecond }
    #expect(Array(times.prefix(6)) == due)
  }
}
