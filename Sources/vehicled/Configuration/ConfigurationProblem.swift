// The problems of a configuration, printed one per line: `file:line:column: problem; remedy`.

/// One problem, its location and its remedy.
struct ConfigurationProblem: Error, Equatable, CustomStringConvertible {
  var location: SourceLocation
  var text: String

  init(_ location: SourceLocation, _ text: String) {
    self.location = location
    self.text = text
  }

  var description: String { "\(location): \(text)" }
}

/// All problems of a configuration.
struct ConfigurationError: Error, Equatable, CustomStringConvertible {
  var problems: [ConfigurationProblem]

  /// The first 50 problems in the order found, one per line. The problem of a missing file is followed by an example configuration.
  var description: String {
    let shown = problems.prefix(50).map(\.description)
    let rest = problems.count - shown.count
    return (shown + (rest > 0 ? ["… and \(rest) more"] : [])).joined(separator: "\n")
  }
}
