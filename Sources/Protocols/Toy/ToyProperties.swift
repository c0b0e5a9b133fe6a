// What a toy shows and can be asked to do. What the server says of a person is shown as long as they are logged in.

/// The properties, in the order of the schema.
enum ToySignal: Int, CaseIterable, Sendable {
  case userID, name, facts, pendingVotes, lastVote, setup, category

  static let properties: [Property] = allCases.map { signal in
    let row = signal.declaration
    return Property(row.name, row.type, choices: signal == .setup ? ToySetup.words : [], lifetime: .retained, help: row.help)
  }

  private var declaration: (name: String, type: ValueType, help: String) {
    switch self {
    case .userID: ("user-id", .int, "Who is logged in, as the toy's server counts users")
    case .name: ("name", .string, "Their name")
    case .facts: ("facts", .int, "Facts that the toy has played, as the server told last")
    case .pendingVotes: ("pending-votes", .int, "Votes that wait for the server to answer")
    case .lastVote: ("last-vote", .string, "What became of the last vote")
    case .setup: ("wifi-setup", .string, "How far the setting of the toy's Wi-Fi is")
    case .category: ("category", .string, "Not supported by the toy: it plays any fact, and its apps list only Random")
    }
  }
}

/// What can be done, in the order of the schema.
enum ToyAction: Int, CaseIterable, Sendable {
  case register, login, logout, whoami, history, fact, vote, wifi, votes

  static let actions: [Action] = allCases.map(\.declaration)

  private var declaration: Action {
    let password = Argument("password", .string, secret: true, help: "Kept nowhere; take one that you use nowhere else")
    let email = Argument("email", .string, help: "As you@example.org")
    let id = Argument("id", .int, help: "Its number, as history tells")
    return switch self {
    case .register:
      Action(
        "register", arguments: [Argument("name", .string, help: "Your name"), email, password], help: "Makes an account and logs in")
    case .login: Action("login", arguments: [email, password], help: "Logs in, and stays so")
    case .logout:
      Action(
        "logout",
        arguments: [Argument("drop-votes", .bool, optional: true, help: "Forget votes that the server has not got yet")],
        help: "Forgets who is logged in, and the facts")
    case .whoami: Action("whoami", help: "Tells who is logged in")
    case .history: Action("history", streams: true, help: "Lists the facts that the toy has played; of very many the first as steps")
    case .fact: Action("fact", arguments: [id], help: "Shows one of them")
    case .vote:
      Action(
        "vote", arguments: [id, Argument("vote", .string, help: "up, down or none")],
        help: "Votes for a fact; kept and sent later where the server does not answer")
    case .votes:
      Action(
        "votes",
        arguments: [
          Argument("forget", .string, optional: true, help: "Forget votes first: a fact's number, held (those of others), or all")
        ],
        help: "Lists the votes that no server has yet, and why")
    case .wifi:
      Action(
        "wifi",
        arguments: [
          Argument("ssid", .string, help: "The network for the toy: 2.4 GHz, WPA2 with a password, or open"),
          Argument("password", .string, optional: true, secret: true, help: "The network's password; none for an open network"),
          Argument("dial", .string, optional: true, help: "Connect to the toy at ADDRESS or ADDRESS:PORT, instead of waiting for it"),
        ], streams: true, help: "Tells the toy its network and its user; its Wi-Fi button must be pressed")
    }
  }
}

extension Effects {
  mutating func publish(_ signal: ToySignal, _ value: Value, age: Nanoseconds = 0) { publish(signal.rawValue, value, age: age) }
  mutating func withdraw(_ signal: ToySignal, _ reason: String) { withdraw(signal.rawValue, reason) }
}
