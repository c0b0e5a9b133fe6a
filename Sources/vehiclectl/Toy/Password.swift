// Reads a password from the terminal without echo, or from the first line of stdin; never from anywhere else.

struct Password {
  var isAtTerminal = Prompt.isInteractive
  /// Shows a prompt and reads a line without echo; nil at the end of the input.
  var promptForSecret: (String) throws(Failure) -> String? = { prompt throws(Failure) in try Prompt.secret(prompt) }

  private static let missing = Failure.usage("no password; type it at the prompt, or write it to stdin")

  /// Reads an existing password.
  func existing() throws(Failure) -> String {
    guard let password = try promptForSecret("password: "), !password.isEmpty else { throw Self.missing }
    return password
  }

  /// Reads a new password, twice on a terminal.
  func new(_ note: (String) -> Void) throws(Failure) -> String {
    while true {
      let password = try existing()
      guard isAtTerminal else { return password }
      guard let again = try promptForSecret("repeat password: ") else { throw Self.missing }
      if again == password { return password }
      note("passwords do not match; try again")
    }
  }
}
