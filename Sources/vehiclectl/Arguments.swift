// What the argument parser does not do by itself: options before the verb, and values that look like options. Pure.

enum Arguments {
  /// Options that take a value.
  private static let valued = ["--timeout", "--color", "--socket", "--device", "--units", "--output"]

  /// `--socket PATH get rpm` as `get --socket PATH rpm`: people put options anywhere.
  static func verbFirst(_ arguments: [String], verbs: [String]) -> [String] {
    var position = 0
    if arguments.first == "---completion" { return arguments }  // a shell asks on behalf of the verb that follows
    while position < arguments.count, arguments[position].hasPrefix("-"), arguments[position] != "--" {
      position += valued.contains(arguments[position]) ? 2 : 1
    }
    guard position > 0, position < arguments.count, verbs.contains(arguments[position]) else { return arguments }
    return [arguments[position]] + arguments[..<position] + arguments[(position + 1)...]
  }

  /// `help --json get` as `help get`: whatever else is asked for, help is help.
  static func withoutOptions(_ arguments: [String]) -> [String] {
    var kept: [String] = []
    var position = 0
    while position < arguments.count {
      if !arguments[position].hasPrefix("-") { kept.append(arguments[position]) }
      position += valued.contains(arguments[position]) ? 2 : 1
    }
    return kept
  }

  /// Values may be negative numbers, which look like options; what else does is a mistake, unless it stands behind `--`.
  static func positional(_ given: [String], of arguments: [String] = CommandLine.arguments) throws(Failure) -> [String] {
    guard !arguments.contains("--") else { return given.filter { $0 != "--" } }
    for value in given where value.count > 1 && value.hasPrefix("-") && Double(value) == nil {
      throw .usage("there is no option \"\(value)\"; if it is meant as a value, put -- before it")
    }
    return given
  }
}
