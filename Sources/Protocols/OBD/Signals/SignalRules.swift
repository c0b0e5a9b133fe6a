// The rules for custom signals that the module SignalImport needs.

/// The rules of a custom signal.
package enum SignalRules {
  /// The maximum length of a name.
  package static let maxNameLength = CustomSignal.maxNameLength
  /// The maximum length of a formula.
  package static let maxFormulaLength = Expression.maxLength
  /// The names that a signal cannot have: those of the kind's own properties.
  package static let reservedNames = OBDMachine.ownProperties

  /// The name of a data byte in formulas (`A`, `AB`), or nil if the byte has no name.
  package static func byteName(_ offset: Int) -> String? { ExpressionParser.byteName(offset) }
  /// Whether this is the name of a data byte.
  package static func isByte(_ name: String) -> Bool { ExpressionParser.byteOffset(name) != nil }

  /// Validates a section as the configuration does, and returns its request as hex digits without spaces; nil if there are problems.
  package static func request(of section: Setup.Subsection, _ problems: inout [OptionError]) -> String? {
    CustomSignal(section, of: Setup(), &problems)?.request.text
  }
}
