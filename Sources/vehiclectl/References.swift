// The references of a command line, resolved against the schemas: PROPERTY, DEVICE.PROPERTY, DEVICE for all its properties, or a pattern
// with `*`, `?` and `[…]`. No I/O.

import Protocols
import Varlink

struct References {
  private enum Selector {
    case property(device: String, String)
    /// All properties of a device, including those that it declares later.
    case device(String)
    /// Patterns for the device and the property, which also select properties that are declared later.
    case pattern(device: Glob, Glob)
  }

  private let selectors: [Selector]

  /// Resolves each argument; one that selects nothing is an error.
  init(_ arguments: [String], in schemas: [Contract.Schema]) throws(Failure) {
    selectors = try arguments.map { argument throws(Failure) in try Self.selector(argument, schemas) }
  }

  /// Whether every argument names one property.
  var areExact: Bool {
    selectors.allSatisfy { if case .property = $0 { true } else { false } }
  }

  /// The selected properties as DEVICE.PROPERTY, in the order of the arguments, each once.
  func expanded(in schemas: [Contract.Schema]) -> [String] {
    var seen: Swift.Set<String> = []
    return selectors.flatMap { selector in
      schemas.flatMap { schema in
        schema.properties.filter { Self.selects(selector, schema.device, $0.name) }.map { "\(schema.device).\($0.name)" }
      }
    }.filter { seen.insert($0).inserted }
  }

  /// Whether any argument selects this property.
  func selects(_ device: String, _ property: String) -> Bool { selectors.contains { Self.selects($0, device, property) } }

  /// Whether any argument can select a property of this device.
  func selects(device: String) -> Bool {
    selectors.contains {
      switch $0 {
      case .property(let name, _), .device(let name): name == device
      case .pattern(let pattern, _): pattern.matches(device)
      }
    }
  }

  private static func selects(_ selector: Selector, _ device: String, _ property: String) -> Bool {
    switch selector {
    case .property(let name, let selected): name == device && selected == property
    case .device(let name): name == device
    case .pattern(let devices, let properties): devices.matches(device) && properties.matches(property)
    }
  }

  private static func selector(_ argument: String, _ schemas: [Contract.Schema]) throws(Failure) -> Selector {
    if Glob.isPattern(argument) { return try pattern(argument, schemas) }
    if schemas.contains(where: { $0.device == argument }) { return .device(argument) }
    let reference = try Reference(argument)
    let candidates = reference.device.map { device in schemas.filter { $0.device == device } } ?? schemas
    if let device = reference.device, candidates.isEmpty {
      throw .rejected(.noSuchDevice(device: device))
    }
    let owners = candidates.filter { $0.properties.contains { $0.name == reference.name } }
    guard let owner = owners.first else {
      throw .rejected(.noSuchProperty(device: reference.device, property: reference.name))
    }
    guard owners.count == 1 else {
      throw .rejected(.ambiguous(reference: reference.name, candidates: owners.map { "\($0.device).\(reference.name)" }))
    }
    return .property(device: owner.device, reference.name)
  }

  private static func pattern(_ argument: String, _ schemas: [Contract.Schema]) throws(Failure) -> Selector {
    let parts = argument.split(separator: ".", maxSplits: 1, omittingEmptySubsequences: false)
    let (device, property) = parts.count == 2 ? (Glob(parts[0]), Glob(parts[1])) : (Glob("*"), Glob(argument[...]))
    let selector = Selector.pattern(device: device, property)
    if schemas.contains(where: { schema in schema.properties.contains { selects(selector, schema.device, $0.name) } }) { return selector }
    // Without a dot, the argument can also be a pattern for device names.
    if parts.count == 1, schemas.contains(where: { property.matches($0.device) }) { return .pattern(device: property, Glob("*")) }
    throw .noSuchProperty("no property matches \"\(argument)\"; list properties: vehiclectl describe")
  }
}
