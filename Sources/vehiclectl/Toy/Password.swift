// A password from somebody at the terminal, or the first line of stdin. Must never take one from anywhere else, nor show it.

struct Password {
  var isAtTerminal = Prompt.isInteractive
  /// Shows a prompt and reads a line without showing it; nil where there is none.
  var ask: (String) throws(Failure) -> String? = { prompt throws(Failure) in try Prompt.secret(prompt) }

  private static let missing = Failure.usage("the password is missing; type it when asked, or give it as a line of stdin")

  /// One that there is already.
  func existing() throws(Failure) -> String {
    guard let password = try ask("password: "), !password.isEmpty else { throw Self.missing }
    return password
  }

  /// A new one, typed twice where a person types it.
  func new(_ note: (String) -> Void) throws(Failure) -> String {
    while true {
      let password = try existing()
      guard isAtTerminal else { return password }
      guard let again = try ask("the same again: ") else { throw Self.missing }
      if again == password { return password }
      note("that was not the same twice; once more")
    }
  }
}
