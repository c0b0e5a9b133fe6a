// metrics: the text for Prometheus.

import Protocols
import Testing
import Varlink

@testable import OpenMetrics

@Suite struct OpenMetricsTests {
  private static func reading(_ device: String, _ property: String, _ value: Value?, _ unit: String? = nil) -> Contract.Reading {
    Contract.Reading(device: device, property: property, value: value, unit: unit, reason: value == nil ? "stale" : nil)
  }

  private static func device(_ name: String, _ readings: [Contract.Reading], fault: String? = nil) -> Contract.Device {
    let link = Contract.Link(name: "main", url: "tcp:x", state: fault == nil ? "up" : "down", since: 0)
    return Contract.Device(name: name, kind: "obd", state: "polling", links: [link], readings: readings, fault: fault)
  }

  @Test func `samples of one metric are contiguous, missing values are omitted`() throws {
    let devices = [
      Self.device(
        "ev",
        [
          Self.reading("ev", "battery-voltage", .float(375.2), "V"), Self.reading("ev", "rpm", .int(824), "rpm"),
          Self.reading("ev", "charging", .bool(false)), Self.reading("ev", "vin", .string("KMH")),
          Self.reading("ev", "cells-1", .list(["3.9"])), Self.reading("ev", "speed", nil, "km/h"),
        ]),
      Self.device(
        "ice", [Self.reading("ice", "rpm", .float(2501.75), "rpm"), Self.reading("ice", "speed", .int(-3), "km/h")], fault: "off"),
    ]
    let statistics = [Contract.Statistic("vehicled_calls", "counter", "Calls of \"clients\".", 12)]
    let property = Property("rpm", .float, unit: "rpm", help: "Engine speed\nor \\ motor")
    let schema = Contract.Schema(device: "ice", kind: "obd", Schema(properties: [property], actions: []))
    let text = OpenMetrics.text(devices, [schema], statistics)
    #expect(
      text == [
        "# TYPE vehicle_battery_voltage_volts gauge", "# UNIT vehicle_battery_voltage_volts volts",
        "vehicle_battery_voltage_volts{device=\"ev\"} 375.2",
        "# TYPE vehicle_charging gauge", "vehicle_charging{device=\"ev\"} 0",
        "# TYPE vehicle_rpm gauge", "# UNIT vehicle_rpm rpm",
        "vehicle_rpm{device=\"ev\"} 824", "vehicle_rpm{device=\"ice\"} 2501.75",
        "# TYPE vehicle_speed_kilometers_per_hour gauge", "# UNIT vehicle_speed_kilometers_per_hour kilometers_per_hour",
        "vehicle_speed_kilometers_per_hour{device=\"ice\"} -3",
        "# TYPE vehicled_calls counter", "# HELP vehicled_calls Calls of \\\"clients\\\".", "vehicled_calls_total 12",
        "# TYPE vehicled_device_fault gauge", "# HELP vehicled_device_fault 1 if the device has a fault.",
        "vehicled_device_fault{device=\"ev\"} 0", "vehicled_device_fault{device=\"ice\"} 1",
        "# TYPE vehicled_device_state gauge", "# HELP vehicled_device_state 1 for the current state of the device.",
        "vehicled_device_state{device=\"ev\",kind=\"obd\",state=\"polling\"} 1",
        "vehicled_device_state{device=\"ice\",kind=\"obd\",state=\"polling\"} 1",
        "# TYPE vehicled_link_up gauge", "# HELP vehicled_link_up 1 if the link is up.",
        "vehicled_link_up{device=\"ev\",link=\"main\"} 1", "vehicled_link_up{device=\"ice\",link=\"main\"} 0",
        "# EOF",
      ])
  }

  @Test func `positions are omitted unless their device is named`() {
    var gps = Self.device("gps", ["latitude", "longitude", "altitude", "track", "speed"].map { Self.reading("gps", $0, .float(63.5)) })
    gps.kind = "position"
    let car = Self.device("car", ["altitude", "gps-latitude"].map { Self.reading("car", $0, .float(5)) })
    let published = { (names: [String]) in OpenMetrics.published([gps, car], with: names).map { $0.readings.map(\.property) } }
    #expect(
      published([]) == [["speed"], ["altitude"]] && published(["car"])[0] == ["speed"] && published(["car"])[1].count == 2
        && published(["gps"])[0].count == 5)
  }

  @Test func `values that expire have the time when they were measured, others have none`() {
    let properties = [
      Property("speed", .int, lifetime: .fresh(2 * .second), help: ""), Property("odometer", .int, lifetime: .retained, help: ""),
      Property("rate", .int, lifetime: .whileUp, help: ""),
    ]
    let readings = properties.map { Contract.Reading(device: "ev", property: $0.name, value: .int(5), time: 1_795_720_742_082_855) }
    let schema = Contract.Schema(device: "ev", kind: "obd", Schema(properties: properties, actions: []))
    let devices = [Self.device("ev", readings)]
    #expect(
      OpenMetrics.text(devices, [schema], [], withTimes: true).filter { $0.hasPrefix("vehicle_") } == [
        "vehicle_odometer{device=\"ev\"} 5", "vehicle_rate{device=\"ev\"} 5", "vehicle_speed{device=\"ev\"} 5 1795720742.082",
      ])
    #expect(OpenMetrics.text(devices, [schema], []).contains("vehicle_speed{device=\"ev\"} 5"))
  }

  @Test func `two properties of a device are two series`() {
    let readings = [
      Self.reading("ev", "temp", .int(20), "°C"), Self.reading("ev", "temp-celsius", .int(3)), Self.reading("ev", "temp.celsius", .int(4)),
    ]
    let text = OpenMetrics.text([Self.device("ev", readings), Self.device("ice", [Self.reading("ice", "temp-celsius", .int(5))])], [], [])
    #expect(
      text.filter { $0.hasPrefix("vehicle_") } == [
        "vehicle_temp_celsius{device=\"ev\"} 20", "vehicle_temp_celsius{device=\"ice\"} 5", "vehicle_temp_celsius_2{device=\"ev\"} 3",
        "vehicle_temp_celsius_3{device=\"ev\"} 4",
      ])
  }

  @Test func `any number of properties of a device can map to one name`() {
    let names = (0..<16).map { bits in (0..<4).map { bits >> $0 & 1 == 0 ? "a-" : "a." }.joined() }
    let text = OpenMetrics.text([Self.device("ev", names.map { Self.reading("ev", $0, .int(1)) })], [], [])
    #expect(Set(text.filter { $0.hasPrefix("vehicle_") }).count == names.count)
  }

  @Test(arguments: [
    ("battery-voltage", "V", "vehicle_battery_voltage_volts"), ("rpm", "rpm", "vehicle_rpm"),
    ("speed", "m/fortnight", "vehicle_speed_m_per_fortnight"),
    ("oil-temperature", "°C", "vehicle_oil_temperature_celsius"), ("x", "µ€", "vehicle_x___"),
  ])
  func `names have letters, digits and underscores, and the unit once`(_ property: String, _ unit: String, _ name: String) {
    #expect(OpenMetrics.propertyName(property, OpenMetrics.unitName(unit)) == name)
  }
}
