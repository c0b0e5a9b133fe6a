// Commands from the broker: what is accepted, and the reasons for rejections.

import Observations
import Protocols
import Testing
import Varlink

@testable import vehicled_mqtt

@Suite("Commands") struct CommandTests {
  private static let schema = Contract.Schema(
    device: "mirror", kind: "mirror",
    Schema(
      properties: [
        Property("led", .int, unit: "%", range: 0...100, access: .write, help: ""), Property("power", .bool, access: .write, help: ""),
        Property("weight", .float, help: ""), Property("throttle", .float, range: -1...1, access: .motion, help: ""),
      ],
      actions: [
        Action("refresh", help: ""),
        Action("show", arguments: [Argument("text", .string, help: ""), Argument("seconds", .int, optional: true, help: "")], help: ""),
        Action("stop", motion: true, help: ""), Action("dtc-clear", help: ""),
      ]))
  private let reader = CommandReader(Topics(host: "pi"), allowed: [ReferencePattern("mirror")])

  private func command(_ topic: String, _ payload: String, isRetained: Bool = false) throws(CommandRejection) -> DaemonCommand? {
    let message = IncomingMessage(topic: "vehicled/\(topic)", payload: Array(payload.utf8), isRetained: isRetained)
    return try reader.command(message) { $0 == "mirror" ? Self.schema : nil }
  }

  private func rejection(_ topic: String, _ payload: String, isRetained: Bool = false) -> String? {
    do throws(CommandRejection) {
      _ = try command(topic, payload, isRetained: isRetained)
      return nil
    } catch { return error.message }
  }

  @Test func `properties are set and actions are run`() throws {
    #expect(try command("mirror/led/set", "70") == .set(device: "mirror", property: "led", value: .int(70)))
    #expect(try command("mirror/power/set", "true") == .set(device: "mirror", property: "power", value: .bool(true)))
    #expect(try command("mirror/refresh/do", "PRESS") == .run(device: "mirror", action: "refresh", arguments: [:]))
    #expect(try command("mirror/refresh/do", "") == .run(device: "mirror", action: "refresh", arguments: [:]))
    #expect(
      try command("mirror/show/do", #"{"text":"hello","seconds":5}"#)
        == .run(device: "mirror", action: "show", arguments: ["text": .string("hello"), "seconds": .int(5)]))
    #expect(try command("mirror/led", "70") == nil)
  }

  @Test(arguments: [
    ("mirror/led/set", "170", "mirror.led: "), ("mirror/led/set", "bright", "mirror.led: "),
    ("mirror/weight/set", "1", "mirror.weight is read-only"),
    ("mirror/nothing/set", "1", "mirror has no property nothing"), ("mirror/throttle/set", "1", "mirror.throttle moves the vehicle"),
    ("mirror/stop/do", "", "mirror.stop moves the vehicle"), ("mirror/dtc-clear/do", "", "mirror.dtc-clear is not available by MQTT"),
    ("mirror/query/do", "", "mirror.query is not available by MQTT"),
    ("ev/led/set", "1", "ev.led is not allowed; add \"ev.led\" to control"),
    ("mirror/show/do", "hello", "mirror.show: the payload is not a JSON object"),
    ("mirror/show/do", "{}", "mirror.show: argument text is missing"),
    ("mirror/show/do", #"{"text":1}"#, "mirror.show: text: "),
    ("mirror/show/do", #"{"text":"a","size":1}"#, "mirror.show has no argument size"),
    ("mirror/show/do", #"{"text":["a"]}"#, "mirror.show: text is not a number"),
  ])
  func `a rejected command has a reason`(_ topic: String, _ payload: String, _ reason: String) {
    let message = rejection(topic, payload)
    #expect(message?.hasPrefix(reason) == true, "\(message ?? "accepted")")
  }

  @Test func `retained and huge commands are ignored`() {
    #expect(rejection("mirror/led/set", "70", isRetained: true)?.contains("retained commands are ignored") == true)
    #expect(rejection("mirror/led/set", String(repeating: "7", count: 5000))?.contains("at most 4096 bytes") == true)
    let message = IncomingMessage(topic: "vehicled/mirror/led/set", payload: [0xFF, 0xFE], isRetained: false)
    #expect(throws: CommandRejection.self) { try reader.command(message) { _ in Self.schema } }
  }

  private func problems(_ entries: String..., isDetected: Bool = true) -> [String] {
    var van = Contract.Schema(device: "van", kind: "obd", Schema(properties: [Property("speed", .float, help: "")]))
    van.provisional = isDetected ? nil : true
    var check = ControlCheck(entries.map { ReferencePattern($0) })
    return check.newProblems(in: [Self.schema, van])
  }

  @Test(arguments: [
    ("miror.led", "there is no device miror; did you mean mirror?"),
    ("garage", "there is no device garage; correct it in mqtt.toml, or grant vehicled-mqtt the right to observe the device"),
    ("mirror.refersh", "mirror has no property or action refersh; did you mean refresh?"),
    ("mirror.brightness", "mirror has no property or action brightness; list them: vehiclectl describe mirror"),
    ("*.brightness", "no device has a property or action brightness; list them: vehiclectl describe"),
    ("mirror.weight", "mirror.weight is read-only; remove it from mqtt.toml"),
    ("*.speed", "van.speed is read-only; remove it from mqtt.toml"),
    ("mirror.throttle", "mirror.throttle moves the vehicle, which is not possible by MQTT; remove it from mqtt.toml"),
    ("mirror.dtc-*", "mirror.dtc-clear is not available by MQTT; remove it from mqtt.toml"),
    ("van", "van has no property or action that is available by MQTT; remove it from mqtt.toml"),
    ("mirror.[tw]*", "mirror has no property or action that is available by MQTT; remove it from mqtt.toml"),
  ])
  func `an entry of control that selects nothing is reported with the remedy`(_ entry: String, _ problem: String) {
    #expect(problems(entry) == ["control: \"\(entry)\" selects nothing: \(problem)"])
  }

  @Test func `an entry of control may select what a car declares after its detection`() {
    #expect(problems("mirror", "mirror.led", "*.refresh", "*") == [])
    #expect(problems("van", "van.lights", isDetected: false) == [] && problems("van.lights").count == 1)
  }

  @Test func `a problem with control is reported once, and again if it returns`() {
    var check = ControlCheck([ReferencePattern("mirror.led")])
    #expect(check.newProblems(in: []).count == 1 && check.newProblems(in: []) == [])
    #expect(check.newProblems(in: [Self.schema]) == [] && check.newProblems(in: []).count == 1)
  }

  @Test func `nothing is allowed by default, and never what deletes trouble codes`() {
    let none = CommandReader(Topics(host: "pi"), allowed: [])
    #expect(!none.allows("mirror", "led") && reader.allows("mirror", "led") && !reader.allows("mirror", "dtc-clear"))
    #expect(!CommandReader(Topics(host: "pi"), allowed: [ReferencePattern("*")]).allows("ev", "query"))
  }
}
