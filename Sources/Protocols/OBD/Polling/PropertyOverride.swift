// The configuration section `[property.NAME]`: the poll period and the priority of a property, and whether it is polled at all. Properties
// of one response share a request, which is polled with the shortest of their periods.

/// The order of due requests when there is not enough time for all.
enum Priority: String, CaseIterable, Comparable, Sendable {
  case high, normal, low

  static func < (lhs: Priority, rhs: Priority) -> Bool { lhs.rank < rhs.rank }

  private var rank: Int {
    switch self {
    case .high: 0
    case .normal: 1
    case .low: 2
    }
  }
}

struct PropertyOverride: Sendable, Equatable {
  /// The name of the property.
  let name: String
  /// The poll period, or nil for the default.
  let period: Nanoseconds?
  let priority: Priority
  let isPolled: Bool

  init(_ name: String, period: Nanoseconds? = nil, priority: Priority = .normal, isPolled: Bool = true) {
    (self.name, self.period, self.priority, self.isPolled) = (name, period, priority, isPolled)
  }

  static let section = Section(
    "property",
    options: [
      Option("period", ValueRule(.float, unit: "s", range: 0.05...3600), help: "Seconds between two polls"),
      Option(
        "priority", ValueRule(.string, choices: Priority.allCases.map(\.rawValue)), default: .string(Priority.normal.rawValue),
        help: "Requests with higher priority are sent first if there is not enough time for all"),
      Option("poll", ValueRule(.bool), default: .bool(true), help: "false: do not poll this property, and omit it from the device"),
    ],
    help: "Poll period and priority of one property of the vehicle", maxNameLength: CustomSignal.maxNameLength
  ) { section, setup in
    var problems: [OptionError] = []
    _ = PropertyOverride(section, of: setup, &problems)
    return problems
  }

  /// Parses a section or reports its problems.
  init?(_ section: Setup.Subsection, of setup: Setup, _ problems: inout [OptionError]) {
    guard Self.configurable.contains(section.name) || Self.isInProfile(section.name, of: setup) else {
      let isBMSData = OBDMachine.batteryProperties.contains(section.name)
      problems.append(
        OptionError(
          nil,
          isBMSData
            ? "\(section.name) is part of the BMS data, which is polled at the device's rate; set rate"
            : OBDMachine.ownProperties.contains(section.name)
              ? "\(section.name) is not polled from the vehicle; remove the section"
              : Renames.property(section.name).map { "\(section.name) has been renamed; write property.\($0)" }
                ?? "no vehicle has a property \(section.name); \(Self.suggestion(for: section.name))"))
      return nil
    }
    let text = section.options["priority"]?.text ?? ""
    self.init(
      section.name, period: section.options["period"]?.number.map { Nanoseconds(min(max($0, 0.05), 3600) * 1e9) },
      priority: Priority(rawValue: text) ?? .normal, isPolled: section.options["poll"] != .bool(false))
  }

  private static func suggestion(for name: String) -> String {
    nearest(to: name, among: configurable.sorted()).map { "did you mean \($0)?" } ?? "vehiclectl describe lists them"
  }

  /// Whether a profile that the vehicle can have polls a property. On an electric Hyundai or Kia, properties with some of these names are part
  /// of the BMS data.
  private static func isInProfile(_ name: String, of setup: Setup) -> Bool {
    let choice = setup.options["vehicle"]?.text ?? VehicleChoice.auto.name
    return VehicleProfile.all.contains { profile in
      (choice == profile.name || choice == VehicleChoice.auto.name) && profile.signals.contains { $0.name == name }
    }
  }

  /// The names of the properties that can be configured for every vehicle: all that are polled, except those of the BMS data record and
  /// custom signals.
  private static let configurable: Set<String> = {
    var names: Set<String> = []
    for profile in VehicleProfile.all { names.formUnion(profile.signals.map(\.name)) }
    names.subtract(OBDMachine.ownProperties)
    names.insert("vin")
    for parameter in StandardParameter.all.values { names.formUnion(parameter.rows.map(\.property.name)) }
    for record in ManufacturerRecord.all { names.formUnion(record.rows.map(\.property.name)) }
    names.formUnion(RequestLayout.calibrationNames)
    return names
  }()
}

/// The configured overrides of one device.
struct PropertyOverrides: Sendable, Equatable {
  private var overrides: [String: PropertyOverride] = [:]

  /// These overrides for a vehicle with this profile: the properties that it replaces are not polled, and speeds are polled less often, which
  /// leaves time for the requests of the profile.
  func adapted(to profile: VehicleProfile?) -> PropertyOverrides {
    guard let profile else { return self }
    var copy = self
    for name in ["rpm", "speed"] where overrides[name] == nil { copy.overrides[name] = PropertyOverride(name, period: .second / 5) }
    for name in profile.replaces { copy.overrides[name] = PropertyOverride(name, isPolled: false) }
    return copy
  }

  init(_ overrides: [PropertyOverride] = []) { for entry in overrides { self.overrides[entry.name] = entry } }

  /// Whether the property is polled.
  func polls(_ name: String) -> Bool { overrides[name]?.isPolled ?? true }

  /// The period of a request for these properties, or nil if none of them is polled. `defaultPeriod` is the period without an override.
  func period(of names: [String], default defaultPeriod: Nanoseconds) -> Nanoseconds? {
    names.isEmpty ? defaultPeriod : names.filter(polls).map { overrides[$0]?.period ?? defaultPeriod }.min()
  }

  func priority(of names: [String]) -> Priority { names.compactMap { overrides[$0]?.priority }.min() ?? .normal }

  /// Whether one of the properties has a configured period.
  func hasPeriod(_ names: [String]) -> Bool { names.contains { overrides[$0]?.period != nil } }
}
