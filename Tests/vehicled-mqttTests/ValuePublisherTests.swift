// What is published of the daemon's values, and when: changes beyond the resolution, absences, expiry, removed devices.

import Protocols
import Testing
import Varlink

@testable import vehicled_mqtt

@Suite("Published values") struct ValuePublisherTests {
  private static let second = Nanoseconds.second
  private let topics = Topics(host: "pi")

  private func publisher(retained: Set<String> = []) -> ValuePublisher {
    var publisher = ValuePublisher(topics, timing: PropertyState.Timing(), retained: retained) { _, _, property in property != "secret" }
    let schema = Schema(properties: [
      Property("speed", .float, unit: "km/h", help: ""), Property("odometer", .float, unit: "km", lifetime: .retained, help: ""),
      Property("gear", .string, choices: ["park", "drive"], lifetime: .whileUp, help: ""), Property("secret", .string, help: ""),
    ])
    publisher.declare(Contract.Schema(device: "ev", kind: "obd", schema))
    return publisher
  }

  private func reading(_ property: String, _ value: Value?, reason: String? = nil, time: Int? = nil) -> Contract.Reading {
    Contract.Reading(device: "ev", property: property, value: value, time: time, reason: reason)
  }

  private func snapshot(_ readings: [Contract.Reading], link: String = "up") -> Contract.Watch.Result {
    let links = [Contract.Link(name: "main", url: "tcp:x", state: link, since: 0)]
    return Contract.Watch.Result(
      sequence: 0, snapshot: [Contract.Device(name: "ev", kind: "obd", state: "polling", links: links, readings: readings)])
  }

  private func changes(_ readings: Contract.Reading...) -> Contract.Watch.Result { Contract.Watch.Result(sequence: 1, changes: readings) }

  /// The messages as lines, without attributes.
  private func lines(_ messages: [OutgoingMessage]) -> [String] {
    messages.filter { !$0.topic.hasSuffix("/attributes") }.map {
      "\($0.topic.dropFirst("vehicled/".count)) \(String(decoding: $0.payload, as: UTF8.self))\($0.expiry.map { " \($0)" } ?? "")"
    }
  }

  @Test func `a snapshot is published with states, links, and expiry for values that age`() {
    var publisher = publisher()
    let messages = publisher.apply(
      snapshot([
        reading("speed", .float(93.25)), reading("odometer", .float(25_413), time: 1_774_701_296_000_000),
        reading("gear", nil, reason: "stale"),
        reading("secret", .string("x")),
      ]), at: 0)
    #expect(lines(messages) == ["ev/state polling", "ev/link up", "ev/gear None", "ev/odometer 25413", "ev/speed 93.3 180"])
    #expect(!messages.contains { !$0.isRetained })
    let attributes = messages.filter { $0.topic.hasSuffix("/attributes") }.map { String(decoding: $0.payload, as: UTF8.self) }
    #expect(attributes == [#"{"reason":"stale"}"#, #"{"time":"2026-03-28T12:34:56Z","unit":"km"}"#, #"{"unit":"km/h"}"#])
    #expect(publisher.schema(of: "ev")?.properties.map(\.name) == ["speed", "odometer", "gear"])
  }

  @Test func `values wait for the declaration, which decides whether they expire`() {
    var publisher = ValuePublisher(topics, timing: PropertyState.Timing()) { _, _, _ in true }
    #expect(lines(publisher.apply(snapshot([reading("odometer", .float(7))]), at: 0)) == ["ev/state polling", "ev/link up"])
    #expect(publisher.due == nil)
    publisher.declare(
      Contract.Schema(
        device: "ev", kind: "obd", Schema(properties: [Property("odometer", .float, unit: "km", lifetime: .retained, help: "")])))
    let messages = publisher.publications(at: 1)
    #expect(lines(messages) == ["ev/odometer 7"] && messages.allSatisfy(\.isDurable))
    #expect(lines(publisher.daemonLost("vehicled is not running", at: 2)) == ["ev/link down", "ev/state None"])
  }

