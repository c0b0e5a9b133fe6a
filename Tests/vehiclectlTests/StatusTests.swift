// The output of status, describe and watch, and the flat JSON of readings.

import Protocols
import Testing
import Varlink

@testable import vehiclectl

@Suite struct StatusTests {
  let ev = Contract.Device(
    name: "ev", kind: "obd", state: "polling",
    links: [Contract.Link(name: "main", url: "tcp:h:1", state: "up", since: 40_000_000)],
    readings: [
      Contract.Reading(device: "ev", property: "rpm", value: .int(3737), unit: "rpm", time: 99_000_000, age: 1),
      Contract.Reading(device: "ev", property: "odometer", unit: "km", reason: "not reported by this car"),
    ])

  func plain(_ text: String, _ style: Style) -> String { text }

  @Test func `the overview shows values, and the number of missing ones`() {
    #expect(
      StatusCommand.lines(ev, detailed: false, now: 100, paint: plain) == [
        "ev (obd): polling", "  tcp:h:1  up for 60 s", "  property  value  unit    age", "  rpm        3737  rpm   1.0 s",
        "  1 without a value; see: vehiclectl status ev",
      ])
  }

  @Test func `the detail shows why values are missing`() {
    #expect(
      StatusCommand.lines(ev, detailed: true, now: 100, paint: plain) == [
        "ev (obd): polling", "  main tcp:h:1  up for 60 s", "  property  value  unit    age", "  rpm        3737  rpm   1.0 s",
        "  odometer      -  km           not reported by this car",
      ])
  }

  @Test func `a value that is too long for its column is shown in the last one`() {
    let modes = Contract.Reading(device: "car", property: "modes", value: .list(["Tilt, Lights", "Follow line"]), time: 99_000_000, age: 1)
    let car = Contract.Device(
      name: "car", kind: "car", state: "ready", links: [],
      readings: [
        modes, Contract.Reading(device: "car", property: "tilt-rate", value: .float(60), unit: "Hz", time: 99_000_000, age: 1),
      ])
    #expect(
      StatusCommand.lines(car, detailed: true, now: 100, paint: plain) == [
        "car (car): ready", "  property   value  unit    age", "  modes                   1.0 s  Tilt, Lights; Follow line",
        "  tilt-rate     60  Hz    1.0 s",
      ])
  }

  @Test func `readings are flat in JSON, unknown values null with a reason`() {
    #expect(
      JSON(ev.readings[0]).text == #"{"device":"ev","property":"rpm","value":3737,"unit":"rpm","time":99000000,"age":1}"#)
    #expect(
      JSON(ev.readings[1]).text == #"{"device":"ev","property":"odometer","value":null,"unit":"km","reason":"not reported by this car"}"#)
    #expect(
      JSON(ev).text
        == #"{"name":"ev","kind":"obd","state":"polling","links":[{"name":"main","url":"tcp:h:1","state":"up","since":40000000}],"readings":["#
        + JSON(ev.readings[0]).text + "," + JSON(ev.readings[1]).text + "]}")
    #expect(
      JSON(Contract.Event(device: "ev", name: "note", text: "a", time: 5)).text == #"{"event":"note","device":"ev","text":"a","time":5}"#)
  }

  @Test func `the table shows rates, growing ages and new properties`() {
    var table = WatchTable()
    table.apply(.init(sequence: 0, snapshot: [ev]), at: 100, wall: 100)
    for tick in 1...40 {
      let time = 100 + Double(tick) * 0.05
      let reading = Contract.Reading(device: "ev", property: "rpm", value: .int(tick), unit: "rpm", time: Int(time * 1e6), age: 0)
      table.apply(.init(sequence: tick, changes: [reading]), at: time, wall: time)
    }
    table.apply(
      .init(
        sequence: 41, changes: [Contract.Reading(device: "ev", property: "new", value: .bool(true), age: 0)],
        events: [Contract.Event(device: "ev", name: "note", text: "hello", time: 1)]),
      at: 102, wall: 102)
    let lines = table.lines(at: 102.5, wall: 102.5, rows: 50, paint: plain)
    #expect(
      lines == [
        "ev (obd): polling", "  tcp:h:1  up for 63 s", "  property  value  unit    age    rate",
        "  rpm          40  rpm   0.5 s  20.0/s", "  odometer      -  km                   not reported by this car",
        "  new          on        0.5 s", "", "ev: hello",
      ])
    #expect(!table.lines(at: 104.1, wall: 104.1, rows: 50, paint: plain).joined().contains("/s"), "nothing comes any more")
  }

  @Test func `readings that waited in the socket keep their own rate and age`() {
    var table = WatchTable()
    table.apply(.init(sequence: 0, snapshot: [ev]), at: 100, wall: 100)
    // 20 a second for ten seconds, read in an instant half a second after the last.
    for tick in 1...200 {
      let reading = Contract.Reading(
        device: "ev", property: "rpm", value: .int(tick), unit: "rpm", time: 100_000_000 + tick * 50_000, age: 0)
      table.apply(.init(sequence: tick, changes: [reading]), at: 110.5, wall: 110.5)
    }
    #expect(table.lines(at: 110.6, wall: 110.6, rows: 50, paint: plain)[3] == "  rpm         200  rpm   0.6 s  20.0/s")
    // No further updates: there is no rate.
    #expect(table.lines(at: 112.1, wall: 112.1, rows: 50, paint: plain)[3].hasSuffix("2.1 s"))
  }

  @Test(arguments: [(99_000_000, "3.0 s"), (150_000_000, "0.5 s"), (-86_400_000_000, "0.5 s"), (Int.max, "0.5 s"), (Int.min, "0.5 s")])
  func `a clock change does not affect ages`(_ time: Int, _ age: String) {
    var table = WatchTable()
    let reading = Contract.Reading(device: "ev", property: "rpm", value: .int(1), time: time, age: 0.5)
    table.apply(.init(sequence: 0, changes: [reading, reading]), at: 7, wall: 102)
    #expect(table.lines(at: 7, wall: 102, rows: 50, paint: plain)[2].hasSuffix("  1  \(age)"))
  }

  @Test func `a new snapshot removes undeclared properties`() {
    var table = WatchTable()
    table.apply(.init(sequence: 0, snapshot: [ev]), at: 100, wall: 100)
    var less = ev
    less.readings.removeFirst()
    table.apply(.init(sequence: 1, snapshot: [less]), at: 101, wall: 101)
    let lines = table.lines(at: 101, wall: 101, rows: 50, paint: plain)
    #expect(lines.count == 4 && lines[3].contains("odometer"))
  }

  @Test func `the table fits the window and shows the number of omitted lines`() {
    var table = WatchTable()
    table.apply(.init(sequence: 0, snapshot: [ev]), at: 100, wall: 100)
    let lines = table.lines(at: 100, wall: 100, rows: 3, paint: plain)
    #expect(lines.count == 3 && lines[2].hasPrefix("… 3 more lines"))
    #expect(table.lines(at: 100, wall: 100, rows: 5, paint: plain).count == 5)
  }

  @Test func `describe shows type, unit, range, access and help`() {
    let schema = Schema(
      properties: [
        Property("led", .int, unit: "%", range: 0...100, access: .write, help: "Brightness"),
        Property("mode", .string, choices: ["eco", "sport"], help: "Mode"),
        Property("throttle", .float, range: 0 ... .infinity, access: .motion, help: "T"),
      ],
      actions: [
        Action(
          "query",
          arguments: [
            Protocols.Argument("request", .string, help: "Hex"), Protocols.Argument("n", .int, optional: true, help: "N"),
            Protocols.Argument("pin", .string, secret: true, help: "P"),
          ], help: "Asks")
      ])
    #expect(
      DescribeCommand.lines(Contract.Schema(device: "ev", kind: "obd", schema), paint: plain) == [
        "ev (obd)", "  property  type    unit  range       access", "  led       int     %     0 to 100    set     Brightness",
        "  mode      string        eco, sport  read    Mode", "  throttle  float         from 0      lease   T", "",
        "  action", "  query REQUEST [N] (prompts for pin)  do      Asks", "    REQUEST                            string  Hex",
        "    N                                  int     N", "    PIN                                string  P",
      ])
  }
}
