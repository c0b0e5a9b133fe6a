// What is wrong with a configuration, as a person reads it: `file:line:column: what is wrong; how to remedy it`, a line each.

/// One thing that is wrong, where it stands, and how to mend it.
struct ConfigurationProblem: Error, Equatable, CustomStringConvertible {
  var place: Place
  var text: String

  init(_ place: Place, _ text: String) {
    self.place = place
    self.text = text
  }

  var description: String { "\(place): \(text)" }
}

/// Everything that is wrong with a configuration.
struct ConfigurationError: Error, Equatable, CustomStringConvertible {
  var problems: [ConfigurationProblem]

  /// The problems in the order found, a line each (only the one about a missing file has an example below it).
  var description: String {
    let shown = problems.prefix(50).map(\.description)
    let rest = problems.count - shown.count
    return (shown + (rest > 0 ? ["… and \(rest) more"] : [])).joined(separator: "\n")
  }
}
