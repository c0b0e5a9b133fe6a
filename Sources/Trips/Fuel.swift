// The properties of fuels, and the fuel rate from the measured air flow.

/// The fuel of a combustion engine.
enum Fuel: Double, Sendable {
  case petrol, diesel, ethanol
  /// A gas, or several fuels: the volume is unknown.
  case other

  /// Creates the fuel for a fuel type (PID 51) or an ignition type (PID 01) of SAE J1979.
  init(_ word: String) {
    switch word {
    case "petrol", "hybrid-petrol", "spark": self = .petrol
    case "diesel", "hybrid-diesel", "compression": self = .diesel
    case "ethanol", "hybrid-ethanol": self = .ethanol
    default: self = .other
    }
  }

  /// g/L at 15 °C: the middle of the ranges in EN 228, EN 590 and EN 15293.
  private var density: Double? {
    switch self {
    case .petrol: 747
    case .diesel: 832
    case .ethanol: 785
    case .other: nil
    }
  }

  /// The stoichiometric mass of air per mass of fuel.
  private var stoichiometricRatio: Double? {
    switch self {
    case .petrol: 14.7
    case .diesel: 14.5
    case .ethanol: 9.8
    case .other: nil
    }
  }

  /// Converts a rate in g/s to L/h.
  func rate(mass: Double) -> Double? { density.map { mass * 3600 / $0 } }

  /// Computes the fuel rate in L/h from an air flow in g/s. A diesel engine runs with excess air, so its fuel rate requires lambda.
  func rate(airFlow: Double, lambda: Double?) -> Double? {
    guard let stoichiometricRatio, let lambda = lambda ?? (self == .diesel ? nil : 1), lambda > 0.3 else { return nil }
    return rate(mass: airFlow / (stoichiometricRatio * lambda))
  }
}
