// The screen of a drive as text.

import Protocols
import Testing
import Varlink

@testable import vehiclectl

@Suite struct DriveRendererTests {
  private func lines(_ display: DriveDisplay, _ bars: [DriveBar], _ columns: Int = 80, _ rows: Int = 24, now: Double) -> [String] {
    let grid = DriveRenderer(display, bars, columns: columns, rows: rows, now: now).grid
    return (0..<rows).map(grid.line)
  }

  @Test func `a board: headline, setpoint, values, keys`() throws {
    let control = try #require(ThrottleControl(DrivenBoard.described.properties))
    var display = DriveDisplay(device: "board", DrivenBoard.described, help: ["keys"], limitName: "throttle limit", limit: 0.2)
    let empty = lines(display, control.bars(nil), now: 0)
    #expect(empty[0].hasPrefix("board  requesting the lease") && empty[0].hasSuffix("last message none yet"))
    #expect(empty.contains("  throttle        not sent yet") && empty.contains("  throttle limit  20 %") && empty[23] == "keys")
    func reading(_ name: String, _ value: Double, _ unit: String, age: Double) -> Contract.Reading {
      Contract.Reading(device: "board", property: name, value: .float(value), unit: unit, age: age)
    }
    let device = Contract.Device(
      name: "board", kind: "longboard", state: "driving",
      readings: [
        reading("speed", 12.5, "km/h", age: 0), reading("motor-current", 3.9, "A", age: 0),
        reading("mosfet-temperature", 41, "°C", age: 0), reading("target-current", 2, "A", age: 0),
      ])
    display.apply(.init(sequence: 0, snapshot: [device]), at: 10, wall: 0)
    (display.lease, display.stall, display.remark) = (.held, 0.42, "refused")
    let shown = lines(display, control.bars(.set(property: "target-current", .float(2.5))), now: 13)
    #expect(shown[0].hasPrefix("board  lease held") && shown[0].hasSuffix("last message 3 s ago"), "a setpoint is no message")
    #expect(shown.contains { $0.hasSuffix("km/h") } && shown.contains { $0.hasPrefix("speed") })
    #expect(shown.contains("  throttle        2.5 A      █████···············  of 10 A"), "\(shown)")
    #expect(shown.contains("  brake           0 A        ····················  of 10 A"))
    #expect(shown.contains { $0.contains("motor-current         3.9 A") } && shown.contains { $0.contains("mosfet-temperature    41 °C") })
    #expect(!shown.contains { $0.contains("target-current") })
    #expect(shown.contains("  stalled: no reply to a setpoint for 0.4 s") && shown.contains("  refused"))
    display.lease = .lost("the link is down")
    #expect(lines(display, [], 40, 8, now: 13)[0].hasPrefix("board  lease lost: the link is down"))
  }

  @Test func `a car: state, tilt, event`() {
    let schema = Contract.Schema(
      device: "rover", kind: "rc-car",
      Schema(properties: [
        Property("running", .bool, group: .drive, rank: .headline, help: ""), Property("messages", .int, group: .statistics, help: ""),
        Property("mode", .string, group: .drive, rank: .headline, help: ""), Property("roll", .float, group: .drive, help: ""),
        Property("video", .bool, group: .body, help: ""),
      ]))
    var display = DriveDisplay(device: "rover", schema, help: ["keys"], limitName: "tilt limit", limit: 0.4)
    func device(_ running: Value?, _ reason: String? = nil) -> Contract.Device {
      Contract.Device(
        name: "rover", kind: "rc-car", state: "x",
        readings: [
          Contract.Reading(device: "rover", property: "running", value: running, age: 0, reason: reason),
          Contract.Reading(device: "rover", property: "mode", value: .string("Tilt Steering"), age: 0),
          Contract.Reading(device: "rover", property: "messages", value: .int(4), age: 1),
          Contract.Reading(device: "rover", property: "roll", value: .float(0.3), age: 0),
          Contract.Reading(device: "rover", property: "video", reason: "link down"),
        ])
    }
    let event = Contract.Event(device: "rover", name: "message", text: "hot\u{1b}[2J", time: 1)
    display.apply(.init(sequence: 0, snapshot: [device(.bool(true))], events: [event]), at: 50, wall: 0)
    display.lease = .held
    let bars = TiltControl(isRelative: false).bars(
      .run(action: "tilt", arguments: ["roll": .float(0.314), "pitch": .float(-1.4)], motion: true))
    let shown = lines(display, bars, 60, 20, now: 51.5)
    #expect(shown[0].hasPrefix("rover  lease held  running") && shown[0].hasSuffix("last message 3 s ago"), "\(shown[0])")
    #expect(shown.contains("  roll            0.31 rad   ··········│████······  forward"), "\(shown)")
    #expect(shown.contains("  pitch           -1.4 rad   ██████████│··········  left"))
    #expect(
      shown.contains { $0.contains("mode                  Tilt Steering") }
        && shown.contains { $0.contains("video                 - link down") })
    #expect(shown.contains("  hot [2J"))
    display.apply(.init(sequence: 1, snapshot: [device(.bool(false))]), at: 60, wall: 0)
    #expect(lines(display, bars, 60, 20, now: 60)[0].contains("lease held  stopped"))
    display.apply(.init(sequence: 2, snapshot: [device(nil, "it may still be driving")]), at: 61, wall: 0)
    #expect(lines(display, bars, 60, 20, now: 61)[0].contains("it may still be driving"))
    #expect(
      TiltControl(isRelative: false).bars(.run(action: "tilt", arguments: ["roll": .float(0), "pitch": .float(-0.001)], motion: true))
        .map(\.remark) == ["level", "level"])
  }
}
