// A signal of the COVESA Vehicle Signal Specification (VSS) that a property gives, with the conversion of its values. No I/O.
// Source: github.com/COVESA/vehicle_signal_specification, version 6.0 (paths, types and units).

import Protocols

public struct VSSSignal: Equatable, Sendable {
  /// How a value becomes that of the signal.
  enum Conversion: Equatable {
    /// A number times this factor.
    case number(_ factor: Double = 1)
    /// The same, rounded to an integer within the range of the signal's type, after an offset was added.
    case integer(_ range: ClosedRange<Double>, factor: Double = 1, offset: Double = 0)
    /// A number without its sign.
    case magnitude
    /// Whether a number is not 0.
    case isNonzero
    case bool
    case text
    /// Words of the property and of the signal.
    case words([String: Value])
  }

  /// The full path, such as `Vehicle.Speed`.
  public let path: String
  /// The unit as VSS names it; nil for numbers without one, and for other types.
  public let unit: String?
  let conversion: Conversion

  init(_ path: String, _ unit: String?, _ conversion: Conversion) {
    (self.path, self.unit, self.conversion) = ("Vehicle." + path, unit, conversion)
  }

  /// The type of the signal's values.
  public var type: ValueType {
    switch conversion {
    case .number, .magnitude: .float
    case .integer: .int
    case .isNonzero, .bool: .bool
    case .text: .string
    case .words(let words): words.values.first?.type ?? .string
    }
  }

  /// The value of the signal; nil if the signal cannot have this value.
  public func value(_ value: Value) -> Value? {
    switch (conversion, value) {
    case (.bool, .bool), (.text, .string): return value
    case (.words(let words), .string(let word)): return words[word]
    case (.words(let words), .bool(let flag)): return words[flag ? "true" : "false"]
    default: break
    }
    guard value.type != .bool, let number = value.number else { return nil }
    switch conversion {
    // Rounded, because a factor such as 1000 adds errors in the last digits.
    case .number(let factor): return .float(factor == 1 ? number : (number * factor * 1e6).rounded() / 1e6)
    case .magnitude: return .float(abs(number))
    case .isNonzero: return .bool(number != 0)
    case .integer(let range, let factor, let offset):
      let integer = (number * factor + offset).rounded()
      return range.contains(integer) ? .int(Int(integer)) : nil
    case .bool, .text, .words: return nil
    }
  }
}
