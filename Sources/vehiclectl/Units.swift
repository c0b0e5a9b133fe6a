// Converts units for --units: from the daemon's km/h, °C or kPa to mph, °F or psi, and back for `set`. No I/O. A value and its unit change
// together or not at all; `metric` changes nothing.

import ArgumentParser
import Protocols
import Varlink

enum Units: String, ExpressibleByArgument, CaseIterable {
  case metric, imperial

  /// The environment variable that sets the default unit system.
  static let variable = "VEHICLECTL_UNITS"

  /// A linear conversion, or an inverse one, such as from kWh/100km to mi/kWh.
  struct Conversion {
    let unit: String
    let factor: Double
    var offset = 0.0
    var isInverse = false
    /// Whether to show at most one decimal place, so that a whole number converts back to the same number.
    var hasOnePlace = false

    /// The number in the converted unit, not rounded.
    func exact(_ number: Double) -> Double { isInverse ? factor / number : number * factor + offset }
    /// The number in the daemon's unit.
    func convertedBack(_ number: Double) -> Double { isInverse ? factor / number : (number - offset) / factor }

    /// The converted number, rounded to one decimal place, or two if it is small; nil if it has no equivalent, such as a consumption of 0.
    func converted(_ number: Double) -> Double? {
      let exact = exact(number)
      guard exact.isFinite, !isInverse || number > 0 else { return nil }
      let scale = abs(exact) < 10 && !hasOnePlace ? 100.0 : 10.0
      return (exact * scale).rounded() / scale + 0  // -0 becomes 0
    }

    /// The converted range.
    func converted(_ range: ClosedRange<Double>) -> ClosedRange<Double> {
      let ends = [range.lowerBound, range.upperBound].map { $0.isFinite ? converted($0) : $0 == -.infinity && !isInverse ? $0 : nil }
      if isInverse { return (ends[1] ?? 0)...(ends[0] ?? .infinity) }
      return (ends[0] ?? -.infinity)...(ends[1] ?? .infinity)
    }
  }

  private static let conversions: [String: Conversion] = [
    "km/h": Conversion(unit: "mph", factor: 1 / 1.609344, hasOnePlace: true),
    "km": Conversion(unit: "mi", factor: 1 / 1.609344),
    "°C": Conversion(unit: "°F", factor: 1.8, offset: 32),
    "kPa": Conversion(unit: "psi", factor: 0.145037737730),
    "bar": Conversion(unit: "psi", factor: 14.5037737730),
    "L": Conversion(unit: "gal", factor: 1 / 3.785411784),
    "L/h": Conversion(unit: "gal/h", factor: 1 / 3.785411784),
    "Nm": Conversion(unit: "lb·ft", factor: 0.737562149277),
    "g/s": Conversion(unit: "lb/min", factor: 60 / 453.59237),
    "kWh/100km": Conversion(unit: "mi/kWh", factor: 100 / 1.609344, isInverse: true),
    "Wh/km": Conversion(unit: "Wh/mi", factor: 1.609344),
    "L/100km": Conversion(unit: "mpg", factor: 100 * 3.785411784 / 1.609344, isInverse: true),
  ]

  func conversion(of unit: String?) -> Conversion? { self == .imperial ? unit.flatMap { Self.conversions[$0] } : nil }

  func converted(_ reading: Contract.Reading) -> Contract.Reading {
    guard let conversion = conversion(of: reading.unit) else { return reading }
    var value: Contract.Value?
    var reason = reading.reason
    switch reading.value {
    case .int(let number)?: value = conversion.converted(Double(number)).map { .float($0) }
    case .float(let number)?: value = conversion.converted(number).map { .float($0) }
    case .bool?, .string?, .list?: return reading  // keeps its unit as well
    case nil: break
    }
    if value == nil, reading.value != nil { reason = "cannot be expressed in \(conversion.unit)" }
    return Contract.Reading(
      device: reading.device, property: reading.property, value: value, unit: conversion.unit, time: reading.time, age: reading.age,
      reason: reason)
  }

  func converted(_ device: Contract.Device) -> Contract.Device {
    var device = device
    if self != .metric { device.readings = device.readings.map(converted) }
    return device
  }

  func converted(_ result: Contract.Watch.Result) -> Contract.Watch.Result {
    guard self != .metric else { return result }
    var result = result
    result.snapshot = result.snapshot?.map(converted)
    result.changes = result.changes?.map(converted)
    return result
  }

  func converted(_ schema: Contract.Schema) -> Contract.Schema {
    var schema = schema
    if self != .metric { schema.properties = schema.properties.map(converted) }
    return schema
  }

  private func converted(_ property: Contract.Property) -> Contract.Property {
    guard let declared = Property(property), let conversion = conversion(of: property.unit), declared.isNumber else { return property }
    var converted = Contract.Property(
      Property(
        declared.name, .float, unit: conversion.unit, range: declared.range.map(conversion.converted), choices: declared.choices,
        access: declared.access, help: declared.help))
    (converted.group, converted.rank) = (property.group, property.rank)
    return converted
  }

  /// The reply of Describe with converted units, types and ranges.
  func converted(_ reply: JSON) -> JSON {
    guard self != .metric else { return reply }
    return reply.changing("schemas") { schema in schema.changing("properties", convertedProperty) }
  }

  private func convertedProperty(_ property: JSON) -> JSON {
    guard case .object(var members) = property, let conversion = conversion(of: property["unit"]?.string),
      let type = property["type"]?.string.flatMap(ValueType.init), type == .int || type == .float
    else { return property }
    let range = conversion.converted((property["minimum"]?.number ?? -.infinity)...(property["maximum"]?.number ?? .infinity))
    members.removeAll { $0.key == "minimum" && !range.lowerBound.isFinite || $0.key == "maximum" && !range.upperBound.isFinite }
    for index in members.indices {
      switch members[index].key {
      case "unit": members[index].value = .string(conversion.unit)
      case "type": members[index].value = .string(ValueType.float.rawValue)
      case "minimum": members[index].value = .float(range.lowerBound)
      case "maximum": members[index].value = .float(range.upperBound)
      default: break
      }
    }
    return .object(members)
  }

  /// Parses a value in the converted unit and converts it back. Clamps it to the range, because the limits that the user sees are rounded.
  func parse(_ text: String, for property: Property) throws(ValueError) -> Value {
    guard let conversion = conversion(of: property.unit), property.isNumber else { return try property.rule.parse(text) }
    let rule = ValueRule(.float, unit: conversion.unit, range: property.range.map(conversion.converted))
    guard case .float(let number) = try rule.parse(text) else { throw ValueError("\"\(text)\" is not a number") }
    var value = conversion.convertedBack(number)
    guard value.isFinite else { throw ValueError("\"\(text)\" cannot be expressed in \(property.unit ?? "")") }
    if let range = property.range { value = min(max(value, range.lowerBound), range.upperBound) }
    return try property.rule.accept(.float(property.type == .int ? value.rounded() : (value * 1e6).rounded() / 1e6))
  }
}

extension Property {
  fileprivate var isNumber: Bool { type == .int || type == .float }
}

extension JSON {
  fileprivate var number: Double? {
    switch self {
    case .int(let number): Double(number)
    case .float(let number): number
    default: nil
    }
  }

  /// Returns the object with every element of this array member changed.
  fileprivate func changing(_ key: String, _ change: (JSON) -> JSON) -> JSON {
    guard case .object(var members) = self else { return self }
    for index in members.indices where members[index].key == key {
      if case .array(let elements) = members[index].value { members[index].value = .array(elements.map(change)) }
    }
    return .object(members)
  }
}
