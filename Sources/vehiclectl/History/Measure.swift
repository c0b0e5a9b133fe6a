// A measured value with its unit and error bound, as shown for trips and charges. No I/O.

import Varlink

struct Measure: Equatable {
  var value: Double
  /// The error bound; 0 if the value is exact or its error unknown.
  var bound = 0.0
  var unit: String
  /// The maximum number of decimal places. A large bound reduces it.
  var places = 1

  /// Creates a measure from a quantity of a period; nil if the vehicle does not report it.
  init?(_ quantity: HistoryContract.Quantity?, _ unit: String, places: Int = 1) {
    guard let quantity else { return nil }
    self.init(value: quantity.value, bound: max(0, quantity.bound), unit: unit, places: places)
  }

  init?(_ value: Double?, _ unit: String, places: Int = 1) {
    guard let value else { return nil }
    self.init(value: value, unit: unit, places: places)
  }

  private init(value: Double, bound: Double = 0, unit: String, places: Int) {
    (self.value, self.bound, self.unit, self.places) = (value, bound, unit, places)
  }

  /// The measure in the chosen units; nil if they cannot express it, such as a consumption of 0 in mi/kWh.
  func converted(to units: Units) -> Measure? {
    guard let conversion = units.conversion(of: unit) else { return self }
    guard !conversion.isInverse || value > 0 else { return nil }
    let exact = conversion.exact(value)
    let scale = conversion.isInverse ? exact / value : conversion.factor
    return Measure(value: exact, bound: bound * scale, unit: conversion.unit, places: places)
  }

  /// The measure in a smaller unit.
  func scaled(by factor: Double, _ unit: String, places: Int) -> Measure {
    Measure(value: value * factor, bound: bound * factor, unit: unit, places: places)
  }

  /// The bound rounded up to one digit, with its number of decimal places, which is at most that of the value.
  private var roundedBound: (text: String, places: Int)? {
    guard bound.isFinite, bound > 0 else { return nil }
    // The factor keeps a computed bound of 0.10000000000000009 from being rounded up to 0.2.
    for (places, step) in [(3, 0.001), (2, 0.01), (1, 0.1), (0, 1.0)] where places <= self.places && bound < step * 9.5 || places == 0 {
      return (Format.fixed((bound / step * 0.999_999).rounded(.up) * step, places), places)
    }
    return nil
  }

  /// The number and its bound without the unit. The number has at most one decimal place more than the bound: `8.43 ± 0.1`.
  func text(withBound: Bool = true) -> String {
    guard let bound = roundedBound else { return Format.fixed(value, places) }
    let number = Format.fixed(value, min(places, bound.places + 1))
    return withBound ? "\(number) ± \(bound.text)" : number
  }

  /// Whether the value is displayed as 0.
  var isZero: Bool { Double(Format.fixed(value, places)) == 0 }

  /// The number, its bound and the unit.
  var description: String { "\(text()) \(unit)" }
}
