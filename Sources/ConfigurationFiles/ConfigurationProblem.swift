// The problems of a configuration, printed one per line: `file:line:column: problem; remedy`.

/// One problem, its location and its remedy.
public struct ConfigurationProblem: Error, Equatable, CustomStringConvertible {
  public var location: SourceLocation
  public var text: String

  public init(_ location: SourceLocation, _ text: String) {
    self.location = location
    self.text = text
  }

  public var description: String { "\(location): \(text)" }
}

/// All problems of a configuration.
public struct ConfigurationError: Error, Equatable, CustomStringConvertible {
  public var problems: [ConfigurationProblem]

  public init(problems: [ConfigurationProblem]) { self.problems = problems }

  /// The first 50 problems in the order found, one per line. The problem of a missing file is followed by an example configuration.
  public var description: String {
    let shown = problems.prefix(50).map(\.description)
    let rest = problems.count - shown.count
    return (shown + (rest > 0 ? ["… and \(rest) more"] : [])).joined(separator: "\n")
  }
}
