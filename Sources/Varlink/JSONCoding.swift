// Implements the standard library's Decoder for a parsed message, so that the parameter structs of the Varlink interface can be decoded
// from it. Errors name the outermost key, which InvalidParameter reports.

import Protocols

extension JSONNode: Decoder {
  package var codingPath: [any CodingKey] { outermost.map { [$0] } ?? [] }
  package var userInfo: [CodingUserInfoKey: Any] { [:] }

  package func decodingError(_ message: String, _ key: (any CodingKey)? = nil) -> DecodingError {
    .dataCorrupted(.init(codingPath: (outermost ?? key).map { [$0] } ?? [], debugDescription: message))
  }

  package func container<Key>(keyedBy type: Key.Type) throws -> KeyedDecodingContainer<Key> {
    guard kind == .object else { throw decodingError("expected an object") }
    return KeyedDecodingContainer(Members(node: self))
  }

  package func unkeyedContainer() throws -> any UnkeyedDecodingContainer {
    guard kind == .array else { throw decodingError("expected a list") }
    return Elements(node: self, next: index + 1)
  }

  package func singleValueContainer() throws -> any SingleValueDecodingContainer { self }
}

extension JSONNode: SingleValueDecodingContainer {
  package func decodeNil() -> Bool { kind == .null }

  package func decode<T: Decodable>(_ type: T.Type) throws -> T {
    let value: T?
    let expected: String
    if type == String.self {
      expected = "a string"
      value = kind == .plain || kind == .coded ? try document.text(index) as? T : nil
    } else if type == Bool.self {
      expected = "a Boolean"
      value = kind == .true || kind == .false ? (kind == .true) as? T : nil
    } else if type == Int.self {
      expected = "an integer"
      value = document.int(index) as? T
    } else if type == Double.self {
      expected = "a number"
      value = document.float(index) as? T
    } else {
      return try T(from: self)
    }
    guard let value else { throw decodingError("expected \(expected)") }
    return value
  }
}

// MARK: Members without containers

// The containers of Codable take most of the time in small objects, of which a client that records values decodes hundreds per second.

extension JSONNode {
  /// Decodes a member of an object; nil if it is absent or null.
  func optional<T: Decodable>(_ type: T.Type, _ key: some CodingKey) throws -> T? {
    guard let member = document.member(key.stringValue, of: index) else { return nil }
    let node = JSONNode(document, member, outermost: outermost ?? key)
    return node.kind == .null ? nil : try node.decode(type)
  }

  func required<T: Decodable>(_ type: T.Type, _ key: some CodingKey) throws -> T {
    guard let value = try optional(type, key) else { throw decodingError("\"\(key.stringValue)\" is missing", key) }
    return value
  }

  /// The decoder of a type that is decoded from messages only, as an object.
  static func object(_ decoder: any Decoder) throws -> JSONNode {
    guard let node = decoder as? JSONNode else {
      throw DecodingError.dataCorrupted(.init(codingPath: decoder.codingPath, debugDescription: "decoded from messages only"))
    }
    guard node.kind == .object else { throw node.decodingError("expected an object") }
    return node
  }
}

// MARK: Containers

/// The members of an object.
private struct Members<Key: CodingKey>: KeyedDecodingContainerProtocol {
  let node: JSONNode
  /// The indices of the values by key; nil for a small object, which is searched linearly.
  private let valueIndices: [String: Int]?

  init(node: JSONNode) {
    self.node = node
    valueIndices = node.document.valueIndices(in: node.index)
  }

  var codingPath: [any CodingKey] { node.codingPath }
  var allKeys: [Key] { node.keys.compactMap(Key.init) }

  private func child(_ key: Key) throws -> JSONNode {
    guard let member = valueIndex(key) else {
      throw node.decodingError("\"\(key.stringValue)\" is missing", key)
    }
    return JSONNode(node.document, member, outermost: node.outermost ?? key)
  }

  private func valueIndex(_ key: Key) -> Int? {
    if let valueIndices { valueIndices[key.stringValue] } else { node.document.member(key.stringValue, of: node.index) }
  }

  func contains(_ key: Key) -> Bool { valueIndex(key) != nil }
  func decodeNil(forKey key: Key) throws -> Bool { try child(key).decodeNil() }
  func decode<T: Decodable>(_ type: T.Type, forKey key: Key) throws -> T { try child(key).decode(type) }

  func nestedContainer<Nested>(keyedBy type: Nested.Type, forKey key: Key) throws -> KeyedDecodingContainer<Nested> {
    try child(key).container(keyedBy: type)
  }
  func nestedUnkeyedContainer(forKey key: Key) throws -> any UnkeyedDecodingContainer { try child(key).unkeyedContainer() }
  func superDecoder(forKey key: Key) throws -> any Decoder { try child(key) }
  func superDecoder() throws -> any Decoder { node }
}

/// The elements of a list.
private struct Elements: UnkeyedDecodingContainer {
  let node: JSONNode
  var next: Int
  var currentIndex = 0

  init(node: JSONNode, next: Int) {
    self.node = node
    self.next = next
  }

  var codingPath: [any CodingKey] { node.codingPath }
  var count: Int? { nil }
  var isAtEnd: Bool { next >= node.document.nodes[node.index].after }

  private mutating func element() throws -> JSONNode {
    guard !isAtEnd else { throw node.decodingError("the list is too short") }
    defer {
      next = node.document.nodes[next].after
      currentIndex += 1
    }
    return JSONNode(node.document, next, outermost: node.outermost)
  }

  mutating func decodeNil() throws -> Bool {
    guard !isAtEnd, node.document.nodes[next].kind == .null else { return false }
    _ = try element()
    return true
  }
  mutating func decode<T: Decodable>(_ type: T.Type) throws -> T { try element().decode(type) }
  mutating func nestedContainer<Nested>(keyedBy type: Nested.Type) throws -> KeyedDecodingContainer<Nested> {
    try element().container(keyedBy: type)
  }
  mutating func nestedUnkeyedContainer() throws -> any UnkeyedDecodingContainer { try element().unkeyedContainer() }
  mutating func superDecoder() throws -> any Decoder { try element() }
}

extension JSON: Codable {
  public init(from decoder: any Decoder) throws {
    guard let node = decoder as? JSONNode else {
      throw DecodingError.dataCorrupted(.init(codingPath: decoder.codingPath, debugDescription: "JSON is decoded from messages only"))
    }
    do { self = try JSON(node) } catch { throw node.decodingError(error.message) }
  }

  public func encode(to encoder: any Encoder) throws {
    if case .object(let members) = self {
      var container = encoder.container(keyedBy: AnyKey.self)
      for member in members { try container.encode(member.value, forKey: AnyKey(stringValue: member.key)) }
      return
    }
    var container = encoder.singleValueContainer()
    switch self {
    case .null: try container.encodeNil()
    case .bool(let value): try container.encode(value)
    case .int(let value): try container.encode(value)
    case .float(let value): try container.encode(value)
    case .string(let value): try container.encode(value)
    case .array(let value): try container.encode(value)
    case .object: break
    }
  }
}
