// The error of the store: what is wrong for a program that reacts, and a message with the remedy for users.

/// Why the store cannot do something.
public struct HistoryError: Error, Equatable, Sendable, CustomStringConvertible {
  /// What is wrong.
  public enum Kind: Sendable {
    /// Another process has the store open.
    case inUse
    /// The disk is full, and no full-rate blocks are left to drop.
    case diskFull
    /// The disk or the directory cannot be written.
    case readOnly
    /// The database file is damaged, or not a history.
    case damaged
    /// The database was written by a later version.
    case tooNew
    /// An argument is wrong: an unknown device, a name that is taken.
    case invalid
    /// The database failed otherwise.
    case failed
  }

  public let kind: Kind
  public let description: String

  init(_ kind: Kind, _ description: String) {
    self.kind = kind
    self.description = description
  }
}
