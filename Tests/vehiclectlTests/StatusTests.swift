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

  private let schema = Contract.Schema(
    device: "ev", kind: "obd",
    Schema(
      properties: [
        Property("polls", .int, group: .statistics, rank: .statistic, help: ""),
        Property("poll-rate", .float, unit: "Hz", group: .statistics, rank: .detail, help: ""),
        Property("cells-1-32", .list, unit: "V", group: .cells, rank: .detail, help: ""),
        Property("cells-33-64", .list, unit: "V", group: .cells, rank: .detail, help: ""),
        Property("rpm", .int, unit: "rpm", group: .drive, help: ""), Property("odometer", .int, unit: "km", group: .drive, help: ""),
        Property("speed", .float, unit: "km/h", group: .drive, rank: .headline, help: ""),
        Property("battery", .float, unit: "%", range: 0...100, group: .battery, rank: .headline, help: ""),
        Property("module-temperature-1", .int, unit: "°C", group: .temperatures, rank: .detail, help: ""),
        Property("module-temperature-2", .int, unit: "°C", group: .temperatures, rank: .detail, help: ""),
        Property("module-temperature-3", .int, unit: "°C", group: .temperatures, rank: .detail, help: ""),
        Property("mil", .bool, group: .diagnostics, help: ""), Property("dtc-count", .int, group: .diagnostics, help: ""),
        Property("tyre-pressure", .int, unit: "kPa", group: .tyres, help: ""),
      ], actions: []))

  private func device(
    _ name: String, _ values: KeyValuePairs<String, Contract.Value?>, link: Contract.Link? = nil, fault: String? = nil
  ) -> DeviceStatus {
    let readings = values.map { property, value in
      Contract.Reading(
        device: name, property: property, value: value, unit: schema.properties.first { $0.name == property }?.unit,
        age: value == nil ? nil : 1, reason: value == nil ? "no reply" : nil)
    }
    let up = Contract.Link(name: "main", url: "tcp:h:1", state: "up", since: 40_000_000)
    let device = Contract.Device(name: name, kind: "obd", state: "polling", links: [link ?? up], readings: readings, fault: fault)
    return DeviceStatus(device, schema, now: 100)
  }

  private let down = Contract.Link(
    name: "main", url: "ble:Torq", state: "down", reason: "no advertisement", since: 90_000_000, nextAttempt: 112_000_000)

  private func summary(_ devices: [DeviceStatus], width: Int? = nil) -> [String] {
    StatusSummary.lines(devices, width: width, paint: plain)
  }

  private func detail(_ status: DeviceStatus, width: Int? = 80, rows: Int? = 23, log: [String] = []) -> [String] {
    var detail = StatusDetail(status, width: width, paint: plain)
    return detail.lines(rows: rows, log: log)
  }

  // MARK: Summary

  @Test func `the summary has a line for each device, those with problems first`() {
    let devices = [
      device("ev", ["rpm": .int(3), "speed": .float(50.44), "battery": .float(78), "poll-rate": .int(20)]),
      device("torq", ["speed": .int(7), "battery": nil]), device("lost", ["speed": nil], link: down),
    ]
    let expected = [
      "lost  polling  link down: no advertisement; next attempt in 12 s", "ev    polling  50.4 km/h  78 %  ● 20 Hz",
      "torq  polling     7 km/h        ●",
    ]
    #expect(summary(devices) == expected)
  }

  @Test func `a problem is red, a trouble code amber, a device that was disconnected on request is neither`() {
    let marked = { (text: String, style: Style) in style == .plain ? text : "<\(style):\(text)>" }
    let off = Contract.Link(
      name: "main", url: "ble:T", state: "down", reason: "disconnected on request: vehiclectl connect off", since: 90_000_000)
    let devices = [
      device("off", ["speed": nil], link: off), device("ev", ["speed": .int(0), "mil": .bool(true), "dtc-count": .int(1)]),
      device("car", ["dtc-count": .int(2)], fault: "it may still be driving"),
    ]
    #expect(
      StatusSummary.lines(devices, width: nil, paint: marked) == [
        "<bad:car>  <bad:polling>  <warning:2 DTCs>  <bad:it may still be driving>",
        "<bold:off>  polling  <dim:link down: disconnected on request: vehiclectl connect off>",
        "<bold:ev>   polling  0 km/h  <good:●>  <warning:MIL on, 1 DTC>",
      ])
  }

  @Test func `lines are cut to the width, and a value without a unit has its name`() {
    #expect(summary([device("ev", ["speed": nil], link: down)], width: 52) == ["ev  polling  no advertisement; next attempt in 12 s"])
    #expect(summary([device("ev", ["speed": nil], link: down)], width: 45) == ["ev  polling  no advertisement; retry in 12 s"])
    // The reason matters more than the next attempt.
    #expect(summary([device("ev", ["speed": nil], link: down)], width: 43) == ["ev  polling  link down: no advertisement"])
    #expect(summary([device("ev", ["speed": nil], link: down)], width: 30) == ["ev  polling  no advertisement"])
    #expect(summary([device("ev", ["speed": nil], link: down)], width: 24) == ["ev  polling  no adverti…"])
    let car = Contract.Device(
      name: "car", kind: "rc-car", state: "ready",
      readings: [Contract.Reading(device: "car", property: "running", value: .bool(false), age: 1)])
    let declared = Contract.Schema(
      device: "car", kind: "rc-car", Schema(properties: [Property("running", .bool, rank: .headline, help: "")], actions: []))
    #expect(summary([DeviceStatus(car, declared, now: 0)]) == ["car  ready  running off"])
  }

  @Test func `a narrow window leaves out values before health and trouble codes`() {
    let ev = device(
      "ev", ["speed": .float(50.4), "battery": .float(78), "poll-rate": .int(20), "mil": .bool(true), "dtc-count": .int(2)])
    #expect(summary([ev], width: 60) == ["ev  polling  50.4 km/h  78 %  ● 20 Hz  MIL on, 2 DTCs"])
    #expect(summary([ev], width: 50) == ["ev  polling  50.4 km/h  ● 20 Hz  MIL on, 2 DTCs"])
    #expect(summary([ev], width: 40) == ["ev  polling  50.4 km/h  78 %  ●  MIL"])
    #expect(summary([ev], width: 30) == ["ev  polling  50.4 km/h  ●  MIL"])
    #expect(summary([ev], width: 24) == ["ev  polling  ●  MIL"])
  }

  @Test func `a vehicle at rest is no problem`() {
    var parked = device("golf", ["speed": nil], fault: "the vehicle has not been used for 600 s: it is polled every 30 s").device
    parked.state = "parked"
    let lines = summary([device("ev", ["speed": .int(5)]), DeviceStatus(parked, schema, now: 100)])
    #expect(lines == ["ev    polling  5 km/h  ●", "golf  parked   the vehicle has not been used for 600 s: it is polled every 30 s"])
  }

  @Test func `a device without headline values gives the reason`() {
    #expect(summary([device("ev", ["speed": nil])]) == ["ev  polling  no reply  ●"])
  }

  // MARK: One device

  private var full: DeviceStatus {
    device(
      "ev",
      [
        "polls": .int(7), "poll-rate": .int(20), "cells-1-32": .list([String](repeating: "3.8", count: 32)),
        "cells-33-64": .list([String](repeating: "3.82", count: 32)), "rpm": .int(3308), "odometer": .int(12_345), "speed": .float(50.4),
        "battery": .float(9), "module-temperature-1": .int(21), "module-temperature-2": .int(23), "module-temperature-3": .int(22),
        "mil": .bool(true), "dtc-count": .int(2), "tyre-pressure": nil,
      ])
  }

  @Test func `one device is shown by group, cells and numbered series are summarised`() {
    let expected = [
      "ev (obd): polling  ● 20 Hz", "  tcp:h:1  up for 60 s", "  MIL on, 2 stored DTCs; see: vehiclectl dtc ev", "",
      "  drive         speed                 50.4 km/h  rpm                    3308 rpm",
      "                odometer               12345 km",
      "  battery       battery                     9 %",
      "  temperatures  module-temperature-1–3 21–23 °C",
      "  cells         64 cells  3.80–3.82 V, Δ 20 mV",
      "  diagnostics   mil                          on  dtc-count                     2",
      "  tyre-pressure: no reply", "  3 more; see: vehiclectl status ev --all", "", "10:00:00 notice   link is up",
    ]
    #expect(detail(full, log: ["10:00:00 notice   link is up"]) == expected)
  }

  @Test(arguments: [(80, 23), (80, 12), (160, 49), (40, 10), (20, 5), (12, 3)]) func `it fits on the screen`(_ width: Int, _ rows: Int) {
    for log in [[], ["10:00:00 notice   a rather long record that the terminal would wrap if it were not cut to its width"]] {
      let lines = detail(full, width: width, rows: rows, log: log)
      #expect(lines.allSatisfy { $0.displayWidth <= width })
      #expect(lines.count <= max(rows, full.header(detailed: false, width: width, paint: plain).count + 3 + 2 * log.count))
    }
  }

  @Test func `a small screen shows the most important values of each group`() {
    let lines = detail(full, rows: 11)
    #expect(lines.count == 11 && lines[4].hasPrefix("  drive         speed") && lines[6].hasPrefix("  temperatures  module"))
    #expect(!lines.contains { $0.contains("odometer") } && lines.contains("  cells         64 cells  3.80–3.82 V, Δ 20 mV"))
  }

  @Test func `a screen with less lines than groups shows the most important values of all`() {
    let lines = detail(full, rows: 7, log: ["10:00:00 notice   link is up"])
    #expect(lines[4].hasPrefix("  speed      ") && lines[4].contains(" 50.4 km/h  battery      ") && lines[4].hasSuffix(" 9 %"))
    #expect(Array(lines[5...]) == ["  tyre-pressure: no reply", "  12 more; see: vehiclectl status ev --all"])
    let least = detail(full, rows: 4)
    #expect(least.count == 4 && least[3].contains(" 50.4 km/h  battery "), "header and values only")
  }

  @Test func `a reason that the header has is not repeated`() {
    let fault = "the adapter does not respond"
    let readings = ["speed", "rpm"].map { Contract.Reading(device: "ev", property: $0, reason: fault) }
    let status = DeviceStatus(
      Contract.Device(
        name: "ev", kind: "obd", state: "degraded", links: [Contract.Link(name: "main", url: "tcp:h:1", state: "up", since: 40_000_000)],
        readings: readings, fault: fault), schema, now: 100)
    for lines in [detail(status), StatusTable.lines(status, width: 80, paint: plain)] {
      #expect(lines.filter { $0.contains(fault) } == ["  fault: \(fault)"])
    }
  }

  @Test func `without a terminal there is one property on a line, and nothing is cut`() {
    let lines = detail(full, width: nil, rows: nil)
    #expect(lines[4].hasPrefix("  drive         speed ") && lines[4].hasSuffix("50.4 km/h"))
    #expect(lines[5].hasPrefix("                rpm ") && lines[5].hasSuffix("3308 rpm"))
  }

  @Test func `a link is shown without percent-encoding`() {
    let link = Contract.Link(name: "main", url: "ble:Polar%20H10", state: "up", since: 40_000_000)
    #expect(detail(device("strap", [:], link: link))[1] == "  ble:Polar H10  up for 60 s")
  }

  @Test func `a fault and the reason for a closed link are wrapped`() {
    let lines = detail(device("ev", ["speed": nil], link: down, fault: "the adapter does not respond; check its power"), width: 40)
    #expect(
      lines == [
        "ev (obd): polling  ●", "  ble:Torq", "    down for 10 s: no advertisement;", "    next attempt in 12 s", "  fault:",
        "    the adapter does not respond; check", "    its power", "  1 more; see option --all",
      ])
  }

  @Test func `everything is a table by group, with ages and reasons`() {
    let status = device("ev", ["polls": .int(7), "rpm": .int(3737), "odometer": nil])
    #expect(
      StatusTable.lines(status, width: 80, paint: plain) == [
        "ev (obd): polling  ●", "  main tcp:h:1  up for 60 s", "  property    value  unit    age", "  drive",
        "    rpm        3737  rpm   1.0 s",
        "    odometer      -  km           no reply", "  statistics", "    polls         7        1.0 s",
      ])
  }

  @Test func `it says for how long values are missing`() {
    let readings = [("speed", 10), ("rpm", 40), ("battery", 90)].map {
      Contract.Reading(device: "ev", property: $0, time: $1 * 1_000_000, reason: "stale")
    }
    let up = Contract.Link(name: "main", url: "tcp:h:1", state: "up", since: 0)
    let absent = Contract.Reading(device: "ev", property: "odometer", time: 10_000_000, reason: "not reported by this car")
    let device = Contract.Device(name: "ev", kind: "obd", state: "polling", links: [up], readings: readings + [absent])
    let status = DeviceStatus(device, schema, now: 130)
    #expect(detail(status).contains("  speed and 2 more: stale (for 40 s)"))
    let lines = StatusTable.lines(status, width: 80, paint: plain)
    #expect(lines.contains { $0.hasSuffix("stale (for 2 min)") } && lines.contains { $0.hasSuffix("not reported by this car") }, "\(lines)")
  }

  @Test func `in a narrow window names are shortened, and reasons are on lines of their own`() {
    let status = device("ev", ["module-temperature-1": .int(21), "odometer": nil])
    #expect(
      StatusTable.lines(status, width: 36, paint: plain)[2...] == [
        "  property        value  unit    age", "  drive", "    odometer          -  km", "      no reply", "  temperatures",
        "    modul…ture-1     21  °C    1.0 s",
      ])
  }

  @Test func `a value that is too long for its column is shown in the last one`() {
    let reading = Contract.Reading(device: "car", property: "modes", value: .list(["Tilt, Lights", "Follow line"]), age: 1)
    let car = Contract.Device(name: "car", kind: "rc-car", state: "ready", readings: [reading])
    #expect(
      StatusTable.lines(DeviceStatus(car, nil, now: 100), width: nil, paint: plain) == [
        "car (rc-car): ready", "  property    age", "  general", "    modes   1.0 s  Tilt, Lights; Follow line",
      ])
  }

  // MARK: Pager

  @Test func `the pager is that of the environment, none, or the first one that is installed`() {
    #expect(Pager.commands { _ in nil } == [["pager"], ["less"], ["more"]])
    #expect(Pager.commands { $0 == "PAGER" ? "most -s" : nil } == [["most", "-s"]])
    #expect(Pager.commands { ["VEHICLECTL_PAGER": "", "PAGER": "less"][$0] } == [] && Pager.commands { _ in "cat" } == [])
    #expect(Pager.lessOptions(nil) == "-FRXK" && Pager.lessOptions("-i") == "-FRXK -i" && Pager.lessOptions("i") == "-FRXK -i")
  }

  @Test func `lines that the terminal wraps count, colours do not`() {
    let window = (columns: 10, rows: 4)
    #expect(Pager.fits(["", "0123456789", "\u{1b}[31m0123456789\u{1b}[0m"], window))
    #expect(!Pager.fits(["", "", "", ""], window) && !Pager.fits(["", "", "0123456789a"], window))
  }

  @Test func `a cut text ends with an ellipsis and keeps its colours`() {
    #expect("\u{1b}[31mabcdef\u{1b}[0m".truncated(to: 4) == "\u{1b}[31mabc\u{1b}[0m…")
    #expect("abcd".truncated(to: 4) == "abcd" && "abcd".truncated(to: nil) == "abcd" && "日本語".truncated(to: 5) == "日本…")
  }

  // MARK: JSON and describe

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
