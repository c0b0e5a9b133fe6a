// `vehiclectl get`: missing values, several values, devices and patterns.

import Protocols
import Testing
import Varlink

@testable import vehiclectl

@Suite("Get") struct GetTests {
  @Test(arguments: [("up", "down", 1), ("down", "up", 5), ("connecting", "down", 5)])
  func `only the main link decides whether the device is connected`(_ main: String, _ video: String, _ status: Int32) throws {
    let server = try SocketServer { method, _ in
      if method == Contract.Get.name {
        let reading = Contract.Reading(device: "car", property: "roll", reason: "not reported yet")
        return .send(VarlinkReply.message(Contract.Get.Result(readings: [reading])))
      }
      let links = [("main", main), ("video", video)].map { Contract.Link(name: $0, url: "tcp:car:1", state: $1, since: 0) }
      let car = Contract.Device(name: "car", kind: "rc-car", state: "ready", links: links)
      return .send(VarlinkReply.message(Contract.Status.Result(devices: [car])))
    }
    defer { server.stop() }
    let outcome = try Program.run(["get", "car.roll", "--socket", server.path])
    #expect(outcome.status == status && outcome.stdout.isEmpty)
  }

  /// A daemon with a connected car that has no value for rpm, and a van without properties.
  private static func server() throws -> SocketServer {
    let properties = [Property("speed", .float, unit: "km/h", help: ""), Property("rpm", .int, help: "")]
    return try SocketServer { method, parameters in
      switch method {
      case Contract.Describe.name:
        let schemas = [
          Contract.Schema(device: "car", kind: "obd", Schema(properties: properties)),
          Contract.Schema(device: "van", kind: "obd", Schema()),
        ]
        return .send(VarlinkReply.message(Contract.Describe.Result(schemas: schemas)))
      case Contract.Get.name:
        guard case .array(let references)? = parameters["references"] else { return .nothing }
        let names = references.compactMap { $0.string?.split(separator: ".").last.map(String.init) }
        if let unknown = names.first(where: { name in !properties.contains { $0.name == name } }) {
          return .send(VarlinkReply.message(.noSuchProperty(device: nil, property: unknown)))
        }
        let readings = names.map { name in
          Contract.Reading(
            device: "car", property: name, value: name == "speed" ? .float(50.5) : nil, unit: name == "speed" ? "km/h" : nil,
            reason: name == "speed" ? nil : "not reported")
        }
        return .send(VarlinkReply.message(Contract.Get.Result(readings: readings)))
      default:
        let links = [Contract.Link(name: "main", url: "tcp:car:1", state: "up", since: 0)]
        let car = Contract.Device(name: "car", kind: "obd", state: "polling", links: links)
        return .send(VarlinkReply.message(Contract.Status.Result(devices: [car])))
      }
    }
  }

  @Test(
    arguments: [
      (["speed"], "50.5\n", 0, nil), (["rpm"], "", 1, "car.rpm has no value: not reported"),
      (["car.rpm", "speed"], "-\n50.5\n", 1, "car.rpm has no value: not reported"),
      (["car"], "50.5\n-\n", 0, nil), (["*.s*"], "50.5\n", 0, nil), (["car.r*"], "", 1, "car.rpm has no value: not reported"),
      (["car.*", "speed"], "50.5\n-\n50.5\n", 0, nil), (["van"], "", 0, nil),
      (["speed", "rmp", "van.speed"], "50.5\n-\n-\n", 4, "no device has a property \"rmp\"; did you mean rpm?"),
      (["rmp"], "", 4, "no device has a property \"rmp\"; did you mean rpm?"),
      (["crx.*"], "", 4, "no property matches \"crx.*\""), (["speed", "rmp", "--json"], "{", 4, "did you mean rpm?"),
      (["car", "--long"], "car.speed  50.5  km/h\ncar.rpm       -\n", 0, nil), (["speed", "--long"], "car.speed  50.5  km/h\n", 0, nil),
      (["speed", "x.y", "--long"], "car.speed  50.5  km/h\nx.y           -\n", 4, "no device \"x\""),
      (["speed", "--long", "--units", "imperial"], "car.speed  31.4  mph\n", 0, nil),
    ] as [([String], String, Int32, String?)])
  func `several values have a line each`(_ arguments: [String], _ shown: String, _ status: Int32, _ error: String?) throws {
    let server = try Self.server()
    defer { server.stop() }
    let outcome = try Program.run(["get", "--socket", server.path] + arguments)
    #expect(outcome.status == status && (shown == "{" ? outcome.stdout.hasPrefix(shown) : outcome.stdout == shown), "\(outcome)")
    #expect(error.map(outcome.stderr.contains) ?? outcome.stderr.isEmpty, "\(outcome.stderr)")
  }

