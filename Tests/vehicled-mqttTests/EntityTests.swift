// The entities of Home Assistant: for every property of every kind, a class and a unit that belong together.
// Source of the table: home-assistant/core 2026.2, components/sensor/const.py (DEVICE_CLASS_UNITS, DEVICE_CLASS_STATE_CLASSES).

import Foundation
import Protocols
import Testing
import Varlink

@testable import vehicled_mqtt

@Suite("Entities of Home Assistant") struct EntityTests {
  /// The units that Home Assistant accepts for a class, as far as vehicled has such quantities.
  private static let units: [String: Set<String>] = [
    "battery": ["%"], "humidity": ["%"], "temperature": ["°C", "°F", "K"], "voltage": ["V", "mV"], "current": ["A", "mA"],
    "power": ["W", "kW"],
    "energy": ["Wh", "kWh"], "energy_storage": ["Wh", "kWh"], "distance": ["km", "m", "mm", "cm"], "precipitation": ["mm", "cm"],
    "speed": ["km/h", "m/s"], "wind_speed": ["km/h", "m/s"], "pressure": ["kPa", "Pa", "hPa"],
    "atmospheric_pressure": ["kPa", "hPa", "Pa"],
    "duration": ["s", "min", "h", "ms"], "frequency": ["Hz"], "volume_flow_rate": ["L/h"], "data_size": ["B"],
    "energy_distance": ["kWh/100km"],
  ]
  private static let totals: Set = ["energy", "distance", "duration", "precipitation", "data_size"]
  private static let measurements: Set = Set(units.keys).subtracting(["energy"])

  private static let schemas: [Contract.Schema] = [
    Kind.obd, .longboard, .rcCar, .mirror, .health, .heartRate, .footPod, .position, .weather, .toy,
  ]
  .map { kind in
    let defaults = kind.options.compactMap { option in option.defaultValue.map { (option.name, $0) } }
    let needed: [String: Value] = [
      "latitude": .float(48), "longitude": .float(9), "server": .string("http://127.0.0.1:1"), "user": .string("user"),
    ]
    let secrets = Dictionary(uniqueKeysWithValues: kind.secrets.map { ($0.name, SecretBytes(Array("ascii:0123456789abcdef".utf8))) })
    let options = Dictionary(uniqueKeysWithValues: defaults).merging(needed) { known, _ in known }
    do {
      return Contract.Schema(device: "x", kind: kind.name, try kind.make(Setup(device: "x", options: options, secrets: secrets)).schema)
    } catch {
      preconditionFailure("\(kind.name): \(error)")
    }
  }

  @Test func `every property of every kind has a valid entity`() {
    for schema in Self.schemas {
      for property in schema.properties {
        for isWritable in [false, true] {
          let entity = EntityModel.entity(for: property, isWritable: isWritable)
          let place = "\(schema.kind).\(property.name)"
          if let deviceClass = entity.deviceClass, [.sensor, .number].contains(entity.platform), deviceClass != "enum" {
            #expect(
              entity.unit.map { Self.units[deviceClass]?.contains($0) == true } == true, "\(place): \(deviceClass) in \(entity.unit ?? "-")"
            )
            if entity.stateClass == "total_increasing" { #expect(Self.totals.contains(deviceClass), "\(place): \(deviceClass)") }
            if entity.stateClass == "measurement" { #expect(Self.measurements.contains(deviceClass), "\(place): \(deviceClass)") }
          }
          if entity.deviceClass == "enum" { #expect(!entity.options.isEmpty && entity.unit == nil && entity.stateClass == nil, "\(place)") }
          if entity.platform == .number { #expect(entity.range != nil && (entity.step ?? 0) >= 0.001, "\(place)") }
          if property.motion { #expect([.sensor, .binarySensor].contains(entity.platform), "\(place) moves the vehicle") }
          if !isWritable { #expect([.sensor, .binarySensor].contains(entity.platform), "\(place)") }
        }
      }
    }
  }

  @Test func `the configuration of a device names all its entities`() throws {
    let topics = Topics(host: "pi")
    let schema = Contract.Schema(
      device: "ev", kind: "obd",
      Schema(
        properties: [
          Property("speed", .float, unit: "km/h", help: ""), Property("state-of-charge", .float, unit: "%", lifetime: .retained, help: ""),
          Property("led", .int, unit: "%", range: 0...100, access: .write, help: ""),
        ], actions: [Action("refresh", help: ""), Action("drive", motion: true, help: "")]))
    let discovery = DiscoveryPayload(topics: topics, prefix: "homeassistant", timing: PropertyState.Timing()) { _, name in name != "speed" }
    #expect(discovery.topic(of: "ev") == "homeassistant/device/vehicled_pi_ev/config")
    let payload = try #require(JSON(discovery.payload(schema, discovery.components(schema))))
    let components = try #require(payload["cmps"])
    let speed = try #require(components["sensor-speed"])
    #expect(speed["p"]?.string == "sensor" && speed["dev_cla"]?.string == "speed" && speed["exp_aft"] == .int(180) && speed["avty"] == nil)
    #expect(speed["stat_t"]?.string == "vehicled/ev/speed" && payload["~"] == nil && speed["cmd_t"] == nil)
    let charge = try #require(components["sensor-state-of-charge"])
    #expect(charge["dev_cla"]?.string == "battery" && charge["exp_aft"] == nil && charge["avty"] != nil)
    #expect(components["number-led"]?["p"]?.string == "number" && components["number-led"]?["cmd_t"]?.string == "vehicled/ev/led/set")
    #expect(components["button-refresh"]?["p"]?.string == "button" && components["button-drive"] == nil)
    #expect(components["binary_sensor-link"]?["dev_cla"]?.string == "connectivity")
    #expect(payload["o"]?["name"]?.string == "vehicled-mqtt" && payload["dev"]?["ids"]?.string == "vehicled_pi_ev")
  }

  @Test func `the configuration of a car with eighty properties has less than 30 kB`() throws {
    let schema = try #require(Self.schemas.first { $0.kind == "obd" })
    var large = schema
    var copies = schema.properties
    while copies.count < 80, let property = schema.properties.randomElement() { copies.append(property) }
    large.properties = Array(copies.prefix(80))
    let discovery = DiscoveryPayload(topics: Topics(host: "raspberrypi"), prefix: "homeassistant", timing: PropertyState.Timing()) { _, _ in
      true
    }
    #expect(discovery.payload(large, discovery.components(large)).utf8.count < 30_000)
  }
}
