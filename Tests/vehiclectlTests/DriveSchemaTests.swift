// Lines of JSON checked against a schema, and the driver's display.

import Protocols
import Testing
import Varlink

@testable import vehiclectl

@Suite struct DriveSchemaTests {
  static let angles = [
    Protocols.Argument("roll", .float, help: ""), Protocols.Argument("pitch", .float, help: ""),
    Protocols.Argument("yaw", .float, optional: true, help: ""),
  ]
  static let tilt = Action("tilt", arguments: angles, motion: true, help: "")
  static let car = Schema(
    properties: [Property("mode", .string, access: .write, help: "")],
    actions: [
      tilt, Action("continue", motion: true, help: ""), Action("stop", help: ""),
      Action("neutral", arguments: [Protocols.Argument("position", .string, help: "")], help: ""),
    ])
  static let board = Schema(properties: [Property("target-current", .float, unit: "A", range: -10...10, access: .motion, help: "")])

  func driveSchema(_ schema: Schema = car) -> DriveSchema {
    DriveSchema(device: "rover", Contract.Schema(device: "rover", kind: "x", schema))
  }

  func refusal(_ line: String, _ schema: Schema = car) -> String? {
    do { _ = try driveSchema(schema).parse(line, 7) } catch {
      #expect(error.exitCode == 2)
      return error.message
    }
    return nil
  }

