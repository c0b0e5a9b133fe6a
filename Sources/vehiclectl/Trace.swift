// Messages as --verbose shows them: without the values of secret arguments. No I/O. For a message that is not JSON, only the length is
// shown.

import Protocols

enum Trace {
  /// Returns the message of a call with the values of these action arguments replaced by `…`.
  static func redacted(_ message: [UInt8], hiding secrets: Set<String>) -> [UInt8] {
    guard !secrets.isEmpty else { return message }
    guard let call = JSON(String(decoding: message.filter { $0 != 0 }, as: UTF8.self)) else {
      return Array("a message of \(message.count) bytes".utf8)
    }
    let redacted = change("parameters", of: call) { change("arguments", of: $0) { redact(secrets, in: $0) } }
    return Array(redacted.text.utf8)
  }

  private static func redact(_ secrets: Set<String>, in arguments: JSON) -> JSON {
    guard case .object(var members) = arguments else { return arguments }
    for position in members.indices where secrets.contains(members[position].key) { members[position].value = .string("…") }
    return .object(members)
  }

  private static func change(_ key: String, of object: JSON, _ body: (JSON) -> JSON) -> JSON {
    guard case .object(var members) = object else { return object }
    for position in members.indices where members[position].key == key { members[position].value = body(members[position].value) }
    return .object(members)
  }
}
