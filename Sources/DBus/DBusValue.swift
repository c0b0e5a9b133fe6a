// D-Bus types as values. Each value has a signature; typed accessors return nil if a received value has another type.
// Source: the D-Bus specification, "Type System".

import Glibc
import Synchronization

/// One value of a message.
public indirect enum DBusValue: Sendable, Equatable {
  case byte(UInt8)
  case bool(Bool)
  case int16(Int16)
  case uint16(UInt16)
  case int32(Int32)
  case uint32(UInt32)
  case int64(Int64)
  case uint64(UInt64)
  case double(Double)
  case string(String)
  case path(String)
  case signature(String)
  /// An array of bytes, `ay`.
  case bytes([UInt8])
  /// Elements that all have this signature; a dictionary is an array of entries.
  case array(of: String, [DBusValue])
  case entry(DBusValue, DBusValue)
  case structure([DBusValue])
  case variant(DBusValue)
  case descriptor(DBusDescriptor)

  /// A dictionary `a{sv}`, sorted by name.
  public static func properties(_ values: [String: DBusValue]) -> DBusValue {
    .array(of: "{sv}", values.sorted { $0.key < $1.key }.map { .entry(.string($0.key), .variant($0.value)) })
  }

  /// An array of strings, `as`.
  public static func strings(_ values: [String]) -> DBusValue { .array(of: "s", values.map { .string($0) }) }

  public var signature: String {
    switch self {
    case .byte: "y"
    case .bool: "b"
    case .int16: "n"
    case .uint16: "q"
    case .int32: "i"
    case .uint32: "u"
    case .int64: "x"
    case .uint64: "t"
    case .double: "d"
    case .string: "s"
    case .path: "o"
    case .signature: "g"
    case .bytes: "ay"
    case .array(let element, _): "a\(element)"
    case .entry(let key, let value): "{\(key.signature)\(value.signature)}"
    case .structure(let members): "(\(members.map(\.signature).joined()))"
    case .variant: "v"
    case .descriptor: "h"
    }
  }
}

/// Typed access; variants are unwrapped.
extension DBusValue {
  public var unwrapped: DBusValue { if case .variant(let inner) = self { inner.unwrapped } else { self } }

  public var bool: Bool? { if case .bool(let value) = unwrapped { value } else { nil } }
  /// A string or an object path.
  public var string: String? {
    switch unwrapped {
    case .string(let text), .path(let text): text
    default: nil
    }
  }
  public var bytes: [UInt8]? { if case .bytes(let value) = unwrapped { value } else { nil } }
  public var descriptor: DBusDescriptor? { if case .descriptor(let value) = unwrapped { value } else { nil } }

  /// An integer of any width.
  public var int: Int? {
    switch unwrapped {
    case .byte(let value): Int(value)
    case .int16(let value): Int(value)
    case .uint16(let value): Int(value)
    case .int32(let value): Int(value)
    case .uint32(let value): Int(value)
    case .int64(let value): Int(value)
    case .uint64(let value): Int(exactly: value)
    default: nil
    }
  }

  public var strings: [String]? {
    guard case .array(_, let elements) = unwrapped else { return nil }
    let strings = elements.compactMap(\.string)
    return strings.count == elements.count ? strings : nil
  }

  /// A dictionary whose keys are strings or object paths.
  public var dictionary: [String: DBusValue]? {
    guard case .array(_, let elements) = unwrapped else { return nil }
    var dictionary: [String: DBusValue] = [:]
    for element in elements {
      guard case .entry(let key, let value) = element, let name = key.string else { return nil }
      dictionary[name] = value.unwrapped
    }
    return dictionary
  }
}

/// A file descriptor in a message. It is closed with its last owner, unless ownership was transferred.
public final class DBusDescriptor: Sendable, Equatable {
  private let number: Atomic<CInt>

  /// Takes ownership of the descriptor.
  public init(owning descriptor: CInt) { number = Atomic(descriptor) }

  deinit {
    if case let descriptor = release(), descriptor >= 0 { close(descriptor) }
  }

  /// Transfers ownership to the caller; later calls return -1.
  public func release() -> CInt { number.exchange(-1, ordering: .relaxed) }

  /// The number of the descriptor, valid while this object exists; -1 after `release`.
  var borrowed: CInt { number.load(ordering: .relaxed) }

  public static func == (lhs: DBusDescriptor, rhs: DBusDescriptor) -> Bool { lhs === rhs }
}
