// The error of the store: a kind that programs can react to, and a message with a remedy for users.

/// Why an operation of the store failed.
public struct HistoryError: Error, Equatable, Sendable, CustomStringConvertible {
  /// The kind of failure.
  public enum Kind: Sendable {
    /// Another process has the store open.
    case inUse
    /// The disk is full, and there are no merged blocks left to drop.
    case diskFull
    /// The disk or the directory cannot be written.
    case readOnly
    /// The database file is damaged, or not a history.
    case damaged
    /// The database was written by a later version.
    case tooNew
    /// An argument is invalid: an unknown device, a name that is taken.
    case invalid
    /// The database failed in another way.
    case failed
  }

  public let kind: Kind
  public let description: String

  init(_ kind: Kind, _ description: String) {
    self.kind = kind
    self.description = description
  }
}
