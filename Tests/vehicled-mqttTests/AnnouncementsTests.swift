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
  private func components(_ changes: [OutgoingMessage]) throws -> [String: JSON] {
    let message = try #require(changes.first { $0.topic == topic })
    guard case .object(let members)? = JSON(String(decoding: message.payload, as: UTF8.self))?["cmps"] else { return [:] }
    return Dictionary(uniqueKeysWithValues: members.map { ($0.key, $0.value) })
  }

  private func retained(_ changes: [OutgoingMessage]) throws -> IncomingMessage {
    let message = try #require(changes.first { $0.topic == topic })
    return IncomingMessage(topic: topic, payload: message.payload, isRetained: true)
  }

  @Test func `a configuration is sent when it changes, and again after a new connection`() {
    var announcements = announcements()
    #expect(announcements.announce(schema("led")).map(\.topic) == [topic])
    #expect(announcements.announce(schema("led")) == [])
    announcements.restart()
    #expect(announcements.announce(schema("led")).count == 1)
    #expect(announcements.withdraw("car") == [.state(topic, "")])
    #expect(announcements.withdraw("car") == [])
  }

  @Test func `a property that vanishes is named once more with its platform`() throws {
    var announcements = announcements()
    _ = announcements.announce(schema("led", "fan"))
    let changes = announcements.announce(schema("led"))
    let components = try components(changes)
    #expect(components["sensor-fan"] == .members(["p": .string("sensor")]) && components["sensor-led"]?["uniq_id"] != nil)
    // The queue may replace this message by a later one, which must therefore remove the entity as well.
    #expect(try self.components(announcements.announce(schema("led", "horn")))["sensor-fan"] == .members(["p": .string("sensor")]))
    #expect(try self.components(announcements.announce(schema("led", "fan")))["sensor-fan"]?["uniq_id"] != nil)
  }

  @Test func `a property that changes its platform becomes another entity`() throws {
    var before = announcements()
    let old = before.announce(schema("led"))
    var announcements = announcements(control: ["led"])
    #expect(announcements.found(try retained(old)) == true)
    let changes = announcements.announce(schema("led"))
    let components = try components(changes)
    #expect(components["sensor-led"] == .members(["p": .string("sensor")]) && components["number-led"]?["cmd_t"] != nil)
  }

  @Test func `what an earlier run announced is removed, also if it arrives after the new configuration`() throws {
    var before = announcements()
    let old = try retained(before.announce(schema("led", "fan")))
    var announcements = announcements()
    _ = announcements.announce(schema("led"))
    #expect(announcements.found(old) == true)
    #expect(try components(announcements.announce(schema("led")))["sensor-fan"] == .members(["p": .string("sensor")]))
    #expect(announcements.removeAll(except: ["car"]) == [])

    var later = self.announcements()
    #expect(later.found(try retained(announcements.announce(schema("led", "horn")))) == true)
    #expect(later.removeAll(except: ["car"]) == [])
    #expect(later.isInUse(topic))
    #expect(later.removeAll(except: ["other"]) == [.state(topic, "")])
    #expect(!later.isInUse(topic))
  }

  @Test func `until the car is detected, its former entities stay as they were`() throws {
    var before = announcements()
    let old = try retained(before.announce(schema("led", "fan")))
    var announcements = announcements()
    #expect(announcements.found(old) == true)
    var provisional = schema("voltage")
    provisional.provisional = true
    let changes = announcements.announce(provisional)
    let components = try components(changes)
    #expect(components["sensor-fan"]?["stat_t"]?.string == "vehicled/car/fan" && components["sensor-voltage"]?["uniq_id"] != nil)
    let detected = announcements.announce(schema("voltage", "led"))
    #expect(try self.components(detected)["sensor-fan"] == .members(["p": .string("sensor")]))
  }

  @Test func `configurations of other programs and bridges, and damaged ones, are left alone`() throws {
    var other = announcements(host: "pi_car")
    let foreign = other.announce(schema("led"))[0]
    var announcements = announcements()
    for text in [String(decoding: foreign.payload, as: UTF8.self), "", "{", "[]", #"{"cmps":{"x":{"p":"sensor","uniq_id":"x"}}}"#] {
      for topic in [foreign.topic, topic] {
        #expect(announcements.found(IncomingMessage(topic: topic, payload: Array(text.utf8), isRetained: true)) == false)
      }
    }
    #expect(announcements.found(IncomingMessage(topic: topic, payload: [0xFF, 0xFE], isRetained: true)) == false)
    #expect(announcements.removeAll(except: []) == [])
    // A configuration that claims the status of this bridge, on a topic that the bridge does not use.
    let forged = #"{"avty":[{"t":"vehicled/pi/status"}],"cmps":{"a":{"p":"sensor","uniq_id":"a","stat_t":"zigbee/lamp"}}}"#
    let message = { (topic: String) in IncomingMessage(topic: topic, payload: Array(forged.utf8), isRetained: true) }
    #expect(announcements.found(message("homeassistant/device/x/config")) == false)
    #expect(announcements.found(message(topic)) == true)
    #expect(announcements.removeAll(except: []) == [.state(topic, "")])
  }

  @Test func `what the bridge has sent itself changes nothing`() throws {
    var announcements = announcements()
    let own = try retained(announcements.announce(schema("led")))
    #expect(announcements.found(own) == false)
  }
}