  @Test func `what an earlier run could not send is sent if its property still exists, or may exist`() {
    var publisher = ValuePublisher(topics, timing: PropertyState.Timing(), names: .init(vss: true, own: true)) { $2 != "secret" }
    _ = publisher.apply(snapshot([reading("odometer", .float(7)), reading("speed", .float(7))]), at: 0)
    var schema = Contract.Schema(
      device: "ev", kind: "obd",
      Schema(properties: [Property("odometer", .float, unit: "km", lifetime: .retained, help: ""), Property("speed", .float, help: "")]))
    publisher.declare(schema)
    var current: (String) -> Bool {
      let isInUse = publisher.topicsInUse(onlyDurable: true)
      return { isInUse("vehicled/\($0)") }
    }
    #expect(current("ev/odometer") && current("ev/odometer/attributes") && current("ev/Vehicle/TraveledDistance"))
    #expect(!current("ev/speed") && !current("ev/state-of-charge") && !current("other/odometer") && !current("ev2/odometer"))
    schema.provisional = true
    publisher.declare(schema)
    #expect(current("ev/state-of-charge") && current("ev/Vehicle/Powertrain/TractionBattery/StateOfCharge/Current"))
    #expect(!current("ev/secret") && !current("ev/secret/attributes"))
    let isInUse = publisher.topicsInUse()
    #expect(["link", "state", "speed", "speed/attributes", "odometer"].allSatisfy { isInUse("vehicled/ev/\($0)") })
    #expect(!isInUse("vehicled/pi/status") && !isInUse("homeassistant/device/vehicled_pi_ev/config"))
  }

