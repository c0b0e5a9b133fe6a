// The errors of a store: a kind for programs, and a message with a remedy for users.

/// The reason why an operation of a store failed.
public struct StoreError: Error, Equatable, Sendable, CustomStringConvertible {
  /// The kind of failure.
  public enum Kind: Sendable {
    /// Another process has the store open.
    case inUse
    /// The disk is full, and the store cannot drop anything to make room.
    case diskFull
    /// The disk or the directory is not writable.
    case readOnly
    /// The database file is damaged.
    case damaged
    /// The database belongs to another program.
    case foreign
    /// The database was written by a later version.
    case tooNew
    /// An argument is invalid, such as an unknown device or a name that is already in use.
    case invalid
    /// The database failed in another way.
    case failed
  }

  public let kind: Kind
  public let description: String
  /// Whether the store stays unusable until the administrator replaces the file or the program.
  public var isPermanent: Bool { kind == .damaged || kind == .foreign || kind == .tooNew }

  public init(_ kind: Kind, _ description: String) {
    self.kind = kind
    self.description = description
  }
}
