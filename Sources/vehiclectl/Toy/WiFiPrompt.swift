// Reads the name and password of a Wi-Fi network: prompts until they are valid, or reads them from the command line and stdin.

import Protocols

struct WiFiPrompt {
  struct Credentials: Equatable {
    var name: String
    /// Empty for an open network.
    var password: String
  }

  let output: Output
  var isAtTerminal = Prompt.isInteractive
  /// Shows a prompt and reads a line; nil at the end of the input.
  var promptForLine: (String) throws(Failure) -> String? = { prompt throws(Failure) in try Prompt.line(prompt) }
  /// Shows a prompt and reads a line without echo; nil at the end of the input.
  var promptForSecret: (String) throws(Failure) -> String? = { prompt throws(Failure) in try Prompt.secret(prompt) }
  /// Scans for networks; nil if that is not possible.
  var scan: () throws(Failure) -> NearbyNetworks? = { () throws(Failure) in nil }

  private static let missingName = Failure.usage(
    "no network; use vehiclectl toy wifi NAME, and write its password to stdin (an empty line for an open network)")

  /// Reads the credentials. `given` is the name from the command line, if any.
  func credentials(_ given: String?) throws(Failure) -> Credentials {
    let (name, isOpen) = try network(given)
    let credentials = Credentials(name: name, password: isOpen == true ? "" : try password(of: name, isOpen))
    if let warning = ToyWiFi.warning(credentials.name, credentials.password) { output.note(warning) }
    return credentials
  }

  /// The name, and whether the network is open, if known.
  private func network(_ given: String?) throws(Failure) -> (String, isOpen: Bool?) {
    if let given {
      if let message = ToyWiFi.validationError(forName: given) { throw .usage("\"\(given)\": \(message)") }
      return (given, nil)
    }
    guard isAtTerminal else { throw Self.missingName }
    while true {
      let nearby = try scan()
      if let nearby { output.promptText(nearby.lines(paint: output.paint)) }
      let offered = nearby?.offered ?? []
      let question =
        nearby == nil ? "network (2.4 GHz): " : offered.isEmpty ? "name (Enter: rescan): " : "number or name (Enter: rescan): "
      guard let chosen = try choose(among: offered, question, canScanAgain: nearby != nil) else { continue }
      return chosen
    }
  }

  /// Prompts for the number or name of a network. Returns nil if the user wants to scan again.
  private func choose(
    among offered: [NearbyNetworks.Network], _ question: String, canScanAgain: Bool
  ) throws(Failure) -> (String, isOpen: Bool?)? {
    while true {
      guard let text = try promptForLine(question) else { throw Self.missingName }
      if text.isEmpty, canScanAgain { return nil }
      if let number = Int(text), !offered.isEmpty {
        if offered.indices.contains(number - 1) { return (offered[number - 1].name, offered[number - 1].isOpen) }
        output.note("no network with number \(number); if \(number) is the name, run vehiclectl toy wifi \(number)")
      } else if let message = ToyWiFi.validationError(forName: text) {
        output.note(message)
      } else {
        return (text, offered.first { $0.name == text }?.isOpen)
      }
    }
  }

  private func password(of name: String, _ isOpen: Bool?) throws(Failure) -> String {
    while true {
      let hint = isOpen == nil ? " (empty if open)" : ""
      guard let password = try promptForSecret("password for \(Output.oneLine(name))\(hint): ") else {
        throw .usage("no password; type it at the prompt, or write it to stdin (an empty line for an open network)")
      }
      let isMissing = isOpen == false && password.isEmpty
      guard let message = isMissing ? "the network requires a password" : ToyWiFi.validationError(forPassword: password) else {
        return password
      }
      guard isAtTerminal else { throw .usage(message) }
      output.note(message)
    }
  }
}
