// The properties and actions of a toy. The user's data is published while the user is logged in.

/// The properties, in the order of the schema.
enum ToyProperty: Int, CaseIterable, Sendable {
  case userID, name, facts, pendingVotes, lastVote, setup, category

  static let properties: [Property] = allCases.map { property in
    let row = property.declaration
    return Property(
      row.name, row.type, choices: property == .setup ? ToySetup.stateNames : [], lifetime: .retained,
      rank: property.rank, help: row.help)
  }

  private var rank: PropertyRank {
    switch self {
    case .name, .facts: .headline
    case .pendingVotes, .lastVote, .setup: .main
    case .userID, .category: .detail
    }
  }

  private var declaration: (name: String, type: ValueType, help: String) {
    switch self {
    case .userID: ("user-id", .int, "Number of the user who is logged in")
    case .name: ("name", .string, "Name of the user who is logged in")
    case .facts: ("facts", .int, "Number of facts that the toy has played, as last reported by the server")
    case .pendingVotes: ("pending-votes", .int, "Votes that have not been sent yet")
    case .lastVote: ("last-vote", .string, "Result of the last vote")
    case .setup: ("wifi-setup", .string, "Progress of the toy's Wi-Fi setup")
    case .category: ("category", .string, "Not supported by the toy: it plays any fact")
    }
  }
}

/// The actions, in the order of the schema.
enum ToyAction: Int, CaseIterable, Sendable {
  case register, login, logout, whoami, history, fact, vote, wifi, votes

  static let actions: [Action] = allCases.map(\.declaration)

  private var declaration: Action {
    let password = Argument("password", .string, secret: true, help: "Password, which is not stored; choose one that you use nowhere else")
    let email = Argument("email", .string, help: "E-mail address")
    let id = Argument("id", .int, help: "Number of the fact, as listed by history")
    return switch self {
    case .register:
      Action(
        "register", arguments: [Argument("name", .string, help: "Your name"), email, password], help: "Create an account and log in")
    case .login: Action("login", arguments: [email, password], help: "Log in; the daemon stays logged in until logout")
    case .logout:
      Action(
        "logout",
        arguments: [Argument("delete-votes", .bool, optional: true, help: "Delete votes that have not been sent yet")],
        help: "Log out, and delete the stored facts")
    case .whoami: Action("whoami", help: "Show who is logged in")
    case .history: Action("history", streams: true, help: "List the facts that the toy has played; a long list is streamed")
    case .fact: Action("fact", arguments: [id], help: "Show one fact")
    case .vote:
      Action(
        "vote", arguments: [id, Argument("vote", .string, help: "up, down or none")],
        help: "Vote on a fact; if the server does not respond, the vote is stored and sent later")
    case .votes:
      Action(
        "votes",
        arguments: [
          Argument(
            "delete", .string, optional: true, help: "Votes to delete: a fact's number, held (votes of other users or servers), or all")
        ],
        help: "List the votes that have not been sent yet, with the reason, or delete some of them")
    case .wifi:
      Action(
        "wifi",
        arguments: [
          Argument("ssid", .string, help: "Name of the network: 2.4 GHz, WPA2 with a password, or open"),
          Argument("password", .string, optional: true, secret: true, help: "Password of the network; none for an open network"),
          Argument("dial", .string, optional: true, help: "Connect to the toy at ADDRESS or ADDRESS:PORT, instead of waiting for it"),
        ], streams: true, help: "Set up the toy's Wi-Fi and user; press the toy's Wi-Fi button when prompted")
    }
  }
}

extension Effects {
  mutating func publish(_ property: ToyProperty, _ value: Value, age: Nanoseconds = 0) { publish(property.rawValue, value, age: age) }
  mutating func withdraw(_ property: ToyProperty, _ reason: String) { withdraw(property.rawValue, reason) }
}