  @Test func `a name of a device selects the device, even if another device has a property with this name`() throws {
    let server = try SocketServer { method, parameters in
      switch method {
      case Contract.Describe.name:
        let schemas = [
          Contract.Schema(device: "mirror", kind: "mirror", Schema(properties: [Property("weather", .bool, help: "")])),
          Contract.Schema(device: "weather", kind: "weather", Schema(properties: [Property("humidity", .float, unit: "%", help: "")])),
        ]
        return .send(VarlinkReply.message(Contract.Describe.Result(schemas: schemas)))
      case Contract.Get.name:
        let humidity = Contract.Reading(device: "weather", property: "humidity", value: .float(81), unit: "%")
        let collect = Contract.Reading(device: "mirror", property: "weather", value: .bool(true))
        let isDevice = parameters["references"] == .array([.string("weather.humidity")])
        return .send(VarlinkReply.message(Contract.Get.Result(readings: [isDevice ? humidity : collect])))
      default:
        guard parameters["device"]?.string == "weather" else { return .send(VarlinkReply.message(.noSuchDevice(device: "?"))) }
        let weather = Contract.Device(name: "weather", kind: "weather", state: "live", links: [])
        return .send(VarlinkReply.message(Contract.Status.Result(devices: [weather])))
      }
    }
    defer { server.stop() }
    let outcome = try Program.run(["get", "--long", "weather", "--socket", server.path])
    #expect(outcome.stdout == "weather.humidity  81  %\n", "\(outcome)")
    let property = try Program.run(["get", "--long", "mirror.weather", "--socket", server.path])
    #expect(property.stdout == "mirror.weather  on\n", "\(property)")
  }

  @Test func `a long text does not move the units of other values`() throws {
    let server = try SocketServer { method, _ in
      guard method == Contract.Get.name else { return .send(VarlinkReply.message(.noSuchDevice(device: "?"))) }
      let readings = [
        Contract.Reading(device: "car", property: "vehicle", value: .string("a vehicle with a long name"), unit: nil),
        Contract.Reading(device: "car", property: "rpm", value: .int(7), unit: "1/min"),
      ]
      return .send(VarlinkReply.message(Contract.Get.Result(readings: readings)))
    }
    defer { server.stop() }
    let outcome = try Program.run(["get", "--long", "vehicle", "rpm", "--socket", server.path])
    #expect(outcome.stdout == "car.vehicle     a vehicle with a long name\ncar.rpm      7  1/min\n", "\(outcome)")
  }

  @Test func `values of exact names need no schema`() throws {
    let server = try SocketServer { method, _ in
      if method == Contract.Status.name { return .send(VarlinkReply.message(.noSuchDevice(device: "speed"))) }
      guard method == Contract.Get.name else { return .sendAndClose([]) }
      let readings = ["speed", "rpm"].map { Contract.Reading(device: "car", property: $0, value: .int(7)) }
      return .send(VarlinkReply.message(Contract.Get.Result(readings: readings)))
    }
    defer { server.stop() }
    #expect(try Program.run(["get", "speed", "car.rpm", "--socket", server.path]).stdout == "7\n7\n")
  }
}
