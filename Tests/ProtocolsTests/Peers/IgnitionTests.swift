// A car whose ignition key is turned: replies of the adapter, and the 12 V supply.

import Peers
import Protocols
import Testing

@Suite("The simulated key")
struct IgnitionTests {
  private let parked = Ignition([.init(.off, at: 60 * .second), .init(.run, at: 120 * .second)])

  @Test("is parsed from text, or rejected with an example")
  func parse() throws {
    #expect(try Ignition.Turn("off@30") == .init(.off, at: 30 * .second))
    #expect(try Ignition.Turn("run@0") == .init(.run, at: 0))
    for text in ["", "off", "off@", "off@-1", "off@x", "out@3", "off@3@4", "@3", "off@99999999"] {
      let error = #expect(throws: ValueError.self) { try Ignition.Turn(text) }
      #expect(error?.description.contains("off@30") == true)
    }
  }

  @Test("off: first no ECU answers, then the bus is down; on again: the first request is answered")
  func sleep() throws {
    var host = try VirtualHost.open(ElectricCar(.eGMP, parked), after: ["ATE0", "ATS0", "ATH1", "ATSH7E4"])
    host.run(for: 50 * .second)
    #expect(VirtualHost.message(in: host.ask("220101"))?.count == 62)
    host.run(for: 61 * .second - host.now)
    #expect(host.ask("220101") == "NO DATA\r\r>")
    host.run(for: 69 * .second - host.now)
    #expect(host.ask("220101") == "NO DATA\r\r>")
    host.run(for: 70 * .second - host.now)
    #expect(host.ask("220101") == "CAN ERROR\r\r>")
    host.run(for: 119 * .second - host.now)
    #expect(host.ask("220101") == "CAN ERROR\r\r>")
    host.run(for: 120 * .second - host.now)
    #expect(VirtualHost.message(in: host.ask("220101"))?.count == 62)
  }

  @Test("off: a K-line does not initialise, and protocol detection fails")
  func otherBuses() throws {
    var host = try VirtualHost.open(PetrolCar(.kwp, parked))
    #expect(host.lines("010D").first == "BUS INIT: OK")
    host.run(for: 80 * .second)
    #expect(host.ask("010D") == "NO DATA\r\r>")
    #expect(host.ask("010D") == "BUS INIT: ERROR\r\r>")
    host.run(for: 120 * .second - host.now)
    #expect(host.lines("010D").first == "BUS INIT: OK")
    host = try VirtualHost.open(PetrolCar(.can11, parked))
    host.ask("ATSP0")
    host.run(for: 80 * .second)
    #expect(host.ask("0100") == "SEARCHING...\rUNABLE TO CONNECT\r\r>")
    host.run(for: 120 * .second - host.now)
    #expect(host.lines("0100").first == "SEARCHING...", "protocol detection starts again")
    #expect(host.lines("0100").count == 2)
  }

  @Test("off: the supply falls to its resting voltage, then slowly; running: it is charged")
  func supply() throws {
    let key = Ignition([.init(.off, at: 60 * .second), .init(.on, at: 10_000 * .second), .init(.run, at: 10_100 * .second)])
    var host = try VirtualHost.open(PetrolCar(.can11, key))
    let course: [(Nanoseconds, String)] = [
      (59, "14.2V"), (62, "13.8V"), (64, "13.3V"), (70, "12.4V"), (8_000, "12.2V"), (10_050, "12.1V"), (10_101, "14.2V"),
    ]
    for (second, voltage) in course {
      host.run(for: second * .second - host.now)
      #expect(host.ask("ATRV") == voltage + "\r\r>", "\(second) s")
    }
    host = try VirtualHost.open(ElectricCar(.kona, key))
    host.run(for: 10_050 * .second - host.now)
    #expect(host.ask("ATRV") == "14.4V\r\r>", "an electric car needs no engine to charge")
  }

  @Test("on: the car stands and the engine is off; run: a new drive cycle begins")
  func standing() throws {
    let key = Ignition([.init(.on, at: 100 * .second), .init(.run, at: 130 * .second)])
    var host = try VirtualHost.open(PetrolCar(.can11, key), after: ["ATE0", "ATS0", "ATH1", "ATSH7E0"])
    host.run(for: 99 * .second - host.now)
    #expect(host.lines("010D") != ["7E803410D0000000000"])
    host.run(for: 101 * .second - host.now)
    #expect(host.lines("010C0D") == ["7E806410C00000D0000"])
    #expect(host.lines("04") == ["7E80144000000000000"])
    host.run(for: 130 * .second - host.now)
    #expect(host.lines("010C0D") == ["7E806410C0C300D0000"], "it idles")
    host.run(for: 132 * .second - host.now)
    #expect(host.lines("011F") == ["7E804411F0002000000"], "the time since the engine was started")
    host.run(for: 140 * .second - host.now)
    #expect(host.lines("010D") != ["7E803410D0000000000"])
  }

  @Test("may start in another position, and be turned twice at the same time")
  func start() throws {
    var host = try VirtualHost.open(PetrolCar(.can11, Ignition([.init(.off, at: 0), .init(.on, at: 5 * .second)])))
    #expect(host.lines("010D") == ["NO DATA"] && host.ask("ATRV") == "12.4V\r\r>")
    host.run(for: 5 * .second)
    #expect(host.lines("010D").count == 2)
    host = try VirtualHost.open(PetrolCar(.can11, Ignition([.init(.off, at: 5 * .second), .init(.run, at: 5 * .second)])))
    host.run(for: 6 * .second)
    #expect(host.lines("010D").count == 2)
  }
}
