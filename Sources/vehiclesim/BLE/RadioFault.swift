// What can go wrong between an adapter and a peripheral, as a person asks for it.

import Protocols

enum RadioFault: Equatable, Sendable {
  /// The connection breaks after so many notifications.
  case drop(Int)
  /// Making a connection takes so long.
  case slow(Nanoseconds)
  /// So many connects fail first.
  case abort(Int)
  /// So many searches are refused first.
  case busy(Int)
  /// So many searches are begun first without an answer.
  case mute(Int)
  /// Properties change all the time.
  case churn
  /// The GATT table is another after so many notifications, once.
  case serviceChange(Int)
  /// No sockets for characteristics, as old versions of BlueZ.
  case noDescriptors
  /// A notification without bytes comes before every Nth.
  case empty(Int)
  /// Replies of types that were not agreed.
  case oddReplies
  /// Every Nth write is never answered.
  case noAnswer(Int)
  /// Every Nth write is refused.
  case refuse(Int)
  /// The connection breaks at every Nth write.
  case dropWrites(Int)
  /// The characteristic that is written is not there.
  case noCharacteristic

  static let table: [(form: String, help: String)] = [
    ("drop:N", "the connection breaks after N notifications"),
    ("slow:MS", "making a connection takes MS milliseconds"),
    ("abort:N", "the first N connects fail"),
    ("busy:N", "the first N searches are refused"),
    ("mute:N", "the first N searches are begun without an answer"),
    ("churn", "properties change all the time"),
    ("service-change:N", "after N notifications the services are others, once"),
    ("no-descriptors", "no sockets for characteristics: signals and calls only"),
    ("empty:N", "before every Nth notification comes one without bytes"),
    ("odd-replies", "answers of the wrong type"),
    ("no-answer:N", "every Nth write is never answered"),
    ("refuse:N", "every Nth write is refused"),
    ("drop-writes:N", "the connection breaks at every Nth write"),
    ("no-characteristic", "what is to be written is not there"),
  ]

  /// Reads `drop:100`.
  init(_ text: String) throws(ValueError) {
    let parts = text.split(separator: ":", maxSplits: 1).map(String.init)
    let number = parts.count == 2 ? Int(parts[1]).flatMap { (1...1_000_000).contains($0) ? $0 : nil } : nil
    switch (parts.first, number, parts.count) {
    case ("drop", let count?, _): self = .drop(count)
    case ("slow", let milliseconds?, _): self = .slow(Int64(milliseconds) * .millisecond)
    case ("abort", let count?, _): self = .abort(count)
    case ("busy", let count?, _): self = .busy(count)
    case ("mute", let count?, _): self = .mute(count)
    case ("service-change", let count?, _): self = .serviceChange(count)
    case ("empty", let count?, _): self = .empty(count)
    case ("churn", nil, 1): self = .churn
    case ("no-descriptors", nil, 1): self = .noDescriptors
    case ("odd-replies", nil, 1): self = .oddReplies
    case ("no-answer", let count?, _): self = .noAnswer(count)
    case ("refuse", let count?, _): self = .refuse(count)
    case ("drop-writes", let count?, _): self = .dropWrites(count)
    case ("no-characteristic", nil, 1): self = .noCharacteristic
    default: throw ValueError("\"\(text)\" is no fault of the air: write one of \(Self.table.map(\.form).joined(separator: ", "))")
    }
  }
}
