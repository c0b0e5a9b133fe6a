// The properties of a health device: four metrics, and the source of each value. The order of the cases is the order of the
// schema. Units are bpm, kcal and km.

/// A metric of a person; its raw value is its position in the schema.
enum HealthMetric: Int, CaseIterable, Sendable {
  case heartRate, activeEnergy, steps, distance

  var name: String { declaration.name }
  /// The position of the property with the source of the value.
  var sourceProperty: Int { rawValue + Self.allCases.count }
  /// Whether the metric is a total since local midnight.
  var isDailyTotal: Bool { self != .heartRate }

  /// The number as a value of the declared type; nil if it is out of range.
  func value(_ number: Double) -> Value? {
    guard number.isFinite, let range = declaration.range, range.contains(number) else { return nil }
    return self == .steps ? .int(Int(number.rounded())) : .float(number)
  }

  /// The rows of the schema. A heart rate expires by itself; the machine withdraws the totals at midnight, when they
  /// belong to the previous day.
  static func properties(heartRateMaxAge: Nanoseconds) -> [Property] {
    allCases.map { metric in
      let row = metric.declaration
      return Property(
        row.name, metric == .steps ? .int : .float, unit: row.unit, range: row.range, access: .write,
        lifetime: metric.isDailyTotal ? .retained : .fresh(heartRateMaxAge), group: .health,
        rank: metric == .heartRate || metric == .steps ? .headline : .main, help: row.help)
    }
      + allCases.map { metric in
        Property(
          "\(metric.name)-source", .string, lifetime: metric.isDailyTotal ? .retained : .fresh(heartRateMaxAge),
          group: .health, rank: .detail, help: "Source and time of \(metric.name)")
      }
  }

  private typealias Row = (name: String, unit: String?, range: ClosedRange<Double>?, help: String)

  private var declaration: Row {
    switch self {
    case .heartRate: ("heart-rate", "bpm", 20...300, "Heart rate")
    case .activeEnergy: ("active-energy", "kcal", 0...100_000, "Active energy since local midnight")
    case .steps: ("steps", nil, 0...1_000_000, "Steps since local midnight")
    case .distance: ("distance", "km", 0...10_000, "Walking and running distance since local midnight")
    }
  }
}
