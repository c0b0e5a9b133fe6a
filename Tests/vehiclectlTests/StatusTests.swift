// The output of status and describe, and the flat JSON of readings.

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
