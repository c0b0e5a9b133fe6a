// Announcements to Home Assistant across changes of the devices, and across restarts of the bridge.

import Protocols
import Testing
import Varlink

@testable import vehicled_mqtt

@Suite("Announcements to Home Assistant") struct AnnouncementsTests {
  private let topic = "homeassistant/device/vehicled_pi_car/config"

  private func announcements(host: String = "pi", control: Set<String> = []) -> Announcements {
    Announcements(
      DiscoveryPayload(topics: Topics(host: host), prefix: "homeassistant", timing: PropertyState.Timing()) { control.contains($1) })
  }

  private func schema(_ names: String...) -> Contract.Schema {
    let properties = names.map { Property($0, .int, unit: "%", range: 0...100, access: .write, help: "") }
    return Contract.Schema(device: "car", kind: "obd", Schema(properties: properties, actions: []))
  }

  /// The components of the configuration in these changes.
  private func components(_ changes: Announcements.Changes) throws -> [String: JSON] {
    let message = try #require(changes.messages.first { $0.topic == topic })
    guard case .object(let members)? = JSON(String(decoding: message.payload, as: UTF8.self))?["cmps"] else { return [:] }
    return Dictionary(uniqueKeysWithValues: members.map { ($0.key, $0.value) })
  }

  private func retained(_ changes: Announcements.Changes) throws -> IncomingMessage {
    let message = try #require(changes.messages.first { $0.topic == topic })
    return IncomingMessage(topic: topic, payload: message.payload, isRetained: true)
  }

  @Test func `a configuration is sent when it changes, and again after a new connection`() {
    var announcements = announcements()
    #expect(announcements.announce(schema("led")).messages.map(\.topic) == [topic])
    #expect(announcements.announce(schema("led")) == Announcements.Changes())
    announcements.restart()
    #expect(announcements.announce(schema("led")).messages.count == 1)
    #expect(announcements.withdraw("car").messages == [.state(topic, "")])
    #expect(announcements.withdraw("car") == Announcements.Changes())
  }

  @Test func `a property that vanishes is named once more with its platform, and its topics are cleared`() throws {
    var announcements = announcements()
    _ = announcements.announce(schema("led", "fan"))
    let changes = announcements.announce(schema("led"))
    let components = try components(changes)
    #expect(components["sensor-fan"] == .members(["p": .string("sensor")]) && components["sensor-led"]?["uniq_id"] != nil)
    #expect(changes.topics == ["vehicled/car/fan", "vehicled/car/fan/attributes"])
    // The queue may replace this message by a later one, which must therefore remove the entity as well.
    #expect(try self.components(announcements.announce(schema("led", "horn")))["sensor-fan"] == .members(["p": .string("sensor")]))
    #expect(try self.components(announcements.announce(schema("led", "fan")))["sensor-fan"]?["uniq_id"] != nil)
  }

  @Test func `a property that changes its platform keeps its topics`() throws {
    var before = announcements()
    let old = before.announce(schema("led"))
    var announcements = announcements(control: ["led"])
    announcements.found(try retained(old))
    let changes = announcements.announce(schema("led"))
    let components = try components(changes)
    #expect(components["sensor-led"] == .members(["p": .string("sensor")]) && components["number-led"]?["cmd_t"] != nil)
    #expect(changes.topics == [])
  }

  @Test func `what an earlier run announced is removed, also if it arrives after the new configuration`() throws {
    var before = announcements()
    let old = try retained(before.announce(schema("led", "fan")))
    var announcements = announcements()
    _ = announcements.announce(schema("led"))
    announcements.found(old)
    #expect(try components(announcements.announce(schema("led")))["sensor-fan"] == .members(["p": .string("sensor")]))
    #expect(announcements.removeAll(except: ["car"]) == Announcements.Changes())

    var later = self.announcements()
    later.found(try retained(announcements.announce(schema("led", "horn"))))
    #expect(later.removeAll(except: ["car"]) == Announcements.Changes())
    let changes = later.removeAll(except: ["other"])
    #expect(changes.messages == [.state(topic, "")])
    let values = ["horn", "led"].flatMap { ["vehicled/car/\($0)", "vehicled/car/\($0)/attributes"] }
    #expect(changes.topics == values + ["vehicled/car/link", "vehicled/car/state"])
  }

  @Test func `until the car is detected, its former entities stay as they were`() throws {
    var before = announcements()
    let old = try retained(before.announce(schema("led", "fan")))
    var announcements = announcements()
    announcements.found(old)
    var provisional = schema("voltage")
    provisional.provisional = true
    let changes = announcements.announce(provisional)
    let components = try components(changes)
    #expect(components["sensor-fan"]?["stat_t"]?.string == "vehicled/car/fan" && components["sensor-voltage"]?["uniq_id"] != nil)
    #expect(changes.topics == [])
    let detected = announcements.announce(schema("voltage", "led"))
    #expect(try self.components(detected)["sensor-fan"] == .members(["p": .string("sensor")]))
    #expect(detected.topics == ["vehicled/car/fan", "vehicled/car/fan/attributes"])
  }

  @Test func `configurations of other programs and bridges, and damaged ones, are left alone`() throws {
    var other = announcements(host: "pi_car")
    let foreign = other.announce(schema("led")).messages[0]
    var announcements = announcements()
    for text in [String(decoding: foreign.payload, as: UTF8.self), "", "{", "[]", #"{"cmps":{"x":{"p":"sensor","uniq_id":"x"}}}"#] {
      announcements.found(IncomingMessage(topic: foreign.topic, payload: Array(text.utf8), isRetained: true))
    }
    announcements.found(IncomingMessage(topic: topic, payload: [0xFF, 0xFE], isRetained: true))
    #expect(announcements.removeAll(except: []) == Announcements.Changes())
    // Topics outside of the prefix are not cleared.
    let forged = #"""
      {"avty":[{"t":"vehicled/pi/status"}],"cmps":{"a":{"p":"sensor","uniq_id":"a","stat_t":"zigbee/lamp"}}}
      """#
    announcements.found(IncomingMessage(topic: topic, payload: Array(forged.utf8), isRetained: true))
    #expect(announcements.removeAll(except: []) == Announcements.Changes(messages: [.state(topic, "")]))
    // Nor are those of current devices and of the bridge.
    _ = announcements.announce(schema("led"))
    for used in ["vehicled/pi/status", "vehicled/car/led", "vehicled/car/link"] {
      let forged = #"{"avty":[{"t":"vehicled/pi/status"}],"cmps":{"a":{"p":"sensor","uniq_id":"a","stat_t":"\#(used)"}}}"#
      announcements.found(IncomingMessage(topic: "homeassistant/device/x/config", payload: Array(forged.utf8), isRetained: true))
      #expect(announcements.removeAll(except: ["car"]).topics == [], "\(used)")
    }
  }
}