  @Test func `a line is a motion property, the arguments of a motion action, or any action by name`() throws {
    let car = driveSchema()
    let level: DriveRequest = .run(action: "tilt", arguments: ["roll": .float(0.1), "pitch": .float(0)], motion: true)
    #expect(try car.parse(#"{"roll":0.1,"pitch":0}"#, 1) == level)
    #expect(try car.parse(#" {"pitch":-0.0,"do":"tilt","roll":1e-1} "#, 1) == level && level.isSetPoint)
    let turned = try car.parse(#"{"roll":0.1,"pitch":0,"yaw":-3}"#, 1)
    #expect(turned == .run(action: "tilt", arguments: ["roll": .float(0.1), "pitch": .float(0), "yaw": .float(-3)], motion: true))
    let stop = try car.parse(#"{"do":"stop"}"#, 1)
    let go = try car.parse(#"{"do":"continue"}"#, 1)
    #expect(stop == .run(action: "stop", arguments: [:], motion: false) && !stop.isSetPoint)
    #expect(go == .run(action: "continue", arguments: [:], motion: true) && !go.isSetPoint)
    #expect(
      try car.parse(#"{"do":"neutral","position":"here"}"#, 1)
        == .run(action: "neutral", arguments: ["position": .string("here")], motion: false))
    let current = try driveSchema(Self.board).parse(#"{"target-current": 2.5}"#, 1)
    #expect(current == .set(property: "target-current", .float(2.5)) && current.isSetPoint)
  }

  @Test(arguments: [
    ("fast", "line 7: not a JSON object; write {\"roll\": VALUE, \"pitch\": VALUE}"), ("[1]", "line 7: not a JSON object; write {\"roll\""),
    ("{}", "line 7: empty object; write {\"roll\": VALUE"),
    (#"{"roll":1}"#, "line 7: tilt requires pitch"), (#"{"yaw":1}"#, "line 7: tilt requires roll and pitch"),
    (#"{"roll":1,"yaw":0}"#, "line 7: tilt requires pitch"),
    (#"{"speed":1}"#, "line 7: rover has no motion property \"speed\"; write {\"roll\""),
    (#"{"roll":1,"speed":3}"#, "line 7: no action of rover takes only roll, speed; write {\"roll\""),
    (#"{"roll":1,"pitch":0,"speed":3}"#, "line 7: no action of rover takes only roll, pitch, speed; write {\"roll\""),
    (#"{"roll":"much","pitch":0}"#, "line 7: roll: \"much\" is not a number; usage: tilt ROLL PITCH [YAW]"),
    (#"{"roll":null,"pitch":0}"#, "line 7: roll: \"null\" is not a number"), (#"{"roll":1e999,"pitch":0}"#, "line 7: not a JSON object"),
    (#"{"mode":"x"}"#, "line 7: rover has no motion property \"mode\""), (#"{"do":1}"#, "line 7: \"do\" must be the name of an action"),
    (#"{"do":"fly"}"#, "line 7: rover has no action \"fly\"; it has tilt, continue, stop, neutral"),
    (#"{"do":"stop","now":true}"#, "line 7: stop takes no argument \"now\"; usage: stop"),
    (#"{"do":"tilt","roll":1}"#, "line 7: missing argument pitch of tilt; usage: tilt ROLL PITCH [YAW]"),
  ])
  func `an invalid line is an error with its number and the remedy`(_ line: String, _ words: String) {
    let said = refusal(line)
    #expect(said?.hasPrefix(words) == true, "\(said ?? "accepted")")
  }

  @Test func `errors of a device with motion properties only`() {
    #expect(refusal("x", Self.board) == "line 7: not a JSON object; write {\"PROPERTY\": VALUE}, as in {\"target-current\": 2.5}")
    #expect(refusal(#"{"speed":3}"#, Self.board) == "line 7: rover has no motion property \"speed\"; it has target-current")
    #expect(
      refusal(#"{"target-current":"2.5"}"#, Self.board) == "line 7: target-current: \"2.5\" is a string; remove the quotes")
    #expect(refusal(#"{"roll":"0.1","pitch":0}"#) == "line 7: roll: \"0.1\" is a string; remove the quotes")
    #expect(refusal(#"{"speed":3}"#, Schema()) == "line 7: rover has no motion property \"speed\"; it has none")
    #expect(refusal(#"{"a":3,"b":4}"#, Self.board)?.hasPrefix("line 7: 2 motion properties; use one") == true)
    #expect(refusal(#"{"target-current":11}"#, Self.board) == "line 7: target-current: 11 is outside -10 to 10 A")
  }

  @Test func `an ambiguous line is an error`() {
    let ambiguous = Schema(actions: [Self.tilt, Action("lean", arguments: Self.angles, motion: true, help: "")])
    #expect(
      refusal(#"{"roll":1,"pitch":0}"#, ambiguous)
        == "line 7: ambiguous: it could be tilt or lean; name the action: {\"do\": \"tilt\", …}")
    #expect(refusal(#"{"do":"lean","roll":1,"pitch":0}"#, ambiguous) == nil)
    #expect(refusal(#"{"roll":1}"#, ambiguous) == "line 7: tilt requires pitch, or lean requires pitch")
  }

  @Test func `a motion property takes precedence over an argument of the same name`() throws {
    let both = Schema(properties: [Property("roll", .float, access: .motion, help: "")], actions: [Self.tilt])
    #expect(try driveSchema(both).parse(#"{"roll":1}"#, 7) == .set(property: "roll", .float(1)))
    #expect(refusal(#"{"pitch":1}"#, both) == "line 7: tilt requires roll")
  }

  @Test func `manual driving requires the action tilt with roll and pitch`() {
    #expect(driveSchema().tilt?.name == "tilt" && driveSchema(Self.board).tilt == nil)
    let more = Action("tilt", arguments: Self.angles + [Protocols.Argument("force", .float, help: "")], motion: true, help: "")
    for action in [
      more, Action("tilt", arguments: Self.angles, help: ""), Action("tilt", arguments: [Self.angles[0]], motion: true, help: ""),
    ] {
      #expect(driveSchema(Schema(actions: [action])).tilt == nil)
    }
  }

  @Test func `a tilt can be relative to neutral if the device supports it`() throws {
    let relative = Protocols.Argument("relative", .bool, optional: true, help: "")
    let car = driveSchema(Schema(actions: [Action("tilt", arguments: Self.angles + [relative], motion: true, help: "")]))
    #expect(car.tilt != nil && car.tiltsRelatively && !driveSchema().tiltsRelatively && !driveSchema(Self.board).tiltsRelatively)
    let angles: [String: Value] = ["roll": .float(1), "pitch": .float(0)]
    #expect(try car.parse(#"{"roll":1,"pitch":0}"#, 1) == .run(action: "tilt", arguments: angles, motion: true))
    let said = angles.merging(["relative": .bool(true)]) { $1 }
    #expect(try car.parse(#"{"roll":1,"pitch":0,"relative":true}"#, 1) == .run(action: "tilt", arguments: said, motion: true))
  }

  @Test func `the schema decides how a device is driven by hand`() {
    #expect(driveSchema().control is TiltControl && driveSchema(Self.board).control is ThrottleControl)
    #expect(driveSchema().stops && driveSchema().continues && !driveSchema(Self.board).stops && !driveSchema(Self.board).continues)
    #expect(driveSchema(Schema()).control == nil && !driveSchema(Schema()).moves && driveSchema(Self.board).moves)
  }
}
