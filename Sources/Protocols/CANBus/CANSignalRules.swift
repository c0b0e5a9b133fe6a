// The rules for signals of a CAN bus that the module SignalImport needs.

package enum CANSignalRules {
  /// The names that a signal cannot have: those of the kind's own properties.
  package static let reservedNames = CANBusProperty.names

  /// The problems of a section, as the configuration reports them.
  package static func problems(of section: Setup.Subsection) -> [OptionError] {
    var problems: [OptionError] = []
    _ = CANSignal(section, &problems)
    return problems
  }
}
