// The properties of a health device: four metrics, and for each where its value comes from. The order of the cases is the order
// of the schema. Units are SI's and those of every watch: bpm, kcal, km; the mirror has miles.

/// Something that is measured of a person; its raw value is its position in the schema.
enum HealthMetric: Int, CaseIterable, Sendable {
  case heartRate, activeEnergy, steps, distance

  var name: String { declaration.name }
  /// The position of the property that says where the value comes from.
  var source: Int { rawValue + Self.allCases.count }
  /// It adds up from one local midnight to the next.
  var isSum: Bool { self != .heartRate }

  /// The metric's number in its declared type, unless it cannot be.
  func value(_ number: Double) -> Value? {
    guard number.isFinite, let range = declaration.range, range.contains(number) else { return nil }
    return self == .steps ? .int(Int(number.rounded())) : .float(number)
  }

  /// The schema's rows. A heart rate ends by itself; whether a sum is still of today the machine knows.
  static func properties(heartRateFresh: Nanoseconds) -> [Property] {
    allCases.map { metric in
      let row = metric.declaration
      return Property(
        row.name, metric == .steps ? .int : .float, unit: row.unit, range: row.range, access: .write,
        lifetime: metric.isSum ? .retained : .fresh(heartRateFresh), help: row.help)
    }
      + allCases.map { metric in
        Property(
          "\(metric.name)-source", .string, lifetime: metric.isSum ? .retained : .fresh(heartRateFresh),
          help: "Where \(metric.name) comes from, and how old it is")
      }
  }

  private typealias Row = (name: String, unit: String?, range: ClosedRange<Double>?, help: String)

  private var declaration: Row {
    switch self {
    case .heartRate: ("heart-rate", "bpm", 20...300, "Heart rate")
    case .activeEnergy: ("active-energy", "kcal", 0...100_000, "Energy spent on moving since local midnight")
    case .steps: ("steps", nil, 0...1_000_000, "Steps since local midnight")
    case .distance: ("distance", "km", 0...10_000, "Distance walked and run since local midnight")
    }
  }
}
