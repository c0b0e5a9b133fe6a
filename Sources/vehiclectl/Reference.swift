// A REF argument, NAME or DEVICE.NAME, of a property or an action, resolved against the schemas. An ambiguous REF is an error.

import Protocols
import Varlink

struct Reference: Equatable {
  /// nil selects the only device that has the property or action.
  var device: String?
  var name: String
}

extension Reference {
  /// Parses a reference. Device names contain no dot, so the first dot ends the device name.
  init(_ text: String) throws(Failure) {
    let parts = text.split(separator: ".", maxSplits: 1, omittingEmptySubsequences: false)
    guard parts.allSatisfy({ !$0.isEmpty }), let last = parts.last else {
      throw .usage("invalid reference \"\(text)\"; use PROPERTY or DEVICE.PROPERTY")
    }
    device = parts.count == 2 ? parts.first.map(String.init) : nil
    name = String(last)
  }

  /// The device and its property.
  func property(in schemas: [Contract.Schema]) throws(Failure) -> (device: String, Contract.Property) {
    let matches = schemas.compactMap { schema in schema.properties.first { $0.name == name }.map { (schema.device, $0) } }
    guard let first = matches.first else { throw .rejected(.noSuchProperty(device: device, property: name)) }
    guard matches.count == 1 else { throw ambiguous(matches.map(\.0)) }
    return first
  }

  func property(of client: Client) throws(Failure) -> (device: String, Contract.Property) { try property(in: try schemas(client)) }
  func action(of client: Client) throws(Failure) -> (device: String, Contract.Action) { try action(in: try schemas(client)) }

  /// The device and its action.
  func action(in schemas: [Contract.Schema]) throws(Failure) -> (device: String, Contract.Action) {
    let matches = schemas.compactMap { schema in schema.actions.first { $0.name == name }.map { (schema.device, $0) } }
    guard let first = matches.first else {
      throw device.map { .rejected(.noSuchAction(device: $0, action: name)) } ?? .noSuchAction(name)
    }
    guard matches.count == 1 else { throw ambiguous(matches.map(\.0)) }
    return first
  }

  /// The schema of the device, or of all devices.
  func schemas(_ client: Client) throws(Failure) -> [Contract.Schema] {
    let schemas = try client.call(Contract.Describe.self, .init(device: device)).schemas
    return device.map { device in schemas.filter { $0.device == device } } ?? schemas
  }

  /// The text of the property; fails with the reason if it has no value.
  func text(_ client: Client) throws(Failure) -> String {
    let reference = device.map { "\($0).\(name)" } ?? name
    let reading = try client.call(Contract.Get.self, .init(references: [reference])).readings.first
    if case .string(let text)? = reading?.value, !text.isEmpty { return text }
    let links = try client.call(Contract.Status.self, .init(device: reading?.device ?? device)).devices.flatMap(\.links)
    throw .noValue(
      "\(reference) has no value: \(reading?.reason ?? "none received yet"); see: vehiclectl status",
      notConnected: links.contains { $0.state != "up" })
  }

  private func ambiguous(_ devices: [String]) -> Failure {
    .rejected(.ambiguous(reference: name, candidates: devices.map { "\($0).\(name)" }))
  }
}
