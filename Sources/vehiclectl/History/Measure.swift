// A measured number with its unit and the bound of its error, as trips and charges show it. Pure.

import Varlink

struct Measure: Equatable {
  var value: Double
  /// 0: unknown, or exact.
  var bound = 0.0
  var unit: String
  /// The decimal places, fewer if the bound is large.
  var places = 1

  /// A quantity of a period; nil if the vehicle does not report it.
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

  /// The measure in the chosen units; nil if it cannot be expressed in them, as a consumption of 0 in mi/kWh.
  func converted(_ units: Units) -> Measure? {
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

  /// The bound with one digit, rounded up, and its decimal places, not more than those of the value.
  private var shownBound: (text: String, places: Int)? {
    guard bound.isFinite, bound > 0 else { return nil }
    // Bounds are computed: 0.1 can be 0.10000000000000009.
    for (places, step) in [(3, 0.001), (2, 0.01), (1, 0.1), (0, 1.0)] where places <= self.places && bound < step * 9.5 || places == 0 {
      return (Format.fixed((bound / step * 0.999_999).rounded(.up) * step, places), places)
    }
    return nil
  }

  /// The number without its unit, with at most one decimal place more than its bound: `8.43 ± 0.1`.
  func text(withBound: Bool = true) -> String {
    guard let bound = shownBound else { return Format.fixed(value, places) }
    let number = Format.fixed(value, min(places, bound.places + 1))
    return withBound ? "\(number) ± \(bound.text)" : number
  }

  /// Whether it is shown as 0.
  var isZero: Bool { Double(Format.fixed(value, places)) == 0 }

  /// Number and unit.
  var description: String { "\(text()) \(unit)" }
}
