// The names of the bridge's topics. No I/O.

struct Topics: Equatable, Sendable {
  /// The first level of all topics but those of Home Assistant and of fleets.
  let prefix: String
  /// The name of this computer, which distinguishes several bridges.
  let host: String

  init(prefix: String = "vehicled", host: String) { (self.prefix, self.host) = (prefix, host) }

  /// The availability of the bridge: online or offline.
  var status: String { "\(prefix)/\(host)/status" }
  /// The availability of a device's values: up, connecting, down.
  func link(_ device: String) -> String { "\(prefix)/\(device)/link" }
  func state(_ device: String) -> String { "\(prefix)/\(device)/state" }
  func value(_ device: String, _ property: String) -> String { "\(prefix)/\(device)/\(property)" }
  /// A VSS signal, whose path becomes levels.
  func signal(_ device: String, _ path: String) -> String { "\(prefix)/\(device)/\(path.replacing(".", with: "/"))" }
  func attributes(_ device: String, _ property: String) -> String { "\(prefix)/\(device)/\(property)/attributes" }
  func set(_ device: String, _ property: String) -> String { "\(prefix)/\(device)/\(property)/set" }
  func action(_ device: String, _ action: String) -> String { "\(prefix)/\(device)/\(action)/do" }
  func event(_ device: String, _ name: String) -> String { "\(prefix)/\(device)/event/\(name)" }

  /// What the topics of responses to commands begin with.
  var responses: String { "\(prefix)/response/" }
  func isResponse(_ topic: String) -> Bool {
    topic.hasPrefix(responses) && topic.utf8.count > responses.utf8.count && !topic.contains { "#+\0".contains($0) }
      && command(topic) == nil
  }

  /// The batches of a vehicle of a fleet.
  static func batches(tenant: String, vehicle: String) -> String { "fleet/v1/\(tenant)/\(vehicle)/b" }
  static func isBatch(_ topic: String) -> Bool { topic.hasPrefix("fleet/v1/") }

  /// The topic filters of commands.
  var commandFilters: [String] { ["\(prefix)/+/+/set", "\(prefix)/+/+/do"] }

  /// What a command is for, or nil if the topic is not that of a command.
  func command(_ topic: String) -> (device: String, name: String, isAction: Bool)? {
    let levels = topic.split(separator: "/", omittingEmptySubsequences: false)
    let base = prefix.split(separator: "/", omittingEmptySubsequences: false)
    guard levels.count == base.count + 3, levels.starts(with: base), levels[base.count + 2] == "set" || levels[base.count + 2] == "do"
    else {
      return nil
    }
    return (String(levels[base.count]), String(levels[base.count + 1]), levels[base.count + 2] == "do")
  }
}