  @Test func `what the broker retains of an earlier run stays until there is a new value`() {
    var publisher = publisher(retained: ["ev.odometer", "ev.speed"])
    let unknown = reading("odometer", nil, reason: "not read yet")
    #expect(
      lines(publisher.apply(snapshot([unknown, reading("speed", nil)]), at: 0)) == ["ev/state polling", "ev/link up", "ev/speed None"])
    #expect(publisher.publications(at: 50 * Self.second) == [] && publisher.retained == ["ev.odometer"])
    #expect(lines(publisher.apply(changes(reading("odometer", .float(7))), at: 51 * Self.second)) == ["ev/odometer 7"])
    #expect(lines(publisher.apply(changes(unknown), at: 52 * Self.second)) == ["ev/odometer None"] && publisher.retained == [])
    #expect(lines(publisher.restart() + publisher.publications(at: 53 * Self.second)).contains("ev/odometer None"))
    // Without an earlier value, the reason of an absence is shown at once.
    var other = self.publisher()
    #expect(lines(other.apply(snapshot([unknown]), at: 0)).contains("ev/odometer None"))
  }

  @Test func `an absence is published again, so that it is not shown as unavailable`() {
    var publisher = publisher()
    _ = publisher.apply(snapshot([reading("gear", nil, reason: "not reported by this car")]), at: 0)
    #expect(lines(publisher.publications(at: 59 * Self.second)) == [])
    #expect(lines(publisher.publications(at: 60 * Self.second)) == ["ev/gear None"])
  }

  @Test func `values are published as VSS signals, alone or besides their own names`() {
    for own in [true, false] {
      var publisher = ValuePublisher(topics, timing: PropertyState.Timing(), names: .init(vss: true, own: own)) { _, _, _ in true }
      publisher.declare(
        Contract.Schema(
          device: "ev", kind: "obd",
          Schema(properties: [
            Property("battery-power", .float, unit: "kW", help: ""), Property("cells", .string, help: ""),
            Property("state-of-charge", .float, unit: "%", lifetime: .retained, help: ""),
          ])))
      let power = Contract.Reading(device: "ev", property: "battery-power", value: .float(-7.25), unit: "kW")
      let charge = Contract.Reading(device: "ev", property: "state-of-charge", value: .float(55), unit: "%")
      let battery = "ev/Vehicle/Powertrain/TractionBattery"
      let expected = [
        "ev/state polling", "ev/link up", own ? "ev/battery-power -7.25 180" : nil, "\(battery)/CurrentPower 7250 180", "ev/cells a 180",
        own ? "ev/state-of-charge 55" : nil, "\(battery)/StateOfCharge/Current 55",
      ].compactMap { $0 }
      #expect(lines(publisher.apply(snapshot([power, reading("cells", .string("a")), charge]), at: 0)) == expected)
      let absent = lines(publisher.apply(changes(reading("battery-power", nil, reason: "stale")), at: 0))
      #expect(absent.contains("\(battery)/CurrentPower None"))
      let removal = Contract.Watch.Result(sequence: 2, events: [.init(device: "ev", name: Contract.Event.removed, text: "", time: 0)])
      #expect(publisher.topicsInUse()("vehicled/\(battery)/CurrentPower"))
      _ = publisher.apply(removal, at: 0)
      let isForgotten = publisher.forgetRemoved(at: 2 * Self.second)
      #expect(isForgotten && !publisher.topicsInUse()("vehicled/\(battery)/CurrentPower"))
    }
  }

  @Test func `changes are published beyond the resolution, and not more often than the interval`() {
    var publisher = publisher()
    _ = publisher.apply(snapshot([reading("speed", .float(50))]), at: 0)
    #expect(lines(publisher.apply(changes(reading("speed", .float(50.05))), at: 6 * Self.second)) == [])
    #expect(lines(publisher.apply(changes(reading("speed", .float(50.1))), at: 7 * Self.second)) == ["ev/speed 50.1 180"])
    #expect(lines(publisher.apply(changes(reading("speed", .float(60))), at: 8 * Self.second)) == [])
    #expect(lines(publisher.apply(changes(reading("speed", .float(70))), at: 9 * Self.second)) == [])
    #expect(publisher.due == 12 * Self.second)
    #expect(lines(publisher.publications(at: 12 * Self.second)) == ["ev/speed 70 180"])
    // A value that does not change is sent again before it expires.
    #expect(publisher.due == 67 * Self.second || publisher.due == 72 * Self.second)
    #expect(lines(publisher.publications(at: 72 * Self.second)) == ["ev/speed 70 180"])
  }

  @Test func `an absence and the first value after it are published at once`() {
    var publisher = publisher()
    _ = publisher.apply(snapshot([reading("speed", .float(50)), reading("odometer", .float(7))]), at: 0)
    let absent = publisher.apply(changes(reading("speed", nil, reason: "link down")), at: 1 * Self.second)
    #expect(lines(absent) == ["ev/speed None"])
    #expect(absent.last.map { String(decoding: $0.payload, as: UTF8.self) } == #"{"unit":"km/h","reason":"link down"}"#)
    #expect(lines(publisher.apply(changes(reading("speed", .float(51))), at: 2 * Self.second)) == ["ev/speed 51 180"])
    // A retained value stays.
    #expect(lines(publisher.publications(at: 3600 * Self.second)) == ["ev/speed 51 180"])
  }

  @Test func `without the daemon only retained values stay`() {
    var publisher = publisher()
    _ = publisher.apply(snapshot([reading("speed", .float(50)), reading("odometer", .float(7))]), at: 0)
    #expect(
      lines(publisher.daemonLost("vehicled is not running", at: 1 * Self.second)) == ["ev/link down", "ev/state None", "ev/speed None"])
    #expect(lines(publisher.restart()) == ["ev/state None", "ev/link down"])
    #expect(lines(publisher.publications(at: 2 * Self.second)) == ["ev/odometer 7", "ev/speed None"])
    #expect(
      lines(publisher.apply(snapshot([reading("speed", .float(50)), reading("odometer", .float(7))]), at: 3 * Self.second)) == [
        "ev/state polling", "ev/link up", "ev/speed 50 180",
      ])
  }

  @Test func `properties that are missing are absent until the device is detected, and then removed`() {
    var publisher = publisher()
    _ = publisher.apply(snapshot([reading("speed", .float(50)), reading("odometer", .float(7)), reading("gear", .string("park"))]), at: 0)
    #expect(lines(publisher.apply(snapshot([reading("speed", .float(50))]), at: 1)) == ["ev/gear None"])
    var schema = Contract.Schema(device: "ev", kind: "obd", Schema(properties: [Property("speed", .float, help: "")]))
    schema.provisional = true
    publisher.declare(schema)
    #expect(publisher.topicsInUse()("vehicled/ev/gear"))
    schema.provisional = nil
    publisher.declare(schema)
    #expect(!publisher.topicsInUse()("vehicled/ev/gear") && publisher.topicsInUse()("vehicled/ev/speed"))
    #expect(publisher.schema(of: "ev")?.properties.map(\.name) == ["speed"])
  }

  @Test func `a property cannot take the topic of the link or the state`() {
    var publisher = ValuePublisher(topics, timing: PropertyState.Timing()) { _, _, _ in true }
    let messages = publisher.apply(snapshot([reading("link", .float(88)), reading("state", .string("x"))]), at: 0)
    #expect(lines(messages) == ["ev/state polling", "ev/link up"])
  }

  @Test func `a removed device is forgotten, unless it comes back at once`() {
    var publisher = publisher()
    let removal = Contract.Watch.Result(
      sequence: 2, events: [Contract.Event(device: "ev", name: Contract.Event.removed, text: "", time: 0)])
    _ = publisher.apply(snapshot([reading("speed", .float(50))]), at: 0)
    #expect(publisher.apply(removal, at: 1) == [])
    #expect(publisher.forgetRemoved(at: Self.second) == false)
    #expect(lines(publisher.apply(snapshot([reading("speed", .float(60))]), at: 6 * Self.second)) == ["ev/speed 60 180"])
    #expect(publisher.forgetRemoved(at: 9 * Self.second) == false)
    _ = publisher.apply(removal, at: 10 * Self.second)
    #expect(publisher.due == 12 * Self.second && publisher.publications(at: 11 * Self.second) == [])
    #expect(publisher.forgetRemoved(at: 12 * Self.second) == true)
    #expect(publisher.deviceNames == [])
    // After a restart of the daemon, there is no event.
    _ = publisher.apply(snapshot([reading("speed", .float(50))]), at: 20 * Self.second)
    publisher.remove(except: ["other"], at: 21 * Self.second)
    #expect(publisher.forgetRemoved(at: 23 * Self.second) == true)
  }

  @Test func `topics are cleared some seconds later, unless something is published on them`() {
    var clearing = TopicClearing()
    clearing.clear(["a", "b", "c"], at: 0)
    clearing.published([.state("b", "1")])
    #expect(clearing.messages(at: 4 * Self.second) == [] && clearing.due == 5 * Self.second)
    #expect(clearing.messages(at: 5 * Self.second) == [.state("a", ""), .state("c", "")] && clearing.due == nil)
  }

  @Test func `nothing is published of a device without a published property`() {
    var publisher = publisher()
    let event = Contract.Event(device: "ev", name: "codes-cleared", text: "2 codes", time: 0)
    var result = snapshot([reading("secret", .string("x"))])
    result.events = [event]
    #expect(publisher.apply(result, at: 0) == [] && publisher.restart() == [])
    #expect(!publisher.topicsInUse()("vehicled/ev/state") && !publisher.topicsInUse()("vehicled/ev/link"))
    #expect(publisher.daemonLost("vehicled is not running", at: 1) == [])
    result = snapshot([reading("secret", .string("x")), reading("speed", .float(50))])
    result.events = [event]
    #expect(
      lines(publisher.apply(result, at: 2)).prefix(3) == [
        "ev/state polling", "ev/link up", #"ev/event/codes-cleared {"text":"2 codes","time":"1970-01-01T00:00:00Z"}"#,
      ])
  }

  @Test func `a device that is replaced by one of another kind is a new device`() {
    var publisher = ValuePublisher(topics, timing: PropertyState.Timing()) { _, kind, _ in kind == "longboard" }
    let schema = Schema(properties: [Property("speed", .float, unit: "km/h", lifetime: .retained, help: "")])
    for kind in ["longboard", "foot-pod"] {
      var result = snapshot([reading("speed", .float(50))])
      result.snapshot?[0].kind = kind
      publisher.declare(Contract.Schema(device: "ev", kind: kind, schema))
      let isBoard = kind == "longboard"
      #expect(publisher.apply(result, at: 0).isEmpty != isBoard && publisher.retained == (isBoard ? ["ev.speed"] : []))
      for topic in ["state", "link", "speed"] { #expect(publisher.topicsInUse()("vehicled/ev/\(topic)") == isBoard, "\(kind) \(topic)") }
    }
  }

  @Test func `events are published, not retained`() throws {
    var publisher = publisher()
    _ = publisher.apply(snapshot([reading("speed", .float(50))]), at: 0)
    let event = Contract.Event(device: "ev", name: "codes-cleared", text: "2 codes", time: 1_774_701_296_000_000)
    let message = try #require(publisher.apply(Contract.Watch.Result(sequence: 1, events: [event]), at: 0).first)
    #expect(message.topic == "vehicled/ev/event/codes-cleared" && !message.isRetained)
    #expect(String(decoding: message.payload, as: UTF8.self) == #"{"text":"2 codes","time":"2026-03-28T12:34:56Z"}"#)
  }
}
