// Prepares the command line for ArgumentParser, which accepts neither options before the command nor values that look like options. No I/O.

enum Arguments {
  /// The options that take a value, of all commands.
  static let optionsWithValue: Set = [
    "--timeout", "--color", "--socket", "--units", "--config", "--count", "-n", "--deadline", "--delete", "--device", "--dial", "--ecu",
    "--history-socket", "--input", "--interval", "--kind", "--last", "--level", "--lines", "--name", "--names", "--only", "--output",
    "-o", "--points",
    "--position", "--property", "--seconds", "--since", "--svg", "--trip", "--until", "--year",
  ]

  /// Turns `--since -5min` into `--since=-5min`, because ArgumentParser mistakes a value with a leading dash for an option.
  static func joiningNegativeValues(_ arguments: [String]) -> [String] {
    var joined: [String] = []
    for (position, argument) in arguments.enumerated() {
      if argument == "--" { return joined + arguments[position...] }
      if let last = joined.last, optionsWithValue.contains(last), argument.hasPrefix("-"),
        Double(argument) != nil || TimeArgument.duration(String(argument.dropFirst())) != nil
      {
        joined[joined.count - 1] = "\(last)=\(argument)"
      } else {
        joined.append(argument)
      }
    }
    return joined
  }

  /// Turns `--socket PATH get rpm` into `get --socket PATH rpm`.
  static func commandFirst(_ arguments: [String], commands: [String]) -> [String] {
    var position = 0
    if arguments.first == "---completion" { return arguments }  // a completion request of a shell
    while position < arguments.count, arguments[position].hasPrefix("-"), arguments[position] != "--" {
      position += optionsWithValue.contains(arguments[position]) ? 2 : 1
    }
    guard position > 0, position < arguments.count, commands.contains(arguments[position]) else { return arguments }
    return [arguments[position]] + arguments[..<position] + arguments[(position + 1)...]
  }

  /// Turns `help --json get` into `help get`.
  static func withoutOptions(_ arguments: [String]) -> [String] {
    var words: [String] = []
    var position = 0
    while position < arguments.count {
      if !arguments[position].hasPrefix("-") { words.append(arguments[position]) }
      position += optionsWithValue.contains(arguments[position]) ? 2 : 1
    }
    return words
  }

  /// Returns the positional values. Negative numbers are values; anything else with a leading dash is an error unless `--` precedes it.
  static func positional(_ given: [String], of arguments: [String] = CommandLine.arguments) throws(Failure) -> [String] {
    guard !arguments.contains("--") else { return given.filter { $0 != "--" } }
    for value in given where value.count > 1 && value.hasPrefix("-") && Double(value) == nil {
      throw .usage("unknown option \"\(value)\"; put -- before it if it is a value")
    }
    return given
  }
}
