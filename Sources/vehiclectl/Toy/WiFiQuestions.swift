// Asks a person for the network that the toy is to join and its password, until both can be; or takes them from the command line
// and stdin. Owns what is asked; must never show a password, nor take one from an argument.

import Protocols

struct WiFiQuestions {
  struct Answers: Equatable {
    var name: String
    /// Empty: the network is open.
    var password: String
  }

  let output: Output
  var isAtTerminal = Prompt.isInteractive
  /// Shows a prompt and reads a line; nil at the end of the input.
  var ask: (String) throws(Failure) -> String? = { prompt throws(Failure) in try Prompt.shown(prompt) }
  /// The same, unseen.
  var askSecret: (String) throws(Failure) -> String? = { prompt throws(Failure) in try Prompt.secret(prompt) }
  /// Listens for networks; nil where nobody here does.
  var listen: () throws(Failure) -> NearbyNetworks? = { () throws(Failure) in nil }

  private static let missingName = Failure.usage(
    "no network was named; give its name: vehiclectl toy wifi NAME, and its password as a line of stdin (an empty one: it is open)")

  func answers(_ given: String?) throws(Failure) -> Answers {
    let (name, isOpen) = try network(given)
    let answers = Answers(name: name, password: isOpen == true ? "" : try password(of: name, isOpen))
    if let warning = ToyWiFi.warning(answers.name, answers.password) { output.note(warning) }
    return answers
  }

  /// The name, and whether it is open where that was heard.
  private func network(_ given: String?) throws(Failure) -> (String, isOpen: Bool?) {
    if let given {
      if let objection = ToyWiFi.objection(toName: given) { throw .usage("\"\(given)\": \(objection)") }
      return (given, nil)
    }
    guard isAtTerminal else { throw Self.missingName }
    while true {
      let nearby = try listen()
      if let nearby { output.remarks(nearby.lines(paint: output.paint)) }
      let offered = nearby?.offered ?? []
      let question =
        nearby == nil ? "network (2.4 GHz): " : offered.isEmpty ? "name (Enter looks again): " : "number or name (Enter looks again): "
      guard let chosen = try choose(among: offered, question, canLookAgain: nearby != nil) else { continue }
      return chosen
    }
  }

  /// nil: look again.
  private func choose(
    among offered: [NearbyNetworks.Network], _ question: String, canLookAgain: Bool
  ) throws(Failure) -> (String, isOpen: Bool?)? {
    while true {
      guard let text = try ask(question) else { throw Self.missingName }
      if text.isEmpty, canLookAgain { return nil }
      if let number = Int(text), !offered.isEmpty {
        if offered.indices.contains(number - 1) { return (offered[number - 1].name, offered[number - 1].isOpen) }
        output.note("There is no number \(number); a network that is called so is an argument: vehiclectl toy wifi \(number)")
      } else if let objection = ToyWiFi.objection(toName: text) {
        output.note(objection)
      } else {
        return (text, offered.first { $0.name == text }?.isOpen)
      }
    }
  }

  private func password(of name: String, _ isOpen: Bool?) throws(Failure) -> String {
    while true {
      let hint = isOpen == nil ? " (empty: it is open)" : ""
      guard let password = try askSecret("password of \(Output.oneLine(name))\(hint): ") else {
        throw .usage("the password is missing; type it when asked, or give it as a line of stdin (an empty one: the network is open)")
      }
      let isMissing = isOpen == false && password.isEmpty
      guard let objection = isMissing ? "this network has a password" : ToyWiFi.objection(toPassword: password) else {
        return password
      }
      guard isAtTerminal else { throw .usage(objection) }
      output.note(objection)
    }
  }
}
